# SPDX-License-Identifier: BSD-3-Clause
#
# Links that are cut, stall, flip a bit or exist twice, and servers that restart, all
# under writes. A replica that reconnects while the backlog has its position resumes
# there, and never needs a full synchronization. In the end all servers have the same
# data.
#
# ROUNDS=5000 cuts more often, SEED=n repeats a run (make replicas).

import random
import signal
import time

import pytest

from lib import crash, links, replicas, resp, servers
from lib.replicas import follow, info, lead, wait_even
from lib.servers import wait_until

pytestmark = pytest.mark.slow

ROUNDS = crash.amount("ROUNDS", 200)
JOURNAL = ("--appendonly", "yes")


def wait_partial(primary, before):
    """Waits until the replica is back; before: counts, checks that it needed
    only one partial synchronization."""
    wait_until(lambda: links.counts(primary) != before, 30, "it is back")
    assert links.counts(primary) == (before[0], before[1] + 1, before[2])


def filled(primary, keys=20, items=50):
    with primary.conn() as conn:
        for key in range(keys):
            conn.call("BF.MADD", "first:%d" % key,
                      *["i:%d" % i for i in range(items)])


# ---- cuts ------------------------------------------------------------------

def test_cuts_anywhere_need_no_full_synchronization(group):
    """The link ends at a random byte towards the replica, often inside a
    group, a seal or a reply of the handshake."""
    rng = random.Random(crash.seeds(1)[0])
    primary, replica, proxy = group.pair("--repl-backlog-size", "64mb")
    before = links.counts(primary)
    assert before[0] == 1
    with links.Writers(primary, rng.randrange(1 << 30), 0.001) as writers:
        for number in range(ROUNDS):
            # A replica without progress on a link waits longer before the next
            # one.
            reach = 300 if rng.random() < 0.1 else 60000
            with proxy.lock:
                proxy.cut_at = proxy.sent + rng.randrange(reach)
            wait_until(lambda: proxy.cut_at is None, 30, "the link is cut")
            if number % 20 == 0:
                writers.wait_for(3)
    wait_even(primary, replica)
    full, partial, refused = links.counts(primary)
    assert (full, refused) == (1, before[2])
    assert partial > ROUNDS // 4, partial  # others ended in the handshake
    print("%d cuts, %d partial" % (ROUNDS, partial))


def test_a_cut_of_each_kind_ends_in_a_partial_resynchronization(group):
    """One cut at a time: each causes exactly one partial synchronization."""
    rng = random.Random(crash.seeds(1)[0])
    primary, replica, proxy = group.pair()
    with links.Writers(primary, rng.randrange(1 << 30)) as writers:
        for _ in range(25 if not servers.sanitized() else 5):
            before = links.counts(primary)
            with proxy.lock:
                proxy.cut_at = proxy.sent + rng.randrange(1, 3000)
            wait_until(lambda: proxy.cut_at is None, 30, "the link is cut")
            wait_partial(primary, before)
            writers.wait_for(1)
    wait_even(primary, replica)


def test_a_full_synchronization_interrupted_anywhere(group):
    """Cuts the link somewhere in the snapshot, several times, and at last
    not."""
    rng = random.Random(crash.seeds(1)[0])
    primary, replica = group.node(), group.node()
    with primary.conn() as conn:
        for key in range(10):
            conn.call("BF.RESERVE", "big:%d" % key, "0.001", 300000)
            conn.call("BF.MADD", "big:%d" % key, *range(30000))
    filled(primary)
    proxy = group.proxy(primary)
    with replica.conn() as conn:
        conn.call("BF.ADD", "old", "x")
    follow(replica, proxy, wait=False)
    with links.Writers(primary, 1):
        for _ in range(8):
            with proxy.lock:
                proxy.cut_at = proxy.sent + rng.randrange(4 << 20)
            wait_until(lambda: proxy.cut_at is None or
                       replicas.link_is_up(replica), 30, "the link is cut")
            proxy.cut_at = None
            if replicas.link_is_up(replica):
                follow(replica, ("127.0.0.1", 1), wait=False)
                with replica.conn() as conn:
                    conn.call("DEBUG", "RELOAD")
                follow(replica, proxy, wait=False)
            else:
                # Still the old data, or all of the new if the cut came behind it.
                with replica.conn() as conn:
                    assert conn.call("EXISTS", "old", "big:0") == 1
    wait_even(primary, replica)
    with replica.conn() as conn:
        assert conn.call("EXISTS", "old") == 0


# ---- bits ------------------------------------------------------------------

def test_a_flipped_bit_of_the_stream_is_found(group):
    """The seal does not match, so the replica requests the group again."""
    rng = random.Random(crash.seeds(1)[0])
    primary, replica, proxy = group.pair()
    flips = 30 if not servers.sanitized() else 5
    with links.Writers(primary, rng.randrange(1 << 30)):
        for _ in range(flips):
            before = links.counts(primary)
            with proxy.lock:
                proxy.flip_at = proxy.sent + rng.randrange(500, 5000)
            wait_until(lambda: proxy.flip_at is None, 30, "the bit is flipped")
            wait_partial(primary, before)
            # A second time at the same place would not be a fault of the link.
            position = replicas.offset(replica)
            wait_until(lambda: replicas.offset(replica) > position, 30,
                       "it gets on")
    wait_even(primary, replica)
    full, partial, _ = links.counts(primary)
    assert full == 1 and partial >= flips
    assert b"cannot be read" in replica.log()


def test_a_flipped_bit_of_a_snapshot_is_found(group):
    rng = random.Random(crash.seeds(1)[0])
    primary = group.node()
    with primary.conn() as conn:
        for key in range(10):
            conn.call("BF.RESERVE", "big:%d" % key, "0.001", 100000)
            conn.call("BF.MADD", "big:%d" % key, *range(10000))
    filled(primary)
    for number in range(6):
        replica, proxy = group.node(), group.proxy(primary)
        proxy.flip_at = rng.randrange(2000, 1 << 20)
        before = links.counts(primary)[0]
        follow(replica, proxy)
        wait_even(primary, replica)
        assert proxy.flip_at is None
        assert links.counts(primary)[0] >= before + 2, number
        group.nodes.remove(replica)
        replica.stop()


# ---- stalls, doubles, and a backlog that is too small ----------------------

def test_a_stalled_link_is_closed_and_made_anew(group):
    primary, replica, proxy = group.pair("--repl-timeout", 1,
                                         "--repl-ping-replica-period", 1)
    # The primary publishes its counts with its next tick.
    wait_until(lambda: links.counts(primary)[0] == 1, 10, "the first full one")
    before = links.counts(primary)
    with primary.conn() as conn:
        proxy.flow.clear()
        conn.call("BF.ADD", "k", "stalled")
        wait_until(lambda: not replicas.link_is_up(replica), 10,
                   "the replica notices")
        wait_until(lambda: info(primary)["connected_slaves"] == "0", 10,
                   "the primary notices")
        proxy.flow.set()
        wait_partial(primary, before)
        assert conn.call("WAIT", 1, 5000) == 1
    wait_even(primary, replica)
    assert links.counts(primary)[0] == 1


def test_an_idle_link_lives(group):
    """No change happens for longer than repl-timeout: pings keep the link."""
    primary, replica, proxy = group.pair("--repl-timeout", 2,
                                         "--repl-ping-replica-period", 1)
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert replicas.link_is_up(replica)
        assert int(info(replica)["master_last_io_seconds_ago"]) <= 2
        time.sleep(0.1)
    assert proxy.connections == 1


def test_a_second_connection_of_one_replica_replaces_the_first(group):
    """The first one is still open at the primary, which was not notified."""
    primary, replica, _ = group.pair()
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "one")
        wait_even(primary, replica)
        old = [c for c in conn.call("CLIENT", "LIST", "TYPE",
                                    "replica").decode().splitlines()]
        assert len(old) == 1
        other = group.proxy(primary)
        for proxy in group.proxies:
            proxy.flow.clear()
        # Only its own side of the old link ends; the proxy stays silent.
        follow(replica, other, wait=False)
        other.flow.set()
        wait_until(lambda: replicas.link_is_up(replica), 30, "it follows")
        assert conn.call("BF.ADD", "k", "two") == 1
        assert conn.call("WAIT", 1, 5000) == 1
        assert info(primary)["connected_slaves"] == "1"
        group.proxies[0].flow.set()
        wait_even(primary, replica)
    assert links.counts(primary)[0] == 1


def test_a_backlog_that_is_too_small_causes_a_full_synchronization(group):
    primary, replica, proxy = group.pair("--repl-backlog-size", "16kb")
    proxy.up = False
    proxy.cut()
    wait_until(lambda: info(primary)["connected_slaves"] == "0")
    with primary.conn() as conn:
        for number in range(100):
            conn.call("BF.MADD", "k", *["%d.%d.%s" % (number, i, "x" * 100)
                                        for i in range(100)])
        assert int(info(primary)["repl_backlog_histlen"]) < 300 << 10
    proxy.up = True
    wait_until(lambda: replicas.link_is_up(replica), 30, "it is back")
    wait_even(primary, replica)
    assert links.counts(primary)[0] == 2


# ---- starts and promotions -------------------------------------------------

@pytest.fixture(params=["everysec", "always"])
def chain(request, group):
    """Three servers in a chain, each with a journal, and some data."""
    a, b, c = (group.node(*JOURNAL, "--appendfsync", request.param)
               for _ in range(3))
    filled(a)
    follow(b, a)
    follow(c, b)
    wait_even(a, b, c)
    return a, b, c


def add(primary, tag):
    with primary.conn() as conn:
        for number in range(50):
            conn.call("BF.ADD", "k:%d" % (number % 7), "%s:%d" % (tag, number))


def all_full(*servers_):
    return [links.counts(s)[0] for s in servers_]


def test_restarts_need_no_full_synchronization(chain):
    a, b, c = chain
    for number, (one, how) in enumerate((
            (b, signal.SIGTERM), (c, signal.SIGTERM), (b, signal.SIGKILL),
            (c, signal.SIGKILL), (a, signal.SIGTERM))):
        add(a, number)
        if how == signal.SIGKILL:
            wait_even(a, b, c)
            one.crash()
            one.restart()
        else:
            links.restart(one)
        add(a, "then:%d" % number)
        wait_even(a, b, c)
        # Its counters restarted; none of the others gave a full
        # synchronization.
        wanted = [1 if s in (a, b) and s is not one else 0 for s in chain]
        assert all(got <= most for got, most in
                   zip(all_full(*chain), wanted)), (number, all_full(*chain))
        with a.conn() as conn:
            conn.call("CONFIG", "RESETSTAT")
        with b.conn() as conn:
            conn.call("CONFIG", "RESETSTAT")


def test_a_killed_primary_that_loses_nothing_goes_on(chain):
    """With everysec the page cache still has everything."""
    a, b, c = chain
    add(a, "before")
    wait_even(a, b, c)
    a.crash()
    a.restart()
    add(a, "after")
    wait_even(a, b, c)
    assert all_full(a)[0] == 0


def test_siblings_follow_a_promoted_replica_without_a_full_one(group):
    primary, first, second = (group.node("--appendonly", "no")
                              for _ in range(3))
    follow(first, primary)
    follow(second, primary)
    add(primary, "one")
    wait_even(primary, first, second)
    old = info(primary)["master_replid"]
    primary.crash()
    lead(first)
    follow(second, first)
    got = info(first)
    assert got["master_replid2"] == old != got["master_replid"]
    add(first, "two")
    wait_even(first, second)
    assert links.counts(first)[:2] == (0, 1)
    assert info(second)["master_replid"] == info(first)["master_replid"]
    # The old primary returns without data: it never had a journal.
    primary.restart()
    follow(primary, first)
    wait_even(first, second, primary)
    assert links.counts(first)[0] == 1


def test_a_demoted_primary_continues_at_its_position(group):
    """Its successor has everything that it had: partial both ways."""
    a, b, c = (group.node(*JOURNAL) for _ in range(3))
    follow(b, a)
    follow(c, a)
    for number in range(4):
        add(a, number)
        wait_even(a, b, c)
        lead(b)
        follow(a, b)
        follow(c, b)
        a, b = b, a
        add(a, "then:%d" % number)
        wait_even(a, b, c)
    assert sorted(all_full(a, b, c)) == [0, 0, 2]


def test_a_returning_primary_with_its_own_writes_takes_over_everything(group):
    a, b = group.node(*JOURNAL), group.node(*JOURNAL)
    proxy = group.proxy(a)
    follow(b, proxy)
    add(a, "both")
    wait_even(a, b)
    proxy.up = False
    proxy.cut()
    with a.conn() as conn:
        assert conn.call("BF.ADD", "k:0", "only here") == 1
        assert conn.call("BF.ADD", "own", "only here") == 1
    lead(b)
    add(b, "new")
    follow(a, b)
    wait_even(b, a)
    assert links.counts(b)[0] == 1
    with a.conn() as conn:
        assert conn.call("EXISTS", "own") == 0
        assert conn.call("BF.EXISTS", "k:0", "new:0") == 1
    links.restart(a)
    wait_even(b, a)
    assert links.counts(b)[0] == 1


def test_a_chain_without_its_middle_server(group):
    """c followed b, and now follows a: the position is the same."""
    a, b, c = (group.node() for _ in range(3))
    follow(b, a)
    follow(c, b)
    add(a, "one")
    wait_even(a, b, c)
    b.crash()
    add(a, "two")
    follow(c, a)
    wait_even(a, c)
    assert links.counts(a)[:2] == (1, 1)
    b.restart()
    follow(b, c)
    wait_even(a, c, b)


# ---- WAIT ------------------------------------------------------------------

def test_wait_never_counts_a_replica_without_the_write(group):
    """Under cuts: directly after the reply, at least that many servers have
    the item."""
    rng = random.Random(crash.seeds(1)[0])
    primary, first, proxy = group.pair()
    second, other = group.node(), group.proxy(primary)
    follow(second, other)
    counted = [0, 0, 0]
    with primary.conn() as conn, first.conn() as one, second.conn() as two:
        for number in range(ROUNDS // 2):
            if rng.random() < 0.2:
                rng.choice((proxy, other)).cut()
            assert conn.call("BF.ADD", "k", "i:%d" % number) in (0, 1)
            got = conn.call("WAIT", 2, rng.choice((1, 5, 50)))
            have = sum(c.call("BF.EXISTS", "k", "i:%d" % number) == 1
                       for c in (one, two))
            assert have >= got, number
            counted[got] += 1
        assert conn.call("BF.ADD", "k", "last") in (0, 1)
        wait_until(lambda: conn.call("WAIT", 2, 50) == 2)
    print("counted", counted)
    wait_even(primary, first, second)
    assert links.counts(primary)[0] == 2


def test_a_wait_ends_when_the_replica_comes_back(group):
    primary, replica, proxy = group.pair()
    with primary.conn() as conn:
        proxy.flow.clear()
        assert conn.call("BF.ADD", "k", "x") == 1
        assert conn.call("WAIT", 1, 50) == 0
        conn.send(resp.command("WAIT", 1, 0))
        proxy.flow.set()
        proxy.cut()
        assert conn.read() == 1
    wait_even(primary, replica)
