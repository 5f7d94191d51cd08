// SPDX-License-Identifier: BSD-3-Clause
//
// What the Java programs share: the words on the command line, and the lines
// that the driver reads (README.md).

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.TrustManagerFactory;

final class Check {
    interface Body {
        void run() throws Exception;
    }

    interface Condition {
        boolean holds() throws Exception;
    }

    static int port;
    /** The file of the authority that signed the server's certificate; plain TCP
     *  without it. */
    static final String CA = System.getenv("BLOOMERY_CA");
    static String dialect;
    /** False where redis-server stands in for the server; there a set stands in
     *  for a filter: SADD and its like answer as BF.ADD and its like do. */
    static boolean bloom;
    static String type;
    private static boolean failed;

    static void start(String[] words) {
        port = Integer.parseInt(words[0]);
        dialect = words[1];
        bloom = !dialect.equals("redis-server");
        type = bloom ? dialect.equals("valkey") ? "bloomfltr" : "MBbloom--" : "set";
    }

    static String add() {
        return bloom ? "BF.ADD" : "SADD";
    }

    static String exists() {
        return bloom ? "BF.EXISTS" : "SISMEMBER";
    }

    static String card() {
        return bloom ? "BF.CARD" : "SCARD";
    }

    static void run(String area, int protocol, String what, Body body) {
        String label = area + " RESP" + protocol + " " + what;
        try {
            CompletableFuture.runAsync(() -> {
                try {
                    body.run();
                } catch (Exception problem) {
                    throw new RuntimeException(problem);
                }
            }).get(10, TimeUnit.SECONDS);
            System.out.println("ok " + label);
        } catch (Exception problem) {
            failed = true;
            System.out.println("not ok " + label + ": " + describe(problem));
        }
    }

    private static String describe(Throwable problem) {
        if (problem instanceof TimeoutException) {
            return "no answer in 10 s";
        }
        while (problem.getCause() != null) {
            problem = problem.getCause();
        }
        String where = Arrays.stream(problem.getStackTrace())
            .filter(x -> x.getClassName().startsWith("Check")
                && !x.getClassName().equals("Check"))
            .findFirst().map(Object::toString).orElse("");
        return (problem + " " + where).replace("\n", " ");
    }

    static void same(Object got, Object want) {
        if (!Objects.deepEquals(got, want)) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }

    static void fails(String text, Body body) {
        try {
            body.run();
        } catch (Exception problem) {
            if (String.valueOf(problem.getMessage()).contains(text)) {
                return;
            }
            throw new AssertionError("said " + problem, problem);
        }
        throw new AssertionError("no error, want " + text);
    }

    /** Asks again until it is so; with a deadline. */
    static void until(String what, Condition condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
        while (!condition.holds()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("never: " + what);
            }
            Thread.sleep(2);
        }
    }

    /** 1 and 0 from a number or a boolean, which may be alone in a list. */
    static long number(Object got) {
        if (got instanceof List<?> list && list.size() == 1) {
            return number(list.get(0));
        }
        return got instanceof Boolean yes ? (yes ? 1 : 0) : (Long) got;
    }

    static long sum(Collection<?> values) {
        return values.stream().mapToLong(Check::number).sum();
    }

    /** Trusts the authority of this file only. */
    static TrustManagerFactory trust(String path) {
        try (InputStream file = new FileInputStream(path)) {
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            store.setCertificateEntry("authority",
                CertificateFactory.getInstance("X.509").generateCertificate(file));
            TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
            trust.init(store);
            return trust;
        } catch (IOException | GeneralSecurityException problem) {
            throw new IllegalStateException(problem);
        }
    }

    static void note(String text) {
        System.out.println("note " + text);
    }

    static void lacks(String area, String why) {
        System.out.println("lacks " + area + " " + why);
    }

    /** What listeners were told, in order. */
    static final class Inbox {
        private final BlockingQueue<String> lines = new ArrayBlockingQueue<>(100);

        void put(String... words) {
            lines.add(String.join(" ", words));
        }

        void next(String want) throws InterruptedException {
            same(lines.poll(5, TimeUnit.SECONDS), want);
        }
    }

    static void finish() {
        if (!bloom) {
            lacks("bloom", "redis-server stands in");
        }
        System.out.println("end");
        System.out.flush();
        Runtime.getRuntime().halt(failed ? 1 : 0);
    }
}
