# SPDX-License-Identifier: BSD-3-Clause
#
# The promise of a copy of a filter: when it says absent, the server would have said
# so at some moment of the last max_stale_ms before the call. Each round has a writer,
# copies in processes of their own, some behind links that are slow, or cut at each frame, and
# faults: kill -9 and a restart, SIGSTOP of the server or of a copy, closed connections,
# and all that makes the key another one. Others fail over by Sentinels, or move the slot
# of the key. An item that was acknowledged max_stale_ms
# before a question, and that nothing has removed since, is never absent; and when the
# faults are over, each copy is soon fresh, and has every item.
#
# ROUNDS=500 is a long run, SEED=n repeats one (make local-rounds).

import os
import random
import signal
import threading
import time

import pytest

from lib import cluster, copies, crash, failover, resp, servers, slots
from lib.copies import AGE_SECONDS, STALE_SECONDS, Asker
from lib.servers import wait_until

ROUNDS = crash.amount("ROUNDS", 2)
# Failovers and moves of slots need seconds each.
FEW = max(1, ROUNDS // 20)
ROUND_SECONDS = 1.6
FRESH_SECONDS = 30 # at most, on a busy machine; 3 on one that is not
KINDS = [("EXPANSION", 2), ("NONSCALING",), ("EXPANSION", 1), ("DELETABLE",),
         ("AGEING", AGE_SECONDS)]
LAYOUTS = ["native", "redisbloom", "valkeybloom"]


def await_fresh(askers):
    """Waits until all copies say absent; returns how long that took."""
    begun = time.monotonic()
    for asker in askers:
        wait_until(lambda: asker.ask("nothing") == "absent", FRESH_SECONDS,
                   "the copy is fresh")
    return time.monotonic() - begun


class Round:
    def __init__(self, number, rng, start_server, folder):
        self.number, self.rng, self.start = number, rng, start_server
        self.options = ("--dir", folder, "--appendonly", "yes", "--appendfsync",
                        "always", "--threads", rng.choice([1, 2]),
                        "--bloom-layout", rng.choice(LAYOUTS))
        self.port = servers.free_port()
        self.server = start_server(*self.options, port=self.port)
        self.kind = rng.choice(KINDS)
        self.items = copies.Items(self.kind[0] == "AGEING")
        self.links = [kind(self.port, random.Random(rng.random()))
                      for kind in (copies.SlowLink, copies.FrameLink)]
        self.conn = self.server.conn(timeout=60 * servers.time_factor())
        self.create()
        self.askers = [Asker("redis://127.0.0.1:%d" % port, self.items,
                             random.Random(rng.random()), flags)
                       for port, flags in ((self.port, 0),
                                           *((link.port, 0) for link in self.links),
                                           (self.port, copies.MISSING_IS_ABSENT))]
        self.number_of_items = 0

    def create(self, key="k"):
        kind = self.kind
        native = "native" in self.options
        if kind[0] in ("DELETABLE", "AGEING") and not native:
            kind = self.kind = ("EXPANSION", 2)
            self.items.ageing = False
        self.conn.call("BF.RESERVE", key, "0.000001",
                       20000 if kind == ("NONSCALING",) else 300, *kind)

    def remove(self, *commands):
        """Sends commands that may remove items."""
        with self.items.lock:
            self.items.removed = time.monotonic()
        for command in commands:
            self.conn.call(*command)
            if command[0] == "reserve":
                self.create(command[1])

    def add(self):
        count = self.rng.choice([1, 1, 1, 30])
        items = ["%d-%d" % (self.number, self.number_of_items + i)
                 for i in range(count)]
        sent = time.monotonic()
        said = self.conn.call("BF.MADD", "k", *items)
        acknowledged = time.monotonic()
        self.number_of_items += count
        # A full filter answers the rest with one error.
        self.items.added.extend((sent, acknowledged, item)
                                for item, one in zip(items, said)
                                if not isinstance(one, resp.Error))

    # ---- faults ------------------------------------------------------------

    def kill(self):
        self.server.kill()
        time.sleep(self.rng.random() * 0.3)
        self.server = self.start(*self.options, port=self.port)
        self.conn = self.server.conn(timeout=60 * servers.time_factor())

    def stop_server(self):
        os.kill(self.server.pid, signal.SIGSTOP)
        time.sleep(self.rng.random() * 2 * STALE_SECONDS)
        os.kill(self.server.pid, signal.SIGCONT)

    def stop_copy(self):
        pid = self.rng.choice(self.askers).child.pid
        os.kill(pid, signal.SIGSTOP)
        for _ in range(self.rng.randrange(20)):
            self.add()
        time.sleep(self.rng.random() * 2 * STALE_SECONDS)
        os.kill(pid, signal.SIGCONT)

    def cut(self):
        self.conn.call("CLIENT", "KILL", "TYPE", "pubsub")

    def delete(self):
        self.remove(("DEL", "k"))
        time.sleep(self.rng.random() * 0.1)
        self.create()

    def rename(self):
        with self.items.lock:
            self.items.removed = time.monotonic()
        self.create("other")
        self.conn.call("RENAME", "other", "k")

    def flush(self):
        self.remove(("FLUSHALL",))
        self.create()

    def reset(self):
        self.remove(("BF.RESET", "k"))

    def copy(self):
        """Another filter with the same items."""
        self.conn.call("COPY", "k", "other", "REPLACE")
        self.conn.call("RENAME", "other", "k")

    def fault(self):
        self.rng.choice([self.kill, self.stop_server, self.stop_copy, self.cut,
                         self.delete, self.rename, self.flush, self.reset,
                         self.copy])()

    def run(self):
        end = time.monotonic() + ROUND_SECONDS
        pause = self.rng.choice([0, 0.0005, 0.005])
        next_fault = time.monotonic() + self.rng.random() * 0.8
        while time.monotonic() < end:
            self.add()
            time.sleep(pause)
            if time.monotonic() > next_fault:
                self.fault()
                next_fault = time.monotonic() + 0.1 + self.rng.random() * 0.8

    def check(self):
        for link in self.links:
            link.over = True # it cuts nothing more
        for asker in self.askers:
            asker.stop()
        self.remove(("DEL", "k"))
        self.create()
        self.add()
        late = await_fresh(self.askers)
        for asker in self.askers:
            wait_until(lambda: self.is_present(asker), 20, "it has the last item")
            assert asker.broken == [], (self.kind, self.options)
        return late

    def is_present(self, asker):
        item = self.items.added[-1][2]
        if self.items.ageing:
            self.conn.call("BF.ADD", "k", item) # it may have aged by now
        return asker.ask(item) == "present"

    def close(self):
        for asker in self.askers:
            asker.close()
        for link in self.links:
            link.close()
        self.server.kill()


@pytest.mark.slow
def test_a_copy_never_breaks_its_promise(start_server, tmp_path):
    slowest, asked, unknown = 0, 0, 0
    for number, seed in enumerate(crash.seeds(ROUNDS)):
        folder = tmp_path / str(number)
        folder.mkdir()
        one = Round(number, random.Random(seed), start_server, folder)
        try:
            one.run()
            slowest = max(slowest, one.check())
        finally:
            one.close()
        asked += sum(asker.asked for asker in one.askers)
        unknown += sum(asker.unknown for asker in one.askers)
    print("local rounds: %d, questions %d, unknown %d, fresh again in %.2f s" %
          (ROUNDS, asked, unknown, slowest))


# ---- several servers -----------------------------------------------------------

class Writer:
    """Adds items until it is stopped. add: a function of some items, which returns
    whether no fault can lose them."""

    def __init__(self, items, add):
        self.items, self.add, self.over = items, add, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        number = 0
        while not self.over.is_set():
            items = ["%d" % i for i in range(number, number + 10)]
            number += 10
            sent = time.monotonic()
            if self.add(items):
                at = time.monotonic()
                self.items.added.extend((sent, at, item) for item in items)
            time.sleep(0.002)

    def stop(self):
        self.over.set()
        self.thread.join()


class Group:
    """Copies of one key that several servers may have, and a writer."""

    def __init__(self, urls, key, add, rng):
        self.items = copies.Items()
        self.askers = [Asker(url, self.items, random.Random(rng.random()), key=key)
                       for url in urls]
        self.writer = Writer(self.items, add)

    def wait_progress(self):
        count = len(self.items.added)
        wait_until(lambda: len(self.items.added) > count + 200, 60,
                   "the writer goes on")

    def check(self):
        """Waits for new items, and until all copies have them; returns how long the
        copies needed to be fresh."""
        self.wait_progress()
        for asker in self.askers:
            asker.stop()
        late = await_fresh(self.askers)
        for asker in self.askers:
            item = self.items.added[-1][2]
            wait_until(lambda: asker.ask(item) == "present", 20, "it has an item")
            assert asker.broken == []
            asker.start()
        return late

    def close(self):
        self.writer.stop()
        for asker in self.askers:
            asker.close()

    def __str__(self):
        return "questions %d, unknown %d, acknowledged %d" % (
            sum(asker.asked for asker in self.askers),
            sum(asker.unknown for asker in self.askers), len(self.items.added))


def add_at_primary(ring, rng):
    """Returns a function that adds at the primary that a Sentinel names. An item that
    two replicas have is on all servers, whichever becomes the primary."""
    conns = []

    def add(items):
        try:
            if not conns:
                conns.append(ring.connect(rng))
            return not isinstance(conns[0].call("BF.MADD", "k", *items), resp.Error) \
                and conns[0].call("WAIT", 2, 300) == 2
        except (*failover.GONE, TypeError): # a Sentinel that names none
            if conns:
                conns.pop().close()
            return False
    return add


@pytest.mark.slow
@pytest.mark.skipif(bool(servers.oracle_missing()), reason="there is no Sentinel")
def test_a_copy_never_breaks_its_promise_when_sentinels_fail_over():
    seed = crash.seeds(1)[0]
    rng = random.Random(seed)
    journal = ("--appendonly=yes", "--appendfsync=always")
    slowest = 0
    with failover.Cluster(seed, [journal] * 3, writers=0, sentinels=failover.SHORT,
                          down_after_ms=int(failover.DOWN_AFTER_S * 1000)) as ring:
        with ring.nodes[0].conn() as conn:
            conn.call("BF.RESERVE", "k", "0.0000001", 1000)
        hosts = ",".join("%s:%d" % s.address for s in ring.watch.sentinels)
        group = Group(["redis+sentinel://%s/%s" % (hosts, ring.watch.sentinels[0].name)]
                      * 3, "k", add_at_primary(ring, rng), rng)
        try:
            group.wait_progress()
            for fault in rng.choices(sorted(failover.FAULTS), k=FEW):
                print(ring.round(fault))
                slowest = max(slowest, group.check())
        finally:
            group.close()
    print("failovers: %d, %s, fresh again in %.2f s" % (FEW, group, slowest))


def add_at_owner(client, key):
    """Returns a function that adds at the owner of the key."""
    def add(items):
        try:
            client.call(key, "BF.MADD", key, *items)
        except slots.Refused:
            return False
        return True
    return add


@pytest.mark.slow
@pytest.mark.parametrize("kind", cluster.KINDS)
def test_a_copy_never_breaks_its_promise_when_its_slot_moves(kind):
    if why := cluster.missing(kind):
        pytest.skip(why)
    rng = random.Random(crash.seeds(1)[0])
    slot, slowest = rng.randrange(slots.SLOTS), 0
    key = slots.key_in(slot, "copy")
    with cluster.Cluster(kind, replicas=0) as ring, ring.client() as client:
        client.call(key, "BF.RESERVE", key, "0.0000001", 1000)
        group = Group(["redis://%s:%d" % pair.daemon.address for pair in ring.pairs],
                      key, add_at_owner(client, key), rng)
        try:
            group.wait_progress()
            for _ in range(FEW):
                source = ring.owner(slot)
                to = rng.choice([p for p in ring.pairs if p is not source])
                if kind == "valkey" and rng.random() < 0.5:
                    ring.migrate([(slot, slot)], to)
                else:
                    ring.reshard_one(slot, source, to)
                slowest = max(slowest, group.check())
        finally:
            group.close()
    print("moves: %d, %s, fresh again in %.2f s" % (FEW, group, slowest))
