# SPDX-License-Identifier: BSD-3-Clause
#
# Deletable filters against a model: items come and go at random, while the server
# saves, rewrites its journal, is killed and started again, and has a replica. No item
# that was added and not deleted may be missing, and all servers have the same bits.
# ROUNDS=1000000 is a long run.

import os
import random

import pytest

from lib import lives, replicas, resp
from lib.servers import wait_until

ROUNDS = int(os.environ.get("ROUNDS") or 0) or 40000  # operations
BATCH = 100
SHAPES = {  # words of BF.RESERVE
    "large": ("0.01", "400000", "DELETABLE"),        # comes in pieces
    "grows": ("0.01", "300", "DELETABLE", "4", "EXPANSION", "2"),
    "fixed": ("0.001", "5000", "NONSCALING", "DELETABLE", "1"),
    "tight": ("0.0000001", "3000", "DELETABLE", "8"),
}


class Truth:
    """What the filters must have."""

    def __init__(self, rng):
        self.rng = rng
        self.items = {key: {} for key in SHAPES}   # item: None, in order
        self.number = 0
        self.gone = self.kept = 0

    def some(self, key, count):
        items = self.items[key]
        return self.rng.sample(list(items), min(count, len(items)))

    def add(self, conn, key):
        fresh = ["%s:%d" % (key, self.number + i)
                 for i in range(self.rng.randrange(1, BATCH))]
        self.number += len(fresh)
        words = fresh + self.some(key, self.rng.randrange(3))
        reply = conn.call("BF.MADD", key, *words)
        added = words[:len(reply) - 1] if isinstance(reply[-1], resp.Error) else words
        self.items[key].update(dict.fromkeys(added))
        return len(words)

    def delete(self, conn, key):
        words = self.some(key, self.rng.randrange(1, BATCH))
        if not words:
            return 1
        for item, answer in zip(words, conn.call("BF.MDEL", key, *words)):
            assert answer in (1, -1), "%s was there" % item
            if answer == 1:
                del self.items[key][item]
                self.gone += 1
            else:
                self.kept += 1
        return len(words)

    def check(self, conn):
        for key, items in self.items.items():
            every = list(items)
            for at in range(0, len(every), 5000):
                found = conn.call("BF.MEXISTS", key, *every[at:at + 5000])
                assert set(found) <= {1}, "an item of %s is missing" % key

    def run(self, conn, rounds, between=lambda done: None):
        done = 0
        while done < rounds:
            key = self.rng.choice(list(SHAPES))
            if self.rng.randrange(2):
                done += self.add(conn, key)
            else:
                done += self.delete(conn, key)
            between(done)


def make(conn):
    for key, words in SHAPES.items():
        assert conn.call("BF.RESERVE", key, *words) == b"OK"


@pytest.fixture
def truth():
    seed = int(os.environ.get("SEED") or 0) or random.randrange(1 << 32)
    print("SEED=%d" % seed)
    return Truth(random.Random(seed))


def save(conn, command="BGSAVE"):
    conn.call(command)
    wait_until(lambda: b"rdb_bgsave_in_progress:0" in conn.call("INFO", "persistence"),
               what="the end of the save", seconds=60)


def test_saves_rewrites_and_crashes_lose_no_item(group, truth):
    node = group.node()
    conn = node.conn()
    make(conn)

    def disturb(_done):
        if truth.rng.randrange(15) == 0:
            conn.call(truth.rng.choice(["BGSAVE", "BGREWRITEAOF"]))

    for _ in range(4):
        truth.run(conn, ROUNDS // 4, disturb)
        truth.check(conn)
        conn = lives.again(node, truth.rng)
        truth.check(conn)
    print("%d deleted, %d not" % (truth.gone, truth.kept))
    assert truth.gone > ROUNDS // 10


def test_a_replica_has_the_same_bits(group, truth):
    """It synchronizes in full while items come and go, and then follows."""
    primary, replica = group.node(), group.node()
    conn = primary.conn()
    make(conn)
    truth.run(conn, ROUNDS // 4)
    for _ in range(3):
        replicas.follow(replica, primary, wait=False)
        truth.run(conn, ROUNDS // 8)
        wait_until(lambda: conn.call("WAIT", "1", "100") == 1, what="the replica",
                   seconds=60)
        assert replicas.digest(replica) == replicas.digest(primary)
        with replica.conn() as other:
            truth.check(other)
            other.call("REPLICAOF", "NO", "ONE")


def test_copies_of_all_kinds_are_deletable(group, truth):
    """DUMP, BF.SCANDUMP, COPY, RENAME, MOVE, BF.MERGE, BF.RESET: the copy has the
    same bits, and items can be deleted from it."""
    node = group.node()
    conn = node.conn()
    make(conn)
    truth.run(conn, ROUNDS // 4)

    for key in SHAPES:
        names = lives.copies(conn, key)
        at = 0
        while True:
            at, data = conn.call("BF.SCANDUMP", key, str(at))
            if at == 0:
                break
            assert conn.call("BF.LOADCHUNK", "chunks", str(at), data) == b"OK"
        lives.same(conn, key, "chunks")
        for name in names + ["chunks"]:
            some = truth.some(key, 200)
            answers = conn.call("BF.MDEL", name, *some)
            assert set(answers) <= {1, -1}
            left = [item for item in truth.items[key] if item not in set(some)]
            for first in range(0, len(left), 5000):
                assert set(conn.call("BF.MEXISTS", name,
                                     *left[first:first + 5000])) == {1}
            assert conn.call("BF.RESET", name) == b"OK"
            assert conn.call("BF.CARD", name) == 0
            assert conn.call("BF.MDEL", name, *some[:10]) == [0] * len(some[:10])
            assert conn.call("BF.ADD", name, "again") == 1
            assert conn.call("BF.DEL", name, "again") == 1
            assert conn.call("DEL", name) == 1
    before = replicas.digest(node)
    node.crash()
    node.restart()
    assert replicas.digest(node) == before
    with node.conn() as again:
        truth.check(again)
        save(again, "BGREWRITEAOF")


def test_only_equal_regions_are_merged(server):
    with server.conn() as conn:
        conn.call("BF.RESERVE", "a", "0.01", "100", "DELETABLE", "2")
        conn.call("BF.RESERVE", "b", "0.01", "100", "DELETABLE", "4")
        conn.call("BF.RESERVE", "c", "0.01", "100")
        assert "regions" in str(conn.call("BF.MERGE", "a", "b"))
        assert isinstance(conn.call("BF.MERGE", "a", "c"), resp.Error)


def test_an_event_says_that_items_were_deleted(server):
    with server.conn() as conn, server.conn() as ears:
        conn.call("CONFIG", "SET", "notify-keyspace-events", "KEA")
        ears.call("SUBSCRIBE", "__keyspace@0__:k")
        conn.call("BF.RESERVE", "k", "0.01", "100", "DELETABLE")
        conn.call("BF.ADD", "k", "a")
        conn.call("BF.DEL", "k", "b")
        conn.call("BF.MDEL", "k", "b", "a")
        events = [ears.read()[2] for _ in range(3)]
        assert events == [b"bloom.reserve", b"bloom.add", b"bloom.del"]
