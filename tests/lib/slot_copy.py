# SPDX-License-Identifier: BSD-3-Clause
#
# Servers beside made-up nodes, of which one copies slots from another; a writer that
# does at the source all that clients may; and the comparison of both at the end.

import random
import threading
import time

from lib import neighbour as neighbours
from lib import replicas, resp
from lib.replicas import info
from lib.servers import wait_until
from lib.slots import slot_of

FAR = 4000000000000
MEMBER = ("--threads", 2, "--sidecar-lease-ms", 5000, "--sidecar-poll-ms", 500)
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
RANGES = ",".join(map(str, SLOTS))
OTHERS = " ".join("%d-%d" % (a + 1, b - 1) for a, b in
                  zip([-1] + SLOTS, SLOTS + [16384]) if b - a > 1)
assert not {slot_of(tag) for tag in OUT} & set(SLOTS)


class Members:
    """Servers of a group beside nodes that the test makes up."""

    def __init__(self, group):
        self.group, self.nodes = group, []

    def __call__(self, *options, slots="0-16383", folder=None, **config):
        """A server whose node owns these slots, and has these options. folder: its
        calls can be made to fail (Group.shimmed)."""
        made = neighbours.Neighbour()
        self.nodes.append(made)
        made.config.update({n.replace("_", "-"): v for n, v in config.items()})
        own(made, slots)
        options = (*MEMBER, "--sidecar-of", made.address, *options)
        server = self.group.shimmed(folder, *options) if folder else \
            self.group.node(*options)
        server.neighbour = made
        neighbours.wait_lease(server)
        if slots:
            wait_serves(server)
        return server

    def close(self):
        for made in self.nodes:
            made.close()


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
            return [("BF.RESERVE", key, *KINDS[kind])] * (dice < 100) + [
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


def keys_in(server):
    """The keys of the slots that move, with their digests and expiries."""
    with server.conn() as conn:
        names = sorted(n for n in conn.call("KEYS", "*")
                       if n[1:n.index(b"}")].decode() in IN)
        return {n: (conn.call("DEBUG", "DIGEST-VALUE", n)[0],
                    conn.call("PEXPIRETIME", n)) for n in names}


def status(server):
    with server.conn() as conn:
        return replicas.parse_info(conn.call("SIDECAR", "STATUS"))


def pull_of(server):
    line, _, reason = status(server).get("slot_pull0", "").partition(",reason=")
    got = dict(word.split("=", 1) for word in line.split(",") if "=" in word)
    return {**got, "reason": reason}


def lose(target):
    """The node of the target has the slots no more."""
    own(target.neighbour, OTHERS)
    with target.conn() as conn:
        wait_until(lambda: isinstance(conn.call("EXISTS", "{in1}"), resp.Error), 20,
                   "the slots are gone")


def gain(target):
    own(target.neighbour, "0-16383")
    wait_serves(target, "in1")


def prepare(target, source, ranges=RANGES):
    host, port = getattr(source, "address", source)
    with target.conn() as conn:
        assert conn.call("SIDECAR", "PREPARE", ranges, host, port) == b"OK"


def wait_follows(target, seconds=60):
    wait_until(lambda: pull_of(target).get("state") == "follows", seconds,
               "the target follows")


def finish(target, source):
    """Ends the pull at the end of the source's log: no client writes there."""
    got = info(source)
    before = int(status(target)["slot_pulls_done"])
    with target.conn() as conn:
        assert conn.call("SIDECAR", "FINISH", RANGES, got["master_replid"],
                         got["master_repl_offset"]) == b"OK"
    wait_until(lambda: int(status(target)["slot_pulls_done"]) > before, 60,
               "the pull has ended")
    gain(target)


def compare(source, target):
    """Keys expire at both ends by themselves, maybe not at the same moment."""
    for _ in range(20):
        want, got = keys_in(source), keys_in(target)
        if want == got:
            return want
        time.sleep(0.05)
    assert got == want


def assert_only(target):
    """Nothing of other slots has come."""
    with target.conn() as conn:
        for name in conn.call("KEYS", "*"):
            assert name[1:name.index(b"}")].decode() in IN, name


def own(neighbour, slots):
    neighbour.say(nodes=[neighbours.node(
        neighbours.A, neighbours.OFFSET + 1, "myself,master", slots=slots)])


def wait_serves(server, tag="out1"):
    with server.conn() as conn:
        wait_until(lambda: not isinstance(conn.call("EXISTS", "{%s}" % tag),
                                          resp.Error), 20, "the slot is served")
