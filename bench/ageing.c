/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a lookup of an absent item costs in an ageing filter of default
 * generations, all of them full: thread CPU time in batches, and the share that
 * is found wrongly. An ordinary filter of as many bytes stands beside it.
 *
 *   ageing [CAPACITY]     the default takes 256 MB
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/ageing.h"

enum { GENERATIONS = 8, SECONDS = 8, ROUNDS = 7, BATCHES = 10000, FEW = 16 };

static const double error_rate = 0.01;

struct key {
    uint64_t salt, number; /* 16 bytes: an item of usual length */
};

static void
die(const char *what)
{
    (void)fprintf(stderr, "ageing: %s\n", what);
    exit(1);
}

static uint64_t
cpu_ns(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) {
        die("no thread CPU clock");
    }
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct bloom *
make(uint64_t capacity, enum bloom_kind kind)
{
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .capacity = capacity,
                                   .error_rate = error_rate,
                                   .tightening = 0.5,
                                   .kind = kind };
    struct bloom *bloom = NULL;

    if (kind == BLOOM_AGEING) {
        params.seconds = SECONDS;
        params.generations = GENERATIONS;
    }
    if (bloom_new(&params, NULL, &bloom) != BLOOM_OK) {
        die("cannot make the filter");
    }
    return bloom;
}

static void
fill(struct bloom *bloom, uint64_t count, uint64_t now_ms, struct key *key)
{
    bool added;

    for (uint64_t i = 0; i < count; i++, key->number++) {
        struct bloom_hash hash = bloom_hash(bloom, key, sizeof(*key));

        if (bloom_add_at(bloom, NULL, hash, now_ms, &added) != BLOOM_OK) {
            die("the filter is full");
        }
    }
}

/* Asks for absent items. Returns nanoseconds an item. */
static double
ask(const struct bloom *bloom, uint64_t now_ms, struct key *key,
    uint64_t *ret_found)
{
    struct bloom_hash hashes[BLOOM_BATCH_MAX];
    bool found[BLOOM_BATCH_MAX];
    uint64_t began = cpu_ns();

    for (unsigned batch = 0; batch < BATCHES; batch++) {
        for (size_t i = 0; i < BLOOM_BATCH_MAX; i++, key->number++) {
            hashes[i] = bloom_hash(bloom, key, sizeof(*key));
            if ((i + 1) % FEW == 0) {
                bloom_prefetch_batch(bloom, &hashes[i + 1 - FEW], FEW);
            }
        }
        ageing_contains_batch(bloom, hashes, BLOOM_BATCH_MAX, now_ms, found);
        for (size_t i = 0; i < BLOOM_BATCH_MAX; i++) {
            *ret_found += found[i];
        }
    }
    return (double)(cpu_ns() - began) / BATCHES / BLOOM_BATCH_MAX;
}

static int
compare(const void *one, const void *other)
{
    const double *a = one, *b = other;

    return (*a > *b) - (*a < *b);
}

static void
measure(const char *name, struct bloom *bloom, uint64_t now_ms)
{
    struct bloom_info info = { .struct_size = sizeof(info) };
    struct key key = { .salt = 2 };
    double ns[ROUNDS];
    uint64_t found = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        ns[round] = ask(bloom, now_ms, &key, &found);
    }
    qsort(ns, ROUNDS, sizeof(*ns), compare);
    bloom_get_info(bloom, &info);
    printf("%-8s %5.0f MB %3u lines  %5.1f bits an item  %5.1f ns a miss "
           "(%.1f to %.1f)  rate %.5f\n",
           name, (double)info.size_bytes / 1e6, info.layers,
           (double)info.size_bytes * 8 / (double)info.items, ns[ROUNDS / 2],
           ns[0], ns[ROUNDS - 1],
           (double)found / ((double)BATCHES * BLOOM_BATCH_MAX * ROUNDS));
    bloom_free(bloom, NULL);
}

int
main(int argc, char **argv)
{
    uint64_t capacity =
        argc > 1 ? strtoull(argv[1], NULL, 10) : UINT64_C(117000000);
    struct bloom *ring = make(capacity, BLOOM_AGEING);
    struct bloom *plain = make(capacity * 7 / 4, BLOOM_NATIVE);
    struct key key = { .salt = 1 };
    uint64_t now_ms = 0;

    for (unsigned i = 0; i <= GENERATIONS; i++) {
        now_ms = (uint64_t)i * SECONDS * 1000 / GENERATIONS;
        fill(ring, capacity / GENERATIONS, now_ms, &key);
    }
    measure("ageing", ring, now_ms);
    fill(plain, capacity * 7 / 4, 0, &key);
    measure("plain", plain, 0);
    return 0;
}
