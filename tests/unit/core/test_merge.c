/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The union of filters against filters that were given all items, and against
 * sets: nothing is lost, the count is between its bounds and near the truth,
 * the rate is kept, and what cannot be united is left alone.
 */
#include <math.h>
#include <stdio.h>

#include "../test.h"
#include "core/bloom.h"
#include "core/codec.h"
#include "help.h"

static struct bloom *
merged(struct bloom *into, const struct bloom *other)
{
    assert_int_equal(BLOOM_OK, bloom_merge(into, NULL, &other, 1));
    return into;
}

static struct bloom *
copy_of(const struct bloom *bloom)
{
    struct bloom *copy = NULL;

    assert_int_equal(BLOOM_OK, bloom_copy(bloom, NULL, &copy));
    return copy;
}

static void
add_ids(struct bloom *bloom, uint64_t from, uint64_t to)
{
    for (uint64_t id = from; id < to; id++) {
        bool added;

        assert_int_equal(BLOOM_OK,
                         bloom_add(bloom, NULL, hash_id(bloom, id), &added));
    }
}

static void
assert_has(const struct bloom *bloom, uint64_t from, uint64_t to)
{
    for (uint64_t id = from; id < to; id++) {
        assert_true(bloom_contains(bloom, hash_id(bloom, id)));
    }
}

static void
assert_equal_bits(const struct bloom *a, const struct bloom *b)
{
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        size_t bytes = 0;
        size_t same = 0;
        const void *lines = bloom_layer_lines(a, i, &bytes);

        assert_memory_equal(lines, bloom_layer_lines(b, i, &same), bytes);
        assert_int_equal(bytes, same);
    }
}

TEST(a_union_has_the_bits_of_a_filter_that_was_given_all)
{
    struct bloom_params params = params_of(1000, 0.001, 0);
    struct bloom *a = make(&params, NULL);
    struct bloom *b = make(&params, NULL);
    struct bloom *all = make(&params, NULL);

    add_ids(a, 0, 300);
    add_ids(b, 200, 600);
    add_ids(all, 0, 600);
    merged(a, b);
    assert_equal_bits(all, a);
    assert_has(a, 0, 600);
    bloom_free(a, NULL);
    bloom_free(b, NULL);
    bloom_free(all, NULL);
}

/* Whatever two parts share: the count is within the bounds, and near what a
 * single filter counted. */
TEST(the_items_of_a_union_are_near_the_truth)
{
    uint64_t random = test_seed();
    double worst = 0;

    for (unsigned round = 0; round < 200 * test_rounds(); round++) {
        uint64_t capacity = 100 + test_random_below(&random, 20000);
        struct bloom_params params = params_of(
            capacity, pow(10, -0.5 - 5 * test_random_unit(&random)), 0);
        uint64_t first = test_random_below(&random, capacity / 2 + 1);
        uint64_t from = test_random_below(&random, first + 1);
        uint64_t to = from + test_random_below(&random, capacity / 2 + 1);
        uint64_t truth = to > first ? to : first;
        struct bloom *a = make(&params, NULL);
        struct bloom *b = make(&params, NULL);
        uint64_t least, most, items;
        double off;

        add_ids(a, 0, first);
        add_ids(b, from, to);
        least =
            bloom_items(a) > bloom_items(b) ? bloom_items(a) : bloom_items(b);
        most = bloom_items(a) + bloom_items(b);
        items = bloom_items(merged(a, b));
        assert_true(items >= least && items <= most);
        off = fabs((double)items - (double)truth);
        /* Whoever counts adds misses the false positives among them. */
        off -= (double)truth * params.error_rate;
        off /= sqrt((double)truth + 1);
        worst = off > worst ? off : worst;
        assert_has(a, 0, truth);
        bloom_free(a, NULL);
        bloom_free(b, NULL);
    }
    assert_true(worst < 5);
}

TEST(a_union_keeps_the_rate)
{
    enum { FILTERS = 20, PROBES = 20000 };
    uint64_t random = test_seed();
    struct bloom_params params = params_of(5000, 0.01, 0);
    uint64_t hits = 0;
    double limit = 0.01 * FILTERS * PROBES;

    for (unsigned i = 0; i < FILTERS; i++) {
        struct bloom *a, *b;
        uint64_t next = 0;

        params.seed[0] = (uint8_t)test_random(&random);
        params.seed[1] = (uint8_t)i;
        a = make(&params, NULL);
        b = make(&params, NULL);
        next = fill(a, NULL, next, 2500);
        next = fill(b, NULL, next, 2400);
        merged(a, b);
        for (uint64_t id = 0; id < PROBES; id++) {
            hits += bloom_contains(a, hash_id(a, next + id));
        }
        bloom_free(a, NULL);
        bloom_free(b, NULL);
    }
    assert_true((double)hits <= limit + 4 * sqrt(limit));
    assert_true(hits > 0);
}

TEST(a_filter_that_has_all_items_is_not_changed)
{
    struct bloom_params params = params_of(50, 0.01, 2);
    struct bloom *a = make(&params, NULL);
    struct bloom *small = make(&params, NULL);
    struct snapshot before;

    add_ids(small, 0, 20);
    add_ids(a, 0, 400); /* its first layer is full */
    before = snapshot_of(a);
    assert_true(before.info.layers > 1);
    merged(a, small);
    assert_same(before, snapshot_of(a));
    merged(a, a);
    assert_same(before, snapshot_of(a));
    assert_int_equal(BLOOM_OK, bloom_merge(a, NULL, NULL, 0));
    assert_same(before, snapshot_of(a));
    bloom_free(a, NULL);
    bloom_free(small, NULL);
}

/* Two copies went different ways: the longer chain is what comes out, in
 * whatever direction they are merged. */
TEST(chains_that_grew_from_one_copy_are_united)
{
    struct bloom_params params = params_of(100, 0.001, 2);
    struct bloom *trunk = make(&params, NULL);
    struct bloom *a, *b, *into;
    uint64_t next = fill(trunk, NULL, 0, 100); /* exactly full */
    uint64_t end;

    a = copy_of(trunk);
    b = copy_of(trunk);
    end = fill(a, NULL, next, 60);
    into = copy_of(a);
    fill(b, NULL, end, 70);
    merged(into, b);
    assert_has(into, 0, end + 70);
    assert_int_equal(2, into->count);
    assert_in_range(bloom_items(into), 225, 230);
    bloom_free(into, NULL);

    into = copy_of(trunk); /* has to get a layer */
    merged(into, a);
    assert_same(snapshot_of(a), snapshot_of(into));
    assert_has(into, 0, end);
    bloom_free(into, NULL);
    bloom_free(trunk, NULL);
    bloom_free(a, NULL);
    bloom_free(b, NULL);
}

TEST(many_are_united_at_once)
{
    enum { PARTS = 9 };
    struct bloom_params params = params_of(1000, 0.001, 0);
    const struct bloom *parts[PARTS];
    struct bloom *made[PARTS];
    struct bloom *into = make(&params, NULL);

    for (unsigned i = 0; i < PARTS; i++) {
        made[i] = make(&params, NULL);
        add_ids(made[i], 100 * i, 100 * i + 100);
        parts[i] = made[i];
    }
    assert_int_equal(BLOOM_OK, bloom_merge(into, NULL, parts, PARTS));
    assert_has(into, 0, 100 * PARTS);
    assert_in_range(bloom_items(into), 880, 900);
    for (unsigned i = 0; i < PARTS; i++) {
        bloom_free(made[i], NULL);
    }
    bloom_free(into, NULL);
}

/* Also of so many that not all are watched at a time. */
TEST(a_part_that_has_all_gives_the_count)
{
    enum { PARTS = 150 };
    struct bloom_params params = params_of(1000, 0.001, 0);
    struct bloom *part = make(&params, NULL);
    struct bloom *all = make(&params, NULL);
    const struct bloom *parts[PARTS];

    add_ids(part, 0, 100);
    add_ids(all, 0, 900);
    for (unsigned i = 0; i < PARTS; i++) {
        parts[i] = part;
    }
    for (unsigned at = 0; at < PARTS; at++) {
        struct bloom *into = make(&params, NULL);

        add_ids(into, 50, 60);
        parts[at] = all;
        assert_int_equal(BLOOM_OK, bloom_merge(into, NULL, parts, PARTS));
        assert_same(snapshot_of(all), snapshot_of(into));
        parts[at] = part;
        bloom_free(into, NULL);
    }
    bloom_free(part, NULL);
    bloom_free(all, NULL);
}

TEST(a_layer_is_never_overfull)
{
    struct bloom_params params = params_of(100, 0.01, 2);
    struct bloom *a = make(&params, NULL);
    struct bloom *b = make(&params, NULL);
    const struct bloom *other = b;
    struct snapshot before;
    uint64_t next = fill(a, NULL, 0, 60);

    fill(b, NULL, next, 80);
    before = snapshot_of(a);
    assert_int_equal(BLOOM_OVERFULL, bloom_merge(a, NULL, &other, 1));
    assert_same(before, snapshot_of(a));
    fill(b, NULL, next, 80 + 300); /* a chain: its full layers lack some of a */
    assert_int_equal(BLOOM_OVERFULL, bloom_merge(a, NULL, &other, 1));
    assert_same(before, snapshot_of(a));
    bloom_free(a, NULL);
    bloom_free(b, NULL);
}

/* What a log with gaps asks for: no item is lost, and no count is wrong. */
TEST(a_layer_is_overfull_where_that_is_asked_for)
{
    static const enum bloom_kind kinds[] = { BLOOM_NATIVE, BLOOM_DELETABLE,
                                             BLOOM_AGEING };

    for (size_t k = 0; k < 3; k++) {
        struct bloom_params params = params_of(100, 0.01, 0);
        struct bloom *a;
        struct bloom *b;
        const struct bloom *other;

        params.kind = kinds[k];
        params.region = kinds[k] == BLOOM_DELETABLE ? 2 : 0;
        params.seconds = params.generations = kinds[k] == BLOOM_AGEING;
        a = make(&params, NULL);
        b = make(&params, NULL);
        other = b;
        add_ids(a, 0, 90);
        add_ids(b, 100, 190);
        assert_int_equal(BLOOM_OK, bloom_merge_over(a, NULL, &other, 1));
        bloom_add_over(a, hash_id(a, 200));
        for (uint64_t id = 0; id <= 200; id++) {
            assert_true(bloom_contains(a, hash_id(a, id)) ||
                        (id >= 90 && id < 100) || (id >= 190 && id < 200));
        }
        assert_int_equal(100, bloom_items(a));
        bloom_check(a);
        bloom_free(a, NULL);
        bloom_free(b, NULL);
    }
}

/* A filter with one property changed, and what that is called. */
static void
check_difference(const struct bloom_params *params, const char *what)
{
    struct bloom_params usual = params_of(100, 0.01, 2);
    struct bloom *a = make(&usual, NULL);
    struct bloom *b = make(params, NULL);
    const struct bloom *other = b;
    struct snapshot before = snapshot_of(a);

    assert_string_equal(what, bloom_difference(a, b));
    assert_string_equal(what, bloom_difference(b, a));
    assert_int_equal(BLOOM_INVALID, bloom_merge(a, NULL, &other, 1));
    assert_same(before, snapshot_of(a));
    bloom_free(a, NULL);
    bloom_free(b, NULL);
}

TEST(differences_are_named)
{
    struct bloom_params params = params_of(100, 0.01, 2);
    struct bloom *a = make(&params, NULL);

    assert_null(bloom_difference(a, a));
    params.seed[31] = 1;
    check_difference(&params, "seeds");
    params = params_of(101, 0.01, 2);
    check_difference(&params, "capacities");
    params = params_of(100, 0.02, 2);
    check_difference(&params, "error rates");
    params = params_of(100, 0.01, 2);
    params.tightening = 0.6;
    check_difference(&params, "tightening ratios");
    params = params_of(100, 0.01, 0);
    check_difference(&params, "expansions");
    params = params_of(100, 0.01, 2);
    params.stripes = a->first.stripes;
    params.lines = a->first.line_count + 1;
    check_difference(&params, "layer shapes");
    bloom_free(a, NULL);
}

/* Two others may differ in a layer that the first does not have. */
TEST(all_are_compared_with_the_longest)
{
    struct bloom_params params = params_of(10, 0.01, 1);
    struct bloom *into = make(&params, NULL);
    struct bloom *a = make(&params, NULL);
    struct bloom *b = make(&params, NULL);
    const struct bloom *others[] = { a, b };

    fill(a, NULL, 0, 15);
    fill(b, NULL, 0, 25);
    b->chain->layers[1].capacity++;
    assert_null(bloom_difference(into, a));
    assert_null(bloom_difference(into, b));
    assert_int_equal(BLOOM_INVALID, bloom_merge(into, NULL, others, 2));
    b->chain->layers[1].capacity--;
    bloom_free(into, NULL);
    bloom_free(a, NULL);
    bloom_free(b, NULL);
}

/* Every allocation of a union that has to grow by some layers fails once. */
TEST(a_union_without_memory_changes_nothing)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom_params params = params_of(20, 0.01, 2);
    struct bloom *longer = make(&params, NULL);
    const struct bloom *other = longer;
    unsigned failed = 0;

    fill(longer, NULL, 0, 500);
    for (uint64_t fail_at = 1;; fail_at++) {
        struct bloom *bloom = make(&params, &env);
        struct snapshot before = snapshot_of(bloom);
        enum bloom_status status;

        heap.fail_at = heap.calls + fail_at;
        status = bloom_merge(bloom, &env, &other, 1);
        heap.fail_at = 0;
        if (status == BLOOM_OK) {
            assert_same(snapshot_of(longer), snapshot_of(bloom));
            assert_int_equal(heap.out, bloom_size(bloom));
        } else {
            assert_int_equal(BLOOM_NOMEM, status);
            assert_same(before, snapshot_of(bloom));
            failed++;
        }
        bloom_free(bloom, &env);
        assert_int_equal(0, heap.out);
        if (status == BLOOM_OK) {
            break;
        }
    }
    assert_int_equal(longer->count, failed); /* the array, and each layer */
    bloom_free(longer, NULL);
}

TEST(a_union_that_grows_keeps_the_limit)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom_params params = params_of(20, 0.01, 2);
    struct bloom *longer = make(&params, NULL);
    struct bloom *bloom = make(&params, &env);
    const struct bloom *other = longer;
    uint64_t calls = heap.calls;

    fill(longer, NULL, 0, 500);
    env.size_limit_bytes = least_limit(longer) - 1;
    assert_int_equal(BLOOM_LIMIT, bloom_merge(bloom, &env, &other, 1));
    assert_int_equal(calls, heap.calls);
    env.size_limit_bytes++;
    assert_int_equal(BLOOM_OK, bloom_merge(bloom, &env, &other, 1));
    env.size_limit_bytes = 1; /* nothing new is asked for */
    assert_int_equal(BLOOM_OK, bloom_merge(bloom, &env, &other, 1));
    bloom_free(bloom, &env);
    bloom_free(longer, NULL);
    assert_int_equal(0, heap.out);
}

/* Random families of copies of one trunk: what a union has is what its parts
 * have, and it can be stored and go on growing. */
TEST(random_families_lose_nothing)
{
    enum { UNIVERSE = 3000 };
    uint64_t random = test_seed();
    unsigned united = 0;

    for (unsigned round = 0; round < 300 * test_rounds(); round++) {
        struct bloom_params params =
            params_of(50 + test_random_below(&random, 300), 0.001,
                      (uint32_t)test_random_below(&random, 4));
        struct bloom *a = make(&params, NULL);
        struct bloom *b;
        const struct bloom *other;
        struct snapshot before;
        enum bloom_status status;
        bool in_a[UNIVERSE] = { false };
        bool in_b[UNIVERSE] = { false };

        fill(a, NULL, UNIVERSE,
             test_random_below(&random, 2) * params.capacity / 2);
        b = copy_of(a);
        other = b;
        for (unsigned i = (unsigned)test_random_below(&random, 200); i > 0;
             i--) {
            uint64_t id = test_random_below(&random, UNIVERSE);
            bool into_a = test_random_below(&random, 2) == 0;
            bool added;

            if (bloom_add(into_a ? a : b, NULL, hash_id(a, id), &added) ==
                BLOOM_OK) {
                *(into_a ? &in_a[id] : &in_b[id]) = true;
            }
        }
        before = snapshot_of(a);
        status = bloom_merge(a, NULL, &other, 1);
        if (status != BLOOM_OK) {
            assert_int_equal(BLOOM_OVERFULL, status);
            assert_same(before, snapshot_of(a));
        } else {
            size_t bytes = (size_t)codec_dump_bytes(a);
            uint8_t *dump = malloc(bytes);
            struct bloom *back = NULL;
            uint64_t incarnation = 0;

            united++;
            for (uint64_t id = 0; id < UNIVERSE; id++) {
                assert_true((!in_a[id] && !in_b[id]) ||
                            bloom_contains(a, hash_id(a, id)));
            }
            codec_dump(a, 7, dump);
            assert_int_equal(
                BLOOM_OK, codec_load(dump, bytes, NULL, &incarnation, &back));
            assert_same(snapshot_of(a), snapshot_of(back));
            bloom_free(back, NULL);
            free(dump);
        }
        bloom_free(a, NULL);
        bloom_free(b, NULL);
    }
    assert_true(united > 0);
}
