# SPDX-License-Identifier: BSD-3-Clause
#
# SLOWLOG under load: pipelined commands that run together, commands that run in parts,
# and all threads at once. tests/command/slowlog.t tests the form of an entry.

import threading

from lib import servers


def entries(conn, count=-1):
    """Returns all entries, the newest first."""
    return conn.call("SLOWLOG", "GET", count)


def fields(conn, *sections):
    return dict(line.split(":", 1) for line in
                conn.call("INFO", *sections).decode().splitlines()
                if ":" in line)


def usec_of(conn, name):
    line = fields(conn, "commandstats")["cmdstat_" + name]
    return int(dict(p.split("=") for p in line.split(","))["usec"])


def test_each_command_of_a_pipeline_has_its_entry(start_server):
    server = start_server("--slowlog-max-len", 1000)
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "0.01", 1000)
        conn.call("CONFIG", "SET", "slowlog-log-slower-than", 0)
        conn.call("CONFIG", "RESETSTAT")
        conn.pipeline([("BF.ADD", "k", "item%d" % i) for i in range(300)])
        conn.call("CONFIG", "SET", "slowlog-log-slower-than", -1)
        adds = [e for e in entries(conn) if e[3][0] == b"BF.ADD"]
        assert [e[3] for e in reversed(adds)] == \
            [[b"BF.ADD", b"k", b"item%d" % i] for i in range(300)]
        ids = [e[0] for e in adds]
        assert ids == list(range(ids[0], ids[0] - 300, -1))
        # Each share is rounded down to microseconds; their sum is the whole.
        spent = sum(e[2] for e in adds)
        assert spent <= usec_of(conn, "BF.ADD") <= spent + 300


def test_a_command_that_pauses_is_logged_once_with_all_its_work(start_server):
    server = start_server("--slowlog-log-slower-than", 3000)
    with server.conn() as conn:
        for base in range(0, 100000, 10000):
            conn.pipeline([("BF.RESERVE", "key:%d" % i, "0.5", 1)
                           for i in range(base, base + 10000)])
        conn.call("SLOWLOG", "RESET")
        conn.call("CONFIG", "RESETSTAT")
        for _ in range(20):
            assert conn.call("KEYS", "nothing*") == []
            found = [e for e in entries(conn) if e[3][0] == b"KEYS"]
            if found:
                break
            conn.call("CONFIG", "RESETSTAT")
        assert len(found) == 1, "no walk over 100,000 keys took 3 ms"
        assert found[0][2] >= 3000
        assert abs(found[0][2] - usec_of(conn, "keys")) <= 1
        shown = fields(conn, "latencystats")["latency_percentiles_usec_keys"]
        p50 = float(dict(p.split("=") for p in shown.split(","))["p50"])
        assert found[0][2] <= p50 <= (found[0][2] + 1) * 33 / 32


def test_fast_commands_are_not_logged(start_server):
    server = start_server("--slowlog-log-slower-than", 1000000)
    with server.conn() as conn:
        conn.pipeline([("BF.ADD", "k", i) for i in range(1000)])
        assert conn.call("SLOWLOG", "LEN") == 0
        conn.call("CONFIG", "SET", "slowlog-log-slower-than", 0)
        conn.call("PING")
        assert conn.call("SLOWLOG", "LEN") > 0
        conn.call("CONFIG", "SET", "slowlog-log-slower-than", 1000000)
        conn.call("SLOWLOG", "RESET")
        conn.call("PING")
        assert conn.call("SLOWLOG", "LEN") == 0


def test_waiting_does_not_count_as_work(start_server):
    server = start_server("--slowlog-log-slower-than", 20000,
                          "--latency-monitor-threshold", 20)
    with server.conn() as conn:
        assert conn.call("WAIT", 1, 150) == 0
        assert entries(conn) == []
        assert conn.call("LATENCY", "LATEST") == []


def test_passwords_never_reach_the_slow_log(start_server):
    server = start_server("--slowlog-log-slower-than", 0,
                          "--requirepass", "sesame", "--slowlog-max-len", 1000)
    with server.conn() as conn:
        conn.call("AUTH", "sesame")
        conn.call("SLOWLOG", "RESET")  # the harness has also sent its password
        conn.call("AUTH", "wrong-sesame")
        conn.call("AUTH", "default", "other-sesame")
        conn.call("HELLO", 3, "AUTH", "default", "third-sesame")
        conn.call("HELLO", 2, "AUTH", "default", "sesame", "SETNAME", "me")
        conn.call("CONFIG", "SET", "requirepass", "new-sesame")
        conn.call("CONFIG", "SET", "maxmemory", 0, "REQUIREPASS", "sesame")
        shown = entries(conn)
        words = [w for entry in shown for w in entry[3]]
        assert len(shown) == 6 + 1  # and SLOWLOG RESET
        assert not any(b"sesame" in w for w in words)
        assert words.count(b"(redacted)") == 1 + 2 + 2 + 2 + 1 + 1


def test_passwords_inside_another_command_are_never_shown(start_server):
    server = start_server("--slowlog-log-slower-than", 0,
                          "--slowlog-max-len", 1000)
    carried = [("AUTH", "sesame"), ("AUTH", "me", "sesame"),
               ("HELLO", "3", "AUTH", "me", "sesame"), ("AUHT", "sesame"),
               ("CONFIG", "SET", "requirepass", "sesame"),
               ("CONFIG", "SETT", "requirepass", "sesame"),
               ("COMMAND", "GETKEYS") * 6 + ("AUTH", "sesame"),
               ("COMMAND", "GETKEYS", "AUTH", "sesame")]
    carriers = [("COMMAND", "GETKEYS"), ("COMMAND", "GETKEYSANDFLAGS"),
                ("ACL", "DRYRUN", "default")]
    with server.conn() as conn, server.conn() as watch:
        assert watch.call("MONITOR") == b"OK"
        for one in carriers:
            for other in carried:
                conn.call(*one, *other)
        shown = [entry[3] for entry in entries(conn)]
        assert not any(b"sesame" in w for words in shown for w in words)
        for one in carriers:
            mine = [words for words in shown
                    if words[:len(one)] == [w.encode() for w in one]]
            assert len(mine) == len(carried), (one, mine)
            assert all(b"(redacted)" in words for words in mine), mine
        conn.call("ECHO", "the end")
        lines = []
        while not lines or b"the end" not in lines[-1]:
            lines.append(watch.read())
        # It does not show commands that only administrators may run.
        assert sum(b"(redacted)" in line for line in lines) >= 2 * len(carried)
        assert not any(b"sesame" in line for line in lines)


def test_passwords_in_transactions_and_typing_errors_never_reach_it(
        start_server):
    server = start_server("--slowlog-log-slower-than", 0,
                          "--slowlog-max-len", 1000)
    with server.conn() as conn:
        replies = conn.pipeline([
            ("MULTI",), ("AUTH", "sesame"), ("AUTH", "me", "sesame"),
            ("HELLO", "2", "AUTH", "me", "sesame"),
            ("HELLO", "AUTH", "me", "sesame"),
            ("HELLO", "2", "AUHT", "me", "sesame"),
            ("CONFIG", "SET", "requirepas", "sesame"),
            ("CONFIG", "SET", "maxmemory", "requirepass", "sesame"),
            ("CONFIG", "SET", "requirepass", "sesame", "maxmemory", "x"),
            ("EXEC",)])
        assert len(replies[-1]) == 8
        shown = [entry[3] for entry in entries(conn)]
        assert [b"CONFIG", b"SET", b"requirepass", b"(redacted)",
                b"maxmemory", b"x"] in shown
        assert len([words for words in shown if b"(redacted)" in words]) == 8
        assert not any(b"sesame" in w for words in shown for w in words)
        assert b"sesame" not in conn.call("CLIENT", "LIST")
        assert b"sesame" not in conn.call("INFO", "everything")
    assert b"sesame" not in server.log()


def test_all_threads_at_once(start_server):
    server = start_server("--threads", 4, "--slowlog-log-slower-than", 0,
                          "--slowlog-max-len", 200)
    problems = []
    over = threading.Event()

    def write(number):
        with server.conn() as conn:
            while not over.is_set():
                conn.pipeline([("BF.ADD", "k%d" % number, i)
                               for i in range(50)])

    def look():
        with server.conn() as conn:
            for _ in range(100):
                ids = [e[0] for e in entries(conn)]
                if len(ids) > 200 or ids != sorted(set(ids), reverse=True):
                    problems.append(ids)

    def change():
        with server.conn() as conn:
            for i in range(100):
                conn.call("CONFIG", "SET", "slowlog-max-len", 50 + i,
                          "slowlog-log-slower-than", i % 3)
                if i % 10 == 0:
                    conn.call("SLOWLOG", "RESET")

    writers = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    others = [threading.Thread(target=f) for f in (look, look, change)]
    for thread in writers + others:
        thread.start()
    for thread in others:
        thread.join()
    over.set()
    for thread in writers:
        thread.join()
    assert not problems
    server.assert_healthy()


def test_the_client_and_its_name(start_server):
    server = start_server("--slowlog-log-slower-than", 0,
                          "--unixsocket", "s")
    with server.conn() as conn, server.conn() as other:
        other.call("CLIENT", "SETNAME", "somebody")
        other.call("ECHO", "x")
        servers.wait_until(lambda: any(e[3][0] == b"ECHO"
                                       for e in entries(conn)))
        entry = [e for e in entries(conn) if e[3][0] == b"ECHO"][0]
        assert entry[5] == b"somebody"
        listed = conn.call("CLIENT", "LIST").decode()
        assert "addr=%s " % entry[4].decode() in listed
