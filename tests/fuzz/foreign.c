/* SPDX-License-Identifier: BSD-3-Clause */
#include "foreign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

enum { LIMIT_BYTES = 256 * 1024, ITEMS = 200 };

static void *
heap_alloc(void *ctx, size_t bytes)
{
    struct foreign_heap *heap = ctx;

    heap->out += bytes;
    return malloc(bytes);
}

static void *
heap_alloc_lines(void *ctx, size_t bytes)
{
    struct foreign_heap *heap = ctx;
    void *lines = aligned_alloc(BLOOM_LINE_BYTES, bytes);

    CHECK(lines != NULL);
    heap->out += bytes;
    return memset(lines, 0, bytes);
}

static void
heap_free(void *ctx, void *ptr, size_t bytes)
{
    struct foreign_heap *heap = ctx;

    CHECK(heap->out >= bytes);
    heap->out -= bytes;
    free(ptr);
}

struct bloom_env
foreign_env(struct foreign_heap *heap)
{
    return (struct bloom_env){ .alloc = heap_alloc,
                               .free = heap_free,
                               .alloc_lines = heap_alloc_lines,
                               .free_lines = heap_free,
                               .ctx = heap,
                               .size_limit_bytes = LIMIT_BYTES };
}

/* Adds items at times that rise, to a filter that forgets or does not. */
static void
use_at_times(struct bloom *bloom, const struct bloom_env *env)
{
    static const uint64_t steps_ms[] = {
        0, 1, 999, 61000, 3600000, 1ULL << 40
    };
    enum bloom_status status = BLOOM_OK;
    uint64_t now_ms = 1700000000000;

    for (size_t i = 0; i < 30 && status == BLOOM_OK; i++) {
        struct bloom_hash hash = bloom_hash(bloom, &i, sizeof(uint32_t));
        bool added;

        now_ms += steps_ms[i % (sizeof(steps_ms) / sizeof(steps_ms[0]))];
        status = bloom_add_at(bloom, env, hash, now_ms, &added);
        CHECK(status != BLOOM_CORRUPT);
        CHECK(status != BLOOM_OK || bloom_contains_at(bloom, hash, now_ms));
    }
}

void
foreign_use(struct bloom *bloom, const struct bloom_env *env)
{
    enum bloom_status status = BLOOM_OK;

    for (uint64_t id = 0; id < ITEMS && status == BLOOM_OK; id++) {
        struct bloom_hash hash = bloom_hash(bloom, &id, sizeof(id));
        bool had = bloom_contains(bloom, hash);
        bool added = had;

        status = bloom_add(bloom, env, hash, &added);
        CHECK(status != BLOOM_NOMEM && status != BLOOM_CORRUPT);
        CHECK(status != BLOOM_OK || bloom_contains(bloom, hash));
    }
    use_at_times(bloom, env);
}

void
foreign_set_kind(struct bloom_params *params, enum bloom_kind kind)
{
    bool ages = kind == BLOOM_AGEING;

    params->kind = kind;
    params->region = kind == BLOOM_DELETABLE ? 2 : 0;
    params->seconds = ages ? 60 : 0;
    params->generations = ages ? 4 : 0;
    params->now_ms = ages ? 1700000000000 : 0;
}

static double
next_unit(uint64_t *random)
{
    return (double)((fuzz_next(random) >> 12) + 1) * 0x1p-53;
}

struct bloom *
foreign_random(uint64_t *random, const struct bloom_env *env,
               enum bloom_kind kind)
{
    struct bloom_params params = {
        .struct_size = sizeof(params),
        .capacity = 1 + fuzz_next(random) % 100,
        .error_rate = exp(20 * log(next_unit(random)) / 37),
        .tightening = 0.5,
        .expansion = (uint32_t)(fuzz_next(random) % 4),
    };
    struct bloom *bloom = NULL;

    foreign_set_kind(&params, kind);

    if (bloom_new(&params, env, &bloom) != BLOOM_OK) {
        return NULL;
    }
    foreign_use(bloom, env);
    return bloom;
}

void
foreign_damage(uint64_t *random, uint8_t *data, size_t size)
{
    size_t head_bytes = size < 256 ? size : 256;

    for (uint64_t left = fuzz_next(random) % 4; left > 0; left--) {
        size_t at = fuzz_next(random) % 8 == 0 ? fuzz_next(random) % size
                                               : fuzz_next(random) % head_bytes;

        data[at] ^= (uint8_t)(fuzz_next(random) % 2 == 0
                                  ? fuzz_next(random)
                                  : (uint64_t)1 << (fuzz_next(random) % 8));
    }
}
