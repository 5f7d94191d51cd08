#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs command lines from a document in their own mount, network and process
# namespace, where no other process uses /var/lib, /var/backups and port 7379.
# lib/documents.py runs it, with the folder of the programs as its argument and
# the lines on standard input. It prints [[exit status, output], ...] as JSON.
#
# A line that starts a server returns when its port answers. systemctl starts
# and stops a server without options, as the unit does. A line that a cluster does
# not serve yet is typed again.

import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import time

SECONDS = 60
# Not one that only asks: --ping, --check-config, --version.
SERVER = re.compile(r"(?:[\w./-]*/)?bloomery-server"
                    r"(?! --(?:ping|check-config|plan|print|version|help))"
                    r"( [^&|;]*)?&?$")


def prepare(programs):
    """Sets up separate file systems and the loopback interface."""
    for folder in ("/var/lib", "/var/backups"):
        subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    os.mkdir("/var/lib/bloomery")
    with socket.socket() as sock:
        up = struct.pack("16sH", b"lo", 0x1 | 0x40)  # IFF_UP, IFF_RUNNING
        fcntl.ioctl(sock, 0x8914, up)  # SIOCSIFFLAGS
    os.environ["PATH"] = programs + ":" + os.environ["PATH"]


def answers(port, server):
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as sock:
                sock.sendall(b"PING\r\n")
                if sock.recv(7) == b"+PONG\r\n":
                    return True
        except OSError:
            pass
        time.sleep(0.01)
    return False


class Machine:
    def __init__(self):
        self.service = None

    def serve(self, line):
        with open("server.log", "ab") as log:
            server = subprocess.Popen(["bash", "-c", "exec " + line.rstrip(" &")],
                                      stdout=log, stderr=log,
                                      stdin=subprocess.DEVNULL)
        port = re.search(r"--port[ =](\d+)", line)
        there = answers(int(port.group(1)) if port else 7379, server)
        return server, (0 if there else 1, "")

    def systemctl(self, verb):
        if verb == "start":
            self.service, result = self.serve("bloomery-server")
            return result
        self.service.send_signal(signal.SIGTERM)
        return self.service.wait(SECONDS), ""

    def type(self, line):
        verb = re.fullmatch(r"systemctl (start|stop) bloomery", line)
        if verb:
            return self.systemctl(verb.group(1))
        if SERVER.fullmatch(line):
            return self.serve(line)[1]
        deadline = time.monotonic() + SECONDS
        while True:
            result = run(line)
            if not result[1].startswith("(error) CLUSTERDOWN") or \
                    time.monotonic() > deadline:
                return result
            time.sleep(0.05)


def run(line):
    """Runs a line on a terminal, because redis-cli formats its output to a pipe
    differently."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(["bash", "-o", "pipefail", "-c", line],
                             stdin=subprocess.DEVNULL, stdout=theirs,
                             stderr=theirs)
    os.close(theirs)
    out = b""
    while True:
        try:
            got = os.read(ours, 65536)
        except OSError:  # EIO: no writer is left
            break
        if not got:
            break
        out += got
    os.close(ours)
    return child.wait(SECONDS), out.decode("utf-8", "replace").replace("\r", "")


def main():
    lines = json.load(sys.stdin)
    prepare(sys.argv[1])
    machine = Machine()
    print(json.dumps([machine.type(line) for line in lines]))


if __name__ == "__main__":
    main()
