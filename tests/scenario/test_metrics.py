# SPDX-License-Identifier: BSD-3-Clause
#
# /metrics at metrics-port: both text forms under the eyes of Prometheus's own
# tools, figures that follow the work, and clients that mean no good.

import contextlib
import os
import re
import socket
import subprocess
import time

import pytest

from lib import neighbour, resp, servers, web

FACTOR = servers.time_factor()


@pytest.fixture
def start_web(start_server):
    return lambda *options, **kwargs: web.Web(start_server, *options, **kwargs)


def work(server):
    """One of everything that a scrape counts."""
    with server.conn() as conn:
        conn.call("BF.ADD", "a", "x")
        conn.call("BF.EXISTS", "a", "x")
        conn.call("BF.EXISTS", "none", "x")
        conn.call("BF.RESERVE", "b", "0.01", "100", "EX", "1000")
        conn.call("NOPE")
        conn.call("CONFIG", "SET", "port")


# ---- the text --------------------------------------------------------------

def test_the_port_is_off_by_default(server):
    with server.conn() as conn:
        assert conn.call("CONFIG", "GET", "metrics-port")[1] == b"0"


def test_promtool_finds_nothing_to_complain_about(start_web):
    site = start_web()
    work(site.server)
    got = web.promtool("check", "metrics", stdin=site.ask().text.encode())
    assert (got.returncode, got.stdout) == (0, b"")


def test_both_forms_have_the_same_samples(start_web):
    parsers = pytest.importorskip("prometheus_client.parser")
    strict = pytest.importorskip("prometheus_client.openmetrics.parser")
    site = start_web()
    work(site.server)
    assert site.ask().getheader("Content-Type") == \
        "text/plain; version=0.0.4; charset=utf-8"
    opened = site.ask(Accept=web.OPEN)
    assert opened.getheader("Content-Type") == \
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert opened.text.endswith("\n# EOF\n")

    def samples(families):
        return {(sample.name, tuple(sorted(sample.labels.items())))
                for family in families for sample in family.samples}

    def both():
        plain = site.ask().text
        opened = site.ask(Accept=web.OPEN).text
        return samples(parsers.text_string_to_metric_families(plain)), \
            samples(strict.text_string_to_metric_families(opened))

    # A loop counts a call after it has sent the reply.
    servers.wait_until(lambda: (got := both())[0] == got[1] and len(got[0]) > 100 and
                       any("error" in dict(labels) for _, labels in got[0]), 10,
                       "the same samples")


def test_the_form_follows_what_the_client_accepts(start_web):
    site = start_web()
    for accept, form in (
            ("*/*", "text/plain"), ("text/plain", "text/plain"),
            (web.OPEN + ";q=0.3,text/plain;q=0.5", "text/plain"),
            # What Prometheus 2.42 sends.
            ("application/openmetrics-text;version=1.0.0,"
             "application/openmetrics-text;version=0.0.1;q=0.75,"
             "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", web.OPEN)):
        got = site.ask(Accept=accept)
        assert got.getheader("Content-Type").startswith(form), accept


def test_every_row_of_the_table_is_there(start_web):
    site = start_web()
    got = subprocess.run([servers.server_binary(), "--print=metrics"],
                         stdout=subprocess.PIPE, check=True).stdout.decode()
    rows = [line.split()[:2] for line in got.splitlines()]
    found = web.names(site.ask().text)
    for name, kind in rows:
        stem = name[len("total_"):] if name.startswith("total_") else name
        for end in ("_bytes", "_usec", "_time", "_count"):
            stem = stem[:-len(end)] if stem.endswith(end) else stem
        wanted = {"bloomery_%s%s%s" % (stem, unit,
                                       "_total" if kind == "counter" else "")
                  for unit in ("", "_bytes", "_seconds")}
        assert found & wanted, name


def test_figures_follow_the_work(start_web):
    site = start_web()
    work(site.server)
    # A loop counts a call after it has sent the reply.
    got = servers.wait_until(
        lambda: (v := site.values()).get('bloomery_errors_total{error="ERR"}') == 2 and
        v, 10, "all calls")
    assert got['bloomery_command_calls_total{command="BF.ADD"}'] == 1
    assert got['bloomery_command_calls_total{command="BF.EXISTS"}'] == 2
    assert got['bloomery_command_time_seconds_total{command="BF.EXISTS"}'] > 0
    assert got['bloomery_command_duration_seconds_count{command="BF.ADD"}'] == 1
    assert got['bloomery_command_duration_seconds_bucket{command="BF.ADD",'
               'le="+Inf"}'] == 1
    assert got['bloomery_keys{db="0"}'] == 2
    assert got['bloomery_keys_expiring{db="0"}'] == 1
    assert got["bloomery_keyspace_hits_total"] == 1
    assert got["bloomery_keyspace_misses_total"] == 1
    assert got["bloomery_bf_bloom_num_objects"] == 2
    assert got['bloomery_journal_state{state="on"}'] == 1
    assert got["bloomery_journal_misconf"] == 0
    assert got["bloomery_memory_resident_bytes"] > 1 << 20
    assert got["bloomery_is_replica"] == 0
    assert 0 <= time.time() - got["bloomery_start_time_seconds"] < 3600
    with site.server.conn() as conn:
        for _ in range(50):
            conn.call("BF.ADD", "a", "x")
    servers.wait_until(lambda: site.values()[
        'bloomery_command_calls_total{command="BF.ADD"}'] == 51, 5, "51 calls")


def test_the_space_on_the_disk_shows(start_web, tmp_path):
    site = start_web("--dir", tmp_path)
    shown = servers.wait_until(
        lambda: site.values().get("bloomery_dir_available_bytes"), 20, "it was asked")
    disk = os.statvfs(tmp_path)
    assert abs(shown - disk.f_bavail * disk.f_frsize) < 2 << 30


def test_a_save_shows(start_web):
    site = start_web()
    assert site.values()["bloomery_snapshots_total"] == 0
    with site.server.conn() as conn:
        conn.call("SAVE")
    servers.wait_until(lambda: site.values()["bloomery_snapshots_total"] == 1, 10,
                       "a snapshot")
    assert site.values()["bloomery_snapshot_last_ok"] == 1


def test_replicas_and_their_primary_show(start_web):
    primary, replica = start_web(), start_web()
    with replica.server.conn() as conn:
        conn.call("REPLICAOF", "127.0.0.1", primary.server.port)
    servers.wait_until(
        lambda: replica.values().get("bloomery_primary_link_up") == 1, 20, "link")
    name = '{replica="127.0.0.1:%d"}' % replica.server.port
    servers.wait_until(lambda: primary.values().get(
        "bloomery_replica_online" + name) == 1, 20, "the replica is online")
    with primary.server.conn() as conn:
        conn.call("BF.ADD", "a", "x")
        conn.call("WAIT", 1, 0)
    servers.wait_until(lambda: primary.values()[
        "bloomery_replica_lag_bytes" + name] == 0, 20, "no lag")
    got = primary.values()
    assert got["bloomery_connected_replicas"] == 1
    assert got["bloomery_full_syncs_total"] >= 1
    assert replica.values()["bloomery_is_replica"] == 1


# ---- probes ----------------------------------------------------------------

def ping_says(site):
    """Returns (whether --ping=ready is well, the reason)."""
    got = subprocess.run([servers.server_binary(), "--ping=ready", "--port",
                          str(site.server.port), "--bind", "127.0.0.1"], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    return got.returncode == 0, re.sub("^.*(it is not ready|it answers): ", "",
                                       got.stdout.strip())


def readyz(site, part=None):
    """Returns whether /readyz says what --ping=ready says: that it is ready, or a
    reason with this part."""
    assert site.ask("/livez").text == "OK\n"
    got, (well, why) = site.ask("/readyz"), ping_says(site)
    if part is None:
        return well and (got.status, got.text) == (200, "OK\n")
    return not well and got.status == 503 and part in why and \
        got.text == "503 Service Unavailable: %s\n" % why


def test_a_replica_is_ready_when_it_has_had_the_data(start_web, start_server):
    site = start_web("--replicaof", "127.0.0.1 %d" % servers.free_port())
    assert readyz(site, "primary's data")
    primary = start_server()
    with site.server.conn() as conn:
        assert conn.call("REPLICAOF", "127.0.0.1", primary.port) == b"OK"
        servers.wait_until(lambda: readyz(site), 20, "it has synchronized")
        assert conn.call("CONFIG", "SET", "replica-serve-stale-data", "no") == b"OK"
        primary.kill()
        servers.wait_until(lambda: readyz(site, "MASTERDOWN"), 20, "it refuses PING")
        assert conn.call("REPLICAOF", "NO", "ONE") == b"OK"
        servers.wait_until(lambda: readyz(site), 20, "it is a primary")


def test_a_sidecar_without_its_node_is_alive_and_not_ready(start_web):
    site = start_web("--sidecar-of", "127.0.0.1:%d" % servers.free_port(),
                     *neighbour.EMPTY)
    servers.wait_until(lambda: readyz(site, "no lease"), 20, "it has no lease")


# ---- requests --------------------------------------------------------------

def test_head_is_get_without_a_body(start_web):
    site = start_web()
    got = site.ask(method="HEAD")
    assert got.status == 200 and got.text == ""
    assert int(got.getheader("Content-Length")) > 10000


@pytest.mark.parametrize("path, method, host, status", [
    ("/nothing", "GET", None, 404), ("/metrics/", "GET", None, 404),
    ("/metrics?a=b", "GET", None, 200), ("/metrics", "POST", None, 405),
    ("/metrics", "DELETE", None, 405), ("/", "OPTIONS", None, 405),
    ("/metrics", "GET", "evil.example", 421),
    ("/metrics", "GET", "localhost:80", 200), ("/metrics", "GET", "[::1]", 200),
])
def test_other_requests_are_told_why(start_web, path, method, host, status):
    site = start_web()
    got = site.ask(path, method, **({"Host": host} if host else {}))
    assert got.status == status
    assert got.getheader("Access-Control-Allow-Origin") is None
    assert got.getheader("X-Content-Type-Options") == "nosniff"
    assert got.getheader("Cache-Control") == "no-store"
    assert "default-src 'none'" in got.getheader("Content-Security-Policy")
    if status != 200:
        assert got.text.startswith("%d " % status)


@pytest.mark.parametrize("data, status", [
    (resp.command("PING"), b"400"), (b"\x16\x03\x01\x02\x00", b"400"),
    (b"GET / HTTP/1.1\r\n\r\n", b"400"), (b"GET / HTTP/1.0\n\n", b"400"),
    (b"GET / HTTP/1.0\r\nA: " + b"a" * 9000, b"431"),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
    (b"GET / HTTP/3.0\r\n\r\n", b"505"),
])
def test_bytes_that_are_no_request_are_refused(start_web, data, status):
    site = start_web()
    with site.connect() as sock:
        sock.sendall(data)
        assert web.read_all(sock).startswith(b"HTTP/1.1 " + status)
    assert site.ask().status == 200


def test_silent_and_slow_clients_are_cut(start_web):
    site = start_web("--metrics-timeout", 1)
    with site.connect() as silent, site.connect() as slow:
        slow.sendall(b"GET /metrics HTTP/1.0\r\n")
        assert web.read_all(silent) == b""
        assert web.read_all(slow) == b""
    assert site.values()["bloomery_metrics_connections_cut_total"] >= 2


def test_many_connections_do_not_keep_a_scrape_out(start_web):
    site = start_web("--metrics-max-clients", 4, "--metrics-timeout", 3600)
    before = site.server.fds()
    held = [site.connect() for _ in range(50)]
    for sock in held:
        sock.sendall(b"GET /metrics HTTP/1.0\r\n")
    assert site.ask().status == 200
    servers.wait_until(lambda: site.server.fds() <= before + 4, 5, "four are held")
    with site.server.conn() as conn:
        assert conn.call("PING") == b"PONG"
    for sock in held:
        sock.close()


def test_a_client_that_does_not_read_holds_little(start_web):
    site = start_web("--metrics-timeout", 2)
    held = []
    for _ in range(30):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        sock.connect(site.address)
        sock.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        held.append(sock)
    assert site.ask().status == 200
    servers.wait_until(lambda: site.server.fds() < 60, 20, "they are cut")
    for sock in held:
        sock.close()


def test_a_stranger_is_denied_without_a_password(start_web):
    """Over an address that is not loopback, if this machine has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            address = probe.getsockname()[0]
        except OSError:
            pytest.skip("no other address than loopback")
    if address.startswith("127."):
        pytest.skip("no other address than loopback")
    site = start_web("--metrics-bind", "0.0.0.0")
    got = site.ask(host=address)
    assert got.status == 403 and "protected mode" in got.text
    assert site.ask().status == 200
    with site.server.conn() as conn:
        conn.call("CONFIG", "SET", "requirepass", "pw")
    assert site.ask(host=address).status == 200


def test_a_port_in_use_ends_the_start(start_web, start_server):
    site = start_web()
    other = start_server("--metrics-port", site.port, ready=False)
    assert other.wait_exit() == 1
    assert b"Address already in use" in other.log()
    other.stopped = True


def test_a_request_that_has_not_ended_ends_with_the_server(start_web):
    site = start_web()
    sock = site.connect()
    sock.sendall(b"GET /met")
    site.server.stop()
    with contextlib.suppress(ConnectionResetError):  # it may not have read that
        assert web.read_all(sock) == b""
    sock.close()
