# SPDX-License-Identifier: BSD-3-Clause
#
# Keyed filters: they survive what others survive, with the secret's file; with
# another one a start and a RESTORE are refused by name (test_keyring.py has servers that
# follow each other); and no command, file or stream shows the secret. ROUNDS=200000 is a long run.

import os
import random
import re
import shutil
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from lib import replicas, resp, servers
from lib.servers import wait_until

ROUNDS = int(os.environ.get("ROUNDS") or 0) or 4000   # commands
KEYS = {"keyed%d" % i: ("HASH", "keyed") for i in range(8)}
KEYS.update({"plain%d" % i: ("HASH", "plain") for i in range(8)})
KEYS.update({"forgets": ("DELETABLE", "HASH", "keyed"), "large": ("HASH", "keyed"),
             "ages": ("AGEING", "86400", "HASH", "keyed")})
CAPACITY = {"large": "400000"}
OTHER = "00112233445566778899aabbccddeeff\n"
CHECK = servers.server_binary().replace("bloomery-server", "bloomery-check")
REFUSAL = b"hash-secret-file"


@pytest.fixture
def rng():
    seed = int(os.environ.get("SEED") or 0) or random.randrange(1 << 32)
    print("SEED=%d" % seed)
    return random.Random(seed)


def secret_of(node):
    return os.path.join(node.folder, "hash-secret")


def write_secret(node, text, mode=0o600):
    with open(secret_of(node), "w", encoding="ascii") as out:
        out.write(text)
    os.chmod(secret_of(node), mode)


def make(conn):
    for key, words in KEYS.items():
        assert conn.call("BF.RESERVE", key, "0.001", CAPACITY.get(key, "300"),
                         *words) == b"OK"


class Truth:
    def __init__(self, rng):
        self.rng = rng
        self.items = {key: set() for key in KEYS}

    def run(self, conn, rounds):
        """Pipelines in which commands on keyed and plain filters are mixed."""
        done = 0
        while done < rounds:
            commands = []
            for _ in range(self.rng.randrange(1, 100)):
                key = self.rng.choice(list(KEYS))
                items = ["%s:%d" % (key, self.rng.randrange(1500))
                         for _ in range(self.rng.choice([1, 1, 1, 5]))]
                word = self.rng.choice(["BF.ADD", "BF.MADD", "BF.INSERT"])
                if word == "BF.ADD":
                    items = items[:1]
                self.items[key].update(items)
                more = ("ITEMS",) if word == "BF.INSERT" else ()
                commands.append((word, key, *more, *items))
            for command, reply in zip(commands, conn.pipeline(commands)):
                assert not isinstance(reply, resp.Error), command
            done += len(commands)

    def check(self, conn):
        for key, items in self.items.items():
            every = sorted(items)
            assert set(conn.call("BF.MEXISTS", key, *every)) == {1}, key
            asked = [("BF.EXISTS", key, item) for item in every[:50]]
            assert set(conn.pipeline(asked)) == {1}, key
            absent = ["no:%d" % i for i in range(500)]
            assert sum(conn.call("BF.MEXISTS", key, *absent)) < 10, key


def test_keyed_filters_survive_saves_rewrites_and_crashes(group, rng):
    node = group.node()
    truth = Truth(rng)
    conn = node.conn()
    make(conn)
    for how in ("BGREWRITEAOF", "SAVE", "BGSAVE", "PING"):
        truth.run(conn, ROUNDS // 4)
        conn.call(how)
        truth.run(conn, 200)
        before = replicas.digest(node)
        node.crash()
        node.restart()
        conn = node.conn()
        assert replicas.digest(node) == before
        truth.check(conn)


def test_a_replica_with_the_same_secret_follows(group, rng):
    primary, replica = group.node(), group.node()
    shutil.copy(secret_of(primary), secret_of(replica))
    replica.crash()
    replica.restart()
    truth = Truth(rng)
    conn = primary.conn()
    make(conn)
    truth.run(conn, ROUNDS // 4)
    replicas.follow(replica, primary)
    truth.run(conn, ROUNDS // 4)
    conn.call("BF.RESERVE", "late", "0.01", "100", "HASH", "keyed")
    conn.call("BF.ADD", "late", "a")
    conn.call("BF.MERGE", "union", "late")
    conn.call("COPY", "late", "copy")
    conn.call("RESTORE", "restored", "0", conn.call("DUMP", "late"))
    conn.call("BF.RESET", "copy")
    wait_until(lambda: conn.call("WAIT", "1", "100") == 1, what="the replica",
               seconds=60)
    assert replicas.digest(replica) == replicas.digest(primary)
    with replica.conn() as other:
        truth.check(other)


@pytest.mark.parametrize("kept", ["journal", "snapshot"])
def test_a_start_with_another_secret_is_refused(group, kept):
    node = group.node("--appendonly", "yes" if kept == "journal" else "no")
    with node.conn() as conn:
        conn.call("BF.RESERVE", "k", "0.01", "100", "HASH", "keyed")
        conn.call("BF.ADD", "k", "a")
        if kept == "snapshot":
            conn.call("SAVE")
    with open(secret_of(node), encoding="ascii") as text:
        good = text.read()
    for other in (OTHER, None):         # the file is lost: the start makes a new one
        node.crash()
        if other is None:
            os.unlink(secret_of(node))
        else:
            write_secret(node, other)
        told = node.log().count(REFUSAL)
        node.restart(wait=False)
        assert node.wait_exit() == 3
        assert node.log().count(REFUSAL) > told
    write_secret(node, good)
    node.restart()
    assert node.conn().call("BF.EXISTS", "k", "a") == 1


def test_a_bad_file_stops_a_start_and_is_named(group):
    node = group.node()
    for text, mode in ((OTHER, 0o644), ("short\n", 0o600)):
        node.crash()
        write_secret(node, text, mode)
        node.restart(wait=False)
        assert node.wait_exit() == 3
        assert secret_of(node).encode() in node.log()
    named = secret_of(node) + ".named"
    node.restart("--hash-secret-file", named, wait=False)
    assert node.wait_exit() == 3
    assert named.encode() in node.log()
    with open(named, "w", encoding="ascii", opener=lambda path, flags: os.open(
            path, flags, 0o600)) as out:
        out.write(OTHER)
    node.restart()


def test_a_dump_is_refused_where_the_secret_is_another(group):
    one, other = group.node(), group.node()
    with one.conn() as conn, other.conn() as away:
        conn.call("BF.INSERT", "k", "HASH", "keyed", "ITEMS", "a", "b")
        dump = conn.call("DUMP", "k")
        at, head = conn.call("BF.SCANDUMP", "k", "0")
        for reply in (away.call("RESTORE", "k", "0", dump),
                      away.call("BF.LOADCHUNK", "k", str(at), head)):
            assert isinstance(reply, resp.Error)
            assert REFUSAL.decode() in str(reply)
        assert away.call("EXISTS", "k") == 0
        assert conn.call("RESTORE", "again", "0", dump) == b"OK"
        while at:
            assert conn.call("BF.LOADCHUNK", "chunks", str(at), head) == b"OK"
            at, head = conn.call("BF.SCANDUMP", "k", str(at))
        for key in ("again", "chunks"):
            assert conn.call("BF.MEXISTS", key, "a", "b", "c") == [1, 1, 0]


def test_tools_read_heads_and_need_the_secret_to_execute(group, tmp_path):
    node = group.node("--auto-aof-rewrite-percentage", "0")
    with node.conn() as conn:
        conn.call("BF.INSERT", "k", "HASH", "keyed", "ITEMS", "a", "b")
        conn.call("SAVE")
    node.crash()
    journal = os.path.join(node.folder, "journal")
    # In the directory they find it by themselves.
    aside = str(tmp_path / "secret")
    with_secret = ("--hash-secret-file", aside)

    def check(*words):
        return subprocess.run([CHECK, *words], capture_output=True, timeout=60,
                              check=False)

    for words in (("verify", journal), ("verify", node.folder),
                  ("salvage", journal, tmp_path / "found")):
        assert check(*words).returncode == 0, words
    os.rename(secret_of(node), aside)
    snapshot = os.path.join(node.folder, "bloomery.snapshot")
    for words in (("verify", snapshot), ("info", journal), ("cat", snapshot),
                  ("verify", *with_secret, journal)):
        assert check(*words).returncode == 0, words
    done = check("verify", journal)
    assert done.returncode == 3
    assert REFUSAL in done.stdout and b"send SIGHUP" in done.stdout    # whole
    # Salvage writes the others.
    done = check("salvage", journal, tmp_path / "plain")
    assert done.returncode == 1 and REFUSAL in done.stderr
    assert check("verify", tmp_path / "plain").returncode == 0
    done = check("verify", "--hash-secret-file", snapshot, journal)
    assert done.returncode == 3 and snapshot.encode() in done.stderr
    assert check("salvage", *with_secret, journal, tmp_path / "out").returncode == 0
    os.rename(aside, secret_of(node))
    node.restart()
    with node.conn() as conn:
        assert conn.call("BF.EXISTS", "k", "a") == 1


@pytest.mark.parametrize("journal", ("rewritten", "yes", "no"))
def test_a_start_can_leave_out_the_filters_of_a_lost_secret(group, journal):
    """Some are in the base or the snapshot, the journal has others, and changes
    that need both kinds."""
    node = group.node("--appendonly", "no" if journal == "no" else "yes",
                      "--auto-aof-rewrite-percentage", "0",
                      "--save", "3600 1000000")
    with node.conn() as conn:
        conn.call("BF.INSERT", "base", "HASH", "keyed", "ITEMS", "a", "b")
        conn.call("BF.INSERT", "plain", "ITEMS", "a", "b")
        if journal == "rewritten":
            conn.call("BGREWRITEAOF")
            wait_until(lambda: b"aof_rewrites:1" in conn.call("INFO", "persistence"))
        conn.call("BF.MADD", "base", "c", "d")
        conn.call("BF.INSERT", "later", "HASH", "keyed", "ITEMS", "a")
        conn.call("RENAME", "later", "renamed")
        conn.call("BF.MERGE", "renamed", "base")
        conn.call("BF.INSERT", "del", "DELETABLE", "HASH", "keyed", "ITEMS", "a", "b")
        conn.call("BF.DEL", "del", "a")
        conn.call("BF.ADD", "plain", "c")
        if journal == "no":
            conn.call("SAVE")
    node.crash()
    os.unlink(secret_of(node))
    node.restart(wait=False)
    node.child.wait(20 * servers.time_factor())
    found = re.search(rb"fingerprint ([0-9a-f]{16})", node.log())
    assert found and b"--without-secret" in node.log()
    wrong = "%016x" % 77
    node.restart("--without-secret", wrong, wait=False)
    node.child.wait(20 * servers.time_factor())
    node.restart("--without-secret", found[1].decode())
    with node.conn() as conn:
        assert conn.call("KEYS", "*") == [b"plain"]
        assert conn.call("BF.MEXISTS", "plain", "a", "b", "c") == [1, 1, 1]
        assert conn.call("BF.INSERT", "new", "HASH", "keyed", "ITEMS", "x") == [1]
        if journal != "no":
            wait_until(lambda: b"aof_rewrites:1" in conn.call("INFO", "persistence"))
        else:  # the start has begun one
            wait_until(lambda: conn.call("SAVE") == b"OK")
    node.crash()
    node.restart("--without-secret", "")
    with node.conn() as conn:
        assert conn.call("BF.MEXISTS", "plain", "a", "b", "c") == [1, 1, 1]
        assert conn.call("DBSIZE") == 2


def test_nothing_shows_the_secret(group):
    node = group.node()
    with open(secret_of(node), encoding="ascii") as text:
        digits = text.read().strip()
    assert os.stat(secret_of(node)).st_mode & 0o777 == 0o600
    with node.conn() as conn:
        conn.call("BF.INSERT", "k", "HASH", "keyed", "ITEMS", "a", "b")
        conn.call("SAVE")
        shown = [conn.call("DUMP", "k"), conn.call("CONFIG", "GET", "*"),
                 conn.call("INFO", "everything"), conn.call("BF.DEBUG", "k"),
                 conn.call("BF.STATS", "k"), conn.call("BF.SCANDUMP", "k", "0")]
    assert conn is not None
    shown = b"".join(repr(reply).encode() for reply in shown)
    files = [path for path in Path(node.folder).rglob("*")
             if path.is_file() and path.name != "hash-secret"]
    dump = node.conn().call("DUMP", "k")
    for path in files:
        dump += path.read_bytes()
    assert len(files) > 3
    for what in (digits.encode(), bytes.fromhex(digits)[:8], bytes.fromhex(digits)[8:]):
        assert what not in dump and what not in shown


def load(*words, status=0):
    done = subprocess.run([CHECK.replace("-check", "-load"), *map(str, words)],
                          capture_output=True, timeout=60, check=False)
    assert status in (None, done.returncode), (words, done.stdout, done.stderr)
    return done


@pytest.mark.parametrize("source", ("server", "directory"))
def test_the_secrets_are_copied_before_the_filters(group, source):
    old, new = group.node(), group.node()
    where = "127.0.0.1:%d" % old.port
    to = ("--to", "127.0.0.1:%d" % new.port)
    with old.conn() as conn:
        conn.call("BF.INSERT", "k", "HASH", "keyed", "ITEMS", "a")
        conn.call("BF.INSERT", "d", "HASH", "keyed", "DELETABLE", "ITEMS", "a")
    done = load("server", where, *to, status=1)
    assert b"and send SIGHUP\n" in done.stderr    # the server's error, whole
    hint = b"`bloomery-load secrets %s DIR` copies the secrets" % where.encode()
    assert done.stderr.count(hint) == 1
    load("secrets", where if source == "server" else old.folder, new.folder)
    folder = os.path.join(new.folder, "hash-secrets")
    (name,) = os.listdir(folder)
    assert os.stat(os.path.join(folder, name)).st_mode & 0o777 == 0o600
    with open(os.path.join(folder, name), encoding="ascii") as got, \
            open(secret_of(old), encoding="ascii") as want:
        assert got.read() == want.read()
    new.child.send_signal(signal.SIGHUP)
    with new.conn() as conn:
        wait_until(lambda: load("server", where, *to, "--existing", "skip",
                                status=None) and conn.call("BF.EXISTS", "k", "a"),
                   20, "the filters are there")
        assert conn.call("BF.EXISTS", "d", "a") == 1


def test_secrets_are_copied_on_the_terms_of_a_replica(group, tmp_path):
    old, new = group.node("--hash-secret-share", "no"), group.node()
    where = "127.0.0.1:%d" % old.port
    assert b"hash-secret-share" in load("secrets", where, new.folder,
                                        status=3).stderr
    with old.conn() as conn:
        assert conn.call("CONFIG", "SET", "hash-secret-share", "yes") == b"OK"
        conn.call("ACL", "SETUSER", "default", "resetkeys", "~k*")
    assert b"PSYNC and all keys" in load("secrets", where, new.folder,
                                         status=3).stderr
    assert not os.path.exists(os.path.join(new.folder, "hash-secrets"))
    empty = tmp_path / "some" / "empty"
    empty.mkdir(parents=True)
    load("secrets", empty, new.folder, status=3)
    load("secrets", where, os.path.join(new.folder, "missing"), status=3)


def fingerprint_of(secret):
    """SipHash-1-3 of a fixed text, with the secret as its key."""
    ones = (1 << 64) - 1
    k = struct.unpack("<QQ", secret)
    v = [k[0] ^ 0x736f6d6570736575, k[1] ^ 0x646f72616e646f6d,
         k[0] ^ 0x6c7967656e657261, k[1] ^ 0x7465646279746573]

    def half(a, b, rotate, turn):
        v[a] = (v[a] + v[b]) & ones
        v[b] = (v[b] << rotate | v[b] >> (64 - rotate)) & ones ^ v[a]
        v[a] = (v[a] << turn | v[a] >> (64 - turn)) & ones

    def rounds(count):
        for _ in range(count):
            half(0, 1, 13, 32)
            half(2, 3, 16, 0)
            half(0, 3, 21, 0)
            half(2, 1, 17, 32)

    text = b"Bloomery: the fingerprint of a hash secret"
    padded = text + bytes(7 - len(text) % 8) + bytes([len(text)])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(1)
        v[0] ^= word
    v[2] ^= 0xff
    rounds(3)
    return "%016x" % (v[0] ^ v[1] ^ v[2] ^ v[3])


def put_secret(path, secret):
    path.write_text(secret.hex() + "\n")
    path.chmod(0o600)


@pytest.mark.parametrize("source", ("server", "directory"))
def test_an_own_secret_and_64_others_are_copied_where_they_fit(group, source,
                                                               tmp_path):
    old = group.node()
    folder = Path(old.folder, "hash-secrets")
    folder.mkdir(0o700)
    for i in range(64):
        secret = struct.pack("<QQ", i, 7)
        put_secret(folder / fingerprint_of(secret), secret)
    old.child.send_signal(signal.SIGHUP)
    with old.conn() as conn:
        wait_until(lambda: conn.call("REPLCONF", "bloomery", "1", "run", "0" * 40) and
                   len(conn.call("REPLCONF", "hash-secret", "?64")) == 16, 20,
                   "it has 65 secrets")
        conn.call("BF.INSERT", "k", "HASH", "keyed", "ITEMS", "a")
        conn.call("SAVE")
    where = "127.0.0.1:%d" % old.port if source == "server" else old.folder
    empty, heir = tmp_path / "empty", tmp_path / "heir"
    empty.mkdir()
    heir.mkdir()
    # They are 65 others for a directory without a secret.
    got = load("secrets", where, empty, status=3)
    assert b"at most 64 secrets of other servers" in got.stderr
    assert b"no secret" in got.stderr and not list(empty.iterdir())
    own = bytes.fromhex(Path(secret_of(old)).read_text().strip())
    put_secret(heir / "hash-secret", own)
    assert b"64" in load("secrets", where, heir).stdout
    assert {p.name for p in (heir / "hash-secrets").iterdir()} == \
        {p.name for p in folder.iterdir()}
    # Once more: nothing is new.
    assert re.search(rb"secrets written +0\n", load("secrets", where, heir).stdout)


def test_a_copy_of_secrets_names_a_file_that_it_cannot_use(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    (old / "hash-secrets").mkdir(parents=True)
    new.mkdir()
    put_secret(old / "hash-secret", bytes(16))
    put_secret(old / "hash-secrets" / ("1" * 16), bytes(range(16)))
    got = load("secrets", old, new, status=3)
    assert b"hash-secrets/1111111111111111: its secret has the fingerprint" in got.stderr
    assert not list(new.iterdir())
