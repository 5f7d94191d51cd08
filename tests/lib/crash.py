# SPDX-License-Identifier: BSD-3-Clause
#
# Starts, kills and restarts a server on a data directory that outlives it, with
# or without the shim. Tests of durability mostly wait, so several run at a time,
# each in its own folder with its own socket.

import concurrent.futures
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from lib import resp, servers, workload
from lib.shim import Shim


class Store:
    """A folder with a data directory, and the server on it if one runs."""

    def __init__(self, *options, data=None):
        self.folder = tempfile.mkdtemp(prefix="bloomery-crash-")
        self.data = os.path.join(self.folder, "data")
        if data is None:
            os.mkdir(self.data)
        self.options = workload.OPTIONS + [str(o) for o in options]
        self.socket = os.path.join(self.folder, "sock")
        self.log_path = os.path.join(self.folder, "log")
        self.child = self.shim = None
        self.port = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        if self.shim is not None:
            self.shim.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def add_shim(self, **options):
        if self.shim is not None:
            self.shim.close()
        self.shim = Shim(self.folder, self.data, **options)
        return self.shim

    def launch(self, *more, port=0, shim=True):
        """Starts the server and does not wait."""
        argv = [servers.server_binary(), "--dir", self.data, "--unixsocket",
                self.socket, "--port", str(port), "--loglevel", "notice"]
        self.port = port
        env = dict(os.environ)
        env.pop("NOTIFY_SOCKET", None)
        env.pop("WATCHDOG_USEC", None)
        if shim and self.shim is not None:
            env.update(self.shim.env())
        with open(self.log_path, "ab") as log:
            self.child = subprocess.Popen(
                argv + self.options + [str(m) for m in more], env=env,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder, start_new_session=True)
        return self

    def start(self, *more, **how):
        """Starts the server and waits until it serves."""
        self.launch(*more, **how)
        if not self.wait_ready():
            raise AssertionError("it did not start:\n" + self.log())
        return self

    def address(self):
        return ("127.0.0.1", self.port) if self.port else self.socket

    def wait_ready(self, seconds=20):
        """Waits until the server serves; returns False if it ended instead."""
        deadline = time.monotonic() + seconds * servers.time_factor()
        while time.monotonic() < deadline:
            if self.child.poll() is not None:
                return False
            if self._serves():
                return True
            time.sleep(0.002)
        raise AssertionError("not ready in %d s:\n%s" % (seconds, self.log()))

    def _serves(self):
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(5 * servers.time_factor())
                probe.connect(self.socket)
                probe.sendall(b"BF.CARD nothing\r\n")
                return probe.recv(100) == b":0\r\n"
        except OSError:
            return False

    def conn(self, **options):
        return resp.Conn(self.socket, **options)

    def alive(self):
        return self.child is not None and self.child.poll() is None

    def kill(self):
        """Kills the server and its children with kill -9."""
        if self.child is None:
            return
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.wait()
        self.child = None

    def wait_gone(self, seconds=20):
        """Waits until the server has ended by itself; returns its exit status."""
        code = self.child.wait(seconds * servers.time_factor())
        self.kill()
        return code

    def log(self):
        with open(self.log_path, "rb") as log:
            return log.read()[-6000:].decode("utf-8", "replace")

    def assert_healthy(self):
        with open(self.log_path, "rb") as log:
            found = servers.REPORTS.search(log.read())
        assert not found, "a sanitizer report or failed check:\n" + self.log()


def check(store):
    """Runs bloomery-check on the data directory; returns its exit status."""
    program = os.path.join(os.path.dirname(servers.server_binary()),
                           "bloomery-check")
    return subprocess.run([program, "verify", store.data],
                          stdout=subprocess.DEVNULL,
                          timeout=60 * servers.time_factor()).returncode


def info(conn, section="persistence"):
    """Returns a section of INFO as a dict."""
    text = conn.call("INFO", section).decode()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def wait_idle(conn, seconds=30):
    """Waits until no save and no rewrite runs or is planned."""
    def idle():
        got = info(conn)
        return got["rdb_bgsave_in_progress"] == "0" and \
            got["aof_rewrite_in_progress"] == "0" and \
            got["aof_rewrite_scheduled"] == "0"
    servers.wait_until(idle, seconds, "saves and rewrites end", 0.003)


def payload(conn):
    """Returns a DUMP to restore from: (bytes, items)."""
    items = [b"one", b"two", b"three"]
    conn.call("BF.MADD", "template", *items)
    data = conn.call("DUMP", "template")
    return (data, items) if isinstance(data, bytes) else None


def seeds(count, seed=None):
    """Returns count seeds, made from one that is printed; SEED sets it."""
    seed = int(os.environ.get("SEED") or seed or random.randrange(1 << 32))
    print("seed", seed)
    rng = random.Random(seed)
    return [rng.randrange(1 << 32) for _ in range(count)]


def amount(name, default):
    """Returns an amount, which an environment variable may set. A sanitizer build
    does a tenth by default, because it is slow and looks for other faults."""
    if servers.sanitized():
        default = max(1, default // 10)
    return int(os.environ.get(name) or default)


def each(jobs, run, workers=4):
    """Calls run(job) for all jobs, several at a time; collects all failures."""
    failures, results = [], []
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(run, job): job for job in jobs}
        for future in concurrent.futures.as_completed(futures):
            try:
                results.append(future.result())
            except BaseException as problem:  # noqa: B902 - told below
                failures.append("%s: %s: %s" % (
                    futures[future], type(problem).__name__, problem))
                if len(failures) >= 5:
                    for other in futures:
                        other.cancel()
                    break
    assert not failures, "%d failed\n%s" % (
        len(failures), "\n".join(f[:4000] for f in failures))
    return results


@contextlib.contextmanager
def written(seed, *options, shimmed=True):
    """A running store, a load of which 100 commands were answered, and a
    connection."""
    with Store(*options) as store:
        if shimmed:
            store.add_shim()
        store.start()
        load = workload.Workload(seed)
        with store.conn() as conn:
            load.connect(store.address(), payload(conn))
            load.pump(commands=100)
            yield store, load, conn


def verify(store, load, required, where):
    """Checks that the server on the store has the data that it must have."""
    with store.conn(timeout=20 * servers.time_factor()) as conn:
        problems = load.check(conn, required)
    assert not problems, "%s: %d problems\n%s\n%s" % (
        where, len(problems), "\n".join(problems[:8]), store.log())
