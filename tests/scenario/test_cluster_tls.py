# SPDX-License-Identifier: BSD-3-Clause
#
# A cluster whose nodes speak TLS to each other, and daemons that speak TLS to their
# nodes, to each other and to clients. All of them want client certificates.

import pytest

from lib import (cluster, cluster_load, neighbour, replicas, resp, slots, tls)
from lib.servers import free_port, wait_until

SECONDS = 60


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return tls.Files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module", params=cluster.KINDS)
def made(request, files):
    why = cluster.missing(request.param)
    if why:
        pytest.skip("cluster of %s: %s" % (request.param, why))
    with cluster.Cluster(request.param, tls=files) as made:
        yield made


def secure_client(made):
    """A client that knows only TLS ports, and shows a certificate."""
    context = made.tls.context()

    def connect(address, **kwargs):
        return tls.Conn(address[1], context, **kwargs)

    return slots.Client(lambda: [(host, port + 1) for host, port in
                                 made.addresses()], connect=connect)


def test_clients_with_tls_are_sent_to_tls_ports(made):
    owner, other = made.primaries()[:2]
    slot = made.view()[owner.node.id].ranges[0][0]
    key = slots.key_in(slot)
    with other.daemon.conn() as plain, \
            tls.Conn(other.daemon.port + 1, made.tls.context()) as secure:
        for conn, more in ((plain, 0), (secure, 1)):
            port = owner.daemon.port + more
            assert conn.call("BF.ADD", key, "x") == resp.Error(
                "MOVED %d 127.0.0.1:%d" % (slot, port))
            assert port in [row[2][1] for row in conn.call("CLUSTER", "SLOTS")]
            assert b" 127.0.0.1:%d@" % port in conn.call("CLUSTER", "NODES")


def test_filters_move_over_tls(made):
    """Slots with filters move, and their daemon's replicas follow, while clients
    write with and without TLS."""
    source, to = made.primaries()[:2]
    first = made.view()[source.node.id].ranges[0][0]
    moved = list(range(first, first + 10))
    with secure_client(made) as client, cluster_load.Load(
            made, seed=1, every=4) as load:
        load.wait_progress()
        for slot in moved:
            key = slots.key_in(slot, "tls")
            for item in range(20):
                assert client.call(key, "BF.ADD", key, item)[0] in (0, 1)
        made.reshard(moved, to)
        for item in range(20, 200):
            for slot in moved:
                key = slots.key_in(slot, "tls")
                assert client.call(key, "BF.ADD", key, item)[0] in (0, 1)
        made.wait_settled()
        for slot in moved:
            key = slots.key_in(slot, "tls")
            reply, way = client.call(key, "BF.MEXISTS", key, *range(200))
            assert set(reply) == {1}
            assert way.port == to.daemon.port + 1
        load.finish()
    for pair in made.primaries():
        replicas.wait_even(pair.daemon,
                           *[r.daemon for r in made.replicas_of(pair)])


def test_a_failover_hands_over_with_tls(made):
    old = made.primaries()[0]
    slot = made.view()[old.node.id].ranges[0][0]
    key = slots.key_in(slot, "failover")
    with secure_client(made) as client:
        for item in range(100):
            client.call(key, "BF.ADD", key, item)
        new = made.replicas_of(old)[0]
        made.failover(new)
        reply, way = client.call(key, "BF.MEXISTS", key, *range(100))
        assert set(reply) == {1}
        made.wait_settled()
        reply, way = client.call(key, "BF.MEXISTS", key, *range(100))
        assert set(reply) == {1} and way.port == new.daemon.port + 1
    assert replicas.info(old.daemon)["master_port"] == str(new.daemon.port + 1)


def test_a_node_that_cannot_be_trusted_is_not_believed(made, files, tmp_path,
                                                       start_server):
    """Its certificate is of another authority; or ours is, as the node sees it; or it
    does not speak TLS at all. The server keeps trying, and tells why."""
    node = made.primaries()[0].node
    other = tls.Files(tmp_path)
    plain = neighbour.Neighbour()
    try:
        for address, certificates, why in (
                ("127.0.0.1:%d" % node.inner[1], other, "certificate"),
                (plain.address, files, "TLS")):
            server = start_server(
                "--sidecar-of", address, "--sidecar-tls", "yes",
                *certificates.options(free_port()))
            wait_until(lambda s=server: b"lost the neighbour" in s.log(), SECONDS,
                       "it gives up once")
            assert why.encode() in server.log(), server.log()
            with server.conn() as conn:
                assert str(conn.call("BF.ADD", "k", "x")).startswith("CLUSTERDOWN")
    finally:
        plain.close()
