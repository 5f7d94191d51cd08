# SPDX-License-Identifier: BSD-3-Clause
#
# Load on a cluster, and what is wrong with its answers. Writers add items and note
# which the cluster acknowledged. Readers ask for acknowledged items: an answer of 0
# is a false negative. At the end every acknowledged item must be found. A test
# declares when and where acknowledged items may be lost, for example when it kills a
# primary that replicates asynchronously.

import collections
import contextlib
import os
import random
import threading
import time

from lib import resp, slots
from lib.servers import time_factor

LAG_S = 1.0            # replicas may lack what was acknowledged this long before
REFUSED_S = 20.0       # a command that got no answer for so long is stuck
READ_S = 0.5           # for readers, which then go on with another key
# In a row; more are too many for go-redis, for example. A daemon that does not know of
# a move yet sends to the old owner's, that one to the new owner's (MOVED), and that one
# back for the data (ASK).
REDIRECTS = 3

# Against plain nodes a set stands in for a filter.
BLOOM = {"add": "BF.ADD", "madd": "BF.MADD", "mexists": "BF.MEXISTS"}
SETS = {"add": "SADD", "madd": "SADD", "mexists": "SMISMEMBER"}

Ack = collections.namedtuple("Ack", "time slot key item port")
Bad = collections.namedtuple("Bad", "time slot key item port acked allowed")


class Load:
    """cluster: lib.cluster.Cluster. It writes to a key in every `every`-th slot,
    with one writer for each third of the slots and one for the `focus`."""

    def __init__(self, cluster, seed, words=BLOOM, every=16, shards=3, readers=2,
                 pace=0.004):
        self.cluster, self.words, self.pace = cluster, words, pace
        self.seed, self.shards = seed, shards
        self.name = os.urandom(4).hex()     # an earlier load's items are others
        self.slots = list(range(0, slots.SLOTS, every))
        self.focus = []         # slots that get a writer of their own
        self.acks = []          # Ack, in the order of their acknowledgement
        self.bad = []           # Bad
        self.windows = []       # (begin, end, slots, reason): losses are allowed
        self.kinds = collections.Counter()      # what nodes answered
        self.refused = []       # commands without an answer: str
        self.complaints = []    # errors that no client repeats: str
        self.loops = []         # ways with too many redirects: str
        self.redirects = collections.Counter()  # in a row: commands
        self.reads = 0
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.problems = []
        self.threads = []
        for number in range(shards + 1):
            self.thread(self.write, number)
        for number in range(readers):
            self.thread(self.read, number)

    def thread(self, body, number):
        def guarded():
            try:
                body(number)
            except Exception as problem:  # noqa: B902 - told at the end
                self.problems.append(repr(problem))

        self.threads.append(threading.Thread(target=guarded, daemon=True))

    def __enter__(self):
        self.began = time.monotonic()
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind, *_):
        self.stop()
        if kind is not None:
            print(self)

    def stop(self):
        self.over.set()
        for thread in self.threads:
            if thread.is_alive():
                thread.join()

    @property
    def most(self):
        """The most redirects of one command."""
        return max(self.redirects, default=0)

    # ---- writers

    def shard(self, number):
        """Returns the slots of one writer."""
        per = slots.SLOTS / self.shards
        return [s for s in self.slots if per * number <= s < per * (number + 1)]

    def write(self, number):
        rng = random.Random("%s-writer-%d" % (self.seed, number))
        mine = self.shard(number) if number < self.shards else None
        client = self.cluster.client(seconds=REFUSED_S * time_factor(), rng=rng)
        count = 0
        with client:
            while not self.over.wait(self.pace):
                choice = mine or self.focus
                if not choice:
                    continue
                slot = rng.choice(choice)
                items = ["%s-%d-%d" % (self.name, number, count + i)
                         for i in range(rng.choice((1, 1, 1, 2, 5)))]
                count += len(items)
                self.add(client, slot, items)

    def add(self, client, slot, items):
        key = slots.key_in(slot, "load")
        word = self.words["add" if len(items) == 1 else "madd"]
        reply = self.send(client, key, word, key, *items)
        if reply is None:
            return
        reply, port = reply
        now = time.monotonic()
        good = items if isinstance(reply, int) else [
            item for item, got in zip(items, reply) if isinstance(got, int)]
        self.acks += [Ack(now, slot, key, item, port) for item in good]
        if len(good) != len(items):
            self.complain("%s: %r" % (word, reply))

    def send(self, client, key, *words, seconds=None):
        """Returns (reply, port), or None; counts what happened on the way."""
        try:
            reply, way = client.call(key, *words, seconds=seconds)
        except slots.Refused as problem:
            way, reply = problem.way, None
            if seconds is None:
                self.refused.append("slot %d, %s" % (slots.slot_of(key), problem))
        with self.lock:
            self.kinds.update(kind for _, kind in way.hops)
            self.redirects[way.most] += 1
        if way.most > REDIRECTS and len(self.loops) < 20:
            self.loops.append("%.3f %s" % (time.monotonic() - self.began, way))
        if isinstance(reply, resp.Error):
            self.complain("%s: %s" % (words[0], reply))
            return None
        return None if reply is None else (reply, way.port)

    def complain(self, text):
        if len(self.complaints) < 20:
            self.complaints.append(text)

    # ---- readers

    def read(self, number):
        rng = random.Random("%s-reader-%d" % (self.seed, number))
        with self.cluster.client(rng=rng) as client:
            while not self.over.wait(self.pace):
                count = len(self.acks)
                if count == 0:
                    continue
                first = max(0, count - 200) if rng.random() < 0.5 else 0
                self.ask(client, [self.acks[rng.randrange(first, count)]],
                         seconds=READ_S * time_factor())

    def ask(self, client, acks, seconds=None):
        """Asks for acknowledged items of one key. Returns how many answers came."""
        key = acks[0].key
        got = self.send(client, key, self.words["mexists"], key,
                        *[a.item for a in acks], seconds=seconds)
        if got is None:
            return 0
        reply, port = got
        self.reads += len(acks)
        now = time.monotonic()
        self.bad += [Bad(now, a.slot, key, a.item, port, a.time, self.allowed(a))
                     for a, found in zip(acks, reply) if not found]
        return len(reply)

    # ---- windows, gaps

    @contextlib.contextmanager
    def may_lose(self, reason, only=None, lag=LAG_S):
        """Declares that what is acknowledged meanwhile, and shortly before, may be
        lost. only: in these slots."""
        window = [time.monotonic() - lag * time_factor(), None, only, reason]
        self.windows.append(window)
        try:
            yield
        finally:
            window[1] = time.monotonic()

    def allowed(self, ack):
        for begin, end, only, reason in self.windows:
            if begin <= ack.time and (end is None or ack.time <= end) and \
                    (only is None or ack.slot in only):
                return reason
        return None

    def gap(self, only, since=None, until=None):
        """Returns the longest time without an acknowledgement in these slots."""
        since = since or self.began
        until = until or time.monotonic()
        only = set(only)
        times = sorted(a.time for a in list(self.acks)
                       if a.slot in only and since <= a.time <= until)
        marks = [since] + times + [until]
        return max(b - a for a, b in zip(marks, marks[1:]))

    def gaps(self, since=None):
        return [self.gap(self.shard(n), since) for n in range(self.shards)]

    def wait_progress(self, only=None, seconds=30):
        """Waits until something new is acknowledged in each writer's part, or in
        these slots."""
        parts = [set(only)] if only else \
            [set(self.shard(n)) for n in range(self.shards)]
        begun = len(self.acks)
        deadline = time.monotonic() + seconds * time_factor()
        while parts:
            fresh = {a.slot for a in self.acks[begun:]}
            parts = [part for part in parts if not part & fresh]
            assert time.monotonic() < deadline, "no progress:\n%s" % self
            time.sleep(0.01)

    # ---- the end

    def check_all(self):
        """Asks for every acknowledged item, once the writers have ended."""
        by_key = collections.defaultdict(list)
        for ack in self.acks:
            by_key[ack.key].append(ack)
        self.missing = []
        before, self.bad = self.bad, []
        answers = 0
        with self.cluster.client(seconds=REFUSED_S * time_factor()) as client:
            for acks in by_key.values():
                for first in range(0, len(acks), 500):
                    answers += self.ask(client, acks[first:first + 500])
        self.missing, self.bad = self.bad, before
        assert answers == len(self.acks), "%d answers for %d items\n%s" % (
            answers, len(self.acks), self)

    missing = ()

    def finish(self):
        """Stops, checks all items, and fails if anything was wrong."""
        self.stop()
        self.check_all()
        faults = [*self.problems, *self.complaints, *self.loops,
                  *["stuck: " + r for r in self.refused],
                  *["false negative: " + self.tell(b) for b in self.bad
                    if not b.allowed],
                  *["missing: " + self.tell(b) for b in self.missing
                    if not b.allowed]]
        assert not faults, "%d faults:\n%s\n%s" % (
            len(faults), "\n".join(faults[:30]), self)
        return self

    def tell(self, bad):
        return "%.3f slot %d %s %s at port %d, acknowledged at %.3f%s" % (
            bad.time - self.began, bad.slot, bad.key, bad.item, bad.port,
            bad.acked - self.began,
            ", allowed: " + bad.allowed if bad.allowed else "")

    def __str__(self):
        def count(bad):
            allowed = sum(b.allowed is not None for b in bad)
            return "%d (and %d allowed)" % (len(bad) - allowed, allowed)

        return ("%d acknowledged, %d read; %s; false negatives %s, missing %s; "
                "commands by redirects %s; longest gaps %s; %d stuck" % (
                    len(self.acks), self.reads,
                    ", ".join("%s %d" % k for k in sorted(self.kinds.items())),
                    count(self.bad), count(self.missing),
                    " ".join("%d: %d" % r for r in sorted(self.redirects.items())),
                    " ".join("%.2f" % g for g in self.gaps()),
                    len(self.refused)))
