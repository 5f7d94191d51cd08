# SPDX-License-Identifier: BSD-3-Clause
#
# bloomery-load server --follow: against a fake source with writers, broken links and
# lies, against Debian's redis-server, and against a Bloomery.

import os
import random
import signal
import struct
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from lib import rdb, servers, sources
from lib.loads import (DONE, INCOMPLETE, UNREADABLE, USAGE, figures, load, present,
                       program, to)

DUMPS = rdb.dumps()


HEAD = b"REDIS0010" + b"\xfa" + rdb.string(b"redis-ver") + rdb.string(b"7.2.0")
EMPTY = rdb.close(HEAD)
ONE = rdb.close(HEAD + rdb.filter_entry(rdb.string(b"one"), DUMPS[0].payload))


@pytest.fixture
def source():
    made = []

    def make(data=EMPTY, **more):
        made.append(sources.FakeSource(data, **more))
        return made[-1]
    yield make
    for one in made:
        one.close()


class Follower:
    """bloomery-load server --follow while it runs."""

    def __init__(self, server, source, *args):
        self.child = subprocess.Popen(
            [program(), *to(server), "server", "--follow",
             "127.0.0.1:%d" % source.port] + [str(a) for a in args],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
            self.child.communicate()

    def end(self, status=DONE, signals=1):
        """Waits for the end, after a SIGTERM unless signals is 0."""
        for _ in range(signals):
            self.child.send_signal(signal.SIGTERM)
        out, err = self.child.communicate(timeout=60 * servers.time_factor())
        assert not servers.REPORTS.search(err), err.decode()
        assert self.child.returncode == status, (self.child.returncode, out, err)
        return subprocess.CompletedProcess([], status, out, err)


def applied(source):
    """Waits until the follower has confirmed everything, and asks for that: else
    it does so each second."""
    want = source.offset
    source.feed("REPLCONF", "GETACK", "*")
    sources.wait_for(lambda: source.acked >= want, "offset %d" % want)


def synced(source):
    sources.wait_for(lambda: source.replicas, "a replica in the stream")


def create(source, key, capacity=100):
    """What valkey-bloom sends when a command makes a filter."""
    source.feed("BF.INSERT", key, "CAPACITY", capacity, "ERROR", "0.01",
                "TIGHTENING", "0.5", "SEED", b"s" * 32, "EXPANSION", 2)


# ---- the RDB and the stream ----------------------------------------------------

@pytest.mark.parametrize("form", ["size", "eof"])
@pytest.mark.parametrize("piece", [1, 1 << 16])
def test_the_rdb_and_the_stream_arrive(server, source, form, piece):
    master = source(ONE, form=form, piece=piece)
    with Follower(server, master) as follower:
        synced(master)
        master.feed("SELECT", 0)
        master.feed("SET", "other", "x")
        master.feed("BF.ADD", "one", "more")
        master.feed("BF.MADD", "new", "a", "b")
        applied(master)
        got = follower.end()
    assert present(server, "one", DUMPS[0].items + [b"more"])
    assert present(server, "new", ["a", "b"])
    report = figures(got)
    assert report["filters restored"] == 1
    assert report["commands applied"] == 2
    assert report["skipped"] == {"set": 1}
    assert report["offset"] == master.offset
    assert report["missing"] == "nothing up to this offset"


def filter_in(db, key):
    return b"\xfe" + bytes([db]) + rdb.filter_entry(rdb.string(key),
                                                    DUMPS[0].payload)


def test_one_database_is_followed(server, source):
    master = source(rdb.close(HEAD + filter_in(0, b"zero") +
                              filter_in(3, b"three")))
    with Follower(server, master, "--db", 3) as follower:
        synced(master)
        master.feed("SELECT", 0)
        master.feed("BF.ADD", "zero", "more")
        create(master, "new")
        master.feed("FLUSHDB")
        master.feed("SELECT", 3)
        master.feed("BF.ADD", "three", "more")
        create(master, "new")
        create(master, "moved")
        master.feed("MOVE", "moved", 0)
        master.feed("SWAPDB", 0, 1)
        applied(master)
        got = follower.end()
    assert keys(server) == []
    assert keys(server, 3) == [b"new", b"three"]
    assert present(server, "three", DUMPS[0].items + [b"more"], db=3)
    report = figures(got)
    assert report["filters restored"] == report["left out (--db)"] == 1


@pytest.mark.parametrize("words", [("COPY", "zero", "zero", "DB", 3),
                                   ("MOVE", "zero", 3)])
def test_what_comes_from_other_databases_is_named(server, source, words):
    master = source(rdb.close(HEAD + filter_in(0, b"zero")))
    with Follower(server, master, "--db", 3) as follower:
        synced(master)
        master.feed("SELECT", 0)
        master.feed(*words)
        applied(master)
        got = follower.end(INCOMPLETE)
    assert b"'zero' of database 3: came from a database" in got.stderr


def test_a_swap_of_the_one_database_is_said(server, source):
    master = source(rdb.close(HEAD + filter_in(3, b"three")))
    with Follower(server, master, "--db", 3) as follower:
        synced(master)
        master.feed("SWAPDB", 3, 1)
        got = follower.end(INCOMPLETE, signals=0)
    assert b"swapped database 3" in got.stderr
    assert keys(server, 3) == [b"three"]


class Writers:
    """Threads that feed transactions to a source until the end of the `with` block.
    `written` has what each fed, in the order of the stream."""

    def __init__(self, master, count):
        self.master, self.running, self.written = master, True, []
        self.threads = [threading.Thread(target=self.write, args=("w%d" % i,),
                                         daemon=True) for i in range(count)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.running = False
        for thread in self.threads:
            thread.join()

    def write(self, name):
        count = 0
        while self.running:
            items = ["%s:%d" % (name, count + i) for i in range(20)]
            key = "key:%d" % (count // 20 % 7)
            with self.master.lock:
                self.master.feed("MULTI")
                self.master.feed("BF.MADD", key, *items)
                self.master.feed("SET", "other", "x" * 100)
                self.master.feed("BF.ADD", "one", items[0])
                self.master.feed("EXEC")
                self.written.append((key, items))
            count += 20
            time.sleep(0.002)


@pytest.mark.parametrize("form", ["size", "eof"])
def test_nothing_is_missing_with_writers(server, source, form):
    """Writers go on until after the end; all that they wrote before the signal is
    there. The links break now and then."""
    seed = int(os.environ.get("SEED", time.time()))
    print("SEED=%d" % seed)
    shuffle = random.Random(seed)
    master = source(ONE, form=form)
    with Follower(server, master) as follower:
        synced(master)
        with Writers(master, 2) as writers:
            for _ in range(3):
                time.sleep(shuffle.random() / 2)
                master.cut()
                synced(master)
            with master.lock:
                before = len(writers.written)
            got = follower.end()
    assert before > 50 and figures(got)["links resumed"] == 3
    with server.conn() as conn:
        missing = sum(got.count(0) for got in conn.pipeline(
            [("BF.MEXISTS", key, *items)
             for key, items in writers.written[:before]]))
        assert missing == 0
        assert conn.call("BF.MEXISTS", "one", *[
            items[0] for _, items in writers.written[:before]]) == [1] * before


def test_a_lost_history_is_copied_again(server, source):
    """After a full copy, filters that the source has deleted meanwhile are deleted
    here too."""
    master = source(ONE, resumes=False)
    with Follower(server, master) as follower:
        synced(master)
        master.feed("BF.ADD", "temporary", "x")
        applied(master)
        assert present(server, "temporary", ["x"])
        master.rdb = rdb.close(HEAD + b"".join(
            rdb.filter_entry(rdb.string(key), DUMPS[1].payload)
            for key in (b"one", b"two")))
        master.history = b"b" * 40
        master.cut()
        synced(master)
        master.feed("BF.ADD", "two", "y")
        applied(master)
        got = figures(follower.end())
    assert (got["full copies"], got["links resumed"]) == (2, 0)
    assert present(server, "one", DUMPS[1].items)
    assert present(server, "two", DUMPS[1].items + [b"y"])
    with server.conn() as conn:
        assert conn.call("EXISTS", "temporary") == 0
        assert conn.call("DBSIZE") == 2


@pytest.mark.parametrize("form", ["size", "eof"])
def test_a_full_copy_that_broke_begins_again(server, source, form):
    """An offset of the old history means nothing in the new one."""
    master = source(ONE, form=form)
    with Follower(server, master) as follower:
        synced(master)
        master.feed("BF.ADD", "one", "x")
        applied(master)
        master.breaks = [9, len(ONE) - 1, len(ONE) + 6]
        master.resumes = False
        master.history = b"c" * 40
        master.rdb = rdb.close(HEAD + rdb.filter_entry(rdb.string(b"two"),
                                                       DUMPS[1].payload))
        master.cut()
        synced(master)
        applied(master)
        got = figures(follower.end())
    assert got["full copies"] == 2 and not master.breaks
    assert [words[0] for words in master.psyncs] == \
        [b"?", b"a" * 40, b"?", b"?", b"?"]
    assert present(server, "two", DUMPS[1].items)
    assert keys(server) == [b"two"]


def test_it_ends_by_itself_when_nothing_changes(server, source):
    master = source(ONE)
    with Follower(server, master, "--until-idle", 1) as follower:
        synced(master)
        master.feed("BF.ADD", "one", "z")
        got = follower.end(signals=0)
    assert present(server, "one", ["z"])
    assert figures(got)["offset"] == master.offset
    sources.wait_for(lambda: master.acked == master.offset, "the last ACK")


def test_a_source_without_info_can_be_followed(server, source):
    master = source(ONE, info=False)
    with Follower(server, master) as follower:
        synced(master)
        master.feed("BF.ADD", "one", "z")
        applied(master)
        follower.end()
    assert present(server, "one", ["z"])


def test_two_signals_end_it_at_once(server, source):
    master = source(ONE)
    with Follower(server, master) as follower:
        synced(master)
        applied(master)
        # A transaction without end: the present offset is never reached.
        master.feed("MULTI")
        follower.child.send_signal(signal.SIGTERM)
        sources.wait_for(lambda: master.acked == master.offset, "the MULTI")
        got = follower.end(INCOMPLETE)
    assert b"stopped before the end" in got.stderr


def test_getack_is_answered_when_the_server_has_it(server, source):
    master = source(ONE)
    with Follower(server, master) as follower:
        synced(master)
        for i in range(20):
            master.feed("BF.ADD", "one", "item:%d" % i)
            master.feed("REPLCONF", "GETACK", "*")
            applied(master)
            assert present(server, "one", ["item:%d" % i])
        follower.end()


def test_what_the_server_has_not_confirmed_is_not_acknowledged(server, source):
    """The link to the source breaks while the server stands still, and comes
    back; then the server dies."""
    master = source(ONE)
    with Follower(server, master) as follower:
        synced(master)
        master.feed("REPLCONF", "GETACK", "*")
        applied(master)
        confirmed = master.offset
        server.child.send_signal(signal.SIGSTOP)
        servers.wait_until(lambda: all(
            " T " in stat.read_text() for stat in
            Path("/proc/%d/task" % server.child.pid).glob("*/stat")))
        master.feed("BF.ADD", "one", "more")
        master.cut()
        synced(master)
        server.kill()
        got = follower.end(UNREADABLE, signals=0)
    assert figures(got)["offset"] == master.acked == confirmed


# ---- what commands mean --------------------------------------------------------

def keys(server, db=0):
    with server.conn() as conn:
        conn.call("SELECT", db)
        return sorted(conn.call("KEYS", "*"))


@pytest.fixture
def followed(server, source):
    """A source whose filters a, b and c are here, beside our own key `mine`."""
    with server.conn() as conn:
        conn.call("BF.ADD", "mine", "x")
    master = source(EMPTY)
    with Follower(server, master) as follower:
        synced(master)
        for key in "abc":
            create(master, key)
            master.feed("BF.ADD", key, "of " + key)
        master.feed("SET", "text", "x")
        applied(master)
        assert keys(server) == [b"a", b"b", b"c", b"mine"]
        yield master
        applied(master)
        follower.end()


def after(master, server, *commands, db=0):
    for command in commands:
        master.feed(*command.split(" "))
    applied(master)
    return b" ".join(keys(server, db))


@pytest.mark.parametrize("commands,left", [
    (["DEL a mine text"], b"b c mine"),
    (["UNLINK a b"], b"c mine"),
    (["SET a x"], b"b c mine"),
    (["MSET a x b y"], b"c mine"),
    (["MSET text a b y"], b"a c mine"),
    (["SETEX a 10 x", "PSETEX b 10 x"], b"c mine"),
    (["SUNIONSTORE a s t"], b"b c mine"),
    (["BITOP AND a text text"], b"b c mine"),
    (["SORT list LIMIT 0 1 STORE a"], b"b c mine"),
    (["RENAME a d"], b"b c d mine"),
    (["RENAME a b"], b"b c mine"),
    (["RENAME text b"], b"a c mine"),
    (["RENAMENX a d"], b"b c d mine"),
    (["COPY a d"], b"a b c d mine"),
    (["COPY text b REPLACE"], b"a c mine"),
    (["MOVE a 2"], b"b c mine"),
    (["FLUSHALL"], b"mine"),
    (["FLUSHDB"], b"mine"),
    (["SELECT 1", "FLUSHDB", "SELECT 0"], b"a b c mine"),
    (["EXPIRE mine 0"], b"a b c mine"),
    (["MULTI", "DEL a", "DEL b", "EXEC"], b"c mine"),
    (["RESTORE a 0 payload REPLACE"], b"b c mine"),
])
def test_commands_reach_the_filters_of_the_source_alone(server, followed,
                                                        commands, left):
    assert after(followed, server, *commands) == left
    assert present(server, "mine", ["x"])


def test_filters_move_between_names_and_databases(server, followed):
    assert after(followed, server, "RENAME a d", "BF.ADD d more") == b"b c d mine"
    assert present(server, "d", ["of a", "more"])
    assert after(followed, server, "MOVE d 3", db=3) == b"d"
    assert after(followed, server, "SELECT 3", "BF.ADD d again", db=3) == b"d"
    assert present(server, "d", ["of a", "more", "again"], db=3)
    after(followed, server, "SWAPDB 3 4")
    after(followed, server, "SELECT 4", "BF.ADD d swapped")
    assert present(server, "d", ["of a", "swapped"], db=4)


def test_times_to_live_follow(server, followed):
    at = sources.now_ms() + 1000000
    after(followed, server, "PEXPIREAT a %d" % at, "EXPIRE b 1000",
          "EXPIRE c 1000", "PERSIST c")
    with server.conn() as conn:
        assert conn.call("PEXPIRETIME", "a") == at
        assert 0 < conn.call("TTL", "b") <= 1000
        assert conn.call("TTL", "c") == -1


def test_times_that_end_soon_wait_for_later_commands(server, source):
    """The tool may be behind by more than a filter had left to live when the
    source gave it more time."""
    master = source(EMPTY)
    now = sources.now_ms()
    with Follower(server, master) as follower:
        synced(master)
        for key in "abc":
            create(master, key)
        master.feed("BF.ADD", "a", "x")
        for key, at in (("a", now - 1000), ("b", now - 1), ("c", now + 300000)):
            master.feed("PEXPIREAT", key, at)
        applied(master)
        assert keys(server) == [b"a", b"b", b"c"]
        master.feed("PEXPIREAT", "a", now + 1000000)
        applied(master)
        follower.end()
    assert present(server, "a", ["x"])
    with server.conn() as conn:
        assert conn.call("PEXPIRETIME", "a") == now + 1000000
        assert conn.call("PEXPIRETIME", "b") == -2
        assert conn.call("PEXPIRETIME", "c") == now + 300000


def test_restores_follow(server, followed):
    at = sources.now_ms() + 1000000
    followed.feed("RESTORE", "r", at, DUMPS[0].payload, "ABSTTL")
    followed.feed("RESTORE", "a", 0, DUMPS[1].payload, "REPLACE", "ABSTTL")
    applied(followed)
    assert present(server, "r", DUMPS[0].items)
    assert present(server, "a", DUMPS[1].items)
    with server.conn() as conn:
        assert conn.call("PEXPIRETIME", "r") == at


# ---- keys that exist, and refusals ---------------------------------------------

def test_a_key_that_is_there_stops_the_stream(server, source):
    with server.conn() as conn:
        conn.call("BF.ADD", "mine", "x")
    master = source(EMPTY)
    with Follower(server, master) as follower:
        synced(master)
        master.feed("BF.ADD", "mine", "y")
        got = follower.end(INCOMPLETE, signals=0)
    assert b"key 'mine' of database 0: exists" in got.stderr
    assert not present(server, "mine", ["y"])


def test_a_key_that_is_there_is_spared_or_replaced(server, source):
    for existing, found in (("skip", [1, 0, 0]), ("replace", [0, 1, 1])):
        with server.conn() as conn:
            conn.call("FLUSHALL")
            conn.call("BF.ADD", "mine", "x")
        master = source(EMPTY)
        with Follower(server, master, "--existing", existing) as follower:
            synced(master)
            master.feed("BF.ADD", "mine", "y")
            master.feed("BF.ADD", "mine", "z")
            applied(master)
            got = follower.end()
        with server.conn() as conn:
            assert conn.call("BF.MEXISTS", "mine", "x", "y", "z") == found
        assert ("to other filters" in figures(got)) == (existing == "skip")


def test_a_refused_command_is_named_and_counted(server, source):
    master = source(EMPTY)
    with Follower(server, master) as follower:
        synced(master)
        master.feed("BF.RESERVE", "bad", "7", "100")
        master.feed("BF.RESERVE", "good", "0.01", "100")
        applied(master)
        got = follower.end(INCOMPLETE)
    assert b"key 'bad' of database 0: " in got.stderr
    assert keys(server) == [b"good"] and figures(got)["refused"] == 1
    assert figures(got)["missing"] == "what is named above"


def test_scripts_are_reported(server, source):
    master = source(EMPTY)
    with Follower(server, master) as follower:
        synced(master)
        master.feed("EVAL", "return 1", 0)
        applied(master)
        got = follower.end(INCOMPLETE)
    assert b"1 scripts were skipped" in got.stderr


def test_a_full_filter_is_no_refusal(server, source):
    master = source(EMPTY)
    with Follower(server, master) as follower:
        synced(master)
        master.feed("BF.RESERVE", "f", "0.01", "2", "NONSCALING")
        master.feed("BF.MADD", "f", "a", "b", "c")
        master.feed("BF.ADD", "f", "d")
        applied(master)
        got = follower.end()
    assert figures(got)["to full filters"] == 2


def test_the_rule_and_the_defaults_of_redisbloom_are_followed(server, source):
    """A 2.8 keeps large rates, so most items fill nothing."""
    items = ["item:%d" % i for i in range(2000)]
    master = source(EMPTY)
    master.module, master.module_args = 20812, ["ERROR_RATE", "0.9",
                                                "INITIAL_SIZE", "70"]
    with Follower(server, master) as follower:
        synced(master)
        master.feed("BF.RESERVE", "f", "0.9", "500", "NONSCALING")
        master.feed("BF.MADD", "f", *items)
        master.feed("BF.ADD", "default", "a")
        applied(master)
        got = figures(follower.end())
    assert got["filters created"] == 2 and "to full filters" not in got
    assert present(server, "f", items)
    with server.conn() as conn:
        stored = conn.call("BF.SCANDUMP", "default", 0)[1]
    assert struct.unpack_from("<d", stored, 20 + 24) == (0.45,)
    assert struct.unpack_from("<Q", stored, 20 + 44) == (70,)


# ---- sources that lie ----------------------------------------------------------

def lying(server, source, **attributes):
    master = source(ONE)
    for name, value in attributes.items():
        setattr(master, name, value)
    with Follower(server, master, "--timeout", 2) as follower:
        return follower.end(UNREADABLE, signals=0)


@pytest.mark.parametrize("data,said", [
    (b"hello, this is no RDB", b"offset 0: it is not an RDB"),
    (ONE + b"more", b"an RDB shorter than it said"),
    (ONE[:-20] + b"\xee" + ONE[-19:], b"at offset"),
])
def test_a_bad_rdb_ends_it(server, source, data, said):
    assert said in lying(server, source, rdb=data).stderr


# Within the first line of the full copy, its RDB, and the mark behind it.
SILENT = [5, 140, -5]


@pytest.mark.parametrize("at", SILENT)
def test_a_source_that_falls_silent_ends_it(server, source, at):
    got = lying(server, source, form="eof", silent_at=at)
    assert b"sent nothing for 2 s (--timeout)" in got.stderr


@pytest.mark.parametrize("at", SILENT)
def test_signals_end_the_wait_for_a_silent_source(server, source, at):
    master = source(ONE, form="eof")
    master.silent_at = at
    with Follower(server, master) as follower:
        def has_ended():
            follower.child.send_signal(signal.SIGTERM)
            return follower.child.poll() is not None

        sources.wait_for(lambda: master.psyncs, "PSYNC")
        servers.wait_until(has_ended, 10, "the end")
        got = follower.end(INCOMPLETE, signals=0)
    assert b"stopped before the end" in got.stderr


def test_a_bad_mark_ends_it(server, source):
    got = lying(server, source, form="eof", rdb=ONE + b"more")
    assert b"without its mark" in got.stderr


def test_a_bad_history_ends_it(server, source):
    assert b"sent a bad line" in lying(server, source, history=b"short").stderr


def test_a_bad_command_ends_it(server, source):
    master = source(EMPTY)
    with Follower(server, master) as follower:
        synced(master)
        master.feed("BF.ADD", "k", "x")
        at = master.offset
        master.feed_raw(b"*1\r\n:5\r\n")
        got = follower.end(UNREADABLE, signals=0)
    assert b"the command at offset %d is damaged" % at in got.stderr
    assert present(server, "k", ["x"])


# ---- real sources --------------------------------------------------------------

@pytest.mark.parametrize("diskless", ["yes", "no"])
def test_a_redis_server_is_followed(server, start_oracle, diskless):
    """It has no module, so its filters come as RESTORE does not; all its types
    flow, and are skipped."""
    oracle = start_oracle("--repl-diskless-sync", diskless,
                          "--repl-diskless-sync-delay", "0")
    with oracle.conn() as conn:
        for i in range(2000):
            conn.call("SET", "key:%d" % i, "x" * 100)
        with Follower(server, oracle) as follower:
            servers.wait_until(
                lambda: b"state=online" in conn.call("INFO", "replication"), 30,
                "the replica is online")
            for i in range(300):
                conn.call("INCR", "counter")
                conn.call("RPUSH", "list", i)
                conn.call("XADD", "stream", "*", "a", i)
            assert conn.call("EVAL", "redis.call('SET', 'script', 1) "
                             "return redis.call('DEL', 'key:1')", 0) == 1
            assert conn.call("WAIT", 1, 10000) == 1
            got = figures(follower.end())
            text = conn.call("INFO", "replication").decode()
    assert "master_repl_offset:%d" % got["offset"] in text
    assert got["skipped"]["strings"] == 2000
    assert got["skipped"]["incr"] == got["skipped"]["rpush"] == 300
    assert got["skipped"]["xadd"] == 300
    assert keys(server) == []


class Valkey(servers.Process):
    """valkey-server 9, without persistence."""

    def __init__(self):
        folder = tempfile.mkdtemp(prefix="bloomery-valkey-")
        port = servers.free_port()
        super().__init__([servers.VALKEY / "valkey-server", "--port", port, "--save",
                          "", "--dir", folder, "--repl-diskless-sync-delay", "0"],
                         port, folder)
        self.wait_ready()


@pytest.mark.skipif(servers.valkey_missing() is not None, reason="no Valkey 9")
def test_a_valkey_with_times_to_live_of_fields_is_followed(server):
    """It breaks its RDB off at such a hash, unless it knows that we can read it."""
    source = Valkey()
    try:
        with source.conn() as conn:
            conn.call("HSET", "h", "a", "1", "b", "2")
            assert conn.call("HEXPIRE", "h", "5000", "FIELDS", "1", "a") == [1]
            conn.call("SET", "s", "x")
            with Follower(server, source, "--until-idle", 1) as follower:
                got = figures(follower.end(signals=0))
        assert got["full copies"] == 1
        assert got["skipped"]["hashes"] == got["skipped"]["strings"] == 1
    finally:
        source.kill()
        source.remove()


def test_a_source_that_never_ends_its_copy_is_an_error(server, source):
    master = source(ONE)
    master.breaks = [9] * 9
    with Follower(server, master) as follower:
        got = follower.end(UNREADABLE, signals=0)
    assert b"broke the link 3 times before the end" in got.stderr
    assert len(master.psyncs) == 3


def test_the_first_signal_ends_it_while_there_is_no_copy(server, source):
    master = source(ONE)
    master.breaks = [9] * 9
    with Follower(server, master) as follower:
        sources.wait_for(lambda: master.psyncs, "PSYNC")
        got = follower.end(INCOMPLETE)
    assert len(master.psyncs) <= 2, got


def test_a_bloomery_says_how_it_is_followed(server, start_server):
    other = start_server()
    got = load(*to(server), "server", "--follow", "127.0.0.1:%d" % other.port,
               status=UNREADABLE)
    assert b"REPLICAOF" in got.stderr


@pytest.mark.parametrize("args", [
    ["--scandump", "--follow"], ["--until-idle", 3]])
def test_mistakes_in_the_command_line(server, args):
    load(*to(server), "server", "127.0.0.1:1", *args, status=USAGE)


def test_a_source_that_is_not_there(server):
    got = load(*to(server), "server", "--follow",
               "127.0.0.1:%d" % servers.free_port(), status=UNREADABLE)
    assert b"cannot connect" in got.stderr
