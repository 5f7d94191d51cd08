# SPDX-License-Identifier: BSD-3-Clause
#
# bloomery-check on journals of every number of databases, and what salvage makes of
# a log with gaps: no item of an intact group is missing, in filters of any kind.

import json
import os
import random
import re
import subprocess
from pathlib import Path

import pytest

from lib import resp, servers

SEAL = re.compile(rb"#XX:(\d{16}):(\d{14}):(\d{16}):(\d{16}):[0-9a-f]{32}\r\n")
FIRST_LINE = 128
OPTIONS = ("--appendonly", "yes", "--threads", "1", "--appendfsync", "always",
           "--auto-aof-rewrite-percentage", "0", "--bf.bloom-fp-rate", "0.000001", "--enable-debug-command", "yes")


def check(*args):
    program = Path(servers.server_binary()).with_name("bloomery-check")
    return subprocess.run([str(program), *map(str, args)], capture_output=True,
                          timeout=60 * servers.time_factor())


@pytest.fixture
def rng():
    seed = int(os.environ.get("SEED") or 0) or random.randrange(1 << 32)
    print("SEED=%d" % seed)
    return random.Random(seed)


def increment_of(path):
    return sorted((path / "journal").glob("incr-*"),
                  key=lambda p: int(p.name[5:]))[-1]


def flip_in(increment, *words):
    """Flips a bit of the group that has each of these words. Each is one group."""
    data = bytearray(increment.read_bytes())
    begin = FIRST_LINE
    found = 0
    for seal in SEAL.finditer(bytes(data)):
        body = data[begin:seal.start()]
        if any(word in body for word in words):
            data[begin + 20] ^= 1
            found += 1
        begin = seal.end()
    assert found == len(words), (found, words)
    increment.write_bytes(data)


def run(path, start_server, change, *options):
    """Starts a server there, changes its data, and stops it."""
    server = start_server("--dir", path, *OPTIONS, *options)
    with server.conn() as conn:
        change(conn)
    server.stop()


def salvage(path, out):
    """Returns the cards by kind, and what it says on standard error."""
    got = check("salvage", "--json", path, out)
    assert got.returncode == 1, got
    cards = [json.loads(line) for line in got.stdout.splitlines()]
    return {card["kind"]: card for card in cards}, got.stderr.decode()


def test_a_log_of_database_20_is_intact_and_stays_in_it(start_server, tmp_path):
    path = tmp_path / "data"
    path.mkdir()

    def change(conn):
        conn.call("BF.MADD", "both", "of0")
        conn.call("BF.MADD", "lost", "flip-me")
        conn.call("SELECT", "20")
        for i in range(50):
            conn.call("BF.ADD", "in20", str(i))
        conn.call("BF.ADD", "both", "of20")
        conn.call("DEL", "both")
        conn.call("SWAPDB", "20", "21")
        conn.call("BF.ADD", "later20", "a")

    run(path, start_server, change, "--databases", "32")
    for words in (("verify", path), ("backup", path, tmp_path / "backup"),
                  ("cat", path / "journal")):
        got = check(*words)
        assert got.returncode == 0, got
    few = subprocess.run([servers.server_binary(), "--dir", path, "--port",
                          str(servers.free_port()), *OPTIONS, "--databases", "20"], capture_output=True,
                         timeout=60 * servers.time_factor())
    assert few.returncode != 0 and b"raise the option databases" in few.stderr, few
    flip_in(increment_of(path), b"flip-me")
    cards, _ = salvage(path, tmp_path / "out")
    assert cards["journal"]["failed_commands"] == 0
    server = start_server("--dir", tmp_path / "out", "--databases", "32", *OPTIONS)
    with server.conn() as conn:
        assert conn.call("KEYS", "*") == [b"both"]
        assert conn.call("BF.EXISTS", "both", "of0") == 1
        conn.call("SELECT", "20")
        assert conn.call("KEYS", "*") == [b"later20"]
        conn.call("SELECT", "21")
        assert conn.call("KEYS", "*") == [b"in20"]
        assert conn.call("BF.MEXISTS", "in20", *range(50)) == [1] * 50


@pytest.mark.parametrize("words", [("DELETABLE",),
                                   ("DELETABLE", "8", "HASH", "keyed")])
def test_no_intact_item_of_a_deletable_filter_is_missing(start_server, tmp_path,
                                                         rng, words):
    """700 items come in groups of 10, 300 are deleted again, and 5 of the groups
    are damaged; more come and go behind the gaps."""
    path = tmp_path / "data"
    path.mkdir()
    items = ["item:%d" % i for i in range(700)]
    tens = [items[i:i + 10] for i in range(0, 700, 10)]
    deleted = [item for ten in tens[:30] for item in ten]
    bad = rng.sample(range(30), 5)
    later = ["later:%d" % i for i in range(200)]
    before = {}

    def change(conn):
        conn.call("BF.RESERVE", "k", "0.05", "250", *words)
        for i, ten in enumerate(tens):
            conn.call("BF.MADD", "k", *ten, "mark:%d:" % i)
        for item in later:
            conn.call("BF.ADD", "k", item)
        conn.call("BF.RESERVE", "after", "0.05", "250", "DELETABLE")
        conn.call("BF.MADD", "after", *items)
        for i in range(0, 300, 25):
            conn.call("BF.MDEL", "k", *deleted[i:i + 25])
            conn.call("BF.MDEL", "after", *deleted[i:i + 25])
        conn.call("BF.MDEL", "k", *later[:50])
        before["left"] = sum(conn.call("BF.MEXISTS", "k", *deleted))
        before["after"] = conn.call("DEBUG", "DIGEST-VALUE", "after")

    run(path, start_server, change)
    flip_in(increment_of(path), *[b"mark:%d:" % i for i in bad])
    secret = path / "hash-secret"
    more = ("--hash-secret-file", secret) if "keyed" in words else ()
    got = check("salvage", "--json", *more, path, tmp_path / "out")
    assert got.returncode == 1, got
    cards = {card["kind"]: card for card in map(json.loads,
                                                got.stdout.splitlines())}
    server = start_server("--dir", tmp_path / "out", *OPTIONS,
                          *(("--hash-secret-file", secret) if more else ()))
    intact = [item for i, ten in enumerate(tens) if i >= 30 for item in ten]
    with server.conn() as conn:
        found = conn.call("BF.MEXISTS", "k", *intact, *later[50:])
        assert found == [1] * len(found), found.count(0)
        # A filter that began behind the gaps is as it was.
        assert conn.call("DEBUG", "DIGEST-VALUE", "after") == before["after"]
        left = sum(conn.call("BF.MEXISTS", "k", *deleted))
    named = re.search(rb'database 0, filter "k": (\d+) deleted items may',
                      got.stderr)
    kept = int(named.group(1)) if named else 0
    assert left <= before["left"] + kept + 50
    assert cards["journal"]["deletions_left_out"] == kept


def test_deletions_behind_a_gap_are_left_out_and_named(start_server, tmp_path):
    """All adds of the filter are in the base, and the log behind has a gap."""
    path = tmp_path / "data"
    path.mkdir()

    def change(conn):
        conn.call("BF.RESERVE", "k", "0.01", "1000", "DELETABLE")
        conn.call("BF.MADD", "k", *range(100))

    def change_more(conn):
        conn.call("BF.MADD", "k", "flip-me")
        conn.call("BF.MDEL", "k", *range(10))
        conn.call("BF.MADD", "k", "again")
        conn.call("BF.MDEL", "k", "again")

    def change_all(conn):
        change(conn)
        conn.call("BGREWRITEAOF")
        servers.wait_until(lambda: len(list((path / "journal").glob(
            "incr-*"))) and b"aof_rewrite_in_progress:0" in conn.call(
                "INFO", "persistence") and b"aof_rewrite_scheduled:0" in conn.call(
                    "INFO", "persistence"), 20, "the rewrite")
        change_more(conn)

    run(path, start_server, change_all)
    flip_in(increment_of(path), b"flip-me")
    cards, errors = salvage(path, tmp_path / "out")
    assert cards["journal"]["deletions_left_out"] == 10
    assert 'filter "k": 10 deleted items may still be found' in errors
    server = start_server("--dir", tmp_path / "out", *OPTIONS)
    with server.conn() as conn:
        assert conn.call("BF.MEXISTS", "k", *range(100)) == [1] * 100
        assert conn.call("BF.EXISTS", "k", "again") == 0


def test_what_a_filter_got_from_others_behind_a_gap_is_there(start_server, tmp_path):
    """BF.MERGE and full filters, where the log lacks creations and deletions."""
    path = tmp_path / "data"
    path.mkdir()
    seed = ("SEED", "0123456789abcdefghijklmnopqrstuv", "DELETABLE", "1")

    def words(name, count):
        return ["%s:%d" % (name, i) for i in range(count)]

    def change(conn):
        def make(key, *more):
            assert conn.call("BF.INSERT", key, "CAPACITY", "100", "ERROR", "0.05",
                             *seed, *more) == []

        # Only what came from "lost" is deleted from "into" again.
        conn.call("BF.INSERT", "lost", "CAPACITY", "100", "ERROR", "0.05", *seed,
                  "ITEMS", "flip-creation")
        conn.call("BF.MADD", "lost", *words("from", 30))
        make("into")
        conn.call("BF.MADD", "into", *words("stays", 40))
        assert conn.call("BF.MERGE", "into", "lost") == b"OK"
        conn.call("BF.MDEL", "into", *words("from", 30))
        # The union fits into the layer, but not with what is deleted.
        for key in ("full", "more"):
            make(key)
        conn.call("BF.MADD", "full", *words("full", 60))
        conn.call("BF.MDEL", "full", *words("full", 55))
        conn.call("BF.MADD", "more", *words("more", 60))
        assert conn.call("BF.MERGE", "full", "more") == b"OK"
        # One source of two is lost.
        make("both")
        assert conn.call("BF.MERGE", "both", "lost", "more") == b"OK"
        assert conn.call("BF.MERGE", "new", "lost", "more") == b"OK"
        for key, kind in (("fixed", seed), ("native", ())):
            conn.call("BF.INSERT", key, "CAPACITY", "50", *kind, "NONSCALING")
            conn.call("BF.MADD", key, *words("old", 45))
        conn.call("BF.MDEL", "fixed", *words("old", 40))
        conn.call("BF.RESET", "native")
        for key in ("fixed", "native"):
            assert conn.call("BF.MADD", key, *words("new", 20)).count(1) >= 16

    run(path, start_server, change)
    flip_in(increment_of(path), b"flip-creation", b"MDEL\r\n$4\r\nfull",
            b"MDEL\r\n$5\r\nfixed", b"BF.RESET")
    salvage(path, tmp_path / "out")
    server = start_server("--dir", tmp_path / "out", *OPTIONS)
    found = {}
    with server.conn() as conn:
        for key, items in (("into", words("stays", 40)), ("full", words("more", 60)),
                           ("both", words("more", 60)), ("new", words("more", 60)),
                           ("fixed", words("new", 20)), ("native", words("new", 20))):
            there = conn.call("BF.MEXISTS", key, *items)
            found[key] = len(items) - there.count(1)
    assert not any(found.values()), found


def test_filters_behind_a_lost_reset_take_what_came_later(start_server, tmp_path):
    """An ageing filter takes a union and items, and a long one takes items, that
    are too many for them without the BF.RESET."""
    path = tmp_path / "data"
    path.mkdir()
    ageing = ("CAPACITY", "80", "ERROR", "0.001", "AGEING", "31536000",
              "SEED", "0123456789abcdefghijklmnopqrstuv")

    def words(name, count):
        return ["%s:%d" % (name, i) for i in range(count)]

    def change(conn):
        for key, *options in (("union", *ageing), ("other", *ageing),
                              ("fixed", *ageing, "NONSCALING"),
                              ("long", "CAPACITY", "1", "EXPANSION", "1")):
            assert conn.call("BF.INSERT", key, *options) == [], key
        for key, count in (("union", 8), ("fixed", 10), ("long", 700)):
            assert conn.call("BF.MADD", key, *words("old", count)).count(1) == count
        conn.call("MULTI")
        conn.call("BF.ADD", "mark", "flip-me")
        for key in ("union", "fixed", "long"):
            conn.call("BF.RESET", key)
        assert conn.call("EXEC") == [1, b"OK", b"OK", b"OK"]
        conn.call("BF.MADD", "other", *words("other", 8))
        assert conn.call("BF.MERGE", "union", "other") == b"OK"
        assert conn.call("BF.MADD", "fixed", *words("new", 10)) == [1] * 10
        assert conn.call("BF.MADD", "long", *words("new", 700)).count(1) == 700

    run(path, start_server, change)
    flip_in(increment_of(path), b"flip-me")
    cards, _ = salvage(path, tmp_path / "out")
    assert cards["journal"]["failed_commands"] == 0
    server = start_server("--dir", tmp_path / "out", *OPTIONS)
    with server.conn() as conn:
        for key, items in (("union", words("other", 8)), ("fixed", words("new", 10)),
                           ("long", words("new", 700))):
            assert conn.call("BF.MEXISTS", key, *items).count(0) == 0, key


@pytest.mark.parametrize("saves", ["at the end", "before more", "before the damage"])
def test_an_intact_snapshot_has_what_the_journal_lost(start_server, tmp_path, saves):
    """The journal loses a group that the snapshot beside it has, or a later one."""
    path = tmp_path / "data"
    path.mkdir()
    server = start_server("--dir", path, *OPTIONS)
    with server.conn() as conn:
        conn.call("BF.RESERVE", "deletable", "0.001", "100", "DELETABLE")
        conn.call("BF.MADD", "deletable", "a", "b")
        if saves == "before the damage":
            assert conn.call("SAVE") == b"OK"
        conn.call("BF.MADD", "native", "flip-me")
        conn.call("BF.MADD", "native", "c")
        if saves == "before more":
            assert conn.call("SAVE") == b"OK"
        conn.call("BF.MDEL", "deletable", "b")
        conn.call("BF.MADD", "native", "d")
        digest = conn.call("DEBUG", "DIGEST")
        if saves == "at the end":
            assert conn.call("SAVE") == b"OK"
    server.stop()
    flip_in(increment_of(path), b"flip-me")
    got = check("verify", path)
    assert got.returncode == 1 and b"sets aside" not in got.stdout
    assert ("remedy             bloomery-check salvage %s OUT\n" % path).encode() in \
        got.stdout
    got = check("salvage", path, tmp_path / "out")
    lost = saves == "before the damage"
    assert (got.returncode == 1) == lost, got
    assert (b"nothing was lost" in got.stdout) == (not lost)
    server = start_server("--dir", tmp_path / "out", *OPTIONS)
    with server.conn() as conn:
        assert conn.call("BF.MEXISTS", "deletable", "a", "b") == [1, lost]
        if lost:
            assert conn.call("EXISTS", "native") == 0, "its creation is lost"
        else:
            assert conn.call("BF.MEXISTS", "native", "flip-me", "c", "d") == [1] * 3
            assert conn.call("DEBUG", "DIGEST") == digest


def test_a_snapshot_of_another_log_does_not_help_a_journal(start_server, tmp_path):
    for name, count in (("data", 3), ("other", 30)):
        (tmp_path / name).mkdir()
        run(tmp_path / name, start_server, lambda conn, name=name, count=count: [
            *[conn.call("BF.MADD", name, "%s:%d:" % (name, i)) for i in range(count)],
            conn.call("SAVE")])
    path = tmp_path / "data"
    flip_in(increment_of(path), b"data:1:")
    snapshot = (tmp_path / "other" / "bloomery.snapshot").read_bytes()
    (path / "bloomery.snapshot").write_bytes(snapshot)
    salvage(path, tmp_path / "out")
    (tmp_path / "out" / "bloomery.snapshot").unlink()
    server = start_server("--dir", tmp_path / "out", *OPTIONS)
    with server.conn() as conn:
        assert conn.call("KEYS", "*") == [b"data"]
        assert conn.call("BF.MEXISTS", "data", "data:0:", "data:1:", "data:2:") == \
            [1, 0, 1]


def save_meanwhile(start_server, path, keys, size):
    """Adds to KEYS in tens, and deletes some, while a snapshot is written that has
    SIZE large filters, too. Returns the tens, those that stay, and the snapshot."""
    path.mkdir()
    server = start_server("--dir", path, *OPTIONS)   # each step is a group
    kept, tens = [], []
    with server.conn() as conn:
        for i in range(size):
            conn.call("BF.RESERVE", "large%d" % i, "0.001", "1000000")
            conn.call("BF.MADD", "large%d" % i, *range(3000))
        for key in keys:
            conn.call("BF.RESERVE", key, "0.05", "100", "DELETABLE")
        assert not isinstance(conn.call("BGSAVE"), resp.Error)
        while b"rdb_bgsave_in_progress:1" in conn.call("INFO", "persistence") or \
                len(tens) < 12:
            number = len(tens)
            tens.append(["item:%d:%d" % (number, n) for n in range(10)])
            conn.pipeline([("BF.MADD", key, *tens[-1], "mark:%d:" % number)
                           for key in keys])
            if number % 2 == 0:
                kept.append(tens[-1])
            elif number >= 9:
                conn.pipeline([("BF.MDEL", key, *tens[number - 8]) for key in keys])
    server.kill()
    return tens, kept, bytearray((path / "bloomery.snapshot").read_bytes())


def test_a_walked_snapshot_with_damaged_effects_keeps_intact_items(start_server,
                                                                    tmp_path, rng):
    """Deletable filters change while a snapshot is written; then some of its effects
    are damaged. Some filters were copied before the changes, some behind them."""
    out = tmp_path / "out"
    out.mkdir()
    keys = ["k%d" % i for i in range(8)]
    there = []
    for size in (60, 120, 240, 480):    # until enough changes fall into the save
        path = tmp_path / ("data%d" % size)
        tens, kept, data = save_meanwhile(start_server, path, keys, size)
        there = [i for i in range(len(tens)) if b"mark:%d:" % i in data]
        print("%d of %d steps are effects" % (len(there), len(tens)))
        if len(there) >= 6:
            break
    assert len(there) >= 6, "the saves were over too early"
    file = path / "bloomery.snapshot"
    bad = rng.sample([i for i in there if i % 2 == 1], 2)
    lost = b""      # what else the damaged groups have
    for i in bad:
        at = data.index(b"mark:%d:" % i)
        lost += data[data.rindex(b"SECT", 0, at):data.index(b"SECT", at)]
        data[at] ^= 1
    kept = [ten for ten in kept if ten[0].encode() not in lost and
            ten[0].encode() in data]    # else it came behind the end
    assert kept
    file.write_bytes(data)
    got = check("salvage", "--json", file, out / "bloomery.snapshot")
    assert got.returncode == 1, got
    server = start_server("--dir", out, *OPTIONS)
    with server.conn() as conn:
        for key in keys:
            for ten in kept:
                found = conn.call("BF.MEXISTS", key, *ten)
                assert found == [1] * 10, (key, ten, found, bad)
