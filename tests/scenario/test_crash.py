# SPDX-License-Identifier: BSD-3-Clause
#
# Kills the server with kill -9: at random points under eight pipelined writers, and
# before and after every system call of a save, a rewrite, a start and switching the
# journal. Every write with a reply is present after the next start, which needs no
# help. The page cache survives, so this holds for everysec as for always.
# test_power_loss.py tests power failures.
#
# ROUNDS=2000 kills more often, SEED=n repeats a run (make crash).

import random
import threading
import time

import pytest

from lib import crash, resp, servers, shim
from lib.workload import Workload

pytestmark = pytest.mark.slow

ROUNDS = crash.amount("ROUNDS", 100)
CHAIN = 5  # crashes of one data directory


class Chain:
    """A data directory on which servers crash several times."""

    def __init__(self, seed, policy):
        self.rng = random.Random(seed)
        self.policy = policy
        self.loads = []

    def run(self, rounds):
        options = ["--appendonly", "yes", "--appendfsync", self.policy,
                   "--auto-aof-rewrite-percentage", "100",
                   "--auto-aof-rewrite-min-size", "64kb"]
        with crash.Store(*options) as store:
            for number in range(rounds):
                self.round(store, number)
            store.assert_healthy()
        return sum(load.held() for load in self.loads)

    def round(self, store, number):
        load = Workload(self.rng.randrange(1 << 30), number)
        self.loads.append(load)
        store.add_shim()
        store.start()
        with store.conn() as conn:
            load.connect(store.address(), crash.payload(conn))
            load.pump(commands=self.rng.choice((10, 100, 500)))
            for _ in range(self.rng.randrange(3)):
                conn.send(self.rng.choice((b"BGSAVE\r\n", b"BGREWRITEAOF\r\n")))
                load.pump(commands=self.rng.choice((1, 50)))
            self.crash(store, load)
        store.kill()
        load.lost()
        store.start(shim=False)
        for old in self.loads:
            crash.verify(store, old, old.all_required(), "round %d" % number)
            old.go_on()
        store.kill()

    def crash(self, store, load):
        """Kills at a random time, or before or after a random call."""
        if self.rng.random() < 0.5:
            if load.pump(self.rng.random() * 0.08):
                store.kill()
            return
        store.shim.arm(0, self.rng.choice(("kill-before", "kill-after")),
                       shim.CHANGES, nth=self.rng.randrange(1, 60))
        load.pump(0.2, until=lambda: not store.alive())


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_random_kills_lose_nothing(policy):
    seeds = crash.seeds(-(-ROUNDS // 2 // CHAIN))
    held = crash.each(seeds, lambda seed: Chain(seed, policy).run(CHAIN))
    print("%s: %d kills, %d operations with a reply, 0 lost" % (
        policy, CHAIN * len(seeds), sum(held)))


# ---- every call of every path ------------------------------------------------

# Besides these calls, the journal writes and syncs its increment.
TRAFFIC = {("write", "incr"), ("sync", "incr")}


def file_made(kind, directory):
    """Returns the steps that give a file its name."""
    return {("unlink", kind + ".tmp"), ("create", kind + ".tmp"),
            ("write", kind + ".tmp"), ("sync", kind + ".tmp"),
            ("rename", kind), ("sync", directory)}


MANIFEST = file_made("manifest", "journal")
INCREMENT = {("unlink", "incr"), ("create", "incr"), ("sync", "journal")}
MARK = {("unlink", "mark"), ("create", "mark"), ("sync", "mark"),
        ("sync", "journal")}
REWRITE = MANIFEST | INCREMENT | file_made("base", "journal") | \
    {("unlink", "base"), ("unlink", "other")}  # the latter: journal/kept.h
LOCK = {("create", "lock"), ("truncate", "lock"), ("write", "lock")}
START = MANIFEST | INCREMENT | LOCK | {
    ("unlink", "snapshot.tmp"), ("sync", "base")}


def ask(*words):
    def step(store, conn):
        conn.call(*words)
        crash.wait_idle(conn)
    return step


def switch_off(store, conn):
    conn.call("CONFIG", "SET", "appendonly", "no")
    servers.wait_until(lambda: crash.info(conn)["journal_state"] == "off", 10,
                       "the journal is off", 0.002)


def switch_on(store, conn):
    before = crash.info(conn)["aof_rewrites"]
    conn.call("CONFIG", "SET", "appendonly", "yes")
    servers.wait_until(lambda: crash.info(conn)["aof_rewrites"] != before, 10,
                       "the journal has its base", 0.002)


def persistence(text):
    return dict(line.split(":", 1) for line in text.decode().splitlines()
                if ":" in line)


# The reply comes when the base is there; in a transaction at once, and a client
# that then polls INFO must not see that nothing is in progress before the base has
# begun.
def test_info_follows_the_reply_to_config_set():
    words = ("CONFIG", "SET", "appendonly", "yes")
    with crash.Store("--appendonly", "no", "--threads", "2") as store:
        store.start()
        with store.conn() as conn:
            for _ in range(25):
                conn.send(resp.command(*words) + resp.command("INFO", "persistence"))
                assert conn.read() == b"OK"
                said = persistence(conn.read())
                assert said["aof_enabled"] == "1"
                assert said["journal_state"] == "on"
                crash.wait_idle(conn)
                conn.send(resp.command("CONFIG", "SET", "appendonly", "no") +
                          resp.command("INFO", "persistence"))
                assert conn.read() == b"OK"
                said = persistence(conn.read())
                assert said["aof_enabled"] == "0"
                assert said["journal_state"] in ("closing", "off")
                servers.wait_until(
                    lambda: crash.info(conn)["journal_state"] == "off", 10,
                    "the journal is off", 0.002)


def stop(store, conn):
    conn.send(b"SHUTDOWN SAVE\r\n")
    store.child.wait(20 * servers.time_factor())


def spooled(store, conn):
    """Saves while more effects come than the server keeps in memory."""
    store.shim.arm(1, "delay", ["create"], ["snapshot.tmp"], delay_ms=60000)
    conn.call("BGSAVE")
    for number in range(100):
        conn.call("BF.ADD", "spooled", b"%d" % number + bytes(1 << 16))
    store.shim.disarm(1)
    crash.wait_idle(conn)


SAVED = file_made("snapshot", "dir")
SPOOL = {("create", "other"), ("write", "other")}
# name: (steps before it, the step, the calls that it makes)
PATHS = {
    "BGSAVE": ([], ask("BGSAVE"), SAVED),
    "SAVE": ([], ask("SAVE"), SAVED),
    "second BGSAVE": ([ask("BGSAVE")], ask("BGSAVE"), SAVED),
    "BGREWRITEAOF": ([], ask("BGREWRITEAOF"), REWRITE),
    "off": ([], switch_off, set()),
    "on": ([switch_off], switch_on,
           REWRITE | {("unlink", "incr")}),
    "SHUTDOWN SAVE": ([], stop, SAVED),
    "BGSAVE with a spool": ([], spooled, SAVED | SPOOL),
}
# A path that takes seconds is killed at so many calls of a kind.
MOST = {"BGSAVE with a spool": crash.amount("ROUNDS", 2)}


class Path:
    """One path under light load, killed at one of its calls."""

    def __init__(self, name, policy):
        self.name = name
        self.before, self.step, self.expected = PATHS[name]
        self.options = ["--appendonly", "yes", "--appendfsync", policy,
                        "--auto-aof-rewrite-percentage", "0"]

    def run(self, action=None, call=None, nth=0):
        """Kills at the nth call of this kind and returns whether there was
        one; without a call, returns all calls that were made."""
        with crash.written(nth, *self.options) as (store, load, conn):
            load.settle()
            promised = load.all_required()
            for step in self.before:
                step(store, conn)
            calls = store.shim.counts()
            arm(store, action, call, nth)
            under_load(load, lambda: self.step(store, conn))
            calls = set(store.shim.counts() - calls)
            hit = store.shim.rule(0)
            store.kill()
            load.lost()
            store.start(shim=False)
            # Commands that came while the journal was off, or being switched,
            # are not promised.
            if self.name not in ("off", "on"):
                promised = load.all_required()
            crash.verify(store, load, promised, "%s, %s %s %d" % (
                self.name, action, call, nth))
            store.assert_healthy()
        return changes(calls) if call is None else hit.fired > 0


def arm(store, action, call, nth):
    if call is not None:
        store.shim.arm(0, action, [call[0]], [call[1]], nth)


def changes(calls):
    return {c for c in calls if c[0] in shim.CHANGES or c[0] == "other"}


def under_load(load, step):
    """Runs a step while writers write a little; a kill may end both."""
    def run():
        try:
            step()
        except (crash.resp.Closed, ConnectionError):
            pass
        done.set()

    done = threading.Event()
    thread = threading.Thread(target=run)
    thread.start()
    load.window = 2
    goes_on = True
    try:
        while not done.wait(0.002):
            goes_on = goes_on and load.pump(commands=1)
    finally:
        thread.join()


@pytest.mark.parametrize("policy", ["always", "everysec"])
@pytest.mark.parametrize("name", PATHS)
def test_a_kill_at_every_call_loses_nothing(name, policy):
    path = Path(name, policy)
    kill_everywhere(path.run, path.expected, TRAFFIC, MOST.get(name, 1 << 30))


def kill_everywhere(run, expected, others=frozenset(), most=1 << 30):
    """Kills before and after each call of a path: the first, the second, ...
    of its kind, up to `most`. `expected` has all kinds, so that a new one is
    noticed. Calls of the other kinds may or may not occur. A sanitizer build kills
    only after them: it looks at the start that follows, which differs little."""
    actions = ["kill-after"] if servers.sanitized() else ["kill-before", "kill-after"]
    made = run() - TRAFFIC
    assert made == expected, "calls that this test does not know, or that " \
        "are gone: %s" % sorted(made ^ expected)

    def kill_at_each(job):
        nth = 1
        while nth <= most and run(*job, nth) and (
                job[1] in expected or nth < 3):
            nth += 1
        return job[1] if nth > 1 else None

    jobs = [(action, call) for call in sorted(expected | others)
            for action in actions]
    missed = expected - set(crash.each(jobs, kill_at_each))
    assert not missed, "never hit: %s" % sorted(missed)


# ---- start -------------------------------------------------------------------

def killed_start(options, expected, state):
    """Kills the start of a server at each call, on a data directory that
    state(store, conn) left."""
    def run(action=None, call=None, nth=0):
        with crash.written(nth, *options, shimmed=False) as (store, load, conn):
            load.settle()
            state(store, conn)
            load.close()
            store.kill()
            store.add_shim()
            arm(store, action, call, nth)
            store.launch()
            store.wait_ready()
            calls, hit = set(store.shim.counts()), store.shim.rule(0)
            store.kill()
            store.start(shim=False)
            crash.verify(store, load, load.all_required(), "%s %s %d" % (
                action, call, nth))
        return changes(calls) if call is None else hit.fired > 0

    kill_everywhere(run, expected)


JOURNALED = ["--appendonly", "yes", "--appendfsync", "everysec"]


def test_a_kill_at_every_call_of_a_start_loses_nothing():
    killed_start(JOURNALED, START, lambda store, conn: None)


def test_a_kill_at_every_call_of_a_first_journal_loses_nothing():
    """The journal was off and is switched on by this start, with the snapshot
    as its base."""
    def saved(store, conn):
        conn.call("SAVE")
        store.options += JOURNALED

    killed_start(["--appendonly", "no"], START | MARK | {
        ("mkdir", "journal"), ("sync", "dir"),
        ("unlink", "base"), ("link", "base")}, saved)


def test_a_kill_at_every_call_that_sets_a_stale_journal_aside_loses_nothing():
    def stale(store, conn):
        switch_off(store, conn)
        conn.call("BF.ADD", "later", "x")
        conn.call("SAVE")

    killed_start(JOURNALED, START | MARK | {("rename", "journal"),
                                            ("mkdir", "journal"),
                                            ("sync", "dir"),
                                            ("unlink", "base"),
                                            ("link", "base")}, stale)


def test_a_kill_at_every_call_of_a_first_journal_at_run_time_is_no_damage():
    """Until its manifest exists, the journal promises nothing, and the next
    start needs no operator. bloomery-check agrees."""
    def run(action=None, call=None, nth=0):
        with crash.written(nth, "--appendonly", "no") as (store, load, conn):
            load.settle()
            conn.call("SAVE")
            promised = load.all_required()
            calls = store.shim.counts()
            arm(store, action, call, nth)
            under_load(load, lambda: switch_on(store, conn))
            calls = set(store.shim.counts() - calls)
            hit = store.shim.rule(0)
            store.kill()
            load.lost()
            assert crash.check(store) == 0
            store.options += JOURNALED
            store.start(shim=False)
            crash.verify(store, load, promised, "%s %s %d" % (
                action, call, nth))
        return changes(calls) if call is None else hit.fired > 0

    kill_everywhere(run, REWRITE - {("unlink", "base")} | MARK | {
        ("mkdir", "journal"), ("sync", "dir")}, TRAFFIC)
