# SPDX-License-Identifier: BSD-3-Clause
#
# maxmemory without eviction, filters that are too large, and memory counters that
# return to zero.

import os
import random

import pytest

from lib import resp, servers

SMALL_PAGES = {"MALLOC_CONF": ""}   # no world asks for huge ones
OOM = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"


def figures(conn, section="everything"):
    text = conn.call("INFO", section).decode()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


@pytest.mark.parametrize("command", [
    ("BF.RESERVE", "k", "0.01", "9223372036854775807"),
    ("BF.RESERVE", "k", "0.01", "9223372036854775807", "NONSCALING"),
    ("BF.RESERVE", "k", "1e-300", "9223372036854775807"),
    ("BF.RESERVE", "k", "0.01", "1000000000000000000"),
    ("BF.RESERVE", "k", "0.5", "1000000000000"),
    ("BF.INSERT", "k", "CAPACITY", "9223372036854775807", "ITEMS", "a"),
    ("BF.INSERT", "k", "CAPACITY", "5000000000", "ERROR", "1e-9"),
], ids=" ".join)
@pytest.mark.parametrize("limit", ["134217728", "9223372036854775807"])
def test_a_filter_that_does_not_fit_is_refused(start_server, command, limit):
    server = start_server(env=SMALL_PAGES)
    with server.conn() as conn:
        conn.call("CONFIG", "SET", "bf.bloom-memory-usage-limit", limit)
        conn.call("PING")
        before, used = server.rss(), figures(conn)["used_memory"]
        reply = conn.call(*command)
        assert isinstance(reply, resp.Error), reply
        if limit == "134217728":
            assert reply == resp.Error(
                "ERR operation exceeds bloom object memory limit")
        else:
            assert reply.args[0].startswith(("OOM ", "ERR ")), reply
        assert conn.call("EXISTS", "k") == 0
        assert conn.call("DBSIZE") == 0
        assert figures(conn)["bf_bloom_num_objects"] == "0"
        assert abs(int(figures(conn)["used_memory"]) - int(used)) < 1 << 20
        # A huge page or two may come.
        assert server.rss() - before < (5 << 20) * servers.time_factor()
        assert conn.call("BF.ADD", "k", "a") == 1


def test_noeviction_refuses_writes_and_serves_reads(server):
    with server.conn() as conn:
        conn.call("BF.MADD", "k", "a", "b")
        used = int(figures(conn)["used_memory"])
        conn.call("CONFIG", "SET", "maxmemory", used + (4 << 20))
        made = 0
        for i in range(100):
            raw = conn.raw("BF.RESERVE", "big%d" % i, "0.01", "500000")
            if raw != b"+OK\r\n":
                assert raw.startswith(b"-OOM "), raw
                break
            made += 1
        assert 1 <= made < 10
        assert int(figures(conn)["used_memory"]) <= used + (5 << 20)
        # Below the used memory, the server refuses every command that grows.
        conn.call("CONFIG", "SET", "maxmemory", 1)
        for command in (("BF.ADD", "k", "new"), ("BF.ADD", "new", "a"),
                        ("BF.MADD", "k", "a"), ("BF.INSERT", "k", "ITEMS", "a"),
                        ("BF.RESERVE", "r", "0.01", "10")):
            assert conn.raw(*command) == OOM, command
        assert conn.call("BF.MEXISTS", "k", "a", "b", "new") == [1, 1, 0]
        assert conn.call("BF.CARD", "k") == 2
        assert conn.call("EXPIRE", "k", "100") == 1
        assert conn.call("EXISTS", "new", "r") == 0
        assert conn.call("DEL", *["big%d" % i for i in range(made)]) == made
        errors = conn.call("INFO", "errorstats").decode()
        assert "errorstat_OOM:count=" in errors
        conn.call("CONFIG", "SET", "maxmemory", 0)
        assert conn.call("BF.ADD", "k", "new") == 1


def test_oom_in_a_transaction_is_refused_while_queueing(server, start_oracle):
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "a")
        conn.call("CONFIG", "SET", "maxmemory", 1)
        conn.call("MULTI")
        assert conn.raw("BF.ADD", "k", "b") == OOM
        ours = conn.raw("EXEC")
    with start_oracle().conn() as conn:
        conn.call("CONFIG", "SET", "maxmemory", 1)
        conn.call("MULTI")
        assert conn.raw("SET", "k", "b") == OOM
        assert ours == conn.raw("EXEC")


@pytest.mark.parametrize("steps", [
    ("PING",), ("EXISTS", "k"), ("BF.EXISTS", "k", "a"), ("DEL", "k"),
    ("NOPE",), ("ECHO",), ("SELECT", "0"), ("CLIENT", "ID"), ("INFO", "server"),
    ("UNWATCH",),
], ids=" ".join)
@pytest.mark.parametrize("end", ["EXEC", "DISCARD"])
def test_above_maxmemory_a_transaction_queues_nothing(server, start_oracle,
                                                      steps, end):
    if steps[0].startswith("BF."):
        theirs_steps = ("GETRANGE", "k", "0", "1")
    else:
        theirs_steps = steps
    answers = []
    for process, step in ((server, steps), (start_oracle(), theirs_steps)):
        with process.conn() as conn:
            conn.call("CONFIG", "SET", "maxmemory", 1)
            answers.append([conn.raw("MULTI"), conn.raw(*step), conn.raw(end),
                            conn.raw("PING"), conn.raw("MULTI"),
                            conn.raw("EXEC")])
    assert answers[0] == answers[1]
    assert answers[0][2].startswith(b"-EXECABORT " if end == "EXEC" else b"+OK")


def test_half_a_command_is_in_used_memory(server):
    half = 20 << 20

    def used(conn):
        return int(figures(conn)["used_memory"])

    with server.conn() as conn:
        servers.wait_until(lambda: int(figures(conn)[
            "lazyfree_pending_objects"]) == 0, what="nothing is being freed")
        before = used(conn)
        for how in ("close", "finish"):
            other = server.conn()
            other.send(b"*2\r\n$4\r\nECHO\r\n$%d\r\n" % (2 * half) +
                       b"x" * half)
            servers.wait_until(lambda: used(conn) - before >= half, 10,
                               "what came is counted")
            assert used(conn) - before < 2 * half
            if how == "finish":
                other.send(b"y" * half + b"\r\n")
                assert len(other.read()) == 2 * half
            other.close()
            servers.wait_until(lambda: abs(used(conn) - before) < 2 << 20, 10,
                               "it is gone with the connection: " + how)


def test_memory_counters_return_to_their_start(start_server):
    server = start_server("--appendonly", "no")  # and no buffers of its own
    with server.conn() as conn:
        names = ["k%d" % i for i in range(200)]
        conn.pipeline([("BF.RESERVE", n, "0.01", "100") for n in names])
        conn.call("FLUSHALL")
        servers.wait_until(lambda: figures(conn)["lazyfree_pending_objects"]
                           == "0", 5, "all is freed")
        start = int(figures(conn)["used_memory"])
        for how in ("DEL", "UNLINK", "FLUSHALL", "FLUSHDB", "EXPIRE"):
            for n in names:
                conn.call("BF.INSERT", n, "CAPACITY", "5000", "ITEMS", "a", "b")
            core = figures(conn, "bf")
            assert core["bf_bloom_num_objects"] == "200"
            assert core["bf_bloom_num_items_across_objects"] == "400"
            assert core["bf_bloom_capacity_across_objects"] == "1000000"
            size = conn.call("BF.INFO", "k0", "SIZE")
            assert core["bf_bloom_total_memory_bytes"] == str(200 * size)
            assert int(figures(conn)["used_memory"]) - start >= 200 * size
            if how in ("DEL", "UNLINK"):
                # The thread sanitizer tracks at most 64 locks of a thread.
                for i in range(0, 200, 50):
                    assert conn.call(how, *names[i:i + 50]) == 50
            elif how == "EXPIRE":
                conn.pipeline([("PEXPIRE", n, "20") for n in names])
            else:
                assert conn.call(how) == b"OK"
            servers.wait_until(
                lambda: figures(conn, "bf")["bf_bloom_num_objects"] == "0", 10,
                how + " frees the filters")
            assert set(figures(conn, "bf").values()) == {"0"}
            servers.wait_until(
                lambda: int(figures(conn)["used_memory"]) - start < 100 << 10,
                10, how + " gives the memory back")


def test_a_deleted_large_filter_returns_its_memory(start_server):
    server = start_server(env=SMALL_PAGES)
    with server.conn() as conn:
        before = server.rss()
        conn.call("CONFIG", "SET", "bf.bloom-memory-usage-limit", "1gb")
        assert conn.call("BF.RESERVE", "k", "0.01", "50000000") == b"OK"
        size = conn.call("BF.INFO", "k", "SIZE")
        assert size > 50000000
        # Touch all pages, so that the filter is resident.
        for start in range(0, 200000, 5000):
            conn.call("BF.MADD", "k", *range(start, start + 5000))
        assert conn.call("MEMORY", "USAGE", "k") >= size
        assert conn.call("UNLINK", "k") == 1
        servers.wait_until(lambda: figures(conn)["lazyfree_pending_objects"]
                           == "0", 10, "freed")
        if not servers.sanitized():
            servers.wait_until(lambda: server.rss() - before < 8 << 20, 10,
                               "the memory is returned")


@pytest.mark.skipif(servers.sanitized(), reason="memory of a sanitizer build")
def test_filters_get_no_more_than_the_machine_has(server):
    """Reserved filters are not resident, but they count."""
    with server.conn() as conn:
        conn.call("CONFIG", "SET", "bf.bloom-memory-usage-limit", "1tb")
        machine = int(figures(conn)["memory_of_machine_or_cgroup"])
        items = machine // 30  # 1.2 bytes each: a 25th part
        count = 0
        while True:
            reply = conn.call("BF.RESERVE", "k%d" % count, "0.01", items)
            if reply != b"OK":
                break
            count += 1
            assert count < 100
        assert reply.args[0].startswith("OOM "), reply
        size = conn.call("BF.INFO", "k0", "SIZE")
        assert (count + 1) * size > 0.88 * machine, (count, size, machine)
        assert count * size < 0.9 * machine, (count, size, machine)
        assert conn.call("BF.ADD", "small", "x") == 1
        conn.call("FLUSHALL", "SYNC")
        assert conn.call("BF.RESERVE", "k", "0.01", items) == b"OK"


@pytest.mark.skipif(servers.sanitized(), reason="another allocator")
def test_small_blocks_get_no_huge_pages(start_server):
    server = start_server(env=SMALL_PAGES)
    with server.conn() as conn:
        assert b'opt.thp: "never"' in conn.call("MEMORY", "MALLOC-STATS")


@pytest.mark.skipif(servers.sanitized(), reason="another allocator")
@pytest.mark.parametrize("way", ["DEL", "FLUSHALL", "PEXPIRE"])
def test_an_idle_server_returns_the_memory_of_small_filters(start_server, way):
    """The allocator's own thread does it, because an idle server hardly ever
    calls the allocator: after 5 seconds, or less where the test says so. Up to a
    third stays: pages with a block that is still used."""
    soon = {"MALLOC_CONF": "dirty_decay_ms:500"}
    server = start_server(env=None if way == "DEL" else soon)
    keys = ["key:%07d" % number for number in range(60000)]
    with server.conn() as conn:
        conn.call("PING")
        before = server.rss()
        assert set(conn.pipeline([("BF.ADD", key, "item")
                                  for key in keys])) == {1}
        full = server.rss()
        assert full - before > 8 << 20
        if way == "FLUSHALL":
            conn.call("FLUSHALL")
        else:
            more = ["1"] if way == "PEXPIRE" else []
            assert set(conn.pipeline([(way, key, *more)
                                      for key in keys])) == {1}
        servers.wait_until(lambda: conn.call("DBSIZE") == 0, 30, "all keys go")
        try:
            servers.wait_until(
                lambda: server.rss() - before < (full - before) / 2, 120,
                "the memory is returned", pause=0.2)
        except AssertionError:
            print("before=%d full=%d now=%d" % (before, full, server.rss()))
            print(conn.call("INFO", "memory").decode())
            raise


# ---- defragmentation -----------------------------------------------------------

SCATTERED = int(200000 * float(os.environ.get("BLOOMERY_ROUNDS", "1")))


def send_all(conn, commands):
    for start in range(0, len(commands), 5000):
        assert set(conn.pipeline(commands[start:start + 5000])) == {1}


@pytest.mark.skipif(servers.sanitized(), reason="another allocator")
def test_what_random_deletes_scatter_is_brought_together(start_server):
    """Of many small filters one in ten stays. Other clients find them all the
    while."""
    seed = int(os.environ.get("SEED") or random.getrandbits(32))
    print("SEED=%d" % seed)
    kept = set(random.Random(seed).sample(range(SCATTERED), SCATTERED // 10))
    adds = [("BF.ADD", "user:%d" % i, "item") for i in range(SCATTERED)]
    fresh, server = start_server(env=SMALL_PAGES), start_server(
        "--active-defrag-ignore-bytes", "1mb", "--activedefrag", "no", env=SMALL_PAGES)
    with fresh.conn() as conn:
        send_all(conn, [adds[i] for i in sorted(kept)])
    with server.conn() as conn:
        send_all(conn, adds)
        full = server.rss()
        send_all(conn, [("DEL", "user:%d" % i) for i in range(SCATTERED)
                        if i not in kept])
        assert figures(conn)["active_defrag_running"] == "0"
        conn.call("CONFIG", "SET", "activedefrag", "yes")
        asks = [("BF.EXISTS", "user:%d" % i, "item") for i in sorted(kept)]
        servers.wait_until(lambda: send_all(conn, asks) or
                           server.rss() < 1.3 * fresh.rss(), 60,
                           "the memory is as dense as a new server's", pause=0.1)
        assert server.rss() < full / 2
        stats = figures(conn, "stats")
        assert int(stats["active_defrag_key_hits"]) > len(kept) // 4
        assert int(stats["active_defrag_hits"]) > len(kept) // 4
        metrics = figures(conn, "bf")
        assert int(metrics["bf_bloom_defrag_hits"]) > len(kept) // 4
        servers.wait_until(
            lambda: figures(conn)["active_defrag_running"] == "0" or
            int(figures(conn, "stats")["current_active_defrag_time"]) > 0, 10,
            "it says whether it runs")
        send_all(conn, asks)
        print("full %d MB, now %d MB, fresh %d MB, %s" % (
            full >> 20, server.rss() >> 20, fresh.rss() >> 20, stats))


@pytest.mark.skipif(servers.sanitized(), reason="another allocator")
def test_large_filters_stay_while_small_ones_move(start_server):
    """The allocator knows nothing of the mappings of large filters, and crashed
    when it was asked about one."""
    server = start_server(
        "--active-defrag-ignore-bytes", "1", "--activedefrag", "yes",
        "--active-defrag-threshold-lower", "1")
    with server.conn() as conn:
        for i in range(24):
            conn.call("BF.RESERVE", "large:%d" % i, "0.01", "90000000")
        send_all(conn, [("BF.ADD", "user:%d" % i, "item")
                        for i in range(20000)])
        send_all(conn, [("DEL", "user:%d" % i) for i in range(20000)
                        if i % 8 > 0])
        servers.wait_until(
            lambda: int(figures(conn, "stats")["active_defrag_key_hits"]) > 500,
            60, "small filters have moved", pause=0.1)
        before = int(figures(conn, "stats")["active_defrag_misses"])
        send_all(conn, [("BF.ADD", "large:%d" % i, "item") for i in range(24)])
        send_all(conn, [("BF.ADD", "more:%d" % i, "item") for i in range(20000)])
        send_all(conn, [("DEL", "more:%d" % i) for i in range(20000)
                        if i % 8 > 0])
        servers.wait_until(
            lambda: int(figures(conn, "stats")["active_defrag_misses"]) >
            before + 20000, 60, "another turn has passed", pause=0.1)


def test_a_large_filter_takes_the_memory_of_its_items(start_server):
    """Untouched lines take none: not at first, not after a save, on a replica or
    after a restart. All of it is counted all the same."""
    limit = ("--bf.bloom-memory-usage-limit", "1gb")
    server = start_server(*limit, env=SMALL_PAGES)
    items = ["item:%d" % i for i in range(100)]
    most = 8 << 20
    small = server.rss()
    with server.conn() as conn:
        used = int(figures(conn)["used_memory"])
        conn.call("BF.RESERVE", "k", "0.01", "50000000")
        assert sum(conn.call("BF.MADD", "k", *items)) == 100
        assert int(figures(conn)["used_memory"]) - used > 50 << 20
        assert sum(conn.call("BF.MEXISTS", "k", *items)) == 100
        assert conn.call("SAVE") == b"OK"
        assert conn.call("COPY", "k", "copy") == 1
        assert server.rss() - small < most
    replica = start_server(*limit, "--replicaof", "127.0.0.1 %d" % server.port,
                           env=SMALL_PAGES)
    with replica.conn() as conn:
        servers.wait_until(lambda: conn.call("BF.CARD", "copy") == 100, 30)
        assert sum(conn.call("BF.MEXISTS", "copy", *items)) == 100
    assert replica.rss() - small < most
    server.kill()
    again = start_server(*limit, "--dir", server.folder, env=SMALL_PAGES)
    with again.conn() as conn:
        assert sum(conn.call("BF.MEXISTS", "k", *items)) == 100
        # With as many items as pages, it is as any other filter.
        for at in range(0, 40000, 1000):
            conn.call("BF.MADD", "k", *range(at, at + 1000))
        assert sum(conn.call("BF.MEXISTS", "k", *range(0, 40000, 9))) == 4445
    assert again.rss() - small > 30 << 20
