# SPDX-License-Identifier: BSD-3-Clause
#
# Finds and runs tools that users run against a server, once or in a terminal. A
# tool that is not installed comes from build/redis, where tests/peers unpacks it.
# If it is missing there too, the test is skipped with the reason.

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import termios
import time

import pytest

from lib import servers

DIST = servers.TOP / "build/redis/usr/lib/python3/dist-packages"


def tool(name):
    """Returns the path of `name`; skips the test if there is none."""
    path = shutil.which(name)
    if path is None and not (servers.REDIS / name).exists():
        servers.oracle_missing()
    path = path or str(servers.REDIS / name)
    if not shutil.which(path):
        pytest.skip("%s: not installed, and not in build/redis" % name)
    return path


def python_tool(name):
    """Returns the command line of a Python program that tests/peers unpacked."""
    path = shutil.which(name)
    argv = [path] if path else ["/usr/bin/python3", str(servers.REDIS / name)]
    try:
        got = subprocess.run(argv + ["--version"], capture_output=True,
                             env=environment(), timeout=60)
    except OSError as error:
        pytest.skip("%s: %s" % (name, error))
    if got.returncode != 0:
        pytest.skip("%s: does not run: %s" % (name, got.stderr[-200:]))
    return argv


def environment():
    """Returns an environment for a tool, without the settings in the user's
    home."""
    env = dict(os.environ, TERM="xterm", REDISCLI_HISTFILE="/dev/null",
               REDISCLI_RCFILE="/dev/null", LC_ALL="C.UTF-8",
               PYTHONPATH=str(DIST), PYTHONDONTWRITEBYTECODE="1")
    env.pop("REDISCLI_AUTH", None)
    return env


def run(server, name, *args, stdin=None, seconds=60):
    """Runs a program to its end."""
    argv = [tool(name), "-h", "127.0.0.1", "-p", str(server.port)] + \
        [str(a) for a in args]
    return subprocess.run(argv, input=stdin, capture_output=True,
                          env=environment(),
                          timeout=seconds * servers.time_factor())


def cli(server, *args, **kwargs):
    """Returns the output of redis-cli, which must exit with 0."""
    got = run(server, "redis-cli", *args, **kwargs)
    assert got.returncode == 0, got
    return got.stdout.decode()


class Reader:
    """A child whose output the test reads while it runs. The end of the `with`
    block stops it by its process id."""

    def __init__(self, argv, env=None):
        self.child = subprocess.Popen(
            [str(a) for a in argv], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=env or environment())
        self.fd = self.child.stdout.fileno()
        self.seen = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()

    def until(self, pattern, seconds=20):
        """Reads until `pattern` is in the output; returns the match."""
        return _until(self, pattern, seconds)


class Terminal:
    """A child with its own terminal, 24 lines of 200 columns."""

    def __init__(self, argv, **more):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.execvpe(argv[0], argv, dict(environment(), **more))
            finally:
                os._exit(127)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 24, 200, 0, 0))
        self.seen = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)
        try:
            os.kill(self.pid, 9)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)

    def type(self, text):
        self.seen = b""
        os.write(self.fd, text.encode())

    def until(self, pattern, seconds=20):
        return _until(self, pattern, seconds)


ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


def plain(data):
    """Returns terminal output without colours and movements of the cursor."""
    return ESCAPES.sub(b"", data)


def _until(child, pattern, seconds):
    deadline = time.monotonic() + seconds * servers.time_factor()
    while True:
        match = re.search(pattern, plain(child.seen), re.DOTALL)
        if match:
            return match
        left = deadline - time.monotonic()
        assert left > 0, "no %r in %r" % (pattern, plain(child.seen)[-3000:])
        if not select.select([child.fd], [], [], left)[0]:
            continue
        try:
            data = os.read(child.fd, 65536)
        except OSError:
            data = b""
        assert data, "ended without %r: %r" % (pattern, plain(child.seen)[-3000:])
        child.seen += data
