/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The allocator is the C library's, with a count of calls and bytes.
 */
#include "help.h"

#include "../test.h"

static bool
fault_heap_refuses(struct fault_heap *heap, size_t bytes)
{
    if (bytes > heap->most_ask) {
        heap->most_ask = bytes;
    }
    return ++heap->calls == heap->fail_at;
}

static void *
fault_alloc(void *ctx, size_t bytes)
{
    struct fault_heap *heap = ctx;

    if (fault_heap_refuses(heap, bytes)) {
        return NULL;
    }
    heap->out += bytes;
    return malloc(bytes);
}

static void *
fault_alloc_lines(void *ctx, size_t bytes)
{
    struct fault_heap *heap = ctx;
    void *lines;

    if (fault_heap_refuses(heap, bytes)) {
        return NULL;
    }
    heap->out += bytes;
    lines = aligned_alloc(BLOOM_LINE_BYTES, bytes);
    return lines != NULL ? memset(lines, 0, bytes) : NULL;
}

static void
fault_free(void *ctx, void *ptr, size_t bytes)
{
    struct fault_heap *heap = ctx;

    heap->out -= bytes;
    free(ptr);
}

struct bloom_env
fault_env(struct fault_heap *heap)
{
    return (struct bloom_env){ .alloc = fault_alloc,
                               .free = fault_free,
                               .alloc_lines = fault_alloc_lines,
                               .free_lines = fault_free,
                               .ctx = heap,
                               .size_limit_bytes = UINT64_MAX };
}

struct bloom_params
params_of(uint64_t capacity, double error_rate, uint32_t expansion)
{
    return (struct bloom_params){ .struct_size = sizeof(struct bloom_params),
                                  .capacity = capacity,
                                  .error_rate = error_rate,
                                  .tightening = 0.5,
                                  .expansion = expansion };
}

void
set_kind(struct bloom_params *params, uint32_t kind)
{
    bool ages = kind == BLOOM_AGEING;

    params->kind = kind;
    params->region = kind == BLOOM_DELETABLE ? 2 : 0;
    params->seconds = ages ? 60 : 0;
    params->generations = ages ? 1 : 0;
    params->now_ms = ages ? 1700000000000 : 0;
}

struct bloom_hash
hash_id(const struct bloom *bloom, uint64_t id)
{
    return bloom_hash(bloom, &id, sizeof(id));
}

struct bloom *
make(const struct bloom_params *params, const struct bloom_env *env)
{
    struct bloom *bloom = NULL;

    assert_int_equal(BLOOM_OK, bloom_new(params, env, &bloom));
    assert_non_null(bloom);
    return bloom;
}

uint64_t
fill(struct bloom *bloom, const struct bloom_env *env, uint64_t id,
     uint64_t count)
{
    bool added;

    while (count > 0) {
        assert_int_equal(BLOOM_OK,
                         bloom_add(bloom, env, hash_id(bloom, id), &added));
        count -= added;
        id++;
    }
    return id;
}

struct snapshot
snapshot_of(const struct bloom *bloom)
{
    struct snapshot shot = { .info.struct_size = sizeof(shot.info) };
    struct bloom_layer_info layer = { .struct_size = sizeof(layer) };

    bloom_get_info(bloom, &shot.info);
    shot.hash = 0;
    for (uint32_t i = 0; bloom_get_layer(bloom, i, &layer); i++) {
        size_t bytes;
        const uint64_t *words = bloom_layer_lines(bloom, i, &bytes);

        for (size_t at = 0; at < bytes / 8; at++) {
            shot.hash = (shot.hash ^ words[at]) * 0x9E3779B97F4A7C15U;
        }
        shot.hash ^= layer.items + (layer.capacity << 20);
    }
    return shot;
}

uint64_t
least_limit(const struct bloom *bloom)
{
    uint64_t low = 0;
    uint64_t high = 2 * bloom_size(bloom) + 4096;
    struct bloom_params params = { .struct_size = sizeof(params) };
    struct bloom_info info = { .struct_size = sizeof(info) };

    bloom_get_params(bloom, &params);
    bloom_get_info(bloom, &info);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (plan_stored_fits(&params, info.layers, info.size_bytes, middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

void
assert_same(struct snapshot before, struct snapshot after)
{
    assert_int_equal(before.info.capacity, after.info.capacity);
    assert_int_equal(before.info.items, after.info.items);
    assert_int_equal(before.info.size_bytes, after.info.size_bytes);
    assert_int_equal(before.info.layers, after.info.layers);
    assert_true(before.hash == after.hash);
}
