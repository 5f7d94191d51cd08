/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every row of the command table against the rules that dispatch, COMMAND and
 * the documentation rely on.
 */
#include "command/rows.h"

#include "../test.h"
#include "engine/request.h"

#include <ctype.h>

#define each_row(row)                                                          \
    (const struct command *row = command_rows;                                 \
     row < command_rows + CMD_ID_COUNT; row++)

static bool
is_sub(const struct command *row)
{
    return strchr(row->name, '|') != NULL;
}

TEST(each_row_says_what_everybody_needs_to_know)
{
    for
        each_row(row)
        {
            if (row->name == NULL || row->handler == NULL || row->arity == 0 ||
                row->group == NULL || row->since == NULL ||
                row->complexity == NULL || row->summary == NULL ||
                row->acl == 0) {
                fail_msg("row %u, %s, misses a field", command_id(row),
                         row->name != NULL ? row->name : "without a name");
            }
            assert_int_equal('.', row->summary[strlen(row->summary) - 1]);
        }
}

TEST(each_write_has_a_kind_for_those_who_read_a_log)
{
    for
        each_row(row)
        {
            bool writes = (row->flags & CMD_WRITE) != 0;
            bool is_mark = row->logged == LOGGED_SELECT ||
                           row->logged == LOGGED_MARK ||
                           row->logged == LOGGED_HISTORY;

            assert_int_equal(writes || is_mark, row->logged != LOGGED_NEVER);
            assert_false(writes && is_mark);
        }
}

TEST(names_are_different_in_any_case)
{
    for
        each_row(a)
        {
            for (const struct command *b = command_rows; b < a; b++) {
                assert_false(slice_is_word(slice_of(a->name), b->name));
            }
        }
}

/* BF.* are a module's commands and printed in upper case, all others in
 * lower. */
TEST(names_are_printed_as_their_origin_prints_them)
{
    for
        each_row(row)
        {
            bool bloom = strncmp(row->name, "BF.", 3) == 0;

            assert_int_equal(bloom, (row->flags & CMD_MODULE) != 0);
            assert_int_equal(bloom, (row->acl & ACL_BLOOM) != 0);
            for (const char *at = row->name; *at != '\0'; at++) {
                assert_false(bloom ? islower((unsigned char)*at)
                                   : isupper((unsigned char)*at));
            }
        }
}

TEST(locks_fit_keys_and_flags)
{
    for
        each_row(row)
        {
            bool has_keys = row->keys.first > 0 && row->key_use != KEY_NOT;
            bool write = (row->flags & CMD_WRITE) != 0;
            bool readonly = (row->flags & CMD_READONLY) != 0;

            if (has_keys != (row->lock == LOCK_KEYS) || (write && readonly) ||
                (row->lock == LOCK_KEYS && row->key_use == 0) ||
                (write && row->lock != LOCK_KEYS && row->lock != LOCK_WORLD)) {
                fail_msg("%s", row->name);
            }
            assert_int_equal(write, (row->acl & ACL_WRITE) != 0);
            if (has_keys) {
                size_t least =
                    (size_t)(row->arity < 0 ? -row->arity : row->arity);

                assert_true(row->keys.step >= 1);
                assert_true(least > (size_t)row->keys.first);
                assert_true(row->keys.last < 0 ||
                            row->keys.last >= row->keys.first);
            }
        }
}

/* Dispatch takes these apart by itself in runs: name, key, item. */
TEST(rows_that_run_many_at_once_are_one_item_commands)
{
    unsigned count = 0;

    for
        each_row(row)
        {
            if (row->many != NULL) {
                count++;
                assert_int_equal(3, row->arity);
                assert_int_equal(1, row->keys.first);
                assert_int_equal(1, row->keys.last);
                assert_int_equal(LOCK_KEYS, row->lock);
                assert_int_equal(0, row->flags & (CMD_NO_MULTI | CMD_NO_AUTH));
            }
            if (row->known != NULL) { /* under the shared lock */
                assert_non_null(row->many);
                assert_true((row->flags & CMD_WRITE) != 0);
            }
        }
    assert_int_equal(2, count);
}

TEST(subcommands_stand_directly_behind_their_container)
{
    const struct command *container = NULL;

    for
        each_row(row)
        {
            if (!is_sub(row)) {
                container = row->container ? row : NULL;
                continue;
            }
            if (container == NULL ||
                strncmp(row->name, container->name, strlen(container->name)) !=
                    0 ||
                row->name[strlen(container->name)] != '|' || row->container) {
                fail_msg("%s", row->name);
            }
            /* The subcommand's word counts. */
            assert_true(row->arity >= 2 || row->arity <= -2);
        }
}
