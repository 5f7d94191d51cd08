# SPDX-License-Identifier: BSD-3-Clause
#
# Debian's client, redis-py 4.3.4. The newest clients of the registries run in
# tests/clients, tools in test_tools.py.

import pytest
import redis


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
    # redis-py stores a command under its first word, in lower case.
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
