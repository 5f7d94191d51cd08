# SPDX-License-Identifier: BSD-3-Clause
#
# Clients that wait for an event that may never happen: they cost almost nothing, get
# their replies, and leave nothing behind when they disconnect.

import socket
import time

import pytest

from lib import resp, servers


@pytest.fixture
def server():
    one = servers.Server("--maxclients", 60, "--appendonly", "yes",
                         "--appendfsync", "always", "--threads", 2)
    yield one
    one.stop()


def blocked(server):
    with server.conn() as conn:
        text = conn.call("INFO", "clients").decode()
    return int(text.split("blocked_clients:")[1].split()[0])


def test_clients_that_leave_while_they_wait_free_their_place(server):
    conns = [server.conn() for _ in range(55)]
    for conn in conns:
        conn.send(resp.command("WAITAOF", 0, 1, 0))
    servers.wait_until(lambda: blocked(server) == 55)
    for conn in conns:
        conn.close()
    servers.wait_until(lambda: blocked(server) == 0, 10)
    conns = [server.conn() for _ in range(55)]
    for conn in conns:
        assert conn.call("PING") == b"PONG"
        conn.close()


def test_a_half_closed_client_gets_all_replies(server):
    count = 200
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(b"".join(
                resp.command("BF.ADD", "half", str(i)) for i in range(count)) +
                resp.command("WAITAOF", 1, 0, 0))
            sock.shutdown(socket.SHUT_WR)
            got = b""
            while True:
                piece = sock.recv(65536)
                if not piece:
                    break
                got += piece
        assert got.count(b":") == count + 2
        assert got.endswith(b"*2\r\n:1\r\n:0\r\n")


def cpu_seconds(server):
    with open("/proc/%d/stat" % server.child.pid) as file:
        fields = file.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_requests_behind_a_blocked_command_use_no_cpu(server):
    behind = resp.command("PING") * 15000  # 210 KB
    conns = [server.conn() for _ in range(50)]
    for conn in conns:
        conn.sock.setblocking(True)
        conn.send(resp.command("WAITAOF", 0, 1, 0) + behind)
    servers.wait_until(lambda: blocked(server) == 50)
    before = cpu_seconds(server)
    time.sleep(2)
    used = cpu_seconds(server) - before
    print("cpu seconds in 2: %.2f" % used)
    if not servers.sanitized():
        assert used < 0.2
    for conn in conns:
        conn.close()


def test_waitaof_syncs_even_if_nothing_else_does(start_server):
    server = start_server("--appendonly", "yes", "--appendfsync", "no")
    with server.conn() as conn:
        for i in range(5):
            assert conn.call("BF.ADD", "k", str(i)) == 1
            assert conn.call("WAITAOF", 1, 0, 0) == [1, 0]
