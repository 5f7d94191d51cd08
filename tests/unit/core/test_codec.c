/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stored form of a filter: what is dumped comes back equal and grows on
 * equally, within limits and whatever allocation fails.
 *
 * tests/data/golden-v1 holds dumps of version 1 that have to load for ever.
 * They were written by this program, from the list `golden` below:
 *     BLOOMERY_WRITE_GOLDEN=1 build/release/tests/unit/core/test_codec
 */
#include "core/bloom.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "../test.h"
#include "help.h"
#include "help_codec.h"

/* Adds ids until COUNT were asked for or it stops; returns the next id. */
static uint64_t
add_some(struct bloom *bloom, const struct bloom_env *env, uint64_t id,
         uint64_t count)
{
    for (; count > 0; count--, id++) {
        bool added;

        if (bloom_add(bloom, env, hash_id(bloom, id), &added) != BLOOM_OK) {
            break;
        }
    }
    return id;
}

/* ---- what is dumped comes back ------------------------------------------- */

static struct bloom_params
random_params(uint64_t *random)
{
    static const double tightenings[] = { 0.5, 0.85, 0.99, 0.1, 1e-3 };
    static const uint32_t expansions[] = { 2, 2, 1, 3, 0, 10 };
    struct bloom_params params =
        params_of(1 + test_random_below(random, 200),
                  exp(-0.01 - 30 * test_random_unit(random)),
                  expansions[test_random_below(random, 6)]);

    params.tightening = tightenings[test_random_below(random, 5)];
    for (size_t i = 0; i < sizeof(params.seed); i++) {
        params.seed[i] = (uint8_t)test_random(random);
    }
    return params;
}

/* Equal now, and equal after both went on. */
static void
assert_twins(struct bloom *a, struct bloom *b, const struct bloom_env *env,
             uint64_t id)
{
    struct bloom_params params_a = { .struct_size = sizeof(params_a) };
    struct bloom_params params_b = { .struct_size = sizeof(params_b) };

    bloom_get_params(a, &params_a);
    bloom_get_params(b, &params_b);
    assert_int_equal(params_a.capacity, params_b.capacity);
    assert_true(params_a.error_rate == params_b.error_rate);
    assert_true(params_a.tightening == params_b.tightening);
    assert_int_equal(params_a.expansion, params_b.expansion);
    assert_int_equal(params_a.stripes, params_b.stripes);
    assert_int_equal(params_a.lines, params_b.lines);
    assert_memory_equal(params_a.seed, params_b.seed, BLOOM_SEED_BYTES);
    assert_same(snapshot_of(a), snapshot_of(b));
    assert_equal_dumps(a, b);
    for (unsigned i = 0; i < 500; i++) {
        bool added_a = false, added_b = false;

        assert_int_equal(bloom_contains(a, hash_id(a, id - 250 + i)),
                         bloom_contains(b, hash_id(b, id - 250 + i)));
        assert_int_equal(bloom_add(a, env, hash_id(a, id + i), &added_a),
                         bloom_add(b, env, hash_id(b, id + i), &added_b));
        assert_int_equal(added_a, added_b);
    }
    assert_same(snapshot_of(a), snapshot_of(b));
    assert_equal_dumps(a, b);
}

TEST(loaded_and_copied_filters_equal_the_original_and_grow_like_it)
{
    uint64_t random = test_seed();

    for (unsigned round = 0; round < 200 * test_rounds(); round++) {
        struct fault_heap heap = { 0 };
        struct bloom_env env = fault_env(&heap);
        struct bloom_params params = random_params(&random);
        struct bloom *bloom = make(&params, &env);
        uint64_t id = add_some(bloom, &env, test_random(&random),
                               test_random_below(&random, 1000));
        uint64_t incarnation = test_random(&random);
        struct bytes dump = dump_of(bloom, incarnation);
        struct bloom *loaded = load(dump, &env, incarnation);
        struct bloom *copy = NULL;
        struct bloom *copy_of_loaded = NULL;

        assert_int_equal(BLOOM_OK, bloom_copy(bloom, &env, &copy));
        assert_int_equal(BLOOM_OK, bloom_copy(loaded, &env, &copy_of_loaded));
        assert_twins(bloom, loaded, &env, id);
        assert_twins(copy, copy_of_loaded, &env, id); /* as they were before */
        assert_equal_dumps(bloom, copy);
        bloom_free(bloom, &env);
        bloom_free(loaded, &env);
        bloom_free(copy, &env);
        bloom_free(copy_of_loaded, &env);
        assert_int_equal(0, heap.out);
        free(dump.data);
    }
}

TEST(every_filter_that_can_be_made_can_be_loaded)
{
    static const double rates[] = { 5e-324, DBL_MIN, 1e-307, 1e-300, 1e-100,
                                    1e-15,  1e-3,    0.5,    0.999,  0 };
    static const double tightenings[] = { DBL_MIN, 1e-9, 0.5, 0.999999, 0 };
    static const uint32_t expansions[] = { 0, 1, 2, 1000, UINT32_MAX };
    const double below_one = nextafter(1, 0);

    for (size_t at = 0; at < 10 * 5 * 5 * 3; at++) {
        static const uint64_t capacities[] = { 1, 7, 300 };
        double rate = rates[at % 10];
        struct bloom_params params =
            params_of(capacities[at / 250], rate > 0 ? rate : below_one,
                      expansions[at / 50 % 5]);
        double tightening = tightenings[at / 10 % 5];
        struct bloom_env env = fault_env(&(struct fault_heap){ 0 });
        struct bloom *bloom, *loaded;
        struct bytes dump;

        params.tightening = tightening > 0 ? tightening : below_one;
        env.size_limit_bytes = 1 << 20;
        bloom = make(&params, &env);
        (void)add_some(bloom, &env, 0, 400);
        dump = dump_of(bloom, at);
        loaded = load(dump, &env, at);
        assert_equal_dumps(bloom, loaded);
        bloom_free(bloom, &env);
        bloom_free(loaded, &env);
        free(dump.data);
    }
}

TEST(the_longest_chain_comes_back)
{
    struct bloom_params params = params_of(1, 0.5, 1);
    struct bloom *bloom, *loaded;
    struct bytes dump;
    uint64_t id = 0;

    params.tightening = 0.9999;
    bloom = make(&params, NULL);
    for (; bloom_items(bloom) < BLOOM_LAYERS_MAX; id++) {
        bool added;
        enum bloom_status status =
            bloom_add(bloom, NULL, hash_id(bloom, id), &added);

        assert_int_equal(BLOOM_OK, status);
        if (id > 1000000) {
            fail(); /* the compound rate left nothing to add */
        }
    }
    dump = dump_of(bloom, 1);
    assert_true(dump.len > CODEC_HEAD_BYTES_MAX);
    loaded = load(dump, NULL, 1);
    assert_equal_dumps(bloom, loaded);
    bloom_free(bloom, NULL);
    bloom_free(loaded, NULL);
    free(dump.data);
}

TEST(a_dump_may_lie_at_any_address)
{
    struct bloom_params params = params_of(30, 0.01, 2);
    struct bloom *bloom = make(&params, NULL);
    struct bytes dump;
    uint8_t *moved;

    (void)fill(bloom, NULL, 0, 50);
    dump = dump_of(bloom, 3);
    moved = malloc(dump.len + 8);
    assert_non_null(moved);
    for (size_t shift = 1; shift < 8; shift++) {
        struct bytes odd = { moved + shift, dump.len };
        struct bloom *loaded;

        codec_dump(bloom, 3, odd.data);
        assert_memory_equal(dump.data, odd.data, dump.len);
        loaded = load(odd, NULL, 3);
        assert_equal_dumps(bloom, loaded);
        bloom_free(loaded, NULL);
    }
    free(moved);
    free(dump.data);
    bloom_free(bloom, NULL);
}

/* ---- in pieces ------------------------------------------------------------
 */

/* As a reader does that has head and lines from different places. */
static struct bloom *
load_in_pieces(struct bytes dump, const struct bloom_env *env,
               struct codec_memo *memo)
{
    struct codec_head head;
    struct bloom_info info = { .struct_size = sizeof(info) };
    struct bloom *bloom = NULL;
    uint8_t *copy = malloc(dump.len);
    uint8_t *lines;
    size_t bytes;
    size_t at;

    assert_non_null(copy);
    memcpy(copy, dump.data, dump.len);
    assert_int_equal(BLOOM_OK, codec_read_head(copy, dump.len, &head));
    assert_int_equal(dump.len, head.total_bytes);
    assert_int_equal(BLOOM_OK, codec_check_head_known(&head, memo));
    assert_int_equal(BLOOM_OK, codec_new(&head, env, &bloom));
    free(copy); /* not needed any more */
    at = head.head_bytes;
    for (uint32_t i = 0; (lines = codec_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        for (size_t k = 0; k < bytes; k++) {
            assert_int_equal(0, lines[k]);
        }
        memcpy(lines, dump.data + at, bytes);
        codec_to_host(lines, bytes);
        at += bytes;
    }
    assert_int_equal(dump.len - CODEC_CHECKSUM_BYTES, at);
    bloom_get_info(bloom, &info);
    assert_int_equal(head.layers, info.layers);
    return bloom;
}

TEST(a_filter_comes_back_from_its_pieces)
{
    struct codec_memo memo = { 0 };
    uint64_t random = test_seed();

    for (unsigned round = 0; round < 100 * test_rounds(); round++) {
        struct bloom_params params = random_params(&random);
        struct bloom *bloom = make(&params, NULL);
        uint8_t head[CODEC_HEAD_BYTES_MAX];
        struct bloom *loaded, *filled;
        struct codec_head known;
        struct bytes dump;
        size_t len;

        (void)add_some(bloom, NULL, 0, test_random_below(&random, 1000));
        dump = dump_of(bloom, 7);
        len = codec_put_head(bloom, 7, head);
        assert_memory_equal(dump.data, head, len);
        loaded = load_in_pieces(dump, NULL, &memo);
        assert_equal_dumps(bloom, loaded);
        assert_int_equal(BLOOM_OK, codec_read_head(head, len, &known));
        assert_int_equal(BLOOM_OK, codec_new(&known, NULL, &filled));
        codec_fill(filled, dump.data + len);
        assert_equal_dumps(bloom, filled);
        bloom_free(bloom, NULL);
        bloom_free(loaded, NULL);
        bloom_free(filled, NULL);
        free(dump.data);
    }
}

TEST(stored_lines_are_what_is_dumped)
{
    struct bytes dump = small_dump();
    struct bloom *bloom = load(dump, NULL, 0x1122334455667788);
    uint8_t scratch[BLOOM_LINE_BYTES];
    uint8_t head[CODEC_HEAD_BYTES_MAX];
    size_t at = codec_put_head(bloom, 0, head);
    size_t bytes;
    const uint8_t *lines = bloom_layer_lines(bloom, 0, &bytes);

    assert_true(bytes >= sizeof(scratch));
    assert_memory_equal(dump.data + at,
                        codec_stored(lines, sizeof(scratch), scratch),
                        sizeof(scratch));
    bloom_free(bloom, NULL);
    free(dump.data);
}

/* A memo may save work, and must not change what is accepted. */
TEST(a_memo_changes_no_answer)
{
    struct codec_memo memo = { 0 };
    struct bytes dump = small_dump();
    uint64_t random = test_seed();
    unsigned refused = 0;

    for (unsigned round = 0; round < 20000 * test_rounds(); round++) {
        struct codec_head head;
        uint8_t copy[512];
        enum bloom_status expected;

        memcpy(copy, dump.data, sizeof(copy));
        if (round % 2 == 1) {
            size_t at = test_random_below(&random, CODEC_FIXED_BYTES +
                                                       3 * CODEC_LAYER_BYTES);

            copy[at] ^= (uint8_t)(1U << test_random_below(&random, 8));
        }
        if (codec_read_head(copy, sizeof(copy), &head) != BLOOM_OK) {
            continue;
        }
        expected = codec_check_head(&head);
        assert_int_equal(expected, codec_check_head_known(&head, &memo));
        refused += expected != BLOOM_OK;
    }
    assert_true(refused > 100);
    free(dump.data);
}

/* ---- limits and memory --------------------------------------------------- */

TEST(the_limit_holds_before_memory_is_asked_for)
{
    struct bytes dump = small_dump();
    struct bloom *bloom = load(dump, NULL, 0x1122334455667788);
    uint64_t least = least_limit(bloom);
    uint64_t size = bloom_size(bloom);

    for (int pass = 0; pass < 4; pass++) {
        const uint64_t limits[] = { 0, least - 1, least, UINT64_MAX };
        enum bloom_status expected = pass < 2 ? BLOOM_LIMIT : BLOOM_OK;
        struct fault_heap heap = { 0 };
        struct bloom_env env = fault_env(&heap);
        struct bloom *loaded = NULL;
        struct bloom *copy = NULL;
        uint64_t incarnation = 0;

        env.size_limit_bytes = limits[pass];
        assert_int_equal(expected, codec_load(dump.data, dump.len, &env,
                                              &incarnation, &loaded));
        assert_int_equal(expected, bloom_copy(bloom, &env, &copy));
        if (pass < 2) {
            assert_null(loaded);
            assert_null(copy);
            assert_int_equal(0, heap.calls);
            continue;
        }
        assert_int_equal(2 * size, heap.out); /* Size is what was asked for */
        assert_int_equal(size, bloom_size(loaded));
        assert_int_equal(size, bloom_size(copy));
        bloom_free(loaded, &env);
        bloom_free(copy, &env);
        assert_int_equal(0, heap.out);
    }
    bloom_free(bloom, NULL);
    free(dump.data);
}

static void
check_failing_allocations(const struct bloom *bloom, uint64_t allocations,
                          bool by_copy)
{
    struct bytes dump = dump_of(bloom, 9);

    for (uint64_t nth = 1; nth <= allocations + 1; nth++) {
        struct fault_heap heap = { .fail_at = nth };
        struct bloom_env env = fault_env(&heap);
        struct bloom *made = NULL;
        uint64_t incarnation = 4711;
        enum bloom_status status =
            by_copy
                ? bloom_copy(bloom, &env, &made)
                : codec_load(dump.data, dump.len, &env, &incarnation, &made);

        if (nth <= allocations) {
            assert_int_equal(BLOOM_NOMEM, status);
            assert_int_equal(nth, heap.calls);
            assert_null(made);
            assert_int_equal(4711, incarnation);
        } else {
            assert_int_equal(BLOOM_OK, status);
            assert_int_equal(allocations, heap.calls);
            bloom_free(made, &env);
        }
        assert_int_equal(0, heap.out);
    }
    free(dump.data);
}

TEST(every_allocation_may_fail)
{
    struct bloom_params params = params_of(10, 1e-4, 2);
    struct bloom *bloom = make(&params, NULL);

    check_failing_allocations(bloom, 2, false); /* struct, lines */
    check_failing_allocations(bloom, 2, true);
    (void)fill(bloom, NULL, 0, 100);            /* 10 + 20 + 40 + 80 */
    check_failing_allocations(bloom, 6, false); /* struct, array, lines */
    check_failing_allocations(bloom, 6, true);
    bloom_free(bloom, NULL);
    params.seed[0] = 1;
    bloom = make(&params, NULL);
    check_failing_allocations(bloom, 3, false); /* struct, odd, lines */
    check_failing_allocations(bloom, 3, true);
    (void)fill(bloom, NULL, 0, 100);
    check_failing_allocations(bloom, 7, false);
    check_failing_allocations(bloom, 7, true);
    bloom_free(bloom, NULL);
}

/* ---- golden files -------------------------------------------------------- */

#define GOLDEN_FOLDER "tests/data/golden-v1/"

/* ADDS items, the texts "item-0", "item-1", ...; the rest is what a loader
 * has to find: layers, items, and how many of "other-0" to "other-9999" pass
 * for added. */
static const struct golden {
    const char *name;
    struct bloom_params params; /* but the seed, which is 1, 8, 15, 22, ... */
    uint64_t incarnation;
    unsigned adds;
    unsigned layers, items, false_positives;
} golden[] = {
    { "empty", PARAMS(1, 0.5, 0.5, 1), 0, 0, 1, 0, 0 },
    { "one-layer", PARAMS(100, 0.01, 0.5, 2), 1, 60, 1, 60, 6 },
    { "scaled", PARAMS(10, 1e-4, 0.5, 2), 0x102030405060708, 100, 4, 100, 0 },
    { "nonscaling", PARAMS(50, 0.3, 0.5, 0), UINT64_MAX, 50, 1, 50, 68 },
    { "expansion-one", PARAMS(5, 1e-9, 0.9, 1), 42, 23, 5, 23, 0 },
};

enum { GOLDEN_COUNT = sizeof(golden) / sizeof(golden[0]) };

static struct bloom_hash
hash_text(const struct bloom *bloom, const char *word, unsigned number)
{
    char text[32];
    int len = snprintf(text, sizeof(text), "%s-%u", word, number);

    return bloom_hash(bloom, text, (size_t)len);
}

static void
add_texts(struct bloom *bloom, unsigned from, unsigned to)
{
    for (; from < to; from++) {
        bool added;
        enum bloom_status status =
            bloom_add(bloom, NULL, hash_text(bloom, "item", from), &added);

        assert_true(status == BLOOM_OK || status == BLOOM_FULL);
    }
}

static struct bloom *
make_golden(const struct golden *row)
{
    struct bloom_params params = row->params;
    struct bloom *bloom;

    for (size_t i = 0; i < sizeof(params.seed); i++) {
        params.seed[i] = (uint8_t)(1 + 7 * i);
    }
    bloom = make(&params, NULL);
    add_texts(bloom, 0, row->adds);
    return bloom;
}

static struct bytes
read_golden(const struct golden *row)
{
    struct bytes dump = { .data = malloc(65536) };
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof(path), GOLDEN_FOLDER "%s.bin", row->name);
    file = fopen(path, "rb");
    if (file == NULL) {
        print_error("%s: not found; run from the top folder\n", path);
        fail();
    } else {
        dump.len = fread(dump.data, 1, 65536, file);
        (void)fclose(file);
    }
    return dump;
}

TEST(golden_files_of_version_1_load)
{
    for (size_t i = 0; i < GOLDEN_COUNT; i++) {
        const struct golden *row = &golden[i];
        struct bytes dump = read_golden(row);
        struct bloom *loaded = load(dump, NULL, row->incarnation);
        struct bloom *made = make_golden(row);
        struct bloom_info info = { .struct_size = sizeof(info) };
        unsigned found = 0;

        bloom_get_info(loaded, &info);
        assert_int_equal(row->layers, info.layers);
        assert_int_equal(row->items, info.items);
        for (unsigned n = 0; n < row->adds; n++) {
            assert_true(bloom_contains(loaded, hash_text(loaded, "item", n)));
        }
        for (unsigned n = 0; n < 10000; n++) {
            found += bloom_contains(loaded, hash_text(loaded, "other", n));
        }
        assert_int_equal(row->false_positives, found);
        assert_same(snapshot_of(made), snapshot_of(loaded));
        add_texts(made, row->adds, 2 * row->adds + 5);
        add_texts(loaded, row->adds, 2 * row->adds + 5);
        assert_same(snapshot_of(made), snapshot_of(loaded));
        bloom_free(made, NULL);
        bloom_free(loaded, NULL);
        free(dump.data);
    }
}

/* As long as version 1 is the one that is written. */
TEST(golden_filters_are_dumped_to_the_golden_bytes)
{
    for (size_t i = 0; i < GOLDEN_COUNT; i++) {
        struct bloom *made = make_golden(&golden[i]);
        struct bytes dump = dump_of(made, golden[i].incarnation);
        struct bytes stored = read_golden(&golden[i]);

        assert_int_equal(stored.len, dump.len);
        assert_memory_equal(stored.data, dump.data, dump.len);
        bloom_free(made, NULL);
        free(dump.data);
        free(stored.data);
    }
}

/* Runs before main when asked for, so that the cases above find the files. */
__attribute__((constructor)) static void
write_golden(void)
{
    for (size_t i = 0; i < GOLDEN_COUNT; i++) {
        struct bloom *made;
        struct bytes dump;
        char path[128];
        FILE *file;

        if (getenv("BLOOMERY_WRITE_GOLDEN") == NULL) {
            return;
        }
        made = make_golden(&golden[i]);
        dump = dump_of(made, golden[i].incarnation);
        (void)snprintf(path, sizeof(path), GOLDEN_FOLDER "%s.bin",
                       golden[i].name);
        file = fopen(path, "wb");
        if (file == NULL || fwrite(dump.data, 1, dump.len, file) != dump.len ||
            fclose(file) != 0) {
            (void)fprintf(stderr, "%s: cannot be written\n", path);
            abort();
        }
        bloom_free(made, NULL);
        free(dump.data);
    }
}

TEST(a_copy_takes_what_the_other_has_got_since)
{
    struct bloom *source = make_golden(&golden[0]);
    struct bloom *other = make_golden(&golden[1]);
    struct bytes after;
    struct bytes copied;
    struct bloom *copy;
    bool added;

    assert_int_equal(BLOOM_OK, bloom_copy(source, NULL, &copy));
    for (int i = 0; i < 20; i++) {
        struct bloom_hash hash = bloom_hash(source, &i, sizeof(i));

        assert_int_equal(BLOOM_OK, bloom_add(source, NULL, hash, &added));
        if (bloom_get_layer(
                source, 1,
                &(struct bloom_layer_info){
                    .struct_size = sizeof(struct bloom_layer_info) }) !=
            bloom_get_layer(
                copy, 1,
                &(struct bloom_layer_info){
                    .struct_size = sizeof(struct bloom_layer_info) })) {
            break;
        }
        assert_true(bloom_copy_into(source, copy));
        after = dump_of(source, 1);
        copied = dump_of(copy, 1);
        assert_int_equal(after.len, copied.len);
        assert_memory_equal(after.data, copied.data, after.len);
        free(after.data);
        free(copied.data);
    }
    assert_false(bloom_copy_into(other, copy));
    bloom_free(copy, NULL);
    bloom_free(source, NULL);
    bloom_free(other, NULL);
}

/* ---- as programs dump and load --------------------------------------------
 */

TEST(a_program_dumps_without_an_incarnation_and_loads_any)
{
    struct bloom_params params = params_of(30, 0.01, 2);
    struct bloom *bloom = make(&params, NULL);
    struct bloom *loaded = NULL;
    struct bytes dump, server;

    (void)fill(bloom, NULL, 0, 100);
    dump = dump_of(bloom, 0);
    server = dump_of(bloom, UINT64_MAX);
    memset(dump.data, 0xff, dump.len);
    bloom_dump(bloom, dump.data);
    assert_int_equal(BLOOM_OK, bloom_load(dump.data, dump.len, NULL, &loaded));
    assert_equal_dumps(bloom, loaded);
    bloom_free(loaded, NULL);
    assert_int_equal(BLOOM_OK,
                     bloom_load(server.data, server.len, NULL, &loaded));
    bloom_dump(loaded, server.data);
    assert_memory_equal(dump.data, server.data, dump.len);
    bloom_free(loaded, NULL);
    loaded = NULL;
    dump.data[dump.len / 2] ^= 1;
    assert_int_equal(BLOOM_CORRUPT,
                     bloom_load(dump.data, dump.len, NULL, &loaded));
    assert_int_equal(BLOOM_CORRUPT, bloom_load("", 0, NULL, &loaded));
    assert_null(loaded);
    free(dump.data);
    free(server.data);
    bloom_free(bloom, NULL);
}

TEST(a_load_without_memory_leaves_nothing_behind)
{
    struct bloom_params params = params_of(30, 0.01, 2);
    struct bloom *bloom = make(&params, NULL);
    struct bytes dump;
    bool failed = true;

    (void)fill(bloom, NULL, 0, 100);
    dump = dump_of(bloom, 0);
    for (uint64_t at = 1; failed; at++) {
        struct fault_heap heap = { .fail_at = at };
        struct bloom_env env = fault_env(&heap);
        struct bloom *loaded = NULL;
        enum bloom_status status =
            bloom_load(dump.data, dump.len, &env, &loaded);

        failed = heap.calls >= at;
        assert_int_equal(failed ? BLOOM_NOMEM : BLOOM_OK, status);
        assert_int_equal(failed, loaded == NULL);
        bloom_free(loaded, &env);
        assert_int_equal(0, heap.out);
    }
    free(dump.data);
    bloom_free(bloom, NULL);
}

TEST(an_empty_filter_is_like_a_reset_one)
{
    for (uint32_t kind = 0; kind < BLOOM_KINDS; kind++) {
        struct bloom_params params = params_of(10, 0.01, 2);
        struct bloom *bloom = NULL;
        struct bloom *empty = NULL;

        set_kind(&params, kind);
        assert_int_equal(BLOOM_OK, bloom_new(&params, NULL, &bloom));
        for (uint64_t id = 0; id < 100; id++) {
            bool added;

            assert_int_equal(
                BLOOM_OK, bloom_add(bloom, NULL, hash_id(bloom, id), &added));
        }
        assert_int_equal(BLOOM_OK, codec_new_empty(bloom, NULL, &empty));
        bloom_reset(bloom, NULL);
        for (uint64_t id = 0; id < 100; id++) { /* it grows in the same way */
            bool a, b;

            assert_int_equal(BLOOM_OK,
                             bloom_add(bloom, NULL, hash_id(bloom, id), &a));
            assert_int_equal(BLOOM_OK,
                             bloom_add(empty, NULL, hash_id(empty, id), &b));
            assert_int_equal(a, b);
        }
        assert_int_equal(bloom_dump_bytes(bloom), bloom_dump_bytes(empty));
        {
            size_t len = (size_t)bloom_dump_bytes(bloom);
            uint8_t *left = malloc(len);
            uint8_t *right = malloc(len);

            bloom_dump(bloom, left);
            bloom_dump(empty, right);
            assert_memory_equal(left, right, len);
            free(left);
            free(right);
        }
        bloom_free(bloom, NULL);
        bloom_free(empty, NULL);
    }
}
