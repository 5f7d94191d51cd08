# SPDX-License-Identifier: BSD-3-Clause
#
# Slots move from one server to another while clients write to the source: at the
# end the target has exactly the source's keys of these slots, and so have its
# replica and its journal. ROUNDS=20 is a long run; SEED=n repeats one.

import os
import random

import pytest

from lib import resp
from lib.neighbour import A, B, OFFSET, node
from lib.replicas import follow, info, wait_even
from lib.servers import wait_until
from lib.slot_copy import (IN, OTHERS, RANGES, SLOTS, Writer, assert_only, compare,
                           fill, finish, gain, lose, prepare, pull_of, status,
                           wait_follows, wait_serves)

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
    fill(source, seed)
    with target.conn() as conn:     # of an earlier copy that was given up
        conn.call("BF.ADD", "{in1}n1", "stale")
        conn.call("BF.ADD", "{in1}stale", "stale")
    lose(target)
    writers = [Writer(source, seed + n) for n in range(3)]
    prepare(target, source)
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
    finish(target, source)
    assert compare(source, target)
    assert_only(target)
    wait_even(target, replica)
    target.crash()
    target.restart()
    wait_serves(target, "in1")
    compare(source, target)


def test_links_break_and_servers_die(group, member, seed):
    rng = random.Random(seed)
    source, target = member(), member()
    proxy = group.proxy(source)
    lose(target)
    fill(source, seed)
    writers = [Writer(source, seed + n, flushes=False) for n in range(2)]
    prepare(target, proxy)
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
            wait_serves(target)
            prepare(target, proxy)
        wait_until(lambda: pull_of(target).get("state") in
                   rng.choice((("loads", "adopts", "follows"), ("follows",))),
                   60, "the pull goes on")
    for writer in writers:
        writer.stop()
    with proxy.lock:
        proxy.cut_at = None
    wait_follows(target)
    finish(target, source)
    assert compare(source, target)
    assert_only(target)
    target.crash()
    target.restart()
    wait_serves(target, "in1")
    compare(source, target)


def test_abandoned_slots_are_deleted_and_others_stay(member, seed):
    source, target = member(), member()
    fill(source, seed)
    with target.conn() as conn:
        conn.call("BF.ADD", "{out1}n", "a")
        conn.call("BF.ADD", "{out2}n", "a")
    with target.conn() as conn:
        for words in (("ABANDON", RANGES), ("PREPARE", RANGES, "::1", "1")):
            reply = conn.call("SIDECAR", *words)
            assert "owns slot %d" % SLOTS[0] in str(reply)
    lose(target)
    prepare(target, source)
    wait_follows(target)
    with target.conn() as conn:
        assert conn.call("DBSIZE") > 50
        assert conn.call("SIDECAR", "ABANDON", RANGES) == b"OK"
        wait_until(lambda: conn.call("DBSIZE") == 2, 30, "the keys are deleted")
    wait_until(lambda: status(target)["slots_being_deleted"] == "0", 10,
               "the deletion has ended")
    assert status(target)["slot_pulls"] == "0"
    wait_until(lambda: "slot_puller0" not in info(source), 10,
               "the source sees that the pull has ended")
    target.crash()
    target.restart()
    with target.conn() as conn:
        assert sorted(conn.call("KEYS", "*")) == [b"{out1}n", b"{out2}n"]


def test_slots_that_are_held_are_neither_replaced_nor_deleted(member):
    source, target = member(), member()
    with target.conn() as conn:
        conn.call("BF.ADD", "{in1}n", "a")
        target.neighbour.say(nodes=[
            node(A, OFFSET + 1, "myself,master", slots=OTHERS),
            node(B, OFFSET + 2, "master", slots=RANGES.replace(",", " "))])
        wait_until(lambda: isinstance(conn.call("EXISTS", "{in1}"), resp.Error), 20,
                   "the slots are gone")        # and no daemon has come for them
        prepare(target, source)
        wait_until(lambda: "still held here" in status(target)["slot_last_failure"],
                   10, "the copy is refused")
        assert conn.call("SIDECAR", "ABANDON", RANGES) == b"OK"
        gain(target)
        assert conn.call("BF.EXISTS", "{in1}n", "a") == 1


def test_what_cannot_be_taken_over_says_why(group, member):
    source, target = member(), member()
    plain = group.node()
    lose(target)
    with target.conn() as conn:
        for words, text in (
                ((RANGES, "bad host", "1"), "Invalid host"),
                ((RANGES, "localhost", "0"), "Invalid port"),
                (("16384", "localhost", "1"), "slots are numbers")):
            with pytest.raises(resp.Error, match=text):
                raise_error(conn.call("SIDECAR", "PREPARE", *words))
        with pytest.raises(resp.Error, match="not being taken over"):
            raise_error(conn.call("SIDECAR", "FINISH", RANGES, "0" * 40, "1"))
    prepare(target, plain)
    wait_until(lambda: "stands beside no node" in pull_of(target)["reason"], 20,
               "the reason is shown")
    with target.conn() as conn:
        with pytest.raises(resp.Error, match="already"):
            raise_error(conn.call("SIDECAR", "PREPARE", RANGES, "::1", "1"))
        assert conn.call("SIDECAR", "ABANDON", RANGES) == b"OK"
    wait_until(lambda: status(target)["slot_pulls"] == "0", 10, "it has ended")
    with source.conn() as conn:
        conn.call("CONFIG", "SET", "requirepass", "secret")
    prepare(target, source)
    wait_until(lambda: "masterauth" in pull_of(target)["reason"], 20,
               "the reason is shown")


def raise_error(reply):
    if isinstance(reply, resp.Error):
        raise reply


def test_pulls_run_one_after_the_other(member):
    source, target = member(), member()
    with source.conn() as conn:
        for tag in IN:
            conn.call("BF.ADD", "{%s}n" % tag, "a")
    lose(target)
    prepare(target, source, str(SLOTS[0]))
    prepare(target, source, ",".join(map(str, SLOTS[1:])))
    wait_until(lambda: pull_of(target).get("state") == "follows", 20, "one")
    assert "state=queued" in status(target)["slot_pull1"]
    got = info(source)
    with target.conn() as conn:
        assert conn.call("DBSIZE") == 1
        conn.call("SIDECAR", "FINISH", str(SLOTS[0]), got["master_replid"],
                  got["master_repl_offset"])
    wait_until(lambda: status(target)["slot_pulls_done"] == "1" and
               pull_of(target).get("state") == "follows", 20, "the other")
    with target.conn() as conn:
        assert conn.call("DBSIZE") == len(IN)
        shown = conn.call("INFO", "cluster").decode().split("\r\n")
    # What has come, and the transfer that is still under way.
    assert {"cluster_transfers:1", "cluster_transfers_done:1",
            "cluster_transfers_failed:0", "cluster_transferred_slots:1",
            "cluster_transferred_keys:1"} <= set(shown)


def slots_shown(target):
    got = status(target)
    return [got["slot_pull%d" % n].partition("slots=")[2].partition(",")[0]
            for n in range(int(got["slot_pulls"]))]


def test_each_of_many_copies_is_seen_until_there_are_too_many(member):
    """All wait for a source that does not answer. Orders that follow at once find
    the ones before."""
    target = member(slots="")
    history = "0" * 40
    with target.conn() as conn:
        for slot in range(16):
            assert conn.call("SIDECAR", "PREPARE", slot, "127.0.0.1", 1) == b"OK"
        for _ in range(2):
            with pytest.raises(resp.Error, match="16 copies run or wait already"):
                raise_error(conn.call("SIDECAR", "PREPARE", 16, "127.0.0.1", 1))
            wait_until(lambda: len(slots_shown(target)) == 16, 10, "all have begun")
        assert slots_shown(target) == [str(n) for n in range(16)]
        assert conn.call("SIDECAR", "FINISH", 15, history, 1) == b"OK"
        assert conn.call("SIDECAR", "ABANDON", 15) == b"OK"
        wait_until(lambda: len(slots_shown(target)) == 15, 10, "it has ended")
        assert conn.call("SIDECAR", "PREPARE", 16, "127.0.0.1", 1) == b"OK"
        wait_until(lambda: slots_shown(target)[-1] == "16", 10, "it has begun")
        assert conn.call("SIDECAR", "ABANDON", "0-16383") == b"OK"
        wait_until(lambda: status(target)["slot_pulls"] == "0", 10, "all have ended")


def test_an_order_is_seen_while_it_is_carried_out(member):
    """On a loop of its own, a client finds its copy at every moment."""
    target = member(slots="")
    finish_it = resp.command("SIDECAR", "FINISH", 1, "0" * 40, 1)
    with target.conn() as one, target.conn() as other:
        for number in range(400):
            conn = (one, other)[number % 2]
            conn.send(resp.command("SIDECAR", "PREPARE", 1, "127.0.0.1", 1) +
                      finish_it * 50)
            assert [conn.read() for _ in range(51)] == [b"OK"] * 51, number
            wait_until(lambda: status(target)["slot_pulls"] == "1", 10, "it has begun")
            assert conn.call("SIDECAR", "ABANDON", 1) == b"OK"
            wait_until(lambda: status(target)["slot_pulls"] == "0", 10, "it has ended")
