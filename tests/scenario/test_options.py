# SPDX-License-Identifier: BSD-3-Clause
#
# Options of Redis, and the sources of a configuration: log and pid files, options
# without effect, redis.conf, standard input, passwords in files, and options that
# cannot change at run time.

import json
import os
import re
import signal
import subprocess
import tempfile

import pytest

from lib import replicas, servers
from lib.servers import wait_until


def hang_up(server):
    server.child.send_signal(signal.SIGHUP)


def refused(*options, conf=None, code=2):
    """Starts a server that must fail; returns its output."""
    server = servers.Server(*options, conf=conf, ready=False)
    try:
        assert server.wait_exit(20) == code, server.log().decode()
        return server.log().decode()
    finally:
        server.kill()
        server.remove()


def config(server, name, password=None):
    with server.conn(password=password) as conn:
        return conn.call("CONFIG", "GET", name)[1].decode()


# ---- logfile, pidfile --------------------------------------------------------

def test_the_log_goes_to_its_file_and_follows_logrotate(start_server, tmp_path):
    log, moved = tmp_path / "log", tmp_path / "log.1"
    server = start_server("--logfile", log, "--loglevel", "notice")
    wait_until(lambda: "Ready to accept connections" in log.read_text(), 10)
    assert server.log() == b""
    log.rename(moved)
    hang_up(server)
    wait_until(lambda: log.exists() and "reloaded" in log.read_text(), 10,
               "a new file")
    assert "reloaded" not in moved.read_text()
    with server.conn() as conn:
        got = conn.call("CONFIG", "SET", "logfile", str(tmp_path / "other"))
        assert "immutable" in got.args[0]
    # If the directory is gone, the lines go to the old file.
    log.unlink()
    log.mkdir()
    hang_up(server)
    with server.conn() as conn:
        assert conn.call("PING") == b"PONG"
    server.stop()


def test_the_log_speaks_json_from_the_moment_on(start_server, tmp_path):
    log = tmp_path / "log"
    server = start_server("--logfile", log, "--loglevel", "notice", "--log-format",
                          "json")
    with server.conn() as conn:
        assert conn.call("CONFIG", "SET", "log-format", "logfmt") == b"OK"
        assert conn.call("CONFIG", "SET", "log-format", "json") == b"OK"
    lines = log.read_text().splitlines()
    started = next(json.loads(line) for line in lines if '"started"' in line)
    assert started["source"] == "server" and started["level"] == "notice"
    assert started["port"] == server.port and started["cpu"] in ("avx2", "plain")
    assert [line[:5] for line in lines if "changed an option" in line] == \
        ["time=", '{"tim']
    others = [line for line in lines if not line.startswith("time=")]
    assert all(set(json.loads(line)) >= {"time", "level", "event"} for line in others)


def test_the_journal_gets_the_level_of_each_line(start_server):
    # The server's standard error leads to a file here, whose number the variable has.
    with tempfile.TemporaryFile() as log:
        own = os.fstat(log.fileno())
        env = dict(os.environ, JOURNAL_STREAM="%d:%d" % (own.st_dev, own.st_ino))
        argv = [servers.server_binary(), "--port", "0", "--dir", "/nowhere",
                "--unixsocket", "/tmp/none"]
        assert subprocess.run(argv, stderr=log, env=env, timeout=60).returncode == 1
        log.seek(0)
        assert log.read().startswith(b"<3>time=")


def test_a_log_that_cannot_be_opened_ends_the_start(tmp_path):
    said = refused("--logfile", "/nonexistent/bloomery.log", code=1)
    assert "logfile: /nonexistent/bloomery.log: No such file" in said


@pytest.mark.parametrize("how", [signal.SIGTERM, "SHUTDOWN"])
def test_the_pidfile_is_there_while_the_server_is(start_server, tmp_path, how):
    path = tmp_path / "pid"
    path.write_text("1 from a crash\n")
    server = start_server("--pidfile", path)
    assert path.read_text() == "%d\n" % server.pid
    hang_up(server)
    if how == "SHUTDOWN":
        with server.conn() as conn:
            conn.send(b"SHUTDOWN\r\n")
            server.wait_exit()
        server.stop()
    else:
        server.stop(how)
    assert list(tmp_path.iterdir()) == []


def test_the_server_serves_without_its_pidfile(start_server):
    server = start_server("--pidfile", "/nonexistent/pid")
    assert b"could not write the pidfile" in server.log()


# ---- options that do nothing -------------------------------------------------

def test_harmless_options_of_redis_are_accepted_with_advice(start_server):
    server = start_server(
        "--daemonize", "yes", "--hz=20", "--oom-score-adj-values", "0", "200",
        "800", "--maxclients", "50",
        conf="[server]\nio-threads = 4\nsupervised = systemd\n"
             "[persistence]\nrdbcompression = yes\n")
    log = server.log().decode()
    for name, advice in (("test.conf:2: io-threads", "use threads"),
                         ("test.conf:3: supervised", "notifies systemd"),
                         ("test.conf:5: rdbcompression", "do not compress"),
                         ("command line: daemonize", "under systemd"),
                         ("command line: hz", "by themselves"),
                         ("oom-score-adj-values", "OOMScoreAdjust")):
        assert re.search("level=warn .*%s does nothing here: .*%s" % (
            name, advice), log), (name, log)
    assert config(server, "maxclients") == "50"
    # A reload logs it again, and changes the other options.
    with open(os.path.join(server.folder, "test.conf"), "a") as file:
        file.write("[network]\ntimeout = 7\n")
    hang_up(server)
    wait_until(lambda: config(server, "timeout") == "7", 10)
    assert server.log().decode().count("io-threads does nothing") == 2


REDIS_CONF = """# Redis configuration file example.

bind 127.0.0.1 -::1
port 6379
save 3600 1
requirepass sesame
"""


@pytest.mark.parametrize("text, line", [
    (REDIS_CONF, 3), ("port 6379\n", 1), ("\n\ndaemonize no\n", 3),
    ("include /etc/other.conf\n", 1), ("requirepass sesame\n", 1)])
def test_a_file_of_redis_is_recognised(text, line):
    said = refused(conf=text)
    assert "test.conf:%d: this file is in the syntax of redis.conf" % line in said
    assert "--convert FILE" in said and "sesame" not in said


# ---- standard input ----------------------------------------------------------

class Piped(servers.Process):
    """Starts a server that reads its configuration from a pipe."""

    def __init__(self, text, *options):
        folder = tempfile.mkdtemp(prefix="bloomery-test-")
        port = servers.free_port()
        read, write = os.pipe()
        os.write(write, text.encode())
        os.close(write)
        self.log_path = os.path.join(folder, "log")
        self.folder, self.port, self.env = folder, port, None
        self.address = ("127.0.0.1", port)
        self.argv = [servers.server_binary(), "-", "--port", str(port),
                     "--dir", folder, "--threads", "2", *map(str, options)]
        with open(self.log_path, "wb") as log:
            self.child = subprocess.Popen(self.argv, stdin=read, stdout=log,
                                          stderr=log, cwd=folder)
        os.close(read)
        self.pid, self.stopped, self.last_log = self.child.pid, False, None

    def end(self):
        self.child.terminate()
        try:
            return self.wait_exit()
        finally:
            self.kill()
            self.remove()


def test_the_configuration_may_come_from_standard_input(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("one\n")
    secret.chmod(0o600)
    server = Piped("[bf]\nbloom-capacity = 777\n[security]\n"
                   "requirepass-file = %s\n" % secret, "--maxclients", 50)
    try:
        server.wait_ready()
        assert config(server, "bf.bloom-capacity", "one") == "777"
        assert config(server, "maxclients", "one") == "50"
        with server.conn(password="one") as conn:
            assert conn.call("CONFIG", "SET", "maxclients", "60") == b"OK"
            assert conn.call("CONFIG", "REWRITE") == b"OK"
            assert conn.call("CONFIG", "SET", "bf.bloom-capacity", 7) == b"OK"
            conn.call("MULTI")
            conn.call("CONFIG", "REWRITE")
            assert conn.call("EXEC") == [b"OK"]
        with open(os.path.join(server.folder, "rewritten.conf")) as file:
            text = file.read()
        assert text[text.index("["):] == ("[network]\nmaxclients = 60\n\n"
                                          "[bf]\nbloom-capacity = 7\n")
        # The password file can be read again, so a reload reads it.
        secret.write_text("two\n")
        hang_up(server)
        wait_until(lambda: b"did not read standard input again" in server.log(),
                   10, "it says so")
        assert config(server, "bf.bloom-capacity", "two") == "7"
        assert config(server, "maxclients", "two") == "50"
        assert server.end() == 0
    finally:
        server.kill()
        server.remove()


def test_an_error_in_standard_input_has_its_line():
    server = Piped("[network]\nnope = 1\n")
    try:
        assert server.wait_exit() == 2
        assert b"standard input:2: unknown option 'nope'" in server.log()
    finally:
        server.kill()
        server.remove()


def test_empty_standard_input_means_the_defaults():
    server = Piped("")
    try:
        server.wait_ready()
        assert config(server, "appendonly") == "yes"
        assert server.end() == 0
    finally:
        server.kill()
        server.remove()


# ---- passwords in files ------------------------------------------------------

def secret_file(folder, text, mode=0o600):
    path = folder / "secret"
    path.write_text(text)
    path.chmod(mode)
    return path


def may_enter(server, password):
    with server.conn() as conn:
        return conn.call("AUTH", password) == b"OK"


def test_a_password_from_a_file_is_read_again_on_sighup(start_server, tmp_path):
    path = secret_file(tmp_path, "one\n")
    server = start_server("--requirepass-file", path)
    assert may_enter(server, "one") and not may_enter(server, "one\n")
    path.write_text("zwei")
    assert not may_enter(server, "zwei")
    hang_up(server)
    wait_until(lambda: may_enter(server, "zwei"), 10, "the new password")
    assert not may_enter(server, "one")
    # An unusable file changes nothing, and the log names it.
    path.write_text("")
    hang_up(server)
    wait_until(lambda: ("requirepass-file: %s: it is empty" % path).encode() in
               server.log(), 10, "the reason")
    path.unlink()
    hang_up(server)
    wait_until(lambda: ("%s: No such file" % path).encode() in server.log(), 10,
               "the reason")
    assert may_enter(server, "zwei")
    with server.conn(password="zwei") as conn:
        got = conn.call("CONFIG", "SET", "requirepass", "three")
        assert "send SIGHUP" in got.args[0]
        assert conn.call("CONFIG", "GET", "requirepass")[1] == b"********"
        assert "immutable" in conn.call(
            "CONFIG", "SET", "requirepass-file", "/etc/passwd").args[0]
        conn.call("CONFIG", "SET", "timeout", "9")
        assert conn.call("CONFIG", "REWRITE") == b"OK"
    with open(os.path.join(server.folder, "rewritten.conf")) as file:
        text = file.read()
    assert "zwei" not in text and "timeout = 9" in text


@pytest.mark.parametrize("text, mode, why", [
    ("", 0o600, "it is empty"), ("a\nb\n", 0o600, "it has more than one line"),
    ("x", 0o666, "others can write to it"), ("x" * 600, 0o600, "512"),
    (None, 0, "No such file or directory")])
@pytest.mark.parametrize("name", ["requirepass-file", "masterauth-file",
                                  "sidecar-password-file"])
def test_a_bad_password_file_ends_the_start(tmp_path, name, text, mode, why):
    path = tmp_path / "secret"
    if text is not None:
        secret_file(tmp_path, text, mode)
    said = refused("--" + name, path)
    assert "%s: %s: " % (name, path) in said and why in said


def test_two_sources_of_one_password_are_refused(tmp_path):
    said = refused("--requirepass-file", secret_file(tmp_path, "x"),
                   "--requirepass", "y")
    assert "requirepass and requirepass-file are both set" in said


def test_the_log_warns_of_a_file_that_others_can_read(start_server, tmp_path):
    server = start_server("--requirepass-file",
                          secret_file(tmp_path, "x\r\n", 0o444))
    assert b"others can read it" in server.log() and may_enter(server, "x")


def test_a_replica_logs_in_with_the_password_of_a_file(start_server, tmp_path):
    path = secret_file(tmp_path, "sesame\n")
    primary = start_server("--requirepass-file", path)
    replica = start_server("--masterauth-file", path, "--replicaof",
                           "127.0.0.1 %d" % primary.port)
    wait_until(lambda: replicas.link_is_up(replica), 20, "the link")


# ---- what does not change at run time ----------------------------------------

def test_protected_mode_does_not_change_at_run_time(start_server):
    server = start_server("--protected-mode", "yes")
    with server.conn() as conn:
        got = conn.call("CONFIG", "SET", "protected-mode", "no")
        assert "immutable" in got.args[0]
        assert conn.call("CONFIG", "GET", "protected-mode")[1] == b"yes"


def test_replicaof_accepts_only_allowed_addresses(start_server):
    server = start_server("--replicaof-allowed", "127.0.0.0/8 db.example",
                          "--shutdown-timeout", 0)
    with server.conn() as conn:
        for host in ("10.0.0.1", "other.example", "::1", "localhost"):
            for words in (("REPLICAOF", host, 7379), ("SLAVEOF", host, 7379)):
                got = conn.call(*words)
                assert "replicaof-allowed does not let" in got.args[0], got
        conn.call("MULTI")
        conn.call("REPLICAOF", "10.0.0.1", 7379)
        assert "replicaof-allowed" in conn.call("EXEC")[0].args[0]
        assert conn.call("ROLE")[0] == b"master"
        assert conn.call("REPLICAOF", "127.0.0.1", 1) == b"OK"
        assert conn.call("REPLICAOF", "db.example", 1) == b"OK"
        assert conn.call("REPLICAOF", "NO", "ONE") == b"OK"
        got = conn.call("CONFIG", "SET", "replicaof-allowed", "*")
        assert "immutable" in got.args[0]


def test_a_start_does_not_follow_a_forbidden_address(tmp_path):
    said = refused("--replicaof-allowed", "10.0.0.0/8", "--replicaof",
                   "127.0.0.1 7379")
    assert "replicaof-allowed does not name it" in said


@pytest.mark.parametrize("host", ("h" * 300, 'a"b', "h\u00f6st"))
def test_a_start_does_not_follow_what_is_no_address(host):
    assert "it takes a host and a port" in refused("--replicaof", host + " 7379")


def test_a_stored_role_obeys_the_allowed_addresses():
    server = replicas.Node()
    try:
        with server.conn() as conn:
            assert conn.call("REPLICAOF", "127.0.0.1", 1) == b"OK"
        server.crash()
        server.restart("--replicaof-allowed", "10.0.0.0/8", wait=False)
        assert server.wait_exit() == 2
        assert b"remove replication.state from dir" in server.log()
    finally:
        server.kill()
        server.remove()


def test_a_plan_is_printed_without_a_server(start_server):
    words = ["0.001", "1000", "EXPANSION", "4"]
    got = subprocess.run([servers.server_binary(), "--plan", *words],
                         capture_output=True, text=True)
    assert (got.returncode, got.stderr) == (0, "")
    said = [line.replace("- ", "  ").strip() for line in got.stdout.splitlines()]
    server = start_server()
    with server.conn() as conn:
        reply = conn.call("BF.PLAN", *words)
        assert conn.call("DBSIZE") == 0
    pairs = list(zip(reply[::2], reply[1::2]))
    expected = []
    for name, value in pairs[:-1]:
        expected.append("%s: %s" % (name.decode(), value.decode()
                                    if isinstance(value, bytes) else value))
    expected.append("layers:")
    for layer in pairs[-1][1]:
        for name, value in zip(layer[::2], layer[1::2]):
            expected.append("%s: %s" % (name.decode(), value.decode()
                                        if isinstance(value, bytes) else value))
    assert said == expected and len(expected) > 20


def test_a_plan_is_what_a_server_then_takes(start_server):
    """Memory of 20,000 filters, as the allocator counts it, is what the formula
    for all filters of cluster.md says."""
    said = subprocess.run([servers.server_binary(), "--plan", "0.01", "1000"],
                          capture_output=True, text=True, check=True).stdout
    each = int(re.search(r"^bytes: (\d+)", said, re.M).group(1))
    server = start_server("--appendonly", "no", "--threads", "1")
    with server.conn() as conn:
        def used():
            text = conn.call("INFO", "memory").decode()
            return int(text.split("used_memory:")[1].split("\r")[0])

        before = used()
        for start in range(0, 20000, 1000):
            conn.pipeline([("BF.RESERVE", "%040d" % i, "0.01", "1000")
                           for i in range(start, start + 1000)])
        took = used() - before
    assert 0.9 < took / (20000 * (each + 100)) < 1.1


def test_a_plan_with_a_mistake_is_refused():
    for words in ([], ["0.01"], ["2", "100"], ["0.01", "100", "EX", "5"],
                  ["0.01", "100", "junk"], ["0.01", "100", "--filters", "3"]):
        got = subprocess.run([servers.server_binary(), "--plan", *words],
                             capture_output=True, text=True)
        assert got.returncode == 2 and got.stdout == ""
        assert got.stderr.startswith("bloomery-server: --plan: ")
        assert len(got.stderr.split()) > 2, got.stderr


@pytest.mark.parametrize("words,said", [
    (["1000000", "0.01"], 'the first word is the error rate, above 0 and below 1, not "1000000"'),
    (["one", "100"], 'error rate, above 0 and below 1, not "one"'),
    (["0.01", "0"], 'the second word is the capacity, a whole number above 0, not "0"'),
    (["0.01", "1e6"], 'whole number above 0, not "1e6"'),
    (["0.01"], "takes an error rate and a capacity, as in --plan 0.01 1000000"),
    (["0.01", "100", "junk"], "the words after the capacity are EXPANSION n or"),
])
def test_a_plan_names_the_word_that_is_wrong(words, said):
    got = subprocess.run([servers.server_binary(), "--plan", *words],
                         capture_output=True, text=True)
    assert got.returncode == 2 and said in got.stderr
