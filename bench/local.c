/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Measures a copy of a filter in a program, for bench/local.py. Each line that
 * it prints is a figure, its name first. The items of the filter are item:0,
 * item:1 ..., COUNT of them.
 *
 *   local look URL KEY COUNT           one look, and 1,000 items: CPU time
 *   local fresh URL KEY RATE SECONDS   from an acknowledged add to "present"
 *   local load URL KEY                 how long a load takes
 */
#include "base/clock.h"
#include "client/client_dial.h"
#include "local/local_url.h"
#include "proto/resp.h"

#include <bloomery/local.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LOOKS = 1000000,
    MANY = 1000,
    TEXT_BYTES = 32,
    ITEM_BYTES = 12,
    SAMPLES_MAX = 100000
};

#define S_NS UINT64_C(1000000000)

static struct bloomery_local *
open_copy(const char *url, const char *key)
{
    struct bloomery_local_options options = { .struct_size = sizeof(options),
                                              .url = url,
                                              .key = key };
    struct bloomery_local_status status = { .struct_size = sizeof(status) };
    struct bloomery_local *local;

    if (bloomery_local_open(&options, &local, &status) != BLOOMERY_LOCAL_OK) {
        (void)fprintf(stderr, "local: %s\n", status.error_text);
        exit(1);
    }
    return local;
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

/* Adds RATE items a second, a command each, in pipelines of a millisecond.
 * Waits for the last of some until the copy has it. */
static int
fresh(const char *url, const char *key, uint64_t rate, uint64_t seconds)
{
    static double waited_ms[SAMPLES_MAX];
    struct bloomery_local *local = open_copy(url, key);
    struct client client;
    uint64_t next_ns = clock_mono_ns(), end_ns = next_ns + seconds * S_NS;
    uint64_t number = 0, each = rate / 1000 > 0 ? rate / 1000 : 1;
    size_t samples = 0;

    dial(&client, url);
    while (clock_mono_ns() < end_ns && samples < SAMPLES_MAX) {
        char item[TEXT_BYTES];
        struct slice words[] = { slice_lit("BF.ADD"),
                                 slice_of(key),
                                 { item, 0 } };
        struct slice reply;
        uint64_t acknowledged_ns;

        for (uint64_t i = 0; i < each; i++) {
            words[2].len = (size_t)snprintf(item, sizeof(item), "new:%llu:%llu",
                                            (unsigned long long)end_ns,
                                            (unsigned long long)number++);
            client_send(&client, words, 3);
        }
        for (uint64_t i = 0; i < each; i++) {
            if (!client_reply(&client, end_ns + 60 * S_NS, &reply)) {
                return 1;
            }
        }
        acknowledged_ns = clock_mono_ns();
        if (number / each % 7 == 0) {
            while (bloomery_local_contains(local, item, words[2].len) !=
                   BLOOMERY_LOCAL_PRESENT) {
                const struct timespec pause = { 0, 20000 };

                (void)nanosleep(&pause, NULL);
            }
            waited_ms[samples++] =
                (double)(clock_mono_ns() - acknowledged_ns) / 1e6;
        }
        next_ns += S_NS / 1000;
        while (clock_mono_ns() < next_ns) {
            const struct timespec pause = { 0, 50000 };

            (void)nanosleep(&pause, NULL);
        }
    }
    qsort(waited_ms, samples, sizeof(*waited_ms), compare);
    (void)printf("adds %llu\nsamples %zu\np50-ms %.2f\np99-ms %.2f\n",
                 (unsigned long long)number, samples, waited_ms[samples / 2],
                 waited_ms[samples * 99 / 100]);
    client_close(&client);
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
    if (argc == 4 && strcmp(argv[1], "look") == 0) {
        return look(argv[2], argv[3]);
    }
    if (argc == 6 && strcmp(argv[1], "fresh") == 0) {
        return fresh(argv[2], argv[3], strtoull(argv[4], NULL, 10),
                     strtoull(argv[5], NULL, 10));
    }
    if (argc == 4 && strcmp(argv[1], "load") == 0) {
        return load(argv[2], argv[3]);
    }
    return 2;
}
