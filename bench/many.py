#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures what a command costs when each one names another filter: creating
# filters of one item, adding items that are there, and asking for items of filters
# that exist and of filters that do not. The load picks names at random, so that the
# processor's caches help as little as they do with real users. With more filters
# than the caches hold, a command waits for memory several times.
#
# redis-benchmark tries the same with its own random names, also on a redis-server
# if there is one: SET and GET of random keys show what a key costs there. Servers
# take turns in the same minute, on one core; the clients have another.
"""Measure commands that each name another filter."""

import contextlib
import os
import pathlib
import statistics
import sys

import compare
import peers
import servers
import tables

COUNTS = (10_000, 1_000_000)
PIPELINES = (1, 16, 100)
CONNECTIONS = 20
FILTER_BYTES = 300    # of memory, for a filter of one item and its name
SECONDS, ROUNDS = 0.3, 3
FEW = 100_000         # so many filters are all created again in each round
CREATES = {1: 50_000, 16: 200_000, 100: 400_000}  # of more, at most so many
NAME = "key:0000"     # and eight digits: the names of redis-benchmark
TRIES = {1: 30_000, 16: 200_000, 100: 300_000}    # of redis-benchmark

CREATE = "ADD that creates"
# name: the options of load
ASKED = {
    "EXISTS, present": ["--command", "exists", "--key", NAME],
    "EXISTS, missing": ["--command", "exists", "--key", "gone"],
    "ADD, known item": ["--command", "add", "--key", NAME],
}
# name: the command for redis-benchmark, and whether it is Redis's own
TRIED = {
    "BF.EXISTS": (["BF.EXISTS", "key:__rand_int__", "i"], False),
    "BF.ADD": (["BF.ADD", "key:__rand_int__", "i"], False),
    "GET": (["GET", "key:__rand_int__"], True),
    "SET": (["SET", "key:__rand_int__", "i"], True),
}


def parse_args():
    """Return the command line."""
    parser = servers.arguments(__doc__, "few filters, one round: no figures")
    parser.add_argument("--baseline", type=pathlib.Path, metavar="SERVER",
                        help="an older bloomery-server, in the same rounds")
    parser.add_argument("--most", type=float, default=4.0, metavar="MILLIONS",
                        help="filters of the largest case, as far as half of "
                        "the free memory holds them (default: %(default)s)")
    parser.add_argument("--filters", type=float, action="append",
                        metavar="MILLIONS", help="only so many filters")
    parser.add_argument("--pipeline", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--loops", type=int, default=1,
                        help="of Bloomery, all on its core")
    return parser.parse_args()


def counts_of(args):
    """Return how many filters to measure with."""
    if args.quick:
        return [2000]
    if args.filters:
        return [int(count * 1e6) for count in args.filters]
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    most = min(int(args.most * 1e6),
               free // 2 // FILTER_BYTES // (2 if args.baseline else 1))
    return [count for count in COUNTS if count < most] + [most]


def ticks(pid):
    """Return the user and system time of a process, in ticks."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1]
    return [int(field) for field in fields.split()[11:13]]


def run(load, server, words):
    """Run the load; return the server's CPU time of a command, and in user mode."""
    before = ticks(server.process.pid)
    found = load.run(server, words)
    user, system = (after - old for after, old in
                    zip(ticks(server.process.pid), before))
    cpu = float(found["server_cpu_ns"])
    return cpu, cpu * user / max(1, user + system)


def options(pipeline, count):
    """Return the options that all loads share."""
    return ["--connections", str(CONNECTIONS), "--pipeline", str(pipeline),
            "--depth", "1", "--keys", str(count), "--range", "1"]


def fill(load, server, count):
    """Empty a server and create the filters."""
    server.call("FLUSHALL", "SYNC")
    load.run(server, ["--command", "add", "--key", NAME, "--keys", str(count),
                      "--range", "1", "--sequential", "--connections", "1",
                      "--pipeline", "100", "--requests", str(count),
                      "--seconds", "600"])


def create(load, server, count, pipeline, number):
    """Create filters: all again, or a tenth more than there are."""
    more = count if count <= FEW else min(CREATES[pipeline], count // 10)
    if count <= FEW:
        server.call("FLUSHALL", "SYNC")
    return run(load, server, options(pipeline, more) + [
        "--command", "add", "--key", f"{pipeline}-{number}-", "--sequential",
        "--requests", str(more // pipeline * pipeline)])


def ask(load, server, words, seconds, number):
    """Run one window of a workload that leaves the filters as they are."""
    return run(load, server, words + [
        "--seconds", str(seconds), "--warmup", str(seconds / 5), "--seed",
        str(number + 1)])


def windows(args, load, sides, count):
    """Yield (command, pipeline, rounds of (CPU, user) for each side)."""
    seconds = 0.05 if args.quick else SECONDS
    for name in [*ASKED, CREATE]:
        for pipeline in args.pipeline or PIPELINES:
            found = [[] for _ in sides]
            for number in range(1 if args.quick else args.rounds):
                turn = list(enumerate(sides))
                for index, server in turn[::1 - number % 2 * 2]:
                    if name == CREATE:
                        cost = create(load, server, count, pipeline, number)
                    else:
                        cost = ask(load, server,
                                   ASKED[name] + options(pipeline, count),
                                   seconds, number)
                    found[index].append(cost)
            yield name, pipeline, found


def own_rows(args, load, sides, counts):
    """Return the rows of Bloomery, and of its baseline if there is one."""
    rows = []
    for count in counts:
        for server in sides:
            fill(load, server, count)
        for name, pipeline, found in windows(args, load, sides, count):
            cells = [count, name, pipeline]
            for side in found:
                cells += [statistics.median(cost) for cost in zip(*side)]
            if len(found) > 1:
                cells += [statistics.median(new[kind] / max(1, old[kind])
                                            for new, old in zip(*found))
                          for kind in (0, 1)]
            rows.append(cells)
    return rows


def own_table(args, load, sides, counts):
    """Return the table of our own load generator."""
    columns = ["filters", "command", "pipeline", "CPU, ns", "of it user, ns"]
    if args.baseline:
        columns += ["baseline, ns", "of it user, ns", "new / old", "user"]
    result = tables.table(
        "many", f"Server CPU of a command on one of many filters, {CONNECTIONS}"
        " connections", columns, own_rows(args, load, sides, counts))
    result["notes"].append(
        "Names at random, which differ from round to round; median of the rounds. "
        f"Up to {FEW:,} filters are created from none, more are created on top "
        "of those that are there.")
    return result


# ---- redis-benchmark, and a redis-server -------------------------------------


def fill_keys(server, count):
    """Set the keys of a redis-server."""
    server.call("FLUSHALL")
    with server.connect() as peer, peer.makefile("rb") as replies:
        for first in range(0, count, 1000):
            last = min(first + 1000, count)
            peer.sendall(b"".join(
                servers.request("SET", f"key:{number:012}", "i")
                for number in range(first, last)))
            replies.read(5 * (last - first))


def tried_rows(args, load, words, ours, other, counts):
    """Return the rows of redis-benchmark."""
    rows = []
    for count in counts:
        fill(load, ours, count)
        if other is not None:
            fill_keys(other, count)
        for name, (command, is_redis) in TRIED.items():
            server = other if is_redis else ours
            for pipeline in (args.pipeline or PIPELINES) if server else ():
                requests = TRIES[pipeline] // (20 if args.quick else 1)
                found = [peers.redis_benchmark(words, server, pipeline,
                                               requests, command, count)
                         for _ in range(1 if args.quick else args.rounds)]
                rate, used = map(statistics.median, zip(*found))
                rows.append([count, name, pipeline, round(rate), used])
    return rows


def tried_table(args, load, pin, ours, other, counts):
    """Return the table of redis-benchmark."""
    words = peers.find("redis-benchmark")
    if words is None:
        return tables.table("many-tried", "redis-benchmark", [], notes=[
            "Left out: redis-benchmark is not installed."])
    title = peers.version(other) if other is not None else None
    result = tables.table(
        "many-tried", "redis-benchmark, random names",
        ["keys", "request", "pipeline", "requests/s", "server CPU, ns"],
        tried_rows(args, load, pin + words, ours, other, counts))
    result["notes"].append(
        f"GET and SET: {title}, whose keys have a value of one byte."
        if title else "GET and SET are left out: no redis-server is installed "
        "(tests/peers fetches Debian's into build/).")
    return result


def main():
    args = parse_args()
    servers.exit_on_sigterm()
    pin, load_pin = compare.pins()
    load = servers.Load(args.build, wrapper=load_pin)
    binaries = [args.build / "bloomery-server"]
    if args.baseline:
        binaries.append(args.baseline)
    counts = counts_of(args)
    with contextlib.ExitStack() as stack:
        sides = [stack.enter_context(servers.Bloomery(
            binary, ["--threads", str(args.loops), "--save", ""], wrapper=pin))
            for binary in binaries]
        other = None if args.baseline else peers.peer(pin)
        if other is not None:
            stack.enter_context(other)
        found = [own_table(args, load, sides, counts)]
        if not args.baseline:
            found.append(tried_table(args, load, load_pin, sides[0], other,
                                     counts))
    for each in found:
        print(tables.text(each) + "\n", flush=True)
    tables.save(args.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
