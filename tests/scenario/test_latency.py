# SPDX-License-Identifier: BSD-3-Clause
#
# LATENCY: the recorded events, and that histograms count the executed commands.

import time

import pytest

from lib import servers, shim


def events(conn):
    return {e[0].decode(): e[1:] for e in conn.call("LATENCY", "LATEST")}


def histogram(conn, *names):
    """Returns {command: (calls, {microseconds: count})}."""
    flat = conn.call("LATENCY", "HISTOGRAM", *names)
    found = {}
    for name, facts in zip(flat[::2], flat[1::2]):
        facts = dict(zip(facts[::2], facts[1::2]))
        steps = facts[b"histogram_usec"]
        found[name.decode()] = (facts[b"calls"],
                                dict(zip(steps[::2], steps[1::2])))
    return found


def test_fast_and_slow_commands_are_different_events(start_server):
    server = start_server("--enable-debug-command", "local",
                          "--latency-monitor-threshold", 5)
    with server.conn() as conn:
        conn.call("DEBUG", "SLEEP", "0.01")
        got = events(conn)
        assert list(got) == ["command"]
        when, last, worst = got["command"]
        assert abs(when - time.time()) < 5
        assert 10 <= last == worst
        conn.call("CONFIG", "SET", "latency-monitor-threshold", 0)
        conn.call("LATENCY", "RESET")
        conn.call("DEBUG", "SLEEP", "0.01")
        assert events(conn) == {}


def test_one_sample_a_second(start_server):
    server = start_server("--enable-debug-command", "local",
                          "--latency-monitor-threshold", 1)
    with server.conn() as conn:
        for seconds in ("0.002", "0.03", "0.002"):
            conn.call("DEBUG", "SLEEP", seconds)
        samples = conn.call("LATENCY", "HISTORY", "command")
        assert 1 <= len(samples) <= 2  # a new second may have begun meanwhile
        assert max(ms for _, ms in samples) >= 30
        assert events(conn)["command"][2] >= 30


def test_syncs_are_events(tmp_path, start_server):
    """The disk takes 2 ms for a sync (with a sanitizer, as long as it takes)."""
    data = tmp_path / "data"
    data.mkdir()
    options = ("--dir", data, "--appendonly", "yes", "--appendfsync", "always",
               "--latency-monitor-threshold", 1)
    if servers.sanitized():
        server = start_server(*options)
    else:
        slow = shim.Shim(str(tmp_path), data)
        slow.arm(0, "delay", ["sync"], flags=shim.FOR_GOOD,
                 delay_ms=2)
        server = start_server(*options, env=slow.env())
    with server.conn() as conn:
        def adds():
            conn.pipeline([("BF.MADD", "k", *("%d-%d" % (i, k)
                                              for k in range(2000)))
                           for i in range(40)])
            return "aof-fsync" in events(conn)

        servers.wait_until(adds, 60, "a sync of 1 ms")
        assert all(ms >= 1 for _, ms in
                   conn.call("LATENCY", "HISTORY", "aof-fsync"))


def fields(conn, *sections):
    return dict(line.split(":", 1) for line in
                conn.call("INFO", *sections).decode().splitlines()
                if ":" in line)


def test_histograms_count_the_commands_that_ran(start_server):
    server = start_server("--threads", 4)
    with server.conn() as conn:
        conn.call("CONFIG", "RESETSTAT")
        conns = [server.conn() for _ in range(8)]
        for one in conns:
            one.pipeline([("BF.ADD", "k", i) for i in range(1000)])
            one.pipeline([("BF.EXISTS", "k", i) for i in range(500)])
            one.call("BF.MADD", "k", 1, 2, 3)
            one.close()
        conn.call("BF.ADD", "k")  # refused: it did not run
        got = histogram(conn)
        assert got["BF.ADD"][0] == 8000
        assert got["BF.EXISTS"][0] == 4000
        assert got["BF.MADD"][0] == 8
        assert "BF.CARD" not in got
        for calls, steps in got.values():
            counts = list(steps.values())
            assert counts == sorted(set(counts)) and counts[-1] == calls
            assert list(steps) == sorted(steps)
        assert set(histogram(conn, "bf.add", "NOPE", "config")) == \
            {"BF.ADD", "config|resetstat"}
        assert set(histogram(conn, "config|resetstat")) == {"config|resetstat"}
        stats = fields(conn, "latencystats")
        assert "latency_percentiles_usec_BF.ADD" in stats
        conn.call("CONFIG", "RESETSTAT")
        assert "BF.ADD" not in histogram(conn)


def test_the_steps_equal_those_of_redis(start_server, start_oracle):
    steps = [((1 << bits) + (1 << bits - 7) - 1) // 1000
             for bits in range(10, 37)]
    steps.append((1 << 30) // 1000)     # Redis's last, of all that takes longer
    seen = set()
    for peer, command in ((start_oracle(), "set"), (start_server(), "echo")):
        with peer.conn() as conn:
            for power in range(0, 23, 2):
                conn.call(command, *["x" * (1 << power)] * (2 if command == "set" else 1))
            for _, found in histogram(conn).values():
                assert set(found) <= set(steps), peer.argv[0]
                seen |= set(found)
    assert len(seen) > 3


def test_percentiles_are_plausible(start_server):
    server = start_server("--enable-debug-command", "local")
    with server.conn() as conn:
        conn.call("CONFIG", "RESETSTAT")
        for _ in range(9):
            conn.call("DEBUG", "SLEEP", 0)
        conn.call("DEBUG", "SLEEP", "0.05")
        conn.call("CONFIG", "SET", "latency-tracking-info-percentiles",
                  "50 100")
        line = [l for l in conn.call("INFO", "latencystats").decode().split()
                if l.startswith("latency_percentiles_usec_debug")][0]
        shown = dict(p.split("=") for p in line.split(":")[1].split(","))
        assert float(shown["p50"]) < 50000
        assert 50000 <= float(shown["p100"]) < 500000
        _, steps = histogram(conn, line.split(":")[0].split("_usec_")[1])\
            .popitem()[1]
        # Nine were below 32.8 ms, unless the machine was very slow.
        assert steps[max(steps)] == 10


@pytest.mark.parametrize("proto", [2, 3])
def test_nothing_is_recorded_when_it_is_off(start_server, proto):
    server = start_server("--latency-tracking", "no")
    with server.conn(proto) as conn:
        conn.call("PING")
        assert not conn.call("LATENCY", "HISTOGRAM")
        assert "# Latencystats" in conn.call("INFO", "latencystats").decode()
