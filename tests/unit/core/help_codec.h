/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the tests of the stored form share: ways to dump, to load, and to make
 * a checksum right. Include after help.h.
 */
#pragma once

#include "core/codec.h"

#include <xxhash.h>

struct bytes {
    uint8_t *data; /* malloc'd to the byte, for the sanitizer's sake */
    size_t len;
};

static inline struct bytes
dump_of(const struct bloom *bloom, uint64_t incarnation)
{
    struct bytes dump = { .len = (size_t)codec_dump_bytes(bloom) };

    dump.data = malloc(dump.len);
    assert_non_null(dump.data);
    codec_dump(bloom, incarnation, dump.data);
    return dump;
}

static inline void
assert_equal_dumps(const struct bloom *a, const struct bloom *b)
{
    struct bytes dump_a = dump_of(a, 7);
    struct bytes dump_b = dump_of(b, 7);

    assert_int_equal(dump_a.len, dump_b.len);
    assert_memory_equal(dump_a.data, dump_b.data, dump_a.len);
    free(dump_a.data);
    free(dump_b.data);
}

static inline void
put_le(uint8_t *at, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static inline void
seal(uint8_t *data, size_t len)
{
    put_le(data + len - 8, XXH3_64bits(data, len - 8), 8);
}

/* Loads a copy of exactly LEN bytes. What is refused costs no allocation,
 * unless it is for want of memory, and leaves the outputs alone. */
static inline void
assert_load(enum bloom_status expected, const uint8_t *data, size_t len)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom *bloom = NULL;
    uint64_t incarnation = 4711;
    uint8_t *copy = malloc(len);
    enum bloom_status status;

    assert_true(copy != NULL || len == 0);
    if (len > 0) {
        memcpy(copy, data, len);
    }
    status = codec_load(copy, len, &env, &incarnation, &bloom);
    assert_int_equal(expected, status);
    if (status != BLOOM_OK) {
        assert_null(bloom);
        assert_int_equal(4711, incarnation);
        assert_int_equal(0, heap.calls);
    }
    bloom_free(bloom, &env);
    assert_int_equal(0, heap.out);
    free(copy);
}

static inline struct bloom *
load(struct bytes dump, const struct bloom_env *env, uint64_t incarnation)
{
    struct bloom *bloom = NULL;
    uint64_t loaded = ~incarnation;

    assert_int_equal(BLOOM_OK,
                     codec_load(dump.data, dump.len, env, &loaded, &bloom));
    assert_int_equal(incarnation, loaded);
    return bloom;
}

/* Three layers and about a KB. */
static inline struct bytes
small_dump(void)
{
    struct bloom_params params = params_of(40, 0.01, 2);
    struct bloom *bloom = make(&params, NULL);
    struct bytes dump;

    memset(params.seed, 0x5a, sizeof(params.seed));
    (void)fill(bloom, NULL, 0, 200);
    dump = dump_of(bloom, 0x1122334455667788);
    bloom_free(bloom, NULL);
    return dump;
}
