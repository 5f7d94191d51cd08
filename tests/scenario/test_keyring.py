# SPDX-License-Identifier: BSD-3-Clause
#
# Keyed filters of several secrets: a replica asks for the secrets that it lacks, at
# each time when it may need one, and nobody gets them who may not.

import os
import shutil
import signal
from pathlib import Path

import pytest

from lib import replicas, resp, servers, slot_copy
from lib import tls as certificates
from lib.servers import wait_until


def secret_file(node):
    return os.path.join(node.folder, "hash-secret")


def secret_of(node):
    with open(secret_file(node), encoding="ascii") as text:
        return text.read().strip()


def ring(node):
    """Returns the fingerprints of the secrets that the server has learnt."""
    folder = os.path.join(node.folder, "hash-secrets")
    return set(os.listdir(folder)) if os.path.isdir(folder) else set()


def fingerprint(conn):
    """Returns the fingerprint of the server's own secret."""
    conn.call("REPLCONF", "bloomery", "1", "run", "0" * 40)
    return conn.call("REPLCONF", "hash-secret", "?").decode().split()[0]


def fill(conn, key, *words):
    assert conn.call("BF.RESERVE", key, "0.01", "100", "HASH", "keyed",
                     *words) == b"OK"
    conn.call("BF.MADD", key, *range(150))


def test_a_default_pair_replicates_keyed_filters_and_changes_roles(group):
    one, two = group.node("--appendonly", "yes"), group.node("--appendonly", "yes")
    with one.conn() as conn:
        fill(conn, "k")
        conn.call("BF.INSERT", "ages", "AGEING", "1000", "HASH", "keyed", "ITEMS",
                  "a")
    replicas.follow(two, one)
    with one.conn() as conn:
        fill(conn, "later", "DELETABLE")
        conn.call("COPY", "k", "copy")
        assert conn.call("WAIT", "1", "20000") == 1
    replicas.wait_even(one, two)
    assert replicas.info(one, "stats")["sync_full"] == "1"
    with one.conn() as conn:
        own = fingerprint(conn)
    assert ring(two) == {own} and ring(one) == set()
    path = os.path.join(two.folder, "hash-secrets", own)
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert one.log().count(b"gave a hash secret") == 1
    assert b"fingerprint=" + own.encode() in two.log()
    two.crash()
    two.restart()
    replicas.lead(two)
    replicas.follow(one, two)           # and now the other way round
    with two.conn() as conn:
        fill(conn, "of two")
        conn.call("BF.ADD", "k", "more")
        other = fingerprint(conn)
    replicas.wait_even(two, one)
    assert ring(one) == {other}
    with one.conn() as conn:
        assert conn.call("BF.MEXISTS", "of two", *range(150)) == [1] * 150
    for node, secrets in ((one, (secret_of(one), secret_of(two))),
                          (two, (secret_of(one), secret_of(two)))):
        for path in Path(node.folder).rglob("*"):
            if not path.is_file() or "hash-secret" in str(path):
                continue
            data = path.read_bytes()
            for secret in secrets:
                assert secret.encode() not in data, path
                assert bytes.fromhex(secret) not in data, path


def test_a_chain_passes_secrets_on(group):
    nodes = [group.node() for _ in range(3)]
    with nodes[0].conn() as conn:
        fill(conn, "k")
    replicas.follow(nodes[1], nodes[0])
    replicas.follow(nodes[2], nodes[1])
    replicas.wait_even(*nodes)
    assert ring(nodes[2]) >= ring(nodes[1])


@pytest.mark.parametrize("share,why", [
    ("no", "hash-secret-share is no"),
    ("yes", "the user may not use PSYNC and all keys")])
def test_what_is_not_shared_is_refused_with_all_reasons_until_it_is_copied(
        group, share, why):
    primary = group.node("--hash-secret-share", share)
    replica = group.node("--masteruser", "some", "--masterauth", "pw")
    with replica.conn() as conn:
        conn.call("BF.ADD", "mine", "a")
    with primary.conn() as conn:
        fill(conn, "k")
        conn.call("ACL", "SETUSER", "some", "on", ">pw", "~k*", "+psync", "+replconf",
                  "+ping")
    replicas.follow(replica, primary, wait=False)
    wait_until(lambda: b"could not load the snapshot" in primary.log(), 30,
               "the primary hears why")
    log = primary.log()
    assert why.encode() in log and b"fingerprint" in log
    assert int(replicas.info(primary, "stats")["sync_full_refused"]) > 0
    told = replicas.info(primary)["sync_full_refusal"]
    assert told.startswith("127.0.0.1:") and told.endswith(why)
    with replica.conn() as conn:        # nothing was dropped
        assert conn.call("DBSIZE") == 1
    # The attempts become rare.
    syncs = int(replicas.info(primary, "stats")["sync_full"])
    assert syncs < 12
    text = log.decode()
    found = text[text.index("fingerprint ") + 12:][:16]
    folder = os.path.join(replica.folder, "hash-secrets")
    os.mkdir(folder, 0o700)
    shutil.copy(secret_file(primary), os.path.join(folder, found))
    replica.child.send_signal(signal.SIGHUP)
    wait_until(lambda: replicas.link_is_up(replica), 30, "it follows")
    replicas.wait_even(primary, replica)


def test_a_secret_that_the_primary_learns_reaches_its_replica_in_the_stream(group):
    primary, replica, away = group.node(), group.node(), group.node()
    replicas.follow(replica, primary)
    with away.conn() as conn:
        fill(conn, "k")
        dump = conn.call("DUMP", "k")
        foreign = fingerprint(conn)
        at, head = conn.call("BF.SCANDUMP", "k", "0")
    with primary.conn() as conn:
        for reply in (conn.call("RESTORE", "k", "0", dump),
                      conn.call("BF.LOADCHUNK", "l", str(at), head)):
            assert isinstance(reply, resp.Error) and foreign in str(reply) and \
                ", which this server does not have: copy the hash-secret-file" \
                in str(reply) and "SIGHUP" in str(reply)
        folder = os.path.join(primary.folder, "hash-secrets")
        os.mkdir(folder, 0o700)
        shutil.copy(secret_file(away), os.path.join(folder, foreign))
        primary.child.send_signal(signal.SIGHUP)
        wait_until(lambda: conn.call("RESTORE", "k", "0", dump) == b"OK", 20,
                   "the secret is read")
        conn.call("BF.ADD", "k", "more")
        fill(conn, "own")
        conn.call("COPY", "k", "copy")
    replicas.wait_even(primary, replica)
    assert foreign in ring(replica)
    assert replicas.info(primary, "stats")["sync_full"] == "1"


def test_filters_of_two_secrets_are_not_united(group):
    """With one seed they would be, and miss items."""
    one, two = group.node(), group.node()
    seed = "0123456789abcdef" * 2
    for node in (one, two):
        with node.conn() as conn:
            conn.call("BF.INSERT", "a" if node is one else "b", "CAPACITY", "100",
                      "SEED", seed, "HASH", "keyed", "ITEMS", "x")
    replicas.follow(two, one)
    with one.conn() as conn, two.conn() as other:
        replicas.lead(two)
        other.call("BF.INSERT", "b", "CAPACITY", "100", "SEED", seed, "HASH",
                   "keyed", "ITEMS", "y")
        reply = other.call("BF.MERGE", "a", "b")
        assert isinstance(reply, resp.Error) and "hash secrets" in str(reply)
        assert other.call("BF.EXISTS", "a", "x") == 1
        assert conn.call("BF.EXISTS", "a", "x") == 1


def test_only_a_replicating_server_that_may_gets_a_secret(group):
    node = group.node("--hash-secret-share", "yes")
    with node.conn() as conn:
        conn.call("ACL", "SETUSER", "repl", "on", ">p", "~*", "+psync", "+replconf",
                  "+ping")
        conn.call("ACL", "SETUSER", "keys", "on", ">p", "~some*", "+@all")
        conn.call("ACL", "SETUSER", "nosync", "on", ">p", "~*", "+@all", "-psync")
        reply = conn.call("REPLCONF", "hash-secret", "?")
        assert isinstance(reply, resp.Error)    # it has not introduced itself
        own = fingerprint(conn)
        assert conn.call("REPLCONF", "hash-secret", own).decode() == secret_of(node)
        assert isinstance(conn.call("REPLCONF", "hash-secret", "0" * 16),
                          resp.Error)
        assert isinstance(conn.call("REPLCONF", "hash-secret"), resp.Error)
        conn.call("MULTI")
        conn.call("REPLCONF", "hash-secret", own)
        assert isinstance(conn.call("EXEC")[0], resp.Error)
    for user, gets in (("repl", True), ("keys", False), ("nosync", False)):
        with node.conn() as conn:
            conn.call("AUTH", user, "p")
            conn.call("REPLCONF", "bloomery", "1", "run", "0" * 40)
            reply = conn.call("REPLCONF", "hash-secret", own)
            assert isinstance(reply, resp.Error) != gets, (user, reply)
    with node.conn() as conn:
        conn.call("CONFIG", "SET", "hash-secret-share", "no")
        conn.call("REPLCONF", "bloomery", "1", "run", "0" * 40)
        assert isinstance(conn.call("REPLCONF", "hash-secret", own), resp.Error)


@pytest.mark.parametrize("dialect", ["valkey", "redis"])
def test_keyed_filters_draw_a_seed_unless_one_is_given(start_server, dialect):
    server = start_server("--bf.bloom-use-random-seed", "no", "--dialect", dialect,
                          "--enable-debug-command", "yes")
    with server.conn() as conn:
        for key in ("a", "b"):
            conn.call("BF.RESERVE", key, "0.01", "100", "HASH", "keyed")
            conn.call("BF.RESERVE", "plain " + key, "0.01", "100")
        one, other = conn.call("DEBUG", "DIGEST-VALUE", "a", "b")
        assert one != other
        one, other = conn.call("DEBUG", "DIGEST-VALUE", "plain a", "plain b")
        assert one == other
        if dialect == "valkey":
            for key in ("c", "d"):
                conn.call("BF.INSERT", key, "SEED", "s" * 32, "HASH", "keyed",
                          "ITEMS", "x")
            one, other = conn.call("DEBUG", "DIGEST-VALUE", "c", "d")
            assert one == other


def foreign_dump(group):
    """A dump of a filter with the secret of a server of its own, the secret's file and
    its fingerprint."""
    away = group.node()
    with away.conn() as conn:
        fill(conn, "{in1}foreign")
        return conn.call("DUMP", "{in1}foreign"), secret_file(away), fingerprint(conn)


def learn(server, file, found):
    folder = os.path.join(server.folder, "hash-secrets")
    os.makedirs(folder, 0o700, exist_ok=True)
    shutil.copy(file, os.path.join(folder, found))
    server.child.send_signal(signal.SIGHUP)


def test_a_claim_learns_the_secrets_of_the_snapshot_and_of_the_stream(
        group, member, tmp_path):
    """The links use TLS with client certificates, and a user of few rights. The new
    secret of the stream costs no second snapshot."""
    files = certificates.Files(tmp_path)
    dump, file, foreign = foreign_dump(group)
    users = tmp_path / "users.acl"
    users.write_text("user default on nopass ~* &* +@all\n"
                     "user repl on >pw ~* -@all +psync +replconf +ping +sidecar\n")
    source, target = (
        member("--appendonly", "yes", "--aclfile", users, "--masteruser", "repl",
               "--masterauth", "pw", tls=files) for _ in range(2))
    with source.conn() as conn:
        fill(conn, "{in1}n1")
        fill(conn, "{in2}n1", "DELETABLE")
        own = fingerprint(conn)
    wait_until(lambda: source.door.pairs, 20, "the target asks")
    source.door.last = True     # once the pull has its link, no question comes through
    slot_copy.begin(target, source)
    slot_copy.wait_follows(target)
    assert ring(target) == {own}
    with source.conn() as conn:
        learn(source, file, foreign)
        wait_until(lambda: conn.call("RESTORE", "{in1}n2", "0", dump) == b"OK", 20,
                   "the secret is read")
        conn.call("BF.MADD", "{in1}n2", "more", "and more")
    want = slot_copy.keys_in(source)
    source.door.up = True
    wait_until(lambda: foreign in ring(target), 30, "the target learns it")
    slot_copy.cut_over(target, source)
    assert len(slot_copy.compare(want, target)) == 3
    assert replicas.info(source, "stats")["sync_full"] == "1"
    with target.conn() as conn:
        assert conn.call("BF.MEXISTS", "{in1}n2", "more", *range(150)) == [1] * 151


def test_a_user_that_may_not_replicate_gets_no_secret_by_a_claim(group, member,
                                                                  tmp_path):
    users = tmp_path / "users.acl"
    users.write_text("user default on nopass ~* &* +@all\n"
                     "user some on >pw ~{in1}* -@all +psync +replconf +ping +sidecar\n")
    source = member("--aclfile", users)
    target = member("--masteruser", "some", "--masterauth", "pw")
    with source.conn() as conn:
        fill(conn, "{in1}n1")
    slot_copy.begin(target, source)
    wait_until(lambda: slot_copy.pull_of(target)["reason"] != "", 30, "it is refused")
    assert ring(target) == set()
    assert secret_of(source) not in target.log().decode("utf-8", "replace")


def test_adds_to_a_keyed_filter_come_back_after_a_partition(group):
    """The new primary made a filter with its own secret meanwhile. An add that was
    answered with 0, a false positive, is in no log."""
    on = ("--merge-on-heal", "yes", "--appendonly", "yes")
    primary, replica, proxy = group.pair(*on)
    with primary.conn() as conn:
        fill(conn, "k")
    replicas.wait_even(primary, replica)
    proxy.up = False
    proxy.cut()
    replicas.lead(replica)
    with primary.conn() as conn, replica.conn() as other:
        added = conn.call("BF.MADD", "k", *range(1000, 1100))
        other.call("BF.MADD", "k", *range(2000, 2100))
        fill(other, "later")
    replicas.follow(primary, replica)
    wait_until(lambda: replicas.info(primary, "stats")["merge_offers"] == "1" and
               replicas.info(primary, "stats")["merge_waiting_bytes"] == "0", 60,
               "all adds are offered")
    replicas.wait_even(replica, primary)
    with primary.conn() as conn:
        conn.call("READONLY")
        assert conn.call("BF.MEXISTS", "k", *range(150),
                         *range(2000, 2100)) == [1] * 250
        found = conn.call("BF.MEXISTS", "k", *range(1000, 1100))
        assert sum(added) > 50 and all(map(int.__ge__, found, added))
        assert conn.call("BF.MEXISTS", "later", *range(150)) == [1] * 150
