/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Logs with gaps: an item is deleted only if its add is known. Each step is the
 * effects of some commands of one server; a gap leaves a step out.
 */
#include "check/check_gap.h"

#include "../capture.h"
#include "../engine/rig.h"

struct life {
    struct rig *rig; /* the server whose log it is */
    struct check_world *world;
    struct check_gap *gap;
};

static void
life_begin(struct life *life)
{
    life->rig = rig_new();
    life->world = check_world_new();
    life->gap = check_gap_new(life->world);
}

static void
life_end(struct life *life)
{
    check_gap_free(life->gap);
    check_world_free(life->world);
    rig_free(life->rig);
}

/* The server executes these; returns how many commands of its log failed here.
 */
static uint64_t
step(struct life *life, const char *commands)
{
    effects_clear(life->rig);
    run_text(life->rig, commands, false);
    effects_take(life->rig);
    return check_gap_execute(life->gap, buf_slice(&life->rig->effects.raw));
}

/* The log of these is lost. */
static void
lose(struct life *life, const char *commands)
{
    run_text(life->rig, commands, false);
    check_gap_open(life->gap);
}

static bool
has(struct life *life, const char *name, const char *item)
{
    struct key key = key_named(slice_of(name), 0);
    const struct entry *entry =
        keyspace_find(check_world_keyspace(life->world), &key, 0);

    return entry != NULL &&
           bloom_contains(&entry->bloom,
                          bloom_hash(&entry->bloom, item, strlen(item)));
}

static uint64_t
complain(struct life *life, const char *text)
{
    struct check check = { .tool = { .name = "test" } };
    struct capture output;
    uint64_t sum;

    capture_begin(&output, STDERR_FILENO);
    sum = check_gap_complain(life->gap, &check, "/log");
    assert_contains(capture_end(&output), text);
    assert_int_equal(sum > 0 ? CHECK_DAMAGED : 0, check.tool.status);
    return sum;
}

#define MAKE "BF.RESERVE d 0.01 1000 DELETABLE; "

TEST(without_a_gap_everything_is_executed)
{
    struct life life;

    life_begin(&life);
    assert_int_equal(0, step(&life, MAKE "BF.MADD d a b; BF.DEL d a"));
    assert_false(has(&life, "d", "a"));
    assert_true(has(&life, "d", "b"));
    assert_int_equal(0, complain(&life, ""));
    life_end(&life);
}

TEST(an_item_whose_add_is_lost_is_not_deleted)
{
    struct life life;

    life_begin(&life);
    assert_int_equal(0, step(&life, MAKE "BF.MADD d a b"));
    lose(&life, "BF.ADD d lost");
    assert_int_equal(0, step(&life, "BF.DEL d lost"));
    assert_true(has(&life, "d", "a") && has(&life, "d", "b"));
    assert_int_equal(0, complain(&life, ""));       /* it is not found here */
    assert_int_equal(0, step(&life, "BF.DEL d a")); /* its add is known */
    assert_false(has(&life, "d", "a"));
    assert_true(has(&life, "d", "b"));
    life_end(&life);
}

/* An item of the base, or of a part that a gap hides, is in the filter. */
TEST(a_deletion_of_an_item_that_is_there_but_not_known_is_counted)
{
    struct life life;
    char why[512];

    life_begin(&life);
    run_text(life.rig, MAKE "BF.ADD d old", false);
    effects_take(life.rig);
    assert_true(check_world_execute(
        life.world, buf_slice(&life.rig->effects.raw), why, sizeof(why)));
    lose(&life, "BF.ADD d lost");
    assert_int_equal(0, step(&life, "BF.DEL d old"));
    assert_true(has(&life, "d", "old"));
    assert_int_equal(1, complain(&life, "/log: database 0, filter \"d\": 1 "
                                        "deleted items may still be found"));
    life_end(&life);
}

TEST(a_filter_that_is_made_behind_the_gap_is_exact)
{
    struct life life;

    life_begin(&life);
    lose(&life, "BF.ADD other x");
    assert_int_equal(0, step(&life, MAKE "BF.MADD d a b; BF.DEL d a"));
    assert_false(has(&life, "d", "a"));
    assert_true(has(&life, "d", "b"));
    assert_int_equal(0, complain(&life, ""));
    life_end(&life);
}

/* Each command finds the filter full that a lost one has emptied. */
TEST(behind_a_gap_a_full_filter_takes_the_items_of_every_command)
{
    static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g" };
    struct life life;

    life_begin(&life);
    assert_int_equal(0, step(&life, "BF.RESERVE k 0.01 4 NONSCALING; BF.MADD k "
                                    "1 2 3 4"));
    lose(&life, "BF.RESET k");
    assert_int_equal(0,
                     step(&life, "BF.ADD k a; BF.MADD k b; BF.INSERT k ITEMS "
                                 "c; BF.ADD k d"));
    lose(&life, "BF.RESET k");
    assert_int_equal(0, step(&life, "BF.ADD k e; BF.ADD k f; BF.ADD k g"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_true(has(&life, "k", names[i]));
    }
    life_end(&life);
}

TEST(commands_to_lost_filters_fail_and_others_go_on)
{
    struct life life;

    life_begin(&life);
    lose(&life, "BF.ADD lost x");
    assert_int_equal(1, step(&life, "BF.ADD lost y; BF.ADD k z"));
    assert_false(has(&life, "lost", "y"));
    assert_true(has(&life, "k", "z"));
    assert_int_equal(1, check_gap_execute(life.gap, slice_lit("garbage")));
    life_end(&life);
}

TEST(behind_a_database_that_does_not_exist_nothing_is_executed)
{
    static const char commands[] = "*2\r\n$6\r\nSELECT\r\n$4\r\n9999\r\n"
                                   "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n";
    struct life life;

    life_begin(&life);
    assert_int_equal(0, step(&life, "BF.ADD k x"));
    check_gap_open(life.gap);
    assert_int_equal(2, check_gap_execute(life.gap, slice_of(commands)));
    assert_true(has(&life, "k", "x"));
    check_gap_free(NULL);
    life_end(&life);
}
