# SPDX-License-Identifier: BSD-3-Clause
#
# Replays every BF call of a recorded conversation with RedisBloom against the server
# in dialect redis, in RESP2 and RESP3, and compares byte for byte. INTENDED lists the
# intended differences with the reason: any other difference fails, and so does an
# entry that no call needs. Then it makes the same filters as valkey-bloom did: the
# same adds give the same replies and counts in dialect valkey.

import ast
import json
import re

from lib import resp, servers

DATA = servers.TOP / "tests/data"
CALLS = DATA / "redisbloom/bf-replies.txt"
FILTERS = DATA / "valkey-bloom/filters.json"


def words(line):
    """Cut at each blank, so that two make an empty word; quotes keep one."""
    parts = re.findall(r'"[^"]*"|[^ ]+|(?<= )(?= )|(?<= )$', line)
    return [part.strip('"') for part in parts]


def calls():
    """(words, protocol, reply) in the order in which they were made."""
    out, line = [], None
    for text in CALLS.read_text().splitlines():
        if text.startswith("   R"):
            out.append((words(line), int(text[4]), ast.literal_eval(text[6:])))
        elif not text.startswith("#"):
            line = text
    return out


# ---- differences by intent ---------------------------------------------------

def blot(pattern, by):
    """Both replies become equal without what the pattern finds."""
    regex = re.compile(pattern)
    return lambda theirs, ours: regex.sub(by, theirs) == regex.sub(by, ours)


def is_here(text):
    """The reply in a transcript's words."""
    return lambda theirs, ours: ours == resp.encode(text, 2)


def begins(start):
    return lambda theirs, ours: ours.startswith(start)


# What RedisBloom 8 puts them into; Redis 7.0, where the recording was made,
# knows no categories of modules.
CATEGORIES = {
    "reserve": "write fast", "add": "write", "madd": "write",
    "insert": "write", "exists": "read", "mexists": "read",
    "info": "read fast", "card": "read fast", "debug": "read",
    "scandump": "read", "loadchunk": "write",
}


def has_categories(theirs, ours):
    name = re.search(rb"\r\nbf\.(\w+)\r\n", theirs).group(1).decode()
    own = ["+@%s\r\n" % c for c in CATEGORIES[name].split() + ["bloom"]]
    own = ("*%d\r\n" % len(own) + "".join(own)).encode()
    at = b"\r\n:1\r\n:1\r\n:1\r\n"
    return ours == theirs.replace(at + b"*0\r\n", at + own, 1)


def takes_more(theirs, ours):
    return has_categories(theirs.replace(b"\r\n:3\r\n", b"\r\n:-3\r\n", 1), ours)


SENTENCES = rb"(summary|complexity)\r\n\$(\d+)\r\n([^\r]+)\r\n"


def has_own_words(theirs, ours):
    """Equal but for the sentences, and for a misspelt argument name."""
    one, other = (re.findall(SENTENCES, side) for side in (theirs, ours))
    sized = all(len(text) == int(size) for _, size, text in other)
    return sized and all(a[2] != b[2] or b[2].startswith(b"O(")
                         for a, b in zip(one, other)) and \
        blot(SENTENCES, rb"\1")(theirs.replace(b"capcaity", b"capacity"), ours)


def has_more_arguments(theirs, ours):
    """All arguments that the module names, in its order, and others."""
    one, other = (re.findall(rb"\$4\r\nname\r\n\$\d+\r\n([^\r]+)", side)
                  for side in (theirs.replace(b"capcaity", b"capacity"), ours))
    names = iter(other)
    return len(one) < len(other) and all(name in names for name in one)


OVERWRITES = "a chunk never overwrites bytes that are there already"
SIZES = "sizes are those of our structs"
LAYOUT = "BF.DEBUG and OBJECT ENCODING tell the layout"
NO_STRINGS = "there are filters only: what was a string there is missing here"

# (pattern of the whole call, whether two replies may differ so, why).
INTENDED = [
    (r"BF\.RESERVE str 0\.01 100", is_here("+OK"), NO_STRINGS),
    (r"BF\.INSERT str ITEMS a", is_here("*1 | :1"), NO_STRINGS),
    (r"BF\.MEXISTS str a b", is_here("*2 | :1 | :0"), NO_STRINGS),
    (r"BF\.ADD str a", is_here(":0"), NO_STRINGS),
    (r"BF\.MADD str a b", is_here("*2 | :0 | :1"), NO_STRINGS),
    (r"BF\.CARD str", is_here(":2"), NO_STRINGS),
    (r"BF\.INFO str", is_here(
        "*10 | +Capacity | :100 | +Size | :344 | +Number of filters | :1 | "
        "+Number of items inserted | :2 | +Expansion rate | :2"), NO_STRINGS),
    (r"BF\.DEBUG str", is_here(
        '*2 | "size:2 layout:redisbloom" | "bytes:144 bits:1152 hashes:8 '
        'hashwidth:64 capacity:100 size:2 ratio:0.005"'), NO_STRINGS),
    (r"BF\.SCANDUMP str 0", begins(b"*2\r\n:1\r\n$73\r\n"), NO_STRINGS),
    (r"BF\.LOADCHUNK str 1 data", is_here("-ERR received bad data"),
     NO_STRINGS),
    (r"BF\.LOADCHUNK a (5|145) data", is_here("-ERR received bad data"),
     OVERWRITES),
    (r"OBJECT ENCODING \w+", is_here('"redisbloom"'), LAYOUT),
    (r"BF\.INFO (?!str|missing)\w+( SIZE| size)?",
     blot(rb"(?m)(?<=Size\r\n):\d+|(?<=^\*1\r\n):\d+", rb":?"), SIZES),
    (r"BF\.DEBUG (?!str|missing)\w+", blot(
        rb"\$\d+\r\nsize:(\d+)( layout:\w+)?", rb"\1"), LAYOUT),
    (r"MEMORY USAGE \w+", blot(rb"^:\d+", rb":?"), SIZES),
    (r"DEBUG OBJECT \w+", blot(
        rb"( incarnation:\d+)|0x[0-9a-f]+|(?<=:)\d+",
        lambda found: b"" if found[1] else b"?"),
     "an address, sizes and times, and which life of the key it is"),
    (r"COMMAND INFO bf\.scandump", takes_more, "an argument more"),
    (r"COMMAND INFO bf\.\w+", has_categories, "the recording has none"),
    (r"COMMAND DOCS bf\.insert", has_more_arguments,
     "the time to live of a new filter"),
    (r"COMMAND DOCS bf\.\w+", has_own_words, "COMMAND DOCS: our own words"),
]


def test_redisbloom_calls():
    server = servers.Server("--dialect", "redis", "--enable-debug-command",
                            "yes", "--bloom-layout", "redisbloom")
    bad, needed, count = [], set(), 0
    try:
        with server.conn(2) as two, server.conn(3) as three:
            for argv, proto, theirs in calls():
                conn = two if proto == 2 else three
                conn.send(resp.command(*argv))
                ours = conn.read_raw()
                count += 1
                if ours == theirs:
                    continue
                intent = next((i for i in INTENDED if re.fullmatch(
                    i[0], " ".join(argv))), None)
                if intent and intent[1](theirs, ours):
                    needed.add(intent)
                else:
                    bad.append("%s (RESP%d)\n  theirs %r\n  ours   %r\n" % (
                        " ".join(argv), proto, theirs, ours))
    finally:
        server.stop()
        server.remove()
    assert not bad, "\n".join(bad)
    unneeded = [i[0] for i in INTENDED if i not in needed]
    assert not unneeded, "these do not differ any more"
    assert count > 200, "the recording was not read"


def test_valkey_bloom_filters():
    """Bits and sizes are our own, answers and counts theirs."""
    filters = json.loads(FILTERS.read_text())
    server = servers.Server()
    try:
        with server.conn() as conn:
            for f in filters:
                scaling = ["EXPANSION", f["expansion"]] if f["expansion"] \
                    else ["NONSCALING"]
                key = f["name"]
                got = conn.call(
                    "BF.INSERT", key, "CAPACITY", f["capacity"], "ERROR",
                    f["error"], "TIGHTENING", f["tightening"], "SEED",
                    bytes.fromhex(f["seed"]), *scaling, "ITEMS", *f["items"])
                assert got == f["replies"], key
                assert conn.call("BF.CARD", key) == sum(
                    x["items"] for x in f["filters"]), key
                info = conn.call("BF.INFO", key)
                info = dict(zip(info[::2], info[1::2]))
                assert info[b"Capacity"] == sum(
                    x["capacity"] for x in f["filters"]), key
                assert info[b"Number of filters"] == len(f["filters"]), key
                assert info[b"Expansion rate"] == (f["expansion"] or None)
                assert conn.call("BF.MEXISTS", key, *f["items"]) == \
                    [1] * len(f["items"])
    finally:
        server.stop()
        server.remove()
    assert filters
