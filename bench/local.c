/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Measures a copy of a filter in a program, for bench/local.py. Each line that
 * it prints is a figure, its name first. The items of the filter are item:0,
 * item:1 ..., COUNT of them.
 *
 *   look URL KEY COUNT           one look, and 1,000 items: CPU time
 *   fresh URL KEY RATE SECONDS   from an acknowledged add to "present"
 *   load URL KEY                 how long a load takes
 *   many URL KEY COPIES RATE SECONDS
 *                                as fresh, for many copies
 *   again URL KEY COPIES         prints "ready", reads a line, and waits until
 *                                all copies are loaded and fresh again
 *   memory URL KEY               what a copy and a load need, beside the bytes
 *                                of the filter
 *   quiet URL KEY SECONDS        how many answers are unknown
 */
#include "base/clock.h"
#include "client/client_dial.h"
#include "local/local_url.h"
#include "proto/resp.h"

#include <bloomery/local.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum {
    LOOKS = 1000000,
    MANY = 1000,
    TEXT_BYTES = 32,
    ITEM_BYTES = 12,
    SAMPLES_MAX = 100000,
    COPIES_MAX = 10000
};

#define S_NS  UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)

static struct bloomery_local *
open_flagged(const char *url, const char *key, uint32_t flags)
{
    struct bloomery_local_options options = {
        .struct_size = sizeof(options), .url = url, .key = key, .flags = flags
    };
    struct bloomery_local_status status = { .struct_size = sizeof(status) };
    struct bloomery_local *local;

    if (bloomery_local_open(&options, &local, &status) != BLOOMERY_LOCAL_OK) {
        (void)fprintf(stderr, "local: %s\n", status.error_text);
        exit(1);
    }
    return local;
}

static struct bloomery_local *
open_copy(const char *url, const char *key)
{
    return open_flagged(url, key, 0);
}

static void
rest(long ns)
{
    const struct timespec pause = { 0, ns };

    (void)nanosleep(&pause, NULL);
}

static char items[LOOKS][ITEM_BYTES];

/* Makes items that are absent: a look reads the clocks, too. */
static void
make_items(void)
{
    uint64_t state = 1;

    for (size_t i = 0; i < LOOKS; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407U;
        (void)memcpy(items[i], "item:       ", ITEM_BYTES);
        (void)memcpy(&items[i][5], (const char *)&state + 1, 7);
    }
}

static double
look_at_each(struct bloomery_local *local)
{
    uint64_t begun_ns = clock_thread_cpu_ns();
    size_t unknown = 0;

    for (size_t i = 0; i < LOOKS; i++) {
        unknown += bloomery_local_contains(local, items[i], ITEM_BYTES) ==
                   BLOOMERY_LOCAL_UNKNOWN;
    }
    if (unknown > 0) {
        (void)fprintf(stderr, "local: %zu unknown\n", unknown);
    }
    return (double)(clock_thread_cpu_ns() - begun_ns) / LOOKS;
}

static double
look_at_many(struct bloomery_local *local)
{
    static struct bloomery_local_item some[MANY];
    static int8_t answers[MANY];
    uint64_t begun_ns = clock_thread_cpu_ns();

    for (size_t i = 0; i < LOOKS; i += MANY) {
        for (size_t n = 0; n < MANY; n++) {
            some[n] = (struct bloomery_local_item){ items[i + n], ITEM_BYTES };
        }
        (void)bloomery_local_contains_many(local, some, MANY, answers);
    }
    return LOOKS * 1e3 / (double)(clock_thread_cpu_ns() - begun_ns);
}

static int
look(const char *url, const char *key)
{
    struct bloomery_local *local = open_copy(url, key);

    make_items();
    for (int round = 0; round < 3; round++) { /* the first one warms up */
        (void)printf("contains-ns %.1f\n", look_at_each(local));
        (void)printf("many-millions %.1f\n", look_at_many(local));
    }
    bloomery_local_free(local);
    return 0;
}

/* ---- fresh --------------------------------------------------------------- */

static void
dial(struct client *client, const char *text)
{
    struct local_url url;
    const char *reason;

    client_init(client, 1 << 20);
    if (!local_url_parse(text, &url, &reason) ||
        !client_dial_host(client, url.host, url.port,
                          clock_mono_ns() + 5 * S_NS)) {
        (void)fprintf(stderr, "local: no connection\n");
        exit(1);
    }
}

static int
compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Adds some items, a command each, in one pipeline; false: no connection. The
 * last of them is in the text. */
static bool
add(struct client *client, const char *key, uint64_t count, uint64_t *number,
    char item[TEXT_BYTES])
{
    struct slice words[] = { slice_lit("BF.ADD"), slice_of(key), { item, 0 } };
    struct slice reply;

    for (uint64_t i = 0; i < count; i++) {
        words[2].len = (size_t)snprintf(item, TEXT_BYTES, "new:%llu",
                                        (unsigned long long)(*number)++);
        client_send(client, words, 3);
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!client_reply(client, clock_mono_ns() + 60 * S_NS, &reply)) {
            return false;
        }
    }
    return true;
}

/* Items that were acknowledged, and until when a copy had them. */
struct samples {
    double waited_ms[SAMPLES_MAX];
    size_t count;
    struct bloomery_local *copy; /* that is asked now; NULL: none */
    char item[TEXT_BYTES];       /* for this one */
    uint64_t acknowledged_ns;
};

/* Asks once. */
static void
ask(struct samples *samples)
{
    if (samples->copy != NULL &&
        bloomery_local_contains(samples->copy, samples->item,
                                strlen(samples->item)) ==
            BLOOMERY_LOCAL_PRESENT) {
        samples->waited_ms[samples->count++] =
            (double)(clock_mono_ns() - samples->acknowledged_ns) / 1e6;
        samples->copy = NULL;
    }
}

static void
print_samples(struct samples *samples, uint64_t adds)
{
    qsort(samples->waited_ms, samples->count, sizeof(double), compare);
    (void)printf("adds %llu\nsamples %zu\np50-ms %.2f\np99-ms %.2f\n",
                 (unsigned long long)adds, samples->count,
                 samples->waited_ms[samples->count / 2],
                 samples->waited_ms[samples->count * 99 / 100]);
    (void)fflush(stdout);
}

/* Adds RATE items a second in pipelines of a millisecond, or of as many as have
 * passed. Asks one of the copies for one of them until it has it, and then the
 * next one. */
static int
sample(struct bloomery_local *const *copies, uint64_t count, const char *url,
       const char *key, uint64_t rate, uint64_t seconds)
{
    static struct samples samples;
    struct client client;
    uint64_t next_ns = clock_mono_ns(), end_ns = next_ns + seconds * S_NS;
    uint64_t number = clock_wall_us() * 1000;
    uint64_t first = number, each = rate / 1000 > 0 ? rate / 1000 : 1;

    dial(&client, url);
    while (clock_mono_ns() < end_ns && samples.count < SAMPLES_MAX) {
        uint64_t due = (clock_mono_ns() - next_ns) / MS_NS + 1;
        char item[TEXT_BYTES];

        if (!add(&client, key, due * each, &number, item)) {
            return 1;
        }
        if (samples.copy == NULL) {
            samples.copy = copies[samples.count * 37 % count];
            samples.acknowledged_ns = clock_mono_ns();
            memcpy(samples.item, item, TEXT_BYTES);
        }
        ask(&samples);
        next_ns += due * MS_NS;
        while (clock_mono_ns() < next_ns) {
            rest(50000);
            ask(&samples);
        }
    }
    print_samples(&samples, number - first);
    client_close(&client);
    return 0;
}

static int
fresh(const char *url, const char *key, uint64_t rate, uint64_t seconds)
{
    struct bloomery_local *local = open_copy(url, key);
    int failed = sample(&local, 1, url, key, rate, seconds);

    bloomery_local_free(local);
    return failed;
}

/* ---- many copies --------------------------------------------------------- */

static bool
is_fresh(struct bloomery_local *local, uint64_t loads)
{
    struct bloomery_local_status status = { .struct_size = sizeof(status) };

    bloomery_local_status(local, &status);
    return status.state == BLOOMERY_LOCAL_FRESH && status.loads >= loads;
}

static void
await_all(struct bloomery_local *const *copies, uint64_t count, uint64_t loads)
{
    for (uint64_t i = 0; i < count; i++) {
        while (!is_fresh(copies[i], loads)) {
            rest(1000000);
        }
    }
}

/* Ends at the end of its input: closing so many copies is not measured. */
static int
many(const char *url, const char *key, uint64_t count, uint64_t rate,
     uint64_t seconds)
{
    static struct bloomery_local *copies[COPIES_MAX];
    char line[8];

    if (count == 0 || count > COPIES_MAX) {
        return 2;
    }
    for (uint64_t i = 0; i < count; i++) {
        copies[i] = open_flagged(url, key, BLOOMERY_LOCAL_NO_WAIT);
    }
    await_all(copies, count, 1);
    (void)printf("ready 0\n");
    (void)fflush(stdout);
    if (rate > 0) {
        return sample(copies, count, url, key, rate, seconds);
    }
    if (fgets(line, sizeof(line), stdin) == NULL) {
        return 1;
    }
    await_all(copies, count, 2);
    (void)printf("again 0\n");
    (void)fflush(stdout);
    return 0;
}

/* ---- memory -------------------------------------------------------------- */

/* Returns a figure of /proc/self/status, in bytes. */
static double
own_bytes(const char *field)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    double kib = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0) {
            kib = strtod(line + strlen(field) + 1, NULL);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return kib * 1024;
}

static void
forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "we");

    if (file != NULL) {
        (void)fputs("5", file);
        (void)fclose(file);
    }
}

/* Has the filter become another one, so that it is loaded again. */
static bool
replace(const char *url, const char *key)
{
    const struct slice copy[] = { slice_lit("COPY"), slice_of(key),
                                  slice_lit("other") };
    const struct slice move[] = { slice_lit("RENAME"), slice_lit("other"),
                                  slice_of(key) };
    struct client client;
    struct slice reply;
    bool done = true;

    dial(&client, url);
    client_send(&client, copy, 3);
    client_send(&client, move, 3);
    for (int i = 0; i < 2; i++) {
        done =
            client_reply(&client, clock_mono_ns() + 60 * S_NS, &reply) && done;
    }
    client_close(&client);
    return done;
}

static int
memory(const char *url, const char *key)
{
    struct bloomery_local_status status = { .struct_size = sizeof(status) };
    struct bloomery_local *local;
    double before, all_before, with, peak;

    /* Huge pages would round each buffer. */
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    before = own_bytes("RssAnon");
    all_before = own_bytes("VmRSS");
    local = open_copy(url, key);
    bloomery_local_status(local, &status);
    with = own_bytes("RssAnon") - before;
    forget_peak();
    if (!replace(url, key)) {
        return 1;
    }
    await_all(&local, 1, 2);
    peak = own_bytes("VmHWM") - all_before;
    (void)printf("copy-ratio %.4f\nload-ratio %.4f\n",
                 with / (double)status.size_bytes,
                 peak / (double)status.size_bytes);
    bloomery_local_free(local);
    return 0;
}

/* ---- quiet --------------------------------------------------------------- */

static int
quiet(const char *url, const char *key, uint64_t seconds)
{
    struct bloomery_local *local = open_copy(url, key);
    uint64_t end_ns = clock_mono_ns() + seconds * S_NS, unknown = 0, asked = 0;

    while (clock_mono_ns() < end_ns) {
        asked++;
        unknown += bloomery_local_contains(local, "absent", 6) ==
                   BLOOMERY_LOCAL_UNKNOWN;
        rest(1000000);
    }
    (void)printf("asked %llu\nunknown %llu\n", (unsigned long long)asked,
                 (unsigned long long)unknown);
    bloomery_local_free(local);
    return 0;
}

static int
load(const char *url, const char *key)
{
    uint64_t begun_ns = clock_mono_ns();
    struct bloomery_local *local = open_copy(url, key);
    struct bloomery_local_status status = { .struct_size = sizeof(status) };

    (void)printf("load-s %.2f\n", (double)(clock_mono_ns() - begun_ns) / 1e9);
    bloomery_local_status(local, &status);
    (void)printf("bytes %llu\n", (unsigned long long)status.size_bytes);
    bloomery_local_free(local);
    return 0;
}

int
main(int argc, char **argv)
{
    const char *what = argc >= 4 ? argv[1] : "";
    uint64_t numbers[3] = { 0 };

    for (int i = 4; i < argc && i < 7; i++) {
        numbers[i - 4] = strtoull(argv[i], NULL, 10);
    }
    if (strcmp(what, "look") == 0) {
        return look(argv[2], argv[3]);
    }
    if (strcmp(what, "fresh") == 0 && argc == 6) {
        return fresh(argv[2], argv[3], numbers[0], numbers[1]);
    }
    if (strcmp(what, "load") == 0) {
        return load(argv[2], argv[3]);
    }
    if ((strcmp(what, "many") == 0 && argc == 7) ||
        (strcmp(what, "again") == 0 && argc == 5)) {
        return many(argv[2], argv[3], numbers[0], numbers[1], numbers[2]);
    }
    if (strcmp(what, "memory") == 0) {
        return memory(argv[2], argv[3]);
    }
    if (strcmp(what, "quiet") == 0 && argc == 5) {
        return quiet(argv[2], argv[3], numbers[0]);
    }
    return 2;
}
