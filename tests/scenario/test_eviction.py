# SPDX-License-Identifier: BSD-3-Clause
#
# maxmemory with a policy that evicts: the right keys are evicted, no more than
# necessary, many concurrent writers stay below the limit, and the journal records
# the deletions.

import random
import threading

import pytest

from lib import crash, resp, servers

OOM = "OOM command not allowed when used memory > 'maxmemory'."
FILTER = ("0.01", "5000")  # a filter of some 7 KB
FILTER_BYTES = 7000
LARGE = ("0.01", "3000000", "NONSCALING")  # some 4 MB
MB = 1 << 20


@pytest.fixture
def server(start_server):
    """Starts a server without a journal, whose buffers would change
    used_memory."""
    return start_server("--appendonly", "no")


def figures(conn, section="everything"):
    text = conn.call("INFO", section).decode()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def used(conn):
    return int(figures(conn, "memory")["used_memory"])


def evicted(conn):
    return int(figures(conn, "stats")["evicted_keys"])


def limit(conn, policy, spare_bytes):
    assert conn.call("CONFIG", "SET", "maxmemory-policy", policy, "maxmemory",
                     used(conn) + spare_bytes) == b"OK"
    assert figures(conn, "memory")["maxmemory_policy"] == policy


def reserve(conn, names, shape=FILTER):
    return conn.pipeline([("BF.RESERVE", n) + shape for n in names])


def push_out(conn, count, prefix="new"):
    """Makes filters until that many keys were evicted."""
    made = 0
    while evicted(conn) < count:
        assert reserve(conn, ["%s%d" % (prefix, made + i)
                              for i in range(20)]) == [b"OK"] * 20
        made += 20
        assert made < 20 * count + 10000, "nothing is evicted"
    return made


def gone(conn, names):
    there = conn.pipeline([("EXISTS", n) for n in names])
    return [n for n, is_there in zip(names, there) if not is_there]


def two_halves(conn, cold_words, hot_words):
    """Makes 1000 cold keys and 1000 hot ones, by the idle times of RESTORE."""
    conn.call("BF.RESERVE", "model", *FILTER)
    payload = conn.call("DUMP", "model")
    conn.call("DEL", "model")
    cold = ["cold%d" % i for i in range(1000)]
    hot = ["hot%d" % i for i in range(1000)]
    conn.pipeline([("RESTORE", n, "0", payload) + cold_words for n in cold])
    conn.pipeline([("RESTORE", n, "0", payload) + hot_words for n in hot])
    return cold, hot


# At first one sample of five in 32 has no cold key, and later more. 500
# evictions remove about 30 hot keys, and never 120.
@pytest.mark.parametrize("policy,cold_words,hot_words", [
    ("allkeys-lru", ("IDLETIME", "10000"), ("IDLETIME", "10")),
    ("allkeys-lfu", ("FREQ", "1"), ("FREQ", "100")),
])
def test_cold_keys_go_first(server, policy, cold_words, hot_words):
    with server.conn() as conn:
        conn.call("CONFIG", "SET", "maxmemory-policy", policy)
        cold, hot = two_halves(conn, cold_words, hot_words)
        limit(conn, policy, 100000)
        push_out(conn, 500)
        cold_gone, hot_gone = gone(conn, cold), gone(conn, hot)
        assert len(hot_gone) < 120
        assert len(cold_gone) > 300


def test_use_keeps_a_key(server):
    """Real reads count, not only RESTORE; each step reads one key."""
    with server.conn() as conn:
        cold, hot = two_halves(conn, ("IDLETIME", "1000"),
                               ("IDLETIME", "2000"))
        limit(conn, "allkeys-lru", 100000)
        conn.pipeline([("BF.EXISTS", n, "x") for n in hot])
        assert conn.call("OBJECT", "IDLETIME", hot[0]) < 1000
        push_out(conn, 500)
        assert len(gone(conn, hot)) < 120
        assert len(gone(conn, cold)) > 300


def test_by_chance_both_halves_go_alike(server):
    with server.conn() as conn:
        cold, hot = two_halves(conn, ("IDLETIME", "10000"), ("FREQ", "200"))
        limit(conn, "allkeys-random", 100000)
        push_out(conn, 600)
        cold_gone, hot_gone = len(gone(conn, cold)), len(gone(conn, hot))
        assert abs(cold_gone - hot_gone) < 150  # about 6 standard deviations


@pytest.mark.parametrize("policy", ["volatile-lru", "volatile-lfu",
                                    "volatile-random", "volatile-ttl"])
def test_volatile_policies_take_keys_with_a_time_to_live_only(server, policy):
    with server.conn() as conn:
        stay = ["stay%d" % i for i in range(200)]
        go = ["go%d" % i for i in range(200)]
        reserve(conn, stay + go)
        conn.pipeline([("EXPIRE", n, 10000 + i) for i, n in enumerate(go)])
        limit(conn, policy, 100000)
        made = 0
        while True:
            reply = conn.call("BF.RESERVE", "new%d" % made, *FILTER)
            if reply != b"OK":
                break
            made += 1
            assert made < 1000
        # A command that begins below the limit may end above it: one more at
        # the end.
        assert reply == resp.Error(OOM)
        assert conn.call("BF.ADD", "stay0", "x") == resp.Error(OOM)
        assert conn.call("BF.EXISTS", "stay0", "x") == 0
        assert len(gone(conn, go)) == 200 == evicted(conn)
        assert gone(conn, stay) == []
        assert 200 <= made <= 260
        # With free memory everything works again.
        assert conn.call("DEL", *("new%d" % i for i in range(20))) == 20
        assert conn.call("BF.ADD", "stay0", "x") == 1


def test_the_key_that_expires_first_goes_first(server):
    with server.conn() as conn:
        names = ["k%d" % i for i in range(300)]
        reserve(conn, names)
        seconds = list(range(1000, 1300))
        random.Random(7).shuffle(seconds)
        conn.pipeline([("EXPIRE", n, s) for n, s in zip(names, seconds)])
        limit(conn, "volatile-ttl", 100000)
        push_out(conn, 60)
        went = sorted(seconds[names.index(n)] for n in gone(conn, names))
        assert len(went) >= 60
        assert went == list(range(1000, 1000 + len(went)))


def test_no_more_large_filters_go_than_necessary(server):
    """Eviction frees their memory later, but counts it at once."""
    with server.conn() as conn:
        names = ["large%d" % i for i in range(12)]
        assert reserve(conn, names, LARGE) == [b"OK"] * 12
        limit(conn, "allkeys-lru", 1 * MB)
        # It ends 3 MB above the limit; the next one compensates.
        assert conn.call("BF.RESERVE", "more0", *LARGE) == b"OK"
        assert evicted(conn) == 0
        for i in range(1, 10):
            assert conn.call("BF.RESERVE", "more%d" % i, *LARGE) == b"OK"
            # While two counters fall, one key too many may go.
            assert i <= evicted(conn) <= i + 1
        assert conn.call("DBSIZE") in (12, 13)
        servers.wait_until(
            lambda: figures(conn)["lazyfree_pending_objects"] == "0",
            10, "all is freed")
        maximum = int(figures(conn)["maxmemory"])
        assert used(conn) < maximum + 4 * MB


def test_an_object_that_can_never_fit_evicts_nothing(server):
    with server.conn() as conn:
        reserve(conn, ["k%d" % i for i in range(50)])
        limit(conn, "allkeys-lru", 2 * MB)
        maximum = int(figures(conn)["maxmemory"])
        assert conn.call("BF.RESERVE", "huge", "0.001", maximum) == \
            resp.Error(OOM)
        assert conn.call("DBSIZE") == 50
        assert evicted(conn) == 0


def test_noeviction_deletes_nothing(server):
    with server.conn() as conn:
        reserve(conn, ["k%d" % i for i in range(50)])
        limit(conn, "noeviction", 20000)
        replies = reserve(conn, ["new%d" % i for i in range(50)])
        assert replies[-1] == resp.Error(OOM)
        assert gone(conn, ["k%d" % i for i in range(50)]) == []
        assert evicted(conn) == 0


def test_a_transaction_makes_room_before_it_runs(server):
    with server.conn() as conn:
        reserve(conn, ["k%d" % i for i in range(200)])
        limit(conn, "allkeys-random", 10000)
        for i in range(20):
            conn.call("MULTI")
            conn.call("BF.RESERVE", "t%d" % i, *FILTER)
            assert conn.call("EXEC") == [b"OK"]
        assert evicted(conn) > 10


def test_an_eviction_breaks_a_watch_and_sends_an_event(start_server):
    server = start_server("--notify-keyspace-events", "Eeg", threads=2)
    with server.conn() as conn, server.conn() as watcher, \
            server.conn() as listener, server.conn(3) as tracker:
        conn.call("BF.RESERVE", "only", *LARGE)
        tracker.call("CLIENT", "TRACKING", "ON")
        tracker.call("BF.EXISTS", "only", "x")
        conn.call("EXPIRE", "only", "1000")
        watcher.call("WATCH", "only")
        listener.call("SUBSCRIBE", "__keyevent@0__:evicted",
                      "__keyevent@0__:del")
        listener.read()
        limit(conn, "volatile-lru", -1000)
        assert conn.call("BF.ADD", "other", "x") == 1
        assert listener.read() == [b"message", b"__keyevent@0__:evicted",
                                   b"only"]
        assert tracker.read() == [b"invalidate", [b"only"]]
        watcher.call("MULTI")
        watcher.call("PING")
        assert watcher.call("EXEC") is None


def test_no_key_is_evicted_while_clients_are_paused(server):
    with server.conn() as conn, server.conn() as writer:
        reserve(conn, ["k%d" % i for i in range(50)])
        limit(conn, "allkeys-lru", -20000)
        assert conn.call("CLIENT", "PAUSE", "100000", "WRITE") == b"OK"
        writer.send(resp.command("BF.ADD", "new", "x"))
        servers.wait_until(
            lambda: figures(conn)["blocked_clients"] == "1", 10,
            "the writer waits")
        assert conn.call("DBSIZE") == 50
        assert evicted(conn) == 0
        assert conn.call("CLIENT", "UNPAUSE") == b"OK"
        assert writer.read() == 1
        assert evicted(conn) > 0


def write(server, index, problems, seed):
    """Mostly small filters, some that grow, and sometimes a large one."""
    rng = random.Random(seed * 100 + index)
    with server.conn() as conn:
        for round_ in range(60 if not servers.sanitized() else 10):
            commands = []
            for i in range(100):
                name = "w%d-%d" % (index, rng.randrange(3000))
                choice = rng.randrange(100)
                if choice < 60:
                    commands.append(("BF.ADD", name, rng.randrange(1000)))
                elif choice < 90:
                    commands.append(("BF.MADD", name) + tuple(
                        rng.randrange(100000) for _ in range(50)))
                elif choice < 99:
                    commands.append(("BF.RESERVE", name) + FILTER)
                else:
                    commands.append(("BF.RESERVE", name, "0.01", "100000"))
            for reply in conn.pipeline(commands):
                if isinstance(reply, resp.Error) and \
                        reply.args[0] != "ERR item exists":
                    problems.append(reply.args[0])


def test_four_writers_stay_below_the_limit(server):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    problems, highest = [], 0
    with server.conn() as conn:
        limit(conn, "allkeys-lru", 4 * MB)
        maximum = int(figures(conn)["maxmemory"])
        threads = [threading.Thread(target=write,
                                    args=(server, i, problems, seed))
                   for i in range(8)]
        for thread in threads:
            thread.start()
        while any(t.is_alive() for t in threads):
            highest = max(highest, used(conn))
        for thread in threads:
            thread.join()
        # Each thread may exceed the limit once, by its largest filter, before
        # it evicts. Client buffers also count, but evict nothing.
        assert highest < maximum + 4 * MB
        assert evicted(conn) > 100
        # A filter that reaches the limit within a command gets an error.
        assert len(problems) < 100, problems[:5]
        assert set(problems) <= {OOM}


def test_a_replay_repeats_evictions():
    with crash.Store("--appendonly", "yes", "--threads", "2") as store:
        store.start(shim=False)
        with store.conn() as conn:
            limit(conn, "allkeys-random", 2 * MB)
            for start in range(0, 2000, 100):
                reserve(conn, ["k%d" % i for i in range(start, start + 100)])
                conn.pipeline([("BF.ADD", "k%d" % i, "x")
                               for i in range(start, start + 100, 7)])
            assert evicted(conn) > 500
            keys = sorted(conn.call("KEYS", "*"))
            dumps = conn.pipeline([("DUMP", k) for k in keys])
        store.kill()
        store.start(shim=False)
        with store.conn() as conn:
            assert sorted(conn.call("KEYS", "*")) == keys
            assert conn.pipeline([("DUMP", k) for k in keys]) == dumps
        store.kill()
        store.assert_healthy()


def test_a_disk_that_stalls_costs_no_keys():
    """Changes that wait for the disk use memory, but free it by themselves."""
    with crash.Store("--appendonly", "yes", "--appendfsync", "always",
                     "--misconf-after", "300") as store:
        store.add_shim()
        store.start()
        with store.conn(timeout=60) as conn, store.conn(timeout=60) as writer:
            reserve(conn, ["k%d" % i for i in range(100)], ("0.01", "50000"))
            reserve(conn, ["target"], ("0.01", "1000000"))
            limit(conn, "allkeys-lru", 4 * MB)
            store.shim.arm(0, "delay", ["write"], ["incr"],
                           delay_ms=int(3000 * servers.time_factor()))
            item, count = "x" * 500, 0
            while int(figures(conn)["mem_aof_buffer"]) < 10 * MB:
                assert count < 50000, "nothing waits"
                writer.send(b"".join(
                    resp.command("BF.ADD", "target", "%s%d" % (item, count + i))
                    for i in range(200)))
                count += 200
            assert used(conn) > int(figures(conn)["maxmemory"]) + 4 * MB
            assert all(writer.read() in (0, 1) for _ in range(count))
            assert evicted(conn) == 0
            assert conn.call("DBSIZE") == 101
        store.kill()
        store.assert_healthy()
