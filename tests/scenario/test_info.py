# SPDX-License-Identifier: BSD-3-Clause
#
# INFO: its sections and that its figures are true.

import os
import re
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


def test_what_clients_need(server):
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
        # The connection that found the server ready may not be gone yet.
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
        # Work, and the processor time must show it.
        ticks = os.sysconf("SC_CLK_TCK")
        for _ in range(200):
            conn.call("BF.MADD", "big", *range(1000))
        with open("/proc/%d/stat" % server.pid) as file:
            stat = file.read().rsplit(")", 1)[1].split()
        real = (int(stat[11]) + int(stat[12])) / ticks
        c = fields(conn, "cpu")
        said = float(c["used_cpu_user"]) + float(c["used_cpu_sys"])
        assert abs(said - real) < 0.25 + 0.2 * real


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
