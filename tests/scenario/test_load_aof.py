# SPDX-License-Identifier: BSD-3-Clause
#
# bloomery-load aof: a plain AOF, one with an RDB in front, and the directory that
# Debian's redis-server writes.

import fcntl
import os
import struct
import subprocess
import termios

import pytest

from lib import rdb, resp, servers, sources
from lib.loads import (DONE, INCOMPLETE, UNREADABLE, USAGE, figures, load, present,
                       program, to)

DUMPS = rdb.dumps()


HEAD = b"REDIS0010" + b"\xfa" + rdb.string(b"redis-ver") + rdb.string(b"7.2.0")
ONE = rdb.close(HEAD + rdb.filter_entry(rdb.string(b"one"), DUMPS[0].payload))


def commands(*lines):
    return b"".join(resp.command(*(line.split(" ") if isinstance(line, str)
                                   else line)) for line in lines)


def load_aof(server, path, *args, **more):
    return load(*to(server), "aof", path, *args, **more)


def written(folder, data, name="file.aof"):
    path = folder / name
    path.write_bytes(data)
    return path


def test_a_plain_aof(server, tmp_path):
    path = written(tmp_path, b"#TS:1700000000\r\n" + commands(
        "SELECT 0", "BF.RESERVE a 0.01 100", "BF.MADD a x y", "SET text x",
        "SELECT 3", "BF.ADD b z", "MULTI", "BF.ADD b multi", "INCR n", "EXEC",
        "PEXPIREAT b 4102444800000", "RPUSH l 1", "DEL text"))
    got = figures(load_aof(server, path))
    assert present(server, "a", ["x", "y"])
    assert present(server, "b", ["z", "multi"], db=3)
    assert got["skipped"] == {"set": 1, "incr": 1, "rpush": 1}
    assert got["commands applied"] == 5


def test_the_last_store_of_a_sort_counts(server, tmp_path):
    """As in Redis. The value of another option may be the word itself."""
    path = written(tmp_path, commands(
        "SELECT 0", "BF.ADD a x", "BF.ADD b x", "BF.ADD c x", "BF.ADD d x",
        "SORT l STORE a STORE b", "SORT l BY store GET store LIMIT 0 1 STORE c",
        "GEORADIUSBYMEMBER g store 1 m STORE d ASC"))
    figures(load_aof(server, path))
    with server.conn() as conn:
        assert conn.call("EXISTS", "a", "b", "c", "d") == 1
        assert conn.call("EXISTS", "a") == 1


def test_the_pieces_of_scandump_as_redisbloom_rewrites_them(server, tmp_path):
    """They go through as they are."""
    got = load_aof(server, written(tmp_path, commands(
        ["BF.LOADCHUNK", "k", "1", b"\0" * 10])), status=None)
    assert b"key 'k' of database 0: " in got.stderr


def test_an_rdb_in_front(server, tmp_path):
    path = written(tmp_path, ONE + commands("SELECT 0", "BF.ADD one more"))
    got = figures(load_aof(server, path))
    assert present(server, "one", DUMPS[0].items + [b"more"])
    assert got["filters restored"] == 1 and got["written by"].startswith("redis")


def test_times_to_live_that_were_renewed(server, tmp_path):
    """An AOF says which keys have gone: the times in it are of the past, and each
    holds until the next one."""
    now = sources.now_ms()
    lines = ["SELECT 2"]
    for i in range(10):
        at = now - 100000 + i * 20000
        lines += ["BF.ADD k %d" % i, "PEXPIREAT k %d" % at]
    lines += ["BF.ADD kept a", "EXPIREAT kept 1", "PERSIST kept", "BF.ADD kept b",
              "BF.ADD over a", "PEXPIREAT over %d" % (now - 1), "RENAME over past"]
    got = figures(load_aof(server, written(tmp_path, commands(*lines))))
    assert got["expired"] == 1
    assert present(server, "k", [str(i) for i in range(10)], db=2)
    assert present(server, "kept", ["a", "b"], db=2)
    with server.conn() as conn:
        conn.call("SELECT", 2)
        assert conn.call("PEXPIRETIME", "k") == at
        assert conn.call("PEXPIRETIME", "kept") == -1
        assert conn.call("EXISTS", "past") == 0


def test_a_time_in_the_rdb_in_front_that_was_renewed(server, tmp_path):
    entry = rdb.filter_entry(rdb.string(b"one"), DUMPS[0].payload)
    expired = rdb.close(HEAD + rdb.expires(1000) + entry)
    path = written(tmp_path, expired + commands("SELECT 0", "PERSIST one"))
    figures(load_aof(server, path))
    assert present(server, "one", DUMPS[0].items)
    path = written(tmp_path, expired)
    got = figures(load_aof(server, path, "--existing", "replace"))
    assert got["expired"] == 1 and not present(server, "one", DUMPS[0].items)


def test_inserts_with_options_that_the_dialect_does_not_have(server, tmp_path):
    """RedisBloom passes a BF.INSERT on as it came, also for a filter that exists."""
    lines = ["SELECT 0", "BF.ADD k x"]
    for i, options in enumerate(("EXPANSION 0", "ERROR_RATE 0.1", "CAP 10", "")):
        lines.append(" ".join(("BF.INSERT k %s ITEMS %d" % (options, i)).split()))
    figures(load_aof(server, written(tmp_path, commands(*lines))))
    assert present(server, "k", ["x", "0", "1", "2", "3"])


def is_empty(pipe):
    return fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)) == bytes(4)


@pytest.mark.parametrize("first", [1, 3, 5])
def test_a_pipe_hands_out_an_rdb_a_few_bytes_at_a_time(server, first):
    with subprocess.Popen([program(), *to(server), "aof", "-"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tool:
        tool.stdin.write(ONE[:first])
        tool.stdin.flush()
        servers.wait_until(lambda: is_empty(tool.stdin))
        tool.communicate(ONE[first:] + commands("SELECT 0", "BF.ADD one more"),
                         timeout=60 * servers.time_factor())
    assert tool.returncode == DONE
    assert present(server, "one", DUMPS[0].items + [b"more"])


@pytest.fixture
def directory(tmp_path):
    """What Redis 7 leaves behind, with a name in quotes and history."""
    written(tmp_path, ONE, "a b.1.base.rdb")
    written(tmp_path, commands("SELECT 1", "BF.ADD two x"), "a b.1.incr.aof")
    written(tmp_path, commands("SELECT 0", "BF.ADD one late"), "a b.2.incr.aof")
    written(tmp_path, b'file "a b.1.base.rdb" seq 1 type b\n'
            b'file "a b.0.incr.aof" seq 0 type h\n'
            b'file "a b.1.incr.aof" seq 1 type i\n'
            b'file "a b.2.incr.aof" seq 2 type i\n', "a b.manifest")
    return tmp_path


@pytest.mark.parametrize("name", ["", "a b.manifest"])
def test_a_directory(server, directory, name):
    load_aof(server, directory / name if name else directory)
    assert present(server, "one", DUMPS[0].items + [b"late"])
    assert present(server, "two", ["x"], db=1)


def test_what_redis_server_writes(server, start_oracle):
    oracle = start_oracle("--appendonly", "yes", "--appendfsync", "always",
                          "--aof-timestamp-enabled", "yes")
    with oracle.conn() as conn:
        for i in range(100):
            conn.call("SET", "key:%d" % i, i)
            conn.call("RPUSH", "list", i)
        conn.call("BGREWRITEAOF")
        servers.wait_until(lambda: b"aof_rewrite_in_progress:0" in
                           conn.call("INFO", "persistence"), 20, "the rewrite")
        conn.call("HSET", "hash", "a", 1)
        conn.call("EVAL", "redis.call('SET', 'a', 1) redis.call('SET', 'b', 1)",
                  0)
    folder = os.path.join(oracle.folder, "appendonlydir")
    got = figures(load_aof(server, folder))
    assert got["skipped"]["strings"] == 100 and got["skipped"]["lists"] == 1
    assert got["skipped"]["hset"] == 1 and got["skipped"]["set"] == 2
    assert got["refused"] == got["commands applied"] == 0


def test_a_torn_end_is_left_out_of_the_last_file_only(server, directory):
    whole = commands("SELECT 0", "BF.ADD one whole")
    cut = commands("MULTI", "BF.ADD one torn", "EXEC")
    for length in range(1, len(cut)):
        written(directory, whole + cut[:length], "a b.2.incr.aof")
        got = load_aof(server, directory, "--existing", "replace",
                       status=INCOMPLETE)
        assert b"(offset %d)" % len(whole) in got.stderr or length >= 15
        assert present(server, "one", ["whole"])
        assert not present(server, "one", ["torn"])
    written(directory, whole + cut[:-1], "a b.1.incr.aof")
    got = load_aof(server, directory, "--existing", "replace", status=UNREADABLE)
    assert b"is not the last file" in got.stderr


@pytest.mark.parametrize("data,said", [
    (b"*1\r\n:5\r\n", b"the command at offset 0 is damaged"),
    (commands("SELECT 0") + b"*x\r\n", b"the command at offset 23 is damaged"),
    (commands("SELECT 99999"), b"database 99999"),
    (commands("SELECT"), b"too few words"),
    (b"*2\r\n$3\r\nDEL\r\n$99999999999\r\nx", b"damaged, or longer"),
    (ONE[:-1] + b"!", b"the checksum does not hold"),
])
def test_damage_is_named_with_its_offset(server, tmp_path, data, said):
    got = load_aof(server, written(tmp_path, data), status=UNREADABLE)
    assert said in got.stderr


@pytest.mark.parametrize("manifest,said", [
    (b"nonsense\n", b"line 1 is not a line of a manifest"),
    (b'file "x seq 1 type i\n', b"line 1 has unbalanced quotes"),
    (b"file ../x seq 1 type i\n", b"line 1 names a file elsewhere"),
    (b"file x seq 1 type z\n", b"line 1 has an unknown type"),
    (b"file a.aof seq 2 type i\nfile a.aof seq 1 type i\n", b"line 2 is out of"),
    (b"file a.aof seq 2 type i\nfile a.aof seq 1 type b\n", b"line 2 has a second"),
    (b"file none seq 2 type i\n", b"none: cannot be opened"),
])
def test_bad_manifests(server, tmp_path, manifest, said):
    written(tmp_path, commands("SELECT 0"), "a.aof")
    written(tmp_path, manifest, "a.manifest")
    assert said in load_aof(server, tmp_path, status=UNREADABLE).stderr


def test_a_directory_without_a_manifest(server, tmp_path):
    got = load_aof(server, tmp_path, status=USAGE)
    assert b"appendonlydir" in got.stderr


def test_a_filter_that_exists(server, tmp_path):
    path = written(tmp_path, commands("BF.ADD k new", "BF.ADD other x"))
    for existing, status, found in (("stop", INCOMPLETE, [1, 0]),
                                    ("skip", 0, [1, 0]), ("replace", 0, [0, 1])):
        with server.conn() as conn:
            conn.call("FLUSHALL")
            conn.call("BF.ADD", "k", "old")
            load_aof(server, path, "--existing", existing, status=status)
            assert conn.call("BF.MEXISTS", "k", "old", "new") == found


def test_times_of_old_versions(server, tmp_path):
    data = HEAD + b"\xfd" + struct.pack("<I", sources.now_ms() // 1000 + 100) + \
        rdb.filter_entry(rdb.string(b"one"), DUMPS[0].payload)
    load_aof(server, written(tmp_path, rdb.close(data)))
    with server.conn() as conn:
        assert 0 < conn.call("TTL", "one") <= 100


# ---- what RedisBloom's commands make -----------------------------------------------

# RedisBloom 2.8 took all of these: most items of so large a rate seem to be there
# already, and fill nothing.
MANY = ["item:%d" % i for i in range(2000)]
LARGE_RATE = commands(["BF.RESERVE", "large", "0.9", "500", "NONSCALING"]) + \
    commands(*(["BF.ADD", "large", item] for item in MANY)) + \
    commands(["BF.INSERT", "grows", "ERR", "0.9", "CAP", "50", "ITEM", "a"],
             ["BF.MADD", "grows", *MANY])


def info(server, key):
    with server.conn() as conn:
        got = conn.call("BF.INFO", key)
    return dict(zip(got[::2], got[1::2]))


@pytest.mark.parametrize("dialect", ["valkey", "redis"])
@pytest.mark.parametrize("how", ["behind an RDB", "alone"])
def test_a_large_rate_of_redisbloom_2_stays(start_server, tmp_path, dialect, how):
    server = start_server("--dialect", dialect)
    path = written(tmp_path, (ONE if how == "behind an RDB" else b"") + LARGE_RATE)
    got = figures(load_aof(server, path, *(
        ["--source-version", "2.8"] if how == "alone" else [])))
    assert got["filters created"] == 2 and "to full filters" not in got
    for key in ("large", "grows"):
        assert present(server, key, MANY)
    # The recorded filter of the same rate has 112 bits for 500 items.
    assert info(server, "large")[b"Number of items inserted"] < 500


def test_redis_8_stores_a_large_rate_as_a_quarter(server, tmp_path):
    got = figures(load_aof(server, written(tmp_path, LARGE_RATE),
                           "--source-version", "8.0.2"))
    assert got["to full filters"] > 0
    with server.conn() as conn:
        stored = conn.call("BF.SCANDUMP", "large", 0)[1]
    assert struct.unpack_from("<d", stored, 20 + 24) == (0.25,)


def test_a_large_rate_of_an_unknown_version_is_asked_for(server, tmp_path):
    got = load_aof(server, written(tmp_path, LARGE_RATE), status=USAGE)
    assert b"--source-version" in got.stderr
    assert b"such as 7.2" in load_aof(server, written(tmp_path, LARGE_RATE),
                                      "--source-version", "new",
                                      status=USAGE).stderr


def test_what_commands_make_is_what_redisbloom_made(server, tmp_path):
    """The same bits, as the recorded dumps show."""
    for dump in rdb.dumps():
        if dump.name == "default3":
            load_aof(server, written(tmp_path, commands(
                *(["BF.ADD", "k", item] for item in dump.items))))
            with server.conn() as conn:
                assert conn.call("BF.SCANDUMP", "k", 0)[1] == dump.chunks[0][1]
                assert conn.call("BF.SCANDUMP", "k", 1)[1] == dump.chunks[1][1]


def test_the_defaults_of_the_source(server, tmp_path):
    load_aof(server, written(tmp_path, commands("BF.ADD k a")), "--error", "0.004",
             "--capacity", "70")
    with server.conn() as conn:
        stored = conn.call("BF.SCANDUMP", "k", 0)[1]
    assert struct.unpack_from("<d", stored, 20 + 24) == (0.002,)
    assert struct.unpack_from("<Q", stored, 20 + 44) == (70,)


def test_a_large_filter_is_made_without_its_zeros(server, tmp_path):
    before = server.rss()
    load_aof(server, written(tmp_path, commands("BF.RESERVE k 0.01 40000000",
                                                "BF.ADD k a")))
    assert present(server, "k", ["a"])
    assert server.rss() - before < 16 << 20, "of 53 MiB"


def test_a_file_that_ends_between_two_pieces(server, tmp_path):
    chunks = DUMPS[1].chunks
    assert len(chunks) > 3
    words = [["BF.LOADCHUNK", "k", str(at), data] for at, data in chunks[:-1]]
    got = load_aof(server, written(tmp_path, commands(*words[:-1])),
                   status=UNREADABLE)
    assert b"key 'k' of database 0: is incomplete" in got.stderr
    assert figures(got)["refused"] == 1
    load_aof(server, written(tmp_path, commands(*words)), "--existing", "replace")
    assert present(server, "k", DUMPS[1].items)
    load_aof(server, written(tmp_path, commands(*words[:-1], "DEL k")),
             "--existing", "replace")
