# SPDX-License-Identifier: BSD-3-Clause
#
# A copy of a filter in a program (src/local) beside a live server: it follows all
# changes, and says "absent" only if the server would have said so at some moment of
# the last second, whatever happens to the server.

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from lib import servers
from lib.servers import wait_until

PROBE = Path(servers.server_binary()).parent / "tests" / "local" / "local_probe"
STALE_MS = 1000


class Copy:
    """Asks the copy in a process of its own."""

    def __init__(self, server, key="k"):
        self.child = subprocess.Popen(
            [PROBE, "127.0.0.1", str(server.port), key, str(STALE_MS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(self, item):
        self.child.stdin.write(item + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().strip()

    def becomes(self, item, said, seconds=20):
        wait_until(lambda: self.ask(item) == said, seconds,
                   "%s becomes %s" % (item, said))

    def close(self):
        self.child.stdin.close()
        assert self.child.wait(20) == 0
        self.child.stdout.close()


@pytest.fixture
def copy():
    made = []

    def start(server):
        made.append(Copy(server))
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
        server = start_server(*options, port=port)
        wait_until(after(added + STALE_MS / 1000 - time.monotonic()), 20)
        assert all(one.ask("life-%d" % i) != "absent" for i in range(life + 1))
    one.becomes("nothing", "absent")
    assert one.ask("life-0") == "present"
