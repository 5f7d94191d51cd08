# SPDX-License-Identifier: BSD-3-Clause
#
# Servers that are stopped in the middle of a save, a rewrite of the journal or a
# full synchronization, on either side of it. They end in time and in good order,
# and a start finds what was acknowledged.
#
# ROUNDS=500 stops more often, SEED=n repeats a run (make stops).

import os
import random
import signal
import time

import pytest

from lib import crash, resp
from lib.peers import FakeReplica
from lib.replicas import follow, info, node, wait_even
from lib.servers import wait_until

ROUNDS = crash.amount("ROUNDS", 8)
PROMPT = ("--repl-diskless-sync-delay", 0)
LARGE = 10                      # filters of 3.6 MB: more than a link takes unread


def fill(server, filters=LARGE):
    """Makes filters that do not get smaller in a snapshot."""
    with server.conn() as conn:
        conn.call("BF.RESERVE", "large:0", "0.001", 2000000)
        for first in range(0, 200000, 20000):
            conn.call("BF.MADD", "large:0", *range(first, first + 20000))
        for number in range(1, filters):
            conn.call("COPY", "large:0", "large:%d" % number)


def say_stop(server, how):
    """Returns the reply to SHUTDOWN; None: the server closed the connection."""
    if how == "SIGTERM":
        server.child.send_signal(signal.SIGTERM)
        return None
    with server.conn() as conn:
        conn.send(resp.command(*how.split()))
        try:
            return conn.read()
        except resp.Closed:
            return None


def end(server):
    assert server.wait_exit() == 0
    server.assert_healthy()


# ---- a replica that does not read its snapshot -----------------------------

@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("how", ["SIGTERM", "SHUTDOWN NOSAVE", "SHUTDOWN SAVE",
                                 "SHUTDOWN NOW"])
def test_a_server_stops_during_a_full_synchronization(start_server, threads,
                                                      how):
    server = start_server(*PROMPT, threads=threads)
    fill(server)
    with FakeReplica(server.address, rcvbuf=4096) as replica:
        assert replica.ask().startswith(b"+FULLRESYNC")
        wait_until(lambda: "state=send_bulk" in str(info(server)))
        assert say_stop(server, how) is None
        end(server)
        replica.drain()


def test_a_stop_that_fails_during_a_full_synchronization(start_server):
    """The server goes on, and the replica can come again."""
    server = start_server(*PROMPT, "--appendonly", "no")
    fill(server)
    with FakeReplica(server.address, rcvbuf=4096) as replica:
        assert replica.ask().startswith(b"+FULLRESYNC")
        os.mkdir(os.path.join(server.folder, "bloomery.snapshot"))
        got = say_stop(server, "SHUTDOWN SAVE")
        assert "Errors trying to SHUTDOWN" in str(got), got
        replica.drain()
    with FakeReplica(server.address, rcvbuf=4096) as replica:
        assert replica.ask().startswith(b"+FULLRESYNC")
        assert say_stop(server, "SHUTDOWN NOSAVE") is None
        end(server)


def test_a_server_drops_its_data_during_a_full_synchronization(group):
    """A replica without memory for old and new data drops the old data, while
    its own replica is reading it."""
    primary = group.node("--appendonly", "no")
    middle = group.node("--appendonly", "no")
    fill(primary)
    follow(middle, primary)
    wait_even(primary, middle)
    with FakeReplica(middle.address, rcvbuf=4096) as replica:
        assert replica.ask().startswith(b"+FULLRESYNC")
        with middle.conn() as conn:
            used = int(info(middle, "memory")["used_memory"])
            conn.call("CONFIG", "SET", "maxmemory", used + 100000)
        with primary.conn() as conn:    # under a history that middle lacks
            assert conn.call("DEBUG", "RELOAD") == b"OK"
            assert conn.call("DEBUG", "RELOAD", "NOSAVE") == b"OK"
        wait_until(lambda: b"dropped the data before" in middle.log(), 30)
        replica.drain()
    wait_even(primary, middle)


# ---- stops at any moment ---------------------------------------------------

STOPS = ["SIGTERM", "SIGTERM", "SHUTDOWN", "SHUTDOWN NOSAVE", "SHUTDOWN SAVE",
         "SHUTDOWN NOW", "SHUTDOWN SAVE NOW", "SHUTDOWN NOSAVE NOW FORCE"]


class Round:
    """A primary with a replica, of which one is stopped while both are busy.
    `added`: items of the key "k" that were acknowledged."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.journals = self.rng.random() < 0.6
        self.saves = self.rng.random() < 0.5
        self.nodes = [self.start() for _ in range(2)]
        self.added = []
        self.did = []

    def start(self):
        return node("--loglevel", "notice", "--threads", self.rng.choice([1, 2]),
                    "--appendonly", "yes" if self.journals else "no",
                    "--appendfsync", self.rng.choice(["always", "everysec"]),
                    "--repl-backlog-size", "16kb",
                    "--save", "3600 1" if self.saves else "")

    def add(self, conn, count):
        items = ["i:%d" % i for i in
                 range(len(self.added), len(self.added) + count)]
        got = conn.call("BF.MADD", "k", *items)
        assert isinstance(got, list), got
        self.added += items

    def busy(self):
        """Begins one thing that takes some time."""
        primary, replica = self.nodes
        what = self.rng.choice(["BGSAVE", "BGREWRITEAOF", "SYNC", "SYNC",
                                "PSYNC", "appendonly"])
        self.did.append(what)
        victim = self.rng.choice(self.nodes)
        if what == "SYNC":
            follow(replica, primary, wait=False)
        elif what == "PSYNC":
            self.open.append(FakeReplica(victim.address, rcvbuf=4096))
            self.open[-1].say("PSYNC", "?", "-1")
        else:
            words = [what] if what != "appendonly" else [
                "CONFIG", "SET", what, self.rng.choice(["yes", "no"])]
            self.open.append(victim.conn())
            self.open[-1].send(resp.command(*words))    # it may have to wait

    def run(self):
        primary, replica = self.nodes
        self.open = []
        fill(primary, 3)
        with primary.conn() as conn:
            self.add(conn, 100)
            for _ in range(self.rng.randrange(1, 4)):
                self.busy()
                self.add(conn, self.rng.randrange(1, 50))
                time.sleep(self.rng.choice([0, 0, 0.001, 0.01, 0.05]))
        victim = self.rng.choice([primary, primary, replica])
        how = self.rng.choice(STOPS)
        self.did += ["replica" if victim is replica else "primary", how]
        if say_stop(victim, how) is not None:
            self.did.append("refused")      # the journal has no base yet
            assert say_stop(victim, "SHUTDOWN NOSAVE NOW FORCE") is None
        assert victim.wait_exit() == 0
        for one in self.open:
            one.close()
        if victim is primary and self.is_kept(how):
            self.check(primary)

    def is_kept(self, how):
        """Whether the state of the end is on the disk."""
        return "refused" not in self.did and "appendonly" not in self.did and (
            self.journals or " SAVE" in how or
            (self.saves and "NOSAVE" not in how))

    def check(self, server):
        server.restart()
        with server.conn() as conn:
            lost = [item for item, there in zip(
                self.added, conn.call("BF.MEXISTS", "k", *self.added))
                if there != 1]
        assert not lost, "lost %d of %d" % (len(lost), len(self.added))

    def end(self):
        for server in self.nodes:
            if server.child.poll() is None:
                server.stop()
            server.stopped = True
            server.assert_healthy()
            server.remove()


def test_random_stops():
    for seed in crash.seeds(ROUNDS):
        made = Round(seed)
        try:
            made.run()
            made.end()
        except BaseException:
            print("after", made.did)
            for server in made.nodes:
                print(server.log().decode("utf-8", "replace")[-4000:])
                server.kill()
                server.remove()
            raise
