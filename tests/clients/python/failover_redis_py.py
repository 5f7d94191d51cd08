# SPDX-License-Identifier: BSD-3-Clause
#
# redis-py's Sentinel client through failovers (README.md): adds, waits for two
# replicas, and counts.

import os
import sys
import threading
import time

import check
from check import ADD, BLOOM, PORT, note

import redis
from redis.sentinel import Sentinel

if not redis.__file__.startswith(os.environ["PYTHONPATH"]):
    sys.exit("%s instead of the pinned one" % redis.__file__)

KEY, PORTS = sys.argv[3], [PORT] + [int(p) for p in sys.argv[4:]]
EXISTS = "BF.MEXISTS" if BLOOM else "SMISMEMBER"
PATIENCE = 20


class Writer:
    def __init__(self):
        sentinel = Sentinel([("127.0.0.1", port) for port in PORTS])
        self.client = sentinel.master_for("bloom", socket_timeout=2)
        self.acked, self.errors, self.tried = [], 0, 0
        self.longest, self.last = 0, time.monotonic()

    def run(self, over):
        while not over.is_set():
            try:
                self.add()
            except redis.RedisError:
                self.errors += 1
                time.sleep(0.02)
            time.sleep(0.005)

    def add(self):
        """A connection that wrote nothing waits for nothing: what an earlier
        try of the same item had added already does not count."""
        self.tried += 1
        with self.client.pipeline(transaction=False) as pipe:
            pipe.execute_command(ADD, KEY, self.tried)
            pipe.execute_command("WAIT", 2, 1000)
            added, replicas = pipe.execute()
        if added and replicas >= 2:
            now = time.monotonic()
            self.longest = max(self.longest, now - self.last)
            self.last = now
            self.acked.append(self.tried)

    def goes_on(self):
        assert self.acked and time.monotonic() - self.last < 2, "it stands still"
        assert self.longest < PATIENCE, "stood still for %.1f s" % self.longest

    def has_all(self):
        for at in range(0, len(self.acked), 500):
            got = self.client.execute_command(EXISTS, KEY,
                                              *self.acked[at:at + 500])
            assert all(got), "%d are lost" % (len(got) - sum(map(int, got)))


def main():
    note("redis-py " + redis.__version__)
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()),
                     daemon=True).start()
    writer = Writer()
    writer.run(over)
    check.check("failover", 3, "goes on", writer.goes_on)
    check.check("failover", 3, "nothing lost", writer.has_all)
    note("%d acknowledged by two, %d errors, longest wait %.1f s" % (
        len(writer.acked), writer.errors, writer.longest))
    check.finish()


main()
