# SPDX-License-Identifier: BSD-3-Clause
#
# Failing disks. tests/shim makes the N-th write, sync, rename or create fail,
# once or permanently, for N = 1, 2, 3 ... until no call is left to fail. A failed
# sync loses the unsynced data, as on Linux. The process survives and serves reads,
# and no write with a reply is lost. When the fault is over, writes go on without a
# restart, within 5 s plus the time of a new base.

import errno
import select
import time

import pytest

from lib import crash, resp, servers, shim
from lib.workload import Workload

pytestmark = pytest.mark.slow

RECOVERY_SECONDS = 5
QUIET = 16  # keys that no client writes to
ERRORS = {"write": (errno.ENOSPC, errno.EIO, errno.EDQUOT),
          "sync": (errno.EIO,), "rename": (errno.EIO, errno.ENOSPC),
          "create": (errno.ENOSPC, errno.EMFILE), "unlink": (errno.EIO,)}
# A sanitizer build takes every second call; the release build takes them all.
STEP = 2 if servers.sanitized() else 1
FLAGS = {"once": shim.SHORT, "for good": shim.SHORT | shim.FOR_GOOD}


def misconf(reply):
    return isinstance(reply, resp.Error) and reply.args[0].startswith((
        "MISCONF The journal cannot be written, so that changes would not be",
        "MISCONF applied, durability unknown",
        "MISCONF Bloomery is configured to save snapshots"))


class Faulty:
    """A server under light load that has a fault for a while."""

    def __init__(self, store, policy, *options):
        self.store = store
        store.options += ["--appendonly", "yes", "--appendfsync", policy,
                          "--auto-aof-rewrite-percentage", "0", *options]
        store.add_shim()
        store.start()
        self.load = Workload(1, window=3)
        with store.conn() as conn:
            self.load.connect(store.address(), crash.payload(conn))
            for number in range(QUIET):
                assert conn.call("BF.ADD", "quiet:%d" % number, "x") == 1
        self.load.pump(commands=100)
        self.load.settle()
        # A flush touches all keys, so that every read would wait for it.
        for writer in self.load.writers:
            writer.flushes = False

    def arm(self, call, nth, flags, error=None):
        errors = ERRORS[call]
        self.store.shim.arm(0, "fail", [call], nth=nth, flags=flags,
                            error=error or errors[nth % len(errors)])

    def busy(self, seconds, commands=None):
        """Continues writing; writes that the fault delays wait."""
        assert self.load.pump(seconds, commands=commands), \
            "it died:\n" + self.store.log()

    def ask(self, *words):
        """Runs an operator's command and waits a while for its end."""
        with self.store.conn() as conn:
            conn.call(*words)
            deadline = time.monotonic() + 0.15
            while time.monotonic() < deadline:
                self.busy(0.01, 2)
                got = crash.info(conn)
                if got["rdb_bgsave_in_progress"] == "0" and \
                        got["aof_rewrite_in_progress"] == "0" and \
                        got["aof_rewrite_scheduled"] == "0":
                    break

    def serves_reads(self):
        """Keys that share a stripe with an unreleased change may wait for it;
        these are few of many."""
        conns = [self.store.conn() for _ in range(QUIET)]
        for number, conn in enumerate(conns):
            conn.send(resp.command("BF.EXISTS", "quiet:%d" % number, "x"))
        deadline = time.monotonic() + 10 * servers.time_factor()
        waiting, served = conns, 0
        while waiting and time.monotonic() < deadline:
            ready = select.select([c.sock for c in waiting], [], [], 0.05)[0]
            served += sum(c.read() == 1 for c in waiting if c.sock in ready)
            waiting = [c for c in waiting if c.sock not in ready]
            if served > QUIET // 2:
                break
        for conn in conns:
            conn.close()
        assert served > QUIET // 2, "%d of %d reads" % (served, QUIET)

    def lift(self):
        """Ends the fault: delayed commands get their replies, writes
        continue."""
        self.store.shim.disarm(0)
        begun = time.monotonic()
        with self.store.conn(timeout=60) as conn:
            while misconf(conn.call("BF.ADD", "probe", "x")) and \
                    time.monotonic() < begun + 60:
                time.sleep(0.005)
            took = time.monotonic() - begun
            assert took < RECOVERY_SECONDS * servers.time_factor(), \
                "writes went on after %.1f s:\n%s" % (took, self.store.log())
            assert conn.call("PING") == b"PONG"
        assert self.load.settle(), "it died:\n" + self.store.log()
        self.load.pump(commands=20)
        self.load.settle()
        return took

    def end(self, required=None):
        """Kills the server (kill -9): after a restart all acknowledged data is
        there."""
        assert self.store.alive()
        self.load.close()
        self.store.kill()
        self.store.start(shim=False)
        crash.verify(self.store, self.load,
                     required or self.load.all_required(), "after the fault")
        self.store.assert_healthy()


def until_none_is_injected(run, calls, batch=10):
    """Calls run(call, nth) for nth = 1, 2, ... and each call, until it returns
    that nothing failed."""
    left = {call: 1 for call in calls}
    while left:
        jobs = [(call, n) for call, nth in left.items()
                for n in range(nth, nth + batch, STEP)]
        done = crash.each(jobs, lambda job: (job[0], run(*job)), workers=16)
        none = {call for call, fired in done if not fired}
        left = {call: nth + batch for call, nth in left.items()
                if call not in none}


def write_save_rewrite(faulty):
    faulty.busy(0.03, 8)
    faulty.ask("BGSAVE")
    faulty.busy(0.03, 8)
    faulty.ask("BGREWRITEAOF")
    faulty.busy(0.03, 8)


@pytest.mark.parametrize("mode", FLAGS)
@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_the_nth_call_fails(policy, mode):
    def run(call, nth):
        with crash.Store() as store:
            faulty = Faulty(store, policy, "--misconf-after", "60")
            faulty.arm(call, nth, FLAGS[mode])
            write_save_rewrite(faulty)
            faulty.serves_reads()
            faulty.lift()
            fired = store.shim.rule(0).fired
            faulty.end()
            assert not faulty.load.errors(), faulty.load.errors()[:3]
            return fired

    until_none_is_injected(run, ERRORS)


@pytest.mark.parametrize("mode", FLAGS)
def test_the_nth_call_fails_while_the_journal_is_switched_on(mode):
    def run(call, nth):
        with crash.Store() as store:
            faulty = Faulty(store, "always")
            with store.conn() as conn:
                conn.call("CONFIG", "SET", "appendonly", "no")
                servers.wait_until(lambda: crash.info(conn)["journal_state"] ==
                                   "off", 10, "the journal is off", 0.002)
                faulty.arm(call, nth, FLAGS[mode])
                faulty.busy(0.03, 8)
                conn.call("CONFIG", "SET", "appendonly", "yes")
                faulty.busy(0.15)
                faulty.serves_reads()
                faulty.lift()
                fired = store.shim.rule(0).fired
                servers.wait_until(
                    lambda: crash.info(conn)["journal_state"] == "on",
                    RECOVERY_SECONDS, "the journal has its base", 0.005)
            faulty.load.pump(commands=20)
            faulty.load.settle()
            faulty.end()
            assert not faulty.load.errors(), faulty.load.errors()[:3]
            return fired

    until_none_is_injected(run, ERRORS)


def test_the_nth_call_of_a_start_fails():
    """The server starts, or says why not; it loses nothing either way."""
    def run(call, nth):
        with crash.Store() as store:
            faulty = Faulty(store, "everysec")
            store.kill()
            faulty.load.lost()
            faulty.arm(call, nth, shim.FOR_GOOD)
            if not store.launch().wait_ready():
                assert store.wait_gone() == 1
                assert "level=error" in store.log(), store.log()
            fired = store.shim.rule(0).fired
            store.kill()
            store.start(shim=False)
            crash.verify(store, faulty.load, faulty.load.all_required(), call)
            return fired

    until_none_is_injected(run, sorted(ERRORS))


# ---- a fault that stays ------------------------------------------------------

@pytest.mark.parametrize("policy", ["always", "everysec"])
@pytest.mark.parametrize("call, error", [
    ("write", errno.EIO), ("write", errno.ENOSPC), ("write", errno.EDQUOT),
    ("sync", errno.EIO)])
def test_a_fault_that_stays_is_reported_and_recovered_from(policy, call, error):
    with crash.Store() as store:
        faulty = Faulty(store, policy, "--misconf-after", "1")
        faulty.arm(call, 1, FLAGS["for good"], error)
        begun = time.monotonic()
        with store.conn() as held, store.conn() as conn:
            held.send(resp.command("BF.ADD", "held", "x"))
            # An everysec reply precedes the sync that fails.
            if policy == "always" or call == "write":
                reply = held.read()
                assert misconf(reply) and "applied" in reply.args[0], reply
                assert time.monotonic() - begun > 0.9
            servers.wait_until(lambda: misconf(conn.call("BF.ADD", "new", "x")),
                               3, "writes are refused")
            assert misconf(conn.call("BF.ADD", "new", "z"))
            assert misconf(conn.call("PING"))
            faulty.serves_reads()
            got = crash.info(conn)
            assert got["journal_misconf"] == "1"
            assert int(got["aof_%s_errors" % call.replace("sync", "fsync")]) > 0
            assert int(got["aof_suspect_files"]) > 0
            store.shim.disarm(0)
            servers.wait_until(lambda: conn.call("BF.ADD", "new", "y") == 1,
                               RECOVERY_SECONDS, "writes go on")
            assert conn.call("PING") == b"PONG"
            assert crash.info(conn)["journal_misconf"] == "0"
        faulty.lift()
        faulty.end()
        with store.conn() as conn:
            assert conn.call("BF.EXISTS", "new", "y") == 1
            # The write was applied, and the new base has it.
            assert conn.call("BF.EXISTS", "held", "x") == 1
            assert conn.call("BF.EXISTS", "new", "z") == 0


@pytest.mark.parametrize("policy", ["always", "everysec"])
@pytest.mark.parametrize("misconf_after", ["1", "60"])
def test_a_disk_that_is_full_for_some_time(policy, misconf_after):
    with crash.Store() as store:
        faulty = Faulty(store, policy, "--misconf-after", misconf_after)
        for slot, call in enumerate(("write", "create", "link")):
            store.shim.arm(slot, "fail", [call], error=errno.ENOSPC,
                           flags=FLAGS["for good"])
        faulty.busy(0.1)
        faulty.ask("BGSAVE")
        faulty.ask("BGREWRITEAOF")
        faulty.busy(2)
        faulty.serves_reads()
        for slot in range(3):
            store.shim.disarm(slot)
        took = faulty.lift()
        print("%s, misconf-after %s: writes went on %.2f s after" % (
            policy, misconf_after, took))
        refused = [text for _, text in faulty.load.errors()]
        assert all(b"MISCONF" in text or b"EXECABORT" in text
                   for text in refused), refused[:3]
        assert bool(refused) == (misconf_after == "1")
        faulty.end()


def test_a_failed_save_stops_writes_if_there_are_save_rules():
    with crash.Store("--appendonly", "no", "--save", "3600 1000000") as store:
        store.add_shim()
        store.start()
        with store.conn() as conn:
            assert conn.call("BF.ADD", "k", "x") == 1
            store.shim.arm(0, "fail", ["write"], ["snapshot.tmp"],
                           flags=FLAGS["for good"], error=errno.ENOSPC)
            conn.call("BGSAVE")
            servers.wait_until(lambda: misconf(conn.call("BF.ADD", "k", "y")),
                               5, "writes are refused")
            assert conn.call("BF.EXISTS", "k", "x") == 1
            assert crash.info(conn)["rdb_last_bgsave_status"] == "err"
            assert crash.info(conn)["rdb_last_bgsave_error"] == "No space left on device"
            store.shim.disarm(0)
            conn.call("BGSAVE")
            servers.wait_until(lambda: conn.call("BF.ADD", "k", "z") == 1, 5,
                               "writes go on")
        store.assert_healthy()
