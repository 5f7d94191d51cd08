# SPDX-License-Identifier: BSD-3-Clause
#
# SCAN's guarantee: it returns a key that exists from the first call to the last at
# least once, whatever happens to other keys meanwhile, and the scan ends.

import threading

import pytest

from lib import resp

KEYS = 20000


def scan_all(conn, *options, limit=200000):
    """Returns all keys, and the number of calls."""
    cursor, keys, calls = b"0", [], 0
    while True:
        reply = conn.call("SCAN", cursor, *options)
        assert isinstance(reply, list) and len(reply) == 2, reply
        cursor = reply[0]
        assert cursor.isdigit() and int(cursor) < 1 << 53
        keys += reply[1]
        calls += 1
        assert calls < limit, "the scan does not end"
        if cursor == b"0":
            return keys, calls


def fill(conn, prefix, count):
    names = ["%s%d" % (prefix, i) for i in range(count)]
    for start in range(0, count, 1000):
        conn.pipeline([("BF.ADD", n, "x") for n in names[start:start + 1000]])
    return {n.encode() for n in names}


def test_without_change_every_key_comes_exactly_once(server):
    with server.conn() as conn:
        names = fill(conn, "k", 3000)
        keys, calls = scan_all(conn)
        assert sorted(keys) == sorted(names)
        assert calls < 3000
        assert {k for k in scan_all(conn, "COUNT", "1")[0]} == names
        keys, calls = scan_all(conn, "COUNT", "1000000")
        assert set(keys) == names and calls <= 1 + len(names) // 1000
        assert set(scan_all(conn, "MATCH", "k1?")[0]) == \
            {b"k1%d" % i for i in range(10)}
        assert set(scan_all(conn, "TYPE", "bloomfltr")[0]) == names
        assert scan_all(conn, "TYPE", "string")[0] == []
        conn.call("SELECT", "1")
        assert scan_all(conn)[0] == []


@pytest.mark.parametrize("count", ["7", "100", "1000"])
def test_keys_that_stay_are_seen_while_others_come_and_go(server, count):
    stop = threading.Event()
    problems = []

    def churn(index):
        with server.conn() as conn:
            round_ = 0
            while not stop.is_set():
                names = ["churn%d-%d-%d" % (index, round_, i)
                         for i in range(500)]
                conn.pipeline([("BF.RESERVE", n, "0.5", "1") for n in names])
                conn.pipeline([("DEL", n) for n in names])
                round_ += 1

    def scan(names):
        with server.conn() as conn:
            keys, _ = scan_all(conn, "COUNT", count)
            missing = names - set(keys)
            if missing:
                problems.append(sorted(missing)[:5])

    with server.conn() as conn:
        stay = fill(conn, "stay", KEYS if count != "7" else KEYS // 10)
    churners = [threading.Thread(target=churn, args=(i,)) for i in range(2)]
    scanners = [threading.Thread(target=scan, args=(stay,)) for _ in range(3)]
    for thread in churners + scanners:
        thread.start()
    for thread in scanners:
        thread.join()
    stop.set()
    for thread in churners:
        thread.join()
    assert not problems, problems


def test_keys_that_stay_are_seen_while_the_table_grows_and_empties(server):
    with server.conn() as conn:
        stay = fill(conn, "stay", 500)
        cursor, keys = b"0", []
        step = 0
        while True:
            cursor, got = conn.call("SCAN", cursor, "COUNT", "20")
            keys += got
            if cursor == b"0":
                break
            if step < 30:
                fill(conn, "grow%d-" % step, 500)
            elif step < 60:
                conn.pipeline([("DEL", "grow%d-%d" % (step - 30, i))
                               for i in range(500)])
            step += 1
            assert step < 100000
        assert stay <= set(keys)


def test_foreign_cursors_do_no_harm(server):
    with server.conn() as conn:
        fill(conn, "k", 100)
        for cursor in (1, 12345, (1 << 53) - 1, 1 << 53, (1 << 63) - 1,
                       (1 << 64) - 1):
            reply = conn.call("SCAN", cursor)
            assert isinstance(reply, (list, resp.Error)), cursor
        for cursor in ("x", "1x", " 1", "1.5"):
            assert conn.raw("SCAN", cursor) == b"-ERR invalid cursor\r\n"


def test_keys_over_many_keys_lets_other_clients_run(server):
    """KEYS runs in steps: a PING on the same server gets its reply in
    between."""
    with server.conn() as conn, server.conn() as other:
        names = fill(conn, "k", KEYS)
        conn.send(resp.command("KEYS", "*") * 20)
        for _ in range(20):
            assert other.call("PING") == b"PONG"
        for _ in range(20):
            assert set(conn.read()) == names
