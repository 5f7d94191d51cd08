/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The survey against the truth, and its bounds.
 */
#include "bloom/survey.h"

#include "../engine/rig.h"
#include "base/clock.h"

#include <stdarg.h>

static void
step(struct rig *rig, struct survey *survey)
{
    survey_step(survey, rig->service.keyspace, 0, clock_wall_ms());
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
expect_name(const struct survey_board *board, unsigned at, const char *name)
{
    assert_true(at < board->count);
    if (!slice_equal(survey_name(&board->filter[at]), slice_of(name))) {
        fail_msg("%u is %.*s and not %s", at, (int)board->filter[at].name_len,
                 board->filter[at].name, name);
    }
}

TEST(survey_of_nothing_is_complete_and_empty)
{
    struct rig *rig = rig_new();
    struct survey survey = { 0 };

    step(rig, &survey);
    assert_int_equal(1, survey.rounds);
    assert_int_equal(0, survey.biggest.count + survey.fullest.count);
    step(rig, &survey);
    assert_int_equal(2, survey.rounds);
    rig_free(rig);
}

TEST(survey_finds_the_biggest_and_the_fullest)
{
    struct rig *rig = rig_new();
    struct survey survey = { 0 };

    for (unsigned i = 1; i <= 20; i++) {
        run(rig, "BF.RESERVE size%u 0.01 %u000 NONSCALING", i, i);
    }
    run_text(rig, "SELECT 3; BF.RESERVE full 0.01 10 NONSCALING", false);
    for (unsigned i = 0; i < 10; i++) {
        run(rig, "BF.ADD full %u", i);
    }
    run_text(rig, "SELECT 0; BF.MADD size3 a b c d e", false);
    step(rig, &survey);
    assert_int_equal(1, survey.rounds);
    assert_int_equal(21, survey.seen);
    assert_int_equal(SURVEY_TOP, survey.biggest.count);
    for (unsigned i = 0; i < SURVEY_TOP; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "size%u", 20 - i);
        expect_name(&survey.biggest, i, name);
    }
    expect_name(&survey.fullest, 0, "full");
    assert_int_equal(3, survey.fullest.filter[0].db);
    assert_int_equal(10, survey.fullest.filter[0].items);
    assert_true(survey.fullest.filter[0].rate > 0);
    assert_true(survey.fullest.filter[0].rate < 0.1);
    expect_name(&survey.fullest, 1, "size3");
    assert_int_equal(5, survey.fullest.filter[1].items);
    rig_free(rig);
}

TEST(survey_follows_changes_of_what_is_on_a_board)
{
    struct rig *rig = rig_new();
    struct survey survey = { 0 };

    run_text(rig, "BF.RESERVE a 0.01 1000; BF.RESERVE b 0.01 2000", false);
    step(rig, &survey);
    expect_name(&survey.biggest, 0, "b");
    run_text(rig, "DEL b; BF.ADD a x", false);
    step(rig, &survey);
    assert_int_equal(1, survey.biggest.count);
    expect_name(&survey.biggest, 0, "a");
    assert_int_equal(1, survey.biggest.filter[0].items);
    run_text(rig, "FLUSHALL", false);
    step(rig, &survey);
    assert_int_equal(0, survey.biggest.count + survey.fullest.count);
    rig_free(rig);
}

TEST(survey_does_a_bounded_part_of_a_round_in_a_step)
{
    struct rig *rig = rig_new();
    struct survey survey = { 0 };
    unsigned steps = 0;
    uint64_t before = 0;

    for (unsigned i = 0; i < 5000; i++) {
        run(rig, "BF.RESERVE k%u 0.01 %u", i, 10 + (i * 7919) % 5000);
    }
    while (survey.rounds == 0) {
        step(rig, &survey);
        assert_true(survey.seen - before <= SURVEY_KEYS + 512);
        before = survey.seen;
        steps++;
    }
    assert_true(steps >= 4);
    assert_true(survey.seen >= 5000);
    assert_int_equal(SURVEY_TOP, survey.biggest.count);
    for (unsigned i = 1; i < SURVEY_TOP; i++) {
        assert_true(survey.biggest.filter[i - 1].bytes >=
                    survey.biggest.filter[i].bytes);
    }
    rig_free(rig);
}

TEST(survey_leaves_out_long_names_and_expired_filters)
{
    struct rig *rig = rig_new();
    struct survey survey = { 0 };
    char text[SURVEY_NAME_MAX + 32];

    (void)snprintf(text, sizeof(text), "BF.ADD %0*d x", SURVEY_NAME_MAX + 1, 0);
    run_text(rig, text, false);
    run_text(rig, "BF.RESERVE gone 0.01 100 EX 10", false);
    survey_step(&survey, rig->service.keyspace, 0, clock_wall_ms() + 60000);
    assert_int_equal(0, survey.biggest.count);
    (void)snprintf(text, sizeof(text), "BF.ADD %0*d x", SURVEY_NAME_MAX, 0);
    run_text(rig, text, false);
    step(rig, &survey);
    assert_int_equal(2, survey.biggest.count);
    rig_free(rig);
}

/* Hundreds of layers would take too long under a lock. */
TEST(survey_measures_no_filter_of_very_many_layers)
{
    struct rig *rig = rig_new();
    struct survey survey = { 0 };

    run_text(rig, "BF.RESERVE k 0.01 1 EXPANSION 1", false);
    for (unsigned i = 0; i < 200; i++) {
        run(rig, "BF.ADD k %u", i);
    }
    step(rig, &survey);
    assert_int_equal(1, survey.biggest.count);
    assert_true(survey.biggest.filter[0].layers > 100);
    assert_true(survey.biggest.filter[0].rate < 0);
    rig_free(rig);
}
