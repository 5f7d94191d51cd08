# SPDX-License-Identifier: BSD-3-Clause
#
# The test bed of the cluster scenarios, on nodes without daemons: the nodes' own sets
# stand in for filters. It shows that the bed's clusters behave as real ones do, and
# that its checker finds lost items, wrong answers and redirects without end.

import socket
import threading

import pytest

from lib import cluster, cluster_faults, cluster_load, slots
from lib.servers import wait_until


@pytest.fixture
def nodes(request, bed):
    why = cluster.missing(bed.kind)
    if why:
        pytest.skip("cluster of %s: %s" % (bed.kind, why))
    yield bed.take(linked=True, daemons=False)
    bed.give_back(request.node.report_call.failed)


def load_on(nodes, **options):
    return cluster_load.Load(nodes, seed=1, words=cluster_load.SETS, **options)


# What needs no daemon, and is quick.
@pytest.mark.parametrize("fault", (
    "failover", "reshard_one", "reshard_with_keys", "add_and_remove", "migrate",
    "migrate_and_cancel"))
def test_nodes_alone_keep_their_items_through_faults(nodes, fault):
    if fault not in cluster_faults.names(nodes):
        pytest.skip("%s has no such command" % nodes.kind)
    with load_on(nodes) as load:
        load.wait_progress()
        cluster_faults.Play(nodes, load, seed=1).play(fault)
        load.finish()
    assert load.reads > 0 and load.most <= 1


def test_the_checker_finds_a_lost_key(nodes):
    with load_on(nodes) as load:
        load.wait_progress()
        load.over.set()
        lost = load.acks[0]
        assert nodes.owner(lost.slot).node.ask("DEL", lost.key) == 1
        with pytest.raises(AssertionError, match="missing: .* slot %d .* %s at" % (
                lost.slot, lost.item)):
            load.finish()
    count = sum(a.key == lost.key for a in load.acks)
    assert len(load.missing) == count


def test_readers_find_lost_keys_meanwhile(nodes):
    with load_on(nodes) as load:
        load.wait_progress()
        nodes.owner(load.acks[-1].slot).node.tell("FLUSHALL")
        wait_until(lambda: load.bad, 30, "a reader meets a lost key")
        with pytest.raises(AssertionError, match="false negative: "):
            load.finish()


def test_a_declared_loss_is_allowed_in_its_slots_only(nodes):
    with load_on(nodes) as load:
        load.wait_progress()
        victim = load.acks[-1]
        with load.may_lose("test", only={victim.slot}, lag=100):
            nodes.owner(victim.slot).node.ask("DEL", victim.key)
        load.finish()
        assert all(b.slot == victim.slot and b.allowed == "test"
                   for b in load.missing)
        # Later items of the same slot may not get lost.
        later = victim._replace(time=load.windows[0][1] + 1)
        assert load.allowed(victim) == "test" and load.allowed(later) is None


class Ring:
    """Servers that redirect every command to each other."""

    def __init__(self):
        self.listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        ports = [listener.getsockname()[1] for listener in self.listeners]
        for listener, other in zip(self.listeners, reversed(ports)):
            threading.Thread(target=self.serve, args=(listener, other),
                             daemon=True).start()

    def serve(self, listener, other):
        sock, _ = listener.accept()
        while sock.recv(1000):
            sock.sendall(b"-MOVED 0 127.0.0.1:%d\r\n" % other)

    def addresses(self):
        return [listener.getsockname() for listener in self.listeners]

    def close(self):
        for listener in self.listeners:
            listener.close()


def test_the_client_reports_redirects_without_end():
    ring = Ring()
    with slots.Client(ring.addresses, seconds=0.2) as client:
        with pytest.raises(slots.Refused, match="MOVED") as refused:
            client.call("key", "BF.ADD", "key", "item")
    ring.close()
    assert client.most > slots.REDIRECTS and client.loops
    assert refused.value.way.most == client.most


def test_slots_are_those_of_the_nodes(nodes):
    names = ["", "a", "{}a", "{a}b", "a{b}{c}", "{b", "}b{", "x" * 1000,
             slots.key_in(0), slots.key_in(16383), "\xff\x00"]
    for name in names:
        assert nodes.pairs[0].node.ask("CLUSTER", "KEYSLOT", name) == \
            slots.slot_of(name)
    assert all(slots.slot_of(slots.key_in(s)) == s for s in range(slots.SLOTS))


def test_two_primaries_never_share_a_slot(nodes):
    """What wait_settled() promises: all nodes agree, and every slot has one owner."""
    nodes.wait_settled()
    owners = {}
    for pair in nodes.primaries():
        for first, last in nodes.view()[pair.node.id].ranges:
            for slot in range(first, last + 1):
                assert slot not in owners
                owners[slot] = pair
    assert len(owners) == slots.SLOTS
