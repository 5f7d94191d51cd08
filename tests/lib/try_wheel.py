# SPDX-License-Identifier: BSD-3-Clause
"""Asks a copy of a filter for what the server on this port has: try_wheel.py PORT.
Only what a minimal Python has is used. packaging/release/wheel calls it."""
import platform
import socket
import sys
import time

import bloomery

DEADLINE_S = 60
port = int(sys.argv[1])
begun = time.monotonic()


def connect():
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            assert time.monotonic() - begun < DEADLINE_S, "no server"
            time.sleep(0.05)


def ask(server, command):
    server.sendall(command.encode() + b"\r\n")
    return server.recv(100)


with connect() as server:
    assert ask(server, "BF.ADD urls a") == b":1\r\n"
    seen = bloomery.LocalFilter(f"redis://127.0.0.1:{port}/0", "urls")
    assert seen.contains("a") is True and seen.contains_many(["a", "b"]) == [True, False]
    assert ask(server, "BF.ADD urls b") == b":1\r\n"
    while not seen.contains("b"):
        assert time.monotonic() - begun < DEADLINE_S, seen.status()
        time.sleep(0.01)
    seen.close()
with open("/proc/self/maps") as maps:
    assert "/bloomery.libs/libssl" in maps.read(), "OpenSSL is not that of the wheel"
print(f"{platform.machine()}: a copy in the program has what the server has")
