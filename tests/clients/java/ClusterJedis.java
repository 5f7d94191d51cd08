// SPDX-License-Identifier: BSD-3-Clause
//
// jedis in a cluster (README.md).

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import redis.clients.jedis.BuilderFactory;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisException;

final class ClusterJedis {
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(20);

    private final String prefix;
    private final RedisClusterClient client;
    private final Map<String, List<String>> acked = new HashMap<>();
    private int tried;
    private int errors;
    private long last = System.nanoTime();
    private long longest;

    private ClusterJedis(String prefix, HostAndPort node) {
        this.prefix = prefix;
        client = RedisClusterClient.builder().nodes(Set.of(node)).build();
    }

    private static ProtocolCommand word(String name) {
        return () -> name.getBytes(UTF_8);
    }

    private static CommandArguments words(String name, String key, String... items) {
        CommandArguments words = new CommandArguments(word(name)).key(key);
        for (String item : items) {
            words.add(item);
        }
        return words;
    }

    private Object call(String name, String key, String... items) {
        return client.executeCommand(new CommandObject<>(words(name, key, items),
            BuilderFactory.RAW_OBJECT));
    }

    private long one(String name, String key, String item) {
        return Check.number(call(name, key, item));
    }

    private void readsAndWrites() {
        for (int n = 0; n < 100; n++) {
            String key = prefix + "-once-" + n;
            Check.same(one(Check.add(), key, "a"), 1L);
            Check.same(one(Check.add(), key, "a"), 0L);
            Check.same(one(Check.exists(), key, "a"), 1L);
            Check.same(one(Check.exists(), key, "b"), 0L);
        }
    }

    private void manyItems() {
        String key = prefix + "-many";
        Object got = call(Check.bloom ? "BF.MADD" : "SADD", key, "a", "b", "c");
        Check.same(got instanceof List<?> list ? Check.sum(list) : got, 3L);
        List<?> there = (List<?>) call(has(), key, "c", "no", "a");
        Check.same(there.stream().map(Check::number).toList(), List.of(1L, 0L, 1L));
    }

    private static String has() {
        return Check.bloom ? "BF.MEXISTS" : "SMISMEMBER";
    }

    private void pipeline() {
        for (String name : List.of(Check.add(), Check.exists())) {
            List<Response<Object>> got = new ArrayList<>();
            try (var pipe = client.pipelined()) {
                for (int n = 0; n < 50; n++) {
                    got.add(pipe.executeCommand(new CommandObject<>(
                        words(name, prefix + "-piped-" + n, "a"),
                        BuilderFactory.RAW_OBJECT)));
                }
            }
            Check.same(Check.sum(got.stream().map(Response::get).toList()), 50L);
        }
    }

    private void run(AtomicBoolean over) throws InterruptedException {
        last = System.nanoTime();
        while (!over.get()) {
            String key = prefix + "-" + (++tried % 20);
            try {
                call(Check.add(), key, "" + tried);
                long now = System.nanoTime();
                longest = Math.max(longest, now - last);
                last = now;
                acked.computeIfAbsent(key, k -> new ArrayList<>()).add("" + tried);
            } catch (JedisException problem) {
                errors++;
                Thread.sleep(20);
            }
            Thread.sleep(5);
        }
    }

    private void goesOn() {
        Check.same(System.nanoTime() - last < TimeUnit.SECONDS.toNanos(2), true);
        Check.same(longest < PATIENCE_NS, true);
    }

    private void hasAll() {
        acked.forEach((key, items) -> {
            for (int at = 0; at < items.size(); at += 500) {
                List<String> part = items.subList(at, Math.min(at + 500, items.size()));
                List<?> got = (List<?>) call(has(), key, part.toArray(String[]::new));
                Check.same(Check.sum(got), (long) part.size());
            }
        });
    }

    public static void main(String[] words) throws InterruptedException {
        Check.start(words);
        Check.note("jedis 8");
        ClusterJedis writer = new ClusterJedis(words[2],
            new HostAndPort("127.0.0.1", Check.port));
        Check.run("cluster", 3, "reads and writes", writer::readsAndWrites);
        Check.run("cluster", 3, "many items", writer::manyItems);
        Check.run("cluster", 3, "pipeline", writer::pipeline);
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
        writer.run(over);
        Check.run("cluster", 3, "goes on", writer::goesOn);
        Check.run("cluster", 3, "nothing lost", writer::hasAll);
        Check.note(String.format(Locale.ROOT,
            "%d acknowledged, %d errors, longest wait %.2f s",
            writer.acked.values().stream().mapToInt(List::size).sum(),
            writer.errors, writer.longest / 1e9));
        Check.finish();
    }
}
