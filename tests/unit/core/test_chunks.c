/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bloom_load_chunks(): filters of every kind from the replies of BF.SCANDUMP,
 * and chunks that are refused.
 */
#include <stdio.h>

#include "../test.h"
#include "core/payload.h"
#include "core/stream.h"
#include "help.h"
#include "help_codec.h"
#include "help_foreign.h"

enum { CHUNKS_MAX = 64 };

struct chunks {
    struct bloom_chunk at[CHUNKS_MAX];
    size_t count, next;
};

static bool
next_chunk(void *ctx, struct bloom_chunk *ret_chunk)
{
    struct chunks *chunks = ctx;

    if (chunks->next == chunks->count) {
        return false;
    }
    *ret_chunk = chunks->at[chunks->next++];
    return true;
}

static void
append(struct chunks *chunks, int64_t iterator, void *data, size_t len)
{
    assert_true(chunks->count < CHUNKS_MAX);
    chunks->at[chunks->count++] =
        (struct bloom_chunk){ .iterator = iterator, .data = data, .len = len };
}

/* Returns the replies of BF.SCANDUMP, in chunks of at most MOST bytes. */
static struct chunks *
scandump(const struct bloom *bloom, size_t most)
{
    struct chunks *chunks = calloc(1, sizeof(*chunks));
    uint8_t *header = malloc(payload_header_bytes(bloom));
    uint64_t offset = 0;
    uint64_t left;

    assert_non_null(chunks);
    assert_non_null(header);
    append(chunks, 1, header, payload_put_header(bloom, header));
    while ((left = stream_left(bloom, offset)) > 0) {
        size_t len = left < most ? (size_t)left : most;
        void *data = malloc(len);

        assert_non_null(data);
        stream_read(bloom, offset, len, data);
        offset += len;
        append(chunks, (int64_t)(offset + 1), data, len);
    }
    return chunks;
}

static void
free_chunks(struct chunks *chunks)
{
    for (size_t i = 0; i < chunks->count; i++) {
        /* The data is our own; a chunk's is const for programs. */
        union {
            const void *in;
            void *out;
        } data = { chunks->at[i].data };

        free(data.out);
    }
    free(chunks);
}

static struct bloom *
filled(enum bloom_kind kind)
{
    struct bloom_params params = PARAMS(40, 0.01, 0.5, 2);
    struct bloom *bloom;

    set_kind(&params, kind);
    bloom = make(&params, NULL);
    (void)fill(bloom, NULL, 0, 300);
    return bloom;
}

/* Tries to load; what is refused leaves nothing behind. */
static void
assert_chunks(enum bloom_status expected, struct chunks *chunks)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom *bloom = NULL;

    chunks->next = 0;
    assert_int_equal(expected,
                     bloom_load_chunks(next_chunk, chunks, &env, &bloom));
    assert_int_equal(expected != BLOOM_OK, bloom == NULL);
    bloom_free(bloom, &env);
    assert_int_equal(0, heap.out);
}

TEST(filters_of_every_kind_come_in_chunks)
{
    for (unsigned kind = BLOOM_NATIVE; kind < BLOOM_KINDS; kind++) {
        struct bloom *bloom = filled((enum bloom_kind)kind);
        struct chunks *chunks = scandump(bloom, 50);
        struct bloom *loaded = NULL;

        assert_int_equal(BLOOM_OK,
                         bloom_load_chunks(next_chunk, chunks, NULL, &loaded));
        assert_equal_dumps(bloom, loaded);
        assert_int_equal(chunks->count, chunks->next);
        bloom_free(loaded, NULL);
        bloom_free(bloom, NULL);
        free_chunks(chunks);
    }
}

TEST(the_replies_of_redisbloom_make_its_filter)
{
    static const size_t layer_bytes[] = { 16, 32, 72, 160 };
    struct hex header = from_hex(SCALED_HEADER);
    struct hex bits = from_hex(SCALED_BITS);
    struct chunks chunks = { .count = 0 };
    struct bloom *bloom = NULL;
    size_t at = 0;
    char item[16];

    append(&chunks, 1, header.data, header.len);
    for (size_t i = 0; i < 4; i++) {
        append(&chunks, (int64_t)(at + layer_bytes[i] + 1), bits.data + at,
               layer_bytes[i]);
        at += layer_bytes[i];
    }
    assert_int_equal(bits.len, at);
    assert_int_equal(BLOOM_OK,
                     bloom_load_chunks(next_chunk, &chunks, NULL, &bloom));
    for (int i = 0; i < 150; i++) {
        int len = snprintf(item, sizeof(item), "item:%d", i);

        assert_true(
            bloom_contains(bloom, bloom_hash(bloom, item, (size_t)len)));
    }
    bloom_free(bloom, NULL);
    free(header.data);
    free(bits.data);
}

TEST(chunks_may_come_in_any_order_and_again)
{
    struct bloom *bloom = filled(BLOOM_REDISBLOOM);
    struct chunks *chunks = scandump(bloom, 50);
    struct bloom_chunk first = chunks->at[1];

    assert_true(chunks->count > 4);
    chunks->at[1] = chunks->at[chunks->count - 2];
    chunks->at[chunks->count - 2] = first;
    assert_chunks(BLOOM_OK, chunks);
    first = chunks->at[chunks->count - 1];
    chunks->at[chunks->count] = first; /* the last one after a repeated one */
    chunks->at[chunks->count - 1] = chunks->at[2];
    chunks->count++;
    assert_chunks(BLOOM_OK, chunks);
    chunks->at[chunks->count - 2].data = NULL;
    chunks->at[chunks->count - 2].len = 0;
    assert_chunks(BLOOM_OK, chunks); /* an empty one says nothing */
    bloom_free(bloom, NULL);
    free_chunks(chunks);
}

TEST(missing_and_misplaced_chunks_are_refused)
{
    static const int64_t wrong[] = {
        INT64_MIN, -1, 0, 1, 2, 1 << 20, INT64_MAX
    };
    struct bloom *bloom = filled(BLOOM_NATIVE);
    struct chunks *chunks = scandump(bloom, 64);
    size_t count = chunks->count;
    struct bloom_chunk kept = chunks->at[2];

    for (chunks->count = 0; chunks->count < count; chunks->count++) {
        assert_chunks(BLOOM_CORRUPT, chunks);
    }
    assert_chunks(BLOOM_OK, chunks);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        chunks->at[2].iterator = wrong[i];
        assert_chunks(BLOOM_CORRUPT, chunks);
    }
    chunks->at[2] = kept;
    chunks->at[0].iterator = 2;
    assert_chunks(BLOOM_CORRUPT, chunks);
    chunks->at[0].iterator = 1;
    chunks->at[0].len--;
    assert_chunks(BLOOM_CORRUPT, chunks);
    chunks->at[0].len++;
    bloom_free(bloom, NULL);
    free_chunks(chunks);
}

TEST(each_failing_allocation_leaves_nothing)
{
    struct bloom *bloom = filled(BLOOM_VALKEYBLOOM);
    struct chunks *chunks = scandump(bloom, 64);
    bool failed = true;

    for (uint64_t at = 1; failed; at++) {
        struct fault_heap heap = { .fail_at = at };
        struct bloom_env env = fault_env(&heap);
        struct bloom *loaded = NULL;
        enum bloom_status status;

        chunks->next = 0;
        status = bloom_load_chunks(next_chunk, chunks, &env, &loaded);
        failed = heap.calls >= at;
        assert_int_equal(failed ? BLOOM_NOMEM : BLOOM_OK, status);
        assert_int_equal(failed, loaded == NULL);
        bloom_free(loaded, &env);
        assert_int_equal(0, heap.out);
    }
    bloom_free(bloom, NULL);
    free_chunks(chunks);
}
