# SPDX-License-Identifier: BSD-3-Clause
#
# Replays a recorded conversation with redis-server 7.0.15 and RedisBloom, without the
# BF.* commands, in RESP2 and RESP3, and compares the replies byte for byte. VOLATILE
# normalises values that vary from run to run. INTENDED lists the intended differences
# with the reason; a listed difference that does not occur fails. test_vectors.py
# replays the BF.* commands.

import ast
import re

import pytest

from lib import resp, servers

FILE = servers.TOP / "tests/data/redisbloom/core-replies.txt"
# What the recorded server held: eleven names that its replies show, fifteen keys.
KEYS = ["ios", "gl", "d", "pys", "nr", "l", "q", "NONSCALING", "q2", "py",
        "io", "s", "t", "u", "v"]
NAMES = {key.encode() for key in KEYS}


def bulk(data, kind=b"$"):
    return kind + b"%d\r\n%s\r\n" % (len(data), data)


def text_of(raw):
    """The text of a bulk or verbatim reply, and how to put it back."""
    kind, rest = raw[:1], raw[raw.index(b"\r\n") + 2:-2]
    return (b"", rest) if kind == b"$" else (rest[:4], rest[4:])


def numbers_of_client_info(raw):
    """CLIENT INFO: ids, addresses, ages and sizes vary, fields and order not."""
    prefix, text = text_of(raw)
    keep = {b"name", b"flags", b"db", b"sub", b"psub", b"ssub", b"multi", b"cmd",
            b"user", b"redir", b"resp", b"events", b"obl", b"oll", b"omem",
            b"multi-mem", b"idle"}
    fields = [f.split(b"=", 1) for f in text.rstrip(b"\n").split(b" ")]
    return prefix + b" ".join(
        name + b"=" + (value if name in keep else b"?")
        for name, value in fields)


def id_of_hello(raw):
    """HELLO: the number of the connection."""
    return re.sub(rb"\$2\r\nid\r\n:\d+\r\n", b"<id>", raw)


def any_integer(raw):
    return re.sub(rb"^:\d+\r\n$", b"<integer>", raw)


def offset_of_role(raw):
    """ROLE: the replication offset."""
    return re.sub(rb"(master\r\n):\d+\r\n", rb"\1<offset>", raw)


def order_of_keys(raw):
    """SCAN that ends in one step: the order of the names."""
    cursor, names = resp.decode(raw)
    return b"%s %r" % (cursor, sorted(names))


def step_of_scan(raw):
    """SCAN that does not end: the cursor, how many names, and which."""
    cursor, names = resp.decode(raw)
    numbered = raw.startswith(b"*2\r\n$") and cursor.isdigit()
    return b"<step>" if numbered and names and set(names) <= NAMES else raw


def version_of_lolwut(raw):
    """LOLWUT: the version of the server."""
    return re.sub(rb"[\d.]+(?=\n\r\n$)", b"<version>", raw)


# The beginning of a command -> what is taken out of its reply on both sides.
VOLATILE = {
    "HELLO": id_of_hello,
    "CLIENT ID": any_integer,
    "CLIENT INFO": numbers_of_client_info,
    "ROLE": offset_of_role,
    "COMMAND COUNT": any_integer,
    "SCAN 0 MATCH": order_of_keys,
    "SCAN 0 TYPE": step_of_scan,
}

# Command -> what its reply looks like here, in the text form of transcripts,
# and why.
MODULE = r'\*1 \| [%*][48] \| "name" \| "bf" \| "ver" \| :\d+ \| "path" \| "" ' \
    r'\| "args" \| \*0'
HELLO = r'(\*14|%7) \| "server" \| "redis" \| "version" \| "7\.\d+\.\d+" \| "proto" ' \
    r'\| :[23] \| "id" \| :\d+ \| "mode" \| "standalone" \| "role" \| "master" ' \
    r'\| "modules" \| ' + MODULE
VERSIONS = "the version tells clients what they may ask for; bf is no file that " \
    "was loaded, and has the version of the module that it does as"
INTENDED = {
    "HELLO": (HELLO, VERSIONS),
    "HELLO 2": (HELLO, VERSIONS),
    "HELLO 3": (HELLO, VERSIONS),
    "MODULE LIST": (MODULE, VERSIONS),
    "INFO modules": (
        r'=?"(txt:)?# Modules\\r\\nmodule:name=bf,ver=\d+,api=1,filters=0,'
        r'usedby=\[\],using=\[\],options=\[\]\\r\\n(\\r\\n# bf_bloom_core_.*)?"',
        VERSIONS + "; its figures stand there too"),
    "CLIENT INFO": (
        r'=?"(txt:)?id=.* redir=-1 resp=[23] filters=0 lib-name= lib-ver=\\n"',
        "the fields of 7.2 for CLIENT SETINFO, which clients send, and of "
        "subscriptions to filters"),
    "LOLWUT": (r'=?"(txt:)?[^"]*Bloomery ver\. [^"]*\\n"',
               "the program has a name of its own"),
    "COPY nr nr2": (":1", "filters can be copied"),
    "OBJECT ENCODING nr": ('"native"', "it tells the layout"),
    "ACL CAT bloom": (r'\*\d+( \| "bf\.[a-z]+")+', "the category is there"),
}


# What undoes a difference, so that the commands behind it meet what they met.
AFTER = {
    "COPY nr nr2": ("DEL", "nr2"),
}


def recorded():
    for number, line in enumerate(FILE.read_text().splitlines(), 1):
        match = re.fullmatch(r"R([23]) (.*?) => (.*)(['\"])", line)
        assert match, "line %d is not understood: %r" % (number, line)
        proto, command, body, quote = match.groups()
        reply = ast.literal_eval("b" + quote + body + quote)
        yield number, int(proto), command, reply


def normalised(command, raw):
    for start, function in VOLATILE.items():
        if command.upper().startswith(start) and not raw.startswith(b"-"):
            return function(raw)
    return raw


@pytest.fixture
def server(start_server):
    # A busy machine makes no command slow.
    server = start_server("--dialect", "redis", "--slowlog-log-slower-than", -1)
    with server.conn() as conn:
        for key in KEYS:
            assert conn.call("BF.ADD", key, "x") == 1
    return server


def judge(command, proto, want, got, met):
    """What is wrong with this reply, or None; notes differences in `met`."""
    if normalised(command, got) == normalised(command, want):
        return None
    if command in INTENDED and re.fullmatch(
            INTENDED[command][0], resp.render(got), re.IGNORECASE):
        met.add((command, proto))
        return None
    return "RESP%d %s\n  want %r\n  got  %r" % (proto, command, want, got)


def test_recorded_replies_match(server):
    wrong, met, count = [], set(), 0
    conns = {proto: server.conn(proto) for proto in (2, 3)}
    for number, proto, command, want in recorded():
        got = conns[proto].raw(*command.split())
        problem = judge(command, proto, want, got, met)
        if problem:
            wrong.append("line %d, %s" % (number, problem))
        if command in AFTER:
            conns[proto].call(*AFTER[command])
        count += 1
    for conn in conns.values():
        conn.close()
    assert not wrong, "%d of %d:\n%s" % (len(wrong), count, "\n".join(wrong))
    assert count > 120
    listed = {(command, proto) for _, proto, command, _ in recorded()
              if command in INTENDED}
    assert {command for command, _ in listed} == set(INTENDED)
    assert met == listed, "listed, but not met: %s" % (listed - met)


def test_a_wrong_reply_is_seen():
    """The judge itself: what is neither equal nor listed is a problem."""
    assert judge("PING", 2, b"+PONG\r\n", b"+PONG\r\n", set()) is None
    assert judge("PING", 2, b"+PONG\r\n", b"$4\r\nPONG\r\n", set())
    assert judge("HELLO", 2, b"*2\r\n$2\r\nid\r\n:1\r\n",
                 b"*2\r\n$2\r\nid\r\n:22\r\n", set()) is None
    assert judge("CLIENT INFO", 2, b"$9\r\nid=1 db=0\r\n",
                 b"$9\r\nid=2 db=1\r\n", set())
