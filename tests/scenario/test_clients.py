# SPDX-License-Identifier: BSD-3-Clause
#
# CLIENT LIST, INFO, KILL and REPLY between several connections.

import re

import pytest

from lib import resp, servers

pytestmark = pytest.mark.port   # most ask for addresses


def listed(conn, *options):
    text = conn.call("CLIENT", "LIST", *options).decode()
    clients = []
    for line in text.splitlines():
        clients.append(dict(f.split("=", 1) for f in line.split(" ")))
    return clients


@pytest.fixture
def trio(server):
    with server.conn() as a, server.conn() as b, server.conn() as c:
        for name, conn in (("a", a), ("b", b), ("c", c)):
            assert conn.call("CLIENT", "SETNAME", name) == b"OK"
        yield a, b, c


def test_the_list_has_every_client_with_the_fields_of_redis(server, trio,
                                                            start_oracle):
    a, b, _ = trio
    b.call("SELECT", "5")
    b.call("MULTI")
    b.call("PING")
    rows = listed(a)
    assert sorted(r["name"] for r in rows) == ["a", "b", "c"]
    assert len({r["id"] for r in rows}) == 3
    row = [r for r in rows if r["name"] == "b"][0]
    assert row["db"] == "5" and row["multi"] == "1" and "x" in row["flags"]
    assert row["cmd"] == "ping" and row["user"] == "default"
    me = [r for r in rows if r["name"] == "a"][0]
    assert me["cmd"] == "client|list" and me["multi"] == "-1"
    port = a.sock.getsockname()[1]
    assert me["addr"] == "127.0.0.1:%d" % port
    assert me["laddr"] == "127.0.0.1:%d" % server.port
    oracle = start_oracle()
    with oracle.conn() as theirs:
        assert set(listed(theirs)[0]) <= set(me), "a field of Redis is missing"


def test_info_is_the_row_of_its_client(trio):
    a, _, _ = trio
    own = a.call("CLIENT", "INFO").decode()
    assert own.endswith("\n") and own.count("\n") == 1
    assert " name=a " in own and " cmd=client|info " in own
    assert "id=%d " % a.call("CLIENT", "ID") in own


def test_list_by_id_and_type(trio):
    a, b, c = trio
    ids = [str(x.call("CLIENT", "ID")) for x in (b, c)]
    assert [r["name"] for r in listed(a, "ID", *ids)] == ["b", "c"]
    assert len(listed(a, "TYPE", "normal")) == 3
    assert listed(a, "TYPE", "replica") == []


def test_the_list_shows_resp3(server, trio):
    a, _, _ = trio
    with server.conn(3) as d:
        d.call("CLIENT", "SETNAME", "d")
        rows = {r["name"]: r for r in listed(a)}
        assert rows["d"].get("resp", "3") == "3"
        assert rows["a"].get("resp", "2") == "2"


def closed(conn):
    return conn.read_to_close() == b""


def test_kill_by_id(trio):
    a, b, c = trio
    assert a.call("CLIENT", "KILL", "ID", b.call("CLIENT", "ID")) == 1
    assert closed(b)
    assert c.call("PING") == b"PONG"
    servers.wait_until(lambda: len(listed(a)) == 2, 5, "b left the list")


def test_kill_by_address_old_and_new(trio):
    a, b, c = trio
    address = "%s:%d" % b.sock.getsockname()
    assert a.raw("CLIENT", "KILL", address) == b"+OK\r\n"
    assert closed(b)
    address = "%s:%d" % c.sock.getsockname()
    assert a.call("CLIENT", "KILL", "ADDR", address) == 1
    assert closed(c)


def test_kill_many_but_not_me(server, trio):
    a, b, c = trio
    laddr = "127.0.0.1:%d" % server.port
    # The connection that checked for readiness has closed.
    servers.wait_until(lambda: a.call("CLIENT", "LIST").count(b"laddr=") == 3)
    assert a.call("CLIENT", "KILL", "LADDR", laddr) == 2
    assert closed(b) and closed(c)
    assert a.call("PING") == b"PONG"


def test_kill_by_user_and_type_and_me_too(trio):
    a, b, c = trio
    # The connection that checked for readiness may still be closing.
    servers.wait_until(lambda: a.call("CLIENT", "LIST").count(b"\n") == 3,
                       what="only these three")
    assert a.call("CLIENT", "KILL", "USER", "default", "TYPE", "normal",
                  "SKIPME", "no") == 3
    for conn in (a, b, c):
        conn.data.clear()
        conn.read_to_close()


def test_kill_with_filters_that_exclude_each_other(trio):
    a, b, c = trio
    assert a.call("CLIENT", "KILL", "ID", b.call("CLIENT", "ID"), "ADDR",
                  "%s:%d" % c.sock.getsockname()) == 0
    assert b.call("PING") == b"PONG" and c.call("PING") == b"PONG"


def names(conn, *filters):
    return sorted(r["name"] for r in listed(conn, *filters) if r["name"])


def test_list_accepts_all_filters_and_their_opposites(server, trio):
    a, b, c = trio
    ident = {x: str(x.call("CLIENT", "ID")) for x in trio}
    address = "%s:%d" % b.sock.getsockname()
    b.call("SELECT", "5")
    b.call("CLIENT", "NO-EVICT", "on")
    b.call("CLIENT", "SETINFO", "LIB-NAME", "lib")
    b.call("CLIENT", "SETINFO", "LIB-VER", "1.2")
    c.call("SUBSCRIBE", "news")
    for only_b in (("ID", ident[b]), ("NAME", "b"), ("ADDR", address),
                   ("DB", "5"), ("FLAGS", "e"), ("LIB-NAME", "lib"),
                   ("LIB-VER", "1.2")):
        assert names(a, *only_b) == ["b"]
        assert names(a, "NOT-" + only_b[0], only_b[1]) == ["a", "c"]
    assert names(a, "TYPE", "pubsub") == names(a, "FLAGS", "P") == ["c"]
    assert names(a, "NOT-TYPE", "pubsub", "NOT-NAME", "a") == ["b"]
    assert names(a, "NOT-ID", ident[a], ident[c], ident[a]) == ["b"]
    ordered = listed(a, "ID", ident[c], ident[b], "ID", ident[a])
    assert [r["name"] for r in ordered] == ["c", "b", "a"]
    assert names(a, "ID", ident[c], ident[b], "NOT-ID", ident[c]) == ["b"]
    assert names(a, "FLAGS", "eP") == []
    assert names(a, "SKIPME", "yes") == ["b", "c"]
    laddr = "127.0.0.1:%d" % server.port
    assert names(a, "LADDR", laddr, "IP", "127.0.0.1") == ["a", "b", "c"]
    assert names(a, "NOT-LADDR", laddr) == names(a, "NOT-IP", "127.0.0.1") == []
    assert names(a, "NOT-IP", "127.0.0") == ["a", "b", "c"]


def test_kill_by_several_ids_counts_each_client_once(trio):
    a, b, c = trio
    ids = [str(x.call("CLIENT", "ID")) for x in (c, b, c)]
    assert a.call("CLIENT", "KILL", "ID", *ids, "ID", ids[0]) == 2
    assert closed(b) and closed(c)
    assert a.call("PING") == b"PONG"


def test_kill_by_the_opposite_of_an_id_and_a_name(trio):
    a, b, c = trio
    ident = str(b.call("CLIENT", "ID"))
    assert a.call("CLIENT", "KILL", "NOT-NAME", "b", "NOT-ID", ident,
                  "NAME", "c") == 1
    assert closed(c)
    assert b.call("PING") == b"PONG"


def test_kill_and_list_by_age_and_idle_time(trio):
    a, b, c = trio
    both = ("MAXAGE", "1", "IDLE", "1")
    # a asks all the time, so it becomes old but never idle.
    servers.wait_until(lambda: names(a, *both) == ["b", "c"] and
                       names(a, "MAXAGE", "1") == ["a", "b", "c"],
                       what="b and c have been idle for a second")
    assert b.call("PING") == b"PONG"
    assert a.call("CLIENT", "KILL", "MAXAGE", "1000", "SKIPME", "no") == 0
    assert a.call("CLIENT", "KILL", "NAME", "b", "MAXAGE", "1") == 1
    assert closed(b)
    assert c.call("PING") == b"PONG"


def test_a_list_that_pauses_keeps_its_filters(server, trio):
    """With many ids the command pauses, so that other clients run."""
    a, b, c = trio
    ids = [str(x.call("CLIENT", "ID")) for x in (b, c)]
    many = [str(n) for n in range(10**9, 10**9 + 50000)]
    assert names(a, "ID", ids[1], *many, ids[0], "NOT-NAME", "c") == ["b"]
    assert a.call("CLIENT", "KILL", "ID", *many, *ids, "NAME", "c") == 1
    assert closed(c)
    assert b.call("PING") == b"PONG"


def test_kill_of_a_client_during_its_pipeline(server, trio):
    a, b, _ = trio
    ident = b.call("CLIENT", "ID")
    b.send(resp.command("PING") * 5000)
    assert a.call("CLIENT", "KILL", "ID", ident) in (0, 1)
    assert re.fullmatch(rb"(\+PONG\r\n)*(\+(P(O(N(G\r?)?)?)?)?)?",
                        b.read_to_close())
    assert a.call("PING") == b"PONG"


def test_a_killed_watcher_and_a_killed_transaction_leave_nothing(trio):
    a, b, _ = trio
    b.call("WATCH", "k")
    b.call("MULTI")
    b.call("BF.ADD", "k", "x")
    a.call("CLIENT", "KILL", "ID", [r for r in listed(a)
                                    if r["name"] == "b"][0]["id"])
    assert closed(b)
    assert a.call("EXISTS", "k") == 0
    assert a.call("BF.ADD", "k", "y") == 1


@pytest.mark.parametrize("which", ["server", "oracle"])
def test_reply_off_skip_and_on(which, request):
    process = request.getfixturevalue(which)
    with process.conn() as conn:
        # Only the replies listed here may arrive.
        conn.send(resp.command("CLIENT", "REPLY", "OFF") +
                  resp.command("PING") + resp.command("NOPE") +
                  resp.command("CLIENT", "REPLY", "ON") +
                  resp.command("PING", "1") +
                  resp.command("CLIENT", "REPLY", "SKIP") +
                  resp.command("PING", "2") + resp.command("PING", "3"))
        assert [conn.read() for _ in range(3)] == [b"OK", b"1", b"3"]
        assert conn.call("ECHO", "end") == b"end"


REPLIES = [  # commands, and the replies before "end"
    ("SKIP; ON; PING", [b"OK", b"PONG"]),
    ("OFF; PING; ON; PING", [b"OK", b"PONG"]),
    ("SKIP; SKIP; PING; ECHO a", [b"a"]),
    ("SKIP; OFF; PING; ON; ECHO a", [b"OK", b"a"]),
    ("OFF; SKIP; PING; ON", [b"OK"]),
    ("SKIP; NOPE; ECHO a", [b"a"]),
    ("SKIP; ON; SKIP; PING; ON", [b"OK", b"OK"]),
]


@pytest.mark.parametrize("which", ["server", "oracle"])
@pytest.mark.parametrize("script,wanted", REPLIES, ids=[r[0] for r in REPLIES])
def test_each_sequence_of_client_reply(which, script, wanted, request):
    process = request.getfixturevalue(which)
    with process.conn() as conn:
        for step in script.split("; ") + ["ECHO end"]:
            words = step.split(" ")
            if words[0] in ("ON", "OFF", "SKIP"):
                words = ["CLIENT", "REPLY"] + words
            conn.send(resp.command(*words))
        assert [conn.read() for _ in range(len(wanted) + 1)] == wanted + [b"end"]


def test_commands_without_a_reply_are_executed(server):
    with server.conn() as conn:
        conn.send(resp.command("CLIENT", "REPLY", "OFF") +
                  resp.command("BF.MADD", "k", "a", "b") +
                  resp.command("BF.ADD", "k") +
                  resp.command("CLIENT", "REPLY", "ON"))
        assert conn.read() == b"OK"
        assert conn.call("BF.CARD", "k") == 2


def test_ids_grow_and_are_never_used_again(server):
    seen = []
    for _ in range(20):
        with server.conn() as conn:
            seen.append(conn.call("CLIENT", "ID"))
    assert seen == sorted(set(seen))


def test_setinfo_shows(trio):
    a, _, _ = trio
    assert a.call("CLIENT", "SETINFO", "LIB-NAME", "mine") == b"OK"
    assert a.call("CLIENT", "SETINFO", "LIB-VER", "1.2.3") == b"OK"
    row = [r for r in listed(a) if r["name"] == "a"][0]
    assert row["lib-name"] == "mine" and row["lib-ver"] == "1.2.3"
