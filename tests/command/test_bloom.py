# SPDX-License-Identifier: BSD-3-Clause
#
# Properties of the BF commands that a transcript cannot express: relations between
# figures, seeds, and error rates. Random tests print their seed.

import math
import random

import pytest

from lib import resp

SEED = "0123456789abcdef0123456789abcdef"


def fields(conn, key):
    flat = conn.call("BF.INFO", key)
    return dict(zip(flat[::2], flat[1::2]))


def test_size_is_structs_and_lines(server):
    with server.conn() as conn:
        conn.call("BF.RESERVE", "a", "0.01", "100")
        conn.call("BF.RESERVE", "b", "0.01", "100")
        size = conn.call("BF.INFO", "a", "SIZE")
        # Two lines of 64 bytes and the structs of one filter and one layer.
        assert 128 <= size <= 128 + 1024
        assert conn.call("BF.INFO", "b", "SIZE") == size
        conn.call("BF.ADD", "a", "x")
        assert conn.call("BF.INFO", "a", "SIZE") == size
        assert fields(conn, "a")[b"Size"] == size
        assert conn.call("MEMORY", "USAGE", "a") >= size
        conn.call("BF.RESERVE", "c", "0.01", "1000000")
        large = conn.call("BF.INFO", "c", "SIZE")
        classic = 1000000 * -math.log(0.01) / math.log(2) ** 2 / 8
        assert classic < large < 1.12 * classic
        conn.call("BF.RESERVE", "n", "0.01", "1000000", "NONSCALING")
        assert abs(conn.call("BF.INFO", "n", "SIZE") - large) <= 64


def test_size_grows_with_each_layer(server):
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "1e-9", "10", "EXPANSION", "1")
        sizes = [conn.call("BF.INFO", "k", "SIZE")]
        for layer in range(1, 6):
            for item in range(10):
                conn.call("BF.ADD", "k", "%d-%d" % (layer, item))
            conn.call("BF.ADD", "k", "next-%d" % layer)
            conn.call("BF.INFO", "k", "SIZE")
            sizes.append(conn.call("BF.INFO", "k", "SIZE"))
        assert sizes == sorted(set(sizes))


def test_equal_seeds_give_equal_filters(server):
    with server.conn() as conn:
        for key in ("a", "b"):
            conn.call("BF.INSERT", key, "CAPACITY", "100", "ERROR", "0.2",
                      "SEED", SEED, "ITEMS", *range(100))
        conn.call("BF.INSERT", "c", "CAPACITY", "100", "ERROR", "0.2", "SEED",
                  SEED[::-1], "ITEMS", *range(100))
        probes = ["p%d" % i for i in range(5000)]
        hits = {k: conn.call("BF.MEXISTS", k, *probes) for k in "abc"}
        assert hits["a"] == hits["b"]
        assert hits["a"] != hits["c"], "another seed, other false positives"
        assert sum(hits["a"]) > 0


def test_random_seeds_differ_and_the_fixed_one_does_not(server):
    probes = ["p%d" % i for i in range(5000)]

    def hits(conn, key):
        conn.call("BF.INSERT", key, "CAPACITY", "100", "ERROR", "0.2", "ITEMS",
                  *range(100))
        return conn.call("BF.MEXISTS", key, *probes)

    with server.conn() as conn:
        assert hits(conn, "r1") != hits(conn, "r2")
        conn.call("CONFIG", "SET", "bf.bloom-use-random-seed", "no")
        assert hits(conn, "f1") == hits(conn, "f2")
        conn.call("BF.INSERT", "f3", "CAPACITY", "100", "ERROR", "0.2", "SEED",
                  bytes.fromhex("590ff522ea7811daa714d8093b3e7bd91d898a733e9888"
                                "87307f97cd28073383"), "ITEMS", *range(100))
        assert conn.call("BF.MEXISTS", "f3", *probes) == \
            conn.call("BF.MEXISTS", "f1", *probes)


@pytest.mark.parametrize("rate,filters", [(0.1, 20), (0.01, 20), (0.001, 20)])
def test_measured_rate_of_fixed_filters(server, rate, filters):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    hits = probes = 0
    with server.conn() as conn:
        for f in range(filters):
            key = "k%d" % f
            conn.call("BF.RESERVE", key, rate, "5000", "NONSCALING")
            added = conn.call("BF.MADD", key,
                              *["%d-%d-%d" % (seed, f, i) for i in range(5000)])
            # Refused as present, then there is room for others.
            assert added.count(0) <= 5000 * rate * 2
            hits += sum(conn.call("BF.MEXISTS", key,
                                  *["no-%d-%d-%d" % (seed, f, i)
                                    for i in range(5000)]))
            probes += 5000
    sigma = math.sqrt(probes * rate * (1 - rate))
    print("rate %g measured %g" % (rate, hits / probes))
    assert hits <= probes * rate + 4 * sigma
    assert hits > 0 or probes * rate < 20


def test_measured_rate_of_a_scaled_filter(server):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    hits = probes = 0
    with server.conn() as conn:
        for f in range(5):
            key = "k%d" % f
            conn.call("BF.RESERVE", key, "0.01", "100")
            for part in range(10):
                conn.call("BF.MADD", key, *["%d-%d-%d-%d" % (seed, f, part, i)
                                            for i in range(1000)])
            hits += sum(conn.call("BF.MEXISTS", key, *["no-%d-%d-%d" % (
                seed, f, i) for i in range(20000)]))
            probes += 20000
    limit = 0.02
    sigma = math.sqrt(probes * limit * (1 - limit))
    print("measured %g" % (hits / probes))
    assert 0 < hits <= probes * limit + 4 * sigma


def test_random_operations_against_sets(server):
    """Adds and lookups over filters and sets: never a false negative, counts
    and lengths right, at most the false positives that the rates allow."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    truth, cards, false = {}, {}, 0
    with server.conn() as conn:
        for _ in range(3000):
            key = "k%d" % rng.randrange(8)
            items = [str(rng.randrange(3000)) for _ in range(rng.randrange(1, 30))]
            seen = truth.setdefault(key, set())
            op = rng.randrange(10)
            if op < 5:
                reply = conn.call("BF.MADD", key, *items)
                assert len(reply) == len(items)
                for item, added in zip(items, reply):
                    if added:
                        assert item not in seen, "added twice: " + item
                    elif item not in seen:
                        false += 1
                    seen.add(item)
                cards[key] = cards.get(key, 0) + sum(reply)
            elif op < 9:
                reply = conn.call("BF.MEXISTS", key, *items)
                for item, there in zip(items, reply):
                    assert there or item not in seen, "lost: " + item
            elif rng.random() < 0.1:
                conn.call("DEL", key)
                seen.clear()
                cards[key] = 0
            else:
                assert conn.call("BF.CARD", key) == cards.get(key, 0)
        assert conn.call("BF.MEXISTS", *(["k0"] + sorted(truth["k0"] or {"x"})))
    assert false < 0.02 * 8 * 3000 * 3


def test_default_filter_grows_along_the_documented_capacities(server):
    with server.conn() as conn:
        total = capacity = 100
        item = 0
        conn.call("BF.INSERT", "k", "ERROR", "1e-9")
        for layers in range(2, 9):
            while conn.call("BF.INFO", "k", "ITEMS") < total:
                room = total - conn.call("BF.INFO", "k", "ITEMS")
                conn.call("BF.MADD", "k", *range(item, item + room))
                item += room
            assert conn.call("BF.INFO", "k", "FILTERS") == layers - 1
            assert conn.call("BF.ADD", "k", item) == 1
            item += 1
            capacity *= 2
            total += capacity
            assert conn.call("BF.INFO", "k", "FILTERS") == layers
            assert conn.call("BF.INFO", "k", "CAPACITY") == total


def test_a_filter_has_1024_layers_at_most(server):
    many = resp.Error("ERR bloom object reached max number of filters")
    options = ("CAPACITY", "1", "ERROR", "1e-9", "EXPANSION", "1",
               "TIGHTENING", "0.9999")
    with server.conn() as conn:
        assert conn.call("BF.INSERT", "k", *options, "ITEMS",
                         *range(1024)) == [1] * 1024
        assert conn.call("BF.INFO", "k", "FILTERS") == 1024
        assert conn.call("BF.INFO", "k", "MAXSCALEDCAPACITY") == 1024
        assert conn.call("BF.ADD", "k", "more") == many
        assert conn.call("BF.MADD", "k", "5", "more", "6") == [0, many]
        assert conn.call("BF.INFO", "k", "FILTERS") == 1024
        assert conn.call("BF.MEXISTS", "k", *range(1024)) == [1] * 1024
        assert conn.call("BF.CARD", "k") == 1024
        assert conn.call("BF.INSERT", "v", *options, "VALIDATESCALETO",
                         "1025") == many
        assert conn.call("BF.INSERT", "v", *options, "VALIDATESCALETO",
                         "1024") == []


@pytest.mark.parametrize("rate,text", [
    ("0.01", b"0.01"), ("1e-6", b"0.000001"), ("1e-7", b"1e-7"),
    ("1.25e-5", b"1.25e-5"), ("0.1", b"0.1"), ("0.30000000000000004",
    b"0.30000000000000004"), ("0.3", b"0.3"), ("1e-100", b"1e-100"),
    ("0.999", b"0.999"), ("1.5e-10", b"1.5e-10"), ("0.0001234", b"1.234e-4"),
    ("0.000123", b"0.000123"),
])
def test_doubles_are_the_shortest_that_round_trip(server, rate, text):
    with server.conn(2) as two, server.conn(3) as three:
        two.call("BF.RESERVE", "k", rate, "1")
        assert two.raw("BF.INFO", "k", "ERROR") == \
            b"$%d\r\n%s\r\n" % (len(text), text)
        assert three.raw("BF.INFO", "k", "ERROR") == b",%s\r\n" % text


def test_integers_stay_integers_in_resp3(server):
    with server.conn(3) as conn:
        assert conn.raw("BF.ADD", "k", "a") == b":1\r\n"
        assert conn.raw("BF.EXISTS", "k", "a") == b":1\r\n"
        assert conn.raw("BF.MADD", "k", "a", "b") == b"*2\r\n:0\r\n:1\r\n"
        assert conn.raw("BF.INFO", "k").startswith(b"*16\r\n+Capacity\r\n:100\r\n")


def test_errors_of_a_batch_are_elements_in_both_protocols(server):
    for proto in (2, 3):
        with server.conn(proto) as conn:
            conn.call("DEL", "k")
            conn.call("BF.RESERVE", "k", "1e-9", "1", "NONSCALING")
            assert conn.call("BF.MADD", "k", "a", "b", "c") == [
                1, resp.Error("ERR non scaling filter is full")]
