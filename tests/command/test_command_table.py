# SPDX-License-Identifier: BSD-3-Clause
#
# The command table as clients see it: COMMAND, INFO, COUNT, LIST and DOCS
# agree, rows that Redis has too equal Redis's, and every row has a transcript.

from pathlib import Path

import pytest

from lib import servers

BLOOM = {
    b"BF.ADD": (3, "write"), b"BF.MADD": (-3, "write"),
    b"BF.EXISTS": (3, "read"), b"BF.MEXISTS": (-3, "read"),
    b"BF.CARD": (2, "read"), b"BF.RESERVE": (-4, "write"),
    b"BF.INSERT": (-2, "write"), b"BF.INFO": (-2, "read"),
}
NEEDED = """PING ECHO QUIT RESET SELECT AUTH HELLO CLIENT COMMAND INFO CONFIG
MODULE MULTI EXEC DISCARD WATCH UNWATCH DEL UNLINK EXISTS TYPE KEYS SCAN DBSIZE
RANDOMKEY TOUCH FLUSHDB FLUSHALL EXPIRE PEXPIRE EXPIREAT PEXPIREAT TTL PTTL
EXPIRETIME PEXPIRETIME PERSIST MEMORY SHUTDOWN TIME CLUSTER READONLY READWRITE
ASKING DUMP RESTORE COPY SAVE BGSAVE LASTSAVE BGREWRITEAOF WAITAOF""".lower().encode().split()
SUBCOMMANDS = {
    b"client": "id getname setname setinfo info list kill no-evict no-touch reply",
    b"command": "count info docs list getkeys",
    b"config": "get set resetstat", b"memory": "usage", b"module": "list",
}
# Where the transcripts of rows stand that have no file of their own name.
ELSEWHERE = {
    "exec": "multi", "discard": "multi", "watch": "multi", "unwatch": "multi",
    "readwrite": "readonly", "asking": "readonly",
}


@pytest.fixture(scope="module")
def server():
    server = servers.Server()
    yield server
    server.stop()


def rows(conn, *names):
    reply = conn.call("COMMAND", "INFO", *names) if names else \
        conn.call("COMMAND")
    return {row[0]: row for row in reply if row is not None}


def test_every_needed_command_is_there(server):
    with server.conn() as conn:
        table = rows(conn)
        names = {n.lower() for n in table}
        assert set(NEEDED) <= names
        assert set(BLOOM) <= set(table)
        for container, subs in SUBCOMMANDS.items():
            got = {row[0] for row in table[container][9]}
            want = {container + b"|" + s.encode() for s in subs.split()}
            assert want <= got, container


def test_count_list_info_and_docs_agree(server):
    with server.conn() as conn:
        table = rows(conn)
        assert conn.call("COMMAND", "COUNT") == len(table)
        listed = conn.call("COMMAND", "LIST")
        assert sorted(n for n in listed if b"|" not in n) == sorted(table)
        subs = [s[0] for row in table.values() for s in row[9]]
        assert sorted(n for n in listed if b"|" in n) == sorted(subs)
        assert sorted(rows(conn, *table)) == sorted(table)
        docs = conn.call("COMMAND", "DOCS")
        assert sorted(docs[::2]) == sorted(table)
        for name, doc in zip(docs[::2], docs[1::2]):
            keys = doc[::2]
            assert b"summary" in keys and b"group" in keys, name


def test_docs_are_maps_in_resp3(server):
    with server.conn(3) as conn:
        docs = conn.call("COMMAND", "DOCS", "BF.ADD", "ping")
        assert set(docs) == {b"BF.ADD", b"ping"}
        assert docs[b"BF.ADD"][b"summary"]
        arguments = docs[b"BF.ADD"][b"arguments"]
        assert [a[b"name"] for a in arguments][0] == b"key"


@pytest.mark.parametrize("name", sorted(BLOOM), ids=lambda n: n.decode())
def test_rows_of_bf_commands(server, name):
    arity, kind = BLOOM[name]
    with server.conn() as conn:
        row = rows(conn, name.lower())[name]
        assert row[1] == arity
        assert row[3:6] == [1, 1, 1]
        flags, categories = set(row[2]), set(row[6])
        if kind == "write":
            assert {b"write", b"denyoom", b"fast"} <= flags
            assert {b"@write", b"@fast", b"@bloom"} <= categories
        else:
            assert {b"readonly", b"fast"} <= flags and b"write" not in flags
            assert {b"@read", b"@fast", b"@bloom"} <= categories
        words = ["k", "1", "2"][:abs(arity) - 1]
        assert conn.call("COMMAND", "GETKEYS", name, *words) == [b"k"]


def test_rows_that_redis_has_equal_its_rows(server):
    if servers.oracle_missing():
        pytest.skip("oracle: " + servers.oracle_missing())
    oracle = servers.Oracle()
    different = []
    try:
        with server.conn() as ours, oracle.conn() as theirs:
            mine, other = rows(ours), rows(theirs)
            for name in sorted(set(mine) & set(other)):
                compare(mine[name], other[name], different)
                subs = {row[0]: row for row in other[name][9]}
                for row in mine[name][9]:
                    if row[0] in subs:
                        compare(row, subs[row[0]], different)
    finally:
        oracle.stop()
    assert not different, "\n".join(different)


def compare(ours, theirs, different):
    """Name, arity, key positions, and the flags that change what clients do."""
    matter = {b"write", b"readonly", b"denyoom", b"movablekeys", b"noscript"}
    for what, a, b in (
            ("arity", ours[1], theirs[1]), ("keys", ours[3:6], theirs[3:6]),
            ("flags", set(ours[2]) & matter, set(theirs[2]) & matter)):
        if a != b:
            different.append("%s: %s is %r, Redis has %r" %
                             (ours[0].decode(), what, a, b))


def test_names_and_case(server):
    """BF names are upper case wherever the server prints them."""
    with server.conn() as conn:
        conn.call("CONFIG", "RESETSTAT")
        conn.call("bf.add", "k", "a")
        conn.call("Ping")
        stats = conn.call("INFO", "commandstats").decode()
        assert "cmdstat_BF.ADD:calls=1," in stats
        assert "cmdstat_ping:calls=1," in stats
        assert set(rows(conn, "BF.add", "PING")) == {b"BF.ADD", b"ping"}


def test_every_row_has_a_transcript(server):
    folder = Path(__file__).parent
    with server.conn() as conn:
        missing = []
        for name in rows(conn):
            stem = name.decode().lower()
            if not (folder / (ELSEWHERE.get(stem, stem) + ".t")).exists():
                missing.append(stem)
    assert not missing


def test_list_by_category_and_module(server):
    with server.conn() as conn:
        bloom = set(conn.call("COMMAND", "LIST", "FILTERBY", "ACLCAT", "bloom"))
        assert set(BLOOM) <= bloom
        assert all(n.startswith(b"BF.") for n in bloom)
        pattern = conn.call("COMMAND", "LIST", "FILTERBY", "PATTERN", "BF.*")
        assert set(pattern) == bloom
