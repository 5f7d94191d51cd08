# SPDX-License-Identifier: BSD-3-Clause
#
# A server with a metrics-port, and requests to it.

import http.client
import json
import re
import socket
import subprocess

from lib import servers
from lib.tools import tool

FACTOR = servers.time_factor()
OPEN = "application/openmetrics-text"


class Web:
    """A server whose metrics-port is at `address`."""

    def __init__(self, start_server, *options, **kwargs):
        self.port = servers.free_port()
        self.address = ("127.0.0.1", self.port)
        self.url = "http://127.0.0.1:%d/" % self.port
        self.server = start_server("--metrics-port", self.port, *options, **kwargs)

    def ask(self, path="/metrics", method="GET", host=None, **headers):
        """Returns a reply of http.client, with its body in .text."""
        conn = http.client.HTTPConnection(host or "127.0.0.1", self.port,
                                          timeout=20 * FACTOR)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        conn.request(method, path, headers=headers)
        reply = conn.getresponse()
        reply.text = reply.read().decode()
        conn.close()
        return reply

    def status(self):
        reply = self.ask("/status.json")
        assert reply.status == 200, reply.text
        return json.loads(reply.text)

    def connect(self):
        sock = socket.create_connection(self.address)
        sock.settimeout(20 * FACTOR)
        return sock

    def values(self):
        """Returns {name{labels}: value} of a scrape."""
        return values(self.ask().text)


def values(text):
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
            for line in text.splitlines() if line and line[0] != "#"}


def names(text):
    """Returns the names of all samples of a scrape, without labels."""
    return {re.match(r"[a-z_0-9]+", line).group()
            for line in text.splitlines() if line and line[0] != "#"}


def read_all(sock):
    return b"".join(iter(lambda: sock.recv(65536), b""))


def promtool(*args, stdin=None):
    """Runs promtool, which Debian's package prometheus has."""
    return subprocess.run([tool("promtool"), *map(str, args)], input=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120 * FACTOR)
