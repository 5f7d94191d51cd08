#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# `make demo-cluster`: a word list in a cluster, through a stock client. It starts six
# nodes of Valkey 9 (of Debian's Redis if tests/peers could not fetch it) and a server
# beside each, on 127.0.0.1. While the words are loaded, slots move, a replica takes
# over, and a node is killed. It always stops what it started, by process ids. Exit
# status 0: every word was found at the end. 1: not so. 2: something is missing.
"""Show Bloomery beside the nodes of a cluster: nothing gets lost."""

import argparse
import collections
import logging
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

import redis
from redis.cluster import RedisCluster

import demo
import servers
from demo import Failure, si

sys.path.append(str(servers.ROOT / "tests"))

from lib import cluster, slots  # noqa: E402
from lib import servers as peers  # noqa: E402

ITEMS_A_COMMAND = 100
COMMANDS_A_PIPELINE = 32
PATIENCE_SECONDS = 60
MOVED_SLOTS = 1000
WORDS_A_SECOND = 60_000     # slowly, so that the load outlasts the changes
ADD = "BF.INSERT"
HAS = "BF.MEXISTS"


def key_of(word):
    """A filter for all words with the same first two letters."""
    return f"words:{word[:2].lower()}"


def commands(words, make):
    """Lists of commands: of MAKE(key, items), with all its items, for each key."""
    by_key = collections.defaultdict(list)
    for word in words:
        by_key[key_of(word)].append(word)
    pieces = [(key, items[at:at + ITEMS_A_COMMAND], len(items))
              for key, items in by_key.items()
              for at in range(0, len(items), ITEMS_A_COMMAND)]
    # Keys of all nodes, in the order of a hash: each pipeline goes to all of them.
    pieces.sort(key=lambda piece: (slots.slot_of(piece[0]) * 7919 % slots.SLOTS,
                                   piece[0]))
    for part in demo.chunks(pieces, COMMANDS_A_PIPELINE):
        yield [(make(key, items, total), len(items)) for key, items, total in part]


def insert(key, items, total):
    """The command that adds items to a filter made for TOTAL."""
    return (ADD, key, "CAPACITY", total, "ERROR", "0.001", "ITEMS", *items)


def exist(key, items, _):
    """The command that asks for items."""
    return (HAS, key, *items)


class Sender(threading.Thread):
    """Sends all commands, each until it gets its answers. PACE: items a second."""

    def __init__(self, client, batches, pace=None):
        super().__init__(daemon=True)
        self.client, self.batches, self.pace = client, batches, pace
        self.done = self.ones = self.repeated = 0
        self.longest = 0.0
        self.problem = None

    def run(self):
        try:
            for batch in self.batches:
                began = time.monotonic()
                self.send(batch)
                if self.pace:
                    due = began + sum(count for _, count in batch) / self.pace
                    time.sleep(max(0, due - time.monotonic()))
        except (redis.RedisError, Failure) as problem:
            self.problem = problem

    def send(self, batch):
        """Send one pipeline, again after an error: adding twice does no harm."""
        began = time.monotonic()
        while True:
            try:
                pipe = self.client.pipeline()
                for command, _ in batch:
                    pipe.execute_command(*command)
                replies = pipe.execute()
                break
            except (redis.RedisError, OSError):
                if time.monotonic() - began > PATIENCE_SECONDS:
                    raise
                self.repeated += 1
                time.sleep(0.05)
        for (command, count), reply in zip(batch, replies):
            if len(reply) != count:
                raise Failure(f"{command[0]} answered {reply[-1]!r}")
            self.ones += sum(reply)
            self.done += count
        self.longest = max(self.longest, time.monotonic() - began)


class Operator(threading.Thread):
    """Changes the cluster while the words are loaded."""

    def __init__(self, made, sender, total):
        super().__init__(daemon=True)
        self.made, self.sender, self.total = made, sender, total
        self.lines = queue.SimpleQueue()
        self.problem = None

    def run(self):
        try:
            for share, change in ((0.2, self.move), (0.4, self.fail_over),
                                  (0.6, self.kill)):
                while self.sender.done < share * self.total and \
                        self.sender.is_alive():
                    time.sleep(0.005)
                self.lines.put(change())
                self.made.wait_settled()
        except (AssertionError, OSError) as problem:
            self.problem = problem

    def move(self):
        """Move slots from one primary to another."""
        source, to = self.made.primaries()[:2]
        first = self.made.view()[source.node.id].ranges[0][0]
        moved = range(first, first + MOVED_SLOTS)
        began = time.monotonic()
        if self.made.kind == "valkey":
            self.made.migrate([(moved[0], moved[-1])], to)
            how = "CLUSTER MIGRATESLOTS"
        else:
            self.made.reshard(moved, to)
            how = "CLUSTER SETSLOT"
        return "moved", (f"{si(len(moved))} slots from {name(source)} to "
                         f"{name(to)}, {since(began)} ({how})")

    def fail_over(self):
        """Make a replica the primary, as before maintenance."""
        old = self.made.primaries()[0]
        replica = self.made.replicas_of(old)[0]
        began = time.monotonic()
        self.made.failover(replica)
        return "promoted", (f"{name(replica)}, a replica of {name(old)}, "
                            f"{since(began)} (CLUSTER FAILOVER)")

    def kill(self):
        """Kill a primary; start it again when its replica has taken over."""
        old = self.made.primaries()[1]
        slot = self.made.view()[old.node.id].ranges[0][0]
        began = time.monotonic()
        old.node.crash()
        new = self.made.wait_new_owner(slot, old)
        took = since(began)
        self.made.heal()
        return "killed", (f"{name(old)} with kill -9; {name(new)} took over, "
                          f"{took}")


def name(pair):
    """A node is known by its port."""
    return f"node {pair.node.port}"


def since(began):
    """The time since then."""
    return f"{time.monotonic() - began:.2f} s"


def watch(screen, label, sender, total, operator=None):
    """Draw the progress and what the operator says, until both have ended."""
    began = time.monotonic()
    sender.start()
    if operator:
        operator.start()
    while sender.is_alive() or (operator and operator.is_alive()):
        time.sleep(0.02)
        while operator and not operator.lines.empty():
            screen.bar_end(*operator.lines.get())
        screen.bar(label, sender.done, total, began)
    while operator and not operator.lines.empty():
        screen.bar_end(*operator.lines.get())
    for one in filter(None, (sender, operator)):
        if one.problem:
            raise Failure(f"{label}: {one.problem}")
    return time.monotonic() - began


def show_nodes(screen, made):
    """Print the primaries, their slots and replicas."""
    view = made.view()
    for pair in sorted(made.primaries(),
                       key=lambda p: view[p.node.id].ranges[0]):
        count = sum(b - a + 1 for a, b in view[pair.node.id].ranges)
        with pair.daemon.conn() as conn:
            filters = conn.call("DBSIZE")
        replicas = ", ".join(str(r.node.port) for r in made.replicas_of(pair))
        screen.line(f"  {name(pair)}, Bloomery {pair.daemon.port}: "
                    f"{si(count):>6} slots, {si(filters):>4} filters, "
                    f"replica {replicas}")


def run(screen, made, words):
    """Load, change the cluster, and check. Return whether every word is there."""
    client = RedisCluster(host="127.0.0.1", port=made.addresses()[0][1])
    total = len(words)
    show_nodes(screen, made)
    screen.line()
    sender = Sender(client, commands(words, insert), WORDS_A_SECOND)
    seconds = watch(screen, "load", sender, total, Operator(made, sender, total))
    screen.bar_end("load", f"{si(total)} words in {seconds:.1f} s; longest wait of "
                   f"the client {sender.longest:.2f} s")
    reader = Sender(client, commands(words, exist))
    seconds = watch(screen, "check", reader, total)
    missing = total - reader.ones
    screen.bar_end("check", f"all {si(total)} words found in {seconds:.1f} s"
                   if missing == 0 else
                   screen.style("1;31", f"{si(missing)} words are MISSING"))
    screen.line()
    show_nodes(screen, made)
    client.close()
    return missing == 0


def demonstrate(screen, options):
    """Start the cluster and run."""
    if not options.server.exists():
        raise Failure(f"{options.server} is missing; build it with make")
    os.environ["BLOOMERY_SERVER"] = str(options.server.resolve())
    kind = "redis" if peers.valkey_missing() else "valkey"
    why = cluster.missing(kind)
    if why:
        raise Failure(f"no cluster nodes: {why}")
    words = demo.read_words(options.words)
    began = time.monotonic()
    with cluster.Cluster(kind) as made:
        told = subprocess.run([made.pairs[0].node.argv[0], "--version"],
                              capture_output=True,
                              env=peers.redis_environment() if kind == "redis"
                              else None, text=True).stdout.split()
        screen.line(f"{screen.style('1', 'Bloomery')} beside six nodes of "
                    f"{told[0]} {told[2].removeprefix('v=')}, through redis-py "
                    f"{redis.__version__}; ready in {since(began)}")
        screen.line(f"  list     {si(len(words))} words, {options.words}")
        good = run(screen, made, words)
    screen.line()
    screen.line("Every word is still there." if good else
                screen.style("1;31", "Words were lost: see above."))
    return good


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", type=pathlib.Path,
                        default=servers.ROOT / "build/release/bloomery-server")
    parser.add_argument("--words", type=pathlib.Path, default=demo.WORDS)
    options = parser.parse_args()
    # redis-py logs every redirect as an error.
    logging.disable(logging.CRITICAL)
    servers.exit_on_sigterm()
    screen = demo.Screen(sys.stdout)
    try:
        return 0 if demonstrate(screen, options) else 1
    except (Failure, redis.RedisError, AssertionError) as error:
        if screen.tty:
            screen.line()
        sys.stderr.write(f"demo-cluster: {error}\n")
        return 2
    except KeyboardInterrupt:
        screen.line()
        return 130


if __name__ == "__main__":
    sys.exit(main())
