# SPDX-License-Identifier: BSD-3-Clause
#
# While the server loads its data, it answers -LOADING to commands about the data.
# INFO and the log show the progress.

import subprocess

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


def start(folder, port):
    return subprocess.Popen(
        [servers.server_binary(), "--dir", str(folder), "--port", str(port),
         "--save", "", "--threads", "2"],
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


def look(conn):
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
    return figures


def test_a_server_that_loads_says_so(start_server, tmp_path):
    fill(start_server("--dir", tmp_path))
    for _ in range(STARTS):  # a start may be over before the first look
        port = servers.free_port()
        child = start(tmp_path, port)
        try:
            with connect(port) as conn:
                figures = look(conn)
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
