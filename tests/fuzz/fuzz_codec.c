/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as the dump of a filter, each input in three ways: as it is, with
 * its checksum made right, and brought to the length that its head declares.
 * What loads dumps to the same bytes again, answers, grows within its limit,
 * and comes back from a second dump; what is refused leaves nothing behind.
 */
#include "base/err.h"
#include "base/mem.h"
#include "core/bloom.h"
#include "core/codec.h"
#include "core/filter.h"
#include "core/layer.h"
#include "foreign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { LIMIT_BYTES = 256 * 1024, ITEMS = 200 };

struct heap {
    size_t out;      /* bytes not yet freed */
    size_t most_out; /* in all its time */
};

static void *
heap_alloc(void *ctx, size_t bytes)
{
    struct heap *heap = ctx;

    heap->out += bytes;
    if (heap->out > heap->most_out) {
        heap->most_out = heap->out;
    }
    return malloc(bytes);
}

static void *
heap_alloc_lines(void *ctx, size_t bytes)
{
    struct heap *heap = ctx;
    void *lines = aligned_alloc(BLOOM_LINE_BYTES, bytes);

    CHECK(lines != NULL);
    free(heap_alloc(heap, bytes)); /* counted; freed by its own name */
    return memset(lines, 0, bytes);
}

static void
heap_free(void *ctx, void *ptr, size_t bytes)
{
    struct heap *heap = ctx;

    CHECK(heap->out >= bytes);
    heap->out -= bytes;
    free(ptr);
}

static struct bloom_env
env_of(struct heap *heap)
{
    return (struct bloom_env){ .alloc = heap_alloc,
                               .free = heap_free,
                               .alloc_lines = heap_alloc_lines,
                               .free_lines = heap_free,
                               .ctx = heap,
                               .size_limit_bytes = LIMIT_BYTES };
}

static void
check_dumps_to(const struct bloom *bloom, uint64_t incarnation,
               const uint8_t *data, size_t size)
{
    uint8_t *dump;

    CHECK(codec_dump_bytes(bloom) == size);
    dump = mem_alloc(size);
    codec_dump(bloom, incarnation, dump);
    CHECK(memcmp(dump, data, size) == 0);
    mem_free(dump);
}

static void
use(struct bloom *bloom, const struct bloom_env *env)
{
    enum bloom_status status = BLOOM_OK;

    for (uint64_t id = 0; id < ITEMS && status == BLOOM_OK; id++) {
        struct bloom_hash hash = bloom_hash(bloom, &id, sizeof(id));
        bool had = bloom_contains(bloom, hash);
        bool added = had;

        status = bloom_add(bloom, env, hash, &added);
        CHECK(status != BLOOM_NOMEM && status != BLOOM_CORRUPT);
        CHECK(status != BLOOM_OK ||
              (added != had && bloom_contains(bloom, hash)));
    }
}

static void
check_round_trip(const struct bloom *bloom, const struct bloom_env *env)
{
    size_t size = (size_t)codec_dump_bytes(bloom);
    uint8_t *dump = mem_alloc(size);
    struct bloom *again = NULL;
    struct bloom *copy = NULL;
    uint64_t incarnation = 0;

    codec_dump(bloom, size, dump);
    CHECK(codec_load(dump, size, env, &incarnation, &again) == BLOOM_OK);
    CHECK(incarnation == size);
    check_dumps_to(again, incarnation, dump, size);
    if (bloom_is_incomplete(bloom)) { /* is never copied: DUMP has none */
        CHECK(bloom_load(dump, size, env, &copy) == BLOOM_CORRUPT);
        bloom_free(again, env);
        mem_free(dump);
        return;
    }
    CHECK(bloom_copy(again, env, &copy) == BLOOM_OK);
    bloom_free(again, env);
    check_dumps_to(copy, incarnation, dump, size);
    bloom_free(copy, env);
    mem_free(dump);
}

static void
play(const uint8_t *data, size_t size)
{
    struct heap heap = { 0 };
    struct bloom_env env = env_of(&heap);
    struct bloom *bloom = NULL;
    uint64_t incarnation = 0;

    switch (codec_load(data, size, &env, &incarnation, &bloom)) {
    case BLOOM_OK:
        CHECK(heap.most_out <= LIMIT_BYTES);
        CHECK(heap.out == bloom_size(bloom));
        check_dumps_to(bloom, incarnation, data, size);
        use(bloom, &env);
        foreign_use(bloom, &env);
        CHECK(heap.out == bloom_size(bloom));
        check_round_trip(bloom, &env);
        bloom_free(bloom, &env);
        break;
    case BLOOM_CORRUPT:
    case BLOOM_VERSION:
    case BLOOM_LIMIT:
    case BLOOM_SECRET:
        CHECK(heap.most_out == 0 && bloom == NULL && incarnation == 0);
        break;
    default:
        CHECK(false); /* codec_load() has no other status */
    }
    CHECK(heap.out == 0);
}

/* The secret of the keyed filters in the corpus. */
static void
use_secret(void)
{
    static const uint8_t secret[BLOOM_SECRET_BYTES] = "a fuzzer's own";

    bloom_use_secret(secret);
}

static void
seal(uint8_t *data, size_t size)
{
    uint64_t hash = XXH3_64bits(data, size - CODEC_CHECKSUM_BYTES);

    for (size_t i = 0; i < CODEC_CHECKSUM_BYTES; i++) {
        data[size - CODEC_CHECKSUM_BYTES + i] = (uint8_t)(hash >> (8 * i));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct codec_head head;
    uint8_t *copy;
    size_t len;

    use_secret();
    play(data, size);
    if (size < CODEC_CHECKSUM_BYTES) {
        return 0;
    }
    copy = mem_alloc(size);
    memcpy(copy, data, size);
    seal(copy, size);
    play(copy, size);
    mem_free(copy);

    if (codec_read_head(data, size, &head) != BLOOM_OK ||
        head.total_bytes > LIMIT_BYTES) {
        return 0;
    }
    len = (size_t)head.total_bytes;
    copy = mem_alloc(len);
    memset(copy, 0xc3, len);
    memcpy(copy, data, size < len ? size : len);
    seal(copy, len);
    play(copy, len);
    mem_free(copy);
    return 0;
}

/* ---- inputs for replay.c: dumps of random filters, most of them damaged ---
 */

static double
next_unit(uint64_t *random)
{
    return (double)((fuzz_next(random) >> 12) + 1) * 0x1p-53;
}

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    uint64_t random = seed;
    struct heap heap = { 0 };
    struct bloom_env env = env_of(&heap);
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .capacity = 1 + fuzz_next(&random) % 100,
                                   .error_rate =
                                       exp(700 * log(next_unit(&random)) / 37),
                                   .tightening = next_unit(&random),
                                   .expansion =
                                       (uint32_t)(fuzz_next(&random) % 4) };
    struct bloom *bloom = NULL;
    size_t size, head_bytes;

    foreign_set_kind(&params,
                     (enum bloom_kind)(fuzz_next(&random) % BLOOM_KINDS));
    use_secret();
    if (params.kind != BLOOM_REDISBLOOM && params.kind != BLOOM_VALKEYBLOOM) {
        params.flags = fuzz_next(&random) % 3 == 0 ? BLOOM_KEYED : 0;
    }
    if (bloom_new(&params, &env, &bloom) != BLOOM_OK) {
        return 0;
    }
    foreign_use(bloom, &env);
    size = (size_t)codec_dump_bytes(bloom);
    CHECK(size <= max);
    codec_dump(bloom, fuzz_next(&random), to);
    bloom_free(bloom, &env);
    head_bytes = size < 256 ? size : 256;
    for (uint64_t left = fuzz_next(&random) % 4; left > 0; left--) {
        size_t at = fuzz_next(&random) % 8 == 0
                        ? fuzz_next(&random) % size
                        : fuzz_next(&random) % head_bytes;

        /* One bit, or the whole byte. */
        to[at] ^= (uint8_t)(fuzz_next(&random) % 2 == 0
                                ? fuzz_next(&random)
                                : (uint64_t)1 << (fuzz_next(&random) % 8));
    }
    return size;
}
