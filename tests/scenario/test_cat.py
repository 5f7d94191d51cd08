# SPDX-License-Identifier: BSD-3-Clause
#
# bloomery-check cat --resp: what a client is given of a log makes the same data on
# another server, whatever was changed, in which way.

import re
import subprocess
import threading
from pathlib import Path

import pytest

from lib import rdb, replicas, resp, servers

FAR = "4000000000000"  # ms
OPTIONS = ("--appendonly", "yes", "--enable-debug-command", "yes",
           "--databases", "32")


def cat(*args):
    program = Path(servers.server_binary()).with_name("bloomery-check")
    got = subprocess.run([str(program), "cat", *map(str, args)],
                         capture_output=True,
                         timeout=60 * servers.time_factor())
    assert got.returncode == 0, got.stderr
    assert re.fullmatch(rb"intact: \d+ files?(, \d+ filters?)?\n", got.stderr)
    return got.stdout


def pipe(conn, commands):
    conn.send(commands + resp.command("ECHO", "end"))
    reply = conn.read()
    while reply != b"end":
        assert not isinstance(reply, resp.Error), reply
        reply = conn.read()


def do(conn, *words):
    reply = conn.call(*words)
    assert not isinstance(reply, resp.Error), (words[:3], reply)
    return reply


def make(conn, layout=None):
    """Filters of all kinds, made by all words."""
    if layout is not None:
        do(conn, "CONFIG", "SET", "bloom-layout", layout)
        for key, words in {"scales": (), "full": ("NONSCALING",)}.items():
            do(conn, "BF.RESERVE", layout + key, "0.01", "30", *words)
            do(conn, "BF.MADD", layout + key, *range(40))
        do(conn, "BF.INSERT", layout + "timed", "PXAT", FAR, "ITEMS", "a")
        do(conn, "CONFIG", "SET", "bloom-layout", "native")
        return
    for key, words in {"native": (), "full": ("NONSCALING",), "forgets": (
            "DELETABLE",), "regions": ("DELETABLE", "8"), "ages": (
            "AGEING", "31536000", "GENERATIONS", "1"), "keyed": (
            "HASH", "keyed"), "growing": ("EXPANSION", "4")}.items():
        do(conn, "BF.RESERVE", key, "0.001", "60", *words)
        do(conn, "BF.ADD", key, "one")
        do(conn, "BF.MADD", key, "one", *range(90))
        do(conn, "BF.INSERT", key, "ITEMS", "incarnation", "7", "at", "placed")
    do(conn, "BF.INSERT", "words", "CAPACITY", "70", "EXPANSION", "3", "EX",
              "1000000", "TIGHTENING", "0.4", "ITEMS", "items", "placed")
    do(conn, "BF.MADD", "default", "incarnation", "9")
    do(conn, "BF.MADD", "incarnation", "incarnation", "9")
    do(conn, "BF.MDEL", "forgets", *range(30))
    do(conn, "BF.DEL", "regions", "7")


def change(conn):
    """Filters that come whole, and what is done to keys."""
    do(conn, "RESTORE", "restored", "0", do(conn, "DUMP", "native"))
    do(conn, "RESTORE", "until", FAR, do(conn, "DUMP", "forgets"), "ABSTTL")
    for dump in rdb.dumps():
        do(conn, "RESTORE", dump.name, "0", dump.payload)
    do(conn, "COPY", "growing", "copy")
    do(conn, "COPY", "keyed", "copy", "DB", "20", "REPLACE")
    do(conn, "COPY", "native", "incarnation", "REPLACE")
    do(conn, "BF.MERGE", "union", "native", "restored", "incarnation")
    do(conn, "BF.ADD", "restored", "later")
    do(conn, "BF.MERGE", "union", "restored")
    at, data = do(conn, "BF.SCANDUMP", "growing", "0")
    while at != 0:
        do(conn, "BF.LOADCHUNK", "chunks", str(at), data)
        at, data = do(conn, "BF.SCANDUMP", "growing", str(at))
    do(conn, "RENAME", "chunks", "chunked")
    do(conn, "COPY", "native", "moved")
    do(conn, "MOVE", "moved", "21")
    do(conn, "SELECT", "20")
    do(conn, "BF.ADD", "in20", "a")
    do(conn, "SWAPDB", "20", "22")
    do(conn, "BF.ADD", "gone", "a")
    do(conn, "FLUSHDB")
    do(conn, "SELECT", "0")
    do(conn, "PEXPIREAT", "native", FAR)
    do(conn, "PEXPIREAT", "full", FAR)
    do(conn, "PERSIST", "full")
    do(conn, "COPY", "forgets", "reset")
    do(conn, "BF.RESET", "reset")
    do(conn, "COPY", "ages", "ages again")
    do(conn, "BF.RESET", "ages again")
    do(conn, "BF.ADD", "deleted", "a")
    do(conn, "DEL", "deleted")
    conn.pipeline([("MULTI",), ("BF.ADD", "in-exec", "a"),
                   ("BF.MADD", "native", "b", "c"), ("EXEC",)])


@pytest.mark.parametrize("when", ["never rewritten", "rewritten between",
                                  "rewritten"])
def test_the_log_of_every_change_makes_the_same_data(start_server, when):
    # No rewrite of its own: its snapshot would have the part of a filter in chunks.
    source = start_server(*OPTIONS, "--auto-aof-rewrite-percentage", 0)
    target = start_server(*OPTIONS)
    secret = Path(source.folder) / "hash-secret"
    if not secret.exists():
        secret = None
    else:
        target.stop()
        target = start_server(*OPTIONS, "--hash-secret-file", secret)
    with source.conn() as conn:
        make(conn)
        make(conn, "redisbloom")
        if when == "rewritten between":
            rewrite(conn)
        make(conn, "valkeybloom")
        change(conn)
        if when == "rewritten":
            rewrite(conn)
        for key in (b"union", b"chunked", b"redisbloomtimed"):
            assert conn.call("EXISTS", key) == 1, key
    commands = cat("--resp", Path(source.folder) / "journal")
    with target.conn() as conn:
        pipe(conn, commands)
        found = {}
        for db in range(32):
            conn.call("SELECT", db)
            for key in conn.call("KEYS", "*"):
                found[db, key] = conn.call("DEBUG", "DIGEST-VALUE", key)
    with source.conn() as conn:
        for db in range(32):
            conn.call("SELECT", db)
            for key in conn.call("KEYS", "*"):
                assert found.pop((db, key), None) == conn.call(
                    "DEBUG", "DIGEST-VALUE", key), (db, key)
    assert not found
    assert replicas.digest(source) == replicas.digest(target)


@pytest.mark.parametrize("secret", ["own", "given", "missing"])
def test_a_base_made_under_writes_to_a_keyed_filter_is_shown(start_server,
                                                              tmp_path, secret):
    source = start_server(*OPTIONS)
    done = threading.Event()

    def write():
        with source.conn() as conn:
            i = 0
            while not done.is_set():
                conn.pipeline([("BF.ADD", "k%d" % (i % 50), str(i + j))
                               for j in range(100)])
                i += 100

    with source.conn() as conn:
        for i in range(50):
            conn.call("BF.RESERVE", "k%d" % i, "0.001", "100000", "HASH", "keyed")
        writer = threading.Thread(target=write)
        writer.start()
        rewrite(conn)
        done.set()
        writer.join()
    data = Path(source.folder)
    base = max((data / "journal").glob("base-*"), key=lambda p: int(p.name[5:]))
    if secret == "own":
        assert cat(base).count(b"RESTORE") == 50
        return
    alone = tmp_path / "alone"
    alone.write_bytes(base.read_bytes())
    if secret == "given":
        assert cat("--hash-secret-file", data / "hash-secret",
                   alone).count(b"RESTORE") == 50
        return
    program = Path(servers.server_binary()).with_name("bloomery-check")
    got = subprocess.run([str(program), "cat", str(alone)], capture_output=True,
                         timeout=60 * servers.time_factor())
    if got.returncode != 0:     # it had effects, which cannot be executed
        assert got.returncode == 3 and b"hash-secret-file" in got.stderr, got


def rewrite(conn):
    def info():
        return replicas.parse_info(conn.call("INFO", "persistence"))

    conn.call("BGREWRITEAOF")
    servers.wait_until(lambda: info()["aof_rewrite_in_progress"] == "0" and
                       info()["aof_rewrite_scheduled"] == "0", 30,
                       "the rewrite ends")
