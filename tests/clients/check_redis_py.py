# SPDX-License-Identifier: BSD-3-Clause
#
# redis-py and valkey-py (the same helpers): with their defaults, then once in
# the protocol that is not the default. Prints `ok`/`not ok`/`note` lines.
#
#   check_redis_py.py redis|valkey VERSION PORT

import importlib
import sys
import traceback

NAME, VERSION, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
module = importlib.import_module(NAME)
Client = getattr(module, "Redis" if NAME == "redis" else "Valkey")
failed = False


def check(label, body):
    global failed
    try:
        body()
    except Exception as problem:
        failed = True
        where = traceback.extract_tb(problem.__traceback__)[-1]
        print("not ok %s: %s: %s (%s:%d)" % (
            label, type(problem).__name__, problem, where.filename, where.lineno))
    else:
        print("ok %s" % label)


def same(got, want):
    assert got == want, "got %r, want %r" % (got, want)


def raises(body, text):
    try:
        got = body()
    except module.ResponseError as error:
        assert text in str(error), "said %r" % str(error)
    else:
        raise AssertionError("no error but %r" % (got,))


def basics(r, label):
    def ping():
        assert r.ping() is True
        same(r.echo("x"), "x")

    def pipeline():
        with r.pipeline(transaction=False) as pipe:
            for i in range(1000):
                pipe.execute_command("BF.ADD", "pipe", i)
            same(len(pipe.execute()), 1000)

    def transaction():
        with r.pipeline(transaction=True) as pipe:
            pipe.execute_command("BF.ADD", "txn", "a")
            pipe.execute_command("BF.ADD", "txn", "a")
            pipe.exists("txn")
            same([int(v) for v in pipe.execute()], [1, 0, 1])

    def watch():
        with r.pipeline() as pipe:
            pipe.watch("txn")
            r.execute_command("BF.ADD", "txn", "b")
            pipe.multi()
            pipe.ping()
            try:
                pipe.execute()
            except module.WatchError:
                return
            raise AssertionError("the watch held")

    def keys():
        same(sorted(r.scan_iter()), ["pipe", "txn"])
        same(r.type("txn"), "bloomfltr")
        assert r.expire("txn", 100) and r.ttl("txn") > 90
        same(r.delete("txn", "pipe"), 2)

    def server():
        assert r.info()["redis_mode"] == "standalone"
        assert r.client_id() > 0
        assert r.config_get("maxmemory") == {"maxmemory": "0"}
        assert any(NAME + "-py" in str(c.get("lib-name", ""))
                   for c in r.client_list())

    for body in (ping, pipeline, transaction, watch, keys, server):
        check("%s %s" % (label, body.__name__), body)


def helpers(r, label):
    bf = r.bf()

    def create():
        assert bf.create("b", 0.01, 1000)
        assert bf.create("e", 0.01, 1000, expansion=4)
        assert bf.create("n", 0.01, 1000, noScale=True)
        assert bf.reserve("r", 0.01, 1000)
        raises(lambda: bf.create("b", 0.01, 1000), "item exists")

    def add():
        same([int(bf.add("b", "foo")), int(bf.add("b", "foo"))], [1, 0])
        same(list(map(int, bf.madd("b", "foo", "bar", "baz"))), [0, 1, 1])

    def exists():
        same([int(bf.exists("b", "foo")), int(bf.exists("b", "no"))], [1, 0])
        same(list(map(int, bf.mexists("b", "foo", "no", "baz"))), [1, 0, 1])

    def insert():
        same(list(map(int, bf.insert("i", ["x", "y", "x"], capacity=500,
                                     error=0.001))), [1, 1, 0])
        same(list(map(int, bf.insert("i", ["z"], noCreate=True))), [1])
        raises(lambda: bf.insert("gone", ["z"], noCreate=True), "not found")

    def card():
        same([bf.card("b"), bf.card("missing")], [3, 0])

    def info():
        got = bf.info("b")
        if isinstance(got, list):
            flat_info(got)
            return
        same([got.capacity, got.insertedNum, got.filterNum, got.expansionRate],
             [1000, 3, 1, 2])
        assert got.size > 1000
        same(got["capacity"], 1000)
        same(bf.info("e").expansionRate, 4)
        same(bf.info("n").expansionRate, None)
        raises(lambda: bf.info("missing"), "not found")

    def flat_info(got):
        """Its RESP3 helper knows RedisBloom's map only."""
        print("note %s bf().info hands the flat array on, as it came" % label)
        assert label.endswith("protocol=3"), label
        same(dict(zip(got[::2], got[1::2]))["Capacity"], 1000)

    def full():
        assert bf.create("f", 1e-9, 1, noScale=True)
        same(int(bf.add("f", "a")), 1)
        raises(lambda: bf.add("f", "b"), "non scaling filter is full")
        got = bf.madd("f", "a", "b", "c")
        assert len(got) == 2 and int(got[0]) == 0
        assert isinstance(got[1], Exception), repr(got)

    for body in (create, add, exists, insert, card, info, full):
        check("%s bf().%s" % (label, body.__name__), body)
    kind = type(bf.add("b", "new")).__name__
    print("note %s bf().add gives %s" % (label, kind))


def session(label, **options):
    with Client(port=PORT, decode_responses=True, **options) as r:
        r.flushall()
        hello = r.execute_command("HELLO")
        if not isinstance(hello, dict):
            hello = dict(zip(hello[::2], hello[1::2]))
        said = {str(k): v for k, v in hello.items()}["proto"]
        print("note %s speaks RESP%s" % (label, said))
        basics(r, label)
        helpers(r, label)
        r.flushall()
        return str(said)


def main():
    if module.__version__ != VERSION:
        print("not ok version: %s" % module.__version__)
        return 1
    used = session(NAME + "-py")
    other = 2 if used == "3" else 3
    session("%s-py protocol=%d" % (NAME, other), protocol=other)
    return 1 if failed else 0


sys.exit(main())
