# SPDX-License-Identifier: BSD-3-Clause
#
# The journal, or the whole data directory, is moved or removed under a running
# server. The open files would still accept writes, but no start would find them. The
# server must treat this as a fault.

import os
import shutil
import time

import pytest

from lib import crash, resp, servers

ALWAYS = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
WITHIN = 1.0  # seconds until the server notices


def remove(path):
    shutil.rmtree(path, ignore_errors=True)  # the server may be writing a base


def moved(path):
    """Returns a path beside the data directory."""
    return path.split("/data")[0] + "/moved"


def move(path):
    shutil.rmtree(moved(path), ignore_errors=True)
    os.rename(path, moved(path))


def replace(path):
    move(path)
    os.mkdir(path)


def put_a_copy(path):
    move(path)
    shutil.copytree(moved(path), path)


def remove_files(path):
    for name in os.listdir(path):
        os.unlink(os.path.join(path, name))


def remove_manifest(path):
    os.unlink(os.path.join(path, "manifest"))


def journal_of(store):
    return os.path.join(store.data, "journal")


def add(conn, *keys):
    for key in keys:
        assert conn.call("BF.ADD", key, "x") == 1


def suspects(conn):
    return int(crash.info(conn)["aof_suspect_files"])


def wait_noticed(conn, before):
    began = time.monotonic()
    servers.wait_until(lambda: suspects(conn) > before, 10, "it is noticed",
                       0.005)
    assert time.monotonic() - began <= WITHIN * servers.time_factor()


def check_after_kill(store, *keys):
    store.kill()
    assert crash.check(store) == 0
    store.start()
    with store.conn() as conn:
        for key in keys:
            assert conn.call("BF.EXISTS", key, "x") == 1, key
    store.assert_healthy()


@pytest.mark.parametrize("how", [remove, move, replace, put_a_copy,
                                 remove_files, remove_manifest],
                         ids=lambda how: how.__name__)
def test_a_journal_that_is_gone_gets_new_files(how):
    with crash.Store(*ALWAYS) as store:
        store.start()
        with store.conn() as conn:
            add(conn, "a", "b")
            how(journal_of(store))
            wait_noticed(conn, 0)
            add(conn, "c")  # waits until the new base is there
            servers.wait_until(
                lambda: crash.info(conn)["journal_state"] == "on", 10, "it is on")
            assert crash.info(conn)["aof_rewrites"] == "1"
            add(conn, "d")
            conn.call("BGREWRITEAOF")
            crash.wait_idle(conn)
            add(conn, "e")
        check_after_kill(store, "a", "b", "c", "d", "e")


# A load that never stops, while the directory disappears several times.
def test_no_acknowledged_write_is_lost_when_the_journal_disappears_often():
    with crash.Store(*ALWAYS) as store:
        store.start()
        added = 0
        with store.conn() as conn, store.conn() as other:
            for number in range(6):
                before = suspects(other)
                (move if number % 2 else remove)(journal_of(store))
                while suspects(other) == before:
                    add(conn, "k%d" % added)
                    added += 1
                add(conn, "k%d" % added)
                added += 1
                if number % 3 == 0:
                    other.call("BGREWRITEAOF")
            servers.wait_until(
                lambda: crash.info(conn)["journal_state"] == "on", 10, "it is on")
        check_after_kill(store, *("k%d" % i for i in range(added)))


def test_without_a_new_journal_writes_are_refused():
    with crash.Store(*ALWAYS, "--misconf-after", 1) as store:
        store.start()
        with store.conn() as conn, store.conn() as other:
            add(conn, "a")
            move(journal_of(store))
            open(journal_of(store), "w").close()  # blocks mkdir
            wait_noticed(other, 0)
            conn.send(resp.command("BF.ADD", "b", "x"))
            servers.wait_until(
                lambda: isinstance(other.call("PING"), resp.Error), 10,
                "PING is refused")
            assert other.call("PING").args[0].startswith("MISCONF")
            assert other.call("BF.ADD", "c", "x").args[0].startswith("MISCONF")
            assert conn.read().args[0].startswith("MISCONF")
            os.unlink(journal_of(store))
            servers.wait_until(lambda: other.call("PING") == b"PONG", 10,
                               "PING is answered")
            add(other, "d")
        check_after_kill(store, "a", "b", "d")


def test_a_journal_removed_while_it_was_off_is_made_anew():
    with crash.Store(*ALWAYS) as store:
        store.start()
        with store.conn() as conn:
            add(conn, "a")
            conn.call("CONFIG", "SET", "appendonly", "no")
            servers.wait_until(
                lambda: crash.info(conn)["journal_state"] == "off", 10, "off")
            remove(journal_of(store))
            conn.call("CONFIG", "SET", "appendonly", "yes")
            crash.wait_idle(conn)
            assert crash.info(conn)["journal_state"] == "on"
            add(conn, "b")
        check_after_kill(store, "a", "b")


# ---- the data directory ------------------------------------------------------

@pytest.mark.parametrize("how", [remove, move, replace],
                         ids=lambda how: how.__name__)
@pytest.mark.parametrize("journal", ["yes", "no"])
def test_a_removed_data_directory_is_made_anew(how, journal):
    with crash.Store("--appendonly", journal, "--appendfsync", "always",
                     "--save", "3600 1000000") as store:
        store.start()
        snapshot = os.path.join(store.data, "bloomery.snapshot")
        state = os.path.join(store.data, "replication.state")
        with store.conn() as conn:
            add(conn, "a")
            assert conn.call("SAVE") == b"OK"
            assert conn.call("REPLICAOF", "127.0.0.1", "1") == b"OK"
            assert conn.call("REPLICAOF", "NO", "ONE") == b"OK"
            servers.wait_until(lambda: os.path.exists(state), 10, "the role")
            add(conn, "b")
            how(store.data)
            # A snapshot in the old place never gets OK.
            if conn.call("SAVE") == b"OK":
                assert os.path.exists(snapshot)
            for path in (snapshot, state, os.path.join(store.data, "lock")):
                servers.wait_until(lambda: os.path.exists(path), 10, path)
            servers.wait_until(lambda: conn.call("SAVE") == b"OK", 10, "a save")
            servers.wait_until(
                lambda: crash.info(conn)["journal_state"] ==
                ("on" if journal == "yes" else "off"), 10, "the journal")
            add(conn, "c")
            if journal == "no":
                assert conn.call("SAVE") == b"OK"
        check_after_kill(store, "a", "b", "c")
