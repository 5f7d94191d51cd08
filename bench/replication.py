#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures the cost of replicas for their primary, each figure with its mark: CPU
# time per command with a replica compared with a server without one, and the
# latency of clients during a full synchronization of 1 GiB. Compared servers run
# in turn, in pairs, and the ratio is taken within the pair. The last part measures
# how soon a replica has what its primary has acknowledged.
"""Measure replication."""

import statistics
import sys
import time

import persist
from persist import CONNECTIONS, MIB, Connection, Durable, say, spread

MARK_STREAM = 1.30
MARK_VISIBLE_MS = 0.15
NOW = ["--repl-diskless-sync-delay", "0"]


class Follower(Durable):
    """A replica of a server."""

    def __init__(self, bench, data, primary, options=()):
        super().__init__(bench.build, data, options=[*NOW, *options])
        self.primary = primary

    def wait_synced(self):
        """Wait until the replica follows and has all data of its primary."""
        with Connection(self.primary) as peer:
            position = int(peer.info("master_repl_offset"))
        with Connection(self) as peer:
            peer.wait("master_link_status", "up")
            while int(peer.info("slave_repl_offset")) < position:
                time.sleep(0.01)

    def __enter__(self):
        super().__enter__()
        with Connection(self) as peer:
            peer.call("REPLICAOF", "127.0.0.1", self.primary.port)
        self.wait_synced()
        return self


def stream(bench):
    """Compare the CPU time of all threads with a server without a replica."""
    adds = bench.scaled(400_000)
    singly, fewer = ["--command", "add", "--pipeline", "1"], adds // 4
    plan = [("BF.ADD", (["--command", "add"], adds, adds), 21, MARK_STREAM),
            ("BF.MADD of 100", (["--command", "madd"], adds // 100, adds), 5,
             None),
            ("BF.ADD, no pipeline", (singly, fewer, fewer), 7, None),
            ("the same, one connection",
             ([*singly, "--connections", "1"], fewer // 4, fewer // 4), 7, None)]
    results, ratios = [], []
    print(f"streaming to one replica: CPU time per command on the primary, "
          f"pipeline 16, {CONNECTIONS} connections, one loop, all items new; "
          "with / without")
    for name, workload, pairs, mark in plan:
        costs = []
        alone, primary = (
            Durable(bench.build, bench.folder / word, options=NOW,
                    wrapper=bench.server_pin) for word in ("alone", "primary"))
        with alone, primary, Follower(bench, bench.folder / "replica",
                                      primary) as replica:
            for number in range(bench.pairs(pairs, 3)):
                costs.append(persist.journal_pair(bench, alone, primary,
                                                  workload, number))
                replica.wait_synced()
        text, median = spread([with_ns / without_ns
                               for without_ns, with_ns in costs])
        without_ns, with_ns = map(statistics.median, zip(*costs))
        ratios.append(median)
        results.append(say(
            f"  CPU with a replica: {name}", text, f"< {mark:.2f}" if mark else "",
            median < mark if mark else None,
            f"{with_ns:.0f} / {without_ns:.0f} ns"))
    persist.answer(
        f"With one replica, a new BF.ADD takes {ratios[0]:.2f} times the primary's CPU "
        f"of one without a replica, and a BF.MADD of 100 {ratios[1]:.2f} times "
        "(pipeline 16).")
    return all(results)


def sync(bench):
    """Measure the primary's clients during full synchronizations of 1 GiB."""
    print("full synchronization of 1 GiB in layers of 64 and 4 MiB")
    holds = []
    keys = persist.LARGE[0][1]
    with Durable(bench.build, bench.folder / "primary", threads=2,
                 options=NOW) as primary:
        persist.fill_large(bench, primary)
        say("  clients, ms: no replica", "",
            note=persist.pulse(bench, primary, 1.5, keys))
        with Connection(primary) as peer:
            for number in range(bench.pairs(4, 2)):
                peer.call("CONFIG", "RESETSTAT")
                took = []

                def follow():
                    began = time.monotonic()
                    with Follower(bench, bench.folder / f"replica{number}",
                                  primary) as replica:
                        took.append(time.monotonic() - began)
                        with Connection(replica) as other:
                            took.append(int(other.info("used_memory")) / MIB)

                seen = persist.pulse(bench, primary, 4, keys, follow)
                holds.append(persist.longest_hold_ms(peer))
                say(f"  clients, ms: synchronization {number + 1}",
                    f"{took[0]:.1f} s, {took[1]:.0f} MiB", note=seen)
    return say("  longest time under a lock, ms", f"<= {max(holds):.2f}",
               f"<= {persist.MARK_HOLD_MS:g}",
               max(holds) <= persist.MARK_HOLD_MS,
               "CPU time; each time: " + " ".join(f"{ms:.2f}" for ms in holds))


def visible(bench):
    """Read each item from the replica right after it was written."""
    pairs = bench.scaled(400)
    print(f"{pairs} items: written to the primary, then read from the replica until "
          "it is found; one loop, the writer waits for each")
    with Durable(bench.build, bench.folder / "primary", options=NOW,
                 wrapper=bench.server_pin) as primary, \
            Follower(bench, bench.folder / "replica", primary) as replica, \
            Connection(primary) as writer, Connection(replica) as reader:
        writer.call("BF.RESERVE", "seen", "0.01", 10 * pairs)
        replica.wait_synced()
        took, at_once = [], 0
        for number in range(pairs):
            writer.call("BF.ADD", "seen", number)
            began, reads = time.perf_counter(), 1
            while reader.call("BF.EXISTS", "seen", number) != "1":
                reads += 1
            took.append((time.perf_counter() - began) * 1000)
            at_once += reads == 1
    median = statistics.median(took)
    return say("  found after, ms (median)", f"{median:.3f}", f"<= {MARK_VISIBLE_MS:g}",
               median <= MARK_VISIBLE_MS,
               f"{at_once} by the first read; p99 {sorted(took)[pairs * 99 // 100]:.3f}")


PARTS = {"stream": stream, "sync": sync, "visible": visible}

if __name__ == "__main__":
    sys.exit(persist.main(PARTS, __doc__))
