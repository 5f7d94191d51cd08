# SPDX-License-Identifier: BSD-3-Clause
#
# Random conversations for two servers that should give equal replies: a grammar of
# the commands other than BF.*, random mistakes in its requests, and a comparison
# of replies that ignores parts that cannot be equal.
# tests/command/test_differential.py runs them against redis-server 7.0.15.
#
# The keys are filters on the server under test and lists on the other one, so only
# their type and size differ.

import itertools
import re
import time

from lib import resp, servers

KEYS = ["k1", "k2", "k3", "k4", "other", ""]
CHANNELS = ["ch1", "ch2", "news", "\x00"]
PATTERNS = ["*", "k*", "k?", "[k-o]*", "ch*", "nothing*", "", "\\k1", "[^k]*", "k[1"]
DATABASES = ["0", "1", "2", "15"]
JUNK = ["", "0", "1", "-1", "abc", "1.5", "9223372036854775807", " 1", "+1",
        "9223372036854775808", "-9223372036854775808", "16", "00", "\xff\x00",
        "x" * 200, "nx", "*", "two words", "-0", "1e3", "\r\n", "'\""]
EVENTS = ["", "KEA", "Kg", "Ex", "KEg$lshzxetdmn", "A", "q", "KEAm"]
SECONDS = ["100", "1000", "100000", "-1", "0", "9223372036854775"]
UNIX = ["9999999999", "1", "-5", "99999999999"]
# A word for which each server has its own value.
OWN_PAYLOAD, OWN_PEER_ID, OWN_ID = object(), object(), object()


def number(random):
    return str(random.choice([0, 1, 2, 5, 10, 100, 1000, -1]))


WORDS = {
    "key": lambda r: r.choice(KEYS),
    "db": lambda r: r.choice(DATABASES),
    "secs": lambda r: r.choice(SECONDS),
    "msecs": lambda r: r.choice(SECONDS) + "000",
    "unix": lambda r: r.choice(UNIX),
    "unixms": lambda r: r.choice(UNIX) + "000",
    "pattern": lambda r: r.choice(PATTERNS),
    "channel": lambda r: r.choice(CHANNELS),
    "text": lambda r: r.choice(["a", "", "hello world", "\xff\r\n", "y" * 70]),
    "junk": lambda r: r.choice(JUNK),
    "int": number,
    "events": lambda r: r.choice(EVENTS),
    "payload": lambda r: OWN_PAYLOAD,
    "peer": lambda r: OWN_PEER_ID,
    "self": lambda r: OWN_ID,
}

# Upper case stands for itself, lower case for a random word. `|` separates
# choices, `?` marks an optional word, `+` means one to three, `*` none to two.
STATE = """
DEL key+
UNLINK key+
EXISTS key+
TOUCH key+
TYPE key
GET key
EXPIRE key secs NX|XX|GT|LT?
EXPIRE key secs NX|XX|GT|LT NX|XX|GT|LT
PEXPIRE key msecs NX|XX|GT|LT?
EXPIREAT key unix NX|XX|GT|LT?
PEXPIREAT key unixms NX|XX|GT|LT?
TTL key
PTTL key
EXPIRETIME key
PEXPIRETIME key
PERSIST key
RENAME key key
RENAMENX key key
COPY key key REPLACE?
COPY key key DB db REPLACE?
COPY key key REPLACE DB db
MOVE key db
SWAPDB db db
FLUSHDB ASYNC|SYNC?
FLUSHALL ASYNC|SYNC?
KEYS pattern
DBSIZE
SCAN 0 COUNT 10000
SCAN 0 MATCH pattern COUNT 10000
SCAN 0 COUNT 10000 MATCH pattern TYPE string|hash|none
SCAN 0 MATCH
RESTORE key secs payload REPLACE?
RESTORE key secs payload REPLACE IDLETIME|FREQ int
RESTORE key unixms payload ABSTTL REPLACE
RESTORE key secs text REPLACE?
OBJECT ENCODING|REFCOUNT|FREQ key
SELECT db
PING
PING text
ECHO text
MULTI
EXEC
DISCARD
WATCH key+
UNWATCH
WAIT 0 int
WAIT 1 1
CLIENT SETNAME text|key
CLIENT GETNAME
CLIENT NO-EVICT ON|OFF
CLIENT REPLY ON
CLIENT TRACKING ON|OFF
CLIENT TRACKING ON BCAST|OPTIN|OPTOUT|NOLOOP? BCAST|OPTIN|OPTOUT|NOLOOP?
CLIENT TRACKING ON BCAST PREFIX text PREFIX key NOLOOP?
CLIENT TRACKING ON PREFIX key
CLIENT TRACKING ON REDIRECT peer
CLIENT TRACKING ON REDIRECT self
CLIENT TRACKING ON REDIRECT junk
CLIENT TRACKINGINFO
CLIENT GETREDIR
CLIENT CACHING YES|NO
CLIENT UNBLOCK int TIMEOUT|ERROR?
CLIENT UNBLOCK self
CLIENT UNPAUSE
CLIENT PAUSE 0 ALL|WRITE?
CLIENT KILL ID 99999999
CLIENT KILL ADDR text SKIPME YES|NO
CLIENT KILL TYPE MASTER|REPLICA|SLAVE
CLIENT KILL TYPE junk
CLIENT KILL USER junk
CLIENT KILL junk
CLIENT LIST TYPE junk
CLIENT LIST TYPE MASTER|REPLICA
CLIENT LIST ID 99999999 88888888
SUBSCRIBE channel+
UNSUBSCRIBE channel*
PSUBSCRIBE pattern+
PUNSUBSCRIBE pattern*
SSUBSCRIBE channel+
SUNSUBSCRIBE channel*
PSUBSCRIBE __key*
PUBLISH channel text
SPUBLISH channel text
PUBSUB CHANNELS pattern?
PUBSUB NUMSUB channel*
PUBSUB NUMPAT
PUBSUB SHARDCHANNELS pattern?
PUBSUB SHARDNUMSUB channel*
CONFIG SET notify-keyspace-events events
CONFIG SET notify-keyspace-events junk
CONFIG SET slowlog-max-len|slowlog-log-slower-than|latency-monitor-threshold int
CONFIG SET lfu-log-factor|lfu-decay-time int
CONFIG SET databases|maxmemory-policy|appendfsync|loglevel|latency-tracking junk
CONFIG SET slowlog-max-len|slowlog-log-slower-than|latency-monitor-threshold junk
CONFIG SET lfu-log-factor|tcp-keepalive|timeout junk
CONFIG SET slowlog-max-len 128 nope 1
CONFIG SET slowlog-max-len 128 slowlog-max-len 5
CONFIG SET save junk
CONFIG SET appendonly junk
CONFIG SET maxmemory junk
CONFIG SET maxclients junk
CONFIG SET client-output-buffer-limit junk
CONFIG SET junk junk
CONFIG GET notify-keyspace-events
CONFIG GET slowlog-max-len|slowlog-log-slower-than|latency-monitor-threshold
CONFIG GET lfu-log-factor|lfu-decay-time
CONFIG GET junk
CONFIG RESETSTAT
COMMAND GETKEYS DEL|EXISTS|WATCH|TOUCH|UNLINK key+
COMMAND GETKEYS COPY|RENAME|RENAMENX key key
COMMAND GETKEYS EXPIRE|MOVE key int
COMMAND GETKEYS OBJECT ENCODING key
COMMAND GETKEYS MEMORY USAGE key
COMMAND GETKEYS PING|MULTI|SUBSCRIBE|PUBLISH|SSUBSCRIBE|SPUBLISH channel*
COMMAND GETKEYS junk junk*
SLOWLOG RESET
SLOWLOG junk
LATENCY HISTORY text|junk
LATENCY GRAPH text
LATENCY junk
MEMORY USAGE nokey
MEMORY junk
ACL WHOAMI
ACL USERS
ACL DRYRUN default GET|DEL|TTL|NOPE key
ACL DRYRUN junk GET key
ACL GETUSER junk
DEBUG SLEEP 0
ASKING
AUTH text
AUTH default text
AUTH junk text
HELLO
HELLO 2|3
HELLO 2|3 SETNAME key
HELLO 3 AUTH default text SETNAME key
HELLO junk
HELLO 3 junk junk*
SHUTDOWN junk
SHUTDOWN ABORT
MODULE junk
NOSUCH junk*
"get" key
""
RESET
"""

# The replies to these depend on the server, so only their kind is compared.
VOLATILE = """
INFO
INFO server|clients|memory|persistence|stats|replication|cpu|modules
INFO commandstats|errorstats|latencystats|cluster|keyspace|all|default|everything
INFO server memory nosuch
INFO nosuch
CLIENT ID
CLIENT INFO
CLIENT LIST
CLIENT LIST TYPE NORMAL
CLIENT LIST ID self
CLIENT HELP
COMMAND COUNT
COMMAND INFO get nope ttl
COMMAND DOCS get ttl
COMMAND LIST FILTERBY ACLCAT keyspace
COMMAND LIST FILTERBY junk junk
COMMAND HELP
CONFIG HELP
DUMP key
RANDOMKEY
LASTSAVE
LATENCY LATEST
LATENCY HISTOGRAM
LATENCY HISTOGRAM ttl nope
LATENCY HELP
LOLWUT
LOLWUT VERSION int
MEMORY USAGE key
MEMORY USAGE key SAMPLES int
MEMORY USAGE key SAMPLES junk
ACL CAT junk
ACL LOG junk
ACL GENPASS junk
LATENCY RESET text*
MEMORY STATS
MEMORY DOCTOR
MEMORY MALLOC-STATS
MEMORY PURGE
MEMORY HELP
MODULE LIST
MODULE HELP
OBJECT IDLETIME key
OBJECT HELP
PUBSUB HELP
ROLE
SLOWLOG GET
SLOWLOG GET int
SLOWLOG GET junk
SLOWLOG LEN
SLOWLOG HELP
TIME
ACL CAT
ACL CAT keyspace
ACL LIST
ACL LOG RESET
ACL GETUSER default
ACL GENPASS
ACL GENPASS int
ACL LOG
ACL HELP
"""


def kept(part, names):
    """Returns the choices of `part` that are in `names`, and all random words."""
    return "|".join(word for word in part.split("|")
                    if word.rstrip("?*+") in WORDS or word.lower() in names)


def templates(text):
    return [line.split(" ") for line in text.strip().splitlines()]


class Grammar:
    """Makes requests with the commands in `known` (names in lower case, and
    `container|sub`) and the options in `options`."""

    def __init__(self, known, options):
        self.random = None
        self.known = known
        self.options = options
        self.state = self.usable(STATE)
        self.volatile = self.usable(VOLATILE)

    def usable(self, text):
        found = [self.reduced(t) for t in templates(text)]
        return [t for t in found if t is not None]

    def reduced(self, template):
        """Returns the template without choices that the server lacks, or None
        if nothing is left."""
        name = template[0].lower()
        if name == "nosuch" or name[0] == '"':
            return template
        if name not in self.known:
            return None
        subs = {k.split("|")[1] for k in self.known if k.startswith(name + "|")}
        if not subs or len(template) == 1:
            return template
        template = [template[0], kept(template[1], subs), *template[2:]]
        if name == "config" and len(template) > 2:
            template[2] = kept(template[2], self.options)
        if template[1:2] == ["GETKEYS"]:
            template[2] = kept(template[2], self.known)
            if len(template) > 3 and template[2] in ("OBJECT", "MEMORY") and \
                    (template[2] + "|" + template[3]).lower() not in self.known:
                return None
        return template if all(template) else None

    def expand(self, template):
        out = []
        for part in template:
            times = 1
            if part.endswith("?"):
                times = self.random.randint(0, 1)
            elif part.endswith("+"):
                times = self.random.choice([1, 1, 2, 3])
            elif part.endswith("*") and part != "__key*":
                times = self.random.randint(0, 2)
            stem = part if times == 1 and part[-1] not in "?+*" or \
                part == "__key*" else part[:-1]
            for _ in range(times):
                word = self.random.choice(stem.split("|"))
                if word in WORDS:
                    out.append(WORDS[word](self.random))
                else:
                    out.append(self.cased(word.strip('"')))
        return out

    def cased(self, word):
        return self.random.choice([word, word, word.lower(), word.title()])

    def spoil(self, words):
        """Makes one mistake, but not in the name."""
        words = list(words)
        at = self.random.randrange(1, len(words)) if len(words) > 1 else 0
        kind = self.random.choice(["drop", "junk", "add", "twice", "end"])
        if kind == "drop" and at > 0:
            del words[at]
        elif kind == "junk" and at > 0:
            words[at] = self.random.choice(JUNK)
        elif kind == "twice" and at > 0:
            words.insert(at, words[at])
        else:
            words.insert(at + 1 if kind == "add" else len(words),
                         self.random.choice(JUNK))
        return words

    def request(self, source):
        words = self.expand(self.random.choice(source))
        if self.random.random() < 0.2 and not dangerous(words):
            words = self.spoil(words)
        return words if not dangerous(words) else ["PING"]

    def session(self, random):
        """Returns [(connection, [request, ...]), ...]; a volatile request is
        alone in its list."""
        self.random = random
        if self.random.random() < 0.15:
            return [(0, [self.request(self.volatile)])], True
        groups = []
        for _ in range(self.random.randint(1, 5)):
            count = self.random.randint(1, 6)
            groups.append((self.random.choice([0, 0, 1]),
                           [self.request(self.state) for _ in range(count)]))
        return groups, False


def dangerous(words):
    """Tells whether a request would end a connection, a server or the test."""
    text = [w.upper() if isinstance(w, str) else "?" for w in words]
    name, first = text[0], text[1] if len(text) > 1 else ""
    if first == "?" or name == "SCAN" and any(
            re.fullmatch(r"[ +-]*\d+", t) for t in text[1:]
            if t not in ("0", "10000")):
        return True
    if name == "HELLO" and "SETNAME" in text and text[-2] != "SETNAME":
        return True
    if name in ("EXPIRE", "PEXPIRE", "RESTORE") and len(text) > 2 and \
            re.fullmatch(r"\d{1,2}|\d{3,4}", text[2]) and \
            0 < int(text[2]) < (60 if name == "EXPIRE" else 60000):
        return True
    if name in ("QUIT", "MONITOR", "SYNC", "PSYNC", "SAVE", "BGSAVE"):
        return True
    if name == "SHUTDOWN":
        return len(text) == 1 or first in (
            "NOW", "FORCE", "SAVE", "NOSAVE") or len(text) > 2
    if name == "CLIENT" and first == "REPLY":
        return len(text) == 3 and text[2] != "ON"
    if name == "CLIENT" and first == "PAUSE":
        return len(text) > 2 and text[2] not in ("0", "ABC", "-1", "1.5")
    if name == "CLIENT" and first == "KILL":
        return "?" in text or "USER" in text[2:] and "DEFAULT" in text or \
            "SKIPME" in text and "NO" in text or len(text) == 2 or \
            any(t in ("NORMAL", "PUBSUB", "LADDR") for t in text) or \
            "SKIPME" in text and len(text) <= 4
    if name == "WAIT":
        return text not in (["WAIT", "0", "1"], ["WAIT", "1", "1"]) and \
            len(text) == 3 and text[1] not in ("0", "-1", "ABC")
    if name == "DEBUG":
        return len(text) < 3 or text[1:3] != ["SLEEP", "0"]
    if name == "CONFIG" and first == "GET":
        return "*" in text
    if name == "CONFIG" and first == "SET":
        plain = {"MAXMEMORY", "MAXCLIENTS", "TIMEOUT", "REQUIREPASS", "PORT",
                 "SAVE", "APPENDONLY", "CLIENT-OUTPUT-BUFFER-LIMIT", "BIND"}
        return bool(plain & set(text)) and any(
            re.fullmatch(r"\s*[+-]?[\d.e]*\s*|YES", t) for t in text[3:])
    return False


# ---- replies ---------------------------------------------------------------

class Reply:
    """One reply: its kind and its value, whose elements are replies."""

    def __init__(self, kind, value):
        self.kind = kind
        self.value = value

    def __repr__(self):
        if isinstance(self.value, list):
            return "%s[%s]" % (self.kind, ", ".join(map(repr, self.value)))
        return "%s%r" % (self.kind, self.value)


def parse(raw, pos=0):
    kind = raw[pos:pos + 1].decode("latin-1")
    end = raw.index(b"\r\n", pos)
    text, pos = raw[pos + 1:end], end + 2
    if kind in "$=":
        length = int(text)
        if length < 0:
            return Reply("null", None), pos
        return Reply(kind, raw[pos:pos + length]), pos + length + 2
    if kind in "*%~>":
        count = int(text)
        if count < 0:
            return Reply("nullarray", None), pos
        items = []
        for _ in range(count * 2 if kind == "%" else count):
            item, pos = parse(raw, pos)
            items.append(item)
        return Reply(kind, items), pos
    if kind == ":":
        return Reply(kind, int(text)), pos
    return Reply("_" if kind == "_" else kind, text), pos


def normal(reply):
    """Removes the types of keys, the order of sets and HELLO's ids from a reply."""
    value = reply.value
    if isinstance(value, list):
        items = [normal(v) for v in value]
        if reply.kind in "*%" and len(items) > 3 and items[0].value == b"server":
            return Reply("hello", items[5].value)
        # Names are in the order of a hash table.
        if all(i.kind == "$" for i in items):
            items.sort(key=lambda i: i.value)
        return Reply(reply.kind, items)
    if reply.kind == "+" and value in (b"list", b"bloomfltr"):
        return Reply("+", b"<type>")
    if reply.kind == "$" and value in (b"quicklist", b"listpack", b"native"):
        return Reply("$", b"<encoding>")
    return reply


def kind_only(reply):
    """Returns the comparable part of a volatile reply: its kind, or its error."""
    if reply.kind == "-":
        return reply
    if isinstance(reply.value, list):
        return Reply(reply.kind, [])
    return Reply(reply.kind, None)


def equal(a, b):
    if a.kind != b.kind:
        return False
    if isinstance(a.value, list):
        return isinstance(b.value, list) and len(a.value) == len(b.value) and \
            all(equal(x, y) for x, y in zip(a.value, b.value))
    if a.kind == ":" and a.value is not None and min(a.value, b.value) > 50:
        # Times differ, because one server gets the request after the other.
        return abs(a.value - b.value) <= 3000 and \
            abs(a.value - b.value) < a.value * 0.1
    return a.value == b.value


MESSAGES = (b"message", b"pmessage", b"smessage", b"invalidate")
LEAVING = (b"unsubscribe", b"punsubscribe", b"sunsubscribe")


def is_message(reply):
    return isinstance(reply.value, list) and reply.kind in "*>" and \
        bool(reply.value) and reply.value[0].value in MESSAGES


def settled(messages):
    """Splits invalidations by key, because Redis combines those of one turn of its
    event loop, with each key once."""
    keys, others = set(), []
    for message in messages:
        invalid = message.value[-1]
        if message.value[0].value == b"invalidate" or \
                message.value[1].value == b"__redis__:invalidate":
            keys |= {v.value for v in invalid.value} \
                if isinstance(invalid.value, list) else {None}
        else:
            others.append(message)
    # The order among several patterns of one subscriber is not defined.
    out = []
    for _, run in itertools.groupby(others, lambda m: repr(m.value[2:])):
        out += sorted(run, key=repr)
    return out + [Reply("invalid", key) for key in sorted(keys, key=repr)]


def sort_leaving(replies):
    """Sorts the names of an UNSUBSCRIBE of everything, whose order varies."""
    def leaves(reply):
        return isinstance(reply.value, list) and len(reply.value) == 3 and \
            reply.value[0].value in LEAVING
    at = 0
    while at < len(replies):
        end = at
        while end < len(replies) and leaves(replies[end]) and \
                replies[end].value[0].value == replies[at].value[0].value:
            end += 1
        if end > at + 1:
            names = sorted((r.value[1] for r in replies[at:end]), key=repr)
            replies[at:end] = [
                Reply(r.kind, [r.value[0], name, r.value[2]])
                for r, name in zip(replies[at:end], names)]
        at = max(end, at + 1)
    return replies


# ---- talking ---------------------------------------------------------------

class Side:
    """Two connections to one server for one session."""

    def __init__(self, process, proto, payload):
        self.conns = [process.conn(proto), process.conn(proto)]
        self.ids = [conn.call("CLIENT", "ID") for conn in self.conns]
        self.payload = payload
        self.count = 0
        self.messages = ([], [])

    def encode(self, conn, words):
        own = {OWN_PAYLOAD: self.payload, OWN_ID: self.ids[conn],
               OWN_PEER_ID: self.ids[1 - conn]}
        return resp.command(*[
            w.encode("latin-1") if isinstance(w, str) else own[w] for w in words])

    def group(self, number, requests):
        """Sends the requests in one packet and returns all replies. It collects
        messages separately, because their place between replies may vary."""
        conn, self.count = self.conns[number], self.count + 1
        mark = b"mark-%d" % self.count
        conn.send(b"".join(self.encode(number, r) for r in requests) +
                  resp.command("DISCARD") + resp.command("PING", mark))
        replies = []
        while True:
            reply = parse(conn.read_raw())[0]
            if reply.value == mark or (
                    isinstance(reply.value, list) and len(reply.value) == 2 and
                    reply.value[1].value == mark):
                return replies
            (self.messages[number] if is_message(reply) else replies).append(reply)

    def gather(self, wanted):
        """Waits briefly for as many messages as the other server sent."""
        deadline = time.monotonic() + servers.time_factor()
        for number in (0, 1):
            self.group(number, [])
            while len(self.messages[number]) < wanted[number] and \
                    time.monotonic() < deadline:
                self.group(number, [])

    def close(self):
        """Removes everything that the next session could see."""
        for conn in self.conns:
            conn.send(resp.command("RESET"))
            while conn.read_raw() != b"+RESET\r\n":
                pass

    def drop(self):
        for conn in self.conns:
            conn.close()


def shown(words):
    own = {OWN_PAYLOAD: "<payload>", OWN_ID: "<own id>", OWN_PEER_ID: "<peer id>"}
    return " ".join(own[w] if w in own else resp.quote(w.encode("latin-1"))
                    if re.search(r"[^\w*.-]|^$", w) else w for w in words)
