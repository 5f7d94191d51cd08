/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The chain: what a filter costs, how it grows, what stops it, and that a
 * failure leaves it as it was.
 */
#include "core/bloom.h"
#include "core/versioned.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "../test.h"
#include "help.h"

TEST(a_default_filter_costs_200_bytes)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom_params params = params_of(100, 0.01, 2);
    struct bloom *bloom = make(&params, &env);
    struct bloom_layer_info layer = { .struct_size = sizeof(layer) };

    assert_int_equal(200, bloom_size(bloom));
    assert_int_equal(200, heap.out);
    assert_int_equal(2, heap.calls);
    assert_true(bloom_get_layer(bloom, 0, &layer));
    assert_int_equal(2, layer.lines);
    assert_int_equal(1, layer.stripes);
    assert_int_equal(100, layer.capacity);
    assert_true(layer.error_rate > 0.008 && layer.error_rate < 0.01);
    assert_false(bloom_get_layer(bloom, 1, &layer));
    bloom_free(bloom, &env);
    assert_int_equal(0, heap.out);
}

TEST(odd_parameters_cost_40_bytes)
{
    struct bloom_params params[4];

    for (unsigned i = 0; i < 4; i++) {
        params[i] = params_of(100, 0.01, 2);
    }
    bloom_seed(test_seed(), params[1].seed);
    params[2].tightening = 0.4;
    params[3].seed[31] = 1;
    for (unsigned i = 0; i < 4; i++) {
        struct fault_heap heap = { 0 };
        struct bloom_env env = fault_env(&heap);
        struct bloom *bloom = make(&params[i], &env);
        struct bloom_params back = { .struct_size = sizeof(back) };

        assert_int_equal(i < 2 ? 200 : 240, bloom_size(bloom));
        bloom_get_params(bloom, &back);
        assert_true(back.tightening == params[i].tightening);
        assert_memory_equal(back.seed, params[i].seed, BLOOM_SEED_BYTES);
        bloom_free(bloom, &env);
        assert_int_equal(0, heap.out);
    }
}

static void
check_size(const struct bloom_params *params)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom *bloom = make(params, &env);
    uint64_t before = bloom_size(bloom);
    uint32_t layers = 1;

    for (uint64_t id = 0; id < 200; id++) {
        struct bloom_info info = { .struct_size = sizeof(info) };
        bool added;

        assert_int_equal(BLOOM_OK,
                         bloom_add(bloom, &env, hash_id(bloom, id), &added));
        bloom_get_info(bloom, &info);
        assert_int_equal(heap.out, info.size_bytes);
        assert_int_equal(3 * (uint64_t)info.layers, info.capacity);
        if (info.layers > layers) {
            assert_int_equal(info.size_bytes - before,
                             bloom_growth_bytes(bloom));
        }
        layers = info.layers;
        before = info.size_bytes;
    }
    assert_true(layers > 17); /* the chain was replaced several times */
    bloom_free(bloom, &env);
    assert_int_equal(0, heap.out);
}

TEST(size_is_what_was_asked_of_the_allocator)
{
    struct bloom_params params = params_of(3, 0.01, 1);

    check_size(&params);
    params.tightening = 0.6;
    check_size(&params);
}

/* Whatever hangs on it. */
TEST(a_filter_can_be_moved)
{
    static const uint64_t items[] = { 0, 20, 21, 700 };

    for (unsigned i = 0; i < 8; i++) {
        struct fault_heap heap = { 0 };
        struct bloom_env env = fault_env(&heap);
        struct bloom_params params = params_of(20, 0.001, 2);
        struct bloom *bloom;
        struct snapshot before;
        struct bloom moved;
        uint64_t id;

        params.seed[7] = i % 2;
        bloom = make(&params, &env);
        id = fill(bloom, &env, 0, items[i / 2]);
        before = snapshot_of(bloom);
        moved = *bloom;
        memset(bloom, 0xff, sizeof(*bloom));
        env.free(env.ctx, bloom, sizeof(*bloom));
        assert_same(before, snapshot_of(&moved));
        (void)fill(&moved, &env, id, 100);
        assert_int_equal(items[i / 2] + 100, bloom_items(&moved));
        for (uint64_t old = 0; old < id; old++) {
            assert_true(bloom_contains(&moved, hash_id(&moved, old)));
        }
        bloom_fini(&moved, &env);
        assert_int_equal(0, heap.out);
    }
}

TEST(parameters_out_of_range_are_invalid)
{
    static const double bad[] = {
        0, 1, -0.1, 1.5, (double)NAN, (double)INFINITY
    };
    struct bloom_params params = params_of(0, 0.01, 2);
    struct bloom *bloom = NULL;
    uint64_t total = 7;

    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    params.capacity = (uint64_t)BLOOM_CAPACITY_MAX + 1;
    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        params = params_of(100, bad[i], 2);
        assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
        assert_int_equal(BLOOM_INVALID,
                         plan_project(&params, INT64_MAX, 0, &total));
        params = params_of(100, 0.01, 2);
        params.tightening = bad[i];
        assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    }
    assert_null(bloom);
    assert_int_equal(7, total);
}

TEST(duplicates_are_not_new_and_not_counted)
{
    struct bloom_params params = params_of(100, 0.01, 2);
    struct bloom *bloom = make(&params, NULL);
    uint64_t next = fill(bloom, NULL, 0, 350);
    struct snapshot before = snapshot_of(bloom);

    for (uint64_t id = 0; id < next; id++) {
        bool added = true;

        assert_true(bloom_contains(bloom, hash_id(bloom, id)));
        assert_int_equal(BLOOM_OK,
                         bloom_add(bloom, NULL, hash_id(bloom, id), &added));
        assert_false(added);
    }
    assert_same(before, snapshot_of(bloom));
    assert_int_equal(350, bloom_items(bloom));
    bloom_free(bloom, NULL);
}

TEST(a_full_nonscaling_filter_refuses_new_items_only)
{
    struct bloom_params params = params_of(50, 0.001, 0);
    struct bloom *bloom = make(&params, NULL);
    uint64_t next = fill(bloom, NULL, 0, 50);
    struct snapshot before = snapshot_of(bloom);
    bool added = true;

    assert_int_equal(BLOOM_OK,
                     bloom_add(bloom, NULL, hash_id(bloom, 0), &added));
    assert_false(added);
    added = true;
    while (bloom_contains(bloom, hash_id(bloom, next))) {
        next++;
    }
    assert_int_equal(BLOOM_FULL,
                     bloom_add(bloom, NULL, hash_id(bloom, next), &added));
    assert_true(added);
    assert_same(before, snapshot_of(bloom));
    bloom_free(bloom, NULL);
}

TEST(layers_multiply_capacity_and_tighten_the_rate)
{
    struct bloom_params params = params_of(100, 0.01, 3);
    struct bloom *bloom = make(&params, NULL);
    uint64_t capacity = 100;
    double rate = 0.01;
    struct bloom_layer_info layer = { .struct_size = sizeof(layer) };
    struct bloom_info info = { .struct_size = sizeof(info) };

    (void)fill(bloom, NULL, 0, 100 + 300 + 900 + 1);
    bloom_get_info(bloom, &info);
    assert_int_equal(4, info.layers);
    assert_int_equal(4000, info.capacity);
    assert_int_equal(1301, info.items);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(bloom_get_layer(bloom, i, &layer));
        assert_int_equal(capacity, layer.capacity);
        assert_int_equal(i < 3 ? capacity : 1, layer.items);
        assert_true(layer.error_rate <= rate);
        capacity *= 3;
        rate *= 0.5;
    }
    bloom_free(bloom, NULL);
}

/* Items as a server has them: text of all lengths that hash differently. */
static struct bloom_hash
hash_of(const struct bloom *bloom, uint64_t id)
{
    char text[40];
    int len = snprintf(text, sizeof(text), "%0*llu", (int)(id % 37) + 1,
                       (unsigned long long)id);

    assert_in_range(len, 1, 39);
    return bloom_hash(bloom, text, (size_t)len);
}

/* One batch of COUNT random items to BATCHED as a batch and to SINGLE one by
 * one: the same answers, and the same status where both stop. */
static enum bloom_status
check_batch(struct bloom *batched, struct bloom *single, size_t count,
            uint64_t *rng)
{
    struct bloom_hash hashes[BLOOM_BATCH_MAX] = { { 0, 0 } };
    bool answers[BLOOM_BATCH_MAX];
    size_t done = SIZE_MAX;
    enum bloom_status status;

    for (size_t i = 0; i < count; i++) {
        hashes[i] = hash_of(batched, test_random_below(rng, 3000));
    }
    bloom_prefetch_batch(batched, hashes, count);
    bloom_contains_batch(batched, hashes, count, answers);
    for (size_t i = 0; i < count; i++) {
        assert_true(answers[i] == bloom_contains(single, hashes[i]));
    }
    status = bloom_add_batch(batched, NULL, hashes, count, answers, &done);
    assert_true(done == count || status != BLOOM_OK);
    for (size_t i = 0; i < done; i++) {
        bool added;

        assert_int_equal(BLOOM_OK, bloom_add(single, NULL, hashes[i], &added));
        assert_true(answers[i] == added);
    }
    if (done < count) {
        bool added;

        assert_int_equal(status, bloom_add(single, NULL, hashes[done], &added));
    }
    return status;
}

static void
check_batches(struct bloom_params params, enum bloom_status expected)
{
    struct bloom *batched = make(&params, NULL);
    struct bloom *single = make(&params, NULL);
    enum bloom_status status = BLOOM_OK;
    uint64_t rng = test_seed();

    for (unsigned round = 0; round < 200; round++) {
        size_t count = test_random_below(&rng, BLOOM_BATCH_MAX + 1);

        status = check_batch(batched, single, count, &rng);
        assert_true(status == BLOOM_OK || status == expected);
    }
    /* The last batch may hold nothing new; one of 64 items hardly. */
    status = check_batch(batched, single, BLOOM_BATCH_MAX, &rng);
    assert_int_equal(expected, status);
    assert_same(snapshot_of(single), snapshot_of(batched));
    bloom_free(batched, NULL);
    bloom_free(single, NULL);
}

TEST(a_batch_gives_what_one_by_one_gives)
{
    (void)bloom_select_cpu(false);
    check_batches(params_of(10, 0.01, 2), BLOOM_OK);     /* grows within */
    check_batches(params_of(50, 0.0001, 1), BLOOM_OK);   /* stripes */
    check_batches(params_of(100000, 0.01, 2), BLOOM_OK); /* never fills */
    check_batches(params_of(300, 1e-7, 0), BLOOM_FULL);  /* stops within */
    (void)bloom_select_cpu(true);
    check_batches(params_of(10, 0.01, 2), BLOOM_OK);
    check_batches(params_of(300, 1e-7, 0), BLOOM_FULL);
}

TEST(the_seed_decides_the_bits)
{
    struct bloom_params params = params_of(1000, 0.01, 2);
    struct bloom *one = make(&params, NULL);
    struct bloom *same = make(&params, NULL);
    struct bloom *other;

    params.seed[31] = 1;
    other = make(&params, NULL);
    (void)fill(one, NULL, 0, 500);
    (void)fill(same, NULL, 0, 500);
    (void)fill(other, NULL, 0, 500);
    assert_same(snapshot_of(one), snapshot_of(same));
    assert_true(snapshot_of(one).hash != snapshot_of(other).hash);
    bloom_free(one, NULL);
    bloom_free(same, NULL);
    bloom_free(other, NULL);
}

/* XXH3_128bits_withSeed("foo", XXH3_64bits(32 zero bytes)), and the bits that
 * follow: a filter that is stored or sent must mean the same everywhere. */
TEST(hashes_and_bits_are_fixed_for_ever)
{
    struct bloom_params params = params_of(100, 0.01, 2);
    struct bloom *bloom = make(&params, NULL);
    struct bloom_hash hash = bloom_hash(bloom, "foo", 3);
    size_t bytes = 0;
    const uint64_t *words;
    bool added;

    assert_int_equal(BLOOM_OK, bloom_add(bloom, NULL, hash, &added));
    words = bloom_layer_lines(bloom, 0, &bytes);
    assert_int_equal(128, bytes);
    assert_true(hash.high == 0x89800288ae039eebU);
    assert_true(hash.low == 0xb31c4bbfb266906dU);
    for (unsigned i = 0; i < 8; i++) {
        unsigned line = (unsigned)(hash.high >> 63); /* of two */

        assert_true(words[8 * line + i] ==
                    (uint64_t)1 << ((hash.low >> (16 + 6 * i)) & 63));
    }
    bloom_free(bloom, NULL);
}

TEST(parameters_come_back_and_rebuild_the_same_filter)
{
    struct bloom_params params = params_of(12345, 0.003, 7);
    struct bloom_params back = { .struct_size = sizeof(back) };
    struct bloom *first;
    struct bloom *second;

    params.tightening = 0.75;
    memset(params.seed, 0xa5, sizeof(params.seed));
    first = make(&params, NULL);
    bloom_get_params(first, &back);
    assert_int_equal(params.capacity, back.capacity);
    assert_true(params.error_rate == back.error_rate);
    assert_true(params.tightening == back.tightening);
    assert_int_equal(params.expansion, back.expansion);
    assert_memory_equal(params.seed, back.seed, sizeof(back.seed));
    assert_true(back.lines > 0 && back.stripes == 1);
    second = make(&back, NULL);
    (void)fill(first, NULL, 0, 20000);
    (void)fill(second, NULL, 0, 20000);
    assert_same(snapshot_of(first), snapshot_of(second));
    bloom_get_params(second, &params);
    assert_memory_equal(&back, &params, sizeof(back));
    bloom_free(first, NULL);
    bloom_free(second, NULL);
}

TEST(stored_lines_are_kept_when_they_are_acceptable)
{
    struct bloom_params params = params_of(12345, 0.003, 2);
    struct bloom *bloom = make(&params, NULL);
    struct bloom_layer_info layer = { .struct_size = sizeof(layer) };
    uint64_t formula;

    bloom_get_params(bloom, &params);
    bloom_free(bloom, NULL);
    formula = params.lines;
    params.lines = formula + 1;
    bloom = make(&params, NULL);
    assert_true(bloom_get_layer(bloom, 0, &layer));
    assert_int_equal(formula + 1, layer.lines);
    bloom_free(bloom, NULL);

    bloom = NULL;
    params.lines = formula + 2;
    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    params.lines = formula / 2;
    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    params.lines = 0;
    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    params.lines = formula;
    params.stripes++;
    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    params.lines = UINT64_MAX;
    params.stripes = UINT32_MAX;
    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    assert_null(bloom);
}

/* One layer or many, of whatever shape: as new, with nothing left over. */
TEST(a_reset_filter_is_as_new)
{
    static const uint64_t items[] = { 0, 1, 20, 21, 60, 700, 0, 1, 700 };
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom_params params = params_of(20, 0.001, 2);

    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        struct bloom_params after = { .struct_size = sizeof(after) };
        struct snapshot fresh;
        struct bloom *bloom;

        params.seed[7] = i < 6 ? 7 : 0; /* odd or not */
        bloom = make(&params, &env);
        fresh = snapshot_of(bloom);
        fill(bloom, &env, 0, items[i]);
        bloom_reset(bloom, &env);
        assert_same(fresh, snapshot_of(bloom));
        assert_int_equal(heap.out, bloom_size(bloom));
        bloom_get_params(bloom, &after);
        assert_int_equal(20, after.capacity);
        assert_int_equal(2, after.expansion);
        assert_memory_equal(params.seed, after.seed, BLOOM_SEED_BYTES);
        fill(bloom, &env, 0, 700); /* and it grows as before */
        assert_true(bloom_contains(bloom, hash_id(bloom, 0)));
        bloom_free(bloom, &env);
        assert_int_equal(0, heap.out);
    }
}

TEST(every_status_has_a_text)
{
    for (int status = BLOOM_OK; status <= BLOOM_SECRET; status++) {
        assert_string_not_equal("unknown status",
                                bloom_status_text((enum bloom_status)status));
    }
}

TEST(freeing_nothing_is_fine)
{
    bloom_free(NULL, NULL);
}

TEST(items_go_one_by_one_where_pages_are_fresh_or_layers_many)
{
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .capacity = 1000,
                                   .error_rate = 0.01,
                                   .tightening = 0.5,
                                   .expansion = 2 };
    struct bloom *bloom = NULL;
    bool added;

    assert_int_equal(BLOOM_OK, bloom_new(&params, NULL, &bloom));
    assert_int_equal(BLOOM_BATCH_MAX, bloom_together(bloom));
    bloom_free(bloom, NULL);

    params.capacity = 50 * 1000 * 1000; /* about 60 MiB */
    assert_int_equal(BLOOM_OK, bloom_new(&params, NULL, &bloom));
    assert_int_equal(1, bloom_together(bloom));
    for (uint64_t i = 0; i < 1000; i++) {
        struct bloom_hash hash = bloom_hash(bloom, &i, sizeof(i));

        assert_int_equal(BLOOM_OK, bloom_add(bloom, NULL, hash, &added));
    }
    assert_int_equal(BLOOM_BATCH_MAX, bloom_together(bloom));
    bloom_free(bloom, NULL);

    params.capacity = 1;
    params.expansion = 1;
    params.tightening = 0.99;
    assert_int_equal(BLOOM_OK, bloom_new(&params, NULL, &bloom));
    for (uint64_t i = 0; i < 200; i++) {
        struct bloom_hash hash = bloom_hash(bloom, &i, sizeof(i));

        assert_int_equal(BLOOM_OK, bloom_add(bloom, NULL, hash, &added));
    }
    assert_in_range(bloom_together(bloom), 1, BLOOM_BATCH_MAX / 8);
    bloom_free(bloom, NULL);
}

/* A batch that would go on in a new layer ends where that begins. */
TEST(no_batch_crosses_into_a_large_layer)
{
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .capacity = 2 * 1000 * 1000,
                                   .error_rate = 0.01,
                                   .tightening = 0.5,
                                   .expansion = 2 };
    struct bloom *bloom = NULL;
    uint64_t i = 0;
    bool added;

    assert_int_equal(BLOOM_OK, bloom_new(&params, NULL, &bloom));
    while (bloom_items(bloom) < params.capacity - 10) {
        assert_int_equal(
            BLOOM_OK,
            bloom_add(bloom, NULL, bloom_hash(bloom, &i, sizeof(i)), &added));
        i++;
    }
    assert_int_equal(10, bloom_together(bloom));
    while (bloom_items(bloom) < params.capacity) {
        assert_int_equal(
            BLOOM_OK,
            bloom_add(bloom, NULL, bloom_hash(bloom, &i, sizeof(i)), &added));
        i++;
    }
    assert_int_equal(1, bloom_together(bloom));
    bloom_free(bloom, NULL);
}

/* ---- struct_size ----------------------------------------------------------
 */

/* The struct of a program that was compiled with a later version. */
struct later_params {
    struct bloom_params params;
    uint64_t later;
};

TEST(params_of_another_size_are_read_if_they_say_nothing_unknown)
{
    struct later_params later = { .params = PARAMS(100, 0.01, 0.5, 2) };
    struct bloom *bloom = NULL;

    later.params.struct_size = sizeof(later);
    assert_int_equal(BLOOM_OK, bloom_new(&later.params, NULL, &bloom));
    bloom_free(bloom, NULL);
    bloom = NULL;
    later.later = 1;
    assert_int_equal(BLOOM_INVALID, bloom_new(&later.params, NULL, &bloom));
    later.params.struct_size = offsetof(struct bloom_params, region) - 1;
    assert_int_equal(BLOOM_INVALID, bloom_new(&later.params, NULL, &bloom));
    later.params.struct_size = 0;
    assert_int_equal(BLOOM_INVALID, bloom_new(&later.params, NULL, &bloom));
    later.params = (struct bloom_params)PARAMS(100, 0.01, 0.5, 2);
    later.params.flags = 1;
    assert_int_equal(BLOOM_INVALID, bloom_new(&later.params, NULL, &bloom));
    later.params.flags = 0;
    later.params.kind = 77;
    assert_int_equal(BLOOM_INVALID, bloom_new(&later.params, NULL, &bloom));
    assert_null(bloom);
}

TEST(getters_fill_exactly_the_struct_of_the_caller)
{
    struct bloom_params params = PARAMS(100, 0.01, 0.5, 2);
    struct bloom *bloom = make(&params, NULL);
    struct {
        struct bloom_params known;
        uint64_t later, behind;
    } read = { .known.struct_size = sizeof(read.known) + sizeof(read.later),
               .later = 7,
               .behind = 7 };
    struct {
        struct bloom_info known;
        uint64_t later, behind;
    } info = { .known.struct_size = sizeof(info.known) + sizeof(info.later),
               .later = 7,
               .behind = 7 };
    struct {
        struct bloom_layer_info known;
        uint64_t later, behind;
    } layer = { .known.struct_size = sizeof(layer.known) + sizeof(layer.later),
                .later = 7,
                .behind = 7 };

    bloom_get_params(bloom, &read.known);
    assert_int_equal(sizeof(read.known) + 8, read.known.struct_size);
    assert_int_equal(100, read.known.capacity);
    assert_int_equal(0, read.later);
    assert_int_equal(7, read.behind);
    bloom_get_info(bloom, &info.known);
    assert_int_equal(sizeof(info.known) + 8, info.known.struct_size);
    assert_int_equal(100, info.known.capacity);
    assert_int_equal(BLOOM_NATIVE, info.known.kind);
    assert_int_equal(0, info.later);
    assert_int_equal(7, info.behind);
    assert_true(bloom_get_layer(bloom, 0, &layer.known));
    assert_int_equal(sizeof(layer.known) + 8, layer.known.struct_size);
    assert_int_equal(8, layer.known.hashes);
    assert_int_equal(0, layer.later);
    assert_int_equal(7, layer.behind);
    bloom_free(bloom, NULL);
}

/* As in a library of a later version: LEAST is less than SIZE. */
TEST(a_struct_of_an_earlier_version_gets_its_members_alone)
{
    struct four {
        size_t struct_size;
        uint64_t first, second, third;
    } theirs[2] = { { sizeof(*theirs) - 8, 1, 2, 3 } }, /* as if longer */
        ours = { 0, 0, 0, 9 };

    assert_true(versioned_read(theirs, &ours, sizeof(ours), 24));
    assert_int_equal(sizeof(ours), ours.struct_size);
    assert_int_equal(1, ours.first);
    assert_int_equal(2, ours.second);
    assert_int_equal(0, ours.third);
    ours = (struct four){ sizeof(ours), 4, 5, 6 };
    versioned_write(theirs, &ours, sizeof(ours), 24);
    assert_int_equal(sizeof(*theirs) - 8, theirs[0].struct_size);
    assert_int_equal(4, theirs[0].first);
    assert_int_equal(5, theirs[0].second);
    assert_int_equal(3, theirs[0].third);
    theirs[0].struct_size = 23;
    assert_false(versioned_read(theirs, &ours, sizeof(ours), 24));
}

TEST(an_outline_hashes_as_its_filter)
{
    struct bloom_params params = params_of(10, 0.01, 2);
    struct bloom outline;
    struct bloom *bloom;
    struct bloom *other;
    bool added;

    assert_int_equal(BLOOM_OK, bloom_new(&params, NULL, &bloom));
    params.seed[0] ^= 1;
    assert_int_equal(BLOOM_OK, bloom_new(&params, NULL, &other));
    for (int i = 0; i < 100; i++) {
        assert_int_equal(
            BLOOM_OK,
            bloom_add(bloom, NULL, bloom_hash(bloom, &i, sizeof(i)), &added));
    }
    assert_true(bloom->count > 1);
    assert_true(bloom_outline(bloom, &outline));
    assert_int_equal(1, outline.count);
    assert_ptr_equal(bloom_newest(bloom)->lines, outline.first.lines);
    assert_memory_equal(
        &(struct bloom_hash[]){ bloom_hash(bloom, "item", 4) },
        &(struct bloom_hash[]){ bloom_hash(&outline, "item", 4) },
        sizeof(struct bloom_hash));
    assert_true(bloom_hashes_alike(bloom, &outline));
    assert_false(bloom_hashes_alike(other, &outline));
    bloom_free(other, NULL);
    bloom_free(bloom, NULL);
}

/* ---- pages --------------------------------------------------------------- */

static void *
map_small_pages(void *ctx, size_t bytes)
{
    void *lines = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)ctx;
    assert_true(lines != MAP_FAILED);
    (void)madvise(lines, bytes, MADV_NOHUGEPAGE);
    return lines;
}

static void
unmap(void *ctx, void *lines, size_t bytes)
{
    (void)ctx;
    assert_int_equal(0, munmap(lines, bytes));
}

static long
faults(void)
{
    struct rusage usage;

    assert_int_equal(0, getrusage(RUSAGE_THREAD, &usage));
    return usage.ru_minflt;
}

/* Touching costs a page fault for each page that adds will write, and the adds
 * then cost none. It changes nothing. */
TEST(adds_find_the_pages_that_were_touched)
{
    enum { COUNT = 1000, OTHER_FAULTS = 100 };

    for (uint32_t kind = 0; kind < BLOOM_KINDS; kind++) {
        struct fault_heap heap = { 0 };
        struct bloom_env env = fault_env(&heap);
        struct bloom_params params = params_of(20 * 1000 * 1000, 0.01, 2);
        struct bloom_hash hashes[COUNT];
        struct bloom *bloom;
        bool added;
        long before;

        env.alloc_lines = map_small_pages;
        env.free_lines = unmap;
        set_kind(&params, kind);
        bloom = make(&params, &env);
        for (unsigned i = 0; i < COUNT; i++) {
            hashes[i] = hash_id(bloom, i);
        }
        assert_true(bloom_is_fresh(bloom));
        before = faults();
        bloom_touch(bloom, hashes, COUNT);
        assert_true(faults() - before > COUNT - COUNT / 4);
        before = faults();
        for (unsigned i = 0; i < COUNT; i++) {
            assert_false(bloom_contains(bloom, hashes[i]) && i == 0);
            assert_int_equal(BLOOM_OK,
                             bloom_add(bloom, &env, hashes[i], &added));
        }
        assert_true(faults() - before < OTHER_FAULTS);
        bloom_touch(bloom, hashes, COUNT);
        for (unsigned i = 0; i < COUNT; i++) {
            assert_true(bloom_contains(bloom, hashes[i]));
        }
        bloom_free(bloom, &env);
    }
}
