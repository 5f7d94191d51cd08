# SPDX-License-Identifier: BSD-3-Clause
#
# Three servers, three Sentinels, and programs that add items all the time. Once the
# Sentinels are told to fail over, once the primary is killed. After each, every
# program must add again. A program stops at the end of its input.

import os
import subprocess

from lib import failover
from lib.replicas import Faults, node
from lib.servers import Oracle, wait_until

GOES_ON = 10     # adds that show it
SECONDS = 30     # for them


class StandIn(Faults, Oracle):
    """A redis-server instead of a bloomery-server."""

    def __init__(self, *options):
        super().__init__("--repl-diskless-sync-delay", "0", *options)


class Program:
    """A program that adds items to `key`."""

    def __init__(self, number, dialect):
        self.key = "client-%d" % number
        self.dialect = dialect
        self.card = "SCARD" if dialect == "redis-server" else "BF.CARD"

    def start(self, argv, env, port, *rest):
        self.child = subprocess.Popen(
            [*argv, str(port), self.dialect, self.key, *map(str, rest)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
            env=dict(os.environ, **env))
        return self

    def count(self, primary):
        """Returns how many items it has added."""
        with primary.conn() as conn:
            return conn.call(self.card, self.key)

    def ended(self):
        return self.child.poll() is not None

    def end(self):
        """Returns its output and exit status."""
        try:
            output, _ = self.child.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.child.kill()
            output, _ = self.child.communicate()
            output += "\nnot ok run: it does not end"
        return output.rstrip(), self.child.returncode


def reserve(program, cluster):
    """Makes its filter with so few false positives that none hides a loss."""
    if program.dialect != "redis-server":
        with cluster.primary().conn() as conn:
            assert conn.call("BF.RESERVE", program.key, "0.0000001",
                             100000) == b"OK"


def wait_all(programs, primary, area="failover"):
    """Waits until each program adds again or has ended. A program that does not add
    reports that itself, because it measures its interruptions."""
    begun = [p.count(primary) for p in programs]

    def go_on():
        return all(p.ended() or p.count(primary) >= begun[n] + GOES_ON
                   for n, p in enumerate(programs))

    try:
        wait_until(go_on, SECONDS, "all add", 0.1)
    except AssertionError:
        return ["not ok %s RESP3 %s: it does not add" % (area, p.key)
                for n, p in enumerate(programs)
                if not p.ended() and p.count(primary) < begun[n] + GOES_ON]
    return []


def run(makes, dialect):
    """Runs programs, given as (argv, env); returns ([(output, exit status)], lines
    about the servers)."""
    options = {"make": StandIn} if dialect == "redis-server" else {
        "make": node, "options": [("--dialect", dialect)] * 3}
    programs, trouble = [], []
    try:
        with failover.Cluster(1, writers=0, sentinels=failover.SHORT,
                              **options) as cluster:
            try:
                ports = [s.port for s in cluster.watch.sentinels]
                for number, how in enumerate(makes):
                    program = Program(number, dialect)
                    reserve(program, cluster)
                    programs.append(program.start(*how, *ports))
                trouble += wait_all(programs, cluster.primary())
                for fault in ("command", "kill"):
                    told = cluster.round(fault)
                    trouble.append("note " + str(told))
                    trouble += wait_all(programs, told.new)
            finally:
                outputs = end_all(programs)
    except (AssertionError, OSError, RuntimeError) as problem:
        trouble.append("not ok servers: " + str(problem).replace("\n", " / "))
        return end_all(programs), trouble
    return outputs, trouble


def end_all(programs):
    """Ends the programs while the servers still run, so that they can check their
    items."""
    for program in programs:
        if program.child.stdin and not program.child.stdin.closed:
            program.child.stdin.close()
            program.child.stdin = None
    for program in programs:
        if not hasattr(program, "told"):
            program.told = program.end()
    return [p.told for p in programs]
