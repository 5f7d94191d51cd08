#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Compares bloomery-server with the null server: CPU time per command, as the
# kernel accounts it, in interleaved pairs on the same machine in the same minute.
# The ratio is the result; the nanoseconds depend on the machine. All servers run
# all the time and work in turn, on one CPU, with the load generator on another.
# There are two filters: one that fits into the caches, and one of 256 MiB that
# does not. There are many short windows instead of few long ones, so that a
# disturbance affects only one pair and not the median.
"""Compare the server's CPU time per command with the null server's."""

import collections
import contextlib
import itertools
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import servers
import tables

CONFIDENCE = 0.95
TRANSPORTS = {"tcp": "TCP loopback", "unix": "unix socket"}

Filter = collections.namedtuple("Filter", "text capacity fill known asked")
# capacity: that of the filter. fill: the number of items added first. known: the
# range of the items of ADD; asked: that of EXISTS. In the small filter every item
# of ADD is present, as in any filter after a long time, and half of the items of
# EXISTS are absent. In the large filter, all of whose pages have been touched, most
# items of ADD are new, so that it writes.
FILTERS = {
    "cache": Filter("100,000 items", 100_000, 90_000, 90_000, 180_000),
    "large": Filter("256 MiB", 212_000_000, 20_000_000, 150_000_000,
                    150_000_000),
}

Workload = collections.namedtuple("Workload", "request pipeline marks")
# marks: the largest allowed ratio to the null server, for each filter. A workload
# without a mark for a filter is measured only for its plot, over TCP.
WORKLOADS = {
    "add-p1": Workload("add", 1, {"cache": 1.05}),
    "exists-p1": Workload("exists", 1, {"cache": 1.05}),
    "add-p16": Workload("add", 16, {"cache": 1.12, "large": 1.2}),
    "exists-p16": Workload("exists", 16, {"cache": 1.12, "large": 1.2}),
    "add-p100": Workload("add", 100, {"cache": 1.4, "large": 1.8}),
    "exists-p100": Workload("exists", 100, {"cache": 1.4, "large": 1.8}),
    "madd100-p16": Workload("madd", 16, {"cache": 1.7, "large": 3.0}),
    "mexists100-p16": Workload("mexists", 16, {"cache": 1.7, "large": 3.0}),
}


def parse_args():
    """Return the command line; unknown options are for the server."""
    parser = servers.arguments(
        __doc__, "one pair of 0.1 seconds: a smoke test",
        epilog="Options that are not listed are passed to the server.")
    parser.add_argument("--server", default=None, metavar="PATH",
                        help="server to measure (default: the build's "
                             "bloomery-server; 'null': a second null server, "
                             "which shows the noise)")
    parser.add_argument("--baseline", type=pathlib.Path, metavar="PATH",
                        help="another bloomery-server, measured in the same "
                             "rounds: the table has new over old as well")
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=0.25,
                        help="of one measurement")
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--depth", type=int, default=1,
                        help="batches in flight on a connection")
    parser.add_argument("--tcp", action="store_true",
                        help="only over TCP, not over a unix socket too")
    parser.add_argument("--unix", action="store_true",
                        help="only over a unix socket")
    parser.add_argument("--filter", action="append", choices=FILTERS,
                        help="only this one (may be repeated)")
    parser.add_argument("--workload", action="append", choices=WORKLOADS,
                        help="only this one (may be repeated)")
    parser.add_argument("--check", action="store_true",
                        help="exit 1 if a median is above its mark")
    args, server_options = parser.parse_known_args()
    if args.quick:
        args.pairs, args.seconds = 1, 0.1
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


def load_options(args, name, size):
    """Return the options of the load generator for one workload."""
    workload, shape = WORKLOADS[name], FILTERS[size]
    asks = workload.request in ("exists", "mexists")
    return [
        "--command", workload.request, "--pipeline", str(workload.pipeline),
        "--key", size, "--connections", str(args.connections),
        "--depth", str(args.depth),
        "--range", str(shape.asked if asks else shape.known),
        "--seconds", str(args.seconds), "--warmup", str(args.seconds / 6)]


def pairs(args, marked):
    """Return the number of pairs, fewer for a figure that is only drawn."""
    return args.pairs if marked else math.ceil(args.pairs / 2)


def prepare(load, server, size):
    """Make a filter and add its items, in order; it has space for all later ones."""
    shape = FILTERS[size]
    answer = server.call("BF.RESERVE", size, "0.01", str(shape.capacity))
    if answer != "+OK":
        raise SystemExit(f"{server.name}: BF.RESERVE: {answer}")
    # The null server has one small array for all keys, and nothing to fill.
    if not isinstance(server, servers.Null):
        load.run(server, ["--command", "madd", "--items", "1000",
                          "--pipeline", "1", "--key", size, "--sequential",
                          "--range", str(shape.fill), "--connections", "4",
                          "--requests", str(math.ceil(shape.fill / 1000))])


def measure(args, load, running, name, size):
    """Return one list of results for each of the servers."""
    marked = size in WORKLOADS[name].marks
    options = load_options(args, name, size)
    results = [[] for _ in running]
    # Change the order, so that a trend favours no server.
    orders = itertools.cycle(itertools.permutations(range(len(running))))
    for number, order in zip(range(pairs(args, marked)), orders):
        for index in order:
            results[index].append(
                load.run(running[index],
                         options + ["--seed", str(number + 1)]))
    return results


def cpu_ns(results):
    """Return the CPU times per command of one server's results."""
    return [float(result["server_cpu_ns"]) for result in results]


def row(name, size, results):
    """Return a row of the table, and the median ratio."""
    null_ns, server_ns = cpu_ns(results[0]), cpu_ns(results[1])
    ratio, spread = tables.spread(
        [b / a for a, b in zip(null_ns, server_ns)], interval)
    mark = WORKLOADS[name].marks.get(size)
    # The share of the time in which a server ran or waited for its CPU. Below
    # about 0.9 it also slept, and the ns include sleeping and waking up.
    busy = min(float(result["server_cpu"]) + float(result["server_wait"])
               for side in results for result in side)
    client = statistics.median(
        float(result["client_cpu_ns"]) for result in results[1])
    cells = [name, statistics.median(null_ns), statistics.median(server_ns),
             f"{ratio:.3f}", spread, mark,
             None if mark is None else "yes" if ratio <= mark else "NO",
             busy, client]
    if len(results) == 3:
        old_ns = cpu_ns(results[2])
        gain, gains = tables.spread(
            [b / a for a, b in zip(old_ns, server_ns)], interval)
        cells += [statistics.median(old_ns), f"{gain:.3f}", gains]
    return cells, ratio


def section(args, load, running, transport, size):
    """Measure one filter over one transport; return its table and points."""
    shape = FILTERS[size]
    columns = ["workload", "null ns", "server ns", "ratio", "interval",
               "mark", "met", "busy", "client ns"]
    if len(running) == 3:
        columns += ["old ns", "new/old", "its interval"]
    result = tables.table(
        f"cost-{transport}-{size}",
        f"Server CPU per command over the null server's, {shape.text}, "
        f"{TRANSPORTS[transport]}", columns)
    points = []
    for server in running:
        prepare(load, server, size)
    for name in args.workload or WORKLOADS:
        workload = WORKLOADS[name]
        mark = workload.marks.get(size)
        if mark is None and transport != "tcp":
            continue
        results = measure(args, load, running, name, size)
        cells, ratio = row(name, size, results)
        result["rows"].append(cells)
        points.append([TRANSPORTS[transport], shape.text, workload.request,
                       workload.pipeline, cells[1], cells[2], ratio, mark])
    result["notes"].append(
        f"{args.connections} connections, depth {args.depth}; "
        f"{args.pairs} pairs of {args.seconds:g} s (half as many without a "
        "mark); the ratio is the median of the pairs' with an interval of at "
        f"least {CONFIDENCE:.0%}.")
    result["marks"] = summary(points)
    result["says"] = says(points)
    print(tables.text(result) + "\n", flush=True)
    return result, points


def summary(points):
    """Return one line for all workloads of a table that share a pipeline."""
    groups = {}
    for transport, size, request, pipeline, _, _, ratio, mark in points:
        if mark is not None:
            many = request.startswith("m")
            groups.setdefault((many, pipeline, transport, size, mark), []
                              ).append((request, ratio))
    marks = []
    for (many, pipeline, transport, size, mark), its in groups.items():
        names = " and ".join("BF." + request.upper() for request, _ in its)
        marks.append(tables.mark(
            f"CPU over the null server's: {names}"
            f"{' of 100 items' if many else ''}, "
            + ("no pipeline" if pipeline == 1 else f"pipeline {pipeline}")
            + f", {size}, {transport}", f"≤ {mark:g}",
            " and ".join(f"{ratio:.2f}" for _, ratio in its),
            all(ratio <= mark for _, ratio in its)))
    return marks


def git(*words):
    """Return git's description of this tree, or nothing without git."""
    return subprocess.run(["git", "-C", str(servers.ROOT), *words],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False).stdout.strip()


def commit():
    """Return the measured commit; changes of the report itself do not count."""
    name = git("describe", "--always")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".",
                  ":!bench/RESULTS.md", ":!bench/plots")
    return name + ("-dirty" if changed else "") if name else "unknown"


def machine():
    """Return the circumstances of the figures: machine, commit, date."""
    model = platform.machine()
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return (f"machine: {model}, {os.cpu_count()} CPUs, Linux "
            f"{platform.release()}; commit {commit()}; "
            f"{time.strftime('%Y-%m-%d')}")


def says(points):
    """Return the sentence on what one core serves, for the top of the report."""
    rates = {(request, pipeline): 1000 / server_ns
             for transport, size, request, pipeline, _, server_ns, _, _
             in points if transport == TRANSPORTS["tcp"]
             and size == FILTERS["cache"].text}
    if len(rates) < len(WORKLOADS):
        return []
    return [
        f"One core serves {rates['add', 16]:.1f} million BF.ADD or "
        f"{rates['exists', 16]:.1f} million BF.EXISTS a second in pipelines "
        f"of 16 from 50 connections, {rates['add', 100]:.1f} and "
        f"{rates['exists', 100]:.1f} million in pipelines of 100, and "
        f"{rates['add', 1]:.2f} million without a pipeline, when the kernel's "
        "sockets are nearly all of the cost.",
        f"In BF.MADD and BF.MEXISTS of 100, one core serves "
        f"{100 * rates['madd', 16]:.0f} and {100 * rates['mexists', 16]:.0f} "
        "million items a second."]


def transport_tables(args, server_options, transport):
    """Start the servers for one transport; yield the results of each filter."""
    server_pin, load_pin = pins()
    load = servers.Load(args.build, wrapper=load_pin)
    common = {"wrapper": server_pin, "unix": transport == "unix"}
    options = [*servers.LARGE_FILTERS, *server_options]
    null = servers.Null(args.build, **common)
    binary = args.server or args.build / "bloomery-server"
    other = (servers.Null(args.build, **common) if args.server == "null" else
             servers.Bloomery(binary, options, **common))
    running = [null, other]
    if args.baseline is not None:
        running.append(servers.Bloomery(args.baseline, options, **common))
    with contextlib.ExitStack() as stack:
        for server in running:
            stack.enter_context(server)
        for size in args.filter or FILTERS:
            yield section(args, load, running, transport, size)


def main():
    args, server_options = parse_args()
    servers.exit_on_sigterm()
    print(machine())
    found = [tables.table(
        "cost", "CPU per command", ["transport", "filter", "request",
                                    "pipeline", "null ns", "server ns",
                                    "ratio", "mark"], hidden=True)]
    for transport in TRANSPORTS:
        only = args.tcp or args.unix
        if not only or getattr(args, transport):
            for each, points in transport_tables(args, server_options,
                                                 transport):
                found.append(each)
                found[0]["rows"] += points
                tables.save(args.json, found)  # what follows may fail
    met = all(mark["met"] for each in found for mark in each["marks"])
    return 0 if met or not args.check else 1


if __name__ == "__main__":
    sys.exit(main())
