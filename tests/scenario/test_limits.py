# SPDX-License-Identifier: BSD-3-Clause
#
# Limits: connections, arguments, request bytes, unread replies, the queue of a
# transaction. Each limit affects only the client that exceeds it.

import os
import socket
import time

import pytest

from lib import resp, servers


def info(conn, section="everything"):
    text = conn.call("INFO", section).decode()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def crowd(server, count):
    """Opens as many connections as the server takes. A check for readiness that
    was broken off may still have a place, so this is tried again."""
    def all_answer():
        conns = [server.conn() for _ in range(count)]
        try:
            if all(conn.call("PING") == b"PONG" for conn in conns):
                return conns
        except (resp.Closed, OSError):
            pass
        for conn in conns:
            conn.close()
        return None

    return servers.wait_until(all_answer, 5, "each client has a place")


def test_reserved_clients_come_through_the_unix_socket(start_server):
    server = start_server("--maxclients", 1, "--reserved-clients", 1,
                          "--unixsocket", "{folder}/sock")
    path = os.path.join(server.folder, "sock")
    client, = crowd(server, 1)
    with server.conn() as late:
        assert late.read_to_close() == \
            b"-ERR max number of clients reached\r\n"
    with resp.Conn(path) as operator:
        assert operator.call("PING") == b"PONG"
        with resp.Conn(path) as late:
            assert late.read_to_close() == \
                b"-ERR max number of clients reached\r\n"
        assert operator.call("CONFIG", "SET", "reserved-clients", "2") == b"OK"
        with resp.Conn(path) as second:
            assert second.call("PING") == client.call("PING") == b"PONG"
    client.close()


@pytest.mark.port
def test_maxclients_refuses_the_next_client_until_another_leaves(start_server):
    server = start_server("--maxclients", 3)
    conns = crowd(server, 3)
    with server.conn() as late:
        assert late.read_to_close() == \
            b"-ERR max number of clients reached\r\n"
    assert int(info(conns[0])["rejected_connections"]) >= 1
    assert info(conns[0])["maxclients"] == "3"
    conns[1].close()

    def welcome():
        with server.conn() as conn:
            try:
                return conn.call("PING") == b"PONG"
            except (resp.Closed, OSError):
                return False

    servers.wait_until(welcome, 5, "a place is free again")
    assert conns[0].call("CONFIG", "SET", "maxclients", "20") == b"OK"
    more = [server.conn() for _ in range(10)]
    for conn in more + [conns[0], conns[2]]:
        assert conn.call("PING") == b"PONG"
        conn.close()


@pytest.mark.port
def test_a_refused_crowd_leaves_no_descriptors(start_server):
    server = start_server("--maxclients", 5)
    conns = crowd(server, 5)
    before = server.fds()
    for _ in range(50):
        with server.conn() as late:
            late.read_to_close()
    servers.wait_until(lambda: server.fds() <= before, 5,
                       "descriptors are given back")


def test_proto_max_args(start_server):
    server = start_server("--proto-max-args", 16)
    with server.conn() as conn:
        assert conn.call("BF.MADD", "k", *range(14)) == [1] * 14
        conn.send(resp.command("BF.MADD", "k", *range(15)))
        assert conn.read_to_close() == \
            b"-ERR Protocol error: invalid multibulk length\r\n"
    with server.conn() as conn:
        assert conn.call("BF.CARD", "k") == 14


def test_proto_max_bulk_len(start_server):
    server = start_server("--proto-max-bulk-len", "1mb")
    with server.conn() as conn:
        assert conn.call("BF.ADD", "k", "x" * (1 << 20)) == 1
        conn.send(b"*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$%d\r\n" % ((1 << 20) + 1))
        assert conn.read_to_close() == \
            b"-ERR Protocol error: invalid bulk length\r\n"


def test_the_query_buffer_limit_cuts_the_one_client(start_server):
    server = start_server("--client-query-buffer-limit", "1mb")
    before = server.rss()
    with server.conn() as bad, server.conn() as good:
        bad.send(b"*100\r\n$7\r\nBF.MADD\r\n")
        piece = b"$65536\r\n" + b"x" * 65536 + b"\r\n"
        try:
            for _ in range(64):
                bad.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = bad.read_to_close()
        assert answer in (b"", b"-ERR query buffer limit exceeded\r\n"), answer
        assert good.call("PING") == b"PONG"
        assert int(info(good)["client_query_buffer_limit_disconnections"]) == 1
    assert server.rss() - before < (16 << 20) * servers.time_factor()


def big_filters(conn, count=100):
    """Makes names so long that KEYS replies with about 1 MB."""
    conn.pipeline([("BF.RESERVE", "%d-%s" % (i, "n" * 10000), "0.5", "1")
                   for i in range(count)])


def test_a_client_that_never_reads_is_cut_at_the_hard_limit(start_server):
    server = start_server("--client-output-buffer-limit", "normal 8mb 0 0")
    with server.conn() as good, server.conn() as bad:
        big_filters(good)
        good.call("PING")
        rss = server.rss()
        bad.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        # One packet asks for 300 MB of replies; the client reads none.
        bad.send(resp.command("KEYS", "*") * 300)
        peak = 0

        def cut():
            nonlocal peak
            peak = max(peak, server.rss())
            assert good.call("PING") == b"PONG"
            return info(good)["client_output_buffer_limit_disconnections"] == "1"

        servers.wait_until(cut, 15, "the hoarder is cut")
        print("grew by", peak - rss)
        # The hard limit, one reply, and the slack of buffers that double.
        assert peak - rss < (32 << 20) * servers.time_factor()
        assert good.call("BF.ADD", "k", "a") == 1


def test_a_slow_reader_below_the_limit_gets_everything(start_server):
    server = start_server("--client-output-buffer-limit", "normal 64mb 0 0")
    with server.conn() as conn, server.conn() as other:
        big_filters(conn, 50)
        want = conn.call("KEYS", "*")
        slow = server.conn(timeout=30 * servers.time_factor())
        slow.send(resp.command("KEYS", "*") * 60)
        time.sleep(0.2)
        assert other.call("PING") == b"PONG"
        for _ in range(60):
            assert sorted(slow.read()) == sorted(want)
        slow.close()


def test_a_client_may_write_a_large_pipeline_before_it_reads(server):
    """redis-py does so, here with 40 MB of replies."""
    count, text = 4000, "x" * 10000
    with server.conn(timeout=60 * servers.time_factor()) as conn:
        conn.send(resp.command("ECHO", text) * count)
        for _ in range(count):
            assert conn.read() == text.encode()
        assert info(conn)["client_output_buffer_limit_disconnections"] == "0"


@pytest.mark.parametrize("journal", ["no", "yes"])
def test_a_large_transaction_is_executed(start_server, journal):
    """It has more than 65536 commands in one packet: some create filters, most
    do not."""
    count = 100000
    server = start_server("--appendonly", journal)
    with server.conn(timeout=60 * servers.time_factor()) as conn:
        conn.send(resp.command("MULTI") +
                  b"".join(resp.command("BF.ADD", "k%d" % (i // 10000), str(i))
                           for i in range(count)) + resp.command("EXEC"))
        assert conn.read() == b"OK"
        for _ in range(count):
            assert conn.read() == b"QUEUED"
        got = conn.read()
        assert len(got) == count and sum(got) > count * 0.98
        assert int(info(conn, "memory")["used_memory_peak"]) < \
            150 << 20 or servers.sanitized()


def test_the_queue_of_a_transaction_has_a_limit(start_server):
    server = start_server("--multi-max-commands", 3)
    with server.conn() as conn:
        conn.call("MULTI")
        for _ in range(3):
            assert conn.call("BF.ADD", "k", "a") == b"QUEUED"
        assert conn.raw("BF.ADD", "k", "a") == \
            b"-ERR transaction limit reached (multi-max-commands, multi-max-bytes)\r\n"
        assert conn.raw("EXEC").startswith(b"-EXECABORT ")
        assert conn.call("EXISTS", "k") == 0
        conn.call("MULTI")
        assert conn.call("BF.ADD", "k", "a") == b"QUEUED"
        assert conn.call("EXEC") == [1]


def test_the_bytes_of_a_transaction_have_a_limit(start_server):
    server = start_server("--multi-max-bytes", "100kb")
    with server.conn() as conn:
        conn.call("MULTI")
        assert conn.call("BF.ADD", "k", "x" * 50000) == b"QUEUED"
        assert conn.raw("BF.ADD", "k", "y" * 60000) == \
            b"-ERR transaction limit reached (multi-max-commands, multi-max-bytes)\r\n"
        assert conn.raw("EXEC").startswith(b"-EXECABORT ")
        conn.call("MULTI")
        assert conn.call("BF.ADD", "k", "x" * 50000) == b"QUEUED"
        assert conn.call("EXEC") == [1]


REPLY_LIMIT = ("ERR the reply would exceed the hard limit of "
               "client-output-buffer-limit")


@pytest.mark.parametrize("proto", [2, 3])
def test_a_reply_above_the_hard_limit_is_an_error_and_not_a_cut(start_server,
                                                                proto):
    server = start_server("--client-output-buffer-limit", "normal 1mb 0 0")
    with server.conn(proto) as conn:
        big_filters(conn, 150)
        for _ in range(2):
            assert conn.call("KEYS", "*") == resp.Error(
                REPLY_LIMIT + "; use SCAN")
            assert conn.call("ECHO", "x" * (2 << 20)) == resp.Error(REPLY_LIMIT)
            assert len(conn.call("KEYS", "1*")) == 61
            assert len(conn.call("SCAN", "0", "COUNT", "50")[1]) >= 50
        # Also in a pipeline; the commands around it get their replies.
        got = conn.pipeline([("PING",), ("KEYS", "*"), ("ECHO", "a"),
                             ("ECHO", "y" * (2 << 20)), ("DBSIZE",)])
        assert got == [b"PONG", resp.Error(REPLY_LIMIT + "; use SCAN"), b"a",
                       resp.Error(REPLY_LIMIT), 150]


@pytest.mark.parametrize("proto", [2, 3])
def test_a_reply_above_the_hard_limit_is_one_element_of_exec(start_server,
                                                             proto):
    server = start_server("--client-output-buffer-limit", "normal 1mb 0 0")
    with server.conn(proto) as conn:
        big_filters(conn, 150)
        conn.call("MULTI")
        large = "x" * 300000
        for command in (("PING",), ("KEYS", "*"), ("BF.ADD", "new", "a"),
                        ("ECHO", large), ("ECHO", large), ("ECHO", large),
                        ("ECHO", large), ("EXISTS", "new"), ("ECHO", large)):
            assert conn.call(*command) == b"QUEUED"
        assert conn.call("EXEC") == [
            b"PONG", resp.Error(REPLY_LIMIT + "; use SCAN"), 1,
            large.encode(), large.encode(), large.encode(),
            resp.Error(REPLY_LIMIT), 1, resp.Error(REPLY_LIMIT)]
        assert conn.call("ECHO", "end") == b"end"


@pytest.mark.parametrize("command", [
    ("KEYS",), ("SCAN", "0", "MATCH"), ("SCAN", "0", "COUNT", "5", "MATCH"),
    ("CONFIG", "GET"), ("CONFIG", "GET", "maxclients"),
    ("COMMAND", "LIST", "FILTERBY", "PATTERN"),
], ids=" ".join)
def test_long_patterns_must_be_simple(server, command):
    refused = resp.Error("ERR pattern is longer than 1024 bytes")
    with server.conn() as conn:
        name = "n" * 5000
        conn.call("BF.ADD", name, "a")
        plain = conn.call(*command, name)
        assert not isinstance(plain, resp.Error)
        if command[0] == "KEYS":
            assert plain == [name.encode()]
        for special in ("*", "?", "[n]", "\\n"):
            fits = special + "n" * (1024 - len(special))
            assert not isinstance(conn.call(*command, fits), resp.Error)
            for long in (fits + "n", name + special, special + name):
                assert conn.call(*command, long) == refused
        assert conn.call("PING") == b"PONG"


def test_watch_accepts_many_keys_up_to_a_limit(start_server):
    """One command has 60000 keys: a search for each key among the others would
    miss the deadline of the reply."""
    def memory(conn, ident):
        rows = conn.call("CLIENT", "LIST", "ID", ident).decode()
        return int(rows.split(" multi-mem=")[1].split(" ")[0])

    limit = resp.Error("ERR transaction limit reached (multi-max-commands, "
                       "multi-max-bytes)")
    server = start_server("--multi-max-commands", 65536)
    with server.conn() as conn, server.conn() as other:
        ident = conn.call("CLIENT", "ID")
        names = ["watched:%d" % i for i in range(60000)]
        total = sum(len(n) for n in names)
        assert memory(other, ident) == 0
        for changes in (False, True):
            assert conn.call("WATCH", *names) == b"OK"
            assert memory(other, ident) > total
            other.call("BF.ADD", names[31415] if changes else "none", "a")
            conn.call("MULTI")
            conn.call("PING")
            assert conn.call("EXEC") == (None if changes else [b"PONG"])
            assert memory(other, ident) == 0
        assert conn.call("WATCH", *names) == b"OK"
        assert conn.call("WATCH", *names[:5536]) == b"OK"
        assert conn.call("WATCH", "one more") == limit
        assert conn.call("UNWATCH") == b"OK"
        assert memory(other, ident) == 0
        assert conn.call("WATCH", "one more") == b"OK"
        assert memory(other, ident) > 0


def test_the_bytes_of_watched_keys_have_a_limit(start_server):
    server = start_server("--multi-max-bytes", "100kb")
    with server.conn() as conn:
        limit = resp.Error("ERR transaction limit reached "
                           "(multi-max-commands, multi-max-bytes)")
        assert conn.call("WATCH", "a" * 50000) == b"OK"
        assert conn.call("WATCH", "b" * 60000) == limit
        conn.call("MULTI")
        assert conn.call("ECHO", "b" * 60000) == limit
        conn.call("DISCARD")
        assert conn.call("WATCH", "b" * 60000) == b"OK"


def test_timeout_closes_idle_clients(start_server):
    server = start_server("--timeout", 1)
    with server.conn() as idle, server.conn() as busy:
        idle.call("PING")
        start = time.monotonic()
        while time.monotonic() - start < 3.5:
            busy.call("PING")
            time.sleep(0.1)
        assert idle.read_to_close() == b""
        assert busy.call("PING") == b"PONG"


def test_empty_lines_do_not_evade_the_timeout(start_server):
    server = start_server("--timeout", 2)
    with server.conn() as conn:
        servers.wait_until(lambda: conn.is_cut_after(b"\r\n", 0.3), 20,
                           "it is closed all the same", 0)


def test_a_request_that_trickles_is_cut_and_a_large_one_is_not(start_server):
    """Both take longer than request-timeout; one of them sends single
    bytes."""
    server = start_server("--request-timeout", 1, "--request-min-rate", "1kb")
    with server.conn() as slow, server.conn() as large:
        large.send(b"*2\r\n$4\r\nECHO\r\n$1000000\r\n" + b"x" * 500000)
        slow.send(b"*2\r\n$4\r\nECHO\r\n$1000000\r\n")
        servers.wait_until(lambda: slow.is_cut_after(b"x"), 20,
                           "the trickle is cut")
        large.send(b"x" * 500000 + b"\r\n")
        assert large.read() == b"x" * 1000000
        assert info(large)["request_timeouts"] == "1"


def rows(conn):
    """Returns CLIENT LIST by id."""
    found = [dict(f.split("=", 1) for f in row.split(" "))
             for row in conn.call("CLIENT", "LIST").decode().splitlines()]
    return {int(row["id"]): row for row in found}


def test_clients_that_do_not_read_have_a_common_limit(start_server):
    """Each client is below its own limit, but together they would use 300
    MB."""
    server = start_server("--maxmemory-clients", "40mb")
    with server.conn() as good:
        big_filters(good)
        used = int(info(good)["used_memory"])
        bad = [server.conn() for _ in range(20)]
        for conn in bad:
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            conn.send(resp.command("KEYS", "*") * 15)

        def quiet():
            assert good.call("PING") == b"PONG"
            figures = info(good)
            return int(figures["evicted_clients"]) >= 10 and \
                int(figures["mem_clients_normal"]) <= 40 << 20
        servers.wait_until(quiet, 20, "the largest were cut")
        grew = int(info(good)["used_memory"]) - used
        print("grew by", grew)
        assert grew < 60 << 20
        for conn in bad:
            conn.close()
        servers.wait_until(
            lambda: int(info(good)["mem_clients_normal"]) < 1 << 20, 10)
        assert good.call("BF.ADD", "k", "a") == 1


GREEDY = {
    "transaction": lambda conn: [conn.call("MULTI")] + [
        conn.call("ECHO", "x" * 100000) for _ in range(20)],
    "watches": lambda conn: conn.call(
        "WATCH", *["%d:%s" % (i, "x" * 1000) for i in range(2000)]),
    "subscriptions": lambda conn: conn.send(resp.command(
        "SUBSCRIBE", *["%d:%s" % (i, "x" * 400) for i in range(2000)])),
    "prefixes": lambda conn: conn.call(
        "CLIENT", "TRACKING", "ON", "BCAST",
        *[word for i in range(1500) for word in
          ("PREFIX", "%d:%s" % (i, "x" * 600))]),
    "keys read": lambda conn: conn.pipeline(
        [("CLIENT", "TRACKING", "ON")] +
        [("BF.EXISTS", "k%d" % i, "a") for i in range(10000)]),
    "request": lambda conn: conn.send(
        b"*2\r\n$4\r\nECHO\r\n$3000000\r\n" + b"x" * 1500000),
    "unread": lambda conn: (
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096),
        conn.send(resp.command("ECHO", "x" * 100000) * 80)),
}


@pytest.mark.parametrize("greed", GREEDY)
def test_all_memory_of_a_client_counts(start_server, greed):
    """Of two clients with equal requests, the one with NO-EVICT stays."""
    server = start_server("--maxmemory-clients", "100mb",
                          "--tracking-prefixes-max-bytes", "1mb",
                          "--threads", 1)
    with server.conn() as good, server.conn(proto=3) as bad, \
            server.conn(proto=3) as spared:
        ids = [conn.call("CLIENT", "ID") for conn in (bad, spared)]
        assert spared.call("CLIENT", "NO-EVICT", "ON") == b"OK"
        before = int(info(good)["mem_clients_normal"])
        for conn in (bad, spared):
            GREEDY[greed](conn)

        seen = []

        def taken():
            found = rows(good)
            seen.append([int(found[i]["tot-mem"]) for i in ids])
            # It grows no more: a slow server may still work on a request.
            return min(seen[-1]) > 900000 and seen[-8:] == seen[-1:] * 8 and \
                seen[-1]
        sizes = servers.wait_until(taken, 10, "both have what they want")
        print(sizes)
        sums = int(info(good)["mem_clients_normal"]) - before
        assert sums >= sum(sizes) * 0.9
        # Memory for one of them.
        assert good.call("CONFIG", "SET", "maxmemory-clients",
                         before + max(sizes) + 300000) == b"OK"
        servers.wait_until(lambda: ids[0] not in rows(good), 10, "it is cut")
        assert ids[1] in rows(good)
        assert info(good)["evicted_clients"] == "1"


def test_maxmemory_clients_is_bytes_or_a_share(start_server):
    server = start_server()
    with server.conn() as conn:
        assert conn.call("CONFIG", "GET", "maxmemory-clients")[1] == b"10%"
        for value, shown in (("5%", b"5%"), ("0", b"0"), ("1mb", b"1048576"),
                             ("0%", b"0"), ("100%", b"100%")):
            assert conn.call("CONFIG", "SET", "maxmemory-clients",
                             value) == b"OK"
            assert conn.call("CONFIG", "GET", "maxmemory-clients")[1] == shown
        for value in ("101%", "-1", "x%", "%", "1.5%", "1 %", "junk"):
            assert isinstance(conn.call("CONFIG", "SET", "maxmemory-clients",
                                        value), resp.Error), value
        # A share of maxmemory, if it is set.
        assert conn.call("CONFIG", "SET", "maxmemory", "700mb",
                         "maxmemory-clients", "10%") == b"OK"
        with server.conn() as one, server.conn() as other:
            for each in (one, other):
                each.send(b"*2\r\n$4\r\nECHO\r\n$60000000\r\n")
                try:
                    each.send(b"x" * 40000000)
                except (BrokenPipeError, ConnectionResetError):
                    pass
            servers.wait_until(lambda: info(conn)["evicted_clients"] == "1", 30,
                               "one of the two is cut")


def test_config_and_info_show_the_limits(server):
    with server.conn() as conn:
        for name in ("maxclients", "proto-max-bulk-len", "proto-max-args",
                     "unauth-max-args", "unauth-max-bulk-len",
                     "client-query-buffer-limit", "client-output-buffer-limit",
                     "multi-max-commands", "multi-max-bytes", "maxmemory",
                     "timeout"):
            got = conn.call("CONFIG", "GET", name)
            assert got[0] == name.encode() and got[1] != b"", name
        figures = info(conn)
        assert figures["maxclients"] == "10000"


def log_lines(server, event):
    return [line for line in server.log().decode().splitlines()
            if 'event="%s"' % event in line]


@pytest.mark.port
def test_maxclients_is_lowered_to_the_limit_of_descriptors(server):
    import resource
    with server.conn() as conn:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (300, 300))
        assert conn.call("CONFIG", "SET", "maxclients", "200") == b"OK"
        assert conn.call("CONFIG", "GET", "maxclients")[1] == b"200"
        event = "lowered maxclients to the descriptor limit"
        assert log_lines(server, event) == []
        assert conn.call("CONFIG", "SET", "maxclients", "5000") == b"OK"
        left = int(conn.call("CONFIG", "GET", "maxclients")[1])
        assert 200 <= left < 230, left
        assert info(conn)["maxclients"] == str(left)
        lines = log_lines(server, event)
        assert len(lines) == 1, lines
        assert "maxclients=%d " % left in lines[0], lines
        assert "descriptors=300" in lines[0], lines
        # The lowered limit is in force: no connection exhausts the
        # descriptors.
        conns = [conn] + [server.conn() for _ in range(240)]
        answers = []
        for late in conns[1:]:
            try:
                answers.append(late.raw("PING"))
            except (resp.Closed, OSError) as closed:
                answers.append(getattr(closed, "got", b""))
        assert answers.count(b"+PONG\r\n") in (left - 2, left - 1)
        for late in conns[1:]:
            late.close()
        assert conn.call("PING") == b"PONG"


def test_config_set_is_logged_by_name_and_without_values(start_server):
    server = start_server("--loglevel", "notice")
    event = "changed an option"
    with server.conn() as conn:
        assert conn.call("CONFIG", "SET", "requirepass", "hunter-2-secret",
                         "timeout", "4711") == b"OK"
        names = [x.split(" option=")[1] for x in log_lines(server, event)]
        assert sorted(names) == ["requirepass", "timeout"]
        # A refused or unchanged value changes nothing.
        assert isinstance(conn.call("CONFIG", "SET", "maxmemory", "nope"),
                          resp.Error)
        assert conn.call("CONFIG", "SET", "timeout", "4711") == b"OK"
        assert conn.call("CONFIG", "SET", "tcp-keepalive", "77") == b"OK"
        names = [x.split(" option=")[1] for x in log_lines(server, event)]
        assert sorted(names) == ["requirepass", "tcp-keepalive", "timeout"]
    assert b"hunter-2-secret" not in server.log()
    assert not any("4711" in line for line in log_lines(server, event))


@pytest.mark.port
@pytest.mark.slow
def test_idle_connections_cost_about_a_kilobyte(start_server):
    if servers.sanitized():
        pytest.skip("memory of a sanitizer build")
    import resource
    count = 10000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + 200:
        pytest.skip("RLIMIT_NOFILE %d" % hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        server = start_server()
        warm = [server.conn() for _ in range(100)]
        for conn in warm:
            conn.call("PING")
        before = server.rss()
        conns = [server.conn() for _ in range(count - 100)]
        for conn in conns:
            conn.call("PING")
        each = (server.rss() - before) / len(conns)
        print("%.0f bytes each" % each)
        for conn in conns + warm:
            conn.close()
        assert each < 1100
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
