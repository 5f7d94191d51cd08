/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ageing filters under a clock of the test: a model beside the times of the
 * last adds, the size, the rate over many turns, replays, copies and unions.
 */
#include "core/ageing.h"

#include "../test.h"
#include "core/codec.h"
#include "core/env.h"
#include "core/parts.h"
#include "core/turns.h"
#include "help.h"

enum { UNIVERSE = 4096, FILTERS = 24, OPERATIONS = 1000000, TURNS = 20 };

#define NOW_MS UINT64_C(1700000000123)

static struct bloom_params
params_ageing(uint64_t capacity, double rate, uint32_t seconds,
              uint32_t generations)
{
    struct bloom_params params = params_of(capacity, rate, 2);

    params.kind = BLOOM_AGEING;
    params.seconds = seconds;
    params.generations = generations;
    params.now_ms = NOW_MS;
    return params;
}

static void
assert_equal_dumps(const struct bloom *a, const struct bloom *b)
{
    size_t len = (size_t)bloom_dump_bytes(a);
    char *one = malloc(len);
    char *two = malloc(len);

    assert_int_equal(len, bloom_dump_bytes(b));
    bloom_dump(a, one);
    bloom_dump(b, two);
    assert_memory_equal(one, two, len);
    free(one);
    free(two);
}

/* A copy by a dump, which has to be the same bytes again. */
static struct bloom *
reload(const struct bloom *bloom)
{
    size_t len = (size_t)bloom_dump_bytes(bloom);
    char *bytes = malloc(len);
    struct bloom *loaded = NULL;

    bloom_dump(bloom, bytes);
    assert_int_equal(BLOOM_OK, bloom_load(bytes, len, NULL, &loaded));
    assert_equal_dumps(bloom, loaded);
    free(bytes);
    return loaded;
}

static uint64_t
adds_of(const struct bloom *bloom)
{
    struct bloom_info info = { .struct_size = sizeof(info) };

    bloom_get_info(bloom, &info);
    return info.items;
}

/* ---- the model ----------------------------------------------------------- */

/* again gets exactly the adds that changed something, with their times, as a
 * replay does. */
struct model {
    struct bloom *bloom, *again;
    uint64_t now_ms;
    uint64_t seconds_ms, most_ms; /* found for at least, at most */
    uint64_t added_ms[UNIVERSE];  /* 0: never */
    uint64_t wrong, absent;       /* answers for items that are gone */
};

static void
model_open(struct model *model, uint64_t *rng)
{
    struct bloom_params params =
        params_ageing(1 + test_random_below(rng, 800), 0.01,
                      1 + (uint32_t)test_random_below(rng, 100),
                      1 + (uint32_t)test_random_below(rng, 12));

    memset(model, 0, sizeof(*model));
    params.expansion = 1 + (uint32_t)test_random_below(rng, 3);
    model->bloom = make(&params, NULL);
    model->again = make(&params, NULL);
    model->now_ms = NOW_MS;
    model->seconds_ms = params.seconds * UINT64_C(1000);
    model->most_ms =
        model->seconds_ms + (model->seconds_ms - 1) / params.generations + 1;
}

/* An item must be found for `seconds`, and must be gone at the end but for
 * false positives. */
static bool
must_be_found(const struct model *model, uint64_t id)
{
    return model->added_ms[id] > 0 &&
           model->now_ms <= model->added_ms[id] + model->seconds_ms;
}

static bool
must_be_gone(const struct model *model, uint64_t id)
{
    return model->added_ms[id] == 0 ||
           model->now_ms >= model->added_ms[id] + model->most_ms;
}

static void
ask_one(struct model *model, uint64_t id)
{
    struct bloom_hash hash = hash_id(model->bloom, id);
    bool found = bloom_contains_at(model->bloom, hash, model->now_ms);
    bool many;

    ageing_contains_batch(model->bloom, &hash, 1, model->now_ms, &many);
    assert_int_equal(found, many);
    if (must_be_found(model, id)) {
        assert_true(found);
    }
    if (must_be_gone(model, id)) {
        model->absent++;
        model->wrong += found;
    }
}

static void
add_one(struct model *model, uint64_t id)
{
    struct bloom_hash hash = hash_id(model->bloom, id);
    bool found = bloom_contains_at(model->bloom, hash, model->now_ms);
    uint64_t turn = ageing_turn(model->bloom);
    uint64_t adds = adds_of(model->bloom);
    bool added = false;

    if (bloom_add_at(model->bloom, NULL, hash, model->now_ms, &added) !=
        BLOOM_OK) {
        assert_int_equal(turn, ageing_turn(model->bloom));
        return; /* too many layers */
    }
    assert_true(found != added);
    if (ageing_turn(model->bloom) != turn || adds_of(model->bloom) != adds) {
        assert_int_equal(BLOOM_OK,
                         ageing_force(model->again, NULL, hash, model->now_ms));
    }
    model->added_ms[id] = model->now_ms;
}

static void
pass_time(struct model *model, uint64_t *rng)
{
    uint64_t most = test_random_below(rng, 50) == 0 ? 2 * model->most_ms
                                                    : model->seconds_ms / 50;

    model->now_ms += test_random_below(rng, most + 1);
}

TEST(items_are_found_for_their_time_and_no_longer)
{
    uint64_t rng = test_seed();
    uint64_t absent = 0;
    uint64_t wrong = 0;

    for (int f = 0; f < FILTERS; f++) {
        struct model model;

        model_open(&model, &rng);
        for (int i = 0; i < OPERATIONS / FILTERS; i++) {
            uint64_t id = test_random_below(&rng, UNIVERSE);

            if (test_random_below(&rng, 100) == 0) {
                pass_time(&model, &rng);
            }
            if (test_random_below(&rng, 2) == 0) {
                add_one(&model, id);
            } else {
                ask_one(&model, id);
            }
            if (i % 1000 == 0) {
                struct bloom *loaded = reload(model.bloom);

                bloom_check(model.bloom);
                assert_equal_dumps(model.bloom, model.again);
                bloom_free(model.bloom, NULL);
                model.bloom = loaded;
            }
        }
        for (uint64_t id = 0; id < UNIVERSE; id++) {
            ask_one(&model, id);
        }
        absent += model.absent;
        wrong += model.wrong;
        bloom_free(model.bloom, NULL);
        bloom_free(model.again, NULL);
    }
    print_message("%.4f of %llu absent items found\n",
                  (double)wrong / (double)absent, (unsigned long long)absent);
    assert_true((double)wrong <= 0.02 * (double)absent); /* two times asked */
}

TEST(the_bounds_are_exact)
{
    for (uint32_t g = 1; g <= TURNS_GENERATIONS_MAX; g++) {
        struct bloom_params params = params_ageing(100, 0.001, 7, g);
        struct bloom *bloom = make(&params, NULL);
        struct bloom_hash hash = hash_id(bloom, 1);
        uint64_t begin = params.now_ms;
        uint64_t at;
        bool added;

        bloom_get_params(bloom, &params);
        assert_true(params.now_ms <= begin);
        assert_int_equal(turns_at(7, g, begin), turns_at(7, g, params.now_ms));
        assert_true(turns_at(7, g, params.now_ms - 1) <
                    turns_at(7, g, params.now_ms));
        assert_int_equal(BLOOM_OK,
                         bloom_add_at(bloom, NULL, hash, begin, &added));
        for (at = begin; bloom_contains_at(bloom, hash, at); at++) {
        }
        assert_true(at > begin + 7000 && at <= begin + 7000 + 7000 / g + 1);
        assert_true(bloom_contains(bloom, hash)); /* as of the last add */
        bloom_free(bloom, NULL);
    }
}

TEST(an_add_renews_and_an_early_time_counts_as_the_present)
{
    struct bloom_params params = params_ageing(1000, 0.001, 8, 8);
    struct bloom *bloom = make(&params, NULL);
    struct bloom_hash hash = hash_id(bloom, 1);
    bool added = false;

    assert_int_equal(BLOOM_OK, bloom_add_at(bloom, NULL, hash, NOW_MS, &added));
    assert_true(added);
    for (unsigned i = 1; i < 100; i++) { /* for ever, if renewed in time */
        assert_int_equal(BLOOM_OK, bloom_add_at(bloom, NULL, hash,
                                                NOW_MS + i * 4000, &added));
        assert_false(added);
        assert_int_equal(BLOOM_OK, bloom_add_at(bloom, NULL, hash,
                                                NOW_MS + i * 4000, &added));
        assert_false(added);
    }
    assert_true(bloom_contains_at(bloom, hash, 0));
    assert_int_equal(3, ageing_items(bloom, NOW_MS)); /* of these generations */
    assert_int_equal(BLOOM_OK,
                     bloom_add_at(bloom, NULL, hash_id(bloom, 2), 0, &added));
    assert_int_equal(4, adds_of(bloom)); /* in the same generation */
    assert_int_equal(2, ageing_items(bloom, NOW_MS + 99 * 4000 + 8000));
    assert_int_equal(1, ageing_layers(bloom, NOW_MS + 99 * 4000 + 8000));
    assert_int_equal(0, ageing_items(bloom, NOW_MS + 99 * 4000 + 9000));
    assert_false(bloom_contains_at(bloom, hash, UINT64_MAX));
    bloom_free(bloom, NULL);
}

/* ---- size and rate ------------------------------------------------------- */

/* Fills the ring TURNS times, and measures it at the end of each turn, when all
 * generations are full. */
static void
check_rate(double rate, uint32_t generations)
{
    enum { CAPACITY = 80000, PROBES = 40000 };
    struct bloom_params params =
        params_ageing(CAPACITY, rate, 800, generations);
    struct bloom_info info = { .struct_size = sizeof(info) };
    uint64_t each = CAPACITY / generations;
    uint64_t found = 0;
    uint64_t asked = 0;
    struct bloom *bloom;
    bool added;

    params.expansion = 0;
    bloom = make(&params, NULL);
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        uint64_t now_ms = turns_begin_ms(
            800, generations, turns_at(800, generations, NOW_MS) + turn);

        while (ageing_turn(bloom) < turns_at(800, generations, now_ms) ||
               bloom_newest(bloom)->items < each) {
            assert_int_equal(BLOOM_OK,
                             bloom_add_at(bloom, NULL, hash_id(bloom, asked),
                                          now_ms, &added));
            asked++;
        }
        for (uint64_t i = 0; turn >= generations && i < PROBES; i++) {
            found += bloom_contains_at(
                bloom, hash_id(bloom, ~i - turn * PROBES), now_ms);
        }
    }
    bloom_get_info(bloom, &info);
    print_message("rate %g, %u generations: %.2f bits an item, %.5f\n", rate,
                  generations, 8.0 * (double)info.size_bytes / CAPACITY,
                  (double)found / (double)((TURNS - generations) * PROBES));
    assert_int_equal(generations + 1, info.layers);
    assert_int_equal(CAPACITY, info.capacity);
    assert_true((double)found <=
                rate * (double)((TURNS - generations) * PROBES) * 1.05);
    if (rate == 0.01 && generations == 8) {
        assert_true(8.0 * (double)info.size_bytes / CAPACITY <= 18);
    }
    bloom_free(bloom, NULL);
}

TEST(the_rate_is_kept_turn_after_turn)
{
    check_rate(0.01, 8);
    check_rate(0.01, 2);
    check_rate(0.001, 16);
    check_rate(0.05, 5);
}

TEST(a_generation_that_is_full_scales_or_refuses)
{
    struct bloom_params params = params_ageing(80, 0.001, 8, 8);
    struct bloom *bloom;
    bool added;

    params.expansion = 0;
    for (int scales = 0; scales < 2; scales++, params.expansion = 2) {
        enum bloom_status status = BLOOM_OK;
        uint64_t id = 0;

        bloom = make(&params, NULL);
        for (; id < 40 && status == BLOOM_OK; id++) {
            status =
                bloom_add_at(bloom, NULL, hash_id(bloom, id), NOW_MS, &added);
        }
        assert_int_equal(scales ? BLOOM_OK : BLOOM_FULL, status);
        assert_int_equal(scales ? 3 : 1, bloom->count);
        assert_int_equal(scales ? 40 : 10, adds_of(bloom));
        assert_int_equal(BLOOM_OK, bloom_add_at(bloom, NULL, hash_id(bloom, 99),
                                                NOW_MS + 1000, &added));
        assert_int_equal(10, bloom_newest(bloom)->capacity);
        assert_int_equal(10, bloom_newest(bloom)->capacity);
        assert_int_equal(BLOOM_OK,
                         bloom_add_at(bloom, NULL, hash_id(bloom, 100),
                                      NOW_MS + 9000, &added));
        assert_int_equal(2, bloom->count); /* the first generation is gone */
        bloom_free(bloom, NULL);
    }
}

/* ---- failures ------------------------------------------------------------ */

TEST(a_turn_without_memory_changes_nothing)
{
    struct bloom_params params = params_ageing(100, 0.01, 8, 8);

    for (unsigned turns = 1; turns < 30; turns += 3) {
        struct fault_heap heap = { 0 };
        struct bloom_env env = fault_env(&heap);
        struct bloom *bloom = make(&params, &env);
        enum bloom_status status = BLOOM_NOMEM;
        unsigned failures = 0;
        bool added;

        for (unsigned i = 0; i < turns; i++) {
            assert_int_equal(BLOOM_OK,
                             bloom_add_at(bloom, &env, hash_id(bloom, i),
                                          NOW_MS + i * 1000, &added));
        }
        while (status == BLOOM_NOMEM) {
            struct bloom *before = reload(bloom);

            heap.fail_at = heap.calls + 1 + failures;
            status = bloom_add_at(bloom, &env, hash_id(bloom, 99),
                                  NOW_MS + turns * 1000, &added);
            if (status == BLOOM_NOMEM) {
                failures++;
                assert_equal_dumps(before, bloom);
            }
            bloom_free(before, NULL);
        }
        assert_int_equal(BLOOM_OK, status);
        assert_int_equal(2, failures); /* a chain and a layer */
        bloom_free(bloom, &env);
        assert_int_equal(0, heap.out);
    }
}

TEST(the_limit_counts_all_generations)
{
    struct bloom_params params = params_ageing(8000, 0.01, 8, 8);
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom *bloom = NULL;
    uint64_t most = 0;

    for (env.size_limit_bytes = 1;
         bloom_new(&params, &env, &bloom) == BLOOM_LIMIT;
         env.size_limit_bytes += 16) {
    }
    for (unsigned i = 0; i < 20; i++) {
        struct bloom_info info = { .struct_size = sizeof(info) };
        bool added;

        assert_int_equal(BLOOM_OK, bloom_add_at(bloom, &env, hash_id(bloom, i),
                                                NOW_MS + i * 1000, &added));
        bloom_get_info(bloom, &info);
        most = most < info.size_bytes ? info.size_bytes : most;
    }
    assert_true(most <= env.size_limit_bytes &&
                most + 16 >= env.size_limit_bytes);
    bloom_free(bloom, &env);
}

TEST(parameters_are_checked)
{
    struct bloom_params params = params_ageing(100, 0.01, 8, 8);
    struct bloom *bloom = NULL;

    params.seconds = 0;
    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    params.seconds = 8;
    params.generations = 0;
    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    params.generations = TURNS_GENERATIONS_MAX + 1;
    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    params.generations = 8;
    params.error_rate = 1e-307;
    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    params.error_rate = 0.01;
    params.region = 2;
    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    params.region = 0;
    params.kind = BLOOM_NATIVE;
    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    assert_null(bloom);
}

/* Every byte of the head is checked: a changed one is refused, or it makes a
 * filter that has the same bytes again. */
TEST(a_damaged_head_is_refused_or_kept)
{
    struct bloom_params params = params_ageing(40, 0.01, 8, 4);
    struct bloom *bloom = make(&params, NULL);
    uint64_t rng = test_seed();
    uint8_t bytes[8192];
    size_t len;

    for (unsigned i = 0; i < 90; i++) {
        bool added;

        assert_int_equal(BLOOM_OK, bloom_add_at(bloom, NULL, hash_id(bloom, i),
                                                NOW_MS + i * 200, &added));
    }
    len = (size_t)codec_dump_bytes(bloom);
    assert_true(len < sizeof(bytes));
    for (int i = 0; i < 20000; i++) {
        uint8_t again[sizeof(bytes)];
        struct codec_head head;
        struct bloom *made = NULL;
        size_t at =
            4 + (size_t)test_random_below(&rng, codec_head_bytes(bloom) - 4);

        codec_dump(bloom, 7, bytes);
        bytes[at] ^= (uint8_t)(1U << test_random_below(&rng, 8));
        if (codec_read_head(bytes, len, &head) != BLOOM_OK ||
            codec_check_head(&head) != BLOOM_OK || head.total_bytes != len) {
            continue;
        }
        assert_int_equal(BLOOM_OK, codec_new(&head, NULL, &made));
        codec_fill(made, bytes + head.head_bytes);
        codec_dump(made, head.incarnation, again);
        assert_memory_equal(bytes, again, len - CODEC_CHECKSUM_BYTES);
        bloom_free(made, NULL);
    }
    bloom_free(bloom, NULL);
}

/* ---- unions -------------------------------------------------------------- */

TEST(a_union_has_what_its_parts_have)
{
    enum { PARTS = 3, ADDS = 300 };
    uint64_t rng = test_seed();
    unsigned united = 0;

    for (int round = 0; round < 300; round++) {
        struct bloom_params params = params_ageing(
            600, 0.01, 10, 1 + (uint32_t)test_random_below(&rng, 6));
        struct bloom *parts[PARTS];
        struct bloom *before[PARTS];
        uint64_t latest = 0;
        enum bloom_status status;

        for (int p = 0; p < PARTS; p++) {
            uint64_t now_ms = NOW_MS + test_random_below(&rng, 30000);

            params.now_ms = now_ms;
            parts[p] = make(&params, NULL);
            for (uint64_t i = test_random_below(&rng, ADDS); i > 0; i--) {
                bool added;

                now_ms += test_random_below(&rng, 100);
                assert_int_equal(
                    BLOOM_OK, bloom_add_at(parts[p], NULL,
                                           hash_id(parts[p], test_random_below(
                                                                 &rng, 500)),
                                           now_ms, &added));
            }
            before[p] = reload(parts[p]);
            latest = latest < now_ms ? now_ms : latest;
        }
        status = bloom_merge(parts[0], NULL,
                             (const struct bloom *const *)(void *)parts, PARTS);
        assert_true(status == BLOOM_OK || status == BLOOM_OVERFULL);
        united += status == BLOOM_OK;
        if (status != BLOOM_OK) {
            assert_equal_dumps(before[0], parts[0]);
        }
        for (uint64_t id = 0; status == BLOOM_OK && id < 500; id++) {
            struct bloom_hash hash = hash_id(parts[0], id);

            for (uint64_t at = latest; at < latest + 12000; at += 999) {
                bool any = false;

                for (int p = 0; p < PARTS; p++) {
                    any = any || bloom_contains_at(before[p], hash, at);
                }
                assert_true(!any || bloom_contains_at(parts[0], hash, at));
            }
        }
        bloom_free(reload(parts[0]), NULL);
        for (int p = 0; p < PARTS; p++) {
            bloom_free(parts[p], NULL);
            bloom_free(before[p], NULL);
        }
    }
    print_message("%u unions of 300\n", united);
    assert_true(united > 50);
}

TEST(a_union_needs_equal_times)
{
    struct bloom_params params = params_ageing(100, 0.01, 8, 8);
    struct bloom *bloom = make(&params, NULL);
    struct bloom *other;

    for (int i = 0; i < 3; i++) {
        const char *const differs[] = { "ageing times", "ageing times",
                                        "capacities" };

        params.seconds = i == 0 ? 9 : 8;
        params.generations = i == 1 ? 7 : 8;
        params.capacity = i == 2 ? 101 : 100;
        other = make(&params, NULL);
        assert_string_equal(differs[i], bloom_difference(bloom, other));
        assert_int_equal(BLOOM_INVALID,
                         bloom_merge(bloom, NULL,
                                     (const struct bloom *const[]){ other },
                                     1));
        bloom_free(other, NULL);
    }
    bloom_free(bloom, NULL);
}

TEST(a_union_without_memory_changes_nothing)
{
    struct bloom_params params = params_ageing(100, 0.01, 8, 4);
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom *into = make(&params, &env);
    struct bloom *other = make(&params, NULL);
    enum bloom_status status = BLOOM_NOMEM;
    unsigned failures = 0;
    bool added;

    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(BLOOM_OK, bloom_add_at(other, NULL, hash_id(other, i),
                                                NOW_MS + i * 2000, &added));
    }
    while (status == BLOOM_NOMEM) {
        struct bloom *before = reload(into);

        heap.fail_at = heap.calls + 1 + failures;
        status =
            bloom_merge(into, &env, (const struct bloom *const[]){ other }, 1);
        if (status == BLOOM_NOMEM) {
            failures++;
            assert_equal_dumps(before, into);
        }
        bloom_free(before, NULL);
    }
    assert_int_equal(BLOOM_OK, status);
    assert_true(failures >= 4);
    bloom_free(into, &env);
    bloom_free(other, NULL);
    assert_int_equal(0, heap.out);
}
