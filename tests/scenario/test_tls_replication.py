# SPDX-License-Identifier: BSD-3-Clause
#
# Replicas over TLS: full synchronizations, streams, certificates that are wrong,
# users, and Sentinels.

import signal
import types

import pytest

from lib import replicas, resp, servers, tls
from lib.servers import wait_until


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return tls.Files(tmp_path_factory.mktemp("certs"))


@pytest.fixture
def node(group, files):
    def start(*options, **kwargs):
        port = servers.free_port()
        made = group.node(*files.options(port, "--tls-replication", "yes"),
                          *options, **kwargs)
        made.tls_port = port
        return made
    return start


def role(server):
    with server.conn() as conn:
        text = conn.call("INFO", "replication").decode()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def follow(replica, port, host="127.0.0.1"):
    with replica.conn() as conn:
        assert conn.call("REPLICAOF", host, port) == b"OK"


def is_up(replica):
    return role(replica)["master_link_status"] == "up"


def log_has(server, text):
    return lambda: text.encode() in server.log()


def test_a_replica_gets_everything_over_tls(node):
    primary, replica = node(), node()
    with primary.conn() as conn:
        assert conn.call("BF.RESERVE", "large", "0.001", 4000000) == b"OK"
        for i in range(500):
            conn.call("BF.ADD", "k%d" % i, "a")
    follow(replica, primary.tls_port)
    wait_until(lambda: is_up(replica), 30, "the link is up")
    with primary.conn() as one, replica.conn() as two:
        assert two.call("DBSIZE") == 501
        assert one.call("BF.ADD", "large", "later") == 1
        assert one.call("WAIT", 1, 10000) == 1
        assert two.call("BF.EXISTS", "large", "later") == 1
        assert one.call("DEBUG", "DIGEST") == two.call("DEBUG", "DIGEST")
        facts = role(primary)
        assert "port=%d" % replica.tls_port in facts["slave0"]
        # The stream goes on where it was cut.
        one.call("CLIENT", "KILL", "TYPE", "replica")
        one.call("BF.ADD", "large", "while cut")
        wait_until(lambda: two.call("BF.EXISTS", "large", "while cut") == 1, 20,
                   "the replica catches up")
        stats = one.call("INFO", "stats").decode()
        assert "sync_partial_ok:1" in stats and "sync_full:1" in stats
        listed = one.call("CLIENT", "LIST", "TYPE", "replica").decode()
        assert "user=default" in listed and "flags=S" in listed
        assert ":%d " % primary.tls_port in listed


def test_plain_and_tls_replicas_follow_one_primary(node, group):
    primary, secure, plain = node(), node(), group.node()
    follow(secure, primary.tls_port)
    follow(plain, primary.port)
    for replica in secure, plain:
        wait_until(lambda: is_up(replica), 30, "the link is up")
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "a")
        assert conn.call("WAIT", 2, 10000) == 2


def test_a_replica_does_not_go_on_plain(node):
    primary, replica = node(), node()
    follow(replica, primary.port)   # the plain one
    wait_until(log_has(replica, "wrong version number"), 20, "the reason")
    assert not is_up(replica)
    with replica.conn() as conn:
        assert conn.call("CONFIG", "SET", "tls-replication", "no") == b"OK"
    wait_until(lambda: is_up(replica), 30, "the link is up")


def test_a_primary_of_another_authority_is_refused(node, group, tmp_path):
    other = tls.Files(tmp_path)
    port = servers.free_port()
    impostor = group.node(*other.options(port, "--tls-auth-clients", "no"))
    replica = node()
    follow(replica, port)
    wait_until(log_has(replica, "certificate"), 20, "the reason")
    assert not is_up(replica)
    assert b"BF" not in impostor.log()


def test_the_name_of_the_primary_is_checked(group, files, tmp_path):
    named = files.authority.make("elsewhere", "DNS:elsewhere.example")
    port = servers.free_port()
    primary = group.node(
        "--tls-port", port, "--tls-cert-file", named[0], "--tls-key-file",
        named[1], "--tls-ca-cert-file", files.ca)
    replica = group.node("--tls-replication", "yes", "--tls-ca-cert-file",
                         files.ca, "--tls-client-cert-file", files.client[0],
                         "--tls-client-key-file", files.client[1])
    follow(replica, port)
    wait_until(log_has(replica, "IP address mismatch"), 20, "the reason")
    assert not is_up(replica)
    with replica.conn() as conn:
        assert conn.call("CONFIG", "SET", "tls-check-names", "no") == b"OK"
    wait_until(lambda: is_up(replica), 30, "the link is up")
    assert role(primary)["connected_slaves"] == "1"


def test_a_replica_without_a_certificate_is_refused(node, group, files):
    primary = node()
    replica = group.node("--tls-replication", "yes", "--tls-ca-cert-file",
                         files.ca)
    follow(replica, primary.tls_port)
    wait_until(log_has(primary, "peer did not return a certificate"), 20,
               "the reason")
    assert not is_up(replica)


def test_a_replica_logs_in_as_a_user(node):
    primary, replica = node(), node("--masteruser", "repl", "--masterauth", "s")
    with primary.conn() as conn:
        assert conn.call("ACL", "SETUSER", "repl", "on", ">s", "+psync",
                         "+replconf", "+ping") == b"OK"
        conn.call("BF.ADD", "k", "a")
        follow(replica, primary.tls_port)
        wait_until(lambda: is_up(replica), 30, "the link is up")
        listed = conn.call("CLIENT", "LIST", "TYPE", "replica").decode()
        assert "user=repl " in listed
        # Its user's end is the end of the link, and the log says why.
        assert conn.call("ACL", "DELUSER", "repl") == 1
        wait_until(lambda: not is_up(replica), 20, "the link is cut")
    with replica.conn() as conn:
        assert conn.call("BF.EXISTS", "k", "a") == 1


def test_roles_are_exchanged_over_tls(node):
    one, two = node(), node()
    with one.conn() as conn:
        conn.call("BF.ADD", "k", "a")
    follow(two, one.tls_port)
    wait_until(lambda: is_up(two), 30, "the link is up")
    with one.conn() as conn:
        assert conn.call("FAILOVER", "TO", "127.0.0.1", two.tls_port) == b"OK"
    wait_until(lambda: role(two)["role"] == "master", 30, "the other leads")
    wait_until(lambda: role(one)["role"] == "slave" and is_up(one), 30,
               "the first follows")
    with two.conn() as conn:
        assert conn.call("BF.ADD", "k", "b") == 1
        assert conn.call("WAIT", 1, 10000) == 1


def test_certificates_change_while_replicas_follow(group, tmp_path):
    mine = tls.Files(tmp_path)
    nodes = []
    for _ in range(2):
        port = servers.free_port()
        nodes.append(group.node(*mine.options(port, "--tls-replication",
                                              "yes")))
        nodes[-1].tls_port = port
    primary, replica = nodes
    follow(replica, primary.tls_port)
    wait_until(lambda: is_up(replica), 30, "the link is up")
    mine.authority.make("server")
    for server in nodes:
        server.child.send_signal(signal.SIGHUP)
        wait_until(log_has(server, "reloaded the configuration"), 20, "reload")
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "a")
        assert conn.call("WAIT", 1, 10000) == 1     # the link stays
        conn.call("CLIENT", "KILL", "TYPE", "replica")
        wait_until(lambda: b"connected_slaves:1" in
                   conn.call("INFO", "replication"), 30, "it comes back")
        conn.call("BF.ADD", "k", "b")
        assert conn.call("WAIT", 1, 10000) == 1
        assert not isinstance(conn.call("PING"), resp.Error)


def sentinel_lines(files, *more):
    """The lines of a Sentinel that uses TLS for its own port and for all that it
    dials."""
    return "".join(line + "\n" for line in (
        "tls-cert-file %s" % files.server[0],
        "tls-key-file %s" % files.server[1],
        "tls-ca-cert-file %s" % files.ca, "tls-replication yes", *more))


def test_sentinels_promote_over_tls_as_a_user(node, group, files):
    """Debian's Sentinel dials the TLS ports and logs in as a user."""
    reason = servers.oracle_missing()
    if reason:
        pytest.skip("Sentinel: " + reason)
    rules = ("on", ">secret", "allchannels", "+multi", "+slaveof", "+ping",
             "+exec", "+subscribe", "+config|rewrite", "+role", "+publish",
             "+info", "+client|setname", "+client|kill", "+script|kill")
    nodes = [node() for _ in range(2)]
    for server in nodes:
        with server.conn() as conn:
            got = conn.call("ACL", "SETUSER", "watch", *rules)
            if got != b"OK":    # there are no scripts
                assert conn.call("ACL", "SETUSER", "watch",
                                 *rules[:-1]) == b"OK"
    primary, replica = nodes
    follow(replica, primary.tls_port)
    wait_until(lambda: is_up(replica), 30, "the link is up")
    sentinel = replicas.Sentinel(
        types.SimpleNamespace(address=("127.0.0.1", primary.tls_port)),
        quorum=1, extra=sentinel_lines(
            files, "sentinel auth-user bloom watch",
            "sentinel auth-pass bloom secret"))
    try:
        wait_until(lambda: sentinel.facts()["num-slaves"] == "1", 40,
                   "it knows the replica")
        with primary.conn() as conn:
            listed = conn.call("CLIENT", "LIST").decode()
            mine = [line for line in listed.splitlines()
                    if "name=sentinel-" in line]
            assert mine and all("user=watch " in line and
                                "laddr=127.0.0.1:%d " % primary.tls_port in line
                                for line in mine)
        primary.crash()
        wait_until(lambda: sentinel.primary() == ("127.0.0.1",
                                                  replica.tls_port), 60,
                   "it names the other")
        wait_until(lambda: role(replica)["role"] == "master", 30, "it leads")
        with replica.conn() as conn:
            assert conn.call("BF.ADD", "k", "a") == 1
    finally:
        sentinel.stop()
