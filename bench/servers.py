# SPDX-License-Identifier: BSD-3-Clause
#
# Starts and stops the measured servers, and runs the load generator against them.
# Each object owns exactly one process. It always ends that process, by its process
# id, at the end of its `with` block. The kernel chooses the ports.
"""Servers under measurement, and the load generator."""

import argparse
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFAULT_BUILD = ROOT / "build" / "release"
START_SECONDS = 60
STOP_SECONDS = 60
LOAD_SECONDS = 300
# Allows filters of more than the default 128 MiB.
LARGE_FILTERS = ("--bf.bloom-memory-usage-limit", "4gb")


def arguments(text, quick, **others):
    """Return a parser of what all scripts take; QUICK says what that makes."""
    parser = argparse.ArgumentParser(description=text, **others)
    parser.add_argument("--build", type=pathlib.Path, default=DEFAULT_BUILD,
                        help="folder of the binaries (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write the figures there too")
    return parser


def exit_on_sigterm():
    """Make SIGTERM an ordinary exit, so that `with` blocks are left."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def free_port():
    """Return a port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request(*words):
    """Return a command as RESP bytes."""
    return (f"*{len(words)}\r\n" + "".join(
        f"${len(word)}\r\n{word}\r\n" for word in words)).encode()


def end(process):
    """End a process with SIGTERM, and later with SIGKILL."""
    if process is not None and process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Server:
    """One server process. Subclasses define how to start it."""

    name = "server"

    def __init__(self, wrapper=(), unix=False):
        self.wrapper = list(wrapper)
        self.unix = unix
        self.port = None
        self.path = None
        self.folder = None
        self.process = None

    def command_line(self):
        """Return the arguments; port, path and folder are set."""
        raise NotImplementedError

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="bench-")
        self.port = free_port()
        if self.unix:
            self.path = os.path.join(self.folder, "socket")
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exception):
        self.stop()

    def start(self):
        """Start the process and wait until it answers PING."""
        log = os.path.join(self.folder, "log")
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                self.wrapper + self.command_line(), cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                if self.call("PING") == "+PONG":
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                text = pathlib.Path(log).read_text(errors="replace")
                raise SystemExit(f"{self.name} did not start:\n{text}")
            if time.monotonic() > deadline:
                raise SystemExit(f"{self.name} did not answer")
            time.sleep(0.02)

    def stop(self):
        """End the process and remove its folder."""
        end(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def connect(self):
        """Return a socket to it."""
        peer = socket.socket(socket.AF_UNIX if self.unix else socket.AF_INET)
        try:
            peer.settimeout(START_SECONDS)
            peer.connect(self.path if self.unix else ("127.0.0.1", self.port))
        except OSError:
            peer.close()
            raise
        return peer

    def call(self, *words):
        """Send one command and return the first line of its reply."""
        with self.connect() as peer:
            peer.sendall(request(*words))
            reply = b""
            while b"\r\n" not in reply:
                chunk = peer.recv(4096)
                if not chunk:
                    raise ConnectionError("closed by the server")
                reply += chunk
        return reply.split(b"\r\n")[0].decode()

    def info(self, section):
        """Return a section of INFO."""
        with self.connect() as peer, peer.makefile("rb") as reply:
            peer.sendall(request("INFO", section))
            return reply.read(int(reply.readline()[1:])).decode()


class Null(Server):
    """The null server."""

    name = "null"

    def __init__(self, build, **options):
        super().__init__(**options)
        self.binary = str(pathlib.Path(build).resolve() / "bench" / "null")

    def command_line(self):
        if self.unix:
            return [self.binary, "--unix", self.path]
        return [self.binary, str(self.port)]


class Bloomery(Server):
    """bloomery-server, or a server that takes its options. Like its peers and the
    null server, it has no journal by default."""

    name = "bloomery"

    def __init__(self, binary, options=(), **others):
        super().__init__(**others)
        self.binary = str(pathlib.Path(binary).resolve())
        self.options = list(options)

    def command_line(self):
        words = [self.binary, "--port", str(self.port), "--threads", "1",
                 "--loglevel", "warning", "--dir", ".",
                 "--appendonly", "no"]
        if self.unix:
            words += ["--unixsocket", self.path]
        return words + self.options


class Load:
    """The load generator; run() returns what it printed as a dict."""

    def __init__(self, build, wrapper=()):
        self.words = list(wrapper)
        self.words.append(str(pathlib.Path(build).resolve() / "bench" /
                              "load"))

    def run(self, server, options):
        """Run against a started server; any error ends the program."""
        where = (["--unix", server.path] if server.unix
                 else ["--port", str(server.port)])
        done = subprocess.run(
            self.words + where + ["--pid", str(server.process.pid)] + options,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=LOAD_SECONDS, check=False)
        if done.returncode != 0:
            raise SystemExit(f"load against {server.name}: "
                             f"{done.stderr.strip()}")
        return dict(word.split("=", 1) for word in done.stdout.split())
