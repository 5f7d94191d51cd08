# SPDX-License-Identifier: BSD-3-Clause
#
# bloomery-load items: every form of input, the capacity that it finds, and servers
# that refuse or go away.

import os
import socket
import subprocess
import threading

import pytest

from lib import servers
from lib.loads import (INCOMPLETE, UNREADABLE, USAGE, figures, load, present,
                       program, to)

def items(server, key, *args, **more):
    return load(*to(server), "items", key, *args, **more)


def written(folder, data):
    path = folder / "input"
    path.write_bytes(data)
    return path


def test_lines(server, tmp_path):
    path = written(tmp_path, b"one\ntwo\r\n\nth ree\n\xff\x00")
    got = figures(items(server, "k", path))
    assert (got["items read"], got["added"], got["empty, left out"]) == (4, 4, 1)
    assert got["capacity"] == "4 (counted)"
    assert present(server, "k", [b"one", b"two", b"th ree", b"\xff\x00"])
    with server.conn() as conn:
        assert conn.call("BF.CARD", "k") == 4
    again = figures(items(server, "k", path))
    assert (again["added"], again["there before"]) == (0, 4)
    assert "existed" in again["filter"]


def test_nul(server, tmp_path):
    path = written(tmp_path, b"a\nb\0c\r\0\0d")
    assert figures(items(server, "k", path, "--nul"))["items read"] == 3
    assert present(server, "k", [b"a\nb", b"c\r", b"d"])


CSV = b'id,"na""me"\r\n1,plain\r\n2,"quoted, ""twice"""\n\n3,"two\r\nlines"\n' \
    b'4,""\n5,last'
CELLS = [b"plain", b'quoted, "twice"', b"two\r\nlines", b"last"]


@pytest.mark.parametrize("column", ['na"me', "2"])
def test_csv(server, tmp_path, column):
    got = figures(items(server, "k", written(tmp_path, CSV), "--csv", column))
    assert got["items read"] == len(CELLS) + (column == "2")
    assert got["empty, left out"] == 2
    assert present(server, "k", CELLS)


def test_a_file_that_the_shell_has_read_from(server, tmp_path):
    """The items are counted from there, and added from there."""
    path = written(tmp_path, b"header\na\nb\n")
    with open(path, "rb", buffering=0) as file:
        file.read(len("header\n"))
        got = subprocess.run([program(), *to(server), "items", "k"], stdin=file,
                             capture_output=True, check=True,
                             timeout=60 * servers.time_factor())
    assert figures(got)["items read"] == 2
    with server.conn() as conn:
        assert conn.call("BF.EXISTS", "k", "header") == 0


def test_csv_cut_anywhere(server, tmp_path):
    """Records of every length move across the ends of the reads."""
    rows = [b'%d,"%s ""%d"""' % (i, b"x" * (i % 700), i) for i in range(9000)]
    path = written(tmp_path, b"\n".join(rows))
    assert figures(items(server, "k", path, "--csv", 2))["items read"] == 9000
    assert present(server, "k", [b'%s "%d"' % (b"x" * (i % 700), i)
                                 for i in range(9000)])


@pytest.mark.parametrize("data,said", [
    (b"id\n1\n", b"offset 0 does not name"),
    (b"name,id\n\"a,b\n", b"offset 8 has a quoted cell"),
    (b"name,id\n\"a\"b,1\n", b"offset 8 has a quoted cell"),
    (b"id,name\nalone\n", b"offset 8 has too few columns"),
    (b"name,id\n\"a\",\"b\n", b"offset 8 has a quoted cell"),
])
def test_a_broken_csv_is_named_with_its_offset(server, tmp_path, data, said):
    got = items(server, "k", written(tmp_path, data), "--csv", "name",
                "--capacity", 10, status=UNREADABLE)
    assert said in got.stderr, got.stderr


def test_many_items_over_several_connections(server, tmp_path):
    many = 300000
    path = written(tmp_path, b"".join(b"item:%d\n" % i for i in range(many)))
    got = figures(items(server, "k", path, "--error", "0.001",
                        "--connections", 7))
    assert got["items read"] == got["added"] + got["there before"] == many
    assert got["there before"] < many * 0.002
    assert present(server, "k", [b"item:%d" % i for i in range(0, many, 7)])
    with server.conn() as conn:
        assert conn.call("BF.INFO", "k", "FILTERS") == 1
        assert conn.call("BF.INFO", "k", "CAPACITY") == many


def cpu_seconds(server):
    """Returns the time that all threads of the server have run."""
    total = 0
    for task in os.listdir("/proc/%d/task" % server.pid):
        path = "/proc/%d/task/%s/schedstat" % (server.pid, task)
        with open(path) as file:
            total += int(file.read().split()[0])
    return total / 1e9


@pytest.mark.skipif(servers.sanitized(), reason="measures the release build")
def test_one_core_of_the_server_takes_two_million_items_a_second(start_server,
                                                                 tmp_path):
    server = start_server("--appendonly", "yes")
    many = 1000000
    path = written(tmp_path, b"".join(b"user:%d\n" % i for i in range(many)))
    before = cpu_seconds(server)
    items(server, "k", path)
    spent = cpu_seconds(server) - before
    print("%.1f million items a second" % (many / spent / 1e6))
    assert many / spent > 2e6


def test_standard_input(server):
    assert figures(items(server, "k", stdin=b"a\nb"))["capacity"] == "2 (counted)"
    assert figures(items(server, "k", "-", stdin=b"c\n"))["added"] == 1
    assert present(server, "k", [b"a", b"b", b"c"])


def test_several_files_and_a_unix_socket(start_server, tmp_path):
    server = start_server("--unixsocket", "{folder}/sock")
    for name in "ab":
        (tmp_path / name).write_text(name + "\n")
    got = load("items", "k", tmp_path / "a", tmp_path / "b", "--to",
               os.path.join(server.folder, "sock"))
    assert figures(got)["capacity"] == "2 (counted)"
    assert present(server, "k", [b"a", b"b"])


def test_a_pipe_without_end_needs_a_capacity(server):
    got = items(server, "k", stdin=b"x" * 1000 + b"\n" + b"0123456789\n" *
                7000000, status=USAGE)
    assert b"--capacity" in got.stderr
    with server.conn() as conn:
        assert conn.call("EXISTS", "k") == 0


def test_an_item_longer_than_the_limit(server, tmp_path):
    path = written(tmp_path, b"short\n" + b"x" * 3000000)
    got = items(server, "k", path, "--max-value", "1mb", "--capacity", 10,
                status=UNREADABLE)
    assert b"longer than --max-value" in got.stderr


def test_a_pipe_may_be_longer_than_the_limit_of_an_item(server):
    lines = b"".join(b"item:%06d\n" % i for i in range(300000))
    got = figures(items(server, "k", "--max-value", "1mb", stdin=lines))
    assert got["items read"] == 300000
    assert got["capacity"] == "300000 (counted)"
    assert present(server, "k", [b"item:000000", b"item:150000", b"item:299999"])
    got = items(server, "new", "--max-value", "1mb",
                stdin=b"short\n" + b"x" * 3000000, status=UNREADABLE)
    assert b"longer than --max-value" in got.stderr


def test_a_full_filter_is_reported(server, tmp_path):
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "0.01", 10, "NONSCALING")
    path = written(tmp_path, b"".join(b"item:%d\n" % i for i in range(1000)))
    got = items(server, "k", path, status=INCOMPLETE)
    report = figures(got)
    assert report["added"] == 10
    assert report["added"] + report["there before"] + report["refused"] == 1000
    assert b"non scaling filter is full" in got.stderr


def test_refusals_of_the_server(start_server, tmp_path):
    path = written(tmp_path, b"a\n")
    server = start_server("--requirepass", "secret")
    assert b"NOAUTH" in items(server, "k", path, status=UNREADABLE).stderr
    (tmp_path / "wrong").write_text("no\n")
    (tmp_path / "right").write_text("secret\n")
    assert b"WRONGPASS" in items(server, "k", path, "--password-file",
                                 tmp_path / "wrong", status=UNREADABLE).stderr
    items(server, "k", path, "--password-file", tmp_path / "right")
    items(server, "k", path, "--password-file", tmp_path / "right", "--user",
          "default")
    got = items(server, "j", path, "--password-file", tmp_path / "right",
                "--error", "7", status=UNREADABLE)
    assert b"error rate range" in got.stderr


@pytest.mark.parametrize("args,said", [
    ([], b"see bloomery-load --help"),
    (["items"], b"see bloomery-load help items"),
    (["items", "k", "--connections", "0"], b"from 1 to 64"),
    (["items", "k", "--connections", "65"], b"from 1 to 64"),
    (["items", "k", "--nope"], b"no such option"),
    (["items", "k", "--csv"], b"needs a value"),
    (["items", "k", "--csv", "0"], b"the first column is 1"),
    (["items", "k", "--csv", "1", "--nul"], b"exclude"),
    (["items", "k", "--delimiter", ";"], b"needs --csv"),
    (["items", "k", "--csv", "1", "--delimiter", ";;"], b"one character"),
    (["items", "k", "--to", "nonsense"], b"neither HOST:PORT"),
    (["items", "k", "--follow"], b"--follow is not an option of items: see "
     b"bloomery-load help items"),
    (["--db", "3", "items", "k"], b"--db is not an option of items"),
    (["items", "--existing", "skip", "k"], b"--existing is not an option of items"),
    (["rdb", "--follow", "f"], b"--follow is not an option of rdb"),
    (["rdb", "f", "--csv", "1"], b"--csv is not an option of rdb"),
])
def test_mistakes_in_the_command_line(args, said):
    assert said in load(*args, status=USAGE).stderr


def test_a_bad_capacity(server):
    got = items(server, "k", "--capacity", "many", stdin=b"a", status=USAGE)
    assert b"is auto or a number" in got.stderr


def test_missing_files_and_servers(server, tmp_path):
    got = items(server, "k", tmp_path / "none", status=UNREADABLE)
    assert b"cannot be opened" in got.stderr
    got = items(server, "k", tmp_path, status=UNREADABLE)
    assert b"cannot be" in got.stderr
    got = load("items", "k", "--to", "127.0.0.1:%d" % servers.free_port(),
               status=UNREADABLE)
    assert b"cannot connect" in got.stderr


class Stub:
    """Accepts connections; answers the first bytes of each and hangs up, or stays
    silent."""

    def __init__(self, answer):
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.kept = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.recv(1000)
            if self.answer is None:
                self.kept.append(sock)
                continue
            sock.sendall(self.answer)
            sock.close()


@pytest.mark.parametrize("answer,said", [
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"does not speak"),
    (b"", b"closed the connection"),
    (b"+PONG\r\n", b"closed the connection"),
    (b"-LOADING wait\r\n", b"LOADING wait"),
    (b"*1000000000\r\n:1\r\n", b"closed the connection"),
    (b"$1000000000000\r\nx", b"closed the connection"),
    (None, b"no reply for 1 s"),
])
def test_peers_that_are_no_server(answer, said):
    stub = Stub(answer)
    got = items(stub, "k", "--timeout", 1, "--capacity", 10, stdin=b"a\n",
                status=UNREADABLE)
    assert said in got.stderr, got.stderr
    stub.listener.close()


def test_the_progress_is_shown_on_request(server):
    got = items(server, "k", "--progress", "--capacity", 1, stdin=b"a\n")
    assert b" items, " in got.stderr
    assert b" items, " not in items(server, "k", "--progress", "--no-progress",
                                   stdin=b"a\n").stderr
