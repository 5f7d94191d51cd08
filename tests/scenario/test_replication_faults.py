# SPDX-License-Identifier: BSD-3-Clause
#
# Faults of replication: replicas that are killed, stopped or have a failing disk,
# primaries that end during a transfer, and lack of memory. The other servers go on
# within their limits, and in the end all have the same data.
#
# ROUNDS=1000 runs the random tests more often, SEED=n repeats a run (make
# replicas).

import errno
import random
import shutil
import threading
import time

import pytest

from lib import crash, links, replicas, resp, servers, shim
from lib.replicas import follow, info, lead, wait_even
from lib.servers import wait_until

pytestmark = pytest.mark.slow

ROUNDS = crash.amount("ROUNDS", 20)
MIB = 1 << 20
JOURNAL = ("--appendonly", "yes", "--appendfsync", "everysec")
NO_JOURNAL = ("--appendonly", "no")


@pytest.fixture
def start(group, tmp_path):
    """start(options): a server; shimmed=True: one whose calls can be made to
    fail, by server.shim. start.proxy(server): a proxy before it."""
    def begin(*options, shimmed=False):
        return (group.shimmed(tmp_path, *options) if shimmed
                else group.node(*options))

    begin.proxy = group.proxy
    return begin


def filled(server, keys, capacity=500000):
    """Writes about 1 MiB per key. Few lines of the filters are zero, so that
    the data is really sent."""
    with server.conn() as conn:
        assert conn.call("BF.RESERVE", "big:0", "0.001", capacity) == b"OK"
        conn.call("BF.MADD", "big:0", *range(40000))
        for key in range(1, keys):
            assert conn.call("COPY", "big:0", "big:%d" % key) == 1


def connected(server):
    return int(info(server)["connected_slaves"])


# ---- killed and stopped ----------------------------------------------------

def test_random_ends_of_a_replica(start):
    """kill -9 and SIGSTOP at any moment, of one of two replicas or both, with
    and without a journal; the primary stays within its limits."""
    rng = random.Random(crash.seeds(1)[0])
    primary = start("--repl-backlog-size", "1mb", "--repl-timeout", 5,
                    "--client-output-buffer-limit", "replica 8mb 4mb 5",
                    *NO_JOURNAL)
    nodes = [start(*JOURNAL), start(*NO_JOURNAL)]
    for replica in nodes:
        follow(replica, primary)
    top, base = 0, links.used_memory(primary)
    with links.Writers(primary, rng.randrange(1 << 30)):
        for number in range(ROUNDS):
            replica = rng.choice(nodes)
            if rng.random() < 0.5:
                replica.crash()
                time.sleep(rng.random() * 0.05)
                replica.restart()
                if not replicas.link_is_up(replica):  # it kept its role
                    assert info(replica)["role"] == "slave"
            else:
                replica.freeze()
                time.sleep(rng.random() * 0.3)
                replica.thaw()
            top = max(top, links.used_memory(primary))
            if rng.random() < 0.3:
                wait_until(lambda r=replica: replicas.link_is_up(r), 30,
                           "it is back")
            if number % 100 == 99:
                for replica in nodes:
                    wait_until(lambda r=replica: replicas.link_is_up(r), 30)
    wait_even(primary, *nodes)
    print("memory of the primary: %d KiB more at the most" %
          ((top - base) >> 10))
    assert top - base < 16 * MIB
    print("full, partial, refused: %s" % (links.counts(primary),))


def test_random_ends_of_all_lose_no_acknowledged_write(start):
    """Kills a primary and a replica with a journal in turn. In the end both
    have everything that WAIT 1, or a reply with appendfsync always, has
    promised."""
    rng = random.Random(crash.seeds(1)[0])
    primary, replica = (start(*JOURNAL, "--appendfsync", "always")
                        for _ in range(2))
    follow(replica, primary)
    kept, restarts = [], 0
    for number in range(max(4, ROUNDS // 4)):
        with primary.conn() as conn:
            for item in range(rng.randrange(1, 60)):
                name = "%d.%d" % (number, item)
                if conn.call("BF.ADD", "k", name) in (0, 1):
                    kept.append(name)
                if rng.random() < 0.1:
                    assert conn.call("WAIT", 1, 10000) == 1
            one = rng.choice((primary, replica))
            if one is primary:  # the backlog is gone then
                assert conn.call("WAIT", 1, 10000) == 1
        one.crash()
        one.restart()
        restarts += one is primary
        with primary.conn() as conn:
            assert all(conn.call("BF.MEXISTS", "k", *kept))
    wait_even(primary, replica)
    assert links.counts(primary)[0] == (0 if restarts else 1)


def test_a_frozen_replica_costs_no_more_than_the_limits(start):
    primary = start("--repl-backlog-size", "1mb", "--repl-timeout", 60,
                    "--client-output-buffer-limit", "replica 6mb 0 0")
    replica = start()
    follow(replica, primary)
    with primary.conn() as conn:
        conn.call("BF.RESERVE", "wide", "0.01", 10 ** 7)
    wait_even(primary, replica)
    base, rss = links.used_memory(primary), primary.rss()
    top = 0
    replica.freeze()
    with primary.conn() as conn:
        for number in range(240):
            conn.call("BF.MADD", "wide", *["%d.%0500d" % (number, i)
                                           for i in range(250)])
            if number % 5 == 0:
                top = max(top, links.used_memory(primary))
    wait_until(lambda: connected(primary) == 0)
    grown, grown_rss = top - base, primary.rss() - rss
    print("at the most %d KiB more, RSS %d KiB more" % (
        grown >> 10, grown_rss >> 10))
    assert grown < 12 * MIB
    assert grown_rss < 24 * MIB or servers.sanitized()
    assert links.used_memory(primary) - base < 4 * MIB
    replica.thaw()
    wait_even(primary, replica)
    assert links.counts(primary)[0] == 2


def test_a_stalled_full_synchronization_costs_no_more_than_the_limits(start):
    """A replica that does not read its snapshot stops the snapshot, not the
    primary. The writes meanwhile have a limit."""
    primary = start("--repl-backlog-size", "1mb", "--repl-timeout", 60,
                    "--client-output-buffer-limit", "replica 6mb 0 0")
    filled(primary, 30)
    replica, proxy = start(), start.proxy(primary)
    proxy.cut_at = None
    base, top = links.used_memory(primary), 0
    follow(replica, proxy, wait=False)
    wait_until(lambda: proxy.sent > MIB)
    proxy.flow.clear()
    with primary.conn() as conn:
        for number in range(120):
            conn.call("BF.MADD", "big:0", *["%d.%0500d" % (number, i)
                                            for i in range(250)])
            top = max(top, links.used_memory(primary))
    print("at the most %d KiB more" % ((top - base) >> 10))
    wait_until(lambda: connected(primary) == 0)
    assert top - base < 20 * MIB
    proxy.flow.set()
    wait_even(primary, replica)


def test_long_groups_are_whole_whatever_cuts_them(start):
    """A replica has the pages of a long command cleared in pieces. Its clients
    see all of the items or none, although links are cut, files are written, and
    other changes come before and behind; and also after a promotion."""
    many, filters, rng = 10000, 4, random.Random(crash.seeds(1)[0])
    primary, replica = start(), start(*JOURNAL)
    proxy = start.proxy(primary)
    follow(replica, proxy)
    stop, seen = threading.Event(), set()

    def look():
        with replica.conn() as conn:
            while not stop.is_set():
                seen.update(conn.call("BF.CARD", "wide:%d" % number)
                            for number in range(filters))

    def add(number):
        conn.send(resp.command("BF.ADD", "k", number) +
                  resp.command("BF.MADD", "wide:%d" % number,
                               *["%d.%d" % (number, i) for i in range(many)]) +
                  resp.command("MULTI") + resp.command("BF.ADD", "k", "x") +
                  resp.command("BF.MADD", "half:%d" % number, *range(many)) +
                  resp.command("SELECT", 3) + resp.command("BF.ADD", "l", number) +
                  resp.command("EXEC") + resp.command("SELECT", 0))

    reader = threading.Thread(target=look)
    with primary.conn() as conn:
        for number in range(filters):
            for name in "wide", "half":
                conn.call("BF.RESERVE", "%s:%d" % (name, number), "0.01",
                          5 * 10 ** 6)
        wait_even(primary, replica)
        reader.start()
        try:
            for number in range(filters - 1):
                add(number)
                proxy.cut_at = proxy.sent + rng.randrange(300000)
                with replica.conn() as other:
                    other.call(("BGSAVE", "BGREWRITEAOF")[number % 2])
                for _ in range(9):
                    assert not isinstance(conn.read(), resp.Error)
                if number % 2:
                    proxy.cut()
                wait_even(primary, replica)
            assert links.counts(primary)[0] == 1
            goal = proxy.sent + rng.randrange(200000)   # of some 220,000
            add(filters - 1)
            wait_until(lambda: proxy.sent > goal)
            lead(replica)
        finally:
            stop.set()
            reader.join()
    with replica.conn() as other:
        seen.update(other.call("BF.CARD", "%s:%d" % (name, filters - 1))
                    for name in ("wide", "half"))
        assert other.call("BF.ADD", "k", "here") == 1
        digest = replicas.digest(replica)
    links.restart(replica)
    assert replicas.digest(replica) == digest
    assert all(card == 0 or card > many * 0.99 for card in seen), seen


# ---- disks -----------------------------------------------------------------

@pytest.mark.parametrize("policy", ["everysec", "always"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_replica_whose_disk_fails_keeps_replicating(start, policy, error):
    primary = start()
    replica = start(*JOURNAL, "--appendfsync", policy, shimmed=True)
    follow(replica, primary)
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "before")
        wait_even(primary, replica)
        # The received changes have their place on the disk.
        wait_until(lambda: info(replica, "persistence")
                   ["journal_state"] == "on", 10)
        replica.shim.arm(0, "fail", ["write", "create"], error=error,
                         flags=shim.FOR_GOOD | shim.SHORT)
        conn.call("BF.ADD", "k", "at fault")
        wait_until(lambda: info(replica, "persistence")
                   ["aof_last_write_status"] == "err", 10, "it says so")
        for number in range(300):
            conn.call("BF.ADD", "k:%d" % (number % 7), "i:%d" % number)
        assert conn.call("WAIT", 1, 5000) == 1
        assert conn.call("WAITAOF", 0, 1, 100)[1] == 0  # not on its disk
        wait_even(primary, replica)
        assert replicas.link_is_up(replica)
        with replica.conn() as other:
            assert other.call("BF.EXISTS", "k", "at fault") == 1
        replica.shim.disarm(0)
        wait_until(lambda: info(replica, "persistence")
                   ["aof_last_write_status"] == "ok", 20, "it heals")
        assert conn.call("BF.ADD", "k", "healed") == 1
        assert conn.call("WAITAOF", 0, 1, 10000)[1] == 1
    full = links.counts(primary)[0]
    replica.crash()
    replica.restart()
    wait_even(primary, replica)
    assert links.counts(primary)[0] == full, "its disk had everything"


def test_a_disk_that_fails_during_a_full_synchronization(start):
    primary, replica = start(), start(*JOURNAL, shimmed=True)
    filled(primary, 5)
    replica.shim.arm(0, "fail", ["write", "create"], error=errno.ENOSPC,
                     flags=shim.FOR_GOOD | shim.SHORT)
    follow(replica, primary)
    wait_even(primary, replica)
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "x")
    wait_even(primary, replica)
    replica.shim.disarm(0)
    wait_until(lambda: info(replica, "persistence")
               ["aof_last_write_status"] == "ok", 20, "it heals")
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "y")
        assert conn.call("WAITAOF", 0, 1, 10000)[1] == 1
    replica.crash()
    replica.restart()
    wait_even(primary, replica)
    assert links.counts(primary)[0] == 1


def test_a_write_that_waits_for_the_disk_is_not_on_the_replica(start):
    """With appendfsync always the disk comes first, and may still fail."""
    primary = start(*JOURNAL, "--appendfsync", "always", shimmed=True)
    replica = start()
    follow(replica, primary)
    with primary.conn() as conn, replica.conn() as other:
        assert conn.call("BF.ADD", "k", "before") == 1
        wait_even(primary, replica)
        primary.shim.arm(0, "delay", ["sync"], delay_ms=400,
                         flags=shim.FOR_GOOD)
        conn.send(resp.command("BF.ADD", "k", "held"))
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            assert other.call("BF.EXISTS", "k", "held") == 0
            time.sleep(0.005)
        assert conn.read() == 1
        primary.shim.disarm(0)
        wait_until(lambda: other.call("BF.EXISTS", "k", "held") == 1)
    wait_even(primary, replica)


def test_a_write_that_fails_on_the_primarys_disk_is_not_replicated(start):
    primary = start(*JOURNAL, "--appendfsync", "always", shimmed=True)
    replica = start()
    follow(replica, primary)
    with primary.conn() as conn, primary.conn() as later, \
            replica.conn() as other:
        assert conn.call("BF.ADD", "k", "before") == 1
        wait_even(primary, replica)
        primary.shim.arm(0, "fail", ["write", "create", "sync"],
                         error=errno.EIO, flags=shim.FOR_GOOD)
        conn.send(resp.command("BF.ADD", "k", "held"))
        wait_until(lambda: info(primary, "persistence")
                   ["aof_last_write_status"] == "err", 10)
        assert other.call("BF.EXISTS", "k", "held") == 0
        assert replicas.link_is_up(replica)
        primary.shim.disarm(0)
        got = conn.read()
        assert later.call("BF.ADD", "other", "y") == 1
    wait_even(primary, replica)
    with replica.conn() as other:
        assert got != 1 or other.call("BF.EXISTS", "k", "held") == 1


# ---- full synchronizations -------------------------------------------------

def test_a_full_synchronization_with_memory_for_one_copy_only(start):
    """The replica drops the old data first. Meanwhile it answers -LOADING, and
    no server or operator can make it a primary."""
    primary = start()
    filled(primary, 30)
    replica = start("--maxmemory", "50mb")
    filled(replica, 28)
    proxy = start.proxy(primary)
    with replica.conn() as conn:
        follow(replica, proxy, wait=False)
        wait_until(lambda: proxy.sent > 2 * MIB)
        proxy.flow.clear()
        assert info(replica)["data_absent"] == "1"
        assert b"dropped the data" in replica.log()
        for words in ("BF.EXISTS big:0 1", "DBSIZE", "BF.ADD k x"):
            got = conn.call(*words.split())
            assert isinstance(got, resp.Error), words
            assert got.args[0].startswith(("LOADING", "READONLY")), got
        assert str(conn.call("PING")).startswith("LOADING")
        assert isinstance(conn.call("REPLICAOF", "NO", "ONE"), resp.Error)
        proxy.flow.set()
        wait_until(lambda: replicas.link_is_up(replica), 30)
        assert info(replica)["data_absent"] == "0"
        assert conn.call("BF.EXISTS", "big:0", 1) == 1
    wait_even(primary, replica)


def test_dir_is_lost_after_the_data_was_dropped(start, tmp_path):
    """The role is written again, so a start does not make an empty primary; and
    nobody waits for a reload of data that is not there."""
    primary = start()
    filled(primary, 30)
    data = tmp_path / "data"
    data.mkdir()
    replica = start("--maxmemory", "50mb", *JOURNAL, "--dir", data)
    filled(replica, 28)
    proxy = start.proxy(primary)
    with replica.conn() as conn:
        follow(replica, proxy, wait=False)
        wait_until(lambda: proxy.sent > 2 * MIB)
        proxy.flow.clear()
        assert info(replica)["data_absent"] == "1"
        got = conn.call("DEBUG", "RELOAD")
        assert isinstance(got, resp.Error), got
        shutil.rmtree(data)
        wait_until(lambda: (data / "replication.state").exists())
        assert info(replica)["data_absent"] == "1"
    replica.crash()
    proxy.flow.set()
    replica.restart()
    wait_until(lambda: replicas.link_is_up(replica), 30)
    wait_even(primary, replica)


def test_a_primary_that_ends_after_the_data_was_dropped(start):
    """A start brings back the data on the disk."""
    primary = start()
    filled(primary, 30)
    replica = start("--maxmemory", "50mb", *JOURNAL)
    filled(replica, 28)
    with replica.conn() as conn:
        conn.call("BF.ADD", "old", "x")
    proxy = start.proxy(primary)
    follow(replica, proxy, wait=False)
    wait_until(lambda: proxy.sent > 2 * MIB)
    proxy.flow.clear()
    primary.crash()
    proxy.up = False
    proxy.flow.set()
    proxy.cut()
    wait_until(lambda: links.refusal(replica) != "")
    assert info(replica)["data_absent"] == "1"
    replica.crash()
    replica.restart()
    assert info(replica)["data_absent"] == "0"
    with replica.conn() as conn:
        assert conn.call("BF.EXISTS", "old", "x") == 1
    lead(replica)
    with replica.conn() as conn:
        assert conn.call("BF.ADD", "old", "y") == 1


def test_a_primary_killed_during_a_full_synchronization(start):
    primary, replica = start(*JOURNAL), start()
    filled(primary, 20)
    with replica.conn() as conn:
        conn.call("BF.ADD", "old", "x")
    rng = random.Random(crash.seeds(1)[0])
    proxy = start.proxy(primary)
    follow(replica, proxy, wait=False)
    for _ in range(3):
        goal = proxy.sent + rng.randrange(1, 10 * MIB)
        wait_until(lambda: proxy.sent > goal or replicas.link_is_up(replica),
                   30)
        if replicas.link_is_up(replica):
            break
        primary.crash()
        with replica.conn() as conn:  # the old data, or already the new data
            assert conn.call("BF.EXISTS", "old", "x") + \
                conn.call("BF.EXISTS", "big:0", 1) == 1
        primary.restart()
    wait_even(primary, replica)


def test_a_primary_stopped_during_a_full_synchronization(start):
    primary, replica = start(), start("--repl-timeout", 1)
    filled(primary, 20)
    proxy = start.proxy(primary)
    follow(replica, proxy, wait=False)
    wait_until(lambda: proxy.sent > MIB)
    proxy.flow.clear()
    wait_until(lambda: "the primary sent nothing" in links.refusal(replica), 10)
    proxy.flow.set()
    wait_even(primary, replica)


class Adoption:
    """A replica with its own data that receives a primary's data. The replica
    is killed before or after the n-th change of its disk."""

    def __init__(self, start, primary, number, action):
        self.primary = primary
        self.replica = start(*JOURNAL, "--appendfsync", "always",
                             shimmed=True)
        with self.replica.conn() as conn:
            conn.call("BF.MADD", "old", "x", "y")
        self.states = [replicas.digest(s) for s in (self.replica, primary)]
        self.replica.shim.arm(0, action, shim.CHANGES, nth=number)

    def run(self):
        """Returns whether there were that many changes."""
        try:
            follow(self.replica, self.primary, wait=False)
            wait_until(self.is_over, 30, "it has taken everything")
        except (OSError, resp.Closed):
            pass
        if self.replica.shim.rule(0).fired == 0:
            return False
        self.replica.child.wait(10)
        self.look()
        return True

    def is_over(self):
        return self.replica.child.poll() is not None or (
            replicas.link_is_up(self.replica) and
            info(self.replica, "persistence")["journal_state"] == "on")

    def look(self):
        """The server has the old data or the new data, never a part."""
        self.primary.freeze()
        try:
            self.replica.restart()
            assert replicas.digest(self.replica) in self.states
            role = info(self.replica)["role"]
        finally:
            self.primary.thaw()
        if role == "master":  # the kill came before the role was kept
            follow(self.replica, self.primary)

    def end(self):
        self.replica.shim.disarm(0)
        wait_until(lambda: replicas.link_is_up(self.replica), 30)
        wait_even(self.primary, self.replica)
        self.replica.stop()


def test_a_replica_killed_while_it_takes_over_everything(start):
    rng = random.Random(crash.seeds(1)[0])
    primary = start()
    filled(primary, 3)
    number, kills, fired = 0, 0, True
    while fired:
        number += 1 if ROUNDS >= 200 else rng.randrange(1, 10)
        one = Adoption(start, primary, number,
                       rng.choice(("kill-before", "kill-after")))
        fired = one.run()
        kills += fired
        one.end()
    print("%d kills, up to change %d" % (kills, number))
    assert kills >= 1


def test_many_full_synchronizations_at_once(start):
    """One walk serves all replicas that wait; later ones get the next walk."""
    primary = start("--repl-diskless-sync-delay", 1)
    filled(primary, 10)
    nodes = [start("--threads", 1) for _ in range(5)]
    for replica in nodes:
        follow(replica, primary, wait=False)
    with links.Writers(primary, 1):
        for replica in nodes:
            wait_until(lambda r=replica: replicas.link_is_up(r), 30)
    wait_even(primary, *nodes)
    assert primary.log().count(b"began a full synchronization") == 1


def test_roles_that_change_all_the_time(start):
    """Several clients send REPLICAOF in every direction while writers work."""
    rng = random.Random(crash.seeds(1)[0])
    nodes = [start() for _ in range(3)]
    stop, problems = threading.Event(), []

    def write(one):
        number = 0
        while not stop.is_set():
            with one.conn() as conn:
                for _ in range(20):
                    number += 1
                    got = conn.call("BF.ADD", "k:%d" % (number % 5),
                                    "%d.%d" % (one.port, number))
                    if isinstance(got, resp.Error) and not str(
                            got).startswith("READONLY"):
                        problems.append(got)

    threads = [threading.Thread(target=write, args=(n,)) for n in nodes]
    for thread in threads:
        thread.start()
    try:
        for _ in range(max(40, ROUNDS)):
            one, two = rng.sample(nodes, 2)
            if rng.random() < 0.4:
                lead(one)
            else:
                follow(one, two, wait=False)
            time.sleep(rng.random() * 0.05)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not problems, problems[:5]
    lead(nodes[0])
    for replica in nodes[1:]:
        follow(replica, nodes[0], wait=False)
    for replica in nodes[1:]:
        wait_until(lambda r=replica: replicas.link_is_up(r), 30)
    wait_even(*nodes)
