# SPDX-License-Identifier: BSD-3-Clause
#
# Failovers, kills and stops of nodes and daemons, slots that move, nodes that come and
# go, all with writers and readers. Nothing that was acknowledged may be missing, and
# no reader may hear that it is absent, except where a primary died together with its
# daemon. `make cluster` plays random schedules of the same faults.

import os
import random
import time

import pytest

from lib import cluster, cluster_faults, cluster_load, replicas, slots
from lib.servers import sanitized, time_factor, wait_until

LINKED = True

# The longest time without an acknowledgement that these tests accept. Machines that
# run them may be busy; `make cluster` prints the real ones.
PLANNED_S = 5.0
FAILOVER_S = 20.0
FAULTS_A_LOAD = 5
SLOW = {"kill_node", "kill_both", "stop_node", "stop_both", "bounce_node",
        "kill_daemon", "stop_daemon", "migrate_and_kill", "rolling_restart",
        "reshard_and_kill_daemon", "copy_and_fail_over_source",
        "copy_and_fail_over_target", "copy_and_kill_source", "stop_node_shortly",
        "cut_off", "cut_off_one_way", "cut_off_shortly", "cut_from_replica"}


def finish(ring, load):
    """Checks all items, and that the replicas have the same data."""
    load.finish()
    for pair in ring.primaries():
        replicas.wait_even(pair.daemon,
                           *[r.daemon for r in ring.replicas_of(pair)])


def elsewhere(ring, fault):
    """Returns why this fault is not for this kind of node: to a sanitizer, which
    looks at the daemon, it is the same beside either, so it plays half of each."""
    why = cluster_faults.missing(ring, fault)
    if why or not sanitized() or cluster_faults.is_valkeys(fault):
        return why
    turn = sorted(cluster_faults.FAULTS).index(fault) % len(cluster.KINDS)
    other = cluster.KINDS[turn]
    return None if ring.kind == other or cluster.missing(other) else \
        "it is played beside " + other


@pytest.mark.parametrize("fault", sorted(cluster_faults.FAULTS))
def test_nothing_is_lost_or_denied(ring, fault):
    why = elsewhere(ring, fault)
    if why:
        pytest.skip(why)
    with cluster_load.Load(ring, seed=fault) as load:
        load.wait_progress()
        play = cluster_faults.Play(ring, load, seed=fault)
        gaps = play.play(fault)
        finish(ring, load)
    print("%s: %s" % (fault, load))
    most = FAILOVER_S if fault in SLOW else PLANNED_S
    assert max(gaps) <= most * time_factor(), (play.told, gaps)


def test_a_replica_answers_readers_only(ring):
    slot = 2000
    primary, key = ring.owner(slot), slots.key_in(slot, "read")
    replica = ring.replicas_of(primary)[0]
    elsewhere = slots.key_in(next(s for s in range(0, slots.SLOTS, 100)
                                  if ring.owner(s) is not primary))
    moved = "MOVED %d %s:%d" % (slot, *primary.daemon.address)
    with ring.client() as client:
        client.call(key, "BF.ADD", key, "item")
    with replica.daemon.conn() as conn:
        assert str(conn.call("BF.EXISTS", key, "item")) == moved
        assert conn.call("READONLY") == b"OK"
        wait_until(lambda: conn.call("BF.EXISTS", key, "item") == 1, 10,
                   "the item arrives")
        assert conn.call("BF.EXISTS", key, "absent") == 0
        assert str(conn.call("BF.ADD", key, "item")) == moved
        assert str(conn.call("BF.EXISTS", elsewhere, "x")).startswith("MOVED ")
        assert conn.call("READWRITE") == b"OK"
        assert str(conn.call("BF.EXISTS", key, "item")) == moved


def test_a_transaction_from_before_a_failover_is_refused(ring):
    slot = 3000
    old, key = ring.owner(slot), slots.key_in(slot, "queued")
    with old.daemon.conn() as conn:
        assert conn.call("MULTI") == b"OK"
        assert conn.call("BF.ADD", key, "item") == b"QUEUED"
        ring.failover(ring.replicas_of(old)[0])
        ring.wait_settled()
        assert str(conn.call("EXEC")).startswith(("MOVED ", "EXECABORT"))
    with ring.client() as client:
        assert client.call(key, "BF.EXISTS", key, "item")[0] == 0


def test_random_faults_lose_nothing(ring):
    """make cluster ROUNDS=n [SEED=n]. A load lasts for several faults."""
    rounds = int(os.environ.get("ROUNDS") or 3)
    seed = int(os.environ.get("SEED") or random.randrange(1 << 30))
    rng = random.Random(seed)
    for first in range(0, rounds, FAULTS_A_LOAD):
        with cluster_load.Load(ring, seed=rng.random()) as load:
            load.wait_progress()
            play = cluster_faults.Play(ring, load, seed=rng.random())
            for number in range(first, min(first + FAULTS_A_LOAD, rounds)):
                play_one(play, rng, "%s, round %d of %d, SEED=%d" % (
                    ring.kind, number + 1, rounds, seed))
            finish(ring, load)
        print("  %s" % load, flush=True)


def play_one(play, rng, title):
    play.told = []
    began = time.monotonic()
    gaps = play.play(rng.choice(cluster_faults.names(play.cluster)))
    print("%s: %s; %.1f s, gaps %s" % (
        title, ", ".join(play.told), time.monotonic() - began,
        " ".join("%.2f" % g for g in gaps)), flush=True)


def is_followed(ring, pair):
    """Tells whether a server that has come back serves, with its replica. It serves
    until that replica comes, which may have got more than a snapshot: then it waits
    for the operator's word, which is said here."""
    with pair.daemon.conn() as conn:
        got = replicas.parse_info(conn.call("INFO", "replication"))
        if got["behind_replicas"] == "1":
            ranges = ring.view()[pair.node.id].ranges
            # An error: it has no lease yet.
            conn.call("SIDECAR", "FORCE-SERVE",
                      ",".join("%d-%d" % each for each in ranges))
    return "state=online" in got.get("slave0", "") and ring.all_served()


@pytest.mark.parametrize("late", [False, True])
def test_what_a_server_without_a_journal_has_got_is_there_after_a_kill(ring, late):
    """It holds slots when a snapshot has them, and their source keeps them until
    then. late: it is killed when the source has deleted its copy."""
    slot = 3000 + late
    source = ring.owner(slot)
    target = next(p for p in ring.primaries() if p is not source)
    key = slots.key_in(slot, "saved")
    with ring.client() as client:
        client.call(key, "BF.RESERVE", key, "0.01", "5000")
        client.call(key, "BF.MADD", key, *range(1000))
        with target.daemon.conn() as conn:
            assert conn.call("CONFIG", "SET", "appendonly", "no") == b"OK"
        ring.reshard([slot], target)
        ring.wait_owner(slot, target)
        assert client.call(key, "BF.CARD", key)[0] == 1000  # it is served
        if late:
            with source.daemon.conn() as conn:
                wait_until(lambda: conn.call("KEYS", key) == [], 60,
                           "the source deletes its copy")
        target.daemon.crash()
        target.daemon.restart()
        wait_until(lambda: is_followed(ring, target), 60, "its replica follows")
        assert client.call(key, "BF.MEXISTS", key, *range(1000))[0] == [1] * 1000
        with target.daemon.conn() as conn:
            assert conn.call("CONFIG", "SET", "appendonly", "yes") == b"OK"
    ring.reshard([slot], source)
    ring.wait_settled()
