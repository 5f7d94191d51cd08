# SPDX-License-Identifier: BSD-3-Clause
#
# A real cluster of Valkey or Redis on 127.0.0.1, and a Bloomery beside each of its
# nodes. It is made with CLUSTER commands, which is faster than redis-cli's way. A
# test can move slots, fail over, kill, stop and restart nodes and daemons, and add
# and remove them. No step sleeps for a fixed time: each waits for a condition.

import os
import random
import re
import socket
import subprocess
import tempfile
import time

from lib import cluster_net, replicas, resp, servers, slots
from lib.replicas import Faults
from lib.servers import Process, wait_until

NODE_TIMEOUT_MS = 2000
SETTLE_S = 60
KINDS = ("redis", "valkey")
ENDS = ("success", "failed", "cancelled")      # of a migration

# The nodes' ports. Those of the daemons and of the cluster bus are above them, and
# all are below the ports that the system gives to connections.
PORTS = range(11000, 16000)
DAEMON_OFFSET = 5000
BUS_OFFSET = 10000


def missing(kind):
    """Returns why this kind of node is not available, or None."""
    return servers.valkey_missing() if kind == "valkey" else \
        servers.oracle_missing()


def has_sidecar():
    """Tells whether the server under test can be a node's daemon."""
    got = subprocess.run([servers.server_binary(), "--print=options"],
                         capture_output=True, text=True)
    return "sidecar-of" in got.stdout


class Ports:
    """Ports that no other test process takes: each is also the name of an abstract
    socket, which the system frees when its process ends."""

    def __init__(self):
        self.held = {}

    def take(self):
        """Returns a port; the next one, for TLS, is free, too."""
        order = list(PORTS)[::2]
        random.Random(os.urandom(8)).shuffle(order)
        for port in order:
            claim = socket.socket(socket.AF_UNIX)
            try:
                claim.bind("\0bloomery-test-port-%d" % port)
                if all(is_free(port + more + tls) for tls in (0, 1)
                       for more in (0, DAEMON_OFFSET, BUS_OFFSET)):
                    self.held[port] = claim
                    return port
            except OSError:
                pass
            claim.close()
        raise AssertionError("no free port in %s" % PORTS)

    def close(self):
        for claim in self.held.values():
            claim.close()


def is_free(port):
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Peer:
    """One line of CLUSTER NODES."""

    def __init__(self, line):
        words = line.split()
        self.id = words[0]
        self.address, self.flags = words[1], set(words[2].split(","))
        self.primary = None if words[3] == "-" else words[3]
        self.epoch = int(words[6])
        self.connected = words[7] == "connected"
        self.ranges, self.marks = [], {}
        for text in words[8:]:
            mark = re.fullmatch(r"\[(\d+)-([<>])-(\w+)\]", text)
            if mark:
                self.marks[int(mark[1])] = (mark[2], mark[3])
            else:
                first, _, last = text.partition("-")
                self.ranges.append((int(first), int(last or first)))

    def has(self, slot):
        return any(first <= slot <= last for first, last in self.ranges)

    def facts(self):
        """Returns what all nodes must agree on before another failover: a vote
        depends on the voter's view of the roles and epochs."""
        return self.primary, self.epoch, self.ranges

    def is_well(self):
        return not self.flags & {"fail", "fail?", "handshake", "noaddr"}


class Node(Faults, Process):
    """A cluster node. Its data is in memory only, its nodes.conf in its folder.
    tls: lib.tls.Files, with which nodes speak to each other; None: without TLS."""

    def __init__(self, kind, port, place, *options, tls=None):
        folder = tempfile.mkdtemp(prefix="bloomery-node-")
        self.host = place.host
        program = servers.VALKEY / "valkey-server" if kind == "valkey" else \
            servers.REDIS / "redis-server"
        argv = [*place.inside, program, "--port", port, "--bind", place.host,
                "--protected-mode", "no", "--save", "", "--appendonly", "no",
                "--daemonize", "no", "--dir", folder,
                "--cluster-enabled", "yes", "--cluster-node-timeout",
                NODE_TIMEOUT_MS, "--cluster-replica-validity-factor", 0,
                "--repl-diskless-sync-delay", 0, *options]
        if tls:
            argv += [*tls.options(port + 1), "--tls-cluster", "yes",
                     "--tls-replication", "yes", "--cluster-port",
                     port + BUS_OFFSET]
        env = servers.redis_environment() if kind == "redis" else None
        super().__init__(argv, port, folder, env)
        self.id = None
        # Where other nodes, and its daemon, find it.
        self.inner = (place.host, port + 1 if tls else port)

    def ask(self, *words):
        with self.conn() as conn:
            return conn.call(*words)

    def tell(self, *words):
        """Sends a command that must succeed."""
        reply = self.ask(*words)
        assert reply == b"OK", (words, reply)

    def peers(self):
        """Returns its view of the cluster: {id: Peer}."""
        lines = self.ask("CLUSTER", "NODES").decode().splitlines()
        return {peer.id: peer for peer in map(Peer, lines)}

    def is_ok(self):
        return b"cluster_state:ok" in self.ask("CLUSTER", "INFO")

    def stop(self):
        self.kill()
        self.remove()


class Daemon(replicas.Node):
    """The Bloomery beside a node."""

    def __init__(self, node, place, *options, tls=None):
        self.host, self.inside = place.host, place.inside
        if tls:
            options = (*tls.options(node.port + DAEMON_OFFSET + 1), "--sidecar-tls",
                       "yes", "--tls-replication", "yes", *options)
        super().__init__(
            *replicas.SMALL, "--loglevel", "notice", "--protected-mode", "no",
            "--sidecar-of", "%s:%d" % node.inner,
            "--sidecar-port-offset", DAEMON_OFFSET + node.port - node.inner[1],
            "--bf.bloom-fp-rate", "0.0001", *options,
            port=node.port + DAEMON_OFFSET, ready=False)

    def is_ok(self):
        """Tells whether it has a lease and its node's cluster is whole."""
        with self.conn() as conn:
            got = conn.call("CLUSTER", "INFO")
        return isinstance(got, bytes) and b"cluster_state:ok" in got

    def owners(self):
        """Returns {id: [(first, last)]} of its CLUSTER SLOTS, None without it."""
        with self.conn() as conn:
            return owners_of(conn.call("CLUSTER", "SLOTS"))


def owners_of(reply):
    if isinstance(reply, resp.Error):
        return None
    owners = {}
    for first, last, owner, *_ in reply:
        owners.setdefault(owner[2].decode(), []).append((first, last))
    return {owner: sorted(ranges) for owner, ranges in owners.items()}


class Here:
    """The place of all pairs in a cluster without a lib.cluster_net.Network."""

    host, inside = "127.0.0.1", ()


class Pair:
    """A node and its daemon, if it has one."""

    def __init__(self, kind, port, place, options, daemon, daemon_options,
                 tls=None):
        self.place = place
        self.node = Node(kind, port, place, *options, tls=tls)
        self.daemon = None
        if daemon:
            try:
                self.daemon = Daemon(self.node, place, *daemon_options, tls=tls)
            except BaseException:
                self.node.stop()
                raise

    def both(self):
        return [self.node] + ([self.daemon] if self.daemon else [])

    def runs(self):
        return all(process.runs() for process in self.both())

    def __repr__(self):
        return "pair %d" % self.node.port


class Cluster:
    """kind: "redis" or "valkey". The primaries come first in `pairs`, then the
    first replica of each, and so on. network: a lib.cluster_net.Network, which the
    cluster closes. tls: lib.tls.Files: nodes and daemons speak to each other, and
    clients may, over TLS, at the port above the plain one.

    After a failover the nodes agree on the owners at once, but on the roles only
    when they have heard of each other. Until then another failover may get no
    votes. So tests call wait_settled() between faults."""

    def __init__(self, kind, primaries=3, replicas=1, daemons=True, options=(),
                 daemon_options=(), network=None, tls=None):
        self.kind, self.daemons, self.network = kind, daemons, network
        self.tls = tls
        self.options, self.daemon_options = options, daemon_options
        self.ports = Ports()
        self.pairs, self.gone = [], []
        try:
            for _ in range(primaries * (1 + replicas)):
                self.start_pair()
            self.create(primaries)
        except BaseException:
            self.tell()
            self.end(check=False)
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.tell()
        self.end(check=kind is None)

    def start_pair(self):
        place = self.network.add() if self.network else Here
        pair = Pair(self.kind, self.ports.take(), place, self.options,
                    self.daemons, self.daemon_options, self.tls)
        self.pairs.append(pair)
        return pair

    def tell(self):
        """Prints the logs after a failure."""
        for pair in self.pairs + self.gone:
            for one in pair.both():
                print("---- %s on port %d\n%s" % (
                    type(one).__name__, one.port,
                    one.log().decode("utf-8", "replace")[-3000:]))

    def end(self, check=True):
        """Stops all processes; the daemons first, as their nodes' end is no
        failure. check: the daemons must end well."""
        problems = []
        for pair in self.pairs + self.gone:
            if pair.daemon:
                try:
                    pair.daemon.stop()
                except AssertionError as problem:
                    problems.append(str(problem))
                    pair.daemon.kill()
                    pair.daemon.remove()
        for pair in self.pairs + self.gone:
            pair.node.stop()
        self.ports.close()
        if self.network:
            self.network.close()
        assert not (check and problems), "\n".join(problems)

    # ---- creation

    def create(self, primaries):
        for pair in self.pairs:
            pair.node.wait_ready()
            pair.node.id = pair.node.ask("CLUSTER", "MYID").decode()
        for number, pair in enumerate(self.pairs):
            pair.node.tell("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            if number < primaries:
                pair.node.tell("CLUSTER", "ADDSLOTSRANGE",
                               slots.SLOTS * number // primaries,
                               slots.SLOTS * (number + 1) // primaries - 1)
        first = self.pairs[0].node
        for pair in self.pairs[1:]:
            pair.node.tell("CLUSTER", "MEET", *first.inner, first.port + BUS_OFFSET)
        wait_until(self.all_met, SETTLE_S, "all nodes know each other")
        for number, pair in enumerate(self.pairs[primaries:]):
            pair.node.tell("CLUSTER", "REPLICATE",
                           self.pairs[number % primaries].node.id)
        for pair in self.pairs:
            if pair.daemon:
                pair.daemon.wait_ready()
        self.wait_settled()

    def all_met(self):
        ids = {pair.node.id for pair in self.pairs}
        for pair in self.pairs:
            peers = pair.node.peers()
            if set(peers) != ids or \
                    not all(p.is_well() and p.connected for p in peers.values()):
                return False
        return True

    # ---- who is who

    def at(self, node_id):
        return next(p for p in self.pairs if p.node.id == node_id)

    def view(self):
        """Returns the view of any node that runs: {id: Peer}."""
        return next(p for p in self.pairs if p.node.runs()).node.peers()

    def owner(self, slot):
        return self.at(next(i for i, p in self.view().items() if p.has(slot)))

    def primaries(self):
        return [self.at(i) for i, p in self.view().items()
                if p.ranges and "fail" not in p.flags]

    def replicas_of(self, pair):
        return [self.at(i) for i, p in self.view().items()
                if p.primary == pair.node.id]

    def addresses(self):
        """Returns where clients may connect."""
        return [p.daemon.address if p.daemon else p.node.address
                for p in self.pairs if p.runs()]

    def client(self, **kwargs):
        return slots.Client(self.addresses, **kwargs)

    # ---- waiting

    def nodes_settled(self):
        """Tells whether all nodes run, are ok, know all others well and agree on
        roles, slots and epochs, and whether the replicas follow."""
        ids, views = {pair.node.id for pair in self.pairs}, []
        for pair in self.pairs:
            if not (pair.node.runs() and pair.node.is_ok()):
                return False
            peers = pair.node.peers()
            if set(peers) != ids or not all(p.is_well() for p in peers.values()):
                return False
            if peers[pair.node.id].primary and \
                    not replicas.link_is_up(pair.node):
                return False
            views.append({i: p.facts() for i, p in peers.items()})
        return all(view == views[0] for view in views)

    def daemons_settled(self):
        """Tells whether the daemons serve, have the nodes' map and roles, and the
        replicas follow the daemon beside their node's primary. After a cut, TCP may
        wait for seconds before it sends again, so the replicas must also have what
        their primaries had."""
        view = self.view()
        owners = {i: p.ranges for i, p in view.items() if p.ranges}
        had = {i: int(replicas.info(self.at(i).daemon)["master_repl_offset"])
               for i, p in view.items() if p.primary is None}
        for pair in self.pairs:
            if not pair.daemon.runs() or not pair.daemon.is_ok() or \
                    pair.daemon.owners() != owners:
                return False
            got, primary = replicas.info(pair.daemon), view[pair.node.id].primary
            if primary is None:
                if got["role"] != "master":
                    return False
            elif got["role"] != "slave" or got["master_link_status"] != "up" or \
                    int(got["master_port"]) != self.at(primary).daemon.port + \
                    bool(self.tls) or \
                    int(got["slave_repl_offset"]) < had[primary]:
                return False
        return True

    def is_settled(self):
        try:
            return self.nodes_settled() and \
                (not self.daemons or self.daemons_settled())
        except slots.GONE + (ValueError,):
            return False

    def wait_settled(self, seconds=SETTLE_S):
        wait_until(self.is_settled, seconds, "the cluster settles", 0.05)

    def all_served(self):
        """Tells whether the daemons of all primaries have the data of their slots."""
        view = self.view()
        return all(
            int(replicas.info(pair.daemon, "cluster").get("cluster_slots_served",
                                                          -1)) ==
            sum(b - a + 1 for a, b in view[pair.node.id].ranges)
            for pair in self.primaries())

    def wait_served(self, seconds=SETTLE_S):
        """Waits until data has followed its slots."""
        wait_until(self.all_served, seconds, "all slots are served", 0.005)

    def wait_nodes(self, seconds=SETTLE_S):
        """Waits for the nodes alone."""
        wait_until(self.nodes_settled, seconds, "the nodes settle", 0.02)

    # ---- failovers

    def failover(self, replica, how=None):
        """Sends CLUSTER FAILOVER [FORCE|TAKEOVER] to a replica, and waits until all
        nodes see it as the owner. It sends it again when the nodes have given up:
        they vote once for the replicas of a primary within two node timeouts."""
        owned, again = self.replicated_by(replica), 0

        def is_owner():
            nonlocal again
            if time.monotonic() >= again:
                replica.node.ask("CLUSTER", "FAILOVER", *([how] if how else []))
                again = time.monotonic() + 6 * servers.time_factor()
            return self.all_see(owned, replica)

        wait_until(is_owner, SETTLE_S, "%r owns slot %d" % (replica, owned), 0.005)

    def replicated_by(self, replica):
        """Returns a slot of its primary."""
        view = self.view()
        return view[view[replica.node.id].primary].ranges[0][0]

    def all_see(self, slot, pair):
        """Tells whether every node that runs sees this pair as the slot's owner."""
        return all(p.node.peers()[pair.node.id].has(slot)
                   for p in self.pairs if p.node.runs())

    def wait_owner(self, slot, pair, seconds=SETTLE_S):
        wait_until(lambda: self.all_see(slot, pair), seconds,
                   "%r owns slot %d" % (pair, slot), 0.005)

    def wait_new_owner(self, slot, old, seconds=SETTLE_S):
        """Waits until the nodes that run agree on another owner; returns it."""
        def other():
            owners = set()
            for pair in self.pairs:
                if pair.node.runs():
                    owners |= {i for i, p in pair.node.peers().items()
                               if p.has(slot)}
            return owners.pop() if len(owners) == 1 and \
                old.node.id not in owners else None

        return self.at(wait_until(other, seconds, "a new owner of slot %d" % slot,
                                  0.01))

    # ---- moving slots

    def fill(self, slot, count, name="filling"):
        """Puts keys of the node's own into a slot, so that moving it takes time."""
        key = slots.key_in(slot, name)
        with self.owner(slot).node.conn(timeout=60) as conn:
            for first in range(0, count, 5000):
                part = range(first, min(first + 5000, count))
                assert set(conn.pipeline(
                    [("SET", "%s-%d" % (key, n), n) for n in part])) == {b"OK"}

    def unfill(self, slot, name="filling"):
        """Removes the keys of fill()."""
        prefix = slots.key_in(slot, name).encode()
        with self.owner(slot).node.conn(timeout=60) as conn:
            count = conn.call("CLUSTER", "COUNTKEYSINSLOT", slot)
            keys = [k for k in conn.call("CLUSTER", "GETKEYSINSLOT", slot, count)
                    if k.startswith(prefix)]
            for first in range(0, len(keys), 5000):
                conn.call("UNLINK", *keys[first:first + 5000])

    def reshard(self, moved, to):
        """Moves slots one after the other with SETSLOT and MIGRATE, in the order in
        which redis-cli does."""
        for slot in moved:
            self.reshard_one(slot, self.owner(slot), to)

    @staticmethod
    def set_slot(call, slot, *words):
        """CLUSTER SETSLOT; returns the reply. A node of Valkey whose replica has lost its
        link refuses it until that is back."""
        def asked():
            reply = call("CLUSTER", "SETSLOT", slot, *words)
            return None if "NOREPLICAS" in str(reply) else reply
        return wait_until(asked, 20, "the node has a replica")

    def reshard_one(self, slot, source, to):
        with source.node.conn(timeout=60) as old, to.node.conn(timeout=60) as new:
            for conn, mark, other in ((new, "IMPORTING", source),
                                      (old, "MIGRATING", to)):
                reply = self.set_slot(conn.call, slot, mark, other.node.id)
                assert reply == b"OK", reply
            while keys := old.call("CLUSTER", "GETKEYSINSLOT", slot, 100):
                reply = old.call("MIGRATE", *to.node.inner, "", 0, 60000, "KEYS",
                                 *keys)
                assert reply in (b"OK", b"NOKEY"), reply
            reply = self.set_slot(new.call, slot, "NODE", to.node.id)
            assert reply == b"OK", reply
        others = [p for p in self.primaries() if p not in (source, to)]
        for pair in [source, *others]:
            # A primary that has lost its last slot is a replica at once.
            reply = self.set_slot(pair.node.ask, slot, "NODE", to.node.id)
            assert reply == b"OK" or "only with" in str(reply), reply

    def migrate(self, ranges, to, wait=True):
        """Moves slots of one owner with Valkey 9's CLUSTER MIGRATESLOTS. Returns
        their owner before, where it can be cancelled."""
        source = self.owner(ranges[0][0])
        words = [str(w) for r in ranges for w in r]
        source.node.tell("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", *words,
                         "NODE", to.node.id)
        if wait:
            assert self.wait_migration(source) == "success", source
            for first, _ in ranges:
                self.wait_owner(first, to)
        return source

    def migration(self, pair):
        """Returns the state of a node's newest migration."""
        jobs = pair.node.ask("CLUSTER", "GETSLOTMIGRATIONS")
        if not jobs:
            return None
        return dict(zip(jobs[0][::2], jobs[0][1::2]))[b"state"].decode()

    def cancel(self, source):
        """Cancels the migrations of a node; returns the newest one's state."""
        source.node.tell("CLUSTER", "CANCELSLOTMIGRATIONS")
        return self.wait_migration(source)

    def wait_migration(self, source):
        """Waits until a node's newest migration ends; returns its last state."""
        return wait_until(
            lambda: (lambda state: state if state in ENDS else None)(
                self.migration(source)), SETTLE_S, "the migration ends", 0.01)

    # ---- nodes come and go

    def add(self):
        """Adds a primary without slots; returns it."""
        pair = self.start_pair()
        pair.node.wait_ready()
        pair.node.id = pair.node.ask("CLUSTER", "MYID").decode()
        first = self.pairs[0].node
        pair.node.tell("CLUSTER", "MEET", *first.inner, first.port + BUS_OFFSET)
        wait_until(self.all_met, SETTLE_S, "all nodes know the new one", 0.02)
        self.wait_nodes()
        if pair.daemon:
            pair.daemon.wait_ready()
        return pair

    def remove(self, pair):
        """Removes a node that has no slots, and stops it with its daemon."""
        self.pairs.remove(pair)
        self.gone.append(pair)
        pair.node.crash()
        if pair.daemon:
            pair.daemon.stop()
        for other in self.pairs:
            reply = other.node.ask("CLUSTER", "FORGET", pair.node.id)
            # Valkey 9 tells the others itself.
            assert reply == b"OK" or b"Unknown node" in str(reply).encode(), reply

    def restart(self, pair):
        """Stops both and starts them again, as a rolling restart does."""
        for process in pair.both():
            process.child.terminate()
            process.wait_exit()
        for process in pair.both():
            process.restart(wait=False)
        for process in pair.both():
            process.wait_ready()

    def heal(self):
        """Restores all links, continues or restarts everything that does not
        run."""
        if self.network:
            self.network.heal()
        for pair in self.pairs:
            for process in pair.both():
                if process.frozen:
                    process.thaw()
                elif not process.runs():
                    process.restart(wait=False)
        for pair in self.pairs:
            for process in pair.both():
                process.wait_ready()


class Bed:
    """The cluster of the tests of one file. It is used again unless a test failed
    with it."""

    def __init__(self, kind):
        self.kind = kind
        self.cluster = None

    def take(self, linked=False, **options):
        """linked: with links that can be cut, if this machine can."""
        if self.cluster is None:
            if linked and cluster_net.missing() is None:
                options["network"] = cluster_net.Network()
            self.cluster = Cluster(self.kind, **options)
        return self.cluster

    def give_back(self, failed):
        """Heals the cluster, or ends it with its logs after a failure."""
        if self.cluster is None:
            return
        if failed:
            self.cluster.tell()
            self.end(check=False)
            return
        try:
            self.cluster.heal()
            self.cluster.wait_settled()
        except BaseException:
            self.cluster.tell()
            self.end(check=False)
            raise

    def end(self, check=True):
        made, self.cluster = self.cluster, None
        if made is not None:
            made.end(check)
