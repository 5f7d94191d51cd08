#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures how a BGSAVE affects clients: a filter of 1 GiB whose pages are all in
# use, a PING and a BF.ADD of a random item every 100 us on both loops, and a save
# in the middle. The script assigns each reply to the 10 ms in which its command
# was sent. The thread that saves shares the processors with the loops and with
# the measuring program.
"""Measure the latency of clients while the server writes a snapshot."""

import collections
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import servers
import tables
from persist import Connection, Durable, MIB, longest_hold_ms

BIN_MS = 10
INTERVAL_US = 100
PULSE_SECONDS = 120  # at most
PINGS = 2  # connections 0 and 1 of pulse ping, the others add
KEY, PREFIX = "big00000000", "big"  # the key is what pulse makes of its prefix


def parse_args():
    """Return the command line."""
    parser = servers.arguments(__doc__, "64 MiB: a smoke test, no figures")
    parser.add_argument("--baseline", type=pathlib.Path, default=None,
                        help="the build of an older server, for the plot")
    parser.add_argument("--dir", type=pathlib.Path, default=None,
                        help="where the data go (default: the build)")
    return parser.parse_args()


def fill(load, server, capacity):
    """Make the filter and touch all its pages."""
    answer = server.call("BF.RESERVE", KEY, "0.01", str(capacity))
    if answer != "+OK":
        raise SystemExit(f"BF.RESERVE: {answer}")
    items = capacity // 100
    load.run(server, ["--command", "madd", "--items", "1000", "--pipeline",
                      "1", "--connections", "8", "--key", KEY, "--range",
                      str(2**32 - 1), "--requests", str(items // 1000)])


def save(server):
    """Save in the background; return when it was asked for, when the reply came
    and when it ended, and the longest time under a lock or in a fork, in ms."""
    with Connection(server) as peer:
        peer.call("CONFIG", "RESETSTAT")
        began = time.monotonic()
        peer.call("BGSAVE")
        replied = time.monotonic()
        peer.wait("rdb_bgsave_in_progress", "0")
        ended = time.monotonic()
        if peer.info("rdb_last_bgsave_status") != "ok":
            raise SystemExit("BGSAVE failed")
        return began, replied, ended, max(
            longest_hold_ms(peer), int(peer.info("latest_fork_usec")) / 1000)


def watch(args, server, file, around):
    """Send commands before, during and after a save; return the save's times."""
    words = [args.build / "bench" / "pulse", server.port, PULSE_SECONDS,
             INTERVAL_US, 1, PREFIX, file]
    with subprocess.Popen([str(word) for word in words], text=True,
                          stdout=subprocess.PIPE) as pulse:
        try:
            time.sleep(around)
            times = save(server)
            time.sleep(around)
        finally:
            pulse.terminate()
        said = pulse.communicate(timeout=servers.STOP_SECONDS)[0]
    found = re.search(r"^late_p99_us=\S+ late_max_us=(\S+)$", said,
                      re.MULTILINE)
    if found is None or re.search(r"errors=[^0]", said):
        raise SystemExit(f"pulse failed: {said}")
    return times, float(found.group(1))


def read(file, began):
    """Return tuples (seconds since the save, is an add, microseconds)."""
    with open(file, encoding="ascii") as samples:
        for line in samples:
            index, sent, took = map(int, line.split())
            yield sent / 1e9 - began, index >= PINGS, took / 1e3


def series(samples, first, last):
    """Return rows of time, median and maximum of pings, then of adds."""
    bins = collections.defaultdict(lambda: ([], []))
    for at, is_add, took in samples:
        if first <= at < last:
            bins[int((at - first) * 1000 // BIN_MS)][is_add].append(took)
    rows = []
    for number in sorted(bins):
        cells = [round(first + (number + 0.5) * BIN_MS / 1000, 4)]
        for values in bins[number]:
            cells += ([round(statistics.median(values), 1), max(values)]
                      if values else [None, None])
        rows.append(cells)
    return rows


def phases(samples, ended):
    """Return the table's rows: latencies before, during and after the save."""
    names = {"before": lambda at: at < 0, "during": lambda at: 0 <= at < ended,
             "after": lambda at: at >= ended}
    rows = []
    for is_add, text in ((False, "PING"), (True, "BF.ADD")):
        for name, inside in names.items():
            values = sorted(took for at, add, took in samples
                            if add == is_add and inside(at))
            if values:
                rows.append([text, name, len(values),
                             statistics.median(values),
                             values[int(len(values) * 0.99)],
                             values[int(len(values) * 0.999)], values[-1]])
    return rows


def size_text(data):
    """Return the size of the snapshot."""
    mib = (data / "bloomery.snapshot").stat().st_size / MIB
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib:.0f} MiB"


def measure(args, build, data, name):
    """Return the tables."""
    capacity = 52_600_000 if args.quick else 842_000_000
    around = 0.5 if args.quick else 1
    file = data / "samples"
    load = servers.Load(args.build)
    with Durable(build, data, threads=2,
                 options=servers.LARGE_FILTERS) as server:
        fill(load, server, capacity)
        # Wait until the kernel and the disk are idle again.
        subprocess.run(["sync"], check=True)
        time.sleep(1)
        (began, replied, ended, hold_ms), late_us = watch(
            args, server, file, around)
    samples = list(read(file, began))
    ended -= began
    result = tables.table(
        name, f"What clients saw of a BGSAVE of {size_text(data)}, µs",
        ["command", "when", "replies", "median", "99 %", "99.9 %", "longest"],
        phases(samples, ended),
        [f"The longest time under a lock was {hold_ms:.2f} ms of CPU time or "
         "less, the reply to BGSAVE came after "
         f"{(replied - began) * 1000:.1f} ms, and the snapshot was done after "
         f"{ended:.1f} s.",
         "The measuring program itself woke up too late by up to "
         f"{late_us / 1000:.1f} ms: what took no longer was held up by the "
         "machine, not by the server.",
         f"A PING and a BF.ADD every {INTERVAL_US} µs on each of two loops."])
    seen = {(row[0], row[1]): row for row in result["rows"]}
    quiet, busy = (seen["BF.ADD", when] for when in ("before", "during"))
    result["says"].append(
        "A save needs no fork and no second copy of the memory. "
        f"While a snapshot of {size_text(data)} is written, a BF.ADD takes "
        f"{busy[3]:.0f} µs in the median instead of {quiet[3]:.0f}, and "
        f"{busy[4] / 1000:.1f} ms instead of {quiet[4] / 1000:.1f} for the "
        f"slowest of a hundred.")
    result["window"] = {"begins": 0, "ends": round(ended, 3),
                        "size": size_text(data)}
    rows = series(samples, -around, ended + around)
    return [result, tables.table(
        f"{name}-series", f"Latency in steps of {BIN_MS} ms, µs",
        ["s", "PING median", "PING longest", "BF.ADD median",
         "BF.ADD longest"], rows, hidden=True)]


def main():
    args = parse_args()
    servers.exit_on_sigterm()
    args.build = args.build.resolve()
    found = []
    for name, build in (("bgsave", args.build),
                        ("bgsave-before", args.baseline)):
        if build is not None:
            with tempfile.TemporaryDirectory(
                    prefix="bench-", dir=args.dir or args.build) as folder:
                found += measure(args, build.resolve(), pathlib.Path(folder),
                                 name)
            if name != "bgsave":
                found[-2].update(hidden=True, says=[])
    print(tables.text(found[0]) + "\n", flush=True)
    tables.save(args.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
