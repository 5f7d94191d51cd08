/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Measures the pauses of a server. It sends one PING every INTERVAL_US
 * microseconds on each of two connections, which the server gives to different
 * loops. With KEYS, two more connections send a BF.ADD of a random item to one
 * of so many keys. The load is small, so that the server's pauses show and not
 * a lack of CPU. Each connection has at most one command in flight, so the
 * longest pause counts once and in full. The program prints one logfmt line per
 * connection, in the order in which it opened them. One more line says how late
 * the program itself woke up, which limits the precision of all times. With
 * FILE, it also writes a line for every reply there: connection, time of
 * sending (CLOCK_MONOTONIC) and duration, in ns. SIGTERM ends it early with the
 * results so far.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load_stats.h"

enum {
    CONNECTIONS = 4,
    PINGS = 2,
    SILENCE_NS = 2000000000,
    SAMPLES_MAX = 1 << 22,
};

struct sample {
    uint64_t sent_ns, took_ns;
    unsigned index;
};

struct conn {
    int fd;
    bool waits; /* a reply is missing */
    uint64_t due_ns, sent_ns;
    uint64_t max_ns, max_at_ns;
    uint64_t errors;
    struct histogram latency;
};

static struct conn conns[CONNECTIONS];
static unsigned count = PINGS; /* of the connections in use */
static const char *prefix = "big";
static uint64_t keys;
static uint64_t interval_ns = 100000;
static uint64_t began_ns;
static struct histogram lateness;
static struct sample *samples; /* NULL: not wanted */
static size_t sample_count;
static volatile sig_atomic_t stopped;
static uint64_t latest_ns;

static void
fail(const char *what)
{
    fprintf(stderr, "pulse: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void
on_sigterm(int number)
{
    (void)number;
    stopped = 1;
}

static int
connect_to(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0 ||
        connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        fail("connect");
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

/* splitmix64 (Steele et al. 2014). */
static uint64_t
random_number(void)
{
    static uint64_t state = 1;
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void
send_command(unsigned index)
{
    struct conn *conn = &conns[index];
    char text[256];
    int len;

    if (index < PINGS) {
        len = snprintf(text, sizeof(text), "*1\r\n$4\r\nPING\r\n");
    } else {
        char key[128];
        int key_len = snprintf(key, sizeof(key), "%s%08jx", prefix,
                               (uintmax_t)(random_number() % keys));

        len = snprintf(text, sizeof(text),
                       "*3\r\n$6\r\nBF.ADD\r\n$%d\r\n%s\r\n$16\r\n%016jx\r\n",
                       key_len, key, (uintmax_t)random_number());
    }
    conn->sent_ns = clock_ns(CLOCK_MONOTONIC);
    if (send(conn->fd, text, (size_t)len, MSG_NOSIGNAL) != len) {
        fail("send");
    }
    conn->waits = true;
    conn->due_ns += interval_ns;
}

/* Replies are one short line, so one read returns one reply. */
static void
take_reply(struct conn *conn)
{
    char text[512];
    ssize_t got = recv(conn->fd, text, sizeof(text), 0);
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    uint64_t took_ns = now - conn->sent_ns;

    if (got <= 0) {
        fail("recv");
    }
    if (text[got - 1] != '\n') {
        return;
    }
    conn->errors += text[0] == '-' ? 1 : 0;
    conn->waits = false;
    histogram_add(&conn->latency, took_ns);
    if (samples != NULL && sample_count < SAMPLES_MAX) {
        samples[sample_count++] = (struct sample){
            .sent_ns = conn->sent_ns,
            .took_ns = took_ns,
            .index = (unsigned)(conn - conns),
        };
    }
    if (took_ns > conn->max_ns) {
        conn->max_ns = took_ns;
        conn->max_at_ns = conn->sent_ns - began_ns;
    }
    if (conn->due_ns < now) { /* missed commands are not sent later */
        conn->due_ns = now - (now - conn->due_ns) % interval_ns + interval_ns;
    }
}

/* Sends the commands that are due. Returns the time of the next one. */
static uint64_t
send_due(uint64_t now, uint64_t end)
{
    uint64_t next = now + SILENCE_NS;

    for (unsigned i = 0; i < count; i++) {
        if (!conns[i].waits && conns[i].due_ns <= now && now < end) {
            send_command(i);
        }
        if (!conns[i].waits && conns[i].due_ns < next) {
            next = conns[i].due_ns;
        }
    }
    return next;
}

/* Records how late the program woke from a sleep until NEXT. */
static void
note_lateness(uint64_t next)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    uint64_t late_ns = now > next ? now - next : 0;

    histogram_add(&lateness, late_ns);
    latest_ns = late_ns > latest_ns ? late_ns : latest_ns;
}

static void
run(double seconds)
{
    struct pollfd fds[CONNECTIONS];
    uint64_t end;

    began_ns = clock_ns(CLOCK_MONOTONIC);
    end = began_ns + (uint64_t)(seconds * 1e9);
    for (unsigned i = 0; i < count; i++) {
        fds[i] = (struct pollfd){ .fd = conns[i].fd, .events = POLLIN };
        conns[i].due_ns = began_ns + i * interval_ns / count;
    }
    for (;;) {
        uint64_t now = clock_ns(CLOCK_MONOTONIC);
        uint64_t next;
        uint64_t wait;
        struct timespec pause;
        bool waits = false;

        end = stopped ? began_ns : end;
        next = send_due(now, end);
        wait = next > now ? next - now : 0;
        pause.tv_sec = (time_t)(wait / 1000000000);
        pause.tv_nsec = (long)(wait % 1000000000);

        for (unsigned i = 0; i < count; i++) {
            waits = waits || conns[i].waits;
        }
        if (now >= end && !waits) {
            return;
        }
        if (ppoll(fds, count, &pause, NULL) < 0) {
            if (errno != EINTR) {
                fail("ppoll");
            }
            continue;
        }
        note_lateness(next);
        for (unsigned i = 0; i < count; i++) {
            if (fds[i].revents != 0) {
                take_reply(&conns[i]);
            }
        }
    }
}

static void
write_samples(const char *path)
{
    FILE *file = fopen(path, "w");

    if (file == NULL) {
        fail(path);
    }
    for (size_t i = 0; i < sample_count; i++) {
        fprintf(file, "%u %ju %ju\n", samples[i].index,
                (uintmax_t)samples[i].sent_ns, (uintmax_t)samples[i].took_ns);
    }
    if (fclose(file) != 0) {
        fail(path);
    }
}

int
main(int argc, char **argv)
{
    if (argc < 3 || argc > 7) {
        fputs("usage: pulse PORT SECONDS [INTERVAL_US [KEYS [PREFIX "
              "[FILE]]]]\n",
              stderr);
        return 2;
    }
    if (argc > 3) {
        interval_ns = strtoull(argv[3], NULL, 10) * 1000;
    }
    if (argc > 4) {
        keys = strtoull(argv[4], NULL, 10);
        count = keys > 0 ? CONNECTIONS : PINGS;
    }
    if (argc > 5) {
        prefix = argv[5];
    }
    if (argc > 6) {
        samples = malloc(SAMPLES_MAX * sizeof(*samples));
        if (samples == NULL) {
            fail("memory");
        }
    }
    (void)signal(SIGTERM, on_sigterm);
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    for (unsigned i = 0; i < count; i++) {
        conns[i].fd = connect_to((uint16_t)strtoul(argv[1], NULL, 10));
    }
    run(strtod(argv[2], NULL));
    for (unsigned i = 0; i < count; i++) {
        const struct conn *conn = &conns[i];

        printf("connection=%u command=%s replies=%ju p50_us=%.1f p99_us=%.1f "
               "max_us=%.1f max_at_ms=%.1f errors=%ju\n",
               i, i < PINGS ? "ping" : "add", (uintmax_t)conn->latency.total,
               (double)histogram_percentile(&conn->latency, 0.50) / 1e3,
               (double)histogram_percentile(&conn->latency, 0.99) / 1e3,
               (double)conn->max_ns / 1e3, (double)conn->max_at_ns / 1e6,
               (uintmax_t)conn->errors);
    }
    printf("late_p99_us=%.1f late_max_us=%.1f\n",
           (double)histogram_percentile(&lateness, 0.99) / 1e3,
           (double)latest_ns / 1e3);
    if (samples != NULL) {
        write_samples(argv[6]);
    }
    return 0;
}
