# SPDX-License-Identifier: BSD-3-Clause
#
# The protocol itself: invalid requests, partial requests, and requests that only
# declare a large size. The same bytes go to redis-server 7.0.15 if it is available.
# Both servers must give equal replies, and both or neither must close the connection.

import random
import socket
import time

import pytest

from lib import resp, servers

PING = b"*1\r\n$4\r\nPING\r\n"

# name, bytes, the whole reply, "closed" or "open"
CASES = [
    ("count_too_large", b"*2147483648\r\n",
     b"-ERR Protocol error: invalid multibulk length\r\n", "closed"),
    ("count_beyond_64_bits", b"*99999999999999999999\r\n",
     b"-ERR Protocol error: invalid multibulk length\r\n", "closed"),
    ("count_below_64_bits", b"*-9223372036854775809\r\n",
     b"-ERR Protocol error: invalid multibulk length\r\n", "closed"),
    ("count_negative", b"*-5\r\n" + PING, b"+PONG\r\n", "open"),
    ("count_no_number", b"*x\r\n",
     b"-ERR Protocol error: invalid multibulk length\r\n", "closed"),
    ("count_empty", b"*\r\n",
     b"-ERR Protocol error: invalid multibulk length\r\n", "closed"),
    ("count_leading_zero", b"*01\r\n$4\r\nPING\r\n",
     b"-ERR Protocol error: invalid multibulk length\r\n", "closed"),
    ("count_plus", b"*+1\r\n$4\r\nPING\r\n",
     b"-ERR Protocol error: invalid multibulk length\r\n", "closed"),
    ("count_blank_before", b"* 1\r\n",
     b"-ERR Protocol error: invalid multibulk length\r\n", "closed"),
    ("count_blank_behind", b"*1 \r\n",
     b"-ERR Protocol error: invalid multibulk length\r\n", "closed"),
    ("count_line_without_end", b"*" + b"1" * 70000,
     b"-ERR Protocol error: too big mbulk count string\r\n", "closed"),
    ("length_largest", b"*1\r\n$9223372036854775807\r\n",
     b"-ERR Protocol error: invalid bulk length\r\n", "closed"),
    ("length_beyond_64_bits", b"*1\r\n$99999999999999999999\r\n",
     b"-ERR Protocol error: invalid bulk length\r\n", "closed"),
    ("length_above_512_mb", b"*1\r\n$536870913\r\n",
     b"-ERR Protocol error: invalid bulk length\r\n", "closed"),
    ("length_minus_one", b"*1\r\n$-1\r\n",
     b"-ERR Protocol error: invalid bulk length\r\n", "closed"),
    ("length_no_number", b"*2\r\n$4\r\nECHO\r\n$x\r\n",
     b"-ERR Protocol error: invalid bulk length\r\n", "closed"),
    ("length_empty", b"*1\r\n$\r\n",
     b"-ERR Protocol error: invalid bulk length\r\n", "closed"),
    ("length_leading_zero", b"*1\r\n$04\r\nPING\r\n",
     b"-ERR Protocol error: invalid bulk length\r\n", "closed"),
    ("length_line_without_end", b"*1\r\n$" + b"1" * 70000,
     b"-ERR Protocol error: too big bulk count string\r\n", "closed"),
    ("nested_array", b"*1\r\n*1\r\n$4\r\nPING\r\n",
     b"-ERR Protocol error: expected '$', got '*'\r\n", "closed"),
    ("integer_argument", b"*2\r\n$4\r\nECHO\r\n:5\r\n",
     b"-ERR Protocol error: expected '$', got ':'\r\n", "closed"),
    ("simple_argument", b"*1\r\n+PING\r\n",
     b"-ERR Protocol error: expected '$', got '+'\r\n", "closed"),
    ("null_argument", b"*1\r\n_\r\n",
     b"-ERR Protocol error: expected '$', got '_'\r\n", "closed"),
    ("empty_line_for_an_argument", b"*1\r\n\r\n",
     b"-ERR Protocol error: expected '$', got ' '\r\n", "closed"),
    ("end_of_a_bulk_is_not_checked", b"*1\r\n$4\r\nPINGxx" + PING,
     b"+PONG\r\n+PONG\r\n", "open"),
    ("empty_requests", b"*0\r\n*-1\r\n\r\n\n*0\r\n" + PING, b"+PONG\r\n", "open"),
    ("half_a_command", PING + b"*2\r\n$4\r\nEC", b"+PONG\r\n", "open"),
    ("half_a_count", b"*1", b"", "open"),
    ("half_an_inline", b"PIN", b"", "open"),
    ("inline_line_without_end", b"A" * 70000,
     b"-ERR Protocol error: too big inline request\r\n", "closed"),
    ("inline_open_quote", b'ECHO "a\r\n',
     b"-ERR Protocol error: unbalanced quotes in request\r\n", "closed"),
    ("inline_open_single_quote", b"ECHO 'a\r\n",
     b"-ERR Protocol error: unbalanced quotes in request\r\n", "closed"),
    ("inline_text_behind_a_quote", b'ECHO "a"b\r\n',
     b"-ERR Protocol error: unbalanced quotes in request\r\n", "closed"),
    ("inline_blanks", b"\t\v\f\rPING\r\n", b"+PONG\r\n", "open"),
    ("inline_escapes", b'ECHO "\\x41\\x0a\\xfg"\r\n', b"$5\r\nA\nxfg\r\n",
     "open"),
    ("inline_then_array", b"PING\r\n" + PING + b"ping\n",
     b"+PONG\r\n+PONG\r\n+PONG\r\n", "open"),
    ("http_get", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", None, "closed"),
    ("http_post", b"POST / HTTP/1.1\r\n\r\n", b"", "closed"),
    ("http_host", b"Host: localhost\r\n", b"", "closed"),
    ("replies_before_the_error", PING * 3 + b"*x\r\n",
     b"+PONG\r\n" * 3 + b"-ERR Protocol error: invalid multibulk length\r\n",
     "closed"),
]


def talk(process, data, one_by_one=False, wanted=(b"", "open")):
    """Sends `data`. Returns the reply, and "closed" or "open"."""
    with process.conn() as conn:
        try:
            if one_by_one:
                for byte in data:
                    conn.send(bytes([byte]))
            else:
                conn.send(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return drain(conn, process, wanted)


def drain(conn, process, wanted=(b"", "open")):
    """Reads until the `wanted` (bytes, end) have arrived, and a moment longer
    to detect surplus bytes. A PING on a second connection proves that the
    server had its turn."""
    out, deadline = b"", time.monotonic() + 10 * servers.time_factor()
    conn.sock.settimeout(0.15 * servers.time_factor())
    while True:
        try:
            chunk = conn.sock.recv(1 << 16)
        except ConnectionResetError:
            return out, "closed"
        except (TimeoutError, socket.timeout):
            missing = len(out) < len(wanted[0] or b"") or wanted[1] == "closed"
            if missing and time.monotonic() < deadline:
                continue
            with process.conn() as other:
                assert other.call("PING") == b"PONG"
            return out, "open"
        if not chunk:
            return out, "closed"
        out += chunk


def http(got):
    """GET is unknown here and fails there, so only the close counts."""
    return (None, got[1])


@pytest.fixture(scope="module")
def both():
    server = servers.Server()
    oracle = None if servers.oracle_missing() else servers.Oracle()
    yield server, oracle
    if oracle:
        oracle.stop()
    server.stop()


@pytest.mark.parametrize("name,data,answer,end", CASES,
                         ids=[c[0] for c in CASES])
def test_malformed_bytes_get_the_reply_of_redis(both, name, data, answer, end):
    server, oracle = both
    got = talk(server, data, wanted=(answer, end))
    if answer is None:
        got = http(got)
    assert got == (answer, end), "sent %r" % data[:100]
    if oracle:
        expected = talk(oracle, data, wanted=(answer, end))
        if answer is None:
            expected = http(expected)
        assert got == expected, "sent %r" % data[:100]


@pytest.mark.parametrize("name,data,answer,end",
                         [c for c in CASES if len(c[1]) < 200],
                         ids=[c[0] for c in CASES if len(c[1]) < 200])
def test_single_bytes_get_the_same_reply(both, name, data, answer,
                                         end):
    server, _ = both
    got = talk(server, data, one_by_one=True, wanted=(answer, end))
    if answer is None:
        got = http(got)
    assert got == (answer, end)


def test_a_pipeline_cut_anywhere_gives_the_same_replies(both):
    server, _ = both
    data = (resp.command("BF.MADD", "cut", "a", "b", "\r\n") +
            b'ECHO "x y"\r\n' + resp.command("ECHO", "*2\r\n$3\r\n") +
            b"*0\r\n" + resp.command("BF.EXISTS", "cut", "a") + PING)
    with server.conn() as conn:
        conn.call("DEL", "cut")
        conn.send(data)
        wanted = b"".join(conn.read_raw() for _ in range(5))
        assert wanted.count(b"\r\n") > 7
        for cut in range(1, len(data)):
            conn.call("DEL", "cut")
            conn.send(data[:cut])
            conn.send(data[cut:])
            got = b"".join(conn.read_raw() for _ in range(5))
            assert got == wanted, "cut at %d" % cut


def declare(server, data):
    """Sends the beginning of a request on 50 connections; returns them, and
    by how many bytes the server has grown."""
    with server.conn() as conn:
        conn.call("PING")
    before = server.rss()
    conns = []
    for _ in range(50):
        conns.append(server.conn())
        conns[-1].send(data)
    with server.conn() as conn:
        assert conn.call("PING") == b"PONG"
    return conns, server.rss() - before


def test_a_large_declared_count_takes_no_memory(both):
    server, _ = both
    conns, grown = declare(server, b"*2147483647\r\n$1\r\na\r\n")
    answers = {drain(conn, server) for conn in conns[:3]}
    for conn in conns:
        conn.close()
    # The server waits for the declared bytes, as Redis does, or it refuses.
    assert answers <= {(b"", "open"), (
        b"-ERR Protocol error: invalid multibulk length\r\n", "closed")}
    assert grown < (4 << 20) * servers.time_factor()


def test_a_large_declared_bulk_takes_no_memory(both):
    server, _ = both
    conns, grown = declare(
        server, b"*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$33554432\r\nabc")
    for conn in conns:
        conn.close()
    assert grown < (8 << 20) * servers.time_factor()


def test_an_http_request_never_runs_as_commands(both):
    server, _ = both
    with server.conn() as conn:
        conn.call("BF.ADD", "kept", "x")
    data = (b"POST /x HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Length: 8\r\n\r\nFLUSHALL\r\n")
    out, end = talk(server, data, wanted=(None, "closed"))
    assert end == "closed"
    with server.conn() as conn:
        assert conn.call("EXISTS", "kept") == 1


@pytest.mark.parametrize("proto", [2, 3])
def test_hello_describes_the_server(both, proto):
    server, oracle = both

    def hello(process):
        with process.conn() as conn:
            raw = conn.raw("HELLO", proto)
            value = resp.decode(raw)
            if proto == 2:
                assert raw.startswith(b"*14\r\n")
                value = dict(zip(value[::2], value[1::2]))
            else:
                assert raw.startswith(b"%7\r\n")
            assert conn.call("PING") == b"PONG"
            return value, conn.raw("HELLO")[:1]

    value, kind = hello(server)
    assert kind == (b"*" if proto == 2 else b"%")
    assert list(value) == [b"server", b"version", b"proto", b"id", b"mode",
                           b"role", b"modules"]
    assert value[b"proto"] == proto
    assert value[b"mode"] == b"standalone" and value[b"role"] == b"master"
    assert value[b"id"] > 0
    assert all(p.isdigit() for p in value[b"version"].split(b"."))
    assert isinstance(value[b"modules"], list)
    if oracle:
        assert list(hello(oracle)[0]) == list(value)


def test_resp3_and_back(both):
    server, oracle = both
    steps = [("HELLO", "3", "SETNAME", "me"), ("CLIENT", "GETNAME"),
             ("RANDOMKEY",), ("HELLO", "2"), ("CLIENT", "GETNAME"),
             ("HELLO", "3"), ("RESET",), ("RANDOMKEY",)]
    answers = []
    for process in (server, oracle):
        if process is None:
            continue
        with process.conn() as conn:
            conn.call("FLUSHALL")
            answers.append([conn.raw(*step) if step[0] != "HELLO" else
                            conn.raw(*step)[:1] for step in steps])
    assert answers[0] == [b"%", b"$2\r\nme\r\n", b"_\r\n", b"*",
                          b"$2\r\nme\r\n", b"%", b"+RESET\r\n", b"$-1\r\n"]
    assert all(a == answers[0] for a in answers)


@pytest.mark.parametrize("one_by_one", (False, True))
@pytest.mark.parametrize("data,reply", (
    # What a TLS client sends first, with a session ticket that has a command.
    (b"\x16\x03\x01\x02\x00\x01\r\nBF.ADD pwned x\r\n",
     b"-ERR Protocol error: TLS handshake on a port without TLS, use "
     b"tls-port\r\n"),
    (b"PING\r\nPING \x00\r\nBF.ADD pwned x\r\n",
     b"+PONG\r\n-ERR Protocol error: control byte in an inline command\r\n"),
))
def test_a_control_byte_ends_the_connection(both, data, reply, one_by_one):
    """Redis executes the lines of a TLS handshake."""
    server, _ = both
    got = talk(server, data, one_by_one, (reply, "closed"))
    assert got == (reply, "closed") or one_by_one and got[1] == "closed", got
    with server.conn() as conn:
        assert conn.call("EXISTS", "pwned") == 0


def test_random_bytes_never_end_the_server(both):
    server, _ = both
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    pieces = [b"*1\r\n", b"*2\r\n", b"$4\r\n", b"PING\r\n", b"\r\n", b"*", b"$",
              b"-1", b"9" * 20, b"\x00", b'"', b"'", b"BF.ADD", b"k", b"\n",
              b"*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$1\r\na\r\n", b"\xff\xfe", b" "]
    for _ in range(300):
        data = b"".join(rng.choice(pieces) for _ in range(rng.randrange(1, 40)))
        with server.conn() as conn:
            try:
                conn.send(data)
            except OSError:
                pass
    with server.conn() as conn:
        assert conn.call("PING") == b"PONG"
