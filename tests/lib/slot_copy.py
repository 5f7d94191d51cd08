# SPDX-License-Identifier: BSD-3-Clause
#
# Servers beside made-up nodes, of which one takes slots over from another; a writer
# that does at the source all that clients may; and the comparison of both at the end.

import random
import threading
import time

from lib import neighbour as neighbours
from lib import replicas, resp
from lib.replicas import info
from lib.servers import free_port, wait_until
from lib.slots import ranges_of, slot_of

FAR = 4000000000000
# A claim has patience with a source that is silent for longer than a test lasts.
MEMBER = ("--threads", 2, "--sidecar-lease-ms", 5000, "--sidecar-poll-ms", 100,
          "--sidecar-mode", "safe")
PATIENCE = {"cluster-node-timeout": "600000"}
ALL = range(16384)
FENCE = b"FENCE\r\n$3\r\nall\r\n"
KINDS = {
    "n": ("0.01", "50"),
    "d": ("0.01", "50", "DELETABLE"),
    "a": ("0.01", "50", "AGEING", "3600"),
    "N": ("0.01", "1200000"),
    "D": ("0.01", "400000", "DELETABLE"),
    "A": ("0.01", "1000000", "AGEING", "3600"),
}
IN = ["in%d" % i for i in range(12)]
OUT = ["out%d" % i for i in range(12)]
SLOTS = sorted({slot_of(tag) for tag in IN})
assert not {slot_of(tag) for tag in OUT} & set(SLOTS)


class Members:
    """Servers of a group beside nodes that the test makes up: primaries of one
    cluster. The first has all slots. Others reach a server by its proxy, `door`."""

    def __init__(self, group):
        self.group, self.made, self.epoch = group, [], 1

    def __call__(self, *options, folder=None, tls=None, **config):
        """A server whose node has these options. folder: its calls can be made to
        fail (Group.shimmed). tls: files; then the door is of its port for TLS."""
        beside = neighbours.Neighbour()
        beside.config.update(PATIENCE)
        beside.config.update({n.replace("_", "-"): v for n, v in config.items()})
        beside.myid = "%040x" % (10 + len(self.made))
        beside.slots = set() if self.made else set(ALL)
        own = tls_port = free_port()
        while tls and not 0 < abs(tls_port - own) < 2000:   # shown() is a port, too
            tls_port = free_port()
        beside.door = replicas.Proxy(("127.0.0.1", tls_port), free_port())
        beside.epoch, beside.further = 1, tls_port - own
        self.group.proxies.append(beside.door)
        self.made.append(beside)
        self.show()
        options = (*MEMBER, "--sidecar-of", beside.address, *options)
        if tls:
            options += (*tls.options(tls_port), "--tls-replication", "yes")
        server = self.group.shimmed(folder, *options, port=own) if folder else \
            self.group.node(*options, port=own)
        server.neighbour, server.door, server.members = beside, beside.door, self
        neighbours.wait_lease(server)
        if beside.slots:
            wait_serves(server)
        return server

    @staticmethod
    def shown(one, to):
        """The port of a server that another one's node knows. A server takes it that
        the ports for TLS of all are as far from that as its own."""
        return one.door.address[1] - to.further

    def lines(self, myself):
        return [neighbours.node(
            one.myid, self.shown(one, myself), "myself,master" if one is myself else
            "master", epoch=one.epoch, slots=" ".join(
                "%d-%d" % pair for pair in ranges_of(one.slots)))
            for one in self.made]

    def show(self, *to):
        """Tells the servers, or some of them, who has which slots now."""
        for one in self.made:
            if not to or any(one is server.neighbour for server in to):
                one.say(nodes=self.lines(one))

    def give(self, target, slots=tuple(SLOTS)):
        """The target's node has these slots. Nobody is told yet."""
        self.epoch += 1
        for one in self.made:
            one.slots -= set(slots)
        target.neighbour.slots |= set(slots)
        target.neighbour.epoch = self.epoch

    def close(self):
        for one in self.made:
            one.close()


class Writer(threading.Thread):
    """Writes everything that clients may, on keys of one tag at a time. A source
    that is killed is connected to again."""

    def __init__(self, server, seed, flushes=True, large=True):
        super().__init__(daemon=True)
        self.server = server
        self.random = random.Random(seed)
        self.flushes, self.large = flushes, large
        self.ends = threading.Event()
        self.commands = 0
        self.start()

    def key(self, tag, kind=None):
        kinds = "nnnddaa" if not self.large else "nnnnnnndddddaaaaaNDA"
        return "{%s}%s%d" % (tag, kind or self.random.choice(kinds),
                             self.random.randrange(6))

    def items(self):
        return ["i%d" % self.random.randrange(5000)
                for _ in range(self.random.randrange(1, 8))]

    def draw(self):
        tag = self.random.choice(IN if self.random.random() < 0.7 else OUT)
        key = self.key(tag)
        kind = key[key.index("}") + 1]
        other = self.key(tag, kind)
        dice = self.random.randrange(1000)
        if dice < 700:
            rate, capacity, *rest = KINDS[kind]
            return [("BF.RESERVE", key, *KINDS[kind])] * (dice < 50) + [
                ("BF.INSERT", key, "ERROR", rate, "CAPACITY", capacity, *rest,
                 "ITEMS", *self.items()) if dice < 100 else
                ("BF.MADD", key, *self.items())]
        if dice < 760:
            return [("BF.DEL", key, self.items()[0])]
        if dice < 800:
            return [("DEL", key, other)]
        if dice < 830:
            return [("PEXPIRE", key, self.random.choice((30, 3000, 100000)))]
        if dice < 850:
            return [("PERSIST", key)]
        if dice < 880:
            return [("RENAME", key, other)]
        if dice < 910:
            return [("COPY", key, other, "REPLACE")]
        if dice < 930:
            return [("BF.MERGE", other, key)]
        if dice < 940:
            return [("BF.RESET", key)]
        if dice < 997:
            return [("MULTI",), ("BF.MADD", key, *self.items()),
                    ("DEL", other), ("EXEC",)]
        return [(self.random.choice(("FLUSHALL", "FLUSHDB")),)] if (
            self.flushes and self.random.random() < 0.3) else []

    def run(self):
        while not self.ends.is_set():
            try:
                with self.server.conn() as conn:
                    while not self.ends.is_set():
                        batch = [c for _ in range(10) for c in self.draw()]
                        if not batch:
                            continue
                        conn.send(b"".join(resp.command(*c) for c in batch))
                        for _ in batch:
                            conn.read()
                        self.commands += len(batch)
            except (OSError, resp.Closed):
                time.sleep(0.01)

    def stop(self):
        self.ends.set()
        self.join()


def fill(server, seed, count=400):
    """Makes keys of all kinds, the large ones too."""
    rng = random.Random(seed)
    with server.conn() as conn:
        for number in range(count):
            tag = rng.choice(IN + OUT)
            kind = rng.choice("nda") if number > 24 else rng.choice("NDA")
            key = "{%s}%s%d" % (tag, kind, rng.randrange(6))
            conn.call("BF.RESERVE", key, *KINDS[kind])
            conn.call("BF.MADD", key, *("f%d" % rng.randrange(9999)
                                        for _ in range(40)))
            if rng.random() < 0.2:
                conn.call("PEXPIREAT", key, FAR + number)


def names_in(conn):
    """The keys of the slots that move, whoever serves them."""
    return sorted(name for name in conn.call("KEYS", "*")
                  if name[1:name.index(b"}")].decode() in IN)


def keys_in(server):
    """The same with their digests and expiries. It serves the slots."""
    with server.conn() as conn:
        names = names_in(conn)
        return {n: (conn.call("DEBUG", "DIGEST-VALUE", n)[0],
                    conn.call("PEXPIRETIME", n)) for n in names}


def status(server):
    with server.conn() as conn:
        return replicas.parse_info(conn.call("SIDECAR", "STATUS"))


def pull_of(server):
    line, _, reason = status(server).get("slot_pull0", "").partition(",reason=")
    got = dict(word.split("=", 1) for word in line.split(",") if "=" in word)
    return {**got, "reason": reason}


def begin(target, source, slots=tuple(SLOTS)):
    """The target's node has the slots. Its server follows the source's, which
    serves them until finish."""
    source.door.refuses = FENCE
    target.members.give(target, slots)
    target.members.show(target)     # the source's node does not know it yet


def wait_follows(target, seconds=60):
    wait_until(lambda: pull_of(target).get("state") == "follows", seconds,
               "the target follows")


def cut_over(target, source, tag="in1"):
    """Lets the target fence the source, and waits until it serves. No client may
    write."""
    source.door.refuses = None
    wait_serves(target, tag)
    target.members.show()
    source.neighbour.wait_looks()   # else it waits for this, and takes nothing back


def finish(target, source):
    """The same. Returns the keys that the source had."""
    want = keys_in(source)
    cut_over(target, source)
    return want


def move(target, source, slots=tuple(SLOTS)):
    """The slots move without more ado."""
    target.members.give(target, slots)
    target.members.show()
    wait_serves(target, "in1")
    source.neighbour.wait_looks()


def compare(want, target):
    """Whether the target has the keys of finish, without those that have expired
    since. Each end says for itself when a key expires."""
    for _ in range(20):
        got, now_ms = keys_in(target), int(time.time() * 1000)
        left = {name: (digest, expires) for name, (digest, expires) in want.items()
                if expires == -1 or expires > now_ms}
        if left == got:
            return left
        time.sleep(0.05)
    assert got == left


def assert_only(target):
    """Nothing of other slots has come."""
    with target.conn() as conn:
        for name in conn.call("KEYS", "*"):
            assert name[1:name.index(b"}")].decode() in IN, name


def wait_serves(server, tag="out1"):
    with server.conn() as conn:
        wait_until(lambda: not isinstance(conn.call("EXISTS", "{%s}" % tag),
                                          resp.Error), 20, "the slot is served")
