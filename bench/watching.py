#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures what it costs the server to be watched: the CPU time of one scrape and of
# one document of the status page, with many small filters in it, and how long a
# client waits meanwhile. The CPU time is that of all threads (schedstat), without
# what an idle server uses in the same time.
"""Measure the cost of /metrics and /status.json."""

import argparse
import http.client
import statistics
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from lib import servers  # noqa: E402

# Longer than an answer is kept, so that each request makes a new one.
PAUSES = {"/metrics": 0.12, "/status.json": 0.52}


def cpu_ns(pid):
    """Return the CPU time of all threads of a process."""
    return sum(int((task / "schedstat").read_text().split()[0])
               for task in Path("/proc/%d/task" % pid).iterdir())


def fill(server, filters):
    """Make the filters, of 100 items each, and use the commands that a busy
    server has seen."""
    with server.conn() as conn:
        for start in range(0, filters, 10000):
            conn.pipeline([("BF.ADD", "user:%d" % i, "x")
                           for i in range(start, min(filters, start + 10000))])
        for command in ("BF.MADD", "BF.EXISTS", "BF.MEXISTS", "BF.INFO", "BF.CARD",
                        "BF.STATS", "TTL", "EXISTS", "TYPE"):
            for i in range(100):
                words = [command, "user:%d" % i]
                conn.call(*words, *(["y"] if command in (
                    "BF.MADD", "BF.EXISTS", "BF.MEXISTS") else []))


def ask(port, path):
    """Return the length of an answer."""
    conn = http.client.HTTPConnection("127.0.0.1", port)
    conn.request("GET", path)
    reply = conn.getresponse()
    length = len(reply.read())
    conn.close()
    assert reply.status == 200, reply.status
    return length


def measure(server, port, path, times):
    """Return microseconds of CPU per answer, of each of `times`, and its
    length."""
    pause, costs, length = PAUSES[path], [], 0
    for _ in range(times):
        before = cpu_ns(server.pid)
        time.sleep(pause)
        idle = cpu_ns(server.pid) - before
        before = cpu_ns(server.pid)
        length = ask(port, path)
        time.sleep(pause)
        costs.append((cpu_ns(server.pid) - before - idle) / 1000)
    return costs, length


def waits(server, port, path, seconds):
    """Return the milliseconds that the slowest of many PINGs took while the
    answer was asked for over and over."""
    ends, slowest = threading.Event(), [0.0]

    def ping():
        with server.conn() as conn:
            while not ends.is_set():
                began = time.perf_counter()
                conn.call("PING")
                slowest.append(time.perf_counter() - began)

    thread = threading.Thread(target=ping)
    thread.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if path:
            ask(port, path)
        time.sleep(PAUSES.get(path, 0.1))
    ends.set()
    thread.join()
    return sorted(1000 * s for s in slowest)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filters", type=int, default=1000000)
    parser.add_argument("--times", type=int, default=40)
    args = parser.parse_args()
    port = servers.free_port()
    server = servers.Server("--metrics-port", port, "--appendonly", "no",
                            "--metrics-show-keys", "yes", threads=2)
    try:
        fill(server, args.filters)
        print("%d filters; CPU of the server, microseconds" % args.filters)
        for path in PAUSES:
            costs, length = measure(server, port, path, args.times)
            print("%-13s median %.0f, highest %.0f; %d bytes" % (
                path, statistics.median(costs), max(costs), length))
        for path in ("", *PAUSES):
            took = waits(server, port, path, 5)
            print("PING beside %-13s median %.3f ms, 99.9 %% %.3f, slowest %.3f" % (
                path or "nothing", statistics.median(took),
                took[len(took) * 999 // 1000], took[-1]))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
