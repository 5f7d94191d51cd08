# SPDX-License-Identifier: BSD-3-Clause
#
# Clients that people have: Debian's redis-py, redis-cli and redis-benchmark.
# The newest clients of the registries run in tests/clients.

import re
import shutil
import subprocess

import pytest
import redis

from lib import servers


def tool(name):
    path = shutil.which(name) or str(servers.REDIS / name)
    if not shutil.which(path) and servers.oracle_missing():
        pytest.skip("%s: not installed" % name)
    return path


def run(server, name, *args, stdin=None, seconds=60):
    argv = [tool(name), "-h", "127.0.0.1", "-p", str(server.port)] + \
        [str(a) for a in args]
    got = subprocess.run(argv, input=stdin, capture_output=True,
                         timeout=seconds * servers.time_factor())
    return got


def cli(server, *args, **kwargs):
    got = run(server, "redis-cli", *args, **kwargs)
    assert got.returncode == 0, got
    return got.stdout.decode()


# ---- redis-py --------------------------------------------------------------

@pytest.fixture
def r(server):
    client = redis.Redis(port=server.port, decode_responses=True)
    yield client
    client.close()


def test_redis_py_basics(r):
    assert r.ping()
    assert r.echo("x") == "x"
    assert r.dbsize() == 0
    assert r.info()["redis_mode"] == "standalone"
    assert r.info("keyspace") == {}
    assert r.client_id() > 0
    assert r.client_setname("py") and r.client_getname() == "py"
    assert any(c["name"] == "py" for c in r.client_list())
    assert r.config_get("maxmemory") == {"maxmemory": "0"}
    assert r.config_set("maxmemory", "1gb") and r.config_set("maxmemory", 0)
    assert r.command_count() > 40
    # redis-py files a command under its first word, in lower case.
    assert "bf.add" in {k.lower() for k in r.command()}
    assert len(r.time()) == 2
    assert r.module_list() is not None


def test_redis_py_keys(r):
    r.execute_command("BF.ADD", "k", "a")
    assert r.exists("k") == 1 and r.type("k") == "bloomfltr"
    assert r.expire("k", 100) and 0 < r.ttl("k") <= 100
    assert r.persist("k") and r.ttl("k") == -1
    assert list(r.scan_iter()) == ["k"]
    assert r.keys("*") == ["k"] and r.randomkey() == "k"
    assert r.memory_usage("k") > 100
    assert r.touch("k") == 1
    assert r.unlink("k") == 1 and r.delete("k") == 0
    assert r.flushdb() and r.flushall()


def test_redis_py_pipelines_and_transactions(r):
    for transaction in (True, False):
        r.bf().create("p%s" % transaction, 1e-9, 200)
        with r.pipeline(transaction=transaction) as pipe:
            for i in range(100):
                pipe.execute_command("BF.ADD", "p%s" % transaction, i)
            assert pipe.execute() == [1] * 100
    with r.pipeline() as pipe:
        pipe.watch("pTrue")
        pipe.multi()
        pipe.execute_command("BF.EXISTS", "pTrue", "5")
        assert pipe.execute() == [1]
        pipe.watch("pTrue")
        r.execute_command("BF.ADD", "pTrue", "new")
        pipe.multi()
        pipe.ping()
        with pytest.raises(redis.WatchError):
            pipe.execute()
    with r.pipeline() as pipe:
        pipe.execute_command("BF.ADD", "x", "a")
        pipe.execute_command("BF.ADD", "x")
        with pytest.raises(redis.ResponseError):
            pipe.execute()
    assert r.exists("x") == 0


def test_redis_py_transaction_helper(r):
    def body(pipe):
        count = pipe.execute_command("BF.CARD", "t")
        pipe.multi()
        pipe.execute_command("BF.ADD", "t", "item-%d" % count)

    for _ in range(5):
        assert r.transaction(body, "t") == [1]
    assert r.execute_command("BF.CARD", "t") == 5


def test_redis_py_bloom_helpers(r):
    bf = r.bf()
    assert bf.create("b", 0.01, 1000)
    assert bf.create("e", 0.01, 1000, expansion=4)
    assert bf.create("n", 0.01, 1000, noScale=True)
    with pytest.raises(redis.ResponseError, match="item exists"):
        bf.create("b", 0.01, 1000)
    assert bf.add("b", "foo") == 1 and bf.add("b", "foo") == 0
    assert bf.madd("b", "foo", "bar", "baz") == [0, 1, 1]
    assert bf.exists("b", "bar") == 1 and bf.exists("b", "nope") == 0
    assert bf.mexists("b", "foo", "nope", "baz") == [1, 0, 1]
    assert bf.insert("i", ["x", "y"], capacity=500, error=0.001) == [1, 1]
    assert bf.insert("i", ["y", "z"], noCreate=True) == [0, 1]
    assert bf.insert("j", ["x"], noScale=True, expansion=2) is not None
    info = bf.info("b")
    assert info.capacity == 1000 and info.insertedNum == 3
    assert info.filterNum == 1 and info.expansionRate == 2 and info.size > 1000
    assert bf.info("e").expansionRate == 4
    assert bf.info("n").expansionRate is None


def test_redis_py_with_password_name_and_database(start_server):
    server = start_server("--requirepass", "pw")
    client = redis.Redis(port=server.port, password="pw", db=7,
                         client_name="named", decode_responses=True)
    client.execute_command("BF.ADD", "k", "a")
    assert client.client_getname() == "named"
    assert "db7" in client.info("keyspace")
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=server.port).ping()
    # This version raises its general error here.
    with pytest.raises(redis.ResponseError, match="WRONGPASS"):
        redis.Redis(port=server.port, password="no").ping()


def test_redis_py_unix_socket(start_server):
    server = start_server("--unixsocket", "{folder}/s")
    client = redis.Redis(unix_socket_path=server.folder + "/s")
    assert client.ping()


# ---- redis-cli -------------------------------------------------------------

def test_cli_one_shot(server):
    assert cli(server, "PING") == "PONG\n"
    assert cli(server, "BF.MADD", "k", "a", "b") == "1\n1\n"
    assert cli(server, "--no-raw", "BF.EXISTS", "k", "a") == "(integer) 1\n"
    assert "(error) ERR item exists" in cli(server, "--no-raw", "BF.RESERVE",
                                            "k", "0.01", "10")
    assert cli(server, "-n", "3", "DBSIZE") == "0\n"
    assert cli(server, "-r", "3", "PING") == "PONG\n" * 3
    assert cli(server, "-x", "BF.ADD", "k", stdin=b"from stdin") == "1\n"
    assert cli(server, "BF.EXISTS", "k", "from stdin") == "1\n"


def test_cli_resp3(server):
    cli(server, "BF.RESERVE", "k", "0.01", "1000")
    out = cli(server, "-3", "--no-raw", "BF.INFO", "k")
    assert "(double) 0.01" in out and "Max scaled capacity" in out
    assert "1#" in cli(server, "-3", "--no-raw", "CONFIG", "GET", "maxmemory")
    assert "redis_version" in cli(server, "-3", "INFO")


def test_cli_interactive(server):
    out = cli(server, stdin=b"BF.ADD k a\nMULTI\nBF.CARD k\nEXEC\n"
                            b"SELECT 2\nDBSIZE\nHELLO 3\n")
    assert "QUEUED" in out and "proto" in out


def test_cli_auth(start_server):
    server = start_server("--requirepass", "pw")
    assert "NOAUTH" in cli(server, "BF.ADD", "k", "a")
    assert cli(server, "--no-auth-warning", "-a", "pw", "BF.ADD", "k",
               "a") == "1\n"
    assert cli(server, "--no-auth-warning", "--user", "default", "--pass", "pw",
               "-3", "PING") == "PONG\n"


def test_cli_stat(server):
    argv = [tool("redis-cli"), "-p", str(server.port), "--stat", "-i", "0.05"]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE)
    lines = [child.stdout.readline() for _ in range(4)]
    child.kill()
    child.wait()
    child.stdout.close()
    assert b"keys" in lines[1] and b"requests" in lines[1]
    assert re.match(rb"0 +\d", lines[2]), lines


@pytest.fixture
def filled(server):
    with server.conn() as conn:
        conn.pipeline([("BF.ADD", "key:%d" % i, "x") for i in range(500)])
    return server


def test_cli_scan(filled):
    assert sorted(cli(filled, "--scan").split()) == \
        sorted("key:%d" % i for i in range(500))
    assert len(cli(filled, "--scan", "--pattern", "key:1?").split()) == 10


def test_cli_bigkeys_and_memkeys(filled):
    out = cli(filled, "--bigkeys")
    assert "Sampled 500 keys in the keyspace" in out and "500 bloomfltr" in out
    out = cli(filled, "--memkeys")
    assert "Sampled 500 keys in the keyspace" in out
    assert re.search(r"Biggest bloomfltr found .* has \d+ bytes", out), out


def test_cli_latency(server):
    # Without a terminal it prints one line after -i seconds and ends.
    out = subprocess.run([tool("redis-cli"), "-p", str(server.port), "--raw",
                          "-i", "1", "--latency"], capture_output=True,
                         timeout=30 * servers.time_factor())
    assert re.match(rb"\d+ \d+ \d+\.\d+ \d+", out.stdout), out


def test_cli_pipe(server):
    from lib import resp
    data = b"".join(resp.command("BF.ADD", "piped", i) for i in range(20000))
    out = cli(server, "--pipe", stdin=data)
    assert "errors: 0, replies: 20000" in out
    data = b"BF.ADD piped inline\r\nBF.ADD piped\r\nBF.ADD piped inline2\r\n"
    got = run(server, "redis-cli", "--pipe", stdin=data)
    assert b"errors: 1, replies: 3" in got.stdout
    assert cli(server, "BF.MEXISTS", "piped", "5", "inline2") == "1\n1\n"


# ---- redis-benchmark -------------------------------------------------------

@pytest.mark.parametrize("args", [
    ("-t", "ping"), ("-P", "16"), ("-3",), ("-c", "1"), ("--threads", "2"),
], ids=" ".join)
def test_benchmark(server, args):
    command = [] if "-t" in args else ["BF.ADD", "bench", "__rand_int__"]
    got = run(server, "redis-benchmark", "-q", "-n", "20000", "-r", "100000",
              *args, *command, seconds=120)
    assert got.returncode == 0
    assert b"requests per second" in got.stdout
    text = (got.stdout + got.stderr).decode("utf-8", "replace")
    assert "rror" not in text.replace("WARNING", ""), text
    if command:
        assert int(cli(server, "BF.CARD", "bench")) > 10000


def test_benchmark_with_a_password(start_server):
    server = start_server("--requirepass", "pw")
    got = run(server, "redis-benchmark", "-q", "-a", "pw", "-n", "2000",
              "--dbnum", "2", "-r", "1000", "BF.ADD", "bench", "__rand_int__")
    assert got.returncode == 0 and b"requests per second" in got.stdout
