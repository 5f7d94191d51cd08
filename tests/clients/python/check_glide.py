# SPDX-License-Identifier: BSD-3-Clause
#
# valkey-glide for Python, the synchronous one: custom_command() for BF, RESP3
# by default, then RESP2. It hands bytes on, and makes a failed call of an error
# element of an array. Its cache keeps no command of a filter.

import threading
from pathlib import Path

from glide_sync import (AdvancedGlideClientConfiguration, Batch, GlideClient,
                        GlideClientConfiguration, Logger, LogLevel, NodeAddress,
                        ProtocolVersion, RequestError, TlsAdvancedConfiguration)
from glide_sync.client_pool import ClientPool, PoolConfig

import check
from check import (ADD, BLOOM, CA, CARD, DIALECT, EXISTS, PORT, TYPE, ints, lacks,
                   note, same, until)


def config(**options):
    if CA:
        trust = TlsAdvancedConfiguration(root_pem_cacerts=Path(CA).read_bytes())
        options.update(use_tls=True, advanced_config=(
            AdvancedGlideClientConfiguration(tls_config=trust)))
    return GlideClientConfiguration([NodeAddress("127.0.0.1", PORT)], **options)


def as_dict(got):
    if isinstance(got, dict):
        return got
    return dict(zip(got[::2], got[1::2]))


def raises(body, text):
    check.raises(RequestError, body, text)


class Session:
    def __init__(self, spoken, **options):
        self.protocol = spoken
        self.options = options
        self.client = GlideClient.create(config(**options))
        self.other = GlideClient.create(config(**options))

    def call(self, *words):
        return self.client.custom_command(list(words))

    def run(self):
        areas = {"connect": "ping", "pool": "threads", "pipeline": "thousand",
                 "transaction": "execute bad_command", "watch": "watch",
                 "keys": "commands"}
        if BLOOM:
            areas["bloom"] = "calls info full"
        for area, names in areas.items():
            for name in names.split():
                check.check(area, self.protocol, name, getattr(self, name))
        self.client.close()
        self.other.close()

    def ping(self):
        same(self.client.ping(), b"PONG")
        same(self.client.echo("x"), b"x")
        same(self.client.flushall(), "OK")
        same(as_dict(self.call("HELLO"))[b"proto"], self.protocol)

    def threads(self):
        pool, new = ClientPool(config(**self.options), PoolConfig(max_size=4)), []

        def work():
            for i in range(50):
                with pool.borrow() as one:
                    new.append(int(one.custom_command([ADD, "pool", str(i)])))

        crowd = [threading.Thread(target=work) for _ in range(8)]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
        same([len(new), sum(new)], [400, self.call(CARD, "pool")])
        pool.close()

    def thousand(self):
        batch = Batch(is_atomic=False)
        for i in range(1000):
            batch.custom_command([ADD, "pipe", str(i % 500)])
        got = ints(self.client.exec(batch, raise_on_error=True))
        same([len(got), sum(got[500:]), sum(got)],
             [1000, 0, self.call(CARD, "pipe")])

    def execute(self):
        batch = Batch(is_atomic=True)
        batch.custom_command([ADD, "txn", "a"]).custom_command([ADD, "txn", "a"])
        same(ints(self.client.exec(batch.exists(["txn"]), raise_on_error=True)),
             [1, 0, 1])

    def bad_command(self):
        batch = Batch(is_atomic=True)
        batch.custom_command([ADD, "txn", "never"]).custom_command(["ECHO"])
        raises(lambda: self.client.exec(batch, raise_on_error=True), "")
        same(int(self.call(EXISTS, "txn", "never")), 0)

    def watch(self):
        for other, want in (("txn", None), ("another", [b"PONG"])):
            self.client.watch(["txn"])
            self.other.custom_command([ADD, other, "b"])
            batch = Batch(is_atomic=True).ping()
            same(self.client.exec(batch, raise_on_error=True), want)

    def commands(self):
        client = self.client
        self.call(ADD, "key", "a")
        same([client.type("key").decode(), client.exists(["key", "gone"])],
             [TYPE, 1])
        assert client.expire("key", 100) and client.persist("key")
        client.rename("key", "renamed")
        assert client.copy("renamed", "key")
        same(client.delete(["key", "renamed"]), 2)
        same(client.dbsize(), 4)

    def calls(self):
        kind = bool if DIALECT == "redis" and self.protocol == 3 else int
        same(self.call("BF.RESERVE", "b", "0.01", "1000"), "OK")
        raises(lambda: self.call("BF.RESERVE", "b", "0.01", "1000"), "item exists")
        got = [self.call("BF.ADD", "b", "foo"), self.call("BF.ADD", "b", "foo"),
               *self.call("BF.MADD", "b", "foo", "bar"),
               *self.call("BF.MEXISTS", "b", "foo", "no")]
        same(ints(got), [1, 0, 0, 1, 1, 0])
        same({type(v) for v in got}, {kind})
        same(self.call("BF.CARD", "b"), 2)

    def info(self):
        got = self.call("BF.INFO", "b")
        modern = DIALECT == "redis" and self.protocol == 3
        same(len(got), 5 if modern else 10 if DIALECT == "redis" else 16)
        same(as_dict(got)[b"Capacity"], 1000)

    def full(self):
        self.call("BF.RESERVE", "f", "1e-9", "1", "NONSCALING")
        raises(lambda: self.call("BF.MADD", "f", "a", "b"), "filter is full")


def pubsub():
    """It subscribes when told to, reads with get_pubsub_message()."""
    modes = GlideClientConfiguration.PubSubChannelModes
    listening = GlideClient.create(config(
        pubsub_subscriptions=GlideClientConfiguration.PubSubSubscriptions(
            {modes.Exact: {"always"}}, None, None)))
    other = GlideClient.create(config())

    def heard(channel, message, pattern=None):
        got = listening.get_pubsub_message()
        same([got.channel, got.message, got.pattern],
             [channel, message, pattern])

    def exact():
        same(other.publish("first", "always"), 1)
        heard(b"always", b"first")
        listening.subscribe({"news"}, 5000)
        same(other.publish("hello", "news"), 1)
        heard(b"news", b"hello")
        listening.unsubscribe({"news"}, 5000)
        same(other.publish("nobody", "news"), 0)

    def pattern():
        listening.psubscribe({"news.*"}, 5000)
        same(other.publish("hello", "news.today"), 1)
        heard(b"news.today", b"hello", b"news.*")
        listening.punsubscribe({"news.*"}, 5000)
        until(lambda: other.publish("nobody", "news.today") == 0, "unsubscribed")

    check.check("pubsub", 3, "subscribe", exact)
    check.check("pattern", 3, "psubscribe", pattern)
    listening.close()
    other.close()


Logger.init(LogLevel.OFF)  # It would tell of every error reply.
note("its default is RESP3")
Session(3).run()
pubsub()
Session(2, protocol=ProtocolVersion.RESP2).run()
lacks("cache", "it keeps GET, MGET, HGETALL and SMEMBERS only")
if not BLOOM:
    lacks("bloom", "redis-server stands in")
check.finish()
