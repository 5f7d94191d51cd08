#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures servers beside the nodes of a cluster, each figure with its mark: what a
# redirect costs, how late a server learns who owns which slots, and how long a client
# of a slot waits for a planned failover and for a move. It runs six nodes of each
# kind that tests/peers has fetched, with a server beside each, on 127.0.0.1. Waits
# are those of a client in Python that adds one item after the other and follows
# redirects; it repeats a TRYAGAIN 20 ms later. Such a client also waits for a busy
# processor, so the median of the waits is what is compared with a mark.
"""Measure servers beside the nodes of a cluster."""

import contextlib
import os
import random
import statistics
import sys
import threading
import time

import persist
import servers
from persist import MIB, say

sys.path.append(str(servers.ROOT / "tests"))

from lib import cluster, cluster_lag, replicas, slots  # noqa: E402
from watching import cpu_ns  # noqa: E402

MARK_MOVED = 1.2
MARK_LAG_MS, MARK_FAILOVER_MS, MARK_CUT_MS = 250, 150, 50
PIPELINES = (1, 16, 100)
KEYS = 800              # of MOVED, each in another slot
LARGE_ITEMS = 250_000   # of one filter, with 0.45 MB: below 10 MB a slot with 20
FILTERS_A_SLOT = 20
FULL_A_SLOT = 22        # of these filters, full: 1.09 GB in 100 slots


def kinds():
    """Return the kinds of nodes that are here."""
    found = [kind for kind in cluster.KINDS if not cluster.missing(kind)]
    if not found:
        raise SystemExit("no nodes: run tests/peers")
    return found


def describe(waits):
    """Return the text of some waits in ms, and their median."""
    median = statistics.median(waits)
    return f"{median:.0f} median, {max(waits):.0f} longest", median


class Adder:
    """A client that adds items to one filter, and notes when each was acknowledged."""

    def __init__(self, made, slot):
        self.made, self.key = made, slots.key_in(slot, "bench")
        self.times = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        with self.made.client() as client:
            while not self.over.is_set():
                reply, _ = client.call(self.key, "BF.ADD", self.key,
                                       str(len(self.times)))
                assert isinstance(reply, int), reply
                self.times.append(time.monotonic())

    def __enter__(self):
        self.thread.start()
        self.wait_more()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def wait_more(self, count=50):
        """Wait until so many items more are acknowledged."""
        goal = len(self.times) + count
        end = time.monotonic() + 60
        while len(self.times) < goal:
            assert self.thread.is_alive() and time.monotonic() < end
            time.sleep(0.002)

    def longest_ms(self, since):
        """Return the longest wait since then."""
        self.wait_more()
        times = [since] + [t for t in self.times if t > since]
        return max(b - a for a, b in zip(times, times[1:])) * 1000


def ask(conn, words, depth, reply):
    """Return a function that sends commands in pipelines and reads their replies,
    which begin like REPLY."""
    pipelines = [b"".join(servers.request(*w) for w in words[at:at + depth])
                 for at in range(0, len(words), depth)]

    def run():
        for pipeline in pipelines:
            conn.sock.sendall(pipeline)
            count = 0
            while count < depth:
                data = conn.sock.recv(1 << 16)
                assert data.startswith(reply) or count, data
                count += data.count(b"\n")
    return run


def moved(bench, made):
    """Compare the CPU time of MOVED, on as many keys as commands, with PING."""
    server = made.pairs[0].daemon
    others = [slots.key_in(slot, "k") for slot in random.Random(1).sample(
        range(slots.SLOTS // 2, slots.SLOTS), KEYS)]
    met = []
    for depth in PIPELINES:
        ratios, rounds = [], bench.scaled(20 if depth == 1 else 200)
        with server.conn() as conn:
            works = [ask(conn, [("BF.EXISTS", key, "item") for key in others], depth,
                         b"-MOVED"),
                     ask(conn, [("PING",)] * KEYS, depth, b"+PONG")]
            for _ in range(bench.pairs(11, 3)):
                costs = []
                for work in works:
                    began = cpu_ns(server.child.pid)
                    for _ in range(rounds):
                        work()
                    costs.append(cpu_ns(server.child.pid) - began)
                ratios.append(costs[0] / costs[1])
        text, median = persist.spread(ratios)
        met.append(say(f"  {made.kind}: CPU of MOVED / PING, pipeline {depth}", text,
                       f"<= {MARK_MOVED:g}", median <= MARK_MOVED, "separate keys"))
    return all(met)


def failover(bench, made):
    """Make a replica the primary, and measure how long clients wait. Also measures
    how late the servers learn of it."""
    waits, lags = [], []
    for _ in range(bench.pairs(10, 2)):
        primary = made.owner(0)
        replica = made.replicas_of(primary)[0]
        with Adder(made, 0) as adder, cluster_lag.Lag(made) as lag:
            began = time.monotonic()
            made.failover(replica)
            made.wait_settled()
            waits.append(adder.longest_ms(began))
            cluster.wait_until(lag.is_stable, 60, "a stable map", 0.05)
            seen, never = lag.lags(limit=1)
            assert not never, never
            lags += seen
    text, median = describe(waits)
    lags = [seconds * 1000 for seconds in lags]
    p99 = statistics.quantiles(lags, n=100)[98]
    persist.answer(
        f"Beside {made.kind}, a client waits {median:.0f} ms for a planned failover "
        f"(median of {len(waits)}), and a server learns in {p99:.0f} ms who owns which "
        "slots (99 of 100 times).")
    good = say(f"  {made.kind}: wait for CLUSTER FAILOVER, ms", text,
               f"<= {MARK_FAILOVER_MS}", median <= MARK_FAILOVER_MS,
               f"{len(waits)} failovers")
    return say(f"  {made.kind}: lag behind the node, ms",
               f"{statistics.median(lags):.0f} median, {p99:.0f} p99",
               f"<= {MARK_LAG_MS}", p99 <= MARK_LAG_MS,
               f"{len(lags)} maps") and good


def fill(made, moving, filters):
    """Put filters into slots. Return their bytes."""
    total = 0
    with made.client() as client:
        for slot in moving:
            for number in range(filters):
                key = slots.key_in(slot, f"data{number}")
                reply, _ = client.call(key, "BF.RESERVE", key, "0.001", LARGE_ITEMS)
                assert reply == b"OK" or "exists" in str(reply), reply
                total += client.call(key, "BF.INFO", key, "SIZE")[0]
    return total


def carry(made, moving, to, watched):
    """Move slots. Return the longest wait of clients of some, and how long it took,
    both in ms."""
    with contextlib.ExitStack() as stack:
        adders = [stack.enter_context(Adder(made, slot)) for slot in watched]
        began = time.monotonic()
        if made.kind == "valkey":
            made.migrate(slots.ranges_of(moving), to)
        else:
            made.reshard(moving, to)
        made.wait_settled()
        made.wait_served()
        took = (time.monotonic() - began) * 1000
        return max(adder.longest_ms(began) for adder in adders), took


def move(bench, made, count, filters):
    """Move slots there and back, and measure how long clients of the first wait."""
    moving = list(range(100, 100 + count))
    size = fill(made, moving, filters) if filters else 0
    waits, whole = [], []
    home = made.owner(moving[0])
    ends = [next(p for p in made.primaries() if p is not home), home]
    for to in ends * bench.pairs(5, 1):
        waited, took = carry(made, moving, to, moving[:1])
        waits.append(waited)
        whole.append(took)
    text, median = describe(waits)
    if count == 1 and filters:
        persist.answer(f"Beside {made.kind}, a client waits {median:.0f} ms for the "
                       f"move of a slot with {size / MIB:.0f} MiB of filters.")
    small = size < 10 * MIB * count
    return say(f"  {made.kind}: wait for {count} {'slots' if count > 1 else 'slot'} "
               f"with {size / MIB:.0f} MiB, ms", text,
               f"<= {MARK_CUT_MS}" if small else "",
               median <= MARK_CUT_MS if small else None,
               f"{len(waits)} moves of {statistics.median(whole):.0f} ms")


def cut(bench, made):
    """Move few and many slots, without and with filters."""
    return all([move(bench, made, 1, 0), move(bench, made, 1, FILTERS_A_SLOT),
                move(bench, made, 100, 0), move(bench, made, 100, 1)])


def fill_full(made, moving, filters):
    """Put copies of a full filter into slots. Return their bytes."""
    with made.client(seconds=60) as client:
        def call(key, *words):
            return client.call(key, *words)[0]

        first = slots.key_in(moving[0], "full")
        call(first, "BF.RESERVE", first, "0.001", LARGE_ITEMS)
        for at in range(0, LARGE_ITEMS, 5000):
            call(first, "BF.MADD", first, *map(str, range(at, at + 5000)))
        size, dump = call(first, "BF.INFO", first, "SIZE"), call(first, "DUMP", first)
        call(first, "DEL", first)
        for slot in moving:
            for number in range(filters):
                key = slots.key_in(slot, f"full{number}")
                reply = call(key, "RESTORE", key, 0, dump)
                assert reply == b"OK", reply
    return size * filters * len(moving)


def rest(made):
    """Wait until no server rewrites its journal: the disk would be busy with it."""
    for pair in made.pairs:
        cluster.wait_until(lambda server=pair.daemon: replicas.info(
            server, "persistence")["aof_rewrite_in_progress"] == "0", 300, "rests")


def full(bench, made):
    """Move 100 slots with a gigabyte, and measure the waits of three clients."""
    moving = list(range(100, 200))
    size = fill_full(made, moving, 1 if bench.quick else FULL_A_SLOT)
    home = made.owner(moving[0])
    ends = [next(p for p in made.primaries() if p is not home), home]
    moves = []
    for to in ends * bench.pairs(5, 1):
        rest(made)
        moves.append(carry(made, moving, to, moving[::49]))
    text, _ = describe([waited for waited, _ in moves])
    return say(f"  {made.kind}: wait for 100 slots with {size / 1e6:.0f} MB, ms", text,
               "", None, f"{len(moves)} moves of "
               f"{statistics.median(took for _, took in moves):.0f} ms")


STEPS = {"moved": moved, "failover": failover, "cut": cut, "full": full}


def part(step):
    """Return a part that measures beside each kind of node."""
    def run(bench):
        met = []
        os.environ["BLOOMERY_SERVER"] = str(bench.build / "bloomery-server")
        for kind in kinds():
            print(f"{STEPS[step].__doc__.split('.')[0]}: beside {kind}")
            with cluster.Cluster(kind) as made:
                met.append(STEPS[step](bench, made))
        return all(met)

    run.__doc__ = STEPS[step].__doc__
    return run


PARTS = {step: part(step) for step in STEPS}

if __name__ == "__main__":
    sys.exit(persist.main(PARTS, __doc__))
