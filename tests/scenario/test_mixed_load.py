# SPDX-License-Identifier: BSD-3-Clause
#
# Everything at once on few keys: adds, reads, deletes, expiry, transactions, FLUSHALL,
# SCAN, CONFIG SET, and clients that connect, disconnect and are killed. It is mainly
# for the thread sanitizer (BLOOMERY_SERVER). Every reply must be one that the command
# can give. BLOOMERY_LOAD_SECONDS sets the duration.

import os
import random
import re
import threading
import time

from lib import resp, servers

KEYS = ["k%d" % i for i in range(6)]
FULL = "ERR non scaling filter is full"
LIMIT = "ERR operation exceeds bloom object memory limit"


def is_bit(value):
    return value in (0, 1)


def bits(count):
    def check(value):
        if not isinstance(value, list) or not 0 < len(value) <= count:
            return False
        done = value if len(value) == count and not \
            isinstance(value[-1], resp.Error) else value[:-1]
        return all(is_bit(v) for v in done) and (
            done is value or value[-1].args[0] in (FULL, LIMIT))
    return check


def one_of(*choices):
    return lambda value: value in choices


def error_or(check, *texts):
    def test(value):
        if isinstance(value, resp.Error):
            return value.args[0] in texts
        return check(value)
    return test


def integer(value):
    return isinstance(value, int)


def anything(value):
    return not isinstance(value, resp.Error)


def info_reply(value):
    return isinstance(value, list) and len(value) in (12, 16) and \
        value[0] == b"Capacity"


class Worker(threading.Thread):
    """Runs random operations until the test stops it. Keeps the first
    problem, and then stops all workers."""

    def __init__(self, server, rng, stop):
        super().__init__()
        self.server = server
        self.rng = rng
        self.stop_event = stop
        self.problem = None
        self.count = 0

    def run(self):
        try:
            while not self.stop_event.is_set():
                self.session()
        except BaseException as problem:  # noqa: B902 - the test reports it
            self.problem = "%s: %r" % (type(self).__name__, problem)
            self.stop_event.set()

    def session(self):
        """Uses one connection for 60 pieces of work, or until CLIENT KILL."""
        try:
            with self.server.conn(self.rng.choice((2, 3)), timeout=30 *
                                  servers.time_factor()) as conn:
                for _ in range(60):
                    if self.stop_event.is_set():
                        break
                    self.work(conn)
        except (resp.Closed, ConnectionError, BrokenPipeError):
            pass  # CLIENT KILL closed the connection

    def key(self):
        return self.rng.choice(KEYS)

    def items(self, most=20):
        return [str(self.rng.randrange(400))
                for _ in range(self.rng.randrange(1, most))]

    def send(self, conn, commands):
        """Sends commands, each of them (check, words...), in one pipeline, and
        checks every reply."""
        replies = conn.pipeline([c[1:] for c in commands])
        for command, reply in zip(commands, replies):
            assert command[0](reply), "%r answered %r" % (command[1:], reply)
        self.count += len(commands)
        return replies


class Bloom(Worker):
    def operation(self):
        rng, key = self.rng, self.key()
        add = error_or(is_bit, FULL, LIMIT)
        items = self.items()
        return rng.choice([
            (add, "BF.ADD", key, rng.randrange(400)),
            (add, "BF.ADD", key, rng.randrange(400)),
            (is_bit, "BF.EXISTS", key, rng.randrange(400)),
            (bits(len(items)), "BF.MADD", key, *items),
            (bits(len(items)), "BF.MEXISTS", key, *items),
            (error_or(bits(len(items)), LIMIT), "BF.INSERT", key, "CAPACITY",
             rng.randrange(1, 50), "ERROR", "0.01", "ITEMS", *items),
            (error_or(one_of(b"OK"), "ERR item exists"), "BF.RESERVE", key,
             "0.01", rng.randrange(1, 200),
             *rng.choice([[], ["NONSCALING"], ["EXPANSION", "1"]])),
            (integer, "BF.CARD", key),
            (error_or(info_reply, "ERR not found"), "BF.INFO", key),
        ])

    def work(self, conn):
        self.send(conn, [self.operation()
                         for _ in range(self.rng.randrange(1, 40))])


class Keys(Worker):
    def work(self, conn):
        rng, key = self.rng, self.key()
        self.send(conn, [rng.choice([
            (integer, "DEL", key), (integer, "UNLINK", key, self.key()),
            (integer, "EXISTS", *KEYS), (integer, "TOUCH", key),
            (one_of(b"none", b"bloomfltr"), "TYPE", key),
            (integer, "PEXPIRE", key, rng.randrange(1, 30)),
            (integer, "EXPIRE", key, "100", rng.choice(["NX", "XX", "GT"])),
            (integer, "PERSIST", key), (integer, "PTTL", key),
            (anything, "RANDOMKEY"), (integer, "DBSIZE"),
            (anything, "MEMORY", "USAGE", key),
        ]) for _ in range(rng.randrange(1, 10))])


class Transactions(Bloom):
    def work(self, conn):
        rng = self.rng
        if rng.random() < 0.3:
            self.send(conn, [(one_of(b"OK"), "WATCH", self.key(), self.key())])
        inner = [self.operation() for _ in range(rng.randrange(1, 6))]
        inner += [(integer, "DEL", self.key())] * rng.randrange(2)
        queued = one_of(b"QUEUED")
        end = rng.random()
        if end < 0.1:
            self.send(conn, [(one_of(b"OK"), "MULTI")] +
                      [(queued,) + c[1:] for c in inner] +
                      [(one_of(b"OK"), "DISCARD")])
            return

        def executed(value):
            return value is None or (len(value) == len(inner) and all(
                c[0](v) for c, v in zip(inner, value)))

        self.send(conn, [(one_of(b"OK"), "MULTI")] +
                  [(queued,) + c[1:] for c in inner] + [(executed, "EXEC")])


class Walker(Worker):
    def work(self, conn):
        rng = self.rng
        cursor = b"0"
        for _ in range(100000):
            reply = self.send(conn, [(lambda v: isinstance(v, list) and
                                      v[0].isdigit(), "SCAN", cursor, "COUNT",
                                      rng.choice([1, 10, 1000]))])[0]
            cursor = reply[0]
            assert all(re.fullmatch(rb"k\d", k) for k in reply[1]), reply
            if cursor == b"0" or self.stop_event.is_set():
                break
        else:
            raise AssertionError("SCAN did not end within 100000 calls")
        self.send(conn, [(lambda v: isinstance(v, list), "KEYS", "*")])


class Operator(Worker):
    def work(self, conn):
        rng = self.rng
        ok = one_of(b"OK")
        self.send(conn, [rng.choice([
            (ok, "FLUSHALL"), (ok, "FLUSHALL", "ASYNC"), (ok, "FLUSHDB"),
            (ok, "CONFIG", "SET", "bf.bloom-capacity", rng.choice([5, 100])),
            (ok, "CONFIG", "SET", "bf.bloom-expansion", rng.choice([0, 1, 2])),
            (ok, "CONFIG", "SET", "bf.bloom-use-random-seed",
             rng.choice(["yes", "no"])),
            (ok, "CONFIG", "SET", "bf.bloom-memory-usage-limit",
             rng.choice(["128mb", "1kb"])),
            (ok, "CONFIG", "SET", "maxclients", rng.choice([500, 1000])),
            (anything, "CONFIG", "GET", "*"), (ok, "CONFIG", "RESETSTAT"),
            (anything, "INFO", "everything"), (anything, "CLIENT", "LIST"),
            (anything, "COMMAND", "DOCS"), (anything, "CLIENT", "INFO"),
        ]) for _ in range(2)])
        if rng.random() < 0.05:
            self.send(conn, [(integer, "CLIENT", "KILL", "TYPE", "normal",
                              "SKIPME", "yes")])
        time.sleep(0.005)


def test_everything_at_once(start_server):
    seconds = float(os.environ.get("BLOOMERY_LOAD_SECONDS", "6"))
    seed = random.randrange(1 << 32)
    print("seed", seed)
    server = start_server()
    stop = threading.Event()
    kinds = [Bloom, Bloom, Bloom, Keys, Keys, Transactions, Transactions,
             Walker, Operator]
    workers = [kind(server, random.Random(seed + i), stop)
               for i, kind in enumerate(kinds)]
    for worker in workers:
        worker.start()
    stop.wait(seconds)
    stop.set()
    for worker in workers:
        worker.join()
    problems = [w.problem for w in workers if w.problem]
    print("operations", sum(w.count for w in workers))
    assert not problems, "\n".join(problems)
    assert all(w.count > 0 for w in workers)
    with server.conn() as conn:
        conn.call("CONFIG", "SET", "bf.bloom-memory-usage-limit", "128mb")
        assert conn.call("FLUSHALL") == b"OK"
        servers.wait_until(lambda: b"bf_bloom_num_objects:0\r\n" in
                           conn.call("INFO", "bf"), 10, "all filters are freed")
        core = dict(line.split(":") for line in
                    conn.call("INFO", "bf").decode().splitlines() if ":" in line)
        assert set(core.values()) == {"0"}, "not zero after FLUSHALL: %r" % core
        assert conn.call("BF.ADD", "end", "a") == 1
