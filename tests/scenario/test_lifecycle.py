# SPDX-License-Identifier: BSD-3-Clause
#
# Start, reload and stop: options and the configuration file, refused values, signals,
# SHUTDOWN, unix sockets, and the notifications to systemd.

import ctypes
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lib import resp, servers, shim


def refused(*options, conf=None):
    """Starts a server that must refuse to start; returns its standard
    error."""
    server = servers.Server(*options, conf=conf, ready=False)
    try:
        code = server.wait_exit(20)
        log = server.log().decode("utf-8", "replace")
        server.assert_healthy()
        assert code == 2, "exit status %d:\n%s" % (code, log)
        return log
    finally:
        server.kill()
        server.remove()


@pytest.mark.parametrize("options", [
    ("--nope", "1"), ("--maxclients", "x"), ("--maxclients", "0"),
    ("--maxmemory", "12parsecs"), ("--bf.bloom-fp-rate", "1"),
    ("--bf.bloom-fp-rate", "x"), ("--bf.bloom-capacity", "0"),
    ("--bf.bloom-defrag-enabled", "perhaps"), ("--port", "70000"),
    ("--threads", "-1"), ("--loglevel", "chatty"), ("--maxclients",),
    ("--appendonly", "maybe"), ("--dialect", "klingon"), ("stray", "word"),
    ("--unixsocketperm", "999"), ("--client-output-buffer-limit", "normal x"),
], ids=" ".join)
def test_a_bad_option_is_refused_with_its_reason(options):
    log = refused(*options)
    name = options[0].lstrip("-")
    assert name in log and len(log.strip()) > len(name) + 5, log


CONF = """; a comment
# another
[network]
maxclients = 321

[bf]
bloom-capacity = 777
bloom-fp-rate = 0.002
bloom-memory-usage-limit = 64mb

[limits]
multi-max-commands = 9
"""


def config(conn, name):
    return conn.call("CONFIG", "GET", name)[1]


def test_the_file_is_read_and_the_command_line_wins(start_server):
    server = start_server("--bf.bloom-fp-rate", "0.003", conf=CONF)
    with server.conn() as conn:
        assert config(conn, "maxclients") == b"321"
        assert config(conn, "bf.bloom-capacity") == b"777"
        assert config(conn, "bf.bloom-fp-rate") == b"0.003"
        assert config(conn, "bf.bloom-memory-usage-limit") == b"67108864"
        assert config(conn, "multi-max-commands") == b"9"
        conn.call("BF.ADD", "k", "a")
        assert conn.call("BF.INFO", "k", "CAPACITY") == 777


@pytest.mark.parametrize("conf,line,word", [
    ("[network]\nnope = 1\n", 2, "nope"),
    ("[network]\nmaxclients = 5\nmaxclients2 = 6\n", 3, "maxclients2"),
    ("[bf]\nbloom-capacity = 0\n", 2, "between 1 and"),
    ("[bf]\n\n\nbloom-fp-rate = zero\n", 4, "float"),
    ("[bf]\nbloom-defrag-enabled = 1\n", 2, "no"),
    ("[nowhere]\nport = 1\n", 2, "network"),
    ("[network]\nport 7379\n", 2, ""),
    ("[network\nport = 1\n", 1, ""),
    ("[memory]\nmaxmemory = 1 parsec\n", 2, "memory"),
    ("[bf]\nmaxclients = 7\n", 2, "maxclients"),
], ids=lambda v: repr(v)[:40])
def test_a_bad_file_is_refused_with_file_and_line(conf, line, word):
    log = refused(conf=conf)
    match = re.search(r"test\.conf:(\d+): (.+)", log)
    assert match, log
    assert int(match.group(1)) == line, log
    assert word in match.group(2), log


def test_a_missing_file_is_refused():
    got = subprocess.run([servers.server_binary(), "/nonexistent/b.conf"],
                         capture_output=True, text=True, timeout=30)
    assert got.returncode == 2
    assert "/nonexistent/b.conf" in got.stderr


def test_a_port_in_use_is_refused_with_the_reason(server, tmp_path):
    got = subprocess.run(
        [servers.server_binary(), "--port", str(server.port), "--bind",
         "127.0.0.1", "--threads", "2", "--dir", str(tmp_path)],
        capture_output=True, text=True, timeout=30 * servers.time_factor())
    assert got.returncode not in (0, -signal.SIGSEGV, -signal.SIGABRT)
    assert str(server.port) in got.stderr and "in use" in got.stderr.lower()
    with server.conn() as conn:
        assert conn.call("PING") == b"PONG"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_under_load(start_server, how):
    server = start_server()
    conns = [server.conn() for _ in range(10)]
    for i, conn in enumerate(conns):
        conn.send(resp.command("BF.MADD", "k%d" % i, *range(5000)) * 3)
    server.stop(how)
    for conn in conns:
        conn.close()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_as_soon_as_the_port_accepts_ends_it_cleanly(start_server, how):
    for _ in range(20):
        server = start_server(ready=False)
        servers.wait_until(server.accepts, 20, "the port accepts", pause=0.0005)
        server.stop(how)


def test_sighup_as_soon_as_the_port_accepts_is_harmless(start_server):
    for _ in range(20):
        server = start_server(ready=False)
        servers.wait_until(server.accepts, 20, "the port accepts", pause=0.0005)
        server.child.send_signal(signal.SIGHUP)
        server.wait_ready()
        server.stop()


@pytest.mark.parametrize("command", [("SHUTDOWN",), ("SHUTDOWN", "NOSAVE"),
                                     ("shutdown", "NOSAVE", "NOW", "FORCE")])
def test_shutdown_closes_and_ends(start_server, command):
    server = start_server()
    with server.conn() as conn, server.conn() as other:
        other.call("PING")
        conn.send(resp.command(*command))
        assert conn.read_to_close() == b""
        assert other.read_to_close() == b""
    assert server.wait_exit() == 0
    server.stop()


def test_sighup_reloads_the_options_that_can_change(start_server):
    server = start_server(conf="[network]\nmaxclients = 50\n"
                               "[bf]\nbloom-capacity = 100\n")
    path = os.path.join(server.folder, "test.conf")

    def write(text):
        with open(path, "w") as file:
            file.write(text)
        server.child.send_signal(signal.SIGHUP)

    with server.conn() as conn:
        conn.call("BF.ADD", "kept", "a")
        write("[network]\nmaxclients = 60\n[bf]\nbloom-capacity = 200\n")
        servers.wait_until(lambda: config(conn, "bf.bloom-capacity") == b"200",
                           5, "the reload")
        assert config(conn, "maxclients") == b"60"
        assert conn.call("BF.EXISTS", "kept", "a") == 1
        # A bad file changes nothing and is reported.
        before = len(server.log())
        write("[network]\nmaxclients = 70\n[bf]\nbloom-capacity = nonsense\n")
        servers.wait_until(lambda: b"test.conf:4" in server.log()[before:], 5,
                           "the refusal in the log")
        assert config(conn, "maxclients") == b"60"
        assert config(conn, "bf.bloom-capacity") == b"200"
        assert conn.call("PING") == b"PONG"


def test_sighup_without_a_file_and_twice_is_harmless(server):
    with server.conn() as conn:
        for _ in range(3):
            server.child.send_signal(signal.SIGHUP)
            assert conn.call("PING") == b"PONG"


@pytest.mark.parametrize("options, says", [
    (("--appendonly", "no", "--save", ""), "nothing is saved"),
    (("--appendonly", "no", "--save", "900 1"), "snapshots"),
    ((), "every change is journaled"),
], ids=str)
def test_the_start_logs_how_data_is_saved(start_server, options, says):
    server = start_server("--loglevel", "notice", *options)
    log = server.log().decode()
    assert re.search("event=.Ready to accept connections. .*%s" % says, log), log


def test_a_unix_socket_serves_and_is_removed(start_server):
    server = start_server("--unixsocket", "{folder}/sock", "--unixsocketperm",
                          "700")
    path = os.path.join(server.folder, "sock")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    with resp.Conn(path) as conn, server.conn() as tcp:
        assert conn.call("BF.ADD", "k", "a") == 1
        assert tcp.call("BF.EXISTS", "k", "a") == 1
        own = conn.call("CLIENT", "INFO").decode()
        assert "addr=%s:0" % path in own
    server.child.send_signal(signal.SIGTERM)
    assert server.wait_exit() == 0
    assert not os.path.exists(path), "the socket file stays behind"


def test_a_unix_socket_alone(start_server):
    server = start_server("--port", "0", "--unixsocket", "{folder}/sock",
                          listen=False, ready=False)
    path = os.path.join(server.folder, "sock")
    def accepts():
        with socket.socket(socket.AF_UNIX) as sock:
            return sock.connect_ex(path) == 0
    servers.wait_until(accepts, 10, "the socket")
    with resp.Conn(path, 3) as conn:
        servers.wait_until(lambda: conn.call("PING") == b"PONG", 10, "the load")
        assert conn.call("BF.MADD", "k", "a", "b") == [1, 1]


def test_a_stale_socket_file_is_replaced(start_server):
    server = start_server("--unixsocket", "{folder}/sock")
    path = os.path.join(server.folder, "sock")
    server.child.kill()
    server.child.wait()
    server.stopped = True
    assert os.path.exists(path)
    again = start_server("--unixsocket", path)
    with resp.Conn(path) as conn:
        assert conn.call("PING") == b"PONG"
    again.stop()
    server.remove()


# ---- systemd ---------------------------------------------------------------

@pytest.fixture(params=["file", "abstract"])
def notify(request, tmp_path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    if request.param == "file":
        name = str(tmp_path / "notify")
        sock.bind(name)
    else:
        name = "@bloomery-test-%d" % os.getpid()
        sock.bind("\0" + name[1:])
    yield sock, name
    sock.close()


def messages(sock, until, seconds=10):
    """Returns all state lines up to the message that contains `until`."""
    lines = []
    deadline = time.monotonic() + seconds * servers.time_factor()
    while until not in lines:
        left = deadline - time.monotonic()
        assert left > 0, "no %s; got %r" % (until, lines)
        sock.settimeout(left)
        try:
            lines += sock.recv(4096).decode().splitlines()
        except (TimeoutError, socket.timeout):
            pass
    return lines


def test_systemd_gets_every_state(start_server, notify):
    sock, name = notify
    server = start_server(env={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "400000"},
                          conf="[network]\nmaxclients = 50\n")
    messages(sock, "READY=1")
    with server.conn() as conn:
        assert conn.call("PING") == b"PONG"
    start = time.monotonic()
    for _ in range(3):
        messages(sock, "WATCHDOG=1")
    assert time.monotonic() - start < 3 * 0.4 * servers.time_factor()
    server.child.send_signal(signal.SIGHUP)
    before = time.clock_gettime(time.CLOCK_MONOTONIC)
    lines = messages(sock, "RELOADING=1")
    stamp = [x for x in lines if x.startswith("MONOTONIC_USEC=")]
    assert len(stamp) == 1, "in the same message"
    assert abs(int(stamp[0].split("=")[1]) / 1e6 - before) < 5
    messages(sock, "READY=1")
    server.child.send_signal(signal.SIGTERM)
    messages(sock, "STOPPING=1")
    assert server.wait_exit() == 0


@pytest.mark.skipif(servers.sanitized(), reason="the release build does it")
@pytest.mark.parametrize("watchdog", [{}, {"WATCHDOG_USEC": "600000"}])
def test_systemd_waits_for_a_slow_load_and_a_slow_save(start_server, tmp_path, watchdog):
    """The server asks for more time about once a second, and feeds a watchdog."""
    slow_s, extension = 3, "EXTEND_TIMEOUT_USEC=30000000"
    data = tmp_path / "data"
    data.mkdir()
    disk = shim.Shim(tmp_path, data)
    env = dict(disk.env(), NOTIFY_SOCKET=str(tmp_path / "notify"), **watchdog)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(env["NOTIFY_SOCKET"])
        server = start_server("--dir", data, "--save", "3600 1", env=env)
        with server.conn() as conn:
            assert conn.call("BF.ADD", "key", "item") == 1
        messages(sock, "READY=1")

        disk.arm(0, "delay", ["create"], ["snapshot.tmp"], delay_ms=1000 * slow_s)
        server.child.send_signal(signal.SIGTERM)
        messages(sock, "STOPPING=1")
        said = []
        while server.child.poll() is None or not said or said[-1]:
            said.append(take(sock, 0.1).decode())
        assert server.wait_exit() == 0
        said = "\n".join(said).splitlines()
        times = slow_s / (0.3 if watchdog else 1)
        assert times / 2 <= said.count(extension) <= times + 2, said
        assert said.count("WATCHDOG=1") >= said.count(extension), said

        disk.arm(0, "delay", ["read"], ["incr"], delay_ms=1000 * slow_s)
        start_server("--dir", data, ready=False, env=env)
        said = messages(sock, "READY=1", 20)
        assert any(line.startswith("STATUS=Loading, ") for line in said), said
        assert 2 <= said.count(extension) <= slow_s + 2, said
    disk.close()


def test_no_watchdog_for_another_process(start_server, notify):
    sock, name = notify
    server = start_server(env={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "200000",
                               "WATCHDOG_PID": "1"})
    messages(sock, "READY=1")
    sock.settimeout(0.6)
    try:
        assert b"WATCHDOG" not in sock.recv(4096)
    except (TimeoutError, socket.timeout):
        pass
    with server.conn() as conn:
        assert conn.call("PING") == b"PONG"


PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WAIT_ALL = 0x40000000


class Stopped:
    """Stops one thread of a process for a while, as a debugger does."""

    def __init__(self, pid, name):
        self.ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        self.ptrace.argtypes = [ctypes.c_long] * 4
        self.thread = next(
            int(task.name) for task in Path("/proc/%d/task" % pid).iterdir()
            if (task / "comm").read_text() == name + "\n")

    def __enter__(self):
        if self.ptrace(PTRACE_SEIZE, self.thread, 0, 0) != 0:
            pytest.skip("ptrace: %s" % os.strerror(ctypes.get_errno()))
        assert self.ptrace(PTRACE_INTERRUPT, self.thread, 0, 0) == 0
        os.waitpid(self.thread, WAIT_ALL)

    def __exit__(self, *_):
        assert self.ptrace(PTRACE_DETACH, self.thread, 0, 0) == 0


@pytest.mark.parametrize("thread,said", [
    ("loop", b"an event loop gives no sign of life\" loop=1"),
    ("journal-writer", b"a thread of the journal gives no sign of life"),
    ("journal-syncer", b"a thread of the journal gives no sign of life")])
def test_the_watchdog_is_fed_only_while_every_thread_lives(
        start_server, tmp_path, thread, said):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        beat_s = 0.2 * servers.time_factor()
        server = start_server("--appendonly", "yes", threads=2, env={
            "NOTIFY_SOCKET": str(tmp_path / "notify"),
            "WATCHDOG_USEC": str(int(2e6 * beat_s))})
        messages(sock, "READY=1")
        with Stopped(server.pid, thread):
            servers.wait_until(lambda: said in server.log(), 10, "it is noticed")
            fed = b"".join(iter(lambda: take(sock), b""))
            servers.wait_until(lambda: server.log().count(said) > 3, 10, "more beats")
            assert take(sock) == b"", (fed, "fed while a thread did not answer")
        messages(sock, "WATCHDOG=1")


def take(sock, seconds=0):
    """Returns a message that has arrived, or arrives in time, or nothing."""
    sock.settimeout(seconds)
    try:
        return sock.recv(4096)
    except (BlockingIOError, TimeoutError, socket.timeout):
        return b""


# ---- sockets of the service manager ----------------------------------------------

# Starts the server as the service manager does: descriptor 3 is a socket that listens.
ACTIVATE = """import os, socket, sys
sock = socket.socket(%s)
sock.bind(%r)
sock.listen(8)
os.dup2(sock.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[1], sys.argv[1:])
"""


def activated(tmp_path, address, *options):
    family = "socket.AF_UNIX" if isinstance(address, str) else "socket.AF_INET"
    log = open(tmp_path / "log", "wb")
    return subprocess.Popen(
        [sys.executable, "-c", ACTIVATE % (family, address),
         servers.server_binary(), "--save", "", "--dir", str(tmp_path),
         "--threads", "2"] + [str(o) for o in options],
        stdout=log, stderr=log, close_fds=True)


def answers(address):
    try:
        with resp.Conn(address) as conn:
            return conn.call("PING") == b"PONG"
    except OSError:
        return False


def test_it_serves_the_socket_of_the_service_manager(tmp_path):
    port = servers.free_port()
    child = activated(tmp_path, ("127.0.0.1", port), "--port", port,
                      "--bind", "127.0.0.1")
    try:
        servers.wait_until(lambda: answers(("127.0.0.1", port)), 20, "PONG")
        child.send_signal(signal.SIGTERM)
        assert child.wait(20 * servers.time_factor()) == 0
    finally:
        child.kill()
        child.wait()


def test_a_unix_socket_of_the_service_manager_stays_at_the_end(tmp_path):
    path = str(tmp_path / "sock")
    child = activated(tmp_path, path, "--port", 0, "--unixsocket", path)
    try:
        servers.wait_until(lambda: answers(path), 20, "PONG")
        child.send_signal(signal.SIGTERM)
        assert child.wait(20 * servers.time_factor()) == 0
        assert os.path.exists(path), "the service manager goes on listening there"
    finally:
        child.kill()
        child.wait()


def test_a_socket_that_the_configuration_does_not_name_is_refused(tmp_path):
    child = activated(tmp_path, ("127.0.0.1", servers.free_port()), "--port",
                      servers.free_port())
    assert child.wait(20 * servers.time_factor()) == 1
    assert b"its port is not port, tls-port, admin-port or metrics-port" in \
        (tmp_path / "log").read_bytes()


def test_a_refused_start_never_says_ready(tmp_path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(str(tmp_path / "n"))
    server = servers.Server("--maxclients", "x", ready=False,
                            env={"NOTIFY_SOCKET": str(tmp_path / "n")})
    assert server.wait_exit() == 2
    sock.settimeout(0.1)
    try:
        assert b"READY=1" not in sock.recv(4096)
    except (TimeoutError, socket.timeout):
        pass
    sock.close()
    server.kill()
    server.remove()


# ---- printing --------------------------------------------------------------

@pytest.mark.parametrize("what,words", [
    ("commands", ["BF.ADD", "ping"]), ("options", ["maxclients", "bloom-capacity"]),
    ("metrics", ["used_memory", "bf_bloom_num_objects"]),
    ("commands-man", [".It Ic \"BF.ADD\"", "CLIENT ID"]),
    ("commands-md", ["| `BF.ADD` | Adds an item", "connections: `CACHING`, "]), ("man", [".It Ic port"]),
    ("files-md", ["| `hash-secret` |"]),
    ("errors", ["non scaling filter is full", "EXECABORT"]),
])
def test_the_binary_prints_its_reference(what, words):
    got = subprocess.run([servers.server_binary(), "--print=" + what],
                         capture_output=True, text=True, timeout=30)
    assert got.returncode == 0, got.stderr
    for word in words:
        assert word in got.stdout


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version(option):
    got = subprocess.run([servers.server_binary(), option],
                         capture_output=True, text=True, timeout=30)
    assert got.returncode == 0 and "bloomery" in got.stdout.lower()
