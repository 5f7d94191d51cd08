# SPDX-License-Identifier: BSD-3-Clause
#
# Crossings: each kind of filter goes each way that data travels, with writes before,
# while and after. In the end all items are found that were acknowledged, and both
# ends have equal digests; or the way is refused in the words that a page has. A new
# kind or way is one row. The seed also draws the world (lib/worlds.py). SEED=n repeats
# a run, ROUNDS=n makes more of them (`make crossings`).

import contextlib
import ctypes
import os
import random
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from lib import loads, replicas, resp, servers, slot_copy, worlds
from lib.servers import wait_until

ROUNDS = int(os.environ.get("ROUNDS") or 0) or 1
FAR = "4000000000000"   # ms
OPTIONS = ("--appendonly", "yes", "--databases", "32")
writing = threading.Lock()  # held for each write beside a way


class Kind:
    """words: of BF.RESERVE behind rate and capacity. refuses: ways that refuse it,
    with a part of the error. group: how many items come at once, at first, beside a
    way."""

    def __init__(self, *words, rate="0.001", capacity="200", db=0, layout="native",
                 items=150, refuses=None, expires=False, group=0):
        self.words, self.rate, self.capacity, self.db = words, rate, capacity, db
        self.layout, self.items, self.expires = layout, items, expires
        self.refuses, self.group = refuses or {}, group


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
    # 5 MB whose pages a replica clears in pieces before it adds a group
    "of long groups": Kind(capacity="3000000", group=10000),
    "with a time": Kind(expires=True),
    "of database 20": Kind(db=20),
}


class Run:
    """A server with a filter of each kind, and the items that each one has."""

    def __init__(self, group, folder, seed, way):
        print("SEED=%d" % seed)
        self.group, self.folder, self.rng = group, folder, random.Random(seed)
        self.members = slot_copy.Members(group)
        folder.mkdir()
        group.enter(worlds.World(seed, DOORS.get(way, worlds.DOORS)), folder)
        self.server = STARTS.get(way, plain)(self)
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
        replies = conn.call("BF.INSERT", name, "NOCREATE", "ITEMS", *words)
        if isinstance(replies, resp.Error):     # it has another name for a moment
            assert "not found" in str(replies), replies
            return
        for word, reply in zip(words, replies):
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
    """Adds to all filters, in a thread, while the way is gone. It begins with the long
    groups, which are not left out if the way ends sooner."""

    def __init__(self, run):
        self.run, self.done, self.failed = run, threading.Event(), None

    def work(self):
        try:
            with self.run.server.conn() as conn:
                for name, kind in KINDS.items():
                    if kind.group:
                        self.add(conn, name, kind.group)
                while not self.done.is_set():
                    name = self.run.rng.choice(list(KINDS))
                    self.add(conn, name, self.run.rng.randrange(1, 5))
        except Exception as error:  # pylint: disable=broad-except
            self.failed = error

    def add(self, conn, name, count):
        with writing:
            self.run.select(conn, KINDS[name])
            self.run.add(conn, name, count)

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

def plain(run):
    return run.group.node(*OPTIONS)


def restarted(run, before=None, options=()):
    """Restarts the server, and compares."""
    want = replicas.digest(run.server)
    run.server.crash()
    if before is not None:
        before()
    run.server.restart(*options)
    assert replicas.digest(run.server) == want
    if hasattr(run.server, "neighbour"):
        serves(run.server)


def serves(server):
    with server.conn() as conn:
        wait_until(lambda: conn.call("EXISTS", "native") == 1, 30, "it serves")


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


def member(run):
    return run.members(*OPTIONS, cluster_databases="32")


def way_slots(run):
    target = member(run)
    with run.writing():
        slot_copy.begin(target, run.server, slot_copy.ALL)
        slot_copy.wait_follows(target)
    want = replicas.digest(run.server)
    slot_copy.cut_over(target, run.server, "native")
    assert replicas.digest(target) == want
    run.server = target


HEALS = ("--merge-on-heal", "yes")


def way_heal(run):
    """Adds of a partition come back, or are in the quarantine."""
    proxy = run.group.proxy(run.server)
    replica = run.group.node(*OPTIONS, *HEALS)
    replicas.follow(replica, proxy)
    replicas.wait_even(run.server, replica)
    before = run.taken()
    proxy.up = False
    proxy.cut()
    replicas.lead(replica)
    with run.writing():
        pass
    with run.server.conn() as conn:
        for name, kind in KINDS.items():
            run.select(conn, kind)
            run.add(conn, name, 20)
    old, run.server = run.server, replica
    replicas.follow(old, replica)

    def is_merged():
        got = replicas.info(old, "stats")
        return got["merge_offers"] != "0" and got["merge_waiting_bytes"] == "0" and \
            not list(Path(old.folder).glob("heal-*"))
    wait_until(is_merged, 60, "all adds are offered")
    left = b"".join(path.read_bytes()
                    for path in Path(old.folder).glob("quarantine-*.resp"))
    for name, kind in KINDS.items():
        new = run.items[name][len(before[name]):]
        if "DELETABLE" in kind.words or "AGEING" in kind.words:
            assert new and all(item.encode() in left for item in new), name
            run.items[name] = before[name]
    replicas.wait_even(replica, old)


def exported(run, bring):
    """Lets bloomery-load bring all to a server with the same secret."""
    with run.writing():
        pass
    made = run.group.node(*OPTIONS, "--hash-secret-file",
                          Path(run.server.folder) / "hash-secret")
    bring(made)
    assert replicas.digest(made) == replicas.digest(run.server)
    run.server = made


def way_export(run):
    def bring(made):
        out = run.folder / "commands"
        loads.load("export", "--for", "bloomery", "127.0.0.1:%d" % run.server.port,
                   out)
        with made.conn() as conn:
            conn.send(out.read_bytes() + resp.command("ECHO", "end"))
            reply = conn.read()
            while reply != b"end":
                assert not isinstance(reply, resp.Error), reply
                reply = conn.read()
    exported(run, bring)


def way_import(run):
    exported(run, lambda made: loads.load(
        "server", "127.0.0.1:%d" % run.server.port, *loads.to(made)))


class Hash(ctypes.Structure):
    _fields_ = [("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def way_library(run):
    """A program loads each dump, finds all items, adds one, and dumps it."""
    if servers.sanitized():
        pytest.skip("the library has no sanitizer's runtime here")
    lib = ctypes.CDLL(str(Path(servers.server_binary()).with_name("libbloomery.so")))
    lib.bloom_hash.restype = Hash
    lib.bloom_hash.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    lib.bloom_contains.restype = ctypes.c_bool
    lib.bloom_contains.argtypes = [ctypes.c_void_p, Hash]
    lib.bloom_add.argtypes = [ctypes.c_void_p, ctypes.c_void_p, Hash,
                              ctypes.POINTER(ctypes.c_bool)]
    lib.bloom_dump_bytes.restype = ctypes.c_uint64
    lib.bloom_dump_bytes.argtypes = [ctypes.c_void_p]
    lib.bloom_dump.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    lib.bloom_free.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    secret = (Path(run.server.folder) / "hash-secret").read_text().strip()
    assert lib.bloom_add_secret(bytes.fromhex(secret)) == 0
    with run.server.conn() as conn:
        for name, kind in KINDS.items():
            run.select(conn, kind)
            dump = conn.call("DUMP", name)
            made = ctypes.c_void_p()
            assert lib.bloom_load(dump, ctypes.c_size_t(len(dump)), None,
                                  ctypes.byref(made)) == 0, name

            def hashed(item):
                data = item.encode()
                return lib.bloom_hash(made, data, len(data))
            assert all(lib.bloom_contains(made, hashed(item))
                       for item in run.items[name]), name
            added = ctypes.c_bool()
            if lib.bloom_add(made, None, hashed("%s of a program" % name),
                             ctypes.byref(added)) == 0:
                run.items[name].append("%s of a program" % name)
            text = ctypes.create_string_buffer(lib.bloom_dump_bytes(made))
            lib.bloom_dump(made, text)
            lib.bloom_free(made, None)
            expires = conn.call("PEXPIRETIME", name)
            assert conn.call("RESTORE", name, max(expires, 0), text.raw, "REPLACE",
                             "ABSTTL") == b"OK", name
    restarted(run)


# ---- ways of one key ---------------------------------------------------------------

def by_key(name, copies, db=None, moves=False):
    """A way on which `copies(conn, key, to)` makes a key of another one."""
    def way(run):
        refused = [kind for kind in KINDS if name in KINDS[kind].refuses]
        with run.server.conn() as conn:
            for round_name in ("while", "after"):
                taken = run.taken()
                writes = round_name == "while"
                with run.writing() if writes else contextlib.nullcontext():
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
                        if not writes:
                            conn.call("SELECT", KINDS[kind].db if db is None else db)
                            found = conn.call("DEBUG", "DIGEST-VALUE", kind + "'")
                            assert found == want or name in NO_TIME, kind
                    run.check(conn, lambda kind: kind + "'", taken, refused, db)
                    for kind in KINDS:  # and back again
                        conn.call("SELECT", KINDS[kind].db if db is None else db)
                        if not moves:
                            conn.call("DEL", kind + "'")
                            continue
                        assert conn.call("RENAME", kind + "'", kind) == b"OK"
                        if db is not None:
                            assert conn.call("MOVE", kind, KINDS[kind].db) == 1
        restarted(run)
    return way


# The time to live is another command's.
NO_TIME = ("DUMP and RESTORE", "SCANDUMP and LOADCHUNK")


def dump_and_restore(conn, key, to):
    return conn.call("RESTORE", to, "0", conn.call("DUMP", key))


def chunks(conn, key, to):
    """The chunks are those of one moment if the header has not changed. If it has,
    bloomery-load tries again, too; here, the writes may at last have to wait."""
    for attempt in range(1, 11):
        with writing if attempt == 10 else contextlib.nullcontext():
            parts, got = chunks_once(conn, key)
        if parts is not None:
            break
    for at, data in parts:
        assert conn.call("BF.LOADCHUNK", to, str(at), data) == b"OK", key
    return got


def chunks_once(conn, key):
    """The chunks and the last reply; None instead if the header has changed."""
    head = got = conn.call("BF.SCANDUMP", key, "0")
    parts = []
    while not isinstance(got, resp.Error) and got[0] != 0:
        parts.append(got)
        got = conn.call("BF.SCANDUMP", key, str(got[0]))
    if isinstance(got, resp.Error) or conn.call("BF.SCANDUMP", key, "0") == head:
        return parts, got
    return None, got


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
    "SCANDUMP and LOADCHUNK": by_key("SCANDUMP and LOADCHUNK", chunks),
    "slots": way_slots,
    "heal": way_heal,
    "export": way_export,
    "import": way_import,
    "library": way_library,
}

# The first server of a way, and the doors that its tools know.
STARTS = {"slots": member, "heal": lambda run: run.group.node(*OPTIONS, *HEALS)}
DOORS = {"export": ("port",), "import": ("port",)}


@pytest.mark.parametrize("way", WAYS)
def test_each_kind_goes_each_way(group, tmp_path, way):
    seed = int(os.environ.get("SEED") or 0) or random.randrange(1 << 32)
    for round_number in range(ROUNDS):
        run = Run(group, tmp_path / str(round_number), seed + round_number, way)
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
        run.members.close()
