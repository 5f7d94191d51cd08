#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Counts the user-space instructions of a command. Each workload runs twice under
# callgrind, with different numbers of commands. The difference of the totals
# divided by the difference of the commands is the cost of one command, without
# start-up, warm-up, connecting and stopping. The figures repeat to within a few
# instructions on a busy machine too, so several runs may go on at a time. Without
# a server, the script counts the null server. With --variants it counts the
# instructions that each feature adds, and where the instructions go. pins.py
# compares such counts with fixed figures.
"""Count user-space instructions per command with callgrind."""

import collections
import concurrent.futures
import contextlib
import os
import pathlib
import re
import socket
import tempfile
import threading
import time

import callprofile
import servers
import tables

# Each: options of load, commands of the short and of the long run, items per command.
Workload = collections.namedtuple("Workload", "options short long items")
# The items that every run adds in its warm-up; new items come after these.
RANGE = 10000
NEW = ["--sequential", "--first", str(RANGE), "--range", "80000"]
KNOWN = ["--range", str(RANGE)]

WORKLOADS = {
    "add": Workload(["--command", "add", "--pipeline", "100", *KNOWN],
                    5000, 25000, 1),
    "exists": Workload(["--command", "exists", "--pipeline", "100", *KNOWN],
                       5000, 25000, 1),
    "madd": Workload(["--command", "madd", "--pipeline", "16", *KNOWN],
                     80, 400, 100),
    "mexists": Workload(["--command", "mexists", "--pipeline", "16", *KNOWN],
                        80, 400, 100),
    "add-new": Workload(["--command", "add", "--pipeline", "100", *NEW],
                        5000, 25000, 1),
    "madd-new": Workload(["--command", "madd", "--pipeline", "16", *NEW],
                         80, 720, 100),
}
PLAIN = ["add", "exists", "madd", "mexists"]
FILTER = ("BF.RESERVE", "bench", "0.01", "100000")

Variant = collections.namedtuple(
    "Variant", "options commands listens load replica",
    defaults=((), (), (), (), False))
# options: those of the server. commands: sent to it after the warm-up. listens:
# sent by a client that only listens from then on. load: options of the load.
OFF = "as started: all of it off or idle"
VARIANTS = {
    OFF: Variant(),
    "slow log takes every command": Variant(
        commands=[("CONFIG", "SET", "slowlog-log-slower-than", "0")]),
    "latency monitor on, nothing slow": Variant(
        commands=[("CONFIG", "SET", "latency-monitor-threshold", "100")]),
    "a password, given once": Variant(
        commands=[("CONFIG", "SET", "requirepass", "secret")],
        load=["--before", "AUTH secret"]),
    "somebody subscribed, to a channel": Variant(
        listens=[("SUBSCRIBE", "news")]),
    "somebody subscribed, to another filter": Variant(
        listens=[("HELLO", "3"), ("BF.SUBSCRIBE", "other")]),
    "somebody subscribed, to this filter": Variant(
        listens=[("HELLO", "3"), ("BF.SUBSCRIBE", "bench")]),
    "keyspace events, one subscriber": Variant(
        commands=[("CONFIG", "SET", "notify-keyspace-events", "KEA")],
        listens=[("PSUBSCRIBE", "__key*__:*")]),
    "CLIENT TRACKING, by the same client": Variant(
        load=["--resp3", "--before", "CLIENT TRACKING ON"]),
    "CLIENT TRACKING BCAST, by another": Variant(
        listens=[("HELLO", "3"), ("CLIENT", "TRACKING", "ON", "BCAST")]),
    "MONITOR": Variant(listens=[("MONITOR",)]),
    "journal, everysec": Variant(
        options=["--appendonly", "yes", "--appendfsync", "everysec"]),
    "one replica": Variant(replica=True),
}
VARIED = ["add-new", "exists", "madd-new"]

# The source files of each feature; all others belong to the command itself.
ALWAYS_ON = "statistics"
FEATURES = {
    ALWAYS_ON: r"measure/(stats|sampler)\.|base/(metrics|clock)\.|"
                  r"engine/execute\.c:execute_count|libraries:.*gettime",
    "slow log, latency monitor": r"engine/slow\.|measure/(slowlog|latency)\.",
    "notifications, tracking, MONITOR":
        r"engine/observe\.|push/(notice|pubsub|monitor|tracking|readership|"
        r"prefixes|targets|receiver)\.",
    "journal, replication": r"engine/effect\.|persist/|repl/|roles/follow",
    "access": r"access/(auth|acl_log)\.|engine/(admit|refusal|pause)\.",
}


def parse_args():
    """Return the command line; unknown options are for the server."""
    parser = servers.arguments(
        __doc__, "only some variants: a smoke test",
        epilog="Options that are not listed are passed to the server.")
    parser.add_argument("--server", type=pathlib.Path,
                        help="binary to count (default: the null server)")
    parser.add_argument("--workload", action="append", choices=WORKLOADS,
                        help="only this one (may be repeated)")
    parser.add_argument("--variants", action="store_true",
                        help="count what each feature adds, and each layer")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="runs at a time")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR",
                        help="keep callgrind's files here")
    args, server_options = parser.parse_known_args()
    if args.variants and args.server is None:
        parser.error("--variants: of a --server")
    return args, server_options


# ---- one run -----------------------------------------------------------------


@contextlib.contextmanager
def listener(server, commands):
    """Run a client that sends COMMANDS and reads everything it gets."""
    if not commands:
        yield
        return
    with socket.create_connection(("127.0.0.1", server.port)) as peer:
        for words in commands:
            peer.sendall(servers.request(*words))
            if not peer.recv(65536).startswith((b"+", b"*", b"%", b">")):
                raise SystemExit(f"{words} was refused")

        def drain():
            with contextlib.suppress(OSError):
                while peer.recv(1 << 20):
                    pass

        thread = threading.Thread(target=drain)
        thread.start()
        try:
            yield
        finally:
            peer.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextlib.contextmanager
def follower(args, server, wanted):
    """Run a replica that has all data of the server."""
    if not wanted:
        yield
        return
    with servers.Bloomery(args.server) as replica:
        replica.call("REPLICAOF", "127.0.0.1", str(server.port))
        deadline = time.monotonic() + servers.START_SECONDS
        while "master_link_status:up" not in replica.info("replication"):
            if time.monotonic() > deadline:
                raise SystemExit("the replica did not follow")
            time.sleep(0.05)
        yield


def valgrind(profile):
    """Return the prefix of a command line that counts its instructions."""
    return ["valgrind", "--tool=callgrind", f"--log-file={profile}.log",
            f"--callgrind-out-file={profile}"]


def collected(profile, pid):
    """Return the instructions of a process that has ended."""
    log = pathlib.Path(f"{profile}.log").read_text(encoding="utf-8")
    # A forked child that saves writes its own total.
    found = re.search(rf"=={pid}== Collected : (\d+)", log)
    if found is None:
        raise SystemExit(f"no total in valgrind's log:\n{log}")
    return int(found.group(1))


def per_command(few, many):
    """Return the instructions of one command, from the totals of two runs."""
    return (many[0] - few[0]) / (many[1] - few[1])


def run_once(args, options, name, variant, commands, profile):
    """Return the instructions of a whole run with that many commands."""
    data = pathlib.Path(f"{profile}.data")
    wrapper = valgrind(profile)
    if args.server is None:
        server = servers.Null(args.build, wrapper=wrapper)
    else:
        data.mkdir()
        server = servers.Bloomery(
            args.server, [*options, *variant.options, "--dir", str(data)],
            wrapper=wrapper)
    load = servers.Load(args.build)
    common = ["--connections", "1", "--depth", "1", "--timeout", "60"]
    with server:
        server.call(*FILTER)
        # The warm-up is the same in both runs: every item is added once.
        load.run(server, ["--command", "add", "--pipeline", "100",
                          "--sequential", "--range", str(RANGE),
                          "--requests", str(RANGE)] + common)
        with follower(args, server, variant.replica), \
                listener(server, variant.listens):
            for words in variant.commands:
                server.call(*words)
            done = load.run(server, [
                *WORKLOADS[name].options, "--requests", str(commands),
                *variant.load, *common])["commands"]
        pid = server.process.pid
    return collected(profile, pid), int(done)


class Counter:
    """Counts workloads, several at a time."""

    def __init__(self, args, options, folder):
        self.args, self.options, self.folder = args, options, folder
        self.pool = concurrent.futures.ThreadPoolExecutor(max(args.jobs, 1))
        self.runs = {}

    def profile(self, name, variant, commands):
        """Return the file of a run's profile."""
        number = list(VARIANTS).index(variant)
        return self.folder / f"callgrind.{name}.{number}.{commands}"

    def start(self, name, variant=OFF):
        """Start the two runs of a workload, unless they have started."""
        if (name, variant) not in self.runs:
            self.runs[name, variant] = [
                self.pool.submit(run_once, self.args, self.options, name,
                                 VARIANTS[variant], commands,
                                 self.profile(name, variant, commands))
                for commands in WORKLOADS[name][1:3]]
        return self.runs[name, variant]

    def cost(self, runs):
        """Return the instructions of one command."""
        return per_command(*(run.result() for run in runs))


# ---- tables ------------------------------------------------------------------


def plain(args, counter):
    """Count the workloads of a server as it starts."""
    result = tables.table(
        "instructions", "User instructions per command",
        ["workload", "per command", "per item"])
    runs = {name: counter.start(name) for name in args.workload or PLAIN}
    for name, its in runs.items():
        cost = counter.cost(its)
        result["rows"].append([name, round(cost, 1),
                               round(cost / WORKLOADS[name].items, 1)])
    return [result]


def varied(counter, names):
    """Count the instructions that each feature adds; return the table."""
    result = tables.table(
        "features", "User instructions of all threads, and what a feature "
        "adds to them when it is on",
        ["feature", "BF.ADD, new item", "+", "BF.EXISTS", "+",
         "BF.MADD, per new item", "+"])
    runs = {(variant, name): counter.start(name, variant)
            for variant in names for name in VARIED}
    base = {}
    for variant in names:
        cells = [variant]
        for name in VARIED:
            cost = (counter.cost(runs[variant, name])
                    / WORKLOADS[name].items)
            more = round(cost - base.setdefault(name, cost), 1)
            cells += [round(cost), "" if variant == OFF else f"{more:+,.0f}"]
        result["rows"].append(cells)
    result["notes"].append(
        "BF.ADD and BF.EXISTS at pipeline 100, BF.MADD of 100 items at "
        "pipeline 16; one connection. The server's timers count too: on a "
        "quiet machine differences below about 5 are noise, on a busy one "
        "below 20.")
    return result


def places(counter, workload):
    """Return the instructions of one command of a workload, by source place."""
    _, short, long, _ = WORKLOADS[workload]
    few, many = (callprofile.read(counter.profile(workload, OFF, commands))
                 for commands in (short, long))
    return callprofile.per_command(few, many, long - short)


def idle(counter):
    """Return the table of the features' costs while they are off or idle."""
    result = tables.table(
        "idle", "Instructions per command in the code of each feature while "
        "it is off or idle (statistics are always on)",
        ["part of the source", "BF.ADD, new item", "BF.EXISTS"])
    layers = tables.table(
        "layers", "Where the instructions of a command go, by layer",
        ["layer", "BF.ADD, new item", "BF.EXISTS"])
    costs = [places(counter, name) for name in ("add-new", "exists")]

    def total(matches):
        return [round(sum(cost for place, cost in each.items()
                          if matches(place)), 1) for each in costs]

    for feature, pattern in FEATURES.items():
        result["rows"].append([feature, *total(
            lambda place, its=pattern: re.search(its, place))])
        if feature != ALWAYS_ON:
            most = max(result["rows"][-1][1:])
            result["marks"].append(tables.mark(
                f"instructions per command while off or idle: {feature}",
                "none", " and ".join(f"{max(cost, 0.0):.1f}" for cost
                                     in result["rows"][-1][1:]),
                most < 1))
    # Lines of dispatch that read a flag for a feature count as dispatch.
    result["notes"].append(
        "Assigned by the source lines of the instructions, including code "
        "that the compiler inlined.")
    names = {re.split("[/:]", place)[0] for each in costs for place in each}
    rows = [[name, *total(lambda place, its=name:
                          re.split("[/:]", place)[0] == its)]
            for name in names]
    rows.sort(key=lambda row: -row[1])
    layers["rows"] = [row for row in rows if max(row[1:]) >= 0.05]
    layers["rows"].append(["all", *total(lambda place: True)])
    return [result, layers]


def main():
    args, server_options = parse_args()
    servers.exit_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        folder = args.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        counter = Counter(args, server_options, folder.resolve())
        try:
            found = plain(args, counter)
            if args.variants:
                names = list(VARIANTS)[:2 if args.quick else None]
                found.append(varied(counter, names))
                found += idle(counter)
        finally:
            counter.pool.shutdown(cancel_futures=True)
    for each in found:
        print(tables.text(each) + "\n", flush=True)
    tables.save(args.json, found)


if __name__ == "__main__":
    main()
