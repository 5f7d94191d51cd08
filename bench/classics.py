#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the benchmarks that people quote when they talk of Bloom filters in Redis, and
# the same work on this server: filters in Lua scripts, bitmaps with SETBIT and GETBIT,
# libraries in Python and Ruby, RedisBloom's own benchmark, a filter for each user, a
# filter of 600 million items, and a feed. The published figures are of other machines
# and other years, so the script prints them with their source and runs the work
# again. Servers take turns in the same minute; the result is CPU time of the server.
#
# redis-server is installed, or unpacked by tests/peers. BENCH_MODULE and BENCH_SERVER
# add a BF module or another server, as in peers.py. For Python and Ruby the script
# needs pip (it installs larkspur from PyPI under build/) and Debian's ruby-redis.
"""Run the benchmarks of Bloom filters in Redis that people quote."""

import collections
import contextlib
import hashlib
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import compare
import peers
import quoted
import servers
import tables

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS, SECONDS = 5, 0.2
CAPACITY, FILLED, RATE = 1_000_000, 200_000, 0.01
USERS, USER_CAPACITY, USER_ITEMS = 10_000, 1_000, 500
LARGE, LARGE_FULL, LARGE_RATE = 40_000_000, 600_000_000, 0.001
LARGE_FILLED, LARGE_ITEMS = 1_000_000, 100
CI_CAPACITY, CI_RATE, CI_CONNECTIONS = 10_000_000, 0.001, 16
CI_REQUESTS, CI_REQUESTS_FULL = 100_000, 10_000_000
FEED_RATE, FEED_ITEMS, FEED_SECONDS = 18_000, 120, 3
PACKAGES = ("larkspur==0.2.4", "redis==3.5.3")
BITMAP_LIMIT = 1 << 32  # bits of a string in Redis

Side = collections.namedtuple("Side", "server words items")
# words: the options of load. items: those of one command, as load counts commands.

COLUMNS = ["how", "items at a time", "add, ns", "times", "interval",
           "check, ns", "times", "interval"]


def parse_args():
    """Return the command line."""
    parser = servers.arguments(
        __doc__, "one short round: a smoke test, no figures",
        epilog="BENCH_SERVER and BENCH_MODULE name another server, and a "
        "module that it loads.")
    parser.add_argument("--case", action="append", choices=CASES,
                        help="only this one (may be repeated)")
    parser.add_argument("--full", action="store_true",
                        help="the published sizes: 10 million requests, a filter "
                        "of 600 million items (1.3 GB; some minutes)")
    return parser.parse_args()


class World:
    """The servers of a run, and what the cases share."""

    def __init__(self, args, load, load_pin, ours, other):
        self.args, self.load, self.load_pin = args, load, load_pin
        self.ours, self.other = ours, other
        self.title = peers.version(other) if other is not None else ""
        self.has_bits = other is not None and other.knows_set
        self.has_bf = other is not None and other.knows_bf

    def scaled(self, count):
        """Return a count, or a hundredth of it in a smoke test."""
        return max(1, count // 100) if self.args.quick else count

    def bf_sides(self):
        """Return the servers with BF.*, by name; ours is the first."""
        sides = {"Bloomery": self.ours}
        if self.has_bf:
            sides[self.title] = self.other
        return sides

    def script(self, text):
        """Load a script into the redis-server; return its SHA-1."""
        answer = self.other.call("SCRIPT", "LOAD", text)
        if answer != "$40":
            raise SystemExit(f"{self.title}: SCRIPT LOAD: {answer}")
        return hashlib.sha1(text.encode()).hexdigest()

    def window(self, connections, *words):
        """Return load's options for one short window."""
        seconds = 0.05 if self.args.quick else SECONDS
        return ["--connections", str(connections), "--depth", "1", "--seconds",
                str(seconds), "--warmup", str(seconds / 6), *map(str, words)]

    def fill(self, server, items, *words):
        """Add items 0 to ITEMS - 1, in order."""
        self.load.run(server, [
            "--connections", "1", "--sequential", "--range", str(items),
            "--seconds", "240", *map(str, words)])


def reserve(server, key, rate, capacity):
    """Make a filter; return the error, or None."""
    answer = server.call("BF.RESERVE", key, f"{rate:g}", str(capacity))
    return None if answer == "+OK" else answer


def classic(capacity, rate):
    """Return the bits and hashes of the best classic filter."""
    bits = math.ceil(-capacity * math.log(rate) / math.log(2) ** 2)
    return bits, round(bits / capacity * math.log(2))


def compared(world, batch, sides):
    """Return a row of COLUMNS for each of SIDES: {name: {request: Side}}.

    The first is ours, and the others' times are multiples of its time."""
    rows = {name: [name, batch] for name in sides}
    for request in dict.fromkeys(key for side in sides.values() for key in side):
        found = peers.costs(world.args, world.load,
                            [side[request] for side in sides.values()], ROUNDS)
        for name, times in zip(sides, found):
            ratio, interval = tables.spread(
                [b / a for a, b in zip(found[0], times)], compare.interval)
            rows[name] += [statistics.median(times), f"{ratio:.3g}",
                           None if times is found[0] else interval]
    return list(rows.values())


# ---- scripts and bitmaps -----------------------------------------------------


def ways(world, batch):
    """Return the sides of one batch size: BF.*, SETBIT, and both kinds of scripts."""
    bits, hashes = classic(CAPACITY, RATE)
    filled = world.scaled(FILLED)

    def side(server, request, command, items, *words):
        return Side(server, world.window(
            20, "--pipeline", batch, "--command", command, "--range",
            filled if request == "add" else 2 * filled, *words), items)

    by_hand = ("--bits", bits, "--hashes", hashes)
    sides = {name: {request: side(server, request, command, 1, "--key", "one")
                    for request, command in (("add", "add"), ("check", "exists"))}
             for name, server in world.bf_sides().items()}
    if not world.has_bits:
        return sides
    bit = {"add": "setbit", "check": "getbit"}
    sides[f"{hashes} SETBIT or GETBIT"] = {
        request: side(world.other, request, bit[request], 1 / hashes,
                      "--key", "bits", *by_hand) for request in bit}
    sides["Lua, the client hashes"] = {
        request: side(world.other, request, bit[request], 1, "--key", "bits",
                      "--script", world.script(quoted.OFFSETS[request]), *by_hand)
        for request in bit}
    item = {"add": "add", "check": "exists"}
    sides["Lua, the script hashes"] = {
        request: side(world.other, request, item[request], 1, "--key", "lua",
                      "--script",
                      world.script(quoted.HASHING[request] % (CAPACITY, RATE)))
        for request in item}
    return sides


def methods(world):
    """Return the table of one filter, kept in every way."""
    bits, hashes = classic(CAPACITY, RATE)
    filled = world.scaled(FILLED)
    result = tables.table(
        "classics-methods", "One filter for a million items at 0.01, kept in "
        "several ways: server CPU for one item, 20 connections", COLUMNS)
    for server in world.bf_sides().values():
        reserve(server, "one", RATE, CAPACITY)
        world.fill(server, filled, "--command", "madd", "--key", "one",
                   "--items", 1000, "--pipeline", 1, "--requests",
                   math.ceil(filled / 1000))
    if world.has_bits:
        world.fill(world.other, filled, "--command", "setbit", "--key", "bits",
                   "--bits", bits, "--hashes", hashes, "--pipeline", 100,
                   "--requests", filled)
        world.fill(world.other, filled, "--command", "add", "--key", "lua",
                   "--script", world.script(quoted.HASHING["add"] % (CAPACITY, RATE)),
                   "--pipeline", 100, "--requests", filled)
    for batch in (1, 16, 100):
        if world.has_bits:  # so that the scripts stay in their first layer
            world.other.call("SET", "lua:count", str(filled))
        result["rows"] += compared(world, batch, ways(world, batch))
    result["notes"] += [
        "The client's work is not included: with SETBIT, GETBIT and the first "
        "script it computes the hashes. The second script hashes with SHA-1 in "
        "Lua, and chooses the layer by a count, as the published one does.",
        f"Medians of {ROUNDS} rounds in turn. `times` is the median of the rounds' "
        "ratios to Bloomery, and `interval` their whole range."]
    at = {(row[0], row[1]): row for row in result["rows"]}
    hand, lua = (at.get((name, 16)) for name in (
        f"{hashes} SETBIT or GETBIT", "Lua, the script hashes"))
    if hand is not None:
        result["says"].append(
            "With 16 items in a pipeline, a filter in Lua scripts takes "
            f"{lua[3]} times the server's CPU of BF.ADD and {lua[6]} times that of "
            f"BF.EXISTS; SETBIT and GETBIT by hand take {hand[3]} and {hand[6]} "
            "times.")
    return [result]


# ---- libraries ---------------------------------------------------------------


def installed(folder):
    """Install the Python packages into FOLDER; return why not, or None."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--retries",
             "1", "--timeout", "10", "--disable-pip-version-check", "--no-compile",
             "--target", folder, *PACKAGES], text=True, check=False, timeout=90,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return "no answer for 90 seconds"
    if done.returncode == 0:
        return None
    return (done.stdout.strip().splitlines() or ["no message"])[-1]


def larkspur(build):
    """Return (words, environment) after an installation, or why there is none."""
    folder = pathlib.Path(build).resolve() / "bench" / "python"
    if not (folder / "larkspur").exists():
        why = installed(folder)
        if why is not None:
            shutil.rmtree(folder, ignore_errors=True)
            return None, f"pip cannot install {PACKAGES[0]}: {why}"
    return ([sys.executable, "-B", str(HERE / "clients" / "larkspur_filter.py")],
            {"PYTHONPATH": str(folder)}), None


def by_hand_in_ruby(_):
    """Return (words, environment), or why Ruby cannot run."""
    words = ["ruby", str(HERE / "clients" / "by_hand.rb")]
    if shutil.which("ruby") is None or subprocess.run(
            ["ruby", "-e", "require 'redis'"], check=False,
            stderr=subprocess.DEVNULL).returncode != 0:
        return None, "Debian's ruby-redis is not installed"
    return (words, {}), None


# name: (how to find it, its name for the filter in a bitmap, checks in batches)
LIBRARIES = {"Python, larkspur": (larkspur, "larkspur", False),
             "Ruby, by hand": (by_hand_in_ruby, "hand", True)}


def client(world, found, server, words, count):
    """Run a client; return ns for an item: server CPU, client CPU, time."""
    command, environment = found
    with subprocess.Popen(
            world.load_pin + command + [str(server.port), *words, str(count)],
            env={**os.environ, **environment}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        if process.stdout.readline().strip() != "ready":
            raise SystemExit(f"{command[-1]} {' '.join(words)}: failed")
        before = peers.cpu_ns(server.process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        said = dict(word.split("=") for word in process.stdout.read().split())
        used = peers.cpu_ns(server.process.pid) - before
    return [used / count, float(said["cpu"]) * 1e9 / count,
            float(said["seconds"]) * 1e9 / count]


def libraries(world):
    """Return the table of client libraries with a filter in a bitmap, and with BF.*."""
    result = tables.table(
        "classics-clients", "Through a client library, one connection: a filter "
        "in a bitmap of redis-server beside BF.*, for one item",
        ["client", "request", "at a time", "server CPU with BF.*, ns", "in a bitmap",
         "times", "client CPU with BF.*, ns", "in a bitmap", "times",
         "time, times"])
    if not world.has_bits:
        result["notes"].append("Left out: there is no redis-server.")
        return [result]
    for name, (find, how, batches) in LIBRARIES.items():
        found, why = find(world.args.build)
        if found is None:
            result["notes"].append(f"{name}: left out, {why}.")
            continue
        for request, batch in (("add", 1), ("check", 1), ("add", 100),
                               ("check", 100)):
            if request == "check" and batch > 1 and not batches:
                continue
            count = world.scaled(2_000 if batch == 1 else 20_000)
            rounds = [[client(world, found, server, [kind, request, str(batch)],
                              count) for server, kind in (
                                  (world.ours, "bf"), (world.other, how))]
                      for _ in range(1 if world.args.quick else 3)]
            cells = [name, request, batch]
            for kind in range(3):
                pairs = [(ours[kind], their[kind]) for ours, their in rounds]
                if kind < 2:
                    cells += map(statistics.median, zip(*pairs))
                cells.append(f"{statistics.median(b / a for a, b in pairs):.3g}")
            result["rows"].append(cells)
    result["notes"] += [
        f"Python: {' with '.join(PACKAGES)} from PyPI. Its add of one item is a "
        "transaction and a count. pyreBloom is not on PyPI, and its successor "
        "pyreBloom-ng does not install with a pip of today.",
        "Ruby: Debian's ruby-redis, with the algorithm that programs use (CRC-32 with "
        "7 seeds, one pipeline for a batch). It writes each command of a pipeline to "
        "the socket alone. The published figures are of gems that Debian does not have.",
        "One at a time, the client awaits each reply, and the time is mostly its own "
        "and the kernel's. Medians of 3 rounds in turn."]
    return [result]


# ---- RedisBloom's benchmark --------------------------------------------------


def ci(world):
    """Return the table of RedisBloom's own benchmark."""
    requests = CI_REQUESTS_FULL if world.args.full else CI_REQUESTS
    rounds = 1 if world.args.quick or world.args.full else 3
    result = tables.table(
        "classics-ci", "RedisBloom's own benchmark: redis-benchmark, "
        f"{CI_CONNECTIONS} connections, 2 threads, no pipeline, "
        f"{world.scaled(requests):,} BF.ADD of 10 million items",
        ["server", "command", "server CPU, ns", "times Bloomery",
         "requests/s, relative"])
    words = peers.find("redis-benchmark")
    if words is None:
        result["notes"].append("Left out: redis-benchmark is not installed.")
        return [result]
    words = [*world.load_pin, *words, "--threads", "2"]
    add = ["BF.ADD", "largebloom", "__rand_int__"]
    with servers.Null(world.args.build, wrapper=world.ours.wrapper) as null:
        sides = [(name, server, add, "BF.ADD")
                 for name, server in world.bf_sides().items()]
        sides.append(("a server that does nothing", null, add, "BF.ADD"))
        if world.has_bits:
            sha = world.script(quoted.HASHING["add"] % (CI_CAPACITY, CI_RATE))
            sides.append((world.title, world.other, [
                "EVALSHA", sha, "1", "ci", "__rand_int__"], "EVALSHA, Lua hashes"))
        for server in world.bf_sides().values():
            reserve(server, "largebloom", CI_RATE, CI_CAPACITY)
        seen = [[] for _ in sides]
        for number in range(rounds):
            for index in range(len(sides))[::1 - number % 2 * 2]:
                seen[index].append(peers.redis_benchmark(
                    words, sides[index][1], 1, world.scaled(requests),
                    sides[index][2], CI_CAPACITY, CI_CONNECTIONS))
    for (name, _, _, command), its in zip(sides, seen):
        used = statistics.median(cost for _, cost in its)
        result["rows"].append([name, command, used, *(
            round(statistics.median(b[kind] / a[kind] for a, b in zip(seen[0], its)),
                  2) for kind in (1, 0))])
    result["notes"].append(
        "Medians of 3 rounds in turn, of one with --full. Without a pipeline, "
        "redis-benchmark and the kernel's sockets are nearly all of the work, so "
        "servers that differ much look alike; the script is the exception.")
    return [result]


# ---- filters of users --------------------------------------------------------


def fill_users(world):
    """Make all users' filters, half full."""
    users = world.scaled(USERS)
    bits, hashes = classic(USER_CAPACITY, RATE)
    common = ["--key", "user:", "--keys", users, "--requests"]
    for server in world.bf_sides().values():
        with server.connect() as peer, peer.makefile("rb") as replies:
            for first in range(0, users, 500):
                names = [f"user:{number:08x}"
                         for number in range(first, min(first + 500, users))]
                peer.sendall(b"".join(servers.request(
                    "BF.RESERVE", name, str(RATE), str(USER_CAPACITY))
                    for name in names))
                for _ in names:
                    replies.readline()
        world.fill(server, USER_CAPACITY, "--command", "madd", "--items",
                   USER_ITEMS, "--pipeline", 1, *common, users)
    if world.has_bits:
        world.fill(world.other, USER_CAPACITY, "--command", "setbit", "--bits",
                   bits, "--hashes", hashes, "--pipeline", USER_ITEMS, *common,
                   users * USER_ITEMS)


def user_side(world, server, command, items, *words):
    """Return a side whose commands go to the filters of all users."""
    return Side(server, world.window(
        20, "--command", command, "--key", "user:", "--keys",
        world.scaled(USERS), "--range", USER_CAPACITY, *words), items)


def users(world):
    """Return the table of pipelines of 350 commands to filters of users."""
    bits, hashes = classic(USER_CAPACITY, RATE)
    result = tables.table(
        "classics-users", f"{world.scaled(USERS):,} users with a filter of "
        f"{USER_CAPACITY:,} items each, pipelines of 350 commands: server CPU for "
        "one item, 20 connections", COLUMNS)
    sides = {f"{name}, each item of another user": {
        request: user_side(world, server, command, 1, "--pipeline", 350)
        for request, command in (("add", "add"), ("check", "exists"))}
        for name, server in world.bf_sides().items()}
    rows = compared(world, 350, sides)
    sides = {"Bloomery, one BF.MADD or BF.MEXISTS of 50": {
        request: user_side(world, world.ours, command, 50, "--items", 50,
                           "--pipeline", 1)
        for request, command in (("add", "madd"), ("check", "mexists"))}}
    if world.has_bits:
        bit = {"add": "setbit", "check": "getbit"}
        sides[f"350 SETBIT or GETBIT: 50 items of {hashes}"] = {
            request: user_side(world, world.other, bit[request], 1 / hashes,
                               "--pipeline", 350 // hashes, "--bits", bits,
                               "--hashes", hashes) for request in bit}
    result["rows"] = rows + compared(world, 50, sides)
    result["notes"].append(
        "Users at random. In the last rows all items of a batch are of one user; "
        "`times` there is to BF.MADD and BF.MEXISTS.")
    return [result]


# ---- a large filter ----------------------------------------------------------


def large(world):
    """Return the table of BF.MEXISTS of 100 on a filter larger than the caches."""
    capacity = world.scaled(LARGE_FULL if world.args.full else LARGE)
    filled = world.scaled(LARGE_FILLED * (10 if world.args.full else 1))
    bits, hashes = classic(capacity, LARGE_RATE)
    result = tables.table(
        "classics-large", f"BF.MEXISTS of {LARGE_ITEMS} in a filter for "
        f"{capacity:,} items at {LARGE_RATE}: server CPU for one item, 50 "
        "connections", COLUMNS[:2] + COLUMNS[5:])
    asked = ["--range", 2 * filled, "--key", "large"]
    sides = {}
    for name, server in world.bf_sides().items():
        why = reserve(server, "large", LARGE_RATE, capacity)
        if why is not None:
            result["notes"].append(f"{name}: left out, BF.RESERVE answers {why}.")
            continue
        world.fill(server, filled, "--command", "madd", "--key", "large",
                   "--items", 1000, "--pipeline", 1, "--requests",
                   math.ceil(filled / 1000))
        sides[name] = {"check": Side(server, world.window(
            50, "--command", "mexists", "--items", LARGE_ITEMS, "--pipeline", 1,
            *asked), LARGE_ITEMS)}
    if world.has_bits and bits <= BITMAP_LIMIT:
        by_hand = ["--bits", bits, "--hashes", hashes, "--pipeline", LARGE_ITEMS]
        world.fill(world.other, filled, "--command", "setbit", "--key", "large",
                   "--requests", filled, *by_hand)
        sides[f"{LARGE_ITEMS} times {hashes} GETBIT"] = {"check": Side(
            world.other, world.window(50, "--command", "getbit", *asked,
                                      *by_hand), 1 / hashes)}
    elif world.has_bits:
        result["notes"].append(
            f"A bitmap cannot hold it: it would take {bits / 8e6:,.0f} MB, and a "
            "string in Redis has at most 512.")
    result["rows"] = compared(world, LARGE_ITEMS, sides)
    result["notes"].append(f"{filled:,} items were added, half of those asked for "
                           "are there. Nearly every item is a cache miss.")
    result["says"].append(
        f"A BF.MEXISTS of {LARGE_ITEMS} in a filter for {capacity:,} items "
        f"takes {result['rows'][0][2] * LARGE_ITEMS / 1000:.0f} µs "
        "of the server's CPU.")
    for server in world.bf_sides().values():
        server.call("DEL", "large")
    return [result]


# ---- a feed ------------------------------------------------------------------


def feed(world):
    """Return the table of a feed: requests at a fixed rate, each of many checks."""
    bits, hashes = classic(USER_CAPACITY, RATE)
    result = tables.table(
        "classics-feed", f"A feed: {FEED_RATE:,} requests a second, each asks for "
        f"{FEED_ITEMS} posts in the filter of one of {world.scaled(USERS):,} users, "
        "50 connections", ["server", "served/s", "CPU for one request, µs",
                           f"cores for {FEED_RATE:,}/s", "p50, ms", "p99, ms"])
    paced = ["--connections", "50", "--depth", "1", "--rate", str(FEED_RATE),
             "--seconds", "0.2" if world.args.quick else str(FEED_SECONDS),
             "--key", "user:", "--keys", str(world.scaled(USERS)), "--range",
             str(USER_CAPACITY)]
    sides = {f"{name}, BF.MEXISTS of {FEED_ITEMS}": Side(server, [
        *paced, "--command", "mexists", "--items", str(FEED_ITEMS),
        "--pipeline", "1"], 1) for name, server in world.bf_sides().items()}
    if world.has_bits:
        sides[f"{FEED_ITEMS} times {hashes} GETBIT in a pipeline"] = Side(
            world.other, [*paced, "--command", "getbit", "--bits", str(bits),
                          "--hashes", str(hashes), "--pipeline",
                          str(FEED_ITEMS)], FEED_ITEMS * hashes)
    seen = {name: [] for name in sides}
    for number in range(1 if world.args.quick else 3):
        for name in list(sides)[::1 - number % 2 * 2]:
            done = world.load.run(sides[name].server, [
                *sides[name].words, "--seed", str(number + 1)])
            cost = float(done["server_cpu_ns"]) * sides[name].items
            seen[name].append([float(done["rps"]) / sides[name].items, cost / 1e3,
                               cost * FEED_RATE / 1e9,
                               float(done["p50_us"]) / 1e3,
                               float(done["p99_us"]) / 1e3])
    for name, its in seen.items():
        served, *others = map(statistics.median, zip(*its))
        result["rows"].append([name, round(served), *others])
    result["notes"].append(
        "Medians of 3 rounds in turn. A latency counts from the time when the "
        "request was due, and shows the load of the machine too. If a server "
        "cannot keep up, fewer are served.")
    rows = result["rows"]
    result["says"].append(
        f"A feed that asks {FEED_RATE:,} times a second for {FEED_ITEMS} posts takes "
        f"{rows[0][3]:.0%} of one core" + (
            f"; with GETBIT by hand it would take {rows[-1][3]:.1f} cores."
            if world.has_bits else "."))
    return [result]


def published(world):
    """Return the table of published figures."""
    result = tables.table(
        "classics-published", "What people quote (not measured here)",
        ["work", "published", "source"], quoted.PUBLISHED)
    if not world.has_bf:  # else peers.py has measured a module
        result["says"].append(quoted.MODULES)
    return [result]


CASES = {"methods": methods, "libraries": libraries, "ci": ci, "users": users,
         "large": large, "feed": feed, "published": published}


def main():
    args = parse_args()
    servers.exit_on_sigterm()
    pin, load_pin = compare.pins()
    other = peers.peer(pin)
    ours = servers.Bloomery(args.build / "bloomery-server",
                            servers.LARGE_FILTERS, wrapper=pin)
    load = servers.Load(args.build, wrapper=load_pin)
    cases = args.case or list(CASES)
    found = []
    with contextlib.ExitStack() as stack:
        for server in (ours, other):
            if server is not None:
                stack.enter_context(server)
        world = World(args, load, load_pin, ours, other)
        if {"users", "feed"} & set(cases):
            fill_users(world)
        for case in cases:
            for each in CASES[case](world):
                print(tables.text(each) + "\n", flush=True)
                found.append(each)
            tables.save(args.json, found)  # what follows may fail
    if other is None:
        found[0]["notes"].append(
            "No redis-server is installed (tests/peers fetches Debian's into "
            "build/), so only Bloomery was measured.")
        tables.save(args.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
