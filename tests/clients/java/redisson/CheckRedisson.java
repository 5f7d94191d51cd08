// SPDX-License-Identifier: BSD-3-Clause
//
// Redisson, whose objects are scripts: those must fail at once and say why. BF
// commands go by its executor, and so by its retries.

import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.RBatch;
import org.redisson.api.RTopic;
import org.redisson.api.RedissonClient;
import org.redisson.api.options.KeysScanOptions;
import org.redisson.client.codec.StringCodec;
import org.redisson.client.protocol.RedisStrictCommand;
import org.redisson.config.Config;
import org.redisson.config.Protocol;
import org.redisson.config.SingleServerConfig;
import org.redisson.config.ValkeyCapability;

final class CheckRedisson {
    private final int protocol;
    private final RedissonClient client;

    private CheckRedisson(int protocol) {
        this.protocol = protocol;
        client = Redisson.create(config(Check.port));
    }

    private Config config(int port) {
        Config config = new Config();
        SingleServerConfig server = config.useSingleServer()
            .setAddress((Check.CA != null ? "rediss" : "redis") + "://127.0.0.1:" + port)
            .setConnectionMinimumIdleSize(2).setSubscriptionConnectionMinimumIdleSize(1);
        if (Check.CA != null) {
            server.setSslTrustManagerFactory(Check.trust(Check.CA));
        }
        return config.setProtocol(protocol == 2 ? Protocol.RESP2 : Protocol.RESP3)
            .setThreads(2).setNettyThreads(2);
    }

    private static Object call(RedissonClient on, String name, String key,
                               Object... words) {
        Object[] all = new Object[words.length + 1];
        all[0] = key;
        System.arraycopy(words, 0, all, 1, words.length);
        return ((Redisson) on).getCommandExecutor().writeAsync(key, StringCodec.INSTANCE,
            new RedisStrictCommand<>(name), all).toCompletableFuture().join();
    }

    private void check(String area, String what, Check.Body body) {
        Check.run(area, protocol, what, body);
    }

    private long add(String key, String item) {
        return Check.number(call(client, Check.add(), key, item));
    }

    private void connect() {
        check("connect", "flush", () -> {
            client.getKeys().flushall();
            Check.same(client.getKeys().count(), 0L);
        });
        check("keys", "scan, exists, delete", () -> {
            for (int i = 0; i < 100; i++) {
                add("key:" + i, "a");
            }
            Check.same(client.getKeys().countExists("key:1", "key:2", "none"), 2L);
            Check.same(client.getKeys().getKeysStream(
                KeysScanOptions.defaults().pattern("key:*").chunkSize(7)).count(), 100L);
            Check.same(client.getKeys().delete("key:1", "none"), 1L);
            Check.same(client.getKeys().deleteByPattern("key:*"), 99L);
        });
        Check.lacks("watch", "its transactions are its own");
        Check.lacks("cache", "its local caches are maps");
        Check.lacks("pool", "its pool is in each check");
    }

    private void batches() {
        for (boolean atomic : new boolean[] {false, true}) {
            check(atomic ? "transaction" : "pipeline", "batch", () -> {
                add("batch", "a");
                RBatch batch = client.createBatch(BatchOptions.defaults().executionMode(
                    atomic ? BatchOptions.ExecutionMode.REDIS_WRITE_ATOMIC
                        : BatchOptions.ExecutionMode.IN_MEMORY));
                batch.getKeys().countExistsAsync("batch", "none");
                batch.getKeys().deleteAsync("batch");
                batch.getKeys().countExistsAsync("batch");
                Check.same(batch.execute().getResponses(), List.of(1L, 1L, 0L));
            });
        }
    }

    private void topics() {
        Check.Inbox inbox = new Check.Inbox();
        check("pubsub", "topic", () -> {
            RTopic topic = client.getTopic("news", StringCodec.INSTANCE);
            topic.addListener(String.class, (on, text) -> inbox.put(on.toString(), text));
            Check.same(topic.publish("hello"), 1L);
            inbox.next("news hello");
            topic.removeAllListeners();
        });
        check("pattern", "topic", () -> {
            client.getPatternTopic("new*", StringCodec.INSTANCE).addListener(String.class,
                (pattern, on, text) -> inbox.put(pattern.toString(), on.toString(), text));
            client.getTopic("newer", StringCodec.INSTANCE).publish("x");
            inbox.next("new* newer x");
            client.getPatternTopic("new*").removeAllListeners();
        });
    }

    /** Redisson repeats what seems to be a missing script for ever. */
    private void scripts() {
        String why = "scripts are not supported by this server";
        check("bloom", "expire is refused at once", () -> {
            add("expire", "a");
            Check.fails(why, () -> client.getBucket("expire").expire(Duration.ofHours(1)));
        });
        check("bloom", "locks are refused at once", () -> {
            Check.fails(why, () -> client.getLock("lock").lock());
            Check.fails(why, () -> client.getLock("lock").tryLock(1, TimeUnit.SECONDS));
        });
        check("bloom", "its filters are refused at once", () ->
            Check.fails(why, () -> client.getBloomFilter("own").tryInit(100, 0.01)));
    }

    private void filters() {
        check("bloom", "add, exists", () -> {
            Check.same(call(client, "BF.RESERVE", "filter", "0.01", "1000"), "OK");
            Check.same(add("filter", "a"), 1L);
            Check.same(add("filter", "a"), 0L);
            Check.same(Check.number(call(client, "BF.EXISTS", "filter", "b")), 0L);
            Check.fails("exists", () ->
                call(client, "BF.RESERVE", "filter", "0.01", "1000"));
        });
        if (System.getenv("BLOOMERY_REPLICA") != null) {
            check("connect", "redirect", this::redirect);
        }
    }

    /** It says CLIENT CAPA redirect, but does not follow: its caller gets the
     *  replica's answer. */
    private void redirect() {
        int replica = Integer.parseInt(System.getenv("BLOOMERY_REPLICA"));
        RedissonClient sent = Redisson.create(config(replica)
            .setValkeyCapabilities(EnumSet.of(ValkeyCapability.REDIRECT)));
        try {
            Check.fails("REDIRECT 127.0.0.1:" + Check.port, () ->
                call(sent, "BF.ADD", "sent", "a"));
        } finally {
            sent.shutdown(0, 1, TimeUnit.SECONDS);
        }
    }

    public static void main(String[] words) {
        Check.start(words);
        for (int protocol : new int[] {2, 3}) {
            CheckRedisson one = new CheckRedisson(protocol);
            one.connect();
            one.batches();
            one.topics();
            if (Check.bloom) {
                one.scripts();
                one.filters();
            }
        }
        Check.finish();
    }
}
