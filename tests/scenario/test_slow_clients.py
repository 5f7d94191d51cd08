# SPDX-License-Identifier: BSD-3-Clause
#
# Many clients that send one byte a second inside a request. CLIENTS=10000 is the
# campaign (make slow-clients), which also compares the latency of a normal
# client; over TLS the memory is only printed.

import os
import resource
import select
import socket
import threading
import time

import pytest

from lib import servers, tls
from lib.servers import wait_until

CLIENTS = int(os.environ.get("CLIENTS", "300"))
CAMPAIGN = "CLIENTS" in os.environ
HEAD = b"*3\r\n$6\r\nBF.ADD\r\n$3000\r\n"


def stat(server, name):
    with server.conn() as conn:
        text = conn.call("INFO").decode()
    return int(dict(line.split(":", 1) for line in text.splitlines()
                    if ":" in line)[name])


class Crowd:
    """Clients that have sent HEAD, and one more byte each second."""

    def __init__(self, server, context=None):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert hard == resource.RLIM_INFINITY or hard >= CLIENTS + 200
        resource.setrlimit(resource.RLIMIT_NOFILE,
                           (max(soft, CLIENTS + 200), hard))
        self.socks = []
        for _ in range(CLIENTS):
            port = server.tls_port if context else server.port
            sock = socket.create_connection(("127.0.0.1", port))
            if context:
                sock = context.wrap_socket(sock, server_hostname="127.0.0.1")
            sock.sendall(HEAD)
            self.socks.append(sock)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.trickle)

    def begin(self):
        self.thread.start()
        return self

    def trickle(self):
        while not self.ended.wait(1):
            for sock in self.socks:
                try:
                    sock.send(b"x")
                except OSError:
                    pass    # it is cut

    def cut(self):
        """Returns how many connections the server has closed."""
        poll = select.poll()
        for sock in self.socks:
            poll.register(sock, select.POLLRDHUP)
        return len(poll.poll(0))

    def end(self):
        self.ended.set()
        if self.thread.is_alive():
            self.thread.join()
        for sock in self.socks:
            sock.close()


def p99(server, seconds):
    """Returns the 99th percentile of a normal client's round trips."""
    took = []
    until = time.monotonic() + seconds
    with server.conn() as conn:
        while time.monotonic() < until:
            began = time.perf_counter()
            conn.call("BF.ADD", "normal", len(took))
            took.append(time.perf_counter() - began)
    return sorted(took)[len(took) * 99 // 100]


@pytest.mark.parametrize("kind", ["plain", "tls"])
def test_slow_clients_take_little_and_are_cut(start_server, tmp_path, kind):
    files = tls.Files(tmp_path)
    port = servers.free_port()
    server = start_server(*files.options(port), "--tls-auth-clients", "no",
                          "--maxclients", CLIENTS + 100, "--threads", 2,
                          "--maxmemory-clients", 0, "--request-timeout", 0)
    server.tls_port = port
    context = files.context(cert=None) if kind == "tls" else None
    quiet = p99(server, 20 if CAMPAIGN else 0.2)
    rss, used = server.rss(), stat(server, "used_memory")
    crowd = Crowd(server, context)
    try:
        wait_until(lambda: stat(server, "connected_clients") == CLIENTS + 1,
                   60, "all are there")
        crowd.begin()
        busy = p99(server, 20 if CAMPAIGN else 2)
        each = (stat(server, "used_memory") - used) / CLIENTS
        resident = (server.rss() - rss) / CLIENTS
        print("%d %s clients: %.0f bytes each (%.0f resident), p99 %.0f us "
              "before and %.0f us meanwhile"
              % (CLIENTS, kind, each, resident, quiet * 1e6, busy * 1e6))
        if kind == "plain":
            assert each <= 4096
        if CAMPAIGN:
            assert kind == "tls" or resident <= 4096
            assert busy <= 2 * quiet
        with server.conn() as conn:
            assert conn.call("CONFIG", "SET", "request-timeout", 3) == b"OK"
            wait_until(lambda: crowd.cut() == CLIENTS, 60, "all are cut")
            assert conn.call("BF.ADD", "normal", "last") in (0, 1)
        assert stat(server, "request_timeouts") == CLIENTS
        wait_until(lambda: stat(server, "connected_clients") == 1, 20,
                   "nobody is left")
    finally:
        crowd.end()
