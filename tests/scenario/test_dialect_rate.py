# SPDX-License-Identifier: BSD-3-Clause
#
# The error rate of a filter's first layer in each dialect, and the promise for all
# layers together. A rate is halved only once, at creation: not by replay,
# replication, COPY, BF.RESET, BF.MERGE or the other dialect.

import random
import re

import pytest

from lib import replicas, servers

LAYERS = 4
CAPACITY = 20000
ABSENT = 200000
A_CALL = 1000
SIGMAS = 5


def fill(conn, key, rng):
    """Adds items until the filter has LAYERS full layers."""
    full = CAPACITY * (2 ** LAYERS - 1)
    items = 0
    while items < full:
        batch = ["%x" % rng.getrandbits(64)
                 for _ in range(min(A_CALL, full - items))]
        items += sum(conn.call("BF.MADD", key, *batch))
    return conn.call("BF.CARD", key), full


def measured_rate(conn, key, rng):
    found = 0
    for _ in range(ABSENT // A_CALL):
        found += sum(conn.call("BF.MEXISTS", key, *(
            "absent-%x" % rng.getrandbits(64) for _ in range(A_CALL))))
    return found / ABSENT


@pytest.mark.parametrize("dialect,bound,above", [
    ("redis", 0.01, 0.005), ("valkey", 0.02, 0.01)])
def test_compound_rate_of_four_full_layers(start_server, dialect, bound,
                                           above):
    seed = random.getrandbits(32)
    print("seed", seed)
    rng = random.Random(seed)
    server = start_server("--dialect", dialect)
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "0.01", CAPACITY)
        card, full = fill(conn, "k", rng)
        assert card == full
        layers = conn.call("BF.DEBUG", "k")[1:]
        assert len(layers) == LAYERS
        assert b" size:%d " % (CAPACITY * 2 ** (LAYERS - 1)) in layers[-1]
        rate = measured_rate(conn, "k", rng)
    slack = SIGMAS * (bound / ABSENT) ** 0.5
    assert above < rate < bound + slack, rate
    if dialect == "redis":
        # Four layers of 0.95 x (0.005 + 0.0025 + ...): 0.0089.
        assert abs(rate - 0.0089) < slack, rate


def ratios(conn, key):
    return [float(re.search(rb"ratio:(\S+)", layer).group(1))
            for layer in conn.call("BF.DEBUG", key)[1:]]


MADE = {  # key: (how it is made, the rate of its first layer)
    "add": (("BF.ADD", "add", "x"), 0.005),
    "madd": (("BF.MADD", "madd", "x", "y"), 0.005),
    "reserve": (("BF.RESERVE", "reserve", "0.02", "50"), 0.01),
    "insert": (("BF.INSERT", "insert", "ERROR", "0.03", "CAPACITY", "5",
                "ITEMS", "x"), 0.015),
    "cut": (("BF.RESERVE", "cut", "0.9", "50"), 0.125),
    "whole": (("BF.RESERVE", "whole", "0.02", "50", "NONSCALING"), 0.02),
    "zero": (("BF.INSERT", "zero", "EXPANSION", "0", "ITEMS", "x"), 0.01),
}


def assert_rates(conn):
    for key, (_, rate) in MADE.items():
        assert ratios(conn, key)[0] == rate, key


def test_a_rate_is_halved_once(start_server):
    options = ("--appendonly", "yes", "--dialect", "redis")
    server = replicas.node(*options)
    follower = replicas.node(*options, "--replicaof",
                             "127.0.0.1 %d" % server.port)
    try:
        with server.conn() as conn, follower.conn() as other:
            for command, _ in MADE.values():
                conn.call(*command)
            assert_rates(conn)
            # One more layer derives its rate from the first one in each
            # dialect.
            for dialect in ("valkey", "redis"):
                conn.call("CONFIG", "SET", "dialect", dialect)
                conn.call("BF.MADD", "insert",
                          *("%s%d" % (dialect, i) for i in range(20)))
            assert ratios(conn, "insert")[:3] == [0.015, 0.0075, 0.00375]
            conn.call("COPY", "insert", "copied")
            conn.call("BF.MERGE", "merged", "reserve")
            conn.call("RENAME", "copied", "renamed")
            conn.call("BF.RESET", "renamed")
            payload = conn.call("DUMP", "reserve")
            conn.call("RESTORE", "restored", 0, payload)
            made = (("renamed", 0.015), ("merged", 0.01), ("restored", 0.01))
            for key, rate in made:
                assert ratios(conn, key)[0] == rate, key
            conn.call("CONFIG", "SET", "dialect", "valkey")
            assert conn.call("BF.INFO", "add", "ERROR") == b"0.005"
            conn.call("CONFIG", "SET", "dialect", "redis")
            assert conn.call("WAIT", 1, 20000) == 1
            assert_rates(other)
            for key, rate in made:
                assert ratios(other, key)[0] == rate, key
            before = {key: conn.call("DEBUG", "DIGEST-VALUE", key)
                      for key in MADE}
            for key, digest in before.items():
                assert other.call("DEBUG", "DIGEST-VALUE", key) == digest
        server.crash()
        server.restart()
        with server.conn() as conn:
            assert_rates(conn)
            for key, digest in before.items():
                assert conn.call("DEBUG", "DIGEST-VALUE", key) == digest
            conn.call("BGREWRITEAOF")
            servers.wait_until(
                lambda: b"aof_rewrite_in_progress:0" in
                conn.call("INFO", "persistence"), what="rewrite")
        server.crash()
        server.restart("--dialect", "valkey")
        with server.conn() as conn:
            assert_rates(conn)
    finally:
        follower.stop()
        server.stop()
