# SPDX-License-Identifier: BSD-3-Clause
#
# A campaign of states and events. A cell is a state that a server is brought into,
# an event that strikes it there, and one oracle for all cells:
#
#   - the server ends if the event says so, in order, and else it goes on
#   - when faults are over, it is healthy again, and INFO tells the truth
#   - after kill -9 and a start, everything is there that it had acknowledged under a
#     promise (a journal, or a snapshot that it has confirmed)
#   - a replica has the same digest as its primary
#
# lib/states_rows.py has the two lists. A state says which world it needs, and an
# event in which worlds it makes sense, so that other worlds can be added.

import concurrent.futures
import errno
import os
import random
import shutil
import signal
import socket
import tempfile
import threading
import time
import traceback
import zlib
from collections import namedtuple
from pathlib import Path

from lib import neighbour, replicas, resp, servers, shim, slots
from lib.replicas import info
from lib.servers import time_factor, wait_until

KEYS = ["k%d{a}" % number for number in range(4)]
OPTIONS = ("--loglevel", "notice", "--repl-diskless-sync-delay", 0,
           "--repl-timeout", 10, "--bf.bloom-fp-rate", "0.0000001",
           "--bf.bloom-capacity", 1000, "--shutdown-timeout", 1,
           "--auto-aof-rewrite-percentage", 0, "--start-grace", 0)
Row = namedtuple("Row", "name function worlds options ends orderly")
Cell = namedtuple("Cell", "state event seed")
Outcome = namedtuple("Outcome", "cell problem seconds acknowledged")

STATES, EVENTS = {}, {}
UNFAIR = {
    ("loading", "directory vanishes"): "files that it has not read are gone",
}


def state(name, world, *options, ends=False):
    """Registers a function(world) that brings world.subject into a state. ends:
    the server ends from there by itself."""
    def register(function):
        assert name not in STATES
        STATES[name] = Row(name, function, (world,), options, ends, False)
        return function
    return register


def event(name, *worlds, ends=False, orderly=False):
    """Registers a function(world) that strikes world.subject. ends: it ends the
    server; orderly: with all its data. Without worlds it makes sense in all."""
    def register(function):
        assert name not in EVENTS
        EVENTS[name] = Row(name, function, worlds, (), ends, orderly)
        return function
    return register


def cells():
    """Returns the names of all pairs that make sense."""
    return [(s.name, e.name) for s in STATES.values() for e in EVENTS.values()
            if (not e.worlds or issubclass(s.worlds[0], e.worlds)) and
            (s.name, e.name) not in UNFAIR]


class Broken(AssertionError):
    """The oracle's word."""


class Ledger:
    """What was acknowledged, and whether the server has promised to keep it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.kept, self.unkept = set(), set()
        self.promises = True
        self.epoch = 0

    def sent(self):
        with self.lock:
            return self.promises, self.epoch

    def acknowledged(self, key, item, sent):
        """sent: what sent() has returned before the command."""
        with self.lock:
            if sent[1] == self.epoch:
                kept = sent[0] and self.promises
                (self.kept if kept else self.unkept).add((key, item))

    def promise(self, on, also_before=False):
        """also_before: what was acknowledged until now is on the disk."""
        with self.lock:
            self.promises = on
            if also_before:
                self.kept |= self.unkept
                self.unkept.clear()

    def doubt(self):
        """Until the server is healthy again, nothing is promised: its files are
        gone."""
        with self.lock:
            self.unkept |= self.kept
            self.kept.clear()
            self.promises = False

    def forget(self):
        """All data is deleted, or another server's."""
        with self.lock:
            self.kept, self.unkept = set(), set()
            self.epoch += 1

    def killed(self):
        """What was not promised may be gone."""
        with self.lock:
            self.unkept.clear()
            self.epoch += 1

    def count(self):
        with self.lock:
            return len(self.kept) + len(self.unkept)


class Writer(threading.Thread):
    """Adds items one after another, wherever the world says."""

    def __init__(self, world):
        super().__init__(daemon=True)
        self.world, self.ends, self.rests = world, threading.Event(), False
        self.idle = threading.Event()
        self.number = 0
        self.conn = None
        self.start()

    def run(self):
        while not self.ends.is_set():
            if self.rests:
                self.idle.set()
                time.sleep(0.002)
                continue
            try:
                self.add()
            except slots.GONE:
                self.close()
                time.sleep(0.01)
        self.close()

    def add(self):
        if self.conn is None:
            target = self.world.target()
            self.conn = target.conn(timeout=2 * time_factor())
            self.server = target
        if self.server is not self.world.target():
            self.close()
            return
        key = KEYS[self.number % len(KEYS)]
        sent = self.world.ledger.sent()
        reply = self.conn.call("BF.ADD", key, "i%d" % self.number)
        if reply in (0, 1):
            self.world.ledger.acknowledged(key, "i%d" % self.number, sent)
        else:
            time.sleep(0.005)
        self.number += 1

    def close(self):
        if self.conn is not None:
            self.conn.close()
        self.conn = None

    def rest(self):
        """Waits until no command is under way."""
        self.idle.clear()
        self.rests = True
        wait_until(self.idle.is_set, 20, "the writer rests")

    def go_on(self):
        self.rests = False

    def end(self):
        self.rests = False
        self.ends.set()
        self.join()


class World:
    """One server, and whatever else a state needs. The server's calls can be made to
    fail or to last (world.shim)."""

    extra = ()

    def __init__(self, cell, options):
        self.cell = cell
        self.rng = random.Random(zlib.crc32(repr(cell).encode()))
        self.ledger = Ledger()
        self.folder = Path(tempfile.mkdtemp(prefix="bloomery-states-"))
        self.group = replicas.Group()
        self.policy = self.rng.choice(("always", "everysec"))
        self.options = [*OPTIONS, "--appendfsync", self.policy, *self.extra, *options]
        self.subject = self.group.shimmed(self.folder, *self.options)
        self.data = self.folder / "shim0" / "data"
        self.shim = self.subject.shim
        self.writer = None
        self.replies = []       # of SHUTDOWN
        self.aborted = False
        self.lost_files = False
        self.saves = False      # an orderly end has everything
        self.journals = True    # appendonly, as the start has it
        self.slots = 0

    # ---- for the rows ------------------------------------------------------

    def target(self):
        return self.subject

    def ask(self, *words, server=None, timeout=30):
        """Sends a command on a connection of its own. Returns the reply, or None if
        the server is gone or does not answer in time."""
        try:
            with (server or self.subject).conn(timeout=timeout * time_factor()) as c:
                return c.call(*words)
        except slots.GONE:
            return None

    def begin(self, *words):
        """Sends a command and does not wait for its reply."""
        def run():
            self.ask(*words, timeout=60)
        thread = threading.Thread(target=run, daemon=True)
        thread.start()

    def write(self, count=None):
        """Lets the writer go on until so many more items are acknowledged."""
        if self.writer is None:
            self.writer = Writer(self)
        self.writer.go_on()
        want = self.ledger.count() + (count or self.rng.randrange(5, 40))
        wait_until(lambda: self.ledger.count() >= want, 30, "acknowledged items")

    def fault(self, action, calls, kinds=shim.FILES, **more):
        self.shim.arm(self.slots, action, calls, kinds, **more)
        self.slots += 1

    def hang(self, calls, kinds, ms=20000):
        self.fault("delay", calls, kinds, flags=shim.FOR_GOOD, delay_ms=ms)

    def fail_syncs(self, files, **more):
        """A sync that fails drops what was not synced, as in Linux: if a kill
        follows, everysec has promised nothing."""
        if self.policy != "always":
            self.ledger.doubt()
        self.fault("fail", ["sync"], files, error=errno.EIO, **more)

    def lift(self):
        """Ends all faults."""
        for slot in range(self.slots):
            self.shim.disarm(slot)
        self.slots = 0

    def linger(self, seconds):
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() - begun > seconds, seconds + 10,
                   "a while", 0.02)

    def runs(self):
        return self.subject.child.poll() is None

    def stop(self, *words):
        """SHUTDOWN, whose reply is kept."""
        self.replies.append(self.ask("SHUTDOWN", *words, timeout=25))

    # ---- the oracle --------------------------------------------------------

    def figures(self):
        return info(self.subject, "everything")

    def is_healthy(self):
        got = self.figures()
        return got["loading"] == "0" and got["journal_misconf"] == "0" and \
            got["journal_state"] == ("on" if got["aof_enabled"] == "1" else "off") \
            and got["aof_rewrite_in_progress"] == "0" \
            and got["rdb_bgsave_in_progress"] == "0" \
            and (got["aof_enabled"] == "0" or
                 bool(list(self.data.glob("*/manifest")))) \
            and (got["role"] == "master" or
                 (self.data / "replication.state").exists())

    def settle(self):
        """Waits until the server is healthy, and lets some more be acknowledged."""
        if self.lost_files:     # it looks for them a few times a second
            self.linger(1)
            self.lost_files = False

        def healthy():
            try:
                return self.is_healthy()
            except (*slots.GONE, KeyError):
                return False
        try:
            wait_until(healthy, 30, "it is healthy")
        except AssertionError:
            raise Broken("not healthy in 30 s: %s" % self.told())
        self.check_info()
        journals = self.figures()["aof_enabled"] == "1"
        self.ledger.promise(journals, also_before=journals)
        self.write(5)

    def told(self):
        try:
            got = self.figures()
            return {name: got.get(name) for name in (
                "role", "loading", "journal_state", "journal_misconf", "aof_enabled",
                "aof_rewrite_in_progress", "rdb_bgsave_in_progress",
                "master_link_status")}
        except slots.GONE as problem:
            return repr(problem)

    def check_info(self):
        got = self.figures()
        places = [int(got["journal_%sposition" % word])
                  for word in ("synced_", "written_", "")]
        if got["aof_enabled"] == "1" and places != sorted(places):
            raise Broken("INFO: synced, written, appended: %s" % places)
        if got["aof_enabled"] == "1" and got["aof_last_write_status"] != "ok":
            raise Broken("INFO: aof_last_write_status")
        if self.ask("CONFIG", "GET", "appendonly")[1] != (
                b"yes" if got["aof_enabled"] == "1" else b"no"):
            raise Broken("INFO: aof_enabled:%s" % got["aof_enabled"])

    def await_end(self, seconds=25):
        try:
            code = self.subject.child.wait(seconds * time_factor())
        except Exception:
            raise Broken("it did not end in %d s: %s" % (seconds, self.told()))
        if code not in (0, -signal.SIGKILL):
            raise Broken("it ended with status %d" % code)

    def check_items(self, server, where):
        lost = []
        with server.conn(timeout=30 * time_factor()) as conn:
            for key in KEYS:
                items = sorted(i for k, i in self.ledger.kept if k == key)
                got = conn.call("BF.MEXISTS", key, *items) if items else []
                if not isinstance(got, list):
                    raise Broken("%s: BF.MEXISTS: %s" % (where, got))
                lost += [i for i, there in zip(items, got) if there != 1]
        if lost:
            raise Broken("%s: %d of %d acknowledged items are lost: %s" % (
                where, len(lost), len(self.ledger.kept), lost[:5]))

    def start_again(self):
        if self.runs():
            self.subject.crash()
        self.subject.assert_healthy()
        self.ledger.killed()
        os.makedirs(self.data, exist_ok=True)   # the operator's part
        try:
            self.subject.restart()
        except (RuntimeError, AssertionError) as problem:
            raise Broken("it does not start: %s" % str(problem)[-1500:])

    def check_end(self):
        """After the start: others have the same data."""

    def judge(self):
        must_end = EVENTS[self.cell.event].ends or STATES[self.cell.state].ends
        refused = any(isinstance(r, resp.Error) for r in self.replies)
        if self.subject.frozen:
            self.subject.thaw()
        if must_end and not self.aborted and not refused:
            self.await_end()
            if EVENTS[self.cell.event].orderly and (
                    self.saves or self.cell.event == "SHUTDOWN SAVE"):
                self.ledger.promise(True, also_before=True)
        elif self.runs():
            self.settle()
        elif not must_end:
            raise Broken("it ended by itself, with %s" % self.subject.child.poll())
        self.writer.rest()
        self.start_again()
        self.check_items(self.subject, "after kill -9 and a start")
        if info(self.subject)["role"] == "master":
            # It may have less than its replica, which was not promised.
            self.ask("REPLICAOF", "NO", "ONE")
        self.settle()
        self.check_end()

    def run(self):
        try:
            row = STATES[self.cell.state]
            self.write(10)
            row.function(self)
            self.saves = not self.subject.frozen and \
                self.figures().get("aof_enabled") == "1"
            EVENTS[self.cell.event].function(self)
            self.lift()
            self.judge()
        finally:
            self.close()

    def close(self):
        self.lift()
        if self.writer is not None:
            self.writer.end()
        for node in self.group.nodes:
            node.kill()
            if node.last_log is None:
                node.last_log = node.log()
        for proxy in self.group.proxies:
            proxy.close()
        for made in self.group.shims:
            made.close()
        for node in self.group.nodes:
            node.remove()
        shutil.rmtree(self.folder, ignore_errors=True)


class Leads(World):
    """The server is a primary, with a replica behind a proxy."""

    def __init__(self, cell, options):
        super().__init__(cell, options)
        self.peer = self.group.node(*OPTIONS, *self.extra)
        self.proxy = self.group.proxy(self.subject)
        replicas.follow(self.peer, self.proxy)

    def leader(self):
        """Returns the server whose data counts at the end."""
        return self.subject if info(self.subject)["role"] == "master" else self.peer

    def target(self):
        return self.subject

    def check_end(self):
        """A replica of the other server has its data, whoever leads now."""
        leader = self.leader()
        follower = self.peer if leader is self.subject else self.subject
        self.proxy.up = True
        self.proxy.flow.set()
        self.writer.rest()
        if info(leader)["role"] != "master":
            raise Broken("nobody leads")
        if follower is self.peer:
            replicas.follow(follower, leader)
        try:
            replicas.wait_even(leader, follower)
        except AssertionError as problem:
            raise Broken("replica: %s" % problem)
        self.check_items(follower, "at the replica")


class Follows(Leads):
    """The server is a replica behind a proxy, whose primary the writer writes to."""

    def __init__(self, cell, options):
        World.__init__(self, cell, options)
        self.peer = self.group.node(*OPTIONS, *self.extra)
        self.proxy = self.group.proxy(self.peer)
        self.leads = self.peer

    def target(self):
        return self.leads

    def lead(self):
        """Promotes the server. Only what it acknowledges from now on counts."""
        self.writer.rest()
        if self.ask("REPLICAOF", "NO", "ONE") == b"OK":
            self.ledger.forget()
            self.ledger.promise(self.journals)
            self.leads = self.subject
        self.writer.go_on()

    def follow(self, wait=True):
        with self.subject.conn() as conn:
            host, port = self.proxy.address
            assert conn.call("REPLICAOF", host, port) == b"OK"
        if wait:
            wait_until(lambda: replicas.link_is_up(self.subject), 30, "it follows")

    def start_again(self):
        """A role that the disk did not take is forgotten, but then no write was
        acknowledged in it."""
        super().start_again()
        if self.leads is self.subject and not self.ledger.kept and \
                info(self.subject)["role"] == "slave":
            self.leads = self.peer

    def leader(self):
        want = "master" if self.leads is self.subject else "slave"
        role = info(self.subject)["role"]
        if role != want:
            raise Broken("after a start it is a %s" % role)
        return self.leads

    def check_items(self, server, where):
        """A replica's data is its primary's: check_end compares both."""
        if self.leads is self.subject or server is not self.subject:
            super().check_items(server, where)


class Beside(World):
    """The server stands beside a made-up cluster node, which owns all slots."""

    def __init__(self, cell, options):
        self.node = neighbour.Neighbour()
        super().__init__(cell, ["--sidecar-of", self.node.address,
                                "--sidecar-lease-ms", 5000, *neighbour.EMPTY,
                                *options])
        self.await_slots()

    def await_slots(self, started=False):
        """It serves a moment after it has said so: when it has a lease. If a replica
        has more than a start has found, an operator must say who leads: this one.
        Before that replica comes, nobody knows."""
        followed = started and len(self.group.nodes) > 1

        def serves():
            told = self.ask("INFO", "replication") or b""
            if b"behind_replicas:1" in told:
                self.ask("SIDECAR", "FORCE-SERVE", "0-%d" % (slots.SLOTS - 1))
            return (b"state=online" in told or not followed) and \
                self.ask("BF.EXISTS", KEYS[0], "none") == 0
        wait_until(serves, 20, "it serves the slots")

    def lift(self):
        self.node.say(silent=False)
        super().lift()

    def settle(self):
        self.await_slots()
        super().settle()

    def start_again(self):
        super().start_again()
        try:
            self.await_slots(started=True)
        except AssertionError as problem:
            raise Broken("after a start: %s" % problem)

    def close(self):
        super().close()
        self.node.close()


# ---- the runner --------------------------------------------------------------

def run_cell(cell):
    begun = time.monotonic()
    problem, count = "", 0
    world = None
    try:
        row = STATES[cell.state]
        world = row.worlds[0](cell, row.options)
        world.run()
    except Exception as trouble:
        problem = "%s: %s" % (type(trouble).__name__, trouble)
        if not isinstance(trouble, Broken):
            problem += "\n" + traceback.format_exc(limit=-4)
    if world is not None:
        count = world.ledger.count()
        if problem:
            problem += "\n" + "\n".join(world.subject.log().decode(
                "utf-8", "replace").splitlines()[-25:])
    return Outcome(cell, problem, time.monotonic() - begun, count)


def choose(count, seed, only=None):
    """Returns cells: all of them, `count` times with other seeds, or (count < 1)
    that share of them. only: "state/event", each of which may be empty."""
    names = cells()
    if only:
        want = (only.split("/") + [""])[:2]
        names = [n for n in names if all(not w or w == m for w, m in zip(want, n))]
        assert names, "no such cell: %s" % only
    rng = random.Random(seed)
    if count < 1:
        names = rng.sample(names, max(1, round(len(names) * count)))
        count = 1
    return [Cell(s, e, seed + number) for number in range(int(count))
            for s, e in names]


def show(outcomes):
    """Returns a table: a line for each state, a column for each event."""
    events = [e for e in EVENTS if any(o.cell.event == e for o in outcomes)]
    lines = ["%3d %s" % (n, name) for n, name in enumerate(events, 1)]
    lines.append("%-34s %s" % ("", " ".join("%3d" % n for n in
                                            range(1, len(events) + 1))))
    for name in STATES:
        row = [o for o in outcomes if o.cell.state == name]
        if not row:
            continue
        marks = []
        for column in events:
            found = [o for o in row if o.cell.event == column]
            bad = sum(1 for o in found if o.problem)
            marks.append("  ." if not found else "  +" if not bad else "%3s" % (
                "X" if bad == 1 else "X%d" % bad))
        lines.append("%-34s %s" % (name, " ".join(marks)))
    return "\n".join(lines)


def run(chosen, workers, note=lambda outcome: None):
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        outcomes = []
        for future in concurrent.futures.as_completed(
                pool.submit(run_cell, cell) for cell in chosen):
            outcomes.append(future.result())
            note(outcomes[-1])
    return outcomes


def again(cell):
    """Returns the command that repeats a cell."""
    return "make states CELL='%s/%s' SEED=%d" % (cell.state, cell.event, cell.seed)
