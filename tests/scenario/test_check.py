# SPDX-License-Identifier: BSD-3-Clause
#
# bloomery-check on files of a real server: intact files, every kind of damage that
# has a rule, files of a newer version. A server starts on the files that it writes.

import collections
import ctypes
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from lib import crash, resp, servers

INTACT, DAMAGED, USAGE, UNREADABLE, NEWER = range(5)
SEAL = re.compile(rb"#XX:(\d{16}):(\d{14}):(\d{16}):(\d{16}):[0-9a-f]{32}\r\n")
FIRST_LINE = 128
SNAPSHOT = "bloomery.snapshot"


def check(*args, status=INTACT, stdin=None):
    program = Path(servers.server_binary()).with_name("bloomery-check")
    got = subprocess.run([str(program)] + [str(a) for a in args],
                         capture_output=True, input=stdin,
                         timeout=60 * servers.time_factor())
    assert not servers.REPORTS.search(got.stderr), got.stderr.decode()
    if status is not None:
        assert got.returncode == status, (args, got.returncode, got.stdout,
                                          got.stderr)
    return got


def cards(*args, status=INTACT):
    lines = check("verify", "--json", *args, status=status).stdout.splitlines()
    return [json.loads(line) for line in lines]


def card(found, kind):
    got = [c for c in found if c["kind"] == kind]
    assert got, found
    return got[-1]


def digest(path):
    """Returns the paths and bytes of all files below a directory."""
    path = Path(path)
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    total = hashlib.sha256()
    for file in files:
        total.update(str(file).encode() + b"\0")
        if file.is_file():
            total.update(file.read_bytes())
    return total.hexdigest()


def all_groups(data):
    """Returns (begin, end, sequence, ms) of each group of an increment."""
    found, begin = [], FIRST_LINE
    for seal in SEAL.finditer(data):
        if begin + int(seal.group(3)) == seal.start():
            found.append((begin, seal.end(), int(seal.group(1)),
                          int(seal.group(2))))
            begin = seal.end()
    return found


def groups(data):
    """Returns the groups of clients. The first group of a start names the
    history of the log."""
    return [g for g in all_groups(data)
            if b"HISTORY" not in data[g[0]:g[1]]]


def flip(path, offset, mask=0x40):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ mask]))


def xxh3(data, seed=0):
    function = ctypes.CDLL("libxxhash.so.0").XXH3_64bits_withSeed
    function.restype = ctypes.c_uint64
    return function(ctypes.c_char_p(data), ctypes.c_size_t(len(data)),
                    ctypes.c_uint64(seed))


def rewrite(conn, journal):
    """Runs BGREWRITEAOF and waits until the manifest names the new base."""
    def base():
        manifest = (Path(journal) / "manifest").read_bytes()
        return re.search(rb"\nbase (\d+) ", manifest).group(1)

    old = base()
    conn.call("BGREWRITEAOF")
    servers.wait_until(lambda: base() != old, 20, "the rewrite ends")


class Data:
    """A data directory: a snapshot, and a journal with a base, a closed
    increment and an open one. It knows which keys are where."""

    base = ["b%d" % i for i in range(20)] + ["large"]
    closed = ["c%d" % i for i in range(20)]
    open = ["o%d" % i for i in range(30)]

    def __init__(self, path):
        self.path = Path(path)
        self.journal = self.path / "journal"
        self.snapshot = self.path / SNAPSHOT

    def increments(self):
        return sorted(self.journal.glob("incr-*"),
                      key=lambda p: int(p.name.split("-")[1]))

    def with_groups(self):
        return [p for p in self.increments() if groups(p.read_bytes())]


def fill(path):
    def run(work, *keys):
        server = servers.Server("--dir", path, "--appendonly", "yes",
                                "--appendfsync", "always", "--bf.bloom-use-random-seed",
                                "yes", "--auto-aof-rewrite-percentage", "0")
        try:
            with server.conn() as conn:
                work(conn)
                for key in keys:
                    assert conn.call("BF.ADD", key, "item " + key) == 1
        finally:
            server.stop()

    def first(conn):
        conn.call("BF.RESERVE", "large", "0.001", "300000")
        conn.call("BF.MADD", "large", "item large", *range(100))
        for key in Data.base[:-1]:
            conn.call("BF.ADD", key, "item " + key)
        conn.call("PEXPIREAT", "b0", "4102444800000")
        conn.call("SELECT", "5")
        conn.call("BF.ADD", "other", "x")
        conn.call("SELECT", "0")
        rewrite(conn, path / "journal")

    def second(conn):
        assert conn.call("SAVE") == b"OK"
        conn.call("MULTI")
        conn.call("BF.ADD", "t1", "item t1")
        conn.call("BF.ADD", "t2", "item t2")
        conn.call("EXEC")

    run(first, *Data.closed)
    run(second, *Data.open)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("check") / "data"
    path.mkdir()
    fill(path)
    return path


@pytest.fixture
def data(template, tmp_path):
    shutil.copytree(template, tmp_path / "data")
    return Data(tmp_path / "data")


def keys_of(start_server, *options):
    """Returns the keys of a server that starts on this directory, each with
    its item."""
    server = start_server("--databases", 16, *options)
    with server.conn() as conn:
        keys = {k.decode() for k in conn.call("KEYS", "*")}
        for key in keys:
            assert conn.call("BF.EXISTS", key, "item " + key) == 1, key
    server.stop()
    return keys


def journal_keys(start_server, journal):
    """Does the same with the journal alone. Changes the directory."""
    journal = Path(journal)
    return keys_of(start_server, "--dir", journal.parent, "--appenddirname",
                   journal.name, "--dbfilename", "none", "--appendonly", "yes")


def refusal(*options):
    server = servers.Server(*options, ready=False)
    try:
        assert server.wait_exit(20) == 3, "the status of refused data"
        return server.log().decode()
    finally:
        server.kill()
        server.remove()


ALL = set(Data.base + Data.closed + Data.open + ["t1", "t2"])


# ---- intact ------------------------------------------------------------------

def test_verify_finds_an_intact_directory_intact(data):
    before = digest(data.path)
    found = cards(data.path)
    assert {c["status"] for c in found} == {"intact"}, found
    kinds = [c["kind"] for c in found]
    assert kinds.count("snapshot") == 2 and kinds.count("manifest") == 1
    assert kinds[-2:] == ["journal", "data directory"]
    assert found[-1]["newest"] == "journal"
    assert found[-1]["position"] == found[-2]["position"]
    text = check("verify", "--verbose", data.path).stdout.decode()
    assert "damaged" not in text and "intact_keys" in text
    verdict, _, details = text.partition("\n")
    files = sum(k in ("snapshot", "manifest", "increment") for k in kinds)
    keys = max(c["keys"] for c in found if "keys" in c)
    assert re.match(r"intact: %d files, [0-9,]+ filters$" % files, verdict), verdict
    assert int(verdict.split()[3].replace(",", "")) >= keys and details
    assert check("verify", data.path).stdout.decode() == verdict + "\n"
    assert digest(data.path) == before


def test_the_newer_of_snapshot_and_journal_is_named(data, start_server):
    server = start_server("--dir", data.path, "--appendonly", "no")
    with server.conn() as conn:
        conn.call("BF.ADD", "later", "item later")
        conn.call("SAVE")
    server.stop()
    shutil.move(next(data.path.glob("journal.stale-*"), data.journal),
                data.path / "journal2")
    found = cards(data.path)
    assert found[-1]["newest"] == SNAPSHOT, found[-1]


def test_other_files_in_the_directory_are_ignored(data):
    (data.path / "lost+found").mkdir(mode=0)
    (data.path / "notes").write_text("hello")
    shutil.copytree(data.journal, data.path / "journal.stale-7")
    (data.path / (SNAPSHOT + ".tmp")).write_text("half a")
    check("verify", data.path)


def test_each_kind_is_recognised_by_its_bytes(data, tmp_path):
    for i, (path, kind) in enumerate([
            (data.snapshot, "snapshot"), (data.increments()[0], "increment"),
            (data.journal / "manifest", "manifest")]):
        other = tmp_path / ("file%d" % i)
        shutil.copy(path, other)
        assert [c["kind"] for c in cards(other)] == [kind]


def test_info_prints_the_header(data):
    got = json.loads(check("info", "--json", data.snapshot).stdout)
    assert got["keys"] == len(Data.base + Data.closed) + 1
    assert got["position"] > 0 and len(got["history"]) == 40
    assert abs(got["created"] / 1000 - time.time()) < 3600
    text = check("info", data.snapshot).stdout.decode()
    assert re.search(r"created +20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\n", text)


def test_positions_are_those_of_the_server(data, start_server):
    end = card(cards(data.journal), "journal")
    server = start_server("--dir", data.path, "--appendonly", "yes",
                          "--auto-aof-rewrite-percentage", "0")
    with server.conn() as conn:
        conn.call("SAVE")
    server.stop()
    # This start wrote one group, which names the history of the log.
    said = all_groups(data.increments()[-1].read_bytes())[0]
    snapshot = json.loads(check("info", "--json", data.snapshot).stdout)
    assert (snapshot["position"], snapshot["sequence"]) == \
        (end["position"] + said[1] - said[0], end["sequence"] + 1)


def test_progress_is_shown_on_request(data):
    assert b"%" in check("verify", "--progress", data.path).stderr
    assert check("verify", data.path).stderr == b""


def test_files_of_version_1_stay_readable():
    golden = servers.TOP / "tests/data/golden-v1"
    assert cards(golden / "snapshot.bin")[0]["status"] == "intact"
    # Its groups hold no real commands, and verify would execute them.
    lines = check("info", "--json", golden / "journal").stdout.splitlines()
    assert card([json.loads(line) for line in lines],
                "journal")["status"] == "torn"


# ---- written while clients went on -------------------------------------------

WALKED = servers.TOP / "tests/data/golden-v3/walked.bin"
WALKED_END = WALKED.with_name("walked-end.bin")


def state(start_server, path):
    """Returns what a server has that starts on a copy of this snapshot, before
    and after DEBUG RELOAD."""
    server = start_server("--databases", 16, "--dir", path.parent,
                          "--dbfilename", path.name, "--appendonly", "no",
                          "--enable-debug-command", "yes")
    with server.conn() as conn:
        digests = [conn.call("DEBUG", "DIGEST")]
        conn.call("DEBUG", "RELOAD")
        digests.append(conn.call("DEBUG", "DIGEST"))
        size = conn.call("DBSIZE")
    server.stop()
    return digests, size


def test_a_snapshot_written_while_clients_went_on_is_the_state_at_its_end(
        tmp_path, start_server):
    found = []
    for file in (WALKED, WALKED_END):
        path = tmp_path / file.stem / "copy"
        path.parent.mkdir()
        shutil.copy(file, path)
        found.append(state(start_server, path))
    (walked, _), (whole, _) = found
    assert set(walked) == set(whole) and len(set(walked)) == 1
    assert found[0][1] == found[1][1]


def test_cat_and_salvage_complete_it(tmp_path):
    got = card(cards(WALKED), "snapshot")
    assert got["keys"] < got["intact_keys"] and got["effect_groups"] > 5
    assert card(cards(WALKED_END), "snapshot")["keys"] == got["keys"]

    def cat(path):
        db, lines = b"", set()
        for line in check("cat", path).stdout.splitlines():
            db = line if line.startswith(b'"SELECT"') else db
            lines.add((db, line))
        return lines

    assert cat(WALKED) == cat(WALKED_END)
    damaged = tmp_path / "damaged"
    shutil.copy(WALKED, damaged)
    flip(damaged, WALKED.stat().st_size - 3000)  # among the effects
    assert card(cards(damaged, status=DAMAGED), "snapshot")["problem"]
    got = check("salvage", damaged, tmp_path / "out", status=DAMAGED)
    rescued = card(cards(tmp_path / "out"), "snapshot")
    assert got.stdout.startswith(
        b"damaged: something was lost, %d filters\n" % rescued["keys"])
    assert 0 < rescued["keys"] == rescued["intact_keys"]


# ---- cat ---------------------------------------------------------------------

def words(line):
    got = re.findall(rb'"((?:[^"\\]|\\.)*)"', line)
    return [w.decode("unicode_escape").encode("latin-1") for w in got]


def test_cat_prints_a_snapshot_as_restore(data, start_server):
    lines = [words(line) for line in
             check("cat", data.snapshot).stdout.splitlines()]
    restores = [line for line in lines if line[0] == b"RESTORE"]
    assert len(restores) == len(Data.base + Data.closed) + 1
    by_key = {line[1].decode(): line for line in restores}
    assert by_key["b0"][2] == b"4102444800000"
    server = start_server("--dir", data.path, "--appendonly", "yes")
    with server.conn() as conn:
        for key in Data.base + Data.closed:
            line = by_key[key]
            assert line[3] == conn.call("DUMP", key), key
            assert line[4:] == [b"REPLACE", b"ABSTTL"]
            assert line[2] == (b"0" if key != "b0" else b"4102444800000")
    assert [b"SELECT", b"5"] in lines


def test_cat_prints_increments_as_their_commands(data):
    lines = [words(line) for line in
             check("cat", data.journal).stdout.splitlines()]
    created = {line[1].decode() for line in lines if line[0] == b"BF.INSERT"}
    assert created == set(Data.closed + Data.open + ["t1", "t2"])
    inside = lines[lines.index([b"MULTI"]):lines.index([b"EXEC"])]
    assert [line[1] for line in inside[1:]] == [b"t1", b"t2"]


@pytest.mark.parametrize("what", ["snapshot", "journal"])
def test_cat_resp_fills_another_server(data, start_server, what):
    path = data.snapshot if what == "snapshot" else data.journal
    server = start_server()
    commands = check("cat", "--resp", path).stdout
    if shutil.which("redis-cli"):
        pipe = subprocess.run(["redis-cli", "-p", str(server.port), "--pipe"],
                              input=commands, capture_output=True, timeout=60)
        assert b"errors: 0" in pipe.stdout, pipe.stdout
    else:
        with server.conn() as conn:
            conn.send(commands + resp.command("ECHO", "end"))
            reply = conn.read()
            while reply != b"end":
                assert not isinstance(reply, resp.Error), reply
                reply = conn.read()
    with server.conn() as conn:
        keys = {k.decode() for k in conn.call("KEYS", "*")}
        assert keys == (ALL if what == "journal"
                        else set(Data.base + Data.closed))
        for key in keys:
            assert conn.call("BF.EXISTS", key, "item " + key) == 1
        assert conn.call("EXPIRETIME", "b0") == 4102444800


# ---- damage: snapshots -------------------------------------------------------

def test_a_damaged_snapshot_is_reported_with_its_offset(data, tmp_path,
                                                        start_server):
    size = data.snapshot.stat().st_size
    whole = data.snapshot.read_bytes()
    lost = set()
    for offset in [0, 9, 60, 103, 110, 150, 400, size // 3, size // 2,
                   size - 60, size - 20, size - 1]:
        data.snapshot.write_bytes(whole)
        flip(data.snapshot, offset)
        got = card(cards(data.snapshot, status=None), "snapshot")
        assert got["status"] == "damaged", (offset, got)
        assert got["offset"] <= offset and got["problem"], (offset, got)
        out = tmp_path / ("out%d" % offset)
        check("salvage", data.snapshot, out, status=None)
        if not out.exists():
            continue
        rescued = card(cards(out), "snapshot")
        assert rescued["keys"] == got["intact_keys"], (offset, got)
        lost.add(got["intact_keys"])
        keys = keys_of(start_server, "--dir", tmp_path, "--dbfilename",
                       out.name)
        assert keys <= set(Data.base + Data.closed)
    assert len(lost) > 1, lost


def test_a_server_refuses_what_verify_refuses(data):
    flip(data.snapshot, data.snapshot.stat().st_size // 2)
    shutil.rmtree(data.journal)
    check("verify", data.path, status=DAMAGED)
    log = refusal("--dir", data.path)
    assert "damaged" in log and "bloomery-check" in log


@pytest.mark.parametrize("cut", [1, 30, 200, 5000, -1, -50, -110])
def test_a_short_snapshot_is_damaged(data, cut):
    size = data.snapshot.stat().st_size
    os.truncate(data.snapshot, cut if cut > 0 else size + cut)
    got = card(cards(data.snapshot, status=DAMAGED), "snapshot")
    assert got["status"] == "damaged"


def test_a_snapshot_with_many_damaged_places_is_salvaged(data, tmp_path):
    rng = random.Random(7)
    size = data.snapshot.stat().st_size
    for _ in range(20):
        flip(data.snapshot, rng.randrange(104, size))
    check("salvage", data.snapshot, tmp_path / "out", status=None)
    if (tmp_path / "out").exists():
        cards(tmp_path / "out")


# ---- damage: journals --------------------------------------------------------

def damage_group(increment, index):
    at = groups(increment.read_bytes())[index]
    flip(increment, at[0] + 30)
    return at


def test_damage_in_the_middle_is_refused_and_salvaged(data, tmp_path,
                                                      start_server):
    increment = data.with_groups()[-1]
    end = card(cards(data.journal), "journal")
    everything = groups(increment.read_bytes())
    begin, _, sequence, _ = damage_group(increment, 5)
    got = cards(data.path, status=DAMAGED)
    bad = [c for c in got if c["kind"] == "increment" and
           c["status"] == "damaged"]
    assert len(bad) == 1 and bad[0]["path"] == str(increment)
    assert bad[0]["offset"] == begin and bad[0]["due_sequence"] == sequence
    assert bad[0]["intact_groups_after"] == len(everything) - 6
    assert "salvage" in bad[0]["remedy"]
    log = refusal("--dir", data.path, "--appendonly", "yes")
    assert str(begin) in log and increment.name in log

    before = digest(data.path)
    out = tmp_path / "out"
    check("salvage", data.path, out, status=DAMAGED)
    assert digest(data.path) == before
    assert {c["status"] for c in cards(out)} == {"intact"}
    rescued = card(cards(out), "journal")
    assert rescued["position"] == end["position"]
    assert rescued["sequence"] == end["sequence"]
    keys = keys_of(start_server, "--dir", out, "--appendonly", "yes")
    assert len(ALL - keys) == 1 and keys < ALL


def test_data_before_the_damage_can_be_extracted(data, tmp_path,
                                                 start_server):
    increment = data.with_groups()[-1]
    damage_group(increment, 5)
    bad = [c for c in cards(data.journal, status=DAMAGED)
           if c["status"] == "damaged" and c["kind"] == "increment"][0]
    position = re.search(r"truncate-to (\d+) ", bad["or"]).group(1)
    check("truncate-to", position, data.journal, tmp_path / "out")
    keys = journal_keys(start_server, tmp_path / "out")
    assert keys == set(Data.base + Data.closed + ["t1", "t2"] + Data.open[:4])


def test_a_torn_tail_is_no_damage(data, start_server):
    increment = data.with_groups()[-1]
    begin, end, _, _ = groups(increment.read_bytes())[-1]
    os.truncate(increment, end - 20)
    got = cards(data.path)
    torn = [c for c in got if c["status"] == "torn" and
            c["kind"] == "increment"]
    assert len(torn) == 1 and torn[0]["offset"] == begin
    assert "tail of %d bytes would be cut" % (end - 20 - begin) in \
        torn[0]["note"]
    check("salvage", data.path, data.path.parent / "out")
    for path in [data.path, data.path.parent / "out"]:
        keys = keys_of(start_server, "--dir", path, "--appendonly", "yes")
        assert keys == ALL - {Data.open[-1]}


def test_groups_that_a_start_would_cut_off_can_be_salvaged(data, tmp_path,
                                                           start_server):
    server = start_server("--dir", data.path, "--appendonly", "yes",
                          "--appendfsync", "no",
                          "--auto-aof-rewrite-percentage", "0")
    more = ["n%d" % i for i in range(10)]
    with server.conn() as conn:
        for key in more:
            assert conn.call("BF.ADD", key, "item " + key) == 1
    server.stop()
    damage_group(data.with_groups()[-1], 2)
    torn = [c for c in cards(data.journal) if c["status"] == "torn"][0]
    assert torn["intact_groups_after"] == 7 and "salvage" in torn["to_keep_them"]
    check("salvage", data.journal, tmp_path / "out", status=DAMAGED)
    assert journal_keys(start_server, tmp_path / "out") == \
        ALL | set(more) - {"n2"}
    assert journal_keys(start_server, data.journal) == ALL | set(more[:2])


@pytest.mark.parametrize("tail", [b"\0" * 4096, os.urandom(500),
                                  b"*2\r\n$6\r\nSELECT\r\n"],
                         ids=["zeros", "random", "a command"])
def test_garbage_after_the_end_is_a_torn_tail(data, tail):
    with open(data.with_groups()[-1], "ab") as file:
        file.write(tail)
    assert card(cards(data.journal), "journal")["status"] == "torn"


def test_a_closed_increment_must_be_whole(data):
    closed = data.with_groups()[0]
    os.truncate(closed, closed.stat().st_size - 1)
    got = [c for c in cards(data.journal, status=DAMAGED)
           if c["path"] == str(closed)][0]
    assert got["closed"] == "yes" and got["status"] == "damaged"
    assert refusal("--dir", data.path, "--appendonly", "yes")


def test_a_journal_without_its_manifest_is_damage(data, tmp_path,
                                                  start_server):
    """A start from the snapshot, or from nothing, would lose the last adds."""
    (data.journal / "manifest").unlink()
    for keeps_snapshot in (True, False):
        if not keeps_snapshot:
            data.snapshot.unlink()
        check("verify", data.path, status=DAMAGED)
        for mode in ("yes", "no"):
            log = refusal("--dir", data.path, "--appendonly", mode)
            assert "manifest: damaged: it is missing, and" in log
    check("salvage", data.path, tmp_path / "out", status=DAMAGED)
    assert keys_of(start_server, "--dir", tmp_path / "out", "--appendonly",
                   "yes") == ALL


def test_an_unfinished_journal_is_ignored(data, tmp_path, start_server):
    """A kill leaves this state while the journal is built or removed."""
    (data.journal / "manifest").unlink()
    (data.journal / "unfinished").touch()
    found = cards(data.path)
    assert {c["status"] for c in found} == {"intact"}
    assert "built or removed" in card(found, "journal")["note"]
    assert found[-1]["newest"] == SNAPSHOT
    check("backup", data.path, tmp_path / "out")
    assert not (tmp_path / "out" / "journal").exists()
    for mode in ("no", "yes"):
        keys = keys_of(start_server, "--dir", data.path, "--appendonly", mode)
        assert keys == set(Data.base + Data.closed)
    assert not (data.journal / "unfinished").exists()
    assert card(cards(data.path), "manifest")["status"] == "intact"


def test_an_older_increment_in_place_of_the_newest_is_damage(data):
    """The groups of the older increment are intact, but their sequence numbers
    are too low. If a start cut them off as a torn tail, everything synced
    since would be lost."""
    newest = data.increments()[-1]
    shutil.copy(data.with_groups()[0], newest)
    got = [c for c in cards(data.path, status=DAMAGED)
           if c["path"] == str(newest)][0]
    assert got["status"] == "damaged" and got["offset"] == FIRST_LINE
    assert check("verify", newest).returncode == INTACT  # alone it is intact
    log = refusal("--dir", data.path, "--appendonly", "yes")
    assert "%s: group" % newest in log and "no crash leaves behind" in log


def test_damage_of_the_manifest_has_an_offset(data):
    flip(data.journal / "manifest", 31)
    said = card(cards(data.path, status=DAMAGED), "journal")["problem"]
    log = refusal("--dir", data.path, "--appendonly", "yes")
    for text in (said, log):
        assert re.search("offset [0-9]+", text), text


def start_ends(path):
    """Tells whether a server starts on the directory; returns its log if
    not."""
    server = servers.Server("--dir", path, "--appendonly", "yes", ready=False)
    try:
        server.wait_ready()
        return True, ""
    except RuntimeError:
        return False, server.log().decode("utf-8", "replace")
    finally:
        server.kill()
        server.assert_healthy()
        server.remove()


def flip_one_bit(rng, path):
    """Flips a bit somewhere, in each file that verify reads, with the same
    probability."""
    files = sorted(p for p in Path(path).rglob("*") if p.is_file() and
                   p.name not in ("lock", "hash-secret") and p.stat().st_size > 0)
    file = rng.choice(files)
    size = file.stat().st_size
    offset = rng.randrange(size if rng.random() < 0.5 else min(size, 3000))
    flip(file, offset, 1 << rng.randrange(8))
    return "%s at %d" % (file.relative_to(path), offset)


# ROUNDS=1000 runs more rounds, SEED=n repeats a run.
def test_a_server_starts_on_salvaged_files(template, tmp_path):
    """A server also starts on every directory that verify finds intact."""
    seeds = crash.seeds(crash.amount("ROUNDS", 30))
    seen = collections.Counter()

    def run(seed):
        path = tmp_path / str(seed)
        shutil.copytree(template, path / "data")
        where = flip_one_bit(random.Random(seed), path / "data")
        verdict = check("verify", path / "data", status=None).returncode
        starts, log = start_ends(copy(path / "data", path / "copy"))
        assert verdict != INTACT or starts, (where, log)
        got = check("salvage", path / "data", path / "out", status=None)
        assert (path / "out").exists(), (where, got.stderr)
        assert check("verify", path / "out", status=None).returncode == \
            INTACT, where
        again, log = start_ends(path / "out")
        assert again, (where, log)
        seen["verify %d, start %s" % (verdict, starts)] += 1
        shutil.rmtree(path)

    crash.each(seeds, run, workers=2)
    print("%d bits: all of salvage's start; %s" % (len(seeds), dict(seen)))


def copy(path, to):
    shutil.copytree(path, to)
    return to


def test_a_group_that_cannot_be_executed_is_damage(data, tmp_path,
                                                   start_server):
    """The group that created a filter is lost, and another group adds to the
    filter. Each group is intact, but a start fails."""
    server = start_server("--dir", data.path, "--appendonly", "yes",
                          "--appendfsync", "no")
    with server.conn() as conn:
        for item in range(3):
            assert conn.call("BF.ADD", "made late", "item %d" % item) == 1
        conn.call("BF.ADD", "n", "item n")
    server.stop()
    increment = data.with_groups()[-1]
    made = next(i for i, g in enumerate(groups(increment.read_bytes()))
                if b"BF.INSERT" in increment.read_bytes()[g[0]:g[1]])
    damage_group(increment, made)
    check("salvage", data.path, tmp_path / "out", status=DAMAGED)
    assert {c["status"] for c in cards(tmp_path / "out")} == {"intact"}
    assert card(cards(tmp_path / "out"), "journal")["groups"] == 0
    assert keys_of(start_server, "--dir", tmp_path / "out", "--appendonly",
                   "yes") == ALL | {"n"}


def append_group(increment, *commands):
    """Returns a group with an intact seal."""
    data = increment.read_bytes()
    key = int(data[61:77], 16)
    body = resp.command("SELECT", "0") + b"".join(resp.command(*c)
                                                  for c in commands)
    _, _, sequence, ms = all_groups(data)[-1]
    head = b"#XX:%016d:%014d:%016d:%016d:" % (sequence + 1, ms, len(body),
                                              sequence)
    increment.write_bytes(data + body + head + b"%016x%016x\r\n" % (
        xxh3(head, key), xxh3(body + head, key)))


def test_verify_executes_groups_as_a_start_does(data, tmp_path, start_server):
    increment = data.with_groups()[-1]
    append_group(increment, ("BF.ADD", "never made", "x"),
                 ("BF.ADD", "o1", "more"))
    end = len(increment.read_bytes())
    bad = [c for c in cards(data.path, status=DAMAGED)
           if c["kind"] == "increment" and c["status"] == "damaged"][0]
    assert "cannot be executed: bf.add failed" in bad["problem"].lower()
    assert FIRST_LINE < bad["offset"] < end
    log = refusal("--dir", data.path, "--appendonly", "yes")
    assert "offset %d cannot be executed" % bad["offset"] in log
    check("salvage", data.path, tmp_path / "out", status=DAMAGED)
    got = json.loads(check("salvage", "--json", data.journal, tmp_path / "out2",
                           status=DAMAGED).stdout.splitlines()[-1])
    assert got["failed_commands"] == 1 and got["lost"] == "something"
    server = start_server("--dir", tmp_path / "out", "--appendonly", "yes")
    with server.conn() as conn:
        assert conn.call("BF.EXISTS", "o1", "more") == 1
        assert conn.call("EXISTS", "never made") == 0


def test_without_its_base_a_journal_leaves_the_snapshot(data, tmp_path,
                                                        start_server):
    next(data.journal.glob("base-*")).unlink()
    got = check("salvage", data.path, tmp_path / "out", status=DAMAGED)
    assert b"no base can be read" in got.stderr
    assert b"something was lost" in got.stdout
    assert (tmp_path / "out" / SNAPSHOT).read_bytes()
    assert not (tmp_path / "out" / "journal").exists()
    assert keys_of(start_server, "--dir", tmp_path / "out", "--appendonly",
                   "yes") == set(Data.base + Data.closed)
    assert "base" in refusal("--dir", data.path, "--appendonly", "yes")


def test_a_lost_first_line_is_damage(data, tmp_path, start_server):
    closed = data.with_groups()[0]
    flip(closed, 70)
    check("verify", data.journal, status=DAMAGED)
    check("salvage", data.journal, tmp_path / "out", status=DAMAGED)
    check("verify", tmp_path / "out")
    assert journal_keys(start_server, tmp_path / "out") == \
        ALL - set(Data.closed)


def test_every_flipped_byte_is_found(data):
    increment = data.with_groups()[0]
    whole = increment.read_bytes()
    rng = random.Random(11)
    for offset in rng.sample(range(len(whole)), 150):
        increment.write_bytes(whole)
        flip(increment, offset, 1 << rng.randrange(8))
        got = card(cards(data.journal, status=DAMAGED), "journal")
        assert got["status"] == "damaged", offset


def test_a_damaged_base_is_salvaged(data, tmp_path, start_server):
    base = next(data.journal.glob("base-*"))
    flip(base, base.stat().st_size // 2)
    check("verify", data.journal, status=DAMAGED)
    check("salvage", data.journal, tmp_path / "out", status=DAMAGED)
    check("verify", tmp_path / "out")
    keys = journal_keys(start_server, tmp_path / "out")
    assert keys < ALL and keys >= set(Data.closed + Data.open)


@pytest.mark.parametrize("how", ["flip", "remove", "cut"])
def test_without_a_manifest_salvage_uses_the_file_names(data, tmp_path,
                                                        start_server, how):
    manifest = data.journal / "manifest"
    if how == "flip":
        flip(manifest, 25)
    elif how == "remove":
        manifest.unlink()
    else:
        os.truncate(manifest, 40)
    assert card(cards(data.journal, status=DAMAGED), "journal")["problem"]
    check("salvage", data.journal, tmp_path / "out", status=DAMAGED)
    check("verify", tmp_path / "out")
    assert journal_keys(start_server, tmp_path / "out") == ALL


def test_a_file_that_the_manifest_names_is_missing(data, tmp_path):
    data.with_groups()[0].unlink()
    got = card(cards(data.journal, status=DAMAGED), "journal")
    assert "missing" in got["problem"]
    check("salvage", data.journal, tmp_path / "out", status=DAMAGED)
    check("verify", tmp_path / "out")


def test_numbers_out_of_range_are_refused(data, tmp_path):
    manifest = data.journal / "manifest"
    text = re.sub(rb"generation \d+", b"generation 9999999999999999",
                  manifest.read_bytes()[:-26])
    manifest.write_bytes(text + b"checksum %016x\n" % xxh3(text))
    for command in [("truncate-to", "4102444800s"), ("backup",)]:
        got = check(*command, data.journal, tmp_path / "out", status=DAMAGED)
        assert b"beyond" in got.stderr
        assert not (tmp_path / "out").exists()
    # Salvage works without a manifest, and nothing else is damaged.
    got = check("salvage", data.journal, tmp_path / "out", status=DAMAGED)
    assert b"beyond" in got.stderr
    check("verify", tmp_path / "out")


def test_a_lone_increment_is_salvaged(data, tmp_path):
    increment = data.with_groups()[-1]
    damage_group(increment, 3)
    check("salvage", increment, tmp_path / "out", status=DAMAGED)
    got = card(cards(tmp_path / "out"), "increment")
    assert got["groups"] == len(all_groups(increment.read_bytes())) - 1


def test_the_salvage_of_an_intact_directory_loses_nothing(data, tmp_path,
                                                          start_server):
    got = check("salvage", data.path, tmp_path / "out")
    assert got.stdout == b"intact: nothing was lost, %d filters\n" % (len(ALL) + 1)
    got = check("cat", data.path)
    assert re.search(rb"^intact: \d+ files$", got.stderr, re.M)
    end = card(cards(data.journal), "journal")
    got = card(cards(tmp_path / "out"), "journal")
    assert got["position"] == end["position"]
    shutil.rmtree(data.path)
    assert keys_of(start_server, "--dir", tmp_path / "out", "--appendonly",
                   "yes") == ALL


# ---- truncate-to -------------------------------------------------------------

def ends(data):
    """Returns (position, sequence, ms) at the end of each group, from the base
    on."""
    position = json.loads(
        check("info", "--json", data.journal / "manifest").stdout)["position"]
    found = []
    for increment in data.increments():
        data_of = increment.read_bytes()
        for group in all_groups(data_of):
            begin, end, sequence, ms = group
            position += end - begin
            if group in groups(data_of):
                found.append((position, sequence, ms))
    return found


def test_truncate_to_a_position_cuts_after_the_last_group(data, tmp_path,
                                                          start_server):
    all_ends = ends(data)
    for i, add in [(0, 0), (4, 0), (4, 1), (len(Data.closed) + 3, -1),
                   (len(all_ends) - 1, 0)]:
        out = tmp_path / ("out%d.%d" % (i, add))
        check("truncate-to", all_ends[i][0] + add, data.journal, out)
        got = card(cards(out), "journal")
        last = all_ends[i if add >= 0 else i - 1]
        assert (got["position"], got["sequence"]) == last[:2]
    keys = journal_keys(start_server, tmp_path / "out4.0")
    assert keys == set(Data.base + Data.closed[:5])


def test_truncate_to_a_time(data, tmp_path, start_server):
    all_ends = ends(data)
    _, sequence, ms = all_ends[len(Data.closed) + 7]
    last = max(s for _, s, m in all_ends if m <= ms)
    second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000))
    for i, text in enumerate(["%dms" % ms, "%s.%03dZ" % (second, ms % 1000),
                              "%s.%03d+00:00" % (second, ms % 1000)]):
        out = tmp_path / ("out%d" % i)
        check("truncate-to", text, data.path, out)
        got = card(cards(out), "journal")
        assert got["sequence"] == last >= sequence
    keys = keys_of(start_server, "--dir", tmp_path / "out0", "--appendonly",
                   "yes")
    kept = [e for e in all_ends if e[1] <= last]
    # One group of the second increment, the transaction, created two keys.
    assert len(keys) == len(Data.base) + len(kept) + \
        (1 if len(kept) > len(Data.closed) else 0)


def test_truncate_to_the_future_keeps_all(data, tmp_path, start_server):
    check("truncate-to", "4102444800s", data.journal, tmp_path / "out")
    assert journal_keys(start_server, tmp_path / "out") == ALL


def test_truncate_to_before_the_base_is_refused(data, tmp_path):
    for target in ["1", "1000000000s", "2001-02-03T04:05:06Z"]:
        got = check("truncate-to", target, data.journal, tmp_path / "out",
                    status=USAGE)
        assert b"newer" in got.stderr and b"older backup" in got.stderr
        assert not (tmp_path / "out").exists()


def test_truncate_to_beyond_the_end_is_refused(data, tmp_path):
    got = check("truncate-to", ends(data)[-1][0] + 1, data.journal,
                tmp_path / "out", status=USAGE)
    assert b"ends at position" in got.stderr
    assert not (tmp_path / "out").exists()


def test_truncate_to_past_damage_is_refused(data, tmp_path):
    damage_group(data.with_groups()[-1], 5)
    got = check("truncate-to", "4102444800s", data.journal, tmp_path / "out",
                status=DAMAGED)
    assert b"damage" in got.stderr and not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", [
    "", "x", "-1", "1.5", "12h", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
    "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00:00+01:00", "s", "ms",
    "99999999999999999999", "99999999999999999999s"])
def test_truncate_to_nonsense_is_a_usage_error(data, tmp_path, target):
    check("truncate-to", "--", target, data.journal, tmp_path / "out",
          status=USAGE)
    assert not (tmp_path / "out").exists()


# ---- other answers -----------------------------------------------------------

def test_a_newer_version_is_named(data, tmp_path, start_server):
    head = bytearray(data.snapshot.read_bytes())
    head[8] += 1
    head[96:104] = xxh3(bytes(head[:96])).to_bytes(8, "little")
    (tmp_path / "newer").write_bytes(head)
    increment = bytearray(data.with_groups()[-1].read_bytes())
    increment[18:19] = b"2"
    increment[110:126] = b"%016x" % xxh3(bytes(increment[:110]))
    (tmp_path / "newer-increment").write_bytes(increment)
    manifest = (data.journal / "manifest").read_bytes()
    lines = manifest[:-26].replace(b"journal 1\n", b"journal 2\n")
    (tmp_path / "newer-manifest").write_bytes(
        lines + b"checksum %016x\n" % xxh3(lines))
    for name in ["newer", "newer-increment", "newer-manifest"]:
        assert cards(tmp_path / name, status=NEWER)[0]["status"] == "newer"
    for name in ["newer", "newer-increment"]:
        check("salvage", tmp_path / name, tmp_path / "out", status=NEWER)
        assert not (tmp_path / "out").exists()
    data.with_groups()[-1].write_bytes(increment)
    check("verify", data.journal, status=NEWER)


@pytest.mark.parametrize("command", ["salvage", "backup"])
def test_existing_files_are_never_replaced(data, tmp_path, command):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    for out in ["file", "folder"]:
        for path in [data.path, data.journal, data.snapshot]:
            got = check(command, path, tmp_path / out, status=USAGE)
            assert b"exists" in got.stderr
    assert (tmp_path / "file").read_text() == "mine"
    assert not list((tmp_path / "folder").iterdir())


def test_a_disk_that_fills_up_leaves_nothing(data, tmp_path):
    out = tmp_path / "missing" / "out"
    check("salvage", data.path, out, status=UNREADABLE)
    program = Path(servers.server_binary()).with_name("bloomery-check")
    if servers.sanitized():
        return
    got = subprocess.run(
        ["bash", "-c", "trap '' XFSZ; ulimit -f 1; exec %s salvage %s %s" % (
            program, data.snapshot, tmp_path / "out")], capture_output=True)
    assert got.returncode == UNREADABLE, got.stderr
    assert not (tmp_path / "out").exists()


def test_usage_errors_exit_with_2(data):
    for args in [(), ("nonsense",), ("verify",), ("verify", "--nonsense", "x"),
                 ("cat",), ("cat", data.snapshot, data.snapshot),
                 ("salvage", data.snapshot), ("truncate-to", "1", "x"),
                 ("salvage", data.journal / "manifest", data.path / "o")]:
        assert check(*args, status=USAGE).stderr


def test_unreadable_files_exit_with_3(tmp_path):
    check("verify", tmp_path / "missing", status=UNREADABLE)
    check("verify", tmp_path, status=UNREADABLE)
    check("cat", tmp_path / "missing", status=UNREADABLE)
    check("salvage", tmp_path / "missing", tmp_path / "o", status=UNREADABLE)


def test_foreign_files_are_reported_as_damaged(tmp_path):
    (tmp_path / "notes").write_text("hello")
    assert cards(tmp_path / "notes", status=DAMAGED)[0]["kind"] == "unknown"
    (tmp_path / "incr-1").write_bytes(b"")
    assert cards(tmp_path / "incr-1", status=DAMAGED)[0]["kind"] == "increment"


def test_names_cannot_play_tricks_on_a_terminal(tmp_path):
    name = tmp_path / "\x1b[31mred\n\"x"
    name.write_text("hello")
    got = check("verify", name, status=DAMAGED)
    assert b"\x1b" not in got.stdout
    assert cards(name, status=DAMAGED)[0]["path"] == str(name)


def test_help_and_version():
    assert b"truncate-to" in check("--help").stdout
    assert check("--version").stdout.startswith(b"bloomery-check ")
