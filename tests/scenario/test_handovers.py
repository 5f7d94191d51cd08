# SPDX-License-Identifier: BSD-3-Clause
#
# Three servers without Sentinels, and writers that wait for two replicas. The test
# itself promotes a replica: after a kill, a pause or the command FAILOVER, or while
# the primary still serves. Before that, replicas that left the history need a full
# synchronization, which walks through filters that change meanwhile. No item that
# two replicas acknowledged may be missing on any server.
#
# ROUNDS=500 promotes more often, SEED=n repeats a run (make handovers).

import random
import time

import pytest

from lib import crash, failover, resp
from lib.replicas import (follow, info, lead, link_is_up, node, offset, wait_even)
from lib.servers import wait_until

pytestmark = pytest.mark.slow

ROUNDS = crash.amount("ROUNDS", 20)
WRITERS = 5


class Cluster:
    """What lib.failover.Writer needs, with `primary` set by the test."""

    password = None

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.nodes = [self.start() for _ in range(3)]
        self.primary = self.nodes[0]
        self.fill()
        for one in self.nodes[1:]:
            follow(one, self.primary)
        self.writers = [failover.Writer(self, n, 2, self.rng.randrange(1 << 30))
                        for n in range(WRITERS)]
        for writer in self.writers:
            with self.primary.conn() as conn:
                assert conn.call("BF.RESERVE", writer.key, "0.0000001",
                                 100000) == b"OK"
            writer.thread.start()

    def start(self):
        return node("--loglevel", "notice", "--threads", self.rng.choice([1, 2]),
                    "--appendonly", self.rng.choice(["yes", "no"]),
                    "--repl-backlog-size", self.rng.choice(["16kb", "1mb"]))

    def fill(self):
        """Large filters make the walks long."""
        with self.primary.conn() as conn:
            conn.call("BF.RESERVE", "large", "0.001", 1000000)
            conn.call("BF.MADD", "large", *range(20000))
            for number in range(3):
                conn.call("COPY", "large", "large:%d" % number)

    def connect(self, rng):
        return resp.Conn(self.primary.address, timeout=1.5)

    def others(self):
        return [n for n in self.nodes if n is not self.primary]

    # ---- one round

    def round(self):
        for replica in self.rng.sample(self.others(), self.rng.randrange(3)):
            lead(replica)               # a history of its own
            follow(replica, self.primary, wait=False)
        time.sleep(self.rng.choice([0, 0.01, 0.05, 0.3]))
        fault = self.rng.choice([kill, freeze, command, promote])
        old = self.primary
        fault(self)
        for one in self.others():
            if one is not old:
                follow(one, self.primary, wait=False)
        if not old.runs():
            old.thaw() if old.frozen else old.restart()
        follow(old, self.primary, wait=False)
        for one in self.others():
            wait_until(lambda r=one: link_is_up(r), 60, "a replica follows")
        since = time.monotonic()
        for writer in self.writers:
            wait_until(lambda w=writer: w.problem or w.last > since, 30,
                       "a writer goes on")
            assert writer.problem is None, writer.problem
        self.check(fault.__name__)

    def best(self):
        """Returns the replica to promote, as a Sentinel chooses it. If both wait
        for a full synchronization, each has all that both acknowledged."""
        able = [n for n in self.others() if info(n)["slave_priority"] != "0"]
        return max(able or self.others(), key=offset)

    def check(self, when):
        acked = {w.key: list(w.acked[2]) for w in self.writers}
        position = offset(self.primary)
        for one in self.others():
            wait_until(lambda r=one: offset(r) >= position, 60, "it is even")
        for one in self.nodes:
            lost = 0
            for key, items in acked.items():
                with one.conn(timeout=60) as conn:
                    got = conn.call("BF.MEXISTS", key, *items) if items else []
                assert isinstance(got, list), got
                lost += len(items) - sum(got)
            assert lost == 0, "%s: %d items that two acknowledged are lost on %s" % (
                when, lost, "a replica" if one is not self.primary else
                "the primary")

    def stop_writers(self):
        for writer in self.writers:
            writer.over.set()
        for writer in self.writers:
            writer.thread.join()

    def end(self):
        self.stop_writers()
        for one in self.nodes:
            one.stop()

    def show(self):
        for writer in self.writers:
            writer.over.set()
        for one in self.nodes:
            print("---- port %d\n%s" % (
                one.port, one.log().decode("utf-8", "replace")[-6000:]))
            one.kill()
            one.remove()


# ---- faults: each sets another primary -------------------------------------

def switch(cluster, new):
    lead(new)
    cluster.primary = new


def kill(cluster):
    cluster.primary.crash()
    switch(cluster, cluster.best())


def freeze(cluster):
    cluster.primary.freeze()
    switch(cluster, cluster.best())


def promote(cluster):
    switch(cluster, cluster.best())


def command(cluster):
    """FAILOVER, to a replica that follows."""
    old, new = cluster.primary, cluster.best()
    wait_until(lambda: link_is_up(new), 60, "it follows")
    with old.conn() as conn:
        got = conn.call("FAILOVER", "TO", new.address[0], new.address[1],
                        "TIMEOUT", 20000)
        assert got == b"OK", got
    wait_until(lambda: info(old)["role"] == "slave" and
               info(new)["role"] == "master", 60, "it has handed over")
    cluster.primary = new


def test_handovers_lose_nothing_that_two_replicas_acknowledged():
    cluster = Cluster(crash.seeds(1)[0])
    try:
        for _ in range(ROUNDS):
            cluster.round()
        cluster.stop_writers()
        wait_even(cluster.primary, *cluster.others())
        cluster.check("at the end")
    except BaseException:
        cluster.show()
        raise
    print("%d items acknowledged by two" %
          sum(len(w.acked[2]) for w in cluster.writers))
    cluster.end()
