/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Filters that come in chunks: in order, out of order, repeated, cut, and with
 * every wrong place. All three kinds.
 */
#include "core/stream.h"

#include "../test.h"
#include "core/codec.h"
#include "help.h"
#include "help_codec.h"

enum { ITEMS = 700 };

/* A filter with several layers. */
static struct bloom *
make_full(enum bloom_kind kind, const struct bloom_env *env)
{
    struct bloom_params params = params_of(100, 0.01, 2);
    struct bloom *bloom;

    set_kind(&params, kind);
    if (kind == BLOOM_REDISBLOOM) {
        memset(params.seed, 0, sizeof(params.seed));
    }
    bloom = make(&params, env);
    (void)fill(bloom, env, 1, ITEMS);
    assert_true(bloom->count > 2);
    return bloom;
}

/* Makes an incomplete filter of the same shape. */
static struct bloom *
make_empty(const struct bloom *like, const struct bloom_env *env)
{
    uint8_t *bytes = malloc(CODEC_HEAD_BYTES_MAX);
    size_t end = codec_head_bytes(like);
    struct bloom *bloom = NULL;
    struct codec_head head;

    assert_non_null(bytes);
    (void)codec_put_head(like, 7, bytes);
    bytes[7] |= 0x80;
    memset(bytes + end, 0, 8);
    assert_int_equal(BLOOM_OK, codec_read_head(bytes, end + 8, &head));
    assert_int_equal(BLOOM_OK, codec_check_head(&head));
    assert_int_equal(BLOOM_OK, codec_new(&head, env, &bloom));
    assert_true(bloom_is_incomplete(bloom));
    free(bytes);
    return bloom;
}

static enum stream_status
send(const struct bloom *from, struct bloom *to, const struct bloom_env *env,
     uint64_t offset, size_t len)
{
    uint8_t *chunk = malloc(len + 1);
    enum stream_status status;
    bool changed;

    assert_non_null(chunk);
    stream_read(from, offset, len, chunk);
    status = stream_write(to, env, &(struct stream_chunk){ offset, chunk, len },
                          false, &changed);
    free(chunk);
    return status;
}

/* Cuts the stream at random places, and sends the pieces in random order, some
 * of them twice. */
TEST(chunks_in_any_order_make_the_filter)
{
    uint64_t random = test_seed();

    for (unsigned round = 0; round < 60 * test_rounds(); round++) {
        enum bloom_kind kind = (enum bloom_kind)(round % BLOOM_KINDS);
        struct fault_heap heap = { 0 };
        struct bloom_env env = fault_env(&heap);
        struct bloom *from = make_full(kind, &env);
        struct bloom *to = make_empty(from, &env);
        struct {
            uint64_t at;
            size_t len;
        } pieces[300], swap;
        size_t count = 0;

        for (uint64_t at = 0, left; (left = stream_left(from, at)) > 0;) {
            size_t len = 1 + (size_t)test_random_below(&random, 100);

            pieces[count].at = at;
            pieces[count].len = len < left ? len : (size_t)left;
            at += pieces[count++].len;
            assert_in_range(count, 1, 299);
        }
        for (size_t i = count; i-- > 1;) {
            size_t other = (size_t)test_random_below(&random, i + 1);

            swap = pieces[i];
            pieces[i] = pieces[other];
            pieces[other] = swap;
        }
        for (size_t i = 0; i < count; i++) {
            assert_true(bloom_is_incomplete(to));
            for (uint64_t n = test_random_below(&random, 3); n < 3; n++) {
                assert_int_equal(STREAM_OK, send(from, to, &env, pieces[i].at,
                                                 pieces[i].len));
            }
        }
        assert_true(!bloom_is_incomplete(to) && stream_missing(to) == 0);
        assert_true(bloom_size(to) == bloom_size(from));
        assert_equal_dumps(from, to);
        bloom_free(to, &env);
        bloom_free(from, &env);
        assert_true(heap.out == 0);
    }
}

TEST(a_chunk_outside_or_across_layers_is_refused)
{
    struct bloom *from = make_full(BLOOM_REDISBLOOM, NULL);
    struct bloom *to = make_empty(from, NULL);
    uint64_t first = stream_left(from, 0);
    uint64_t whole = stream_bytes(from);
    uint8_t bytes[2] = { 0 };
    bool changed = true;

    assert_true(stream_left(from, whole) == 0);
    assert_true(stream_left(from, UINT64_MAX) == 0);
    assert_int_equal(STREAM_NO_LAYER,
                     stream_write(to, NULL,
                                  &(struct stream_chunk){ whole, bytes, 1 },
                                  false, &changed));
    assert_int_equal(
        STREAM_NO_LAYER,
        stream_write(to, NULL, &(struct stream_chunk){ UINT64_MAX, bytes, 0 },
                     false, &changed));
    assert_int_equal(STREAM_TOO_LONG,
                     stream_write(to, NULL,
                                  &(struct stream_chunk){ first - 1, bytes, 2 },
                                  false, &changed));
    assert_false(changed);
    assert_true(stream_missing(to) == whole);
    bloom_free(to, NULL);
    bloom_free(from, NULL);
}

/* What has come stays as it came. */
TEST(other_bytes_at_a_place_that_has_come_are_refused)
{
    struct bloom *from = make_full(BLOOM_VALKEYBLOOM, NULL);
    struct bloom *to = make_empty(from, NULL);
    uint8_t bytes[8];
    bool changed;

    assert_int_equal(STREAM_OK, send(from, to, NULL, 16, 8));
    stream_read(from, 20, 8, bytes);
    bytes[0] ^= 1;
    assert_int_equal(STREAM_DIFFERS,
                     stream_write(to, NULL,
                                  &(struct stream_chunk){ 20, bytes, 8 }, false,
                                  &changed));
    bytes[0] ^= 1;
    assert_int_equal(STREAM_OK,
                     stream_write(to, NULL,
                                  &(struct stream_chunk){ 20, bytes, 8 }, false,
                                  &changed));
    assert_true(changed);
    assert_true(stream_missing(to) == stream_bytes(to) - 12);
    bloom_free(to, NULL);
    /* A complete filter takes what it has, and nothing else. */
    stream_read(from, 0, 8, bytes);
    assert_int_equal(STREAM_OK,
                     stream_write(from, NULL,
                                  &(struct stream_chunk){ 0, bytes, 8 }, false,
                                  &changed));
    assert_false(changed);
    bytes[0] ^= 1;
    assert_int_equal(STREAM_DIFFERS,
                     stream_write(from, NULL,
                                  &(struct stream_chunk){ 0, bytes, 8 }, false,
                                  &changed));
    assert_int_equal(STREAM_OK,
                     stream_write(from, NULL,
                                  &(struct stream_chunk){ 0, bytes, 8 }, true,
                                  &changed));
    bloom_free(from, NULL);
}

TEST(too_many_gaps_are_refused_and_can_be_closed)
{
    struct bloom_params params = params_of(1000, 0.01, 0);
    struct bloom *from = make(&params, NULL);
    struct bloom *to = make_empty(from, NULL);

    for (uint64_t i = 0; i < COVERAGE_RANGES_MAX; i++) {
        assert_int_equal(STREAM_OK, send(from, to, NULL, 2 * i, 1));
    }
    assert_int_equal(STREAM_PARTS,
                     send(from, to, NULL, 2 * COVERAGE_RANGES_MAX + 8, 1));
    assert_int_equal(STREAM_OK, send(from, to, NULL, 1, 1));
    assert_int_equal(STREAM_OK,
                     send(from, to, NULL, 2 * COVERAGE_RANGES_MAX + 8, 1));
    assert_int_equal(STREAM_OK,
                     send(from, to, NULL, 0, (size_t)stream_left(from, 0)));
    assert_false(bloom_is_incomplete(to));
    bloom_free(to, NULL);
    bloom_free(from, NULL);
}

TEST(an_incomplete_filter_is_stored_with_what_has_come)
{
    for (unsigned kind = 0; kind < BLOOM_KINDS; kind++) {
        struct bloom *from = make_full((enum bloom_kind)kind, NULL);
        struct bloom *to = make_empty(from, NULL);
        struct bloom *again = NULL;
        struct bytes dump;
        uint64_t incarnation;

        assert_int_equal(STREAM_OK, send(from, to, NULL, 3, 9));
        assert_int_equal(STREAM_OK, send(from, to, NULL, 40, 20));
        dump = dump_of(to, 7);
        assert_int_equal(BLOOM_OK, codec_load(dump.data, dump.len, NULL,
                                              &incarnation, &again));
        assert_true(stream_missing(again) == stream_bytes(from) - 29);
        assert_equal_dumps(to, again);
        for (uint64_t at = 0, left; (left = stream_left(from, at)) > 0;
             at += left) {
            assert_int_equal(STREAM_OK,
                             send(from, again, NULL, at, (size_t)left));
        }
        assert_equal_dumps(from, again);
        bloom_free(again, NULL);
        bloom_free(to, NULL);
        bloom_free(from, NULL);
        free(dump.data);
    }
}

/* A native filter with an unusual seed needs memory when it is complete. */
TEST(completing_survives_a_failing_allocation)
{
    struct bloom_params params = params_of(10, 0.01, 0);
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom *from;
    struct bloom *to;

    memset(params.seed, 9, sizeof(params.seed));
    from = make(&params, &env);
    to = make_empty(from, &env);
    heap.fail_at = heap.calls + 1;
    assert_int_equal(STREAM_NOMEM, send(from, to, &env, 0, 64));
    assert_true(bloom_is_incomplete(to) && stream_missing(to) == 64);
    heap.fail_at = 0;
    assert_int_equal(STREAM_OK, send(from, to, &env, 0, 64));
    assert_equal_dumps(from, to);
    bloom_free(to, &env);
    bloom_free(from, &env);
    assert_true(heap.out == 0);
}
