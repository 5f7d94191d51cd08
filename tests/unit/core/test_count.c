/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bloom_count_new(): distinct items that are not in the filter.
 */
#include "../test.h"
#include "help.h"

enum { MOST = 1000 };

TEST(new_items_are_counted_once_and_nothing_is_added)
{
    struct bloom_params params = PARAMS(10, 1e-9, 0.5, 2);
    struct bloom *bloom = make(&params, NULL);
    struct bloom_hash hashes[MOST];
    size_t count = 4711;
    struct snapshot before;

    (void)fill(bloom, NULL, 0, 300);
    before = snapshot_of(bloom);
    assert_int_equal(BLOOM_OK, bloom_count_new(bloom, NULL, NULL, 0, &count));
    assert_int_equal(0, count);
    /* 0..299 are there, 300..499 are new, and all come twice. */
    for (size_t i = 0; i < MOST; i++) {
        hashes[i] = hash_id(bloom, i % 500);
    }
    assert_int_equal(BLOOM_OK,
                     bloom_count_new(bloom, NULL, hashes, MOST, &count));
    assert_int_equal(200, count);
    assert_int_equal(BLOOM_OK,
                     bloom_count_new(bloom, NULL, hashes, 301, &count));
    assert_int_equal(1, count);
    assert_same(before, snapshot_of(bloom));
    bloom_free(bloom, NULL);
}

TEST(hashes_that_meet_in_the_set_are_told_apart)
{
    struct bloom_params params = PARAMS(100, 0.01, 0.5, 2);
    struct bloom *bloom = make(&params, NULL);
    struct bloom_hash hashes[] = { { 0, 0 }, { 1, 0 }, { 0, 1 },
                                   { 1, 1 }, { 0, 0 }, { 7, 7 } };
    size_t count = 0;

    assert_int_equal(BLOOM_OK, bloom_count_new(bloom, NULL, hashes, 6, &count));
    assert_int_equal(5, count);
    bloom_free(bloom, NULL);
}

TEST(without_memory_nothing_is_counted)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom_params params = PARAMS(100, 0.01, 0.5, 2);
    struct bloom *bloom = make(&params, &env);
    struct bloom_hash hash = hash_id(bloom, 1);
    uint64_t out = heap.out;
    size_t count = 4711;

    heap.fail_at = heap.calls + 1;
    assert_int_equal(BLOOM_NOMEM,
                     bloom_count_new(bloom, &env, &hash, 1, &count));
    assert_int_equal(BLOOM_NOMEM,
                     bloom_count_new(bloom, &env, &hash, SIZE_MAX, &count));
    assert_int_equal(4711, count);
    assert_int_equal(BLOOM_OK, bloom_count_new(bloom, &env, &hash, 1, &count));
    assert_int_equal(1, count);
    assert_int_equal(out, heap.out);
    bloom_free(bloom, &env);
}
