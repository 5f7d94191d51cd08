# SPDX-License-Identifier: BSD-3-Clause
#
# States and events of the sidecar, for the campaign (lib/states.py): three servers
# beside made-up nodes. A is the subject, B its replica, and C another primary. The
# writer writes to the owner of all slots, whoever that is at present.

import errno
import os
import shutil

from lib import neighbour, replicas, shim
from lib.replicas import info
from lib.servers import wait_until
from lib.states import OPTIONS, Broken, KEYS, World, event, state
from lib.states_rows import base_being_written, lose_directory, no_journal

SIDECAR = ("--sidecar-lease-ms", 3000, "--sidecar-poll-ms", 100,
           "--sidecar-port-offset", neighbour.OFFSET)


class Ring(World):
    def __init__(self, cell, options):
        self.nodes = [neighbour.Neighbour() for _ in range(3)]
        for made in self.nodes:
            made.say(silent=True)
        self.servers = []
        super().__init__(cell, ["--sidecar-of", self.nodes[0].address, *SIDECAR,
                                *options])
        self.servers = [self.subject] + [
            self.group.node(*OPTIONS, "--sidecar-of", made.address, *SIDECAR)
            for made in self.nodes[1:]]
        self.ids = [neighbour.A, neighbour.B, neighbour.C]
        self.epochs, self.leader, self.moved, self.alone = [1, 1, 2], 0, False, set()
        self.show()
        self.await_served()
        wait_until(lambda: replicas.link_is_up(self.servers[1]), 30, "B follows")

    # ---- what the nodes say --------------------------------------------------

    def owner(self):
        return 2 if self.moved else self.leader

    def target(self):
        return self.servers[self.owner()] if self.servers else self.subject

    def is_primary(self, at):
        return at in (2, self.leader) or at in self.alone

    def show(self, deaf=()):
        for at, made in enumerate(self.nodes):
            if at in deaf:
                continue
            made.say(silent=False, myid=self.ids[at], nodes=[neighbour.node(
                self.ids[i], self.servers[i].port,
                ("myself," if i == at else "") +
                ("master" if self.is_primary(i) else "slave"),
                "-" if self.is_primary(i) else self.ids[self.leader],
                epoch=self.epochs[i],
                slots="0-16383" if i == self.owner() else "") for i in range(3)])

    def fail_over(self, deaf=()):
        self.leader = 1 - self.leader
        self.epochs[0] = self.epochs[1] = max(self.epochs) + 1
        self.show(deaf)

    def move(self):
        self.moved = not self.moved
        top = max(self.epochs) + 1
        for at in (2,) if self.moved else (0, 1):
            self.epochs[at] = top
        self.show()

    # ---- the oracle ----------------------------------------------------------

    def await_served(self, started=False):
        """A primary that came back with older data than its replica has leaves the
        slots to that: so does an operator. Before that replica comes, nobody knows."""
        def served():
            told = self.ask("INFO", "replication", server=self.target()) or b""
            if b"behind_replicas:1" in told:
                self.fail_over()
                return False
            followed = b"state=online" in told or self.moved or not started
            return followed and self.ask("BF.EXISTS", KEYS[0], "none",
                                         server=self.target()) == 0
        try:
            wait_until(served, 40, "the slots are served")
        except AssertionError:
            raise Broken("slots are not served: %s" % [
                neighbour.figures(s) for s in self.servers if s.child.poll() is None])

    def lift(self):
        super().lift()
        if self.servers:
            self.alone.clear()
            self.show()

    def settle(self):
        self.await_served()
        super().settle()

    def start_again(self):
        super().start_again()
        self.await_served(started=True)

    def check_items(self, server, where):
        self.await_served()
        super().check_items(self.target(), where)

    def check_end(self):
        if self.moved:
            self.move()
        self.await_served()
        self.writer.rest()
        try:
            replicas.wait_even(self.target(), self.servers[1 - self.leader])
        except AssertionError as problem:
            raise Broken("replica: %s" % problem)
        super().check_items(self.target(), "at the end")

    def close(self):
        super().close()
        for made in self.nodes:
            made.close()


# ---- states ------------------------------------------------------------------

@state("ring", Ring)
def ring(world):
    pass


@state("ring, no journal", Ring, "--appendonly", "no")
def ring_without_journal(world):
    no_journal(world)


@state("ring, base being written", Ring, "--appendonly", "no")
def ring_base(world):
    base_being_written(world)


@state("ring, first copy", Ring)
def ring_first_copy(world):
    """The replica's server has lost its disk, and its copy has to come yet."""
    other = world.servers[1]
    assert world.ask("CONFIG", "SET", "repl-diskless-sync-delay", "1") == b"OK"
    other.crash()
    for name in os.listdir(other.folder):
        path = os.path.join(other.folder, name)
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif name != "log":
            os.unlink(path)
    other.restart()


@state("ring, pull", Ring)
def ring_pull(world):
    world.move()
    world.linger(world.rng.random() * 0.3)


@state("ring, claim being written", Ring)
def ring_claim(world):
    world.move()
    world.await_served()
    world.hang(["sync", "rename"], ["other"], 300)
    world.move()


@state("ring, lease lost", Ring)
def ring_lease_lost(world):
    world.nodes[0].say(silent=True)
    neighbour.wait_lease(world.subject, has=False)


@state("ring, directory gone", Ring)
def ring_directory_gone(world):
    lose_directory(world)


@state("ring, disk full", Ring)
def ring_disk_full(world):
    world.fault("fail", ["write", "create"], flags=shim.FOR_GOOD, error=errno.ENOSPC)
    wait_until(lambda: info(world.subject, "persistence")["journal_state"] not in
               ("on", "off"), 10, "the fault")


# ---- events ------------------------------------------------------------------

@event("failover", Ring)
def failover(world):
    world.fail_over()


@event("takeover, deaf node", Ring)
def takeover(world):
    """The node of the old primary hears of it later."""
    world.fail_over(deaf={world.leader})
    world.linger(0.5)
    world.show()


@event("kill -9, takeover", Ring, ends=True)
def kill_and_takeover(world):
    """What the replica had not got yet is gone."""
    world.subject.crash()
    world.ledger.doubt()
    world.ledger.killed()
    if world.leader == 0:
        world.fail_over()


@event("slots move", Ring)
def slots_move(world):
    world.move()


@event("slots move and back", Ring)
def slots_move_and_back(world):
    world.move()
    world.linger(world.rng.random() * 0.5)
    world.move()


@event("slots move, failover", Ring)
def slots_move_and_failover(world):
    world.move()
    world.linger(world.rng.random() * 0.2)
    world.fail_over()


@event("pause, failover", Ring)
def pause_and_failover(world):
    if world.runs():
        world.subject.freeze()
        world.fail_over()
        world.linger(1)
        world.subject.thaw()


@event("CLUSTER RESET", Ring)
def cluster_reset(world):
    """The node of A has another id, and no slots, and follows then."""
    world.ids[0] = "%040x" % world.rng.getrandbits(160)
    world.alone.add(0)
    if world.leader == 0:
        world.fail_over()
    else:
        world.show()
    world.linger(0.5)
