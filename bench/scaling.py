#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures the gain from more loops on more CPUs. bench/scale measures inside one
# process, without a CPU for a client. If there are CPUs for both loops and load,
# the script also measures real sockets. Ratios are relative to one loop. The
# control is the gain of as many threads that share nothing, on the same machine at
# the same time.
"""Measure how the server scales with its loops."""

import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import time

import compare
import servers

TIMEOUT_SECONDS = 300
UNDISTURBED_ROUNDS = 5  # ROUNDS_MIN of bench/scale.c
MARK_TWO = 1.7       # two loops, pipeline 16
MARK_EACH = 0.8      # of so many loops: reads, and many filters
MARK_ADD_ONE = 4.0   # eight loops that add to one filter
SOCKET_CPUS = 5      # from here on a client has CPUs of its own
LOOPS = (1, 2, 4, 8, 16)
CONNECTIONS = 32     # of each load generator
ONE = ("BF.RESERVE", "bench", "0.01", "100000")
ITEMS = 90000

# name: (options of load, adds to one filter)
WORKLOADS = {
    "exists-one": (["--command", "exists", "--range", str(2 * ITEMS)], False),
    "add-one": (["--command", "add", "--range", str(ITEMS)], True),
    "exists-many": (["--command", "exists", "--keys", "10000", "--key", "many",
                     "--range", "100"], False),
    "add-many": (["--command", "add", "--keys", "10000", "--key", "many",
                  "--range", "50"], False),
}


def inside(build, quick=False, threads=None):
    """Run the driver, which needs no sockets; return a list of dicts."""
    words = [str(build / "bench" / "scale"),
             "--limit-ms", "200" if quick else "2000"]
    if threads:
        words += ["--threads", str(threads)]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.PIPE, text=True,
                          timeout=TIMEOUT_SECONDS)
    if done.returncode != 0:
        raise SystemExit(f"scale: {done.stderr.strip()}")
    rows = []
    for line in done.stdout.splitlines():
        row = dict(word.split("=", 1) for word in line.split())
        for key, value in row.items():
            if key not in ("workload", "locks"):
                row[key] = float(value) if "." in value else int(value)
        rows.append(row)
    return rows


def inside_mark(row):
    """Return the least ratio, relative to the control, or None."""
    return MARK_TWO if row["threads"] == 2 and row["pipeline"] == 16 else None


def socket_mark(loops, adds_to_one):
    """Return the least ratio to one loop, or None."""
    if loops == 1:
        return None
    if adds_to_one:
        return MARK_ADD_ONE if loops == 8 else None
    return MARK_EACH * loops if loops <= 8 else None


class Scaled(servers.Bloomery):
    """A server with some loops, each on a CPU of its own."""

    def __init__(self, build, cpus):
        super().__init__(build / "bloomery-server",
                         ["--threads", str(len(cpus)), "--save", ""],
                         wrapper=taskset(cpus))


def taskset(cpus):
    """Return the command prefix that pins a program."""
    return ["taskset", "-c", ",".join(map(str, cpus))]


def fill(load, server):
    """Make the filters and add all items."""
    if server.call(*ONE) != "+OK":
        raise SystemExit("BF.RESERVE failed")
    load.run(server, ["--command", "add", "--pipeline", "100", "--sequential",
                      "--range", str(ITEMS), "--connections", "1",
                      "--requests", str(ITEMS)])
    load.run(server, WORKLOADS["add-many"][0] +
             ["--pipeline", "100", "--requests", "1000000"])


def window(loads, server, options, seconds):
    """Run all loads at once; return requests a second and CPUs used."""
    with concurrent.futures.ThreadPoolExecutor(len(loads)) as pool:
        parts = list(pool.map(
            lambda pair: pair[1].run(server, options + [
                "--pipeline", "16", "--connections", str(CONNECTIONS),
                "--seed", str(pair[0] + 1), "--seconds", str(seconds),
                "--warmup", str(seconds / 4)]), enumerate(loads)))
    return (sum(float(part["rps"]) for part in parts),
            statistics.median(float(part["server_cpu"]) for part in parts))


def sockets(build, quick=False, loops=None):
    """Measure servers of some loops with real sockets; return dicts."""
    cpus = sorted(os.sched_getaffinity(0))
    loops = loops or [n for n in LOOPS if 2 * n < len(cpus) or n == 1]
    seconds = 0.3 if quick else 1.5
    rows = []
    base = {}
    for count in loops:
        own, others = cpus[:count], cpus[count:] or cpus
        loads = [servers.Load(build, wrapper=taskset([cpu]))
                 for cpu in others[:2 * count]]
        with Scaled(build, own) as server:
            fill(loads[0], server)
            for name, (options, adds_to_one) in WORKLOADS.items():
                runs = [window(loads, server, options, seconds)
                        for _ in range(1 if quick else 3)]
                rate, used = map(statistics.median, zip(*runs))
                base.setdefault(name, rate)
                rows.append({"workload": name, "loops": count, "rate": rate,
                             "cpus": used, "loads": len(loads),
                             "ratio": rate / base[name],
                             "mark": socket_mark(count, adds_to_one)})
    return rows


def verdict(figure, mark, disturbed=False):
    """Return the mark and whether it is met, as text."""
    if mark is None:
        return ""
    missed = "disturbed" if disturbed else "MISSED"
    return f"{'>=':>5} {mark:.1f} {'met' if figure >= mark else missed}"


def is_disturbed(row):
    """Return whether too few rounds of the driver were undisturbed."""
    return row["undisturbed"] < UNDISTURBED_ROUNDS


def print_inside(rows):
    """Print the table of the driver; return whether its marks are met."""
    met = True
    print("inside one process, without sockets (one filter of a million items,"
          " one for each thread, 10,000)")
    print(f"{'workload':<13}{'pipeline':>9}{'threads':>9}{'commands/s':>13}"
          f"{'cpu ns':>8}{'ratio':>7}{'control':>8}{'relative':>9}")
    for row in rows:
        mark = inside_mark(row)
        met = met and (mark is None or row["relative"] >= mark)
        threads = row["threads"] if row["locks"] == "yes" else "no locks"
        print(f"{row['workload']:<13}{row['pipeline']:>9}{threads:>9}"
              f"{row['rate']:>13,.0f}{row['cpu_ns']:>8.1f}{row['ratio']:>7.2f}"
              f"{row['control']:>8.2f}{row['relative']:>9.2f}"
              f"{verdict(row['relative'], mark, is_disturbed(row))}".rstrip())
    if any(map(is_disturbed, rows)):
        print("others used these CPUs too: who waits for a lock may have "
              "waited for them")
    return met


def print_sockets(rows):
    """Print the table of the servers; return whether its marks are met."""
    met = True
    print("real sockets, pipeline 16")
    print(f"{'workload':<13}{'loops':>6}{'loads':>6}{'commands/s':>12}"
          f"{'CPUs':>7}{'ratio':>7}")
    for row in rows:
        met = met and (row["mark"] is None or row["ratio"] >= row["mark"])
        print(f"{row['workload']:<13}{row['loops']:>6}{row['loads']:>6}"
              f"{row['rate']:>12,.0f}{row['cpus']:>7.2f}{row['ratio']:>7.2f}"
              f"{verdict(row['ratio'], row['mark'])}".rstrip())
    return met


def parse_args():
    """Return the command line."""
    parser = servers.arguments(__doc__, "a smoke test, not a figure")
    parser.add_argument("--threads", type=int,
                        help="of the driver, at most (default: the CPUs)")
    parser.add_argument("--loops", type=int, action="append",
                        help="measure real sockets with this number of loops "
                             "on any machine (may be repeated)")
    parser.add_argument("--check", action="store_true",
                        help="exit 1 if a mark is missed")
    return parser.parse_args()


def main():
    args = parse_args()
    servers.exit_on_sigterm()
    build = args.build.resolve()
    began = time.monotonic()
    measured = {"machine": compare.machine(),
                "inside": inside(build, args.quick, args.threads),
                "sockets": []}
    print(measured["machine"])
    met = print_inside(measured["inside"])
    if args.loops or len(os.sched_getaffinity(0)) >= SOCKET_CPUS:
        measured["sockets"] = sockets(build, args.quick, args.loops)
        met = print_sockets(measured["sockets"]) and met
    if args.json:
        args.json.write_text(json.dumps(measured, indent=1) + "\n",
                             encoding="ascii")
    print(f"{time.monotonic() - began:.0f} s")
    return 0 if met or not args.check else 1


if __name__ == "__main__":
    sys.exit(main())
