# SPDX-License-Identifier: BSD-3-Clause
#
# Backups of a live server: writers, rewrites and snapshots go on meanwhile. A second
# server that starts on the backup has every write that was acknowledged before it
# began.

import contextlib
import fnmatch
import json
import os
import random
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from lib import neighbour, resp, servers
from test_check import card, cards, check, digest, rewrite

WRITERS = 4
ROUNDS = 4


class Writers:
    """Pipelines of adds, with a count of the acknowledged ones; and a thread
    that rewrites and saves all the time."""

    def __init__(self, server, seed):
        self.server = server
        self.done = [0] * WRITERS
        self.stop = threading.Event()
        self.errors = []
        self.rewrites = 0
        self.threads = [threading.Thread(target=self.run, args=(self.write, i))
                        for i in range(WRITERS)]
        self.threads.append(
            threading.Thread(target=self.run, args=(self.rewrite, seed)))

    def run(self, work, arg):
        try:
            work(arg)
        except Exception as error:  # the test shows it
            self.errors.append(repr(error))

    def write(self, i):
        with self.server.conn() as conn:
            n = 0
            while not self.stop.is_set():
                got = conn.pipeline([("BF.ADD", "w%d.%d" % (i, (n + k) // 50),
                                      "%d" % (n + k)) for k in range(8)])
                assert got == [1] * 8, got
                n += 8
                self.done[i] = n

    def rewrite(self, seed):
        rng = random.Random(seed)
        with self.server.conn() as conn:
            while not self.stop.is_set():
                conn.call(rng.choice(["BGREWRITEAOF", "BGSAVE"]))
                servers.wait_until(
                    lambda: b"aof_rewrite_in_progress:0" in
                    conn.call("INFO", "persistence"), 30, "the rewrite ends")
                self.rewrites += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        assert not self.errors, self.errors


def assert_holds(start_server, out, done):
    """Checks that a server on the backup has the first done[i] adds of each
    writer."""
    server = start_server("--dir", out, "--bf.bloom-fp-rate", "1e-9")
    with server.conn() as conn:
        for i, count in enumerate(done):
            found = []
            for start in range(0, count, 400):
                found += conn.pipeline(
                    [("BF.EXISTS", "w%d.%d" % (i, n // 50), "%d" % n)
                     for n in range(start, min(count, start + 400))])
            lost = [n for n, there in enumerate(found) if not there]
            assert not lost, (i, count, lost[:10])
    server.stop()


@pytest.mark.parametrize("policy", ["everysec", "always"])
def test_a_backup_has_every_acknowledged_add(tmp_path, start_server, policy):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    data = tmp_path / "data"
    data.mkdir()
    server = start_server("--dir", data, "--appendonly", "yes", "--appendfsync",
                          policy, "--bf.bloom-fp-rate", "1e-9")
    backups = []
    with Writers(server, seed) as writers:
        for i in range(ROUNDS):
            want = min(writers.done) + 200
            servers.wait_until(lambda: min(writers.done) > want, 60, "writes")
            done, out = list(writers.done), tmp_path / ("out%d" % i)
            found = cards_of_backup(data, out)
            assert card(found, "journal")["status"] == "intact", found
            backups.append((out, done))
        frozen = digest(backups[0][0])
        want = min(writers.done) + 200
        servers.wait_until(lambda: min(writers.done) > want, 60, "writes")
        assert digest(backups[0][0]) == frozen
        servers.wait_until(lambda: writers.rewrites > 2, 60, "rewrites")
    for out, done in backups:
        assert_holds(start_server, out, done)
    server.stop()
    assert_holds(start_server, data, writers.done)


def cards_of_backup(data, out):
    got = check("backup", "--json", data, out)
    return [json.loads(line) for line in got.stdout.splitlines()]


def make_data(start_server, path):
    path.mkdir()
    server = start_server("--dir", path, "--appendonly", "yes")
    with server.conn() as conn:
        for i in range(50):
            conn.call("BF.ADD", "w0.0", str(i))
        conn.call("SAVE")
        rewrite(conn, path / "journal")
    return server


def test_complete_files_are_linked_and_not_copied(tmp_path, start_server):
    make_data(start_server, tmp_path / "data")
    check("backup", tmp_path / "data", tmp_path / "out")
    for name in ["bloomery.snapshot", next(
            (tmp_path / "out/journal").glob("base-*")).relative_to(
                tmp_path / "out")]:
        assert (tmp_path / "data" / name).samefile(tmp_path / "out" / name)
    increment = next((tmp_path / "out/journal").glob("incr-*"))
    assert increment.stat().st_nlink == 1


@pytest.mark.parametrize("what", ["bloomery.snapshot", "journal"])
def test_a_part_can_be_backed_up_alone(tmp_path, start_server, what):
    make_data(start_server, tmp_path / "data")
    (tmp_path / "out").mkdir()
    check("backup", tmp_path / "data" / what, tmp_path / "out" / what)
    assert_holds(start_server, tmp_path / "out", [50])


def test_a_backup_to_another_file_system_is_a_copy(tmp_path, start_server):
    shm = Path("/dev/shm")
    if not os.access(shm, os.W_OK) or \
            shm.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second file system")
    make_data(start_server, tmp_path / "data")
    out = shm / ("bloomery-%d" % os.getpid())
    try:
        check("backup", tmp_path / "data", out)
        assert_holds(start_server, out, [50])
    finally:
        shutil.rmtree(out, ignore_errors=True)


def test_a_damaged_journal_is_not_backed_up(tmp_path, start_server):
    make_data(start_server, tmp_path / "data").stop()
    manifest = tmp_path / "data/journal/manifest"
    manifest.write_bytes(manifest.read_bytes()[:-1])
    check("backup", tmp_path / "data", tmp_path / "out", status=1)
    assert not (tmp_path / "out").exists()


def test_verify_works_while_the_server_writes(tmp_path, start_server):
    data = tmp_path / "data"
    data.mkdir()
    server = start_server("--dir", data, "--appendonly", "yes",
                          "--bf.bloom-fp-rate", "1e-9")
    with Writers(server, 1) as writers:
        last = 0
        for _ in range(20):
            got = card(cards(data / "journal"), "journal")
            assert got["status"] in ("intact", "torn") and \
                got["position"] >= last
            last = got["position"]
        servers.wait_until(lambda: writers.rewrites > 3, 30, "rewrites")


def test_without_a_snapshot_the_tool_names_the_missing_file(tmp_path,
                                                            start_server):
    (tmp_path / "data").mkdir()
    start_server("--dir", tmp_path / "data", "--appendonly", "no")
    got = check("backup", tmp_path / "data", tmp_path / "out", status=3)
    assert b"neither a snapshot nor a journal" in got.stderr
    assert b"BGSAVE" in got.stderr
    assert not (tmp_path / "out").exists()


# ---- what is beside the data -------------------------------------------------

OPTIONS = ("--merge-on-heal", "yes", "--sidecar-port-offset", neighbour.OFFSET,
           *neighbour.EMPTY)
# Their names are the test's, or come from options.
BY_OPTION = {"bloomery.snapshot", "journal", "pid", "log"}
# Rows of the list that a healthy server does not leave.
OTHER_SECRET = "00112233445566778899aabbccddeeff\n"
OTHER_FINGERPRINT = "73cda022bda506a9"
SELDOM = {"replication.state.damaged", "let-go-*.snapshot", "heal-*.log",
          "heal-*.log.damaged",
          "quarantine-*.resp", "*.stale-*", "*.tmp", "*.new", "*.arriving"}


def listed():
    """Returns the rows of the list: the name, and its columns."""
    text = subprocess.run([servers.server_binary(), "--print=files-md"],
                          capture_output=True, text=True, check=True).stdout
    rows = [[c.strip() for c in line.strip("| \n").split(" | ")]
            for line in text.splitlines()[2:]]
    return {row[0].strip("`"): row[1:] for row in rows if row[0].startswith("`")}


def full_server(start_server, data, node):
    """A server that leaves each file that the list has."""
    data.mkdir()
    (data / "users.acl").touch()
    (data / "hash-secrets").mkdir(0o700)
    learnt = data / "hash-secrets" / OTHER_FINGERPRINT
    learnt.write_text(OTHER_SECRET)
    learnt.chmod(0o600)
    server = start_server("--dir", data, "--appendonly", "yes", "--sidecar-of",
                          node.address, "--aclfile", data / "users.acl",
                          "--pidfile", data / "pid", "--logfile", data / "log",
                          *OPTIONS)
    with server.conn() as conn:
        servers.wait_until(lambda: conn.call("BF.ADD", "plain", "x") in (0, 1), 20,
                           "it serves")
        for words in (("BF.RESERVE", "keyed", "0.01", "100", "HASH", "keyed"),
                      ("BF.ADD", "keyed", "x"),
                      ("SAVE",), ("CONFIG", "SET", "dialect", "redis"),
                      ("CONFIG", "SET", "requirepass", "pw"),
                      ("CONFIG", "REWRITE"),
                      ("ACL", "SETUSER", "eve", "on", ">secret", "+ping"),
                      ("ACL", "SAVE")):
            got = conn.call(*words)
            assert not isinstance(got, resp.Error), (words, got)
    for name in ("slots.state", "merge.state"):
        servers.wait_until((data / name).exists, 10, name)
    return server


def test_the_list_names_what_a_server_leaves(tmp_path, start_server):
    data = tmp_path / "data"
    with contextlib.closing(neighbour.Neighbour()) as node:
        server = full_server(start_server, data, node)
        rows = listed()
        there = {p.name for p in data.iterdir()
                 if not p.name.endswith(".tmp")} - BY_OPTION
        unlisted = {n for n in there
                    if not any(fnmatch.fnmatchcase(n, row) for row in rows)}
        assert not unlisted
        absent = {row for row in rows
                  if not fnmatch.filter(there, row)} - SELDOM
        assert absent <= {"replication.state"}, absent
        check("backup", data, tmp_path / "out")
        want = {n for n in there for row in rows
                if fnmatch.fnmatchcase(n, row) and rows[row][2] != "-"}
        got = {p.name for p in (tmp_path / "out").iterdir()}
        assert got == want | {"bloomery.snapshot", "journal"}
        copy = tmp_path / "out/hash-secrets" / OTHER_FINGERPRINT
        assert copy.read_text() == OTHER_SECRET
        assert copy.stat().st_mode & 0o777 == 0o600
        check("backup", "--without-secrets", data, tmp_path / "public")
        assert not (tmp_path / "public/hash-secrets").exists()
        server.kill()


def test_a_restored_server_is_as_it_was(tmp_path, start_server):
    data, out, new = tmp_path / "data", tmp_path / "out", tmp_path / "new"
    with contextlib.closing(neighbour.Neighbour()) as node:
        server = full_server(start_server, data, node)
        check("backup", data, out)
        server.kill()
    assert out.stat().st_mode & 0o777 == 0o700
    for name in ("hash-secret", "users.acl", "rewritten.conf"):
        assert (out / name).stat().st_mode & 0o777 == 0o600
    before = digest(out)
    new.mkdir()
    check("restore", out, new)
    assert digest(out) == before
    slots = (new / "slots.state").read_text()
    assert "\nknown 0-16383 " in slots and "\nheld " not in slots
    for path in new.rglob("*"):  # nothing is shared with the backup
        assert path.is_dir() or path.stat().st_nlink == 1, path
    server = start_server("--dir", new, "--aclfile", new / "users.acl",
                          ready=False)
    servers.wait_until(server.accepts, 20, "it is up")
    with server.conn() as conn:
        servers.wait_until(lambda: conn.call("AUTH", "pw") == b"OK", 20, "it is up")
        servers.wait_until(lambda: conn.call("BF.EXISTS", "keyed", "x") == 1, 20,
                           "it has loaded")
        assert conn.call("CONFIG", "GET", "dialect")[1] == b"redis"
        assert conn.call("AUTH", "eve", "secret") == b"OK"
    server.kill()


def test_restore_makes_a_primary_unless_it_keeps_the_role(tmp_path, start_server):
    server = make_data(start_server, tmp_path / "data")
    with server.conn() as conn:
        conn.call("REPLICAOF", "127.0.0.1", "1")
        servers.wait_until((tmp_path / "data/replication.state").exists, 10, "role")
    check("backup", tmp_path / "data", tmp_path / "out")
    got = check("restore", tmp_path / "out", tmp_path / "primary")
    assert b"the role was `replica 127.0.0.1 1`" in got.stderr
    assert not (tmp_path / "primary/replication.state").exists()
    check("restore", "--keep-role", tmp_path / "out", tmp_path / "replica")
    assert (tmp_path / "replica/replication.state").exists()
    assert_holds(start_server, tmp_path / "primary", [50])


def test_restore_overwrites_nothing(tmp_path, start_server):
    make_data(start_server, tmp_path / "data")
    check("backup", tmp_path / "data", tmp_path / "out")
    got = check("restore", tmp_path / "out", tmp_path / "data", status=2)
    assert b"a server uses it" in got.stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").touch()
    got = check("restore", tmp_path / "out", tmp_path / "full", status=2)
    assert b"is not empty" in got.stderr
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine"]


def test_a_backup_without_secrets_has_none(tmp_path, start_server):
    data = tmp_path / "data"
    with contextlib.closing(neighbour.Neighbour()) as node:
        server = full_server(start_server, data, node)
        secret = (data / "hash-secret").read_text().strip()
        check("backup", "--without-secrets", data, tmp_path / "out")
        server.kill()
    assert "dialect = redis" in (tmp_path / "out/rewritten.conf").read_text()
    for path in (tmp_path / "out").rglob("*"):
        if path.is_file():
            text = path.read_bytes()
            assert b"requirepass" not in text and secret.encode() not in text
    assert not (tmp_path / "out/users.acl").exists()
    assert not (tmp_path / "out/replication.state").exists()


@pytest.mark.parametrize("form", ["directory", "archive"])
def test_a_backup_has_what_options_name_elsewhere(tmp_path, start_server, form):
    data, etc, out, new = (tmp_path / n for n in ("data", "etc", "out", "new"))
    data.mkdir()
    etc.mkdir()
    (etc / "users").touch()
    secret = etc / "secret"
    secret.write_text(OTHER_SECRET)
    secret.chmod(0o600)
    conf = etc / "bloomery.conf"
    conf.write_text("[security]\naclfile = %s\nhash-secret-file = %s\n"
                    "[replication]\nmasterauth-file = %s\n"
                    % (etc / "users", secret, etc / "pw"))
    server = start_server("--dir", data, "--appendonly", "yes", "--aclfile",
                          etc / "users", "--hash-secret-file", secret)
    with server.conn() as conn:
        conn.call("BF.INSERT", "keyed", "HASH", "keyed", "ITEMS", "x")
        conn.call("ACL", "SETUSER", "eve", "on", ">secret", "~*", "+@all")
        assert conn.call("ACL", "SAVE") == b"OK"
    server.kill()
    got = check("backup", "--hash-secret-file", secret, data, out)
    assert b"\nnot included: what options name outside of" in got.stdout
    shutil.rmtree(out)
    if form == "directory":
        got = check("backup", "--config", conf, data, out)
        restored = check("restore", out, new)
        missing = got.stdout
        assert (out / "aclfile.acl").stat().st_mode & 0o777 == 0o600
    else:
        got = check("backup", "--tar", "--config", conf, data, "-")
        restored = check("restore", "-", new, stdin=got.stdout)
        missing = got.stderr
    assert (b"\nnot included: configuration %s, masterauth-file %s\n"
            % (str(conf).encode(), str(etc / "pw").encode())) in missing
    assert b"aclfile.acl: has the users, if the option aclfile" in restored.stderr
    shutil.rmtree(etc)
    server = start_server("--dir", new, "--aclfile", new / "aclfile.acl")
    with server.conn() as conn:
        assert conn.call("AUTH", "eve", "secret") == b"OK"
        assert conn.call("BF.EXISTS", "keyed", "x") == 1
        assert conn.call("BF.INSERT", "keyed", "ITEMS", "y") == [1]


def test_a_backup_without_secrets_has_none_of_elsewhere(tmp_path, start_server):
    data = tmp_path / "data"
    (tmp_path / "users").write_text("user eve on nopass ~* +@all\n")
    make_data(start_server, data)
    conf = tmp_path / "conf"
    conf.write_text("[security]\naclfile = %s\n" % (tmp_path / "users"))
    got = check("backup", "--config", conf, "--without-secrets", "--json", data,
                tmp_path / "out")
    assert not (tmp_path / "out/aclfile.acl").exists()
    named = [json.loads(line) for line in got.stdout.splitlines()]
    assert [c["option"] for c in named if c["kind"] == "outside"] == [
        "configuration", "aclfile"]
    conf.write_text("[security]\nnonsense = 1\n")
    got = check("backup", "--config", conf, data, tmp_path / "no", status=3)
    assert b"conf:2: " in got.stderr and not (tmp_path / "no").exists()


@pytest.mark.parametrize("how", ["salvage", "truncate-to"])
def test_salvage_and_truncate_take_the_settings_along(tmp_path, start_server, how):
    server = make_data(start_server, tmp_path / "data")
    with server.conn() as conn:
        conn.call("BF.RESERVE", "keyed", "0.01", "100", "HASH", "keyed")
        conn.call("BF.ADD", "keyed", "x")
        conn.call("CONFIG", "SET", "dialect", "redis")
        conn.call("CONFIG", "REWRITE")
    words = (how,) if how == "salvage" else (how, "2100-01-01T00:00:00Z")
    check(*words, tmp_path / "data", tmp_path / "out")
    server = start_server("--dir", tmp_path / "out")
    with server.conn() as conn:
        assert conn.call("BF.EXISTS", "keyed", "x") == 1
        assert conn.call("CONFIG", "GET", "dialect")[1] == b"redis"
