# SPDX-License-Identifier: BSD-3-Clause
#
# What people have for other servers starts this one: command lines as compose files,
# charts and pages have them, aclfiles, and redis.conf files.

import os
import re
import shlex
import subprocess
import tempfile

import pytest

from lib import servers

# In lines, DIR is a folder of the test.
LINES = """
--appendonly yes
--save 60 1 --loglevel warning
--save 20 1 --loglevel warning --requirepass secret
--requirepass secret --appendonly yes --appendfsync everysec
--bind 127.0.0.1 -::1
--bind 0.0.0.0 --protected-mode no
--protected-mode no --save "" --appendonly no
--maxmemory 256mb --maxmemory-policy allkeys-lru
--maxmemory 100mb --maxmemory-policy volatile-lru --save ""
--client-output-buffer-limit pubsub 32mb 8mb 60
--client-output-buffer-limit normal 0 0 0 --client-output-buffer-limit replica 256mb 64mb 60
--cluster-enabled no
--cluster-enabled no --cluster-config-file nodes.conf --cluster-node-timeout 5000
--cluster-announce-ip 10.0.0.1 --cluster-announce-port 6379 --cluster-announce-bus-port 16379
--enable-protected-configs yes --enable-debug-command yes
--enable-module-command yes --protected-mode no
--enable-debug-command local --enable-module-command local
--masterauth secret --requirepass secret --replica-announce-ip host
--primaryuser sync --primaryauth secret
--acl-pubsub-default resetchannels
--unixsocket DIR/x.sock --unixsocketperm 770 --unixsocketgroup root
--shutdown-on-sigterm save --shutdown-timeout 10
--shutdown-on-sigterm nosave force
--slowlog-entry-max-argc 32 --repl-compression 0 --aof-load-corrupt-tail-max-size 0
--hide-user-data-from-log yes --log-format legacy --log-timestamp-format legacy
--loadmodule /opt/redis-stack/lib/redisbloom.so
--loadmodule /usr/lib/redis/modules/redisbloom.so ERROR_RATE 0.004 INITIAL_SIZE 100
--loadmodule /usr/lib/valkey/libvalkey_bloom.so bloom-capacity 5000 --maxmemory 1gb
--loadmodule /opt/lib/rejson.so --loadmodule /opt/lib/redisearch.so MAXSEARCHRESULTS 10000
--rename-command FLUSHALL "" --rename-command CONFIG "" --rename-command MIGRATE ""
--io-threads 4 --io-threads-do-reads yes --tcp-keepalive 60 --timeout 0 --tcp-backlog 511
--daemonize no --supervised no --databases 1 --hz 10 --lazyfree-lazy-eviction yes
--notify-keyspace-events KEA --slowlog-log-slower-than 10000 --latency-monitor-threshold 100
""".strip().splitlines()


def config(server, name, *auth):
    with server.conn() as conn:
        if auth:
            assert conn.call("AUTH", *auth) == b"OK"
        got = conn.call("CONFIG", "GET", name)
    assert got[0] == name.encode(), got
    return got[1].decode()


def refused(*options, conf=None):
    """Starts a server that must fail for a mistake; returns its output."""
    server = servers.Server(*options, conf=conf, ready=False)
    try:
        assert server.wait_exit(20) in (1, 2), server.log().decode()
        return server.log().decode()
    finally:
        server.kill()
        server.remove()


def words_of(line, folder):
    return shlex.split(line.replace("DIR", str(folder)))


@pytest.mark.parametrize("line", LINES)
def test_a_public_command_line_starts_the_server(start_server, tmp_path, line):
    server = start_server(*words_of(line, tmp_path))
    with server.conn() as conn:
        if "requirepass" in line:
            assert conn.call("AUTH", "secret") == b"OK"
        assert conn.call("BF.ADD", "k", "a") in (1, True)
    assert "level=error" not in server.log().decode()


def test_values_may_stand_as_several_words(start_server):
    server = start_server("--client-output-buffer-limit", "pubsub", "33mb", "9mb",
                          "61", "--bind", "127.0.0.1", "-::1")
    assert "pubsub %d %d 61" % (33 << 20, 9 << 20) in config(
        server, "client-output-buffer-limit")
    assert config(server, "bind") == "127.0.0.1 -::1"


def test_a_module_of_bloom_filters_means_options(start_server):
    server = start_server("--loadmodule", "/usr/lib/redis/modules/redisbloom.so",
                          "ERROR_RATE", "0.004", "INITIAL_SIZE", "4000",
                          "CF_MAX_EXPANSIONS", "8")
    assert config(server, "dialect") == "redis"
    assert config(server, "bf-error-rate") == "0.004"
    assert config(server, "bf-initial-size") == "4000"
    assert server.log().decode().count("loadmodule") == 1
    server = start_server("--loadmodule", "libvalkey_bloom.so", "bloom-capacity",
                          "5000")
    assert config(server, "dialect") == "valkey"
    assert config(server, "bf.bloom-capacity") == "5000"


REFUSED = [
    ("--rename-command CONFIG secret-config", "cannot be renamed"),
    ("--rename-command CONFIG", "takes a command and its new name"),
    ("--disabled-commands NOPE", "there is no command 'NOPE'"),
    ("--cluster-enabled yes", "sidecar-of"),
    ("--acl-pubsub-default allchannels", "allchannels to the users"),
    ("--tls-cluster yes", "sidecar-tls"),
    ("--bind-source-addr 10.0.0.1", "source address"),
    ("--user default on nopass", "name it with aclfile"),
    ("--unixsocket DIR/s --unixsocketgroup no-such-group", "listen on"),
    ("--loadmodule redisbloom.so ERROR_RATE 2", "ERROR_RATE"),
    ("--include DIR/none.conf", "none.conf: No such file"),
]


@pytest.mark.parametrize("line, said", REFUSED)
def test_what_protects_or_means_more_is_refused(tmp_path, line, said):
    words = words_of(line, tmp_path)
    assert said in refused(*words)


def test_a_disabled_command_is_unknown(start_server):
    """To users with all rights, too, and in no list; replication and the journal
    go on."""
    primary = start_server("--rename-command", "BF.MADD", "",
                           "--rename-command", "CONFIG", "")
    replica = start_server("--disabled-commands", "BF.ADD", "REPLICAOF",
                           "--replicaof", "127.0.0.1", primary.port)
    with start_server().conn() as conn:
        count = conn.call("COMMAND", "COUNT")
    with primary.conn() as conn, replica.conn() as other:
        for words in (("BF.MADD", "k", "a"), ("CONFIG", "GET", "port"), ("CONFIG",),
                      ("config", "set", "timeout", "1"), ("CONFIG", "NONE")):
            got = str(conn.call(*words))
            assert got.startswith("ERR unknown command '%s', with args" % words[0])
        assert conn.call("COMMAND", "COUNT") == count - 2
        assert len(conn.call("COMMAND")) == len(conn.call("COMMAND", "DOCS")) // 2 == \
            count - 2
        for words in (("COMMAND", "LIST"),
                      ("COMMAND", "LIST", "FILTERBY", "PATTERN", "*")):
            names = [name.lower() for name in conn.call(*words)]
            assert not any(name.startswith((b"config", b"bf.madd")) for name in names)
        for name in ("BF.MADD", "config", "config|get"):
            assert conn.call("COMMAND", "INFO", name) == [None]
            assert conn.call("COMMAND", "DOCS", name) == []
        assert "Invalid command" in str(conn.call("COMMAND", "GETKEYS", "BF.MADD",
                                                  "k", "a"))
        assert "not found" in str(conn.call("ACL", "DRYRUN", "default", "BF.MADD",
                                            "k", "a"))
        conn.call("ACL", "SETUSER", "x", "on", "nopass", "+@all", "~*", "&*",
                  "-bf.madd", "+bf.madd")
        assert conn.call("AUTH", "x", "y") == b"OK"
        conn.send(b"".join(b"BF.MADD k a\r\nBF.ADD k %d\r\n" % i for i in range(50)))
        got = [str(conn.read()) for _ in range(100)]
        assert all("unknown command" in one for one in got[::2]), got
        assert set(got[1::2]) == {"1"}, got
        assert conn.call("MULTI") == b"OK"
        assert "unknown command" in str(conn.call("BF.MADD", "k", "a"))
        assert "EXECABORT" in str(conn.call("EXEC"))
        assert conn.call("WAIT", 1, 10000) == 1
        assert other.call("BF.CARD", "k") == 50
        for _ in range(3):
            assert "unknown command" in str(other.call("BF.ADD", "k", "b"))
    primary.kill()
    with start_server("--disabled-commands", "BF.MADD", "--dir",
                      primary.folder).conn() as conn:
        assert conn.call("BF.CARD", "k") == 50


def test_files_are_included_in_the_lines_place(start_server, tmp_path):
    (tmp_path / "b.conf").write_text("[network]\nmaxclients = 60\n")
    (tmp_path / "a.conf").write_text("[network]\nmaxclients = 50\n"
                                     "[network]\ntimeout = 3\n")
    server = start_server(conf="[network]\nmaxclients = 40\n"
                               "include = %s/*.conf\n"
                               "[limits]\nproto-max-args = 2000\n"
                               "include = %s/none*\n" % (tmp_path, tmp_path))
    assert config(server, "maxclients") == "60"
    assert config(server, "timeout") == "3"
    assert config(server, "proto-max-args") == "2000"
    server = start_server("--include", tmp_path / "a.conf", "--maxclients", "70")
    assert config(server, "maxclients") == "70"
    assert config(server, "timeout") == "3"
    (tmp_path / "loop").write_text("include = %s/loop\n" % tmp_path)
    assert "too many files include" in refused(
        conf="include = %s/loop\n" % tmp_path)
    (tmp_path / "bad").write_text("[limits]\n\nmaxclients = x\n")
    assert "bad:3: maxclients" in refused(conf="include = %s/bad\n" % tmp_path)


REDIS_CONF = """# Redis configuration file example.
bind 127.0.0.1 -::1
protected-mode yes
tcp-backlog 128
timeout 0
daemonize no
include %(dir)s/more-*.conf
save 3601 1 300 100
save 60 10000
requirepass "foo bar;\\x21"
maxmemory 300mb
maxmemory-policy allkeys-lfu
appendonly yes
appendfilename "appendonly.aof"
rename-command FLUSHALL ""
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit pubsub 33mb 8mb 60
loadmodule /opt/redisbloom.so INITIAL_SIZE 321
"""


def convert(path, folder):
    return subprocess.run([servers.server_binary(), "--convert", str(path)],
                          cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=30)


def test_a_redis_conf_becomes_ours(start_server, tmp_path):
    (tmp_path / "redis.conf").write_text(REDIS_CONF % {"dir": tmp_path})
    (tmp_path / "more-1.conf").write_text("timeout 9\nslowlog-max-len 77\n"
                                          "user alice on >pw ~cache:* +@all -eval\n")
    got = convert(tmp_path / "redis.conf", tmp_path)
    assert got.returncode == 0, got
    assert "# %s/redis.conf:6: daemonize does nothing" % tmp_path in got.stdout
    assert (tmp_path / "users.acl").read_text() == \
        "user alice on >pw ~cache:* +@all -eval\n"
    assert os.stat(tmp_path / "users.acl").st_mode & 0o777 == 0o600
    assert "port = 6379" in got.stdout
    assert "names no port, and Redis then listens at 6379" in got.stdout
    server = start_server(conf=got.stdout)
    for name, value in (("timeout", "9"), ("slowlog-max-len", "77"),
                        ("maxmemory", str(300 << 20)), ("dialect", "redis"),
                        ("bf-initial-size", "321"), ("tcp-backlog", "128"),
                        ("save", "3601 1 300 100 60 10000"),
                        ("maxmemory-policy", "allkeys-lfu"),
                        ("disabled-commands", "FLUSHALL")):
        assert config(server, name, "foo bar;!") == value, name
    with server.conn() as conn:
        assert conn.call("AUTH", "alice", "pw") == b"OK"
    # It never overwrites users, and names the line of a mistake.
    again = convert(tmp_path / "redis.conf", tmp_path)
    assert again.returncode == 2 and "users.acl: File exists" in again.stderr
    (tmp_path / "port.conf").write_text("port 7000\n")
    moved = convert(tmp_path / "port.conf", tmp_path)
    assert "port = 7000" in moved.stdout and "6379" not in moved.stdout
    (tmp_path / "bad.conf").write_text("port 7000\n\nmaxclients many\n")
    bad = convert(tmp_path / "bad.conf", tmp_path)
    assert bad.returncode == 2 and bad.stdout == ""
    assert "bad.conf:3: maxclients" in bad.stderr, bad.stderr


class Valkey(servers.Process):
    def __init__(self):
        folder, port = tempfile.mkdtemp(prefix="bloomery-valkey-"), servers.free_port()
        super().__init__([servers.VALKEY / "valkey-server", "--port", port, "--save", "",
                          "--dir", folder], port, folder)
        self.wait_ready()


PEERS = {"redis": (servers.REDIS.parents[1], servers.Oracle, servers.oracle_missing),
         "valkey": (servers.VALKEY, Valkey, servers.valkey_missing)}


@pytest.mark.parametrize("name", PEERS)
def test_all_options_of_a_distribution_become_ours(start_server, tmp_path, name):
    """Its file as it is, and a line for each option that the server knows."""
    folder, start, missing = PEERS[name]
    if missing() is not None:
        pytest.skip(missing())
    text = (folder / "etc" / name / (name + ".conf")).read_text()
    text = re.sub(r"/(var/lib|var/log|run)/\w+", str(tmp_path), text)
    peer = start()
    try:
        with peer.conn() as conn:
            got = [one.decode() for one in conn.call("CONFIG", "GET", "*")]
    finally:
        peer.kill()
        peer.remove()
    options = dict(zip(got[::2], got[1::2]))
    assert len(options) > 180
    options.update(dir=tmp_path, unixsocket=tmp_path / "s", port=6379)
    text += "".join('%s "%s"\n' % pair for pair in sorted(options.items()))
    (tmp_path / "stock.conf").write_text(text)
    made = convert(tmp_path / "stock.conf", tmp_path)
    assert made.returncode == 0, made.stderr
    server = start_server(conf=made.stdout)
    assert config(server, "tcp-backlog") == options["tcp-backlog"]


# As the pages about users, Sentinel, exporters, charts and frameworks have them.
ACLFILES = [
    "user default on nopass ~* &* +@all\n",
    "user default off\nuser admin on >secret ~* &* +@all\n",
    "user sentinel on >p allchannels +multi +slaveof +ping +exec +subscribe "
    "+config|rewrite +role +publish +info +client|setname +client|kill +script|kill\n",
    "user replica on >p +psync +replconf +ping\n",
    "user worker on >p +@list +@connection ~jobs:*\nuser reader on >p +@read -@dangerous ~*\n",
    "user exporter on >p -@all +@connection +memory -readonly +strlen +config|get "
    "+xinfo +pfcount -quit +zcard +type +xlen -readwrite -command +client -wait +scard "
    "+llen +hlen +get +eval +slowlog +cluster|info +cluster|slots +cluster|nodes "
    "-hello -echo +info +latency +scan -reset -auth -asking\n",
    "user default off nopass -@all\nuser app on #5e884898da28047151d0e56f8dc62927736"
    "03d0d6aabbdd62a11ef721d1542d8 ~app:* &app:* +@all -@admin -@dangerous +info\n",
    "user queue on >p ~bull:* +eval +evalsha +set +get +zadd +zrange +hset +lpush "
    "+brpoplpush +xadd +xread +publish +subscribe +script|load resetchannels &bull:*\n",
    "user bloom on >p %RW~filters:* -@all +@bloom +bf.add +cf.add +topk.add +json.get "
    "+ft.search +@search +@json\n",
    "user cache on >p ~cache:* -@all +get +set +del +mget +mset +expire +sort "
    "+migrate +object|encoding +function +fcall (+@read ~shared:*)\n",
]


@pytest.mark.parametrize("text", ACLFILES)
def test_a_stock_aclfile_loads_and_is_saved(tmp_path, text):
    path = tmp_path / "users.acl"
    path.write_text(text + "user boss on >boss ~* &* +@all\n")
    server = servers.Server("--aclfile", path)
    try:
        with server.conn() as conn:
            assert conn.call("AUTH", "boss", "boss") == b"OK"
            before = conn.call("ACL", "LIST")
            assert len(before) >= text.count("user ") + 1
            assert conn.call("ACL", "SAVE") == b"OK"
            assert conn.call("ACL", "LOAD") == b"OK"
            assert conn.call("ACL", "LIST") == before
            assert "NOPERM" not in str(conn.call("BF.ADD", "k", "a"))
    finally:
        server.stop()
        server.remove()
