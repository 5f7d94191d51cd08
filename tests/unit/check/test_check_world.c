/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A log is executed as a start does, on a service without threads and files.
 */
#include "check/check_world.h"

#include "../engine/rig.h"

/* Executes the effects of commands, each of a batch of its own. */
static bool
execute(struct check_world *world, const char *commands, char why[512])
{
    struct rig *rig = rig_new();
    bool good;

    run_text(rig, commands, false);
    effects_take(rig);
    good = check_world_execute(world, buf_slice(&rig->effects.raw), why, 512);
    rig_free(rig);
    return good;
}

static bool
has(struct check_world *world, const char *name, uint32_t db, const char *item)
{
    struct key key = key_named(slice_of(name), db);
    const struct entry *entry =
        keyspace_find(check_world_keyspace(world), &key, 0);

    return entry != NULL &&
           bloom_contains(&entry->bloom,
                          bloom_hash(&entry->bloom, item, strlen(item)));
}

TEST(the_effects_of_a_log_make_its_filters)
{
    struct check_world *world = check_world_new();
    char why[512] = "";

    assert_true(execute(world,
                        "BF.ADD a x; BF.RESERVE b 0.01 100 DELETABLE; "
                        "BF.MADD b y z; BF.DEL b y; SELECT 9; BF.ADD a w",
                        why));
    assert_string_equal("", why);
    assert_true(has(world, "a", 0, "x"));
    assert_false(has(world, "b", 0, "y"));
    assert_true(has(world, "b", 0, "z"));
    assert_true(has(world, "a", 9, "w"));
    assert_false(has(world, "a", 9, "x"));
    check_world_free(world);
}

TEST(a_command_that_fails_is_named_and_those_before_it_hold)
{
    static const struct {
        const char *commands;
        const char *why;
    } rows[] = {
        { "*3\r\n$6\r\nBF.ADD\r\n$4\r\nnone\r\n$1\r\nx\r\n", "BF.ADD failed" },
        { "*2\r\n$6\r\nSELECT\r\n$4\r\n1024\r\n", "select failed" },
        { "*1\r\n$6\r\nNONE.X\r\n", "" },
        { "*1\r\n$4\r\nPI", "" },
        { "garbage", "" },
    };
    struct check_world *world = check_world_new();
    char why[512] = "";

    assert_true(execute(world, "BF.ADD a x", why));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        why[0] = '\0';
        if (check_world_execute(world, slice_of(rows[i].commands), why,
                                sizeof(why))) {
            fail_msg("executed: %s", rows[i].commands);
        }
        if (why[0] == '\0' || strstr(why, rows[i].why) == NULL) {
            fail_msg("%s: the reason is [%s]", rows[i].commands, why);
        }
        assert_true(has(world, "a", 0, "x"));
    }
    check_world_free(world);
}

TEST(a_world_forgets_nothing_of_another_and_may_be_missing)
{
    struct check_world *one = check_world_new();
    struct check_world *two = check_world_new();
    char why[512] = "";

    assert_true(execute(one, "BF.ADD a x", why));
    assert_false(has(two, "a", 0, "x"));
    assert_int_equal(0, check_world_left_out(one));
    check_world_free(two);
    assert_true(has(one, "a", 0, "x"));
    check_world_free(one);
    check_world_free(NULL);
}
