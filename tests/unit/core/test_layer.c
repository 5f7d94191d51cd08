/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One layer: the layout bit by bit, the line check of every CPU path, rates
 * against the formula.
 */
#include "core/layer.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "../test.h"
#include "help.h"

static struct fault_heap heap;
static struct bloom_env env;

static struct layer
open_layer(uint64_t capacity, uint64_t lines, uint32_t stripes)
{
    struct geometry geometry = { .lines = lines, .stripes = stripes };
    struct layer layer;

    heap = (struct fault_heap){ 0 };
    env = fault_env(&heap);
    assert_true(layer_init(&layer, BLOOM_NATIVE, capacity, geometry, &env));
    return layer;
}

static void
close_layer(struct layer *layer)
{
    layer_fini(layer, &env);
    assert_int_equal(0, heap.out);
}

static struct bloom_hash
random_hash(uint64_t *state)
{
    struct bloom_hash hash;

    hash.high = test_random(state);
    hash.low = test_random(state);
    return hash;
}

/* Whether this CPU has the path; "portable" always is. */
static bool
select_path(bool portable)
{
    return (strcmp(layer_select_cpu(portable), "portable") == 0) == portable;
}

/* The layout as core/layer.h states it, in the slowest way. */
static void
add_by_definition(uint64_t *words, uint64_t lines, uint32_t stripes,
                  struct bloom_hash hash)
{
    for (uint32_t s = 0; s < stripes; s++) {
        __extension__ unsigned __int128 product = hash.high;
        uint64_t line;

        product *= lines;
        line = s * lines + (uint64_t)(product >> 64);
        for (unsigned i = 0; i < 8; i++) {
            words[8 * line + i] |= (uint64_t)1
                                   << ((hash.low >> (16 + 6 * i)) & 63);
        }
        hash.high *= 0x9E3779B97F4A7C15U;
        hash.low *= 0x9E3779B97F4A7C15U;
    }
}

static void
check_layout(uint64_t lines, uint32_t stripes)
{
    struct layer layer = open_layer(1000, lines, stripes);
    size_t bytes = (size_t)layer_bytes(&layer);
    uint64_t *expected = calloc(1, bytes);
    uint64_t rng = test_seed() + lines;

    assert_non_null(expected);
    assert_int_equal(lines * stripes * 64, bytes);
    for (unsigned i = 0; i < 20 * lines; i++) {
        struct bloom_hash hash = random_hash(&rng);
        bool had = layer_contains(&layer, hash);

        assert_true(layer_add(&layer, hash) == !had);
        assert_true(layer_contains(&layer, hash));
        assert_false(layer_add(&layer, hash));
        add_by_definition(expected, lines, stripes, hash);
        assert_memory_equal(expected, layer.lines, bytes);
    }
    free(expected);
    close_layer(&layer);
}

static void
check_all_layouts(void)
{
    check_layout(1, 1);
    check_layout(2, 1);
    check_layout(7, 2);
    check_layout(13, 3);
    check_layout(3, 103);
}

TEST(the_portable_path_sets_the_defined_bits)
{
    assert_true(select_path(true));
    check_all_layouts();
}

TEST(the_avx2_path_sets_the_defined_bits)
{
    if (!select_path(false)) {
        (void)printf("skipped: this CPU has no AVX2\n");
        skip();
    }
    check_all_layouts();
    assert_true(select_path(true));
}

/* One bit of each kind missing: a check that looks at 7 words would pass all
 * the other tests. */
static void
check_every_word_counts(void)
{
    struct layer layer = open_layer(1, 1, 2);
    uint64_t rng = test_seed() + 2;

    for (unsigned round = 0; round < 64; round++) {
        struct bloom_hash hash = random_hash(&rng);

        for (unsigned word = 0; word < 16; word++) {
            uint64_t *missing = &layer.lines[word / 8].words[word % 8];
            uint64_t low = hash.low;
            uint64_t bit;

            if (word >= 8) {
                low *= 0x9E3779B97F4A7C15U;
            }
            bit = (uint64_t)1 << ((low >> (16 + 6 * (word % 8))) & 63);
            memset(layer.lines, 0xff, 128);
            assert_true(layer_contains(&layer, hash));
            *missing &= ~bit;
            assert_false(layer_contains(&layer, hash));
            assert_true(layer_add(&layer, hash));
            assert_true(*missing == UINT64_MAX);
        }
    }
    close_layer(&layer);
}

TEST(every_word_of_every_stripe_is_looked_at)
{
    assert_true(select_path(true));
    check_every_word_counts();
    if (select_path(false)) {
        check_every_word_counts();
    }
    assert_true(select_path(true));
}

TEST(both_paths_give_the_same_answers)
{
    struct layer layer = open_layer(5000, 64, 2);
    uint64_t rng = test_seed() + 3;
    unsigned hits = 0;

    if (!select_path(false)) {
        close_layer(&layer);
        (void)printf("skipped: this CPU has no AVX2\n");
        skip();
    }
    for (unsigned i = 0; i < 20000; i++) {
        struct bloom_hash hash = random_hash(&rng);
        bool fast;

        assert_true(select_path(false));
        fast = layer_contains(&layer, hash);
        assert_true(select_path(true));
        assert_true(layer_contains(&layer, hash) == fast);
        hits += fast;
        if (i % 4 == 0) {
            (void)layer_add(&layer, hash);
        }
    }
    assert_in_range(hits, 1, 19999);
    close_layer(&layer);
}

/* The loops over many hashes against the calls for one. */
static void
check_many(void)
{
    enum { COUNT = 64, ROUNDS = 20 };
    struct layer one = open_layer(1000, 9, 2);
    struct layer many = one;
    size_t bytes = (size_t)layer_bytes(&one);
    uint64_t rng = test_seed() + 7;

    many.lines = env.alloc_lines(env.ctx, bytes);
    assert_non_null(many.lines);
    for (unsigned round = 0; round < ROUNDS; round++) {
        const struct layer_ops *ops = layer_ops_of(&many);
        struct bloom_hash hashes[COUNT];
        bool found[COUNT];
        bool added[COUNT];
        size_t expected = 0;

        for (unsigned i = 0; i < COUNT; i++) {
            hashes[i] = random_hash(&rng);
        }
        hashes[COUNT - 1] = hashes[0]; /* a duplicate within the batch */
        ops->prefetch_many(&many, hashes, COUNT, many.stripes);
        ops->contains_many(&many, hashes, COUNT, found);
        for (unsigned i = 0; i < COUNT; i++) {
            assert_true(found[i] == layer_contains(&one, hashes[i]));
        }
        for (unsigned i = 0; i < COUNT; i++) {
            added[i] = layer_add(&one, hashes[i]);
            expected += added[i];
        }
        assert_int_equal(expected, ops->add_many(&many, hashes, COUNT, found));
        assert_memory_equal(added, found, sizeof(added));
        assert_memory_equal(one.lines, many.lines, bytes);
    }
    layer_fini(&many, &env);
    close_layer(&one);
}

TEST(many_at_once_are_one_by_one)
{
    assert_true(select_path(true));
    check_many();
    if (select_path(false)) {
        check_many();
    }
    assert_true(select_path(true));
}

/* Two items that share their low word and their line in the first stripe must
 * part in the second. */
static void
check_ones(bool portable)
{
    uint64_t random = test_seed();
    struct line lines[5];

    if (!select_path(portable)) {
        skip();
    }
    for (unsigned round = 0; round < 100; round++) {
        size_t count = test_random_below(&random, 6);
        uint64_t ones = 0;

        for (size_t i = 0; i < 5 * 8; i++) {
            uint64_t word = test_random(&random) & test_random(&random);

            lines[i / 8].words[i % 8] = word;
            for (; i < count * 8 && word != 0; word &= word - 1) {
                ones++;
            }
        }
        assert_int_equal(ones, layer_ops[BLOOM_NATIVE].ones(lines, count));
    }
}

TEST(bits_are_counted_by_the_portable_path)
{
    check_ones(true);
}

TEST(bits_are_counted_by_the_avx2_path)
{
    check_ones(false);
}

TEST(a_pattern_is_not_reused_across_stripes)
{
    struct layer layer = open_layer(100, 1, 2);
    uint64_t rng = test_seed() + 4;
    unsigned same = 0;

    for (unsigned i = 0; i < 1000; i++) {
        memset(layer.lines, 0, 128);
        (void)layer_add(&layer, random_hash(&rng));
        same += memcmp(&layer.lines[0], &layer.lines[1], 64) == 0;
    }
    assert_int_equal(0, same);
    close_layer(&layer);
}

/* The share of strangers that pass full layers, over many layers, within 4
 * sigma of the exact rate. */
static void
check_rate(uint64_t items, uint64_t lines, uint32_t stripes, unsigned layers,
           unsigned queries)
{
    struct layer layer = open_layer(items, lines, stripes);
    double expected = sizing_exact_rate(
        items, (struct geometry){ .lines = lines, .stripes = stripes });
    uint64_t rng = test_seed() + 5;
    double sum = 0;
    double squares = 0;
    double mean;
    double sigma;

    for (unsigned round = 0; round < layers; round++) {
        unsigned passed = 0;
        double rate;

        memset(layer.lines, 0, (size_t)layer_bytes(&layer));
        for (uint64_t i = 0; i < items; i++) {
            (void)layer_add(&layer, random_hash(&rng));
        }
        for (unsigned i = 0; i < queries; i++) {
            passed += layer_contains(&layer, random_hash(&rng));
        }
        rate = passed / (double)queries;
        sum += rate;
        squares += rate * rate;
    }
    mean = sum / layers;
    sigma = sqrt(fmax(squares / layers - mean * mean, 0) / layers);
    if (fabs(mean - expected) > 4 * sigma) {
        fail_msg("%g strangers pass, expected %g, sigma %g", mean, expected,
                 sigma);
    }
    close_layer(&layer);
}

TEST(measured_rates_are_the_exact_rates)
{
    (void)select_path(false);
    check_rate(50, 1, 1, 400, 2000);
    check_rate(100, 2, 1, 400, 2000);
    check_rate(5000, 100, 1, 100, 20000);
    check_rate(100, 2, 2, 1000, 4000);
    check_rate(2000, 25, 2, 100, 20000);
    check_rate(2000, 20, 3, 100, 20000);
    assert_true(select_path(true));
}

TEST(prefetching_changes_nothing)
{
    struct layer layer = open_layer(100, 5, 3);
    uint64_t rng = test_seed() + 6;
    uint64_t before[5 * 3 * 8];

    for (unsigned i = 0; i < 100; i++) {
        struct bloom_hash hash = random_hash(&rng);

        (void)layer_add(&layer, hash);
        memcpy(before, layer.lines, sizeof(before));
        layer_prefetch(&layer, hash, 1);
        layer_prefetch(&layer, hash, 3);
        assert_memory_equal(before, layer.lines, sizeof(before));
    }
    close_layer(&layer);
}

TEST(a_layer_without_memory_leaves_nothing_behind)
{
    struct geometry geometry = { .lines = 2, .stripes = 1 };
    struct layer layer = { .items = 42 };

    heap = (struct fault_heap){ .fail_at = 1 };
    env = fault_env(&heap);
    assert_false(layer_init(&layer, BLOOM_NATIVE, 100, geometry, &env));
    assert_int_equal(42, layer.items);
    assert_int_equal(0, heap.out);
}

TEST(a_layer_beyond_the_address_space_asks_for_no_memory)
{
    struct geometry geometry = { .lines = (uint64_t)1 << 57, .stripes = 1 };
    struct layer layer;

    heap = (struct fault_heap){ 0 };
    env = fault_env(&heap);
    assert_false(layer_init(&layer, BLOOM_NATIVE, 100, geometry, &env));
    assert_int_equal(0, heap.calls);
}

enum { SHARED_ITEMS = 20000 };

struct shared {
    struct layer *layer;
    _Atomic uint64_t added;
    uint64_t missed;
};

static struct bloom_hash
numbered_hash(uint64_t i)
{
    return (struct bloom_hash){ i * LINE_STEP, (i + 7) * LINE_STEP };
}

static void *
look_while_items_come(void *arg)
{
    struct shared *shared = arg;
    uint64_t added = 0;

    while (added < SHARED_ITEMS) {
        added = atomic_load_explicit(&shared->added, memory_order_acquire);
        for (uint64_t i = 0; i < 10 && i < added; i++) {
            shared->missed +=
                !layer_contains(shared->layer, numbered_hash(added - i));
        }
    }
    return NULL;
}

TEST(a_shared_layer_has_each_item_that_was_added_before)
{
    struct layer layer = open_layer(SHARED_ITEMS, SHARED_ITEMS / 8, 2);
    struct shared shared = { .layer = &layer };
    pthread_t thread;

    (void)layer_select_shared();
    assert_int_equal(
        0, pthread_create(&thread, NULL, look_while_items_come, &shared));
    for (uint64_t i = 1; i <= SHARED_ITEMS; i++) {
        (void)layer_add(&layer, numbered_hash(i));
        atomic_store_explicit(&shared.added, i, memory_order_release);
    }
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_int_equal(0, shared.missed);
    (void)layer_select_cpu(true);
    close_layer(&layer);
}
