# SPDX-License-Identifier: BSD-3-Clause
#
# The commands of clients and dashboards, and the form of the replies that they need:
# those with which RedisInsight and Grafana show a server, every command that current
# clients send, in RESP2 and RESP3, and whole connect sequences byte for byte. The
# real clients run in tests/clients.

import re

import pytest

from lib import resp, servers

# A reply is compared in its text form (tests/command/README.md): one token an
# element, joined by ` | `. These stand for tokens.
TEXT = r'"(?:[^"\\]|\\.)*"'
FORMS = {
    "OK": r"\+OK",
    "INT": r":-?\d+",
    "TEXT": TEXT,
    "NULL": r"(\$-1|_)",
    "NOCLUSTER": r"-ERR This instance has cluster support disabled",
    "UNKNOWN": r"-ERR unknown command .*",
    "SUB": r"-ERR unknown subcommand '.*'\. Try [A-Z]+ HELP\.",
    "WRONGTYPE": r"-WRONGTYPE Operation against a key holding the wrong kind of "
                 r"value",
    "LIST": r"\*\d+( \| .*)?",
    "EMPTY": r"\*0",
    "MAP": (r"\*\d+( \| .*)?", r"%\d+( \| .*)?"),
    "TEXTS": r"\*\d+( \| %s)*" % TEXT,
    "PAIRS": (r"\*\d*[02468]( \| %s \| %s)+" % (TEXT, TEXT),
              r"%%\d+( \| %s \| %s)+" % (TEXT, TEXT)),
}


def verbatim(inner):
    """Text: a bulk string in RESP2, a verbatim string in RESP3."""
    return r'"%s"' % inner, r'="txt:%s"' % inner


def section(*fields):
    """INFO: a headline, lines that end in CRLF, and at least these fields."""
    inner = "".join(r"(?=.*\\r\\n%s:)" % f for f in fields) + \
        r"# [A-Za-z]+\\r\\n.*\\r\\n"
    return verbatim(inner)


FORMS.update({
    "INFO": section("redis_version", "run_id", "connected_clients",
                    "used_memory", "role", "db0"),
    "SERVER": section("redis_mode", "run_id", "tcp_port", "uptime_in_seconds",
                      "os", "redis_version", "process_id", "uptime_in_days"),
    "CLIENTS": section("blocked_clients", "tracking_clients",
                       "maxclients", "pubsub_clients"),
    "MEMORY": section("used_memory_human", "used_memory_peak",
                      "used_memory_rss", "mem_fragmentation_ratio",
                      "maxmemory_policy", "used_memory_dataset",
                      "used_memory_overhead", "total_system_memory"),
    "PERSISTENCE": section("async_loading", "rdb_last_save_time",
                           "rdb_last_bgsave_status", "aof_enabled"),
    "STATS": section("total_commands_processed", "instantaneous_ops_per_sec",
                     "keyspace_hits", "keyspace_misses", "evicted_keys",
                     "expired_keys", "pubsub_channels",
                     "total_net_input_bytes", "instantaneous_input_kbps",
                     "instantaneous_output_kbps", "rejected_connections"),
    "REPLICATION": section("connected_slaves", "master_replid",
                           "master_repl_offset", "master_failover_state"),
    "CPU": section("used_cpu_user", "used_cpu_sys_children"),
    "COMMANDSTATS": section("cmdstat_BF.ADD"),
    "ERRORSTATS": section("errorstat_ERR"),
    "LATENCYSTATS": section("latency_percentiles_usec_BF.ADD"),
    "CLUSTERSTATS": section(),
    "KEYSPACE": section(),
    "MODULES": section(),
    "CLIENTLINES": verbatim(r"(id=\d+ addr=[\d.]+:\d+ laddr=[\d.]+:\d+ fd=\d+ "
                            r"name=.* age=\d+ .* resp=[23].*\\n)+"),
    "HELLO2": r'\*14 | "server" | "redis" | "version" | "7\.\d+\.\d+" | "proto" '
              r'| :2 | "id" | :\d+ | "mode" | "standalone" | "role" | "master" '
              r'| "modules" | \*\d+.*'.replace(" | ", r" \| "),
    "HELLO3": r'%7 | "server" | "redis" | "version" | "7\.\d+\.\d+" | "proto" '
              r'| :3 | "id" | :\d+ | "mode" | "standalone" | "role" | "master" '
              r'| "modules" | \*\d+.*'.replace(" | ", r" \| "),
    "MODULE": (r'\*1 \| \*\d+ \| "name" \| "bf" \| "ver" \| :\d+.*',
               r'\*1 \| %\d+ \| "name" \| "bf" \| "ver" \| :\d+.*'),
    "TRACKED": (r'\*6 \| "flags" \| \*1 \| "off" .*',
                r'%3 \| "flags" \| ~1 \| "off" .*'),
})

# Commands and the shapes of their replies, in the order of sending. Each line
# has its own connection, in db 0, with the filter `k`, which holds x. `a / b`
# are the shapes in RESP2 and in RESP3.
REDISINSIGHT = r"""
INFO                                => INFO
INFO server                         => SERVER
INFO keyspace                       => KEYSPACE
INFO memory                         => MEMORY
INFO stats                          => STATS
INFO clients                        => CLIENTS
INFO cluster                        => CLUSTERSTATS
INFO replication                    => REPLICATION
MODULE LIST                         => MODULE
COMMAND                             => LIST
COMMAND DOCS bf.add                 => MAP
CLIENT LIST                         => CLIENTLINES
CLIENT INFO                         => CLIENTLINES
CLIENT SETNAME redisinsight-common-1 => OK
CLIENT GETNAME                      => "redisinsight-common-1"
CONFIG GET databases                => PAIRS
CONFIG GET slowlog*                 => PAIRS
CONFIG SET slowlog-log-slower-than 10000 => OK
CONFIG SET slowlog-max-len 128      => OK
CONFIG GET notify-keyspace-events   => PAIRS
CONFIG GET maxmemory*               => PAIRS
DBSIZE                              => INT
SCAN 0 MATCH * COUNT 500            => \*2 \| "0" \| \*1 \| "k"
SCAN 0 MATCH * COUNT 500 TYPE bloomfltr => \*2 \| "0" \| \*1 \| "k"
SCAN 0 MATCH * COUNT 500 TYPE hash  => \*2 \| "0" \| \*0
TYPE k                              => \+bloomfltr
TTL k                               => :-1
MEMORY USAGE k                      => INT
MEMORY USAGE k SAMPLES 0            => INT
MEMORY STATS                        => MAP
MEMORY DOCTOR                       => VERBATIMLINE
OBJECT ENCODING k                   => "native"
OBJECT IDLETIME k                   => INT
GET k                               => WRONGTYPE
GET nokey                           => NULL
DUMP nokey                          => NULL
SLOWLOG GET                         => LIST
SLOWLOG GET 50                      => LIST
SLOWLOG GET -1                      => LIST
SLOWLOG LEN                         => INT
SLOWLOG RESET                       => OK
ACL WHOAMI                          => "default"
ACL DRYRUN default BF.ADD k x       => OK
ACL LIST                            => TEXTS
ACL USERS                           => \*1 \| "default"
ACL CAT                             => TEXTS
CLUSTER INFO                        => NOCLUSTER
CLUSTER NODES                       => NOCLUSTER
SENTINEL MASTERS                    => UNKNOWN
PUBSUB CHANNELS                     => EMPTY
PUBSUB NUMSUB a                     => \*2 \| "a" \| :0
PUBSUB NUMPAT                       => :0
PUBSUB SHARDCHANNELS                => EMPTY
PUBSUB SHARDNUMSUB                  => EMPTY
PUBLISH a b                         => :0
LATENCY LATEST                      => EMPTY
RENAMENX k k                        => :0
EXPIRE k 1000                       => :1
PERSIST k                           => :1
EXISTS k                            => :1
UNLINK nokey                        => :0
"""

GRAFANA = r"""
PING                                => \+PONG
INFO                                => INFO
INFO server                         => SERVER
INFO clients                        => CLIENTS
INFO memory                         => MEMORY
INFO persistence                    => PERSISTENCE
INFO stats                          => STATS
INFO replication                    => REPLICATION
INFO cpu                            => CPU
NOPE                                => UNKNOWN
INFO commandstats                   => COMMANDSTATS
INFO errorstats                     => ERRORSTATS
INFO latencystats                   => LATENCYSTATS
INFO cluster                        => CLUSTERSTATS
INFO keyspace                       => KEYSPACE
INFO all                            => INFO
INFO everything                     => INFO
INFO default                        => INFO
INFO nosuch                         => EMPTYTEXT
CLIENT LIST                         => CLIENTLINES
CLIENT LIST TYPE normal             => CLIENTLINES
SLOWLOG GET                         => LIST
SLOWLOG GET 10                      => LIST
CLUSTER INFO                        => NOCLUSTER
CLUSTER NODES                       => NOCLUSTER
TYPE k                              => \+bloomfltr
SCAN 0 MATCH * COUNT 100            => \*2 \| "0" \| \*1 \| "k"
MEMORY USAGE k                      => INT
BF.INFO k                           => LIST
BF.CARD k                           => :1
TTL k                               => :-1
HGETALL k                           => UNKNOWN
"""

UNION = r"""
HELLO                               => HELLO2 / HELLO3
HELLO 4                             => -NOPROTO unsupported protocol version
HELLO x                             => -ERR Protocol version is not an integer or out of range
HELLO 3 FOO                         => -ERR Syntax error in HELLO option 'FOO'
HELLO 2                             => HELLO2
HELLO 3                             => HELLO3
HELLO 3 AUTH default pw SETNAME n   => HELLO3
HELLO 2                             => HELLO2
HELLO                               => HELLO2
RESTOREPROTOCOL                     => ANY
AUTH pw                             => -ERR AUTH <password> called without any password configured for the default user\. Are you sure your configuration is correct\?
AUTH default pw                     => OK
PING                                => \+PONG
PING hello                          => "hello"
ECHO "\x00\xff"                     => "\\x00\\xff"
SELECT 15                           => OK
SELECT 16                           => -ERR DB index is out of range
SELECT 0                            => OK
CLIENT TRACKING ON OPTIN            => OK
CLIENT CACHING YES                  => OK
CLIENT TRACKING OFF                 => OK
CLIENT CACHING YES                  => -ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled
CLIENT TRACKINGINFO                 => TRACKED
CLIENT GETREDIR                     => :-1
CLIENT SETNAME n                    => OK
CLIENT GETNAME                      => "n"
CLIENT ID                           => INT
CLIENT INFO                         => CLIENTLINES
CLIENT LIST                         => CLIENTLINES
CLIENT SETINFO LIB-NAME x           => OK
CLIENT SETINFO LIB-VER 1.0          => OK
CLIENT NO-EVICT ON                  => OK
CLIENT NO-EVICT OFF                 => OK
CLIENT NO-TOUCH ON                  => OK
CLIENT NO-TOUCH OFF                 => OK
CLIENT REPLY ON                     => OK
CLIENT KILL ID 999999               => :0
CLIENT UNBLOCK 999999               => :0
CLIENT PAUSE 0                      => OK
CLIENT UNPAUSE                      => OK
CLIENT NOSUCH                       => SUB
CLIENT MAINT_NOTIFICATIONS ON       => SUB
CLIENT CAPA redirect                => OK
COMMAND                             => LIST
COMMAND COUNT                       => INT
COMMAND INFO bf.add nope            => \*2 \| \*10 .*
COMMAND DOCS                        => MAP
COMMAND LIST                        => TEXTS
COMMAND GETKEYS bf.add k x          => \*1 \| "k"
MODULE LIST                         => MODULE
CONFIG GET save                     => PAIRS
CONFIG GET appendonly               => PAIRS
CONFIG GET timeout                  => PAIRS
CONFIG GET databases                => PAIRS
CONFIG GET maxmemory                => PAIRS
CONFIG GET *                        => PAIRS
CONFIG GET no-such-option           => (\*0|%0)
CONFIG SET timeout 0                => OK
CONFIG RESETSTAT                    => OK
CLUSTER SLOTS                       => NOCLUSTER
CLUSTER SHARDS                      => NOCLUSTER
CLUSTER NODES                       => NOCLUSTER
READONLY                            => OK
READWRITE                           => OK
ASKING                              => NOCLUSTER
SENTINEL MASTERS                    => UNKNOWN
ROLE                                => \*3 \| "master" \| :\d+ \| \*0
WAIT 0 1                            => :0
GET nokey                           => NULL
GET k                               => WRONGTYPE
MULTI                               => OK
DISCARD                             => OK
MULTI                               => OK
BF.ADD k x                          => \+QUEUED
EXEC                                => \*1 \| :0
EXEC                                => -ERR EXEC without MULTI
DISCARD                             => -ERR DISCARD without MULTI
WATCH k                             => OK
UNWATCH                             => OK
PUBLISH ch m                        => :0
SPUBLISH ch m                       => :0
PUBSUB CHANNELS                     => EMPTY
PUBSUB NUMPAT                       => :0
TTL k                               => :-1
PTTL k                              => :-1
EXPIRE k 1000                       => :1
PEXPIRE k 1000000                   => :1
EXPIREAT k 9999999999               => :1
PEXPIREAT k 9999999999000           => :1
EXPIRETIME k                        => :9999999999
PEXPIRETIME k                       => :9999999999000
PERSIST k                           => :1
RENAME k k2                         => OK
RENAME nosuch k                     => -ERR no such key
RENAMENX k k2                       => :0
COPY k k2                           => :0
COPY k k2 REPLACE                   => :1
TOUCH k k2                          => :2
MOVE k2 5                           => :1
KEYS *                              => \*1 \| "k"
SCAN 0                              => \*2 \| "0" \| \*1 \| "k"
RANDOMKEY                           => "k"
DBSIZE                              => :1
OBJECT ENCODING k                   => "native"
OBJECT REFCOUNT k                   => :1
OBJECT IDLETIME k                   => INT
OBJECT FREQ k                       => -ERR An LFU maxmemory policy is not selected, access frequency not tracked\..*
OBJECT ENCODING nokey               => NULL
MEMORY USAGE k                      => INT
MEMORY USAGE nokey                  => NULL
DUMP k                              => TEXT
SWAPDB 5 6                          => OK
UNLINK k2                           => :0
LASTSAVE                            => INT
SLOWLOG LEN                         => INT
SLOWLOG GET                         => LIST
SLOWLOG RESET                       => OK
LATENCY LATEST                      => EMPTY
LATENCY HISTORY command             => EMPTY
LATENCY RESET                       => INT
LATENCY HISTOGRAM                   => MAP
ACL WHOAMI                          => "default"
ACL CAT                             => TEXTS
ACL LIST                            => TEXTS
ACL USERS                           => \*1 \| "default"
ACL GETUSER default                 => MAP
ACL LOG                             => EMPTY
TIME                                => \*2 \| TEXT \| TEXT
LOLWUT                              => VERBATIMLINE
DEBUG JMAP                          => -ERR .*
FLUSHDB                             => OK
FLUSHALL                            => OK
"""
FORMS.update({
    "VERBATIMLINE": verbatim(r"[^\\].*"), "EMPTYTEXT": verbatim(r"(\\r\\n)?"),
    "ANY": r".*",
})
LISTS = {"RedisInsight": REDISINSIGHT, "Grafana": GRAFANA, "union": UNION}


def rows(text):
    for line in text.strip().splitlines():
        command, form = re.split(r" +=> ", line)
        yield command, form


def pattern(form, proto):
    """Returns the regular expression of a shape; replaces the names of
    FORMS."""
    sides = form.split(" / ")
    form = sides[-1] if proto == 3 else sides[0]

    def expand(match):
        named = FORMS.get(match.group(0))
        if named is None:
            return match.group(0)
        return named if isinstance(named, str) else named[proto - 2]
    if form.startswith("-") or form.startswith('"'):
        return form
    return re.sub(r"\b[A-Z][A-Z0-9]+\b", expand, form)


def request(command):
    from lib import transcript
    return transcript.words(command)


@pytest.fixture
def server(start_server):
    return start_server("--databases", 16)


@pytest.mark.port
@pytest.mark.parametrize("proto", [2, 3])
@pytest.mark.parametrize("who", LISTS)
def test_commands_are_answered_in_their_shape(server, who, proto):
    conn = server.conn(proto)
    other = server.conn()
    wrong = []
    conn.call("NOPE")
    for command, form in rows(LISTS[who]):
        other.call("SELECT", 0)
        other.call("BF.ADD", "k", "x")
        if command == "RESTOREPROTOCOL":
            conn.call("HELLO", proto)
            continue
        got = resp.render(conn.raw(*request(command)))
        if not re.fullmatch(pattern(form, proto), got):
            wrong.append("%s\n    want %s\n    got  %s" % (
                command, form, got[:600]))
    conn.close()
    other.close()
    assert not wrong, "%d in RESP%d:\n  %s" % (len(wrong), proto,
                                               "\n  ".join(wrong))


def test_a_wrong_shape_is_seen():
    assert not re.fullmatch(pattern("INT", 2), "+OK")
    assert not re.fullmatch(pattern("MAP", 3), "*2 | +a | +b")
    assert not re.fullmatch(pattern("SERVER", 2), r'"# Server\r\nos:x\r\n"')
    assert re.fullmatch(pattern("TRACKED", 3), '%3 | "flags" | ~1 | "off" | "x"')


# ---- connect sequences -----------------------------------------------------

# What a client sends in its first packets, and the beginnings of the replies
# that it reads, in order. A line `---` separates two packets.
SEQUENCES = {
    "StackExchange.Redis": r"""
HELLO 3 SETNAME app(SE.Redis-v3.0)  => %7
CLIENT SETNAME app(SE.Redis-v3.0)   => +OK
CLIENT SETINFO lib-name SE.Redis    => +OK
CLIENT SETINFO lib-ver 3.0.0        => +OK
CLIENT ID                           => :
CONFIG GET timeout                  => %1
CONFIG GET replica-read-only        => %
CONFIG GET databases                => %1
SENTINEL MASTERS                    => -ERR unknown command
INFO replication                    => =
INFO server                         => =
CLUSTER NODES                       => -ERR This instance has cluster support disabled
GET __Booksleeve_TieBreak           => _
ECHO "\x01\x80\xff\x00\r\n\x22\x0011111111" => $16
---
INFO replication                    => =
PING                                => +PONG
""",
    "StackExchange.Redis, RESP2": r"""
CLIENT SETNAME app                  => +OK
CLIENT SETINFO lib-name SE.Redis    => +OK
CLIENT SETINFO lib-ver 2.8.0        => +OK
CLIENT ID                           => :
CONFIG GET timeout                  => *2
CONFIG GET slave-read-only          => *
CONFIG GET databases                => *2
SENTINEL MASTERS                    => -ERR unknown command
INFO replication                    => $
INFO server                         => $
CLUSTER NODES                       => -ERR This instance has cluster support disabled
GET __Booksleeve_TieBreak           => $-1
ECHO 0123456789abcdef               => $16
---
PING                                => +PONG
""",
    "StackExchange.Redis, subscriptions": r"""
CLIENT SETNAME app                  => +OK
CLIENT SETINFO lib-name SE.Redis    => +OK
ECHO 0123456789abcdef               => $16
---
SUBSCRIBE __Booksleeve_MasterChanged => *3
---
PING                                => *2
---
UNSUBSCRIBE __Booksleeve_MasterChanged => *3
---
PING                                => +PONG
""",
    "redis-py 8": r"""
HELLO 3                             => %7
CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none => -ERR unknown subcommand
CLIENT SETINFO LIB-NAME redis-py    => +OK
CLIENT SETINFO LIB-VER 8.1.0        => +OK
CLIENT SETNAME app                  => +OK
SELECT 3                            => +OK
""",
    "node-redis 6": r"""
HELLO 3 SETNAME app                 => %7
SELECT 1                            => +OK
CLIENT SETINFO LIB-NAME node-redis  => +OK
CLIENT SETINFO LIB-VER 6.3.1        => +OK
CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none => -ERR unknown subcommand
CLIENT TRACKING ON                  => +OK
READONLY                            => +OK
""",
    "ioredis 6": r"""
hello 3                             => %7
client SETINFO LIB-NAME ioredis     => +OK
client SETINFO LIB-VER 6.0.0        => +OK
info                                => =
""",
    "valkey-glide": r"""
HELLO 3                             => %7
CLIENT SETINFO LIB-NAME GlideJS     => +OK
CLIENT SETINFO LIB-VER 2.5.2        => +OK
INFO REPLICATION                    => =
""",
    "rueidis": r"""
HELLO 3 SETNAME app                 => %7
CLIENT TRACKING ON OPTIN            => +OK
SELECT 1                            => +OK
READONLY                            => +OK
CLIENT NO-TOUCH ON                  => +OK
CLIENT NO-EVICT ON                  => +OK
CLIENT SETINFO LIB-NAME rueidis     => +OK
CLIENT SETINFO LIB-VER 1.0.60       => +OK
---
CLUSTER SLOTS                       => -ERR This instance has cluster support disabled
PING                                => +PONG
---
CLIENT CACHING YES                  => +OK
MULTI                               => +OK
PTTL k                              => +QUEUED
BF.EXISTS k x                       => +QUEUED
EXEC                                => *2
""",
    "go-redis 9": r"""
HELLO 3 AUTH default pw SETNAME app => %7
CLIENT SETNAME app                  => +OK
CLIENT MAINT_NOTIFICATIONS ON       => -ERR unknown subcommand
CLIENT SETINFO LIB-NAME go-redis(,go1.22) => +OK
CLIENT SETINFO LIB-VER 9.7.0        => +OK
""",
    "jedis, lettuce": r"""
HELLO 3                             => %7
SELECT 0                            => +OK
CLIENT SETNAME app                  => +OK
CLIENT SETINFO lib-name jedis       => +OK
CLIENT SETINFO lib-ver 7.0.0        => +OK
READONLY                            => +OK
PING                                => +PONG
""",
    "predis 3": r"""
HELLO 2 SETNAME predis              => *14
CLIENT SETINFO LIB-NAME predis      => +OK
CLIENT SETINFO LIB-VER 3.0.0        => +OK
SELECT 1                            => +OK
""",
    "redis_exporter": r"""
CLIENT SETNAME redis_exporter       => +OK
CONFIG GET *                        => *
INFO ALL                            => $
LATENCY LATEST                      => *0
SLOWLOG LEN                         => :
SLOWLOG GET 1                       => *
CLUSTER INFO                        => -ERR This instance has cluster support disabled
CLIENT LIST                         => $
INFO MODULES                        => $
""",
    "redis-benchmark": r"""
CONFIG GET save                     => *2
CONFIG GET appendonly               => *2
""",
    "node-redis 3, ready check": r"""
info                                => $
""",
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_connect_sequences(server, name):
    wrong = []
    with server.conn() as conn:
        for packet in SEQUENCES[name].split("---\n"):
            wanted = list(rows(packet))
            conn.send(b"".join(resp.command(*request(c)) for c, _ in wanted))
            for command, start in wanted:
                got = conn.read_raw()
                if not got.startswith(start.encode()):
                    wrong.append("%s: want %s, got %r" % (
                        command, start, got[:300]))
        assert not wrong, "\n".join(wrong)
        conn.timeout = 0.2 * servers.time_factor()
        with pytest.raises(TimeoutError):
            conn.read_raw()


def test_echo_returns_the_tracer_byte_for_byte(server):
    """StackExchange.Redis uses a connection only if ECHO returns its bytes."""
    tracer = bytes(range(240, 256))
    packet = b"*2\r\n$4\r\nECHO\r\n$16\r\n" + tracer + b"\r\n"
    with server.conn() as conn:
        conn.send(packet)
        assert conn.read_raw() == b"$16\r\n" + tracer + b"\r\n"


def test_info_has_the_fields_of_ready_checks(server):
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "x")
        conn.call("SELECT", 3)
        conn.call("BF.ADD", "k", "x")
        conn.call("EXPIRE", "k", 1000)
        text = conn.call("INFO")
    lines = text.split(b"\r\n")
    for line in (b"loading:0", b"redis_mode:standalone", b"role:master",
                 b"connected_slaves:0", b"cluster_enabled:0",
                 b"tcp_port:%d" % server.port, b"db0:keys=1,expires=0,avg_ttl=0"):
        assert line in lines, line
    assert re.search(rb"\r\ndb3:keys=1,expires=1,avg_ttl=\d+\r\n", text)
    assert b"master_link_status" not in text
    assert re.search(rb"\r\nrun_id:[0-9a-f]{40}\r\n", text)
    assert text.count(b"\n") == text.count(b"\r\n")
