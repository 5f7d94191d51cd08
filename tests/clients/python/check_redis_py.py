# SPDX-License-Identifier: BSD-3-Clause
#
# redis-py from 4.3 on and valkey-py, which has the same helpers: with their
# defaults, then in the protocol that is not the default.

import os
import re
import sys
import threading

import check
from check import (ADD, BLOOM, CA, CARD, DIALECT, EXISTS, PORT, TYPE, ints, lacks,
                   note, same, until)

try:  # The system may have a redis-py of its own, but no valkey-py.
    import valkey as module
    Client = module.Valkey
    LIBRARY = "valkey-py"
except ImportError:
    import redis as module
    Client = module.Redis
    LIBRARY = "redis-py"

if not module.__file__.startswith(os.environ["PYTHONPATH"]):
    sys.exit("%s instead of the pinned one" % module.__file__)

MAJOR = int(module.__version__.split(".")[0])
SERVER = {"port": PORT}
if CA:
    SERVER.update(ssl=True, ssl_ca_certs=CA, ssl_check_hostname=True)


def raises(body, text):
    check.raises(module.ResponseError, body, text)


class Session:
    """All checks of one protocol; the methods are the checks."""

    def __init__(self, spoken, **options):
        self.protocol = spoken
        self.options = dict(options, decode_responses=True, **SERVER)
        self.r = Client(**self.options)

    def run(self):
        self.r.flushall()
        for area, names in self.AREAS.items():
            for name in names.split():
                check.check(area, self.protocol, name, getattr(self, name))
        self.r.flushall()
        self.r.close()

    AREAS = {"connect": "ping server monitor refused_words", "pool": "threads", "pipeline": "thousand",
             "transaction": "execute bad_command runtime_error",
             "watch": "changed unchanged", "pubsub": "subscribe",
             "pattern": "psubscribe", "keys": "key_commands scan"}
    if BLOOM:
        AREAS["bloom"] = "create add exists insert card info full types switch"
        AREAS["pattern"] = "psubscribe notifications"

    # connect
    def ping(self):
        assert self.r.ping() is True
        same(self.r.echo("x"), "x")
        hello = self.r.execute_command("HELLO")
        if not isinstance(hello, dict):
            hello = dict(zip(hello[::2], hello[1::2]))
        same({str(k): v for k, v in hello.items()}["proto"], self.protocol)

    def server(self):
        assert self.r.info()["redis_mode"] == "standalone"
        assert self.r.client_id() > 0
        same(self.r.config_get("maxmemory"), {"maxmemory": "0"})
        if MAJOR > 4 and BLOOM:
            assert any(c.get("lib-name") == LIBRARY
                       for c in self.r.client_list()), self.r.client_list()

    def monitor(self):
        with self.r.monitor() as monitor:
            self.r.execute_command(ADD, "seen", "a")
            # Before it comes what a new connection of the pool says.
            until(lambda: monitor.next_command()["command"] == ADD + " seen a",
                  "the command is seen")
        self.r.delete("seen")

    def refused_words(self):
        """What only newer servers know is counted apart, for our alert."""
        if not BLOOM or LIBRARY != "redis-py" or MAJOR < 8 or self.protocol != 3:
            return
        before = self.r.info("stats")["unknown_client_subcommands"]
        with Client(**self.options) as other:
            assert other.ping() is True
        assert self.r.info("stats")["unknown_client_subcommands"] > before

    # pool
    def threads(self):
        options = dict(self.options)
        if options.pop("ssl", False):
            options["connection_class"] = module.SSLConnection
        pool = module.BlockingConnectionPool(max_connections=4, **options)
        shared, new = Client(connection_pool=pool), []

        def work():
            for i in range(100):
                new.append(int(shared.execute_command(ADD, "pool", i)))

        crowd = [threading.Thread(target=work) for _ in range(8)]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
        same([len(new), sum(new)], [800, self.r.execute_command(CARD, "pool")])
        pool.disconnect()

    def thousand(self):
        with self.r.pipeline(transaction=False) as pipe:
            for i in range(1000):
                pipe.execute_command(ADD, "pipe", i % 500)
            got = pipe.execute()
        same([len(got), sum(ints(got[500:]))], [1000, 0])
        same(sum(ints(got[:500])), self.r.execute_command(CARD, "pipe"))

    # transaction, watch
    def execute(self):
        with self.r.pipeline(transaction=True) as pipe:
            pipe.execute_command(ADD, "txn", "a")
            pipe.execute_command(ADD, "txn", "a")
            pipe.exists("txn")
            same(ints(pipe.execute()), [1, 0, 1])

    def bad_command(self):
        with self.r.pipeline(transaction=True) as pipe:
            pipe.execute_command(ADD, "txn", "never")
            pipe.execute_command("ECHO")
            raises(pipe.execute, "wrong number of arguments")
        same(int(self.r.execute_command(EXISTS, "txn", "never")), 0)

    def runtime_error(self):
        with self.r.pipeline(transaction=True) as pipe:
            pipe.execute_command(ADD, "txn", "late")
            pipe.expire("txn", "x")
            pipe.exists("txn")
            got = pipe.execute(raise_on_error=False)
        same([int(got[0]), int(got[2])], [1, 1])
        assert "not an integer" in str(got[1]), got

    def changed(self):
        with self.r.pipeline() as pipe:
            pipe.watch("txn")
            self.r.execute_command(ADD, "txn", "b")
            pipe.multi()
            pipe.ping()
            try:
                pipe.execute()
            except module.WatchError:
                return
            raise AssertionError("the watch held")

    def unchanged(self):
        with self.r.pipeline() as pipe:
            pipe.watch("txn")
            self.r.execute_command(ADD, "another", "b")
            pipe.multi()
            pipe.execute_command(EXISTS, "txn", "b")
            same(ints(pipe.execute()), [1])

    # pubsub, pattern
    def message(self, pubsub, kind):
        """The next message of that kind; whatever came before is lost."""
        got = []

        def arrived():
            got[:] = [pubsub.get_message(timeout=0.05)]
            return got[0] and got[0]["type"] == kind

        until(arrived, kind)
        return got[0]

    def subscribe(self):
        with self.r.pubsub() as pubsub:
            pubsub.subscribe("news", "other")
            same(self.message(pubsub, "subscribe")["data"], 1)
            same(self.message(pubsub, "subscribe")["data"], 2)
            same(self.r.publish("news", "hello"), 1)
            got = self.message(pubsub, "message")
            same([got["channel"], got["data"]], ["news", "hello"])
            same(dict(self.r.pubsub_numsub("news")), {"news": 1})
            if self.protocol == 2:  # In RESP3 the answer is no push.
                pubsub.ping()
                self.message(pubsub, "pong")
            pubsub.unsubscribe("news")
            same(self.message(pubsub, "unsubscribe")["data"], 1)
            same(self.r.publish("news", "nobody"), 0)

    def psubscribe(self):
        with self.r.pubsub() as pubsub:
            pubsub.psubscribe("news.*")
            self.message(pubsub, "psubscribe")
            same(self.r.pubsub_numpat(), 1)
            same(self.r.publish("news.today", "hello"), 1)
            got = self.message(pubsub, "pmessage")
            same([got["pattern"], got["channel"], got["data"]],
                 ["news.*", "news.today", "hello"])
            pubsub.punsubscribe()
            self.message(pubsub, "punsubscribe")
            same(self.r.publish("news.today", "nobody"), 0)

    def notifications(self):
        self.r.config_set("notify-keyspace-events", "KEA")
        with self.r.pubsub() as pubsub:
            pubsub.psubscribe("__key*@0__:*")
            self.message(pubsub, "psubscribe")
            self.r.execute_command(ADD, "event", "a")
            self.r.delete("event")
            got = [self.message(pubsub, "pmessage") for _ in range(6)]
        self.r.config_set("notify-keyspace-events", "")
        same([x["data"] for x in got if x["channel"] == "__keyspace@0__:event"],
             ["bloom.add", "bloom.reserve", "del"])
        same([x["channel"] for x in got if x["data"] == "event"],
             ["__keyevent@0__:" + x for x in ("bloom.add", "bloom.reserve", "del")])

    # keys
    def key_commands(self):
        r = self.r
        r.execute_command(ADD, "key", "a")
        same([r.type("key"), r.exists("key", "gone")], [TYPE, 1])
        assert r.expire("key", 100) and 90 < r.ttl("key") <= 100
        assert r.persist("key") and r.ttl("key") == -1
        assert r.rename("key", "renamed") and not r.exists("key")
        assert r.copy("renamed", "key")
        same(int(r.execute_command(EXISTS, "key", "a")), 1)
        same(r.delete("key", "renamed"), 2)

    def scan(self):
        same(sorted(set(self.r.scan_iter())), ["another", "pipe", "pool", "txn"])
        same(list(self.r.scan_iter(match="p*", _type=TYPE)).count("pool"), 1)
        same(self.r.dbsize(), 4)

    # bloom
    def create(self):
        bf = self.r.bf()
        assert bf.create("b", 0.01, 1000)
        assert bf.create("e", 0.01, 1000, expansion=4)
        assert bf.create("n", 0.01, 1000, noScale=True)
        raises(lambda: bf.create("b", 0.01, 1000), "item exists")

    def add(self):
        bf = self.r.bf()
        same([int(bf.add("b", "foo")), int(bf.add("b", "foo"))], [1, 0])
        same(ints(bf.madd("b", "foo", "bar", "baz")), [0, 1, 1])

    def exists(self):
        bf = self.r.bf()
        same([int(bf.exists("b", "foo")), int(bf.exists("b", "no"))], [1, 0])
        same(ints(bf.mexists("b", "foo", "no", "baz")), [1, 0, 1])
        same(ints(bf.mexists("missing", "a", "b")), [0, 0])

    def insert(self):
        bf = self.r.bf()
        same(ints(bf.insert("i", ["x", "y", "x"], capacity=500, error=0.001)),
             [1, 1, 0])
        same(ints(bf.insert("i", ["z"], noCreate=True)), [1])
        raises(lambda: bf.insert("gone", ["z"], noCreate=True), "not found")

    def card(self):
        if MAJOR == 4:
            note("its helpers have no card")
            return
        same([self.r.bf().card("b"), self.r.bf().card("missing")], [3, 0])

    def fields(self, got):
        """The helper's BFInfo, or what came where the helper does nothing."""
        if isinstance(got, list):
            got = dict(zip(got[::2], got[1::2]))
        if not isinstance(got, dict):
            if MAJOR > 4:
                same(got["capacity"], got.capacity)
            got = {"Capacity": got.capacity, "Size": got.size,
                   "Number of filters": got.filterNum,
                   "Number of items inserted": got.insertedNum,
                   "Expansion rate": got.expansionRate}
        return {k.decode() if isinstance(k, bytes) else k: v
                for k, v in got.items()}

    def info(self):
        bf = self.r.bf()
        got = self.fields(bf.info("b"))
        assert got.pop("Size") > 1000
        want = {"Capacity": 1000, "Number of filters": 1,
                "Number of items inserted": 3, "Expansion rate": 2}
        same({k: got.get(k) for k in want}, want)
        same(self.fields(bf.info("e"))["Expansion rate"], 4)
        same(self.fields(bf.info("n"))["Expansion rate"], None)
        raises(lambda: bf.info("missing"), "not found")

    def full(self):
        bf = self.r.bf()
        assert bf.create("f", 1e-9, 1, noScale=True)
        same(int(bf.add("f", "a")), 1)
        raises(lambda: bf.add("f", "b"), "non scaling filter is full")
        got = bf.madd("f", "a", "b", "c")
        assert len(got) == 2 and int(got[0]) == 0
        assert isinstance(got[1], Exception), repr(got)

    def types(self):
        """What comes without the helpers: RedisBloom's shapes or valkey-bloom's."""
        with Client(**self.options) as raw:
            modern = self.protocol == 3 and DIALECT == "redis"
            word = raw.execute_command("BF.EXISTS", "b", "foo")
            same(type(word), bool if modern else int)
            info = raw.execute_command("BF.INFO", "b")
            same(type(info), dict if modern else list)
            want = {("valkey", 2): 16, ("valkey", 3): 16, ("redis", 2): 10}
            same(len(info), want.get((DIALECT, self.protocol), 5))
            field = raw.execute_command("BF.INFO", "b", "ITEMS")
            if DIALECT == "valkey":
                same(field, 3)
            else:
                same(field, {"Number of items inserted": 3} if modern else [3])

    def switch(self):
        """The other dialect at run time, for connections that are there."""
        other = "redis" if DIALECT == "valkey" else "valkey"
        with Client(**self.options) as raw:
            raw.config_set("dialect", other)
            got = raw.execute_command("BF.EXISTS", "b", "foo")
            length = len(raw.execute_command("BF.INFO", "b"))
            word = raw.type("b")
            raw.config_set("dialect", DIALECT)
            modern = self.protocol == 3 and other == "redis"
            same([type(got), length, word],
                 [bool if modern else int,
                  16 if other == "valkey" else 5 if modern else 10,
                  "bloomfltr" if other == "valkey" else "MBbloom--"])
            same(raw.type("b"), TYPE)


def old_server():
    """redis-py caches nothing of a server whose HELLO says that it is older
    than 7.4. (INFO may say so: Valkey's redis_version is 7.2.4.)"""
    with Client(decode_responses=True, **SERVER) as r:
        version = re.search(r"'version',? ?:? ?'([0-9.]+)'",
                            str(r.execute_command("HELLO"))).group(1)
        return version if [int(x) for x in version.split(".")] < [7, 4] else None


def caching():
    """A client that caches, and how many entries it has. EXISTS and TYPE are
    cached, BF.EXISTS and its like are not."""
    options = dict(SERVER, protocol=3, decode_responses=True)
    if LIBRARY == "valkey-py":
        cached = Client(cache_enabled=True, single_connection_client=True,
                        **options)
        return cached, lambda: len(cached.connection.client_cache.cache)
    from redis.cache import CacheConfig
    cached = Client(cache_config=CacheConfig(), **options)
    return cached, lambda: len(cached.get_cache().collection)


def cache():
    cached, entries = caching()
    with cached, Client(**SERVER) as other:
        other.delete("c")
        same([cached.exists("c"), cached.exists("c"), entries()], [0, 0, 1])
        other.execute_command(ADD, "c", "x")
        until(lambda: cached.exists("c") == 1, "BF.ADD invalidates a read")
        same(cached.type("c"), TYPE)
        before = entries()
        other.execute_command(ADD, "c", "y")

        def gone():
            # Any command reads what the server pushed before it.
            cached.ping()
            return entries() < before

        until(gone, "BF.ADD to what is there invalidates a read")
        other.delete("c")
        until(lambda: cached.type("c") == "none", "DEL invalidates a read")


def main():
    note("%s %s" % (LIBRARY, module.__version__))
    if MAJOR == 4:
        Session(2).run()
        lacks("RESP3", "it speaks RESP2 only")
    else:
        default = 3 if MAJOR >= 8 else 2
        note("its default is RESP%d" % default)
        Session(default).run()
        Session(5 - default, protocol=5 - default).run()
    if MAJOR < 5:
        lacks("cache", "it came with redis-py 5.1")
    elif LIBRARY == "redis-py" and old_server():
        lacks("cache", "it wants Redis 7.4, this server says %s" % old_server())
    else:
        check.check("cache", 3, "invalidation", cache)
    if not BLOOM:
        lacks("bloom", "redis-server stands in")
    check.finish()


main()
