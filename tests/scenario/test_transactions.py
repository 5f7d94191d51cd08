# SPDX-License-Identifier: BSD-3-Clause
#
# MULTI and WATCH between several clients: what breaks a watch, that EXEC is
# one step to everybody else, and how long a queue may get.

import threading

import pytest

from lib import resp, servers


@pytest.fixture
def pair(server):
    with server.conn() as a, server.conn() as b:
        yield a, b


def broken(a):
    a.call("MULTI")
    a.call("PING")
    raw = a.raw("EXEC")
    assert raw in (b"*-1\r\n", b"*1\r\n+PONG\r\n"), raw
    return raw == b"*-1\r\n"


@pytest.mark.parametrize("commands", [
    [("BF.ADD", "k", "new")],
    [("BF.MADD", "k", "n1", "n2")],
    [("BF.INSERT", "k", "ITEMS", "new")],
    [("DEL", "k")],
    [("UNLINK", "k")],
    [("DEL", "k"), ("BF.ADD", "k", "a")],
    [("EXPIRE", "k", "100")],
    [("PEXPIREAT", "k", "1")],
    [("FLUSHDB",)],
    [("FLUSHALL",)],
    [("FLUSHALL", "ASYNC")],
    [("MULTI",), ("BF.ADD", "k", "n"), ("EXEC",)],
], ids=lambda c: " ".join(c[0]))
def test_a_write_by_another_client_breaks_the_watch(pair, commands):
    a, b = pair
    b.call("BF.ADD", "k", "a")
    assert a.call("WATCH", "k") == b"OK"
    for command in commands:
        assert not isinstance(b.call(*command), resp.Error)
    assert broken(a)
    assert not broken(a), "EXEC ends the watch"


@pytest.mark.parametrize("command", [
    ("BF.EXISTS", "k", "a"), ("BF.INFO", "k"), ("BF.CARD", "k"),
    ("EXISTS", "k"), ("TTL", "k"), ("TYPE", "k"), ("BF.ADD", "other", "x"),
    ("DEL", "missing"), ("PERSIST", "k"), ("BF.ADD", "k"), ("TOUCH", "k"),
    ("BF.RESERVE", "k", "x", "100"),
], ids=lambda c: " ".join(c))
def test_a_read_or_a_refused_write_does_not(pair, command):
    a, b = pair
    b.call("BF.ADD", "k", "a")
    a.call("WATCH", "k")
    b.call(*command)
    assert not broken(a)


def test_creation_of_a_missing_key_breaks_the_watch(pair):
    a, b = pair
    a.call("WATCH", "k")
    b.call("BF.RESERVE", "k", "0.01", "100")
    assert broken(a)


def test_expiry_of_the_key_breaks_the_watch(pair):
    a, b = pair
    ttl_ms = int(100 * servers.time_factor())
    b.call("BF.ADD", "k", "a")
    b.call("PEXPIRE", "k", ttl_ms)
    a.call("WATCH", "k")
    assert b.call("EXISTS", "k") == 1
    servers.wait_until(lambda: b.call("EXISTS", "k") == 0, 5, "the end of k")
    assert broken(a)


def test_a_flush_leaves_watches_of_missing_keys_alone(pair):
    a, b = pair
    b.call("BF.ADD", "other", "a")
    a.call("WATCH", "missing")
    b.call("FLUSHALL")
    assert not broken(a)


def test_a_watch_is_for_one_database(pair):
    a, b = pair
    b.call("BF.ADD", "k", "a")
    a.call("WATCH", "k")
    b.call("SELECT", "1")
    b.call("BF.ADD", "k", "new")
    assert not broken(a)
    a.call("SELECT", "2")
    a.call("WATCH", "k")
    a.call("SELECT", "0")
    b.call("SELECT", "2")
    b.call("BF.ADD", "k", "x")
    assert broken(a)


def test_unwatch_discard_and_reset_forget(pair):
    a, b = pair
    for forget in (("UNWATCH",), ("MULTI", "DISCARD"), ("RESET",)):
        a.call("WATCH", "k")
        for command in forget:
            a.call(command)
        b.call("DEL", "k")
        b.call("BF.ADD", "k", "x")
        assert not broken(a)


def test_a_queue_with_a_mistake_is_refused_whole(pair):
    a, b = pair
    a.call("MULTI")
    assert a.call("BF.ADD", "k", "a") == b"QUEUED"
    assert isinstance(a.call("BF.ADD", "k"), resp.Error)
    assert isinstance(a.call("NOPE"), resp.Error)
    assert a.raw("EXEC") == (b"-EXECABORT Transaction discarded because of "
                             b"previous errors.\r\n")
    assert b.call("EXISTS", "k") == 0
    stats = b.call("INFO", "commandstats").decode()
    line = [x for x in stats.splitlines() if x.startswith("cmdstat_BF.ADD:")]
    assert not line or "rejected_calls=1" in line[0], line


def test_wrong_arity_counts_as_rejected(pair):
    a, _ = pair
    a.call("BF.ADD", "k", "a")
    a.call("BF.ADD", "k")
    a.call("BF.ADD", "k", "a")
    stats = a.call("INFO", "commandstats").decode()
    line = [x for x in stats.splitlines() if x.startswith("cmdstat_BF.ADD:")][0]
    assert "calls=2," in line and "rejected_calls=1" in line and \
        "failed_calls=0" in line


def test_the_replies_of_exec_keep_order_and_errors(pair):
    a, _ = pair
    a.call("MULTI")
    for command in (("BF.RESERVE", "k", "1e-9", "1", "NONSCALING"),
                    ("BF.ADD", "k", "a"), ("BF.ADD", "k", "b"),
                    ("BF.MADD", "k", "a", "b"), ("EXPIRE", "k", "x"),
                    ("BF.CARD", "k")):
        assert a.call(*command) == b"QUEUED"
    full = resp.Error("ERR non scaling filter is full")
    assert a.call("EXEC") == [
        b"OK", 1, full, [0, full],
        resp.Error("ERR value is not an integer or out of range"), 1]


def test_exec_is_one_step_for_others(server):
    """A reader never sees one of two keys that are written together."""
    stop = threading.Event()
    problems = []

    def write():
        with server.conn() as conn:
            while not stop.is_set():
                conn.pipeline([("MULTI",), ("BF.ADD", "x", "1"),
                               ("BF.ADD", "y", "1"), ("EXEC",)])
                conn.pipeline([("MULTI",), ("DEL", "x"), ("DEL", "y"),
                               ("EXEC",)])

    def read():
        with server.conn() as conn:
            for _ in range(1500):
                both = conn.call("EXISTS", "x", "y")
                if both not in (0, 2):
                    problems.append(both)
        stop.set()

    threads = [threading.Thread(target=f) for f in (write, write, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_check_and_set_never_loses_an_update(server):
    """The classic counter: WATCH, read, MULTI, write, EXEC, retry."""
    done = []

    def work(index):
        with server.conn() as conn:
            for _ in range(25):
                while True:
                    conn.call("WATCH", "counter")
                    count = conn.call("BF.CARD", "counter")
                    conn.call("MULTI")
                    conn.call("BF.ADD", "counter", "item-%d" % count)
                    if conn.call("EXEC") is not None:
                        break
        done.append(index)

    with server.conn() as conn:
        conn.call("BF.RESERVE", "counter", "1e-9", "1000")
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4
    with server.conn() as conn:
        assert conn.call("BF.CARD", "counter") == 100
