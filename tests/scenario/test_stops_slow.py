# SPDX-License-Identifier: BSD-3-Clause
#
# Stops that have to wait: for a disk that hangs, or for replicas. Reads go on until
# the end, a client can abort such a stop, and FORCE does not wait.

import os
import shutil
import signal
import threading
import time

import pytest

from lib import crash, resp
from lib.replicas import follow
from lib.servers import time_factor, wait_until

ADDS = 50


class Reader:
    """Reads all the time, and notes the longest wait for a reply."""

    def __init__(self, store):
        self.conn = store.conn(timeout=60)
        self.longest, self.reads = 0, 0
        self.conn.call("BF.EXISTS", "k", "0")
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            while True:
                begun = time.monotonic()
                assert self.conn.call("BF.EXISTS", "k", "0") == 1
                self.longest = max(self.longest, time.monotonic() - begun)
                self.reads += 1
        except (resp.Closed, OSError):
            pass

    def end(self):
        self.thread.join()
        self.conn.close()
        assert self.longest < 0.8 * time_factor(), self.longest


def filled(store, conn):
    for item in range(ADDS):
        assert conn.call("BF.ADD", "k", item) == 1


def check(store):
    """After a kill or an end everything that was acknowledged is there."""
    store.kill()
    store.start(shim=False)
    with store.conn() as conn:
        assert conn.call("BF.CARD", "k") == ADDS


def hang_syncs(store, files=("incr",), delay_ms=3000):
    store.shim.arm(0, "delay", ["sync"], list(files), flags=1, delay_ms=delay_ms)


@pytest.mark.parametrize("how", ["SIGTERM", "SHUTDOWN", "SHUTDOWN SAVE"])
def test_reads_go_on_until_a_stop_has_ended(how):
    with crash.Store("--appendfsync", "everysec") as store:
        store.add_shim()
        store.start()
        with store.conn(timeout=60) as conn:
            filled(store, conn)
            hang_syncs(store, ["incr", "snapshot", "snapshot.tmp"])
            reader = Reader(store)
            begun = time.monotonic()
            if how == "SIGTERM":
                store.child.send_signal(signal.SIGTERM)
            else:
                conn.send(resp.command(*how.split()))
                conn.read_to_close()
            assert store.wait_gone(40) == 0
            took = time.monotonic() - begun
            reader.end()
        assert took > 1.5, "no sync has hung"
        assert how == "SIGTERM" or 'command="%s"' % how in store.log()
        check(store)


@pytest.mark.parametrize("how", [(), ("NOSAVE",), ("SAVE",), ("NOSAVE", "NOW")])
def test_force_ends_within_a_second_and_says_what_is_missing(how):
    with crash.Store("--appendfsync", "everysec") as store:
        store.add_shim()
        store.start()
        with store.conn(timeout=60) as conn:
            hang_syncs(store, ["incr", "snapshot", "snapshot.tmp"], 60000)
            filled(store, conn)
            reader = Reader(store)
            begun = time.monotonic()
            conn.send(resp.command("SHUTDOWN", *how, "FORCE"))
            conn.read_to_close()
            assert store.wait_gone(10) == 0
            assert time.monotonic() - begun < 1.2 * time_factor()
            reader.end()
        log = store.log()
        assert "stopped by force, not everything is on the disk" in log
        assert "journal_unwritten_bytes=0" in log
        assert "journal_unsynced_bytes=0" not in log
        assert ("snapshot=missing" in log) == (how == ("SAVE",))
        check(store)


def test_force_helps_a_stop_that_already_waits_for_the_disk():
    with crash.Store("--appendfsync", "everysec") as store:
        store.add_shim()
        store.start()
        with store.conn(timeout=60) as conn, store.conn(timeout=60) as other:
            hang_syncs(store, delay_ms=60000)
            filled(store, conn)
            store.child.send_signal(signal.SIGTERM)
            wait_until(lambda: "signal=15" in store.log(), what="the stop")
            assert other.call("BF.EXISTS", "k", 1) == 1
            other.send(resp.command("SHUTDOWN", "NOSAVE", "FORCE"))
            other.read_to_close()
            assert store.wait_gone(10) == 0
        check(store)


def test_force_waits_for_a_disk_that_works():
    with crash.Store("--appendonly", "no") as store:
        store.start()
        with store.conn(timeout=60) as conn:
            filled(store, conn)
            conn.send(resp.command("SHUTDOWN", "SAVE", "FORCE"))
            conn.read_to_close()
            assert store.wait_gone(20) == 0
        assert "by force" not in store.log()
        check(store)


@pytest.mark.parametrize("how", ["SIGTERM", "SHUTDOWN"])
def test_a_stop_that_waits_for_the_disk_is_aborted(how):
    with crash.Store("--appendfsync", "everysec") as store:
        store.add_shim()
        store.start()
        with store.conn(timeout=60) as conn, store.conn(timeout=60) as other:
            assert other.call("SHUTDOWN", "ABORT").args[0] == \
                "ERR No shutdown in progress."
            hang_syncs(store, delay_ms=60000)
            filled(store, conn)
            if how == "SIGTERM":
                store.child.send_signal(signal.SIGTERM)
            else:
                conn.send(resp.command("SHUTDOWN"))
            wait_until(lambda: "stopping" in store.log(), what="the stop")
            wait_until(lambda: other.call("SHUTDOWN", "ABORT") == b"OK", 5,
                       "it is aborted")
            if how == "SHUTDOWN":
                assert "Errors trying to SHUTDOWN" in str(conn.read())
            store.shim.disarm(0)
            assert other.call("BF.ADD", "other", 1) == 1
            assert other.call("SHUTDOWN", "ABORT").args[0] == \
                "ERR No shutdown in progress."
            assert store.alive()
        check(store)


def test_a_stop_that_waits_for_replicas_is_aborted(group):
    primary, replica = group.node("--shutdown-timeout", 60), group.node()
    proxy = group.proxy(primary)
    follow(replica, proxy)
    with primary.conn() as conn, primary.conn() as other, primary.conn() as writer:
        conn.call("BF.ADD", "k", "a")
        proxy.flow.clear()
        conn.call("BF.ADD", "k", "b")
        conn.send(resp.command("SHUTDOWN"))
        wait_until(lambda: b"waits for replicas" in primary.log(), 10, "the stop")
        writer.send(resp.command("BF.ADD", "k", "c"))
        assert other.call("BF.EXISTS", "k", "b") == 1
        assert other.call("SHUTDOWN", "ABORT") == b"OK"
        assert "Errors trying to SHUTDOWN" in str(conn.read())
        assert writer.read() == 1
        proxy.flow.set()
        assert conn.call("WAIT", 1, 10000) == 1
        # An ended stop leaves nothing behind: the next one works.
        conn.send(resp.command("SHUTDOWN", "NOSAVE"))
        conn.read_to_close()
    assert primary.wait_exit() == 0
    primary.stopped = True
    primary.remove()


@pytest.mark.parametrize("what", ["data", "journal"])
def test_files_that_were_removed_a_moment_ago_are_there_after_a_stop(what):
    """A sync of removed files succeeds, so the stop looks whether they are there."""
    with crash.Store("--appendfsync", "always") as store:
        store.start()
        with store.conn() as conn:
            filled(store, conn)
        shutil.rmtree(store.data if what == "data" else
                      os.path.join(store.data, "journal"))
        store.child.send_signal(signal.SIGTERM)
        assert store.wait_gone(20) == 0
        check(store)
