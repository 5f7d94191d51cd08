// SPDX-License-Identifier: BSD-3-Clause
//
// jedis with Sentinels through failovers (README.md): adds, waits for two
// replicas, and counts.

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisSentinelClient;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisException;

final class FailoverJedis {
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(20);

    private final String key;
    private final RedisSentinelClient client;
    private final List<String> acked = new ArrayList<>();
    private int tried;
    private int errors;
    private long last = System.nanoTime();
    private long longest;

    private FailoverJedis(String key, Set<HostAndPort> sentinels) {
        this.key = key;
        RedisSentinelClient.Builder builder = RedisSentinelClient.builder();
        builder.masterName("bloom").sentinels(sentinels);
        client = builder.build();
    }

    private static ProtocolCommand word(String name) {
        return () -> name.getBytes(UTF_8);
    }

    /** A connection that wrote nothing waits for nothing: what an earlier try of
     *  the same item had added already does not count. */
    private void add() {
        List<Object> got;
        tried++;
        try (Pipeline pipe = client.pipelined()) {
            pipe.sendCommand(word(Check.add()), key, "" + tried);
            pipe.sendCommand(word("WAIT"), "2", "1000");
            got = pipe.syncAndReturnAll();
        }
        for (Object one : got) {
            if (one instanceof JedisException problem) {
                throw problem;
            }
        }
        if (Check.number(got.get(0)) == 1 && Check.number(got.get(1)) >= 2) {
            long now = System.nanoTime();
            longest = Math.max(longest, now - last);
            last = now;
            acked.add("" + tried);
        }
    }

    private void run(AtomicBoolean over) throws InterruptedException {
        while (!over.get()) {
            try {
                add();
            } catch (JedisException problem) {
                errors++;
                Thread.sleep(20);
            }
            Thread.sleep(5);
        }
    }

    private void goesOn() {
        Check.same(!acked.isEmpty()
            && System.nanoTime() - last < TimeUnit.SECONDS.toNanos(2), true);
        Check.same(longest < PATIENCE_NS, true);
    }

    private void hasAll() {
        String name = Check.bloom ? "BF.MEXISTS" : "SMISMEMBER";
        for (int at = 0; at < acked.size(); at += 500) {
            List<String> items = acked.subList(at, Math.min(at + 500, acked.size()));
            List<?> got = (List<?>) client.sendCommand(word(name), Stream.concat(
                Stream.of(key), items.stream()).toArray(String[]::new));
            Check.same(Check.sum(got), (long) items.size());
        }
    }

    public static void main(String[] words) throws InterruptedException {
        Check.start(words);
        Check.note("jedis 8");
        Set<HostAndPort> sentinels = new HashSet<>();
        sentinels.add(new HostAndPort("127.0.0.1", Check.port));
        for (int i = 3; i < words.length; i++) {
            sentinels.add(new HostAndPort("127.0.0.1", Integer.parseInt(words[i])));
        }
        AtomicBoolean over = new AtomicBoolean();
        Thread reader = new Thread(() -> {
            try {
                System.in.readAllBytes();
            } catch (IOException problem) {
                Check.note(problem.toString());
            }
            over.set(true);
        });
        reader.setDaemon(true);
        reader.start();
        FailoverJedis writer = new FailoverJedis(words[2], sentinels);
        writer.run(over);
        Check.run("failover", 3, "goes on", writer::goesOn);
        Check.run("failover", 3, "nothing lost", writer::hasAll);
        Check.note(String.format(Locale.ROOT,
            "%d acknowledged by two, %d errors, longest wait %.1f s",
            writer.acked.size(), writer.errors, writer.longest / 1e9));
        Check.finish();
    }
}
