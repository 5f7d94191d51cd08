# SPDX-License-Identifier: BSD-3-Clause
#
# Passwords: the commands that work before AUTH, the replies of AUTH and HELLO, and
# the limits of an unauthenticated client. Compared with redis-server 7.0.15.

import socket
import threading
import time

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
    server = servers.Server("--requirepass", "secret",
                            "--auth-failure-delay", 0)
    oracle = None
    if servers.oracle_missing() is None:
        oracle = servers.Oracle("--requirepass", "secret")
    yield server, oracle
    if oracle:
        oracle.stop()
    server.stop()


def test_every_reply_before_and_after_auth_equals_redis(both):
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


def test_the_limits_before_auth_end_with_it(both):
    server, _ = both
    with server.conn() as conn:
        assert conn.raw("ECHO", "x" * 2048) == \
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


JUNK = {
    "ten long arguments": b"*10\r\n" + b"$16384\r\n" + b"x" * 16384,
    "arguments that fit": b"*10\r\n" + b"$300\r\n%b\r\n" % (b"x" * 300) * 9 +
                          b"$300\r\n" + b"x" * 200,
    "one that fits": b"*2\r\n$2048\r\n" + b"x" * 2048 + b"\r\n$900\r\nx",
    "a line": b"x" * 2900,
    "what is refused": b"PING\r\n" * 90,
    "behind a half": b"*2\r\n$4\r\nAUTH\r\n$1000\r\n" + b"x" * 990,
}


@pytest.mark.parametrize("junk", JUNK)
def test_a_client_without_a_password_takes_little_memory(start_server, junk):
    """Uses the server's own count, which includes its state of the
    connection."""
    count = 200
    server = start_server("--requirepass", "secret", "--threads", 1)
    with server.conn(password="secret") as conn:
        def used():
            return int(info(conn, "memory")["used_memory"])

        def come(more):
            conns = [server.conn() for _ in range(more)]
            for each in conns:
                each.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                each.send(JUNK[junk])
            servers.wait_until(quiet, 10, "all has been read")
            return conns

        def read_so_far():
            return int(info(conn, "stats")["total_net_input_bytes"])

        def quiet():
            """The server has read only the two questions."""
            before = read_so_far()
            time.sleep(0.05)
            return read_so_far() - before < 100

        conns = come(40)  # kept for the next connection
        before = used()
        conns += come(count)
        each = (used() - before) / count
        print("%s: %d bytes" % (junk, each))
        assert each <= 16384
        for other in conns:
            other.close()


def info(conn, section):
    text = conn.call("INFO", section).decode()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def test_a_hundred_refused_commands_are_the_last(both):
    server, _ = both
    refused = b"-NOAUTH Authentication required.\r\n"
    with server.conn() as conn:
        conn.send(resp.command("PING") * 200)
        assert conn.read_to_close() == refused * 100
    with server.conn() as conn:  # an authenticated client has a new hundred
        for _ in range(3):
            for _ in range(60):
                assert conn.raw("PING") == refused
            assert conn.call("AUTH", "secret") == b"OK"
            assert conn.call("PING") == b"PONG"
            assert conn.call("RESET") == b"RESET"


def test_a_client_without_a_password_is_cut_in_time(start_server):
    server = start_server("--requirepass", "secret", "--auth-timeout", 1)
    began = time.monotonic()    # the connections are not older
    with server.conn(password="secret") as good, server.conn() as silent, \
            server.conn() as slow:
        servers.wait_until(lambda: slow.is_cut_after(b"\r\n"), 15,
                           "the trickle is cut")
        assert silent.read_to_close() == b""
        assert time.monotonic() - began > 0.9
        assert good.call("PING") == b"PONG"
        assert info(good, "stats")["request_timeouts"] == "2"


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


def test_a_right_password_resets_the_count(both):
    server, _ = both
    with server.conn() as conn:
        for _ in range(3):
            for _ in range(4):
                assert conn.raw("AUTH", "wrong").startswith(b"-WRONGPASS ")
            assert conn.raw("AUTH", "secret") == b"+OK\r\n"
            assert conn.raw("RESET") == b"+RESET\r\n"


class Hoarder:
    """Asks for long replies with short requests and reads none."""

    REQUEST = b"HELLO\r\n"

    def __init__(self, server, password=None):
        self.conn = server.conn(password=password)
        self.conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sent = 0

    def push(self):
        """Sends until the server accepts no more for now."""
        data = self.REQUEST * 5000
        self.conn.sock.setblocking(False)
        try:
            while True:
                at = self.sent % len(self.REQUEST)
                self.sent += self.conn.sock.send(data[at:])
        except (BlockingIOError, ConnectionError):
            pass


def test_unread_replies_of_an_unauthenticated_client_are_few(start_server):
    """The limits are lower than those of clients that may use memory."""
    server = start_server("--requirepass", "secret",
                          "--client-output-buffer-limit", "normal 64mb 8mb 600")
    with server.conn(password="secret") as good:
        hoarders = [Hoarder(server) for _ in range(10)]
        hoarders.append(Hoarder(server, "secret"))
        me = good.call("CLIENT", "ID")
        most = {}

        def cut():
            for hoarder in hoarders:
                hoarder.push()
            for row in good.call("CLIENT", "LIST").decode().splitlines():
                fields = dict(f.split("=", 1) for f in row.split(" "))
                if int(fields["id"]) > me:
                    omem = int(fields["omem"])
                    most[fields["id"]] = max(most.get(fields["id"], 0), omem)
            return most and max(most.values()) > 8 << 20 and int(info(
                good, "stats")["client_output_buffer_limit_disconnections"])

        servers.wait_until(cut, 20, "the unknown are cut, the known one not")
        amounts = sorted(most.values())
        print(amounts)
        assert len([a for a in amounts if a > 1024]) == 1
        for hoarder in hoarders:
            hoarder.conn.close()


def test_config_set_requirepass_applies_to_new_connections(start_server):
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


# ---- guessing ---------------------------------------------------------------

def test_guesses_are_few_and_lock_no_client_out(start_server):
    """Ten clients guess as fast as they can, with a new connection for each
    guess and a short wait for the reply. One client knows the password. All
    have one address, as behind a proxy."""
    server = start_server("--requirepass", "secret",
                          "--auth-failure-delay", 500)
    stop = threading.Event()

    def guess():
        while not stop.is_set():
            try:
                with server.conn(timeout=0.2) as conn:
                    conn.send(resp.command("AUTH", "wrong"))
                    conn.sock.recv(100)
            except OSError:
                pass

    def failures():
        return int(info(good, "stats")["acl_access_denied_auth"])

    with server.conn(password="secret") as good:
        for _ in range(5):
            with server.conn() as conn:
                for _ in range(4):
                    conn.raw("AUTH", "wrong")
        threads = [threading.Thread(target=guess) for _ in range(10)]
        for thread in threads:
            thread.start()
        before, began = failures(), time.monotonic()
        for words in [("AUTH", "secret"),
                      ("HELLO", "3", "AUTH", "default", "secret")] * 3:
            start = time.monotonic()
            with server.conn() as conn:
                answer = conn.call(*words)
                assert answer == b"OK" or answer[b"proto"] == 3
                waited = time.monotonic() - start
                assert 0.4 < waited < 3 * servers.time_factor()
                assert conn.call("PING") == b"PONG"
        rate = (failures() - before) / (time.monotonic() - began)
        stop.set()
        for thread in threads:
            thread.join()
        print("%.0f guesses a second" % rate)
        # Ten clients get two replies a second. With a reconnection every 0.2 s
        # some more are on their way.
        assert rate < 60
        assert good.call("CONFIG", "SET", "auth-failure-delay", 0) == b"OK"
        start = time.monotonic()
        with server.conn() as conn:
            assert conn.call("AUTH", "secret") == b"OK"
        assert time.monotonic() - start < 0.4 * servers.time_factor()
