# SPDX-License-Identifier: BSD-3-Clause
#
# Errors that a transcript cannot test: a client from the network, a password, limits
# of the server. Also that every error has a test: its text appears in one of them.

import re
import socket
import subprocess
from pathlib import Path

import pytest

from lib import resp, servers

TESTS = Path(__file__).resolve().parents[1]


def own_address():
    """An address of this machine that is not of the loopback, or None. A
    connected UDP socket has one, and sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


def first_line(address, port):
    """What the server answers to a PING, and whether it closes instead of
    reading it."""
    with socket.create_connection((address, port), 5) as sock:
        sock.settimeout(10 * servers.time_factor())
        try:
            sock.sendall(b"PING\r\n")
        except OSError:
            pass    # it has closed already
        got = b""
        while not got.startswith((b"+PONG", b"-NOAUTH")):
            try:
                more = sock.recv(4096)
            except ConnectionResetError:
                more = b""
            if not more:
                return got, True
            got += more
    return got, False


def test_protected_mode_denies_who_comes_over_the_network(start_server):
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but the loopback's")
    server = start_server("--bind", "0.0.0.0")
    text, closed = first_line(address, server.port)
    assert closed and text == (
        b"-DENIED Bloomery runs in protected mode: without a password it "
        b"serves only clients on its own machine. Set requirepass, or "
        b"protected-mode no, to serve other clients.\r\n")
    assert first_line("127.0.0.1", server.port)[0] == b"+PONG\r\n"
    with server.conn() as conn:
        assert b"rejected_connections:1" in conn.call("INFO", "stats")
        conn.call("CONFIG", "SET", "requirepass", "secret")
        assert first_line(address, server.port)[0] == \
            b"-NOAUTH Authentication required.\r\n"


@pytest.mark.parametrize("words", [
    ("HELLO",), ("HELLO", 2), ("HELLO", 3), ("HELLO", 3, "SETNAME", "me")])
def test_hello_without_the_password_says_how_to_give_it(start_server, words):
    server = start_server("--requirepass", "secret")
    with server.conn() as conn:
        assert conn.raw(*words) == (
            b"-NOAUTH HELLO must be called with the client already "
            b"authenticated, otherwise the HELLO AUTH <user> <pass> option can "
            b"be used to authenticate the client and select the RESP protocol "
            b"version at the same time\r\n")
        # Nothing of it was done.
        assert conn.call("AUTH", "secret") == b"OK"
        assert conn.raw("CLIENT", "GETNAME") == b"$-1\r\n"


SUBSCRIPTIONS = b"-ERR subscription limit reached " \
    b"(pubsub-max-subscriptions, pubsub-max-bytes)\r\n"


@pytest.mark.parametrize("proto", [2, 3])
@pytest.mark.parametrize("word", ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"])
def test_subscriptions_are_limited(start_server, word, proto):
    server = start_server("--pubsub-max-subscriptions", 3,
                          "--pubsub-max-bytes", "1kb")
    with server.conn(proto) as conn, server.conn() as other:
        assert conn.raw(word, "a", "b", "c", "d") == SUBSCRIPTIONS
        assert conn.raw(word, "x" * 1025) == SUBSCRIPTIONS
        # None of them was made, not even the first ones.
        for kind in ("CHANNELS", "SHARDCHANNELS"):
            assert other.call("PUBSUB", kind) == []
        assert other.call("PUBSUB", "NUMPAT") == 0
        assert conn.raw(word, "a").endswith(b":1\r\n")
        assert conn.raw(word, "b", "c", "d") == SUBSCRIPTIONS
        # One that is there counts once.
        conn.send(resp.command(word, "a", "b", "c"))
        assert [conn.read_raw()[-4:] for _ in range(3)] == [
            b":1\r\n", b":2\r\n", b":3\r\n"]
        assert conn.raw(word, "d") == SUBSCRIPTIONS


@pytest.mark.parametrize("dialect,text", [
    ("redis", b"-ERR Insufficient memory to create filter\r\n"),
    ("valkey", b"-OOM not enough memory for this request\r\n")])
def test_a_filter_beyond_the_machine_is_refused(start_server, dialect, text):
    """Some hundred petabytes, which only the limit of one filter would stop
    before."""
    server = start_server("--dialect", dialect,
                          "--bf.bloom-memory-usage-limit", 2 ** 63 - 1,
                          "--bf.bloom-capacity", 10 ** 17)
    with server.conn() as conn:
        for words in (("BF.ADD", "k", "a"), ("BF.MADD", "k", "a", "b"),
                      ("BF.INSERT", "k", "ERROR", "0.001", "ITEMS", "a")):
            assert conn.raw(*words) == text, words
        assert conn.call("EXISTS", "k") == 0
        assert conn.call("BF.RESERVE", "k", "0.01", "100") == b"OK"


# ---- all of them -----------------------------------------------------------------

SEEN_LETTERS = 24


def sought(line):
    """The longest piece of an error's text that is always there, or its
    beginning."""
    pieces = re.split(r"%\.?\*?s", line)
    return max(pieces, key=len).strip().lower()[:SEEN_LETTERS]


def test_every_error_is_expected_by_a_test():
    printed = subprocess.run(
        [servers.server_binary(), "--print=errors"], check=True,
        capture_output=True, text=True).stdout.splitlines()
    texts = "\n".join(
        path.read_text(errors="replace") for path in TESTS.rglob("*")
        if path.suffix in (".t", ".py", ".c", ".h"))
    # Literals that go on in the next line.
    texts = re.sub(r'"\s*\\?\s*[br]*"', "", texts).lower()
    assert len(printed) > 50
    missing = [line for line in printed if sought(line) and
               sought(line) not in texts]
    assert not missing, "no test knows these"
