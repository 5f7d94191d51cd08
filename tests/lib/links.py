# SPDX-License-Identifier: BSD-3-Clause
#
# The shared code of the replication tests besides the servers: restarts in place,
# figures, background writers, and comparison of the data item by item.

import random
import signal
import threading

from lib import replicas, resp, servers
from lib.servers import wait_until


def counts(primary):
    """Returns how many (full, partial, refused) synchronizations a server gave."""
    got = replicas.info(primary, "stats")
    return tuple(int(got["sync_" + name])
                 for name in ("full", "partial_ok", "partial_err"))


def restart(server):
    """Stops the server as an operator would, and starts it again."""
    server.child.send_signal(signal.SIGTERM)
    code = server.wait_exit()
    assert code == 0, server.log().decode("utf-8", "replace")[-4000:]
    server.assert_healthy()
    server.restart()


def refusal(replica):
    """Returns the server's own reason why it has no link."""
    return replicas.info(replica).get("master_link_refusal", "")


def wait_refusal(replica, text, seconds=10):
    """Waits until INFO and the log give this reason."""
    wait_until(lambda: text in refusal(replica), seconds,
               "INFO says %r" % text)
    wait_until(lambda: text in replica.log().decode("utf-8", "replace"), 2,
               "the log says %r" % text)


def used_memory(server):
    return int(replicas.info(server, "memory")["used_memory"])


class Writers:
    """A thread that makes all kinds of changes, some thousand commands a second in
    pipelines, over a bounded number of keys, until its `with` block ends. It does
    not know the expected data (lib/workload.py does): tests compare a replica with
    its primary."""

    KEYS, ITEMS, BATCH = 40, 3000, 32

    def __init__(self, server, seed, pause=0.005, **kwargs):
        self.rng = random.Random(seed)
        self.conn = server.conn(timeout=60 * servers.time_factor(), **kwargs)
        self.pause = pause
        self.conn.call("BF.MADD", "template", "one", "two")
        self.payload = self.conn.call("DUMP", "template")
        self.pool = [self.draw() for _ in range(4000)]
        self.stop = threading.Event()
        self.batches = 0
        self.problem = None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def key(self):
        return "w:%d" % self.rng.randrange(self.KEYS)

    def items(self):
        return ["i:%d" % self.rng.randrange(self.ITEMS)
                for _ in range(self.rng.randrange(1, 9))]

    def draw(self):
        """Returns one request, or the requests of a transaction."""
        rng, key, items = self.rng, self.key(), self.items()
        soon = str(rng.choice((1, 20, 500, 100000, 10 ** 9)))
        many = rng.choices((
            [("BF.ADD", key, items[0])],
            [("BF.MADD", key, *items)],
            [("BF.INSERT", key, "CAPACITY", rng.randrange(5, 500), "ITEMS",
              *items)],
            [("BF.RESERVE", key, "0.01", rng.randrange(2, 2000))],
            [(rng.choice(("DEL", "UNLINK")), key, self.key())],
            [("PEXPIRE", key, soon)],
            [("PERSIST", key)],
            [("RENAME", key, self.key())],
            [("COPY", key, self.key(), "DB", rng.randrange(3), "REPLACE")],
            [("MOVE", key, rng.randrange(3))],
            [("RESTORE", key, soon, self.payload, "REPLACE")],
            [("BF.MERGE", key, self.key())],
            [("BF.RESET", key)],
            [("SWAPDB", 1, 2)],
            [("FLUSHDB",)] if rng.random() < 0.05 else [("PING",)],
            [("SELECT", rng.randrange(3))],
            [("MULTI",), ("BF.ADD", key, items[0]), ("DEL", self.key()),
             ("BF.MADD", self.key(), *items), ("EXEC",)],
        ), (30, 20, 5, 4, 4, 5, 2, 5, 4, 2, 3, 4, 3, 1, 1, 4, 5))[0]
        return b"".join(resp.command(*words) for words in many)

    def run(self):
        try:
            while not self.stop.wait(self.pause):
                self.batch()
        except BaseException as problem:  # noqa: B902 - told at the end
            self.problem = repr(problem)

    def batch(self):
        mark = b"batch %d." % self.batches
        self.conn.send(b"".join(self.rng.choices(self.pool, k=self.BATCH)) +
                       resp.command("ECHO", mark))
        data, self.conn.data = self.conn.data, bytearray()
        self.conn.sock.settimeout(self.conn.timeout)
        while mark not in data[-64:]:
            chunk = self.conn.sock.recv(1 << 16)
            if not chunk:
                raise resp.Closed()
            data += chunk
        self.batches += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.stop.set()
        self.thread.join(90 * servers.time_factor())
        self.conn.close()
        assert kind is not None or self.problem is None, self.problem

    def wait_for(self, more, seconds=30):
        """Waits until a number of further batches was answered."""
        goal = self.batches + more
        wait_until(lambda: self.batches >= goal or self.problem, seconds,
                   "the writers get on")
        assert self.problem is None, self.problem


# ---- what a server has, item by item ---------------------------------------

def view(server, items, databases=16):
    """Returns {(database, key): facts}; facts has a 0 or 1 for each item."""
    seen = {}
    with server.conn(timeout=30 * servers.time_factor()) as conn:
        for db in range(databases):
            assert conn.call("SELECT", db) == b"OK"
            for key in sorted(conn.call("KEYS", "*")):
                found = conn.call("BF.MEXISTS", key, *items) if items else []
                seen[db, key] = (tuple(found), conn.call("BF.INFO", key),
                                 conn.call("PEXPIRETIME", key),
                                 conn.call("DUMP", key))
    return seen
