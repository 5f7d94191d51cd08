#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs comparisons that users will try themselves. First redis-benchmark against
# this server and, if it is installed, a redis-server, in turn and in the same
# minute. Then BF.* against a filter kept by hand: a SETBIT or GETBIT for each bit
# of an item, in one pipeline. Last the commands of a BF module, if there is one:
#
#   BENCH_MODULE=/path/to.so          redis-server loads this module
#   BENCH_SERVER=/path/to/server      this server instead of redis-server; it
#                                     may have BF.* built in
#
# Every server has one core, the clients have another. The result is the server's
# CPU time, because redis-benchmark cannot keep a fast server busy.
"""Compare the server with a redis-server, and a module if there is one."""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

import compare
import servers
import tables

CAPACITY, ITEMS = 100_000, 90_000
HASHES, BITS = 7, 958_506  # of the best classic filter for 0.01
CONNECTIONS = 50
REQUESTS = {1: 25_000, 16: 250_000, 100: 500_000}  # 0.3 s each and more
ITEM = "item:__rand_int__"
# The commands of redis-benchmark; only BF.* needs a server that has it.
TRIED = [("PING", ["PING"]), ("SET", ["SET", "key:__rand_int__", "value"]),
         ("BF.ADD", ["BF.ADD", "bench", ITEM]),
         ("BF.EXISTS", ["BF.EXISTS", "bench", ITEM])]

# name: load's options here, items of a command, its options by hand
BY_HAND = {
    "add 1": (["add", 1], 1, ["setbit", 1]),
    "add 16": (["add", 16], 1, ["setbit", 16]),
    "add 100": (["add", 100], 1, ["setbit", 100]),
    "add 100\nat once": (["madd", 1], 100, ["setbit", 100]),
    "check 1": (["exists", 1], 1, ["getbit", 1]),
    "check 16": (["exists", 16], 1, ["getbit", 16]),
    "check 100": (["exists", 100], 1, ["getbit", 100]),
    "check 100\nat once": (["mexists", 1], 100, ["getbit", 100]),
}
BESIDE_MODULE = [("add", 1), ("exists", 1), ("add", 16), ("exists", 16),
                 ("add", 100), ("exists", 100), ("madd", 16), ("mexists", 16)]


def parse_args():
    """Return the command line."""
    return servers.arguments(
        __doc__, "once, and short: a smoke test, no figures",
        epilog="BENCH_SERVER and BENCH_MODULE name another server, and a "
        "module that it loads.").parse_args()


# ---- who is there ------------------------------------------------------------


def unpacked(name):
    """Return the command of a program that tests/peers has fetched."""
    top = servers.ROOT / "build" / "redis" / "usr"
    libraries = ":".join(map(str, top.glob("lib/*-linux-gnu")))
    program = top / "bin" / name
    return (["env", f"LD_LIBRARY_PATH={libraries}", str(program)]
            if program.exists() else None)


def find(name):
    """Return the command of an installed program, or None."""
    path = shutil.which(name)
    return [path] if path is not None else unpacked(name)


class Peer(servers.Server):
    """A redis-server, or a server that takes its options."""

    def __init__(self, words, module, **others):
        super().__init__(**others)
        self.words, self.module = words, module
        self.name = pathlib.Path(words[-1]).name
        self.knows_bf = self.knows_set = False

    def command_line(self):
        return [*self.words, "--port", str(self.port), "--bind", "127.0.0.1",
                "--save", "", "--appendonly", "no", "--dir", self.folder,
                *(["--loadmodule", self.module] if self.module else [])]

    def start(self):
        try:
            super().start()
        except SystemExit as error:
            if not self.module:
                raise
            said = [line for line in str(error).splitlines()
                    if re.search("modul|load", line, re.IGNORECASE)]
            raise SystemExit(f"BENCH_MODULE={self.module}: {self.name} does "
                             "not load it: " + (said or [str(error)])[-1]
                             ) from error
        answer = self.call("BF.RESERVE", "bench", "0.01", str(CAPACITY))
        self.knows_bf = answer == "+OK"
        self.knows_set = self.call("SET", "x", "y") == "+OK"
        if self.module and not self.knows_bf:
            raise SystemExit(f"BENCH_MODULE={self.module}: it is loaded, but "
                             f"BF.RESERVE answers {answer}")


def peer(pin):
    """Return the other server, not started yet, or None."""
    wanted = os.environ.get("BENCH_SERVER")
    module = os.environ.get("BENCH_MODULE")
    for name, path in (("BENCH_SERVER", wanted), ("BENCH_MODULE", module)):
        if path and not os.path.isfile(path):
            raise SystemExit(f"{name}={path}: no such file")
    words = [os.path.abspath(wanted)] if wanted else find("redis-server")
    if words is None:
        if module:
            raise SystemExit("BENCH_MODULE is given, but no redis-server is "
                             "installed to load it: name one as BENCH_SERVER")
        return None
    return Peer(words, os.path.abspath(module) if module else None,
                wrapper=pin)


def version(other):
    """Return the other server's name for itself."""
    done = subprocess.run([*other.words, "--version"], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    found = re.search(r"v=(\S+)|(\d+\.\d+\.\d+)", done.stdout)
    number = f" {found.group(1) or found.group(2)}" if found else ""
    module = (" with " + pathlib.Path(other.module).name
              if other.module else "")
    return f"{other.name}{number}{module}"


# ---- redis-benchmark ---------------------------------------------------------


def cpu_ns(pid):
    """Return the CPU time of all threads of a process."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            total += int((task / "schedstat").read_text().split()[0])
    return total


def redis_benchmark(words, server, pipeline, requests, command, names=ITEMS,
                    connections=CONNECTIONS):
    """Return requests per second and the server's CPU time of one, in ns.

    NAMES: how many different values __rand_int__ has."""
    before = cpu_ns(server.process.pid)
    done = subprocess.run(
        [*words, "-p", str(server.port), "-c", str(connections), "-P",
         str(pipeline), "-n", str(requests), "-r", str(names), "--csv",
         *command], text=True, check=False, timeout=120 + requests / 2000,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    used = cpu_ns(server.process.pid) - before
    found = re.findall(r'^"[^"]*","([\d.]+)"', done.stdout, re.MULTILINE)
    if done.returncode != 0 or not found:
        raise SystemExit(f"redis-benchmark {' '.join(command)}: "
                         f"{done.stdout.strip()}")
    return float(found[-1]), used / requests


def tried(args, words, ours, other, title):
    """Return the table of redis-benchmark's results."""
    columns = ["request", "pipeline", "Bloomery, requests/s",
               "server CPU, ns"]
    result = tables.table(
        "peers-tried", f"redis-benchmark, {CONNECTIONS} connections", columns)
    if other is not None:
        columns = [f"{title}, requests/s", "its CPU, ns"]
        result["columns"] += columns
    for name, command in TRIED:
        who = [server for server in (ours, other) if server is not None
               and (name != "SET" or server is not ours and server.knows_set)
               and (not name.startswith("BF.") or server.knows_bf)]
        for pipeline, requests in REQUESTS.items() if who else ():
            seen = {server: [] for server in who}
            for _ in range(1 if args.quick else 3):
                for server in who:
                    seen[server].append(redis_benchmark(
                        words, server, pipeline,
                        requests // (20 if args.quick else 1), command))
            cells = [name, pipeline]
            for server in (ours, other):
                if server in seen:
                    rate, used = map(statistics.median, zip(*seen[server]))
                    cells += [round(rate), used]
                elif server is not None or other is not None:
                    cells += [None, None]
            result["rows"].append(cells)
    result["notes"].append(
        "Median of 3 runs in turn. For short commands redis-benchmark is the "
        "bottleneck, and limits the requests per second.")
    return result


# ---- our load generator ------------------------------------------------------


def options(args, command, pipeline):
    """Return load's options."""
    asks = command in ("exists", "mexists", "getbit")
    key = "bits" if command.endswith("bit") else "bench"
    seconds = 0.05 if args.quick else 0.2
    return ["--command", command, "--pipeline", str(pipeline), "--key", key,
            "--bits", str(BITS), "--hashes", str(HASHES), "--depth", "1",
            "--connections", str(CONNECTIONS), "--seconds", str(seconds),
            "--warmup", str(seconds / 6),
            "--range", str(2 * ITEMS if asks else ITEMS)]


def prepare(load, server, command):
    """Add all items, in order."""
    load.run(server, [*options(argparse.Namespace(quick=False), command, 100),
                      "--connections", "1", "--range", str(ITEMS),
                      "--sequential", "--seconds", "60", "--requests",
                      str(ITEMS)])


def costs(args, load, sides, rounds=7):
    """Return CPU times per item, in turn for each of SIDES (server, options, items)."""
    found = [[] for _ in sides]
    for number in range(1 if args.quick else rounds):
        turn = list(enumerate(sides))
        for index, (server, words, items) in turn[::1 - number % 2 * 2]:
            done = load.run(server, words + ["--seed", str(number + 1)])
            found[index].append(float(done["server_cpu_ns"]) / items)
    return found


def beside(args, load, result, name, sides):
    """Add a row to a table: our time, theirs, and theirs as a multiple of ours."""
    own, their = costs(args, load, sides)
    ratio, interval = tables.spread([b / a for a, b in zip(own, their)],
                                    compare.interval)
    result["rows"].append([name, statistics.median(own),
                           statistics.median(their), round(ratio, 2),
                           interval])
    return ratio


def by_hand(args, load, ours, other, title):
    """Return the table that compares a filter kept by hand with ours, per item."""
    result = tables.table(
        "peers-items", "Server CPU for one item, ns: BF.* beside "
        f"{HASHES} SETBIT or GETBIT in a bitmap of the same size",
        ["items in a pipeline", "Bloomery, BF.*", f"{title}, by hand",
         "times", "interval"])
    prepare(load, other, "setbit")
    ratios = {}
    for name, (own, items, their) in BY_HAND.items():
        # load counts each SETBIT as a command; HASHES of them are an item.
        ratios[name] = beside(args, load, result, name.replace("\n", ", "), [
            (ours, options(args, *own), items),
            (other, options(args, *their), 1 / HASHES)])
    result["notes"].append(
        "`at once` is one BF.MADD or BF.MEXISTS of 100. With a bitmap, the "
        "client computes the hashes, whose cost is not included. Both have "
        "the same error rate.")
    return result


def module(args, load, ours, other, title):
    """Return the table of the same commands on another server."""
    result = tables.table(
        "peers-module", f"The same BF.* commands on {title}: server CPU per "
        "command, ns", ["workload", "Bloomery", title, "times", "interval"])
    prepare(load, other, "add")
    for command, pipeline in BESIDE_MODULE:
        words = options(args, command, pipeline)
        many = " of 100" if command.startswith("m") else ""
        beside(args, load, result,
               f"BF.{command.upper()}{many}, pipeline {pipeline}",
               [(ours, words, 1), (other, words, 1)])
    worst = min(result["rows"], key=lambda row: row[3])
    best = max(result["rows"], key=lambda row: row[3])
    result["says"].append(
        f"{title} takes {worst[3]:.1f} ({worst[0]}) to {best[3]:.1f} times "
        f"({best[0]}) the CPU for the same commands.")
    return result


def measure(args, ours, other, title):
    """Return all tables; the servers run."""
    _, load_pin = compare.pins()
    load = servers.Load(args.build, wrapper=load_pin)
    ours.knows_bf = True
    ours.call("BF.RESERVE", "bench", "0.01", str(CAPACITY))
    prepare(load, ours, "add")
    words = find("redis-benchmark")
    if words is None:
        yield tables.table("peers-tried", "redis-benchmark", [], notes=[
            "Left out: redis-benchmark is not installed."])
    else:
        yield tried(args, load_pin + words, ours, other, title)
    if other is None:
        yield tables.table("peers-items", "Beside a redis-server", [], notes=[
            "Left out: no redis-server is installed (tests/peers fetches "
            "Debian's into build/, BENCH_SERVER names another)."])
        return
    if other.knows_set:  # and so bitmaps
        yield by_hand(args, load, ours, other, title)
    if other.knows_bf:
        yield module(args, load, ours, other, title)


def main():
    args = parse_args()
    servers.exit_on_sigterm()
    pin, _ = compare.pins()
    other = peer(pin)
    title = version(other) if other is not None else ""
    ours = servers.Bloomery(args.build / "bloomery-server", wrapper=pin)
    found = []
    with contextlib.ExitStack() as stack:
        for server in (ours, other):
            if server is not None:
                stack.enter_context(server)
        for each in measure(args, ours, other, title):
            print(tables.text(each) + "\n", flush=True)
            found.append(each)
    tables.save(args.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
