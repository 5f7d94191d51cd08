# SPDX-License-Identifier: BSD-3-Clause
#
# Patterns and long texts: the matches, the refusals, and that no client misses a
# message without noticing. tests/unit/base/test_glob.c checks the limit of the work;
# here the server only has to finish.

import random

import pytest

from lib import resp

A = b"a" * 1000
LONG = 1_000_000
WORK = resp.Error("ERR pattern takes too much work: use fewer ? and [] "
                  "between two *")
CHANNEL = resp.Error("ERR channel name is longer than pubsub-max-channel-bytes")


@pytest.fixture(name="names")
def fixture_names(start_server):
    server = start_server(threads=2)
    names = [b"%02d" % i + b"a" * LONG for i in range(20)]
    with server.conn() as conn:
        for name in names:
            conn.call("BF.RESERVE", name, "0.01", 10)
        conn.call("BF.RESERVE", "short", "0.01", 10)
        yield conn, names


def scan(conn, pattern):
    found, cursor = [], 0
    while True:
        reply = conn.call("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
        if isinstance(reply, resp.Error):
            return reply
        found += reply[1]
        cursor = int(reply[0])
        if cursor == 0:
            return sorted(found)


def keys(conn, pattern):
    reply = conn.call("KEYS", pattern)
    return reply if isinstance(reply, resp.Error) else sorted(reply)


@pytest.mark.parametrize("walk", [keys, scan])
def test_long_names_are_matched(names, walk):
    conn, all_names = names
    for pattern, expected in [
            (b"*" + A, all_names),
            (b"*" + A + b"*", all_names),
            (b"*" + A + b"b*", []),
            (b"*" + A + b"b", []),
            (b"*a" * 500 + b"*", all_names),
            (b"*a" * 500 + b"*b*", []),
            (b"07*", all_names[7:8]),
            (b"0[3-5]a*a", all_names[3:6]),
            (b"??" + A + b"*", all_names),
            (b"s*t", [b"short"])]:
        assert walk(conn, pattern) == expected, pattern[:20]
    # Commands in a transaction do not pause.
    conn.call("MULTI")
    conn.call("KEYS", b"*" + A)
    assert sorted(conn.call("EXEC")[0]) == all_names


@pytest.mark.parametrize("walk", [keys, scan])
def test_too_much_work_is_an_error(names, walk):
    conn, all_names = names
    assert walk(conn, b"*" + b"a" * 20 + b"?b*") == WORK
    conn.call("DEL", *all_names)
    assert walk(conn, b"*" + b"a" * 20 + b"?b*") == []


def test_a_pattern_that_may_be_slow_is_refused_when_subscribing(start_server):
    server = start_server()
    with server.conn() as conn:
        slow = b"*" + b"?" * 100 + b"a*"
        assert conn.call("PSUBSCRIBE", "fine*", slow) == WORK
        assert conn.call("PUBSUB", "NUMPAT") == 0
        # The beginning and the end of a pattern cost nothing, and a lower
        # limit for channel names allows more.
        conn.call("CONFIG", "SET", "pubsub-max-channel-bytes", 1000)
        with server.conn() as other:
            assert other.call("PSUBSCRIBE", slow)[0] == b"psubscribe"
        with server.conn() as other:
            assert other.call("PSUBSCRIBE", b"?" * 500 + b"*" + b"[ab]" * 100)


def test_names_of_channels_have_a_limit(start_server):
    server = start_server()
    with server.conn() as conn:
        for size in (16 * 1024 + 1, LONG, 40_000_000):
            name = b"a" * size
            for words in (("PUBLISH", name, "m"), ("SPUBLISH", name, "m"),
                          ("SUBSCRIBE", name), ("SSUBSCRIBE", name)):
                assert conn.call(*words) == CHANNEL, (words[0], size)
        assert conn.call("PSUBSCRIBE", b"a" * LONG) == CHANNEL
        with server.conn() as ears:
            for i in range(20):
                ears.call("PSUBSCRIBE", b"*" + A + b"%02d*" % i)
            ears.call("PSUBSCRIBE", b"*" + A)
            name = b"a" * 16 * 1024
            assert conn.call("PUBLISH", name, "m") == 1
            assert ears.read()[1:] == [b"*" + A, name, b"m"]


def test_an_event_that_is_slow_to_match_cuts_its_subscriber(start_server):
    server = start_server("--notify-keyspace-events", "KEA", threads=2)
    with server.conn() as conn, server.conn() as slow, server.conn() as fast:
        slow.call("PSUBSCRIBE", b"*aaaaaaaaaaaaaaa?b*")
        fast.call("PSUBSCRIBE", b"*:" + A + b"*", "__keyspace@1__*")
        fast.read()
        # For an ordinary name both subscribers get the event or not, as they
        # should.
        conn.call("BF.RESERVE", b"a" * 15 + b"xb", "0.01", 10)
        assert slow.read()[2] == b"__keyspace@0__:" + b"a" * 15 + b"xb"
        name = b"a" * LONG
        conn.call("BF.RESERVE", name, "0.01", 10)
        assert fast.read()[2] == b"__keyspace@0__:" + name
        with pytest.raises(resp.Closed):
            while True:
                slow.read()
        assert conn.call("PING") == b"PONG"


def test_many_patterns_and_channels(start_server):
    server = start_server(threads=2)
    count = 20_000
    with server.conn() as conn, server.conn() as one, server.conn() as two:
        for n, ears in enumerate((one, two)):
            for first in range(0, count, 1000):
                ears.send(resp.command("PSUBSCRIBE", *[
                    b"p%d:%d:*" % (n, i) for i in range(first, first + 1000)]))
                for _ in range(1000):
                    ears.read()
            ears.call("PSUBSCRIBE", "*7:8*")
        assert conn.call("PUBLISH", "p0:17:8", "m") == 3
        assert one.read()[1:3] == [b"p0:17:*", b"p0:17:8"]
        assert one.read()[1:3] == [b"*7:8*", b"p0:17:8"]
        assert two.read()[1:3] == [b"*7:8*", b"p0:17:8"]
        conn.call("MULTI")
        conn.call("PUBLISH", "p1:7:8", "m")
        assert conn.call("EXEC") == [3]
        names = [b"channel-%d" % i for i in range(count)]
        for first in range(0, count, 1000):
            two.send(resp.command("SUBSCRIBE", *names[first:first + 1000]))
        for _ in range(count):
            two.read()
        random.shuffle(names)
        assert sorted(conn.call("PUBSUB", "CHANNELS")) == sorted(names)
        assert sorted(conn.call("PUBSUB", "CHANNELS", "*99?")) == sorted(
            name for name in names if name[:-1].endswith(b"99"))


def test_config_get_has_a_limit_of_patterns(start_server):
    server = start_server()
    with server.conn() as conn:
        assert b"maxmemory" in conn.call("CONFIG", "GET", *["maxm*"] * 100)
        few = conn.call("CONFIG", "GET", *[b"*x%d*y" % i for i in range(100)])
        assert few == []
        assert conn.call("CONFIG", "GET", *["*"] * 5000) == resp.Error(
            "ERR too many patterns: at most twice the number of options is "
            "allowed")
        slow = [b"*" + b"[^z]" * 100 + b"%d*" % i for i in range(100)]
        assert conn.call("CONFIG", "GET", *slow) in ([], WORK)
