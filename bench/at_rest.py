#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures what a server beside a node of a cluster costs while nothing happens: the
# CPU time a second of all its threads (schedstat), beside 30 primaries, beside 6 that
# speak TLS to each other, and beside 6 that own every sixth slot. The servers are
# real and ask each other; the nodes are made up (tests/lib/neighbour.py).
"""Measure the CPU time of servers in a cluster at rest."""

import pathlib
import statistics
import sys
import tempfile
import time

import servers

sys.path.append(str(servers.ROOT / "tests"))

from lib import neighbour, tls  # noqa: E402
from lib import servers as lib_servers  # noqa: E402
from lib.servers import wait_until  # noqa: E402
from watching import cpu_ns  # noqa: E402

WARM_S, SECONDS, QUICK_SECONDS = 5, 20, 5
SLOTS = 16384
CASES = (  # name, primaries, TLS, alternating slots, mark in ms a second
    ("30 primaries", 30, False, False, 6),
    ("6 primaries with TLS", 6, True, False, 5),
    ("6 primaries, alternating slots", 6, False, True, 10),
)


def slots_of(index, count, alternating):
    """Return the slots of a node as CLUSTER NODES has them."""
    if alternating:
        return " ".join(map(str, range(index, SLOTS, count)))
    first, last = index * SLOTS // count, (index + 1) * SLOTS // count - 1
    return f"{first}-{last}"


class Cluster:
    """Servers beside made-up nodes, each with its part of the slots."""

    def __init__(self, binary, count, files, alternating):
        self.nodes = [neighbour.Neighbour() for _ in range(count)]
        ports = [lib_servers.free_port() for _ in range(count)]
        secure = [lib_servers.free_port() for _ in range(count)] if files else []
        self.servers = []
        ids = [f"{index + 1:040x}" for index in range(count)]
        places = " ".join(
            f"{ident}=127.0.0.1:{port}" for ident, port in
            zip(ids, secure)) if files else ""
        for at, made in enumerate(self.nodes):
            made.say(myid=ids[at], nodes=[
                neighbour.node(ids[i], ports[i], "master" if i != at else
                               "myself,master", epoch=i + 1,
                               slots=slots_of(i, count, alternating))
                for i in range(count)])
        for at, made in enumerate(self.nodes):
            folder = tempfile.mkdtemp(prefix="bloomery-rest-")
            words = [binary, "--dir", folder, "--loglevel", "warning",
                     "--sidecar-of", made.address, "--sidecar-port-offset",
                     str(neighbour.OFFSET)]
            if files:
                words += ["--port", "0", "--sidecar-map", places,
                          *map(str, files.options(secure[at])),
                          "--tls-replication", "yes"]
            else:
                words += ["--port", str(ports[at])]
            self.servers.append(lib_servers.Process(
                words, secure[at] if files else ports[at], folder))

    def wait(self):
        """Wait until each server serves all slots of its node."""
        for made in self.nodes:
            made.wait_looks(5)
        time.sleep(WARM_S)

    def cost_ms(self, seconds):
        """Return the CPU time a second of each server."""
        before = [cpu_ns(one.pid) for one in self.servers]
        began = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        return [(cpu_ns(one.pid) - was) / 1e6 / took
                for one, was in zip(self.servers, before)]

    def close(self):
        """End all of them."""
        for one in self.servers:
            one.child.terminate()
        for one in self.servers:
            one.child.wait(60)
        for made in self.nodes:
            made.close()


def measure(binary, case, seconds):
    """Return the median of the servers' CPU time a second, in ms."""
    _, count, secure, alternating, _ = case
    with tempfile.TemporaryDirectory() as folder:
        files = tls.Files(pathlib.Path(folder)) if secure else None
        made = Cluster(binary, count, files, alternating)
        try:
            wait_until(lambda: all(one.accepts() for one in made.servers), 60,
                       "the servers answer")
            made.wait()
            costs = made.cost_ms(seconds)
        finally:
            made.close()
    return statistics.median(costs), max(costs)


def main():
    """Measure all cases."""
    parser = servers.arguments(__doc__, "measure for a shorter time")
    parser.add_argument("--only", type=int, help="one case, from 0 on")
    options = parser.parse_args()
    servers.exit_on_sigterm()
    seconds = QUICK_SECONDS if options.quick else SECONDS
    binary = str(options.build.resolve() / "bloomery-server")
    print("| a second of a server at rest beside | mark | median | most | met |")
    print("|---|---|---|---|---|")
    for index, case in enumerate(CASES):
        if options.only not in (None, index):
            continue
        median, most = measure(binary, case, seconds)
        print(f"| {case[0]} | {case[4]} ms | {median:.1f} ms | {most:.1f} ms | "
              f"{'yes' if median <= case[4] else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
