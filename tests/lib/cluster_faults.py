# SPDX-License-Identifier: BSD-3-Clause
#
# What happens to a cluster under load: failovers, kills, stops, moves of slots, nodes
# that come and go. Each fault ends when the cluster has settled again. A fault
# declares what it may lose; without a declaration it may lose nothing.

import random
import time

from lib import cluster_net, slots
from lib.servers import time_factor, wait_until

KEYS = 5000         # of a node's own, in slots that are moved with keys
LARGE = 20000000    # the capacity of a filter whose copy takes some time


class Play:
    """One cluster, its load and the random numbers of the faults. told: what was
    chosen, for the output of a failed test."""

    def __init__(self, cluster, load, seed):
        self.cluster, self.load = cluster, load
        self.rng = random.Random("%s-faults" % seed)
        self.told = []

    def play(self, name):
        """Plays one fault and waits until the cluster serves everything again.
        Returns the longest gap of each third of the slots."""
        began = time.monotonic()
        self.told.append(name)
        try:
            FAULTS[name](self)
            self.cluster.heal()
            self.cluster.wait_settled()
            self.load.wait_progress()
        except BaseException:
            print("during " + ", ".join(self.told))
            raise
        return self.load.gaps(since=began)

    def tell(self, *what):
        self.told.append(" ".join(str(w) for w in what))

    def pause(self, least, most):
        time.sleep(self.rng.uniform(least, most) * time_factor())

    # ---- choices

    def primary(self):
        chosen = self.rng.choice(sorted(
            (p for p in self.cluster.primaries() if
             self.cluster.replicas_of(p)), key=lambda p: p.node.port))
        self.tell(chosen)
        return chosen

    def replica(self):
        return self.rng.choice(self.cluster.replicas_of(self.primary()))

    def slots_of(self, pair):
        """Returns the slots of a primary that the load uses."""
        ranges = self.cluster.view()[pair.node.id].ranges
        return [s for s in self.load.slots
                if any(first <= s <= last for first, last in ranges)]

    def move(self, count):
        """Returns that many slots of one owner, at least one of them with load,
        and the pair to move them to."""
        source, to = self.rng.sample(sorted(
            self.cluster.primaries(), key=lambda p: p.node.port), 2)
        first = self.rng.choice(self.slots_of(source))
        ranges = self.cluster.view()[source.node.id].ranges
        last = next(b for a, b in ranges if a <= first <= b)
        moved = list(range(first, min(first + count, last + 1)))
        self.tell("slots %d-%d from" % (moved[0], moved[-1]), source, "to", to)
        self.load.focus = [s for s in self.load.slots if s in moved]
        return moved, to

    def owned_slot(self, pair):
        return self.cluster.view()[pair.node.id].ranges[0][0]

    def wait_new_owner(self, pair, slot):
        return self.cluster.wait_new_owner(slot, pair)

    def losable(self, pair):
        """Declares that what this primary's slots acknowledge may be lost. Its daemon
        must not have slots that others fetch from it: it acknowledges these, too."""
        self.cluster.wait_served()
        return self.load.may_lose("%s died with its daemon" % pair,
                                  only=set(self.slots_of(pair)))


# ---- failovers

def failover(play):
    play.cluster.failover(play.replica())


def failover_force(play):
    """Redis itself loses writes here. A daemon fences the old one, and does not."""
    play.cluster.failover(play.replica(), "FORCE")


def failover_takeover(play):
    play.cluster.failover(play.replica(), "TAKEOVER")


# ---- kill -9

def kill_node(play):
    """Its daemon lives, so that the new owner's daemon gets everything from it."""
    pair = play.primary()
    slot = play.owned_slot(pair)
    pair.node.crash()
    play.wait_new_owner(pair, slot)


def kill_daemon(play):
    """The neighbour does not notice. The journal has what was acknowledged."""
    pair = play.primary()
    pair.daemon.crash()
    play.pause(0, 1)
    pair.daemon.restart()


def lose_both(play, how):
    """A primary and its daemon are away until its replica has taken over."""
    pair = play.primary()
    slot = play.owned_slot(pair)
    with play.losable(pair):
        for process in pair.both():
            how(process)
        play.wait_new_owner(pair, slot)
        play.pause(0, 1)
        play.cluster.heal()
        play.cluster.wait_settled()


def kill_both(play):
    lose_both(play, lambda process: process.crash())


def kill_replica(play):
    for process in play.replica().both():
        process.crash()
    play.pause(0, 1)


def bounce_node(play):
    """A node that is killed and starts at once keeps its slots."""
    pair = play.primary()
    pair.node.crash()
    pair.node.restart()


# ---- SIGSTOP, SIGCONT

def stop_node(play):
    pair = play.primary()
    slot = play.owned_slot(pair)
    pair.node.freeze()
    play.wait_new_owner(pair, slot)
    pair.node.thaw()


def stop_node_shortly(play):
    """Shorter than the time after which the others fail over."""
    pair = play.primary()
    pair.node.freeze()
    play.pause(0.3, 1.2)
    pair.node.thaw()


def stop_daemon(play):
    pair = play.primary()
    pair.daemon.freeze()
    play.pause(0.1, 2)
    pair.daemon.thaw()


def stop_both(play):
    lose_both(play, lambda process: process.freeze())


# ---- moves

def reshard_one(play):
    play.cluster.reshard(*play.move(1))


def reshard_many(play):
    play.cluster.reshard(*play.move(100))


def reshard_with_keys(play):
    """The marks of these slots are seen for longer."""
    moved, to = play.move(20)
    for slot in moved[:2]:
        play.cluster.fill(slot, KEYS)
    play.cluster.reshard(moved, to)
    for slot in moved[:2]:
        play.cluster.unfill(slot)


def migrate(play):
    moved, to = play.move(100)
    play.cluster.migrate(slots.ranges_of(moved), to)


def migrate_with_keys(play):
    moved, to = play.move(20)
    play.cluster.fill(moved[0], 4 * KEYS)
    play.cluster.migrate(slots.ranges_of(moved), to)
    play.cluster.unfill(moved[0])


def migrate_and_cancel(play):
    """Nothing has moved in the end."""
    moved, to = play.move(100)
    play.cluster.fill(moved[0], 40 * KEYS)
    source = play.cluster.migrate(slots.ranges_of(moved), to, wait=False)
    play.pause(0, 0.1)
    state = play.cluster.cancel(source)
    play.tell(state)
    play.cluster.unfill(moved[0])


def migrate_and_kill(play):
    """The node to which slots are moved dies meanwhile."""
    moved, to = play.move(100)
    slot = play.owned_slot(to)
    play.cluster.fill(moved[0], 40 * KEYS)
    play.cluster.migrate(slots.ranges_of(moved), to, wait=False)
    play.pause(0, 0.2)
    to.node.crash()
    play.wait_new_owner(to, slot)
    play.cluster.heal()
    play.cluster.wait_settled()
    play.cluster.unfill(moved[0])


def reshard_and_kill_daemon(play):
    """The daemon that fetches slots dies meanwhile, and goes on afterwards."""
    moved, to = play.move(50)
    play.cluster.reshard(moved[:25], to)
    to.daemon.crash()
    play.cluster.reshard(moved[25:], to)
    to.daemon.restart()


def move_there_and_back(play):
    moved, to = play.move(30)
    source = play.cluster.owner(moved[0])
    play.cluster.reshard(moved, to)
    play.cluster.reshard(moved, source)


# ---- faults in the middle of a copy

def begin_copy(play):
    """Moves slots of which one has a large filter, and waits until its daemon copies
    them. Returns the pairs of the source and the target, and the key."""
    moved, to = play.move(5)
    source, key = play.cluster.owner(moved[0]), slots.key_in(moved[0], "large")
    with play.cluster.client() as client:
        reply, _ = client.call(key, "BF.RESERVE", key, "0.0001", LARGE)
        assert reply == b"OK", reply
    play.cluster.reshard(moved, to)

    def copies():
        with to.daemon.conn() as conn:
            return b"slot_pull0:" in conn.call("SIDECAR", "STATUS") or \
                conn.call("EXISTS", key) == 1   # it was quick

    wait_until(copies, 60, "%r copies" % to, 0.002)
    return source, to, key


def end_copy(play, key):
    play.cluster.heal()
    play.cluster.wait_settled()
    with play.cluster.client() as client:
        assert client.call(key, "DEL", key)[0] == 1


def copy_and_fail_over_source(play):
    source, _, key = begin_copy(play)
    play.cluster.failover(play.cluster.replicas_of(source)[0])
    end_copy(play, key)


def copy_and_fail_over_target(play):
    _, to, key = begin_copy(play)
    play.cluster.failover(play.cluster.replicas_of(to)[0])
    end_copy(play, key)


def copy_and_kill_source(play):
    """The daemon of the source comes back with another history of its log."""
    source, _, key = begin_copy(play)
    source.daemon.crash()
    play.pause(0, 0.3)
    source.daemon.restart()
    end_copy(play, key)


# ---- nodes come and go

def add_and_remove(play):
    """A new primary gets slots, gives them back, and goes."""
    new = play.cluster.add()
    moved, to = play.move(60)
    source = play.cluster.owner(moved[0])
    play.cluster.reshard(moved, new)
    play.cluster.wait_settled()
    play.load.wait_progress(play.load.focus)
    play.cluster.reshard(moved, source)
    play.cluster.wait_settled()
    play.cluster.remove(new)


def rolling_restart(play):
    """Restarts the replicas, fails over to each, and restarts the old primaries."""
    cluster = play.cluster
    for primary in cluster.primaries():
        for replica in cluster.replicas_of(primary):
            cluster.restart(replica)
            cluster.wait_settled()
            cluster.failover(replica)
            cluster.wait_settled()
            cluster.restart(primary)
            cluster.wait_settled()


# ---- cut links, in a cluster with a network. Clients reach all pairs meanwhile.

def cut_off(play, **how):
    """A primary and its daemon are cut off until its replica has taken over. Both
    daemons may serve for a moment, as both nodes may."""
    pair, cluster = play.primary(), play.cluster
    slot = play.owned_slot(pair)
    others = [p for p in cluster.pairs if p is not pair]
    with play.losable(pair):
        cluster.network.cut([pair.place], [p.place for p in others], **how)
        wait_until(lambda: any(p.node.peers()[pair.node.id].has(slot) is False
                               for p in others), 60, "another owner", 0.01)
        play.pause(0, 1)
        cluster.network.heal()
        cluster.wait_settled()


def cut_off_one_way(play):
    """It hears the others, but they do not hear it."""
    cut_off(play, both_ways=False)


def cut_off_shortly(play):
    """Shorter than the time after which the others fail over. A write waits. On a
    slow machine it may become longer, and is then as cut_off."""
    pair = play.primary()
    with play.losable(pair):
        play.cluster.network.cut([pair.place], [
            p.place for p in play.cluster.pairs if p is not pair])
        play.pause(0.2, 1)
        play.cluster.network.heal()
        play.cluster.wait_settled()


def cut_from_replica(play):
    """A primary and its replica do not reach each other for a while."""
    replica = play.replica()
    pair = next(p for p in play.cluster.primaries()
                if replica in play.cluster.replicas_of(p))
    play.cluster.network.cut([pair.place], [replica.place])
    play.pause(0.5, 4)
    play.cluster.network.heal()


ANYWHERE = (failover, failover_force, failover_takeover, kill_node, kill_daemon,
            kill_both, kill_replica, bounce_node, stop_node, stop_node_shortly,
            stop_daemon, stop_both, reshard_one, reshard_many, reshard_with_keys,
            reshard_and_kill_daemon, move_there_and_back, add_and_remove,
            copy_and_fail_over_source, copy_and_fail_over_target,
            copy_and_kill_source,
            rolling_restart)
VALKEY = (migrate, migrate_with_keys, migrate_and_cancel, migrate_and_kill)
LINKS = (cut_off, cut_off_one_way, cut_off_shortly, cut_from_replica)
FAULTS = {f.__name__: f for f in ANYWHERE + VALKEY + LINKS}


def is_valkeys(name):
    """Tells whether only a cluster of Valkey has the commands of this fault."""
    return FAULTS[name] in VALKEY


def missing(cluster, name):
    """Returns why this fault cannot happen to a cluster, or None."""
    if is_valkeys(name) and cluster.kind != "valkey":
        return "%s has no such command" % cluster.kind
    if FAULTS[name] in LINKS and not cluster.network:
        return "links that can be cut: %s" % cluster_net.missing()
    return None


def names(cluster):
    """Returns the names of the faults that can happen to a cluster."""
    return [name for name in FAULTS if missing(cluster, name) is None]
