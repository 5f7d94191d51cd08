# SPDX-License-Identifier: BSD-3-Clause
#
# bloomery-load export: the filters of a server, or of its files, as commands for
# another product. The commands have the bytes that the products wrote (tests/data), and bring the
# same filters back.

import json
import os
import shutil
import subprocess
import threading
import time

import pytest

from lib import servers
from lib.loads import (INCOMPLETE, UNREADABLE, USAGE, figures, load)

DATA = servers.TOP / "tests/data"
REDISBLOOM = [one for one in (json.loads(path.read_text()) for path in sorted(
    (DATA / "redisbloom/filters").glob("*.json"))) if "redis7_DUMP_hex" in one]
VALKEY = json.loads((DATA / "valkey-bloom/filters.json").read_text())


def export(server, product, path, *more, **how):
    return load("export", "--for", product, *more,
                "127.0.0.1:%d" % server.port, path, **how)


def commands_of(data):
    """Parses RESP commands."""
    at, commands = 0, []
    while at < len(data):
        end = data.index(b"\r\n", at)
        assert data[at:at + 1] == b"*"
        count, at, words = int(data[at + 1:end]), end + 2, []
        for _ in range(count):
            end = data.index(b"\r\n", at)
            length, at = int(data[at + 1:end]), end + 2
            words.append(data[at:at + length])
            at += length + 2
        commands.append(words)
    return commands


def pipe(server, path):
    """Feeds a file as redis-cli --pipe does."""
    got = subprocess.run(["redis-cli", "-p", str(server.port), "--pipe"],
                         stdin=open(path, "rb"), capture_output=True,
                         timeout=60 * servers.time_factor())
    assert got.returncode == 0 and b"errors: 0," in got.stdout, got
    return got


def fill(server):
    """All recorded filters, and some native ones."""
    with server.conn() as conn:
        for one in REDISBLOOM:
            for chunk in one["chunks"]:
                if chunk["iterator_for_load"]:
                    assert conn.call(
                        "BF.LOADCHUNK", "r:" + one["name"],
                        chunk["iterator_for_load"],
                        bytes.fromhex(chunk["hex"])) == b"OK"
        for one in VALKEY:
            assert conn.call("BF.LOAD", "v:" + one["name"],
                             bytes.fromhex(one["bf_load"])) == b"OK"
        conn.call("SELECT", 3)
        for i in range(50):
            conn.call("BF.ADD", "n:%d" % i, "item:%d" % i)
    return server


@pytest.fixture
def filled(start_server):
    return fill(start_server())


def dumps(server, pattern="*", db=0):
    with server.conn() as conn:
        conn.call("SELECT", db)
        return {key: [conn.call("BF.SCANDUMP", key, at) for at in (0, 1)]
                for key in conn.call("KEYS", pattern)}


def test_redisbloom_gets_its_filters_back_bit_for_bit(start_server, filled,
                                                      tmp_path):
    path = tmp_path / "out"
    got = export(filled, "redisbloom", path, status=INCOMPLETE)
    report = figures(got)
    assert report["filters exported"] == len(REDISBLOOM)
    assert report["of other layouts"] == len(VALKEY) + 50
    commands = commands_of(path.read_bytes())
    assert commands[0] == [b"SELECT", b"0"]
    for one in REDISBLOOM:
        ours = [words for words in commands
                if words[1] == b"r:" + one["name"].encode()]
        theirs = [chunk for chunk in one["chunks"]
                  if chunk["iterator_for_load"]]
        assert {words[0] for words in ours} == {b"BF.LOADCHUNK"}
        assert [int(words[2]) for words in ours] == [
            chunk["iterator_for_load"] for chunk in theirs]
        assert [words[3].hex() for words in ours] == [
            chunk["hex"] for chunk in theirs]
    other = start_server()
    pipe(other, path)
    assert dumps(other) == dumps(filled, "r:*")


def test_valkey_bloom_gets_its_filters_back_bit_for_bit(start_server, filled,
                                                        tmp_path):
    path = tmp_path / "out"
    export(filled, "valkeybloom", path, status=INCOMPLETE)
    commands = commands_of(path.read_bytes())
    assert {words[1]: words[2].hex() for words in commands[1:]} == {
        b"v:" + one["name"].encode(): one["bf_load"] for one in VALKEY}
    assert {words[0] for words in commands[1:]} == {b"BF.LOAD"}
    other = start_server()
    pipe(other, path)
    assert dumps(other) == dumps(filled, "v:*")


def test_another_bloomery_gets_everything(start_server, filled, tmp_path):
    path = tmp_path / "out"
    with filled.conn() as conn:
        at_ms = conn.call("PEXPIREAT", "r:default3", 4000000000000)
        assert at_ms == 1
    got = figures(export(filled, "bloomery", path))
    assert got["filters exported"] == got["filters found"] == \
        len(REDISBLOOM) + len(VALKEY) + 50
    other = start_server()
    pipe(other, path)
    for db in (0, 3):
        assert dumps(other, db=db) == dumps(filled, db=db)
    with other.conn() as conn:
        assert abs(conn.call("PEXPIRETIME", "r:default3") -
                   4000000000000) < 60000
        conn.call("SELECT", 3)
        assert conn.call("BF.EXISTS", "n:7", "item:7") == 1


@pytest.mark.parametrize("source", ["server", "files"])
def test_keyed_and_ageing_filters_are_exported(start_server, tmp_path, source):
    """The tool needs no secret to read them from a server, and finds the one that lies
    beside files."""
    (tmp_path / "data").mkdir()
    server = start_server("--dir", tmp_path / "data", "--appendonly", "yes",
                          "--enable-debug-command", "yes")
    with server.conn() as conn:
        for key, words in (("k", ("HASH", "keyed")), ("a", ("AGEING", "1000")),
                           ("b", ("AGEING", "1000", "HASH", "keyed")),
                           ("d", ("DELETABLE", "HASH", "keyed"))):
            assert conn.call("BF.RESERVE", key, "0.01", "100", *words) == b"OK"
            conn.call("BF.MADD", key, *range(150))
    path = tmp_path / "out"
    if source == "server":
        got = export(server, "bloomery", path)
    else:
        got = load("export", "--for", "bloomery", tmp_path / "data", path)
    assert figures(got)["filters exported"] == 4
    other = start_server("--hash-secret-file", tmp_path / "data/hash-secret",
                         "--enable-debug-command", "yes")
    pipe(other, path)
    with server.conn() as one, other.conn() as two:
        for key in "kabd":
            assert one.call("DEBUG", "DIGEST-VALUE", key) == \
                two.call("DEBUG", "DIGEST-VALUE", key)
            assert two.call("BF.MEXISTS", key, *range(150)) == [1] * 150


def test_one_database_and_a_pipe(start_server, filled, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = []
    reader = threading.Thread(target=lambda: data.append(path.read_bytes()))
    reader.start()
    got = figures(export(filled, "bloomery", path, "--db", 3))
    reader.join()
    assert got["filters exported"] == 50
    commands = commands_of(data[0])
    assert commands[0] == [b"SELECT", b"3"] and len(commands) == 101


def test_filters_in_many_pieces(start_server, tmp_path):
    source, other = start_server("--bloom-layout", "redisbloom"), start_server()
    path = tmp_path / "out"
    with source.conn() as conn:
        conn.call("BF.RESERVE", "large", "0.01", 10_000_000)
        conn.call("BF.MADD", "large", *range(1000))
    export(source, "redisbloom", path)
    assert len(commands_of(path.read_bytes())) > 10
    pipe(other, path)
    with source.conn() as a, other.conn() as b:
        assert a.call("DUMP", "large") == b.call("DUMP", "large")


def test_nothing_is_overwritten(filled, tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"kept")
    got = export(filled, "bloomery", path, status=UNREADABLE)
    assert b"File exists" in got.stderr
    assert path.read_bytes() == b"kept"
    export(filled, "bloomery", tmp_path / "no" / "out", status=UNREADABLE)
    link = tmp_path / "link"
    link.symlink_to(path)
    assert b"File exists" in export(filled, "bloomery", link,
                                    status=UNREADABLE).stderr
    assert path.read_bytes() == b"kept"
    path.write_bytes(b"")       # as /dev/stdout behind >
    export(filled, "bloomery", link)
    assert path.read_bytes()


def test_mistakes(filled, tmp_path):
    path = tmp_path / "out"
    got = export(filled, "redis", path, status=USAGE)
    assert b"--for: is bloomery, redisbloom or valkeybloom" in got.stderr
    load("export", "127.0.0.1:%d" % filled.port, path, status=USAGE)
    load("export", "--for", "bloomery", "127.0.0.1:%d" % filled.port,
         status=USAGE)
    assert not path.exists()
    load("export", "--for", "bloomery", "127.0.0.1:%d" % servers.free_port(),
         path, status=UNREADABLE)
    assert not path.exists()


def test_what_cannot_be_exported_is_named(start_server, tmp_path):
    source = start_server()
    one = REDISBLOOM[0]
    with source.conn() as conn:
        conn.call("BF.LOADCHUNK", "half", 1,
                  bytes.fromhex(one["chunks"][0]["hex"]))
        conn.call("BF.ADD", "whole", "a")
        conn.call("BF.RESERVE", "large", "0.01", 1_000_000)
    got = export(source, "bloomery", tmp_path / "out", "--max-value", "64kb",
                 status=None)
    report = figures(got)
    assert got.returncode == INCOMPLETE
    assert (report["filters exported"], report["refused"]) == (1, 2)
    assert b"'half'" in got.stderr and b"incomplete" in got.stderr
    assert b"'large'" in got.stderr and b"--max-value" in got.stderr
    commands = commands_of((tmp_path / "out").read_bytes())
    assert {words[1] for words in commands[1:]} == {b"whole"}


def test_writers_do_not_tear_a_filter(start_server, tmp_path):
    """Each filter in the file is as it was at one moment, or is named."""
    source, other = start_server(), start_server()
    stop = threading.Event()

    def write():
        with source.conn() as conn:
            count = 0
            while not stop.is_set():
                conn.call("BF.ADD", "k", "more:%d" % count)
                count += 1

    with source.conn() as conn:
        conn.call("BF.RESERVE", "k", "0.01", 100)
        conn.call("BF.MADD", "k", *range(5000))
    writer = threading.Thread(target=write)
    writer.start()
    try:
        got = export(source, "bloomery", tmp_path / "out", status=None)
    finally:
        stop.set()
        writer.join()
    assert got.returncode in (0, INCOMPLETE)
    pipe(other, tmp_path / "out")
    with other.conn() as conn:
        if figures(got)["filters exported"]:
            assert conn.call("BF.MEXISTS", "k", *range(5000)) == [1] * 5000
        else:
            assert b"all the time" in got.stderr
            assert conn.call("DBSIZE") == 0


# ---- from files --------------------------------------------------------------


@pytest.fixture
def data(tmp_path):
    """A data directory that outlives its server."""
    (tmp_path / "source").mkdir()
    return tmp_path / "source"


def export_files(product, source, path, *more, **how):
    return load("export", "--for", product, *more, source, path, **how)


def sorted_commands(path):
    """The commands without SELECT, each with its database: the order of filters
    is not defined, that of the commands of one is. A running server is asked for
    the time that is left, so times of expiry may differ by the way of a reply."""
    db, found = None, {}
    for words in commands_of(path.read_bytes()):
        if words[0] == b"SELECT":
            db = words[1]
        else:
            if words[0] == b"PEXPIREAT":
                words[2] = round(int(words[2]), -4)
            found.setdefault((db, words[1]), []).append(words)
    return found


@pytest.mark.parametrize("product", ["redisbloom", "valkeybloom", "bloomery"])
def test_files_give_the_same_as_their_server(start_server, data, tmp_path,
                                              product):
    """A snapshot, a journal, and a data directory, of which the server runs no
    more; and the journal while it runs."""
    filled = fill(start_server("--dir", data))
    with filled.conn() as conn:
        conn.call("PEXPIREAT", "r:default3", 4000000000000)
        conn.call("BGREWRITEAOF")
        conn.call("SELECT", 3)
        conn.call("BF.ADD", "n:3", "added behind the base")
        conn.call("DEL", "n:9")
        conn.call("SAVE")
    status = 0 if product == "bloomery" else INCOMPLETE
    export(filled, product, tmp_path / "live", status=status)
    journal = data / "journal"
    export_files(product, journal, tmp_path / "running", status=status)
    expected = sorted_commands(tmp_path / "live")
    assert len(expected) >= 3
    assert sorted_commands(tmp_path / "running") == expected
    filled.stop()
    got = export_files(product, journal, tmp_path / "journal", status=status)
    assert sorted_commands(tmp_path / "journal") == expected
    assert figures(got)["filters exported"] == len(expected)
    (data / "bloomery.snapshot").rename(tmp_path / "kept")
    export_files(product, data, tmp_path / "data", status=status)
    assert sorted_commands(tmp_path / "data") == expected
    export_files(product, tmp_path / "kept", tmp_path / "snapshot",
                 status=status)
    assert sorted_commands(tmp_path / "snapshot") == expected


@pytest.mark.parametrize("newer", ["journal", "snapshot"])
def test_of_a_snapshot_and_a_journal_the_newer_is_read(start_server, data,
                                                       tmp_path, newer):
    server = start_server("--dir", data)
    with server.conn() as conn:
        conn.call("BF.ADD", "old", "x")
        conn.call("SAVE")
        if newer == "snapshot":
            server.stop()
            shutil.copytree(data / "journal", tmp_path / "kept")
            server = start_server("--dir", data)
    with server.conn() as conn:
        conn.call("BF.ADD", "new", "x")
        if newer == "snapshot":
            conn.call("SAVE")
    server.stop()
    if newer == "snapshot":
        shutil.rmtree(data / "journal")
        (tmp_path / "kept").rename(data / "journal")
    got = export_files("bloomery", data, tmp_path / "out")
    assert b"reading the newer one, the " + newer.encode() in got.stderr
    assert {key for _, key in sorted_commands(tmp_path / "out")} == \
        {b"old", b"new"}


def test_one_database_of_a_file(start_server, data, tmp_path):
    fill(start_server("--dir", data)).stop()
    got = figures(export_files("bloomery", data / "journal",
                               tmp_path / "out", "--db", 3))
    assert got["filters found"] == got["filters exported"] == 50
    assert {db for db, _ in sorted_commands(tmp_path / "out")} == {b"3"}


def test_files_with_filters_that_cannot_be_exported(start_server, data,
                                                    tmp_path):
    one = REDISBLOOM[0]
    source = start_server("--dir", data)
    with source.conn() as conn:
        conn.call("BF.LOADCHUNK", "half", 1,
                  bytes.fromhex(one["chunks"][0]["hex"]))
        conn.call("BF.ADD", "whole", "a")
        conn.call("BF.ADD", "expired", "a")
        expires_at = int(time.time() * 1000) + 200
        conn.call("PEXPIREAT", "expired", expires_at)
        conn.call("PEXPIREAT", "whole", 4000000000000)
    source.kill()
    servers.wait_until(lambda: time.time() * 1000 > expires_at, 5, "expiry")
    got = export_files("bloomery", data / "journal",
                       tmp_path / "out", status=INCOMPLETE)
    report = figures(got)
    assert (report["filters exported"], report["refused"]) == (1, 1)
    assert b"'half'" in got.stderr and b"incomplete" in got.stderr
    assert [b"PEXPIREAT", b"whole", b"4000000000000"] in commands_of(
        (tmp_path / "out").read_bytes())


def test_a_damaged_journal_gives_what_comes_before(start_server, data,
                                                   tmp_path):
    source = start_server("--dir", data, "--appendfsync", "always",
                          "--auto-aof-rewrite-percentage", "0")
    with source.conn() as conn:
        for i in range(20):
            conn.call("BF.ADD", "k:%d" % i, "a")
    source.kill()
    journal = data / "journal"
    increment = max(journal.glob("incr-*"))
    data = bytearray(increment.read_bytes())
    data[len(data) // 2] ^= 1
    increment.write_bytes(data)
    got = export_files("bloomery", journal, tmp_path / "out", status=INCOMPLETE)
    assert b"damaged at offset" in got.stderr
    keys = {key for _, key in sorted_commands(tmp_path / "out")}
    assert keys == {b"k:%d" % i for i in range(len(keys))}
    assert 0 < len(keys) < 20


def test_paths_that_are_no_source(start_server, data, tmp_path):
    out = tmp_path / "out"
    filled = fill(start_server("--dir", data))
    with filled.conn() as conn:
        conn.call("SAVE")
    filled.stop()
    increment = max((data / "journal").glob("incr-*"))
    got = export_files("bloomery", increment, out, status=USAGE)
    assert b"is one file of a journal" in got.stderr
    (tmp_path / "text").write_bytes(b"no snapshot")
    got = export_files("bloomery", tmp_path / "text", out, status=USAGE)
    assert b"is no snapshot and no journal" in got.stderr
    damaged = bytearray((data / "bloomery.snapshot").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    got = export_files("bloomery", tmp_path / "damaged", out, status=INCOMPLETE)
    assert str(tmp_path / "damaged").encode() in got.stderr
    got = export_files("bloomery", tmp_path / "missing/file", out,
                       status=UNREADABLE)
    assert b"missing/file" in got.stderr
    assert not out.exists()
