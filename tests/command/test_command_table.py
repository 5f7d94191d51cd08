# SPDX-License-Identifier: BSD-3-Clause
#
# The command table as clients see it: COMMAND INFO, COUNT, LIST and DOCS agree, rows
# that Redis has too are equal to Redis's, and every row has a transcript.

import re
from pathlib import Path

import pytest

from lib import servers, transcript

BLOOM = {
    b"BF.ADD": (3, "write"), b"BF.MADD": (-3, "write"),
    b"BF.EXISTS": (3, "read"), b"BF.MEXISTS": (-3, "read"),
    b"BF.CARD": (2, "read"), b"BF.RESERVE": (-4, "write"),
    b"BF.INSERT": (-2, "write"), b"BF.INFO": (-2, "read"),
    b"BF.DEBUG": (2, "read"),
}
# Ours alone, and not fast.
MORE = {
    b"BF.COUNTNEW": (-3, b"readonly", [b"k"]), b"BF.RESET": (2, b"write", [b"k"]),
    b"BF.MERGE": (-3, b"write", [b"k", b"1"]),
    b"BF.WHICH": (-3, b"readonly", [b"1"]),
    b"BF.STATS": (2, b"readonly", [b"k"]),
}
NEEDED = """PING ECHO QUIT RESET SELECT AUTH HELLO CLIENT COMMAND INFO CONFIG
MODULE MULTI EXEC DISCARD WATCH UNWATCH DEL UNLINK EXISTS TYPE KEYS SCAN DBSIZE
RANDOMKEY TOUCH FLUSHDB FLUSHALL EXPIRE PEXPIRE EXPIREAT PEXPIREAT TTL PTTL
EXPIRETIME PEXPIRETIME PERSIST MEMORY SHUTDOWN TIME CLUSTER READONLY READWRITE
ASKING DUMP RESTORE COPY SAVE BGSAVE LASTSAVE BGREWRITEAOF WAITAOF
ACL DEBUG REPLICAOF SLAVEOF PSYNC SYNC REPLCONF FAILOVER ROLE WAIT""".lower().encode().split()
SUBCOMMANDS = {
    b"acl": "cat dryrun genpass getuser help list log users whoami",
    b"client": "id getname setname setinfo info list kill no-evict no-touch "
               "reply pause unpause unblock",
    b"command": "count info docs list getkeys getkeysandflags",
    b"config": "get set rewrite resetstat", b"memory": "usage", b"module": "list",
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


@pytest.fixture(scope="module")
def oracle():
    if servers.oracle_missing():
        pytest.skip("oracle: " + servers.oracle_missing())
    oracle = servers.Oracle()
    yield oracle
    oracle.stop()


def every(table):
    """All rows by name, subcommands included."""
    found = dict(table)
    for row in table.values():
        found.update({sub[0]: sub for sub in row[9]})
    return found


FIELDS = ("name", "arity", "flags", "first key", "last key", "step",
          "acl categories", "tips", "key specifications")
# Name, field -> why it is not as in Redis 7.0.15.
DIFFERENT = {
}


def unordered(value):
    return sorted(value) if value and all(
        isinstance(v, bytes) for v in value) else value


@pytest.mark.parametrize("name", sorted(MORE), ids=lambda n: n.decode())
def test_rows_of_bf_commands_that_no_module_has(server, name):
    arity, kind, keys = MORE[name]
    with server.conn() as conn:
        row = rows(conn, name.lower())[name]
        assert row[1] == arity
        assert kind in row[2] and b"fast" not in row[2]
        assert {b"@slow", b"@bloom"} <= set(row[6])
        words = ["k", "1"][:abs(arity) - 1]
        assert conn.call("COMMAND", "GETKEYS", name, *words) == keys


def test_rows_that_redis_has_equal_its_rows(server, oracle):
    with server.conn(3) as ours, oracle.conn(3) as theirs:
        mine, other = every(rows(ours)), every(rows(theirs))
    different = {}
    for name in set(mine) & set(other):
        for number, field in enumerate(FIELDS):
            a, b = mine[name][number], other[name][number]
            if number in (2, 6, 7):
                a, b = unordered(a), unordered(b)
            if a != b:
                different[name.decode(), field] = "%r, Redis has %r" % (a, b)
    judge(different, DIFFERENT)


def judge(different, listed):
    news = ["%s, %s: %s" % (*key, text) for key, text in
            sorted(different.items()) if key not in listed]
    gone = [key for key in listed if key not in different]
    assert not news, "%d differences:\n%s" % (len(news), "\n".join(news))
    assert not gone, "listed, but not different: %s" % gone


# What tools read from DOCS beside the texts, which are our own words.
DOCUMENTED = (b"group", b"since", b"arguments", b"doc_flags",
              b"deprecated_since", b"replaced_by")
DOCUMENTED_DIFFERENTLY = {
    ("client|kill", "arguments"): "Valkey 9's filters, and MAXAGE",
    ("client|list", "arguments"): "Valkey 9's filters",
}


def everything_documented(conn):
    found = {}
    for name, doc in conn.call("COMMAND", "DOCS").items():
        found[name] = doc
        found.update(doc.get(b"subcommands", {}))
    return found


def shape(argument):
    """An argument without its texts."""
    kept = {k: v for k, v in argument.items() if k not in (
        b"summary", b"display_text")}
    if b"arguments" in kept:
        kept[b"arguments"] = [shape(a) for a in kept[b"arguments"]]
    return kept


def test_documents_that_redis_has_too(server, oracle):
    """What redis-cli's hints are made of."""
    with server.conn(3) as ours, oracle.conn(3) as theirs:
        mine, other = everything_documented(ours), everything_documented(theirs)
    different = {}
    for name in set(mine) & set(other):
        for field in DOCUMENTED:
            a, b = mine[name].get(field), other[name].get(field)
            if field == b"arguments":
                a, b = ([shape(v) for v in side or []] for side in (a, b))
            if a != b:
                different[name.decode(), field.decode()] = \
                    "%r, Redis has %r" % (a, b)
    judge(different, DOCUMENTED_DIFFERENTLY)


def test_every_row_is_documented_in_words(server):
    with server.conn(3) as conn:
        names = set(every(rows(conn)))
        docs = everything_documented(conn)
    assert set(docs) == names
    for name, doc in docs.items():
        for field in (b"summary", b"since", b"group", b"complexity"):
            assert doc.get(field), (name, field)
        assert doc[b"summary"].endswith(b"."), (name, doc[b"summary"])


# "Closes the connection." says no more than "Close the connection".
SMALL = {"a", "an", "the", "of", "in", "from", "to", "all", "about", "for"}


def gist(text):
    """The words that matter, whatever their endings."""
    plain = re.sub(r"[^a-z0-9 ]", " ", text.decode().lower()).split()
    return [re.sub(r"(es|s)$", "", w) for w in plain if w not in SMALL]


def test_summaries_are_our_own_words(server, oracle):
    with server.conn(3) as ours, oracle.conn(3) as theirs:
        mine, other = everything_documented(ours), everything_documented(theirs)
    both = set(mine) & set(other)
    assert len(both) > 120
    same = {n.decode(): (mine[n][f], other[n][f]) for n in both
            for f in (b"summary", b"complexity") if f in other[n]
            and not re.fullmatch(rb"O\([^)]*\)", mine[n][f])
            and gist(mine[n][f]) == gist(other[n][f])}
    assert not same, same


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


# ---- transcripts -----------------------------------------------------------

# Rows that answer nothing but an error here, whatever they are asked.
# What begins to follow, or hands the role over, needs more than one server
# (tests/scenario/test_replication.py).
ALWAYS_REFUSED = {b"psync", b"sync", b"client|import-source",
                  b"failover",
                  b"sidecar|force-serve",   # needs a slot that is lost: a test of
                                            # test_cluster_routes.py has one
                  b"sidecar|let-go",        # likewise: test_cluster_missing.py
                  b"acl|load", b"acl|save"}  # without an aclfile: test_users.py


def row_of(table, words):
    """The name of the row that this request runs, and the row."""
    row = table.get(words[0].lower()) or table.get(words[0].upper())
    if row is None or not row[9]:
        return row
    subs = {sub[0]: sub for sub in row[9]}
    name = row[0].lower() + b"|" + (words[1].lower() if len(words) > 1 else b"")
    return subs.get(name, row)


def runs(row, words):
    return len(words) == row[1] if row[1] >= 0 else len(words) >= -row[1]


def is_error(step, proto):
    if step.regex is not None:
        return step.regex.startswith("-")
    lines = step.expected[proto]
    return bool(lines) and lines[0].startswith("-")


def test_every_row_has_a_transcript(server):
    """Each row of COMMAND LIST, subcommands included, is sent by a transcript
    in RESP2 and in RESP3, with a number of words that reaches its handler, and
    is not always answered with an error."""
    with server.conn() as conn:
        table = rows(conn)
        missing = {(name, proto) for name in conn.call("COMMAND", "LIST")
                   for proto in (2, 3)}
    # A container without a subcommand is a word that never runs.
    for name, row in table.items():
        if row[9]:
            missing -= {(name, 2), (name, 3)}
    for path in Path(__file__).parent.glob("*.t"):
        parsed = transcript.Transcript(path)
        for step in parsed.steps:
            if step.kind not in (">", ">!"):
                continue
            words = transcript.words(step.text)
            row = row_of(table, words) if words else None
            if row is None or not runs(row, words):
                continue
            for proto in parsed.protos:
                if not is_error(step, proto) or row[0] in ALWAYS_REFUSED:
                    missing.discard((row[0], proto))
    assert not missing, "no transcript sends: %s" % ", ".join(sorted(
        "%s (RESP%d)" % (name.decode(), proto) for name, proto in missing))


def test_list_by_category_and_module(server):
    with server.conn() as conn:
        bloom = set(conn.call("COMMAND", "LIST", "FILTERBY", "ACLCAT", "bloom"))
        assert set(BLOOM) <= bloom
        assert all(n.startswith(b"BF.") for n in bloom)
        pattern = conn.call("COMMAND", "LIST", "FILTERBY", "PATTERN", "BF.*")
        assert set(pattern) == bloom
