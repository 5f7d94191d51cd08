# SPDX-License-Identifier: BSD-3-Clause
#
# A primary's server that has lost what its replica has (no journal, killed) serves
# no slot, since it would say that items are absent that are not. The others take
# slots from its replica, which has no link to it any more.

from lib import neighbour, resp
from lib.neighbour import A, B, C, node
from lib.replicas import info, link_is_up
from lib.servers import wait_until
from lib.slots import slot_of

OPTIONS = ("--appendonly", "no", "--sidecar-lease-ms", "1000", "--sidecar-poll-ms",
           "100", "--sidecar-port-offset", str(neighbour.OFFSET))
MOVED = slot_of("moves")
ALL = "0-16383"
REST = "0-%d %d-16383" % (MOVED - 1, MOVED + 1)


class Trio:
    """The servers beside A, its replica B, and C."""

    def __init__(self, group):
        self.nodes = [neighbour.Neighbour() for _ in range(3)]
        self.servers = [group.node(*OPTIONS, "--sidecar-of", made.address)
                        for made in self.nodes]
        self.show(ALL, "")

    def show(self, of_a, of_c):
        ports = [server.address[1] for server in self.servers]
        for at, made in enumerate(self.nodes):
            flags = ["master", "slave", "master"]
            flags[at] = "myself," + flags[at]
            made.say(myid=(A, B, C)[at], nodes=[
                node(A, ports[0], flags[0], slots=of_a, epoch=1),
                node(B, ports[1], flags[1], A, epoch=1),
                node(C, ports[2], flags[2], slots=of_c, epoch=2)])

    def close(self):
        for made in self.nodes:
            made.close()


def call(server, *words):
    with server.conn() as conn:
        return conn.call(*words)


def wait_reply(server, wanted, *words):
    wait_until(lambda: call(server, *words) == wanted, 30, "%s answers %s" % (
        words[0], wanted))


def test_a_server_with_older_data_serves_nothing_and_its_replica_gives(group):
    trio = Trio(group)
    old, replica, new = trio.servers
    try:
        neighbour.wait_served(old, 16384)
        wait_until(lambda: link_is_up(replica), 30, "the replica follows")
        for key in ("moves", "stays"):
            assert call(old, "BF.ADD", key, "item") == 1
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
        assert call(old, "SIDECAR", "FORCE-SERVE", REST.replace(" ", ",")) == b"OK"
        wait_reply(old, 0, "BF.EXISTS", "stays", "item")
        assert call(old, "BF.ADD", "stays", "new") == 1
        assert call(old, "PING") == b"PONG"
    finally:
        trio.close()
