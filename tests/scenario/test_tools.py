# SPDX-License-Identifier: BSD-3-Clause
#
# Tools that users run against a server: redis-cli and valkey-cli in all their modes,
# redis-benchmark, memtier_benchmark, Debian's Prometheus exporter and iredis. A tool
# that is neither installed nor in build/redis is skipped by name.

import json
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

from lib import resp, servers, tools
from lib.tools import cli, run, tool

FACTOR = servers.time_factor()
# The number of commands of the larger runs: fewer where each is much slower.
MANY = 20000 if servers.sanitized() else 100000


@pytest.fixture(params=["redis-cli", "valkey-cli"])
def name(request):
    tool(request.param)
    return request.param


@pytest.fixture
def filled(server):
    """500 filters, and a slow log that stays empty even on a slow machine."""
    with server.conn() as conn:
        conn.call("CONFIG", "SET", "slowlog-log-slower-than", -1)
        conn.call("SLOWLOG", "RESET")
        conn.pipeline([("BF.ADD", "key:%d" % i, "x") for i in range(500)])
    return server


def follow(server, *args):
    """redis-cli that runs until the test ends it."""
    return tools.Reader([tool("redis-cli"), "-p", server.port, *args])


# ---- redis-cli: one command ------------------------------------------------

def test_cli_one_shot(server, name):
    def say(*args, **kwargs):
        got = run(server, name, *args, **kwargs)
        assert got.returncode == 0, got
        return got.stdout.decode()

    assert say("PING") == "PONG\n"
    assert say("BF.MADD", "k", "a", "b") == "1\n1\n"
    assert say("--no-raw", "BF.EXISTS", "k", "a") == "(integer) 1\n"
    assert "(error) ERR item exists" in say("--no-raw", "BF.RESERVE", "k",
                                            "0.01", "10")
    assert say("-n", "3", "DBSIZE") == "0\n"
    assert say("-r", "3", "PING") == "PONG\n" * 3
    assert say("-x", "BF.ADD", "k", stdin=b"from stdin") == "1\n"
    assert say("-X", "tag", "BF.ADD", "k", "tag", stdin=b"tagged") == "1\n"
    assert say("BF.MEXISTS", "k", "from stdin", "tagged") == "1\n1\n"
    assert say("-u", "redis://127.0.0.1:%d/3" % server.port, "BF.ADD", "k",
               "a") == "1\n"
    assert say("-n", "3", "DBSIZE") == "1\n"


def test_cli_exit_status_and_forms_of_output(server):
    assert run(server, "redis-cli", "-e", "NOPE").returncode == 1
    assert run(server, "redis-cli", "-e", "BF.ADD", "k", "a").returncode == 0
    assert cli(server, "--csv", "BF.MADD", "k", "a", "b") == "0,1\n"
    assert cli(server, "-d", ";", "BF.MEXISTS", "k", "a", "c") == "1;0\n"
    info = json.loads(cli(server, "-3", "--json", "BF.INFO", "k"))
    assert info[:2] == ["Capacity", 100]
    docs = json.loads(cli(server, "-3", "--json", "COMMAND", "DOCS", "bf.add"))
    assert docs["BF.ADD"]["arguments"][0]["name"] == "key"


def test_cli_resp3(server, name):
    run(server, name, "BF.RESERVE", "k", "0.01", "1000")
    out = run(server, name, "-3", "--no-raw", "BF.INFO", "k").stdout.decode()
    assert "(double) 0.01" in out and "Max scaled capacity" in out
    assert "1#" in cli(server, "-3", "--no-raw", "CONFIG", "GET", "maxmemory")
    assert "redis_version" in cli(server, "-3", "INFO")


def test_cli_in_the_dialect_redis(start_server):
    server = start_server("--dialect", "redis")
    assert cli(server, "-3", "--no-raw", "BF.MADD", "k", "a", "a") == \
        "1) (true)\n2) (false)\n"
    assert "5#" in cli(server, "-3", "--no-raw", "BF.INFO", "k")
    assert cli(server, "TYPE", "k") == "MBbloom--\n"
    assert "500 MBbloom--" not in cli(server, "--bigkeys")
    assert "1 MBbloom--" in cli(server, "--bigkeys")


def test_cli_auth(start_server):
    server = start_server("--requirepass", "pw")
    assert "NOAUTH" in cli(server, "BF.ADD", "k", "a")
    assert cli(server, "--no-auth-warning", "-a", "pw", "BF.ADD", "k",
               "a") == "1\n"
    assert cli(server, "--no-auth-warning", "--user", "default", "--pass", "pw",
               "-3", "PING") == "PONG\n"


def test_cli_script_on_stdin(server):
    out = cli(server, stdin=b"BF.ADD k a\nMULTI\nBF.CARD k\nEXEC\n"
                            b"SELECT 2\nDBSIZE\nHELLO 3\n")
    assert "QUEUED" in out and "proto" in out


# ---- redis-cli: a terminal -------------------------------------------------

@pytest.fixture
def terminal(server):
    argv = [tool("redis-cli"), "-p", str(server.port)]
    with tools.Terminal(argv) as shown:
        shown.until(rb"127\.0\.0\.1:\d+> $")
        yield shown


# Typed text -> the hint that redis-cli shows after it.
HINTS = [
    ("bf.add ", rb"bf\.add key item"),
    ("bf.add k ", rb"bf\.add k item"),
    ("bf.reserve ", rb"bf\.reserve key error_rate capacity \[EXPANSION "),
    ("BF.INSERT k ITEMS ", rb"BF\.INSERT k ITEMS "),
    ("bf.countnew ", rb"bf\.countnew key item \[item \.\.\.\]"),
    ("bf.reset ", rb"bf\.reset key"),
    ("bf.merge ", rb"bf\.merge \w+ \w+ \[\w+ \.\.\.\]"),
    ("client tracking ", rb"client tracking ON\|OFF \[REDIRECT client-id\]"),
    ("slowlog get ", rb"slowlog get \[count\]"),
    ("object freq ", rb"object freq key"),
    ("config set ", rb"config set parameter value"),
    ("expire k ", rb"expire k seconds \[NX\|XX\|GT\|LT\]"),
    ("copy a b ", rb"copy a b \[DB destination-db\] \[REPLACE\]"),
]


def test_cli_shows_hints(terminal):
    for text, shown in HINTS:
        terminal.type(text)
        terminal.until(rb"> %s" % shown)
        terminal.type("\x15")
        terminal.until(rb"> \r?$")


def test_cli_completes_and_helps(terminal):
    terminal.type("BF.RES\t")
    terminal.until(rb"BF\.RESERVE key error_rate")
    terminal.type("\x15help bf.madd\r")
    terminal.until(rb"BF\.MADD key item \[item \.\.\.\].*summary: \w"
                   rb".*group: bloom.*> $")
    terminal.type("help @bloom\r")
    terminal.until(rb"BF\.ADD key item.*BF\.RESERVE key error_rate.*> $")


def test_cli_session_in_a_terminal(terminal):
    terminal.type("bf.add k x\r")
    terminal.until(rb"\(integer\) 1\r\n.*> $")
    terminal.type("select 3\r")
    terminal.until(rb"\[3\]> $")
    terminal.type("multi\r")
    terminal.until(rb"OK\r\n.*\[3\]\(TX\)> $")
    terminal.type("bf.card k\r")
    terminal.until(rb"QUEUED\r\n.*> $")
    terminal.type("exec\r")
    terminal.until(rb"1\) \(integer\) 0\r\n.*\[3\]> $")
    terminal.type("hello 3\r")
    terminal.until(rb'"proto" => \(integer\) 3.*\]> $')
    terminal.type("config get maxmemory\r")
    terminal.until(rb'1# "maxmemory" => "0"')


# ---- redis-cli: its tools --------------------------------------------------

def test_cli_stat(filled):
    with follow(filled, "--stat", "-i", "0.02") as child:
        child.until(rb"keys +mem +clients +blocked +requests +connections")
        line = child.until(rb"\n(500 +\d[\d.]*[BKMG] +\d+ +0 +\d+ \(\+\d+\) +\d+)")
        child.until(re.escape(line.group(1)) + rb".*\n500 .*\n500 ")


def test_cli_scan(filled):
    every = sorted("key:%d" % i for i in range(500))
    assert sorted(cli(filled, "--scan").split()) == every
    assert len(cli(filled, "--scan", "--pattern", "key:1?").split()) == 10
    assert cli(filled, "--scan", "--quoted-pattern", '"\\x6bey:7"') == "key:7\n"
    assert cli(filled, "--scan", "--pattern", "nope*") == ""


def test_cli_bigkeys_and_memkeys(filled):
    out = cli(filled, "--bigkeys")
    assert "Sampled 500 keys in the keyspace" in out and "500 bloomfltr" in out
    for more in ((), ("--memkeys-samples", "0")):
        out = cli(filled, "--memkeys", *more)
        assert "Sampled 500 keys in the keyspace" in out
        assert re.search(r"Biggest bloomfltr found .* has \d+ bytes", out), out


def test_cli_hotkeys_needs_an_lfu_policy(filled):
    got = run(filled, "redis-cli", "--hotkeys")
    assert got.returncode == 1
    assert b"ERR An LFU maxmemory policy is not selected" in got.stderr + got.stdout
    assert cli(filled, "CONFIG", "SET", "maxmemory-policy", "allkeys-lfu") == "OK\n"
    out = cli(filled, "--hotkeys")
    assert "Sampled 500 keys in the keyspace" in out, out
    assert re.search(r"hot key found with counter: \d+\tkeyname: \"?key:", out), out


def test_cli_latency(server):
    # Without a terminal it prints one line after -i seconds and ends.
    out = run(server, "redis-cli", "--raw", "-i", "0.1", "--latency").stdout
    assert re.match(rb"\d+ \d+ \d+\.\d+ \d+", out), out
    argv = [tool("redis-cli"), "-p", str(server.port), "-i", "0.1"]
    with tools.Terminal(argv + ["--latency-history"]) as shown:
        shown.until(rb"min: \d+, max: \d+, avg: .* samples.*seconds range"
                    rb".*seconds range")
    with tools.Terminal(argv + ["--latency-dist"]) as shown:
        shown.until(rb"[.\xe2].*[\r\n].*\n")


def test_cli_pipe(server):
    data = b"".join(resp.command("BF.ADD", "piped", i) for i in range(MANY))
    out = cli(server, "--pipe", stdin=data)
    assert "errors: 0, replies: %d" % MANY in out
    data = b"".join(b"BF.ADD inline %d\r\n" % i for i in range(MANY))
    out = cli(server, "--pipe", stdin=data)
    assert "errors: 0, replies: %d" % MANY in out
    data = b"BF.ADD piped inline\r\nBF.ADD piped\r\nBF.ADD piped inline2\r\n"
    got = run(server, "redis-cli", "--pipe", stdin=data)
    assert b"errors: 1, replies: 3" in got.stdout
    assert cli(server, "BF.MEXISTS", "piped", "5", "inline2") == "1\n1\n"
    last = str(MANY - 1)
    assert cli(server, "BF.MEXISTS", "inline", "0", last) == "1\n1\n"


@pytest.mark.port
def test_cli_monitor(server):
    with follow(server, "MONITOR") as child:
        child.until(rb"^OK\r?\n")
        with server.conn() as conn:
            conn.call("BF.ADD", "k\r\n", 'a"b')
            conn.call("SELECT", 3)
            conn.call("AUTH", "default", "secret")
            conn.call("BF.MADD", "k", "c", "d")
        child.until(rb'\n\d+\.\d{6} \[0 127\.0\.0\.1:\d+\] '
                    rb'"BF\.ADD" "k\\r\\n" "a\\"b"\r?\n.*'
                    rb'\[3 127\.0\.0\.1:\d+\] "BF\.MADD" "k" "c" "d"\r?\n')
        assert b"secret" not in child.seen


@pytest.mark.parametrize("proto", [(), ("-3",)], ids=["RESP2", "RESP3"])
def test_cli_subscribe(server, proto):
    with follow(server, *proto, "SUBSCRIBE", "ch1", "ch2") as child, \
            follow(server, *proto, "PSUBSCRIBE", "c*") as pattern:
        child.until(rb"subscribe\r?\nch1\r?\n1\r?\nsubscribe\r?\nch2\r?\n2\r?\n")
        pattern.until(rb"psubscribe\r?\nc\*\r?\n1\r?\n")
        assert cli(server, "PUBLISH", "ch2", "hello") == "2\n"
        child.until(rb"message\r?\nch2\r?\nhello\r?\n")
        pattern.until(rb"pmessage\r?\nc\*\r?\nch2\r?\nhello\r?\n")
        assert cli(server, "PUBSUB", "NUMSUB", "ch1") == "ch1\n1\n"


def test_cli_shows_keyspace_events(server):
    cli(server, "CONFIG", "SET", "notify-keyspace-events", "KEA")
    with follow(server, "PSUBSCRIBE", "__key*__:*") as child:
        child.until(rb"psubscribe\r?\n")
        cli(server, "BF.ADD", "k", "x")
        child.until(rb"__keyspace@0__:k\r?\nbloom\.(add|reserve)\r?\n")
        cli(server, "DEL", "k")
        child.until(rb"__keyevent@0__:del\r?\nk\r?\n")


def test_cli_shows_invalidations(server):
    argv = [tool("redis-cli"), "-p", str(server.port), "-3", "--show-pushes", "yes"]
    with tools.Terminal(argv) as shown:
        shown.until(rb"> $")
        shown.type("client tracking on\r")
        shown.until(rb"OK\r\n.*> $")
        shown.type("bf.card k\r")
        shown.until(rb"\(integer\) 0\r\n.*> $")
        cli(server, "BF.ADD", "k", "x")
        for _ in range(100):
            # redis-cli shows messages when it has something to send.
            shown.type("ping\r")
            shown.until(rb"PONG\r\n.*> $")
            if b"invalidate" in shown.seen:
                break
        assert re.search(rb"invalidate.*'k'", shown.seen), shown.seen


# Commands for parts of Redis that do not exist here: refused with a message
# and an exit status, and without harm.
REFUSED = [
    (("--rdb", "{folder}/x.rdb"), b"SYNC|PSYNC|REPLCONF"),
    (("--functions-rdb", "{folder}/x.rdb"), b"SYNC|PSYNC|REPLCONF"),
    (("--replica",), b"SYNC with master failed: -ERR "),
    (("--cluster", "check", "127.0.0.1:{port}"),
     b"is not configured as a cluster node"),
    (("--cluster", "info", "127.0.0.1:{port}"),
     b"is not configured as a cluster node"),
    (("-e", "CLUSTER", "SLOTS"), b"cluster support disabled"),
    (("-e", "--eval", "/dev/null"), b"ERR scripts are not supported"),
]


@pytest.mark.parametrize("args,words", REFUSED, ids=[
    " ".join(a) for a, _ in REFUSED])
def test_cli_refusals(server, tmp_path, args, words):
    cli(server, "BF.ADD", "k", "x")
    args = [a.format(folder=tmp_path, port=server.port) for a in args]
    got = run(server, "redis-cli", *args, stdin=b"")
    assert re.search(words, got.stdout + got.stderr), got
    assert got.returncode != 0 or "--eval" in args
    assert cli(server, "BF.EXISTS", "k", "x") == "1\n"
    left = list(tmp_path.iterdir())
    assert all(path.stat().st_size == 0 for path in left), left


def test_cli_ignores_text_that_looks_like_a_redirection(server):
    assert cli(server, "-c", "BF.ADD", "k", "x") == "1\n"


# ---- redis-benchmark and memtier -------------------------------------------

@pytest.mark.parametrize("args", [
    ("-t", "ping"), ("-P", "16"), ("-3",), ("-c", "1"), ("--threads", "2"),
    ("-3", "--enable-tracking", "-P", "16"), ("--enable-tracking",),
    ("-k", "0", "-c", "8"), ("--threads", "2", "-P", "32", "-c", "64", "-3"),
], ids=" ".join)
def test_benchmark(server, args):
    command = [] if "-t" in args else ["BF.ADD", "bench", "__rand_int__"]
    few = {"-k", "-c"} & set(args) and "-P" not in args
    count = 4000 if few else 20000
    got = run(server, "redis-benchmark", "-q", "-n", count, "-r", "100000",
              *args, *command, seconds=120)
    assert got.returncode == 0
    assert b"requests per second" in got.stdout
    text = (got.stdout + got.stderr).decode("utf-8", "replace")
    assert "rror" not in text.replace("WARNING", ""), text
    if command:
        assert int(cli(server, "BF.CARD", "bench")) > count // 2


@pytest.mark.parametrize("command", [
    "BF.EXISTS bench __rand_int__", "BF.MADD bench __rand_int__ __rand_int__ a",
    "BF.MEXISTS bench __rand_int__ b", "BF.CARD bench", "BF.INFO bench",
    "BF.INSERT key:__rand_int__ ITEMS a b", "PUBLISH ch __rand_int__",
    "EXPIRE key:__rand_int__ 100", "TYPE bench",
])
def test_benchmark_of_a_command(server, command):
    cli(server, "BF.RESERVE", "bench", "0.001", "100000")
    got = run(server, "redis-benchmark", "--csv", "-n", 4000, "-P", "8", "-c",
              "16", "-r", "1000", *command.split())
    text = (got.stdout + got.stderr).decode("utf-8", "replace")
    assert got.returncode == 0 and "rror" not in text.replace("WARNING", ""), text
    header, line = [row for row in text.splitlines() if row.startswith('"')]
    assert header.startswith('"test","rps","avg_latency_ms"')
    assert float(line.split('","')[1]) > 0


def test_benchmark_asks_for_the_configuration(server):
    """It prints save and appendonly if it can read them, otherwise a
    warning."""
    got = run(server, "redis-benchmark", "-n", "100", "-t", "ping_mbulk")
    out = (got.stdout + got.stderr).decode()
    assert "host configuration" in out and "WARNING" not in out, out


def test_benchmark_with_a_password(start_server):
    server = start_server("--requirepass", "pw")
    got = run(server, "redis-benchmark", "-q", "-a", "pw", "-n", "2000",
              "--dbnum", "2", "-r", "1000", "BF.ADD", "bench", "__rand_int__")
    assert got.returncode == 0 and b"requests per second" in got.stdout


def test_memtier(server):
    argv = [tool("memtier_benchmark"), "-s", "127.0.0.1", "-p",
            str(server.port), "-n", "500", "-c", "5", "-t", "2", "--pipeline",
            "4", "--hide-histogram", "--command=BF.ADD k __key__"]
    for proto in ("redis", "resp2", "resp3"):
        got = subprocess.run(argv + ["--protocol", proto], capture_output=True,
                             timeout=60 * FACTOR)
        assert got.returncode == 0, got
        assert b"Totals" in got.stdout
    assert int(cli(server, "BF.CARD", "k")) > 0


# ---- the exporter ----------------------------------------------------------

class Exporter:
    """The exporter, with its log in a file: it blocks if no process reads its
    output."""

    def __init__(self, port, *args):
        address = "127.0.0.1:%d" % servers.free_port()
        self.url = "http://%s/metrics" % address
        self.log = tempfile.TemporaryFile()
        self.child = subprocess.Popen([
            tool("prometheus-redis-exporter"), "-debug",
            "-redis.addr", "redis://127.0.0.1:%d" % port,
            "-web.listen-address", address, *args],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()
        self.log.close()

    def scrape(self):
        def ask():
            try:
                return urllib.request.urlopen(self.url, timeout=10 * FACTOR).read()
            except urllib.error.HTTPError as error:
                raise AssertionError(error.read()[:2000])
            except OSError:
                return None
        return servers.wait_until(ask, what="the exporter answers").decode()

    def complaints(self):
        self.log.seek(0)
        lines = self.log.read().decode().splitlines()
        assert any("running command: INFO" in line for line in lines), lines
        return [line for line in lines if "level=error" in line or
                "level=warn" in line or "c.Do() - err" in line]


def values(metrics):
    """name{labels} -> value"""
    return dict(line.rsplit(" ", 1) for line in metrics.splitlines()
                if line and not line.startswith("#"))


def names(metrics):
    return {name.split("{")[0] for name in values(metrics)
            if name.startswith("redis_")}


def test_exporter_scrapes_without_error(filled):
    with filled.conn() as conn:
        conn.call("EXPIRE", "key:1", 1000)
        conn.call("BF.EXISTS", "key:1", "x")
    with Exporter(filled.port, "-include-system-metrics", "-export-client-list",
                  "-include-config-metrics", "-count-keys", "db0=key:1*",
                  "-ping-on-connect") as exporter:
        got = [values(exporter.scrape()) for _ in range(2)][1]
        assert exporter.complaints() == []
    assert got["redis_up"] == "1"
    assert got['redis_exporter_last_scrape_error{err=""}'] == "0"
    assert got['redis_db_keys{db="db0"}'] == "500"
    assert got['redis_db_keys_expiring{db="db0"}'] == "1"
    assert got['redis_keys_count{db="db0",key="key:1*"}'] == "111"
    assert float(got["redis_memory_used_bytes"]) > 100000
    assert got["redis_connected_clients"] == "1"
    assert got['redis_commands_total{cmd="BF.ADD"}'] == "500"
    assert got['redis_commands_total{cmd="BF.EXISTS"}'] == "1"
    assert float(got['redis_commands_duration_seconds_total{cmd="BF.ADD"}']) > 0
    assert got['redis_commands_failed_calls_total{cmd="BF.ADD"}'] == "0"
    assert got['redis_config_value{key="bf.bloom-capacity"}'] == "100"
    assert got["redis_slowlog_length"] == "0"
    assert any(name.startswith("redis_connected_clients_details{") and
               'name="redis_exporter"' in name for name in got)
    assert any(name.startswith("redis_instance_info{") and
               'redis_mode="standalone"' in name and 'role="master"' in name
               for name in got)


def test_exporter_does_not_know_the_fields_of_filters(filled):
    """Therefore packaging/doc/watching.md scrapes metrics-port beside it."""
    with Exporter(filled.port, "-include-system-metrics") as exporter:
        assert "bf_" not in exporter.scrape()


def test_exporter_sees_a_slow_command_and_a_latency_event(start_server):
    server = start_server("--enable-debug-command", "yes")
    with server.conn() as conn:
        conn.call("CONFIG", "SET", "slowlog-log-slower-than", 1000)
        conn.call("CONFIG", "SET", "latency-monitor-threshold", 1)
        assert conn.call("DEBUG", "SLEEP", "0.02") == b"OK"
        # The newest entry stays DEBUG SLEEP on a slow machine too.
        conn.call("CONFIG", "SET", "slowlog-log-slower-than", -1,
                  "latency-monitor-threshold", 0)
    with Exporter(server.port) as exporter:
        got = values(exporter.scrape())
        assert exporter.complaints() == []
    assert int(got["redis_slowlog_length"]) >= 1
    assert float(got["redis_last_slow_execution_duration_seconds"]) >= 0.02
    assert float(got['redis_latency_spike_duration_seconds{event_name="command"}']) \
        >= 0.02


def test_exporter_with_a_password(start_server):
    server = start_server("--requirepass", "pw")
    with Exporter(server.port) as exporter:
        assert values(exporter.scrape())["redis_up"] == "0"
    with Exporter(server.port, "-redis.password", "pw") as exporter:
        assert values(exporter.scrape())["redis_up"] == "1"
        assert exporter.complaints() == []


# Metrics of redis-server 7.0.15 that are missing here, and why.
NOT_THERE = {
    "redis_client_recent_max_input_buffer_bytes": "see mem_clients_input",
    "redis_client_recent_max_output_buffer_bytes": "see mem_clients_output",
    "redis_clients_in_timeout_table": "there is no such table",
    "redis_config_io_threads": "all threads do everything: see `threads`",
    "redis_dump_payload_sanitizations": "every payload is checked wholly",
    "redis_expired_stale_percentage": "what is due is known, nothing is sampled",
    "redis_io_threaded_reads_processed": "all threads do everything",
    "redis_io_threaded_writes_processed": "all threads do everything",
}


def test_exporter_shows_the_metrics_that_it_shows_of_redis(server, oracle):
    """Dashboards stay filled: every metric of redis-server 7.0.15 is there."""
    with server.conn() as ours, oracle.conn() as theirs:
        ours.call("BF.ADD", "k", "x")
        theirs.call("SET", "k", "x")
    shown = []
    for process in (server, oracle):
        with Exporter(process.port, "-include-system-metrics",
                      "-export-client-list") as exporter:
            shown.append(names(exporter.scrape()))
    missing = shown[1] - shown[0]
    if servers.sanitized():  # the sanitizers' allocator has no statistics
        missing = {name for name in missing if "_allocator_" not in name}
    assert missing == set(NOT_THERE), "missing %s, listed without need %s" % (
        sorted(missing - set(NOT_THERE)), sorted(set(NOT_THERE) - missing))


# ---- iredis ----------------------------------------------------------------

def test_iredis(server, tmp_path):
    argv = tools.python_tool("iredis") + [
        "-h", "127.0.0.1", "-p", str(server.port), "--iredisrc", "/dev/null"]
    with tools.Terminal(argv, HOME=str(tmp_path), PAGER="cat") as shown:
        shown.until(rb"redis-server  \d+\.\d+.*127\.0\.0\.1:\d+>")
        shown.type("bf.add k x\r")
        shown.until(rb'"?1"?\r\n127')
        shown.type("dbs")
        shown.until(rb"dbsize")
        shown.type("ize\r")
        shown.until(rb"\(integer\) 1\r")
        shown.type("peek k\r")
        shown.until(rb"bloomfltr.*127\.0\.0\.1:\d+>")
        shown.type("object encoding k\r")
        shown.until(rb'"native"')


# ---- the lint of this file -------------------------------------------------

def test_tools_that_ci_fetches_are_there():
    """tests/peers fetches these; if all their tests were skipped, CI would not
    notice."""
    if servers.oracle_missing() or not shutil.which("apt-get"):
        pytest.skip("no package manager that has them")
    for name in ("redis-cli", "redis-benchmark", "prometheus-redis-exporter",
                 "promtool"):
        assert tool(name)
