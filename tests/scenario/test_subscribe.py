# SPDX-License-Identifier: BSD-3-Clause
#
# BF.SUBSCRIBE between live servers: every way in which a filter changes is told, on a
# primary and on its replica; an answer leaves behind all that was acknowledged before
# it was asked for; and a server that cannot know confirms nothing.

import json
import signal
import threading
import time
from pathlib import Path

import pytest

from lib import resp, slot_copy
from lib.replicas import follow, info, lead, wait_even
from lib.resp import command
from lib.servers import wait_until

# The payload of a BF.LOAD in valkey-bloom's journals.
LOAD = bytes.fromhex(json.loads((
    Path(__file__).parents[1] / "data/valkey-bloom/filters.json").read_text())
    [1]["bf_load"])
SEEDED = ("--bf.bloom-use-random-seed", "no")


class Subscriber:
    """Subscribes to the filter k, or to others."""

    def __init__(self, server, *keys, proto=3):
        self.conn = server.conn(proto)
        self.keys = keys or ("k",)
        self.ask()

    def ask(self):
        """Asks for an answer; returns the frames before it, and the answer of the
        last key, as lists of words behind the key."""
        self.conn.send(command("BF.SUBSCRIBE", *self.keys))
        frames, left = [], len(self.keys)
        while left > 0:
            got = self.conn.read()
            if isinstance(got, resp.Error):
                raise got
            assert got[0] == b"bf.message", got
            if got[2] == b"is":
                left -= 1
            else:
                frames.append(got[2:])
        return frames, got[2:]

    def words(self):
        """Returns what the frames so far say, without repeats in a row."""
        told = []
        for frame in self.ask()[0]:
            word = frame[0].decode()
            if word == "add":
                word += " %d" % (len(frame[1]) // 16)
            elif word == "deleted":
                word += " %d" % int(frame[1])
            if told[-1:] != [word]:
                told.append(word)
        return told

    def close(self):
        self.conn.close()


def pairs_of(frames):
    return {frame[1][i:i + 16] for frame in frames if frame[0] == b"add"
            for i in range(0, len(frame[1]), 16)}


# ---- each write row ----------------------------------------------------------

AGEING = "BF.RESERVE k 0.01 100 AGEING 99999"
# For each row with the flag `write`: what is there before, the command, and what the
# subscribers of k are told. Payloads stand as <dump> and the like.
WRITES = {
    "bf.add": [("", "BF.ADD k a", "changed,add 1"),
               ("BF.ADD k a", "BF.ADD k a", ""),
               ("BF.ADD k a", "BF.ADD k b", "add 1"),
               (AGEING, "BF.ADD k a", "add 1")],
    "bf.madd": [("BF.ADD k a", "BF.MADD k a b c", "add 2"),
                ("BF.RESERVE k 0.01 9 DELETABLE", "BF.MADD k a b a", "add 2")],
    "bf.insert": [("", "BF.INSERT k ITEMS a b", "changed,add 2")],
    "bf.reserve": [("", "BF.RESERVE k 0.01 100", "changed")],
    "bf.del": [("BF.INSERT k DELETABLE ITEMS a", "BF.DEL k a", "deleted 1")],
    "bf.mdel": [("BF.INSERT k DELETABLE ITEMS a b", "BF.MDEL k a b x", "deleted 2")],
    "bf.reset": [("BF.ADD k a", "BF.RESET k", "changed")],
    "bf.merge": [("BF.ADD x a|BF.ADD k b", "BF.MERGE k x", "changed")],
    "bf.load": [("", "BF.LOAD k <load>", "changed")],
    # Between the two BF.EXISTS is refused, and so is BF.SUBSCRIBE.
    "bf.loadchunk": [("BF.ADD x a", "BF.LOADCHUNK k 1 <header>|BF.LOADCHUNK k <chunk>",
                      "changed")],
    "restore": [("BF.ADD x a", "RESTORE k 0 <dump>", "changed"),
                ("BF.ADD x a|BF.ADD k b", "RESTORE k 0 <dump> REPLACE", "changed")],
    "del": [("BF.ADD k a", "DEL k", "gone")],
    "unlink": [("BF.ADD k a", "UNLINK k", "gone")],
    "expire": [("BF.ADD k a", "EXPIRE k 100", ""), ("BF.ADD k a", "EXPIRE k 0", "gone")],
    "pexpire": [("BF.ADD k a", "PEXPIRE k -1", "gone")],
    "expireat": [("BF.ADD k a", "EXPIREAT k 1", "gone")],
    "pexpireat": [("BF.ADD k a", "PEXPIREAT k 1", "gone")],
    "persist": [("BF.ADD k a|EXPIRE k 100", "PERSIST k", "")],
    "copy": [("BF.ADD x a", "COPY x k", "changed")],
    "rename": [("BF.ADD x a", "RENAME x k", "changed"),
               ("BF.ADD k a", "RENAME k x", "gone")],
    "renamenx": [("BF.ADD x a", "RENAMENX x k", "changed")],
    "move": [("BF.ADD k a", "MOVE k 1", "gone")],
    "flushdb": [("BF.ADD k a", "FLUSHDB", "gone")],
    "flushall": [("BF.ADD k a", "FLUSHALL", "gone")],
    "swapdb": [("BF.ADD k a", "SWAPDB 0 1", "changed")],
}


def write_rows(conn):
    rows = conn.call("COMMAND")
    return {row[0].decode().lower() for row in rows
            if any(flag.decode() == "write" for flag in row[2])}


def run(conn, line):
    words = line.split()
    for name, fill in (("<load>", lambda: [LOAD]),
                       ("<dump>", lambda: [conn.call("DUMP", "x")]),
                       ("<header>", lambda: [conn.call("BF.SCANDUMP", "x", 0)[1]]),
                       ("<chunk>", lambda: conn.call("BF.SCANDUMP", "x", 1))):
        if name in words:
            at = words.index(name)
            words[at:at + 1] = fill()
    reply = conn.call(*words)
    assert not isinstance(reply, resp.Error), (line, reply)


@pytest.mark.parametrize("dialect", ["valkey", "redis"])
def test_each_write_row_tells_what_it_does(group, dialect):
    primary, replica, _ = group.pair("--dialect", dialect, *SEEDED)
    here, there = Subscriber(primary), Subscriber(replica)
    with primary.conn() as conn:
        assert write_rows(conn) == set(WRITES), "a write row has no case here"
        for row, cases in WRITES.items():
            for before, line, told in cases:
                assert conn.call("FLUSHALL") == b"OK"
                for each in filter(None, before.split("|")):
                    run(conn, each)
                wait_even(primary, replica)
                here.words(), there.words()
                for each in line.split("|"):
                    run(conn, each)
                wait_even(primary, replica)
                want = told.split(",") if told else []
                assert here.words() == want, (row, before, line)
                assert there.words() == want, ("replica", row, before, line)


def test_a_transaction_is_told_in_order(start_server):
    server = start_server()
    subscriber = Subscriber(server)
    with server.conn() as conn:
        conn.pipeline([("MULTI",), ("BF.ADD", "k", "a"), ("DEL", "k"),
                       ("BF.MADD", "k", "a", "b"), ("EXEC",)])
    assert subscriber.words() == ["changed", "add 1", "gone", "changed", "add 2"]


# ---- every other way ---------------------------------------------------------


def test_keys_that_expire_or_are_evicted_are_gone(start_server):
    server = start_server("--maxmemory-policy", "allkeys-random", "--hz", 50)
    subscriber = Subscriber(server)
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "a")
        conn.call("PEXPIRE", "k", 30)        # nobody asks for the key any more
        seen = []
        wait_until(lambda: seen.extend(subscriber.words()) or "gone" in seen, 20,
                   "the key expires")
        conn.call("BF.ADD", "k", "a")
        subscriber.words()
        assert conn.call("CONFIG", "SET", "maxmemory", "1mb") == b"OK"
        for _ in range(200):                 # refused or not, room is made first
            conn.call("BF.RESERVE", "other", "0.01", "100")
            if subscriber.words() == ["gone"]:
                return
        pytest.fail("the key was not evicted")


def test_a_full_synchronization_is_a_change(group):
    primary, replica, proxy = group.pair(*SEEDED)
    other = group.node(*SEEDED)
    with other.conn() as conn:
        conn.call("BF.ADD", "k", "other")
    subscriber = Subscriber(replica)
    follow(replica, other)
    wait_even(other, replica)
    assert "changed" in subscriber.words()
    assert subscriber.ask()[1][2] != b"missing"
    with other.conn() as conn:
        conn.call("BF.ADD", "k", "later")
    wait_even(other, replica)
    assert subscriber.words() == ["add 1"]
    lead(replica)                            # a failover leaves the subscription
    with replica.conn() as conn:
        conn.call("BF.ADD", "k", "own")
    assert subscriber.words() == ["add 1"]


def test_a_replica_without_its_link_confirms_nothing(group):
    primary, replica, proxy = group.pair()
    subscriber = Subscriber(replica)
    proxy.up = False
    proxy.cut()
    wait_until(lambda: info(replica)["master_link_status"] == "down", 20,
               "the link is down")
    with pytest.raises(resp.Error, match="^MASTERDOWN this replica has no link"):
        subscriber.ask()
    with replica.conn() as conn:
        assert conn.call("BF.EXISTS", "k", "a") == 0     # which it does answer
    proxy.up = True
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "a")
    wait_until(lambda: info(replica)["master_link_status"] == "up", 30,
               "the link is up again")
    wait_even(primary, replica)
    assert subscriber.words() == ["changed", "add 1"]


def test_what_a_heal_adds_is_told(group):
    primary, replica, proxy = group.pair("--merge-on-heal", "yes", *SEEDED)
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "both")
    wait_even(primary, replica)
    proxy.up = False
    proxy.cut()
    lead(replica)
    subscriber = Subscriber(replica)
    with primary.conn() as conn:
        assert conn.call("BF.MADD", "k", "late1", "late2") == [1, 1]
    follow(primary, replica)
    pairs = set()

    def healed():
        pairs.update(pairs_of(subscriber.ask()[0]))
        return len(pairs) == 2

    wait_until(healed, 30, "the items of the former primary are told")


def test_slots_that_come_are_told(member):
    source, target = member(), member()
    key = "{in1}k"
    slot_copy.move(target, source)
    with target.conn() as conn:
        assert conn.call("BF.ADD", key, "a") == 1
    subscriber = Subscriber(target, key)
    slot_copy.move(source, target)
    with pytest.raises(resp.Error, match="^(MOVED|CLUSTERDOWN)"):
        subscriber.ask()
    with source.conn() as conn:
        assert conn.call("BF.ADD", key, "b") == 1
    slot_copy.begin(target, source)
    slot_copy.wait_follows(target)
    assert subscriber.conn.read()[1:] == [key.encode(), b"changed"]
    with source.conn() as conn:
        assert conn.call("DEL", key) == 1
    assert subscriber.conn.read()[1:] == [key.encode(), b"gone"]


# ---- the answer --------------------------------------------------------------


def test_an_answer_leaves_behind_what_was_acknowledged(start_server):
    """Writers add new items on other loops. What they had an answer for before
    BF.SUBSCRIBE was sent is with the subscriber before its answer."""
    server = start_server("--threads", 3)
    writers, rounds = 4, 60
    acknowledged = [0] * writers
    subscriber = Subscriber(server)
    ends = threading.Event()

    def write(number):
        with server.conn() as conn:
            while not ends.is_set():
                done = acknowledged[number]
                items = ["%d:%d" % (number, done + i) for i in range(20)]
                replies = conn.pipeline([("BF.ADD", "k", item) for item in items])
                acknowledged[number] = done + replies.count(1) + \
                    1000000 * replies.count(0)

    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "1e-9", "1000000")
    threads = [threading.Thread(target=write, args=(i,)) for i in range(writers)]
    for thread in threads:
        thread.start()
    pairs = set()
    try:
        for _ in range(rounds):
            least = sum(acknowledged)
            frames, answer = subscriber.ask()
            pairs |= pairs_of(frames)
            assert least < 1000000, "an item was found before it was added"
            assert len(pairs) >= least
            assert int(answer[3]) == len(pairs) >= least
    finally:
        ends.set()
        for thread in threads:
            thread.join()


def test_a_kill_and_a_stop_of_the_server(group):
    server = group.node("--appendonly", "yes", *SEEDED)
    subscriber = Subscriber(server)
    with server.conn() as conn:
        conn.call("BF.MADD", "k", *range(500))
    frames, answer = subscriber.ask()
    assert len(pairs_of(frames)) == int(answer[3])
    server.child.send_signal(signal.SIGSTOP)
    subscriber.conn.send(command("BF.SUBSCRIBE", "k"))
    server.child.send_signal(signal.SIGCONT)
    assert subscriber.conn.read()[2] == b"is"
    server.crash()
    with pytest.raises(resp.Closed):
        subscriber.conn.read()
    server.restart()
    again = Subscriber(server).ask()[1]
    assert again[2:5] == answer[2:5]         # the same incarnation, items and layers


def test_changes_are_gathered_for_as_long_as_the_option_says(start_server):
    server = start_server()
    subscriber = Subscriber(server)
    with server.conn() as conn:
        assert conn.call("CONFIG", "SET", "bf.subscribe-gather-ms", 1000) == b"OK"
        for item in range(20):
            assert conn.call("BF.ADD", "k", item) == 1
        assert subscriber.conn.read()[2] == b"changed"
        assert len(subscriber.conn.read()[3]) == 20 * 16
        for _ in range(3):                   # an answer does not wait for it
            conn.call("BF.ADD", "k", time.monotonic_ns())
            assert subscriber.words() == ["add 1"]


# ---- limits and rights -------------------------------------------------------


def test_who_does_not_read_is_cut(start_server):
    server = start_server("--client-output-buffer-limit", "pubsub 64kb 0 0")
    subscriber = Subscriber(server)
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "0.01", "10000000")

        def is_cut():
            first = int(time.monotonic_ns())
            conn.call("BF.MADD", "k", *range(first, first + 5000))
            return b" filters=1" not in conn.call("CLIENT", "LIST")

        wait_until(is_cut, 30, "the subscriber is cut")
    subscriber.close()


def test_who_may_no_longer_read_is_cut(start_server):
    server = start_server()
    with server.conn() as conn:
        assert conn.call("ACL", "SETUSER", "u", "on", ">pw", "~k*", "+@read",
                         "+bf.subscribe", "+hello") == b"OK"
        other = server.conn(2)
        assert other.call("AUTH", "u", "pw") == b"OK"
        assert other.call("BF.SUBSCRIBE", "k")[2] == b"is"
        assert str(other.call("BF.SUBSCRIBE", "x")).startswith("NOPERM")
        assert conn.call("ACL", "SETUSER", "u", "~other") == b"OK"
        assert conn.call("PING") == b"PONG"
        assert conn.call("ACL", "SETUSER", "u", "resetkeys", "~other") == b"OK"
        with pytest.raises(resp.Closed):
            other.read()


# ---- copies ------------------------------------------------------------------


def test_a_filter_comes_in_pieces_while_items_are_added(start_server):
    server = start_server("--bf.bloom-memory-usage-limit", "1gb")
    with server.conn() as conn, server.conn() as writer:
        writer.call("BF.RESERVE", "k", "0.01", "3000000")
        header = conn.call("BF.SCANDUMP", "k", 0)[1]
        at, pieces = 1, {}
        while at != 0:
            writer.call("BF.MADD", "k", *range(at, at + 50))
            at, piece = conn.call("BF.SCANDUMP", "k", at, "BYTES", 262144)
            if at:
                assert 0 < len(piece) <= 262144
                pieces[at] = piece
        assert conn.call("BF.LOADCHUNK", "copy", 1, header) == b"OK"
        for at, piece in pieces.items():
            assert conn.call("BF.LOADCHUNK", "copy", at, piece) == b"OK"
        assert conn.call("BF.EXISTS", "copy", "no such item") == 0


def test_an_ageing_filter_comes_in_pieces_until_it_turns(start_server):
    server = start_server()
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "0.01", "1000", "AGEING", 2, "GENERATIONS", 2)
        conn.call("BF.ADD", "k", "a")
        header = conn.call("BF.SCANDUMP", "k", 0, "TURN", 0)[1]
        assert header.startswith(b"BLMY")
        layers = int.from_bytes(header[12:16], "little")
        turn = int.from_bytes(header[72 + 32 * layers:][:8], "little")
        at, piece = conn.call("BF.SCANDUMP", "k", 1, "TURN", turn, "BYTES", 64)
        assert at == 65 and len(piece) == 64

        def turned():
            conn.call("BF.ADD", "k", "b%d" % time.monotonic_ns())
            return isinstance(conn.call("BF.SCANDUMP", "k", 65, "TURN", turn),
                              resp.Error)

        wait_until(turned, 20, "the filter turns")
        assert str(conn.call("BF.SCANDUMP", "k", 65, "TURN", turn)).startswith("TURNED")
