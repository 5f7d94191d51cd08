# SPDX-License-Identifier: BSD-3-Clause
#
# TLS for clients: which certificates open a connection, how certificates are
# replaced, and that every limit of plain connections holds here as well.

import signal
import select
import socket
import ssl
import subprocess
import time

import pytest
import redis

from lib import loads, resp, servers, tls


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return tls.Files(tmp_path_factory.mktemp("certs"))


@pytest.fixture
def secure(start_server, files):
    """secure("--tls-auth-clients", "no"): a server with a TLS port beside the
    plain one."""
    def start(*options, certs=files, **kwargs):
        port = servers.free_port()
        server = start_server(*certs.options(port, *options), **kwargs)
        server.tls_port = port
        return server
    return start


def connect(server, files, cert=True, **kwargs):
    return tls.Conn(server.tls_port, files.context(cert), **kwargs)


def is_refused(server, context):
    """Whether a client with this context gets no reply. With TLS 1.3 it learns
    only when it reads that the server did not like its certificate."""
    try:
        with tls.Conn(server.tls_port, context) as conn:
            return conn.call("PING") != b"PONG"
    except (ssl.SSLError, ConnectionError, resp.Closed):
        return True


def run_refused(argv):
    done = subprocess.run([str(a) for a in argv], capture_output=True,
                          timeout=20 * servers.time_factor(), text=True)
    return done.returncode, done.stderr + done.stdout


def test_plain_and_tls_ports_serve_the_same_data(secure, files):
    server = secure()
    with server.conn() as plain, connect(server, files) as conn:
        assert conn.call("BF.ADD", "k", "a") == 1
        assert plain.call("BF.EXISTS", "k", "a") == 1
        info = conn.call("INFO", "server").decode()
        assert "name=tcp,bind=127.0.0.1,port=%d" % server.port in info
        assert "name=tls,bind=127.0.0.1,port=%d" % server.tls_port in info
        mine = conn.call("CLIENT", "INFO").decode()
        assert "laddr=127.0.0.1:%d" % server.tls_port in mine


def test_stock_clients_connect(secure, files):
    server = secure()
    client = redis.Redis(port=server.tls_port, **files.redis_py())
    pipe = client.pipeline(transaction=False)
    for i in range(10000):
        pipe.execute_command("BF.ADD", "k", i)
    assert sum(pipe.execute()) > 9700
    assert client.execute_command("BF.CARD", "k") > 9700
    done = subprocess.run(files.redis_cli(server.tls_port) +
                          ["BF.EXISTS", "k", "77"], capture_output=True)
    assert done.stdout == b"1\n", done


def test_a_server_may_have_tls_only(start_server, files):
    port = servers.free_port()
    server = start_server("--bind", "127.0.0.1", *files.options(port),
                          "--port", 0, listen=False, ready=False)

    def answers():
        try:
            with tls.Conn(port, files.context()) as conn:
                return conn.call("PING") == b"PONG"
        except OSError:
            return False
    servers.wait_until(answers, what="the TLS port answers")
    with tls.Conn(port, files.context()) as conn:
        info = conn.call("INFO", "server").decode()
    assert "tcp_port:%d\r\n" % port in info
    assert "name=tcp" not in info
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.port), 1)


def test_clients_need_a_certificate_of_the_authority(secure, files, tmp_path):
    stranger = tls.Authority(tmp_path, "other").make("stranger")
    old = files.authority.make("old", days=-1)
    for auth, nothing in (("yes", False), ("optional", True), ("no", True)):
        server = secure("--tls-auth-clients", auth)
        assert not is_refused(server, files.context())
        assert is_refused(server, files.context(cert=None)) == (not nothing)
        for cert in (stranger, old):
            refused = is_refused(server, files.context(cert))
            assert refused == (auth != "no"), (auth, cert)
        if auth == "yes":  # a client may see the end before it is counted
            with server.conn() as conn:
                servers.wait_until(
                    lambda c=conn: b"tls_failures:3" in c.call("INFO", "stats"),
                    what="three failures are counted")
    # A client that does not trust this server's authority.
    other = files.context(ca=tmp_path / "other.pem")
    with pytest.raises(ssl.SSLError):
        tls.Conn(server.tls_port, other)


def test_old_protocols_are_refused(secure, files):
    server = secure()
    for version, works in ((ssl.TLSVersion.TLSv1_1, False),
                           (ssl.TLSVersion.TLSv1_2, True),
                           (ssl.TLSVersion.TLSv1_3, True)):
        context = files.context()
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
        assert is_refused(server, context) == (not works), version


def test_what_does_not_work_is_refused_without_a_tls_port(start_server):
    with start_server().conn() as admin:
        for name, value, text in (
                ("tls-ciphers", "NONE-SUCH", "no cipher match"),
                ("tls-protocols", "TLSv1.1", "is not TLSv1.2 or TLSv1.3"),
                ("tls-ciphersuites", "X", "no cipher match")):
            error = admin.call("CONFIG", "SET", name, value)
            assert isinstance(error, resp.Error) and text in str(error), error
        assert admin.call("CONFIG", "SET", "tls-protocols", "TLSv1.3") == b"OK"


def test_options_change_at_run_time(secure, files):
    server = secure()
    context = files.context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with server.conn() as admin:
        assert admin.call("CONFIG", "SET", "tls-protocols", "TLSv1.3",
                          "tls-auth-clients", "no") == b"OK"
        assert is_refused(server, context)
        assert not is_refused(server, files.context(cert=None))
        for name, value, text in (
                ("tls-ciphers", "NONE-SUCH", "no cipher match"),
                ("tls-protocols", "TLSv1.1", "is not TLSv1.2 or TLSv1.3"),
                ("tls-ciphersuites", "X", "no cipher match")):
            before = admin.call("CONFIG", "GET", name)
            error = admin.call("CONFIG", "SET", name, value, "timeout", "77")
            assert isinstance(error, resp.Error) and text in str(error), error
            # Nothing of the command is in force.
            assert admin.call("CONFIG", "GET", name) == before
            assert admin.call("CONFIG", "GET", "timeout") == [b"timeout", b"0"]
        error = admin.call("CONFIG", "SET", "tls-cert-file", "/etc/passwd")
        assert "immutable" in str(error)
        assert admin.call("CONFIG", "GET", "tls-key-file-pass") == \
            [b"tls-key-file-pass", b""]


def test_sessions_are_resumed_unless_that_is_off(secure, files):
    server = secure()

    def is_resumed(version):
        context = files.context()
        context.minimum_version = context.maximum_version = version
        with tls.Conn(server.tls_port, context) as conn:
            assert conn.call("PING") == b"PONG"
            session = conn.sock.session
        with socket.create_connection(("127.0.0.1", server.tls_port)) as sock:
            with context.wrap_socket(sock, server_hostname="127.0.0.1",
                                     session=session) as again:
                again.sendall(b"PING\r\n")
                assert again.recv(100) == b"+PONG\r\n"
                return again.session_reused
    versions = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    assert [is_resumed(v) for v in versions] == [True, True]
    with server.conn() as admin:
        assert admin.call("CONFIG", "SET", "tls-session-caching", "no") == b"OK"
    assert [is_resumed(v) for v in versions] == [False, False]


@pytest.mark.parametrize("option,value,text", [
    ("--tls-cert-file", "/nowhere/x.pem",
     "No such file or directory"),
    ("--tls-key-file", "CLIENT", "key values mismatch"),
    ("--tls-ca-cert-file", "", "tls-auth-clients needs tls-ca-cert-file"),
    ("--tls-ca-cert-file", "/nowhere/ca.pem", "/nowhere/ca.pem"),
    ("--tls-protocols", "SSLv3", "SSLv3"),
    ("--tls-ciphers", "NONE-SUCH", "NONE-SUCH"),
])
def test_a_bad_option_is_an_error_at_the_start(files, tmp_path, option, value,
                                               text):
    value = files.client[1] if value == "CLIENT" else value
    code, said = run_refused(
        [servers.server_binary(), "--port", 0, "--dir", tmp_path,
         *files.options(servers.free_port()), option, value])
    assert code == 2
    assert "not started" in said and text in said, said


def serial(server, context):
    with tls.Conn(server.tls_port, context) as conn:
        return conn.sock.getpeercert()["serialNumber"]


def test_sighup_reads_new_certificates_from_the_same_paths(secure, tmp_path):
    mine = tls.Files(tmp_path)
    server = secure("--loglevel", "notice", certs=mine)
    context = mine.context()
    first = serial(server, context)
    with tls.Conn(server.tls_port, context) as conn:
        mine.authority.make("server")
        server.child.send_signal(signal.SIGHUP)
        servers.wait_until(lambda: serial(server, context) != first,
                           what="the new certificate is served")
        assert conn.call("BF.ADD", "k", "a") == 1   # it stays
        second = serial(server, context)
        # What is wrong changes nothing, and the log says what.
        mine.server[1].write_text("no key\n")
        server.child.send_signal(signal.SIGHUP)
        servers.wait_until(lambda: b"kept the old configuration and"
                           in server.log(), what="a log line")
        assert str(mine.server[1]).encode() in server.log()
        assert serial(server, context) == second
        assert conn.call("BF.EXISTS", "k", "a") == 1


def info_tls(server):
    with server.conn() as conn:
        text = conn.call("INFO", "tls").decode()
    assert text.startswith("# TLS\r\n")
    return dict(line.split(":", 1) for line in text.splitlines()[1:])


def test_info_tells_until_when_certificates_are_valid(secure, server, tmp_path):
    """In the fields of Valkey 9.1."""
    mine = tls.Files(tmp_path)
    secured = secure(certs=mine)
    days = 24 * 3600
    for who, cert, valid in (("server", mine.server[0], 20), ("ca", mine.ca, 30)):
        got = info_tls(secured)
        assert got["tls_%s_cert_serial" % who] == subprocess.run(
            ["openssl", "x509", "-noout", "-serial", "-in", cert], text=True,
            capture_output=True, check=True).stdout.strip().partition("=")[2]
        left = int(got["tls_%s_cert_expires_in_seconds" % who])
        assert (valid - 1) * days < left <= valid * days
    assert got["tls_client_cert_serial"] == "none"
    assert got["tls_client_cert_expires_in_seconds"] == "0"
    mine.authority.make("server", days=3)
    secured.child.send_signal(signal.SIGHUP)
    servers.wait_until(lambda: int(info_tls(secured)[
        "tls_server_cert_expires_in_seconds"]) <= 3 * days, 20, "it was renewed")
    assert set(info_tls(server).values()) == {"none", "0"}


def test_clients_come_while_certificates_change(secure, tmp_path):
    mine = tls.Files(tmp_path)
    server = secure(certs=mine)
    context = mine.context()
    seen = set()
    for i in range(30):
        if i % 10 == 0:
            mine.authority.make("server")
        server.child.send_signal(signal.SIGHUP)
        seen.add(serial(server, context))
        with tls.Conn(server.tls_port, context) as conn:
            assert conn.call("PING") == b"PONG"
    assert len(seen) > 1
    with server.conn() as conn:
        servers.wait_until(lambda: b"connected_clients:1\r" in
                           conn.call("INFO", "clients"), what="all have left")


# ---- limits ------------------------------------------------------------------

def test_a_stalled_handshake_is_cut(secure, files):
    server = secure("--auth-timeout", 1)
    with socket.create_connection(("127.0.0.1", server.tls_port)) as silent, \
            socket.create_connection(("127.0.0.1", server.tls_port)) as half:
        half.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        for sock in (silent, half):
            sock.settimeout(20 * servers.time_factor())
            assert sock.recv(100) == b""
    with connect(server, files) as conn:    # this one is not in a hurry
        assert b"request_timeouts:2\r" in conn.call("INFO", "stats")


def has_ended(sock):
    """Tells whether the server has closed a connection on which it is silent."""
    return bool(select.select([sock], [], [], 0)[0])


def test_a_handshake_holds_a_place(secure, files):
    server = secure("--maxclients", 3)
    with server.conn() as plain:
        servers.wait_until(lambda: b"connected_clients:1\r" in
                           plain.call("INFO", "clients"), what="one client")
        waiting = []

        def all_places_are_taken():
            """Connects again if the harness's own probe still had the place."""
            for sock in [s for s in waiting if has_ended(s)]:
                waiting.remove(sock)
                sock.close()
            while len(waiting) < 2:
                waiting.append(
                    socket.create_connection(("127.0.0.1", server.tls_port)))
            return b"connected_clients:3\r" in plain.call("INFO", "clients")

        servers.wait_until(all_places_are_taken, what="three clients")
        assert is_refused(server, files.context())
        for sock in waiting:
            sock.close()
        servers.wait_until(lambda: not is_refused(server, files.context()),
                           what="a place is free")


def test_plain_bytes_at_the_tls_port_are_cut(secure, files):
    server = secure()
    for data in (b"PING\r\n", b"*1\r\n$4\r\nPING\r\n", b"GET / HTTP/1.1\r\n\r\n",
                 bytes(range(256)) * 100):
        with socket.create_connection(("127.0.0.1", server.tls_port)) as sock:
            sock.settimeout(20 * servers.time_factor())
            got = b""
            try:
                sock.sendall(data)
                while True:
                    more = sock.recv(1000)
                    if not more:
                        break
                    got += more
            except ConnectionError:
                pass
            assert b"PONG" not in got
    with server.conn() as conn:
        assert b"tls_failures:4\r" in conn.call("INFO", "stats")
        # TLS at the plain port is no request either.
        with pytest.raises((ssl.SSLError, ConnectionError)):
            tls.Conn(server.port, files.context())
        assert conn.call("PING") == b"PONG"


def test_limits_before_the_password_hold_over_tls(secure, files):
    server = secure("--requirepass", "secret", "--auth-failure-delay", 0)
    with connect(server, files) as conn:
        assert "NOAUTH" in str(conn.call("BF.ADD", "k", "a"))
        conn.send(b"*2\r\n$4\r\nAUTH\r\n$20000\r\n" + b"x" * 20000 + b"\r\n")
        try:
            assert "bulk" in str(conn.read())
        except (resp.Closed, ConnectionError, ssl.SSLError):
            pass
        with pytest.raises((resp.Closed, ConnectionError, ssl.SSLError)):
            conn.call("PING")
    # Replies that are not read are bounded, too.
    with connect(server, files) as conn:
        conn.sock.settimeout(5 * servers.time_factor())
        with pytest.raises(OSError):
            for _ in range(2000):
                conn.sock.sendall(b"PING\r\n" * 1000)
        assert server.rss() < 1 << 30
    with connect(server, files, password="secret") as conn:
        assert conn.call("BF.ADD", "k", "a") == 1


def test_subscribers_pauses_and_kills_work_over_tls(secure, files):
    server = secure()
    with connect(server, files, proto=3) as subscriber, \
            connect(server, files) as other, server.conn() as admin:
        assert subscriber.call("SUBSCRIBE", "news")[:2] == [b"subscribe",
                                                            b"news"]
        for i in range(100):
            assert other.call("PUBLISH", "news", "n%d" % i) == 1
        for i in range(100):
            assert subscriber.read() == [b"message", b"news", b"n%d" % i]
        assert admin.call("CLIENT", "PAUSE", "600", "WRITE") == b"OK"
        began = time.monotonic()
        assert other.call("BF.ADD", "k", "a") == 1
        assert time.monotonic() - began > 0.4
        own = other.call("CLIENT", "ID")
        assert admin.call("CLIENT", "KILL", "ID", own) == 1
        assert other.read_to_close() == b""
        assert subscriber.call("PING") == b"PONG"


LONG = (32 if servers.sanitized() else 256) << 20


@pytest.mark.parametrize("size", [
    1 << 20, pytest.param(LONG, marks=pytest.mark.slow)])
def test_long_values_pass(secure, files, size):
    server = secure("--proto-max-bulk-len", size,
                    "--client-query-buffer-limit", size + (1 << 20),
                    "--client-output-buffer-limit", "normal 0 0 0",
                    "--maxmemory-clients", 0)
    value = (b"0123456789abcdef" * (size // 16))[:size]
    with connect(server, files, timeout=120 * servers.time_factor()) as conn, \
            server.conn() as other:
        conn.send(resp.command("ECHO", value))
        worst = 0
        conn.sock.settimeout(0.01)
        got = bytearray()
        head = b"$%d\r\n" % size
        while len(got) < len(head) + size + 2:
            began = time.monotonic()
            assert other.call("PING") == b"PONG"
            worst = max(worst, time.monotonic() - began)
            try:
                while len(got) < len(head) + size + 2:
                    got += conn.sock.recv(1 << 20)
            except (socket.timeout, ssl.SSLWantReadError):
                pass
        print("the other client waited at most %.3f s" % worst)
        assert got[:len(head)] == head
        assert got[len(head):-2] == value


def test_users_log_in_over_tls(secure, files, tmp_path):
    aclfile = tmp_path / "users.acl"
    aclfile.write_text("user default off\n"
                       "user web on >secret ~seen:* +@bloom +@connection\n")
    server = secure("--aclfile", aclfile, "--auth-failure-delay", 0)
    client = redis.Redis(port=server.tls_port, username="web",
                         password="secret", **files.redis_py())
    assert client.execute_command("BF.ADD", "seen:1", "a") == 1
    with pytest.raises(redis.exceptions.NoPermissionError):
        client.execute_command("BF.ADD", "other", "a")
    wrong = redis.Redis(port=server.tls_port, username="web",
                        password="no", **files.redis_py())
    with pytest.raises(redis.exceptions.ResponseError):
        wrong.ping()


# ---- bloomery-load -----------------------------------------------------------

def test_bloomery_load_dials_with_tls(secure, files, tmp_path):
    source, target = secure(), secure()
    own = ["--cacert", files.ca, "--cert", files.client[0], "--key",
           files.client[1]]
    to = ["--to", "127.0.0.1:%d" % target.tls_port, "--tls"]
    lines = b"".join(b"item %d\n" % i for i in range(200000))
    loads.load("items", *own, "--to", "localhost:%d" % source.tls_port, "--tls",
               "k", stdin=lines)
    loads.load("server", *own, *to, "--from-tls",
               "127.0.0.1:%d" % source.tls_port)
    with source.conn() as one, target.conn() as two:
        assert one.call("BF.CARD", "k") > 190000
        assert one.call("BF.CARD", "k") == two.call("BF.CARD", "k")
        two.call("FLUSHALL")
    # One side only.
    loads.load("server", *own, *to, "127.0.0.1:%d" % source.port)
    assert loads.present(target, "k", ["item 0", "item 199999"])
    # What is wrong is told.
    other = tls.Authority(tmp_path, "other").cert
    for more, text in ((["--cacert", other] + own[2:], b"certificate"),
                       (own[:2], b"TLS"),
                       (["--cacert", "/nowhere/ca.pem"], b"/nowhere/ca.pem")):
        got = loads.load("items", *more, *to, "k2", stdin=b"a\n",
                         status=loads.UNREADABLE)
        assert text in got.stderr, got
    got = loads.load("items", *own, "--to", "127.0.0.1:%d" % target.port,
                     "--tls", "k2", stdin=b"a\n", status=loads.UNREADABLE)
    assert b"wrong version number" in got.stderr, got
    with target.conn() as conn:
        assert conn.call("EXISTS", "k2") == 0
