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


def empty(path):
    """As `rm -rf` that meets a file which the server has just made."""
    for name in os.listdir(path):
        file = os.path.join(path, name)
        if os.path.isdir(file):
            shutil.rmtree(file, ignore_errors=True)
        else:
            os.unlink(file)


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


def wait_files(store, *names):
    for name in names:
        path = os.path.join(store.data, name)
        servers.wait_until(lambda: os.path.exists(path), 10, path)


# The files of a server that uses all of them. After the kill nothing is missing: the
# filters that need the secret, the password, the user and the role.
@pytest.mark.parametrize("how", [remove, move, replace, empty],
                         ids=lambda how: how.__name__)
def test_what_only_dir_had_is_written_again(how):
    with crash.Store(*ALWAYS) as store:
        users = os.path.join(store.data, "users.acl")
        open(users, "w").close()
        store.options += ["--aclfile", users, "--pidfile",
                          os.path.join(store.data, "pid")]
        store.start()
        secret = os.path.join(store.data, "hash-secret")
        names = ("hash-secret", "rewritten.conf", "users.acl",
                 "replication.state", "lock", "pid", "journal/manifest")
        with store.conn() as conn:
            assert conn.call("BF.RESERVE", "keyed", "0.01", "100", "HASH",
                             "keyed") == b"OK"
            add(conn, "keyed", "plain")
            assert conn.call("ACL", "SETUSER", "eve", "on", "nopass",
                             "+ping") == b"OK"
            assert conn.call("ACL", "SAVE") == b"OK"
            assert conn.call("CONFIG", "SET", "bf.bloom-expansion", "7") == b"OK"
            assert conn.call("CONFIG", "REWRITE") == b"OK"
            assert conn.call("CONFIG", "SET", "bf.bloom-expansion", "8") == b"OK"
            assert conn.call("REPLICAOF", "127.0.0.1", "1") == b"OK"
            assert conn.call("REPLICAOF", "NO", "ONE") == b"OK"
            wait_files(store, *names)
            with open(secret, "rb") as file:
                before = file.read()
            how(store.data)
            wait_files(store, *names)
            assert os.stat(secret).st_mode & 0o777 == 0o600
            with open(secret, "rb") as file:
                assert file.read() == before
            servers.wait_until(
                lambda: crash.info(conn)["journal_state"] == "on", 10, "it is on")
        store.kill()
        store.start()
        with store.conn() as conn:
            assert conn.call("BF.EXISTS", "keyed", "x") == 1
            assert conn.call("CONFIG", "GET", "bf.bloom-expansion")[1] == b"7"
            assert b"user eve" in b"\n".join(conn.call("ACL", "LIST"))
        store.assert_healthy()


# The files of another server are in the place: its secret is kept under another name.
def test_another_servers_secret_is_set_aside():
    with crash.Store(*ALWAYS) as store:
        store.start()
        with store.conn() as conn:
            assert conn.call("BF.RESERVE", "keyed", "0.01", "100", "HASH",
                             "keyed") == b"OK"
            add(conn, "keyed")
            other = os.path.join(store.folder, "other")
            os.mkdir(other)
            with open(os.path.join(other, "hash-secret"), "w") as file:
                file.write("%032x\n" % 7)
            os.chmod(os.path.join(other, "hash-secret"), 0o600)
            move(store.data)
            os.rename(other, store.data)
            wait_files(store, "lock", "journal/manifest")
            servers.wait_until(
                lambda: crash.info(conn)["journal_state"] == "on", 10, "it is on")
        assert [n for n in os.listdir(store.data)
                if n.startswith("hash-secret.stale-")]
        check_after_kill(store, "keyed")


# DEBUG RELOAD cannot save, and says so.
def test_a_reload_without_a_directory_fails_at_once():
    with crash.Store(*ALWAYS, "--enable-debug-command", "yes") as store:
        store.start()
        with store.conn() as conn:
            add(conn, "a")
            move(store.data)
            open(store.data, "w").close()  # blocks mkdir
            servers.wait_until(
                lambda: "the data directory is gone" in store.log(), 10, "noticed")
            got = conn.call("DEBUG", "RELOAD")
            assert isinstance(got, resp.Error), got
            os.unlink(store.data)
            wait_files(store, "lock", "journal/manifest")
            servers.wait_until(
                lambda: crash.info(conn)["journal_state"] == "on", 10, "it is on")
        check_after_kill(store, "a")


# The directory goes while a start reads the data from it.
@pytest.mark.parametrize("what", ["data", "journal"])
def test_a_start_outlives_its_files(what):
    with crash.Store(*ALWAYS, "--save", "") as store:
        store.start()
        with store.conn() as conn:
            for i in range(40):
                conn.pipeline([("BF.RESERVE", "k%d.%d" % (i, n), "0.01", "200000",
                                "NONSCALING") for n in range(20)])
            add(conn, "a")
        store.kill()
        store.launch()
        manifest = os.path.join(store.data, "journal", "manifest")
        while not is_loading(store):
            assert store.alive()
        move(store.data if what == "data" else journal_of(store))
        assert store.wait_ready(), store.log()
        if "began to serve first" in store.log():
            return
        with store.conn() as conn:
            wait_files(store, "lock", "journal/manifest")
            add(conn, "b")
        assert os.path.exists(manifest)
        check_after_kill(store, "a", "b")


def is_loading(store):
    try:
        with store.conn() as conn:
            got = conn.call("BF.CARD", "nothing")
            return isinstance(got, resp.Error) or got == 0
    except OSError:
        return False
