# SPDX-License-Identifier: BSD-3-Clause
#
# Keys with a time to live: expired keys are invisible to every command at once, and
# the server frees their memory soon, even if no client asks for them.

import time

import pytest

from lib import servers


def ended(conn, key="k"):
    """Makes a filter that has just expired."""
    conn.call("DEL", key)
    conn.call("BF.MADD", key, "a", "b")
    conn.call("PEXPIRE", key, "1")
    time.sleep(0.01)


@pytest.mark.parametrize("command,answer", [
    (("BF.EXISTS", "k", "a"), 0), (("BF.MEXISTS", "k", "a", "b"), [0, 0]),
    (("BF.CARD", "k"), 0), (("EXISTS", "k"), 0), (("TYPE", "k"), b"none"),
    (("TTL", "k"), -2), (("PTTL", "k"), -2), (("EXPIRETIME", "k"), -2),
    (("PEXPIRETIME", "k"), -2), (("PERSIST", "k"), 0), (("TOUCH", "k"), 0),
    (("DEL", "k"), 0), (("UNLINK", "k"), 0), (("EXPIRE", "k", "9"), 0),
    (("MEMORY", "USAGE", "k"), None), (("KEYS", "*"), []),
    (("RANDOMKEY",), None), (("SCAN", "0", "COUNT", "10000"), [b"0", []]),
    (("BF.RESERVE", "k", "0.01", "5"), b"OK"), (("BF.ADD", "k", "a"), 1),
    (("BF.MADD", "k", "a"), [1]), (("BF.INSERT", "k", "ITEMS", "a"), [1]),
], ids=lambda v: " ".join(v) if isinstance(v, tuple) else "")
def test_an_expired_key_is_missing_for(server, command, answer):
    with server.conn() as conn:
        for _ in range(5):
            ended(conn)
            assert conn.call(*command) == answer
            conn.call("DEL", "k")


def test_an_expired_key_is_missing_for_info_and_nocreate(server):
    with server.conn() as conn:
        ended(conn)
        assert conn.raw("BF.INFO", "k") == b"-ERR not found\r\n"
        ended(conn)
        assert conn.raw("BF.INSERT", "k", "NOCREATE", "ITEMS", "a") == \
            b"-ERR not found\r\n"


def test_expired_keys_leave_memory_by_themselves(server):
    with server.conn() as conn:
        conn.pipeline([("BF.RESERVE", "k%d" % i, "0.01", "1000")
                       for i in range(1000)])
        conn.pipeline([("PEXPIRE", "k%d" % i, "50") for i in range(900)])
        servers.wait_until(lambda: conn.call("DBSIZE") == 100, 10,
                           "900 of 1000 keys expire unasked")
        info = conn.call("INFO").decode()
        assert "expired_keys:900" in info
        assert "db0:keys=100,expires=0" in info
        assert "bf_bloom_num_objects:100" in conn.call("INFO", "bf").decode()


def test_a_filter_keeps_its_time_through_adds(server):
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "a")
        conn.call("EXPIREAT", "k", "4000000000")
        conn.call("BF.ADD", "k", "b")
        conn.call("BF.MADD", "k", "c", "d")
        conn.call("BF.INSERT", "k", "ITEMS", "e")
        assert conn.call("EXPIRETIME", "k") == 4000000000


def test_a_key_with_a_later_time_does_not_expire(server):
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "a")
        soon_ms = int(60 * servers.time_factor())
        conn.call("PEXPIRE", "k", soon_ms)
        conn.call("PERSIST", "k")
        conn.call("BF.ADD", "l", "a")
        conn.call("PEXPIRE", "l", soon_ms)
        conn.call("PEXPIRE", "l", "100000")
        conn.call("BF.ADD", "m", "a")
        conn.call("PEXPIRE", "m", soon_ms)
        conn.call("DEL", "m")
        conn.call("BF.ADD", "m", "a")
        # Wait for the old times and for the sweep after them.
        time.sleep(soon_ms / 1000 + 0.2)
        assert conn.call("EXISTS", "k", "l", "m") == 3
        assert conn.call("DBSIZE") == 3
        assert conn.call("TTL", "m") == -1


def test_a_time_in_the_past_deletes(server):
    with server.conn() as conn:
        for command in (("EXPIRE", "k", "-1"), ("PEXPIRE", "k", "0"),
                        ("EXPIREAT", "k", "1"), ("PEXPIREAT", "k", "1")):
            conn.call("BF.ADD", "k", "a")
            assert conn.call(*command) == 1
            assert conn.call("DBSIZE") == 0


def test_expiry_in_every_database(server):
    with server.conn() as conn:
        for db in range(16):
            conn.call("SELECT", db)
            conn.call("BF.ADD", "k", "a")
            conn.call("PEXPIRE", "k", "30")
        info = lambda: conn.call("INFO", "keyspace").decode()  # noqa: E731
        servers.wait_until(lambda: "db" not in info(), 10,
                           "all 16 databases are empty")


@pytest.mark.parametrize("rewrite", [False, True])
def test_a_time_given_at_creation_outlives_a_crash(start_server, tmp_path,
                                                      rewrite):
    options = ["--dir", tmp_path, "--appendonly", "yes"]
    server = start_server(*options)
    with server.conn() as conn:
        before = conn.call("TIME")[0]
        assert conn.call("BF.RESERVE", "a", "0.01", "100", "EX", "1000") == b"OK"
        assert conn.call("BF.INSERT", "b", "PX", "1000000", "ITEMS", "x") == [1]
        assert conn.call("BF.RESERVE", "c", "0.01", "100", "EXAT", "1") == b"OK"
        times = [conn.call("PEXPIRETIME", key) for key in "abc"]
        assert times[0] >= int(before) * 1000 + 1000000
        if rewrite:
            conn.call("BGREWRITEAOF")
            servers.wait_until(
                lambda: b"aof_rewrite_in_progress:0" in
                conn.call("INFO", "persistence"), 20,
                "the rewrite ends")
    server.kill()
    with start_server(*options).conn() as conn:
        assert [conn.call("PEXPIRETIME", key) for key in "abc"] == times
        assert times[2] == -2
        assert conn.call("BF.EXISTS", "b", "x") == 1


def test_a_time_given_at_creation_is_an_event_of_its_own(start_server):
    server = start_server("--notify-keyspace-events", "KEA")
    with server.conn() as conn, server.conn() as watching:
        watching.call("SUBSCRIBE", "__keyspace@0__:k")
        conn.call("BF.INSERT", "k", "EX", "1000", "ITEMS", "a")
        conn.call("BF.INSERT", "k", "EX", "1000", "ITEMS", "b")
        assert [watching.read()[2] for _ in range(4)] == \
            [b"bloom.add", b"bloom.reserve", b"expire", b"bloom.add"]
