# SPDX-License-Identifier: BSD-3-Clause
#
# bloomery-load server: copies of the filters of a Bloomery, and of fakes that
# answer as old servers, refuse, or lie.

import socket
import threading

import pytest

from lib import rdb, resp, servers
from lib.loads import (DONE, INCOMPLETE, UNREADABLE, figures, load, present, to)

DUMPS = rdb.dumps()



def copy(server, source, *args, **more):
    return load(*to(server), "server", "127.0.0.1:%d" % source.port, *args,
                **more)


@pytest.fixture
def filled(start_server):
    """300 filters in three databases, some with an expiry."""
    source = start_server()
    with source.conn() as conn:
        for db in (0, 2, 9):
            conn.call("SELECT", db)
            for i in range(100):
                conn.call("BF.ADD", "key:%d:%d" % (db, i), "item:%d" % i)
            conn.call("PEXPIRE", "key:%d:1" % db, 3600000)
    return source


def assert_copied(server, dbs=(0, 2, 9)):
    with server.conn() as conn:
        for db in dbs:
            conn.call("SELECT", db)
            assert conn.call("DBSIZE") == 100
            assert conn.pipeline([
                ("BF.EXISTS", "key:%d:%d" % (db, i), "item:%d" % i)
                for i in range(100)]) == [1] * 100
            assert 3500000 < conn.call("PTTL", "key:%d:1" % db) <= 3600000
            assert conn.call("PTTL", "key:%d:2" % db) == -1


def test_all_filters_of_a_server(server, filled):
    got = figures(copy(server, filled))
    assert got["filters found"] == got["filters restored"] == 300
    assert_copied(server)


def test_one_database(server, filled):
    assert figures(copy(server, filled, "--db", 2))["filters found"] == 100
    assert_copied(server, [2])
    with server.conn() as conn:
        assert conn.call("DBSIZE") == 0


def test_a_copy_that_was_stopped_goes_on(server, filled):
    with server.conn() as conn:
        conn.call("SELECT", 2)
        conn.call("BF.ADD", "key:2:5", "item:5")
    got = copy(server, filled, status=INCOMPLETE)
    assert b"--existing skip" in got.stderr
    got = figures(copy(server, filled, "--existing", "skip"))
    assert got["filters found"] == 300
    assert got["there before"] + got["filters restored"] == 300
    assert_copied(server)


def test_passwords(start_server, server, tmp_path):
    source = start_server("--requirepass", "secret")
    assert b"NOAUTH" in copy(server, source, status=UNREADABLE).stderr
    (tmp_path / "word").write_text("secret")
    copy(server, source, "--from-password-file", tmp_path / "word")


class Old:
    """Answers as a server of the given age and modules: keys of other types, and
    filters given by their dump."""

    def __init__(self, filters, scan_type=True, dump=True, lie=None, pieces=False,
                 changes=0):
        self.filters, self.scan_type, self.dump = filters, scan_type, dump
        self.pieces = pieces    # it has BF.SCANDUMP
        self.changes = changes  # how many times the filter changes meanwhile
        self.headers = 0
        self.lie = lie
        self.asked = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        data = b""
        while True:
            try:
                end = resp.reply_end(data)
            except resp.Incomplete:
                try:
                    more = sock.recv(65536)
                except OSError:
                    return
                if not more:
                    return
                data += more
                continue
            words, data = resp.decode(data[:end]), data[end:]
            name = words[0].decode()
            self.asked.add(name)
            try:
                sock.sendall(self.answer(name, words[1:]))
            except OSError:
                return

    def answer(self, name, args):
        if self.lie and name == self.lie[0]:
            return self.lie[1]
        if name == "PING":
            return b"+PONG\r\n"
        if name == "INFO":
            return bulk(b"# Keyspace\r\ndb0:keys=5,expires=0,avg_ttl=0\r\n")
        if name == "SELECT":
            return b"+OK\r\n"
        if name == "SCAN":
            if len(args) > 3:
                if not self.scan_type:
                    return b"-ERR syntax error\r\n"
                keys = [key for key, one in self.filters.items()
                        if one.module.encode() == args[4]]
            else:
                keys = list(self.filters) + ["text", "list"]
            return b"*2\r\n" + bulk(b"0") + resp.command(*keys) \
                if keys else b"*2\r\n" + bulk(b"0") + b"*0\r\n"
        key = args[0].decode()
        one = self.filters.get(key)
        if name == "TYPE":
            return b"+%s\r\n" % (one.module.encode() if one else b"string")
        if name == "PTTL":
            return b":-1\r\n"
        if name == "BF.INFO":
            return b"*1\r\n:%d\r\n" % len(one.payload)
        if name == "BF.SCANDUMP" and self.pieces:
            return self.piece(one, int(args[1]))
        if name == "DUMP" and self.dump:
            return bulk(one.payload)
        return b"-ERR unknown command '%s'\r\n" % name.encode()


    def piece(self, one, iterator):
        """The header is asked for before and after each fetch."""
        at = [0] + [number for number, _ in one.chunks]
        number, data = one.chunks[at.index(iterator)]
        if iterator == 0:
            self.headers += 1
            if self.headers % 2 == 0 and self.headers // 2 <= self.changes:
                data = b"\xff" + data[1:]
        return b"*2\r\n:%d\r\n" % number + bulk(data)


def bulk(data):
    return b"$%d\r\n%s\r\n" % (len(data), data)


FILTERS = {one.name: one for one in DUMPS}


@pytest.mark.parametrize("scan_type", [True, False])
def test_filters_of_both_modules(server, scan_type):
    source = Old(FILTERS, scan_type=scan_type)
    got = figures(copy(server, source))
    assert got["filters restored"] == len(DUMPS)
    for one in DUMPS:
        assert present(server, one.name, one.items), one.name
    assert ("TYPE" in source.asked) == (not scan_type)


def test_a_source_with_neither_dump_nor_scandump(server):
    got = copy(server, Old({"a": DUMPS[0]}, dump=False), status=INCOMPLETE)
    assert b"key 'a' of database 0: the source refuses BF.SCANDUMP" in got.stderr
    with server.conn() as conn:
        assert conn.call("DBSIZE") == 0


@pytest.mark.parametrize("lie", [
    ("SCAN", b"*2\r\n" + bulk(b"0") + b":1\r\n"),
    ("SCAN", b"*2\r\n" + bulk(b"1" * 99) + b"*0\r\n"),
    ("SCAN", b":1\r\n"),
    ("INFO", b"-ERR no\r\n"),
    ("PTTL", b"+what\r\n"),
    ("DUMP", b"$1000000000000\r\nx"),
    ("DUMP", b"hello\r\n"),
    ("SELECT", b"-ERR no\r\n"),
    ("PING", b"-ERR no\r\n"),
])
def test_sources_that_lie(server, lie):
    got = copy(server, Old({"a": DUMPS[0]}, lie=lie), "--timeout", 1,
               status=UNREADABLE)
    assert got.stderr


def test_a_server_that_is_not_there(server):
    got = load(*to(server), "server", "127.0.0.1:%d" % servers.free_port(),
               status=UNREADABLE)
    assert b"cannot connect" in got.stderr


# ---- pieces --------------------------------------------------------------------

PIECES = {one.name: one for one in DUMPS if one.chunks}


@pytest.mark.parametrize("changes", [0, 2])
def test_filters_come_in_pieces_where_dump_is_refused(server, changes):
    source = Old(PIECES, dump=False, pieces=True, changes=changes)
    got = figures(copy(server, source))
    assert got["filters restored"] == len(PIECES) and got["pieces (SCANDUMP)"]
    for one in PIECES.values():
        assert present(server, one.name, one.items), one.name
    with server.conn() as conn:
        assert conn.call("DBSIZE") == len(PIECES)  # no part is left


def test_a_filter_that_changes_all_the_time_is_refused(server):
    source = Old({"a": DUMPS[0]}, dump=False, pieces=True, changes=3)
    got = copy(server, source, status=INCOMPLETE)
    assert b"clients write to it all the time" in got.stderr
    assert figures(got)["refused"] == 1
    with server.conn() as conn:
        assert conn.call("DBSIZE") == 0


@pytest.mark.parametrize("source,status", [
    ({"pieces": True}, DONE),
    ({}, INCOMPLETE),                               # SCANDUMP is refused
    ({"pieces": True, "changes": 3}, INCOMPLETE),
    ({"lie": ("BF.SCANDUMP", b"hello\r\n")}, UNREADABLE)])
def test_pieces_replace_a_filter_only_when_they_are_all_there(server, source,
                                                              status):
    with server.conn() as conn:
        conn.call("BF.ADD", "a", "former item")
    copy(server, Old({"a": DUMPS[0]}, dump=False, **source),
         "--existing", "replace", status=status)
    assert present(server, "a", ["former item"]) == (status != DONE)
    assert present(server, "a", DUMPS[0].items) == (status == DONE)
    with server.conn() as conn:
        assert conn.call("DBSIZE") == 1


def test_a_copy_stops_if_it_cannot_ask_for_a_key(start_server):
    server = start_server("--maxclients", "2")
    with server.conn() as conn:
        servers.wait_until(lambda: b"connected_clients:1\r\n" in
                           conn.call("INFO", "clients"))
        got = copy(server, Old(PIECES, dump=False, pieces=True),
                   status=UNREADABLE)
        assert b"max number of clients" in got.stderr
        assert b"stopped: " in got.stderr


def test_the_filters_of_a_bloomery_come_in_pieces(server, filled):
    got = figures(copy(server, filled, "--scandump"))
    assert got["filters restored"] == 300 and got["pieces (SCANDUMP)"] >= 600
    assert_copied(server)


def test_filters_too_long_for_an_argument_come_in_pieces(start_server):
    server = start_server("--proto-max-bulk-len", "1mb")
    source = start_server()
    with source.conn() as conn:
        conn.call("BF.RESERVE", "large", "0.001", 2000000)
        conn.call("BF.MADD", "large", "a", "b")
        conn.call("BF.ADD", "small", "a")
    got = figures(copy(server, source))
    assert got["filters restored"] == 2 and got["pieces (SCANDUMP)"] >= 2
    assert present(server, "large", ["a", "b"])


def test_a_filter_above_the_limit_is_refused_once(start_server):
    server = start_server("--proto-max-bulk-len", "1mb",
                          "--bf.bloom-memory-usage-limit", "1mb")
    source = start_server()
    with source.conn() as conn:
        conn.call("BF.RESERVE", "large", "0.001", 4000000)
        conn.call("BF.ADD", "small", "a")
    got = copy(server, source, status=INCOMPLETE)
    assert figures(got)["refused"] == 1 and present(server, "small", ["a"])
    told = [line for line in got.stderr.splitlines() if b"'large'" in line]
    assert len(told) == 1 and b"exceeds bloom object memory limit" in told[0]
    with server.conn() as conn:
        assert conn.call("DBSIZE") == 1
