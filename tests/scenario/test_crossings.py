# SPDX-License-Identifier: BSD-3-Clause
#
# Crossings: each kind of filter goes each way that data travels, with writes before,
# while and after. In the end all items are found that were acknowledged, and both
# ends have equal digests; or the way is refused in the words that a page has. A new
# kind or way is one row. SEED=n repeats a run, ROUNDS=n makes more of them
# (`make crossings`).

import os
import random
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from lib import replicas, resp, servers
from lib.servers import wait_until

ROUNDS = int(os.environ.get("ROUNDS", 0)) or 1
FAR = "4000000000000"   # ms
OPTIONS = ("--appendonly", "yes", "--databases", "32", "--threads", "2")


class Kind:
    """words: of BF.RESERVE behind rate and capacity. refuses: ways that refuse it,
    with a part of the error."""

    def __init__(self, *words, rate="0.001", capacity="200", db=0, layout="native",
                 items=150, refuses=None, expires=False):
        self.words, self.rate, self.capacity, self.db = words, rate, capacity, db
        self.layout, self.items, self.expires = layout, items, expires
        self.refuses = refuses or {}


KINDS = {
    "native": Kind(),
    "scaled": Kind(capacity="20", items=300),
    "full": Kind("NONSCALING", capacity="40", items=60),
    "deletable": Kind("DELETABLE"),
    "ageing": Kind("AGEING", "31536000",
                   refuses={"SCANDUMP and LOADCHUNK": "ages"}),
    "keyed": Kind("HASH", "keyed"),
    "keyed deletable": Kind("DELETABLE", "8", "HASH", "keyed"),
    "redisbloom": Kind(layout="redisbloom"),
    "valkeybloom": Kind(layout="valkeybloom"),
    "large": Kind(capacity="2000000"),      # 3.6 MB, and sparse
    "with a time": Kind(expires=True),
    "of database 20": Kind(db=20),
}


class Run:
    """A server with a filter of each kind, and the items that each one has."""

    def __init__(self, group, folder, seed):
        print("SEED=%d" % seed)
        self.group, self.folder, self.rng = group, folder, random.Random(seed)
        folder.mkdir()
        self.server = group.node(*OPTIONS)
        self.items = {name: [] for name in KINDS}
        self.number = 0
        with self.server.conn() as conn:
            for name, kind in KINDS.items():
                self.select(conn, kind)
                assert conn.call("CONFIG", "SET", "bloom-layout",
                                 kind.layout) == b"OK"
                assert conn.call("BF.RESERVE", name, kind.rate, kind.capacity,
                                 *kind.words) == b"OK", name
                conn.call("CONFIG", "SET", "bloom-layout", "native")
                self.add(conn, name, kind.items)
                if kind.expires:
                    conn.call("PEXPIREAT", name, FAR)
                if "DELETABLE" in kind.words:
                    gone, self.items[name] = (self.items[name][:20],
                                              self.items[name][20:])
                    conn.call("BF.MDEL", name, *gone)

    @staticmethod
    def select(conn, kind):
        assert conn.call("SELECT", kind.db) == b"OK"

    def add(self, conn, name, count):
        """Adds items, and remembers those that were acknowledged."""
        words = ["%s %d" % (name, self.number + i) for i in range(count)]
        self.number += count
        for word, reply in zip(words, conn.call("BF.MADD", name, *words)):
            if not isinstance(reply, resp.Error):   # else it is full
                self.items[name].append(word)

    def check(self, conn, key=lambda name: name, items=None, skip=(), db=None):
        for name, kind in KINDS.items():
            if name in skip:
                continue
            conn.call("SELECT", kind.db if db is None else db)
            found = conn.call("BF.MEXISTS", key(name), *(items or self.items)[name])
            assert found == [1] * len(found), (name, found.count(0))

    def writing(self):
        return Writing(self)

    def taken(self):
        return {name: list(items) for name, items in self.items.items()}


class Writing:
    """Adds to all filters, in a thread, while the way is gone."""

    def __init__(self, run):
        self.run, self.done, self.failed = run, threading.Event(), None

    def work(self):
        try:
            with self.run.server.conn() as conn:
                while not self.done.is_set():
                    name = self.run.rng.choice(list(KINDS))
                    self.run.select(conn, KINDS[name])
                    self.run.add(conn, name, self.run.rng.randrange(1, 5))
        except Exception as error:  # pylint: disable=broad-except
            self.failed = error

    def __enter__(self):
        self.thread = threading.Thread(target=self.work)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        assert self.failed is None, self.failed


def check(*words, status=0):
    program = Path(servers.server_binary()).with_name("bloomery-check")
    got = subprocess.run([str(program), *map(str, words)], capture_output=True,
                         timeout=60 * servers.time_factor())
    assert got.returncode == status, (words, got)
    return got.stdout


def idle(server):
    def is_idle():
        got = replicas.info(server, "persistence")
        return got["aof_rewrite_in_progress"] == "0" and \
            got["aof_rewrite_scheduled"] == "0" and got["rdb_bgsave_in_progress"] == "0"
    wait_until(is_idle, 30, "rewrites and saves end")


# ---- ways of the whole server ------------------------------------------------------

def restarted(run, before=None, options=()):
    """Restarts the server, and compares."""
    want = replicas.digest(run.server)
    run.server.crash()
    if before is not None:
        before()
    run.server.restart(*options)
    assert replicas.digest(run.server) == want


def way_journal(run):
    with run.writing():
        pass
    restarted(run)


def way_rewrite(run):
    with run.writing(), run.server.conn() as conn:
        for _ in range(2):
            conn.call("BGREWRITEAOF")
            idle(run.server)
    restarted(run)


def way_snapshot(run):
    with run.writing(), run.server.conn() as conn:
        conn.call("BGSAVE")
        idle(run.server)
    with run.server.conn() as conn:
        assert conn.call("SAVE") == b"OK"
    restarted(run, lambda: shutil.rmtree(Path(run.server.folder) / "journal"))


def follower(run, target=None):
    replica = run.group.node(*OPTIONS)
    replicas.follow(replica, target or run.server)
    return replica


def compare(run, replica):
    replicas.wait_even(run.server, replica)
    with replica.conn() as conn:
        conn.call("READONLY")
        run.check(conn)


def way_full_synchronization(run):
    with run.writing():
        replica = follower(run)
    compare(run, replica)


def way_partial_synchronization(run):
    proxy = run.group.proxy(run.server)
    replica = follower(run, proxy)
    with run.writing():
        for _ in range(3):
            proxy.cut()
            wait_until(lambda: replicas.link_is_up(replica), 30, "it is back")
    compare(run, replica)
    assert replicas.info(run.server, "stats")["sync_full"] == "1"


def way_promotion(run):
    replica = follower(run)
    with run.writing():
        pass
    compare(run, replica)
    replicas.lead(replica)
    replicas.follow(run.server, replica)
    run.server = replica


def other_server(run, data):
    made = run.group.node(*OPTIONS, "--dir", data)
    want = replicas.digest(run.server)
    assert replicas.digest(made) == want
    run.server = made


def way_backup(run):
    out = run.folder / "out"
    with run.writing():
        check("backup", run.server.folder, str(out) + "-while")
    check("backup", run.server.folder, out)
    check("verify", str(out) + "-while")
    other_server(run, out)


def way_salvage(run):
    with run.writing():
        pass
    out = run.folder / "out"
    check("backup", run.server.folder, str(out) + "-copy")
    check("salvage", str(out) + "-copy", out)
    other_server(run, out)


def way_truncate_to(run):
    with run.writing():
        pass
    out = run.folder / "out"
    position = replicas.info(run.server)["master_repl_offset"]
    check("truncate-to", position, run.server.folder, out)
    other_server(run, out)


def way_cat_resp(run):
    with run.writing():
        pass
    made = run.group.node(*OPTIONS, "--hash-secret-file",
                          Path(run.server.folder) / "hash-secret")
    commands = check("cat", "--resp", Path(run.server.folder) / "journal")
    with made.conn() as conn:
        conn.send(commands + resp.command("ECHO", "end"))
        reply = conn.read()
        while reply != b"end":
            assert not isinstance(reply, resp.Error), reply
            reply = conn.read()
    assert replicas.digest(made) == replicas.digest(run.server)
    run.server = made


# ---- ways of one key ---------------------------------------------------------------

def by_key(name, copies, db=None, moves=False, alone=False):
    """A way on which `copies(conn, key, to)` makes a key of another one. alone: not
    while the filter grows, since its chunks are those of one moment."""
    def way(run):
        refused = [kind for kind in KINDS if name in KINDS[kind].refuses]
        with run.server.conn() as conn:
            for round_name in ("while", "after"):
                taken = run.taken()
                writing = run.writing() if round_name == "while" and \
                    not moves and not alone else None
                if writing:
                    writing.__enter__()
                for kind in KINDS:
                    run.select(conn, KINDS[kind])
                    want = conn.call("DEBUG", "DIGEST-VALUE", kind)
                    if not moves:
                        conn.call("DEL", kind + "'")
                    got = copies(conn, kind, kind + "'")
                    if kind in refused:
                        assert isinstance(got, resp.Error) and \
                            KINDS[kind].refuses[name] in str(got).lower(), got
                        continue
                    assert not isinstance(got, resp.Error), (kind, got)
                    if writing is None:
                        conn.call("SELECT", KINDS[kind].db if db is None else db)
                        found = conn.call("DEBUG", "DIGEST-VALUE", kind + "'")
                        assert found == want or name in NO_TIME, kind
                if writing:
                    writing.__exit__()
                run.check(conn, lambda kind: kind + "'", taken, refused, db)
                if moves:
                    break
            for kind in KINDS:  # and back again
                if moves:
                    conn.call("SELECT", KINDS[kind].db if db is None else db)
                    assert conn.call("RENAME", kind + "'", kind) == b"OK"
                    if db is not None:
                        assert conn.call("MOVE", kind, KINDS[kind].db) == 1
                elif kind not in refused:
                    run.select(conn, KINDS[kind])
                    conn.call("DEL", kind + "'")
        restarted(run)
    return way


# The time to live is another command's.
NO_TIME = ("DUMP and RESTORE", "SCANDUMP and LOADCHUNK")


def dump_and_restore(conn, key, to):
    return conn.call("RESTORE", to, "0", conn.call("DUMP", key))


def chunks(conn, key, to):
    got = conn.call("BF.SCANDUMP", key, "0")
    while not isinstance(got, resp.Error) and got[0] != 0:
        assert conn.call("BF.LOADCHUNK", to, str(got[0]), got[1]) == b"OK", key
        got = conn.call("BF.SCANDUMP", key, str(got[0]))
    return got


def move(conn, key, to):
    assert conn.call("RENAME", key, to) == b"OK"
    return conn.call("MOVE", to, "5")


def in_exec(conn, key, to):
    for words in (("MULTI",), ("COPY", key, to), ("BF.MADD", to, "more"),
                  ("RENAME", to, to + "'"), ("RENAME", to + "'", to)):
        conn.call(*words)
    got = conn.call("EXEC")
    failed = [reply for reply in got if isinstance(reply, resp.Error)]
    return failed[0] if failed else conn.call("COPY", key, to, "REPLACE")


def way_swapdb(run):
    with run.writing(), run.server.conn() as conn:
        for _ in range(4):      # an even number: all are where they were
            conn.call("MULTI")
            for _ in range(2):
                conn.call("SWAPDB", 0, 20)
            conn.call("EXEC")
    restarted(run)


WAYS = {
    "journal": way_journal,
    "rewrite": way_rewrite,
    "snapshot": way_snapshot,
    "full synchronization": way_full_synchronization,
    "partial synchronization": way_partial_synchronization,
    "promotion": way_promotion,
    "backup": way_backup,
    "salvage": way_salvage,
    "truncate-to": way_truncate_to,
    "cat --resp": way_cat_resp,
    "SWAPDB": way_swapdb,
    "COPY": by_key("COPY", lambda conn, key, to: conn.call("COPY", key, to)),
    "RENAME": by_key("RENAME", lambda conn, key, to: conn.call("RENAME", key, to),
                     moves=True),
    "MOVE": by_key("MOVE", move, db=5, moves=True),
    "EXEC": by_key("EXEC", in_exec),
    "DUMP and RESTORE": by_key("DUMP and RESTORE", dump_and_restore),
    "SCANDUMP and LOADCHUNK": by_key("SCANDUMP and LOADCHUNK", chunks,
                                     alone=True),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_kind_goes_each_way(group, tmp_path, way):
    seed = int(os.environ.get("SEED", 0)) or random.randrange(1 << 32)
    for round_number in range(ROUNDS):
        run = Run(group, tmp_path / str(round_number), seed + round_number)
        WAYS[way](run)
        with run.server.conn() as conn:
            run.check(conn)
            for name, kind in KINDS.items():    # and after
                run.select(conn, kind)
                run.add(conn, name, 20)
            run.check(conn)
        restarted(run)
        for node in group.nodes:
            node.stop()
        group.nodes.clear()
