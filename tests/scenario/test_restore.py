# SPDX-License-Identifier: BSD-3-Clause
#
# The data that a server with default options keeps, which of two states a start loads,
# and what it logs about the other one. test_documents.py runs the recipes of operating.md.

import random
import re
import shutil
import threading
from pathlib import Path

import pytest

from lib import replicas, resp
from lib.servers import wait_until

NEVER_BOTH = "--bf.bloom-fp-rate", "1e-9"


# ---- the default -------------------------------------------------------------

class Writer(threading.Thread):
    """Adds in pipelines, and counts the replies."""

    def __init__(self, server, name, seed):
        super().__init__()
        self.server, self.name, self.rng = server, name, random.Random(seed)
        self.asked = self.answered = 0

    def run(self):
        try:
            with self.server.conn() as conn:
                while True:
                    count = self.rng.randrange(1, 60)
                    conn.send(b"".join(
                        resp.command("BF.ADD", "%s:%d" % (self.name, n // 500), n)
                        for n in range(self.asked, self.asked + count)))
                    self.asked += count
                    while self.answered < self.asked:
                        assert conn.read() == 1
                        self.answered += 1
        except (resp.Closed, OSError):
            pass


def test_a_kill_of_a_server_without_options_loses_no_acknowledged_write(monkeypatch):
    monkeypatch.setenv("WORLD", "0")
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    server = replicas.Node(*NEVER_BOTH)
    assert not any("appendonly" in a or "appendfsync" in a for a in server.argv)
    done = {}
    try:
        for number in range(4):
            writers = [Writer(server, "%d.%d" % (number, i), rng.random())
                       for i in range(3)]
            for one in writers:
                one.start()
            goal = rng.randrange(1, 3000)
            wait_until(lambda: min(w.answered for w in writers) > goal, 30,
                       "some adds are answered")
            server.crash()
            for one in writers:
                one.join()
                done[one.name] = one.answered
            server.restart()
            with server.conn() as conn:
                for name, count in done.items():
                    found = conn.pipeline([
                        ("BF.EXISTS", "%s:%d" % (name, n // 500), n)
                        for n in range(count)])
                    assert found == [1] * count, (name, count)
        print("answered before the kills:", sum(done.values()))
    finally:
        server.stop()


# ---- of two states one -------------------------------------------------------

@pytest.fixture
def start(start_server):
    """start(folder, options): a server on this data directory with a verbose
    log."""
    return lambda folder, *options: start_server(
        "--dir", folder, "--loglevel", "notice", *options)


def holds(server, *items):
    with server.conn() as conn:
        return [conn.call("BF.EXISTS", "k", item) for item in items]


def add(server, *items):
    with server.conn() as conn:
        for item in items:
            assert conn.call("BF.ADD", "k", item) == 1


def say(server, *words):
    with server.conn() as conn:
        assert conn.call(*words) == b"OK"


def event(server, name):
    """Returns the log's line of an event, as a dict, or None."""
    for line in server.log().decode().splitlines():
        got = {key: value.strip('"') for key, value in
               re.findall(r'(\w+)=("[^"]*"|\S+)', line)}
        if got.get("event") == name:
            return got
    return None


def kill(server):
    server.child.kill()
    server.child.wait()
    server.stopped = True


def test_an_older_snapshot_is_reported_and_not_loaded(tmp_path, start):
    server = start(tmp_path)
    add(server, "old")
    say(server, "SAVE")
    add(server, "new")
    kill(server)
    again = start(tmp_path)
    assert holds(again, "old", "new") == [1, 1]
    told = event(again, "did not load the snapshot")
    assert told["level"] == "notice" and told["reason"] == "the journal is newer"
    assert told["path"] == "%s/bloomery.snapshot" % tmp_path
    assert int(told["position"]) < int(told["journal_position"])
    assert "move %s/journal away" % tmp_path in told["next"]
    assert event(again, "did not load the journal") is None


def test_a_snapshot_that_was_put_back_is_reported(tmp_path, start):
    """An operator copied a backup beside the journal, and the log says so."""
    server = start(tmp_path)
    add(server, "old")
    say(server, "SAVE")
    shutil.copy(tmp_path / "bloomery.snapshot", tmp_path / "kept")
    add(server, "new")
    say(server, "SAVE")
    server.stop()
    shutil.copy(tmp_path / "kept", tmp_path / "bloomery.snapshot")
    again = start(tmp_path)
    assert holds(again, "old", "new") == [1, 1]
    assert event(again, "did not load the snapshot") is not None
    again.stop()
    # And the procedure that the line describes.
    shutil.copy(tmp_path / "kept", tmp_path / "bloomery.snapshot")
    (tmp_path / "journal").rename(tmp_path / "away")
    restored = start(tmp_path)
    assert holds(restored, "old", "new") == [1, 0]
    add(restored, "then")
    kill(restored)
    assert holds(start(tmp_path), "old", "new", "then") == [1, 0, 1]


def test_a_snapshot_of_another_server_is_a_warning(tmp_path, start):
    (tmp_path / "other").mkdir()
    other = start(tmp_path / "other")
    add(other, "theirs")
    say(other, "SAVE")
    other.stop()
    (tmp_path / "ours").mkdir()
    server = start(tmp_path / "ours")
    add(server, *("ours%d" % i for i in range(50)))
    server.stop()
    shutil.copy(tmp_path / "other/bloomery.snapshot", tmp_path / "ours")
    again = start(tmp_path / "ours")
    assert holds(again, "ours0", "theirs") == [1, 0]
    told = event(again, "did not load the snapshot")
    assert told["level"] == "warn" and "does not continue" in told["reason"]


def test_a_clean_stop_leaves_nothing_to_report(tmp_path, start):
    """Snapshot and journal have the same state then."""
    server = start(tmp_path, "--save", "3600 1")
    add(server, "x")
    server.stop()
    assert (tmp_path / "bloomery.snapshot").exists()
    again = start(tmp_path)
    assert holds(again, "x") == [1]
    assert event(again, "loaded")["from"] == "journal"
    assert event(again, "did not load the snapshot") is None
    assert event(again, "did not load the journal") is None


def test_a_newer_snapshot_is_loaded_and_the_journal_reported(tmp_path, start):
    server = start(tmp_path)
    add(server, "both")
    say(server, "CONFIG", "SET", "appendonly", "no")
    wait_until(lambda: replicas.info(server, "persistence")["journal_state"] ==
               "off", 10, "the journal is off")
    add(server, "later")
    say(server, "SAVE")
    kill(server)
    again = start(tmp_path)
    assert event(again, "loaded")["from"] == "snapshot"
    assert holds(again, "both", "later") == [1, 1]
    told = event(again, "did not load the journal")
    assert told["level"] == "warn" and "the snapshot is newer" in told["reason"]
    assert int(told["position"]) < int(told["snapshot_position"])
    aside = event(again, "set a journal aside")["directory"]
    assert aside.startswith("%s/journal.stale-" % tmp_path) and \
        (Path(aside) / "manifest").exists()
