# SPDX-License-Identifier: BSD-3-Clause
#
# Hash slots, and a small cluster client. The client does what cluster clients do:
# it keeps a map of the slots and follows MOVED, ASK, TRYAGAIN and CLUSTERDOWN. It
# does this within bounds, and notes the way of each command, so that tests can judge
# how many redirects there were.

import binascii
import random
import re
import socket
import time

from lib import resp
from lib.servers import time_factor

SLOTS = 16384
REDIRECTS = 5          # without a pause between them; more are a loop
PAUSE_S = 0.02         # before the next try, after TRYAGAIN and its like
TRY_S = 1.0            # for one reply
GONE = (OSError, resp.Closed, resp.Malformed)


def slot_of(key):
    """Returns the slot of a key: CRC16 of its tag in braces, or of all of it."""
    key = resp.as_bytes(key)
    begin = key.find(b"{")
    if begin >= 0:
        end = key.find(b"}", begin + 1)
        if end > begin + 1:
            key = key[begin + 1:end]
    return binascii.crc_hqx(key, 0) % SLOTS


def all_tags():
    """Returns a short text for each slot that hashes to this slot."""
    found, left, number = [None] * SLOTS, SLOTS, 0
    while left:
        text = "%x" % number
        slot = slot_of(text)
        if found[slot] is None:
            found[slot] = text
            left -= 1
        number += 1
    return found


TAGS = []


def key_in(slot, name="k"):
    """Returns a key of this slot."""
    if not TAGS:
        TAGS.extend(all_tags())
    return "%s{%s}" % (name, TAGS[slot])


def ranges_of(slots):
    """Returns [(first, last)] of a set of slots."""
    ranges = []
    for slot in sorted(slots):
        if ranges and ranges[-1][1] == slot - 1:
            ranges[-1][1] = slot
        else:
            ranges.append([slot, slot])
    return [tuple(r) for r in ranges]


class Refused(Exception):
    """A command that got no answer in its time. kind: the last reason."""

    def __init__(self, kind, way):
        super().__init__("%s, after %s" % (kind, way))
        self.kind = kind
        self.way = way


class Way:
    """What happened to one command: [(port, what it answered)]."""

    def __init__(self):
        self.hops = []
        self.redirects = 0      # in a row, without a pause
        self.most = 0           # the most of them
        self.port = None        # of the node that answered

    def hop(self, port, kind):
        self.hops.append((port, kind))
        self.port = port
        self.redirects = self.redirects + 1 if kind in ("MOVED", "ASK") else 0
        self.most = max(self.most, self.redirects)

    def __str__(self):
        return " ".join("%d:%s" % hop for hop in self.hops[-12:])


class Client:
    """For one thread. addresses: a function that returns where the nodes may be.
    connect: resp.Conn, or a function with its arguments."""

    def __init__(self, addresses, seconds=20.0, rng=random, password=None,
                 connect=resp.Conn):
        self.connect = connect
        self.addresses = addresses
        self.seconds = seconds
        self.rng = rng
        self.password = password
        self.map = {}
        self.conns = {}
        self.loops = []         # Ways with more redirects than allowed
        self.most = 0           # redirects of any command

    def close(self):
        for conn in self.conns.values():
            conn.close()
        self.conns.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def conn(self, address):
        conn = self.conns.get(address)
        if conn is None:
            conn = self.connect(address, timeout=TRY_S * time_factor(),
                                password=self.password)
            self.conns[address] = conn
        return conn

    def drop(self, address):
        conn = self.conns.pop(address, None)
        if conn is not None:
            conn.close()

    def refresh(self):
        """Asks one node for the map. If it does not answer, the map is empty, and
        commands go anywhere."""
        self.map = {}
        address = self.rng.choice(self.addresses())
        try:
            got = self.conn(address).call("CLUSTER", "SLOTS")
        except GONE:
            self.drop(address)
            return
        if isinstance(got, resp.Error):
            return
        for first, last, owner, *_ in got:
            host = owner[0].decode() if owner[0] else address[0]
            for slot in range(first, last + 1):
                self.map[slot] = (host, owner[1])

    def call(self, key, *words, seconds=None):
        """Returns the reply and the Way to it; raises Refused at the deadline."""
        deadline = time.monotonic() + (seconds or self.seconds)
        slot, way, asking = slot_of(key), Way(), False
        if not self.map:
            self.refresh()
        address = self.map.get(slot)
        while True:
            address = address or self.rng.choice(self.addresses())
            reply, kind = self.once(address, words, asking)
            way.hop(address[1], kind)
            self.most = max(self.most, way.most)
            if way.redirects == REDIRECTS + 1:
                self.loops.append(way)
            if kind == "ok":
                return reply, way
            if time.monotonic() > deadline:
                raise Refused(kind, way)
            asking = kind == "ASK"
            if kind in ("MOVED", "ASK") and way.redirects <= REDIRECTS:
                address = moved_to(reply, address)
                if kind == "MOVED":
                    self.map[slot] = address
                continue
            time.sleep(PAUSE_S)
            way.redirects, asking = 0, False
            if kind != "TRYAGAIN":
                self.refresh()
                address = self.map.get(slot)

    def once(self, address, words, asking):
        """Returns the reply of one node and its kind: ok, lost, or the first word
        of an error."""
        try:
            conn = self.conn(address)
            if asking:
                conn.send(resp.command("ASKING") + resp.command(*words))
                conn.read()
            else:
                conn.send(resp.command(*words))
            reply = conn.read()
        except (*GONE, socket.timeout, AssertionError):
            self.drop(address)
            return None, "lost"
        if isinstance(reply, resp.Error):
            kind = str(reply).split()[0]
            if kind in AGAIN:
                return reply, kind
        return reply, "ok"


# The errors after which a client tries again. READONLY and LOADING come from a
# node that changes its role or starts.
AGAIN = {"MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "LOADING", "READONLY",
         "MASTERDOWN"}


def moved_to(reply, address):
    """Returns the address in a redirect; without a host it is the same host."""
    _, _, where = str(reply).split()
    host, port = re.fullmatch(r"(.*):(\d+)", where).groups()
    return (host or address[0], int(port))
