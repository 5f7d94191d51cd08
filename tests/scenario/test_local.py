# SPDX-License-Identifier: BSD-3-Clause
#
# A copy of a filter in a program (libbloomery-local) beside a live server: it follows
# all changes, and says "absent" only if the server would have said so at some moment of
# the last second, whatever happens to the server.

import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from lib import servers, tls
from lib.servers import wait_until

PROBE = Path(servers.server_binary()).parent / "tests" / "local" / "local_probe"
STALE_MS = 1000
# The flags of <bloomery/local.h>.
NO_WAIT, REPLICA_ALLOWED, MISSING_IS_ABSENT = 1, 2, 4
FRESH_SECONDS = 3 # at most, after a fault


class Copy:
    """Asks the copy in a process of its own."""

    def __init__(self, url, flags=0, max_bytes=0, ca=None):
        self.child = subprocess.Popen(
            [PROBE, url, "k", str(STALE_MS), str(flags), str(max_bytes),
             *([ca] if ca else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(self, item):
        self.child.stdin.write(item + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().strip()

    def becomes(self, item, said, seconds=20):
        wait_until(lambda: self.ask(item) == said, seconds,
                   "%s becomes %s" % (item, said))

    def status(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        state, connections, loads, age, *error = self.child.stdout.readline().split()
        return state, int(connections), int(loads), int(age), " ".join(error)

    def refusal(self):
        """What it said before it ended, since it could not be opened."""
        assert self.child.wait(30) == 1
        return self.child.stdout.read()

    def close(self):
        self.child.stdin.close()
        assert self.child.wait(20) == 0
        self.child.stdout.close()


@pytest.fixture
def copy():
    made = []

    def start(server, flags=0, max_bytes=0, url="redis://127.0.0.1:%d", ca=None):
        made.append(Copy(url % server.port if "%d" in url else url, flags, max_bytes,
                         ca))
        return made[-1]

    yield start
    for each in made:
        if each.child.poll() is None:
            each.close()


@pytest.mark.parametrize("more", [
    ("NONSCALING",), ("EXPANSION", 2), ("DELETABLE",), ("AGEING", 3600)])
def test_a_copy_follows_its_filter(server, copy, more):
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "0.0001", 5000, *more)
        conn.call("BF.MADD", "k", *("old-%d" % i for i in range(100)))
        one = copy(server)
        one.becomes("nothing", "absent")
        assert {one.ask("old-%d" % i) for i in range(100)} == {"present"}
        assert conn.call("BF.ADD", "k", "new") == 1
        one.becomes("new", "present")
        one.becomes("nothing", "absent")
        assert conn.call("DEL", "k") == 1
        one.becomes("nothing", "unknown")
        conn.call("BF.RESERVE", "k", "0.0001", 5000, *more)
        one.becomes("new", "absent")
        state, connections, loads, _, error = one.status()
        assert (state, connections, loads, error) == ("fresh", 1, 2, "")


def test_a_copy_is_another_when_the_key_is(server, copy):
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "first")
        conn.call("BF.ADD", "other", "second")
        one = copy(server)
        one.becomes("second", "absent")
        conn.call("RENAME", "other", "k")
        one.becomes("second", "present")
        one.becomes("first", "absent")
        conn.call("FLUSHALL")
        one.becomes("second", "unknown")
        wait_until(lambda: one.status()[0] == "missing", 20)


def test_a_missing_key_may_count_as_an_empty_filter(server, copy):
    with server.conn() as conn:
        one = copy(server, MISSING_IS_ABSENT)
        one.becomes("x", "absent")
        conn.call("BF.ADD", "k", "x")
        one.becomes("x", "present")
        conn.call("DEL", "k")
        one.becomes("x", "absent")
        os.kill(server.pid, signal.SIGSTOP)
        try:
            one.becomes("x", "unknown")
        finally:
            os.kill(server.pid, signal.SIGCONT)


def test_many_items_are_answered_at_once(server, copy):
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "0.000001", 1000)
        for first in range(0, 100_000, 1000):
            conn.call("BF.MADD", "k", *("n-%d" % i for i in range(first, first + 1000)))
        one = copy(server)
        assert one.ask("100000 ") == "0 0 100000"
        unknown, absent, present = map(int, one.ask("200000 ").split())
        assert unknown == 0 and 99_900 < absent <= 100_000
        os.kill(server.pid, signal.SIGSTOP)
        try:
            one.becomes("nothing", "unknown")
            assert one.ask("200000 ") == "%d 0 %d" % (absent, present)
        finally:
            os.kill(server.pid, signal.SIGCONT)


def test_what_cannot_be_copied_is_said_when_it_is_opened(
        server, start_server, copy, tmp_path):
    replica = start_server("--dir", tmp_path, "--replicaof",
                           "127.0.0.1 %d" % server.port)
    with server.conn() as conn, replica.conn() as other:
        conn.call("BF.RESERVE", "k", "0.0001", 1_000_000)
        conn.call("BF.ADD", "k", "x")
        wait_until(lambda: other.call("BF.EXISTS", "k", "x") == 1, 30)
        assert copy(replica).refusal() == "the server is a replica: " \
            "the server is a replica\n"
        copy(replica, REPLICA_ALLOWED).becomes("y", "absent")
        assert "max_bytes" in copy(server, max_bytes=1000).refusal()
        conn.call("ACL", "SETUSER", "reader", "on", ">se/cret", "~k", "-@all",
                  "+hello", "+bf.subscribe", "+bf.scandump", "+select")
        url = "redis://reader:%s@127.0.0.1:%d"
        copy(server, url=url % ("se%2Fcret", server.port)).becomes("y", "absent")
        said = copy(server, url=url % ("wrong", server.port)).refusal()
        assert "WRONGPASS" in said and "wrong" not in said.replace("WRONGPASS", "")
        conn.call("ACL", "SETUSER", "reader", "-bf.scandump")
        assert "NOPERM" in copy(
            server, url=url % ("se%2Fcret", server.port)).refusal()


def test_a_server_that_becomes_a_replica_is_left(start_server, copy):
    """Its filter is a copy then, and may be older than what the primary says."""
    server, other = start_server(), start_server()
    with server.conn() as conn, other.conn() as their:
        for each in conn, their:
            each.call("BF.ADD", "k", "x")
        one, any_role = copy(server), copy(server, REPLICA_ALLOWED)
        one.becomes("y", "absent")
        conn.call("REPLICAOF", "127.0.0.1", other.port)
        wait_until(lambda: "replica" in one.status()[4], 20)
        one.becomes("y", "unknown")
        any_role.becomes("y", "absent")
        conn.call("REPLICAOF", "NO", "ONE")
        one.becomes("y", "absent")


class FakeSentinel:
    """Names a server; asks for a login first, if it has a password."""

    def __init__(self, server, password=None):
        self.server, self.password, self.asked = server, password, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                conn = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        admitted = self.password is None
        with conn, conn.makefile("rb") as lines:
            while words := read_words(lines):
                if words[0] == b"AUTH":
                    admitted = words[-1] == self.password
                    said = b"+OK\r\n" if admitted else b"-WRONGPASS\r\n"
                elif not admitted:
                    said = b"-NOAUTH Authentication required.\r\n"
                elif words != [b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", b"main"]:
                    said = b"*-1\r\n"
                else:
                    port = b"%d" % self.server.port
                    said = b"*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n" % (
                        len(port), port)
                    self.asked += 1
                try:
                    conn.sendall(said)
                except OSError:
                    return

    def close(self):
        self.listener.close()


def read_words(lines):
    """A command's words; none at the end."""
    try:
        count = int(lines.readline()[1:] or 0)
        return [lines.read(int(lines.readline()[1:]) + 2)[:-2] for _ in range(count)]
    except OSError:
        return []


@pytest.fixture
def sentinel():
    made = []

    def start(*args, **kwargs):
        made.append(FakeSentinel(*args, **kwargs))
        return made[-1]

    yield start
    for each in made:
        each.close()


def test_a_copy_goes_where_a_sentinel_says(start_server, copy, sentinel):
    """The first address is none, and the Sentinel wants a login."""
    first, second = start_server(), start_server()
    for server, item in (first, "first"), (second, "second"):
        with server.conn() as conn:
            conn.call("BF.ADD", "k", item)
            conn.call("ACL", "SETUSER", "default", ">secret")
    watch = sentinel(first, password=b"secret")
    one = copy(None, url="redis+sentinel://:secret@127.0.0.1:%d,127.0.0.1:%d/main/0" % (
        servers.free_port(), watch.port))
    assert (one.ask("first"), one.status()[0]) == ("present", "fresh")
    one.becomes("second", "absent")
    watch.server = second
    one.becomes("second", "present")
    one.becomes("first", "absent")
    assert one.status()[1] == 2
    watch.close() # it keeps what it has
    wait_until(lambda: watch.asked > 3, 20)
    assert one.ask("first") == "absent"


def test_a_sentinel_that_names_no_primary_is_passed_over(
        start_server, copy, sentinel, tmp_path):
    server = start_server()
    replica = start_server("--dir", tmp_path, "--replicaof",
                           "127.0.0.1 %d" % server.port)
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "x")
    url = "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d/main" % (
        sentinel(replica).port, sentinel(server).port)
    one = copy(None, url=url)
    one.becomes("y", "absent")
    assert one.ask("x") == "present"


def test_sentinels_that_do_not_answer_are_named_in_the_error(
        server, copy, sentinel):
    url = "redis+sentinel://127.0.0.1:%d/%s"
    one = copy(None, NO_WAIT, url=url % (servers.free_port(), "main"))
    wait_until(lambda: "no Sentinel names the server" in one.status()[4], 20)
    assert "Connection refused" in one.status()[4]
    one = copy(None, NO_WAIT, url=url % (sentinel(server).port, "other"))
    wait_until(lambda: "watches nothing of this name" in one.status()[4], 20)


def test_a_copy_comes_through_tls(start_server, copy, tmp_path):
    files = tls.Files(tmp_path)
    port = servers.free_port()
    server = start_server(*files.options(port, "--tls-auth-clients", "no"))
    url = "rediss://127.0.0.1:%d" % port
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "0.001", 1_000_000) # several pieces
        conn.call("BF.ADD", "k", "x")
        one = copy(server, url=url, ca=files.ca)
        assert one.ask("x") == "present"
        one.becomes("y", "absent")
        conn.call("BF.ADD", "k", "y")
        one.becomes("y", "present")
        assert "certificate" in copy(server, url=url).refusal()
        assert "TLS failed" in copy(
            server, url="rediss://127.0.0.1:%d" % server.port, ca=files.ca).refusal()


def test_a_copy_comes_through_a_socket_from_a_database(start_server, copy, tmp_path):
    path = tmp_path / "bloomery.sock"
    server = start_server("--unixsocket", path, "--databases", "4")
    with server.conn() as conn:
        conn.call("SELECT", "3")
        conn.call("BF.ADD", "k", "x")
        one = copy(server, url="unix://%s?db=3" % path)
        assert one.ask("x") == "present"
        one.becomes("y", "absent")


def test_a_copy_grows_where_the_server_does(server, copy):
    """A million items in several pieces; the copy is loaded while they are added, and
    each item that was acknowledged a second ago is present."""
    said = []
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "0.0001", 200_000)
        conn.call("BF.MADD", "k", *("first-%d" % i for i in range(20_000)))
        one = copy(server)
        begun = time.monotonic()
        number = 0
        while time.monotonic() < begun + 3:
            conn.call("BF.MADD", "k", *("%d-%d" % (number, i) for i in range(2000)))
            said.append((time.monotonic(), number))
            number += 1
            old = [n for at, n in said if at < time.monotonic() - STALE_MS / 1000]
            if old:
                assert one.ask("%d-7" % old[-1]) != "absent"
        one.becomes("nothing", "absent")
        for n in range(number):
            assert one.ask("%d-1999" % n) == "present"


def test_a_server_that_stands_still_makes_absent_unknown(server, copy):
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "here")
        one = copy(server)
        one.becomes("nothing", "absent")
        os.kill(server.pid, signal.SIGSTOP)
        try:
            one.becomes("nothing", "unknown")
            assert one.ask("here") == "present"
        finally:
            os.kill(server.pid, signal.SIGCONT)
        one.becomes("nothing", "absent")


def test_a_copy_that_stood_still_does_not_say_what_was(server, copy):
    """While it stands still, an item is added; its first answer is none of before."""
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "here")
        one = copy(server)
        one.becomes("later", "absent")
        os.kill(one.child.pid, signal.SIGSTOP)
        try:
            conn.call("BF.ADD", "k", "later")
            wait_until(after(STALE_MS / 1000 + 0.1), 20)
        finally:
            os.kill(one.child.pid, signal.SIGCONT)
        assert one.ask("later") != "absent"
        one.becomes("later", "present")


def after(seconds):
    """A condition that holds so much later."""
    until = time.monotonic() + seconds
    return lambda: time.monotonic() > until


def test_a_copy_survives_kills_of_its_server(start_server, copy, tmp_path):
    """Acknowledged items are on the disk, so after each kill they are present again,
    and never absent."""
    port = servers.free_port()
    options = ("--dir", tmp_path, "--appendonly", "yes", "--appendfsync", "always")
    server = start_server(*options, port=port)
    one = copy(server)
    for life in range(3):
        with server.conn() as conn:
            conn.call("BF.ADD", "k", "life-%d" % life)
        added = time.monotonic()
        one.becomes("nothing", "absent")
        one.becomes("life-%d" % life, "present")
        server.kill()
        one.becomes("nothing", "unknown")
        server = start_server(*options, port=port)
        wait_until(after(added + STALE_MS / 1000 - time.monotonic()), 20)
        assert all(one.ask("life-%d" % i) != "absent" for i in range(life + 1))
    one.becomes("nothing", "absent")
    assert one.ask("life-0") == "present"
