/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Views of a filter, while a writer adds, grows and replaces it.
 */
#include "local/local_view.h"

#include "base/clock.h"
#include "core/bloom.h"
#include "local/local_readers.h"

#include "../test.h"

#include <pthread.h>
#include <stdio.h>

enum { READERS = 2, ITEMS = 30000 };

static const struct local_proof always = { UINT64_MAX, UINT64_MAX };

static struct bloom *
new_bloom(uint64_t capacity)
{
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .capacity = capacity,
                                   .error_rate = 0.0001,
                                   .tightening = 0.5,
                                   .expansion = 2 };
    struct bloom *bloom;

    assert_int_equal(bloom_new(&params, NULL, &bloom), BLOOM_OK);
    return bloom;
}

static void
add(struct bloom *bloom, const char *item)
{
    bool added;

    assert_int_equal(
        bloom_add(bloom, NULL, bloom_hash(bloom, item, strlen(item)), &added),
        BLOOM_OK);
}

static enum bloomery_local_answer
ask(struct local_place *place, const char *item)
{
    enum bloomery_local_answer answer =
        local_place_contains(place, item, strlen(item));
    struct bloomery_local_item one = { item, strlen(item) };
    int8_t many;

    assert_int_equal(local_place_contains_many(place, &one, 1, &many),
                     answer == BLOOMERY_LOCAL_UNKNOWN);
    assert_int_equal(many, answer);
    return answer;
}

TEST(absent_is_said_until_either_clock_has_passed)
{
    struct bloom *bloom = new_bloom(100);
    struct local_place place;
    struct local_view *view;

    assert_true(local_readers_init(false));
    local_place_init(&place);
    assert_int_equal(ask(&place, "x"), BLOOMERY_LOCAL_UNKNOWN);
    add(bloom, "x");
    view = local_view_new(bloom);
    local_place_give(&place, view);
    assert_int_equal(ask(&place, "x"), BLOOMERY_LOCAL_PRESENT);
    assert_int_equal(ask(&place, "y"), BLOOMERY_LOCAL_UNKNOWN);
    local_view_prove(view, always);
    assert_int_equal(ask(&place, "y"), BLOOMERY_LOCAL_ABSENT);
    local_view_prove(view, (struct local_proof){ 1, UINT64_MAX });
    assert_int_equal(ask(&place, "y"), BLOOMERY_LOCAL_UNKNOWN);
    local_view_prove(view, (struct local_proof){ UINT64_MAX, 1 });
    assert_int_equal(ask(&place, "y"), BLOOMERY_LOCAL_UNKNOWN);
    assert_int_equal(ask(&place, "x"), BLOOMERY_LOCAL_PRESENT);
    local_place_give(&place, NULL);
    assert_int_equal(ask(&place, "x"), BLOOMERY_LOCAL_UNKNOWN);
    bloom_free(bloom, NULL);
}

TEST(a_view_of_no_filter_has_nothing)
{
    struct local_place place;
    struct local_view *view = local_view_new(NULL);

    assert_true(local_readers_init(false));
    local_place_init(&place);
    local_view_prove(view, always);
    local_place_give(&place, view);
    assert_int_equal(ask(&place, "x"), BLOOMERY_LOCAL_ABSENT);
    assert_true(local_view_fits(view, NULL));
    local_place_give(&place, NULL);
}

TEST(a_closed_place_says_unknown_for_good)
{
    struct bloom *bloom = new_bloom(100);
    struct local_place place;
    struct local_view *view = local_view_new(bloom);

    assert_true(local_readers_init(false));
    local_place_init(&place);
    local_view_prove(view, always);
    local_place_give(&place, view);
    local_place_close(&place);
    assert_int_equal(ask(&place, "x"), BLOOMERY_LOCAL_UNKNOWN);
    view = local_view_new(bloom);
    local_view_prove(view, always);
    local_place_give(&place, view);
    assert_int_equal(ask(&place, "x"), BLOOMERY_LOCAL_UNKNOWN);
    local_place_give(&place, NULL);
    bloom_free(bloom, NULL);
}

TEST(lines_that_are_forgotten_are_not_read)
{
    struct bloom *bloom = new_bloom(100);
    struct local_place place;
    struct local_view *view;
    char item[16];

    assert_true(local_readers_init(false));
    local_place_init(&place);
    for (int i = 0; bloom->count < 3; i++) {
        (void)snprintf(item, sizeof(item), "%d", i);
        add(bloom, item);
    }
    view = local_view_new(bloom);
    local_view_prove(view, always);
    local_place_give(&place, view);
    assert_int_equal(ask(&place, "0"), BLOOMERY_LOCAL_PRESENT);
    assert_true(local_view_fits(view, bloom));
    local_place_forget(&place, bloom->chain->layers[0].lines);
    assert_int_equal(ask(&place, "0"), BLOOMERY_LOCAL_ABSENT);
    assert_int_equal(ask(&place, item), BLOOMERY_LOCAL_PRESENT);
    assert_false(local_view_fits(view, bloom));
    local_place_give(&place, NULL);
    bloom_free(bloom, NULL);
}

/* ---- with readers -------------------------------------------------------- */

struct shared {
    struct local_place place;
    _Atomic unsigned shown; /* items that each reader has to find */
    _Atomic unsigned wrong;
};

static void *
look(void *arg)
{
    struct shared *shared = arg;
    unsigned shown = 0;
    char item[16];

    while (shown < ITEMS) {
        shown = atomic_load_explicit(&shared->shown, memory_order_acquire);
        for (unsigned i = 1; i < 20 && i <= shown; i++) {
            int len = snprintf(item, sizeof(item), "%u", shown - i);

            if (local_place_contains(&shared->place, item, (size_t)len) !=
                BLOOMERY_LOCAL_PRESENT) {
                atomic_fetch_add(&shared->wrong, 1);
            }
        }
    }
    return NULL;
}

/* Puts an equal filter in the place of another one. */
static struct bloom *
replace(struct shared *shared, struct bloom *bloom)
{
    struct bloom *copy;
    struct local_view *view;

    assert_int_equal(bloom_copy(bloom, NULL, &copy), BLOOM_OK);
    view = local_view_new(copy);
    local_view_prove(view, always);
    local_place_give(&shared->place, view);
    bloom_free(bloom, NULL);
    return copy;
}

/* The filter grows by several layers, and is replaced now and then. */
TEST(readers_find_what_a_writer_has_shown_them)
{
    static struct shared shared;
    struct bloom *bloom = new_bloom(500);
    pthread_t threads[READERS];
    char item[16];

    (void)layer_select_shared();
    assert_true(local_readers_init(false));
    local_place_init(&shared.place);
    bloom = replace(&shared, bloom);
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, look, &shared), 0);
    }
    for (unsigned i = 0; i < ITEMS; i++) {
        (void)snprintf(item, sizeof(item), "%u", i);
        add(bloom, item);
        if (i % 1000 == 999 || !local_view_fits(shared.place.own, bloom)) {
            bloom = replace(&shared, bloom);
        }
        atomic_store_explicit(&shared.shown, i + 1, memory_order_release);
    }
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&shared.wrong), 0);
    assert_true(bloom->count > 3);
    local_place_give(&shared.place, NULL);
    bloom_free(bloom, NULL);
}
