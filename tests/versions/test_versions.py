# SPDX-License-Identifier: BSD-3-Clause
#
# Version 1.0.0 beside this one: its files are read here, and those of this version there
# as far as packaging/doc/operating.md says; a pair is upgraded under load, replica first,
# and goes back. `make versions` builds 1.0.0 in build/1.0.0 and runs these tests.
# SEED=n repeats a run.

import contextlib
import os
import random
import threading

import pytest

from lib import failover, neighbour, resp, servers
from lib.replicas import digest, follow, info, link_is_up, node, wait_even
from lib.servers import wait_until

OLD = str(servers.TOP / "build/1.0.0/build/release/bloomery-server")
NEW = servers.server_binary()
SEED = int(os.environ.get("SEED") or random.randrange(1 << 31))

# What BF.RESERVE of 1.0.0 makes: its words behind rate and capacity.
KINDS = {
    "native": (), "full": ("NONSCALING",), "growing": ("EXPANSION", "4"),
    "deletable": ("DELETABLE",), "ageing": ("AGEING", "31536000"),
    "keyed": ("HASH", "keyed"), "keyed deletable": ("DELETABLE", "8", "HASH", "keyed"),
}
LAYOUTS = ("redisbloom", "valkeybloom")


@contextlib.contextmanager
def started(*all_options):
    """Starts nodes, each as (binary, options...)."""
    nodes = []
    try:
        for binary, *options in all_options:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("BLOOMERY_SERVER", binary)
                nodes.append(node("--loglevel", "notice", *options))
        yield nodes
    finally:
        for one in nodes:
            one.kill()
            one.remove()


def change(one, binary):
    """Restarts a server as another version, on the same data."""
    one.child.terminate()
    assert one.wait_exit() == 0, one.log().decode()[-4000:]
    one.argv[0] = binary
    one.restart()


def version(one):
    with one.conn() as conn:
        text = conn.call("INFO", "server").decode()
    return next(line.split(":")[1].strip() for line in text.splitlines()
                if line.startswith("bloomery_version:"))


def rewritten(one):
    with one.conn() as conn:
        return b"aof_rewrite_in_progress:0" in conn.call("INFO", "persistence")


def fill(one, items):
    """Makes a filter of each kind, and adds items to those that are there."""
    with one.conn() as conn:
        for name in [*KINDS, *LAYOUTS]:
            if name not in items:
                items[name] = []
                layout = name if name in LAYOUTS else "native"
                assert conn.call("CONFIG", "SET", "bloom-layout", layout) == b"OK"
                got = conn.call("BF.RESERVE", name, "0.001", "100", *KINDS.get(name, ()))
                assert got == b"OK", (name, got)
                assert conn.call("CONFIG", "SET", "bloom-layout", "native") == b"OK"
            words = ["%s %d" % (name, len(items[name]) + i) for i in range(60)]
            for word, reply in zip(words, conn.call("BF.MADD", name, *words)):
                if not isinstance(reply, resp.Error):   # else it is full
                    items[name].append(word)
        conn.call("PEXPIREAT", "native", "4000000000000")


def check(one, items):
    with one.conn() as conn:
        for name, words in items.items():
            found = conn.call("BF.MEXISTS", name, *words)
            assert found == [1] * len(words), (name, found)
        assert conn.call("PTTL", "native") > 0


@pytest.mark.parametrize("journal", ["yes", "no"])
def test_files_of_each_version_are_read_by_the_other(journal):
    items = {}
    with started((OLD, "--appendonly", journal, "--save", "3600 1",
                  "--auto-aof-rewrite-percentage", "0")) as (one,):
        assert version(one) == "1.0.0"
        fill(one, items)
        before = digest(one)
        for binary in (NEW, OLD, NEW, OLD):
            change(one, binary)
            assert (version(one) == "1.0.0") == (binary == OLD)
            assert digest(one) == before, binary
            check(one, items)
            fill(one, items)
            with one.conn() as conn:
                if journal == "yes":
                    assert isinstance(conn.call("BGREWRITEAOF"), bytes)
            wait_until(lambda: rewritten(one), 20, "a rewrite")
            before = digest(one)


class Pair:
    """What lib.failover.Writer needs."""

    password = None

    def __init__(self, nodes):
        self.nodes = nodes
        self.primary = nodes[0]
        self.writers = [failover.Writer(self, n, 1, SEED + n) for n in range(3)]

    def connect(self, rng):
        return resp.Conn(self.primary.address, timeout=2)

    def progress(self, what):
        """Waits until each writer has items that the replica acknowledged."""
        counts = [len(w.acked[1]) for w in self.writers]
        wait_until(lambda: all(w.problem is None and len(w.acked[1]) > count + 10
                               for w, count in zip(self.writers, counts)), 60, what)

    def swap(self):
        """Hands the role over, as before the upgrade of a primary."""
        other = next(n for n in self.nodes if n is not self.primary)
        old = self.primary
        with old.conn() as conn:
            got = conn.call("FAILOVER", "TO", other.host, other.port)
            assert got == b"OK", got
        wait_until(lambda: info(other)["role"] == "master", 30, "a new primary")
        self.primary = other
        wait_until(lambda: link_is_up(old), 60, "the old primary follows")

    def check(self):
        for writer in self.writers:
            writer.over.set()
            writer.thread.join()
            assert writer.problem is None
        wait_even(*self.nodes)
        assert len({digest(one) for one in self.nodes}) == 1
        for one in self.nodes:
            with one.conn() as conn:
                for writer in self.writers:
                    writer.check(conn)
                    assert writer.lost[1] == 0


def test_a_pair_is_upgraded_under_load_and_goes_back(tmp_path):
    print("SEED=%d" % SEED)
    secret = tmp_path / "secret"    # replicas of 1.0.0 do not get it from their primary
    secret.write_text("5a" * 16 + "\n")
    secret.chmod(0o600)
    options = ("--appendonly", "yes", "--hash-secret-file", secret)
    items = {}
    with started((OLD, *options), (OLD, *options)) as nodes:
        follow(nodes[1], nodes[0])
        fill(nodes[0], items)
        pair = Pair(nodes)
        for writer in pair.writers:
            writer.thread.start()
        pair.progress("1.0.0")
        for binary in (NEW, OLD):
            for _ in nodes:
                replica = next(n for n in nodes if n is not pair.primary)
                change(replica, binary)
                wait_until(lambda: link_is_up(replica), 60, "the link")
                pair.progress("a replica as %s" % binary)
                pair.swap()
                pair.progress("a primary as %s" % binary)
            assert {version(n) == "1.0.0" for n in nodes} == {binary == OLD}
        pair.check()
        for one in nodes:
            check(one, items)


# ---- what 1.0.0 refuses: the table of packaging/doc/operating.md ---------------------

def refused(one):
    """Restarts a server as 1.0.0, which must refuse; returns what it says."""
    one.child.terminate()
    assert one.wait_exit() == 0
    begin = len(one.log())
    one.argv[0] = OLD
    one.restart(wait=False)
    status = one.wait_exit()
    return status, one.log()[begin:].decode()


def test_options_and_rights_that_1_0_0_lacks(tmp_path):
    part = tmp_path / "part.conf"
    part.write_text("[network]\ntimeout = 5\n")
    with started((NEW, "--include", part)) as (one,):
        status, said = refused(one)
        assert status == 2 and "include" in said, said
    with started((NEW,)) as (one,):
        with one.conn() as conn:
            assert conn.call("CONFIG", "SET", "bf.subscribe-gather-ms", "3") == b"OK"
            assert conn.call("CONFIG", "REWRITE") == b"OK"
        status, said = refused(one)
        assert status == 2 and "rewritten.conf" in said and "subscribe-gather-ms" in said
    users = tmp_path / "users"
    users.touch()
    with started((NEW, "--aclfile", users)) as (one,):
        with one.conn() as conn:
            assert conn.call("ACL", "SETUSER", "eve", "on", "nopass", "+bf.subscribe") == b"OK"
            assert conn.call("ACL", "SAVE") == b"OK"
        status, said = refused(one)
        assert status in (2, 3) and "bf.subscribe" in said, said


def test_what_a_sidecar_holds():
    with contextlib.closing(neighbour.Neighbour()) as peer:
        with started((NEW, "--appendonly", "yes", "--sidecar-of", peer.address)) as (one,):
            wait_until(lambda: os.path.exists(os.path.join(one.folder, "slots.state")), 20)
            status, said = refused(one)
            assert status == 1 and "slots.state" in said and "remove it" in said, said


def test_a_secret_of_another_server():
    with started((NEW, "--appendonly", "yes"), (NEW, "--appendonly", "yes")) as (one, other):
        with one.conn() as conn:
            conn.call("BF.RESERVE", "keyed", "0.01", "100", "HASH", "keyed")
        with other.conn() as conn:
            conn.call("BF.RESERVE", "own", "0.01", "100", "HASH", "keyed")
        follow(other, one)
        wait_until(lambda: link_is_up(other), 20)
        wait_even(one, other)
        status, said = refused(other)
        assert status == 3 and "secret" in said, said
