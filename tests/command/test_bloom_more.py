# SPDX-License-Identifier: BSD-3-Clause
#
# Effects of the BF commands: both dialects create the same filters, also after a
# restart in the other dialect; commands beyond the modules are compared with sets; and
# other clients get events. Random tests print their seed.

import random
import threading
import time

import pytest

from lib import servers


def seed():
    value = random.randrange(1 << 32)
    print("seed", value)
    return value


# ---- the dialects ------------------------------------------------------------

def random_call(rng):
    """Words that both dialects read in the same way."""
    key = "k%d" % rng.randrange(6)
    items = ["i%d" % rng.randrange(400) for _ in range(rng.randrange(1, 20))]
    op = rng.randrange(20)
    if op < 6:
        return ["BF.MADD", key, *items]
    if op < 8:
        return [rng.choice(["BF.ADD", "BF.EXISTS"]), key, items[0]]
    if op < 11:
        return [rng.choice(["BF.MEXISTS", "BF.COUNTNEW"]), key, *items]
    if op < 14:
        words = ["BF.INSERT", key]
        if rng.randrange(2):
            words += ["CAPACITY", rng.randrange(1, 60)]
        if rng.randrange(2):
            words += ["ERROR", rng.choice(["0.2", "0.01", "1e-6"])]
        words += rng.choice([[], ["NONSCALING"], ["EXPANSION", 3]])
        words += ["NOCREATE"] * (rng.randrange(4) == 0)
        return words + ["ITEMS", *items]
    if op < 16:
        return ["BF.RESERVE", key, rng.choice(["0.2", "0.001"]),
                rng.randrange(1, 99)] + rng.choice([[], ["NONSCALING"]])
    if op < 18:
        return ["BF.MERGE", key] + \
            ["k%d" % rng.randrange(6) for _ in range(rng.randrange(1, 4))]
    return [rng.choice(["BF.RESET", "DEL", "BF.CARD"]), key]


def as_redis_makes_it(words):
    """The call that makes in dialect valkey what `words` make in dialect redis,
    where the first layer of a filter that scales has half the rate."""
    part = 1 if "NONSCALING" in words else 0.5
    if words[0] == "BF.RESERVE":
        return words[:2] + [repr(float(words[2]) * part)] + words[3:]
    if words[0] == "BF.INSERT":
        items = words.index("ITEMS")
        rate = words[words.index("ERROR") + 1] if "ERROR" in words[:items] \
            else "0.01"
        return words[:items] + ["ERROR", repr(float(rate) * part)] + \
            words[items:]
    return words


def state(conn):
    keys = sorted(conn.call("KEYS", "*"))
    probes = ["i%d" % i for i in range(400)]
    return {k: (conn.call("BF.DEBUG", k),
                [int(b) for b in conn.call("BF.MEXISTS", k, *probes)])
            for k in keys}


def test_random_calls_leave_equal_filters_in_both_dialects(start_server):
    """One server keeps to valkey, and is told the rates of the first layers; the
    other changes its mind, and is loaded again in either dialect."""
    rng = random.Random(seed())
    options = ["--bf.bloom-use-random-seed", "no", "--appendonly", "yes"]
    plain = start_server(*options)
    mixed = start_server(*options)
    dialect = "valkey"
    with plain.conn() as a, mixed.conn() as b, mixed.conn(3) as three:
        for _ in range(1500):
            if rng.randrange(10) == 0:
                dialect = rng.choice(["valkey", "redis"])
                assert b.call("CONFIG", "SET", "dialect", dialect) == b"OK"
                assert a.call("CONFIG", "SET", "bf.bloom-fp-rate", "0.005" if
                              dialect == "redis" else "0.01") == b"OK"
            words = random_call(rng)
            got, want = b.call(*words), a.call(*(
                as_redis_makes_it(words) if dialect == "redis" else words))
            assert got == want, words
            if words[0] in ("BF.MEXISTS", "BF.CARD"):
                assert three.call(*words) == want, words
        want = state(a)
        assert want and state(b) == want
    for dialect in ("redis", "valkey"):
        folder = mixed.folder
        mixed.child.terminate()
        assert mixed.wait_exit() == 0
        again = start_server(*options, "--dir", folder, "--dialect", dialect)
        with again.conn() as conn:
            assert state(conn) == want
        again.stop()


def test_a_dialect_changes_between_commands_only(start_server):
    """Every reply is whole in one dialect, while it is switched all the time."""
    server = start_server()
    end = time.monotonic() + 1
    errors = []

    def switch():
        with server.conn() as conn:
            while time.monotonic() < end:
                for dialect in ("redis", "valkey"):
                    if conn.call("CONFIG", "SET", "dialect", dialect) != b"OK":
                        errors.append("CONFIG SET failed")

    thread = threading.Thread(target=switch)
    seen = set()
    with server.conn(3) as conn:
        conn.call("BF.MADD", "k", "a", "b")
        thread.start()
        while time.monotonic() < end:
            seen.add(conn.raw("BF.MEXISTS", "k", "a", "c"))
            seen.add(conn.raw("BF.INFO", "k", "ITEMS"))
    thread.join()
    assert not errors
    assert seen <= {b"*2\r\n:1\r\n:0\r\n", b"*2\r\n#t\r\n#f\r\n", b":2\r\n",
                    b"%1\r\n+Number of items inserted\r\n:2\r\n"}


# ---- BF.COUNTNEW, BF.RESET, BF.MERGE -------------------------------------------

def test_countnew_tells_what_an_add_would_find(server):
    rng = random.Random(seed())
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "1e-9", "5000")
        truth = set()
        for _ in range(200):
            items = ["%d" % rng.randrange(3000)
                     for _ in range(rng.randrange(1, 60))]
            fresh = conn.call("BF.COUNTNEW", "k", *items)
            assert fresh == len(set(items) - truth)
            if rng.randrange(2):
                assert sum(conn.call("BF.MADD", "k", *items)) == fresh
                truth |= set(items)


def test_countnew_of_very_many(server):
    """In linear time, whatever is equal to what."""
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "1e-6", "100000")
        items = ["item:%d" % (i % 70000) for i in range(100000)]
        start = time.monotonic()
        assert conn.call("BF.COUNTNEW", "k", *items) == 70000
        assert conn.call("BF.COUNTNEW", "k", *["same"] * 100000) == 1
        assert conn.call("BF.COUNTNEW", "missing", *items) == 70000
        assert time.monotonic() - start < 5 * servers.time_factor()
        conn.call("BF.MADD", "k", *items[:50000])
        assert abs(conn.call("BF.COUNTNEW", "k", *items) - 20000) < 10
        assert conn.call("EXISTS", "missing") == 0


def test_merged_filters_have_all_items_and_keep_the_rate(start_server):
    server = start_server("--bf.bloom-use-random-seed", "no")
    rng = random.Random(seed())
    hits = probes = 0
    with server.conn() as conn:
        for f in range(10):
            parts = ["%d-%d" % (f, p) for p in range(4)]
            every = []
            for part in parts:
                items = ["%s-%d" % (part, rng.randrange(1 << 40))
                         for _ in range(1200)]
                conn.call("BF.RESERVE", part, "0.01", "5000", "NONSCALING")
                conn.call("BF.MADD", part, *items)
                every += items
            into = "all-%d" % f
            assert conn.call("BF.MERGE", into, *parts) == b"OK"
            assert set(conn.call("BF.MEXISTS", into, *every)) == {1}
            assert abs(conn.call("BF.CARD", into) - 4800) < 150
            hits += sum(conn.call("BF.MEXISTS", into,
                                  *["no-%d-%d" % (f, i) for i in range(5000)]))
            probes += 5000
            # No room for as much again.
            refused = conn.call("BF.MERGE", into, *["%d-0" % ((f + k) % 10) for
                                                    k in range(1)])
            assert refused == b"OK", "it has those items already"
    print("measured rate %g" % (hits / probes))
    assert 0 < hits <= probes * 0.01 * 1.3


def test_a_large_filter_is_emptied_at_once(start_server):
    server = start_server("--bf.bloom-memory-usage-limit", "1gb")
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "0.01", "100000000")
        size = conn.call("BF.INFO", "k", "SIZE")
        conn.call("BF.MADD", "k", *range(20000))
        start = time.monotonic()
        assert conn.call("BF.RESET", "k") == b"OK"
        took = time.monotonic() - start
        print("reset of %d bytes took %.1f ms" % (size, 1000 * took))
        assert took < 0.5 * servers.time_factor()
        assert conn.call("BF.INFO", "k", "SIZE") == size
        assert sum(conn.call("BF.MEXISTS", "k", *range(20000))) == 0
        # The gauges go down when the old one is freed, in the background.
        for gauge in (b"objects:1", b"items_across_objects:0"):
            servers.wait_until(
                lambda g=gauge: b"bf_bloom_num_%s\r\n" % g in
                conn.call("INFO", "bf"), what=gauge.decode())


# ---- what others are told ------------------------------------------------------

EVENTS = [
    # command, events of the key in their order
    (["BF.EXISTS", "k", "a"], ["keymiss"]),
    (["BF.ADD", "k", "a"], ["new", "bloom.add", "bloom.reserve"]),
    (["BF.ADD", "k", "a"], []),
    (["BF.ADD", "k", "b"], ["bloom.add"]),
    (["BF.MADD", "k", "b", "c", "d"], ["bloom.add"]),
    (["BF.MADD", "k", "b"], []),
    (["BF.INSERT", "k", "ITEMS", "e"], ["bloom.add"]),
    (["BF.INSERT", "k", "ITEMS", "e"], []),
    (["BF.INSERT", "l", "NOCREATE", "ITEMS", "e"], []),
    (["BF.INSERT", "l", "ITEMS", "e"], ["new", "bloom.add", "bloom.reserve"]),
    (["BF.MADD", "m", "x", "y"], ["new", "bloom.add", "bloom.reserve"]),
    (["BF.RESERVE", "r", "0.01", "1", "NONSCALING"], ["new", "bloom.reserve"]),
    (["BF.RESERVE", "r", "0.01", "100"], []),
    (["BF.RESERVE", "s", "2", "100"], []),
    (["BF.ADD", "r", "x"], ["bloom.add"]),
    (["BF.ADD", "r", "y"], []),
    (["BF.MADD", "r", "x", "y"], []),
    (["BF.MERGE", "k", "l"], ["bloom.merge"]),
    (["BF.MERGE", "n", "l", "k"], ["new", "bloom.merge"]),
    (["BF.MERGE", "k", "r"], []),
    (["BF.RESET", "k"], ["bloom.reset"]),
    (["BF.COUNTNEW", "k", "a"], []),
    (["BF.CARD", "none"], ["keymiss"]),
]


@pytest.mark.parametrize("dialect", ["valkey", "redis"])
def test_events(start_server, dialect):
    server = start_server("--dialect", dialect, "--notify-keyspace-events",
                          "Egnm", "--bf.bloom-use-random-seed", "no")
    with server.conn() as conn, server.conn() as listener:
        listener.call("PSUBSCRIBE", "__keyevent@0__:*")
        for words, events in EVENTS:
            conn.call(*words)
            conn.call("DEL", "the-end")
            conn.call("BF.RESERVE", "the-end", "0.1", "1")
            heard = []
            while True:
                event, key = listener.read()[2:]
                if key == b"the-end":
                    if event == b"__keyevent@0__:bloom.reserve":
                        break
                    continue
                heard.append((event.split(b":")[1].decode(), key.decode()))
            assert heard == [(e, words[1]) for e in events], words


@pytest.mark.parametrize("dialect", ["valkey", "redis"])
def test_an_add_of_nothing_new_is_a_change_for_caches_and_watch(start_server,
                                                               dialect):
    """As in the modules, where a key that was opened for writing has changed."""
    server = start_server("--dialect", dialect)
    with server.conn(3) as cache, server.conn() as other:
        other.call("BF.ADD", "k", "a")
        assert cache.call("CLIENT", "TRACKING", "ON") == b"OK"
        for words in (["BF.ADD", "k", "a"], ["BF.MADD", "k", "a", "a"],
                      ["BF.INSERT", "k", "ITEMS", "a"],
                      ["BF.RESERVE", "k", "0.1", "1"], ["BF.RESET", "k"]):
            cache.call("BF.EXISTS", "k", "a")
            other.call(*words)
            assert cache.read() == [b"invalidate", [b"k"]], words
        assert cache.call("WATCH", "k") == b"OK"
        other.call("BF.RESERVE", "k", "0.1", "1")
        assert cache.call("MULTI") == b"OK"
        assert cache.call("BF.CARD", "k") == b"QUEUED"
        assert cache.call("EXEC") is None
