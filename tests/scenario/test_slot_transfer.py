# SPDX-License-Identifier: BSD-3-Clause
#
# Slots move from one server to another while clients write to the source: at the
# end the target has exactly the source's keys of these slots, and so have its
# replica and its journal. ROUNDS=20 is a long run; SEED=n repeats one.

import os
import random
import threading
import time

import pytest

from lib import replicas, resp, servers
from lib import neighbour as neighbours
from lib.neighbour import Neighbour
from lib.replicas import follow, info, wait_even
from lib.servers import wait_until

ROUNDS = int(os.environ.get("ROUNDS", "1"))
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


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = crc << 1 ^ (0x1021 if crc & 0x8000 else 0)
        crc &= 0xffff
    return crc


def slot_of(tag):
    return crc16(tag.encode()) % 16384


IN = ["in%d" % i for i in range(12)]
OUT = ["out%d" % i for i in range(12)]
SLOTS = sorted({slot_of(tag) for tag in IN})
RANGES = ",".join(map(str, SLOTS))
OTHERS = " ".join("%d-%d" % (a + 1, b - 1) for a, b in
                  zip([-1] + SLOTS, SLOTS + [16384]) if b - a > 1)
assert not {slot_of(tag) for tag in OUT} & set(SLOTS)


@pytest.fixture(params=range(ROUNDS))
def seed(request):
    value = int(os.environ.get("SEED", "0")) or random.getrandbits(32)
    print("SEED=%d" % value)
    return value


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
    own(target.neighbour, True)
    with target.conn() as conn:
        wait_until(lambda: isinstance(conn.call("EXISTS", "{in1}"), resp.Error), 20,
                   "the slots are gone")


def gain(target):
    own(target.neighbour, False)
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


@pytest.fixture
def member(group):
    """member(): a server whose node, which the test makes up, owns all slots;
    or, with others=True, all but those that move."""
    nodes = []

    def start(others=False):
        nodes.append(Neighbour())
        own(nodes[-1], others)
        server = group.node(*MEMBER, "--sidecar-of", nodes[-1].address)
        server.neighbour = nodes[-1]
        wait_serves(server)
        return server

    yield start
    for node in nodes:
        node.close()


def own(neighbour, others):
    neighbour.say(nodes=[neighbours.node(
        neighbours.A, neighbours.OFFSET + 1, "myself,master",
        slots=OTHERS if others else "0-16383")])


def wait_serves(server, tag="out1"):
    with server.conn() as conn:
        wait_until(lambda: not isinstance(conn.call("EXISTS", "{%s}" % tag),
                                          resp.Error), 20, "the slot is served")


def test_slots_move_exactly_while_clients_write(group, member, seed):
    source, target = member(), member()
    replica = group.node()
    follow(replica, target)
    fill(source, seed)
    with target.conn() as conn:     # of an earlier copy that was given up
        conn.call("BF.ADD", "{in1}n1", "stale")
        conn.call("BF.ADD", "{in1}stale", "stale")
    lose(target)
    writers = [Writer(source, seed + n) for n in range(3)]
    prepare(target, source)
    wait_follows(target)
    assert info(source)["connected_slaves"] == "0"
    wait_until(lambda: "slots=%d," % len(SLOTS) in
               info(source).get("slot_puller0", ""), 10, "the source says so")
    with source.conn() as conn:
        assert conn.call("WAIT", 1, 1) == 0
        assert conn.call("ROLE")[2] == []
    done = sum(w.commands for w in writers)
    wait_until(lambda: sum(w.commands for w in writers) > done + 3000, 60,
               "commands came behind the snapshot")
    for writer in writers:
        writer.stop()
    finish(target, source)
    assert compare(source, target)
    assert_only(target)
    wait_even(target, replica)
    target.crash()
    target.restart()
    wait_serves(target, "in1")
    compare(source, target)


def test_links_break_and_servers_die(group, member, seed):
    rng = random.Random(seed)
    source, target = member(), member()
    proxy = group.proxy(source)
    lose(target)
    fill(source, seed)
    writers = [Writer(source, seed + n, flushes=False) for n in range(2)]
    prepare(target, proxy)
    for _ in range(6):
        what = rng.choice(("cut", "cut", "later", "source", "target"))
        if what == "cut":
            proxy.cut()
        elif what == "later":
            with proxy.lock:
                proxy.cut_at = proxy.sent + rng.randrange(4 << 20)
        elif what == "source":
            source.crash()
            source.restart()
        else:
            target.crash()
            target.restart()
            wait_serves(target)
            prepare(target, proxy)
        wait_until(lambda: pull_of(target).get("state") in
                   rng.choice((("loads", "adopts", "follows"), ("follows",))),
                   60, "the pull goes on")
    for writer in writers:
        writer.stop()
    with proxy.lock:
        proxy.cut_at = None
    wait_follows(target)
    finish(target, source)
    assert compare(source, target)
    assert_only(target)
    target.crash()
    target.restart()
    wait_serves(target, "in1")
    compare(source, target)


def test_abandoned_slots_are_deleted_and_others_stay(member, seed):
    source, target = member(), member()
    fill(source, seed)
    with target.conn() as conn:
        conn.call("BF.ADD", "{out1}n", "a")
        conn.call("BF.ADD", "{out2}n", "a")
    with target.conn() as conn:
        for words in (("ABANDON", RANGES), ("PREPARE", RANGES, "::1", "1")):
            reply = conn.call("SIDECAR", *words)
            assert "owns slot %d" % SLOTS[0] in str(reply)
    lose(target)
    prepare(target, source)
    wait_follows(target)
    with target.conn() as conn:
        assert conn.call("DBSIZE") > 50
        assert conn.call("SIDECAR", "ABANDON", RANGES) == b"OK"
        wait_until(lambda: conn.call("DBSIZE") == 2, 30, "the keys are deleted")
    wait_until(lambda: status(target)["slots_being_deleted"] == "0", 10,
               "the deletion has ended")
    assert status(target)["slot_pulls"] == "0"
    wait_until(lambda: "slot_puller0" not in info(source), 10,
               "the source sees that the pull has ended")
    target.crash()
    target.restart()
    with target.conn() as conn:
        assert sorted(conn.call("KEYS", "*")) == [b"{out1}n", b"{out2}n"]


def test_what_cannot_be_taken_over_says_why(group, member):
    source, target = member(), member()
    plain = group.node()
    lose(target)
    with target.conn() as conn:
        for words, text in (
                ((RANGES, "bad host", "1"), "Invalid host"),
                ((RANGES, "localhost", "0"), "Invalid port"),
                (("16384", "localhost", "1"), "slots are numbers")):
            with pytest.raises(resp.Error, match=text):
                raise_error(conn.call("SIDECAR", "PREPARE", *words))
        with pytest.raises(resp.Error, match="not being taken over"):
            raise_error(conn.call("SIDECAR", "FINISH", RANGES, "0" * 40, "1"))
    prepare(target, plain)
    wait_until(lambda: "stands beside no node" in pull_of(target)["reason"], 20,
               "the reason is shown")
    with target.conn() as conn:
        with pytest.raises(resp.Error, match="already"):
            raise_error(conn.call("SIDECAR", "PREPARE", RANGES, "::1", "1"))
        assert conn.call("SIDECAR", "ABANDON", RANGES) == b"OK"
    wait_until(lambda: status(target)["slot_pulls"] == "0", 10, "it has ended")
    with source.conn() as conn:
        conn.call("CONFIG", "SET", "requirepass", "secret")
    prepare(target, source)
    wait_until(lambda: "masterauth" in pull_of(target)["reason"], 20,
               "the reason is shown")


def raise_error(reply):
    if isinstance(reply, resp.Error):
        raise reply


def test_pulls_run_one_after_the_other(member):
    source, target = member(), member()
    with source.conn() as conn:
        for tag in IN:
            conn.call("BF.ADD", "{%s}n" % tag, "a")
    lose(target)
    prepare(target, source, str(SLOTS[0]))
    prepare(target, source, ",".join(map(str, SLOTS[1:])))
    wait_until(lambda: pull_of(target).get("state") == "follows", 20, "one")
    assert "state=queued" in status(target)["slot_pull1"]
    got = info(source)
    with target.conn() as conn:
        assert conn.call("DBSIZE") == 1
        conn.call("SIDECAR", "FINISH", str(SLOTS[0]), got["master_replid"],
                  got["master_repl_offset"])
    wait_until(lambda: status(target)["slot_pulls_done"] == "1" and
               pull_of(target).get("state") == "follows", 20, "the other")
    with target.conn() as conn:
        assert conn.call("DBSIZE") == len(IN)
        shown = conn.call("INFO", "cluster").decode().split("\r\n")
    # What has come, and the transfer that is still under way.
    assert {"cluster_transfers:1", "cluster_transfers_done:1",
            "cluster_transfers_failed:0", "cluster_transferred_slots:1",
            "cluster_transferred_keys:1"} <= set(shown)
