# SPDX-License-Identifier: BSD-3-Clause
#
# The replies about primaries and replicas for clients and Sentinels, compared with a
# pair of redis-servers in the same state. Also the reply to a Redis server that tries
# to follow.

import re
import subprocess

import pytest

from lib import replicas, resp, servers
from lib.servers import wait_until

# These come after the fields of Redis.
OURS = ["master_link_refusal", "sync_full_refusal", "master_failover_error",
        "start_grace_left_ms", "behind_replicas", "replica_lost",
        "data_absent"]


class Pair:
    """A primary and its replica, ours or of redis-server."""

    def __init__(self, start):
        self.primary, self.replica = start(), start()
        replicas.follow(self.replica, self.primary)

    def of(self, which):
        return getattr(self, which)


@pytest.fixture
def pair(start_server):
    return Pair(lambda: start_server("--repl-diskless-sync-delay", 0,
                                     "--appendonly", "no",
                                     "--appendfsync", "everysec"))


@pytest.fixture
def oracles(start_oracle):
    if servers.oracle_missing():
        pytest.skip("oracle: " + servers.oracle_missing())
    return Pair(lambda: start_oracle("--repl-diskless-sync-delay", 0))


def names(server):
    with server.conn() as conn:
        text = conn.call("INFO", "replication").decode()
    return [line.split(":")[0] for line in text.splitlines() if ":" in line]


def of_redis(fields):
    assert fields[-1] == OURS[-1]
    return [name for name in fields if name not in OURS]


def role(server):
    with server.conn() as conn:
        return conn.call("ROLE")


@pytest.mark.parametrize("which", ["primary", "replica"])
def test_info_has_the_fields_of_redis_in_its_order(pair, oracles, which):
    assert of_redis(names(pair.of(which))) == names(oracles.of(which))


def calls(server):
    with server.conn() as conn:
        text = conn.call("INFO", "commandstats").decode()
    return {line.split(":")[0][8:].lower(): int(line.split("calls=")[1].split(",")[0])
            for line in text.splitlines() if line.startswith("cmdstat_")}


def test_a_replica_counts_what_it_executes(pair, oracles):
    counted = []
    for one in (pair, oracles):
        with one.primary.conn() as conn:
            for words in (["FLUSHALL"] * 3 + ["FLUSHDB", "SWAPDB 0 1"]):
                assert conn.call(*words.split()) == b"OK"
            assert conn.call("WAIT", 1, 0) == 1
        counted.append({name: count for name, count in calls(one.replica).items()
                        if name in ("flushall", "flushdb", "swapdb")})
    assert counted[0] == counted[1] == {"flushall": 3, "flushdb": 1, "swapdb": 1}
    with pair.primary.conn() as conn:
        assert conn.call("BF.ADD", "k", "a") == 1
        # One of them may be a false positive, which changes nothing.
        added = sum(conn.call("BF.ADD", "k", i) for i in range(100))
        assert conn.call("WAIT", 1, 0) == 1
    got = calls(pair.replica)
    assert (got["bf.insert"], got["bf.add"]) == (1, added)
    with pair.replica.conn() as conn:
        assert conn.call("CONFIG", "RESETSTAT") == b"OK"
    assert "bf.add" not in calls(pair.replica)


def test_info_of_a_replica_whose_primary_is_gone(pair, oracles):
    for one in (pair, oracles):
        one.primary.kill()
        wait_until(lambda o=one: not replicas.link_is_up(o.replica))
    assert of_redis(names(pair.replica)) == names(oracles.replica)
    got = replicas.info(pair.replica)
    assert got["master_link_status"] == "down"
    assert got["master_last_io_seconds_ago"] == "-1"
    assert int(got["master_link_down_since_seconds"]) >= 0
    assert got["slave_priority"] == "100"
    assert got["master_link_refusal"] != ""


def test_role_looks_as_in_redis(pair, oracles):
    def shape(value):
        return [shape(v) for v in value] if isinstance(value, list) else \
            type(value)

    for one in (pair, oracles):
        wait_until(lambda o=one: len(role(o.primary)[2]) == 1)
    for which in ("primary", "replica"):
        mine, theirs = role(pair.of(which)), role(oracles.of(which))
        assert shape(mine) == shape(theirs)
        assert mine[0] == theirs[0]
    assert role(pair.replica)[1:4] == [
        b"127.0.0.1", pair.primary.port, b"connected"]
    assert role(pair.primary)[2][0][:2] == [
        b"127.0.0.1", str(pair.replica.port).encode()]


def test_the_fields_that_a_sentinel_reads(pair):
    wait_until(lambda: replicas.info(pair.primary).get("slave0", "").find(
        "state=online") > 0)
    got = replicas.info(pair.primary)
    assert re.fullmatch(r"ip=127\.0\.0\.1,port=%d,state=online,offset=\d+,"
                        r"lag=\d+" % pair.replica.port, got["slave0"])
    assert got["connected_slaves"] == "1"
    replica = replicas.info(pair.replica)
    assert replica["master_replid"] == got["master_replid"]
    assert replica["slave_repl_offset"] == replica["master_repl_offset"]
    # A replica that must follow an absent primary shows so at once. It keeps
    # the data of its last primary, so that it may still be promoted.
    replicas.follow(pair.replica, ("127.0.0.1", 1), wait=False)
    replica = replicas.info(pair.replica)
    assert (replica["master_port"], replica["master_link_status"],
            replica["slave_priority"], replica["slave_repl_offset"]) == \
        ("1", "down", "100", replica["master_repl_offset"])
    replicas.lead(pair.replica)
    assert replicas.info(pair.replica)["role"] == "master"
    assert replicas.info(pair.replica)["master_replid"] != got["master_replid"]
    assert replicas.info(pair.replica)["master_replid2"] == got["master_replid"]


def test_announced_addresses(start_server):
    primary = start_server()
    replica = start_server("--replica-announce-ip", "replica.example",
                           "--replica-announce-port", 4711,
                           "--replica-announced", "no",
                           "--replica-priority", 7)
    replicas.follow(replica, primary)
    assert "ip=replica.example,port=4711," in replicas.info(primary)["slave0"]
    got = replicas.info(replica)
    assert (got["replica_announced"], got["slave_priority"]) == ("0", "7")


def lines(server, *words):
    with server.conn() as conn:
        text = conn.call("CLIENT", "LIST", *words).decode()
    return [dict(f.split("=", 1) for f in line.split(" "))
            for line in text.splitlines()]


@pytest.mark.port
@pytest.mark.parametrize("which,kind,flags", [
    ("primary", "replica", "S"), ("replica", "master", "M")])
def test_links_among_the_clients(pair, oracles, which, kind, flags):
    (mine,), (theirs,) = (lines(one.of(which), "TYPE", kind)
                          for one in (pair, oracles))
    assert [f for f in mine if f in theirs] == list(theirs)
    assert mine["flags"] == theirs["flags"] == flags
    assert mine["user"] == theirs["user"]
    assert lines(pair.of(which), "ID", mine["id"])[0]["flags"] == flags
    wait_until(lambda: [line["flags"] for line in lines(pair.of(which))] ==
               ["N", flags])
    # It does not count as a client, and reconnects when it is killed.
    wait_until(lambda: replicas.info(pair.of(which), "clients")
               ["connected_clients"] == "1")
    before = replicas.info(pair.primary, "stats")
    with pair.of(which).conn() as conn:
        wait_until(lambda: conn.call("CLIENT", "LIST", "TYPE", "normal")
                   .count(b"id=") == 1)     # those of the last requests close
        assert conn.call("CLIENT", "KILL", "TYPE", "normal") == 0
        assert conn.call("CLIENT", "KILL", "ID", mine["id"]) == 1
    wait_until(lambda: int(replicas.info(pair.primary, "stats")
                           ["sync_partial_ok"]) >
               int(before["sync_partial_ok"]))
    wait_until(lambda: replicas.link_is_up(pair.replica))
    after = replicas.info(pair.primary, "stats")
    assert after["sync_full"] == before["sync_full"] == "1"
    with pair.primary.conn() as conn:
        conn.call("CONFIG", "RESETSTAT")
    assert replicas.info(pair.primary, "stats")["sync_full"] == "0"


def test_wait_counts_the_replica(pair):
    with pair.primary.conn() as conn:
        for i in range(20):
            assert conn.call("BF.ADD", "k", "item:%d" % i) == 1
            assert conn.call("WAIT", 1, 5000) == 1
        assert conn.call("WAIT", 2, 50) == 1
        assert conn.call("WAITAOF", 0, 1, 50) == [0, 0]  # it has no journal
        with pair.replica.conn() as other:
            other.call("CONFIG", "SET", "appendonly", "yes")
        assert conn.call("BF.ADD", "k", "more") == 1
        assert conn.call("WAITAOF", 0, 1, 10000) == [0, 1]


def test_writes_need_replicas(pair):
    refused = b"NOREPLICAS Not enough good replicas to write."
    with pair.primary.conn() as conn:
        conn.call("CONFIG", "SET", "min-replicas-to-write", 2)
        wait_until(lambda: str(conn.call("BF.ADD", "k", "x")).find(
            refused.decode()) >= 0)
        assert conn.call("BF.EXISTS", "k", "x") in (0, 1)
        assert replicas.info(pair.primary)["min_slaves_good_slaves"] == "1"
        conn.call("CONFIG", "SET", "min-replicas-to-write", 1,
                  "min-replicas-max-lag", 1)
        wait_until(lambda: conn.call("BF.ADD", "k", "y") in (0, 1))
        pair.replica.kill()
        wait_until(lambda: str(conn.call("BF.ADD", "k", "z")).find(
            refused.decode()) >= 0, 2.5)


def test_hello_names_the_role(pair):
    for which, name in (("primary", b"master"), ("replica", b"replica")):
        with pair.of(which).conn() as conn:
            reply = conn.call("HELLO", 2)
            assert reply[reply.index(b"role") + 1] == name


def test_passwords_on_the_link(start_server):
    primary = start_server("--requirepass", "secret")
    replica = start_server("--masterauth", "wrong")
    with replica.conn() as conn:
        conn.call("REPLICAOF", "127.0.0.1", primary.port)
        wait_until(lambda: "WRONGPASS" in replicas.info(replica).get(
            "master_link_refusal", ""))
        assert conn.call("CONFIG", "GET", "masterauth")[1] != b"wrong"
        conn.call("CONFIG", "SET", "masterauth", "secret")
    wait_until(lambda: replicas.link_is_up(replica))


REFUSED = "Only another Bloomery can follow this server"


def test_a_redis_gets_the_reason_of_a_refusal(start_server, start_oracle):
    server, redis = start_server(), start_oracle()
    with redis.conn() as conn:
        assert conn.call("REPLICAOF", "127.0.0.1", server.port) == b"OK"
        wait_until(lambda: REFUSED in redis.log().decode())
        conn.call("REPLICAOF", "NO", "ONE")
    assert replicas.info(server)["connected_slaves"] == "0"


@pytest.mark.parametrize("option", ["--rdb", "--replica"])
def test_redis_cli_gets_that_reason_too(start_server, tmp_path, option):
    server = start_server()
    words = [option] + ([tmp_path / "x.rdb"] if option == "--rdb" else [])
    done = subprocess.run([servers.REDIS / "redis-cli", "-p", str(server.port),
                           *words], stdout=subprocess.PIPE, timeout=30,
                          stderr=subprocess.STDOUT)
    assert done.returncode != 0 and REFUSED in done.stdout.decode()


def test_a_replica_sends_clients_that_can_follow_to_its_primary(pair):
    """CLIENT CAPA redirect, as in Valkey 9: writes always, reads until READONLY.
    Another client is served as before."""
    to = "REDIRECT 127.0.0.1:%d" % pair.primary.port
    with pair.replica.conn() as conn, pair.replica.conn() as other:
        assert conn.call("CLIENT", "CAPA", "nothing", "REDIRECT") == b"OK"
        for words in (("BF.EXISTS", "k", "a"), ("GET", "k"), ("DBSIZE",),
                      ("BF.ADD", "k", "a"), ("DEL", "k")):
            assert str(conn.call(*words)) == to, words
        assert conn.call("PING") == b"PONG"
        assert conn.call("PUBLISH", "news", "x") == 0
        # Each command of a pipeline, and a transaction as a whole.
        conn.send(b"".join(resp.command("BF.EXISTS", "k", i) for i in range(9)))
        assert [str(conn.read()) for _ in range(9)] == [to] * 9
        assert conn.call("MULTI") == b"OK"
        assert str(conn.call("BF.ADD", "k", "a")) == to
        assert str(conn.call("EXEC")).startswith("EXECABORT")
        # READONLY allows reads, and writes are still sent away.
        assert conn.call("READONLY") == b"OK"
        assert conn.call("BF.EXISTS", "k", "a") == 0
        assert str(conn.call("BF.ADD", "k", "a")) == to
        assert conn.call("READWRITE") == b"OK"
        assert str(conn.call("GET", "k")) == to
        assert conn.call("RESET") == b"RESET"
        assert str(conn.call("GET", "k")) == to
        assert len(other.call("CLIENT", "LIST", "CAPA", "r").splitlines()) == 1
        assert other.call("BF.EXISTS", "k", "a") == 0
        assert str(other.call("BF.ADD", "k", "a")).startswith("READONLY")
    with pair.primary.conn() as conn:
        assert conn.call("CLIENT", "CAPA", "redirect") == b"OK"
        assert conn.call("BF.ADD", "k", "a") == 1
