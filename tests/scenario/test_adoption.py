# SPDX-License-Identifier: BSD-3-Clause
#
# What a replica has from a full synchronization is on its disk when its link is up,
# and what it acknowledges after a promotion is there, whenever it is killed.

import errno
import os

import pytest

from lib import resp, shim, slots
from lib.replicas import follow, info, lead, link_is_up, wait_even
from lib.servers import wait_until

FILTERS, CAPACITY = 8, 2_000_000        # 30 MB
CHANGES = ["create", "write", "sync", "rename", "link", "unlink"]


def fill(primary, filters=FILTERS, capacity=CAPACITY):
    with primary.conn() as conn:
        for i in range(filters):
            assert conn.call("BF.RESERVE", "big%d" % i, "0.001", capacity) == b"OK"
            conn.call("BF.MADD", "big%d" % i, *("item%d" % n for n in range(100)))


def add_until_killed(server, added, key="key", stop=lambda count: False):
    """Adds items one by one, and notes each that was acknowledged. Ends with an
    error, or with a connection that breaks."""
    try:
        with server.conn() as conn:
            while not stop(len(added)):
                item = "new%d" % len(added)
                got = conn.call("BF.ADD", key, item)
                assert got in (0, 1), got
                added.append(item)
    except slots.GONE:
        pass


def assert_has(server, added, key="key"):
    with server.conn() as conn:
        got = conn.call("BF.MEXISTS", key, *added) if added else []
    lost = [item for item, there in zip(added, got) if there != 1]
    assert lost == [], "%d of %d are lost" % (len(lost), len(added))


@pytest.mark.parametrize("fsync", ["always", "everysec"])
def test_a_promoted_replica_keeps_what_it_acknowledged(group, fsync):
    primary = group.node()
    replica = group.node("--appendonly", "yes", "--appendfsync", fsync)
    fill(primary)
    with replica.conn() as conn:
        conn.call("BF.ADD", "older", "data")
    follow(replica, primary)
    lead(replica)
    added = []
    add_until_killed(replica, added, stop=lambda count: count >= 200)
    assert len(added) == 200
    replica.crash()
    replica.restart()
    assert_has(replica, added)
    with replica.conn() as conn:
        assert conn.call("DBSIZE") == FILTERS + 1
        assert conn.call("BF.EXISTS", "big0", "item99") == 1
    assert info(replica)["role"] == "master"


def test_data_that_arrives_is_written_once(group):
    """Counted by the kernel; the journal and the snapshot share one file."""
    primary = group.node()
    replica = group.node("--appendonly", "yes", "--save", "3600 1")
    with primary.conn() as conn:
        for i in range(8):
            conn.call("BF.RESERVE", "k%d" % i, "0.001", 100000)
            for at in range(0, 16000, 1000):
                conn.call("BF.MADD", "k%d" % i, *range(at, at + 1000))

    def written():
        with open("/proc/%d/io" % replica.pid) as file:
            return int(dict(line.split(": ") for line in file)["wchar"])

    before, walks = written(), info(replica, "persistence")["rdb_saves"]
    follow(replica, primary)
    got = info(replica, "persistence")
    bytes_ = os.path.getsize(os.path.join(replica.folder, "bloomery.snapshot"))
    assert got["journal_state"] == "on" and int(got["aof_base_size"]) == bytes_
    assert bytes_ > 1_000_000
    assert written() - before < bytes_ + 200_000
    assert int(got["rdb_saves"]) == int(walks) + 1
    wait_even(primary, replica)
    replica.crash()
    replica.restart()
    wait_even(primary, replica)


def test_a_disk_that_is_slow_holds_replies_and_not_reads(group, tmp_path):
    """The promotion comes while the disk has not taken the data yet."""
    primary = group.node()
    replica = group.shimmed(tmp_path, "--appendonly", "yes", "--appendfsync", "always")
    fill(primary, 2, 10000)
    wait_until(lambda: info(replica, "persistence")["journal_state"] == "on")
    replica.shim.arm(0, "delay", ["rename"], shim.FILES, flags=shim.EVERY, delay_ms=1500)
    follow(replica, primary, wait=False)
    wait_until(lambda: info(replica, "persistence")["journal_state"] == "holding")
    assert not link_is_up(replica)
    lead(replica)
    with replica.conn() as conn, replica.conn() as reader:
        conn.send(resp.command("BF.ADD", "big0", "held"))
        assert reader.call("BF.EXISTS", "big1", "item1") == 1
        got = info(replica, "persistence")
        assert got["journal_state"] == "holding"
        assert int(got["journal_held_ms"]) > 0
        assert got["journal_held_max_ms"] == "10000"
        assert conn.read() == 1
    assert info(replica, "persistence")["journal_state"] == "on"
    assert b"holds replies to writes" in replica.log()
    replica.shim.disarm(0)
    replica.crash()
    replica.restart()
    assert_has(replica, ["held"], "big0")


def test_a_disk_that_fails_does_not_fail_the_synchronization(group, tmp_path):
    primary = group.node()
    replica = group.shimmed(tmp_path, "--appendonly", "yes")
    fill(primary, 2, 10000)
    wait_until(lambda: info(replica, "persistence")["journal_state"] == "on")
    replica.shim.arm(0, "fail", ["write"], ["snapshot.tmp"], flags=shim.FOR_GOOD,
                     error=errno.ENOSPC)
    follow(replica, primary)
    assert info(replica, "persistence")["journal_state"] == "faulted"
    lead(replica)
    with replica.conn() as conn:
        conn.send(resp.command("BF.ADD", "big0", "held"))
        replica.shim.disarm(0)
        assert conn.read() == 1
    replica.crash()
    replica.restart()
    assert_has(replica, ["held"], "big0")


@pytest.mark.parametrize("sentinel", [False, True])
def test_a_role_that_is_not_written_holds_replies_and_not_reads(
        group, tmp_path, sentinel):
    """A start would follow again, and give up what was acknowledged meanwhile."""
    primary = group.node()
    replica = group.shimmed(tmp_path, "--appendonly", "yes", "--misconf-after", 2)
    fill(primary, 2, 1000)
    follow(replica, primary)
    replica.shim.arm(0, "fail", ["rename"], ["snapshot"], flags=shim.FOR_GOOD,
                     error=errno.ENOSPC)
    with replica.conn() as conn, replica.conn() as reader:
        if sentinel:
            assert conn.pipeline([("MULTI",), ("SLAVEOF", "NO", "ONE"), ("EXEC",)])
        else:
            lead(replica)
        conn.send(resp.command("BF.ADD", "big0", "held"))
        got = wait_until(lambda: (got := info(replica, "persistence"))
                         ["journal_misconf"] == "1" and got, 30, "it gives up")
        assert int(got["journal_held_ms"]) >= 2000
        assert int(got["journal_released_position"]) < int(got["journal_position"])
        assert reader.call("BF.EXISTS", "big1", "item1") == 1
        assert str(reader.call("BF.ADD", "big0", "refused")).startswith("MISCONF")
        assert b"the role is not written" in replica.log()
        replica.shim.disarm(0)
        held = conn.read()
        assert held == 1 or "MISCONF" in str(held) or "unknown" in str(held), held
        wait_until(lambda: reader.call("BF.ADD", "big0", "after") in (0, 1), 30)
    replica.crash()
    replica.restart()
    assert info(replica)["role"] == "master"
    assert_has(replica, ["held", "after"], "big0")


@pytest.mark.parametrize("call", CHANGES)
@pytest.mark.parametrize("promoted", [False, True])
def test_killed_at_each_call_of_an_adoption(group, tmp_path, call, promoted):
    """The data is the old or the new one, all of it, and the new one if anything of
    it was acknowledged, or if the link was up."""
    primary = group.node()
    fill(primary, 3, 20000)
    replica = group.shimmed(tmp_path, "--appendonly", "yes", "--appendfsync", "always")
    kills = 0
    for nth in range(1, 60):
        with replica.conn() as conn:
            conn.call("FLUSHALL")
            conn.call("BF.ADD", "older", nth)
        replica.shim.arm(0, "kill-before", [call], shim.FILES, nth=nth)
        added, up = synchronize(replica, primary, promoted)
        killed = replica.shim.rule(0).fired > 0
        replica.shim.disarm(0)
        if killed:
            replica.child.wait()
        replica.crash()
        replica.restart()
        check_either(replica, added, up)
        kills += killed
        lead(replica)       # it may follow again
        wait_until(lambda: is_tidy(replica), 10, "nothing is left")
        if not killed:
            break
    else:
        raise AssertionError("it never ends")
    print("killed %d times" % kills)
    assert kills > 0


def synchronize(replica, primary, promoted):
    """Returns what was acknowledged after a promotion, and whether the link was
    up."""
    added, up = [], False
    try:
        follow(replica, primary, wait=False)
        def ended():
            return link_is_up(replica) or (
                promoted and info(replica, "persistence")["journal_state"] != "on")
        wait_until(ended, 30, "the replica follows")
        up = link_is_up(replica)
        if promoted:
            lead(replica)
            add_until_killed(replica, added, stop=lambda count: count >= 20)
    except slots.GONE:
        if replica.child.poll() is None and not replica.shim.rule(0).fired:
            raise
    return added, up


def check_either(replica, added, up):
    with replica.conn() as conn:
        names = sorted(conn.call("KEYS", "*"))
    new = [b"big0", b"big1", b"big2"]
    assert [n for n in names if n != b"key"] in (new, [b"older"]), names
    if added or up:
        assert b"older" not in names
    assert_has(replica, added)


def is_tidy(replica):
    names = os.listdir(replica.shim.data_dir) + \
        os.listdir(os.path.join(replica.shim.data_dir, "journal"))
    return not [n for n in names if n.endswith((".tmp", ".new", ".arriving"))]


def test_a_journal_that_is_switched_on_keeps_what_follows_the_reply(group, tmp_path):
    """The reply waits for the disk; other clients do not."""
    server = group.shimmed(tmp_path, "--appendonly", "no")
    fill(server)
    server.shim.arm(0, "delay", ["sync"], ["base.tmp"], delay_ms=700)
    with server.conn() as conn, server.conn() as other:
        conn.send(resp.command("CONFIG", "SET", "appendonly", "yes"))
        wait_until(lambda: info(server, "persistence")["journal_state"] == "building")
        assert other.call("BF.ADD", "key", "meanwhile") == 1
        assert info(server, "persistence")["journal_state"] == "building"
        # A second one has nothing to change, and waits all the same.
        assert other.call("CONFIG", "SET", "appendonly", "yes") == b"OK"
        assert info(server, "persistence")["journal_state"] == "on"
        assert conn.read() == b"OK"
    assert info(server, "persistence")["journal_state"] == "on"
    added = ["meanwhile"]
    add_until_killed(server, added, stop=lambda count: count > 100)
    server.crash()
    server.restart()
    assert_has(server, added)
    with server.conn() as conn:
        assert conn.call("DBSIZE") == FILTERS + 1


def test_a_journal_that_cannot_be_switched_on_is_an_error(group, tmp_path):
    server = group.shimmed(tmp_path, "--appendonly", "no")
    server.shim.arm(0, "fail", ["create"], ["incr"], flags=shim.FOR_GOOD)
    with server.conn() as conn:
        reply = conn.call("CONFIG", "SET", "appendonly", "yes")
        assert isinstance(reply, resp.Error) and "cannot be written" in str(reply)
        server.shim.disarm(0)
        wait_until(lambda: info(server, "persistence")["journal_state"] == "on", 30)


def test_a_transaction_does_not_say_that_a_journal_is_on_which_is_not(group, tmp_path):
    """EXEC cannot wait, so it refuses. A journal that is on is no news."""
    server = group.shimmed(tmp_path, "--appendonly", "no")
    fill(server)
    server.shim.arm(0, "delay", ["sync"], ["base.tmp"], flags=shim.FOR_GOOD,
                    delay_ms=20000)

    def switch_on(conn, *more):
        replies = conn.pipeline([
            ("MULTI",), ("CONFIG", "SET", "appendonly", "yes", *more), ("EXEC",)])
        assert replies[:2] == [b"OK", b"QUEUED"], replies
        return replies[2][0]

    with server.conn() as conn, server.conn() as waits:
        reply = switch_on(conn, "maxclients", "77")
        assert "outside MULTI" in str(reply), reply
        assert conn.call("CONFIG", "GET", "appendonly")[1] == b"no"
        assert conn.call("CONFIG", "GET", "maxclients")[1] != b"77"
        waits.send(resp.command("CONFIG", "SET", "appendonly", "yes"))
        wait_until(lambda: info(server, "persistence")["journal_state"] == "building")
        assert "outside MULTI" in str(switch_on(conn))
        server.shim.disarm(0)
        assert waits.read() == b"OK"
        assert switch_on(conn, "maxclients", "77") == b"OK"
        assert conn.call("CONFIG", "GET", "maxclients")[1] == b"77"
        assert conn.call("BF.ADD", "key", "after") == 1
    server.crash()
    server.restart()
    assert_has(server, ["after"])


def fill_pipes(server):
    """More than pipes and sockets hold."""
    with server.conn() as conn:
        for i in range(40):
            conn.call("BF.RESERVE", "k%d" % i, "0.001", 300000)
            conn.call("BF.MADD", "k%d" % i, *range(8000))


def test_a_slow_replica_keeps_nothing_off_the_disk(group):
    """A replica that reads nothing is synchronized meanwhile."""
    primary = group.node("--appendonly", "no", "--repl-timeout", 60)
    fill_pipes(primary)
    replica = group.node()
    proxy = group.proxy(primary)
    proxy.flow.clear()
    follow(replica, proxy, wait=False)
    proxy.hold_on = b"+FULLRESYNC"
    proxy.flow.set()
    wait_until(lambda: b"began a full synchronization" in primary.log(), 30)
    with primary.conn() as conn:
        assert conn.call("CONFIG", "SET", "appendonly", "yes") == b"OK"
        assert conn.call("BF.ADD", "k0", "after") == 1
        assert conn.call("SAVE") == b"OK"
        conn.call("BGREWRITEAOF")
        wait_until(lambda: info(primary, "persistence")["aof_rewrites"] == "2", 30)
    assert not link_is_up(replica)
    assert b"full synchronization was sent" not in primary.log()
    proxy.hold_on = None
    proxy.flow.set()
    wait_even(primary, replica)
    primary.crash()
    primary.restart()
    assert_has(primary, ["after"], "k0")
    wait_even(primary, replica)


def test_a_slow_sub_replica_keeps_nothing_off_the_disk(group):
    """A replica is synchronized, and synchronizes another one behind a link that
    stands still. What WAIT has confirmed meanwhile is on the replica's disk."""
    primary = group.node("--appendonly", "no")
    replica = group.node("--appendonly", "yes", "--repl-timeout", 60)
    below = group.node("--appendonly", "yes", "--repl-timeout", 60)
    fill_pipes(primary)
    proxy = group.proxy(replica)
    follow(below, proxy)
    proxy.hold_on = b"+FULLRESYNC"
    follow(replica, primary)
    confirmed = []
    with primary.conn() as conn:
        for n in range(100):
            assert conn.call("BF.ADD", "key", "new%d" % n) in (0, 1)
            if conn.call("WAIT", 1, 10000) == 1:
                confirmed.append("new%d" % n)
    assert len(confirmed) == 100 and not link_is_up(below)
    primary.crash()
    replica.crash()
    replica.restart()
    lead(replica)
    assert_has(replica, confirmed)
    assert_has(replica, ["7999"], "k39")
    proxy.hold_on = None
    proxy.flow.set()
    wait_until(lambda: link_is_up(below), 30, "the sub-replica follows")
    wait_even(replica, below)
    assert_has(below, confirmed)
