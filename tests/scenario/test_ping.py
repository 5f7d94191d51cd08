# SPDX-License-Identifier: BSD-3-Clause
#
# What bloomery-server does instead of serving: --ping asks a server whether it is
# well, --check-config looks for mistakes, --version tells what it was built with.

import os
import re
import socket
import subprocess
import threading

import pytest

from lib import neighbour, replicas, resp, servers, tls

READY, NOT_READY, MISTAKE = 0, 1, 2


def run(*words, env=None):
    """Returns (exit status, what it printed)."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("BLOOMERY_")}
    got = subprocess.run(
        [servers.server_binary()] + [str(w) for w in words], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
        env=dict(clean, **(env or {})))
    return got.returncode, got.stdout.strip()


def at(server):
    return "--port", server.port, "--bind", "127.0.0.1"


# ---- a server that is well -------------------------------------------------------

def test_it_prints_the_reply_of_a_server_that_serves(server):
    assert run("--ping", *at(server)) == (READY, "PONG")
    assert run("--ping=ready", *at(server)) == (READY, "PONG")
    assert run("--ping=alive", "--ping-timeout=60", *at(server)) == (READY, "PONG")


def test_it_reads_the_address_from_the_file(start_server, tmp_path):
    path = tmp_path / "sock"
    server = start_server("--unixsocket", path)
    file = tmp_path / "a.conf"
    file.write_text("[network]\nport = %d\nbind = *\n" % server.port)
    assert run("--ping", file) == (READY, "PONG")
    assert run("--ping", file, "--port", servers.free_port())[0] == NOT_READY
    file.write_text("[network]\nport = 1\nunixsocket = %s\n" % path)
    assert run("--ping", file) == (READY, "PONG")


def test_the_operators_port_is_asked_when_clients_are_too_many(start_server):
    port = servers.free_port()
    server = start_server("--maxclients", 1, "--admin-port", port, "--admin-bind",
                          "127.0.0.1")

    def take_the_place():           # that of the probe at the start may not be free yet
        conn = server.conn()
        try:
            if conn.call("PING") == b"PONG":
                return conn
        except OSError:
            pass
        conn.close()
        return None

    with servers.wait_until(take_the_place, 20, "the only place is ours") as conn:
        code, said = run("--ping", *at(server))
        assert code == NOT_READY and "max number of clients" in said
        assert run("--ping", *at(server), "--admin-port", port) == (READY, "PONG")
        assert conn.call("PING") == b"PONG"


@pytest.mark.parametrize("ca", [True, False])
def test_it_speaks_tls(start_server, tmp_path, ca):
    files = tls.Files(tmp_path)
    port = servers.free_port()
    more = () if ca else ("--tls-auth-clients", "no", "--tls-ca-cert-file", "")
    options = files.options(port, "--bind", "127.0.0.1", *more)
    start_server(*options)
    assert run("--ping", "--port", 0, *options) == (READY, "PONG")
    (tmp_path / "other").mkdir()
    other = tls.Files(tmp_path / "other")
    code, said = run("--ping", "--port", 0, *other.options(
        port, "--bind", "127.0.0.1", *more))
    assert code == NOT_READY and "TLS: " in said, "another server's certificate"


# ---- passwords -------------------------------------------------------------------

def test_it_logs_in(start_server, tmp_path):
    file = tmp_path / "password"
    file.write_text("secret\n")
    file.chmod(0o600)
    server = start_server("--requirepass", "secret")
    code, said = run("--ping", *at(server))
    assert code == NOT_READY and "NOAUTH" in said
    assert run("--ping=alive", *at(server))[0] == READY
    for how, env in (
            (("--requirepass", "secret"), {}),
            (("--requirepass-file", file), {}),
            ((), {"BLOOMERY_PASSWORD": "secret"}),
            ((), {"BLOOMERY_PASSWORD": "secret", "BLOOMERY_USER": "default"})):
        assert run("--ping", *at(server), *how, env=env) == (READY, "PONG"), how
    assert run("--ping", "--ping-password-file=%s" % file,
               *at(server)) == (READY, "PONG")
    code, said = run("--ping", *at(server), env={"BLOOMERY_PASSWORD": "other"})
    assert code == NOT_READY and "WRONGPASS" in said and "other" not in said


def test_it_logs_in_as_a_user_of_its_own(start_server, tmp_path):
    server = start_server("--requirepass", "secret")
    with server.conn(password="secret") as conn:
        assert conn.call("ACL", "SETUSER", "probe", "on", ">its own", "-@all",
                         "+ping") == b"OK"
    file = tmp_path / "password"
    file.write_text("its own")
    words = ("--ping", "--ping-user=probe", "--ping-password-file=%s" % file)
    assert run(*words, *at(server)) == (READY, "PONG")
    code, said = run("--ping=ready", *words[1:], *at(server))
    assert code == NOT_READY and "it answers INFO with: NOPERM" in said
    assert run("--ping", *at(server), env={
        "BLOOMERY_USER": "probe", "BLOOMERY_PASSWORD": "its own"}) == (READY, "PONG")
    code, said = run(*words[:2], *at(server), env={"BLOOMERY_PASSWORD": "secret"})
    assert code == NOT_READY and "WRONGPASS" in said


# ---- a server that is not --------------------------------------------------------

class Fake:
    """Accepts one client after the other and sends each the same bytes."""

    def __init__(self, reply):
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        self.reply = reply
        self.kept = []
        self.thread = threading.Thread(target=self.serve)

    def serve(self):
        while True:
            try:
                conn = self.sock.accept()[0]
            except OSError:
                return
            self.kept.append(conn)
            if self.reply is None:
                conn.close()
            else:
                conn.sendall(self.reply)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        self.thread.join()
        for conn in self.kept:
            conn.close()


@pytest.mark.parametrize("reply,ready,alive,said", [
    (b"+PONG\r\n", READY, READY, "PONG"),
    (b"-LOADING it loads\r\n", NOT_READY, READY, "LOADING it loads"),
    (b"-MISCONF the disk\r\n", NOT_READY, READY, "MISCONF the disk"),
    (b"HTTP/1.1 200 OK\r\n", NOT_READY, NOT_READY, "something else than RESP"),
    (b"+" + b"x" * 9000, NOT_READY, NOT_READY, "something else than RESP"),
    (b"\r\n", NOT_READY, NOT_READY, "something else than RESP"),
    (b"", NOT_READY, NOT_READY, "no answer in time"),
    (b"+PO", NOT_READY, NOT_READY, "no answer in time"),
    (None, NOT_READY, NOT_READY, "closed the connection"),
])
def test_it_says_what_a_server_answers(reply, ready, alive, said):
    with Fake(reply) as fake:
        for how, code in (("--ping", ready), ("--ping=alive", alive)):
            words = ["--port", fake.port, "--bind", "127.0.0.1"]
            seconds = 1 if said == "no answer in time" else 60
            got = run(how, "--ping-timeout=%d" % seconds, *words)
            assert got[0] == code and said in got[1], (how, got)
            if code == NOT_READY:
                assert "127.0.0.1 port %d" % fake.port in got[1]


def test_a_server_that_loads_is_alive_and_not_ready(start_server, tmp_path):
    server = start_server("--dir", tmp_path)
    with server.conn() as conn:
        for i in range(0, 200_000, 1000):
            conn.send(b"".join(resp.command("BF.ADD", "key:%d" % j, "x")
                               for j in range(i, i + 1000)))
            assert [conn.read() for _ in range(1000)] == [1] * 1000
        conn.call("SAVE")
    server.stop()
    seen = set()
    for _ in range(10):             # a start may be over before the first look
        again = start_server("--dir", tmp_path, ready=False)
        while seen != {"alive", "ready"}:
            code, said = run("--ping=alive", *at(again))
            ready = run("--ping", *at(again))
            if "LOADING" in said:
                assert code == READY
                seen.add("alive")
            if "LOADING" in ready[1]:
                assert ready[0] == NOT_READY
                seen.add("ready")
            if ready == (READY, "PONG"):
                break
        again.wait_ready()
        again.stop()
        if seen == {"alive", "ready"}:
            return
        tmp_path.mkdir(exist_ok=True)
    pytest.fail("never seen loading: %s" % seen)


# ---- a server that answers, but has no data to serve -----------------------------

def ready(server, said=None):
    """--ping=ready says that the server is ready, or why not; --ping says PONG."""
    code, text = run("--ping=ready", *at(server))
    assert run("--ping", *at(server)) == (READY, "PONG")
    if said is None:
        return (code, text) == (READY, "PONG")
    return code == NOT_READY and "it is not ready: " in text and said in text


def test_a_sidecar_is_ready_with_its_lease(start_server):
    made = neighbour.Neighbour()
    made.say(silent=True)
    try:
        server = start_server("--sidecar-of", made.address, *neighbour.EMPTY)
        assert ready(server, "no lease")
        made.say(silent=False, nodes=[neighbour.node(neighbour.A, server.port, "myself,master",
                                       slots="0-16383")])
        neighbour.wait_lease(server)
        servers.wait_until(lambda: ready(server), 20, "it is ready")
        made.say(state="fail")
        servers.wait_until(lambda: ready(server, "its cluster is down"), 20, "it is not")
        made.say(state="ok")
        servers.wait_until(lambda: ready(server), 20, "it is ready again")
    finally:
        made.close()
    servers.wait_until(lambda: ready(server, "no lease"), 20, "the lease has ended")


def test_a_replica_is_ready_when_it_has_had_the_data(start_server, tmp_path):
    address = "127.0.0.1 %d"
    server = start_server("--dir", tmp_path, "--replicaof",
                          address % servers.free_port())
    assert ready(server, "primary's data")
    primary = start_server()
    with primary.conn() as conn, server.conn() as replica:
        assert conn.call("BF.ADD", "key", "item") == 1
        assert replica.call("REPLICAOF", "127.0.0.1", primary.port) == b"OK"
        servers.wait_until(lambda: ready(server), 20, "it has synchronized")
    primary.kill()
    servers.wait_until(lambda: b"master_link_status:down" in info(server), 20, "no link")
    assert ready(server), "it goes on serving"
    history = replicas.info(server)["master_replid"]
    servers.wait_until(lambda: history in (tmp_path / "replication.state").read_text(),
                       20, "the file says whose data it is")
    server.stop()
    server = start_server("--dir", tmp_path, "--replicaof", address % primary.port)
    assert ready(server), "it has the data from before the restart"
    with server.conn() as replica:
        assert replica.call("REPLICAOF", "NO", "ONE") == b"OK"
    assert ready(server)


def info(server):
    with server.conn() as conn:
        return conn.call("INFO", "replication")


@pytest.mark.parametrize("reply,said", [
    (b"+PONG\r\n-NOPERM no INFO\r\n", "it answers INFO with: NOPERM no INFO"),
    (b"+PONG\r\n+INFO\r\n", "something else than RESP"),
    (b"+PONG\r\n$-1\r\n", "something else than RESP"),
    (b"+PONG\r\n$9999999999\r\n", "something else than RESP"),
    (b"+PONG\r\n$9\r\nshort", "no answer in time"),
    (b"-LOADING it loads\r\n-LOADING it loads\r\n", "LOADING it loads"),
])
def test_it_says_what_a_server_answers_to_info(reply, said):
    with Fake(reply) as fake:
        seconds = 1 if said == "no answer in time" else 60
        code, text = run("--ping=ready", "--ping-timeout=%d" % seconds, "--port",
                         fake.port, "--bind", "127.0.0.1")
        assert code == NOT_READY and said in text


@pytest.mark.parametrize("words,said", [
    (["--ping=well"], "--ping is alone, or --ping=ready, --ping=complete or --ping=alive"),
    (["--ping", "--ping-timeout=0"], "--ping-timeout: 0: is not a number from 1"),
    (["--ping", "--ping-timeout=soon"], "--ping-timeout: soon"),
    (["--ping", "--ping-user"], "--ping-user: is not --ping-user=NAME"),
    (["--ping", "--ping-password-file=/nowhere"], "/nowhere: No such file"),
    (["--ping", "/nowhere.conf"], "/nowhere.conf: No such file"),
    (["--ping", "--nonsense", "1"], "unknown option --nonsense"),
])
def test_mistakes_of_the_command_line(words, said):
    code, text = run(*words)
    assert code == MISTAKE and said in text


# ---- the configuration -----------------------------------------------------------

def test_a_good_configuration(tmp_path):
    path = tmp_path / "good.conf"
    path.write_text("[network]\nport = 7380\nhz = 10\n[persistence]\n"
                    "dir = %s\n" % tmp_path)
    code, said = run("--check-config", path)
    assert code == 0 and "%s: the configuration is good" % path in said
    assert "warning: %s:3: hz does nothing here" % path in said
    assert run("--check-config", "--dir", tmp_path) == (
        0, "the command line: the configuration is good")
    assert os.listdir(tmp_path) == ["good.conf"], "it touches no data"


def test_all_mistakes_are_named_at_once(tmp_path):
    path = tmp_path / "bad.conf"
    path.write_text("[network]\nprot = 1\nport = 9\n[tls]\ntls-port = 9\n"
                    "[persistence]\ndir = %s\ndbfilename = lock\n"
                    "[security]\naclfile = /nowhere\n" % (tmp_path / "gone"))
    code, said = run("--check-config", path)
    assert code == MISTAKE
    assert [line.replace(str(path), "F") for line in said.splitlines()] == [
        "bloomery-server: " + line for line in (
            "F:2: unknown option 'prot' in section [network]: did you mean port?",
            "F: port and tls-port are both 9",
            said.splitlines()[2].split(": ", 1)[1].replace(str(path), "F"),
            "F: dir: %s: No such file or directory: create it, or name another one"
            % (tmp_path / "gone"),
            "F: tls-cert-file is not set",
            "F: aclfile: /nowhere: No such file or directory")]
    assert "dbfilename lock and appenddirname" in said.splitlines()[2]


def test_it_opens_no_socket_and_no_data(server):
    """The port and the directory are those of a server that runs."""
    code, said = run("--check-config", *at(server), "--dir", server.folder,
                     "--unixsocket", os.path.join(server.folder, "sock"))
    assert code == 0 and "is good" in said
    assert not os.path.exists(os.path.join(server.folder, "sock"))


@pytest.mark.parametrize("text,said", [
    ("[network]\nport = 99999\n", ":2: port: "),
    ("[network]\n\nprot = 1\n", ":3: unknown option 'prot' in section [network]"),
    ("[network\n", ":1: neither [section] nor name = value"),
    ("[network]\nport = 0\n", ": there is nothing to listen on"),
    ("[network]\nport = 9\n[tls]\ntls-port = 9\n", ": port and tls-port are both 9"),
    ("[tls]\ntls-port = 1\n", ": tls-cert-file is not set"),
    ("[replication]\nreplicaof = one\n", ":2: replicaof: argument must be a host and a port"),
    ("[replication]\nreplicaof = 127.0.0.1 1\nreplicaof-allowed = 10.0.0.0/8\n",
     ": replicaof: replicaof-allowed does not name it"),
    ("[persistence]\ndbfilename = lock\n", ": dbfilename lock and appenddirname"),
    ("[security]\naclfile = /nowhere\n", ": aclfile: /nowhere: No such file"),
])
def test_what_is_wrong_is_said_with_file_and_line(tmp_path, text, said):
    path = tmp_path / "bad.conf"
    path.write_text(text)
    code, got = run("--check-config", path)
    assert code == MISTAKE and "%s%s" % (path, said) in got, got
    # A start says the same, with the same status.
    server = servers.Server(conf=text, listen=False, ready=False)
    try:
        assert server.wait_exit() == MISTAKE
        assert said.lstrip(": ").encode() in server.log()
    finally:
        server.kill()
        server.remove()


def test_a_line_of_the_aclfile_is_named(tmp_path):
    users = tmp_path / "users.acl"
    users.write_text("user a on nopass +ping\nuser b +nonsense\n")
    code, said = run("--check-config", "--dir", tmp_path, "--aclfile", users)
    assert code == MISTAKE and "%s:2: " % users in said
    users.write_text("user a on nopass +ping\n")
    assert run("--check-config", "--dir", tmp_path, "--aclfile", users)[0] == 0


# ---- the version -----------------------------------------------------------------

def test_the_version_has_the_parts_of_the_build():
    code, said = run("--version")
    lines = said.splitlines()
    fields = dict(line.split(": ", 1) for line in lines[1:])
    assert code == 0 and re.fullmatch(
        r"bloomery-server \d+\.\d+\.\d+(\+\d+\.g[0-9a-f]+)?", lines[0])
    assert set(fields) == {"build", "cpu", "allocator", "libuv", "hiredis", "xxHash",
                           "OpenSSL"}
    mode = os.environ.get("BLOOMERY_MODE", "release")
    assert re.fullmatch(r"mode %s, (gcc|clang) [\d.]+.*" % mode, fields["build"])
    assert fields["cpu"] in ("avx2", "plain")
    assert fields["allocator"].startswith("libc" if servers.sanitized() else "jemalloc-")
    for name in ("libuv", "hiredis", "xxHash"):
        assert re.fullmatch(r"\d+\.\d+\.\d+", fields[name])
