# SPDX-License-Identifier: BSD-3-Clause
#
# Daemons beside the nodes of a real cluster: what clients see of the map, that a
# daemon follows its node quickly, and that it refuses instead of answering wrongly
# once its node may no longer be the owner. test_cluster_moves.py has the scenarios in
# which data changes its daemon.

import time

import pytest

from lib import cluster_load, resp, slots, tools
from lib.cluster import DAEMON_OFFSET, NODE_TIMEOUT_MS
from lib.cluster_lag import Lag
from lib.servers import time_factor, wait_until

LAG_S = 0.25
LEASE_S = min(1.0, NODE_TIMEOUT_MS / 4000)


def ask(process, *words):
    with process.conn() as conn:
        return conn.call(*words)


def answers(daemon, wanted, *words):
    """Asks until its reply is one of those. It may refuse before, when it gets no
    processor for the length of its lease; any other reply fails."""
    def reply():
        got = ask(daemon, *words)
        assert got in wanted or str(got).startswith("CLUSTERDOWN"), got
        return got in wanted

    wait_until(reply, 10, "%s answers" % words[0])


def test_clients_write_everywhere_and_read_it_back(ring):
    with cluster_load.Load(ring, seed=1, every=64) as load:
        load.wait_progress()
        wait_until(lambda: len(load.acks) > 2000, 60, "2000 items")
        load.finish()
    assert load.most <= 1
    # A daemon that gets no processor for the length of its lease refuses.
    assert set(load.kinds) <= {"ok", "MOVED", "CLUSTERDOWN"}
    # Every third of the slots is written at its own daemon.
    ports = {a.port for a in load.acks}
    assert ports == {p.daemon.port for p in ring.primaries()}


def test_a_daemon_shows_the_map_of_its_node(ring):
    def moved(entry, offset):
        """An entry with the daemons' ports. A node leaves out replicas that have
        got nothing yet, a daemon does not."""
        first, last, *nodes = entry
        return [[first, last]] + [[host, port + offset, node_id]
                                  for host, port, node_id, *_ in nodes]

    for pair in ring.pairs:
        want = ask(pair.node, "CLUSTER", "SLOTS")
        got = ask(pair.daemon, "CLUSTER", "SLOTS")
        assert len(got) == len(want)
        for said, meant in zip(sorted(got), sorted(want)):
            said, meant = moved(said, 0), moved(meant, DAEMON_OFFSET)
            assert said[:2] == meant[:2]
            assert all(node in said for node in meant)
        assert ask(pair.daemon, "CLUSTER", "MYID").decode() == pair.node.id
        wait_until(lambda d=pair.daemon: b"cluster_state:ok" in
                   ask(d, "CLUSTER", "INFO"), 10, "its lease holds")
        assert b"cluster_enabled:1" in ask(pair.daemon, "INFO", "cluster")


def test_a_redirect_leads_to_the_owner(ring):
    for slot in range(0, slots.SLOTS, 512):
        key, owner = slots.key_in(slot), ring.owner(slot)
        for pair in ring.pairs:
            if pair is owner:
                continue
            want = resp.Error("MOVED %d 127.0.0.1:%d" % (
                slot, owner.daemon.port))
            answers(pair.daemon, [want], "BF.ADD", key, "item")
        answers(owner.daemon, [0], "BF.EXISTS", key, "item")


def test_redis_cli_finds_the_cluster_whole(ring):
    daemon = ring.pairs[0].daemon
    got = tools.cli(daemon, "--cluster", "check", "127.0.0.1:%d" % daemon.port)
    assert "[OK] All nodes agree about slots configuration." in got, got
    assert "[OK] All 16384 slots covered." in got, got


def test_daemons_know_changes_soon(ring):
    """A failover, and slots that move one after the other."""
    with Lag(ring) as lag:
        ring.failover(ring.replicas_of(ring.owner(0))[0])
        ring.wait_settled()
        to = ring.primaries()[-1]
        moved = [s for s in range(0, 60) if ring.owner(s) is not to][:10]
        ring.reshard(moved, to)
        ring.wait_settled()
        wait_until(lag.is_stable, 30, "the maps do not change any more")
    limit = LAG_S * time_factor() + 1.0
    lags, never = lag.lags(limit)
    assert not never, never
    assert lags[-1] <= limit, lags
    print("lag of the map: median %.3f s, longest %.3f s of %d" % (
        lags[len(lags) // 2], lags[-1], len(lags)))


# ---- the lease

def answers_at(daemon, key, item, seconds):
    """Asks all the time; returns [(seconds since now, reply)]."""
    began, got = time.monotonic(), []
    with daemon.conn() as conn:
        while time.monotonic() < began + seconds:
            sent = time.monotonic() - began
            got.append((sent, conn.call("BF.EXISTS", key, item)))
    return got


@pytest.mark.parametrize("fault", ("crash", "freeze"))
def test_without_its_node_a_daemon_refuses(ring, fault):
    """It answers rightly until its lease ends, and then refuses. It never says that
    an item is absent, also when the new owner has taken over."""
    slot = 1000
    pair, key = ring.owner(slot), slots.key_in(slot, "lease")
    answers(pair.daemon, (0, 1), "BF.ADD", key, "item")
    getattr(pair.node, fault)()
    got = answers_at(pair.daemon, key, "item", LEASE_S + 1)
    refused = [t for t, reply in got if reply != 1]
    assert refused, "it never refuses"
    # A killed node's connection is refused at once.
    latest = (LEASE_S if fault == "freeze" else 0.2) + 0.5 * time_factor()
    assert refused[0] <= latest, refused[0]
    for t, reply in got:
        assert reply == 1 or str(reply).startswith(("CLUSTERDOWN", "MOVED")), reply
        assert reply != 1 or t <= refused[0], "it serves again without its node"
    assert ask(pair.daemon, "PING") == b"PONG"
    ring.wait_new_owner(slot, pair)


@pytest.mark.parametrize("order", (("daemon", "node"), ("node", "daemon")))
def test_what_waited_in_a_stopped_daemon_is_refused(ring, order):
    """Both are stopped while a replica takes over. Commands that the daemon reads
    afterwards are refused, although its last poll said that it is the owner. So does
    the first answer of a node that has just been continued."""
    slot = 1000
    pair, key = ring.owner(slot), slots.key_in(slot, "waited")
    answers(pair.daemon, (0, 1), "BF.ADD", key, "early")
    with pair.daemon.conn(timeout=60) as conn:
        pair.daemon.freeze()
        pair.node.freeze()
        conn.send(resp.command("BF.ADD", key, "late") +
                  resp.command("BF.EXISTS", key, "absent"))
        ring.wait_new_owner(slot, pair)
        for name in order:
            getattr(pair, name).thaw()
        replies = [conn.read(), conn.read()]
        end = time.monotonic() + 1
        while time.monotonic() < end:
            replies.append(conn.call("BF.EXISTS", key, "absent"))
    for reply in replies:
        assert str(reply).startswith(("CLUSTERDOWN", "MOVED", "TRYAGAIN")), reply
    assert str(replies[-1]).startswith("MOVED"), replies[-1]
