# SPDX-License-Identifier: BSD-3-Clause
#
# DEBUG: it pauses the whole server, compares servers, and writes all data to the disk
# and loads it again, while other clients are active.

import os
import signal
import threading
import time

import pytest

from lib import resp, servers

ALLOW = ("--enable-debug-command", "local")


@pytest.fixture
def server():
    one = servers.Server(*ALLOW, "--threads", 4)
    yield one
    one.stop()


def digest(server):
    with server.conn() as conn:
        return conn.call("DEBUG", "DIGEST")


def test_sleep_stops_all_clients(server):
    with server.conn() as conn:
        others = [server.conn() for _ in range(8)]  # on all threads
        began = time.monotonic()
        conn.send(resp.command("DEBUG", "SLEEP", "0.5"))
        time.sleep(0.1)
        for each in others:
            each.send(resp.command("PING"))
        assert conn.read() == b"OK"
        for each in others:
            assert each.read() == b"PONG"
            assert time.monotonic() - began > 0.45
            each.close()


def test_replies_before_a_sleep_do_not_wait_for_it():
    server = servers.Server(*ALLOW, "--threads", 1)
    try:
        with server.conn() as first, server.conn() as second, \
                server.conn() as third:
            first.send(resp.command("DEBUG", "SLEEP", "0.3"))
            time.sleep(0.1)  # both replies have arrived when it ends
            second.send(resp.command("PING"))
            time.sleep(0.1)
            third.send(resp.command("DEBUG", "SLEEP", "1"))
            assert first.read() == b"OK"
            assert second.read() == b"PONG"
            answered = time.monotonic()
            assert third.read() == b"OK"
            assert time.monotonic() - answered > 0.5
    finally:
        server.stop()


def fill(server, order):
    with server.conn() as conn:
        conn.call("CONFIG", "SET", "bf.bloom-use-random-seed", "no")
        for number in order:
            conn.call("SELECT", number % 3)
            conn.call("BF.RESERVE", "k%d" % number, "0.01", 10 + number)
            for item in range(number):
                conn.call("BF.ADD", "k%d" % number, "item%d" % item)
            if number % 4 == 0:
                conn.call("PEXPIREAT", "k%d" % number, 32503680000000 + number)


def test_equal_data_has_equal_digests_and_every_difference_shows(server):
    second = servers.Server(*ALLOW, "--threads", 1)
    try:
        fill(server, range(60))
        fill(second, reversed(range(60)))
        same = digest(server)
        assert len(same) == 40 and same != b"0" * 40
        assert digest(second) == same
        seen = {same}
        with second.conn() as conn:
            conn.call("SELECT", 1)
            for words in (("BF.ADD", "k7", "new"),
                          ("PEXPIREAT", "k7", 32503680000000),
                          ("PEXPIREAT", "k7", 32503680000001),
                          ("PERSIST", "k7"), ("RENAME", "k7", "k7b"),
                          ("SWAPDB", 1, 5), ("FLUSHDB",)):
                reply = conn.call(*words)
                assert not isinstance(reply, resp.Error), words
                got = digest(second)
                if words[0] == "FLUSHDB":  # db 1 is empty after the swap
                    assert got in seen
                elif words[0] == "PERSIST":
                    assert got in seen  # the value before BF.ADD
                else:
                    assert got not in seen, words
                seen.add(got)
            # Expired keys do not count, removed or not.
            conn.call("SELECT", 0)
            before = digest(second)
            conn.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            conn.call("BF.ADD", "short", "x")
            assert digest(second) != before
            conn.call("PEXPIRE", "short", 1)
            servers.wait_until(lambda: conn.call("EXISTS", "short") == 0)
            assert digest(second) == before
            # A copy under another name has the same value, and so has a copy
            # made with DUMP.
            conn.call("COPY", "k6", "k6copy")
            one, two = conn.call("DEBUG", "DIGEST-VALUE", "k6", "k6copy")
            assert one == two
            dump = conn.call("DUMP", "k6")
            conn.call("RESTORE", "k6third", 0, dump)
            assert conn.call("DEBUG", "DIGEST-VALUE", "k6third") == [one]
    finally:
        second.stop()


@pytest.mark.parametrize("journal", ["no", "yes"])
def test_reload_keeps_everything_while_others_write(journal):
    server = servers.Server(*ALLOW, "--threads", 4, "--appendonly", journal,
                            "--appendfsync", "everysec", "--dir", "{folder}")
    stop = threading.Event()
    acked = [0] * 4
    errors = []

    def write(at):
        with server.conn() as conn:
            while not stop.is_set():
                number = acked[at]
                got = conn.call("BF.MADD", "load%d" % at,
                                *["%d" % i for i in range(number,
                                                          number + 50)])
                if isinstance(got, resp.Error):
                    errors.append(got)
                    return
                acked[at] += 50

    try:
        fill(server, range(60))
        before = digest(server)
        with server.conn() as conn:
            conn.timeout = 60 * servers.time_factor()
            assert conn.call("DEBUG", "RELOAD") == b"OK"
            assert digest(server) == before
            threads = [threading.Thread(target=write, args=(at,))
                       for at in range(4)]
            for thread in threads:
                thread.start()
            for _ in range(5):
                assert conn.call("DEBUG", "RELOAD") == b"OK"
            stop.set()
            for thread in threads:
                thread.join()
            assert not errors
            for at in range(4):
                got = conn.call("BF.MEXISTS", "load%d" % at,
                                *[str(i) for i in range(acked[at])])
                assert all(got)
            if journal == "yes":
                reply = conn.call("DEBUG", "RELOAD", "NOSAVE")
                assert "appendonly is on" in reply.args[0]
            before = digest(server)
        # The data on the disk is the same.
        server.child.send_signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        server.assert_healthy()
        again = servers.Process(server.argv, server.port, server.folder)
        again.wait_ready()
        if journal == "yes":
            assert digest(again) == before
        again.child.send_signal(signal.SIGTERM)
        assert again.wait_exit() == 0
    finally:
        server.kill()
        server.remove()


def test_a_damaged_snapshot_is_not_loaded_and_nothing_is_lost(start_server):
    server = start_server(*ALLOW, "--appendonly", "no")
    path = os.path.join(server.folder, "bloomery.snapshot")
    fill(server, range(20))
    with server.conn() as conn:
        assert conn.call("SAVE") == b"OK"
        before = digest(server)
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        reply = conn.call("DEBUG", "RELOAD", "NOSAVE")
        assert reply == resp.Error("ERR Error trying to load the RDB dump, "
                                   "check server logs.")
        assert digest(server) == before
        assert b"did not reload" in server.log()
        assert conn.call("DEBUG", "RELOAD") == b"OK"
        assert digest(server) == before


def test_a_watch_does_not_survive_a_reload(server):
    with server.conn() as conn, server.conn() as other:
        conn.call("BF.ADD", "k", "a")
        assert conn.call("WATCH", "k") == b"OK"
        assert other.call("DEBUG", "RELOAD") == b"OK"
        assert conn.call("MULTI") == b"OK"
        assert conn.call("BF.EXISTS", "k", "a") == b"QUEUED"
        assert conn.call("EXEC") is None


@pytest.mark.parametrize("words", [("RELOAD",), ("RELOAD", "NOSAVE")])
def test_a_reload_invalidates_client_caches(start_server, words):
    server = start_server(*ALLOW, "--appendonly", "no")
    with server.conn() as conn, server.conn() as cache:
        conn.call("BF.ADD", "k", "a")
        assert conn.call("SAVE") == b"OK"
        cache.call("HELLO", 3)
        assert cache.call("CLIENT", "TRACKING", "ON") == b"OK"
        conn.call("BF.ADD", "k", "b")
        assert cache.call("BF.EXISTS", "k", "b") in (1, True)
        assert conn.call("DEBUG", *words) == b"OK"
        pushed = cache.read()
        assert b"invalidate" in repr(pushed).encode(), pushed
        assert "None" in repr(pushed), pushed
        conn.call("BF.EXISTS", "k", "b")


def test_debug_is_refused_by_default_even_before_the_password():
    server = servers.Server("--requirepass", "secret", "--threads", 1)
    try:
        with server.conn() as conn:
            reply = conn.call("DEBUG", "DIGEST")
            assert reply.args[0].startswith("ERR DEBUG command not allowed.")
    finally:
        server.stop()
