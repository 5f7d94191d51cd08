# SPDX-License-Identifier: BSD-3-Clause
#
# A server in sidecar mode beside a node that the test makes up (lib/neighbour.py):
# how it logs in, what it believes, when its lease begins and ends, and how clients
# see each change. (Replies and errors are in tests/command/cluster-*.t; real nodes
# in test_cluster.py.)

import subprocess
import threading
import time

import pytest

from lib import neighbour, resp, servers, slots, tls
from lib.neighbour import A, B, C, node, wait_served
from lib.servers import wait_until

BAR, FOO = 5061, 12182  # slots of these keys
DOWN = resp.Error("CLUSTERDOWN The cluster is down")
MOVED = resp.Error("MOVED %d 127.0.0.1:29999" % FOO)


@pytest.fixture
def made():
    made = neighbour.Neighbour()
    yield made
    made.close()


def halves(server, **fields):
    """The server has the lower half of the slots, node b the upper one."""
    return {"nodes": [node(A, server.port, "myself,master", slots="0-8191"),
                      node(B, 29999, slots="8192-16383")], **fields}


def begin(start_server, made, *options):
    """A server with a lease, beside the node."""
    server = start_server("--sidecar-of", made.address, *neighbour.EMPTY, *options)
    made.say(**halves(server))
    neighbour.wait_lease(server)
    wait_served(server, 8192)
    with server.conn() as conn:     # it may have had all slots until then
        wait_until(lambda: str(conn.call("BF.EXISTS", "foo", "x")).startswith("MOVED"),
                   what="where the others are")
    return server


def test_a_server_waits_for_its_neighbour(start_server, made):
    made.close()
    server = start_server("--sidecar-of", made.address, *neighbour.EMPTY)
    with server.conn() as conn:
        for words in (("BF.ADD", "bar", "x"), ("CLUSTER", "SLOTS"), ("CLUSTER", "MYID")):
            assert conn.call(*words) == resp.Error(
                "CLUSTERDOWN The neighbour has not been read yet (sidecar-of)")
        assert conn.call("PING") == b"PONG"
        assert conn.call("CLUSTER", "KEYSLOT", "bar") == BAR
        made.listen()
        wait_until(lambda: conn.call("BF.ADD", "bar", "x") == 1, what="the first lease")
    assert b"lost the neighbour" in server.log()


def test_the_lease_ends_with_the_connection(start_server, made):
    server = begin(start_server, made)
    with server.conn() as conn:
        assert conn.call("BF.ADD", "bar", "x") == 1
        made.close()
        wait_until(lambda: conn.call("BF.EXISTS", "bar", "x") == DOWN,
                   what="the end of the lease")
        # Where other slots are is still known.
        assert conn.call("BF.ADD", "foo", "x") == MOVED
        assert len(conn.call("CLUSTER", "SLOTS")) == 2
        assert b"cluster_state:fail" in conn.call("CLUSTER", "INFO")
        assert neighbour.figures(server)["cluster_neighbour_link"] == "down"
        made.listen()
        wait_until(lambda: conn.call("BF.EXISTS", "bar", "x") == 1,
                   what="another lease")
    assert neighbour.figures(server)["cluster_leases_lost"] == "1"


def test_the_lease_ends_when_the_neighbour_is_silent(start_server, made):
    """And the first answer that follows begins no new one."""
    server = begin(start_server, made)
    with server.conn() as conn:
        assert conn.call("BF.ADD", "bar", "x") == 1
        began = time.monotonic()
        made.say(silent=True)
        wait_until(lambda: conn.call("BF.EXISTS", "bar", "x") == DOWN,
                   what="the end of the lease")
        assert time.monotonic() - began < 1.1 * servers.time_factor()
        polls = made.polls
        made.say(silent=False)
        neighbour.wait_lease(server)
        assert made.polls >= polls + 2
        assert conn.call("BF.EXISTS", "bar", "x") == 1


def test_a_lease_may_be_set(start_server, made):
    server = begin(start_server, made, "--sidecar-lease-ms", 300, "--sidecar-poll-ms", 50)
    assert neighbour.figures(server)["cluster_lease_ms"] == "300"
    made.say(silent=True)
    neighbour.wait_lease(server, has=False)


def test_what_the_neighbour_owns_is_followed(start_server, made):
    server = begin(start_server, made)
    with server.conn() as conn:
        assert conn.call("BF.ADD", "bar", "x") == 1
        made.say(nodes=[node(A, server.port, "myself,master"),
                        node(B, 29999, slots="0-16383")])
        wait_until(lambda: conn.call("BF.ADD", "bar", "y") == resp.Error(
            "MOVED %d 127.0.0.1:29999" % BAR), what="MOVED")
        made.say(nodes=[node(A, server.port, "myself,slave", B),
                        node(B, 29998, slots="0-16383")])
        wait_until(lambda: conn.call("BF.ADD", "bar", "y") == resp.Error(
            "MOVED %d 127.0.0.1:29998" % BAR), what="another port")
        assert neighbour.figures(server)["cluster_role"] == "slave"
        made.say(**halves(server, state="fail"))
        wait_until(lambda: conn.call("BF.ADD", "bar", "y") == DOWN, what="state fail")
        made.say(state="ok")
        wait_until(lambda: conn.call("BF.ADD", "bar", "y") in (0, 1), what="state ok")


def test_a_map_that_cannot_be_is_not_believed(start_server, made):
    server = begin(start_server, made)
    with server.conn() as conn:
        made.say(nodes=[node(A, server.port, "myself,master", slots="0-9"),
                        node(B, 29999, slots="9")])
        wait_until(lambda: conn.call("BF.ADD", "bar", "x") == DOWN,
                   what="the end of the lease")
        assert b"a slot has two owners" in server.log()
        assert len(conn.call("CLUSTER", "SLOTS")) == 2  # the last good one
        made.say(**halves(server))
        wait_until(lambda: conn.call("BF.EXISTS", "bar", "x") == 1,
                   what="another lease")


@pytest.mark.parametrize("raw,why", [
    (b"hello\r\n", b"Protocol error"),
    (b"*99999\r\n", b""),
    (b"$99999999\r\n" + b"x" * (17 << 20), b"too long"),
    (b"+OK\r\n+OK\r\n", b"nobody asked"),
], ids=["type", "count", "length", "extra"])
def test_a_neighbour_that_speaks_nonsense_is_left(start_server, made, raw, why):
    server = begin(start_server, made)
    made.say(raw=raw)
    neighbour.wait_lease(server, has=False)
    wait_until(lambda: why in server.log(), what="the reason")
    made.say(raw=None)
    neighbour.wait_lease(server)


def test_errors_of_the_neighbour_are_shown(start_server, made):
    made.say(error="ERR This instance has cluster support disabled")
    server = start_server("--sidecar-of", made.address, *neighbour.EMPTY)
    wait_until(lambda: b"CLUSTER NODES: ERR This instance has cluster support disabled"
               in server.log(), what="the reason in the log")
    made.say(error=None)
    neighbour.wait_lease(server)


# ---- logging in ------------------------------------------------------------------

def test_it_logs_in(start_server, made):
    made.say(user="watcher", password="secret")
    server = start_server("--sidecar-of", made.address, *neighbour.EMPTY, "--sidecar-user", "watcher",
                          "--sidecar-password", "wrong")
    wait_until(lambda: b"WRONGPASS" in server.log(), what="the refusal in the log")
    assert b"sidecar-user, sidecar-password" in server.log()
    with server.conn() as conn:
        assert conn.call("CONFIG", "GET", "sidecar-password")[1] == b"********"
        assert conn.call("CONFIG", "SET", "sidecar-password", "secret") == b"OK"
    neighbour.wait_lease(server)
    assert b"secret" not in server.log()
    assert ["AUTH", "watcher", "secret"] in made.asked


def test_the_default_user_needs_no_name(start_server, made):
    made.say(password="secret")
    server = start_server("--sidecar-of", made.address, *neighbour.EMPTY, "--sidecar-password", "secret")
    neighbour.wait_lease(server)
    assert ["AUTH", "secret"] in made.asked


def test_the_neighbour_may_be_at_a_unix_socket(start_server, tmp_path):
    made = neighbour.Neighbour(str(tmp_path / "node"))
    try:
        server = start_server("--sidecar-of", made.address, *neighbour.EMPTY)
        neighbour.wait_lease(server)
    finally:
        made.close()
    neighbour.wait_lease(server, has=False)


# ---- addresses -------------------------------------------------------------------

def test_addresses_follow_the_options(start_server, made):
    server = start_server("--sidecar-of", made.address, *neighbour.EMPTY, "--sidecar-port-offset", 500,
                          "--sidecar-map",
                          "%s=[fd00::2]:7777 %s=c.example:8888" % (B, C))
    made.say(nodes=[node(A, server.port + 500, "myself,master", slots="0-8191"),
                    node(B, 29999, slots="8192-16000"),
                    node(C, 29998, slots="16001-16383")])
    wait_served(server, 8192)
    with server.conn() as conn:
        assert conn.call("BF.ADD", "foo", "x") == resp.Error(
            "MOVED %d fd00::2:7777" % FOO)
        assert [row[2][:2] for row in conn.call("CLUSTER", "SLOTS")] == [
            [b"127.0.0.1", server.port], [b"fd00::2", 7777], [b"c.example", 8888]]
        assert "is not node-id=host:port" in str(conn.call(
            "CONFIG", "SET", "sidecar-map", "x=h:1"))
        assert conn.call("CONFIG", "SET", "sidecar-map", "%s=other:9" % B) == b"OK"
        wait_until(lambda: conn.call("BF.ADD", "foo", "x") == resp.Error(
            "MOVED %d other:9" % FOO), what="the new address")
        assert conn.call("CLUSTER", "SLOTS")[2][2][:2] == [
            b"127.0.0.1", 29498]


@pytest.mark.parametrize("kind,slots,moved", [
    ("ip", [b"127.0.0.1", [b"hostname", b"b.example"]], "127.0.0.1:29999"),
    ("hostname", [b"b.example", [b"ip", b"127.0.0.1"]], "b.example:29999"),
    ("unknown-endpoint",
     [None, [b"ip", b"127.0.0.1", b"hostname", b"b.example"]], ":29999"),
])
def test_the_endpoint_is_the_preferred_one(start_server, made, kind, slots, moved):
    made.config["cluster-preferred-endpoint-type"] = kind
    server = start_server("--sidecar-of", made.address, *neighbour.EMPTY)
    made.say(nodes=[node(A, server.port, "myself,master", slots="0-8191"),
                    node(B, 29999, slots="8192-16383", hostname="b.example")])
    wait_served(server, 8192)
    with server.conn() as conn:
        row = conn.call("CLUSTER", "SLOTS")[1][2]
        assert [row[0], row[3]] == slots
        wait_until(lambda: conn.call("BF.ADD", "foo", "x") == resp.Error(
            "MOVED %d %s" % (FOO, moved)), what="the redirect")


def test_a_port_that_clients_cannot_reach_is_warned_of(start_server, made):
    made.say(nodes=[node(A, 29997, "myself,master", slots="0-16383")])
    server = start_server("--sidecar-of", made.address, *neighbour.EMPTY)
    wait_until(lambda: b"clients are sent to another port" in server.log(),
               what="the warning")


def test_settings_of_the_neighbour_are_read_again(start_server, made):
    server = begin(start_server, made)
    with server.conn() as conn:
        assert conn.call("SELECT", "3") == resp.Error("ERR DB index is out of range")
        made.config["cluster-databases"] = "4"
        made.close()  # it restarts
        made.listen()
        wait_until(lambda: conn.call("SELECT", "3") == b"OK", what="databases")
        assert conn.call("SELECT", "4") == resp.Error("ERR DB index is out of range")


def test_tls_clients_get_ports_for_tls(start_server, made, tmp_path):
    files = tls.Files(tmp_path)
    port = servers.free_port()
    server = start_server("--sidecar-of", made.address, *neighbour.EMPTY, *files.options(port))
    made.say(**halves(server))
    wait_served(server, 8192)
    with server.conn() as plain, tls.Conn(port, files.context()) as secure:
        offset = port - server.port
        # Commands on slots that the node has just lost wait for their new owner.
        wait_until(lambda: "MOVED" in str(plain.call("BF.ADD", "foo", "x")),
                   what="the owner's address")
        assert plain.call("BF.ADD", "foo", "x") == resp.Error(
            "MOVED %d 127.0.0.1:29999" % FOO)
        assert secure.call("BF.ADD", "foo", "x") == resp.Error(
            "MOVED %d 127.0.0.1:%d" % (FOO, 29999 + offset))
        assert [row[2][1] for row in secure.call("CLUSTER", "SLOTS")] == [
            port, 29999 + offset]


# ---- the mode --------------------------------------------------------------------

@pytest.mark.parametrize("options,why", [
    (("--sidecar-of", "localhost"), "neither host:port"),
    (("--sidecar-of", "::1:7000"), "neither host:port"),
    (("--sidecar-of", "h:0"), "neither host:port"),
    (("--sidecar-of", "h:7000", "--sidecar-map", "x=h:1"), "is not node-id=host:port"),
    (("--sidecar-of", "h:7000", "--replicaof", "h 1"), "replicaof cannot be set"),
])
def test_options_that_are_wrong_stop_the_start(tmp_path, options, why):
    done = subprocess.run(
        [servers.server_binary(), "--port", str(servers.free_port()),
         "--dir", str(tmp_path), *options],
        capture_output=True, text=True, timeout=30)
    assert done.returncode != 0
    assert why in done.stderr + done.stdout


def test_clients_see_the_mode(start_server, made):
    server = begin(start_server, made)
    with server.conn(3) as conn:
        assert conn.call("HELLO", "3")[b"mode"] == b"cluster"
        text = conn.call("INFO")
        for line in (b"redis_mode:cluster", b"server_mode:cluster",
                     b"cluster_enabled:1"):
            assert b"\r\n" + line + b"\r\n" in text


def test_data_keeps_its_slots_over_a_restart(start_server, made, tmp_path):
    options = ("--appendonly", "yes", "--dir", tmp_path)
    server = begin(start_server, made, *options)
    with server.conn() as conn:
        for i in range(100):
            assert conn.call("BF.ADD", "{bar}%d" % i, "x") == 1
        assert conn.call("CLUSTER", "COUNTKEYSINSLOT", BAR) == 100
    server.stop()
    server = begin(start_server, made, *options)
    with server.conn() as conn:
        assert conn.call("CLUSTER", "COUNTKEYSINSLOT", BAR) == 100
        assert len(conn.call("CLUSTER", "GETKEYSINSLOT", BAR, 50)) == 50
        assert all(conn.call("BF.EXISTS", "{bar}%d" % i, "x") for i in range(100))


def test_a_client_library_finds_its_way(start_server, made):
    """Two servers beside one made-up cluster each, which agree."""
    cluster = pytest.importorskip("redis.cluster")
    other = neighbour.Neighbour()
    try:
        one = start_server("--sidecar-of", made.address, *neighbour.EMPTY)
        two = start_server("--sidecar-of", other.address, *neighbour.EMPTY)
        made.say(nodes=[node(A, one.port, "myself,master", slots="0-8191"),
                        node(B, two.port, "master", slots="8192-16383")])
        other.say(myid=B,
                  nodes=[node(A, one.port, "master", slots="0-8191"),
                         node(B, two.port, "myself,master", slots="8192-16383")])
        for server in (one, two):
            wait_served(server, 8192)
        client = cluster.RedisCluster(host="127.0.0.1", port=one.port)
        for i in range(100):
            assert client.execute_command("BF.ADD", "k%d" % i, "x") == 1
        assert sum(client.execute_command("BF.EXISTS", "k%d" % i, "x")
                   for i in range(100)) == 100
        # The slots change hands: the client follows MOVED.
        made.say(nodes=[node(A, one.port, "myself,master"),
                        node(B, two.port, "master", slots="0-16383")])
        other.say(nodes=[node(A, one.port, "master"),
                         node(B, two.port, "myself,master", slots="0-16383")])
        wait_served(two, 16384)
        wait_served(one, 0)
        assert client.execute_command("BF.ADD", "bar", "x") == 1
        client.close()
    finally:
        other.close()


def test_an_owner_that_knows_late_sends_no_client_back(start_server, made):
    """Slots move one after the other. The daemon of the new owner looks at its node
    late, and until then sends clients to the old one."""
    late = neighbour.Neighbour()
    try:
        one = start_server("--sidecar-of", made.address, *neighbour.EMPTY)
        two = start_server("--sidecar-of", late.address, *neighbour.EMPTY)

        def tell(node_of, ident, first):
            """The lower slots, up to `first`, are those of the second node."""
            lower, upper = (A, one.port), (B, two.port)
            ranges = ["%d-8191" % first, "8192-16383" if first == 0 else
                      "0-%d 8192-16383" % (first - 1)]
            node_of.say(myid=ident, nodes=[
                node(who, port, "myself,master" if who == ident else "master",
                     epoch=epoch, slots=has)
                for (who, port), epoch, has in zip(
                    (lower, upper), (1, 2 + first), ranges)])

        for node_of, ident in ((made, A), (late, B)):
            tell(node_of, ident, 0)
        for server in (one, two):
            wait_served(server, 8192)
        added = []
        with slots.Client(lambda: [one.address]) as client:
            def add(slot):
                key = slots.key_in(slot)
                reply, _ = client.call(key, "BF.ADD", key, str(len(added)))
                assert reply in (0, 1), reply
                added.append((key, str(len(added))))

            for slot in range(0, 60, 10):
                add(slot)
            for first in range(10, 60, 10):
                tell(made, A, first)
                made.wait_looks(1)
                for slot in range(0, 60, 10):
                    add(slot)
            began = time.monotonic()
            teller = threading.Timer(0.7, tell, (late, B, 50))
            teller.start()
            while time.monotonic() < began + 0.5 or len(added) < 1000:
                add(len(added) % 6 * 10)
            teller.join()
            wait_served(two, 8192 + 50)
            for key, item in added:
                assert client.call(key, "BF.EXISTS", key, item)[0] == 1
            assert client.most <= 2, client.most
    finally:
        late.close()


def test_an_operator_may_have_lost_slots_served(group, made):
    """The server that had the upper slots has died, and its node's slots are another
    node's now. Nobody has their data, until an operator says so."""
    other = neighbour.Neighbour()
    try:
        lower, upper = (A, servers.free_port()), (B, servers.free_port())
        for node_of, ident in ((made, A), (other, B)):
            node_of.say(myid=ident, nodes=[
                node(who, port, "myself,master" if who == ident else "master",
                     slots=has)
                for (who, port), has in ((lower, "0-8191"), (upper, "8192-16383"))])
        one = group.node("--sidecar-of", made.address, port=lower[1])
        two = group.node("--sidecar-of", other.address, port=upper[1])
        for server in (one, two):
            wait_served(server, 8192)
            neighbour.wait_lease(server)
        with two.conn() as conn:
            assert conn.call("BF.ADD", "foo", "lost") == 1
        with one.conn() as conn:
            assert conn.call("BF.ADD", "bar", "kept") == 1
            # Its survey has heard of the other one's slots.
            wait_until(lambda: b"known 0-16383" in
                       conn.call("SIDECAR", "HOLDINGS")[2], 20, "it knows")
            two.crash()
            made.say(nodes=[node(A, one.port, "myself,master", epoch=5,
                                 slots="0-16383"),
                            node(B, two.port, "master,fail", link="disconnected")])
            lost = resp.Error("CLUSTERDOWN Slot data not available")
            wait_until(lambda: conn.call("BF.EXISTS", "foo", "lost") == lost, 20,
                       "the slot is missing")
            assert neighbour.figures(one)["cluster_slots_missing"] == "8192"
            assert str(conn.call("SIDECAR", "FORCE-SERVE", "8191-8193")) == \
                "ERR slot 8191 is served: it is not missing"
            assert conn.call("MULTI") == b"OK"
            assert isinstance(conn.call("SIDECAR", "FORCE-SERVE", "8192"), resp.Error)
            conn.call("DISCARD")
            assert conn.call("SIDECAR", "FORCE-SERVE", str(FOO)) == [
                b"slots", 1, b"chosen", [], b"others", []]
            wait_until(lambda: conn.call("BF.EXISTS", "foo", "lost") == 0, 20,
                       "it is served")
            assert conn.call("SIDECAR", "FORCE-SERVE", "8192-%d,%d-16383" % (
                FOO - 1, FOO + 1))[:2] == [b"slots", 8191]
            assert conn.call("BF.ADD", "foo", "new") == 1
        wait_served(one, 16384)
        neighbour.wait_lease(one)
        figures = neighbour.figures(one)
        assert figures["cluster_slots_forced"] == "8192"
        assert figures["cluster_slots_missing"] == "0"
        assert b"served without their data" in one.log()
        one.crash()
        one.restart()
        wait_served(one, 16384)
        neighbour.wait_lease(one)
        with one.conn() as conn:
            assert conn.call("BF.EXISTS", "foo", "new") == 1
    finally:
        other.close()
