# SPDX-License-Identifier: BSD-3-Clause
#
# Starts and stops the processes of the tests: the server under test, and
# redis-server as the oracle. Each has a free port of 127.0.0.1 and its own folder.
# It is ready when it answers, and tests stop it by its process id. Stopping the
# server under test also checks for exit status 0 and no sanitizer report.

import collections
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from lib import resp, worlds

TOP = Path(__file__).resolve().parents[2]
REDIS = TOP / "build" / "redis" / "usr" / "bin"
VALKEY = TOP / "build" / "valkey"
REPORTS = re.compile(
    rb"AddressSanitizer|LeakSanitizer|ThreadSanitizer|MemorySanitizer"
    rb"|UndefinedBehaviorSanitizer|runtime error:|CHECK\(.*failed")


def time_factor():
    """Returns how many times longer than a release build everything may take."""
    return float(os.environ.get("BLOOMERY_TIME_FACTOR", "1"))


def sanitized():
    return os.environ.get("BLOOMERY_MODE", "release") != "release"


def server_binary():
    return os.environ.get("BLOOMERY_SERVER",
                          str(TOP / "build" / "release" / "bloomery-server"))


# What free_port returned last: a server may need several before it binds the first.
RECENT_PORTS = collections.deque(maxlen=64)


def free_port():
    """Returns a free port. Each test process has its own range of ports, because
    the server binds its port later, and no other process may get it meanwhile.
    (The system assigns ports of one parity.)"""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    while True:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        if port // 2 % workers == worker and port not in RECENT_PORTS:
            RECENT_PORTS.append(port)
            return port


def wait_until(condition, seconds=10, what="condition", pause=0.01):
    """Polls `condition` until it is true and returns its value."""
    deadline = time.monotonic() + seconds * time_factor()
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("not in %.0f s: %s" %
                                 (seconds * time_factor(), what))
        time.sleep(pause)


class Process:
    """A child with a port, a folder and a log file."""

    host = "127.0.0.1"

    unix = None     # the socket by which clients come, if not by the port
    login = ()      # the words of AUTH for a probe
    prepare = None  # what a child does before it becomes the program

    def __init__(self, argv, port, folder, env=None, group=False):
        self.port = port
        self.folder = folder
        self.address = (self.host, port)
        self.argv = [str(a) for a in argv]
        self.env = env
        self.log_path = os.path.join(folder, "log")
        with open(self.log_path, "wb") as log:
            self.child = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=folder, env=env, start_new_session=group,
                preexec_fn=self.prepare)
        self.pid = self.child.pid
        self.stopped = False
        self.last_log = None

    def log(self):
        """Returns the log, even after its folder was removed."""
        if self.last_log is not None:
            return self.last_log
        with open(self.log_path, "rb") as log:
            return log.read()

    def accepts(self):
        if self.child.poll() is not None:
            raise RuntimeError("%s exited with %d:\n%s" % (
                self.argv, self.child.returncode,
                self.log().decode("utf-8", "replace")))
        try:
            socket.create_connection(self.address, 1).close()
        except OSError:
            return False
        return self.unix is None or os.path.exists(self.unix)

    def answers(self):
        """Tells whether the server has loaded its data. The probe asks INFO: a PING
        to a server that loads is an error, which the server's figures count. A server
        that asks for a password says NOAUTH while it loads too, so the probe
        authenticates. When the server has closed the connection, its CLIENT LIST does
        not have it any more."""
        request = resp.command("INFO", "persistence")
        login = self.login
        if "--requirepass" in self.argv:
            login = (self.argv[self.argv.index("--requirepass") + 1],)
        if login:
            request = resp.command("AUTH", *login) + request
        if not self.accepts():
            return False
        try:
            with socket.create_connection(self.address, 1) as probe:
                probe.settimeout(time_factor())
                probe.sendall(request)
                probe.shutdown(socket.SHUT_WR)
                replies = b"".join(iter(lambda: probe.recv(4096), b""))
                return replies != b"" and b"\nloading:1" not in replies
        except OSError:
            return False

    def wait_ready(self):
        wait_until(self.answers, 20, "%s answers" % self.argv[0])

    def conn(self, proto=2, **kwargs):
        return resp.Conn(self.unix or self.address, proto, **kwargs)

    def rss(self):
        """Returns the resident bytes of the process."""
        with open("/proc/%d/status" % self.pid) as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def threads(self):
        return len(os.listdir("/proc/%d/task" % self.pid))

    def children(self):
        """Returns the process ids of the children of its main thread."""
        with open("/proc/%d/task/%d/children" % (self.pid, self.pid)) as file:
            return [int(pid) for pid in file.read().split()]

    def fds(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def kill(self):
        """Kills the child, at the end of a failed test."""
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        self.stopped = True

    def wait_exit(self, seconds=15):
        try:
            return self.child.wait(seconds * time_factor())
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("did not exit in %d s; its log:\n%s" % (
                seconds, self.log().decode("utf-8", "replace")))

    def remove(self):
        if self.last_log is None:
            self.last_log = self.log()
        shutil.rmtree(self.folder, ignore_errors=True)


class Server(Process):
    """bloomery-server. `options` are pairs: "--maxclients", 10, ...
    By default its data is in its folder, and it has no save rules, so that it
    stops at once. group: start it in its own process group. world: what the test
    does not name (lib/worlds.py)."""

    inside = ()     # a command that runs the rest of its command line elsewhere

    def __init__(self, *options, conf=None, env=None, threads=None, ready=True,
                 listen=True, group=False, port=None, world=None):
        folder = tempfile.mkdtemp(prefix="bloomery-test-")
        port = port or free_port()
        argv = [*self.inside, server_binary()]
        if conf is not None:
            path = os.path.join(folder, "test.conf")
            with open(path, "w") as file:
                file.write(conf)
            argv.append(path)
        if listen:
            argv += ["--port", port, "--bind", self.host]
        argv += ["--threads", threads or 4, "--loglevel", "warning"]
        options = [str(o).replace("{folder}", folder) for o in options]
        world = world or worlds.of_run.world(lean=sanitized())
        if world is not None:
            named = options + ["--threads"] * (threads is not None)
            argv += world.options(named, conf)
            self.prepare = world.prepare()
            if world.door == "socket" and listen and "unixsocket" not in \
                    "%s %s" % (options, conf):
                self.unix = os.path.join(folder, "s")
                argv += ["--unixsocket", self.unix]
        for name, value in (("save", ""), ("dir", folder)):
            if not re.search(r"^\s*%s\b" % name, conf or "", re.M) and \
                    not any(re.match("--%s(=|$)" % name, o) for o in options):
                argv.append("--%s=%s" % (name, value))
        argv += options
        full = dict(os.environ)
        full.pop("NOTIFY_SOCKET", None)
        full.pop("WATCHDOG_USEC", None)
        full.update(world.env() if world is not None else {})
        full.update(env or {})
        super().__init__(argv, port, folder, full, group)
        if ready:
            try:
                self.wait_ready()
            except BaseException:
                self.kill()
                raise

    def assert_healthy(self):
        log = self.log()
        found = REPORTS.search(log)
        assert not found, "sanitizer report or failed check:\n" + \
            log.decode("utf-8", "replace")[-8000:]

    def stop(self, how=signal.SIGTERM):
        """Stops the server as an operator would, and checks how it ended."""
        if self.stopped:
            return
        self.stopped = True
        if self.child.poll() is None:
            self.child.send_signal(how)
        code = self.wait_exit()
        self.assert_healthy()
        assert code == 0, "exit status %d; the log:\n%s" % (
            code, self.log().decode("utf-8", "replace")[-8000:])
        self.remove()


def stop_all(started, show_logs):
    """Stops all servers, then fails for those that did not end well."""
    problems = []
    for server in started:
        if show_logs:
            print("---- log of the server on port %d\n%s" % (
                server.port, server.log().decode("utf-8", "replace")[-4000:]))
        try:
            server.stop()
        except AssertionError as problem:
            problems.append(str(problem))
        server.remove()
    assert not problems, "\n".join(problems)


def redis_environment():
    """Returns an environment in which redis-server finds its unpacked libraries."""
    env = dict(os.environ)
    libs = [str(p) for p in (TOP / "build/redis/usr/lib").glob("*-linux-gnu")]
    if libs:
        env["LD_LIBRARY_PATH"] = ":".join(libs)
    return env


class Oracle(Process):
    """redis-server 7.0.15 of Debian, without persistence."""

    def __init__(self, *options):
        folder = tempfile.mkdtemp(prefix="bloomery-oracle-")
        port = free_port()
        argv = [REDIS / "redis-server", "--port", port, "--bind", "127.0.0.1",
                "--save", "", "--appendonly", "no", "--daemonize", "no",
                "--dir", folder] + list(options)
        super().__init__(argv, port, folder, redis_environment())
        try:
            self.wait_ready()
        except BaseException:
            self.kill()
            raise

    def stop(self):
        self.kill()
        self.remove()


def oracle_missing():
    """Returns why there is no oracle, or None. The first call fetches it."""
    return peer_missing(REDIS / "redis-server")


def valkey_missing():
    """Returns why there is no Valkey 9, or None. The first call fetches it."""
    return peer_missing(VALKEY / "valkey-server")


def peer_missing(path):
    if path.exists():
        return None
    got = subprocess.run([str(TOP / "tests" / "peers")],
                         capture_output=True, text=True)
    return None if path.exists() else \
        got.stderr.strip() or "tests/peers failed"
