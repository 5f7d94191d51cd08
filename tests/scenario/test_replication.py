# SPDX-License-Identifier: BSD-3-Clause
#
# A primary and its replicas as clients see them: which server accepts writes and
# reads, where keys expire, which clients get notifications, how a server stops, and
# its role after the next start. Compared with a pair of redis-servers where possible.

import os
import signal
import threading
import time

import pytest

from lib import links, replicas, resp, servers
from lib.replicas import follow, info, lead, node, wait_even
from lib.servers import wait_until

FAR = 4000000000000


@pytest.fixture
def start(group):
    """start(options): a server; start.proxy(server): a proxy before it."""
    def begin(*options, **kwargs):
        return group.node(*options, **kwargs)

    begin.proxy = group.proxy
    return begin


@pytest.fixture
def pair(start):
    primary, replica = start(), start()
    follow(replica, primary)
    return primary, replica


@pytest.fixture
def redis_pair(start_oracle):
    primary, replica = (start_oracle("--repl-diskless-sync-delay", "0")
                        for _ in range(2))
    follow(replica, primary)
    return primary, replica


def seconds(count):
    return count * servers.time_factor()


# ---- who follows whom ------------------------------------------------------

def test_a_chain_of_replicas(start):
    chain = [start() for _ in range(4)]
    for upper, lower in zip(chain, chain[1:]):
        follow(lower, upper)
    with chain[0].conn() as conn:
        for number in range(200):
            conn.call("BF.ADD", "k:%d" % (number % 9), "i:%d" % number)
    wait_even(*chain)
    assert len({info(s)["master_replid"] for s in chain}) == 1
    # The middle server becomes a primary: the replicas below it stay.
    lead(chain[1])
    with chain[1].conn() as conn:
        assert conn.call("BF.ADD", "k:0", "new") == 1
    wait_even(*chain[1:])
    assert links.counts(chain[2])[0] == 1
    with chain[0].conn() as conn:
        assert conn.call("BF.EXISTS", "k:0", "new") == 0
    wait_until(lambda: info(chain[0])["connected_slaves"] == "0")


def test_a_promoted_replica_keeps_its_data(pair):
    primary, replica = pair
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "x")
    wait_even(primary, replica)
    before = replicas.digest(replica)
    lead(replica)
    assert replicas.digest(replica) == before
    with replica.conn() as conn:
        assert conn.call("BF.ADD", "k", "y") == 1
        assert conn.call("REPLICAOF", "no", "One") == b"OK"
        assert conn.call("SLAVEOF", *map(str, primary.address)) == b"OK"
        again = conn.call("SLAVEOF", *map(str, primary.address))
        assert again == b"OK Already connected to specified master"
    wait_even(primary, replica)
    with replica.conn() as conn:
        assert conn.call("BF.EXISTS", "k", "y") == 0


def test_another_primary_replaces_all_data(start):
    one, two, replica = start(), start(), start()
    with one.conn() as conn:
        conn.call("BF.ADD", "of:one", "x")
    with two.conn() as conn:
        conn.call("SELECT", 3)
        conn.call("BF.ADD", "of:two", "x")
    for primary in (one, two, one):
        follow(replica, primary)
        wait_even(primary, replica)


def test_the_replica_of_the_command_line(start):
    primary = start()
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "x")
    replica = start("--replicaof", "127.0.0.1 %d" % primary.port)
    wait_until(lambda: replicas.link_is_up(replica))
    wait_even(primary, replica)


# ---- writes on a replica ---------------------------------------------------

def test_a_replica_refuses_writes(pair):
    _, replica = pair
    with replica.conn() as conn:
        names = [n.decode() for n in conn.call("COMMAND", "LIST", "FILTERBY",
                                               "ACLCAT", "write")]
        assert len(names) > 15
        arity = {row[0].decode().lower(): abs(row[1])
                 for row in conn.call("COMMAND")}
        for name in names:
            got = conn.call(name, *["k"] * (arity[name.lower()] - 1))
            assert got == resp.Error(
                "READONLY You can't write against a read only replica."), name
        assert conn.call("CONFIG", "SET", "replica-read-only",
                         "no").args[0].startswith("ERR CONFIG SET failed")


def test_writes_within_transactions_as_in_redis(pair, redis_pair):
    replies = []
    for replica in (pair[1], redis_pair[1]):
        with replica.conn() as conn:
            got = [conn.call(*words.split()) for words in (
                "MULTI", "DEL k", "EXEC", "MULTI", "EXISTS k", "EXEC",
                "MULTI", "PING", "EXPIRE k 10", "EXEC")]
        replies.append(got)
    assert replies[0] == replies[1]


def test_a_transaction_queued_before_the_role_changed(start, start_oracle):
    replies = []
    for begin in (start, start_oracle):
        one, two = begin(), begin()
        with one.conn() as conn, one.conn() as other:
            conn.call("MULTI")
            assert conn.call("DEL", "k") == b"QUEUED"
            other.call("REPLICAOF", "127.0.0.1", str(two.port))
            replies.append(str(conn.call("EXEC")))
    assert replies[0] == replies[1]


# ---- a link that is down ---------------------------------------------------

ASKED = ["EXISTS k", "DBSIZE", "KEYS *", "SCAN 0", "TTL k", "TYPE k",
         "RANDOMKEY", "OBJECT ENCODING k", "DUMP k", "DEL k", "PING", "ECHO x",
         "INFO replication", "ROLE", "CONFIG GET maxmemory", "CLIENT ID",
         "COMMAND COUNT", "SELECT 1", "SELECT 0", "TIME", "PUBLISH c m",
         "MULTI", "PING", "EXEC", "MULTI", "EXISTS k", "EXEC", "WATCH k",
         "UNWATCH", "SLOWLOG LEN", "LATENCY LATEST", "MEMORY USAGE k",
         "LASTSAVE", "AUTH x", "WAIT 0 1", "ACL WHOAMI", "ACL LOG",
         "DISCARD", "HELLO 2", "SUBSCRIBE c", "UNSUBSCRIBE c", "RESET",
         "MONITOR"]


def test_stale_data_is_not_served_without_the_option(start, start_oracle):
    asked = []
    for begin in (start, start_oracle):
        replica = begin("--replica-serve-stale-data", "no")
        with replica.conn() as conn:
            conn.call("REPLICAOF", "127.0.0.1", "1")
            wait_until(lambda: replicas.info(replica)["role"] == "slave")
            replies = [conn.call(*words.split()) for words in ASKED]
        asked.append([r.args[0] if isinstance(r, resp.Error) else "fine"
                      for r in replies])
    assert dict(zip(ASKED, asked[0])) == dict(zip(ASKED, asked[1]))
    assert asked[0] == asked[1]
    assert sum("MASTERDOWN" in a for a in asked[0]) > 8


def test_filters_of_a_replica_whose_link_is_down(start):
    primary, replica = start("--appendonly", "no"), start()
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "x")
    follow(replica, primary)
    primary.crash()
    wait_until(lambda: not replicas.link_is_up(replica))
    with replica.conn() as conn:
        assert conn.call("BF.EXISTS", "k", "x") == 1
        conn.call("CONFIG", "SET", "replica-serve-stale-data", "no")
        for words in ("BF.EXISTS k x", "BF.MEXISTS k x", "BF.INFO k",
                      "BF.CARD k"):
            assert conn.call(*words.split()).args[0].startswith("MASTERDOWN")
        conn.call("CONFIG", "SET", "replica-serve-stale-data", "yes")
        assert conn.call("BF.EXISTS", "k", "x") == 1
        conn.call("CONFIG", "SET", "replica-serve-stale-data", "no")
    primary.restart()
    lead(primary)       # empty, so older than its replica
    wait_until(lambda: replicas.link_is_up(replica), 30)
    with replica.conn() as conn:
        assert conn.call("BF.EXISTS", "k", "x") == 0


# ---- enough replicas -------------------------------------------------------

def test_writes_stop_soon_after_the_replicas_are_lost(start):
    """They stop within min-replicas-max-lag and a second, for each kind of
    loss."""
    primary, replica = start("--min-replicas-to-write", 1,
                             "--min-replicas-max-lag", 2), start()
    follow(replica, primary)
    wait_until(lambda: info(primary)["min_slaves_good_slaves"] == "1")
    with primary.conn() as conn:
        for lose, back in ((replica.freeze, replica.thaw),
                           (replica.crash, replica.restart)):
            wait_until(lambda: conn.call("BF.ADD", "k", "x") in (0, 1), 10)
            lose()
            begun = time.monotonic()
            wait_until(lambda: str(conn.call("BF.ADD", "k", "y")).startswith(
                "NOREPLICAS"), 6)
            took = time.monotonic() - begun
            assert took < seconds(4), took
            for words in ("BF.MADD k z", "DEL k", "RENAME k l"):
                assert str(conn.call(*words.split())).startswith("NOREPLICAS")
            assert conn.call("BF.EXISTS", "k", "x") == 1
            conn.call("MULTI")
            assert str(conn.call("BF.ADD", "k", "y")).startswith("NOREPLICAS")
            assert str(conn.call("EXEC")).startswith("EXECABORT")
            back()
            if back == replica.restart:
                follow(replica, primary, wait=False)
        wait_until(lambda: conn.call("BF.ADD", "k", "y") in (0, 1), 10)


# ---- expiry ----------------------------------------------------------------

READS = ["EXISTS k", "TTL k", "PTTL k", "EXPIRETIME k", "PEXPIRETIME k",
         "TYPE k", "KEYS *", "OBJECT ENCODING k", "DUMP k", "SCAN 0",
         "TOUCH k", "DBSIZE"]


def test_only_the_primary_removes_expired_keys(pair, redis_pair):
    """The primaries are stopped while the key expires."""
    replies = []
    for (primary, replica), make in ((pair, "BF.ADD k x"),
                                     (redis_pair, "SET k x")):
        with primary.conn() as conn, replica.conn() as other:
            conn.call(*make.split())
            wait_until(lambda c=conn: c.call("WAIT", 1, 5000) == 1)
            conn.call("PEXPIRE", "k", 300)
            wait_until(lambda o=other: o.call("PTTL", "k") > 0)
            primary.child.send_signal(signal.SIGSTOP)
            try:
                wait_until(lambda o=other: o.call("EXISTS", "k") == 0)
                got = [other.call(*words.split()) for words in READS]
                if make.startswith("BF"):
                    assert other.call("BF.EXISTS", "k", "x") == 0
                    assert other.call("BF.CARD", "k") == 0
                time.sleep(0.3)  # many turns of the reclaimer
                assert other.call("DBSIZE") == 1
            finally:
                primary.child.send_signal(signal.SIGCONT)
            wait_until(lambda o=other: o.call("DBSIZE") == 0)
        replies.append(dict(zip(READS, got)))
    assert replies[0] == replies[1]
    wait_even(*pair)


def test_expired_and_replaced_keys_become_a_del(pair):
    """A write finds an expired key before the reclaimer: on the replica the
    new key has nothing of the old one."""
    primary, replica = pair
    with primary.conn() as conn:
        for number in range(100):
            conn.pipeline([("BF.ADD", "k", "old:%d" % number),
                           ("PEXPIRE", "k", 1), ("BF.ADD", "k", "mid"),
                           ("BF.ADD", "k", "new:%d" % number)])
        assert conn.call("WAIT", 1, 5000) == 1
    wait_even(primary, replica)


def test_a_promoted_replica_reclaims_expired_keys(pair):
    primary, replica = pair
    with primary.conn() as conn:
        conn.pipeline([("BF.ADD", "k:%d" % i, "x") for i in range(50)] +
                      [("PEXPIRE", "k:%d" % i, 400) for i in range(50)])
        assert conn.call("WAIT", 1, 5000) == 1
    primary.crash()
    with replica.conn() as conn:
        wait_until(lambda: conn.call("KEYS", "*") == [])
        assert conn.call("DBSIZE") == 50
        lead(replica)
        wait_until(lambda: conn.call("DBSIZE") == 0)
        assert int(info(replica, "stats")["expired_keys"]) == 50


def test_expired_keys_of_a_snapshot_stay_until_their_del(pair):
    """A full synchronization also transfers expired keys, because their DEL
    may follow in the stream."""
    primary, replica = pair
    other = node()
    try:
        with primary.conn() as conn:
            for number in range(200):
                conn.call("BF.ADD", "k:%d" % number, "x")
                conn.call("PEXPIRE", "k:%d" % number, 1 + number)
            follow(other, primary)
            wait_until(lambda: conn.call("DBSIZE") == 0)
        wait_even(primary, replica, other)
        for one in (replica, other):
            with one.conn() as conn:
                assert conn.call("DBSIZE") == 0
    finally:
        other.stop()


# ---- eviction --------------------------------------------------------------

def test_only_the_primary_evicts(start):
    """The replica's own maxmemory is much smaller, but has no effect while it
    follows."""
    primary = start("--maxmemory", "24mb", "--maxmemory-policy", "allkeys-lru")
    replica = start("--maxmemory", "12mb", "--maxmemory-policy", "allkeys-lru")
    follow(replica, primary)
    with primary.conn() as conn:
        for number in range(120):
            assert conn.call("BF.RESERVE", "k:%d" % number, "0.001",
                             200000) == b"OK"
        assert int(info(primary, "stats")["evicted_keys"]) > 20
        assert conn.call("WAIT", 1, 10000) == 1
    wait_even(primary, replica)
    assert info(replica, "stats")["evicted_keys"] == "0"


# ---- who listens on a replica ----------------------------------------------

def test_caching_clients_of_a_replica_get_invalidations(pair):
    primary, replica = pair
    with primary.conn() as conn, replica.conn(3) as reader:
        conn.call("BF.ADD", "k", "x")
        conn.call("BF.ADD", "l", "x")
        assert conn.call("WAIT", 1, 5000) == 1
        assert reader.call("CLIENT", "TRACKING", "ON") == b"OK"
        for change in ("BF.ADD k y", "PEXPIREAT k %d" % FAR, "RENAME k m",
                       "DEL l"):
            for key in "klm":
                reader.call("BF.EXISTS", key, "x")
            conn.call(*change.split())
            key = change.split()[1].encode()
            assert reader.read() == [b"invalidate", [key]], change
            if change.startswith("RENAME"):
                assert reader.read() == [b"invalidate", [b"m"]]
        reader.call("BF.EXISTS", "m", "x")
        conn.call("FLUSHALL")
        assert reader.read() == [b"invalidate", None]
        # A new primary replaces all data.
        reader.call("BF.EXISTS", "m", "x")
        other = node()
        try:
            follow(replica, other)
            assert reader.read() == [b"invalidate", None]
        finally:
            follow(replica, primary)
            other.stop()


def test_events_of_keys_on_a_replica(pair):
    primary, replica = pair
    heard = []
    with primary.conn() as one, replica.conn() as two, \
            primary.conn() as writer:
        for server, ear in ((primary, one), (replica, two)):
            with server.conn() as conn:
                conn.call("CONFIG", "SET", "notify-keyspace-events", "KEA")
            ear.call("PSUBSCRIBE", "__key*__:*")
        for words in ("BF.ADD k x", "BF.MADD k y z", "PEXPIREAT k %d" % FAR,
                      "RENAME k l", "COPY l m", "PEXPIRE l 1", "DEL m",
                      "BF.ADD end x"):
            writer.call(*words.split())
            if words.startswith("PEXPIRE l"):
                wait_until(lambda: writer.call("DBSIZE") == 1)
        for ear in (one, two):
            heard.append([ear.read()[2:]])
            while heard[-1][-1][0] != b"__keyspace@0__:end":
                heard[-1].append(ear.read()[2:])
    assert [b"__keyspace@0__:k", b"rename_from"] in heard[0]
    assert [b"__keyspace@0__:l", b"expired"] in heard[0]
    print(heard)
    # For a replica it is an ordinary DEL.
    assert [[name, b"del" if event == b"expired" else event]
            for name, event in heard[0] if b"expired" not in name] == \
        [[name, event] for name, event in heard[1]
         if name != b"__keyevent@0__:del" or event != b"l"]


def test_messages_stay_on_their_server(pair):
    primary, replica = pair
    with primary.conn() as one, replica.conn() as two, \
            replica.conn() as teller, primary.conn() as other:
        one.call("SUBSCRIBE", "c")
        two.call("SUBSCRIBE", "c")
        assert teller.call("PUBLISH", "c", "on the replica") == 1
        assert two.read() == [b"message", b"c", b"on the replica"]
        assert other.call("PUBLISH", "c", "on the primary") == 1
        assert one.read() == [b"message", b"c", b"on the primary"]


def test_watch_on_a_replica(pair):
    primary, replica = pair
    with primary.conn() as conn, replica.conn() as other:
        conn.call("BF.ADD", "k", "x")
        assert conn.call("WAIT", 1, 5000) == 1
        for change, want in (("BF.ADD k y", None), ("BF.ADD l y", [1])):
            other.call("WATCH", "k")
            other.call("MULTI")
            other.call("BF.EXISTS", "k", "x")
            conn.call(*change.split())
            assert conn.call("WAIT", 1, 5000) == 1
            assert other.call("EXEC") == want


def test_monitor_shows_replicated_commands(pair, redis_pair):
    seen = []
    for primary, replica in (pair, redis_pair):
        with replica.conn() as ear, primary.conn() as conn:
            ear.call("MONITOR")
            conn.call("DEL", "a", "b")
            conn.call("FLUSHALL")
            seen.append(b"flushall" in ear.read().lower())
    assert seen[0] == seen[1]


# ---- WAIT ------------------------------------------------------------------

def test_wait_and_its_errors_as_in_redis(pair, redis_pair):
    asked = ["WAIT 0 0", "WAIT 1 0", "WAIT x 0", "WAIT 1 x", "WAIT 1 -1",
             "WAIT 1", "MULTI", "WAIT 5 0", "EXEC"]
    told = []
    for primary, replica in (pair, redis_pair):
        with primary.conn() as conn, replica.conn() as other:
            conn.call("DEL", "k")
            wait_until(lambda c=conn: c.call("WAIT", 1, 1000) == 1)
            told.append([conn.call(*words.split()) for words in asked] +
                        [other.call("WAIT", 1, 100)])
    # The number that a Redis counts at once depends on its last PING.
    mine, theirs = [[r if isinstance(r, (resp.Error, bytes)) else type(r)
                     for r in replies] for replies in told]
    assert mine == theirs


def test_wait_counts_replicas_that_acknowledge(start):
    primary, quick, slow = start(), start(), start()
    follow(quick, primary)
    follow(slow, primary)
    with primary.conn() as conn:
        assert conn.call("BF.ADD", "k", "x") == 1
        assert conn.call("WAIT", 2, 5000) == 2
        slow.freeze()
        assert conn.call("BF.ADD", "k", "y") == 1
        begun = time.monotonic()
        assert conn.call("WAIT", 2, 200) == 1
        assert 0.19 < time.monotonic() - begun < seconds(2)
        assert conn.call("WAIT", 1, 5000) == 1
        conn.send(resp.command("WAIT", 2, 0))
        time.sleep(0.05)
        slow.thaw()
        assert conn.read() == 2


def test_a_wait_is_released_when_its_server_is_demoted(pair, redis_pair):
    told = []
    for primary, replica in (pair, redis_pair):
        replica.child.send_signal(signal.SIGSTOP)
        try:
            with primary.conn() as conn, primary.conn() as other:
                conn.call("DEL", "k")
                conn.send(resp.command("WAIT", 5, 0))
                time.sleep(0.1)
                other.call("REPLICAOF", "127.0.0.1", "1")
                told.append(str(conn.read())[:25])
        finally:
            replica.child.send_signal(signal.SIGCONT)
    assert told[0] == told[1]


def test_waitaof_counts_the_disks_of_replicas(start):
    primary = start("--appendonly", "yes", "--appendfsync", "everysec")
    with_disk = start("--appendonly", "yes", "--appendfsync", "always")
    without = start("--appendonly", "no")
    for replica in (with_disk, without):
        follow(replica, primary)
    with primary.conn() as conn:
        assert conn.call("BF.ADD", "k", "x") == 1
        assert conn.call("WAITAOF", 1, 1, 10000) == [1, 1]
        assert conn.call("BF.ADD", "k", "y") == 1
        assert conn.call("WAITAOF", 0, 2, 300)[1] == 1
        assert conn.call("WAIT", 2, 5000) == 2
    with without.conn() as conn:
        assert "WAITAOF" in conn.call("WAITAOF", 0, 1, 10).args[0]


# ---- the end, and the next start -------------------------------------------

def test_a_shutdown_waits_for_a_slow_replica(start):
    primary, replica = start(), start()
    proxy = start.proxy(primary)
    follow(replica, proxy)
    with primary.conn() as conn:
        conn.call("BF.MADD", "k", *range(100))
        wait_even(primary, replica)
        proxy.flow.clear()
        conn.call("BF.MADD", "late", *range(50000))
        want, position = replicas.digest(primary), replicas.offset(primary)
    primary.child.send_signal(signal.SIGTERM)
    with pytest.raises(Exception):  # it does not end
        primary.child.wait(1)
    proxy.flow.set()
    assert primary.wait_exit() == 0
    primary.stopped = True
    primary.remove()
    wait_until(lambda: replicas.offset(replica) >= position)
    assert replicas.digest(replica) == want


def test_a_shutdown_does_not_wait_forever(start):
    primary, replica = start("--shutdown-timeout", 1), start()
    follow(replica, primary)
    replica.freeze()
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "x")
    begun = time.monotonic()
    primary.child.send_signal(signal.SIGTERM)
    assert primary.wait_exit() == 0
    assert 0.9 < time.monotonic() - begun < seconds(5)
    primary.restart()
    # NOW does not wait at all.
    replica.thaw()
    follow(replica, primary)
    wait_even(primary, replica)
    replica.freeze()
    with primary.conn() as conn:
        conn.call("CONFIG", "SET", "shutdown-timeout", 100)
        conn.call("BF.ADD", "k", "x")
        conn.send(resp.command("SHUTDOWN", "NOW"))
        conn.read_to_close()
    assert primary.wait_exit() == 0
    primary.restart()


def test_the_role_survives_with_a_configuration_that_cannot_be_written(start):
    """The role set by REPLICAOF overrides the command line, and needs no
    CONFIG REWRITE."""
    primary, other = start(), start()
    replica = start("--replicaof", "127.0.0.1 %d" % other.port,
                    conf="[server]\nloglevel = \"notice\"\n")
    os.chmod(os.path.join(replica.folder, "test.conf"), 0o444)
    assert info(replica)["master_port"] == str(other.port)
    follow(replica, primary)
    for how in (signal.SIGTERM, signal.SIGKILL):
        if how == signal.SIGKILL:
            replica.crash()
            replica.restart()
        else:
            links.restart(replica)
        assert info(replica)["master_port"] == str(primary.port)
        wait_until(lambda: replicas.link_is_up(replica))
    state = os.path.join(replica.folder, "replication.state")
    before = open(state, "rb").read()
    lead(replica)
    wait_until(lambda: open(state, "rb").read() != before)
    replica.crash()
    replica.restart()
    assert info(replica)["role"] == "master"


def test_a_returning_primary_waits_before_it_writes(start):
    primary, replica = start("--start-grace", 1, "--appendonly", "yes"), start()
    with primary.conn() as conn:
        assert conn.call("BF.ADD", "k", "y") == 1  # the replica stays away
    follow(replica, primary)
    wait_even(primary, replica)
    replica.freeze()
    links.restart(primary)
    with primary.conn() as conn:
        refused = conn.call("BF.ADD", "k", "x")
        assert isinstance(refused, resp.Error), refused
        assert 0 < int(info(primary)["start_grace_left_ms"]) <= 1000
        assert conn.call("BF.EXISTS", "k", "x") == 0
        wait_until(lambda: conn.call("BF.ADD", "k", "x") == 1, 5)
    links.restart(primary)
    lead(primary)
    with primary.conn() as conn:
        assert conn.call("BF.ADD", "k", "z") == 1
    replica.thaw()


def test_a_returning_primary_waits_for_its_former_replicas(start):
    primary = start("--start-grace", 600, "--appendonly", "yes")
    one, two = start(), start()
    with primary.conn() as conn:
        assert conn.call("BF.ADD", "k", "a") == 1
    for replica in (one, two):
        follow(replica, primary)
    wait_even(primary, one, two)
    two.freeze()
    links.restart(primary)
    wait_until(lambda: replicas.link_is_up(one), 30, "one is back")
    with primary.conn() as conn:
        assert "start-grace" in str(conn.call("BF.ADD", "k", "b"))
        two.thaw()
        wait_until(lambda: conn.call("BF.ADD", "k", "b") in (0, 1), 30, "all are")
    assert info(primary)["start_grace_left_ms"] == "0"
    links.restart(primary)          # a pair, and more of them, pay nothing
    with primary.conn() as conn:
        wait_until(lambda: conn.call("BF.ADD", "k", "c") in (0, 1), 30, "all are")
    wait_even(primary, one, two)


def test_a_primary_that_comes_back_empty_keeps_what_its_replica_has(start):
    """Its data lacks the old changes, but its role file names the position."""
    primary, replica = start("--appendonly", "no"), start()
    follow(replica, primary)
    with primary.conn() as conn:
        assert conn.call("BF.ADD", "k", "x") == 1
        assert conn.call("WAIT", 1, 0) == 1
    for _ in range(2):              # even if it returns several times
        primary.crash()
        primary.restart()
        wait_until(lambda: info(primary)["behind_replicas"] == "1", 30, "it knows")
    with replica.conn() as conn:
        assert conn.call("BF.EXISTS", "k", "x") == 1
    lead(replica)
    follow(primary, replica)
    wait_even(replica, primary)


@pytest.fixture
def outdated(start):
    """A primary that returns without changes that its replica has
    acknowledged; the replica; and a server that follows for the first time."""
    primary, replica = start("--appendonly", "no"), start()
    with primary.conn() as conn:
        assert conn.call("BF.ADD", "k", "old") == 1
        follow(replica, primary)
        assert conn.call("SAVE") == b"OK"
        assert conn.call("BF.ADD", "k", "new") == 1
        assert conn.call("WAIT", 1, 0) == 1
    primary.crash()
    primary.restart()
    wait_until(lambda: info(primary)["behind_replicas"] == "1", 30, "it knows")
    return primary, replica, start()


def refuses_to_lead(primary):
    with primary.conn() as conn:
        for words in (("PING",), ("BF.ADD", "k", "x")):
            got = conn.call(*words)
            assert "older data" in str(got) and "READONLY" in str(got), got
        assert conn.call("BF.EXISTS", "k", "old") == 1
        assert conn.call("BF.EXISTS", "k", "new") == 0


def test_a_primary_with_older_data_keeps_what_its_replica_has(outdated):
    primary, replica, fresh = outdated
    refuses_to_lead(primary)
    follow(fresh, primary, wait=False)
    for one in (replica, fresh):
        links.wait_refusal(one, "older data than a replica has")
    assert links.counts(primary)[0] == 0
    assert b"came back with older data" in primary.log()
    with replica.conn() as conn:
        assert conn.call("BF.MEXISTS", "k", "old", "new") == [1, 1]
    refuses_to_lead(primary)
    lead(replica)
    follow(primary, replica)
    follow(fresh, replica)
    wait_even(replica, primary, fresh)
    assert info(primary)["behind_replicas"] == "0"
    for one in (primary, fresh):
        with one.conn() as conn:
            assert conn.call("PING") == b"PONG"
            assert conn.call("BF.MEXISTS", "k", "old", "new") == [1, 1]


def test_the_operator_may_confirm_older_data(outdated):
    primary, replica, fresh = outdated
    lead(primary)
    with primary.conn() as conn:
        assert conn.call("PING") == b"PONG"
        assert conn.call("BF.ADD", "k", "x") == 1
    follow(fresh, primary)
    wait_until(lambda: replicas.link_is_up(replica), 30, "it follows again")
    wait_even(primary, replica, fresh)
    assert info(primary)["behind_replicas"] == "0"
    with replica.conn() as conn:
        assert conn.call("BF.MEXISTS", "k", "old", "new", "x") == [1, 0, 1]


def test_debug_reload_of_either_side(start):
    primary, replica = (start("--appendonly", "no") for _ in range(2))
    follow(replica, primary)
    with primary.conn() as conn, replica.conn() as other:
        conn.call("BF.MADD", "k", *range(5))
        for one, words in ((other, ("RELOAD",)), (conn, ("RELOAD",))):
            wait_even(primary, replica)
            assert one.call("DEBUG", *words) == b"OK"
            assert conn.call("BF.ADD", "k", "%r" % one) == 1
            wait_even(primary, replica)
        # The saved data is older: the primary goes back to it, and the others
        # must follow.
        assert conn.call("SAVE") == b"OK"
        conn.call("BF.ADD", "k", "later")
        wait_even(primary, replica)
        assert conn.call("DEBUG", "RELOAD", "NOSAVE") == b"OK"
        assert conn.call("BF.EXISTS", "k", "later") == 0
        wait_even(primary, replica)
        assert other.call("BF.EXISTS", "k", "later") == 0
        # The new data may still be on its way to the disk.
        wait_until(lambda: other.call("SAVE") == b"OK")
        conn.call("BF.ADD", "k", "still later")
        wait_even(primary, replica)
        assert other.call("DEBUG", "RELOAD", "NOSAVE") == b"OK"
        wait_even(primary, replica)
        assert other.call("BF.EXISTS", "k", "still later") == 1


def test_a_full_synchronization_keeps_clients_served(start):
    """Clients see the old data until the new data is complete, without a
    gap."""
    primary, replica = start(), start()
    with primary.conn() as conn:
        for number in range(20):
            conn.call("BF.RESERVE", "k:%d" % number, "0.001", 500000)
        conn.call("BF.ADD", "new", "x")
    with replica.conn() as conn:
        conn.call("BF.ADD", "old", "x")
    seen, stop = [], threading.Event()

    def ask():
        with replica.conn() as conn:
            while not stop.is_set():
                seen.append((conn.call("EXISTS", "old"),
                             conn.call("EXISTS", "new")))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        follow(replica, primary)
        wait_even(primary, replica)
    finally:
        stop.set()
        thread.join()
    assert set(seen) <= {(1, 0), (0, 1), (1, 1)}, set(seen)
