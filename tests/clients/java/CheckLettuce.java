// SPDX-License-Identifier: BSD-3-Clause
//
// lettuce with its typed BF helpers: with its defaults (RESP3), then in RESP2.
// Its cache reads with GET, so a BF read is put into the cache by hand and the
// server must have it evicted.

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.SslOptions;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.probabilistic.BfInfoValue;
import io.lettuce.core.probabilistic.arguments.BfInsertArgs;
import io.lettuce.core.probabilistic.arguments.BfReserveArgs;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import io.lettuce.core.support.ConnectionPoolSupport;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.CacheFrontend;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.commons.pool2.impl.GenericObjectPool;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;

final class CheckLettuce {
    private final int protocol;
    private final RedisClient client;
    private final StatefulRedisConnection<String, String> connection;
    private final RedisCommands<String, String> sync;
    private final RedisCommands<String, String> other;

    private CheckLettuce(int protocol) {
        this.protocol = protocol;
        ClientOptions.Builder options = ClientOptions.builder();
        RedisURI server = RedisURI.create("127.0.0.1", Check.port);
        if (Check.CA != null) {
            server.setSsl(true);
            options.sslOptions(SslOptions.builder()
                .trustManager(new File(Check.CA)).build());
        }
        if (protocol == 2) {
            options.protocolVersion(ProtocolVersion.RESP2);
        }
        client = RedisClient.create(server);
        client.setOptions(options.build());
        connection = client.connect();
        sync = connection.sync();
        other = client.connect().sync();
    }

    private static long add(RedisCommands<String, String> on, String key, String item) {
        return Check.bloom ? Check.number(on.bfAdd(key, item)) : on.sadd(key, item);
    }

    private static long exists(RedisCommands<String, String> on, String key,
        String item) {
        return Check.number(Check.bloom ? on.bfExists(key, item)
            : on.sismember(key, item));
    }

    private long card(String key) {
        return Check.bloom ? sync.bfCard(key) : sync.scard(key);
    }

    private void check(String area, String what, Check.Body body) {
        Check.run(area, protocol, what, body);
    }

    private void connect() {
        check("connect", "ping", () -> {
            Check.same(sync.ping(), "PONG");
            Check.same(sync.echo("x"), "x");
            Check.same(sync.flushall(), "OK");
            Check.same(sync.info().contains("redis_mode:standalone"), true);
            Check.same(sync.configGet("maxmemory"), Map.of("maxmemory", "0"));
            String info = sync.clientInfo();
            Check.same(!Check.bloom || info.contains("lib-name=Lettuce")
                && info.contains("resp=" + protocol), true);
        });
        check("pool", "threads", () -> {
            GenericObjectPoolConfig<StatefulRedisConnection<String, String>> config =
                new GenericObjectPoolConfig<>();
            config.setMaxTotal(4);
            try (GenericObjectPool<StatefulRedisConnection<String, String>> pool =
                ConnectionPoolSupport.createGenericObjectPool(client::connect, config)) {
                List<CompletableFuture<Long>> work = IntStream.range(0, 8).mapToObj(w ->
                    CompletableFuture.supplyAsync(() -> borrow(pool))).toList();
                Check.same(work.stream().mapToLong(CompletableFuture::join).sum(),
                    card("pool"));
            }
        });
        check("pipeline", "thousand", () -> {
            RedisAsyncCommands<String, String> async = connection.async();
            List<RedisFuture<?>> sent = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                String item = "" + i % 500;
                sent.add(Check.bloom ? async.bfAdd("pipe", item)
                    : async.sadd("pipe", item));
            }
            List<Object> got = new ArrayList<>();
            for (RedisFuture<?> one : sent) {
                got.add(one.get(5, TimeUnit.SECONDS));
            }
            Check.same(Check.sum(got.subList(500, 1000)), 0L);
            Check.same(Check.sum(got), card("pipe"));
        });
    }

    private static long borrow(
        GenericObjectPool<StatefulRedisConnection<String, String>> pool) {
        long sum = 0;
        for (int i = 0; i < 50; i++) {
            try (StatefulRedisConnection<String, String> one = pool.borrowObject()) {
                sum += add(one.sync(), "pool", "" + i);
            } catch (Exception problem) {
                throw new IllegalStateException(problem);
            }
        }
        return sum;
    }

    private void transactions() {
        check("transaction", "exec", () -> {
            // It can not read a boolean within EXEC, from RedisBloom neither.
            boolean booleans = Check.dialect.equals("redis") && protocol == 3;
            if (booleans) {
                Check.note("its transactions can not read booleans");
                add(other, "txn", "a");
            }
            sync.multi();
            for (int i = 0; i < 2; i++) {
                if (booleans) {
                    sync.bfCard("txn");
                } else if (Check.bloom) {
                    sync.bfAdd("txn", "a");
                } else {
                    sync.sadd("txn", "a");
                }
            }
            sync.exists("txn");
            Check.same(sync.exec().stream().map(Check::number).toList(),
                List.of(1L, booleans ? 1L : 0L, 1L));
        });
        check("transaction", "bad command", () -> {
            sync.multi();
            if (Check.bloom) {
                sync.bfAdd("txn", "never");
            } else {
                sync.sadd("txn", "never");
            }
            sync.dispatch(CommandType.ECHO, new StatusOutput<>(StringCodec.UTF8));
            Check.fails("EXECABORT", () -> sync.exec());
            Check.same(exists(sync, "txn", "never"), 0L);
        });
        for (String changed : List.of("txn", "another")) {
            check("watch", "while " + changed + " changes", () -> {
                sync.watch("txn");
                add(other, changed, "b");
                sync.multi();
                sync.ping();
                TransactionResult got = sync.exec();
                Check.same(got.wasDiscarded(), changed.equals("txn"));
                Check.same(got.size(), changed.equals("txn") ? 0 : 1);
            });
        }
    }

    private void pubsub() {
        StatefulRedisPubSubConnection<String, String> listening = client.connectPubSub();
        Check.Inbox inbox = new Check.Inbox();
        listening.addListener(new RedisPubSubAdapter<>() {
            @Override
            public void message(String channel, String text) {
                inbox.put(channel, text);
            }

            @Override
            public void message(String pattern, String channel, String text) {
                inbox.put(pattern, channel, text);
            }
        });
        check("pubsub", "subscribe", () -> {
            listening.sync().subscribe("news", "more");
            Check.until("subscribed", () -> other.pubsubNumsub("more").get("more") == 1);
            Check.same(other.publish("news", "hello"), 1L);
            inbox.next("news hello");
            String pong = listening.sync().ping();
            if (protocol == 3) {
                Check.same(pong, "PONG");
                Check.same(listening.sync().echo("between"), "between");
            }
            listening.sync().unsubscribe("news", "more");
            Check.until("unsubscribed", () -> other.pubsubNumsub("more").get("more") == 0);
            Check.same(other.publish("news", "nobody"), 0L);
        });
        check("pattern", "psubscribe", () -> {
            listening.sync().psubscribe("news.*");
            Check.until("subscribed", () -> other.pubsubNumpat() == 1);
            Check.same(other.publish("news.today", "hello"), 1L);
            inbox.next("news.* news.today hello");
            listening.sync().punsubscribe("news.*");
            Check.until("unsubscribed", () -> other.pubsubNumpat() == 0);
        });
        listening.close();
    }

    private void keys() {
        check("keys", "commands", () -> {
            add(sync, "key", "a");
            Check.same(sync.type("key"), Check.type);
            Check.same(sync.expire("key", 100), true);
            Check.same(sync.persist("key"), true);
            Check.same(sync.rename("key", "renamed"), "OK");
            Check.same(sync.copy("renamed", "key"), true);
            Check.same(sync.del("key", "renamed", "gone"), 2L);
            TreeSet<String> seen = new TreeSet<>();
            ScanIterator.scan(sync).forEachRemaining(seen::add);
            Check.same(List.copyOf(seen), List.of("another", "pipe", "pool", "txn"));
        });
    }

    private void bloom() {
        check("bloom", "reserve", () -> {
            Check.same(sync.bfReserve("b", 0.01, 1000), "OK");
            Check.same(sync.bfReserve("e", 0.01, 1000,
                BfReserveArgs.Builder.expansion(4)), "OK");
            Check.same(sync.bfReserve("n", 0.01, 1000,
                BfReserveArgs.Builder.nonScaling()), "OK");
            Check.fails("item exists", () -> sync.bfReserve("b", 0.01, 1000));
        });
        check("bloom", "add exists", () -> {
            Check.same(sync.bfAdd("b", "foo"), true);
            Check.same(sync.bfAdd("b", "foo"), false);
            Check.same(sync.bfMAdd("b", "foo", "bar", "baz"), List.of(false, true, true));
            Check.same(sync.bfExists("b", "foo"), true);
            Check.same(sync.bfMExists("b", "foo", "no", "baz"),
                List.of(true, false, true));
        });
        check("bloom", "insert", () -> {
            Check.same(sync.bfInsert("i", BfInsertArgs.Builder.capacity(500).error(0.001),
                "x", "y", "x"), List.of(true, true, false));
            Check.fails("not found", () -> sync.bfInsert("gone",
                BfInsertArgs.Builder.noCreate(), "z"));
        });
        check("bloom", "card info", () -> {
            Check.same(sync.bfCard("b"), 3L);
            BfInfoValue info = sync.bfInfo("b");
            Check.same(List.of(info.getCapacity(), info.getNumberOfItemsInserted(),
                info.getNumberOfFilters(), info.getExpansionRate()),
                List.of(1000L, 3L, 1L, 2L));
            Check.same(info.getRawInfo().size(), Check.dialect.equals("valkey") ? 8 : 5);
            Check.same(sync.bfInfo("n").getExpansionRate(), null);
            Check.fails("not found", () -> sync.bfInfo("missing"));
        });
        check("bloom", "full", () -> {
            sync.bfReserve("f", 1e-9, 1, BfReserveArgs.Builder.nonScaling());
            Check.same(sync.bfAdd("f", "a"), true);
            Check.fails("non scaling filter is full", () -> sync.bfAdd("f", "b"));
            List<Boolean> got = sync.bfMAdd("f", "a", "b", "c");
            Check.same(got, Arrays.asList(false, null));
        });
    }

    private void cache() {
        check("cache", "invalidation", () -> {
            StatefulRedisConnection<String, String> tracking = client.connect();
            Map<String, String> map = new ConcurrentHashMap<>();
            CacheFrontend<String, String> cache = ClientSideCaching.enable(
                CacheAccessor.forMap(map), tracking, TrackingArgs.Builder.enabled());
            for (String change : List.of("x", "y", "DEL")) {
                String read = "" + exists(tracking.sync(), "c", "x");
                map.put("c", read);
                Check.same(cache.get("c"), read);
                if (change.equals("DEL")) {
                    other.del("c");
                } else {
                    add(other, "c", change);
                }
                Check.until("a change evicts: " + change, map::isEmpty);
            }
            tracking.close();
        });
    }

    public static void main(String[] words) {
        Check.start(words);
        Check.note("lettuce 7");
        for (int protocol : new int[] {3, 2}) {
            CheckLettuce session = new CheckLettuce(protocol);
            session.connect();
            session.transactions();
            session.pubsub();
            session.keys();
            if (Check.bloom) {
                session.bloom();
            }
            if (protocol == 3) {
                session.cache();
            }
        }
        Check.finish();
    }
}
