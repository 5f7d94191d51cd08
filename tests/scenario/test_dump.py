# SPDX-License-Identifier: BSD-3-Clause
#
# Whole filters: DUMP, RESTORE and COPY between names, databases and servers, and with
# hostile bytes. Then SAVE, BGSAVE, SHUTDOWN and the journal, as a client sees them.
# Other files test crashes and failing disks.

import os
import random
import re
import signal
import time

import pytest

from lib import resp, servers

ITEMS = 3000


def fill(conn, key, *options):
    """Makes a filter of several layers; its items are item:0 ..."""
    assert conn.call("BF.INSERT", key, "CAPACITY", 100, *options) == []
    for first in range(0, ITEMS, 1000):
        conn.call("BF.MADD", key, *("item:%d" % i
                                    for i in range(first, first + 1000)))


def same_but_for_its_life(a, b):
    """Tells whether two dumps are equal apart from incarnation and
    checksum."""
    return a[:64] == b[:64] and a[72:-8] == b[72:-8]


def life(dump):
    return dump[64:72]


def persistence(conn):
    text = conn.call("INFO", "persistence").decode()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def shut_down(server, conn, *how):
    """Sends SHUTDOWN, which has no reply: the connection ends, then the
    server."""
    conn.send(resp.command("SHUTDOWN", *how))
    assert conn.read_to_close() == b""
    assert server.wait_exit() == 0


# ---- DUMP, RESTORE, COPY ---------------------------------------------------


def test_a_dump_is_restored(server):
    with server.conn() as conn:
        fill(conn, "k")
        dump = conn.call("DUMP", "k")
        assert conn.call("RESTORE", "l", 0, dump) == b"OK"
        assert conn.call("BF.INFO", "l") == conn.call("BF.INFO", "k")
        items = ["item:%d" % i for i in range(2 * ITEMS)]
        assert conn.call("BF.MEXISTS", "l", *items) == \
            conn.call("BF.MEXISTS", "k", *items)
        again = conn.call("DUMP", "l")
        assert same_but_for_its_life(dump, again)
        assert life(dump) != life(again) != bytes(8)
        # Both grow independently, in the same way.
        assert conn.call("BF.MADD", "l", *items) == \
            conn.call("BF.MADD", "k", *items)
        assert same_but_for_its_life(conn.call("DUMP", "k"),
                                     conn.call("DUMP", "l"))


def test_a_server_with_other_defaults_restores_a_dump(start_server):
    one = start_server()
    other = start_server("--bf.bloom-capacity", 7, "--bf.bloom-expansion", 1,
                         "--bf.bloom-fp-rate", 0.3, "--threads", 1)
    with one.conn() as a, other.conn() as b:
        for key, options in (("scaling", ()), ("seed", ("SEED", "s" * 32)),
                             ("one", ("EXPANSION", 1))):
            fill(a, key, *options)
            dump = a.call("DUMP", key)
            assert b.call("RESTORE", key, 0, dump) == b"OK"
            assert same_but_for_its_life(dump, b.call("DUMP", key))
            assert b.call("BF.CARD", key) == a.call("BF.CARD", key)


def test_copies_are_equal_and_independent(server):
    with server.conn() as conn:
        fill(conn, "k")
        conn.call("PEXPIREAT", "k", 5000000000000)
        assert conn.call("COPY", "k", "l") == 1
        assert conn.call("COPY", "k", "k", "DB", 5) == 1
        dump = conn.call("DUMP", "k")
        copied = conn.call("DUMP", "l")
        assert same_but_for_its_life(dump, copied)
        assert life(dump) != life(copied)
        assert 1 in conn.call("BF.MADD", "l", *("here:%d" % i
                                                for i in range(20)))
        assert conn.call("DUMP", "k") == dump
        conn.call("DEL", "k", "l")
        conn.call("SELECT", 5)
        assert same_but_for_its_life(dump, conn.call("DUMP", "k"))
        assert conn.call("PEXPIRETIME", "k") == 5000000000000


def test_no_byte_of_a_payload_may_change(server):
    """Bytes removed, changed and appended never give a key or a crash."""
    with server.conn() as conn:
        conn.call("BF.INSERT", "k", "CAPACITY", 60, "ITEMS", "a", "b")
        dump = conn.call("DUMP", "k")
        bad = [dump[:n] for n in range(len(dump))]
        bad += [dump[:i] + bytes([dump[i] ^ 1 << i % 8]) + dump[i + 1:]
                for i in range(len(dump))]
        bad += [dump + b"\0", dump + dump, b"\0" * len(dump), os.urandom(200)]
        for reply in conn.pipeline([("RESTORE", "l", 0, b) for b in bad]):
            assert reply == resp.Error(
                "ERR DUMP payload version or checksum are wrong")
        assert conn.call("EXISTS", "l") == 0
        assert conn.call("DUMP", "k") == dump


def test_replace_leaves_the_old_filter_when_the_new_one_is_bad(server):
    with server.conn() as conn:
        fill(conn, "k")
        conn.call("PEXPIREAT", "k", 5000000000000)
        dump = conn.call("DUMP", "k")
        for bad in (dump[:-1], b"", b"x" * 500):
            assert isinstance(conn.call("RESTORE", "k", 0, bad, "REPLACE"),
                              resp.Error)
        assert conn.call("DUMP", "k") == dump
        assert conn.call("PEXPIRETIME", "k") == 5000000000000


def test_a_dump_beyond_the_output_limit_is_refused(start_server):
    server = start_server("--client-output-buffer-limit", "normal 1mb 0 0")
    with server.conn() as conn:
        assert conn.call("BF.RESERVE", "large", 0.01, 4000000) == b"OK"
        assert conn.call("BF.RESERVE", "small", 0.01, 100000) == b"OK"
        used = server.rss()
        for _ in range(20):
            got = conn.call("DUMP", "large")
            assert isinstance(got, resp.Error) and "limit" in str(got)
        assert server.rss() - used < 32 << 20
        assert len(conn.call("DUMP", "small")) > 100000
        assert conn.call("PING") == b"PONG"


def test_whole_filters_respect_maxmemory(server):
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", 0.01, 4000000)
        dump = conn.call("DUMP", "k")
        conn.call("BF.ADD", "small", "a")
        used = int(re.search(r"used_memory:(\d+)",
                             conn.call("INFO", "memory").decode()).group(1))
        conn.call("CONFIG", "SET", "maxmemory", used + (1 << 20))
        for command in (("RESTORE", "l", 0, dump), ("COPY", "k", "l"),
                        ("RESTORE", "small", 0, dump, "REPLACE"),
                        ("COPY", "k", "small", "REPLACE")):
            got = conn.call(*command)
            assert isinstance(got, resp.Error) and "OOM" in str(got), got
        assert conn.call("EXISTS", "l") == 0
        assert conn.call("BF.EXISTS", "small", "a") == 1
        conn.call("CONFIG", "SET", "maxmemory", 0)
        assert conn.call("RESTORE", "small", 0, dump, "REPLACE") == b"OK"
        assert conn.call("BF.EXISTS", "small", "a") == 0


# ---- SAVE, BGSAVE, SHUTDOWN ------------------------------------------------


@pytest.fixture
def folder(tmp_path, start_server):
    """folder(...): a server on tmp_path, on the data of the server before
    it."""
    def start(*options):
        return start_server("--dir", tmp_path, *options)
    start.path = tmp_path
    return start


def everything(conn, databases=3):
    """Returns all keys with their dumps and times."""
    found = {}
    for db in range(databases):
        conn.call("SELECT", db)
        for key in conn.call("KEYS", "*"):
            found[db, key] = (conn.call("DUMP", key),
                              conn.call("PEXPIRETIME", key))
    conn.call("SELECT", 0)
    return found


def some_keys(conn):
    fill(conn, "k")
    conn.call("BF.ADD", "timed", "a")
    conn.call("PEXPIREAT", "timed", 5000000000000)
    conn.call("COPY", "k", "k", "DB", 2)
    conn.call("BF.RESERVE", "large", 0.001, 2000000)
    conn.call("BF.ADD", "large", "a")
    return everything(conn)


@pytest.mark.parametrize("ask", ["SAVE", "BGSAVE", "SHUTDOWN SAVE",
                                 "SHUTDOWN with rules", "SIGTERM with rules"])
def test_a_snapshot_brings_everything_back(folder, ask):
    server = folder("--auto-aof-rewrite-percentage", "0",
                    *(("--save", "3600 1") if "rules" in ask else ()))
    with server.conn() as conn:
        before = some_keys(conn)
        if ask == "SAVE":
            assert conn.call("SAVE") == b"OK"
        elif ask == "BGSAVE":
            assert conn.call("BGSAVE") == b"Background saving started"
            servers.wait_until(
                lambda: persistence(conn)["rdb_bgsave_in_progress"] == "0")
        elif ask.startswith("SHUTDOWN"):
            shut_down(server, conn, *ask.split(" with")[0].split()[1:])
    server.stop()
    with folder().conn() as conn:
        assert everything(conn) == before
        assert persistence(conn)["rdb_last_load_keys_loaded"] == \
            str(len(before))


@pytest.mark.parametrize("options, how", [
    (("--save", ""), ()), (("--save", "3600 1"), ("NOSAVE",)),
], ids=str)
def test_a_shutdown_that_must_not_save_does_not(folder, options, how):
    server = folder(*options)
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "a")
        shut_down(server, conn, *how)
    server.stop()
    assert not (folder.path / "bloomery.snapshot").exists()


def test_figures_of_a_save(folder):
    server = folder()
    with server.conn() as conn:
        before = int(time.time())
        conn.call("BF.MADD", "k", "a", "b", "c")
        got = persistence(conn)
        assert got["rdb_changes_since_last_save"] == "4"
        assert got["rdb_saves"] == "0"
        assert got["rdb_last_bgsave_time_sec"] == "-1"
        assert conn.call("SAVE") == b"OK"
        got = persistence(conn)
        assert got["rdb_changes_since_last_save"] == "0"
        assert got["rdb_saves"] == "1"
        assert got["rdb_last_bgsave_status"] == "ok"
        assert int(got["rdb_last_bgsave_time_sec"]) < 10
        assert got["rdb_current_bgsave_time_sec"] == "-1"
        assert before <= int(got["rdb_last_save_time"]) <= time.time()
        assert conn.call("LASTSAVE") == int(got["rdb_last_save_time"])
        assert int(got["last_save_holds"]) > 0


def test_save_rules_save(folder):
    server = folder("--save", "1 3")
    with server.conn() as conn:
        conn.call("BF.MADD", "k", "a", "b")  # 3, with the key
        servers.wait_until(lambda: persistence(conn)["rdb_saves"] == "1",
                           what="the save")
        conn.call("BF.ADD", "k", "c")
        time.sleep(1.5)  # one change is not enough
        assert persistence(conn)["rdb_saves"] == "1"
        conn.call("CONFIG", "SET", "save", "1 1")
        servers.wait_until(lambda: persistence(conn)["rdb_saves"] == "2",
                           what="the second save")


def test_a_save_that_fails_says_so_and_stops_writes(folder):
    """A directory in the place of the snapshot makes the rename fail."""
    server = folder("--save", "3600 1")
    (folder.path / "bloomery.snapshot").mkdir()
    with server.conn() as conn, server.conn() as other:
        conn.call("BF.ADD", "k", "a")
        got = conn.call("SAVE")
        assert isinstance(got, resp.Error) and str(got).startswith("ERR "), got
        figures = persistence(conn)
        assert figures["rdb_last_bgsave_status"] == "err"
        assert int(figures["snapshot_failures"]) >= 1
        for command in (("BF.ADD", "k", "b"), ("DEL", "k"), ("FLUSHALL",),
                        ("COPY", "k", "l")):
            got = other.call(*command)
            assert isinstance(got, resp.Error) and \
                str(got).startswith("MISCONF Bloomery is configured to save "
                                    "snapshots, but"), got
        assert other.call("BF.EXISTS", "k", "a") == 1
        conn.call("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
        servers.wait_until(lambda: other.call("BF.ADD", "k", "b") == 1)
        conn.call("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
        servers.wait_until(lambda: isinstance(other.call("BF.ADD", "k", "c"),
                                              resp.Error))

        # A shutdown that cannot save is refused unless it is forced.
        got = conn.call("SHUTDOWN", "SAVE")
        assert got == resp.Error("ERR Errors trying to SHUTDOWN. Check logs.")
        assert other.call("BF.EXISTS", "k", "a") == 1
        (folder.path / "bloomery.snapshot").rmdir()
        assert conn.call("SAVE") == b"OK"
        servers.wait_until(lambda: other.call("BF.ADD", "k", "d") == 1)
        assert persistence(conn)["snapshot_failures"] == "0"


def test_a_forced_shutdown_ends_without_a_save(folder):
    server = folder("--save", "3600 1")
    (folder.path / "bloomery.snapshot").mkdir()
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "a")
        shut_down(server, conn, "FORCE")
    server.stop()


# ---- the journal, as far as commands show it -------------------------------


def test_whole_filters_survive_a_kill(folder):
    """RESTORE and COPY are journaled byte for byte, with the incarnation of
    each key, so that the limits of the next start do not matter."""
    server = folder("--appendonly", "yes", "--appendfsync", "always")
    rng = random.Random(os.environ.get("BLOOMERY_SEED", "17"))
    with server.conn() as conn:
        fill(conn, "seed")
        dump = conn.call("DUMP", "seed")
        keys = ["k%d" % i for i in range(6)]
        for _ in range(120):
            key, other = rng.choice(keys), rng.choice(keys)
            conn.call(*rng.choice([
                ("RESTORE", key, rng.choice([0, 0, 3600000]), dump, "REPLACE"),
                ("RESTORE", key, 5000000000000, dump, "ABSTTL"),
                ("RESTORE", key, 1, dump, "ABSTTL", "REPLACE"),
                ("COPY", key, other, "REPLACE"), ("COPY", key, other),
                ("COPY", key, other, "DB", rng.randrange(3), "REPLACE"),
                ("BF.ADD", key, "x%d" % rng.randrange(50)),
                ("SELECT", rng.randrange(3)), ("DEL", key),
                ("PEXPIREAT", key, 5000000000000), ("PERSIST", key),
            ]))
        before = everything(conn)
    server.child.send_signal(signal.SIGKILL)
    server.child.wait()
    server.stopped = True
    with folder("--appendonly", "yes", "--bf.bloom-memory-usage-limit", 1,
                "--bf.bloom-capacity", 9).conn() as conn:
        assert everything(conn) == before


def test_waitaof_waits_for_the_disk(folder):
    server = folder("--appendonly", "yes")
    with server.conn() as conn, server.conn() as other:
        for i in range(3):
            conn.call("BF.ADD", "k", i)
            before = persistence(conn)
            assert conn.call("WAITAOF", 1, 0, 0) == [1, 0]
            assert int(persistence(conn)["journal_synced_position"]) >= \
                int(before["journal_position"])
        began = time.monotonic()
        assert conn.call("WAITAOF", 1, 1, 200) == [1, 0]
        assert time.monotonic() - began >= 0.2
        # Switching the journal off releases a client that waits without limit.
        conn.send(resp.command("WAITAOF", 1, 1, 0))
        servers.wait_until(lambda: "blocked_clients:1\r" in
                           other.call("INFO", "clients").decode())
        assert other.call("CONFIG", "SET", "appendonly", "no") == b"OK"
        assert isinstance(conn.read(), resp.Error)


def test_bgrewriteaof_rewrites_the_journal(folder):
    server = folder("--appendonly", "yes", "--auto-aof-rewrite-percentage", "0")
    with server.conn() as conn:
        fill(conn, "k")
        for i in range(200):
            conn.call("BF.ADD", "k", "more:%d" % i)
        before = persistence(conn)
        assert before["aof_enabled"] == "1"
        assert before["journal_state"] == "on"
        assert conn.call("BGREWRITEAOF") == \
            b"Background append only file rewriting started"
        servers.wait_until(lambda: persistence(conn)["aof_rewrites"] !=
                           before["aof_rewrites"] and
                           persistence(conn)["aof_rewrite_in_progress"] == "0")
        after = persistence(conn)
        assert after["aof_last_bgrewrite_status"] == "ok"
        assert int(after["aof_base_size"]) > 0
        assert int(after["journal_manifest_generation"]) > \
            int(before["journal_manifest_generation"])


def test_the_fields_of_redis_come_first_and_in_its_order(
        server, start_oracle):
    def names(where):
        text = where.call("INFO", "persistence").decode()
        return re.findall(r"^(\w+):", text, re.M)
    with server.conn() as conn, start_oracle().conn() as other:
        theirs = names(other)
        assert names(conn)[:len(theirs)] == theirs
        for one in (conn, other):
            assert one.call("CONFIG", "SET", "appendonly", "yes") == b"OK"
        theirs = names(other)
        servers.wait_until(lambda: names(conn)[:len(theirs)] == theirs,
                           what="the fields of a journal")


def test_payloads_of_other_types_are_named(server, start_oracle):
    """RESTORE, and MIGRATE of a Redis that sends it, say what came."""
    oracle = start_oracle()
    made = (("string", ("SET", "k", "v")), ("hash", ("HSET", "k", "a", "1")),
            ("list", ("RPUSH", "k", "a")), ("set", ("SADD", "k", "1")),
            ("zset", ("ZADD", "k", "1", "a")), ("stream", ("XADD", "k", "*", "a", "1")))
    with server.conn() as conn, oracle.conn() as source:
        for name, words in made:
            source.call("DEL", "k")
            source.call(*words)
            payload = source.call("DUMP", "k")
            said = str(conn.call("RESTORE", "k", 0, payload))
            assert said == "ERR the payload is of type %s, and this server keeps " \
                "only Bloom filters" % name
            broken = payload[:-1] + bytes([payload[-1] ^ 1])
            assert "checksum are wrong" in str(conn.call("RESTORE", "k", 0, broken))
        said = str(source.call("MIGRATE", "127.0.0.1", server.port, "k", 0, 5000))
        assert "of type stream" in said, said
        assert source.call("EXISTS", "k") == 1 and conn.call("EXISTS", "k") == 0
