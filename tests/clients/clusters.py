# SPDX-License-Identifier: BSD-3-Clause
#
# Three primaries and three replicas with a server beside each, and programs that add
# items all the time. Meanwhile slots move and a replica takes over. After each,
# every program must add again. A program stops at the end of its input.
# The command line tools run once in the same cluster.

import failovers
from lib import cluster, servers, slots, tools
from lib.servers import wait_until

KEYS = 20        # of each program: client-0-0 and so on
MOVED = 200      # slots
# A daemon's lease is a quarter of it. Clients that start may stop it for longer than
# a quarter of the test bed's own timeout.
PATIENT = ("--cluster-node-timeout", 5000)


class Program(failovers.Program):
    """A program that adds items to `KEYS` keys, whose names begin with `key`."""

    def count(self, client):
        keys = ["%s-%d" % (self.key, n) for n in range(KEYS)]
        return sum(client.call(key, self.card, key)[0] for key in keys)

    def wait_adds(self, client):
        """Waits until its first checks are over. The start of a client takes the
        processors, and defaults of 250 ms for an answer are too short then."""
        wait_until(lambda: self.ended() or self.count(client) > 0,
                   failovers.SECONDS, "%s adds" % self.key, 0.05)


def missing(dialect):
    """Returns why there is no cluster, or None."""
    if dialect != "redis-server" and not cluster.has_sidecar():
        return "the server has no sidecar-of"
    return servers.oracle_missing()


def move(made):
    """Moves slots to another primary while the programs add."""
    to, other = made.primaries()[:2]
    first, last = made.view()[other.node.id].ranges[0]
    made.reshard(range(first, min(first + MOVED, last)), to)
    made.wait_settled()


def fail_over(made):
    made.failover(made.replicas_of(made.primaries()[0])[0])
    made.wait_settled()


def run(makes, dialect):
    """Runs programs, given as (argv, env); returns ([(output, exit status)], lines
    about the servers and the tools)."""
    kind = "redis" if servers.valkey_missing() else "valkey"
    bloom = dialect != "redis-server"
    options = ("--dialect", dialect) if bloom else ()
    programs, trouble = [], []
    try:
        with cluster.Cluster(kind, daemons=bloom, options=PATIENT,
                             daemon_options=options) as made, \
                made.client() as client:
            try:
                trouble += tools_in(made, bloom)
                for number, how in enumerate(makes):
                    programs.append(Program(number, dialect).start(
                        *how, made.addresses()[0][1]))
                    programs[-1].wait_adds(client)
                trouble += failovers.wait_all(programs, client, "cluster")
                for change in (move, fail_over):
                    change(made)
                    trouble += failovers.wait_all(programs, client, "cluster")
            finally:
                outputs = failovers.end_all(programs)
    except (AssertionError, OSError, RuntimeError, slots.Refused) as problem:
        trouble.append("not ok servers: " + str(problem).replace("\n", " / "))
        return failovers.end_all(programs), trouble
    return outputs, trouble


# ---- redis-cli, redis-benchmark

class At:
    def __init__(self, address):
        self.port = address[1]


def tools_in(made, bloom):
    """Yields the lines of the command line tools."""
    server = At(made.addresses()[0])
    add, exists = ("BF.ADD", "BF.EXISTS") if bloom else ("SADD", "SISMEMBER")
    for what, body in (
            ("redis-cli -c", lambda: cli_follows(server, add, exists)),
            ("redis-cli --cluster check", lambda: cli_checks(server)),
            ("redis-benchmark --cluster", lambda: benchmark(server, add))):
        try:
            body()
            yield "ok cluster RESP2 " + what
        except AssertionError as problem:
            yield "not ok cluster RESP2 %s: %s" % (
                what, str(problem).replace("\n", " / ")[-300:])


def cli_follows(server, add, exists):
    for n in range(10):
        for word, want in ((add, "1"), (exists, "1"), (add, "0")):
            got = tools.cli(server, "-c", word, "cli-%d" % n, "item").split()[-1]
            assert got == want, "%s: %s" % (word, got)


def cli_checks(server):
    got = tools.cli(server, "--cluster", "check", "127.0.0.1:%d" % server.port)
    for line in ("[OK] All nodes agree about slots configuration.",
                 "[OK] All 16384 slots covered."):
        assert line in got, got


def benchmark(server, add):
    got = tools.run(server, "redis-benchmark", "--cluster", "-n", "3000", "-c", "6",
                    "-q", add, "bench:{tag}", "__rand_int__")
    text = (got.stdout + got.stderr).decode()
    assert got.returncode == 0 and "requests per second" in text and \
        "Error" not in text, text
