# SPDX-License-Identifier: BSD-3-Clause
#
# Slots move from one server to another while clients write to the source: at the
# end the target has exactly the source's keys of these slots, and so have its
# replica and its journal. ROUNDS=20 is a long run; SEED=n repeats one.

import os
import random

import pytest

from lib.replicas import follow, info, wait_even
from lib.servers import wait_until
from lib.slot_copy import (SLOTS, Writer, assert_only, begin, compare, fill, finish,
                           move, pull_of, status, wait_follows, wait_serves)
from lib.slots import slot_of

ROUNDS = int(os.environ.get("ROUNDS", "1"))


@pytest.fixture(params=range(ROUNDS))
def seed(request):
    value = int(os.environ.get("SEED", "0")) or random.getrandbits(32)
    print("SEED=%d" % value)
    return value


def test_slots_move_exactly_while_clients_write(group, member, seed):
    source, target = member(), member()
    replica = group.node()
    follow(replica, target)
    move(target, source)
    with target.conn() as conn:     # stay until the slots come back
        conn.call("BF.ADD", "{in1}n1", "stale")
        conn.call("BF.ADD", "{in1}stale", "stale")
    move(source, target)
    with source.conn() as conn:
        conn.call("FLUSHALL")
    fill(source, seed)
    writers = [Writer(source, seed + n) for n in range(3)]
    begin(target, source)
    wait_follows(target)
    assert info(source)["connected_slaves"] == "0"
    wait_until(lambda: "slots=%d," % len(SLOTS) in
               info(source).get("slot_puller0", ""), 10, "the source says so")
    with source.conn() as conn:
        assert conn.call("WAIT", 1, 1) == 0
        assert conn.call("ROLE")[2] == []
    done = sum(w.commands for w in writers)
    wait_until(lambda: sum(w.commands for w in writers) > done + 3000, 60,
               "commands came behind the snapshot")
    for writer in writers:
        writer.stop()
    want = finish(target, source)
    assert compare(want, target)
    assert_only(target)
    wait_even(target, replica)
    got = status(target)
    assert (got["slot_pulls"], got["slot_pulls_failed"]) == ("0", "0")
    with target.conn() as conn:
        shown = conn.call("INFO", "cluster").decode().split("\r\n")
    # What has come, and what went back before.
    assert {"cluster_transfers:0", "cluster_transfers_done:1",
            "cluster_transfers_failed:0",
            "cluster_transferred_slots:%d" % len(SLOTS)} <= set(shown), shown
    target.crash()
    target.restart()
    wait_serves(target, "in1")
    compare(want, target)


def test_links_break_and_servers_die(group, member, seed):
    rng = random.Random(seed)
    source, target = member(), member()
    proxy = source.door
    fill(source, seed)
    writers = [Writer(source, seed + n, flushes=False) for n in range(2)]
    begin(target, source)
    for _ in range(6):
        what = rng.choice(("cut", "cut", "later", "source", "target"))
        if what == "cut":
            proxy.cut()
        elif what == "later":
            with proxy.lock:
                proxy.cut_at = proxy.sent + rng.randrange(4 << 20)
        elif what == "source":
            source.crash()
            source.restart()
        else:
            target.crash()
            target.restart()
        wait_until(lambda: pull_of(target).get("state") in
                   rng.choice((("loads", "adopts", "follows"), ("follows",))),
                   60, "the pull goes on")
    for writer in writers:
        writer.stop()
    with proxy.lock:
        proxy.cut_at = None
    wait_follows(target)
    want = finish(target, source)
    assert compare(want, target)
    assert_only(target)
    target.crash()
    target.restart()
    wait_serves(target, "in1")
    compare(want, target)


def test_slots_that_go_back_are_deleted_and_others_stay(member, seed):
    """The node loses them before its server has them all."""
    source, target = member(), member()
    move(target, source, [*SLOTS, slot_of("out1")])
    with target.conn() as conn:
        conn.call("BF.ADD", "{out1}n", "a")
    move(source, target)
    fill(source, seed)
    begin(target, source)
    wait_follows(target)
    with target.conn() as conn:
        assert conn.call("DBSIZE") > 50
        target.members.give(source)
        target.members.show()
        wait_until(lambda: conn.call("DBSIZE") == 1, 30, "the keys are deleted")
    wait_until(lambda: status(target)["slots_being_deleted"] == "0", 10,
               "the deletion has ended")
    assert status(target)["slot_pulls"] == "0"
    wait_until(lambda: "slot_puller0" not in info(source), 10,
               "the source sees that the pull has ended")
    with source.conn() as conn:
        assert conn.call("BF.ADD", "{in1}later", "a") == 1
    target.crash()
    target.restart()
    with target.conn() as conn:
        assert conn.call("KEYS", "*") == [b"{out1}n"]
