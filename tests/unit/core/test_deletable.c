/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Deletable filters: a model test beside exact sets, the share of deleted items
 * that still test present, the rate under churn, and what effects do again.
 */
#include "core/deletable.h"

#include "../test.h"
#include "core/codec.h"
#include "core/env.h"
#include "core/parts.h"
#include "help.h"

enum { UNIVERSE = 4096, FILTERS = 24, OPERATIONS = 1000000 };

static const uint32_t regions[] = { 1, 2, 4, 8 };

static struct bloom_params
params_deletable(uint64_t capacity, double rate, uint32_t expansion,
                 uint32_t region)
{
    struct bloom_params params = params_of(capacity, rate, expansion);

    params.kind = BLOOM_DELETABLE;
    params.region = region;
    return params;
}

/* ---- the model ----------------------------------------------------------- */

/* times: how often the item was added, and not deleted. Only items with times
 * above 0 may be deleted. */
struct model {
    struct bloom *bloom, *again;
    uint64_t live;
    uint32_t times[UNIVERSE];
};

static void
model_open(struct model *model, uint64_t *rng)
{
    struct bloom_params params = params_deletable(
        1 + test_random_below(rng, 800), 0.3 * test_random_unit(rng) + 1e-9,
        1 + (uint32_t)test_random_below(rng, 3),
        regions[test_random_below(rng, 4)]);

    memset(model, 0, sizeof(*model));
    model->bloom = make(&params, NULL);
    model->again = make(&params, NULL);
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

static void
model_close(struct model *model)
{
    struct bloom_info info = { .struct_size = sizeof(info) };

    for (uint64_t id = 0; id < UNIVERSE; id++) {
        if (model->times[id] > 0) {
            assert_true(
                bloom_contains(model->bloom, hash_id(model->bloom, id)));
        }
    }
    bloom_check(model->bloom);
    bloom_get_info(model->bloom, &info);
    assert_int_equal(model->live, info.items);
    assert_equal_dumps(model->bloom, model->again);
    bloom_free(model->bloom, NULL);
    bloom_free(model->again, NULL);
}

static void
add_one(struct model *model, uint64_t id)
{
    struct bloom_hash hash = hash_id(model->bloom, id);
    struct deletable_done done = { .layer = DELETABLE_NEW };
    bool found = bloom_contains(model->bloom, hash);
    bool added = false;

    if (bloom_add(model->bloom, NULL, hash, &added) != BLOOM_OK) {
        return;
    }
    assert_true(found != added);
    if (!added) {
        done.layer = deletable_layer_of(model->bloom, hash);
    }
    assert_int_equal(BLOOM_OK,
                     deletable_add_again(model->again, NULL, hash, done, 0));
    model->times[id]++;
    model->live += added;
}

static void
delete_one(struct model *model, uint64_t id)
{
    struct bloom_hash hash = hash_id(model->bloom, id);
    bool found = bloom_contains(model->bloom, hash);
    struct deletable_done done;
    int answer;

    if (model->times[id] == 0 && found) {
        return; /* a false positive, which nobody may delete */
    }
    answer = deletable_delete(model->bloom, hash, &done);
    assert_int_equal(found ? answer : 0, answer);
    assert_true((answer == -1) ==
                (found && bloom_contains(model->bloom, hash)));
    if (answer == 1) {
        assert_true(deletable_delete_again(model->again, hash, done, 0));
        assert_int_equal(1, model->times[id]);
        model->times[id] = 0;
        model->live -= model->live > 0;
    }
}

/* 0 false negatives for the rest, and effects make the same bits again. An item
 * that was answered 0 by chance lives uncounted; its deletion lowers the count,
 * but a model that counts the same shows that too. */
TEST(a_million_random_operations_lose_no_item)
{
    static struct model models[FILTERS];
    uint64_t rng = test_seed();
    uint64_t rounds = (uint64_t)OPERATIONS * test_rounds();

    for (unsigned i = 0; i < FILTERS; i++) {
        model_open(&models[i], &rng);
    }
    for (uint64_t n = 0; n < rounds; n++) {
        struct model *model = &models[test_random_below(&rng, FILTERS)];
        uint64_t id = test_random_below(&rng, UNIVERSE / 8);

        switch (test_random_below(&rng, 8)) {
        case 0:
        case 1:
        case 2:
            add_one(model, id + test_random_below(&rng, 8) * UNIVERSE / 8);
            break;
        case 3: /* the same item, again and again */
            delete_one(model, id);
            add_one(model, id);
            break;
        case 4:
        case 5:
            delete_one(model, id + test_random_below(&rng, 8) * UNIVERSE / 8);
            break;
        default:
            if (model->times[id] > 0) {
                assert_true(
                    bloom_contains(model->bloom, hash_id(model->bloom, id)));
            }
        }
        if (n % 50000 == 0) {
            model_close(model);
            model_open(model, &rng);
        }
    }
    for (unsigned i = 0; i < FILTERS; i++) {
        model_close(&models[i]);
    }
}

/* ---- shares and rates ---------------------------------------------------- */

/* Adds items, deletes the first tenth, and returns how many are still there. */
static uint64_t
count_stuck(uint64_t capacity, double rate, uint32_t region, double load,
            uint64_t *ret_deleted)
{
    struct bloom_params params = params_deletable(capacity, rate, 0, region);
    struct bloom *bloom;
    uint64_t items = (uint64_t)((double)capacity * load);
    uint64_t deleted = items / 10;
    uint64_t stuck = 0;
    bool added;

    bloom_seed(test_seed() ^ region, params.seed);
    bloom = make(&params, NULL);
    for (uint64_t id = 0; id < items; id++) {
        assert_int_equal(BLOOM_OK,
                         bloom_add(bloom, NULL, hash_id(bloom, id), &added));
    }
    for (uint64_t id = 0; id < deleted; id++) {
        stuck += bloom_delete(bloom, hash_id(bloom, id)) == -1;
    }
    for (uint64_t id = deleted; id < items; id++) {
        assert_true(bloom_contains(bloom, hash_id(bloom, id)));
    }
    bloom_free(bloom, NULL);
    *ret_deleted = deleted;
    return stuck;
}

/* Compares the share with what the documentation says: within 10 % wherever 400
 * events are expected, but for what chance may do to fewer than 1,600. */
static void
check_share(uint64_t capacity, double rate, double load, uint32_t region,
            double percent)
{
    uint64_t deleted;
    uint64_t stuck = count_stuck(capacity, rate, region, load, &deleted);
    double expected = percent / 100 * (double)deleted;
    double off = (double)stuck - expected;
    double most = expected * 0.1;

    if (expected < 1600) {
        most += 4 * __builtin_sqrt(expected + 1);
    }
    print_message("rate %g load %g region %u: %.3f %%, %.3f, %.0f events\n",
                  rate, load, region, 100.0 * (double)stuck / (double)deleted,
                  percent, expected);
    if (off > most || off < -most) {
        fail_msg("%llu of %llu, and not %.0f", (unsigned long long)stuck,
                 (unsigned long long)deleted, expected);
    }
}

/* The table of packaging/doc/forgetting.md. BLOOMERY_ROUNDS makes the filters
 * larger. */
TEST(deleted_items_stay_no_more_often_than_documented)
{
    static const struct {
        double rate, load, percent[4];
    } rows[] = {
        { 0.01, 0.5, { 0.024, 0.073, 0.343, 2.31 } },
        { 0.01, 0.75, { 0.218, 0.70, 3.26, 16.1 } },
        { 0.01, 1, { 0.954, 3.09, 12.5, 42.4 } },
        { 0.001, 0.75, { 0.019, 0.058, 0.274, 1.90 } },
        { 0.001, 1, { 0.094, 0.302, 1.44, 8.23 } },
    };
    uint64_t capacity = (uint64_t)200000 * test_rounds();

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (unsigned r = 0; r < 4; r++) {
            check_share(capacity, rows[i].rate, rows[i].load, regions[r],
                        rows[i].percent[r]);
        }
    }
}

/* A window of live items moves through a filter until it is full. */
TEST(churn_keeps_the_rate)
{
    enum { CAPACITY = 50000, PROBES = 200000 };
    static const double rates[] = { 0.01, 0.001 };
    static const uint64_t windows[] = { 10, 30, 50, 90 }; /* per cent */

    for (unsigned n = 0; n < 32; n++) {
        double rate = rates[n / 16];
        uint64_t window = CAPACITY * windows[n / 4 % 4] / 100;
        struct bloom_params params =
            params_deletable(CAPACITY, rate, 0, regions[n % 4]);
        struct bloom *bloom = make(&params, NULL);
        uint64_t id = 0;
        uint64_t wrong = 0;
        bool added;

        while (bloom_add(bloom, NULL, hash_id(bloom, id), &added) == BLOOM_OK) {
            if (++id > window) {
                (void)bloom_delete(bloom, hash_id(bloom, id - window - 1));
            }
        }
        assert_true(id > CAPACITY); /* deletions make room */
        for (uint64_t i = 0; i < PROBES; i++) {
            wrong += bloom_contains(bloom, hash_id(bloom, 1ULL << 40 | i));
        }
        print_message("rate %g region %u window %llu: full at %.2f, %.5f\n",
                      rate, params.region, (unsigned long long)window,
                      (double)id / CAPACITY, (double)wrong / PROBES);
        assert_true((double)wrong / PROBES <=
                    rate + 4 * __builtin_sqrt(rate / PROBES));
        bloom_free(bloom, NULL);
    }
}

/* ---- answers ------------------------------------------------------------- */

TEST(a_deletion_answers_gone_absent_or_still_there)
{
    struct bloom_params params = params_deletable(1000, 0.001, 0, 2);
    struct bloom *bloom = make(&params, NULL);
    struct bloom_hash hash = hash_id(bloom, 7);
    bool added;

    assert_int_equal(0, bloom_delete(bloom, hash));
    assert_int_equal(BLOOM_OK, bloom_add(bloom, NULL, hash, &added));
    assert_int_equal(1, bloom_delete(bloom, hash));
    assert_int_equal(0, bloom_delete(bloom, hash));
    assert_int_equal(BLOOM_OK, bloom_add(bloom, NULL, hash, &added));
    assert_true(added);
    assert_int_equal(BLOOM_OK, bloom_add(bloom, NULL, hash, &added));
    assert_false(added);
    assert_int_equal(-1, bloom_delete(bloom, hash));
    assert_true(bloom_contains(bloom, hash));
    bloom_free(bloom, NULL);
}

/* The newest layer keeps an item that an older one had by chance. */
TEST(of_two_layers_none_gives_an_item_up)
{
    struct bloom_params params = params_deletable(40, 0.2, 1, 1);
    struct bloom *bloom = make(&params, NULL);
    uint64_t id = fill(bloom, NULL, 0, 400);
    unsigned refused = 0;

    for (uint64_t i = 0; i < id; i++) {
        struct bloom_hash hash = hash_id(bloom, i);
        unsigned layers = 0;

        for (uint32_t l = 0; l < bloom->count; l++) {
            layers += layer_contains(&bloom_layers(bloom)[l], hash);
        }
        if (layers > 1) {
            assert_int_equal(-1, bloom_delete(bloom, hash));
            refused++;
        }
    }
    assert_true(refused > 0);
    bloom_free(bloom, NULL);
}

TEST(a_region_is_checked)
{
    static const uint32_t wrong[] = { 0, 3, 5, 16, 1U << 31 };
    struct bloom_params params = params_deletable(100, 0.01, 2, 2);
    struct bloom *bloom;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        params.region = wrong[i];
        assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    }
    params.region = 2;
    params.kind = BLOOM_NATIVE;
    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
}

/* ---- stored and united --------------------------------------------------- */

static struct bloom *
lived(uint32_t region, uint64_t first)
{
    struct bloom_params params = params_deletable(300, 0.02, 2, region);
    struct bloom *bloom = make(&params, NULL);
    uint64_t end = fill(bloom, NULL, first, 1500);

    for (uint64_t id = first; id < end; id += 3) {
        (void)bloom_delete(bloom, hash_id(bloom, id));
    }
    return bloom;
}

TEST(a_dump_and_a_copy_are_the_same_filter)
{
    for (unsigned r = 0; r < 4; r++) {
        struct bloom *bloom = lived(regions[r], 0);
        size_t len = (size_t)bloom_dump_bytes(bloom);
        uint8_t *bytes = malloc(len);
        struct bloom *loaded = NULL;
        struct bloom *copy = NULL;

        bloom_dump(bloom, bytes);
        assert_int_equal(BLOOM_OK, bloom_load(bytes, len, NULL, &loaded));
        assert_int_equal(BLOOM_OK, bloom_copy(bloom, NULL, &copy));
        assert_equal_dumps(bloom, loaded);
        assert_equal_dumps(bloom, copy);
        bloom_check(loaded);
        bytes[CODEC_FIXED_BYTES + 20] ^= 1; /* of one layer: the region */
        assert_int_equal(BLOOM_CORRUPT, bloom_load(bytes, len, NULL, &copy));
        free(bytes);
        bloom_free(bloom, NULL);
        bloom_free(loaded, NULL);
        bloom_free(copy, NULL);
    }
}

/* Damage of each byte of the head, with a checksum that fits, makes no filter
 * whose sums break. */
TEST(a_hostile_head_is_refused_or_whole)
{
    struct bloom *bloom = lived(4, 0);
    uint8_t head[CODEC_HEAD_BYTES_MAX];
    size_t len = codec_put_head(bloom, 7, head);
    unsigned refused = 0;

    for (size_t at = 4; at < len; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            struct bloom *loaded = NULL;
            struct codec_head read;

            head[at] ^= (uint8_t)(1U << bit);
            if (codec_read_head(head, len, &read) != BLOOM_OK ||
                codec_check_head(&read) != BLOOM_OK ||
                codec_new(&read, &(struct bloom_env){ .size_limit_bytes = 0 },
                          &loaded) != BLOOM_LIMIT) {
                refused++;
            }
            head[at] ^= (uint8_t)(1U << bit);
        }
    }
    assert_true(refused > 100);
    bloom_free(bloom, NULL);
}

TEST(a_union_has_the_items_of_both_and_loses_none)
{
    for (unsigned r = 0; r < 4; r++) {
        struct bloom_params params =
            params_deletable(3000, 0.01, 2, regions[r]);
        struct bloom *a = make(&params, NULL);
        struct bloom *b = make(&params, NULL);
        const struct bloom *others[] = { b };
        unsigned gone = 0;

        (void)fill(a, NULL, 0, 1000);
        (void)fill(b, NULL, 10000, 1500);
        for (uint64_t id = 0; id < 200; id++) {
            gone += bloom_delete(a, hash_id(a, id)) == 1;
            gone += bloom_delete(b, hash_id(b, 10000 + id)) == 1;
        }
        assert_int_equal(BLOOM_OK, bloom_merge(a, NULL, others, 1));
        assert_int_equal(2500 - gone, bloom_items(a));
        bloom_check(a);
        for (uint64_t id = 200; id < 600; id++) {
            (void)bloom_delete(a, hash_id(a, id));
        }
        for (uint64_t id = 600; id < 1000; id++) {
            assert_true(bloom_contains(a, hash_id(a, id)));
        }
        for (uint64_t id = 10200; id < 11500; id++) {
            assert_true(bloom_contains(a, hash_id(a, id)));
        }
        params.region = regions[(r + 1) % 4];
        bloom_free(b, NULL);
        b = make(&params, NULL);
        others[0] = b;
        assert_string_equal("regions", bloom_difference(a, b));
        assert_int_equal(BLOOM_INVALID, bloom_merge(a, NULL, others, 1));
        bloom_free(a, NULL);
        bloom_free(b, NULL);
    }
}

/* ---- pieces -------------------------------------------------------------- */

/* What one effect did, at a position of its own. */
struct happened {
    bool deleted;
    uint64_t id;
    struct deletable_done done;
};

enum { EFFECTS = 9000, MOST = 640 };

/* A filter and its copy, which is made piece by piece. */
struct copying {
    struct bloom *bloom, *copy;
    struct bloom_pieces *pieces;
    struct happened log[EFFECTS];
    uint64_t begin, done; /* effects: before the head was copied, and so far */
    uint32_t layer;       /* of the next piece */
    uint64_t offset, piece;
};

/* Adds or deletes a random item. */
static void
happen(struct copying *copying, uint64_t *rng)
{
    struct bloom *bloom = copying->bloom;
    struct happened *now = &copying->log[copying->done];
    uint64_t id = test_random_below(rng, 5000);
    struct bloom_hash hash = hash_id(bloom, id);
    bool added;

    *now = (struct happened){ .id = id, .done.layer = DELETABLE_NEW };
    if (test_random_below(rng, 2) == 0) {
        now->deleted = true;
        copying->done += deletable_delete(bloom, hash, &now->done) == 1;
    } else if (bloom_add(bloom, NULL, hash, &added) == BLOOM_OK) {
        now->done.layer =
            added ? (uint16_t)DELETABLE_NEW : deletable_layer_of(bloom, hash);
        copying->done++;
    }
}

/* Copies the head, and no line. */
static void
copy_head(struct copying *copying)
{
    uint8_t head[CODEC_HEAD_BYTES_MAX];
    struct codec_head read;

    assert_int_equal(
        BLOOM_OK,
        codec_read_head(head, codec_put_head(copying->bloom, 1, head), &read));
    assert_int_equal(BLOOM_OK, codec_new(&read, NULL, &copying->copy));
    copying->pieces->layers = copying->copy->count;
    copying->begin = copying->done;
}

static void
copy_piece(struct copying *copying)
{
    uint32_t layer = copying->layer;
    const struct layer *from = &bloom_layers_const(copying->bloom)[layer];
    struct layer *to = &bloom_layers(copying->copy)[layer];
    size_t step = collision_piece_bytes(from, MOST);
    uint64_t bytes = layer_bytes(from);

    if (step > bytes - copying->offset) {
        step = (size_t)(bytes - copying->offset);
    }
    memcpy((char *)to->lines + copying->offset,
           (const char *)from->lines + copying->offset, step);
    copying->pieces->at[copying->piece++] = copying->done;
    copying->offset += step;
    if (copying->offset == bytes) {
        copying->layer++;
        copying->offset = 0;
    }
}

/* Executes the effects on the copy; their position is behind them. */
static void
complete_copy(struct copying *copying)
{
    struct bloom *copy = copying->copy;

    bloom_set_pieces(copy, copying->pieces, env_or_default(NULL));
    for (uint64_t i = copying->begin; i < copying->done; i++) {
        const struct happened *then = &copying->log[i];
        struct bloom_hash hash = hash_id(copy, then->id);

        if (then->deleted) {
            assert_true(deletable_delete_again(copy, hash, then->done, i + 1));
        } else {
            assert_int_equal(BLOOM_OK, deletable_add_again(copy, NULL, hash,
                                                           then->done, i + 1));
        }
    }
    bloom_set_pieces(copy, NULL, env_or_default(NULL));
}

/* Copies the pieces of a filter between random operations, each at its own
 * position, executes the effects once more on the copy, and compares. */
static void
check_pieces(uint64_t *rng, uint32_t region)
{
    struct bloom_params params = params_deletable(
        400, 0.02, 1 + (uint32_t)test_random_below(rng, 2), region);
    struct copying *copying = calloc(1, sizeof(*copying));

    copying->bloom = make(&params, NULL);
    copying->pieces = bloom_new_pieces(1000, env_or_default(NULL));
    copying->pieces->most_bytes = MOST;
    while (copying->done < EFFECTS) {
        happen(copying, rng);
        if (copying->done == EFFECTS / 3 && copying->copy == NULL) {
            copy_head(copying);
        }
        while (copying->copy != NULL && copying->layer < copying->copy->count &&
               test_random_below(rng, 8) == 0) {
            copy_piece(copying);
        }
    }
    assert_int_equal(copying->copy->count, copying->layer);
    assert_true(copying->piece > 5);
    complete_copy(copying);
    assert_equal_dumps(copying->bloom, copying->copy);
    bloom_free(copying->copy, NULL);
    bloom_free(copying->bloom, NULL);
    free(copying);
}

TEST(a_copy_in_pieces_becomes_the_filter)
{
    uint64_t rng = test_seed();
    uint64_t lives = (uint64_t)20 * test_rounds();

    for (uint64_t i = 0; i < lives; i++) {
        check_pieces(&rng, regions[i % 4]);
    }
}

TEST(an_effect_of_another_filter_is_refused)
{
    struct bloom_params params = params_deletable(100, 0.01, 0, 2);
    struct bloom *bloom = make(&params, NULL);
    struct bloom_hash hash = hash_id(bloom, 1);

    assert_int_equal(BLOOM_INVALID,
                     deletable_add_again(bloom, NULL, hash,
                                         (struct deletable_done){ 1, 0 }, 0));
    assert_false(deletable_delete_again(bloom, hash,
                                        (struct deletable_done){ 1, 1 }, 0));
    assert_false(deletable_delete_again(bloom, hash,
                                        (struct deletable_done){ 0, 0 }, 0));
    assert_false(deletable_delete_again(bloom, hash,
                                        (struct deletable_done){ 0, 8 }, 0));
    bloom_free(bloom, NULL);
}
