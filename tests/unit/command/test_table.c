/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every row of the command table against the rules that dispatch, COMMAND and
 * the documentation rely on, and the ways to find a row.
 */
#include "command/table.h"

#include "../test.h"
#include "command/request.h"

#include <ctype.h>

#define each_row(row)                                                          \
    (const struct command *row = command_table;                                \
     row < command_table + CMD_ID_COUNT; row++)

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

TEST(names_are_different_in_any_case)
{
    for
        each_row(a)
        {
            for (const struct command *b = command_table; b < a; b++) {
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

TEST(each_row_is_found_in_any_case)
{
    command_table_init();
    command_table_init(); /* once more changes nothing */
    for
        each_row(row)
        {
            char name[64];
            size_t len = strlen(row->name);

            assert_true(len < sizeof(name));
            for (int round = 0; round < 3; round++) {
                for (size_t i = 0; i < len; i++) {
                    char c = row->name[i];

                    name[i] = round == 0                     ? c
                              : (round == 1) == (i % 2 == 1) ? (char)tolower(c)
                                                             : (char)toupper(c);
                }
                if (is_sub(row)) {
                    assert_null(command_find((struct slice){ name, len }));
                } else {
                    assert_ptr_equal(row,
                                     command_find((struct slice){ name, len }));
                }
            }
        }
}

TEST(what_is_no_command_is_not_found)
{
    static const char *const words[] = { "",          "BF.AD",     "BF.ADDD",
                                         "client|id", " ping",     "ping ",
                                         "p\x09ng",   "BF\016ADD", "set" };

    command_table_init();
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (command_find(slice_of(words[i])) != NULL) {
            fail_msg("[%s]", words[i]);
        }
    }
    assert_null(command_find(slice_lit("ping\0")));
    assert_null(command_find((struct slice){ NULL, 0 }));
}

TEST(random_names_are_found_only_if_they_are_one)
{
    uint64_t x = test_seed() | 1;

    command_table_init();
    for (int i = 0; i < 200000; i++) {
        char name[8];
        size_t len;
        const struct command *found;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        len = x % 8;
        for (size_t k = 0; k < len; k++) {
            name[k] = "acdeiklmnoprtsxy"[x >> (8 + 4 * k) & 15];
        }
        found = command_find((struct slice){ name, len });
        assert_true(found == NULL ||
                    slice_is_word((struct slice){ name, len }, found->name));
    }
}

TEST(a_container_s_subcommand_is_resolved)
{
    const struct slice id[] = { slice_lit("CLIENT"), slice_lit("Id") };
    const struct slice none[] = { slice_lit("client"), slice_lit("nope") };
    const struct slice empty[] = { slice_lit("client"), slice_lit("") };
    const struct slice ping[] = { slice_lit("ping"), slice_lit("id") };
    const struct slice unknown[] = { slice_lit("nope"), slice_lit("id") };
    unsigned words = 0;

    command_table_init();
    assert_ptr_equal(&command_table[CMD_ID_CLIENT_ID],
                     command_resolve(id, 2, &words));
    assert_int_equal(2, words);
    assert_ptr_equal(&command_table[CMD_ID_CLIENT],
                     command_resolve(id, 1, &words));
    assert_int_equal(1, words);
    assert_null(command_resolve(none, 2, &words));
    assert_int_equal(2, words);
    assert_null(command_resolve(empty, 2, &words));
    assert_ptr_equal(&command_table[CMD_ID_PING],
                     command_resolve(ping, 2, &words));
    assert_int_equal(1, words);
    assert_null(command_resolve(unknown, 2, &words));
    assert_int_equal(1, words);
}

/* A subcommand of one container is none of the next one. */
TEST(subcommands_belong_to_their_container)
{
    command_table_init();
    assert_non_null(command_find_sub(&command_table[CMD_ID_CONFIG],
                                     slice_lit("resetstat")));
    assert_null(command_find_sub(&command_table[CMD_ID_CLIENT],
                                 slice_lit("resetstat")));
    assert_null(command_find_sub(&command_table[CMD_ID_PING], slice_lit("id")));
}

TEST(arity_is_exact_or_at_least)
{
    const struct command *add = &command_table[CMD_ID_BF_ADD];
    const struct command *del = &command_table[CMD_ID_DEL];

    assert_false(command_arity_fits(add, 2));
    assert_true(command_arity_fits(add, 3));
    assert_false(command_arity_fits(add, 4));
    assert_false(command_arity_fits(del, 1));
    assert_true(command_arity_fits(del, 2));
    assert_true(command_arity_fits(del, 200));
}

static void
note_position(void *ctx, size_t position)
{
    uint64_t *seen = ctx;

    assert_true(position < 64);
    assert_int_equal(0, *seen >> position); /* upwards, each once */
    *seen |= (uint64_t)1 << position;
}

static uint64_t
positions(enum command_id id, size_t argc)
{
    uint64_t seen = 0;

    command_each_key(&command_table[id], argc, note_position, &seen);
    return seen;
}

TEST(keys_are_where_the_row_says)
{
    assert_int_equal(0, positions(CMD_ID_PING, 2));
    assert_int_equal(1 << 1, positions(CMD_ID_BF_ADD, 3));
    assert_int_equal(1 << 1, positions(CMD_ID_BF_MADD, 6));
    assert_int_equal(1 << 1, positions(CMD_ID_DEL, 2));
    assert_int_equal(1 << 1 | 1 << 2 | 1 << 3, positions(CMD_ID_DEL, 4));
    assert_int_equal(1 << 2, positions(CMD_ID_MEMORY_USAGE, 3));
}

/* For each row and each argument count that fits, all positions exist. */
TEST(key_positions_lie_within_the_arguments)
{
    for
        each_row(row)
        {
            size_t least = (size_t)(row->arity < 0 ? -row->arity : row->arity);

            for (size_t argc = least; argc < least + 5 && argc < 64; argc++) {
                uint64_t seen = 0;

                if (command_arity_fits(row, argc)) {
                    command_each_key(row, argc, note_position, &seen);
                    assert_int_equal(0, seen >> argc);
                    assert_int_equal(row->keys.first > 0 &&
                                         (size_t)row->keys.first < argc,
                                     seen != 0);
                }
            }
        }
}
