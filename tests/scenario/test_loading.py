# SPDX-License-Identifier: BSD-3-Clause
#
# While the server loads its data, it answers -LOADING to commands about the data.
# INFO, the log and metrics-port show the progress.

import json
import subprocess
import urllib.error
import urllib.request

from lib import resp, servers

KEYS = 300_000
STARTS = 10


def fill(server):
    with server.conn() as conn:
        for at in range(0, KEYS, 1000):
            conn.send(b"".join(resp.command("BF.ADD", "key:%d" % i, "x")
                               for i in range(at, at + 1000)))
            for _ in range(1000):
                assert conn.read() == 1
        assert conn.call("SAVE") == b"OK"
    server.stop()


def start(folder, port, metrics_port=0):
    return subprocess.Popen(
        [servers.server_binary(), "--dir", str(folder), "--port", str(port),
         "--metrics-port", str(metrics_port), "--save", "", "--threads", "2"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)


def connect(port):
    def attempt():
        try:
            return resp.Conn(("127.0.0.1", port))
        except OSError:
            return None
    return servers.wait_until(attempt, 20, "the port is open", pause=0.001)


def info(conn):
    text = conn.call("INFO", "persistence").decode()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def fetch(port, path):
    with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path),
                                timeout=20 * servers.time_factor()) as reply:
        return reply.read().decode()


def refused(port, path):
    """Returns the status and the text of an answer that may be an error."""
    try:
        return 200, fetch(port, path)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def look(conn, metrics_port):
    """Checks what commands answer during the load. Returns the fields of INFO
    persistence, or None if the load ended meanwhile."""
    ping = conn.call("PING")
    figures = info(conn)
    while figures["loading"] == "1" and figures["loading_total_bytes"] == "0":
        figures = info(conn)  # the server still examines the files
    add = conn.call("BF.ADD", "key:1", "y")
    if figures["loading"] == "0" or ping == b"PONG" or add in (0, 1):
        return None
    assert str(ping).startswith("LOADING"), ping
    assert str(add).startswith("LOADING"), add
    assert conn.call("CONFIG", "GET", "port")
    page, scrape = (fetch(metrics_port, path) for path in ("/status.json", "/metrics"))
    alive, (status, why) = fetch(metrics_port, "/livez"), refused(metrics_port, "/readyz")
    if info(conn)["loading"] == "0":
        return None
    assert (alive, status) == ("OK\n", 503) and why.startswith(
        "503 Service Unavailable: LOADING "), why
    assert "\nbloomery_loading 1\n" in scrape
    page = json.loads(page)
    assert page["loading"] is True
    assert page["ranking"]["seen"] == 0  # the keys are the loader's
    return figures


def test_a_server_that_loads_says_so(start_server, tmp_path):
    fill(start_server("--dir", tmp_path))
    for _ in range(STARTS):  # a start may be over before the first look
        port, metrics_port = servers.free_port(), servers.free_port()
        child = start(tmp_path, port, metrics_port)
        try:
            with connect(port) as conn:
                figures = look(conn, metrics_port)
                servers.wait_until(lambda: conn.call("PING") == b"PONG", 60,
                                   "it serves", pause=0.005)
                assert conn.call("DBSIZE") == KEYS
                assert info(conn)["rdb_last_load_keys_loaded"] == str(KEYS)
        finally:
            child.kill()
            child.wait()
        if figures is not None:
            break
    assert figures is not None, "never seen loading"
    assert int(figures["loading_total_bytes"]) > KEYS * 200
    assert 0 <= float(figures["loading_loaded_perc"]) < 100
    assert int(figures["loading_eta_seconds"]) >= 0


def test_a_stop_while_it_loads_is_quick_and_clean(start_server, tmp_path):
    fill(start_server("--dir", tmp_path))
    port = servers.free_port()
    child = start(tmp_path, port)
    connect(port).close()
    child.terminate()
    assert child.wait(10 * servers.time_factor()) == 0
