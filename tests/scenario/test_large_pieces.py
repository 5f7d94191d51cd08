# SPDX-License-Identifier: BSD-3-Clause
#
# Commands on large filters and many names run in parts, so that other clients are
# served in between. Their result is the same as in one piece: on the server, in the
# journal and on a replica.

import struct
import threading

import pytest

from lib import crash, resp

CAPACITY = 20_000_000  # some 24 MB
ITEMS = [b"item:%d" % i for i in range(20_000)]


def between(server, *words):
    """Returns the reply, and how many PINGs of another client got theirs
    before."""
    with server.conn() as slow, server.conn() as other:
        slow.send(resp.command(*words))
        reader = threading.Thread(target=lambda: replies.append(slow.read()))
        replies, pings = [], 0
        reader.start()
        while reader.is_alive():
            assert other.call("PING") == b"PONG"
            pings += 1
        reader.join()
        return replies[0], pings


def lets_others_in(server, words_of, expected):
    """Tells whether several PINGs run in between, in one of some attempts. In
    one piece, with one thread, it would be one or two."""
    for attempt in range(20):
        reply, pings = between(server, *words_of(attempt))
        assert reply == expected or attempt > 0
        if pings > 3:
            return True
    return False


@pytest.fixture(name="large")
def fixture_large(start_server):
    server = start_server(threads=1)
    with server.conn() as conn:
        conn.call("BF.RESERVE", "source", "0.01", CAPACITY)
        conn.call("BF.MADD", "source", *ITEMS)
        yield server, conn


def test_copy_restore_and_merge_let_other_clients_run(large):
    server, conn = large
    payload = conn.call("DUMP", "source")
    assert lets_others_in(
        server, lambda n: ("COPY", "source", "copy:%d" % n), 1)
    assert lets_others_in(
        server, lambda n: ("RESTORE", "restored:%d" % n, 0, payload), b"OK")
    assert lets_others_in(
        server, lambda n: ("BF.MERGE", "merged:%d" % n, "source"), b"OK")
    for name in ("copy:0", "restored:0", "merged:0"):
        assert conn.call("DUMP", name)[200:-8] == payload[200:-8]
        assert conn.call("BF.MEXISTS", name, *ITEMS) == [1] * len(ITEMS)
    damaged = payload[:-100] + b"x" + payload[-99:]
    assert between(server, "RESTORE", "no", 0, damaged)[0] == resp.Error(
        "ERR DUMP payload version or checksum are wrong")
    assert conn.call("EXISTS", "no") == 0


def bf_load_of(payload, capacity, items):
    """Makes the payload of BF.LOAD of a DUMP of one layer, whose array is last."""
    at = next(at for at in range(200) if struct.unpack_from(
        "<Q", payload, at + 1)[0] == len(payload) - 11 - at - 45)
    array = payload[at:-11]
    return b"\1" + struct.pack("<IddBQQ", 2, 0.01, 0.5, 0, 1, len(array)) + \
        array + struct.pack("<qq", items, capacity)


@pytest.mark.parametrize("layout", ["redisbloom", "valkeybloom"])
def test_foreign_filters_are_restored_and_loaded_in_parts(start_server, layout):
    server = start_server("--bloom-layout", layout,
                          "--bf.bloom-use-random-seed", "no", threads=1)
    with server.conn() as conn:
        conn.call("BF.RESERVE", "source", "0.01", CAPACITY)
        conn.call("BF.MADD", "source", *ITEMS)
        payload = conn.call("DUMP", "source")
        assert lets_others_in(
            server, lambda n: ("RESTORE", "restored:%d" % n, 0, payload), b"OK")
        assert conn.call("DUMP", "restored:0") == payload
        damaged = payload[:-100] + bytes([payload[-100] ^ 1]) + payload[-99:]
        assert between(server, "RESTORE", "no", 0, damaged)[0] == resp.Error(
            "ERR DUMP payload version or checksum are wrong")
        if layout == "valkeybloom":
            load = bf_load_of(payload, CAPACITY, conn.call("BF.CARD", "source"))
            assert lets_others_in(
                server, lambda n: ("BF.LOAD", "loaded:%d" % n, load), b"OK")
            assert conn.call("DUMP", "loaded:0") == payload
            assert between(server, "BF.LOAD", "no", load[:-1])[0] == resp.Error(
                "ERR bloom object decoding failed")
            assert between(server, "BF.LOAD", "source", load)[0] == resp.Error(
                "BUSYKEY Target key name already exists.")
        assert conn.call("EXISTS", "no") == 0
        conn.call("BF.RESET", "source")
        assert conn.call("BF.CARD", "source") == 0
        assert conn.call("BF.MEXISTS", "source", *ITEMS) == [0] * len(ITEMS)
        conn.call("BF.MADD", "source", *ITEMS)
        assert conn.call("DUMP", "source") == payload


def test_commands_of_many_names_let_other_clients_run(start_server):
    server = start_server(threads=1)
    names = [b"name:%d" % i for i in range(50_000)]
    with server.conn() as conn:
        for first in range(0, len(names), 1000):
            conn.send(b"".join(resp.command("BF.RESERVE", name, "0.01", 10)
                               for name in names[first:first + 1000]))
            for _ in range(1000):
                conn.read()
        for word in ("EXISTS", "TOUCH", "UNLINK"):
            assert lets_others_in(
                server, lambda _, word=word: (word, *names), len(names))
        assert conn.call("DBSIZE") == 0


def test_a_merge_has_a_limit(large):
    _, conn = large
    conn.call("CONFIG", "SET", "bf.max-merge-bytes", "40mb")
    conn.call("COPY", "source", "copy")
    assert conn.call("BF.MERGE", "one", "source") == b"OK"
    for into in ("new", "copy"):
        assert conn.call("BF.MERGE", into, "source", "copy", "one") == \
            resp.Error("ERR cannot merge: the filters together are larger than "
                       "bf.max-merge-bytes")
    assert conn.call("EXISTS", "new") == 0


def test_writes_to_a_copy_survive_a_kill():
    with crash.Store("--appendonly", "yes", "--appendfsync", "always",
                     "--threads", "2") as store:
        store.start()
        stop = threading.Event()

        def write():
            with store.conn() as conn:
                count = 0
                while not stop.is_set():
                    conn.call("BF.ADD", "source", b"more:%d" % count)
                    count += 1

        with store.conn() as conn:
            conn.call("BF.RESERVE", "source", "0.01", CAPACITY)
            writer = threading.Thread(target=write)
            writer.start()
            try:
                copies = ["copy:%d" % i for i in range(3)]
                for name in copies:
                    assert conn.call("COPY", "source", name) == 1
            finally:
                stop.set()
                writer.join()
            before = [(conn.call("BF.CARD", name), conn.call("DUMP", name))
                      for name in copies]
        store.kill()
        store.start()
        with store.conn() as conn:
            assert [(conn.call("BF.CARD", name), conn.call("DUMP", name))
                    for name in copies] == before
        store.assert_healthy()
