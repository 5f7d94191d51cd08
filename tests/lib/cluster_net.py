# SPDX-License-Identifier: BSD-3-Clause
#
# A network for a cluster whose links can be cut. Each pair of a node and its daemon is
# in a network namespace of its own, and has an address there. The test is in another
# namespace, from which it always reaches all pairs. A cut link loses packets silently,
# because their sender has a wrong hardware address. It works in one direction, too.
# This needs root and Linux; the namespaces end with the processes in them.

import ctypes
import os
import subprocess

CLONE_NEWNET = 0x40000000
NOBODY = "02:00:00:00:ff:ff"


def missing():
    """Returns why there is no such network, or None."""
    try:
        got = subprocess.run(
            ["unshare", "-n", "ip", "link", "add", "v0", "type", "veth", "peer",
             "name", "v1"], capture_output=True, text=True)
    except OSError as problem:
        return str(problem)
    return got.stderr.strip() or None


def mac(number):
    return "02:00:00:00:00:%02x" % number


class Place:
    """One namespace: of a pair, or of the test."""

    def __init__(self, number):
        self.number = number
        self.host = "10.77.0.%d" % number
        self.cut = set()        # the places that it does not reach
        self.holder = subprocess.Popen(
            ["unshare", "-n", "sh", "-c", "echo; exec sleep infinity"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        # The command before a program that runs here.
        self.inside = ["nsenter", "--net=/proc/%d/ns/net" % self.holder.pid]

    def ip(self, text, *more):
        got = subprocess.run([*self.inside, "ip", *text.split(), *more],
                             capture_output=True, text=True)
        assert got.returncode == 0, (text, got.stderr)

    def close(self):
        self.holder.stdout.close()
        self.holder.kill()
        self.holder.wait()


class Network:
    """The test's process is inside from open to close, so that all of its sockets,
    threads and children are."""

    def __init__(self):
        self.hub = Place(1)
        self.places = []
        self.hub.ip("link set lo up")
        self.hub.ip("link add br0 type bridge")
        self.hub.ip("addr add 10.77.0.1/24 dev br0")
        self.hub.ip("link set br0 up address " + mac(1))
        self.outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        inside = os.open("/proc/%d/ns/net" % self.hub.holder.pid, os.O_RDONLY)
        enter(inside)
        os.close(inside)

    def close(self):
        enter(self.outside)
        os.close(self.outside)
        for place in [*self.places, self.hub]:
            place.close()

    def add(self):
        """Returns a new place, which is linked with all others."""
        place = Place(len(self.places) + 2)
        name = "v%d" % place.number
        self.hub.ip("link add %s type veth peer name eth0 address %s netns %d" % (
            name, mac(place.number), place.holder.pid))
        self.hub.ip("link set %s master br0 up" % name)
        place.ip("link set lo up")
        place.ip("addr add %s/24 dev eth0" % place.host)
        place.ip("link set eth0 up")
        for other in [self.hub, *self.places]:
            self.point(place, other)
            self.point(other, place)
        self.places.append(place)
        return place

    def move(self, place):
        """Gives a place another address, as a pod has after a restart."""
        old, at = place.host, int(place.host.rsplit(".", 1)[1])
        place.host = "10.77.0.%d" % (at + 50 if at < 200 else at - 150)
        place.ip("addr del %s/24 dev eth0" % old)
        place.ip("addr add %s/24 dev eth0" % place.host)
        for other in [self.hub, *self.places]:
            if other is not place:
                self.point(place, other)
                self.point(other, place)

    def point(self, place, other):
        """Tells a place the hardware address of another, or a wrong one."""
        place.ip("neigh replace %s lladdr %s dev %s nud permanent" % (
            other.host, NOBODY if other in place.cut else mac(other.number),
            "br0" if place is self.hub else "eth0"))

    def cut(self, some, others, both_ways=True):
        """Cuts the links from some places to others."""
        for place in some:
            for other in others:
                place.cut.add(other)
                self.point(place, other)
        if both_ways:
            self.cut(others, some, both_ways=False)

    def heal(self):
        for place in self.places:
            healed, place.cut = place.cut, set()
            for other in healed:
                self.point(place, other)


def enter(namespace):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
