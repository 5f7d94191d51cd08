# SPDX-License-Identifier: BSD-3-Clause
#
# What the Python programs do in a cluster (README.md). `call(word, key, *items)`
# sends a command; `errors` are the exceptions of the client.

import sys
import threading
import time

import check
from check import ADD, BLOOM, EXISTS, ints, note, same

PREFIX = sys.argv[3]
KEYS = ["%s-%d" % (PREFIX, n) for n in range(20)]
MADD, MEXISTS = ("BF.MADD", "BF.MEXISTS") if BLOOM else ("SADD", "SMISMEMBER")
PATIENCE = 20


def reads_and_writes(call):
    for n in range(100):
        key = "%s-once-%d" % (PREFIX, n)
        same([int(call(ADD, key, "a")), int(call(ADD, key, "a"))], [1, 0])
        same([int(call(EXISTS, key, "a")), int(call(EXISTS, key, "b"))], [1, 0])


def many_items(call):
    key = PREFIX + "-many"
    got = call(MADD, key, "a", "b", "c")
    same(sum(ints(got)) if BLOOM else got, 3)
    same(ints(call(MEXISTS, key, "c", "no", "a")), [1, 0, 1])


class Writer:
    """Adds until the program's input ends."""

    def __init__(self, call, errors):
        self.call, self.kinds = call, errors
        self.acked = {key: [] for key in KEYS}
        self.errors = self.tried = 0
        self.longest, self.last = 0, time.monotonic()

    def run(self):
        over = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.read(), over.set()),
                         daemon=True).start()
        self.last = time.monotonic()
        while not over.is_set():
            self.tried += 1
            key = KEYS[self.tried % len(KEYS)]
            try:
                self.call(ADD, key, str(self.tried))
            except self.kinds:
                self.errors += 1
                time.sleep(0.02)
            else:
                now = time.monotonic()
                self.longest = max(self.longest, now - self.last)
                self.last = now
                self.acked[key].append(str(self.tried))
            time.sleep(0.005)

    def goes_on(self):
        assert time.monotonic() - self.last < 2, "it stands still"
        assert self.longest < PATIENCE, "stood still for %.1f s" % self.longest

    def has_all(self):
        for key, items in self.acked.items():
            for at in range(0, len(items), 500):
                got = ints(self.call(MEXISTS, key, *items[at:at + 500]))
                assert all(got), "%d are lost" % got.count(0)


def run(protocol, call, errors, pipeline):
    """pipeline(commands): sends commands for several slots at once."""
    check.check("cluster", protocol, "reads and writes",
                lambda: reads_and_writes(call))
    check.check("cluster", protocol, "many items", lambda: many_items(call))

    def piped():
        keys = ["%s-piped-%d" % (PREFIX, n) for n in range(50)]
        same(sum(ints(pipeline([(ADD, key, "a") for key in keys]))), 50)
        same(sum(ints(pipeline([(EXISTS, key, "a") for key in keys]))), 50)

    check.check("cluster", protocol, "pipeline", piped)
    writer = Writer(call, errors)
    writer.run()
    check.check("cluster", protocol, "goes on", writer.goes_on)
    check.check("cluster", protocol, "nothing lost", writer.has_all)
    note("%d acknowledged, %d errors, longest wait %.2f s" % (
        sum(map(len, writer.acked.values())), writer.errors, writer.longest))
    check.finish()
