# SPDX-License-Identifier: BSD-3-Clause
#
# INFO: its sections, and that its figures are correct.

import os
import re
import threading
import time

import pytest

from lib import servers

SECTIONS = ["Server", "Clients", "Memory", "Persistence", "Stats",
            "Replication", "CPU", "Modules", "Errorstats", "Cluster",
            "Keyspace"]


def fetch(conn, *sections):
    return conn.call("INFO", *sections).decode()


def fields(conn, *sections):
    return dict(line.split(":", 1) for line in fetch(conn, *sections).splitlines()
                if ":" in line)


def headings(text):
    return re.findall(r"^# (\S+)\r?$", text, re.M)


def test_the_default_sections_are_those_of_redis(server, start_oracle):
    with server.conn() as conn:
        ours = headings(fetch(conn))
        assert fetch(conn).count("\n") == fetch(conn).count("\r\n")
    with start_oracle().conn() as conn:
        theirs = headings(fetch(conn))
    assert [s for s in ours if s in theirs] == theirs
    assert not any(s.startswith("bf_") for s in ours)


def test_selecting_sections(server):
    with server.conn() as conn:
        assert headings(fetch(conn, "server")) == ["Server"]
        assert headings(fetch(conn, "SERVER", "clients")) == ["Server", "Clients"]
        assert headings(fetch(conn, "nope")) == []
        assert headings(fetch(conn, "bf")) == ["bf_bloom_core_metrics",
                                               "bf_bloom_defrag_metrics"]
        everything = headings(fetch(conn, "everything"))
        assert "bf_bloom_core_metrics" in everything
        assert "Commandstats" in headings(fetch(conn, "all"))
        assert "bf_bloom_core_metrics" not in headings(fetch(conn, "all"))
        assert "bf_bloom_core_metrics" in headings(fetch(conn, "modules"))


def test_the_fields_that_clients_need(server):
    with server.conn() as conn:
        got = fields(conn)
        assert got["redis_version"].startswith("7.")
        assert got["redis_mode"] == "standalone"
        assert re.fullmatch(r"[0-9a-f]{40}", got["run_id"])
        assert got["tcp_port"] == str(server.port)
        assert got["process_id"] == str(server.pid)
        assert got["loading"] == "0"
        assert got["role"] == "master"
        assert got["connected_slaves"] == "0"
        assert got["cluster_enabled"] == "0"
        assert re.fullmatch(r"[0-9a-f]{40}", got["master_replid"])
        assert "bloomery_version" in got
        assert 0 <= int(got["uptime_in_seconds"]) < 600


def test_clients_and_connections_are_counted(server):
    with server.conn() as conn:
        # The connection that checked for readiness may still be closing.
        servers.wait_until(lambda: fields(conn)["connected_clients"] == "1", 5,
                           "only one client is left")
        base = fields(conn)
        others = [server.conn() for _ in range(5)]
        for other in others:
            other.call("PING")
        others[0].call("MULTI")
        others[1].call("WATCH", "k")
        got = fields(conn)
        assert int(got["connected_clients"]) == int(base["connected_clients"]) + 5
        assert int(got["total_connections_received"]) == \
            int(base["total_connections_received"]) + 5
        for other in others:
            other.close()
        servers.wait_until(lambda: fields(conn)["connected_clients"] ==
                           base["connected_clients"], 5, "closed ones are gone")


def test_commands_and_their_statistics(server):
    with server.conn() as conn:
        conn.call("CONFIG", "RESETSTAT")
        conn.call("BF.ADD", "k", "a")
        conn.pipeline([("BF.ADD", "k", i) for i in range(99)])
        conn.call("BF.ADD", "k")
        conn.call("BF.RESERVE", "k", "0.01", "5")
        conn.call("NOPE")
        stats = fields(conn, "commandstats")
        add = dict(p.split("=") for p in stats["cmdstat_BF.ADD"].split(","))
        assert add["calls"] == "100" and add["rejected_calls"] == "1"
        assert add["failed_calls"] == "0"
        assert int(add["usec"]) >= 0 and "usec_per_call" in add
        reserve = dict(p.split("=") for p in
                       stats["cmdstat_BF.RESERVE"].split(","))
        assert reserve["calls"] == "1" and reserve["failed_calls"] == "1"
        errors = fields(conn, "errorstats")
        assert errors["errorstat_ERR"] == "count=3"
        got = fields(conn)
        assert got["total_error_replies"] == "3"
        assert 100 <= int(got["total_commands_processed"]) <= 110
        conn.call("CONFIG", "RESETSTAT")
        assert fields(conn)["total_error_replies"] == "0"
        assert "cmdstat_BF.ADD" not in fields(conn, "commandstats")


def test_subcommands_have_their_own_line(server):
    with server.conn() as conn:
        conn.call("CONFIG", "RESETSTAT")
        conn.call("CLIENT", "ID")
        conn.call("config", "get", "maxmemory")
        stats = fields(conn, "commandstats")
        assert "cmdstat_client|id" in stats and "cmdstat_config|get" in stats


def test_hits_and_misses(server):
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "a")
        conn.call("CONFIG", "RESETSTAT")
        for _ in range(3):
            conn.call("BF.EXISTS", "k", "a")
        conn.call("BF.CARD", "missing")
        conn.call("BF.MEXISTS", "missing", "a", "b")
        got = fields(conn)
        assert (got["keyspace_hits"], got["keyspace_misses"]) == ("3", "2")


def test_items_asked_and_found_are_counted(server):
    """Of single commands, of pipelines, whose commands run together, of missing
    keys, and of commands that pause; not of commands that fail."""
    def got():
        figures = fields(conn)
        return int(figures["items_asked"]), int(figures["items_found"])

    many = ["item:%d" % i for i in range(1001)]
    with server.conn() as conn:
        conn.call("BF.MADD", "k", *many)
        conn.call("BF.ADD", "other", "item:1")
        conn.call("CONFIG", "RESETSTAT")
        seen = []
        for words in (["BF.EXISTS", "k", "item:1"], ["BF.EXISTS", "missing", "a"],
                      ["BF.MEXISTS", "k", *many, "absent!"], ["BF.MEXISTS", "missing", "a", "b"],
                      ["BF.COUNTNEW", "k", "item:1", "absent!"],
                      ["BF.WHICH", "item:1", "k", "other", "missing"],
                      ["BF.EXISTS", "k"], ["BF.CARD", "k"]):
            conn.call(*words)
            seen.append(got())
        assert seen == [(1, 1), (2, 1), (1004, 1002), (1006, 1002), (1008, 1003),
                        (1011, 1005), (1011, 1005), (1011, 1005)]
        conn.call("CONFIG", "RESETSTAT")
        for length in (1, 2, 7, 8, 9, 16, 63, 64, 65, 100):
            asked, found = got()
            conn.pipeline([("BF.EXISTS", "k", "item:%d" % i if i % 3 else "absent!")
                           for i in range(length)])
            assert got() == (asked + length, found + length - (length + 2) // 3), length


def test_bytes_are_counted(server):
    with server.conn() as conn:
        a = fields(conn)
        conn.call("ECHO", "x" * 100000)
        b = fields(conn)
        for name in ("total_net_input_bytes", "total_net_output_bytes"):
            assert 100000 <= int(b[name]) - int(a[name]) < 130000, name


def test_the_keyspace_section(server):
    with server.conn() as conn:
        assert "db0" not in fields(conn, "keyspace")
        conn.pipeline([("BF.ADD", "k%d" % i, "a") for i in range(7)])
        conn.call("EXPIRE", "k0", 1000)
        conn.call("EXPIRE", "k1", 1000)
        conn.call("SELECT", 3)
        conn.call("BF.ADD", "x", "a")
        got = fields(conn, "keyspace")
        assert re.fullmatch(r"keys=7,expires=2,avg_ttl=\d+", got["db0"])
        assert re.fullmatch(r"keys=1,expires=0,avg_ttl=\d+", got["db3"])
        conn.call("FLUSHALL")
        assert "db0" not in fields(conn, "keyspace")


def test_memory_and_cpu_are_measured(server):
    with server.conn() as conn:
        a = fields(conn)
        conn.call("CONFIG", "SET", "bf.bloom-memory-usage-limit", "1gb")
        conn.call("BF.RESERVE", "big", "0.01", "20000000")
        b = fields(conn)
        size = conn.call("BF.INFO", "big", "SIZE")
        grown = int(b["used_memory"]) - int(a["used_memory"])
        assert size <= grown < size * 1.15 + (2 << 20)
        rss = int(b["used_memory_rss"])
        assert abs(rss - server.rss()) < (32 << 20)
        assert b["maxmemory"] == "0" and b["maxmemory_policy"] == "noeviction"
        # Do some work; the processor time must show it.
        ticks = os.sysconf("SC_CLK_TCK")
        for _ in range(200):
            conn.call("BF.MADD", "big", *range(1000))
        with open("/proc/%d/stat" % server.pid) as file:
            stat = file.read().rsplit(")", 1)[1].split()
        real = (int(stat[11]) + int(stat[12])) / ticks
        c = fields(conn, "cpu")
        said = float(c["used_cpu_user"]) + float(c["used_cpu_sys"])
        assert abs(said - real) < 0.25 + 0.2 * real


def test_memory_figures_are_taken_at_one_moment(server):
    over = threading.Event()

    def write(number):
        with server.conn() as conn:
            while not over.is_set():
                conn.pipeline([("BF.ADD", "%d:%d" % (number, i), "a")
                               for i in range(200)])
                conn.call("FLUSHALL")

    threads = [threading.Thread(target=write, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    try:
        with server.conn() as conn:
            for _ in range(500):
                got = fields(conn, "memory")
                used = int(got["used_memory"])
                assert used <= int(got["used_memory_peak"])
                assert used == int(got["used_memory_overhead"]) + \
                    int(got["used_memory_dataset"])
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_the_clock(server):
    with server.conn() as conn:
        seconds, micros = map(int, conn.call("TIME"))
        assert abs(seconds + micros / 1e6 - time.time()) < 5
        assert abs(int(fields(conn, "server")["server_time_usec"]) / 1e6 -
                   time.time()) < 5


@pytest.mark.parametrize("proto", [2, 3])
def test_info_is_text_in_both_protocols(server, proto):
    with server.conn(proto) as conn:
        raw = conn.raw("INFO")
        assert raw[:1] == (b"$" if proto == 2 else b"=")
        if proto == 3:
            assert raw.split(b"\r\n", 1)[1].startswith(b"txt:# Server\r\n")


# ---- fields -----------------------------------------------------------------

# Fields of Redis 7.0.15 that this server does not show, with the reason.
LEFT_OUT = {
    "redis_git_sha1": "there is no Redis tree that it was built from",
    "redis_git_dirty": "likewise",
    "redis_build_id": "likewise",
    "gcc_version": "it may be another compiler",
    "hz": "there is no such rate: timers have fixed intervals",
    "configured_hz": "likewise",
    "lru_clock": "idle times are not kept in such a clock",
    "client_recent_max_input_buffer": "not measured",
    "client_recent_max_output_buffer": "not measured",
    "clients_in_timeout_table": "there is no such table",
    "rss_overhead_ratio": "large filters are mapped beside the allocator",
    "rss_overhead_bytes": "likewise",
    "expired_stale_perc": "expiry is a heap: nothing is estimated",
    "total_eviction_exceeded_time": "not measured",
    "current_eviction_exceeded_time": "not measured",
    "dump_payload_sanitizations": "every payload is checked",
    "io_threaded_reads_processed": "all threads are alike",
    "io_threaded_writes_processed": "all threads are alike",
    "reply_buffer_shrinks": "replies have no buffer of a connection's own",
    "reply_buffer_expands": "likewise",
}


def by_section(conn):
    found, section = {}, None
    for line in fetch(conn, "everything").splitlines():
        if line.startswith("# "):
            section = line[2:].strip()
        elif ":" in line:
            found[line.split(":")[0]] = section
    return found


@pytest.mark.parametrize("appendonly", ["no", "yes"])
def test_every_field_of_redis_is_present_or_omitted_for_a_reason(
        start_server, start_oracle, appendonly):
    server = start_server("--appendonly", appendonly)
    oracle = start_oracle("--appendonly", appendonly)
    with server.conn() as conn, oracle.conn() as theirs:
        for one in (conn, theirs):
            one.call("GET", "nothing")
            one.call("NOPE")
        if appendonly == "yes":
            servers.wait_until(lambda: "aof_current_size" in by_section(theirs))
        ours, known = by_section(conn), by_section(theirs)
        missing = {name for name in known if name not in ours and
                   not name.startswith(("cmdstat_", "latency_percentiles_"))}
        if fields(conn)["mem_allocator"] == "libc":  # under a sanitizer
            missing -= {n for n in missing if n.startswith("allocator_")}
        assert sorted(missing - set(LEFT_OUT)) == []
        assert sorted(set(LEFT_OUT) & set(ours)) == [], "no longer left out"
        moved = {name: (ours[name], known[name]) for name in known
                 if name in ours and ours[name] != known[name]}
        assert not moved


# Redis returns 0 for these, and so does this server where it lacks the
# feature. All other counters must not stay 0.
def test_counted_fields_count(start_server):
    server = start_server("--save", "", "--maxmemory-policy", "noeviction",
                          "--auto-aof-rewrite-percentage", "0")
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "a")
        conn.call("PEXPIRE", "k", 1)
        servers.wait_until(lambda: conn.call("DBSIZE") == 0)
        conn.call("BF.ADD", "k", "a")
        conn.call("BGSAVE")
        servers.wait_until(lambda: fields(conn)["rdb_saves"] == "1")
        got = fields(conn, "everything")
        for name in ("used_memory_peak", "used_memory_startup",
                     "used_memory_dataset", "allocator_active",
                     "allocator_resident", "expired_keys", "total_reads_processed",
                     "total_writes_processed", "total_net_input_bytes"):
            if name.startswith("allocator") and name not in got:
                continue  # the sanitizers' allocator has no figures
            assert int(got[name]) > 0, name
        assert int(got["used_memory_peak"]) >= int(got["used_memory"])
        assert int(got["used_memory"]) == int(got["used_memory_overhead"]) + \
            int(got["used_memory_dataset"])


def test_rates_are_those_of_the_last_seconds(server):
    with server.conn() as conn:
        assert fields(conn)["instantaneous_ops_per_sec"] == "0"
        began = time.monotonic()
        rates, kbps, ran, shortest = [], [], 0, 2.5
        while time.monotonic() - began < 2.5:
            sent = time.monotonic()
            conn.pipeline([("BF.ADD", "k", i) for i in range(100)])
            shortest = min(shortest, time.monotonic() - sent)
            ran += 100
            got = fields(conn, "stats")
            rates.append(int(got["instantaneous_ops_per_sec"]))
            kbps.append(float(got["instantaneous_input_kbps"]))
        real = ran / (time.monotonic() - began)
        # On a machine that stops now and then, no rate is above the client's own.
        assert 0.4 * real < max(rates) < max(2.5 * real, 110 / shortest)
        assert max(kbps) > real * 20 / 1024 * 0.4
        servers.wait_until(
            lambda: int(fields(conn)["instantaneous_ops_per_sec"]) < 100, 10,
            "the rate goes down")


def test_the_peak_stays(server):
    with server.conn() as conn:
        conn.call("CONFIG", "SET", "bf.bloom-memory-usage-limit", "1gb")
        conn.call("BF.RESERVE", "big", "0.01", "20000000")
        size = conn.call("BF.INFO", "big", "SIZE")
        assert int(fields(conn)["used_memory"]) > size  # updates the peak
        conn.call("FLUSHALL", "SYNC")
        got = fields(conn)
        assert int(got["used_memory_peak"]) > size
        assert int(got["used_memory"]) < size
        conn.call("CONFIG", "RESETSTAT")
        assert int(fields(conn)["used_memory_peak"]) > size


def test_resetstat_resets_the_counters(start_server):
    server = start_server("--slowlog-log-slower-than", 0,
                          "--appendonly", "yes", "--auto-aof-rewrite-percentage",
                          "0")
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "a")
        conn.call("NOPE")
        conn.call("BGSAVE")
        servers.wait_until(lambda: fields(conn)["rdb_saves"] == "1")
        conn.call("BGREWRITEAOF")
        servers.wait_until(lambda: int(fields(conn)["aof_rewrites"]) > 0)
        conn.call("CONFIG", "RESETSTAT")
        got = fields(conn, "everything")
        for name in ("rdb_saves", "aof_rewrites", "total_error_replies",
                     "total_connections_received", "expired_keys"):
            assert got[name] == "0", name
        assert not any(n.startswith(("cmdstat_BF", "latency_percentiles_usec_BF",
                                     "errorstat")) for n in got)
        assert conn.call("SLOWLOG", "LEN") > 0
        # Saves are counted again from zero.
        conn.call("BGSAVE")
        servers.wait_until(lambda: fields(conn)["rdb_saves"] == "1")


def test_listeners_are_counted(server):
    with server.conn() as conn, server.conn() as other, server.conn() as third:
        other.call("SUBSCRIBE", "a")
        third.call("PSUBSCRIBE", "b*")
        got = fields(conn)
        assert got["pubsub_channels"] == "1" and got["pubsub_patterns"] == "1"
        assert got["pubsub_clients"] == "2"
        other.close()
        third.close()
        servers.wait_until(lambda: fields(conn)["pubsub_clients"] == "0")
        assert fields(conn)["pubsub_channels"] == "0"


def test_memory_stats_equal_those_of_info(server):
    with server.conn() as conn:
        conn.pipeline([("BF.RESERVE", "k%d" % i, "0.01", 10000)
                       for i in range(100)])
        flat = conn.call("MEMORY", "STATS")
        stats = {n.decode(): v for n, v in zip(flat[::2], flat[1::2])}
        got = fields(conn)
        assert stats["keys.count"] == 100
        assert stats["dataset.bytes"] == int(got["used_memory_dataset"])
        assert stats["startup.allocated"] == int(got["used_memory_startup"])
        assert abs(stats["total.allocated"] - int(got["used_memory"])) < 1 << 20
        assert stats["peak.allocated"] >= stats["total.allocated"]
        assert stats["total.allocated"] == \
            stats["overhead.total"] + stats["dataset.bytes"]
        assert 50 < float(stats["dataset.percentage"]) <= 100
        assert stats["keys.bytes-per-key"] > 10000
        assert conn.call("MEMORY", "PURGE") == b"OK"


def test_wait_can_be_ended(server):
    with server.conn() as conn, server.conn() as other:
        number = other.call("CLIENT", "ID")
        other.send(b"WAIT 1 0\r\n")
        servers.wait_until(lambda: fields(conn)["blocked_clients"] == "1")
        assert conn.call("CLIENT", "UNBLOCK", number) == 1
        assert other.read() == 0
        other.send(b"WAIT 1 0\r\n")
        servers.wait_until(lambda: fields(conn)["blocked_clients"] == "1")
        assert conn.call("CLIENT", "UNBLOCK", number, "ERROR") == 1
        assert str(other.read()).find("UNBLOCKED") >= 0
