#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Copies of filters in programs (libbloomery-local): what a look costs, beside
# BF.EXISTS on one connection; how long an acknowledged add needs to a copy, and to one
# of a thousand; what they cost the server; how soon they are fresh after a restart; what
# memory they take; and what others wait for while a large copy is loaded under writes.
# Nothing else should run. --only runs some of the parts, --quiet-seconds 600 asks a copy
# so long.
"""Measure copies of filters that stay fresh in a program."""

import concurrent.futures
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

import servers
import tables

MIB = 1 << 20
LOOK_ITEMS = 9_400_000   # at 1 %: 12 MB
LARGE_ITEMS = 112_000_000 # at 1 %: 128 MiB
RATE = 10_000
SECONDS = 10

COPIES, COPIES_RATE = 1000, 1000
RESTARTED = 200
PYTHON_ITEMS, PYTHON_MANY = 100_000, 1000

# Each: figure, unit, what is asked.
MARKS = {
    "contains in C, 12 MB": ("ns", "<= 80"),
    "contains_many of 1,000": ("millions a second", ">= 60"),
    "BF.EXISTS, one connection": ("ns", ""),
    "Python: in": ("ns", "<= 200"),
    "Python: in, beside a busy thread": ("ns", "<= 400"),
    "Python: contains_many of 1,000": ("millions a second", ">= 20"),
    "acknowledged until present, 10,000 adds/s: p50": ("ms", ""),
    "acknowledged until present, 10,000 adds/s: p99": ("ms", "<= 5"),
    "1,000 copies, 1,000 adds/s: reached": ("adds a second", ""),
    "1,000 copies, 1,000 adds/s: the server": ("cores", "<= 0.4"),
    "1,000 copies, 1,000 adds/s: sent for an item": ("bytes a copy", "<= 20"),
    "1,000 copies, 1,000 adds/s: p99 until present": ("ms", "<= 60"),
    "200 copies of 12 MB fresh after a restart": ("s", "<= 20"),
    "memory of a copy, of the filter's": ("%", "<= 101"),
    "memory while it is loaded again": ("%", "<= 202"),
    "load of a large filter under writes": ("s", ""),
    "its size": ("MiB", ""),
    "PING beside it: p99": ("ms", ""),
    "PING beside it: longest": ("ms", "<= 2"),
    "PING beside it: the asking process woke late by": ("ms", ""),
    "PING without it: longest": ("ms", ""),
    "unknown in quiet minutes": ("of all answers", "0"),
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


def ended_pulse(child):
    """End bench/pulse. Return its lines, each as a dict."""
    servers.end(child)
    return [dict(word.split("=", 1) for word in line.split())
            for line in child.stdout]


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


def beside(args, server, work):
    """Do some work beside adds and PINGs, which another process sends. Return the
    result, and the milliseconds of PINGs: p99, longest, and how late that process
    woke up."""
    over = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as pool, subprocess.Popen(
            [args.build / "bench" / "pulse", str(server.port), "60", "500"],
            stdout=subprocess.PIPE, text=True) as pulse:
        adds = pool.submit(write, server, over)
        try:
            done = work()
        finally:
            over.set()
            *pings, late = ended_pulse(pulse)
        adds.result()
    return done, [max(float(line[name]) for line in lines) / 1000
                  for name, lines in (("p99_us", pings), ("max_us", pings),
                                      ("late_max_us", [late]))]


def look_in_python(url):
    """Print what looks cost in Python, as measure() reads it."""
    from bloomery import LocalFilter  # pylint: disable=import-outside-toplevel
    with LocalFilter(url, "k") as seen:
        items = [f"other:{i}" for i in range(PYTHON_ITEMS)]
        parts = [items[i:i + PYTHON_MANY]
                 for i in range(0, PYTHON_ITEMS, PYTHON_MANY)]

        def each():
            begun = time.thread_time()
            for item in items:
                item in seen  # pylint: disable=pointless-statement
            return (time.thread_time() - begun) * 1e9 / len(items)

        def busy():
            while not over:
                sum(range(1000))

        def beside():
            # The other thread has the lock of the interpreter for the half of the
            # time: the wall clock counts, and half of it is the other's.
            begun = time.monotonic()
            for item in items:
                item in seen  # pylint: disable=pointless-statement
            return (time.monotonic() - begun) * 1e9 / len(items) / 2

        print("in-ns", min(each() for _ in range(5)))
        begun = time.thread_time()
        for part in parts:
            seen.contains_many(part)
        print("many-millions",
              PYTHON_ITEMS / (time.thread_time() - begun) / 1e6)
        over = False
        other = threading.Thread(target=busy)
        other.start()
        print("beside-ns", min(beside() for _ in range(5)))
        over = True
        other.join()


def python(build, url):
    """Run look_in_python() with the extension of the build."""
    done = subprocess.run(
        [sys.executable, __file__, "--look-in-python", url], check=True,
        capture_output=True, text=True, timeout=300,
        env=dict(os.environ, PYTHONPATH=str(build / "python")))
    return {name: float(value) for name, value in
            (line.split() for line in done.stdout.splitlines())}


class Many:
    """Copies in another process. It speaks by lines."""

    def __init__(self, build, *words):
        self.child = subprocess.Popen(
            [build / "bench" / "local", *map(str, words)], text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        servers.end(self.child)
        self.child.stdin.close()
        self.child.stdout.close()

    def wait(self, name):
        """Return the value of the figure, when it is printed."""
        for line in self.child.stdout:
            if line.split()[0] == name:
                return float(line.split()[1])
        raise SystemExit("bench/local has ended")


def spent(server):
    """Return the server's CPU seconds and the bytes that it has sent."""
    text = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text("ascii")
    ticks = sum(map(int, text.rsplit(") ", 1)[1].split()[11:13]))
    sent = next(line for line in server.info("stats").splitlines()
                if line.startswith("total_net_output_bytes:"))
    return ticks / os.sysconf("SC_CLK_TCK"), int(sent.split(":")[1])


# ---- parts -------------------------------------------------------------------

def looks(args, shrink, got):
    """One copy of 12 MB, in C and in Python."""
    with servers.Bloomery(args.build / "bloomery-server") as server:
        url = f"redis://127.0.0.1:{server.port}"
        items = LOOK_ITEMS // shrink
        server.call("BF.RESERVE", "k", "0.01", str(items))
        fill(server, items // 10)
        each = measure(args.build, "look", url, "k")
        got["contains in C, 12 MB"] = each["contains-ns"]
        got["contains_many of 1,000"] = each["many-millions"]
        got["BF.EXISTS, one connection"] = exists(server, 2)
        if (args.build / "python" / "bloomery" / "_local.abi3.so").exists():
            each = python(args.build, url)
            got["Python: in"] = each["in-ns"]
            got["Python: in, beside a busy thread"] = each["beside-ns"]
            got["Python: contains_many of 1,000"] = each["many-millions"]


def fresh(args, shrink, got):
    """From an acknowledged add to the copy."""
    with servers.Bloomery(args.build / "bloomery-server") as server:
        url = f"redis://127.0.0.1:{server.port}"
        server.call("BF.RESERVE", "fresh", "0.001", "1000000")
        each = measure(args.build, "fresh", url, "fresh", RATE,
                       SECONDS if shrink == 1 else 1)
        for part in "p50", "p99":
            got[f"acknowledged until present, 10,000 adds/s: {part}"] = \
                each[f"{part}-ms"]


def many(args, shrink, got):
    """A thousand copies, which hear of a thousand adds a second."""
    count = COPIES // shrink
    with servers.Bloomery(args.build / "bloomery-server") as server:
        server.call("BF.RESERVE", "k", "0.001", "1000000")
        with Many(args.build, "many", f"redis://127.0.0.1:{server.port}", "k",
                  count, COPIES_RATE, SECONDS if shrink == 1 else 1) as copies:
            copies.wait("ready")
            cpu, sent = spent(server)
            begun = time.monotonic()
            adds = copies.wait("adds")
            took = time.monotonic() - begun
            cpu, sent = (now - then for now, then in zip(spent(server), (cpu, sent)))
            mark = "1,000 copies, 1,000 adds/s: "
            got[mark + "reached"] = adds / took
            got[mark + "the server"] = cpu / took
            got[mark + "sent for an item"] = sent / adds / count
            got[mark + "p99 until present"] = copies.wait("p99-ms")


def restart(args, shrink, got):
    """Many copies of one filter come back together."""
    with servers.Bloomery(args.build / "bloomery-server",
                          ("--appendonly", "yes")) as server:
        items = LOOK_ITEMS // shrink
        server.call("BF.RESERVE", "k", "0.01", str(items))
        fill(server, items // 10)
        with Many(args.build, "again", f"redis://127.0.0.1:{server.port}", "k",
                  max(2, RESTARTED // shrink)) as copies:
            copies.wait("ready")
            servers.end(server.process)
            server.start()
            begun = time.monotonic()
            copies.child.stdin.write("go\n")
            copies.wait("again")
            got["200 copies of 12 MB fresh after a restart"] = \
                time.monotonic() - begun


def memory(args, shrink, got):
    """What a copy takes, alone and while it is loaded again."""
    with servers.Bloomery(args.build / "bloomery-server",
                          servers.LARGE_FILTERS) as server:
        items = LARGE_ITEMS // shrink
        server.call("BF.RESERVE", "k", "0.01", str(items))
        fill(server, items // 50)
        each = measure(args.build, "memory", f"redis://127.0.0.1:{server.port}", "k")
        got["memory of a copy, of the filter's"] = each["copy-ratio"] * 100
        got["memory while it is loaded again"] = each["load-ratio"] * 100


def load(args, shrink, got):
    """A large copy is loaded under writes, while others wait."""
    with servers.Bloomery(args.build / "bloomery-server",
                          servers.LARGE_FILTERS) as server:
        url = f"redis://127.0.0.1:{server.port}"
        items = LARGE_ITEMS // shrink
        server.call("BF.RESERVE", "k", "0.01", str(items))
        fill(server, items // 50)
        quiet = beside(args, server, lambda: time.sleep(2))[1]
        each, waits = beside(args, server,
                             lambda: measure(args.build, "load", url, "k"))
        got["load of a large filter under writes"] = each["load-s"]
        got["its size"] = each["bytes"] / MIB
        (got["PING beside it: p99"], got["PING beside it: longest"],
         got["PING beside it: the asking process woke late by"]) = waits
        got["PING without it: longest"] = quiet[1]


def quiet_minutes(args, _shrink, got):
    """Ask a copy for a while."""
    with servers.Bloomery(args.build / "bloomery-server") as server:
        server.call("BF.RESERVE", "k", "0.001", "1000000")
        done = subprocess.run(
            [args.build / "bench" / "local", "quiet",
             f"redis://127.0.0.1:{server.port}", "k", str(args.quiet_seconds)],
            check=True, capture_output=True, text=True)
        got["unknown in quiet minutes"] = float(done.stdout.split()[3])


PARTS = {part.__name__: part for part in (looks, fresh, many, restart, memory, load,
                                          quiet_minutes)}


def main():
    """Print the table, and write the figures."""
    if sys.argv[1:2] == ["--look-in-python"]:
        look_in_python(sys.argv[2])
        return
    parser = servers.arguments(__doc__, "smaller filters: only a test")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quiet-seconds", type=int, default=10)
    args = parser.parse_args()
    servers.exit_on_sigterm()
    got = {}
    for part in args.only:
        PARTS[part](args, 100 if args.quick else 1, got)
    shown = tables.table("local", "Copies of filters in programs",
                         ["", "measured", "unit", "asked"],
                         [[name, round(got[name], 2), unit, asked]
                          for name, (unit, asked) in MARKS.items() if name in got])
    print(tables.text(shown))
    if args.json:
        tables.save(args.json, [shown])


if __name__ == "__main__":
    main()
