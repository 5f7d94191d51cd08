# SPDX-License-Identifier: BSD-3-Clause
#
# Thousands of random conversations, valid and invalid, with the server and with
# redis-server 7.0.15: the replies to all commands but BF.* must be equal.
# tests/lib/differ.py makes and compares them.
#
#   make converse ROUNDS=20000 [SEED=7] [MODE=asan]

import os
import random
import re

import pytest

from lib import differ, resp, servers

ROUNDS = int(os.environ.get("ROUNDS", "60" if servers.sanitized() else "300"))
# What is sent, our reply, Redis's reply, and why they differ on purpose.
INTENDED = [
    ("config set", "argument must not contain a zero byte", "CONFIG SET failed",
     "no option takes one; Redis reads up to it"),
    ("loglevel", "debug, verbose, notice, warning, nothing", "notice, warning",
     "`nothing` is a level of later versions"),
    ("memory usage", r"^\D*\d+\D*$", r"^\D*\d+\D*$",
     "what a key costs is each server's own matter"),
    ("notify-keyspace-events", r"\bAn[KEm]*", r"\bA[KEm]*",
     "n is shown beside A, so that what is shown can be set again"),
    ("restore", "ERR invalid expire time in 'restore' command", "OK|QUEUED",
     "a time beyond 64 bits is refused; Redis lets it wrap around"),
    ("swapdb", "invalidNone", "",
     "the keys of both databases are others now: Redis tells nobody"),
    ("hello", "Syntax error in HELLO", "WRONGPASS",
     "HELLO looks at all its words before it does anything"),
    ("client (list|kill)", "", "syntax error",
     "they take several filters, and those of Valkey 9"),
    ("x{200}|y{70}", "'?[xy]{50}", "'?[xy]{50}",
     "what an error repeats of the request is cut off"),
]


class Pair:
    """The two servers with equal keys."""

    def __init__(self, server, oracle):
        self.processes = (server, oracle)
        self.controls = [server.conn(), oracle.conn()]
        self.payloads = []
        self.fill()
        for control in self.controls:
            self.payloads.append(control.call("DUMP", "k1"))

    def fill(self):
        for control, make in zip(self.controls, (("BF.ADD",), ("RPUSH",))):
            control.call("FLUSHALL")
            for db in (0, 1):
                control.call("SELECT", db)
                for key in ("k1", "k2", "k3"):
                    assert control.call(*make, key, "x") == 1
            control.call("EXPIRE", "k2", 1000)
            control.call("SELECT", 0)
            control.call("CONFIG", "SET", "notify-keyspace-events", "")

    def keys(self):
        found = []
        for control in self.controls:
            seen = []
            for db in differ.DATABASES:
                control.call("SELECT", db)
                names = sorted(control.call("KEYS", "*"))
                seen.append((db, [(n, control.call("PTTL", n) > 0)
                                  for n in names]))
            found.append(seen)
        return found


def compare(ours, theirs, volatile=False):
    """[(number of the reply, ours, theirs), ...] of what differs; the number
    is None where not even the number of replies is equal."""
    a, b = (differ.sort_leaving([differ.normal(r) for r in side])
            for side in (ours, theirs))
    if volatile:
        a, b = ([differ.kind_only(r) for r in side] for side in (a, b))
    if len(a) != len(b):
        return [(None, "%d: %r" % (len(a), a), "%d: %r" % (len(b), b))]
    return [(n, repr(x), repr(y)) for n, (x, y) in enumerate(zip(a, b))
            if not differ.equal(x, y)]


def sent_for(requests, number):
    """The request that a reply belongs to, if that is known."""
    several = [r for r in requests if isinstance(r[0], str) and
               r[0].upper().endswith("SUBSCRIBE")]
    if number is None or several or number >= len(requests):
        return "; ".join(differ.shown(r) for r in requests)
    return differ.shown(requests[number])


def intended(sent, mine, other):
    return any(re.search(a, sent, re.I) and re.search(b, mine) and
               re.search(c, other) for a, b, c, _ in INTENDED)


class Differences:
    """Each kind once, with how often it was met."""

    def __init__(self):
        self.kinds = {}

    def add(self, sent, mine, other, where):
        kind = tuple(re.sub(r"'[^']*'|\d+", "?", text)[:150]
                     for text in (sent.split(" ")[0].upper(), mine, other))
        text, times = self.kinds.get(kind, (None, 0))
        self.kinds[kind] = (text or "sent    %s\n  got   %s\n  redis %s\n  in    %s" % (
            sent, mine, other, where), times + 1)

    def __str__(self):
        return "\n".join("%d times: %s" % (times, text)
                         for text, times in self.kinds.values())


def converse(pair, groups, proto, volatile, wrong):
    """Runs one session on both."""
    sides, history = [], ["RESP%d" % proto]
    try:
        for process, payload in zip(pair.processes, pair.payloads):
            sides.append(differ.Side(process, proto, payload))
        for number, requests in groups:
            history.append("%d: %s" % (number, "; ".join(
                differ.shown(r) for r in requests)))
            got = [side.group(number, requests) for side in sides]
            for index, mine, other in compare(*got, volatile):
                sent = sent_for(requests, index)
                if not intended(sent, mine, other):
                    wrong.add(sent, mine, other, " / ".join(history))
        sides[1].gather((0, 0))
        sides[0].gather([len(m) for m in sides[1].messages])
        # A message is put into words when it is sent, not when it is made.
        switched = re.search(r"\bhello [23]\b", " ".join(history), re.I)
        for number in () if switched else (0, 1):
            got = [differ.settled(s.messages[number]) for s in sides]
            for _, mine, other in compare(*got):
                if not intended("\n".join(history), mine, other):
                    wrong.add("messages", mine, other, " / ".join(history))
        for side in sides:
            side.close()
    except (TimeoutError, resp.Closed, resp.Malformed, OSError) as error:
        wrong.add("; ".join(history[-1:]), "%s (of our %d sides)" % (
            error, len(sides)), "", " / ".join(history))
    finally:
        for side in sides:
            side.drop()


def test_random_conversations_are_answered_alike(server, oracle):
    # Long campaigns look for what is new; the test suite tells of changes.
    seed = int(os.environ.get("SEED") or
               (random.randrange(1 << 32) if "ROUNDS" in os.environ else 1))
    print("SEED=%d ROUNDS=%d" % (seed, ROUNDS))
    pair, wrong, compared = Pair(server, oracle), Differences(), 0
    with server.conn() as conn:
        grammar = differ.Grammar(
            {n.decode().lower() for n in conn.call("COMMAND", "LIST")},
            {n.decode() for n in conn.call("CONFIG", "GET", "*")[::2]})
    for number in range(ROUNDS):
        chance = random.Random("%d %d" % (seed, number))
        groups, volatile = grammar.session(chance)
        converse(pair, groups, chance.choice([2, 3]), volatile, wrong)
        compared += sum(len(requests) for _, requests in groups)
        mine, other = pair.keys() if number % 10 == 9 else ([], [])
        if mine != other:
            wrong.add("keys", repr(mine), repr(other), "session %d" % number)
        if number % 10 == 9:
            pair.fill()
        if len(wrong.kinds) > 60:
            break
    assert not wrong.kinds, "SEED=%d, %d kinds of differences in %d requests:\n%s" % (
        seed, len(wrong.kinds), compared, wrong)


def test_a_difference_is_seen():
    def parsed(*raws):
        return [differ.parse(raw)[0] for raw in raws]
    ok = parsed(b"+OK\r\n")
    assert compare(ok, parsed(b"+OK\r\n")) == []
    assert compare(ok, parsed(b"$2\r\nOK\r\n"))
    assert compare(ok, [])
    assert compare(parsed(b":5\r\n"), parsed(b":6\r\n"))
    assert compare(parsed(b"*1\r\n:1\r\n"), parsed(b"*1\r\n:2\r\n"))
    assert compare(parsed(b"-ERR a\r\n"), parsed(b"-ERR b\r\n"), True)
    assert compare(parsed(b"$1\r\na\r\n"), parsed(b"$-1\r\n"), True)
    assert not compare(parsed(b"$1\r\na\r\n"), parsed(b"$1\r\nb\r\n"), True)
    message = b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n%s\r\n"
    assert compare(parsed(message % b"a"), parsed(message % b"b"))


@pytest.mark.parametrize("words", [
    ["SHUTDOWN"], ["SHUTDOWN", "NOW"], ["client", "reply", "off"], ["QUIT"],
    ["CLIENT", "PAUSE", "1000"], ["WAIT", "1", "0"], ["DEBUG", "SEGFAULT"],
    ["CONFIG", "SET", "maxmemory", "1"],
])
def test_what_ends_the_comparison_is_not_sent(words):
    assert differ.dangerous(words)
