# SPDX-License-Identifier: BSD-3-Clause
#
# Eight pipelined writers on one thread, and a model that checks the data of a
# server after a crash.
#
# Every key except the shared ones belongs to one writer, so its history is a list
# of steps. After a crash, all keys of a writer must have the state after one and
# the same step, which must not precede the last step with a durable reply. So the
# data is a prefix of what the writer did, without half of a RENAME or of a
# transaction. Shared keys only get additions, and the model knows which items must
# be present. The false positive rate of the filters is so low that none occurs.

import random
import selectors
import socket
import time
from bisect import bisect_right
from itertools import groupby

from lib import resp, servers

# The options that the model relies on.
OPTIONS = ["--bf.bloom-fp-rate", "0.0000001", "--bf.bloom-capacity", "1000",
           "--save", "", "--databases", "16", "--threads", "2"]
SHARED = [b"shared:%d" % i for i in range(3)]
MOVED_DB = 15        # where all writers move keys to
SWAPPED_DBS = 7      # so much above the database that a writer swaps with
FAR = 4000000000000  # a time in ms that no test reaches
UNKNOWN = "durability unknown"
# The replies that a command may give if a key is missing or of another kind.
EXPECTED = (b"-ERR no such key", b"-ERR not found", b"-ERR cannot merge")

PENDING, HELD, REFUSED, OPEN = range(4)


class Absent:
    """The state of a missing key."""
    exists, items, expires, capacity, kin = False, frozenset(), -2, None, None


class State:
    """kin: two filters can be merged if one is a copy of the other, even if items
    were added since."""

    def __init__(self, items=frozenset(), expires=-1, capacity=None, kin=None):
        self.exists = True
        self.items, self.expires, self.capacity = items, expires, capacity
        self.kin = kin if kin is not None else object()

    def but(self, **changes):
        return State(**{"items": self.items, "expires": self.expires,
                        "capacity": self.capacity, "kin": self.kin, **changes})


# A step is a function of the states of the key and of all the writer's keys before
# the step.

def add(*items):
    def step(state, _):
        return state.but(items=state.items | frozenset(items)) \
            if state.exists else State(frozenset(items))
    return step


def expire(at_ms):
    def step(state, _):
        return state.but(expires=at_ms) if state.exists else state
    return step


def persist(state, _):
    return state.but(expires=-1) if state.exists else state


def reserve(capacity):
    def step(state, _):
        return state if state.exists else State(capacity=capacity)
    return step


def restored(items, expires):
    def step(state, _):
        return State(frozenset(items), expires)
    return step


def removed(state, _):
    return Absent


def emptied(state, _):
    return state.but(items=frozenset()) if state.exists else state


def merged_from(source):
    def step(state, states):
        other = states[source]
        if not other.exists:
            return state
        if not state.exists:
            return other.but(expires=-1)
        return state.but(items=state.items | other.items) \
            if state.kin == other.kin else state
    return step


def copied_from(source, replace):
    def step(state, states):
        take = states[source].exists and (replace or not state.exists)
        return states[source] if take else state
    return step


def moved_away(target, replace):
    def step(state, states):
        return Absent if replace or not states[target].exists else state
    return step


def swapped_with(other):
    def step(_, states):
        return states[other]
    return step


class Key:
    """A key with one owner."""

    def __init__(self, name, writer, db):
        self.name, self.writer, self.db = name, writer, db
        self.before = Absent  # the first step since the last check
        self.items = {}       # all that it may have, in order

    def then(self, number, step, items=()):
        self.writer.steps.append((number, self, step))
        self.items.update(dict.fromkeys(items))


class Writer:
    """One connection. Operation n is the n-th command that it sends."""

    def __init__(self, number, seed, tag=b"", db=0):
        self.number, self.tag, self.db = number, tag, db
        self.rng = random.Random(seed * 1000 + number)
        self.outcomes = []   # of each operation
        self.ends = []       # bytes of replies up to the end of each
        self.keys = []
        self.steps = []      # (operation, key, step)
        self.named = {}      # keys by name and database
        self.kin = []        # keys that may be copies of one another
        self.own = []        # those that no transaction fills
        self.pairs = []      # those that transactions fill alike
        self.shared = []     # (operation, key, item)
        self.made = 0
        self.unsent = bytearray()
        self.got = bytearray()
        self.sock = None
        self.errors = []     # replies that are none of the expected
        self.found = -1      # the last operation that the last check found

    # ---- commands ----------------------------------------------------------

    def command(self, *words):
        self.unsent += resp.command(*words)
        self.outcomes.append(PENDING)
        return len(self.outcomes) - 1

    def name(self, kind):
        self.made += 1
        return b"%s%s:%d:%d" % (kind, self.tag, self.number, self.made)

    def item(self):
        self.made += 1
        return b"i%s.%d.%d" % (self.tag, self.number, self.made)

    def new_key(self, kind):
        return self.key(self.name(kind), self.db)

    def key(self, name, db):
        if (name, db) not in self.named:
            self.named[name, db] = Key(name, self, db)
            self.keys.append(self.named[name, db])
        return self.named[name, db]

    def old_key(self):
        if not self.own or self.rng.random() < 0.05:
            self.own.append(self.new_key(b"key"))
        return self.rng.choice(self.own[-20:])

    def add_shared(self):
        name, item = self.rng.choice(SHARED), self.item()
        self.shared.append((self.command("BF.ADD", name, item), name, item))

    def madd_shared(self):
        name = self.rng.choice(SHARED)
        items = [self.item() for _ in range(self.rng.randrange(1, 8))]
        number = self.command("BF.MADD", name, *items)
        self.shared += [(number, name, item) for item in items]

    def add_own(self):
        key, item = self.old_key(), self.item()
        key.then(self.command("BF.ADD", key.name, item), add(item), [item])

    def insert_own(self):
        key, items = self.old_key(), [self.item(), self.item()]
        key.then(self.command("BF.INSERT", key.name, "ITEMS", *items),
                 add(*items), items)

    def reserve_new(self):
        key, capacity = self.new_key(b"res"), self.rng.randrange(300, 3000)
        self.own.append(key)
        key.then(self.command("BF.RESERVE", key.name, "0.0000001", capacity),
                 reserve(capacity))

    def delete(self):
        key = self.old_key()
        key.then(self.command(self.rng.choice(("DEL", "UNLINK")), key.name),
                 removed)

    def expire(self):
        key, at = self.old_key(), FAR + self.rng.randrange(10 ** 9)
        key.then(self.command("PEXPIREAT", key.name, at), expire(at))

    def persist(self):
        key = self.old_key()
        key.then(self.command("PERSIST", key.name), persist)

    def transaction(self):
        if not self.pairs or self.rng.random() < 0.1:
            self.pairs.append((self.new_key(b"txa"), self.new_key(b"txb")))
        pair, item = self.rng.choice(self.pairs[-3:]), self.item()
        self.command("MULTI")
        for key in pair:
            self.command("BF.ADD", key.name, item)
        number = self.command("EXEC")
        for key in pair:
            key.then(number, add(item), [item])

    def restore(self):
        if self.payload is None:
            return
        key, at = self.new_key(b"copy"), FAR + self.rng.randrange(10 ** 9)
        data, items = self.payload
        key.then(self.command("RESTORE", key.name, at, data, "ABSTTL"),
                 restored(items, at), items)

    def rename(self):
        source, target = self.old_key(), self.old_key()
        if source is target:
            return
        replace = self.rng.random() < 0.7
        number = self.command("RENAME" if replace else "RENAMENX",
                              source.name, target.name)
        self.take_over(number, source, target, replace)

    def move(self):
        source = self.old_key()
        number = self.command("MOVE", source.name, MOVED_DB)
        self.take_over(number, source, self.key(source.name, MOVED_DB), False)

    @staticmethod
    def take_over(number, source, target, replace):
        target.then(number, copied_from(source, replace), source.items)
        source.then(number, moved_away(target, replace))

    def copy(self):
        source, target = self.old_key(), self.relative()
        if source is target:
            return
        replace = self.rng.choice(((), ("REPLACE",)))
        target.then(self.command("COPY", source.name, target.name, *replace),
                    copied_from(source, bool(replace)), source.items)

    def merge(self):
        source, target = self.relative(), self.relative()
        if source is not target:
            target.then(self.command("BF.MERGE", target.name, source.name),
                        merged_from(source), source.items)

    def relative(self):
        """Returns a key as target of copies and unions, so that some of them fit."""
        if not self.kin or self.rng.random() < 0.1:
            self.kin.append(self.new_key(b"kin"))
            self.own.append(self.kin[-1])
        return self.rng.choice(self.kin[-4:])

    def reset(self):
        key = self.old_key()
        key.then(self.command("BF.RESET", key.name), emptied)

    def swap(self):
        other = self.db + SWAPPED_DBS
        if not self.db or not self.flushes or other >= MOVED_DB:
            return
        number = self.command("SWAPDB", self.db, other)
        for key in [k for k in self.keys if k.db == self.db]:
            twin = self.key(key.name, other)
            items = dict(key.items)
            key.then(number, swapped_with(twin), twin.items)
            twin.then(number, swapped_with(key), items)

    payload = None  # (bytes of a DUMP, items in it)
    flushes = True

    def flush(self):
        if not self.db or not self.flushes:
            return
        number = self.command("FLUSHDB")
        for key in self.keys:
            if key.db == self.db:
                key.then(number, removed)

    CHOICES = [(add_shared, 30), (add_own, 30), (madd_shared, 8),
               (insert_own, 6), (reserve_new, 4), (delete, 5), (expire, 5),
               (persist, 2), (transaction, 5), (restore, 2), (flush, 2),
               (rename, 5), (move, 2), (copy, 4), (merge, 4), (reset, 3),
               (swap, 1)]

    def work(self, count):
        kinds, weights = zip(*self.CHOICES)
        for kind in self.rng.choices(kinds, weights, k=count):
            if self.db and kind.__name__.endswith("shared"):
                kind = Writer.add_own
            kind(self)

    # ---- the socket --------------------------------------------------------

    def connect(self, address):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.connect(address)
        self.ports = (self.sock.getsockname()[1], address[1]) \
            if family == socket.AF_INET else None
        self.sock.setblocking(False)
        self.answered = len(self.outcomes)
        if self.db:
            self.command("SELECT", self.db)

    def outstanding(self):
        return len(self.outcomes) - self.answered

    def send(self):
        if self.unsent:
            try:
                del self.unsent[:self.sock.send(self.unsent)]
            except OSError:
                pass  # full, or the server is gone: receive() tells

    def receive(self):
        """Reads what has arrived; returns False if the server is gone."""
        try:
            data = self.sock.recv(1 << 16)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.got += data
        at = 0
        while at < len(self.got):
            try:
                end = resp.reply_end(self.got, at)
            except resp.Incomplete:
                break
            self._reply(bytes(self.got[at:end]))
            at = end
        del self.got[:at]
        return bool(data)

    def _reply(self, raw):
        number = self.answered
        self.answered += 1
        self.ends.append((self.ends[-1] if self.ends else 0) + len(raw))
        if raw[:1] != b"-":
            self.outcomes[number] = HELD
            if raw[:1] == b"*" and b"\r\n-" in raw:
                self.errors.append((number, raw))
            return
        if not raw.startswith(EXPECTED):
            self.errors.append((number, raw))
        self.outcomes[number] = OPEN if UNKNOWN.encode() in raw else REFUSED

    # ---- what must be there ------------------------------------------------

    def history(self):
        """Returns the states of each key: (number of the operation, state after
        it), without refused operations."""
        states = {key: key.before for key in self.keys}
        history = {key: [(-1, key.before)] for key in self.keys}
        for number, together in groupby(self.steps, lambda step: step[0]):
            if self.outcomes[number] == REFUSED:
                continue
            after = {key: step(states[key], states)
                     for _, key, step in together}
            states.update(after)
            for key, state in after.items():
                history[key].append((number, state))
        return history

    def required_end(self, required):
        """Returns the last operation below a number that must have happened."""
        for number in range(min(required, len(self.outcomes)) - 1, -1, -1):
            if self.outcomes[number] == HELD:
                return number
        return -1

    def lost(self):
        """Notes that the server is gone: operations without a reply may or may
        not have happened."""
        self.sock.settimeout(5)
        while self.receive():
            pass
        self.hang_up()

    def hang_up(self):
        self.sock.close()
        self.sock = None
        self.unsent.clear()
        self.got.clear()
        for number in range(self.answered, len(self.outcomes)):
            self.outcomes[number] = OPEN
        self.ends += [self.ends[-1] if self.ends else 0] * (
            len(self.outcomes) - len(self.ends))


class Workload:
    """number: part of all names, so that several workloads can use one server. It
    also chooses the database that only the last writer uses, and flushes."""

    def __init__(self, seed, number=0, writers=8, window=64):
        tag = b"r%d" % number
        self.writers = [Writer(i, seed, tag) for i in range(writers - 1)]
        self.writers.append(Writer(writers - 1, seed, tag, 1 + number))
        self.window = window

    def connect(self, address, payload=None):
        for writer in self.writers:
            writer.payload = payload
            writer.connect(address)

    def pump(self, seconds=None, until=None, commands=None, fill=True):
        """Keeps all writers busy for a time, until a condition is true, or until
        a number of commands was answered. Returns False if the server is gone."""
        deadline = time.monotonic() + (60 * servers.time_factor()
                                       if seconds is None else seconds)
        goal = None if commands is None else commands + self.answered()
        with selectors.DefaultSelector() as ready:
            for writer in self.writers:
                ready.register(writer.sock, selectors.EVENT_READ, writer)
            while time.monotonic() < deadline:
                if until is not None and until():
                    return True
                if goal is not None and self.answered() >= goal:
                    return True
                if not self._turn(ready, fill):
                    return False
        if seconds is None:
            raise AssertionError("the writers did not get on: %d of %s answered"
                                 % (self.answered(), goal))
        return True

    def _turn(self, ready, fill):
        for writer in self.writers:
            free = self.window - writer.outstanding()
            if fill and free > self.window // 4:
                writer.work(writer.rng.randrange(1, free + 1))
            writer.send()
        return all(key.data.receive() for key, _ in ready.select(0.005))

    def settle(self, seconds=20):
        """Waits for all outstanding replies."""
        return self.pump(seconds * servers.time_factor(), fill=False,
                         until=lambda: not any(
                             w.outstanding() for w in self.writers))

    def answered(self):
        return sum(w.answered for w in self.writers)

    def held(self):
        return sum(w.outcomes.count(HELD) for w in self.writers)

    def lost(self):
        for writer in self.writers:
            writer.lost()

    def close(self):
        for writer in self.writers:
            if writer.sock is not None:
                writer.hang_up()

    def errors(self):
        return [e for w in self.writers for e in w.errors]

    def go_on(self):
        """Makes the data found by a check the start for the next crash."""
        for writer in self.writers:
            for key, history in writer.history().items():
                key.before = state_at(history, writer.found)
            writer.steps = []

    # ---- what must be there ------------------------------------------------

    def all_required(self):
        """Returns, after a kill, the operations of each writer with a reply."""
        return [len(w.outcomes) for w in self.writers]

    def required(self, recording, point, before=None):
        """Returns the operations whose replies had been sent at a point of a
        recording (and before a time)."""
        return [bisect_right(w.ends, recording.sent(w.ports, point, before))
                for w in self.writers]

    def check(self, conn, required):
        """Compares a server with the model; returns the differences as texts."""
        problems = self._check_shared(conn, required)
        for writer, limit in zip(self.writers, required):
            problems += check_keys(conn, writer, limit)
        assert conn.call("SELECT", 0) == b"OK"
        return problems

    def _check_shared(self, conn, required):
        problems = []
        for name in SHARED:
            wanted = [(w.number, number, item)
                      for w, limit in zip(self.writers, required)
                      for number, key, item in w.shared
                      if key == name and number < limit and
                      w.outcomes[number] == HELD]
            found = []
            for at in range(0, len(wanted), 1000):
                found += conn.call("BF.MEXISTS", name,
                                   *[w[2] for w in wanted[at:at + 1000]])
            problems += ["writer %d, operation %d: %r is not in %r" % (
                writer, number, item, name) for (writer, number, item), there
                in zip(wanted, found) if not there]
        return problems


def ask(conn, writer):
    """Returns the server's facts about each key: (expires, items, capacity)."""
    told = {}
    for db in sorted({key.db for key in writer.keys}):
        keys = [key for key in writer.keys if key.db == db]
        commands, replies = [], []
        for key in keys:
            commands += [("PEXPIRETIME", key.name),
                         ("BF.MEXISTS", key.name, *(key.items or [b"-"])),
                         ("BF.INFO", key.name, "CAPACITY")]
        assert conn.call("SELECT", db) == b"OK"
        for at in range(0, len(commands), 300):
            replies += conn.pipeline(commands[at:at + 300])
        for key, at in zip(keys, range(0, len(replies), 3)):
            expires, found, capacity = replies[at:at + 3]
            items = frozenset(i for i, f in zip(key.items, found) if f == 1)
            told[key] = (expires, items, capacity[0] if isinstance(
                capacity, list) else capacity)
    return told


def check_keys(conn, writer, limit):
    """Checks each key, then all together; returns the operations that may have
    been the last one."""
    told, problems = ask(conn, writer), []
    count, required = len(writer.outcomes), writer.required_end(limit)
    # A change of unknown durability may be missing although a later operation
    # that changed nothing has a reply.
    doubtful = OPEN in writer.outcomes[:max(required, 0)]
    last = set(range(-1 if doubtful else required, count))
    for key, history in writer.history().items():
        first = required
        if doubtful:
            first = max([-1] + [n for n, _ in history[1:] if n < limit and
                                writer.outcomes[n] == HELD])
        ends = [number for number, _ in history[1:]] + [count]
        fitting = [range(max(begin, first), end)
                   for (begin, state), end in zip(history, ends)
                   if end > first and fits(state, *told[key])]
        if not fitting:
            problems.append(describe(key, first, history, *told[key]))
        elif last and not doubtful:
            last &= set().union(*fitting)
            if not last:
                problems.append("writer %d: no operation after which all keys "
                                "were so, %r at the latest" % (
                                    writer.number, key.name))
    writer.found = max(last, default=count)
    return problems


def fits(state, expires, items, capacity):
    return expires == state.expires and items == state.items and \
        (state.capacity is None or capacity == state.capacity)


def state_at(history, number):
    return [state for begin, state in history if begin <= number][-1]


def describe(key, required, history, expires, items, capacity):
    first, last = state_at(history, required), history[-1][1]
    return ("writer %d, operation %d is required: %r in %d expires %s with %d "
            "items, capacity %s; allowed is expires %s with %d items, capacity "
            "%s, to expires %s with %d items; missing of the first: %s, steps "
            "%s" % (
                key.writer.number, required, key.name, key.db, expires,
                len(items), capacity, first.expires, len(first.items),
                first.capacity, last.expires, len(last.items),
                sorted(first.items - items)[:5],
                [(n, s.__qualname__.split(".")[0], key.writer.outcomes[n])
                 for n, k, s in key.writer.steps if k is key][-8:]))
