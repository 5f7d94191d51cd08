# SPDX-License-Identifier: BSD-3-Clause
#
# bloomery-load rdb: files of Debian's redis-server with every encoding of every type,
# values that older and newer versions write, and damage of every kind.

import os
import random
import struct
import time

import pytest

from lib import rdb, resp
from lib.loads import (INCOMPLETE, UNREADABLE, USAGE, figures, load, present,
                       to)

DUMPS = rdb.dumps()


KINDS = {"string": "strings", "list": "lists", "set": "sets",
         "zset": "sorted sets", "hash": "hashes", "stream": "streams"}
SOON = int(time.time() * 1000) + 3600 * 1000


def written(folder, data):
    path = folder / "dump.rdb"
    path.write_bytes(data)
    return path


def load_rdb(server, path, *args, **more):
    return load(*to(server), "rdb", path, *args, **more)


# ---- files of redis-server -----------------------------------------------------

def fill_strings(call):
    for i, value in enumerate((0, 100, -129, 40000, -2 ** 31, 2 ** 31, "text",
                               "x" * 20000, os.urandom(9000), "")):
        call("SET", "string:%d" % i, value)
    call("SET", 17, "an integer as a key")
    call("SET", 70000, "a longer one")
    call("SET", "k" * 300, "a key that is compressed")
    call("SET", os.urandom(300), "a key that is not")
    call("SET", "expires", "x", "PX", 3600 * 1000)
    call("EXPIREAT", "string:1", 4102444800)


def fill_lists(call):
    call("RPUSH", "list:short", 1, "two", 2 ** 40)
    call("RPUSH", "list:long", *range(5000))
    call("RPUSH", "list:large", "x" * 9000, os.urandom(9000), "y")
    # Nodes of one element, as they are for elements above a gigabyte.
    call("DEBUG", "QUICKLIST-PACKED-THRESHOLD", "100B")
    call("RPUSH", "list:plain", os.urandom(200), "x" * 5000, "short")
    call("DEBUG", "QUICKLIST-PACKED-THRESHOLD", 0)


def fill_sets(call):
    call("SADD", "set:16", 1, 2, 3)
    call("SADD", "set:32", 1, 70000)
    call("SADD", "set:64", 1, 2 ** 40)
    call("SADD", "set:table", "a", 1, os.urandom(100))
    call("SADD", "set:many", *range(1000))


def fill_sorted_sets(call):
    scores = ["-inf", "+inf", 0, "1.5", "1e300"]
    call("ZADD", "zset:short", *sum(([s, "m%s" % s] for s in scores), []))
    call("ZADD", "zset:long", *sum(([i / 7, "member%d" % i]
                                    for i in range(500)), []))
    call("ZADD", "zset:text", 1, "x" * 500)
    call("GEOADD", "zset:geo", 13.36, 38.11, "Palermo")


def fill_hashes(call):
    call("HSET", "hash:short", "a", 1, "b", "text")
    call("HSET", "hash:long", *sum((["f%d" % i, i] for i in range(1000)), []))
    call("HSET", "hash:text", "f", "x" * 500)


def fill_streams(call):
    for i in range(300):
        call("XADD", "stream:long", "*", "field", i, "other", "x" * (i % 50))
    call("XDEL", "stream:long", "0-1")
    call("XADD", "stream:empty", "5-5", "a", "b")
    call("XTRIM", "stream:empty", "MAXLEN", 0)
    call("XGROUP", "CREATE", "stream:long", "idle", "$")
    for group in ("one", "two"):
        call("XGROUP", "CREATE", "stream:long", group, 0)
        call("XGROUP", "CREATECONSUMER", "stream:long", group, "lazy")
        for consumer in ("alice", "bob"):
            call("XREADGROUP", "GROUP", group, consumer, "COUNT", 20, "STREAMS",
                 "stream:long", ">")


def fill_others(call):
    call("SETBIT", "string:bits", 9999, 1)
    call("PFADD", "string:sparse", *range(10))
    call("PFADD", "string:dense", *range(20000))
    call("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function("
         "'f', function() return 1 end)")


ENCODINGS = {"int", "embstr", "raw", "quicklist", "intset", "hashtable",
             "listpack", "skiplist", "stream"}


def fill(oracle):
    """Returns the number of keys of each kind."""
    counts, encodings = {}, set()
    with oracle.conn() as conn:
        def call(*words):
            got = conn.call(*words)
            assert not isinstance(got, resp.Error), (words, got)
            return got
        for step in (fill_strings, fill_lists, fill_sets, fill_sorted_sets,
                     fill_hashes, fill_streams, fill_others):
            step(call)
        call("SELECT", 9)
        call("SET", "elsewhere", 1)
        call("SELECT", 0)
        for key in call("KEYS", "*"):
            kind = KINDS[call("TYPE", key).decode()]
            counts[kind] = counts.get(kind, 0) + 1
            encodings.add(call("OBJECT", "ENCODING", key).decode())
    assert encodings == ENCODINGS
    counts["strings"] += 1
    counts["functions"] = 1
    return counts


def saved(oracle):
    with oracle.conn() as conn:
        assert conn.call("SAVE") == b"OK"
    with open(os.path.join(oracle.folder, "dump.rdb"), "rb") as file:
        return file.read()


def with_filters(data):
    """Appends every dump to an RDB: keys of each form, with and without an
    expiry, in two databases."""
    data = rdb.body(data)
    for db in (3, 12):
        data += rdb.select(db)
        for i, one in enumerate(DUMPS):
            if i % 2:
                data += rdb.expires(SOON)
            key = rdb.packed if i % 3 == 0 else rdb.string
            data += rdb.filter_entry(key(one.name.encode()), one.payload)
        data += b"\xfd" + struct.pack("<I", SOON // 1000) + rdb.filter_entry(
            b"\xc0\x85", DUMPS[0].payload)  # the key -123
        data += rdb.expires(1) + rdb.filter_entry(rdb.string(b"past"),
                                                  DUMPS[0].payload)
    return rdb.close(data)


def assert_restored(server):
    with server.conn() as conn:
        for db in (3, 12):
            conn.call("SELECT", db)
            for i, one in enumerate(DUMPS):
                assert conn.call("BF.MEXISTS", one.name, *one.items) == \
                    [1] * len(one.items), one.name
                assert conn.call("BF.CARD", one.name) == len(one.items)
                assert conn.call("PEXPIRETIME", one.name) == \
                    (SOON if i % 2 else -1)
            assert conn.call("EXPIRETIME", -123) == SOON // 1000
            assert conn.call("DBSIZE") == len(DUMPS) + 1


@pytest.mark.parametrize("options", [
    [], ["--rdbcompression", "no", "--rdbchecksum", "no"],
    ["--maxmemory-policy", "allkeys-lru", "--maxmemory", "1gb"],
    ["--maxmemory-policy", "allkeys-lfu", "--maxmemory", "1gb"]])
def test_everything_else_is_skipped(server, start_oracle, tmp_path, options):
    oracle = start_oracle("--enable-debug-command", "yes", *options)
    counts = fill(oracle)
    path = written(tmp_path, with_filters(saved(oracle)))
    got = figures(load_rdb(server, path))
    assert got["skipped"] == counts
    assert got["filters found"] == 2 * (len(DUMPS) + 2)
    assert got["filters restored"] == 2 * (len(DUMPS) + 1)
    assert (got["expired"], got["refused"], got["there before"]) == (2, 0, 0)
    assert got["written by"] == "redis 7.0.15, RDB version 10"
    assert got["checksum"] == "holds"
    assert_restored(server)


def test_a_file_without_filters_and_without_checksum(server, start_oracle,
                                                     tmp_path):
    oracle = start_oracle("--enable-debug-command", "yes", "--rdbchecksum", "no")
    counts = fill(oracle)
    got = figures(load_rdb(server, written(tmp_path, saved(oracle))))
    assert got["skipped"] == counts and got["checksum"] == "none"
    assert got["filters found"] == 0


def test_standard_input(server, tmp_path):
    data = with_filters(HEAD + b"\xff" + b"\0" * 8)
    load_rdb(server, "-", stdin=data)
    assert_restored(server)


# ---- values of other versions --------------------------------------------------

HEAD = b"REDIS0012" + b"\xfa" + rdb.string(b"redis-ver") + rdb.string(b"7.4.1")
VALKEY = b"VALKEY080" + b"\xfa" + rdb.string(b"valkey-ver") + rdb.string(b"9.1.2")
S = rdb.string
ID = b"\0" * 16
PENDING = rdb.length(1) + ID + b"\0" * 8 + rdb.length(1)


def stream(version):
    consumer = S(b"alice") + b"\0" * 8 + (b"\0" * 8 if version == 21 else b"")
    group = S(b"group") + rdb.length(1) + rdb.length(0) + \
        (rdb.length(99) if version >= 19 else b"") + PENDING + \
        rdb.length(1) + consumer + rdb.length(1) + ID
    return rdb.length(1) + S(ID) + S(b"a listpack") + rdb.length(1) * 3 + \
        (rdb.length(0) * 5 if version >= 19 else b"") + rdb.length(1) + group


def double(text):
    return bytes([len(text)]) + text


OTHERS = [
    (1, "lists", rdb.length(2) + S(b"a") + b"\xc0\x05"),
    (2, "sets", rdb.length(70) + S(b"a") * 70),
    (3, "sorted sets", rdb.length(5) + S(b"a") + double(b"1.5") + S(b"b") +
     b"\xfd" + S(b"c") + b"\xfe" + S(b"d") + b"\xff" + S(b"e") + double(b"")),
    (4, "hashes", rdb.length(1) + S(b"a") + rdb.packed(b"b" * 40)),
    (5, "sorted sets", rdb.length(1) + S(b"a") + b"\xff" * 8),
    (9, "hashes", S(b"a zipmap")), (10, "lists", S(b"a ziplist")),
    (11, "sets", S(b"an intset")), (12, "sorted sets", S(b"a ziplist")),
    (13, "hashes", S(b"a ziplist")),
    (14, "lists", rdb.length(2) + S(b"a ziplist") * 2),
    (15, "streams", stream(15)), (16, "hashes", S(b"a listpack")),
    (17, "sorted sets", S(b"a listpack")),
    (18, "lists", rdb.length(2) + rdb.length(1) + S(b"x") + rdb.length(2) +
     S(b"a listpack")),
    (19, "streams", stream(19)), (20, "sets", S(b"a listpack")),
    (21, "streams", stream(21)),
    (22, "hashes", rdb.length(1) + rdb.length(0) + S(b"f") + S(b"v")),
    (23, "hashes", S(b"a listpack")),
    (24, "hashes", b"\xff" * 8 + rdb.length(2) +
     (rdb.length(9) + S(b"f") + S(b"v")) * 2),
    (25, "hashes", b"\xff" * 8 + S(b"a listpack")),
    (7, "other modules", rdb.length(2 ** 60 + 5) + b"\x01" + rdb.length(7) +
     b"\x02" + rdb.length(2 ** 40) + b"\x03" + b"\xff" * 4 + b"\x04" +
     b"\xff" * 8 + b"\x05" + rdb.packed(b"x" * 99) + b"\0"),
]


@pytest.mark.parametrize("kind,name,value", OTHERS,
                         ids=["%d" % one[0] for one in OTHERS])
def test_values_of_all_versions_are_skipped(server, tmp_path, kind, name, value):
    entry = bytes([kind]) + S(b"key") + value
    data = HEAD + entry * 3 + rdb.filter_entry(S(b"k"), DUMPS[0].payload)
    got = figures(load_rdb(server, written(tmp_path, rdb.close(data))))
    assert got["skipped"] == {name: 3} and got["filters restored"] == 1
    assert present(server, "k", DUMPS[0].items)


def test_fields_that_expire_as_valkey_writes_them(server, tmp_path):
    entry = b"\x16" + S(b"h") + rdb.length(1) + S(b"a") + b"\xc0\x01" + b"\xff" * 8
    data = VALKEY + entry + rdb.filter_entry(S(b"k"), DUMPS[0].payload)
    got = figures(load_rdb(server, written(tmp_path, rdb.close(data))))
    assert got["skipped"] == {"hashes": 1}
    assert got["written by"] == "valkey 9.1.2, RDB version 80"
    assert got["filters restored"] == 1


def test_operations_of_all_versions_are_skipped(server, tmp_path):
    data = VALKEY + b"\xf4" + rdb.length(1) * 3 + b"\xf7" + \
        rdb.length(2 ** 60 + 5) + b"\x02" + rdb.length(2) + b"\x05" + S(b"x") + \
        b"\0" + b"\xf5" + S(b"#!lua") + b"\xfb" + rdb.length(5) * 2 + \
        b"\xf8" + rdb.length(700) + b"\xf9\x07" + \
        rdb.filter_entry(S(b"k"), DUMPS[0].payload)
    got = figures(load_rdb(server, written(tmp_path, rdb.close(data))))
    assert got["skipped"] == {"data of modules": 1, "functions": 1}
    assert got["filters restored"] == 1


@pytest.mark.parametrize("entry,said", [
    (bytes([26]) + S(b"k"), b"values of type 26 are unknown"),
    (bytes([8]) + S(b"k"), b"values of type 8 are unknown"),
    (bytes([6]) + S(b"k"), b"module of Redis before 4.0"),
    (b"\xf6" + S(b"k"), b"operation 246 is unknown"),
    (b"\xf3" + S(b"k"), b"operation 243 is unknown"),
])
def test_what_is_unknown_stops_with_its_offset(server, tmp_path, entry, said):
    before = HEAD + rdb.filter_entry(S(b"k"), DUMPS[0].payload)
    got = load_rdb(server, written(tmp_path, rdb.close(before + entry)),
                   status=UNREADABLE)
    assert said in got.stderr
    assert b"at offset %d:" % len(before) in got.stderr
    assert figures(got)["filters restored"] == 1  # what was before it


# ---- keys that exist -----------------------------------------------------------

@pytest.fixture
def taken(server, tmp_path):
    """A server that has the second of three keys, and the file."""
    with server.conn() as conn:
        conn.call("BF.ADD", "b", "mine")
    return written(tmp_path, rdb.close(HEAD + b"".join(
        rdb.filter_entry(S(key), DUMPS[0].payload) for key in (b"a", b"b", b"c"))))


def test_a_key_that_exists_stops_the_tool(server, taken):
    got = load_rdb(server, taken, status=INCOMPLETE)
    assert b"key 'b' of database 0: exists" in got.stderr
    assert present(server, "b", ["mine"])


def test_a_key_that_exists_is_skipped(server, taken):
    got = figures(load_rdb(server, taken, "--existing", "skip"))
    assert (got["filters restored"], got["there before"]) == (2, 1)
    assert present(server, "b", ["mine"])
    assert present(server, "c", DUMPS[0].items)


def test_a_key_that_exists_is_replaced(server, taken):
    got = figures(load_rdb(server, taken, "--existing", "replace"))
    assert (got["filters restored"], got["there before"]) == (3, 0)
    assert present(server, "b", DUMPS[0].items)
    assert not present(server, "b", ["mine"])


def test_a_wrong_word_for_existing(server, taken):
    load_rdb(server, taken, "--existing", "maybe", status=USAGE)


# ---- what the server refuses ---------------------------------------------------

def test_a_filter_that_is_refused_is_named_and_the_rest_goes_on(server,
                                                                tmp_path):
    broken = rdb.dump(DUMPS[0].payload[:12] + b"\x02\0" +  # no layers
                      DUMPS[0].payload[14:-10])
    data = HEAD + rdb.filter_entry(S(b"bad"), broken) + \
        rdb.filter_entry(S(b"good"), DUMPS[0].payload)
    got = load_rdb(server, written(tmp_path, rdb.close(data)), status=INCOMPLETE)
    assert b"key 'bad' of database 0: " in got.stderr
    assert (figures(got)["filters restored"], figures(got)["refused"]) == (1, 1)
    assert present(server, "good", DUMPS[0].items)


def test_a_filter_above_max_value_is_left_out(server, tmp_path):
    large = max(DUMPS, key=lambda one: len(one.payload))
    data = HEAD + rdb.filter_entry(S(b"large"), large.payload) + \
        rdb.filter_entry(S(b"k" * 2000), DUMPS[0].payload) + \
        rdb.filter_entry(S(b"small"), DUMPS[0].payload)
    got = load_rdb(server, written(tmp_path, rdb.close(data)), "--max-value",
                   1024, status=INCOMPLETE)
    assert got.stderr.count(b"is longer than --max-value") == 2
    assert figures(got)["filters restored"] == 1


def test_a_database_that_the_server_does_not_have(start_server, tmp_path):
    server = start_server("--databases", 16)
    data = HEAD + rdb.select(16) + rdb.filter_entry(S(b"k"), DUMPS[0].payload)
    got = load_rdb(server, written(tmp_path, rdb.close(data)),
                   status=UNREADABLE)
    assert b"DB index is out of range" in got.stderr


# ---- damage --------------------------------------------------------------------

@pytest.fixture(scope="module")
def small():
    return with_filters(HEAD + b"\0" + S(b"a") + S(b"b") + b"\xff" + b"\0" * 8)


def test_a_damaged_checksum(server, tmp_path, small):
    data = bytearray(small)
    data[-3] ^= 1
    got = load_rdb(server, written(tmp_path, bytes(data)), status=UNREADABLE)
    assert b"at offset %d: the checksum does not hold" % (len(data) - 8) \
        in got.stderr
    assert b"not verified" in got.stdout and b"holds" not in got.stdout


def test_a_file_cut_anywhere(server, tmp_path, small):
    shuffle = random.Random(os.environ.get("SEED", 1))
    for at in shuffle.sample(range(len(small)), 40):
        path = written(tmp_path, small[:at])
        got = load_rdb(server, path, "--existing", "replace", status=UNREADABLE)
        assert b"it ends in the middle" in got.stderr, at
        assert b"at offset %d:" % at in got.stderr


def test_any_damaged_byte_is_noticed(server, tmp_path, small):
    seed = int(os.environ.get("SEED", time.time()))
    print("SEED=%d" % seed)
    shuffle = random.Random(seed)
    for _ in range(60):
        data = bytearray(small)
        data[shuffle.randrange(len(data))] ^= 1 << shuffle.randrange(8)
        got = load_rdb(server, written(tmp_path, bytes(data)), "--existing",
                       "replace", status=None)
        assert got.returncode in (INCOMPLETE, UNREADABLE), got


@pytest.mark.parametrize("data,said", [
    (b"", b"offset 0: it ends in the middle"),
    (b"REDIS", b"it ends in the middle"),
    (b"HTTP/1.1 200 OK", b"it is not an RDB"),
    (b"REDISabcd", b"its version is not a number"),
    (HEAD + b"\0\x82k", b"no length begins with byte 0x82"),
    (HEAD + b"\0" + S(b"k") + b"\x81" + b"\xff" * 8 + b"x", b"ends in the middle"),
    (HEAD + b"\x01" + S(b"k") + b"\x81" + b"\xff" * 8, b"ends in the middle"),
    (HEAD + b"\x01" + S(b"k") + b"\xc3" + b"\x81" + b"\xff" * 8 + b"\x01x",
     b"a string is where a length must be"),
    (HEAD + b"\x07\xc3\x02\x81" + b"\x7f" * 8 + b"\0z", b"packed string"),
    (HEAD + b"\x07\xc3\x02\x05\0z", b"packed string is damaged"),
    (HEAD + b"\xfe\x81" + b"\xff" * 8, b"no database has number"),
    (HEAD + b"\x07" + S(b"k") + rdb.length(2 ** 60) + b"\x09",
     b"field of unknown kind 9"),
])
def test_lies_are_found_out(server, tmp_path, data, said):
    got = load_rdb(server, written(tmp_path, data), status=UNREADABLE)
    assert said in got.stderr, got.stderr


def test_what_follows_the_end_is_reported(server, tmp_path, small):
    got = load_rdb(server, written(tmp_path, small + b"*1\r\n"),
                   status=INCOMPLETE)
    assert b"offset %d" % len(small) in got.stderr
    assert_restored(server)


def test_missing_files(server, tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        assert b"cannot be" in load_rdb(server, path, status=UNREADABLE).stderr
