# SPDX-License-Identifier: BSD-3-Clause
#
# Lines of the log about who administers the server: what, user, address, client name
# and result; only where a client asked, without secrets, and not too many.

import json
import re

import pytest

from lib import servers

NOTICE = ["--loglevel", "notice"]

FIELD = re.compile(r'([a-z-]+)=("(?:[^"\\]|\\.)*"|\S+)')


@pytest.fixture
def server(start_server):
    return start_server(*NOTICE)


def lines(server):
    """Returns the fields of each audit line of a log in logfmt."""
    marks = ' event="audit" ', " event=audit "
    return [{name: value.strip('"') for name, value in FIELD.findall(line)}
            for line in server.log().decode().splitlines() if any(mark in line for mark in marks)]


def wait_line(server, **fields):
    return servers.wait_until(
        lambda: next((line for line in lines(server)
                      if fields.items() <= line.items()), None), 20, str(fields))


def test_commands_of_operators_are_logged(server):
    with server.conn() as conn:
        conn.call("CLIENT", "SETNAME", 'ann"s')  # escaped in the log
        address = conn.call("CLIENT", "INFO").decode().split("laddr=")[0].split("addr=")[1]
        for words in (["FLUSHALL"], ["FLUSHDB", "ASYNC"], ["CONFIG", "SET", "maxmemory", "1gb"],
                      ["REPLICAOF", "NO", "ONE"], ["CLIENT", "KILL", "ID", "77"],
                      ["ACL", "DELUSER", "nobody"]):
            conn.call(*words)
            wait_line(server, what=" ".join(words), user="default", result="OK",
                      name='ann\\"s', address=address.strip())
        for words in (["CONFIG", "SET", "maxmemory", "nonsense"], ["SHUTDOWN", "ABORT"],
                      ["SHUTDOWN", "nonsense"]):
            conn.call(*words)
            wait_line(server, what=" ".join(words), result="ERR")
        conn.call("BF.ADD", "key", "item")
        conn.call("CONFIG", "GET", "maxmemory")
        assert len(lines(server)) == 9
    with server.conn() as conn:
        conn.send(b"*1\r\n$8\r\nSHUTDOWN\r\n")
        assert server.wait_exit() == 0
    assert lines(server)[-1]["what"] == "SHUTDOWN"


def test_a_transaction_is_logged_command_by_command(server):
    with server.conn() as conn:
        conn.call("MULTI")
        conn.call("FLUSHALL")
        assert lines(server) == []
        conn.call("EXEC")
        wait_line(server, what="FLUSHALL", result="OK")


def test_secrets_are_hidden_and_words_escaped(server):
    with server.conn() as conn:
        conn.call("CONFIG", "SET", "requirepass", "hidden")
        wait_line(server, what="CONFIG SET requirepass (redacted)")
        conn.call("ACL", "SETUSER", "bob", "on", ">hidden", "~hidden:*", "+@read", "-bf.card")
        wait_line(server, what="ACL SETUSER bob on (redacted) (redacted) +@read -bf.card")
        conn.call("ACL", "SETUSER", "bob", "-@all", "+hidden")  # no sign of a password
        wait_line(server, what="ACL SETUSER bob (redacted) (redacted)", result="ERR")
        conn.call("ACL", "DELUSER", 'x" level=error\nevent="forged', "y" * 5000)
        line = wait_line(server, result="OK", user="default",
                         what='ACL DELUSER x\\" level=error\\nevent=\\"forged '
                         + "y" * 100 + "...")
        assert line["level"] == "notice"
    assert b"hidden" not in server.log()


def test_a_line_is_json_where_the_log_is(start_server):
    server = start_server(*NOTICE, "--log-format", "json")
    with server.conn() as conn:
        conn.call("ACL", "DELUSER", 'a"b\\')
    got = servers.wait_until(
        lambda: [entry for entry in map(json.loads, server.log().splitlines())
                 if entry["event"] == "audit"], 20, "a line")
    assert got[0]["what"].startswith("ACL DELUSER a") and got[0]["result"] == "OK"


def test_a_flood_is_counted(server):
    with server.conn() as conn:
        conn.pipeline([("FLUSHALL",)] * 5000)
        assert len(lines(server)) < 1000
    servers.wait_until(  # though nobody asks again
        lambda: sum(int(line["left-out"]) + ("user" in line) for line in lines(server)) == 5000,
        20, "what was left out is counted")


@pytest.mark.port
def test_failed_logins_are_logged_once_a_second(start_server):
    server = start_server(*NOTICE, "--requirepass", "right")
    with server.conn() as conn:
        for _ in range(3):
            conn.call("AUTH", "eve", "wrong")
    line = wait_line(server, what="login", user="eve", result="WRONGPASS")
    assert line["address"].startswith("127.0.0.1:")
    assert len(lines(server)) <= 3
    assert b"wrong" not in server.log()


def test_only_the_server_that_was_asked_says_so(start_server, tmp_path):
    """Neither a replica nor a restart, which do the same."""
    primary = start_server(*NOTICE, "--dir", tmp_path)
    replica = start_server(*NOTICE, "--replicaof", "127.0.0.1 %d" % primary.port)
    with primary.conn() as conn, replica.conn() as other:
        conn.call("BF.ADD", "key", "item")
        servers.wait_until(lambda: other.call("EXISTS", "key") == 1, 20, "the filter")
        conn.call("FLUSHALL")
        servers.wait_until(lambda: other.call("EXISTS", "key") == 0, 20, "none")
    assert [line["what"] for line in lines(primary)] == ["FLUSHALL"]
    assert lines(replica) == []
    primary.kill()
    again = start_server(*NOTICE, "--dir", tmp_path)
    assert lines(again) == []
