# SPDX-License-Identifier: BSD-3-Clause
#
# `bloomery-load move`: the target's daemon copies slots ahead, then the nodes move
# them. Nothing that was acknowledged is missing afterwards; a move that fails leaves
# no copy behind.

import time

import pytest

from lib import cluster_load, cluster_move, resp, slots
from lib.cluster_move import Move, wait_clean
from lib.servers import time_factor, wait_until

# For clients, while slots of a planned move are cut over.
GAP_S = 2.0


def ends(ring, slot):
    """Returns the slot's owner, and another primary."""
    source = ring.owner(slot)
    return source, next(p for p in ring.primaries() if p is not source)


def own_keys(ring, slot_list, count=30):
    for slot in slot_list:
        ring.fill(slot, count)


def test_slots_move_with_writers_and_keys_of_both_kinds(ring):
    moved = list(range(5600, 5700))
    source, target = ends(ring, 5600)
    own_keys(ring, moved[::25])
    with cluster_load.Load(ring, seed="planned") as load:
        load.focus = moved[::16]
        load.wait_progress(load.focus)
        began = time.monotonic()
        out = Move(ring, "5600-5699", source, target, "--batch", 60).end()
        assert out.count("clients waited") == 2, out
        load.wait_progress(load.focus)
        gap = load.gap(load.focus, began)
        load.finish()
    print("%s: gap %.3f s; %s" % (ring.kind, gap, out))
    ring.wait_settled()
    assert ring.owner(5600) is target and ring.owner(5699) is target
    assert target.node.ask("CLUSTER", "COUNTKEYSINSLOT", 5625) == 30
    assert gap < GAP_S * time_factor()
    assert cluster_move.status(target.daemon)["slot_pulls"] == "0"


def test_slots_can_move_back_at_once(ring):
    source, target = ends(ring, 1000)
    cluster_move.fill(ring, [1000, 1001])
    Move(ring, "1000-1001", source, target).end()
    Move(ring, "1000-1001", target, source).end()
    key = slots.key_in(1000, "f") + "0"
    with ring.client() as client:
        assert client.call(key, "BF.INFO", key, "CAPACITY")[0] == 1000


def test_what_may_not_move_is_refused(ring):
    source, target = ends(ring, 2000)
    replica = ring.replicas_of(target)[0]
    theirs = next(s for s in range(0, slots.SLOTS, 50) if ring.owner(s) is target)
    for words, status, text in (
            (("2000", source, "f" * 40), 2, "no such node"),
            (("2000", source, "127.0.0.1:1"), 2, "no such node"),
            (("16384", source, target), 2, "slots are numbers"),
            (("2000", source, source), 2, "the same node"),
            (("2000", source, replica), 2, "TO is not a primary"),
            (("2000", replica, target), 2, "FROM is not a primary"),
            ((str(theirs), source, target), 2, "does not own slot %d" % theirs)):
        assert text in Move(ring, *words).end(status)
    plan = Move(ring, "2000", "%s:%d" % source.node.address,
                "%s:%d" % target.daemon.address, "--dry-run").end()
    assert "1 slots would move" in plan
    assert ring.owner(2000) is source


def test_one_move_at_a_time(ring):
    source, target = ends(ring, 3000)
    with target.daemon.conn() as conn:
        assert conn.call("SIDECAR", "PREPARE", "3000", source.node.id) == b"OK"
    for words in (("3001", source, target), (str(own_slot(ring, target)), target,
                                             source)):
        assert "another move is under way" in Move(ring, *words).end(2)
    with target.daemon.conn() as conn:
        assert conn.call("SIDECAR", "ABANDON", "3000") == b"OK"
    wait_clean(target.daemon)
    source.node.tell("CLUSTER", "SETSLOT", "3000", "MIGRATING", target.node.id)
    assert "marked as moving" in Move(ring, "3001", source, target).end(2)
    source.node.tell("CLUSTER", "SETSLOT", "3000", "STABLE")


def own_slot(ring, pair):
    return next(s for s in range(0, slots.SLOTS, 50) if ring.owner(s) is pair)


def in_copy(ring, slot, fault):
    """Begins to move a slot with 160 MB of filters, and calls fault(move, source,
    target) while it is copied. Returns the same when the move has failed: if it was
    faster than the fault, the slot moves back."""
    cluster_move.fill(ring, [slot], 8, 16000000)
    for _ in range(6):
        source, target = ends(ring, slot)
        move = Move(ring, str(slot), source, target)
        wait_until(lambda: cluster_move.is_copying(target.daemon) or
                   move.process.poll() is not None, 30, "the copy begins", 0.002)
        fault(move, source, target)
        move.process.wait(120 * time_factor())
        ring.wait_settled()
        if move.process.returncode != 0 and ring.owner(slot) is source:
            return move, source, target
    raise AssertionError("all moves were faster than the fault")


def is_whole(ring, slot):
    """Tells whether the filters of in_copy are there."""
    keys = ["%s%d" % (slots.key_in(slot, "f"), number) for number in range(8)]
    with ring.client() as client:
        return all(client.call(key, "BF.INFO", key, "CAPACITY")[0] == 16000000
                   for key in keys)


def test_an_interrupted_copy_is_thrown_away(ring):
    move, source, target = in_copy(ring, 4000, lambda move, *_: move.interrupt())
    out = move.end(1)
    assert "stopped by a signal" in out and "FROM still owns 1" in out, out
    wait_clean(target.daemon)
    assert cluster_move.keys(target.daemon, 4000) == 0
    Move(ring, "4000", source, target).end()
    assert is_whole(ring, 4000)


def bounce(daemon):
    daemon.crash()
    daemon.restart()


def test_the_targets_daemon_is_killed_while_it_copies(ring):
    move, source, target = in_copy(
        ring, 4200, lambda move, source, target: bounce(target.daemon))
    assert "FROM still owns 1" in move.end(3)
    wait_clean(target.daemon)
    assert cluster_move.keys(target.daemon, 4200) == 0
    Move(ring, "4200", source, target).end()
    assert is_whole(ring, 4200)


def test_the_sources_daemon_is_killed_while_it_is_copied(ring):
    """The copy begins anew, or the move fails; nothing is lost."""
    cluster_move.fill(ring, [4400], 8, 16000000)
    source, target = ends(ring, 4400)
    move = Move(ring, "4400", source, target)
    wait_until(lambda: cluster_move.is_copying(target.daemon) or
               move.process.poll() is not None, 30, "the copy begins", 0.002)
    bounce(source.daemon)
    move.process.wait(120 * time_factor())
    ring.wait_settled()
    wait_clean(target.daemon)
    assert ring.owner(4400) is (target if move.process.returncode == 0 else source)
    assert is_whole(ring, 4400)


def test_a_cancelled_migration_throws_the_copy_away(ring):
    if ring.kind != "valkey":
        pytest.skip("CLUSTER MIGRATESLOTS is of Valkey 9")
    source, target = ends(ring, 6000)
    ring.fill(6000, 200000)
    cluster_move.fill(ring, [6000])
    with cluster_load.Load(ring, seed="cancelled") as load:
        load.focus = [6000]
        load.wait_progress(load.focus)
        move = Move(ring, "6000", source, target)
        wait_until(lambda: ring.migration(source) not in (
            None, "success", "failed", "cancelled"), 30, "the migration begins",
            0.005)
        source.node.tell("CLUSTER", "CANCELSLOTMIGRATIONS")
        out = move.end(1)
        assert "cancelled" in out and "FROM still owns 1" in out, out
        wait_clean(target.daemon)
        load.wait_progress(load.focus)
        load.finish()
    assert ring.owner(6000) is source
    assert cluster_move.keys(target.daemon, 6000) == 0
    ring.unfill(6000)


def test_moves_without_the_tool_take_their_data_beside_a_copy(ring):
    """A copy that is prepared gives way to slots that its node gains."""
    source, target = ends(ring, 7000)
    cluster_move.fill(ring, [7000, 7001, 7002])
    with target.daemon.conn() as conn:
        assert conn.call("SIDECAR", "PREPARE", "7000-7001", source.node.id) == b"OK"
    wait_until(lambda: cluster_move.is_copying(target.daemon, "state=follows"), 30,
               "the copy follows")
    with cluster_load.Load(ring, seed="beside") as load:
        load.focus = [7000, 7001, 7002]
        load.wait_progress(load.focus)
        ring.reshard([7002, 7000], target)      # not copied; a part of the copy
        load.wait_progress([7002])
        load.wait_progress([7000])
        load.finish()
    wait_until(lambda: cluster_move.is_copying(target.daemon, "slots=7001,"), 30,
               "the rest of the copy stays")
    with target.daemon.conn() as conn:
        assert isinstance(conn.call("SIDECAR", "ABANDON", "7000"), resp.Error)
        assert conn.call("SIDECAR", "ABANDON", "7001") == b"OK"
    wait_clean(target.daemon)
    key = slots.key_in(7001, "f") + "0"
    with ring.client() as client:
        assert client.call(key, "BF.INFO", key, "CAPACITY")[0] == 1000
