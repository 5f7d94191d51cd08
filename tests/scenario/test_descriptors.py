# SPDX-License-Identifier: BSD-3-Clause
#
# A server with few file descriptors: it refuses to start with a message, or it works
# completely while clients use all the connections that they can get.

import re
import resource
import socket
import subprocess
import time

import pytest

from lib import resp, servers


def start(tmp_path, port, limit):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    return subprocess.Popen(
        [servers.server_binary(), "--port", str(port), "--bind", "127.0.0.1",
         "--dir", str(tmp_path), "--threads", "2", "--appendonly", "yes",
         "--loglevel", "notice"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=open(tmp_path / "log", "wb"), preexec_fn=few,  # noqa: SIM115
        close_fds=True)


def log_of(tmp_path):
    return (tmp_path / "log").read_text(errors="replace")


def info(conn):
    text = conn.call("INFO", "everything").decode()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def crowd(port, count):
    """Opens as many sockets as clients can open; they stay open."""
    socks = []
    for _ in range(count):
        sock = socket.socket()
        sock.settimeout(20 * servers.time_factor())
        sock.connect(("127.0.0.1", port))
        socks.append(sock)
    return socks


def check_all_works(conn):
    """Runs everything that needs descriptors, while clients hold all
    others."""
    assert conn.call("BF.ADD", "k", "x") in (0, 1)
    before = info(conn)
    assert conn.call("SAVE") == b"OK"
    reply = conn.call("BGREWRITEAOF")
    assert not isinstance(reply, resp.Error), reply
    servers.wait_until(lambda: info(conn)["aof_rewrite_in_progress"] == "0"
                       and info(conn)["aof_rewrite_scheduled"] == "0", 20,
                       "the rewrite ends")
    reply = conn.call("BGSAVE")
    assert not isinstance(reply, resp.Error), reply
    servers.wait_until(lambda: info(conn)["rdb_bgsave_in_progress"] == "0",
                       20, "the save ends")
    after = info(conn)
    assert after["aof_last_bgrewrite_status"] == "ok"
    assert after["rdb_last_bgsave_status"] == "ok"
    assert int(after["rdb_saves"]) >= int(before["rdb_saves"]) + 2


def serve(tmp_path, child, port):
    deadline = time.monotonic() + 20 * servers.time_factor()
    while True:
        try:
            conn = resp.Conn(("127.0.0.1", port))
            conn.call("PING")
            break
        except (OSError, resp.Closed):
            assert child.poll() is None, log_of(tmp_path)
            assert time.monotonic() < deadline
            time.sleep(0.01)
    socks = crowd(port, 80)
    try:
        assert int(info(conn)["maxclients"]) >= 2
        check_all_works(conn)
        assert "Too many open files" not in log_of(tmp_path)
        assert "no descriptor left" not in log_of(tmp_path)
    finally:
        for sock in socks:
            sock.close()
        conn.close()
    child.terminate()
    assert child.wait(20 * servers.time_factor()) == 0, log_of(tmp_path)


@pytest.mark.parametrize("limit", [10, 12, 16, 20, 24, 32, 40, 44, 46, 48, 50,
                                   52, 56, 64, 70])
def test_a_start_with_few_descriptors(tmp_path, limit):
    port = servers.free_port()
    child = start(tmp_path, port, limit)
    try:
        servers.wait_until(lambda: child.poll() is not None or
                           'event="started"' in log_of(tmp_path), 20)
        if child.poll() is None:
            serve(tmp_path, child, port)
            return
        log = log_of(tmp_path)
        assert child.returncode == 1, log
        assert "CHECK" not in log, log
        found = re.search(r'too few descriptors" descriptors=(\d+) '
                          r'needed=(\d+) help="raise LimitNOFILE', log)
        assert found and int(found[1]) == limit < int(found[2]) < 64, log
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
