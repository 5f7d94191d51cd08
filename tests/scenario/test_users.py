# SPDX-License-Identifier: BSD-3-Clause
#
# Users over connections, threads and restarts: the aclfile, connections that
# close when a user changes, and what clients do.

import os
import signal
import stat

import pytest

from lib import resp, servers

DEFAULT = "user default on nopass ~* &* +@all"


@pytest.fixture
def acl(tmp_path):
    """A server with an aclfile that has one more user, and the file."""
    path = tmp_path / "users.acl"
    path.write_text(DEFAULT + "\nuser web on >secret ~seen:* +@bloom +ping\n")
    server = servers.Server("--aclfile", path, "--auth-failure-delay", 0)
    yield server, path
    server.stop()


def login(server, user, password, **kwargs):
    conn = server.conn(**kwargs)
    assert conn.call("AUTH", user, password) == b"OK"
    return conn


def is_refused(reply):
    return isinstance(reply, resp.Error) and str(reply).startswith("NOPERM")


def test_the_file_is_loaded_saved_and_loaded_again(acl):
    server, path = acl
    with server.conn() as admin, login(server, "web", "secret") as web:
        assert web.call("BF.ADD", "seen:1", "a") == 1
        assert is_refused(web.call("BF.ADD", "other", "a"))
        assert is_refused(web.call("DBSIZE"))
        assert admin.call("ACL", "SETUSER", "new", "on", ">p", "+ping") == b"OK"
        assert admin.call("ACL", "SAVE") == b"OK"
        assert stat.S_IMODE(os.stat(path).st_mode) & 0o077 == 0
        lines = path.read_text().splitlines()
        assert lines == [line.decode() for line in admin.call("ACL", "LIST")]
        assert "secret" not in path.read_text()
        assert admin.call("ACL", "DELUSER", "new") == 1
        assert admin.call("ACL", "LOAD") == b"OK"
        assert admin.call("ACL", "USERS") == [b"default", b"new", b"web"]
        # A user that stays keeps its connections.
        assert web.call("PING") == b"PONG"


def test_a_bad_file_changes_nothing_and_stops_a_start(acl):
    server, path = acl
    path.write_text("user web on >secret +ping\nuser bad +nope\n")
    with server.conn() as admin:
        before = admin.call("ACL", "LIST")
        error = admin.call("ACL", "LOAD")
        assert isinstance(error, resp.Error)
        assert "%s:2: Error in applying operation '+nope'" % path in str(error)
        assert admin.call("ACL", "LIST") == before
        path.unlink()
        assert "No such file" in str(admin.call("ACL", "LOAD"))
        # SAVE writes it anew.
        assert admin.call("ACL", "SAVE") == b"OK"
        assert admin.call("ACL", "LOAD") == b"OK"
    path.write_text("user bad +nope\n")
    second = servers.Server("--aclfile", path, ready=False)
    try:
        assert second.wait_exit() == 2
        assert b"Error in applying operation '+nope'" in second.log()
    finally:
        second.remove()


def test_a_transaction_may_save_and_load(acl):
    server, _ = acl
    with server.conn() as admin:
        replies = admin.pipeline([("MULTI",), ("ACL", "SETUSER", "x"),
                                  ("ACL", "SAVE"), ("ACL", "DELUSER", "x"),
                                  ("ACL", "LOAD"), ("ACL", "USERS"), ("EXEC",)])
        assert replies[-1] == [b"OK", b"OK", 1, b"OK",
                               [b"default", b"web", b"x"]]


def test_a_file_without_the_default_user_keeps_requirepass(tmp_path):
    path = tmp_path / "users.acl"
    path.write_text("user web on nopass +ping\n")
    server = servers.Server("--aclfile", path, "--requirepass", "pw")
    try:
        with server.conn() as conn:
            assert "NOAUTH" in str(conn.call("PING"))
            assert conn.call("AUTH", "pw") == b"OK"
            assert conn.call("ACL", "LOAD") == b"OK"
        with server.conn() as conn:
            assert "NOAUTH" in str(conn.call("PING"))
    finally:
        server.stop()


def test_connections_on_all_threads_close_with_their_user(acl):
    server, _ = acl
    webs = [login(server, "web", "secret") for _ in range(16)]
    with server.conn() as admin:
        assert admin.call("ACL", "DELUSER", "web") == 1
        for web in webs:
            assert web.read_to_close() == b""
        assert admin.call("PING") == b"PONG"
        assert b"user=web" not in admin.call("CLIENT", "LIST")
        assert "WRONGPASS" in str(admin.call("AUTH", "web", "secret"))


def test_connections_close_when_the_file_lacks_their_user(acl):
    server, path = acl
    with server.conn() as admin, login(server, "web", "secret") as web:
        path.write_text(DEFAULT + "\n")
        assert admin.call("ACL", "LOAD") == b"OK"
        assert web.read_to_close() == b""


def test_subscribers_close_when_they_lose_a_channel_and_hear_nothing_more(acl):
    server, _ = acl
    with server.conn() as admin:
        admin.call("ACL", "SETUSER", "sub", "on", "nopass", "+@pubsub", "&a*", "&b")
        subs = [login(server, "sub", "x") for _ in range(8)]
        others = [login(server, "sub", "x") for _ in range(8)]
        for sub in subs:
            assert sub.call("SUBSCRIBE", "b") == [b"subscribe", b"b", 1]
        for other in others:
            assert other.call("PSUBSCRIBE", "a*") == [b"psubscribe", b"a*", 1]
        assert admin.call("ACL", "SETUSER", "sub", "resetchannels", "&a*") == b"OK"
        admin.call("PUBLISH", "b", "late")
        for sub in subs:
            assert sub.read_to_close() == b""
        assert admin.call("PUBLISH", "ax", "m") == 8
        for other in others:
            assert other.read() == [b"pmessage", b"a*", b"ax", b"m"]
            other.close()


def test_a_change_holds_for_the_next_command_of_every_connection(acl):
    server, _ = acl
    webs = [login(server, "web", "secret") for _ in range(8)]
    with server.conn() as admin:
        for turn in range(20):
            rule = "-bf.add" if turn % 2 == 0 else "+bf.add"
            assert admin.call("ACL", "SETUSER", "web", rule) == b"OK"
            for web in webs:
                reply = web.call("BF.ADD", "seen:1", "a")
                assert is_refused(reply) == (turn % 2 == 0), reply
    for web in webs:
        web.close()


def test_pipelines_of_a_limited_user_are_checked(acl):
    server, _ = acl
    with login(server, "web", "secret") as web:
        replies = web.pipeline([("BF.ADD", "seen:1", "i%d" % i)
                                for i in range(200)])
        assert set(replies) <= {0, 1}  # 0: a false positive
        replies = web.pipeline([("BF.ADD", "x", "i%d" % i) for i in range(200)]
                               + [("BF.EXISTS", "seen:1", "i1")])
        assert all(is_refused(r) for r in replies[:-1]) and replies[-1] == 1


def test_protected_mode_follows_the_default_user(acl):
    server, _ = acl
    with server.conn() as admin:
        assert admin.call("ACL", "SETUSER", "default", ">pw") == b"OK"
    with server.conn() as conn:
        assert "NOAUTH" in str(conn.call("PING"))
        assert conn.call("AUTH", "pw") == b"OK"
        assert conn.call("ACL", "SETUSER", "default", "nopass") == b"OK"
    with server.conn() as conn:
        assert conn.call("PING") == b"PONG"


def test_rules_are_not_shown_to_monitors_and_in_the_slow_log(acl):
    server, _ = acl
    with server.conn() as admin, server.conn() as monitor:
        admin.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
        assert monitor.call("MONITOR") == b"OK"
        admin.call("ACL", "SETUSER", "x", ">geheim")
        admin.call("PING")
        seen = monitor.read()
        while b"PING" not in seen:
            assert b"geheim" not in seen
            seen = monitor.read()
        assert b"geheim" not in admin.raw("SLOWLOG", "GET", "10")


def test_redis_py_uses_users(acl):
    redis = pytest.importorskip("redis")
    server, _ = acl
    admin = redis.Redis(port=server.port)
    assert admin.acl_setuser("py", enabled=True, passwords=["+pw"],
                             categories=["+@read", "-@dangerous"],
                             commands=["+bf.add"], keys=["k*"])
    assert "py" in admin.acl_users()
    user = admin.acl_getuser("py")
    assert "on" in user["flags"]
    client = redis.Redis(port=server.port, username="py", password="pw")
    assert client.execute_command("BF.ADD", "k1", "a") == 1
    with pytest.raises(redis.exceptions.NoPermissionError):
        client.execute_command("BF.ADD", "x", "a")
    with pytest.raises(redis.exceptions.NoPermissionError):
        client.flushall()
    assert admin.acl_log()[0]["username"] == "py"
    with pytest.raises(redis.exceptions.RedisError, match="invalid username"):
        redis.Redis(port=server.port, username="py", password="no").ping()
    assert admin.acl_deluser("py") == 1


def test_a_replica_has_a_user_and_is_dropped_with_it(acl):
    server, _ = acl
    with server.conn() as admin:
        admin.call("ACL", "SETUSER", "rep", "on", ">p", "+psync", "+replconf", "+ping")
        assert admin.call("BF.ADD", "k", "a") == 1
        replica = servers.Server("--replicaof", "127.0.0.1 %d" % server.port,
                                 "--masteruser", "rep", "--masterauth", "p")
        try:
            def is_there():
                with replica.conn() as conn:
                    return conn.call("BF.EXISTS", "k", "a") == 1

            def replicas():
                return admin.call("INFO", "replication").decode()

            servers.wait_until(is_there, what="the key")
            assert "connected_slaves:1" in replicas()
            assert admin.call("ACL", "DELUSER", "rep") == 1
            servers.wait_until(lambda: "connected_slaves:0" in replicas(),
                               what="the replica is dropped")
            servers.wait_until(lambda: b"WRONGPASS" in replica.log(),
                               what="it is told why")
        finally:
            replica.stop()


def test_what_setuser_takes_is_loaded_again(acl):
    """Redis 7.0 writes a file that it cannot load, or that has another user."""
    server, path = acl
    with server.conn() as admin:
        for words in (("+select|0\nuser evil on nopass ~* &* +@all",),
                      ("+get|a\tb",), ("(~x))",), ("(~(x ~y))",)):
            got = admin.call("ACL", "SETUSER", "u", *words)
            assert "Syntax error" in str(got), got
        got = admin.call("ACL", "SETUSER", "", "on")
        assert "can't be empty" in str(got), got
        assert admin.call("ACL", "SETUSER", "u", "%RW~*", "~k*") == b"OK"
        assert admin.call("ACL", "SETUSER", "v", "%R~*", "%W~*", "~k*") == b"OK"
        before = admin.call("ACL", "LIST")
        assert admin.call("ACL", "SAVE") == b"OK"
        assert admin.call("ACL", "LOAD") == b"OK"
        assert admin.call("ACL", "LIST") == before
        assert admin.call("ACL", "USERS") == [b"default", b"u", b"v", b"web"]


def test_save_writes_the_file_that_a_link_names(tmp_path):
    real, link = tmp_path / "real.acl", tmp_path / "link.acl"
    real.write_text(DEFAULT + "\n")
    link.symlink_to(real)
    server = servers.Server("--aclfile", link)
    with server.conn() as admin:
        assert admin.call("ACL", "SETUSER", "u", "on") == b"OK"
        assert admin.call("ACL", "SAVE") == b"OK"
        assert link.is_symlink() and "user u on" in real.read_text()
        real.unlink()
        link.unlink()
        link.symlink_to("real.acl")     # from its own directory
        assert admin.call("ACL", "SAVE") == b"OK"
        assert link.is_symlink() and "user u on" in real.read_text()
        link.unlink()
        link.symlink_to("link.acl")
        got = admin.call("ACL", "SAVE")
        assert "symbolic links" in str(got), got
    server.stop()


def test_more_users_than_a_load_reads_are_not_saved(acl):
    server, path = acl
    before = path.read_bytes()
    with server.conn() as admin:
        words = ["~" + "%08d" % n + "x" * 1000 for n in range(1000)]
        for n in range(17):
            assert admin.call("ACL", "SETUSER", "u%d" % n, *words) == b"OK"
        got = admin.call("ACL", "SAVE")
        assert "the old file stays" in str(got), got
    assert path.read_bytes() == before


def test_a_monitor_ends_with_its_right(acl):
    server, _ = acl
    with server.conn() as admin:
        for rule in ("reset", "-monitor"):
            assert admin.call("ACL", "SETUSER", "m", "on", ">p",
                              "+monitor") == b"OK"
            monitor = login(server, "m", "p")
            assert monitor.call("MONITOR") == b"OK"
            assert admin.call("ACL", "SETUSER", "m", rule) == b"OK"
            with pytest.raises((resp.Closed, ConnectionError)):
                while True:
                    monitor.read()
            monitor.close()


def test_files_that_others_may_use_are_named(tmp_path):
    path = tmp_path / "users.acl"
    path.write_text(DEFAULT + "\n")
    path.chmod(0o666)
    server = servers.Server("--aclfile", path)
    said = b"everyone may write the file of the users"
    assert server.log().count(said) == 1
    server.child.send_signal(signal.SIGHUP)
    servers.wait_until(lambda: server.log().count(said) == 2)
    path.chmod(0o640)
    server.stop()


def test_copy_reaches_no_other_database_than_was_checked(acl):
    server, _ = acl
    with server.conn() as admin:
        admin.call("ACL", "SETUSER", "c", "on", ">p", "+@all", "~*", "db=0")
        admin.call("BF.ADD", "a", "x")
        with login(server, "c", "p") as conn:
            for words in (("DB", 0, "DB", 5, "REPLACE"), ("DB", 5, "DB", 0)):
                assert is_refused(conn.call("COPY", "a", "b", *words))
            assert conn.call("COPY", "a", "b", "DB", 0, "DB", 0) == 1
        admin.call("SELECT", 5)
        assert admin.call("DBSIZE") == 0
