// SPDX-License-Identifier: BSD-3-Clause
//
// jedis with its typed BF helpers: with its defaults, then in RESP2. Its cache
// keeps EXISTS and TYPE by itself, and BF reads if it is told that they may be.

import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.bloom.BFInsertParams;
import redis.clients.jedis.bloom.BFReserveParams;
import redis.clients.jedis.bloom.RedisBloomProtocol.BloomFilterCommand;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.csc.CacheConfig;
import redis.clients.jedis.csc.DefaultCacheable;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.resps.ScanResult;

final class CheckJedis {
    private static final HostAndPort[] SERVER = new HostAndPort[1];

    private final int protocol;
    private final RedisClient client;
    private final RedisClient other;

    private CheckJedis(int protocol) {
        this.protocol = protocol;
        client = open();
        other = open();
    }

    private RedisClient open() {
        DefaultJedisClientConfig.Builder config = config();
        RedisClient.Builder builder = RedisClient.builder();
        if (protocol == 2) {
            config.resp2();
        }
        return builder.hostAndPort(SERVER[0]).clientConfig(config.build()).build();
    }

    /** The defaults; with an authority, TLS that trusts only that one. */
    private static DefaultJedisClientConfig.Builder config() {
        DefaultJedisClientConfig.Builder config = DefaultJedisClientConfig.builder();
        if (Check.CA != null) {
            SSLParameters parameters = new SSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            config.ssl(true).sslSocketFactory(trusting(Check.CA).getSocketFactory())
                .sslParameters(parameters);
        }
        return config;
    }

    private static SSLContext trusting(String path) {
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, Check.trust(path).getTrustManagers(), null);
            return context;
        } catch (GeneralSecurityException problem) {
            throw new IllegalStateException(problem);
        }
    }

    private static ProtocolCommand word(String name) {
        return () -> name.getBytes(UTF_8);
    }

    private static long call(RedisClient on, String name, String... words) {
        return Check.number(on.sendCommand(word(name), words));
    }

    private void check(String area, String what, Check.Body body) {
        Check.run(area, protocol, what, body);
    }

    private void connect() {
        check("connect", "ping", () -> {
            Check.same(client.ping(), "PONG");
            Check.same(client.flushAll(), "OK");
            Check.same(client.info().contains("redis_mode:standalone"), true);
            List<?> hello = (List<?>) client.sendCommand(word("HELLO"));
            String all = flat(hello);
            Check.same(all.contains("proto=" + protocol), true);
            String info = new String((byte[]) client.sendCommand(word("CLIENT"), "INFO"),
                UTF_8);
            Check.same(!Check.bloom || info.contains("lib-name=jedis"), true);
        });
        check("pool", "threads", () -> {
            RedisClient.Builder builder = RedisClient.builder();
            ConnectionPoolConfig config = new ConnectionPoolConfig();
            config.setMaxTotal(4);
            config.setTestOnBorrow(true);
            builder.hostAndPort(SERVER[0]).clientConfig(config().build())
                .poolConfig(config);
            try (RedisClient pool = builder.build()) {
                List<CompletableFuture<Long>> work = IntStream.range(0, 8).mapToObj(w ->
                    CompletableFuture.supplyAsync(() -> IntStream.range(0, 50)
                        .mapToLong(i -> call(pool, Check.add(), "pool", "" + i)).sum()))
                    .toList();
                Check.same(work.stream().mapToLong(CompletableFuture::join).sum(),
                    call(client, Check.card(), "pool"));
            }
        });
        check("pipeline", "thousand", () -> {
            List<Object> got;
            try (Pipeline pipe = client.pipelined()) {
                for (int i = 0; i < 1000; i++) {
                    pipe.sendCommand(word(Check.add()), "pipe", "" + i % 500);
                }
                got = pipe.syncAndReturnAll();
            }
            Check.same(Check.sum(got.subList(500, 1000)), 0L);
            Check.same(Check.sum(got), call(client, Check.card(), "pipe"));
        });
    }

    /** HELLO as text: its keys and values, or its map entries, one after the other. */
    private static String flat(List<?> hello) {
        StringBuilder all = new StringBuilder();
        for (Object part : hello) {
            String text = part instanceof byte[] b ? new String(b, UTF_8)
                : part instanceof Map.Entry<?, ?> e ? new String((byte[]) e.getKey(), UTF_8)
                    + "=" + e.getValue() + " " : part + " ";
            all.append(part instanceof byte[] ? text + "=" : text);
        }
        return all.toString();
    }

    private void transactions() {
        check("transaction", "exec", () -> {
            try (AbstractTransaction tx = client.multi()) {
                tx.sendCommand(word(Check.add()), "txn", "a");
                tx.sendCommand(word(Check.add()), "txn", "a");
                tx.exists("txn");
                Check.same(tx.exec().stream().map(Check::number).toList(),
                    List.of(1L, 0L, 1L));
            }
        });
        check("transaction", "bad command", () -> {
            try (AbstractTransaction tx = client.multi()) {
                tx.sendCommand(word(Check.add()), "txn", "never");
                tx.sendCommand(word("ECHO"), new String[0]);
                Check.fails("EXECABORT", tx::exec);
            }
            Check.same(call(client, Check.exists(), "txn", "never"), 0L);
        });
        for (String changed : List.of("txn", "another")) {
            check("watch", "while " + changed + " changes", () -> {
                try (AbstractTransaction tx = client.transaction(false)) {
                    tx.watch("txn");
                    call(other, Check.add(), changed, "b");
                    tx.multi();
                    tx.exists("txn");
                    Check.same(tx.exec(), changed.equals("txn") ? null : List.of(true));
                }
            });
        }
    }

    private void listen(boolean pattern, String name, String channel, String heard) {
        check(pattern ? "pattern" : "pubsub", "subscribe", () -> {
            Check.Inbox inbox = new Check.Inbox();
            JedisPubSub listener = new JedisPubSub() {
                @Override
                public void onMessage(String from, String text) {
                    inbox.put(from, text);
                }

                @Override
                public void onPMessage(String matched, String from, String text) {
                    inbox.put(matched, from, text);
                }

                @Override
                public void onSubscribe(String to, int count) {
                    inbox.put("subscribed", to, "" + count);
                }

                @Override
                public void onPSubscribe(String to, int count) {
                    inbox.put("subscribed", to, "" + count);
                }

                @Override
                public void onPong(String text) {
                    inbox.put("pong", text);
                }
            };
            CompletableFuture<Void> ended = CompletableFuture.runAsync(() -> {
                if (pattern) {
                    client.psubscribe(listener, name);
                } else {
                    client.subscribe(listener, name);
                }
            });
            inbox.next("subscribed " + name + " 1");
            Check.same(other.publish(channel, "hello"), 1L);
            inbox.next(heard);
            if (pattern) {
                listener.punsubscribe();
            } else {
                listener.unsubscribe();
            }
            ended.join();
            Check.same(other.publish(channel, "nobody"), 0L);
        });
    }

    private void keys() {
        check("keys", "commands", () -> {
            call(client, Check.add(), "key", "a");
            Check.same(client.type("key"), Check.type);
            Check.same(client.expire("key", 100), 1L);
            Check.same(client.persist("key"), 1L);
            Check.same(client.rename("key", "renamed"), "OK");
            Check.same(client.copy("renamed", "key", false), true);
            Check.same(client.del("key", "renamed", "gone"), 2L);
            TreeSet<String> seen = new TreeSet<>();
            String cursor = ScanParams.SCAN_POINTER_START;
            do {
                ScanResult<String> part = client.scan(cursor);
                seen.addAll(part.getResult());
                cursor = part.getCursor();
            } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
            Check.same(List.copyOf(seen), List.of("another", "pipe", "pool", "txn"));
        });
    }

    private void bloom() {
        check("bloom", "reserve", () -> {
            Check.same(client.bfReserve("b", 0.01, 1000), "OK");
            Check.same(client.bfReserve("e", 0.01, 1000,
                BFReserveParams.reserveParams().expansion(4)), "OK");
            Check.same(client.bfReserve("n", 0.01, 1000,
                BFReserveParams.reserveParams().nonScaling()), "OK");
            Check.fails("item exists", () -> client.bfReserve("b", 0.01, 1000));
        });
        check("bloom", "add exists", () -> {
            Check.same(client.bfAdd("b", "foo"), true);
            Check.same(client.bfAdd("b", "foo"), false);
            Check.same(client.bfMAdd("b", "foo", "bar", "baz"),
                List.of(false, true, true));
            Check.same(client.bfExists("b", "foo"), true);
            Check.same(client.bfMExists("b", "foo", "no", "baz"),
                List.of(true, false, true));
        });
        check("bloom", "insert", () -> {
            Check.same(client.bfInsert("i", BFInsertParams.insertParams().capacity(500)
                .error(0.001), "x", "y", "x"), List.of(true, true, false));
            Check.fails("not found", () -> client.bfInsert("gone",
                BFInsertParams.insertParams().noCreate(), "z"));
        });
        check("bloom", "card info", () -> {
            Check.same(client.bfCard("b"), 3L);
            Map<String, Object> info = client.bfInfo("b");
            Check.same(List.of(info.get("Capacity"), info.get("Number of items inserted"),
                info.get("Number of filters"), info.get("Expansion rate")),
                List.of(1000L, 3L, 1L, 2L));
            Check.same(info.size(), Check.dialect.equals("valkey") ? 8 : 5);
            Check.same(client.bfInfo("n").get("Expansion rate"), null);
            Check.fails("not found", () -> client.bfInfo("missing"));
        });
        check("bloom", "full", () -> {
            client.bfReserve("f", 1e-9, 1, BFReserveParams.reserveParams().nonScaling());
            Check.same(client.bfMAdd("f", "a", "b", "c"), Arrays.asList(true, null));
            Check.fails("non scaling filter is full", () -> client.bfAdd("f", "b"));
        });
    }

    private void cache() {
        if (Check.dialect.equals("redis-server")) {
            Check.lacks("cache", "it wants a HELLO of Redis 7.4");
            return;
        }
        check("cache", "invalidation", () -> {
            RedisClient.Builder builder = RedisClient.builder();
            builder.hostAndPort(SERVER[0]).clientConfig(config().resp3().build())
                .cacheConfig(CacheConfig.builder().maxSize(100)
                .cacheable((command, keys) -> command instanceof BloomFilterCommand
                    || DefaultCacheable.INSTANCE.isCacheable(command, keys)).build());
            try (RedisClient cached = builder.build()) {
                Check.same(cached.exists("c"), false);
                Check.same(cached.exists("c"), false);
                Check.same(cached.getCache().getStats().getHitCount(), 1L);
                call(other, Check.add(), "c", "x");
                Check.until("BF.ADD invalidates a read", () -> cached.exists("c"));
                if (Check.bloom) {
                    Check.same(cached.bfExists("c", "y"), false);
                    Check.same(cached.bfExists("c", "y"), false);
                    Check.same(cached.getCache().getStats().getHitCount() >= 2, true);
                    other.bfAdd("c", "y");
                    Check.until("BF.ADD invalidates BF.EXISTS",
                        () -> cached.bfExists("c", "y"));
                }
                other.del("c");
                Check.until("DEL invalidates a read", () -> !cached.exists("c"));
            }
        });
    }

    public static void main(String[] words) {
        Check.start(words);
        SERVER[0] = new HostAndPort("127.0.0.1", Check.port);
        Check.note("jedis 8");
        for (int protocol : new int[] {3, 2}) {
            CheckJedis session = new CheckJedis(protocol);
            session.connect();
            session.transactions();
            session.listen(false, "news", "news", "news hello");
            session.listen(true, "news.*", "news.today", "news.* news.today hello");
            session.keys();
            if (Check.bloom) {
                session.bloom();
            }
            if (protocol == 3) {
                session.cache();
            }
        }
        try (Jedis one = new Jedis(SERVER[0], config().build())) {
            Check.run("connect", 3, "the older class Jedis", () ->
                Check.same(one.echo("x"), "x"));
        }
        Check.finish();
    }
}
