# SPDX-License-Identifier: BSD-3-Clause
#
# A process that is stopped for some seconds (a paused container or machine), and a
# disk that is slow but sound. Time in which the process did not run counts against
# nobody who could not answer: not against the disk, a replica, a primary or a
# client. A disk is blamed only for what it does.

import time

import pytest

from lib import crash, resp
from lib.replicas import Faults, info
from lib.servers import wait_until

SECONDS = 4


class Paused(Faults):
    """The server of a store, for freeze and thaw."""

    def __init__(self, store):
        self.child = store.child


def stand_still(*processes, seconds=SECONDS):
    for process in processes:
        process.freeze()
    begun = time.monotonic()
    wait_until(lambda: time.monotonic() - begun > seconds, 2 * seconds,
               "the time of the pause", 0.05)
    for process in processes:
        process.thaw()


def errors(replies):
    return [r for r in replies if isinstance(r, resp.Error)]


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_a_sound_disk_that_takes_its_time_is_not_blamed(policy):
    """misconf-after 0 means at once, but a sync under way is no failure."""
    with crash.Store("--appendfsync", policy, "--misconf-after", 0) as store:
        store.add_shim().arm(0, "delay", ["sync"], ["incr"], flags=4, delay_ms=150)
        store.start()
        with store.conn() as conn, store.conn() as other:
            replies = []
            for number in range(15):
                conn.send(b"".join(resp.command("BF.ADD", "k%d" % number, item)
                                   for item in range(20)))
                replies.append(other.call("PING"))
                replies += [conn.read() for _ in range(20)]
            assert not errors(replies), errors(replies)[0]


def test_misconf_after_0_is_at_once_for_a_sync_that_fails():
    with crash.Store("--appendfsync", "always", "--misconf-after", 0) as store:
        shim = store.add_shim()
        store.start()
        with store.conn() as conn:
            assert conn.call("BF.ADD", "k", "a") == 1
            shim.arm(0, "fail", ["sync"], flags=1)
            reply = conn.call("BF.ADD", "k", "b")
            assert reply.args[0].startswith("MISCONF applied"), reply
            shim.disarm(0)
            wait_until(lambda: conn.call("PING") == b"PONG", 10, "it recovers")


def test_a_write_that_hangs_is_noticed():
    with crash.Store("--appendfsync", "everysec", "--misconf-after", 1) as store:
        shim = store.add_shim()
        store.start()
        with store.conn() as conn, store.conn() as other:
            assert conn.call("BF.ADD", "k", "a") == 1
            wait_until(lambda: crash.info(other)["journal_unsynced_age_ms"] == "0",
                       10, "all is synced")
            shim.arm(0, "delay", ["write"], ["incr"], delay_ms=60000)
            conn.send(resp.command("BF.ADD", "k", "b"))
            wait_until(lambda: errors([other.call("PING")]), 10,
                       "the disk is blamed")
            assert conn.read().args[0].startswith("MISCONF applied")
            shim.disarm(0)
            wait_until(lambda: other.call("PING") == b"PONG", 10, "it recovers")


def test_a_pause_of_the_process_is_not_the_disk_s():
    with crash.Store("--appendfsync", "always", "--misconf-after", 3) as store:
        store.add_shim().arm(0, "delay", ["sync"], ["incr"], flags=4, delay_ms=200)
        store.start()
        with store.conn(timeout=30) as conn, store.conn(timeout=30) as other:
            assert conn.call("BF.ADD", "k", "a") == 1
            wait_until(lambda: store.shim.rule(0).fired > 0, what="a slow sync")
            conn.send(b"".join(resp.command("BF.ADD", "k", item)
                               for item in range(20)))
            other.call("PING")
            stand_still(Paused(store))
            replies = [other.call("PING"), other.call("BF.ADD", "other", "x")]
            replies += [conn.read() for _ in range(20)]
            assert not errors(replies), errors(replies)[0]
            assert crash.info(other)["journal_misconf"] == "0"
        assert "refused writes" not in store.log()


def test_a_pause_breaks_no_link(group):
    options = ("--repl-timeout", 2, "--repl-ping-replica-period", 1)
    primary, replica, _ = group.pair(*options)

    def links():
        got = info(primary, "stats")
        return [got["sync_full"], got["sync_partial_ok"]]
    before = links()
    stand_still(primary, replica)
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "x")
        assert conn.call("WAIT", 1, 10000) == 1
    assert info(replica)["master_link_status"] == "up"
    assert links() == before


def test_a_pause_cuts_no_client(group):
    server = group.node("--timeout", 2)
    with server.conn() as conn:
        assert conn.call("PING") == b"PONG"
        server.freeze()
        conn.send(resp.command("BF.ADD", "k", "x"))
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() - begun > SECONDS, 2 * SECONDS,
                   "the time of the pause", 0.05)
        server.thaw()
        assert conn.read() == 1
        assert conn.call("PING") == b"PONG"


