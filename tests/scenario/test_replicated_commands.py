# SPDX-License-Identifier: BSD-3-Clause
#
# Every command with the write flag, over a real link, with its result on the replicas
# compared item by item. The list of commands comes from the server, so a new command
# without a row here fails. One replica uses the primary's dialect, the other one the
# other dialect, and both have other filter defaults than the primary: the replicated
# commands must state all properties.

import json

import pytest

from lib import links, replicas, resp, servers

FAR = 4000000000000  # a time in ms that no test reaches
ITEMS = ["a", "b", "c", "d", "e", "f", "g", "h", "never", "item:0"]
ABSENT = None


class Case:
    """Commands, of which the last one is tested, and the data after it: {key
    or (key, database): its items, or ABSENT}. times: likewise {key:
    PEXPIRETIME}."""

    def __init__(self, *steps, has, times=None, fails=False):
        self.steps = [s.split() if isinstance(s, str) else s for s in steps]
        self.has, self.times, self.fails = has, times or {}, fails


def dumped(conn, *items):
    """Returns a DUMP of a filter with these items."""
    conn.call("BF.MADD", "dumped", *items)
    data = conn.call("DUMP", "dumped")
    conn.call("DEL", "dumped")
    return data


DUMP = object()  # stands for a DUMP of a filter with a and b
AB, FULL = "BF.MADD k a b", "BF.RESERVE k 0.01 2 NONSCALING"

# Filters with item:0 to item:9, and with a to h, as the two modules made them.
DATA = servers.TOP / "tests/data"
HEADER, BITS = [bytes.fromhex(chunk["hex"]) for chunk in json.loads(
    (DATA / "redisbloom/filters/expansion0_cap20_e01_10.json").read_text())[
        "chunks"][:2]]
LOAD = bytes.fromhex(json.loads((
    DATA / "valkey-bloom/filters.json").read_text())[1]["bf_load"])
CHUNK = "BF.LOADCHUNK"

ROWS = {
    "bf.add": [
        Case("BF.ADD k a", has={"k": "a"}),
        Case(AB, "BF.ADD k c", has={"k": "abc"}),
        Case(AB, "BF.ADD k b", has={"k": "ab"}),
        Case(FULL, AB, "BF.ADD k c", has={"k": "ab"}, fails=True),
        Case("SELECT 9", "BF.ADD k a", has={("k", 9): "a", "k": ABSENT}),
        Case(["BF.ADD", b"\x00\xff\r\n k", "a"], has={b"\x00\xff\r\n k": "a"}),
        Case("BF.RESERVE k 0.01 2", AB, "BF.ADD k c", has={"k": "abc"}),
    ],
    "bf.madd": [
        Case("BF.RESERVE k 0.01 100 AGEING 9000", "BF.ADD k a", "BF.MADD k a b",
             has={"k": "ab"}),
        Case("BF.MADD k a b c", has={"k": "abc"}),
        Case(AB, "BF.MADD k b c d", has={"k": "abcd"}),
        Case("BF.RESERVE k 0.01 3 NONSCALING", "BF.MADD k a b c d e",
             has={"k": "abc"}, fails=True),
    ],
    "bf.insert": [
        Case("BF.INSERT k ITEMS a b", has={"k": "ab"}),
        Case("BF.INSERT k CAPACITY 5000 ERROR 0.001 ITEMS a b",
             has={"k": "ab"}),
        Case(AB, "BF.INSERT k NOCREATE ITEMS c", has={"k": "abc"}),
        Case("BF.INSERT k NOCREATE ITEMS c", has={"k": ABSENT}, fails=True),
        Case("BF.INSERT k CAPACITY 2 NONSCALING ITEMS a b c d",
             has={"k": "ab"}, fails=True),
        Case("BF.INSERT k EXPANSION 4 CAPACITY 2 ITEMS a b c d e",
             has={"k": "abcde"}),
        Case("BF.INSERT k PXAT %d ITEMS a b" % FAR, has={"k": "ab"},
             times={"k": FAR}),
        Case("BF.INSERT k PXAT %d ITEMS a" % FAR,
             "BF.INSERT k EX 5 ITEMS a b", has={"k": "ab"}, times={"k": FAR}),
        Case("BF.INSERT k PXAT 1 ITEMS a b", has={"k": ABSENT}),
    ],
    "bf.reserve": [
        Case("BF.RESERVE k 0.001 700", has={"k": ""}),
        Case("BF.RESERVE k 0.01 10 EXPANSION 4", has={"k": ""}),
        Case("BF.RESERVE k 0.01 10 NONSCALING", has={"k": ""}),
        Case("BF.RESERVE k 0.01 10 AGEING 9000", has={"k": ""}),
        Case("BF.RESERVE k 0.01 10 EXAT %d" % (FAR // 1000), has={"k": ""},
             times={"k": FAR}),
        Case(AB, "BF.RESERVE k 0.01 10", has={"k": "ab"}, fails=True),
    ],
    "bf.load": [
        Case(["BF.LOAD", "k", LOAD], has={"k": "abcdefgh"}, times={"k": -1}),
        Case("BF.ADD k a", ["BF.LOAD", "k", LOAD], has={"k": "a"}, fails=True),
        Case(["BF.LOAD", "k", LOAD[:-1]], has={"k": ABSENT}, fails=True),
    ],
    "bf.loadchunk": [
        Case([CHUNK, "k", "1", HEADER], [CHUNK, "k", "9", BITS[:8]],
             [CHUNK, "k", "17", BITS[8:]], has={"k": ["item:0"]}),
        Case([CHUNK, "k", "1", HEADER], [CHUNK, "k", "17", BITS],
             [CHUNK, "k", "17", bytes(16)], has={"k": ["item:0"]}, fails=True),
        Case("BF.ADD k a", [CHUNK, "k", "1", HEADER], has={"k": "a"},
             fails=True),
    ],
    "bf.del": [
        Case("BF.INSERT k DELETABLE ITEMS a b", "BF.DEL k a", has={"k": "b"}),
        Case("BF.INSERT k DELETABLE ITEMS a a b", "BF.DEL k a",
             has={"k": "ab"}),
        Case(AB, "BF.DEL k a", has={"k": "ab"}, fails=True),
        Case("BF.DEL k a", has={"k": ABSENT}),
    ],
    "bf.mdel": [
        Case("BF.INSERT k DELETABLE 8 ITEMS a b c", "BF.MDEL k c a x",
             has={"k": "b"}),
        Case(AB, "BF.MDEL k a b", has={"k": "ab"}, fails=True),
    ],
    "bf.merge": [
        Case("BF.INSERT k AGEING 9000 GENERATIONS 2 ITEMS a b", "COPY k m",
             "BF.INSERT m ITEMS c", "BF.MERGE k m", has={"k": "abc", "m": "abc"}),
        Case(AB, "COPY k m", "BF.ADD m c", "BF.MERGE k m",
             has={"k": "abc", "m": "abc"}),
        Case(AB, "BF.MERGE new k", has={"k": "ab", "new": "ab"}),
        Case(AB, "BF.RESERVE m 0.001 5000", "BF.MERGE k m",
             has={"k": "ab", "m": ""}, fails=True),
    ],
    "bf.reset": [
        Case(AB, "BF.RESET k", has={"k": ""}),
        Case(AB, "PEXPIREAT k %d" % FAR, "BF.RESET k", has={"k": ""},
             times={"k": FAR}),
    ],
    "copy": [
        Case(AB, "COPY k l", has={"k": "ab", "l": "ab"}),
        Case(AB, "COPY k k DB 3", has={"k": "ab", ("k", 3): "ab"}),
        Case(AB, "BF.ADD l c", "COPY k l", has={"k": "ab", "l": "c"}),
        Case(AB, "BF.ADD l c", "COPY k l REPLACE", has={"k": "ab", "l": "ab"}),
        Case(AB, "PEXPIREAT k %d" % FAR, "COPY k l",
             has={"k": "ab", "l": "ab"}, times={"k": FAR, "l": FAR}),
    ],
    "del": [
        Case(AB, "BF.ADD l c", "DEL k nothing", has={"k": ABSENT, "l": "c"}),
        Case(AB, "BF.ADD l c", "DEL k l", has={"k": ABSENT, "l": ABSENT}),
    ],
    "unlink": [
        Case(AB, "BF.ADD l c", "UNLINK k nothing",
             has={"k": ABSENT, "l": "c"}),
    ],
    "expire": [
        Case(AB, "EXPIRE k 100000", has={"k": "ab"}),
        Case(AB, "EXPIRE k -1", has={"k": ABSENT}),
        Case(AB, "EXPIRE k 100000 XX", has={"k": "ab"}, times={"k": -1}),
        Case(AB, "EXPIRE k 100000 NX", has={"k": "ab"}),
    ],
    "pexpire": [
        Case(AB, "PEXPIRE k 100000000", has={"k": "ab"}),
        Case(AB, "PEXPIREAT k %d" % FAR, "PEXPIRE k 1000000 GT",
             has={"k": "ab"}, times={"k": FAR}),
        Case(AB, "PEXPIRE k 0", has={"k": ABSENT}),
    ],
    "expireat": [
        Case(AB, "EXPIREAT k %d" % (FAR // 1000), has={"k": "ab"},
             times={"k": FAR}),
        Case(AB, "EXPIREAT k 1000", has={"k": ABSENT}),
    ],
    "pexpireat": [
        Case(AB, "PEXPIREAT k %d" % FAR, has={"k": "ab"}, times={"k": FAR}),
        Case(AB, "PEXPIREAT k %d" % FAR, "PEXPIREAT k %d LT" % (FAR - 1),
             has={"k": "ab"}, times={"k": FAR - 1}),
        Case(AB, "PEXPIREAT k 1", has={"k": ABSENT}),
    ],
    "persist": [
        Case(AB, "PEXPIREAT k %d" % FAR, "PERSIST k", has={"k": "ab"},
             times={"k": -1}),
    ],
    "rename": [
        Case(AB, "RENAME k l", has={"k": ABSENT, "l": "ab"}),
        Case(AB, "BF.ADD l c", "PEXPIREAT k %d" % FAR, "RENAME k l",
             has={"k": ABSENT, "l": "ab"}, times={"l": FAR}),
        Case(AB, "RENAME k k", has={"k": "ab"}),
    ],
    "renamenx": [
        Case(AB, "RENAMENX k l", has={"k": ABSENT, "l": "ab"}),
        Case(AB, "BF.ADD l c", "RENAMENX k l", has={"k": "ab", "l": "c"}),
    ],
    "move": [
        Case(AB, "MOVE k 5", has={"k": ABSENT, ("k", 5): "ab"}),
        Case(AB, "SELECT 5", "BF.ADD k c", "SELECT 0", "MOVE k 5",
             has={"k": "ab", ("k", 5): "c"}),
    ],
    "swapdb": [
        Case(AB, "SELECT 5", "BF.ADD k c", "SWAPDB 0 5",
             has={"k": "c", ("k", 5): "ab"}),
        Case(AB, "SWAPDB 0 0", has={"k": "ab"}),
    ],
    "flushdb": [
        Case(AB, "SELECT 5", "BF.ADD k c", "FLUSHDB",
             has={"k": "ab", ("k", 5): ABSENT}),
        Case(AB, "FLUSHDB ASYNC", has={"k": ABSENT}),
        Case(AB, "FLUSHDB SYNC", has={"k": ABSENT}),
    ],
    "flushall": [
        Case(AB, "SELECT 5", "BF.ADD k c", "FLUSHALL",
             has={"k": ABSENT, ("k", 5): ABSENT}),
        Case(AB, "FLUSHALL ASYNC", has={"k": ABSENT}),
    ],
    "restore": [
        Case(["RESTORE", "k", "0", DUMP], has={"k": "ab"}, times={"k": -1}),
        Case("BF.ADD k c", ["RESTORE", "k", str(FAR), DUMP, "REPLACE",
                            "ABSTTL"], has={"k": "ab"}, times={"k": FAR}),
        Case("BF.ADD k c", ["RESTORE", "k", "0", DUMP], has={"k": "c"},
             fails=True),
        Case(["RESTORE", "k", "100000000", DUMP], has={"k": "ab"}),
        Case("BF.ADD k c", ["RESTORE", "k", "1", DUMP, "REPLACE", "ABSTTL"],
             has={"k": ABSENT}),
    ],
}


class Trio:
    """A primary of one dialect with a replica of each dialect."""

    def __init__(self, start, dialect):
        self.dialect = dialect
        other = {"valkey": "redis", "redis": "valkey"}[dialect]
        defaults = ("--bf.bloom-capacity", 17, "--bf.bloom-fp-rate", 0.2,
                    "--bf.bloom-expansion", 3, "--databases", 16)
        self.primary = start("--dialect", dialect, "--databases", 16)
        self.replicas = [start("--dialect", d, *defaults)
                         for d in (dialect, other)]
        for replica in self.replicas:
            replicas.follow(replica, self.primary)
        self.conn = self.primary.conn()

    def wait(self):
        assert self.conn.call("WAIT", 2, 10000) == 2

    def check(self, case):
        conn = self.conn
        assert conn.call("SELECT", 0) == b"OK"
        assert conn.call("FLUSHALL") == b"OK"
        payload = dumped(conn, "a", "b")
        for words in case.steps:
            reply = conn.call(*[payload if w is DUMP else w for w in words])
        failed = isinstance(reply, resp.Error) or (
            isinstance(reply, list) and
            any(isinstance(r, resp.Error) for r in reply))
        assert failed == case.fails, reply
        self.wait()
        seen = links.view(self.primary, ITEMS)
        self.hold_against(case, seen)
        for replica in self.replicas:
            self.compare(seen, links.view(replica, ITEMS), replica)
            assert replicas.digest(replica) == replicas.digest(self.primary)

    @staticmethod
    def hold_against(case, seen):
        """Checks that the command worked on the primary; otherwise the test
        would prove nothing."""
        wanted = {}
        for key, items in case.has.items():
            key, db = key if isinstance(key, tuple) else (key, 0)
            wanted[db, resp.as_bytes(key)] = items
        for place, items in wanted.items():
            if items is ABSENT:
                assert place not in seen
                continue
            found = {i for i, there in zip(ITEMS, seen[place][0]) if there}
            assert found == set(items), (place, found)
        assert set(seen) == {p for p, items in wanted.items()
                             if items is not ABSENT}
        for key, time in case.times.items():
            assert seen[0, resp.as_bytes(key)][2] == time

    def compare(self, one, other, replica):
        """The shape of BF.INFO depends on the dialect, its figures do not."""
        assert set(one) == set(other)
        same = self.replicas.index(replica) == 0
        for place, facts in one.items():
            found, info, time, dump = other[place]
            assert found == facts[0], place
            assert time == facts[2] and dump == facts[3], place
            if same:
                assert info == facts[1], place


@pytest.fixture(scope="module", params=["valkey", "redis"])
def trio(request):
    started = []

    def start(*options):
        started.append(replicas.node(*options))
        return started[-1]

    try:
        yield Trio(start, request.param)
    finally:
        for server in started:
            server.stop()


def with_flag(rows, flag):
    """Returns the names of the commands and subcommands with a flag."""
    for row in rows:
        if flag in row[2]:
            yield row[0].decode().lower()
        yield from with_flag(row[9], flag)


def test_every_write_command_has_a_row(trio):
    found = set(with_flag(trio.conn.call("COMMAND"), b"write"))
    named = {name.decode().lower() for name in trio.conn.call(
        "COMMAND", "LIST", "FILTERBY", "ACLCAT", "write")}
    assert found == named == set(ROWS)
    assert all(ROWS.values())


CASES = [(name, case) for name, cases in sorted(ROWS.items())
         for case in cases]


def shown(case):
    return " / ".join(" ".join(w if isinstance(w, str) else "*" for w in step)
                      for step in case.steps)


@pytest.mark.parametrize("name,case", CASES, ids=[
    "%s-%d" % (name, number) for number, (name, _) in enumerate(CASES)])
def test_a_write_arrives_item_by_item(trio, name, case):
    assert resp.as_bytes(case.steps[-1][0]).decode().lower() == name
    print(shown(case))
    trio.check(case)


def test_a_transaction_arrives_whole(trio):
    conn = trio.conn
    conn.call("SELECT", 0)
    conn.call("FLUSHALL")
    conn.call("MULTI")
    for words in ("BF.ADD k a", "SELECT 4", "BF.MADD m b c", "PEXPIREAT m %d" %
                  FAR, "SELECT 0", "RENAME k l", "BF.RESERVE r 0.01 5",
                  "BF.RESERVE r 0.01 5", "COPY l x DB 7", "BF.EXISTS x a"):
        assert conn.call(*words.split()) == b"QUEUED"
    replies = conn.call("EXEC")
    assert isinstance(replies[7], resp.Error) and replies[0] == 1
    trio.wait()
    seen = links.view(trio.primary, ITEMS)
    assert set(seen) == {(0, b"l"), (0, b"r"), (4, b"m"), (7, b"x")}
    for replica in trio.replicas:
        trio.compare(seen, links.view(replica, ITEMS), replica)


def test_large_values_arrive(trio):
    """A filter of some megabytes, and one command with many items."""
    conn = trio.conn
    conn.call("SELECT", 0)
    conn.call("FLUSHALL")
    items = ["item:%d" % i for i in range(100000)]
    conn.call("BF.RESERVE", "big", "0.0001", 2000000)
    assert sum(conn.call("BF.MADD", "big", *items)) > 99900
    payload = conn.call("DUMP", "big")
    assert len(payload) > 2 << 20
    assert conn.call("RESTORE", "twin", 0, payload) == b"OK"
    twin = conn.call("DUMP", "twin")  # it names another incarnation of the key
    trio.wait()
    for replica in trio.replicas:
        with replica.conn() as other:
            for key, want in (("big", payload), ("twin", twin)):
                assert sum(other.call("BF.MEXISTS", key, *items)) == 100000
                assert other.call("DUMP", key) == want
