#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures bloomery-server against the null server: CPU time per command, as
# the kernel accounts it, in interleaved pairs on the same machine in the same
# minute. What counts is the ratio; the nanoseconds are this machine's. Both
# servers live through the whole run, one works at a time, on a CPU of its own
# beside the load generator's. The filter is cache-resident and never full.
"""Compare the server's CPU time per command with the null server's."""

import argparse
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import servers

CAPACITY = 100000
ITEMS = 90000  # in the filter; EXISTS asks for as many again that are not
FILTER = ("BF.RESERVE", "bench", "0.01", str(CAPACITY))
CONFIDENCE = 0.95

# name: (options of load, the mark: at most this many times the null server)
WORKLOADS = {
    "add-p16": (["--command", "add", "--pipeline", "16"], 1.3),
    "exists-p16": (["--command", "exists", "--pipeline", "16"], 1.3),
    "add-p100": (["--command", "add", "--pipeline", "100"], 2.0),
    "exists-p100": (["--command", "exists", "--pipeline", "100"], 2.0),
    "madd100-p16": (["--command", "madd", "--pipeline", "16"], 2.5),
    "madd100-p1": (["--command", "madd", "--pipeline", "1"], 2.5),
    "mexists100-p16": (["--command", "mexists", "--pipeline", "16"], 2.5),
}


def parse_args():
    """Return the command line; what is unknown is the server's."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Options that are not listed are passed to the server.")
    parser.add_argument("--server", default=None, metavar="PATH",
                        help="server to measure (default: the build's "
                             "bloomery-server; 'null': a second null server, "
                             "which shows the noise)")
    parser.add_argument("--build", type=pathlib.Path,
                        default=servers.DEFAULT_BUILD,
                        help="folder of bench/null and bench/load")
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=1.0,
                        help="of one measurement")
    parser.add_argument("--quick", action="store_true",
                        help="3 pairs of 0.3 seconds")
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--depth", type=int, default=1,
                        help="batches in flight on a connection")
    parser.add_argument("--unix", action="store_true",
                        help="over a unix socket instead of TCP")
    parser.add_argument("--workload", action="append", choices=WORKLOADS,
                        help="only this one (may be repeated)")
    parser.add_argument("--check", action="store_true",
                        help="exit 1 if a median is above its mark")
    args, server_options = parser.parse_known_args()
    if args.quick:
        args.pairs, args.seconds = 3, 0.3
    if args.pairs < 1:
        parser.error("--pairs: at least 1")
    return args, server_options


def pins():
    """Return the command prefixes that pin the server and the load."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        print("one CPU only: nothing is pinned, expect noise")
        return [], []
    return (["taskset", "-c", str(cpus[0])], ["taskset", "-c", str(cpus[1])])


def interval(values):
    """Return a distribution-free interval of the median.

    Between the k-th smallest and the k-th largest value, with the largest k
    whose coverage, by the binomial distribution, is still CONFIDENCE; with
    fewer than six values that is the whole range.
    """
    ordered = sorted(values)
    count = len(ordered)
    outside = 0.0
    rank = 0
    while rank < count // 2:
        outside += 2 * math.comb(count, rank) / 2 ** count
        if outside > 1 - CONFIDENCE:
            break
        rank += 1
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[count - rank]


def load_options(args, name):
    """Return the options of the load generator for one workload."""
    options, _ = WORKLOADS[name]
    asks = "exists" in options or "mexists" in options
    return options + [
        "--connections", str(args.connections), "--depth", str(args.depth),
        "--range", str(2 * ITEMS if asks else ITEMS),
        "--seconds", str(args.seconds),
        "--warmup", str(args.seconds / 5)]


def prepare(load, server):
    """Make the filter and add all its items, in order."""
    answer = server.call(*FILTER)
    if answer != "+OK":
        raise SystemExit(f"{server.name}: BF.RESERVE: {answer}")
    load.run(server, ["--command", "add", "--pipeline", "100",
                      "--sequential", "--range", str(ITEMS),
                      "--connections", "1", "--requests", str(ITEMS)])


def measure(args, load, pair, name):
    """Return one list of results for each of the two servers."""
    options = load_options(args, name)
    results = ([], [])
    for number in range(args.pairs):
        # Who comes first alternates, so that a trend favours neither.
        for index in ((0, 1) if number % 2 == 0 else (1, 0)):
            results[index].append(
                load.run(pair[index], options + ["--seed", str(number + 1)]))
    return results


def report(name, results):
    """Print a line of the table; return whether the mark is met."""
    null_ns, server_ns = (
        [float(result["server_cpu_ns"]) for result in side]
        for side in results)
    ratios = [b / a for a, b in zip(null_ns, server_ns)]
    low, high = interval(ratios)
    ratio = statistics.median(ratios)
    mark = WORKLOADS[name][1]
    # The share of the time in which a server ran or waited for its CPU. Below
    # about 0.9 it also slept, and going to sleep and waking up are in the ns.
    busy = min(float(result["server_cpu"]) + float(result["server_wait"])
               for side in results for result in side)
    client = statistics.median(
        float(result["client_cpu_ns"]) for result in results[1])
    print(f"{name:<15}{statistics.median(null_ns):>10.1f}"
          f"{statistics.median(server_ns):>10.1f}{ratio:>8.3f}"
          f"{f'{low:.3f}..{high:.3f}':>16}{mark:>6.2f}"
          f"{'met' if ratio <= mark else 'MISSED':>8}"
          f"{busy:>7.2f}{client:>10.1f}", flush=True)
    return ratio <= mark


def machine():
    """Return what figures belong to: machine, commit, date."""
    model = platform.machine()
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    commit = subprocess.run(
        ["git", "-C", str(servers.ROOT), "describe", "--always", "--dirty"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        check=False).stdout.strip()
    return (f"machine: {model}, {os.cpu_count()} CPUs, Linux "
            f"{platform.release()}; commit {commit or 'unknown'}; "
            f"{time.strftime('%Y-%m-%d')}")


def describe(args):
    """Print what the figures belong to."""
    print(machine())
    print(f"load: {args.connections} connections, depth {args.depth}, "
          f"{'unix socket' if args.unix else 'TCP loopback'}; "
          f"{args.pairs} pairs of {args.seconds:g} s")
    print(f"{'workload':<15}{'null ns':>10}{'server ns':>10}{'ratio':>8}"
          f"{'interval':>16}{'mark':>6}{'':>8}{'busy':>7}{'client ns':>10}")


def main():
    args, server_options = parse_args()
    servers.exit_on_sigterm()
    server_pin, load_pin = pins()
    load = servers.Load(args.build, wrapper=load_pin)
    null = servers.Null(args.build, wrapper=server_pin, unix=args.unix)
    if args.server == "null":
        other = servers.Null(args.build, wrapper=server_pin, unix=args.unix)
    else:
        binary = args.server or args.build / "bloomery-server"
        other = servers.Bloomery(binary, server_options, wrapper=server_pin,
                                 unix=args.unix)
    met = []
    with null, other:
        describe(args)
        for server in (null, other):
            prepare(load, server)
        for name in args.workload or WORKLOADS:
            met.append(report(name, measure(args, load, (null, other), name)))
    return 0 if all(met) or not args.check else 1


if __name__ == "__main__":
    sys.exit(main())
