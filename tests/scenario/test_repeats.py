# SPDX-License-Identifier: BSD-3-Clause
#
# Replaying the journal restores the exact data. Three clients send random writes of
# all kinds on few keys, while keys expire and are evicted. After kill -9 and a start,
# each key of each database has the same filter, bit for bit, and the same time to
# live.

import random
import threading

import pytest

from lib import crash, resp, servers

DATABASES = 4
COMMANDS = 6000 if not servers.sanitized() else 1500
SHORT, LONG = (1, 5, 30), (10 ** 8, 10 ** 9)  # the time to live in ms


class Client:
    def __init__(self, seed, names):
        self.rng = random.Random(seed)
        self.names = names
        self.payload = None

    def key(self):
        return self.rng.choice(self.names)

    def keys(self, most):
        return [self.key() for _ in range(self.rng.randrange(1, most))]

    def items(self):
        return [self.rng.randrange(10000)
                for _ in range(self.rng.randrange(1, 40))]

    def db(self):
        return self.rng.randrange(DATABASES)

    def adds(self):
        return self.rng.choice((
            ("BF.ADD", self.key(), self.rng.randrange(10000)),
            ("BF.MADD", self.key(), *self.items()),
            ("BF.INSERT", self.key(), "CAPACITY", self.rng.choice((10, 100)),
             "ITEMS", *self.items()),
            ("BF.RESERVE", self.key(), "0.01",
             self.rng.choice((10, 5000, 1000000)), "EXPANSION", "1")))

    def names_change(self):
        return self.rng.choice((
            ("RENAME", self.key(), self.key()),
            ("RENAMENX", self.key(), self.key()),
            ("MOVE", self.key(), self.db()),
            ("COPY", self.key(), self.key(), "REPLACE"),
            ("COPY", self.key(), self.key(), "DB", self.db()),
            ("BF.MERGE", self.key(), *self.keys(4)),
            ("BF.RESET", self.key()),
            ("DEL", *self.keys(3))))

    def times_change(self):
        return self.rng.choice((
            ("PEXPIRE", self.key(), self.rng.choice(SHORT + LONG)),
            ("PEXPIRE", self.key(), -1),
            ("PERSIST", self.key()),
            ("RESTORE", self.key(), self.rng.choice((0,) + SHORT + LONG),
             self.payload or b"none", "REPLACE"),
            ("DUMP", self.key())))

    def databases_change(self):
        return self.rng.choice((
            ("SELECT", self.db()), ("SELECT", self.db()),
            ("SWAPDB", self.db(), self.db()), ("FLUSHDB",)))

    def command(self):
        kind, = self.rng.choices(
            (self.adds, self.names_change, self.times_change,
             self.databases_change), (40, 40, 18, 2))
        return kind()

    def batch(self):
        commands = [self.command() for _ in range(self.rng.randrange(1, 20))]
        if self.rng.random() < 0.3:
            return [("MULTI",), *commands, ("EXEC",)]
        return commands

    def work(self, store, problems):
        try:
            with store.conn(timeout=30 * servers.time_factor()) as conn:
                done = 0
                while done < COMMANDS:
                    batch = self.batch()
                    replies = conn.pipeline(batch)
                    done += len(batch)
                    if batch[0][0] == "DUMP" and replies[0] is not None:
                        self.payload = replies[0]
        except (OSError, resp.Closed) as problem:
            problems.append(problem)


def state(conn):
    """Returns (expiry time, DUMP) of each key that does not expire soon."""
    told = {}
    for db in range(DATABASES):
        assert conn.call("SELECT", db) == b"OK"
        for name in conn.call("KEYS", "*"):
            ends = conn.call("PEXPIRETIME", name)
            left = conn.call("PTTL", name)
            if left == -1 or left > LONG[0] // 2:
                told[db, name] = ends, conn.call("DUMP", name)
    return told


@pytest.mark.parametrize("policy", ["noeviction", "allkeys-lru",
                                    "volatile-random"])
def test_a_start_restores_every_key(policy):
    seed, = crash.seeds(1)
    names = ["k%d" % i for i in range(random.Random(seed).choice((5, 60)))]
    problems = []
    with crash.Store("--appendonly", "yes", "--appendfsync", "always",
                     "--auto-aof-rewrite-percentage", "50",
                     "--auto-aof-rewrite-min-size", "64kb") as store:
        store.start()
        with store.conn() as conn:
            if policy != "noeviction":
                conn.call("CONFIG", "SET", "maxmemory-policy", policy,
                          "maxmemory", "6mb")
            threads = [threading.Thread(
                target=Client(seed + i, names).work, args=(store, problems))
                for i in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not problems, problems
            before = state(conn)
            if policy == "allkeys-lru" and not servers.sanitized():
                assert int(crash.info(conn, "stats")["evicted_keys"]) > 0
        store.kill()
        store.start()
        with store.conn() as conn:
            after = state(conn)
        store.kill()
        store.assert_healthy()
    assert sorted(before) == sorted(after)
    assert not [key for key in before if before[key] != after[key]]
