# SPDX-License-Identifier: BSD-3-Clause
#
# The rules of tests/data/security_rules.md and the invariants of src/DESIGN.md: that the
# tests they name exist, and those of the rules that no other file proves.

import os
import re
import signal
import stat
import threading

import pytest

from lib import resp, servers

PAGE = (servers.TOP / "tests/data/security_rules.md").read_text()
ROWS = re.findall(r"^\| (C\d+) \| .* \| (.*) \|$", PAGE, re.M)
INVARIANTS = re.findall(r"^\| (I\d+) \| .* \| (.*) \|$",
                        (servers.TOP / "src/DESIGN.md").read_text(), re.M)


def test_every_rule_has_tests():
    assert [name for name, _ in ROWS] == ["C%d" % i for i in range(1, 26)]
    assert [name for name, _ in INVARIANTS] == ["I%d" % i for i in range(1, 34)]


@pytest.mark.parametrize("name,tests", ROWS + INVARIANTS)
def test_the_named_tests_exist(name, tests):
    where = None
    if tests.startswith("CHECKs in "):
        file = servers.TOP / "src" / tests.split("`")[1]
        assert file.read_text().count("CHECK(") >= 3
        return
    for words in re.findall(r"`([^`]*)`", tests):
        file, _, test = words.rpartition(": ")
        where = file or where
        folder = "unit" if "/" in where else None
        paths = [servers.TOP / "tests" / "unit" / (where + ".c")] if folder \
            else [servers.TOP / "tests" / kind / (where + ".py")
                  for kind in ("scenario", "command")]
        text = "".join(path.read_text() for path in paths if path.exists())
        mark = "TEST(%s)" % test if folder else "def %s(" % test
        assert mark in text, words


def is_error(reply):
    return isinstance(reply, resp.Error)


def test_numbers_out_of_range_are_errors(server):
    with server.conn() as conn:
        for rate, capacity in (("nan", "10"), ("inf", "10"), ("-inf", "10"),
                               ("0", "10"), ("1", "10"), ("1e-999", "10"),
                               ("0.01x", "10"), ("0.01", "0"), ("0.01", "-1"),
                               ("0.01", "1e3"), ("0.01", "9223372036854775808"),
                               ("0.01", "18446744073709551616"),
                               ("0.01", " 10"), ("0.01", "1.5"),
                               ("0.01", "9223372036854775807")):
            assert is_error(conn.call("BF.RESERVE", "k", rate, capacity)), \
                (rate, capacity)
        for growth in ("-1", "4294967296", "x"):
            assert is_error(conn.call("BF.RESERVE", "k", "0.01", "10",
                                      "EXPANSION", growth))
        assert conn.call("EXISTS", "k") == 0


def test_there_is_no_scripting(server):
    with server.conn() as conn:
        for words in (["EVAL", "return 1", 0], ["EVALSHA", "x", 0],
                      ["SCRIPT", "LOAD", "return 1"], ["FCALL", "f", 0],
                      ["FUNCTION", "LOAD", "#!lua"]):
            assert str(conn.call(*words)) == \
                "ERR scripts are not supported by this server", words
        assert is_error(conn.call("MODULE", "LOAD", "/tmp/x.so"))


def test_clients_end_each_other_at_any_moment(start_server):
    """Clients kill others and themselves, in pipelines and transactions, while
    all of them wait, subscribe and write."""
    server = start_server("--threads", 4)
    ended = threading.Event()
    works = (
        lambda conn: conn.send(resp.command("BF.ADD", "k", "a") * 200 +
                               resp.command("CLIENT", "KILL", "TYPE", "normal",
                                            "SKIPME", "no") +
                               resp.command("BF.ADD", "k", "a") * 200),
        lambda conn: conn.send(resp.command("MULTI") +
                               resp.command("CLIENT", "KILL", "TYPE", "normal",
                                            "SKIPME", "no") +
                               resp.command("BF.ADD", "k", "b") +
                               resp.command("EXEC") + resp.command("PING")),
        lambda conn: conn.send(resp.command("SUBSCRIBE", "news") +
                               resp.command("PUBLISH", "news", "n" * 10000)),
        lambda conn: conn.send(resp.command("WAIT", 1, 50) * 3 +
                               resp.command("CLIENT", "KILL", "TYPE", "pubsub")),
        lambda conn: conn.send(resp.command("ECHO", "x" * 300000) * 20),
    )

    def work(number):
        while not ended.is_set():
            try:
                with server.conn() as conn:
                    works[number % len(works)](conn)
                    while True:
                        conn.read_raw()
            except (OSError, resp.Closed, resp.Malformed):
                pass
    threads = [threading.Thread(target=work, args=(i,)) for i in range(10)]
    for thread in threads:
        thread.start()
    ended.wait(2)
    ended.set()
    for thread in threads:
        while thread.is_alive():
            try:
                with server.conn() as conn:
                    conn.call("CLIENT", "KILL", "SKIPME", "yes", "TYPE",
                              "normal")
                    conn.call("CLIENT", "KILL", "TYPE", "pubsub")
            except (OSError, resp.Closed):
                pass
            thread.join(0.05)

    def only_one():
        with server.conn() as conn:
            return b"connected_clients:1\r" in conn.call("INFO", "clients")
    servers.wait_until(only_one, 20, "all have left")


@pytest.mark.parametrize("mode", ["700", "600", "660"])
def test_a_unix_socket_is_never_wider_than_asked(start_server, tmp_path, mode):
    path = tmp_path / "sock"
    old = os.umask(0)
    try:
        start_server("--unixsocket", path, "--unixsocketperm", mode)
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(path).st_mode) == int(mode, 8)


def test_no_path_changes_at_run_time(server):
    """An option whose text says that it is a file, a directory or a path."""
    with server.conn() as conn:
        flat = conn.call("CONFIG", "GET", "*")
        names = [name.decode() for name in flat[::2]]
        paths = [n for n in names if re.search(
            r"file|^dir$|-dir$|dirname|unixsocket|^bind$|-bind$", n)]
        assert len(paths) > 12
        for name in paths:
            reply = conn.call("CONFIG", "SET", name, "/tmp/elsewhere")
            assert is_error(reply), name
        assert conn.call("CONFIG", "GET", "*") == flat
    server.child.send_signal(signal.SIGHUP)     # nothing is left behind
    with server.conn() as conn:
        assert conn.call("CONFIG", "GET", "*") == flat
