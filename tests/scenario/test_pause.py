# SPDX-License-Identifier: BSD-3-Clause
#
# CLIENT PAUSE with many clients: paused commands wait in order and none is lost, and
# other commands go on. Also CLIENT UNBLOCK.

import threading
import time

import pytest

from lib import resp, servers

CLIENTS = 8


@pytest.fixture
def server():
    one = servers.Server("--threads", 4)
    yield one
    one.stop()


def info(server, section, name):
    with server.conn() as conn:
        text = conn.call("INFO", section).decode()
    return int(text.split(name + ":")[1].split()[0])


def blocked(conn):
    text = conn.call("INFO", "clients").decode()
    return int(text.split("blocked_clients:")[1].split()[0])


@pytest.mark.port
def test_writes_wait_reads_go_on_and_nothing_is_lost(server):
    stop = threading.Event()
    acked = [0] * CLIENTS
    errors = []

    def write(at):
        """Pipelines of writes and reads; every reply is checked."""
        with server.conn() as conn:
            number = 0
            while not stop.is_set():
                conn.send(b"".join(
                    resp.command("BF.ADD", "k%d" % at, str(number + i)) +
                    resp.command("ECHO", "%d" % (number + i))
                    for i in range(20)))
                for i in range(20):
                    added, echoed = conn.read(), conn.read()
                    if added not in (0, 1) or echoed != b"%d" % (number + i):
                        errors.append((at, number + i, added, echoed))
                        return
                number += 20
                acked[at] = number

    threads = [threading.Thread(target=write, args=(at,))
               for at in range(CLIENTS)]
    with server.conn() as conn:
        for at in range(CLIENTS):
            assert conn.call("BF.RESERVE", "k%d" % at, "0.001",
                             100000) == b"OK"
        for thread in threads:
            thread.start()
        servers.wait_until(lambda: min(acked) > 100)
        for _ in range(5):
            assert conn.call("CLIENT", "PAUSE", 60000, "WRITE") == b"OK"
            # After the reply no data changes any more, and reads are served.
            before = [conn.call("BF.CARD", "k%d" % at)
                      for at in range(CLIENTS)]
            servers.wait_until(lambda: blocked(conn) == CLIENTS)
            for at in range(CLIENTS):
                assert conn.call("BF.EXISTS", "k%d" % at, "0") == 1
            after = [conn.call("BF.CARD", "k%d" % at) for at in range(CLIENTS)]
            assert after == before
            lines = conn.call("CLIENT", "LIST").decode().splitlines()
            assert sum(" flags=b " in line for line in lines) == CLIENTS
            seen = list(acked)
            assert conn.call("CLIENT", "UNPAUSE") == b"OK"
            servers.wait_until(
                lambda: all(a > s for a, s in zip(acked, seen)))
        stop.set()
        for thread in threads:
            thread.join()
        assert not errors
        for at in range(CLIENTS):
            items = [str(i) for i in range(acked[at])]
            for start in range(0, len(items), 5000):
                got = conn.call("BF.MEXISTS", "k%d" % at,
                                *items[start:start + 5000])
                assert all(got)
        assert blocked(conn) == 0


def test_a_pause_of_everything_ends_by_itself(server):
    with server.conn() as conn, server.conn() as other:
        began = time.monotonic()
        assert conn.call("CLIENT", "PAUSE", 300) == b"OK"
        other.send(resp.command("PING") + resp.command("BF.ADD", "k", "a") +
                   resp.command("PING"))
        assert conn.call("BF.EXISTS", "k", "nothing") == 0
        assert time.monotonic() - began > 0.29
        assert [other.read() for _ in range(3)] == [b"PONG", 1, b"PONG"]
        assert time.monotonic() - began < 2 * servers.time_factor()


def test_a_transaction_waits_if_it_writes(server):
    with server.conn() as conn, server.conn() as writer, \
            server.conn() as reader:
        for each, words in ((writer, ("BF.ADD", "k", "a")),
                            (reader, ("BF.EXISTS", "k", "a"))):
            assert each.call("MULTI") == b"OK"
            assert each.call(*words) == b"QUEUED"
        assert conn.call("CLIENT", "PAUSE", 60000, "WRITE") == b"OK"
        assert reader.call("EXEC") == [0]
        writer.send(resp.command("EXEC"))
        servers.wait_until(lambda: blocked(conn) == 1)
        assert conn.call("BF.EXISTS", "k", "a") == 0
        assert conn.call("CLIENT", "UNPAUSE") == b"OK"
        assert writer.read() == [1]


def test_publish_waits_with_the_writes(server):
    with server.conn() as conn, server.conn() as other:
        assert conn.call("CLIENT", "PAUSE", 60000, "WRITE") == b"OK"
        other.send(resp.command("PUBLISH", "c", "x"))
        servers.wait_until(lambda: blocked(conn) == 1)
        assert conn.call("CLIENT", "UNPAUSE") == b"OK"
        assert other.read() == 0


def test_expired_keys_are_invisible_and_stay_during_a_pause(server):
    with server.conn() as conn:
        for number in range(50):
            conn.call("BF.ADD", "k%d" % number, "a")
            conn.call("PEXPIRE", "k%d" % number, 100)
        assert conn.call("CLIENT", "PAUSE", 60000, "WRITE") == b"OK"
        servers.wait_until(
            lambda: conn.call("EXISTS", *["k%d" % n for n in range(50)]) == 0)
        before = info(server, "stats", "expired_keys")
        time.sleep(0.4)  # several times as long as a removal usually takes
        assert info(server, "stats", "expired_keys") == before
        assert conn.call("CLIENT", "UNPAUSE") == b"OK"
        servers.wait_until(
            lambda: info(server, "stats", "expired_keys") == 50)


def cpu_seconds(server):
    with open("/proc/%d/stat" % server.child.pid) as file:
        fields = file.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_paused_clients_use_almost_no_cpu(server):
    conns = [server.conn() for _ in range(400)]
    with server.conn() as conn:
        assert conn.call("CLIENT", "PAUSE", 60000, "WRITE") == b"OK"
        for at, each in enumerate(conns):
            each.send(resp.command("BF.ADD", "k", str(at)) * 10 +
                      resp.command("ECHO", str(at)))
        servers.wait_until(lambda: blocked(conn) == len(conns))
        before = cpu_seconds(server)
        time.sleep(2)
        used = cpu_seconds(server) - before
        print("cpu seconds in 2: %.2f" % used)
        if not servers.sanitized():
            assert used < 0.3
        assert conn.call("CLIENT", "UNPAUSE") == b"OK"
        for at, each in enumerate(conns):
            got = [each.read() for _ in range(11)]
            assert got[0] in (0, 1) and got[1:] == [0] * 9 + [b"%d" % at]
        assert blocked(conn) == 0
    for each in conns:
        each.close()


def test_a_paused_server_stops(server):
    with server.conn() as conn, server.conn() as other:
        assert conn.call("CLIENT", "PAUSE", 60000) == b"OK"
        other.send(resp.command("PING"))
        server.stop()


# ---- CLIENT UNBLOCK ---------------------------------------------------------

@pytest.mark.parametrize("words,reply", [
    (("WAIT", 1, 0), 0), (("WAITAOF", 0, 1, 0), [1, 0])])
def test_unblock_ends_a_wait(server, words, reply):
    with server.conn() as conn, server.conn() as waits:
        for how, want in (
                ((), reply), (("TIMEOUT",), reply),
                (("ERROR",), resp.Error(
                    "UNBLOCKED client unblocked via CLIENT UNBLOCK"))):
            number = waits.call("CLIENT", "ID")
            assert conn.call("CLIENT", "UNBLOCK", number) == 0
            waits.send(resp.command(*words) + resp.command("PING"))
            servers.wait_until(lambda: blocked(conn) == 1)
            assert conn.call("CLIENT", "UNBLOCK", number, *how) == 1
            assert conn.call("CLIENT", "UNBLOCK", number, *how) == 0
            assert waits.read() == want
            assert waits.read() == b"PONG"


def test_unblock_does_not_end_a_pause(server):
    with server.conn() as conn, server.conn() as waits:
        number = waits.call("CLIENT", "ID")
        assert conn.call("CLIENT", "PAUSE", 60000, "WRITE") == b"OK"
        waits.send(resp.command("BF.ADD", "k", "a"))
        servers.wait_until(lambda: blocked(conn) == 1)
        assert conn.call("CLIENT", "UNBLOCK", number) == 0
        assert conn.call("CLIENT", "UNPAUSE") == b"OK"
        assert waits.read() == 1


def test_a_pause_without_end_can_be_ended(start_server):
    """The client that began it can end it, another one can, and so can a later
    one that must authenticate first, as its library does."""
    server = start_server("--requirepass", "secret")
    with server.conn() as conn, server.conn() as other:
        for each in (conn, other):
            assert each.call("AUTH", "secret") == b"OK"
        assert conn.call("CLIENT", "PAUSE", 2 ** 53) == b"OK"
        other.send(resp.command("PING"))
        assert conn.call("CLIENT", "UNPAUSE") == b"OK"
        assert other.read() == b"PONG"
        assert conn.call("CLIENT", "PAUSE", 2 ** 53) == b"OK"
        assert other.call("CLIENT", "PAUSE", 2 ** 53, "WRITE") == b"OK"
        assert other.call("CLIENT", "UNPAUSE") == b"OK"
        assert conn.call("PING") == b"PONG"
        assert conn.call("CLIENT", "PAUSE", 2 ** 53) == b"OK"
        with server.conn() as late:
            hello = late.call("HELLO", "3", "AUTH", "default", "secret")
            assert hello[b"proto"] == 3
            assert late.call("CLIENT", "SETINFO", "LIB-NAME", "x") == b"OK"
            assert late.call("CLIENT", "UNPAUSE") == b"OK"
        assert other.call("BF.ADD", "k", "a") == 1


@pytest.mark.port
@pytest.mark.parametrize("door", ["unix", "admin"])
def test_the_operator_can_connect_and_is_not_paused(start_server, door):
    """Silent clients use all connections, and all commands are paused: the
    operator still gets a connection, and all commands."""
    admin = servers.free_port()
    options = ["--maxclients", 50, "--unixsocket", "{folder}/sock"]
    if door == "admin":
        options += ["--admin-port", admin]
    server = start_server(*options)
    address = ("127.0.0.1", admin) if door == "admin" else \
        server.folder + "/sock"
    with server.conn() as last:
        def connected(count):
            return b"connected_clients:%d\r\n" % count in \
                last.call("INFO", "clients")
        servers.wait_until(lambda: connected(1), 10, "nobody else is here")
        silent = [server.conn() for _ in range(49)]
        servers.wait_until(lambda: connected(50), 10, "all are accepted")
        assert last.call("CLIENT", "PAUSE", 2 ** 53) == b"OK"
        with server.conn() as late:
            assert late.read_to_close().startswith(b"-ERR max number")
        with resp.Conn(address) as operator:
            assert operator.call("PING") == b"PONG"
            assert operator.call("BF.ADD", "k", "a") == 1
            assert operator.call("CONFIG", "SET", "maxclients", 60) == b"OK"
            assert operator.call("CLIENT", "UNPAUSE") == b"OK"
        assert last.call("BF.CARD", "k") == 1
    for conn in silent:
        conn.close()


def test_a_save_ends_however_fast_filters_are_copied(start_server):
    """Clients copy filters all the time, each of which a save has to copy once
    more. It must end, and adds must go on meanwhile."""
    server = start_server("--threads", 4, "--appendonly", "no")
    stop = threading.Event()
    counts = {"copies": 0, "adds": 0}
    errors = []

    def work(name, *words):
        with server.conn() as conn:
            while not stop.is_set():
                replies = conn.pipeline([words] * 5)
                counts[name] += len(replies)
                if any(isinstance(reply, resp.Error) for reply in replies):
                    errors.append(replies)
                    return

    with server.conn() as conn:
        for i in range(4):  # 2.4 MB each
            conn.call("BF.RESERVE", "from%d" % i, "0.01", 2000000)
            conn.call("BF.ADD", "from%d" % i, "x")
        threads = [threading.Thread(target=work, args=(
            "copies", "COPY", "from%d" % i, "to%d" % i, "REPLACE"))
            for i in range(4)]
        threads += [threading.Thread(target=work, args=(
            "adds", "BF.ADD", "adds", "item"))]
        for thread in threads:
            thread.start()
        try:
            servers.wait_until(lambda: counts["copies"] > 0)
            for saves in (1, 2):
                before = dict(counts)
                conn.call("BGSAVE")
                servers.wait_until(
                    lambda: info(server, "persistence", "rdb_saves") == saves,
                    60, "the save")
                servers.wait_until(
                    lambda: counts["adds"] > before["adds"] and
                    counts["copies"] > before["copies"], 60, "more work")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert not errors
        text = conn.call("INFO", "persistence").decode()
        assert "current_save_parks:none" in text
        assert "rdb_last_bgsave_status:ok" in text
