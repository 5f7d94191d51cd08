# SPDX-License-Identifier: BSD-3-Clause
#
# Slots are taken over while memory runs out, with filters of every layout, from a
# source without a journal, in several databases. A claim ends complete, or waits and
# says why.

import errno
import json

import pytest

from lib import resp, servers, shim, slots
from lib import cluster as clusters
from lib.neighbour import node
from lib.servers import wait_until
from lib.slot_copy import (FENCE, IN, Writer, assert_only, begin, compare, fill, finish,
                           move, names_in, pull_of, status, wait_follows, wait_serves)

DATA = servers.TOP / "tests" / "data"
SECRET = "00112233445566778899aabbccddeeff"


no_allocator = pytest.mark.skipif(servers.sanitized(), reason="another allocator")


@no_allocator
def test_memory_that_runs_out_delays_a_copy_only(member, tmp_path):
    """One allocation fails, at each stage of a copy: before the load, in it, in the
    adoption, in the log. Then all of them fail for a while."""
    source, target = member(), member(folder=tmp_path)
    fill(source, 1)
    fired = 0
    for nth in (1, 2, 5, 10, 20, 50, 100, 200, 400, 800, 1600, 3200, 6400):
        writer = Writer(source, nth, flushes=False, large=False)
        target.shim.arm(0, "fail", ["alloc", "map"], ["none"], nth=nth,
                        error=errno.ENOMEM)
        begin(target, source)
        wait_follows(target)
        done = writer.commands
        wait_until(lambda w=writer, d=done: w.commands > d + 200, 60, "more changes")
        writer.stop()
        fired += target.shim.rule(0).fired
        target.shim.disarm(0)
        want = finish(target, source)
        assert compare(want, target)
        move(source, target)
    assert fired >= 8, fired


@no_allocator
@pytest.mark.parametrize("calls", (["alloc", "map"], ["thread"]))
def test_a_copy_waits_for_memory_and_says_so(member, tmp_path, calls):
    source, target = member(), member(folder=tmp_path)
    fill(source, 2)
    writer = Writer(source, 2, flushes=False, large=False)
    target.shim.arm(0, "fail", calls, ["none"], error=errno.ENOMEM,
                    flags=shim.FOR_GOOD)
    begin(target, source)
    wait_until(lambda: "memory" in pull_of(target)["reason"].lower(), 60,
               "it says why")
    with target.conn() as conn:     # and the server works
        assert conn.call("PING") == b"PONG"
        assert str(conn.call("BF.EXISTS", "{in1}n1", "x")).startswith(
            ("ASK", "CLUSTERDOWN", "TRYAGAIN"))
    target.shim.disarm(0)
    wait_follows(target)
    writer.stop()
    want = finish(target, source)
    assert compare(want, target)
    assert_only(target)


def foreign(conn):
    """Restores filters that the modules have dumped; returns their keys."""
    made = []
    payloads = [json.loads(path.read_text()).get("redis7_DUMP_hex")
                for path in sorted((DATA / "redisbloom" / "filters").glob("*.json"))]
    payloads += [one["dump_rdb11_uncompressed"] for one in json.loads(
        (DATA / "valkey-bloom" / "filters.json").read_text())]
    for number, payload in enumerate(filter(None, payloads)):
        key = "{%s}foreign%d" % (IN[number % len(IN)], number)
        reply = conn.call("RESTORE", key, 0, bytes.fromhex(payload))
        assert reply == b"OK", (number, reply)
        made.append(key)
    return made


def test_every_layout_is_copied_bit_for_bit(member, tmp_path):
    """Those of RedisBloom and valkey-bloom, keyed, deletable and ageing ones, and a
    filter whose chunks arrive before, during and after the copy."""
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    source = member("--hash-secret-file", secret)
    target = member("--hash-secret-file", secret)
    with source.conn() as conn:
        keys = foreign(conn)
        assert len(keys) >= 8
        for tag, more in zip(IN, ((), ("HASH", "keyed"), ("DELETABLE",),
                                  ("AGEING", "3600"), ("AGEING", "60"),
                                  ("EXPANSION", "1"), ("NONSCALING",))):
            key = "{%s}layout" % tag
            assert conn.call("BF.RESERVE", key, "0.01", "100", *more) == b"OK", more
            items = range(90 if more == ("NONSCALING",) else 500)
            assert len(conn.call("BF.MADD", key, *items)) == len(items)
            keys.append(key)
        assert conn.call("BF.RESERVE", "{out1}chunked", "0.0001", "20000000") == b"OK"
        conn.call("BF.MADD", "{out1}chunked", *range(500))
        chunks, iterator = [], 0
        while True:
            iterator, chunk = conn.call("BF.SCANDUMP", "{out1}chunked", iterator)
            if iterator == 0:
                break
            chunks.append((iterator, chunk))
        assert len(chunks) >= 3
        third = len(chunks) // 3

        def load(part):
            for number, chunk in part:
                assert conn.call("BF.LOADCHUNK", "{in1}chunked", number,
                                 chunk) == b"OK"

        load(chunks[:third])
        begin(target, source)
        wait_follows(target)
        load(chunks[third:2 * third])
        for key in keys:        # and they go on as they are
            reply = conn.call("BF.ADD", key, "later")
            assert reply in (0, 1) or "scaling" in str(reply), (key, reply)
        want = finish(target, source)
        assert set(compare(want, target)) == \
            {k.encode() for k in (*keys, "{in1}chunked")}
    with target.conn() as conn:
        load(chunks[2 * third:])
        assert set(conn.call("BF.MEXISTS", "{in1}chunked", *range(500))) == {1}
    target.crash()
    target.restart()
    wait_serves(target, "in1")
    with target.conn() as conn:
        assert set(conn.call("BF.MEXISTS", "{in1}chunked", *range(500))) == {1}
        for tag in IN[1:7]:
            assert conn.call("BF.EXISTS", "{%s}layout" % tag, "33") == 1


def fill_keyed(source):
    with source.conn() as conn:
        assert conn.call("BF.RESERVE", "{in1}k", "0.01", "100", "HASH",
                         "keyed") == b"OK"
        conn.call("BF.MADD", "{in1}k", *range(80))
        return conn.call("BF.MEXISTS", "{in1}k", *range(1000))


def test_a_keyed_filter_comes_with_its_secret(member):
    source, target = member(), member()
    want = fill_keyed(source)
    begin(target, source)
    wait_follows(target)
    assert list(compare(finish(target, source), target)) == [b"{in1}k"]
    target.crash()
    target.restart()
    wait_serves(target, "in1")
    with target.conn() as conn:
        assert conn.call("BF.MEXISTS", "{in1}k", *range(1000)) == want


def test_a_keyed_filter_needs_its_secret_at_the_target(member):
    """If the source does not give it, nothing is taken over, and the reason is
    told."""
    source, target = member("--hash-secret-share", "no"), member()
    fill_keyed(source)
    begin(target, source)
    for text in ("fingerprint", "hash-secrets", "hash-secret-share is no"):
        wait_until(lambda t=text: t in pull_of(target)["reason"], 30, "it says why")
    with target.conn() as conn:
        assert names_in(conn) == []


def test_a_source_without_a_journal_is_copied(group, member):
    source = member("--appendonly", "no", "--save", "")
    target = member()
    fill(source, 3)
    writer = Writer(source, 3, flushes=True)
    begin(target, source)
    wait_follows(target)
    done = writer.commands
    wait_until(lambda: writer.commands > done + 1000, 60, "more changes")
    writer.stop()
    assert compare(finish(target, source), target)


def test_a_source_that_restarts_empty_is_copied_as_it_is_then(member):
    """It has no journal: after kill -9 it has another history, and nothing. What the
    copy had before must not stay."""
    source = member("--appendonly", "no", "--save", "")
    target = member()
    fill(source, 4)
    begin(target, source)
    wait_follows(target)
    with target.conn() as conn:
        assert names_in(conn)
    source.door.refuses = FENCE[:5]     # nor may it be fenced while it is empty
    source.crash()
    source.restart()
    wait_serves(source)
    with source.conn() as conn:
        assert conn.call("BF.ADD", "{in1}new", "x") == 1
    source.door.refuses = FENCE
    with target.conn() as conn:
        wait_until(lambda: names_in(conn) == [b"{in1}new"], 60, "the new data is there")
    wait_follows(target)
    assert list(compare(finish(target, source), target)) == [b"{in1}new"]


def test_a_target_that_becomes_a_replica_ends_the_copy(member):
    """Its node is demoted meanwhile: another daemon has to take the slots."""
    source, target = member(), member()
    fill(source, 5, 40)
    begin(target, source)
    wait_follows(target)
    mine, theirs = target.neighbour, source.neighbour
    mine.say(nodes=[
        node(mine.myid, mine.door.address[1], "myself,slave", primary=theirs.myid),
        node(theirs.myid, theirs.door.address[1], epoch=9, slots="0-16383")])
    wait_until(lambda: status(target)["slot_pulls"] == "0", 60, "the copy ends")
    with target.conn() as conn:
        assert str(conn.call("BF.EXISTS", "{in1}n1", "x")).startswith(
            ("MOVED", "CLUSTERDOWN", "TRYAGAIN"))


def test_slots_move_with_all_their_databases():
    """Valkey 9 has cluster-databases."""
    why = clusters.missing("valkey")
    if why:
        pytest.skip("cluster of valkey: %s" % why)
    with clusters.Cluster("valkey", primaries=2, replicas=0,
                          options=("--cluster-databases", 4)) as made:
        source, to = made.primaries()
        slot = made.view()[source.node.id].ranges[0][0]
        key = slots.key_in(slot)
        with source.daemon.conn() as conn:
            for database in range(4):
                assert conn.call("SELECT", database) == b"OK"
                assert conn.call("BF.ADD", key, "item%d" % database) == 1
            assert isinstance(conn.call("SELECT", 4), resp.Error)
        made.migrate([(slot, slot)], to)
        with to.daemon.conn() as conn:
            for database in range(4):
                assert conn.call("SELECT", database) == b"OK"
                wait_until(lambda c=conn: not isinstance(
                    c.call("BF.EXISTS", key, "x"), resp.Error), 20, "it serves")
                assert conn.call("BF.MEXISTS", key, *[
                    "item%d" % d for d in range(4)]) == [
                    int(d == database) for d in range(4)]
        made.wait_settled()


def keep_off_disk(server):
    """Its journal does not get to the disk until slots 0 and 1 are disarmed."""
    server.shim.arm(0, "fail", ["sync"], ["incr"], flags=shim.FOR_GOOD)
    server.shim.arm(1, "fail", ["sync", "create"], ["base.tmp"], flags=shim.FOR_GOOD)


def test_a_source_serves_until_the_target_s_disk_has_its_slots(member, tmp_path):
    """The source is not fenced while the target's journal does not get to the disk:
    clients would wait for it."""
    source, target = member(), member(folder=tmp_path)
    fill(source, 3)
    keep_off_disk(target)
    target.members.give(target)
    target.members.show()
    wait_follows(target)
    with source.conn() as conn:
        for number in range(500):
            assert conn.call("ASKING") == b"OK"
            assert conn.call("BF.ADD", "{in1}late", number) in (0, 1)
    target.shim.disarm(0)
    target.shim.disarm(1)
    wait_serves(target, "in1")
    with target.conn() as conn:
        assert set(conn.call("BF.MEXISTS", "{in1}late", *range(500))) == {1}


def test_what_has_come_goes_with_the_slots(member, tmp_path):
    """The node loses them while the target's journal does not get to the disk, so
    that the source was not asked for them yet."""
    source, target = member(), member(folder=tmp_path)
    fill(source, 3)
    keep_off_disk(target)
    target.members.give(target)
    target.members.show()
    wait_follows(target)
    target.members.give(source)
    target.members.show()
    wait_until(lambda: status(target)["slot_pulls"] == "0", 10, "the pull is given up")
    target.shim.disarm(0)
    target.shim.disarm(1)
    with target.conn() as conn:
        wait_until(lambda: conn.call("DBSIZE") == 0, 30, "the keys are deleted")
    wait_serves(source, "in1")
    with source.conn() as conn:
        assert names_in(conn)
