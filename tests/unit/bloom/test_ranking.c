/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ranking against the truth, and its bounds.
 */
#include "bloom/ranking.h"

#include "../engine/rig.h"
#include "base/clock.h"

#include <stdarg.h>

static void
step(struct rig *rig, struct ranking *ranking)
{
    ranking_step(ranking, rig->service.keyspace, 0, clock_wall_ms());
}

/* A step may end early on a busy machine. */
static void
finish_round(struct rig *rig, struct ranking *ranking)
{
    uint64_t rounds = ranking->rounds;

    while (ranking->rounds == rounds) {
        step(rig, ranking);
    }
}

__attribute__((format(printf, 2, 3))) static void
run(struct rig *rig, const char *format, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    run_text(rig, text, false);
}

static void
expect_name(const struct ranking_board *board, unsigned at, const char *name)
{
    assert_true(at < board->count);
    if (!slice_equal(ranking_name(&board->filter[at]), slice_of(name))) {
        fail_msg("%u is %.*s and not %s", at, (int)board->filter[at].name_len,
                 board->filter[at].name, name);
    }
}

TEST(ranking_of_nothing_is_complete_and_empty)
{
    struct rig *rig = rig_new();
    struct ranking ranking = { 0 };

    finish_round(rig, &ranking);
    assert_int_equal(1, ranking.rounds);
    assert_int_equal(0, ranking.biggest.count + ranking.fullest.count);
    finish_round(rig, &ranking);
    assert_int_equal(2, ranking.rounds);
    rig_free(rig);
}

TEST(ranking_finds_the_biggest_and_the_fullest)
{
    struct rig *rig = rig_new();
    struct ranking ranking = { 0 };

    for (unsigned i = 1; i <= 20; i++) {
        run(rig, "BF.RESERVE size%u 0.01 %u000 NONSCALING", i, i);
    }
    run_text(rig, "SELECT 3; BF.RESERVE full 0.01 10 NONSCALING", false);
    for (unsigned i = 0; i < 10; i++) {
        run(rig, "BF.ADD full %u", i);
    }
    run_text(rig, "SELECT 0; BF.MADD size3 a b c d e", false);
    finish_round(rig, &ranking);
    assert_int_equal(1, ranking.rounds);
    assert_int_equal(21, ranking.seen);
    assert_int_equal(RANKING_TOP, ranking.biggest.count);
    for (unsigned i = 0; i < RANKING_TOP; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "size%u", 20 - i);
        expect_name(&ranking.biggest, i, name);
    }
    expect_name(&ranking.fullest, 0, "full");
    assert_int_equal(3, ranking.fullest.filter[0].db);
    assert_int_equal(10, ranking.fullest.filter[0].items);
    assert_true(ranking.fullest.filter[0].rate > 0);
    assert_true(ranking.fullest.filter[0].rate < 0.1);
    expect_name(&ranking.fullest, 1, "size3");
    assert_int_equal(5, ranking.fullest.filter[1].items);
    rig_free(rig);
}

TEST(ranking_follows_changes_of_what_is_on_a_board)
{
    struct rig *rig = rig_new();
    struct ranking ranking = { 0 };

    run_text(rig, "BF.RESERVE a 0.01 1000; BF.RESERVE b 0.01 2000", false);
    finish_round(rig, &ranking);
    expect_name(&ranking.biggest, 0, "b");
    run_text(rig, "DEL b; BF.ADD a x", false);
    finish_round(rig, &ranking);
    assert_int_equal(1, ranking.biggest.count);
    expect_name(&ranking.biggest, 0, "a");
    assert_int_equal(1, ranking.biggest.filter[0].items);
    run_text(rig, "FLUSHALL", false);
    finish_round(rig, &ranking);
    assert_int_equal(0, ranking.biggest.count + ranking.fullest.count);
    rig_free(rig);
}

TEST(ranking_does_a_bounded_part_of_a_round_in_a_step)
{
    struct rig *rig = rig_new();
    struct ranking ranking = { 0 };
    unsigned steps = 0;
    uint64_t before = 0;

    for (unsigned i = 0; i < 5000; i++) {
        run(rig, "BF.RESERVE k%u 0.01 %u", i, 10 + (i * 7919) % 5000);
    }
    while (ranking.rounds == 0) {
        step(rig, &ranking);
        assert_true(ranking.seen - before <= RANKING_KEYS + 512);
        before = ranking.seen;
        steps++;
    }
    assert_true(steps >= 4);
    assert_true(ranking.seen >= 5000);
    assert_int_equal(RANKING_TOP, ranking.biggest.count);
    for (unsigned i = 1; i < RANKING_TOP; i++) {
        assert_true(ranking.biggest.filter[i - 1].bytes >=
                    ranking.biggest.filter[i].bytes);
    }
    rig_free(rig);
}

TEST(ranking_leaves_out_long_names_and_expired_filters)
{
    struct rig *rig = rig_new();
    struct ranking ranking = { 0 };
    char text[RANKING_NAME_MAX + 32];

    (void)snprintf(text, sizeof(text), "BF.ADD %0*d x", RANKING_NAME_MAX + 1,
                   0);
    run_text(rig, text, false);
    run_text(rig, "BF.RESERVE gone 0.01 100 EX 10", false);
    ranking_step(&ranking, rig->service.keyspace, 0, clock_wall_ms() + 60000);
    assert_int_equal(0, ranking.biggest.count);
    (void)snprintf(text, sizeof(text), "BF.ADD %0*d x", RANKING_NAME_MAX, 0);
    run_text(rig, text, false);
    finish_round(rig, &ranking);
    assert_int_equal(2, ranking.biggest.count);
    rig_free(rig);
}

/* Hundreds of layers would take too long under a lock. */
TEST(ranking_measures_no_filter_of_very_many_layers)
{
    struct rig *rig = rig_new();
    struct ranking ranking = { 0 };

    run_text(rig, "BF.RESERVE k 0.01 1 EXPANSION 1", false);
    for (unsigned i = 0; i < 200; i++) {
        run(rig, "BF.ADD k %u", i);
    }
    finish_round(rig, &ranking);
    assert_int_equal(1, ranking.biggest.count);
    assert_true(ranking.biggest.filter[0].layers > 100);
    assert_true(ranking.biggest.filter[0].rate < 0);
    rig_free(rig);
}

TEST(a_filter_has_one_number_on_both_boards_and_no_other_has_it)
{
    struct rig *rig = rig_new();
    static struct ranking ranking;

    for (int i = 0; i < 40; i++) {
        run(rig, "BF.RESERVE k%d 0.01 %d", i, 100 + 37 * i % 400);
        run(rig, "BF.MADD k%d a b c d e f g h", i);
        finish_round(rig, &ranking);
    }
    finish_round(rig, &ranking);
    assert_int_equal(ranking.biggest.count, RANKING_TOP);
    for (unsigned i = 0; i < RANKING_TOP; i++) {
        const struct ranking_filter *a = &ranking.biggest.filter[i];

        assert_in_range(a->number, 1, ranking.numbered);
        for (unsigned j = 0; j < RANKING_TOP; j++) {
            const struct ranking_filter *b = &ranking.fullest.filter[j];
            const struct ranking_filter *c = &ranking.biggest.filter[j];

            assert_int_equal(a->number == b->number,
                             slice_equal(ranking_name(a), ranking_name(b)));
            assert_int_equal(a->number == c->number, i == j);
        }
    }
    rig_free(rig);
}

static bool
has_chosen(const struct ranking *ranking, const char *name)
{
    for (unsigned i = 0; i < ranking->chosen.count; i++) {
        if (slice_equal(ranking_name(&ranking->chosen.filter[i]),
                        slice_of(name))) {
            return true;
        }
    }
    return false;
}

TEST(chosen_filters_are_those_that_match_and_are_there)
{
    struct rig *rig = rig_new();
    static struct ranking ranking;

    run(rig, "BF.RESERVE user:a 0.01 100");
    run(rig, "BF.RESERVE user:b 0.01 100 NONSCALING");
    run(rig, "BF.RESERVE other 0.01 100");
    finish_round(rig, &ranking);
    assert_int_equal(ranking.chosen.count, 0);
    ranking_choose(&ranking, "user:*");
    finish_round(rig, &ranking);
    assert_int_equal(ranking.chosen.count, 2);
    assert_true(has_chosen(&ranking, "user:a"));
    run(rig, "BF.ADD user:b x");
    run(rig, "DEL user:a");
    finish_round(rig, &ranking);
    assert_int_equal(ranking.chosen.count, 1);
    assert_int_equal(ranking.chosen.filter[0].items, 1);
    assert_false(ranking.chosen.filter[0].scaling);
    assert_true(ranking.chosen.filter[0].rate >= 0);
    ranking_choose(&ranking, "o*");
    assert_int_equal(ranking.chosen.count, 0);
    finish_round(rig, &ranking);
    assert_true(has_chosen(&ranking, "other"));
    ranking_fini(&ranking);
    finish_round(rig, &ranking);
    assert_int_equal(ranking.chosen.count, 0);
    rig_free(rig);
}

TEST(at_most_a_thousand_filters_are_chosen)
{
    struct rig *rig = rig_new();
    static struct ranking ranking;

    for (int i = 0; i < RANKING_CHOSEN + 100; i++) {
        run(rig, "BF.RESERVE k%d 0.01 10", i);
    }
    ranking_choose(&ranking, "*");
    for (int i = 0; i < 1000 && ranking.rounds < 2; i++) {
        step(rig, &ranking);
    }
    assert_int_equal(ranking.chosen.count, RANKING_CHOSEN);
    assert_int_equal(ranking.chosen.matching, RANKING_CHOSEN + 100);
    for (unsigned i = 0; i < 50; i++) {
        for (unsigned j = 0; j < i; j++) {
            assert_false(slice_equal(ranking_name(&ranking.chosen.filter[i]),
                                     ranking_name(&ranking.chosen.filter[j])));
        }
    }
    run(rig, "DEL k7");
    run(rig, "DEL k1005");
    for (uint64_t until = ranking.rounds + 2; ranking.rounds < until;) {
        step(rig, &ranking);
    }
    assert_in_range(ranking.chosen.count, RANKING_CHOSEN - 2, RANKING_CHOSEN);
    assert_int_equal(ranking.chosen.matching, RANKING_CHOSEN + 98);

    /* In the middle of a round, another pattern begins a new one. */
    step(rig, &ranking);
    ranking_choose(&ranking, "k1?");
    assert_int_equal(ranking.chosen.matching, 0);
    for (uint64_t until = ranking.rounds + 1; ranking.rounds < until;) {
        step(rig, &ranking);
    }
    assert_int_equal(ranking.chosen.matching, 10);
    ranking_fini(&ranking);
    rig_free(rig);
}
