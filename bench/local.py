#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Copies of filters in programs (libbloomery-local): what a look costs, beside
# BF.EXISTS on one connection; how long an acknowledged add needs to a copy; and what
# others wait for while a large copy is loaded under writes. Nothing else should run.
"""Measure copies of filters that stay fresh in a program."""

import concurrent.futures
import socket
import subprocess
import threading
import time

import servers
import tables

MIB = 1 << 20
LOOK_ITEMS = 9_400_000   # at 1 %: 12 MB
LARGE_ITEMS = 60_000_000 # at 1 %: more than 100 MiB
RATE = 10_000
SECONDS = 10

# Each: figure, unit, what is asked.
MARKS = {
    "contains in C, 12 MB": ("ns", "<= 80"),
    "contains_many of 1,000": ("millions a second", ">= 60"),
    "BF.EXISTS, one connection": ("ns", ""),
    "acknowledged until present, 10,000 adds/s: p50": ("ms", ""),
    "acknowledged until present, 10,000 adds/s: p99": ("ms", "<= 5"),
    "load of a large filter under writes": ("s", ""),
    "its size": ("MiB", ""),
    "PING beside it: p99": ("ms", ""),
    "PING beside it: longest": ("ms", "<= 2"),
    "PING without it: longest": ("ms", ""),
}


def measure(build, *words):
    """Run bench/local, and return the last value of each of its figures."""
    done = subprocess.run([build / "bench" / "local", *map(str, words)], check=True,
                          capture_output=True, text=True, timeout=300)
    return {name: float(value) for name, value in
            (line.split() for line in done.stdout.splitlines())}


def fill(server, count):
    """Add item:0, item:1 ... in large commands."""
    step = 5000
    with server.connect() as peer, peer.makefile("rb") as reply:
        peer.settimeout(300)
        for first in range(0, count, step):
            peer.sendall(servers.request(
                "BF.MADD", "k", *(f"item:{i}" for i in range(first, first + step))))
            for _ in range(step + 1):
                reply.readline()


def exists(server, seconds):
    """Return nanoseconds of a BF.EXISTS on one connection that waits."""
    count, end = 0, time.monotonic() + seconds
    with server.connect() as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        question = servers.request("BF.EXISTS", "k", "item:1")
        while time.monotonic() < end:
            peer.sendall(question)
            peer.recv(64)
            count += 1
    return seconds * 1e9 / count


def ping(server, over):
    """Return the sorted milliseconds of PINGs until an event."""
    waits = []
    with server.connect() as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not over.is_set():
            begun = time.monotonic()
            peer.sendall(b"PING\r\n")
            peer.recv(64)
            waits.append((time.monotonic() - begun) * 1000)
            time.sleep(0.0005)
    return sorted(waits)


def write(server, over):
    """Add items, some thousand a second, until an event."""
    number = 0
    with server.connect() as peer:
        while not over.is_set():
            peer.sendall(servers.request(
                "BF.MADD", "k", *(f"more:{number + i}" for i in range(10))))
            peer.recv(4096)
            number += 10
            time.sleep(0.002)


def beside(server, work):
    """Do some work beside PINGs and adds. Return its result, and their waits."""
    over = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        waits = pool.submit(ping, server, over)
        adds = pool.submit(write, server, over)
        try:
            done = work()
        finally:
            over.set()
        adds.result()
        return done, waits.result()


def main():
    """Print the table, and write the figures."""
    parser = servers.arguments(__doc__, "smaller filters: only a test")
    args = parser.parse_args()
    binary = args.build / "bloomery-server"
    shrink = 100 if args.quick else 1
    got = {}
    with servers.Bloomery(binary) as server:
        url = f"redis://127.0.0.1:{server.port}"
        items = LOOK_ITEMS // shrink
        server.call("BF.RESERVE", "k", "0.01", str(items))
        fill(server, items // 10)
        looks = measure(args.build, "look", url, "k")
        got["contains in C, 12 MB"] = looks["contains-ns"]
        got["contains_many of 1,000"] = looks["many-millions"]
        got["BF.EXISTS, one connection"] = exists(server, 2)
        server.call("BF.RESERVE", "fresh", "0.001", "1000000")
        fresh = measure(args.build, "fresh", url, "fresh", RATE,
                        SECONDS if not args.quick else 1)
        for part in "p50", "p99":
            got[f"acknowledged until present, 10,000 adds/s: {part}"] = \
                fresh[f"{part}-ms"]
    with servers.Bloomery(binary, servers.LARGE_FILTERS) as server:
        url = f"redis://127.0.0.1:{server.port}"
        items = LARGE_ITEMS // shrink
        server.call("BF.RESERVE", "k", "0.01", str(items))
        fill(server, items // 50)
        quiet = beside(server, lambda: time.sleep(2))[1]
        load, waits = beside(server, lambda: measure(args.build, "load", url, "k"))
        got["load of a large filter under writes"] = load["load-s"]
        got["its size"] = load["bytes"] / MIB
        got["PING beside it: p99"] = waits[len(waits) * 99 // 100]
        got["PING beside it: longest"] = waits[-1]
        got["PING without it: longest"] = quiet[-1]
    shown = tables.table("local", "Copies of filters in programs",
                         ["", "measured", "unit", "asked"],
                         [[name, round(got[name], 2), unit, asked]
                          for name, (unit, asked) in MARKS.items()])
    print(tables.text(shown))
    if args.json:
        tables.save(args.json, [shown])


if __name__ == "__main__":
    main()
