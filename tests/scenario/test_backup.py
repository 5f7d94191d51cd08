# SPDX-License-Identifier: BSD-3-Clause
#
# Backups of a live server: writers, rewrites and snapshots go on meanwhile. A second
# server that starts on the backup has every write that was acknowledged before it
# began.

import json
import os
import random
import shutil
import threading
from pathlib import Path

import pytest

from lib import servers
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
    assert writers.rewrites > 2
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
