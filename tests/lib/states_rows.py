# SPDX-License-Identifier: BSD-3-Clause
#
# The states and events of the campaign (lib/states.py).

import errno
import os
import shutil
import signal
import threading

from lib import neighbour, shim, slots
from lib.replicas import info
from lib.servers import wait_until
from lib.states import Beside, Follows, Leads, World, event, state

BASE = ["base.tmp", "base"]
SNAPSHOT = ["snapshot.tmp", "snapshot"]


# ---- states of one server ----------------------------------------------------

@state("serving", World)
def serving(world):
    pass


@state("keyed filters", World, "--bf.hash", "keyed")
def keyed_filters(world):
    pass


@state("no journal", World, "--appendonly", "no")
def no_journal(world):
    world.ledger.promise(False)
    world.ledger.doubt()
    # A server that has just got slots may be saving.
    wait_until(lambda: world.ask("SAVE") == b"OK", 20, "a snapshot")


@state("save rules, no journal", World, "--appendonly", "no", "--save", "1 1")
def save_rules(world):
    world.ledger.doubt()


@state("rewrite running", World)
def rewrite_running(world):
    world.hang(["sync"], BASE, 400)
    assert world.ask("BGREWRITEAOF")
    wait_until(lambda: info(world.subject, "persistence")
               ["aof_rewrite_in_progress"] == "1", 10, "the rewrite runs")


@state("save running", World)
def save_running(world):
    world.hang(["sync"], SNAPSHOT, 400)
    assert world.ask("BGSAVE")


@state("base being written", World, "--appendonly", "no")
def base_being_written(world):
    world.ledger.doubt()
    world.hang(["sync"], BASE, 600)
    world.begin("CONFIG", "SET", "appendonly", "yes")
    wait_until(lambda: info(world.subject, "persistence")["journal_state"] != "off",
               10, "the journal begins")


def await_hang(world, calls):
    """A call of the journal hangs until the fault is lifted."""
    world.hang(calls, ["incr"])
    wait_until(lambda: world.shim.rule(world.slots - 1).fired, 10,
               "a call hangs")


@state("sync hanging", World)
def sync_hanging(world):
    await_hang(world, ["sync"])


@state("write hanging", World)
def write_hanging(world):
    await_hang(world, ["write"])


@state("disk full", World)
def disk_full(world):
    world.fault("fail", ["write", "create"], flags=shim.FOR_GOOD, error=errno.ENOSPC)
    wait_until(lambda: info(world.subject, "persistence")["journal_state"] not in
               ("on", "off"), 10, "the fault")


@state("misconf", World, "--misconf-after", 0)
def misconf(world):
    world.fail_syncs(shim.FILES, flags=shim.FOR_GOOD)
    wait_until(lambda: info(world.subject, "persistence")["journal_misconf"] == "1",
               10, "writes are refused")


@state("after a failed sync", World)
def after_a_failed_sync(world):
    world.fail_syncs(["incr"])
    wait_until(lambda: world.shim.rule(0).fired > 0, 10, "the sync fails")


@state("directory gone", World)
def directory_gone(world):
    lose_directory(world)


@state("journal gone", World)
def journal_gone(world):
    world.writer.rest()
    world.ledger.doubt()
    world.lost_files = True
    for manifest in world.data.glob("*/manifest"):
        shutil.rmtree(manifest.parent, ignore_errors=True)
    world.writer.go_on()


@state("paused", World)
def paused(world):
    world.subject.freeze()
    timer = threading.Timer(0.7, lambda: world.runs() and world.subject.thaw())
    timer.daemon = True
    timer.start()


@state("shutting down", World, ends=True)
def shutting_down(world):
    await_hang(world, ["sync"])
    world.subject.child.send_signal(signal.SIGTERM)
    wait_until(lambda: b"stopping" in world.subject.log(), 10, "the stop")


@state("loading", World)
def loading(world):
    world.subject.crash()
    world.hang(["read"], ["incr", "base"], 300)
    world.subject.restart(wait=False)
    wait_until(world.subject.accepts, 10, "it listens")


# ---- states of a primary -----------------------------------------------------

@state("primary with a replica", Leads)
def primary_with_a_replica(world):
    pass


@state("primary, replica lags", Leads)
def replica_lags(world):
    world.proxy.flow.clear()
    world.write(20)


@state("primary, replica away", Leads)
def replica_away(world):
    world.proxy.up = False
    world.proxy.cut()
    world.write(20)


@state("primary, full synchronization", Leads)
def primary_synchronizes(world):
    world.proxy.up = False
    world.proxy.cut()
    with world.subject.conn() as conn:
        conn.call("DEBUG", "RELOAD", "NOSAVE")      # another history
    world.ledger.forget()
    world.write(20)
    world.proxy.up = True


@state("primary, failover under way", Leads)
def failover_under_way(world):
    world.proxy.flow.clear()
    world.write(20)
    world.ask("FAILOVER", "TO", *world.peer.address, "TIMEOUT", 700)


# ---- states of a replica -----------------------------------------------------

@state("replica", Follows)
def replica(world):
    world.follow()


@state("first synchronization", Follows)
def first_synchronization(world):
    world.write(100)
    world.proxy.hold_on = b"BLOOM"
    world.follow(wait=False)
    wait_until(lambda: world.proxy.connections > 0, 10, "it connects")
    world.proxy.hold_on = None
    world.group.proxies[0].flow.set()


@state("arriving data not on the disk", Follows)
def arriving(world):
    world.hang(["rename", "link", "sync"], ms=250, kinds=SNAPSHOT + BASE + ["other"])
    world.follow(wait=False)
    wait_until(lambda: b"gets a snapshot" in world.subject.log(), 20, "it arrives")


@state("promoted meanwhile", Follows)
def promoted_meanwhile(world):
    arriving(world)
    wait_until(lambda: b"took over the data" in world.subject.log() or
               not world.runs(), 20, "the data")
    world.lead()


@state("promoted when it is up", Follows)
def promoted(world):
    world.follow()
    world.lead()


@state("replica, link down", Follows)
def link_down(world):
    world.follow()
    world.proxy.up = False
    world.proxy.cut()
    world.write(20)


@state("replica, no journal", Follows, "--appendonly", "no")
def replica_without_journal(world):
    world.journals = False
    world.follow()


@state("replica, disk full", Follows)
def replica_disk_full(world):
    world.follow()
    world.fault("fail", ["write", "create"], flags=shim.FOR_GOOD, error=errno.ENOSPC)
    world.write(20)


@state("heal pending", Follows, "--merge-on-heal", "yes")
def heal_pending(world):
    """It led on its side of a partition, and follows again."""
    world.follow()
    world.proxy.up = False
    world.proxy.cut()
    world.lead()
    world.write(20)
    world.writer.rest()
    world.leads = world.peer
    world.follow(wait=False)    # the proxy is down: the heal waits
    world.writer.go_on()
    world.proxy.up = True


# ---- states beside a cluster node --------------------------------------------

@state("beside a node", Beside)
def beside_a_node(world):
    pass


@state("beside a node, no journal", Beside, "--appendonly", "no")
def beside_a_node_without_journal(world):
    no_journal(world)


@state("beside a node, rewrite running", Beside)
def beside_a_node_rewriting(world):
    rewrite_running(world)


@state("beside a node, lease lost", Beside)
def lease_lost(world):
    world.node.say(silent=True)
    neighbour.wait_lease(world.subject, has=False)


@state("beside a node, sync hanging", Beside)
def beside_a_node_sync_hangs(world):
    sync_hanging(world)


# ---- events ------------------------------------------------------------------

@event("nothing")
def nothing(world):
    pass


@event("kill -9", ends=True)
def kill(world):
    world.linger(world.rng.random() * 0.3)
    world.subject.crash()


@event("SIGTERM", ends=True, orderly=True)
def sigterm(world):
    if world.runs():
        world.subject.child.send_signal(signal.SIGTERM)
    world.linger(0.2)


def shutdown(name, *words):
    @event(name, ends=True, orderly="FORCE" not in words)
    def run(world):
        thread = threading.Thread(target=world.stop, args=words, daemon=True)
        thread.start()
        thread.join(0.5)
        world.lift()
        if world.subject.frozen:
            world.subject.thaw()
        thread.join(30)


shutdown("SHUTDOWN")
shutdown("SHUTDOWN NOSAVE", "NOSAVE")
shutdown("SHUTDOWN SAVE", "SAVE")
shutdown("SHUTDOWN NOW FORCE", "NOSAVE", "NOW", "FORCE")


@event("SHUTDOWN, then ABORT", ends=True, orderly=True)
def abort(world):
    thread = threading.Thread(target=world.stop, daemon=True)
    thread.start()
    thread.join(0.2)
    world.aborted = world.ask("SHUTDOWN", "ABORT", timeout=5) == b"OK"
    world.lift()
    thread.join(30)


@event("BGREWRITEAOF")
def rewrite(world):
    world.begin("BGREWRITEAOF")
    world.linger(0.1)


def confirm_save(world, *words):
    """What was acknowledged before a save that was confirmed is on the disk."""
    world.writer.rest()
    if world.ask(*words, timeout=15) == b"OK":
        world.ledger.promise(world.ledger.promises, also_before=True)
    world.writer.go_on()


@event("SAVE")
def save(world):
    confirm_save(world, "SAVE")


@event("BGSAVE")
def bgsave(world):
    world.begin("BGSAVE")
    world.linger(0.1)


@event("DEBUG RELOAD")
def reload(world):
    world.begin("DEBUG", "RELOAD")
    world.linger(0.2)


@event("appendonly no")
def appendonly_no(world):
    """From the request on nothing is promised."""
    world.ledger.promise(False)
    if world.ask("CONFIG", "SET", "appendonly", "no", timeout=10) is None:
        world.linger(0.1)


def switch_on(world):
    """The guarantee begins with the reply, for what is there already, too."""
    world.writer.rest()
    try:
        begins = info(world.subject, "persistence")["journal_state"] in \
            ("off", "building")
    except (*slots.GONE, KeyError):
        begins = False
    if world.ask("CONFIG", "SET", "appendonly", "yes", timeout=10) == b"OK" and begins:
        world.ledger.promise(True, also_before=True)
    world.writer.go_on()


@event("appendonly no, yes")
def appendonly_no_yes(world):
    world.ledger.promise(False)
    world.ask("CONFIG", "SET", "appendonly", "no", timeout=10)
    switch_on(world)
    world.linger(0.1)


@event("appendonly yes, kill -9", ends=True)
def appendonly_yes_kill(world):
    switch_on(world)
    world.linger(world.rng.random() * 0.2)
    world.subject.crash()


@event("appendfsync changes")
def appendfsync(world):
    for policy in ("no", "always", "everysec"):
        world.ask("CONFIG", "SET", "appendfsync", policy, timeout=5)


def lose_directory(world):
    """Acknowledged items are in memory only until the files are written again."""
    world.writer.rest()
    world.ledger.doubt()
    world.lost_files = True
    how = world.rng.choice(("rm", "mv", "mv, rm"))
    if how == "rm":             # it may find new files, and leave them
        shutil.rmtree(world.data, ignore_errors=True)
    elif world.data.exists():
        moved = "%s.moved%d" % (world.data, world.rng.getrandbits(32))
        os.rename(world.data, moved)
        if how == "mv, rm":
            shutil.rmtree(moved, ignore_errors=True)
    world.writer.go_on()


@event("directory vanishes")
def directory_vanishes(world):
    lose_directory(world)


@event("paused for a second")
def pause(world):
    if not world.subject.frozen and world.runs():
        world.subject.freeze()
    world.linger(1)
    if world.runs():
        world.subject.thaw()


@event("disk full for a moment")
def full_for_a_moment(world):
    world.fault("fail", ["write", "create"], flags=shim.FOR_GOOD, error=errno.ENOSPC)
    world.linger(0.3)


@event("a sync fails, kill -9", ends=True)
def sync_fails_kill(world):
    world.fail_syncs(["incr"])
    world.linger(world.rng.random() * 0.3)
    world.subject.crash()


@event("killed at a call", ends=True)
def killed_at_a_call(world):
    """At one of the next calls that change files, if there are so many."""
    world.fault(world.rng.choice(("kill-before", "kill-after")),
                ["create", "write", "sync", "rename", "link", "unlink"],
                nth=world.rng.randrange(1, 12))
    for words in (("BGREWRITEAOF",), ("BGSAVE",)):
        world.begin(*words)
    for _ in range(20):
        if not world.runs():
            return
        world.linger(0.03)
    world.subject.crash()


@event("FLUSHALL", World)
def flushall(world):
    world.writer.rest()
    world.ledger.forget()
    world.ask("FLUSHALL", timeout=3, server=world.target())
    world.writer.go_on()


@event("a new replica")
def new_replica(world):
    fresh = world.group.node("--loglevel", "notice", "--appendonly", "no")
    with fresh.conn() as conn:
        conn.call("REPLICAOF", "127.0.0.1", world.subject.port)
    world.linger(0.3)


@event("promotion", Follows)
def promotion(world):
    if world.leads is not world.subject:
        world.lead()


@event("promotion, kill -9", Follows, ends=True)
def promotion_kill(world):
    promotion(world)
    world.linger(world.rng.random() * 0.3)
    world.subject.crash()


@event("primary is killed", Follows)
def primary_is_killed(world):
    """It starts again, with its journal."""
    world.peer.crash()
    world.peer.restart()


@event("link is cut", Leads)
def link_is_cut(world):
    world.proxy.cut()
