# SPDX-License-Identifier: BSD-3-Clause
#
# MULTI and WATCH with several clients: the changes that break a watch, that EXEC is
# atomic for other clients, and the limits of the queue.

import json
import threading

import pytest

from lib import resp, servers


@pytest.fixture
def pair(server):
    with server.conn() as a, server.conn() as b:
        yield a, b


def broken(a):
    a.call("MULTI")
    a.call("PING")
    raw = a.raw("EXEC")
    assert raw in (b"*-1\r\n", b"*1\r\n+PONG\r\n"), raw
    return raw == b"*-1\r\n"


@pytest.mark.parametrize("commands", [
    [("BF.ADD", "k", "new")],
    [("BF.MADD", "k", "n1", "n2")],
    [("BF.INSERT", "k", "ITEMS", "new")],
    [("DEL", "k")],
    [("UNLINK", "k")],
    [("DEL", "k"), ("BF.ADD", "k", "a")],
    [("EXPIRE", "k", "100")],
    [("PEXPIREAT", "k", "1")],
    [("FLUSHDB",)],
    [("FLUSHALL",)],
    [("FLUSHALL", "ASYNC")],
    [("MULTI",), ("BF.ADD", "k", "n"), ("EXEC",)],
], ids=lambda c: " ".join(c[0]))
def test_a_write_by_another_client_breaks_the_watch(pair, commands):
    a, b = pair
    b.call("BF.ADD", "k", "a")
    assert a.call("WATCH", "k") == b"OK"
    for command in commands:
        assert not isinstance(b.call(*command), resp.Error)
    assert broken(a)
    assert not broken(a), "EXEC ends the watch"


@pytest.mark.parametrize("command", [
    ("BF.EXISTS", "k", "a"), ("BF.INFO", "k"), ("BF.CARD", "k"),
    ("EXISTS", "k"), ("TTL", "k"), ("TYPE", "k"), ("BF.ADD", "other", "x"),
    ("DEL", "missing"), ("PERSIST", "k"), ("BF.ADD", "k"), ("TOUCH", "k"),
    ("BF.RESERVE", "k", "x", "100"),
], ids=lambda c: " ".join(c))
def test_a_read_or_a_refused_write_does_not_break_the_watch(pair, command):
    a, b = pair
    b.call("BF.ADD", "k", "a")
    a.call("WATCH", "k")
    b.call(*command)
    assert not broken(a)


def test_creation_of_a_missing_key_breaks_the_watch(pair):
    a, b = pair
    a.call("WATCH", "k")
    b.call("BF.RESERVE", "k", "0.01", "100")
    assert broken(a)


def test_expiry_of_the_key_breaks_the_watch(pair):
    a, b = pair
    ttl_ms = int(100 * servers.time_factor())
    b.call("BF.ADD", "k", "a")
    b.call("PEXPIRE", "k", ttl_ms)
    a.call("WATCH", "k")
    assert b.call("EXISTS", "k") == 1
    servers.wait_until(lambda: b.call("EXISTS", "k") == 0, 5, "the end of k")
    assert broken(a)


def test_a_flush_leaves_watches_of_missing_keys_alone(pair):
    a, b = pair
    b.call("BF.ADD", "other", "a")
    a.call("WATCH", "missing")
    b.call("FLUSHALL")
    assert not broken(a)


def test_a_watch_is_for_one_database(pair):
    a, b = pair
    b.call("BF.ADD", "k", "a")
    a.call("WATCH", "k")
    b.call("SELECT", "1")
    b.call("BF.ADD", "k", "new")
    assert not broken(a)
    a.call("SELECT", "2")
    a.call("WATCH", "k")
    a.call("SELECT", "0")
    b.call("SELECT", "2")
    b.call("BF.ADD", "k", "x")
    assert broken(a)


def test_unwatch_discard_and_reset_forget(pair):
    a, b = pair
    for forget in (("UNWATCH",), ("MULTI", "DISCARD"), ("RESET",)):
        a.call("WATCH", "k")
        for command in forget:
            a.call(command)
        b.call("DEL", "k")
        b.call("BF.ADD", "k", "x")
        assert not broken(a)


def test_a_queue_with_a_mistake_is_refused_whole(pair):
    a, b = pair
    a.call("MULTI")
    assert a.call("BF.ADD", "k", "a") == b"QUEUED"
    assert isinstance(a.call("BF.ADD", "k"), resp.Error)
    assert isinstance(a.call("NOPE"), resp.Error)
    assert a.raw("EXEC") == (b"-EXECABORT Transaction discarded because of "
                             b"previous errors.\r\n")
    assert b.call("EXISTS", "k") == 0
    stats = b.call("INFO", "commandstats").decode()
    line = [x for x in stats.splitlines() if x.startswith("cmdstat_BF.ADD:")]
    assert not line or "rejected_calls=1" in line[0], line


def test_wrong_arity_counts_as_rejected(pair):
    a, _ = pair
    a.call("BF.ADD", "k", "a")
    a.call("BF.ADD", "k")
    a.call("BF.ADD", "k", "a")
    stats = a.call("INFO", "commandstats").decode()
    line = [x for x in stats.splitlines() if x.startswith("cmdstat_BF.ADD:")][0]
    assert "calls=2," in line and "rejected_calls=1" in line and \
        "failed_calls=0" in line


def test_the_replies_of_exec_keep_order_and_errors(pair):
    a, _ = pair
    a.call("MULTI")
    for command in (("BF.RESERVE", "k", "1e-9", "1", "NONSCALING"),
                    ("BF.ADD", "k", "a"), ("BF.ADD", "k", "b"),
                    ("BF.MADD", "k", "a", "b"), ("EXPIRE", "k", "x"),
                    ("BF.CARD", "k")):
        assert a.call(*command) == b"QUEUED"
    full = resp.Error("ERR non scaling filter is full")
    assert a.call("EXEC") == [
        b"OK", 1, full, [0, full],
        resp.Error("ERR value is not an integer or out of range"), 1]


def test_exec_is_one_step_for_others(server):
    """A reader never sees only one of two keys that are written together."""
    stop = threading.Event()
    problems = []

    def write():
        with server.conn() as conn:
            while not stop.is_set():
                conn.pipeline([("MULTI",), ("BF.ADD", "x", "1"),
                               ("BF.ADD", "y", "1"), ("EXEC",)])
                conn.pipeline([("MULTI",), ("DEL", "x"), ("DEL", "y"),
                               ("EXEC",)])

    def read():
        with server.conn() as conn:
            for _ in range(1500):
                both = conn.call("EXISTS", "x", "y")
                if both not in (0, 2):
                    problems.append(both)
        stop.set()

    threads = [threading.Thread(target=f) for f in (write, write, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_check_and_set_never_loses_an_update(server):
    """The classic counter: WATCH, read, MULTI, write, EXEC, retry."""
    done = []

    def work(index):
        with server.conn() as conn:
            for _ in range(25):
                while True:
                    conn.call("WATCH", "counter")
                    count = conn.call("BF.CARD", "counter")
                    conn.call("MULTI")
                    conn.call("BF.ADD", "counter", "item-%d" % count)
                    if conn.call("EXEC") is not None:
                        break
        done.append(index)

    with server.conn() as conn:
        conn.call("BF.RESERVE", "counter", "1e-9", "1000")
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4
    with server.conn() as conn:
        assert conn.call("BF.CARD", "counter") == 100


# ---- every write command and a watched key ---------------------------------

# Commands, and whether they break a watch of k: as in redis-server 7.0.15, as
# far as it has them. Before them k is a filter without a time to live, "t" has
# one, q is another filter; "missing" removes k first, and is not a command. The
# words DUMP and HEADER stand for what DUMP and BF.SCANDUMP give for k.
LOAD = bytes.fromhex(json.loads((
    servers.TOP / "tests/data/valkey-bloom/filters.json").read_text())[1]
        ["bf_load"])
BREAKS = {
    b"BF.ADD": [([("BF.ADD", "k", "new")], True),
                ([("BF.ADD", "k", "a")], True),  # it is opened for writing
                ([("BF.ADD", "q", "new")], False),
                ([("BF.ADD", "k")], False),
                (["missing", ("BF.ADD", "k", "a")], True)],
    b"BF.DEL": [([("BF.DEL", "k", "a")], True),  # opened, though refused
                ([("BF.DEL", "q", "a")], False),
                (["missing", ("BF.DEL", "k", "a")], False)],
    b"BF.MDEL": [([("BF.MDEL", "k", "a", "b")], True),
                 (["missing", ("BF.MDEL", "k", "a")], False)],
    b"BF.INSERT": [([("BF.INSERT", "k", "ITEMS", "new")], True),
                   ([("BF.INSERT", "k", "CAPACITY", "0", "ITEMS", "x")], False),
                   (["missing", ("BF.INSERT", "k", "NOCREATE", "ITEMS", "x")],
                    False),
                   (["missing", ("BF.INSERT", "k")], True)],
    b"BF.LOAD": [([("BF.LOAD", "k", LOAD)], True),  # opened, though refused
                 ([("BF.LOAD", "q", LOAD)], False),
                 (["missing", ("BF.LOAD", "k", "bad")], False),
                 (["missing", ("BF.LOAD", "k", LOAD)], True)],
    b"BF.LOADCHUNK": [([("BF.LOADCHUNK", "k", "1", "")], True),  # opened
                      ([("BF.LOADCHUNK", "k", "x", "")], False),
                      ([("BF.LOADCHUNK", "other", "1", "HEADER")], False),
                      (["missing", ("BF.LOADCHUNK", "k", "2", "x")], False),
                      (["missing", ("BF.LOADCHUNK", "k", "1", "bad")], False),
                      (["missing", ("BF.LOADCHUNK", "k", "1", "HEADER")],
                       True)],
    b"BF.MADD": [([("BF.MADD", "k", "n", "m")], True),
                 (["missing", ("BF.MADD", "k", "n")], True)],
    b"BF.MERGE": [([("BF.MERGE", "k", "q")], True),
                  ([("BF.MERGE", "q", "k")], False),
                  ([("BF.MERGE", "k", "nosuch")], True),  # opened, too
                  (["missing", ("BF.MERGE", "k", "q")], True)],
    b"BF.RESERVE": [([("BF.RESERVE", "k", "0.01", "100")], True),  # opened
                    ([("BF.RESERVE", "k", "2", "100")], False),
                    (["missing", ("BF.RESERVE", "k", "2", "100")], False),
                    (["missing", ("BF.RESERVE", "k", "0.01", "100")], True)],
    b"BF.RESET": [([("BF.RESET", "k")], True),
                  ([("BF.RESET", "q")], False),
                  (["missing", ("BF.RESET", "k")], False)],
    b"copy": [([("COPY", "k", "other")], False),
              ([("COPY", "q", "k")], False),
              ([("COPY", "q", "k", "REPLACE")], True),
              ([("COPY", "nosuch", "k", "REPLACE")], False),
              ([("COPY", "q", "k", "DB", "1")], False),
              (["missing", ("COPY", "q", "k")], True)],
    b"del": [([("DEL", "k")], True),
             ([("DEL", "q", "nosuch")], False),
             (["missing", ("DEL", "k")], False),
             (["missing", ("DEL", "q")], False)],
    b"expire": [([("EXPIRE", "k", "100")], True),
                ([("EXPIRE", "k", "-1")], True),
                ([("EXPIRE", "k", "100", "XX")], False),
                ([("EXPIRE", "k", "x")], False),
                (["missing", ("EXPIRE", "k", "100")], False)],
    b"expireat": [([("EXPIREAT", "k", "99999999999")], True),
                  ([("EXPIREAT", "k", "1")], True),
                  ([("EXPIREAT", "k", "1", "XX")], False)],
    b"flushall": [([("FLUSHALL",)], True),
                  ([("FLUSHALL", "nonsense")], False),
                  ([("FLUSHALL",), ("BF.ADD", "k", "a")], True),
                  (["missing", ("FLUSHALL",)], False)],
    b"flushdb": [([("FLUSHDB", "SYNC")], True),
                 ([("SELECT", "1"), ("FLUSHDB",)], False),
                 (["missing", ("FLUSHDB",)], False)],
    b"move": [([("MOVE", "k", "1")], True),
              ([("MOVE", "k", "1"), ("SELECT", "1"), ("MOVE", "k", "0")], True),
              ([("MOVE", "k", "0")], False),
              ([("MOVE", "k", "99999")], False),
              (["missing", ("SELECT", "1"), ("BF.ADD", "k", "a"),
                ("MOVE", "k", "0")], True)],
    b"persist": [([("PERSIST", "k")], False),
                 (["t", ("PERSIST", "k")], True)],
    b"pexpire": [([("PEXPIRE", "k", "100000")], True),
                 (["t", ("PEXPIRE", "k", "100000", "NX")], False)],
    b"pexpireat": [([("PEXPIREAT", "k", "99999999999999")], True),
                   ([("PEXPIREAT", "k", "1")], True)],
    b"rename": [([("RENAME", "k", "other")], True),
                ([("RENAME", "q", "k")], True),
                ([("RENAME", "k", "k")], False),
                ([("RENAME", "nosuch", "k")], False),
                ([("RENAME", "k", "other"), ("RENAME", "other", "k")], True),
                (["missing", ("RENAME", "q", "k")], True)],
    b"renamenx": [([("RENAMENX", "k", "other")], True),
                  ([("RENAMENX", "k", "q")], False),
                  ([("RENAMENX", "q", "k")], False),
                  (["missing", ("RENAMENX", "q", "k")], True)],
    b"restore": [([("RESTORE", "k", "0", "DUMP", "REPLACE")], True),
                 ([("RESTORE", "k", "0", "DUMP")], False),
                 ([("RESTORE", "k", "0", "bad", "REPLACE")], False),
                 (["missing", ("RESTORE", "k", "0", "DUMP")], True)],
    b"swapdb": [([("SWAPDB", "0", "1")], True),
                ([("SWAPDB", "0", "1"), ("SWAPDB", "0", "1")], True),
                ([("SWAPDB", "1", "0"), ("BF.ADD", "k", "a")], True),
                ([("SWAPDB", "1", "2")], False),
                ([("SWAPDB", "0", "0")], False),
                (["missing", ("SELECT", "1"), ("BF.ADD", "k", "a"),
                  ("SWAPDB", "0", "1")], True)],
    b"unlink": [([("UNLINK", "k")], True),
                (["missing", ("UNLINK", "k", "q")], False)],
}


def test_the_table_of_what_breaks_a_watch_names_every_write_command(server):
    with server.conn() as conn:
        writes = {row[0] for row in conn.call("COMMAND") if b"write" in row[2]}
    assert writes == set(BREAKS)


@pytest.mark.parametrize("name", sorted(BREAKS), ids=lambda n: n.decode())
def test_what_breaks_a_watch(pair, name):
    a, b = pair
    for steps, expected in BREAKS[name]:
        b.call("SELECT", "0")
        b.call("FLUSHALL")
        for key in ("k", "q"):
            assert b.call("BF.INSERT", key, "SEED", "s" * 32, "ITEMS", "a") == [1]
        words = {"DUMP": b.call("DUMP", "k"),
                 "HEADER": b.call("BF.SCANDUMP", "k", "0")[1]}
        commands = [c for c in steps if not isinstance(c, str)]
        if "missing" in steps:
            b.call("DEL", "k")
        if "t" in steps:
            b.call("EXPIRE", "k", "1000")
        # The commands before the last one may only prepare it.
        scene = commands[:-1] if ("SELECT", "1") in commands[:-1] and \
            commands[0] == ("SELECT", "1") else []
        for command in scene:
            b.call(*command)
        a.call("WATCH", "k")
        for command in commands[len(scene):]:
            b.call(*[words.get(word, word) for word in command])
        assert broken(a) == expected, steps


@pytest.mark.parametrize("how", ["timer", "access", "made again"])
def test_expiry_breaks_a_watch_by_timer_and_by_access(pair, how):
    a, b = pair
    b.call("BF.ADD", "k", "a")
    b.call("PEXPIRE", "k", int(60 * servers.time_factor()))
    a.call("WATCH", "k")
    if how == "timer":
        servers.wait_until(
            lambda: b"expired_keys:1\r\n" in b.call("INFO", "stats"), 10,
            "the timer")
    else:
        servers.wait_until(lambda: b.call("EXISTS", "k") == 0, 5, "its end")
    if how == "access":
        b.call("PERSIST", "k")
    if how == "made again":
        b.call("BF.ADD", "k", "a")
    assert broken(a)


def test_a_key_that_expired_before_the_watch_does_not_break_it(pair):
    a, b = pair
    for _ in range(20):  # sometimes the timer is first
        b.call("BF.ADD", "k", "a")
        b.call("PEXPIRE", "k", "1")
        servers.wait_until(lambda: b.call("EXISTS", "k") == 0, 5, "its end")
        a.call("WATCH", "k")
        b.call("DEL", "k")
        assert not broken(a)


def test_eviction_breaks_a_watch(start_server):
    server = start_server("--maxmemory-policy", "allkeys-random",
                          "--maxmemory", "8mb")
    with server.conn() as a, server.conn() as b:
        b.call("BF.RESERVE", "k", "0.001", "20000")
        a.call("WATCH", "k")
        number = 0
        while b.call("EXISTS", "k") == 1:
            b.call("BF.RESERVE", "o%d" % number, "0.001", "20000")
            number += 1
            assert number < 20000
        assert broken(a)


def test_removing_other_keys_does_not_break_a_watch_of_a_missing_key(pair):
    """Hundreds of keys are removed, and some of them share a stripe (there are
    1024) with a watched name."""
    a, b = pair
    watched = ["w%d" % i for i in range(40)]
    b.pipeline([("BF.ADD", "o%d" % i, "x") for i in range(500)])
    a.call("WATCH", *watched)
    b.pipeline([("DEL", "o%d" % i) for i in range(500)])
    assert not broken(a)
    a.call("WATCH", *watched)
    b.pipeline([("BF.ADD", "w7", "x"), ("DEL", "w7")])
    assert broken(a)


# ---- a bank ----------------------------------------------------------------

class Teller(threading.Thread):
    """Moves items from one account to another, in one EXEC. A filter cannot
    lose an item, so an account is a pair of keys, and their existence says
    where the money is."""

    def __init__(self, address, number, rounds, errors):
        super().__init__(daemon=True)
        self.address, self.number, self.rounds = address, number, rounds
        self.errors = errors
        self.moved = self.lost = 0

    def transfer(self, conn, coin):
        """Each coin lies under exactly one of two names."""
        here, there = "coin%d:a" % coin, "coin%d:b" % coin
        conn.call("WATCH", here, there)
        if conn.call("EXISTS", here) == 0:
            here, there = there, here
        conn.call("MULTI")
        conn.call("DEL", here)
        conn.call("BF.ADD", there, "x")
        conn.call("BF.ADD", "log%d" % self.number,
                  "%d:%d" % (coin, self.moved + self.lost))
        reply = conn.call("EXEC")
        if reply is None:
            self.lost += 1
        else:
            assert reply[0] == 1 and reply[1] == 1 and reply[2] in (0, 1), reply
            self.moved += 1

    def run(self):
        try:
            with resp.Conn(self.address) as conn:
                for i in range(self.rounds):
                    self.transfer(conn, (i * 7 + self.number) % COINS)
        except Exception as problem:
            self.errors.append(problem)


COINS = 10


class Auditor(threading.Thread):
    """At every moment each coin is in exactly one place."""

    def __init__(self, address, done, errors):
        super().__init__(daemon=True)
        self.address, self.done, self.errors = address, done, errors
        self.audits = 0

    def run(self):
        names = ["coin%d:%s" % (i, side) for i in range(COINS) for side in "ab"]
        try:
            with resp.Conn(self.address) as conn:
                while not self.done.is_set():
                    conn.call("MULTI")
                    for name in names:
                        conn.call("EXISTS", name)
                    both = conn.call("EXEC")
                    assert all(both[i] + both[i + 1] == 1
                               for i in range(0, len(both), 2)), both
                    assert conn.call("EXISTS", *names) == COINS
                    self.audits += 1
        except Exception as problem:
            self.errors.append(problem)


def test_no_coin_is_lost_or_doubled_by_concurrent_transactions(server):
    errors, done = [], threading.Event()
    with server.conn() as conn:
        for coin in range(COINS):
            conn.call("BF.ADD", "coin%d:a" % coin, "x")
    tellers = [Teller(server.address, i, 300, errors) for i in range(8)]
    auditors = [Auditor(server.address, done, errors) for _ in range(2)]
    for thread in tellers + auditors:
        thread.start()
    for thread in tellers:
        thread.join(120 * servers.time_factor())
    done.set()
    for thread in auditors:
        thread.join(10 * servers.time_factor())
    assert not errors, errors
    assert sum(t.moved for t in tellers) > 100
    assert all(a.audits > 0 for a in auditors)
    assert not any(t.is_alive() for t in tellers + auditors)
