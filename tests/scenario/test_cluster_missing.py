# SPDX-License-Identifier: BSD-3-Clause
#
# Slots without data: the server says why, and how to get them back.
#
# A primary's server that has lost what its replica has (no journal, killed) serves
# no slot, since it would say that items are absent that are not. The others take
# slots from its replica, which has no link to it any more.

import errno
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from lib import loads, neighbour, resp, servers, shim
from lib.neighbour import A, B, C, node
from lib.replicas import info, link_is_up, wait_even
from lib.servers import wait_until
from lib.slots import GONE, slot_of

OPTIONS = ("--sidecar-lease-ms", "1000", "--sidecar-poll-ms",
           "100", "--sidecar-port-offset", str(neighbour.OFFSET))
MOVED = slot_of("moves")
ALL = "0-16383"
REST = "0-%d %d-16383" % (MOVED - 1, MOVED + 1)


class Trio:
    """The servers beside A, its replica B, and C, which may start later. With a
    folder one of them is shimmed, and all have journals."""

    def __init__(self, group, of_a=ALL, of_c="", count=3, folder=None, shimmed=0):
        self.group, self.folder, self.shimmed = group, folder, shimmed
        self.nodes = [neighbour.Neighbour() for _ in range(3)]
        self.ports = [servers.free_port() for _ in range(3)]
        self.show(of_a, of_c)
        self.servers = []
        for _ in range(count):
            self.start()

    def start(self):
        at = len(self.servers)
        options = ("--appendonly", "yes" if self.folder else "no", *OPTIONS,
                   "--sidecar-of", self.nodes[at].address)
        if self.folder and at == self.shimmed:
            made = self.group.shimmed(self.folder, *options, port=self.ports[at])
        else:
            made = self.group.node(*options, port=self.ports[at])
        self.servers.append(made)
        return self.servers[-1]

    def show(self, of_a, of_c, epoch=1):
        ports = self.ports
        for at, made in enumerate(self.nodes):
            flags = ["master", "slave", "master"]
            flags[at] = "myself," + flags[at]
            made.say(myid=(A, B, C)[at], nodes=[
                node(A, ports[0], flags[0], slots=of_a, epoch=epoch),
                node(B, ports[1], flags[1], A, epoch=epoch),
                node(C, ports[2], flags[2], slots=of_c, epoch=2)])

    def say(self, of_a, of_b, leader, epoch):
        """All slots are the leader's, A or B, which are a primary and a replica."""
        ports = self.ports
        for at, made in enumerate(self.nodes):
            flags = [of_a, of_b, "master"]
            flags[at] = "myself," + flags[at]
            made.say(myid=(A, B, C)[at], nodes=[
                node(who, ports[i], flags[i], "-" if who in (leader, C) else leader,
                     slots=ALL if who == leader else "",
                     epoch=2 if who == C else epoch)
                for i, who in enumerate((A, B, C))])

    def close(self):
        for made in self.nodes:
            made.close()


def wait_written(old, replica):
    """Waits until the replica follows, and the old server's snapshot and its file of what
    it holds are written."""
    neighbour.wait_served(old, 16384)
    wait_until(lambda: link_is_up(replica), 30, "the replica follows")
    wait_until(lambda: b"claimed -" in call(old, "SIDECAR", "HOLDINGS")[2], 30,
               "its disk has what it holds")


def call(server, *words):
    with server.conn() as conn:
        return conn.call(*words)


def wait_reply(server, wanted, *words):
    wait_until(lambda: call(server, *words) == wanted, 30, "%s answers %s" % (
        words[0], wanted))


def ping(server, how):
    """Returns what --ping=HOW prints."""
    return subprocess.run(
        [servers.server_binary(), "--ping=" + how, "--port", str(server.port)],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={k: v for k, v in os.environ.items()
             if not k.startswith("BLOOMERY_")}).stdout.strip()


def test_a_server_that_was_not_started_is_named(group):
    trio = Trio(group, "0-8191", "8192-16383", count=2)
    old, replica = trio.servers
    try:
        wait_until(lambda: [neighbour.figures(old).get("cluster_" + name) for name in
                            ("slots_missing", "silent_servers")] == ["8192", "1"],
                   30, "the slots are missing, and one server is silent")
        got = neighbour.figures(old)
        silent = "127.0.0.1:%d" % trio.ports[2]
        assert got["cluster_silent_addresses"] == silent
        assert got["cluster_slots_owned"] == "8192"
        wait_until(lambda: b"slots have no data" in old.log(), 10, "the log says so")
        line = [line for line in old.log().decode().splitlines()
                if "slots have no data" in line][-1]
        assert "slots=8192 of=8192" in line and silent in line, line
        assert "none of its node's slots" in ping(old, "ready")
        assert "none of its node's slots" in ping(old, "complete")
        new = trio.start()
        neighbour.wait_served(old, 8192)
        assert ping(old, "ready") == "PONG"
        assert "cluster_silent_addresses" not in neighbour.figures(old)
        for server in (old, replica, new):
            wait_until(lambda s=server: ping(s, "complete") == "PONG", 30,
                       "nothing is missing")
        replica.crash()
        wait_until(lambda: "silent" in ping(old, "complete"), 30,
                   "the replica is missed")
        assert ping(old, "ready") == "PONG"
    finally:
        trio.close()


def test_holdings_are_sent_when_they_have_changed(group):
    trio = Trio(group, "0-8191", "8192-16383")
    old, _, new = trio.servers
    try:
        neighbour.wait_served(old, 8192)
        neighbour.wait_served(new, 8192)

        def version():
            text = call(old, "SIDECAR", "HOLDINGS")[2].decode()
            return int(text.split()[-1], 16)

        wait_until(lambda: call(old, "SIDECAR", "HOLDINGS", version())[2] == b"", 10,
                   "nothing changes")
        assert call(old, "SIDECAR", "HOLDINGS", 7)[2] != b""
        assert str(call(old, "SIDECAR", "HOLDINGS", "x")).startswith("ERR")
        polls = int(neighbour.figures(old)["cluster_polls"])
        while int(neighbour.figures(old)["cluster_polls"]) < polls + 50:
            assert neighbour.figures(old)["cluster_silent_servers"] == "0"
    finally:
        trio.close()


def test_a_replica_has_what_its_primary_took_over_a_moment_ago(group):
    trio = Trio(group, REST, str(MOVED))
    old, replica, other = trio.servers
    try:
        neighbour.wait_served(old, 16383)
        neighbour.wait_served(other, 1)
        wait_reply(other, 1, "BF.ADD", "moves", "item")
        wait_until(lambda: neighbour.figures(replica)["cluster_slots_served"] ==
                   "16383", 30, "the replica holds the slots")
        trio.say("master", "slave", A, 9)
        neighbour.wait_served(old, 16384)
        wait_until(lambda: call(replica, "DBSIZE") == 1, 10, "the data is there")
        old.crash()
        trio.say("slave", "master", B, 10)
        neighbour.wait_served(replica, 16384)
        wait_reply(replica, 1, "BF.EXISTS", "moves", "item")
    finally:
        trio.close()


def test_a_server_with_older_data_serves_nothing_and_its_replica_gives(group):
    trio = Trio(group)
    old, replica, new = trio.servers
    try:
        wait_written(old, replica)  # so the snapshot has no key
        for key in ("moves", "stays"):
            wait_reply(old, 1, "BF.ADD", key, "item")
        with old.conn() as conn:
            conn.call("BF.ADD", "stays", "other")
            assert conn.call("WAIT", 1, 10000) == 1
        wait_until(lambda: neighbour.figures(replica)["cluster_slots_served"] ==
                   "16384", 30, "the replica holds the slots")
        old.crash()
        old.restart()
        wait_until(lambda: info(old).get("behind_replicas") == "1", 30,
                   "it knows that its data is older")
        down = resp.Error("CLUSTERDOWN Slot data not available")
        wait_reply(old, down, "BF.EXISTS", "stays", "item")
        assert call(old, "BF.ADD", "stays", "new") == down
        assert neighbour.figures(old)["cluster_slots_missing"] == "16384"
        assert b"SIDECAR FORCE-SERVE" in old.log()
        trio.show(REST, str(MOVED))
        wait_reply(new, 1, "BF.EXISTS", "moves", "item")
        assert call(new, "BF.ADD", "moves", "later") == 1
        for slots in ("0-5", "0-%d" % MOVED):
            assert "CLUSTER FAILOVER" in str(call(old, "SIDECAR", "FORCE-SERVE",
                                                  slots))
        assert call(old, "SIDECAR", "FORCE-SERVE",
                    REST.replace(" ", ","))[:2] == [b"slots", 16383]
        wait_reply(old, 0, "BF.EXISTS", "stays", "item")
        assert call(old, "BF.ADD", "stays", "new") == 1
        assert call(old, "PING") == b"PONG"
    finally:
        trio.close()


@pytest.mark.parametrize("comes", ["before", "after"])
def test_what_a_server_has_given_away_is_in_doubt_no_more(group, comes):
    """Its replica, which has more of the old log, comes before or after the slots have
    moved away and back."""
    trio = Trio(group)
    old, replica, new = trio.servers
    try:
        wait_written(old, replica)
        assert call(old, "BF.ADD", "stays", "item") == 1
        assert call(old, "SAVE") == b"OK"
        with old.conn() as conn:
            conn.call("BF.ADD", "stays", "other")
            assert conn.call("WAIT", 1, 10000) == 1
        replica.freeze()
        old.crash()
        old.restart()
        if comes == "before":
            replica.thaw()
            wait_until(lambda: info(old).get("behind_replicas") == "1", 30,
                       "it knows that its data is older")
        trio.show("", ALL, epoch=3)
        wait_reply(new, 1, "BF.EXISTS", "stays", "item")
        wait_until(lambda: b"gave slots away" in old.log(), 30, "all slots have gone")
        trio.show(ALL, "", epoch=4)
        neighbour.wait_served(old, 16384)
        assert call(old, "BF.ADD", "stays", "later") == 1
        replica.thaw()
        wait_even(old, replica)
        assert call(old, "BF.MEXISTS", "stays", "item", "later") == [1, 1]
        assert info(old)["behind_replicas"] == "0"
    finally:
        trio.close()


@pytest.mark.parametrize("loses", ["its directory", "what no journal keeps",
                                   "what it holds"])
def test_a_primary_that_has_lost_its_data_takes_it_from_its_replica(group, tmp_path, loses):
    trio = Trio(group, folder=tmp_path if loses == "its directory" else None)
    old, replica, _ = trio.servers
    try:
        neighbour.wait_served(old, 16384)
        wait_until(lambda: link_is_up(replica), 30, "the replica follows")
        for number in range(20):
            wait_reply(old, 1, "BF.ADD", "key%d" % number, "item")
            if number == 9 and loses == "what it holds":
                wait_reply(old, b"OK", "SAVE")
        wait_until(lambda: call(replica, "DBSIZE") == 20, 30, "the replica has all")
        wait_until(lambda: neighbour.figures(replica)["cluster_slots_served"] ==
                   "16384", 30, "the replica holds the slots")
        old.crash()
        if trio.folder:
            shutil.rmtree(old.shim.data_dir)
            os.mkdir(old.shim.data_dir)
        else:
            keep = {"log"}
            if loses == "what it holds":  # its data is older than the replica's
                keep |= {"bloomery.snapshot", "replication.state"}
            for name in Path(old.folder).glob("*"):
                if name.is_file() and name.name not in keep:
                    name.unlink()
        old.restart()
        for number in range(20):
            wait_reply(old, 1, "BF.EXISTS", "key%d" % number, "item")
        wait_until(lambda: link_is_up(replica), 60, "the replica follows again")
        assert call(replica, "DBSIZE") == 20
    finally:
        trio.close()


def test_a_server_on_a_full_disk_gives_its_slots_away(group, tmp_path):
    trio = Trio(group, folder=tmp_path)
    old, _, new = trio.servers
    try:
        neighbour.wait_served(old, 16384)
        for key in ("moves", "moves2", "stays"):
            wait_reply(old, 1, "BF.ADD", key, "item")
        old.shim.arm(0, "fail", ["write", "create"], flags=shim.FOR_GOOD,
                     error=errno.ENOSPC)
        unsaved = old.conn()
        unsaved.send(resp.command("BF.ADD", "unsaved", "item"))  # its reply waits for the disk
        wait_until(lambda: info(old, "persistence")["aof_last_write_status"] == "err",
                   20, "the disk is full")
        # The second slot uses the room that the first one's file was before.
        second = slot_of("moves2")
        assert second > MOVED
        rest = "0-%d %d-%d" % (MOVED - 1, MOVED + 1, second - 1)
        trio.show(REST, str(MOVED))
        wait_reply(new, 1, "BF.EXISTS", "moves", "item")
        trio.show("%s %d-16383" % (rest, second + 1), "%d %d" % (MOVED, second))
        wait_reply(new, 1, "BF.EXISTS", "moves2", "item")
        assert call(new, "BF.ADD", "moves2", "later") == 1
        assert call(old, "BF.EXISTS", "stays", "item") == 1
        unsaved.close()
        old.crash()
        # Its node has not heard of the moves, and nobody else answers.
        new.freeze()
        trio.show(ALL, "")
        old.shim.disarm(0)
        old.restart()
        wait_reply(old, 1, "BF.EXISTS", "stays", "item")
        for key in ("moves", "moves2"):
            got = str(call(old, "BF.EXISTS", key, "item"))
            assert got.startswith(("CLUSTERDOWN", "TRYAGAIN")), got
        new.thaw()
    finally:
        trio.close()


def test_an_operator_lets_go_what_nobody_takes(group, tmp_path):
    trio = Trio(group)
    old, _, new = trio.servers
    try:
        neighbour.wait_served(old, 16384)
        for number in range(20):
            wait_reply(old, 1, "BF.ADD", "key%d" % number, "item")
        assert call(old, "BF.ADD", "moves", "item") == 1
        assert "is owned by the node" in str(call(old, "SIDECAR", "LET-GO", "5"))
        # Its node becomes a replica of C, whose server is not there.
        new.crash()
        trio.nodes[0].say(nodes=[
            node(A, trio.ports[0], "myself,slave", C, epoch=2),
            node(C, trio.ports[2], "master", slots=REST, epoch=2)])
        wait_until(lambda: neighbour.figures(old)["cluster_slots_waiting"] == "16384",
                   30, "it waits")
        # Nobody owns this one.
        got = call(old, "SIDECAR", "LET-GO", str(MOVED))
        assert got[:6] == [b"slots", 1, b"filters", 1, b"items", 1], got
        assert "is not held here" in str(call(old, "SIDECAR", "LET-GO", "0-16383"))
        got = call(old, "SIDECAR", "LET-GO", REST.replace(" ", ","))
        assert got[:6] == [b"slots", 16383, b"filters", 20, b"items", 20], got
        saved = Path(got[7].decode())
        checked = subprocess.run([servers.server_binary().replace("-server", "-check"),
                                  "verify", saved], capture_output=True)
        assert checked.returncode == 0, checked
        wait_until(lambda: info(old)["role"] == "slave", 30, "it follows")
        assert neighbour.figures(old)["cluster_slots_waiting"] == "0"
    finally:
        trio.close()
    # The way back.
    other = group.node()
    commands = tmp_path / "commands"
    loads.load("export", "--for", "bloomery", saved, commands)
    with other.conn() as conn:
        conn.send(commands.read_bytes())
        for number in range(20):
            wait_reply(other, 1, "BF.EXISTS", "key%d" % number, "item")
    assert call(other, "BF.EXISTS", "moves", "item") == 0


def force(server, *words):
    """Says FORCE-SERVE while the server has a lease, which a loaded machine loses."""
    got = []

    def says():
        got[:] = [call(server, "SIDECAR", "FORCE-SERVE", *words)]
        return "the neighbour does not answer" not in str(got[0])
    wait_until(says, 30, "it has a lease")
    return got[0]


def row(got):
    return dict(zip(got[::2], got[1::2]))


def test_an_operator_chooses_among_what_servers_have_of_a_lost_slot(group, tmp_path):
    trio = Trio(group, folder=tmp_path)
    old, replica, new = trio.servers
    try:
        neighbour.wait_served(old, 16384)
        wait_reply(old, 1, "BF.ADD", "moves", "item")
        wait_until(lambda: b"held 0-16383 1" in call(replica, "SIDECAR", "HOLDINGS")[2],
                   30, "the replica holds the slots")
        wait_until(lambda: call(replica, "DBSIZE") == 1, 30, "the replica has the item")
        old.crash()
        trio.show(REST, str(MOVED))
        wait_reply(new, 1, "BF.EXISTS", "moves", "item")
        assert call(new, "BF.ADD", "moves", "later") == 1
        wait_until(lambda: b"known %d 2" % MOVED in
                   call(replica, "SIDECAR", "HOLDINGS")[2], 30, "others know")
        new.crash()  # for good
        old.restart()
        trio.show(ALL, "", epoch=5)
        wait_until(lambda: neighbour.figures(old).get("cluster_slots_missing") == "1",
                   30, "the newest data is missing")
        for source, why in (("f" * 40, "is not in our node's view"),
                            (C, "does not say what it has"), ("b", "40 characters")):
            got = str(force(old, str(MOVED), "FROM", source))
            assert why in got, got
        assert call(old, "SIDECAR", "FORCE-SERVE", "1", "BY", A) == \
            resp.Error("ERR syntax error")
        wait_until(lambda: link_is_up(replica), 30, "the replica has its copy")
        got = row(force(old, str(MOVED), "FROM", B))
        assert got[b"slots"] == 1
        for name, source in ((b"chosen", B), (b"others", A)):
            (one,) = [row(one) for one in got[name]]
            assert one == {b"node": source.encode(), b"slots": b"%d" % MOVED,
                           b"epoch": 1, b"filters": 1, b"items": 1}
        wait_reply(old, 1, "BF.EXISTS", "moves", "item")
        assert call(old, "BF.EXISTS", "moves", "later") == 0
        assert b"an operator has chosen data" in old.log()
        assert neighbour.figures(old)["cluster_slots_forced"] == "1"
    finally:
        trio.close()


def test_an_owner_whose_epoch_has_fallen_is_named_and_forced(group, tmp_path):
    trio = Trio(group, folder=tmp_path)
    old, _, new = trio.servers
    try:
        trio.show(ALL, "", epoch=50)
        wait_until(lambda: b"held 0-16383 50" in call(old, "SIDECAR", "HOLDINGS")[2],
                   30, "it holds its slots at the new epoch")
        wait_reply(old, 1, "BF.ADD", "moves", "item")
        trio.show(REST, str(MOVED), epoch=50)  # and C has the epoch 2
        wait_until(lambda: neighbour.figures(new)["cluster_slots_epoch_fell"] == "1",
                   30, "it is found")
        assert b"slots_epoch_fell:1" in call(new, "SIDECAR", "STATUS")
        assert b"CLUSTER BUMPEPOCH" in new.log()
        wait_reply(new, resp.Error("CLUSTERDOWN Slot data not available"),
                   "BF.EXISTS", "moves", "item")
        assert force(new, str(MOVED))[:2] == [b"slots", 1]
        wait_reply(new, 1, "BF.EXISTS", "moves", "item")
        assert neighbour.figures(new)["cluster_slots_epoch_fell"] == "0"
        new.crash()
        new.restart()
        wait_reply(new, 1, "BF.EXISTS", "moves", "item")
    finally:
        trio.close()


@pytest.mark.parametrize("what", ["create", "write", "sync", "rename", "link"])
def test_killed_at_each_call_of_a_copy_that_a_takeover_meets(group, tmp_path, what):
    """Its node takes over while the server copies what its primary has. What was
    acknowledged by either is there after the kill, and the primary goes on to give
    what the copy lacked. A quick run tries every tenth call; ROUNDS=1 tries all."""
    step = 1 if os.environ.get("ROUNDS") else 10
    first = random.randrange(step)
    print("first=%d" % first)
    trio = Trio(group, folder=tmp_path, shimmed=1)
    old, new, _ = trio.servers
    epoch, added, kills = 2, [], 0
    try:
        neighbour.wait_served(old, 16384)
        with old.conn() as conn:
            for number in range(3):
                wait_reply(old, b"OK", "BF.RESERVE", "big%d" % number, "0.001", 20000)
                assert conn.call("BF.MADD", "big%d" % number, *range(100)) == [1] * 100
        for nth in range(1 + first, 60, step):
            new.crash()
            shutil.rmtree(new.shim.data_dir)
            os.mkdir(new.shim.data_dir)
            new.shim.arm(0, "kill-before", [what], shim.FILES, nth=nth)
            takes_over(trio, new, epoch, added)
            killed = new.shim.rule(0).fired > 0
            new.shim.disarm(0)
            new.crash()
            new.restart()
            for number in range(3):
                wait_reply(new, [1] * 100, "BF.MEXISTS", "big%d" % number, *range(100))
            if added:
                wait_reply(new, [1] * len(added), "BF.MEXISTS", "new", *added)
            kills += killed
            trio.say("master", "slave", A, epoch + 1)
            wait_reply(old, [1] * 100, "BF.MEXISTS", "big0", *range(100))
            epoch += 2
            if not killed:
                break
        print("killed %d times" % kills)
        assert kills > 0 or (added and first > 0)
    finally:
        trio.close()


def takes_over(trio, new, epoch, added):
    """Starts the server of B, has B take over when the copy has begun, and adds until
    it is killed, or some are acknowledged."""
    count = len(added)
    try:
        new.restart()
        wait_until(lambda: link_is_up(new) or
                   info(new, "persistence")["journal_state"] != "on", 30, "it copies")
        trio.say("slave", "master", B, epoch)
        with new.conn() as conn:
            def adds():
                if conn.call("BF.ADD", "new", "item%d" % len(added)) in (0, 1):
                    added.append("item%d" % len(added))
                return len(added) >= count + 20
            wait_until(adds, 30, "it serves")
    except (*GONE, AssertionError, RuntimeError):
        if new.child.poll() is None and new.shim.rule(0).fired == 0:
            raise
        trio.say("slave", "master", B, epoch)
