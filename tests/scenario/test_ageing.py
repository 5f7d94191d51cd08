# SPDX-License-Identifier: BSD-3-Clause
#
# Ageing filters against a model and the clock: items are added and renewed at random,
# while the server saves, rewrites its journal, is killed and started again, and has a
# replica. No item may be missing within its time, and all servers have the same bits.
# ROUNDS=1000000 is a long run.

import ctypes
import os
import random
import struct
import time

import pytest

from lib import lives, replicas
from lib.servers import wait_until

ROUNDS = int(os.environ.get("ROUNDS") or 0) or 40000  # items that are added
BATCH = 100
SECONDS = 1
SHAPES = {  # words of BF.RESERVE, and the generations
    "large": (("0.01", "400000", "AGEING", str(SECONDS)), 8),  # comes in pieces
    "grows": (("0.01", "300", "AGEING", str(SECONDS), "GENERATIONS", "4"), 4),
    "fixed": (("0.001", "200000", "NONSCALING", "AGEING", str(SECONDS),
               "GENERATIONS", "1"), 1),
    "tight": (("0.0000001", "3000", "AGEING", str(SECONDS), "GENERATIONS", "32"),
              32),
}


class Truth:
    """What the filters must have, and must not."""

    def __init__(self, rng):
        self.rng = rng
        self.items = {key: {} for key in SHAPES}  # item: times around its last add
        self.number = self.renewed = self.wrong = self.absent = 0

    def add(self, conn, key):
        old = list(self.items[key])[-1000:]
        words = self.rng.sample(old, min(len(old), self.rng.randrange(BATCH)))
        self.renewed += len(words)
        words += ["%s:%d" % (key, self.number + i)
                  for i in range(self.rng.randrange(1, BATCH))]
        self.number += len(words)
        begin = time.time()
        answers = conn.call("BF.MADD", key, *words)
        assert len(answers) == len(words)
        for word in words:
            self.items[key].pop(word, None)
            self.items[key][word] = begin, time.time()

    def check(self, conn):
        for key, (_, generations) in SHAPES.items():
            every = list(self.items[key].items())
            for at in range(0, len(every), 5000):
                some = every[at:at + 5000]
                begin = time.time()
                answers = conn.call("BF.MEXISTS", key, *[word for word, _ in some])
                end = time.time()
                for (word, (sent, done)), found in zip(some, answers):
                    assert found or end > sent + SECONDS, "%s is missing" % word
                    if begin > done + SECONDS * (1 + 1 / generations) + 0.01:
                        self.absent += 1
                        self.wrong += found

    def run(self, conn, rounds, between=lambda: None):
        end = self.number + rounds
        while self.number < end:
            self.add(conn, self.rng.choice(list(SHAPES)))
            between()
        self.check(conn)


def make(conn):
    for key, (words, _) in SHAPES.items():
        assert conn.call("BF.RESERVE", key, *words) == b"OK"


@pytest.fixture
def truth():
    seed = int(os.environ.get("SEED") or 0) or random.randrange(1 << 32)
    print("SEED=%d" % seed)
    truth = Truth(random.Random(seed))
    yield truth
    print("%d items, %d renewed, %d of %d found too long"
          % (truth.number, truth.renewed, truth.wrong, truth.absent))
    assert truth.wrong <= 0.02 * truth.absent + 10


def test_saves_rewrites_and_crashes_lose_no_item(group, truth):
    node = group.node()
    conn = node.conn()
    make(conn)

    def disturb():
        if truth.rng.randrange(15) == 0:
            conn.call(truth.rng.choice(["BGSAVE", "BGREWRITEAOF"]))

    for _ in range(4):
        truth.run(conn, ROUNDS // 4, disturb)
        conn = lives.again(node, truth.rng)
        truth.check(conn)


def test_a_replica_has_the_same_bits_and_can_take_over(group, truth):
    """It synchronizes in full while items come, follows, and is promoted."""
    nodes = [group.node(), group.node()]
    make(nodes[0].conn())
    truth.run(nodes[0].conn(), ROUNDS // 4)
    for _ in range(3):
        primary, replica = nodes
        conn = primary.conn()
        replicas.follow(replica, primary, wait=False)
        truth.run(conn, ROUNDS // 8)
        wait_until(lambda: conn.call("WAIT", "1", "100") == 1, what="the replica",
                   seconds=60)
        assert replicas.digest(replica) == replicas.digest(primary)
        with replica.conn() as other:
            truth.check(other)
            other.call("REPLICAOF", "NO", "ONE")
            truth.run(other, ROUNDS // 8)
        nodes.reverse()
    before = replicas.digest(nodes[0])
    nodes[0].crash()
    nodes[0].restart()
    assert replicas.digest(nodes[0]) == before


def test_a_reset_begins_with_the_present_clock(group):
    """A filter that saw a clock one year ahead. On all servers alike."""
    nodes = [group.node("--appendonly", "yes"), group.node()]
    replicas.follow(nodes[1], nodes[0])
    conn = nodes[0].conn()
    for key, capacity in (("small", "100"), ("large", "2000000")):
        turns = [0, 0]
        conn.call("BF.RESERVE", key, "0.01", capacity, "AGEING", "36000",
                  "GENERATIONS", "4")
        turns[0] = int(time.time() * 1000) * 4 // 36000000
        conn.call("BF.ADD", key, "a")
        dump = conn.call("DUMP", key)
        turn = next(t for t in (turns[0], turns[0] + 1)
                    if dump.count(struct.pack("<Q", t)) == 1)
        ahead = dump[:-8].replace(struct.pack("<Q", turn),
                                  struct.pack("<Q", turn + 365 * 24 * 4))
        ahead += struct.pack("<Q", xxh3(ahead))
        assert conn.call("RESTORE", key, "0", ahead, "REPLACE") == b"OK"
        conn.call("PEXPIREAT", key, "4000000000000")
        conn.call("BF.ADD", key, "b")
        assert conn.call("BF.RESET", key) == b"OK"
        assert conn.call("BF.CARD", key) == 0
        assert conn.call("PEXPIRETIME", key) == 4000000000000
        fresh = conn.call("DUMP", key)
        assert any(struct.pack("<Q", t) in fresh for t in (turn, turn + 1))
        assert conn.call("BF.ADD", key, "a") == 1
    replicas.wait_even(*nodes)
    before = replicas.digest(nodes[0])
    nodes[0].crash()
    nodes[0].restart()
    assert replicas.digest(nodes[0]) == before


def xxh3(data):
    function = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    function.restype = ctypes.c_uint64
    return function(ctypes.c_char_p(data), ctypes.c_size_t(len(data)))


def test_an_idle_filter_forgets(group):
    """Here and on a replica, without a write."""
    primary, replica = group.node(), group.node()
    replicas.follow(replica, primary)
    with primary.conn() as conn, replica.conn() as other:
        added = time.time()
        conn.call("BF.INSERT", "k", "AGEING", "1", "GENERATIONS", "4", "ITEMS", "a", "b")
        assert conn.call("WAIT", "1", "5000") == 1
        for each in (conn, other):
            found = each.call("BF.MEXISTS", "k", "a", "b")
            assert found == [1, 1] or time.time() > added + 1
            wait_until(lambda each=each: each.call("BF.MEXISTS", "k", "a", "b") == [0, 0],
                       what="the end of their time")
            assert time.time() > added + 1
            assert each.call("BF.EXISTS", "k", "a") == 0
            assert each.call("BF.CARD", "k") == 0
            assert each.call("BF.COUNTNEW", "k", "a", "b") == 2
            stats = each.call("BF.STATS", "k")
            stats = dict(zip(stats[::2], stats[1::2]))
            assert stats[b"items"] == 0 and stats[b"layers"] == []
        assert conn.call("BF.ADD", "k", "a") == 1
        assert len(conn.call("BF.DEBUG", "k")) == 2  # the memory is free again


def test_copies_of_all_kinds_age(group, truth):
    """DUMP, COPY, RENAME, MOVE, BF.MERGE: the copy has the same bits, and forgets."""
    node = group.node()
    conn = node.conn()
    make(conn)
    truth.run(conn, ROUNDS // 4)

    for key in SHAPES:
        names = lives.copies(conn, key)
        assert conn.call("BF.ADD", "dump", "last") in (0, 1)
        assert conn.call("BF.EXISTS", "dump", "last") == 1
        assert conn.call("BF.RESET", "renamed") == b"OK"
        assert conn.call("BF.CARD", "renamed") == 0
        conn.call("DEL", *names)
    before = replicas.digest(node)
    node.crash()
    node.restart()
    assert replicas.digest(node) == before
    truth.check(node.conn())
