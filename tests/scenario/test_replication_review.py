# SPDX-License-Identifier: BSD-3-Clause
#
# Moments at which two servers could get different data at the same position of the
# log, or a replica could be refused without a reason. Also roles that change faster
# than the links.

import os
import random
import time

import pytest

from lib import crash, links, replicas, resp, servers
from lib.replicas import follow, info, link_is_up, wait_even
from lib.servers import wait_until


def stat(server, name, section="stats"):
    return int(info(server, section)[name])


def add(server, *names, item="x"):
    with server.conn() as conn:
        for name in names:
            conn.call("BF.ADD", name, item)


def cut_off(proxy):
    proxy.up = False
    proxy.cut()


# ---- places ----------------------------------------------------------------

def test_an_eviction_without_a_log_moves_the_offset(group):
    """The backlog was freed, and no command changes anything, but keys are
    evicted. A replica at that offset must not continue there."""
    primary = group.node("--repl-backlog-ttl", 1, "--maxmemory-policy",
                         "allkeys-random")
    replica, proxy = group.node(), group.proxy(primary)
    names = ["k%d" % i for i in range(200)]
    with primary.conn() as conn:
        for name in names:
            conn.call("BF.RESERVE", name, "0.001", "10000")
    follow(replica, proxy)
    wait_even(primary, replica)
    cut_off(proxy)
    wait_until(lambda: info(primary)["repl_backlog_active"] == "0", 20)
    with primary.conn() as conn:
        used = stat(primary, "used_memory", "memory")
        conn.call("CONFIG", "SET", "maxmemory", str(used - 500000))
        got = conn.call("BF.INSERT", "none", "NOCREATE", "ITEMS", "x")
        assert isinstance(got, resp.Error), got
        assert stat(primary, "evicted_keys") > 0
        conn.call("CONFIG", "SET", "maxmemory", "0")
        assert conn.call("DBSIZE") < len(names)
    proxy.up = True
    wait_even(primary, replica)
    assert stat(primary, "sync_full") == 2


def test_an_expiry_without_a_log_moves_the_offset(group):
    primary = group.node("--repl-backlog-ttl", 1)
    replica, proxy = group.node(), group.proxy(primary)
    add(primary, "gone", "kept")
    with primary.conn() as conn:
        conn.call("PEXPIRE", "gone", 2000)
    follow(replica, proxy)
    wait_even(primary, replica)
    cut_off(proxy)
    wait_until(lambda: info(primary)["repl_backlog_active"] == "0" and
               stat(primary, "expired_keys") == 1, 20)
    proxy.up = True
    wait_until(lambda: link_is_up(replica))
    add(primary, "gone", item="y")
    wait_even(primary, replica)
    assert stat(primary, "sync_full") == 2


def test_a_replica_of_a_replica_continues_in_a_new_history(group):
    """The first primary begins a new history when it starts. The server in the
    middle learns it from the log, and accepts it from its replica."""
    first = group.node("--appendonly", "yes")
    middle, last = group.node(), group.node()
    proxy = group.proxy(middle)
    add(first, "a")
    follow(middle, first)
    follow(last, proxy)
    wait_even(first, middle, last)
    first.crash()
    first.restart()
    add(first, "b")
    wait_even(first, middle, last)
    full, connections = stat(middle, "sync_full"), proxy.connections
    proxy.cut()
    wait_until(lambda: proxy.connections > connections and
               stat(middle, "sync_partial_ok") >= 2)
    add(first, "c")
    wait_even(first, middle, last)
    assert stat(middle, "sync_full") == full


# ---- no memory for both ----------------------------------------------------

def test_data_that_was_dropped_for_a_primary_is_never_saved(group):
    """Otherwise the disk would have an empty state under the name of the old
    data."""
    primary = group.node("--appendonly", "no")
    replica = group.node("--appendonly", "no", "--save", "3600 1")
    proxy = group.proxy(primary)
    with primary.conn() as conn:
        for i in range(20):
            conn.call("BF.RESERVE", "k%d" % i, "0.001", "100000")
            conn.call("BF.MADD", "k%d" % i, *range(1000))
        conn.call("SAVE")
    follow(replica, proxy)
    wait_even(primary, replica)
    wait_until(lambda: b"replaced the data on the disk" in replica.log())
    cut_off(proxy)
    with primary.conn() as conn:
        assert conn.call("DEBUG", "RELOAD", "NOSAVE") == b"OK"
    with replica.conn() as conn:
        used = stat(replica, "used_memory", "memory")
        conn.call("CONFIG", "SET", "maxmemory", str(used + 100000))
    proxy.cut_at = proxy.sent + 20000
    proxy.up = True
    wait_until(lambda: info(replica)["data_absent"] == "1", 20)
    assert info(replica)["slave_priority"] == "0"
    cut_off(proxy)
    with replica.conn() as conn:
        got = conn.call("REPLICAOF", "NO", "ONE")
        assert isinstance(got, resp.Error) and "dropped" in str(got), got
        for address in (("127.0.0.1", 1), proxy.address):
            got = conn.call("REPLICAOF", address[0], str(address[1]))
            assert got == b"OK", got
        conn.call("CONFIG", "SET", "maxmemory", "0")
    replica.child.terminate()
    assert replica.wait_exit() == 0
    replica.restart()
    with replica.conn() as conn:
        assert conn.call("DBSIZE") == 20
    proxy.up = True
    wait_even(primary, replica)


# ---- snapshots for replicas ------------------------------------------------

class Stranger:
    """Sends the handshake of a replica, and reads as much as the test
    wants."""

    def __init__(self, server, number):
        self.conn = server.conn()
        got = self.conn.call("REPLCONF", "bloomery", "1", "run",
                             "%040x" % number)
        assert not isinstance(got, resp.Error), got

    def ask(self):
        self.conn.send(resp.command("PSYNC", "?", "-1"))

    def answer(self):
        """Returns the reply to PSYNC, or b"" if the link just ends."""
        data = b""
        while b"RESYNC" not in data:
            more = self.conn.sock.recv(4096)
            if not more:
                break
            data += more
        return data

    def close(self):
        self.conn.close()


def test_the_end_of_an_abandoned_snapshot_does_not_end_the_next_one(group):
    """A replica that connects when the last replica of a snapshot has left
    gets the next snapshot, although the child of the first one ends after its
    request."""
    primary = group.node()
    with primary.conn() as conn:
        for i in range(100):
            conn.call("BF.RESERVE", "k%d" % i, "0.001", "1000000")
    for number in range(1, 10 if not servers.sanitized() else 4):
        leaves, comes = (Stranger(primary, 2 * number + i) for i in range(2))
        leaves.ask()
        assert b"+FULLRESYNC" in leaves.answer()
        comes.ask()
        leaves.close()
        assert b"+FULLRESYNC" in comes.answer(), number
        comes.close()
        wait_until(lambda: stat(primary, "connected_slaves",
                                "replication") == 0)
    assert b"could not be made" not in primary.log()


# ---- what is asked for at once ---------------------------------------------

def test_the_option_for_too_few_replicas_applies_at_once(group):
    server = group.node("--min-replicas-to-write", 1)
    with server.conn() as conn:
        for _ in range(2):
            got = conn.call("BF.ADD", "k", "x")
            assert str(got).startswith("NOREPLICAS"), got
        conn.call("CONFIG", "SET", "min-replicas-to-write", 0)
        assert conn.call("BF.ADD", "k", "x") == 1
        conn.call("CONFIG", "SET", "min-replicas-to-write", 1)
        got = conn.call("BF.ADD", "k", "y")
        assert str(got).startswith("NOREPLICAS"), got


def test_a_failover_does_not_change_the_pause_of_a_client(group):
    """Nor does UNPAUSE let a client write during a handover."""
    primary, replica = group.node(), group.node()
    proxy = group.proxy(primary)
    add(primary, "k")
    follow(replica, proxy)
    wait_even(primary, replica)
    with primary.conn() as conn, primary.conn() as writer:
        wait_until(lambda: "state=online" in info(primary).get("slave0", ""))
        proxy.flow.clear()      # the replica acknowledges nothing more
        conn.call("BF.ADD", "k", "y")
        assert conn.call("FAILOVER") == b"OK"
        wait_until(lambda: info(primary)["master_failover_state"] ==
                   "waiting-for-sync")
        assert conn.call("CLIENT", "UNPAUSE") == b"OK"
        writer.send(resp.command("BF.ADD", "k", "z"))
        wait_until(lambda: stat(primary, "blocked_clients", "clients") == 1)
        assert conn.call("CLIENT", "PAUSE", "60000", "WRITE") == b"OK"
        assert conn.call("FAILOVER", "ABORT") == b"OK"
        wait_until(lambda: info(primary)["master_failover_state"] ==
                   "no-failover")
        assert stat(primary, "blocked_clients", "clients") == 1
        assert conn.call("CLIENT", "UNPAUSE") == b"OK"
        assert writer.read() == 1
        proxy.flow.set()


def test_a_failover_can_be_aborted_from_its_ok_on(group):
    """Also while loop 0 begins it. An abort ends the failover before it, never
    the one behind it, which waits and is shown."""
    primary, replica = group.node("--threads", 3), group.node()
    proxy = group.proxy(primary)
    add(primary, "k")
    follow(replica, proxy)
    wait_even(primary, replica)
    wait_until(lambda: "state=online" in info(primary).get("slave0", ""))
    proxy.flow.clear()          # no failover can end well
    add(primary, "y")

    def state():
        return info(primary)["master_failover_state"]

    with primary.conn() as one, primary.conn() as other:
        for _ in range(100):
            for conn in (one, other):
                conn.send(resp.command("FAILOVER"))
            got = sorted(str(conn.read()) for conn in (one, other))
            assert got == ["ERR FAILOVER already in progress.", "b'OK'"]
            assert one.call("FAILOVER", "ABORT") == b"OK"
            wait_until(lambda: other.call("FAILOVER") == b"OK", 30,
                       "the abort is over")
            assert one.call("FAILOVER", "ABORT") == b"OK"
            wait_until(lambda: state() == "no-failover")
        assert one.call("FAILOVER") == b"OK"
        assert str(other.call("FAILOVER")) == "ERR FAILOVER already in progress."
        wait_until(lambda: state() == "waiting-for-sync")
        assert one.call("FAILOVER", "ABORT") == b"OK"
        wait_until(lambda: state() == "no-failover")
        got = one.call("FAILOVER", "ABORT")
        assert str(got) == "ERR No failover in progress."
    proxy.flow.set()


def test_a_replica_without_a_port_is_no_target_of_a_failover(group, tmp_path):
    """The primary would follow its port 0, which no role file can name."""
    primary = group.node()
    group.node("--port", 0, "--unixsocket", tmp_path / "s", "--replicaof",
               "127.0.0.1 %d" % primary.port, listen=False, ready=False)
    wait_until(lambda: "port=0,state=online" in info(primary).get("slave0", ""),
               30, "the replica without a port is online")
    with primary.conn() as conn:
        for words in ((), ("TO", "127.0.0.1", 0), ("TIMEOUT", 100)):
            got = conn.call("FAILOVER", *words)
            assert "announces a port" in str(got), got
        other = group.node()
        follow(other, primary)
        wait_even(primary, other)
        got = conn.call("FAILOVER", "TO", "127.0.0.1", 0)
        assert "is not a replica" in str(got), got
        assert conn.call("FAILOVER") == b"OK"
    wait_until(lambda: info(other)["role"] == "master", 30, "the other leads")
    wait_until(lambda: link_is_up(primary), 30, "the old primary follows")


# ---- roles in quick succession ---------------------------------------------

def test_roles_change_faster_than_the_links(group):
    """Several connections of a server send REPLICAOF while writers work: in
    the end its links are where the last one said."""
    seed = crash.seeds(1)[0]
    one, two, third = group.node(), group.node(), group.node("--threads", 4)
    add(one, "one")
    add(two, "two")
    targets = [one.address, two.address, ("NO", "ONE")]

    def change(number):
        rng = random.Random(seed + number)
        with third.conn() as conn:
            for _ in range(100 if not servers.sanitized() else 30):
                host, port = rng.choice(targets)
                conn.call("REPLICAOF", host, str(port))
                conn.call("CONFIG", "SET", "masterauth",
                          rng.choice(("", "a" * rng.randrange(1, 200))))
                conn.call("BF.ADD", "own", str(rng.random()))
                conn.call("INFO", "replication")
                if rng.randrange(4) == 0:
                    time.sleep(rng.random() / 10)   # a link can make progress

    with links.Writers(one, seed), links.Writers(two, seed + 1):
        crash.each(range(4), change)
        with third.conn() as conn:
            conn.call("CONFIG", "SET", "masterauth", "")
    for primary in (one, two):
        follow(third, primary)
        wait_even(primary, third)
    replicas.lead(third)
    follow(one, third)
    follow(two, third)
    wait_even(third, one, two)


@pytest.mark.parametrize("threads", [1, 2])
def test_clients_of_a_longer_log_get_replies_from_a_shorter_one(group, threads):
    """A client that wrote to a primary is still connected when that server has
    taken over the data of another one, whose log ends before that write."""
    short = group.node()
    server = group.node("--threads", threads, "--appendonly", "yes",
                        "--appendfsync", "always")
    add(short, "k", "a")
    with server.conn() as conn:
        for number in range(100):
            assert conn.call("BF.ADD", "long", "%0100d" % number) in (0, 1)
        had = replicas.offset(server)
        follow(server, short)
        wait_even(short, server)
        wait_until(lambda: info(server, "persistence")["journal_state"] == "on")
        assert replicas.offset(server) < had
        assert conn.call("PING") == b"PONG"
        assert conn.call("BF.EXISTS", "k", "x") == 1


# ---- what is told ----------------------------------------------------------

def test_wait_counts_what_a_client_read(group):
    """An add that a client repeats on another connection wrote nothing there,
    but the client relies on it."""
    primary, replica = group.node(), group.node()
    follow(replica, primary)
    wait_until(lambda: "state=online" in info(primary)["slave0"])
    replica.freeze()
    for reply in (1, 0):
        with primary.conn() as conn:
            assert conn.call("BF.ADD", "k", "x") == reply
            assert conn.call("WAIT", 1, 200) == 0
    with primary.conn() as conn:
        assert conn.call("BF.EXISTS", "k", "x") == 1
        assert conn.call("WAIT", 1, 200) == 0
        replica.thaw()
        assert conn.call("WAIT", 1, 10000) == 1


@pytest.mark.parametrize("journal", ["yes", "no"])
def test_a_restarted_replica_without_its_primary_shows_its_offset(group,
                                                                  journal):
    """After a power failure, if the primary stays away, a Sentinel may promote
    the replica that has the data, and none that lost it."""
    primary, replica = group.node(), group.node("--appendonly", journal)
    follow(replica, primary)
    add(primary, "k")
    wait_even(primary, replica)
    had = info(replica)["slave_repl_offset"]
    if journal == "yes": # the data of the primary is on the disk
        wait_until(lambda: info(replica, "persistence")["aof_base_size"] != "0"
                   and info(replica, "persistence")["journal_state"] == "on")
        wait_until(lambda: "history %s\n" % info(replica)["master_replid"] in
                   open(os.path.join(replica.folder,
                                     "replication.state")).read())
    primary.freeze()
    replica.crash()
    replica.restart()
    got = info(replica)
    assert got["master_link_status"] == "down"
    assert (got["slave_priority"], got["slave_repl_offset"]) == \
        (("100", had) if journal == "yes" else ("0", "0"))
    primary.thaw()
    wait_even(primary, replica)
