# SPDX-License-Identifier: BSD-3-Clause
#
# Three stock Sentinels and three servers, with writers that follow the Sentinels. The
# tests kill, stop and fail over primaries, also several of these at once. After each,
# every write that two replicas acknowledged is present, no writer is stuck, and the
# old primary follows the new one by itself. Writes with fewer acknowledgements may be
# lost; the tests count and print them.
#
# ROUNDS=50 fails over more often, with the Sentinels' own periods, SEED=n
# repeats a run (make failovers).

import os
import random
import re
import statistics
import time

import pytest

from lib import crash, failover, replicas, servers
from lib.failover import DOWN_AFTER_S, FAILOVER_S, Cluster
from lib.replicas import Proxy, Watch, follow, info, wait_even
from lib.servers import wait_until

JOURNAL = ("--appendonly=yes", "--appendfsync=everysec")
NO_JOURNAL = ("--appendonly=no",)
LONG = "ROUNDS" in os.environ
# Run two clusters at a time, since most of their time is waiting.
PLANS = (("stop", "command", "both"), ("kill", "meanwhile", "early"))
MEANWHILE = ("command_and_kill", "command_and_stop", "both")
EARLY = ("kill_early", "stop_early")    # another one may not be necessary
ALL = failover.PLAIN + failover.PLAIN + MEANWHILE + EARLY

pytestmark = [pytest.mark.slow, pytest.mark.skipif(
    bool(servers.oracle_missing()), reason="there is no Sentinel")]


# ---- the campaign ------------------------------------------------------------

def plan(rng, number, rounds):
    """Returns the faults of one of the clusters: some until another server was
    the primary that many times."""
    if LONG:
        wanted = (int(os.environ["ROUNDS"]) + number) // 2
        while sum(r.named is not None for r in rounds) < wanted:
            yield rng.choice(ALL)
        return
    choices = {"meanwhile": MEANWHILE, "early": EARLY}
    for fault in PLANS[number]:
        yield rng.choice(choices.get(fault, (fault,)))


def fail_over(job):
    """Runs the rounds of one cluster. Half of the servers have a journal. One
    of the clusters has passwords, a start-grace for returning primaries, and
    min-replicas-to-write."""
    number, seed = job
    rng = random.Random(seed)
    options = [list(JOURNAL if n % 2 == number % 2 else NO_JOURNAL)
               for n in range(3)]
    rng.shuffle(options)
    if number == 1:
        options = [o + ["--start-grace", 3, "--min-replicas-to-write", 1,
                        "--min-replicas-max-lag", 2] for o in options]
    with Cluster(seed, options, password="secret" if number == 1 else None,
                 sentinels=() if LONG else failover.SHORT,
                 down_after_ms=int(DOWN_AFTER_S * 1000)) as cluster:
        for fault in plan(rng, number, cluster.rounds):
            told = cluster.round(fault)
            print("%d %s\n" % (number, told), end="", flush=True)
            judge(told)
        cluster.finish()
        return cluster.rounds, [summary(w) for w in cluster.writers]


def judge(told):
    assert told.named is not None or told.fault in EARLY, \
        "%s: no other primary" % told
    if told.fault in failover.PLAIN and not told.split:
        limit = (DOWN_AFTER_S + FAILOVER_S) * servers.time_factor()
        assert told.named <= limit, "%s: too late" % told
    for needed, why in told.fulls:
        assert needed, "%s: not needed" % told


def summary(writer):
    return writer.wanted, writer.count, writer.errors, writer.gap


def spread(values):
    return "median %.2f s, most %.2f s" % (
        statistics.median(values), max(values)) if values else "none"


def report(rounds, writers):
    plain = [r.named for r in rounds if r.fault in failover.PLAIN and r.named]
    print("%d failovers, %d faults without one, %d elections repeated" % (
        sum(r.named is not None for r in rounds),
        sum(r.named is None for r in rounds), sum(r.split for r in rounds)))
    print("another primary: %s (killed, stopped, told); all follow it: %s" % (
        spread(plain), spread([r.settled for r in rounds])))
    print("synchronizations: %d partial, %d full" % (
        sum(r.partial for r in rounds), sum(r.full for r in rounds)))
    print("lost of what two, one, no replicas acknowledged: %s" % ", ".join(
        str(sum(r.lost[n] for r in rounds)) for n in (2, 1, 0)))
    for wanted in (2, 1, 0):
        mine = [w for w in writers if w[0] == wanted]
        print("writers for %d replicas: %d items, %d errors, longest wait "
              "%.1f s" % (wanted, sum(w[1] for w in mine),
                          sum(w[2] for w in mine), max(w[3] for w in mine)))


def test_failovers_lose_nothing_that_two_replicas_acknowledged():
    jobs = list(enumerate(crash.seeds(2)))
    results = crash.each(jobs, fail_over, workers=2)
    report([r for rounds, _ in results for r in rounds],
           [w for _, writers in results for w in writers])


# ---- who may be promoted -----------------------------------------------------

@pytest.fixture
def nodes(group):
    """nodes(*options) starts one; they are stopped at the end."""
    return group.node


@pytest.fixture
def watch():
    """watch(primary, replicas): three Sentinels with short periods."""
    started = []

    def start(primary, others, **kwargs):
        kwargs.setdefault("failover_timeout_ms", 1000)
        started.append(Watch(primary, others, periods=failover.SHORT, **kwargs))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def add(server, key, *items):
    with server.conn() as conn:
        got = conn.call("BF.MADD", key, *items)
        assert isinstance(got, list), got


def has(server, key, item):
    with server.conn() as conn:
        return conn.call("BF.EXISTS", key, item)


def listed(sentinel):
    """Returns the ports of the replicas that it shows."""
    flat = sentinel.ask("REPLICAS", sentinel.name)
    return {int(dict(zip(r[::2], r[1::2]))[b"port"]) for r in flat}


def test_no_replica_without_data_or_priority_is_promoted(nodes, watch):
    """The snapshot for one of them never arrives."""
    primary, never, empty = nodes(), nodes("--replica-priority", 0), nodes()
    add(primary, "k", "a", "b")
    add(empty, "own", *range(100))
    follow(never, primary)
    proxy = Proxy(primary.address)
    proxy.hold_on = b"+FULLRESYNC"
    try:
        follow(empty, proxy, wait=False)
        wait_until(lambda: info(primary)["connected_slaves"] == "2", 10, "both")
        for one in (empty, never):
            assert info(one)["slave_priority"] == "0"
        assert info(empty)["slave_repl_offset"] == "0"
        sentinels = watch(primary, [never, empty]).sentinels
        primary.crash()
        wait_until(lambda: any(b"-failover-abort-no-good-slave" in s.log()
                               for s in sentinels), 30, "nobody is good enough")
        assert {info(never)["role"], info(empty)["role"]} == {"slave"}
        with never.conn() as conn:
            conn.call("CONFIG", "SET", "replica-priority", 100)
        wait_until(lambda: failover.follows(empty, never), 30, "the empty one")
        wait_even(never, empty)
        assert has(empty, "k", "a") and not has(empty, "own", 1)
    finally:
        proxy.close()


def test_a_replica_with_data_stays_eligible_after_two_deaths(nodes):
    """It must follow a server that died before the link was up."""
    primary, replica = nodes(), nodes(*JOURNAL)
    add(primary, "k", "a")
    follow(replica, primary)
    wait_even(primary, replica)
    place = info(replica)["slave_repl_offset"]
    primary.crash()
    follow(replica, ("127.0.0.1", servers.free_port()), wait=False)
    got = info(replica)
    assert (got["slave_priority"], got["slave_repl_offset"]) == ("100", place)


def test_a_replica_that_is_not_announced_is_not_shown(nodes, watch):
    primary, shown, hidden = nodes(), nodes(), nodes("--replica-announced", "no")
    for one in (shown, hidden):
        follow(one, primary)
    sentinels = watch(primary, [shown, hidden]).sentinels
    for one in sentinels:
        wait_until(lambda s=one: listed(s) == {shown.port}, 10, "what it shows")
    with hidden.conn() as conn:
        conn.call("CONFIG", "SET", "replica-announced", "yes")
    for one in sentinels:
        wait_until(lambda s=one: listed(s) == {shown.port, hidden.port}, 10,
                   "what it shows")


# ---- what survives a restart -------------------------------------------------

def test_a_role_survives_a_restart_with_a_configuration_that_cannot_change(nodes):
    """Both ways, and against the role in the configuration."""
    primary, gone = nodes(), servers.free_port()
    text = "[replication]\nreplicaof = 127.0.0.1 %d\n" % gone
    one = nodes(conf=text)
    path = os.path.join(one.folder, "test.conf")
    os.chmod(path, 0o444)

    def kept(text):
        with open(os.path.join(one.folder, "replication.state"), "rb") as file:
            return text in file.read()

    assert info(one)["master_port"] == str(gone)
    follow(one, primary)
    wait_until(lambda: kept(b"%d" % primary.port), 10, "it is kept")
    one.crash()
    one.restart()
    wait_until(lambda: failover.follows(one, primary), 10, "it follows again")
    replicas.lead(one)
    wait_until(lambda: not kept(b"%d" % primary.port), 10, "it is kept")
    one.crash()
    one.restart()
    assert info(one)["role"] == "master"
    with open(path, "rb") as file:
        assert file.read() == text.encode()


@pytest.fixture
def returned(nodes):
    """returned(seconds): a primary with former replicas, killed and
    restarted."""
    def start(grace_seconds):
        one, other = nodes("--start-grace", grace_seconds, *JOURNAL), nodes()
        add(one, "k", "a")      # at its first start it does not wait
        follow(other, one)
        wait_even(one, other)
        wait_until(lambda: os.path.exists(
            os.path.join(one.folder, "replication.state")), 10, "its role is kept")
        other.freeze()          # otherwise all former replicas are back at once
        one.crash()
        one.restart()
        return one, other

    return start


def test_a_returning_primary_refuses_writes_until_it_is_confirmed(returned):
    one, other = returned(600)
    with one.conn() as conn:
        got = conn.call("BF.ADD", "k", "b")
        assert "start-grace" in str(got), got
        assert conn.call("BF.EXISTS", "k", "a") == 1
        assert conn.call("PING") == b"PONG"
        assert int(info(one)["start_grace_left_ms"]) > 500000
        assert info(one)["role"] == "master"
        conn.call("REPLICAOF", "NO", "ONE")
        assert conn.call("BF.ADD", "k", "b") == 1
        assert info(one)["start_grace_left_ms"] == "0"
    other.thaw()
    wait_even(one, other)


def test_a_returning_primary_accepts_writes_after_the_grace_time(returned):
    begun = time.monotonic()
    one, _ = returned(1)
    with one.conn() as conn:
        wait_until(lambda: conn.call("BF.ADD", "k", "b") in (0, 1), 10, "writes")
    assert time.monotonic() - begun >= 1


def test_a_returning_primary_with_older_data_is_replaced(nodes, watch):
    """It is back before a Sentinel notices."""
    primary, one, two = nodes("--appendonly", "no"), nodes(), nodes()
    add(primary, "k", "old")
    for other in (one, two):
        follow(other, primary)
    with primary.conn() as conn:
        assert conn.call("SAVE") == b"OK"
        assert conn.call("BF.ADD", "k", "new") == 1
        assert conn.call("WAIT", 2, 0) == 2
    seen = watch(primary, [one, two])
    primary.crash()
    primary.restart()
    new = next(n for n in (one, two)
               if n.address == seen.wait_other(primary.address, 60))
    for other in (primary, one, two):
        wait_until(lambda o=other: o is new or failover.follows(o, new), 60,
                   "all follow the new one")
    wait_even(new, *(n for n in (primary, one, two) if n is not new))
    for other in (primary, one, two):
        assert has(other, "k", "old") and has(other, "k", "new")
        assert info(other)["behind_replicas"] == "0"


# ---- FAILOVER, without Sentinels ---------------------------------------------

@pytest.fixture
def trio(nodes):
    primary, one, two = nodes(), nodes(), nodes()
    for replica in (one, two):
        follow(replica, primary)
    add(primary, "k", "a")
    wait_even(primary, one, two)
    return primary, one, two


def ask(server, *words):
    with server.conn() as conn:
        return conn.call(*words)


def state(server):
    return info(server)["master_failover_state"]


def wait_handed_over(old, new):
    wait_until(lambda: info(new)["role"] == "master" and
               failover.follows(old, new) and state(old) == "no-failover", 20,
               "it was handed over")


def test_failover_hands_over_without_a_loss_or_a_full_synchronization(trio):
    """A client writes meanwhile; it is paused, and then redirected."""
    primary, one, two = trio
    added = 0
    with primary.conn() as conn:
        assert ask(primary, "FAILOVER") == b"OK"
        deadline = time.monotonic() + 20 * servers.time_factor()
        while True:
            assert time.monotonic() < deadline, info(primary)
            try:
                got = conn.call("BF.ADD", "k", "w%d" % added)
            except failover.GONE:
                break
            if got not in (0, 1):
                assert re.match("READONLY|UNBLOCKED", str(got)), got
                break
            added += 1
    wait_until(lambda: "master" in (info(one)["role"], info(two)["role"]), 20,
               "another one leads")
    new, other = (one, two) if info(one)["role"] == "master" else (two, one)
    wait_handed_over(primary, new)
    follow(other, new)
    wait_even(new, primary, other)
    assert all(has(new, "k", "w%d" % n) for n in range(added))
    assert failover.syncs(new)[0] == 0


def test_failover_to_a_named_replica(trio):
    primary, one, two = trio
    for target in (two, one, two):
        leader = next(n for n in trio if info(n)["role"] == "master")
        if leader is target:
            continue
        for other in trio:
            if other is not leader:
                follow(other, leader)
        got = ask(leader, "FAILOVER", "TO", "127.0.0.1", target.port)
        assert got == b"OK", got
        wait_handed_over(leader, target)
    got = ask(two, "FAILOVER", "TO", "127.0.0.1", servers.free_port())
    assert str(got) == "ERR FAILOVER target HOST and PORT is not a replica.", got


def behind(primary, replica):
    """Stops the replica, and writes data that the replica does not get."""
    replica.freeze()
    add(primary, "k", "unknown to it")


def test_failover_ends_at_its_timeout_and_when_aborted(trio):
    primary, one, two = trio
    follow(two, one)
    behind(primary, one)
    name = ("TO", "127.0.0.1", one.port)
    for words in (("TIMEOUT", 300), ()):
        got = ask(primary, "FAILOVER", *name, *words)
        assert got == b"OK", got
        with primary.conn() as held:
            wait_until(lambda: state(primary) == "waiting-for-sync", 5, "waits")
            held.send(b"BF.ADD k held\r\n")
            if not words:
                again = ask(primary, "FAILOVER")
                assert str(again) == "ERR FAILOVER already in progress.", again
                again = ask(primary, "REPLICAOF", "NO", "ONE")
                assert "not allowed while failing over" in str(again), again
                assert ask(primary, "FAILOVER", "ABORT") == b"OK"
            assert held.read() in (0, 1)    # once it is over
        wait_until(lambda: state(primary) == "no-failover", 5, "called off")
        assert info(primary)["role"] == "master"
    got = ask(primary, "FAILOVER", "ABORT")
    assert str(got) == "ERR No failover in progress.", got
    one.thaw()
    wait_even(primary, one, two)


def test_a_forced_failover_loses_writes_that_the_replica_does_not_have(trio):
    primary, one, two = trio
    behind(primary, one)
    got = ask(primary, "FAILOVER", "TO", "127.0.0.1", one.port, "TIMEOUT", 200,
              "FORCE")
    assert got == b"OK", got
    wait_until(lambda: state(primary) == "failover-in-progress", 10, "forced")
    one.thaw()
    wait_handed_over(primary, one)
    follow(two, one)
    wait_even(one, primary, two)
