# SPDX-License-Identifier: BSD-3-Clause
#
# A password: what works before AUTH, what AUTH and HELLO answer, and how
# little an unauthenticated client may send. Compared with redis-server 7.0.15.

import socket

import pytest

from lib import resp, servers

STEPS = [
    ("PING",), ("ping", "x"), ("ECHO", "x"), ("NOPE",), ("ECHO",),
    ("CLIENT", "ID"), ("COMMAND", "COUNT"), ("SELECT", "1"), ("EXISTS", "k"),
    ("MULTI",), ("EXEC",), ("DBSIZE",), ("RESET",), ("HELLO",), ("HELLO", "3"),
    ("HELLO", "2"), ("HELLO", "9"), ("HELLO", "3", "SETNAME", "x"),
    ("AUTH",), ("AUTH", "wrong"), ("AUTH", "nobody", "secret"),
    ("AUTH", "a", "b", "c"),
    ("HELLO", "3", "AUTH", "default", "wrong"),
    ("HELLO", "3", "AUTH", "nobody", "secret"), ("EXISTS", "k"),
    ("AUTH", "secret"), ("PING",), ("EXISTS", "k"), ("AUTH", "wrong"),
    ("AUTH", "default", "wrong"),
    ("EXISTS", "k"), ("AUTH", "default", "secret"), ("RESET",), ("EXISTS", "k"),
]


@pytest.fixture(scope="module")
def both():
    server = servers.Server("--requirepass", "secret")
    oracle = None
    if servers.oracle_missing() is None:
        oracle = servers.Oracle("--requirepass", "secret")
    yield server, oracle
    if oracle:
        oracle.stop()
    server.stop()


def test_before_and_after_auth_every_answer_is_that_of_redis(both):
    server, oracle = both
    if oracle is None:
        pytest.skip("oracle: " + servers.oracle_missing())
    with server.conn() as ours, oracle.conn() as theirs:
        for step in STEPS:
            assert ours.raw(*step) == theirs.raw(*step), step


def test_nothing_works_before_auth(both):
    server, _ = both
    with server.conn() as conn:
        for command in (("BF.ADD", "k", "a"), ("FLUSHALL",), ("INFO",),
                        ("CONFIG", "GET", "requirepass"), ("SHUTDOWN",),
                        ("BF.EXISTS", "k", "a"), ("MULTI",)):
            assert conn.raw(*command) == b"-NOAUTH Authentication required.\r\n"
        assert conn.raw("BF.ADD", "k") in (
            b"-NOAUTH Authentication required.\r\n",
            b"-ERR wrong number of arguments for 'BF.ADD' command\r\n")
        assert conn.raw("AUTH", "secret") == b"+OK\r\n"
        assert conn.raw("BF.ADD", "k", "a") == b":1\r\n"


def test_hello_authenticates_and_names(both):
    server, _ = both
    with server.conn() as conn:
        hello = conn.call("HELLO", "3", "AUTH", "default", "secret", "SETNAME",
                          "me")
        assert hello[b"proto"] == 3
        assert conn.call("CLIENT", "GETNAME") == b"me"


def test_quit_needs_no_password(both):
    server, _ = both
    with server.conn() as conn:
        assert conn.raw("QUIT") == b"+OK\r\n"
        assert conn.read_to_close() == b""


@pytest.mark.parametrize("data,answer", [
    (b"*11\r\n", b"-ERR Protocol error: unauthenticated multibulk length\r\n"),
    (b"*2\r\n$16385\r\n", b"-ERR Protocol error: unauthenticated bulk length\r\n"),
    (b"*1048576\r\n", b"-ERR Protocol error: unauthenticated multibulk length\r\n"),
])
def test_unauthenticated_requests_are_small(both, data, answer):
    for process in both:
        if process is None:
            continue
        with process.conn() as conn:
            conn.send(data)
            assert conn.read_to_close() == answer


def test_the_limits_before_auth_are_gone_after_it(both):
    server, _ = both
    with server.conn() as conn:
        assert conn.raw("ECHO", "x" * 16384) == \
            b"-NOAUTH Authentication required.\r\n"
        assert conn.call("AUTH", "secret") == b"OK"
        assert conn.call("ECHO", "x" * 100000) == b"x" * 100000
        conn.call("BF.RESERVE", "fifty", "1e-9", "50")
        assert conn.call("BF.MADD", "fifty", *range(50)) == [1] * 50


def test_the_limits_hold_in_the_read_that_brings_auth_and_end_with_it(both):
    server, _ = both
    with server.conn() as conn:
        conn.send(resp.command("AUTH", "secret") +
                  resp.command("BF.RESERVE", "same-read", "1e-9", "20") +
                  resp.command("BF.MADD", "same-read", *range(20)))
        assert conn.read() == b"OK"
        assert conn.read() == b"OK"
        assert conn.read() == [1] * 20


def test_unauthenticated_junk_keeps_no_memory(both):
    server, _ = both
    before = server.rss()
    conns = [server.conn() for _ in range(50)]
    for conn in conns:
        conn.send(b"*10\r\n" + b"$16384\r\n" + b"x" * 16384 + b"\r\n" + b"$9\r\n")
    with server.conn() as conn:
        assert conn.call("AUTH", "secret") == b"OK"
    grown = server.rss() - before
    for conn in conns:
        conn.close()
    assert grown < 50 * (256 << 10) * servers.time_factor()


@pytest.mark.parametrize("between", [None, ("RESET",), ("PING",),
                                     ("HELLO", "2")], ids=str)
def test_the_fifth_wrong_password_is_the_last(both, between):
    server, _ = both
    wrong = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
    with server.conn() as conn:
        for _ in range(4):
            assert conn.raw("AUTH", "wrong") == wrong
            if between:
                conn.raw(*between)
        conn.send(resp.command("AUTH", "wrong") +
                  resp.command("AUTH", "secret") + resp.command("PING"))
        assert conn.read_to_close() == wrong


def test_a_right_password_begins_the_count_anew(both):
    server, _ = both
    with server.conn() as conn:
        for _ in range(3):
            for _ in range(4):
                assert conn.raw("AUTH", "wrong").startswith(b"-WRONGPASS ")
            assert conn.raw("AUTH", "secret") == b"+OK\r\n"
            assert conn.raw("RESET") == b"+RESET\r\n"


class Hoarder:
    """Asks in few bytes for long replies and reads none."""

    REQUEST = b"HELLO\r\n"

    def __init__(self, server, password=None):
        self.conn = server.conn(password=password)
        self.conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sent = 0

    def push(self):
        """Sends until the server takes no more for now."""
        data = self.REQUEST * 5000
        self.conn.sock.setblocking(False)
        try:
            while True:
                at = self.sent % len(self.REQUEST)
                self.sent += self.conn.sock.send(data[at:])
        except BlockingIOError:
            pass


def test_replies_that_an_unauthenticated_client_leaves_are_few(start_server):
    """The limits are those of clients that may be trusted with memory."""
    server = start_server("--requirepass", "secret",
                          "--client-output-buffer-limit", "normal 64mb 8mb 600")
    with server.conn(password="secret") as good:
        hoarders = [Hoarder(server) for _ in range(10)]
        hoarders.append(Hoarder(server, "secret"))
        me = good.call("CLIENT", "ID")
        most = {}

        def full():
            for hoarder in hoarders:
                hoarder.push()
            for row in good.call("CLIENT", "LIST").decode().splitlines():
                fields = dict(f.split("=", 1) for f in row.split(" "))
                if int(fields["id"]) > me:
                    omem = int(fields["omem"])
                    most[fields["id"]] = max(most.get(fields["id"], 0), omem)
            amounts = sorted(most.values())
            return amounts[0] > 64 << 10 and amounts[-1] > 8 << 20

        servers.wait_until(full, 20, "all have much to read")
        full()
        amounts = sorted(most.values())
        print(amounts)
        assert len(amounts) == 11
        # The bound, what one flush holds, and one reply.
        assert amounts[9] <= (64 + 64 + 1) << 10
        for hoarder in hoarders:
            hoarder.conn.close()


def test_config_set_requirepass_asks_new_connections(start_server):
    server = start_server()
    with server.conn() as old:
        assert old.call("PING") == b"PONG"
        assert old.call("CONFIG", "SET", "requirepass", "pw") == b"OK"
        assert old.call("PING") == b"PONG"
        with server.conn() as new:
            assert new.raw("PING") == b"-NOAUTH Authentication required.\r\n"
            assert new.call("AUTH", "pw") == b"OK"
        assert old.call("CONFIG", "SET", "requirepass", "") == b"OK"
        with server.conn() as new:
            assert new.call("PING") == b"PONG"
