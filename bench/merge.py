#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures merge-on-heal, with its mark: a primary and its replica are cut off from
# each other, the replica is promoted, and writers add to both for SECONDS (60). Then
# the old primary follows the new one. Every acknowledged add of both sides must be on
# the new primary within 5 seconds for each million adds of the old one. Both servers
# run on 127.0.0.1, beside the writers.
"""Measure how fast a primary that was cut off brings its adds back."""

import os
import sys
import threading
import time

import servers

sys.path.append(str(servers.ROOT / "tests"))

from lib import replicas, resp  # noqa: E402
from lib.replicas import follow, info, lead, wait_even  # noqa: E402
from lib.servers import wait_until  # noqa: E402

MARK_S = 5              # for each million adds
SECONDS = int(os.environ.get("SECONDS", "60"))
MOST = int(os.environ.get("MOST", "2000000"))   # adds of the old primary
KEYS, PIPELINE = 20, 200


class Writer:
    """Adds new items to filters in pipelines until `stop`, and counts those that
    were acknowledged: item i of the prefix went to filter i % KEYS."""

    def __init__(self, server, prefix, most):
        self.server, self.prefix, self.most = server, prefix, most
        self.done, self.stop = 0, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with self.server.conn(timeout=120) as conn:
            while not self.stop.is_set() and self.done < self.most:
                begin = self.done
                got = conn.pipeline([
                    ("BF.ADD", f"k{i % KEYS}", f"{self.prefix}{i}")
                    for i in range(begin, begin + PIPELINE)])
                if any(isinstance(reply, resp.Error) for reply in got):
                    raise SystemExit(f"an add failed: {got[0]}")
                self.done += PIPELINE

    def end(self):
        self.stop.set()
        self.thread.join()
        return self.done


def missing(server, prefix, count):
    """Return how many of the items are not there."""
    lost = 0
    with server.conn(timeout=120) as conn:
        for key in range(KEYS):
            items = [f"{prefix}{i}" for i in range(key, count, KEYS)]
            for at in range(0, len(items), 1000):
                lost += conn.call("BF.MEXISTS", f"k{key}",
                                  *items[at:at + 1000]).count(0)
    return lost


def is_merged(server):
    got = info(server, "stats")
    return int(got["merge_offers"]) > 0 and int(got["merge_waiting_bytes"]) == 0


def main():
    """Run one partition and print what it gives."""
    options = ("--merge-on-heal", "yes", "--appendonly", "yes",
               "--repl-diskless-sync-delay", "1")
    group = replicas.Group()
    try:
        primary, replica, proxy = group.pair(*options)
        with primary.conn() as conn:
            for key in range(KEYS):
                conn.call("BF.RESERVE", f"k{key}", "0.000001", 1000000)
        wait_even(primary, replica)
        proxy.up = False
        proxy.cut()
        lead(replica)
        writers = [Writer(primary, "old", MOST), Writer(replica, "new", MOST)]
        time.sleep(SECONDS)     # the length of the partition
        old, new = [writer.end() for writer in writers]
        began = time.monotonic()
        follow(primary, replica, wait=False)
        wait_until(lambda: is_merged(primary), 600, "the merge ends", 0.05)
        took = time.monotonic() - began
        lost = missing(replica, "old", old), missing(replica, "new", new)
        print(f"partition of {SECONDS} s: {old} adds acknowledged by the old primary, "
            f"{new} by the new one")
        each = took / old * 1e6
        print(f"all offered {took:.1f} s after heal, {each:.1f} s a million "
            f"(mark {MARK_S}), {lost[0]} and {lost[1]} missing (mark 0)")
        stats = info(primary, "stats")
        print(", ".join(f"{name} {value}" for name, value in stats.items()
                      if name.startswith("merge_")))
        return 0 if each <= MARK_S and lost == (0, 0) else 1
    finally:
        group.end(False)


if __name__ == "__main__":
    sys.exit(main())
