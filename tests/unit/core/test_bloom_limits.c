/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What stops a filter: the memory limit to the byte, a failing allocation at
 * every place, rates and capacities that run out.
 */
#include "core/bloom.h"
#include <math.h>

#include "../test.h"
#include "help.h"

#define LIMIT_DEFAULT ((uint64_t)128 << 20)

TEST(the_largest_capacity_is_refused_without_asking_for_memory)
{
    static const double rates[] = { 0.999, 0.01, 1e-9, 1e-300 };
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom *bloom = NULL;

    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        struct bloom_params params = params_of(BLOOM_CAPACITY_MAX, rates[i], 2);

        env.size_limit_bytes = LIMIT_DEFAULT;
        assert_int_equal(BLOOM_LIMIT, bloom_new(&params, &env, &bloom));
        if (rates[i] < 0.5) { /* beyond the address space: no limit helps */
            env.size_limit_bytes = UINT64_MAX;
            assert_int_equal(BLOOM_LIMIT, bloom_new(&params, &env, &bloom));
        }
    }
    assert_null(bloom);
    assert_int_equal(0, heap.calls);
}

TEST(a_batch_without_memory_keeps_what_was_added)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom_params params = params_of(40, 1e-6, 2);
    struct bloom *bloom = make(&params, &env);
    struct bloom_hash hashes[BLOOM_BATCH_MAX];
    bool added[BLOOM_BATCH_MAX];
    size_t done = 0;

    for (unsigned i = 0; i < BLOOM_BATCH_MAX; i++) {
        hashes[i] = hash_id(bloom, i);
    }
    heap.calls = 0;
    heap.fail_at = 2; /* the lines of layer 1, after the array */
    assert_int_equal(
        BLOOM_NOMEM,
        bloom_add_batch(bloom, &env, hashes, BLOOM_BATCH_MAX, added, &done));
    assert_int_equal(40, done);
    assert_int_equal(40, bloom_items(bloom));
    heap.fail_at = 0;
    assert_int_equal(BLOOM_OK,
                     bloom_add_batch(bloom, &env, hashes + done,
                                     BLOOM_BATCH_MAX - done, added, &done));
    assert_int_equal(BLOOM_BATCH_MAX - 40, done);
    assert_int_equal(BLOOM_BATCH_MAX, bloom_items(bloom));
    bloom_free(bloom, &env);
    assert_int_equal(0, heap.out);
}

static void
check_failed_creation(const struct bloom_params *params, uint64_t pieces)
{
    for (uint64_t nth = 1;; nth++) {
        struct fault_heap heap = { .fail_at = nth };
        struct bloom_env env = fault_env(&heap);
        struct bloom *bloom = NULL;
        enum bloom_status status = bloom_new(params, &env, &bloom);

        if (heap.calls < nth) {
            assert_int_equal(BLOOM_OK, status);
            assert_int_equal(pieces + 1, nth);
            bloom_free(bloom, &env);
            assert_int_equal(0, heap.out);
            return;
        }
        assert_int_equal(BLOOM_NOMEM, status);
        assert_null(bloom);
        assert_int_equal(0, heap.out);
    }
}

TEST(creation_survives_every_allocation_failure)
{
    struct bloom_params params = params_of(100, 0.01, 2);

    check_failed_creation(&params, 2); /* the struct and its lines */
    params.tightening = 0.6;
    check_failed_creation(&params, 3); /* and what is odd */
}

/* Grows through nine layers; every add that allocates is tried with each of
 * its allocations failing first. */
TEST(growth_survives_every_allocation_failure)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom_params params = params_of(5, 0.01, 1);
    struct bloom *bloom = make(&params, &env);
    unsigned failures = 0;

    for (uint64_t id = 0; bloom_items(bloom) < 45; id++) {
        struct bloom_hash hash = hash_id(bloom, id);
        struct snapshot before = snapshot_of(bloom);
        uint64_t out = heap.out;
        bool added;

        for (uint64_t nth = 1;; nth++) {
            enum bloom_status status;

            added = id % 2 == 0;
            heap.calls = 0;
            heap.fail_at = nth;
            status = bloom_add(bloom, &env, hash, &added);
            if (heap.calls < nth) {
                assert_int_equal(BLOOM_OK, status);
                break;
            }
            assert_int_equal(BLOOM_NOMEM, status);
            assert_true(added == (id % 2 == 0));
            assert_same(before, snapshot_of(bloom));
            assert_int_equal(out, heap.out);
            failures++;
        }
    }
    /* 8 growths fail for their lines, 4 of them (2nd, 3rd, 5th and 9th layer)
     * for the array as well. */
    assert_int_equal(12, failures);
    heap.fail_at = 0;
    bloom_free(bloom, &env);
    assert_int_equal(0, heap.out);
}

TEST(creation_meets_the_limit_to_the_byte)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom_params params = params_of(100, 0.01, 2);
    struct bloom *bloom = NULL;

    env.size_limit_bytes = 383; /* what valkey-bloom takes for it, less one */
    assert_int_equal(BLOOM_LIMIT, bloom_new(&params, &env, &bloom));
    env.size_limit_bytes = 0;
    assert_int_equal(BLOOM_LIMIT, bloom_new(&params, &env, &bloom));
    assert_null(bloom);
    assert_int_equal(0, heap.calls);
    env.size_limit_bytes = 384;
    bloom = make(&params, &env);
    bloom_free(bloom, &env);
}

/* What is there in a limit, and at most a quarter more. */
static bool
is_within(uint64_t size_bytes, uint64_t limit)
{
    return size_bytes <= limit + limit / 4;
}

/* Under random limits a filter ends where the projection says, or a layer
 * further, since that counts the slots before they are there; for the reason
 * that it says; and stays usable. */
TEST(growth_ends_where_the_projection_says)
{
    uint64_t rng = test_seed() + 1;

    for (unsigned round = 0; round < 60; round++) {
        struct fault_heap heap = { 0 };
        struct bloom_env env = fault_env(&heap);
        struct bloom_params params =
            params_of(1 + test_random_below(&rng, 300),
                      pow(10, -1 - 4 * test_random_unit(&rng)),
                      1 + (uint32_t)test_random_below(&rng, 4));
        uint64_t limit = 300 + test_random_below(&rng, 50000);
        uint64_t total = 0;
        uint64_t most = 0;
        uint64_t slots_bytes;
        struct bloom *bloom = NULL;
        struct snapshot full;
        bool added = true;
        uint64_t id;

        env.size_limit_bytes = limit;
        assert_int_equal(BLOOM_OK, plan_project(&params, limit, 0, &total));
        if (total == 0) {
            assert_int_equal(BLOOM_LIMIT, bloom_new(&params, &env, &bloom));
            continue;
        }
        assert_int_equal(BLOOM_OK, plan_project(&params, limit, total, NULL));
        assert_int_equal(BLOOM_LIMIT,
                         plan_project(&params, limit, total + 1, NULL));
        bloom = make(&params, &env);
        id = fill(bloom, &env, 0, total);
        slots_bytes = 16 * ((uint64_t)snapshot_of(bloom).info.layers + 4);
        assert_int_equal(BLOOM_OK,
                         plan_project(&params, limit + slots_bytes, 0, &most));
        if (most > total) {
            while (bloom_add(bloom, &env, hash_id(bloom, id), &added) ==
                       BLOOM_OK &&
                   bloom_items(bloom) < most) {
                id++;
            }
            total = bloom_items(bloom);
        }
        assert_true(is_within(heap.out, limit));
        full = snapshot_of(bloom);
        while (bloom_contains(bloom, hash_id(bloom, id))) {
            id++;
        }
        added = true;
        assert_int_equal(BLOOM_LIMIT,
                         bloom_add(bloom, &env, hash_id(bloom, id), &added));
        assert_true(added);
        assert_same(full, snapshot_of(bloom));
        assert_int_equal(total, bloom_items(bloom));
        bloom_free(bloom, &env);
    }
}

TEST(growth_stops_when_the_rate_reaches_zero)
{
    struct bloom_params params = params_of(1, 0.01, 1);
    struct bloom *bloom;
    struct snapshot before;
    bool added = true;
    uint64_t id;

    params.tightening = 1e-100;
    bloom = make(&params, NULL);
    id = fill(bloom, NULL, 0, 4); /* 1e-2, 1e-102, 1e-202, 1e-302 */
    before = snapshot_of(bloom);
    assert_int_equal(BLOOM_RATE_ZERO,
                     bloom_add(bloom, NULL, hash_id(bloom, id), &added));
    assert_true(added);
    assert_same(before, snapshot_of(bloom));
    bloom_free(bloom, NULL);
}

TEST(growth_by_a_huge_factor_asks_for_no_memory)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom_params params = params_of(40, 0.5, UINT32_MAX);
    struct bloom *bloom = make(&params, &env);
    uint64_t id = fill(bloom, &env, 0, 40);
    struct snapshot before = snapshot_of(bloom);
    bool added = true;

    while (bloom_contains(bloom, hash_id(bloom, id))) {
        id++;
    }
    env.size_limit_bytes = 1000000; /* 40 x 2^32 items fit in no megabyte */
    heap.calls = 0;
    assert_int_equal(BLOOM_LIMIT,
                     bloom_add(bloom, &env, hash_id(bloom, id), &added));
    assert_int_equal(0, heap.calls);
    assert_same(before, snapshot_of(bloom));
    bloom_free(bloom, &env);
}

TEST(growth_stops_at_the_last_layer)
{
    struct bloom_params params = params_of(1, 0.9, 1);
    struct bloom *bloom;
    struct bloom_info info = { .struct_size = sizeof(info) };
    uint64_t id = 0;
    bool added = true;

    assert_int_equal(1024, BLOOM_LAYERS_MAX); /* as is documented */
    params.tightening = 0.9999;
    bloom = make(&params, NULL);
    /* One item in a layer of one line: hardly any false positive, so that
     * nearly every id makes a layer. */
    id = fill(bloom, NULL, id, BLOOM_LAYERS_MAX);
    bloom_get_info(bloom, &info);
    assert_int_equal(BLOOM_LAYERS_MAX, info.layers);
    while (bloom_contains(bloom, hash_id(bloom, id))) {
        id++;
    }
    assert_int_equal(BLOOM_MAX_LAYERS,
                     bloom_add(bloom, NULL, hash_id(bloom, id), &added));
    assert_true(added);
    assert_true(bloom_contains(bloom, hash_id(bloom, 0)));
    bloom_free(bloom, NULL);
}
