/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ways to find a row of the command table.
 */
#include "access/table.h"

#include "../test.h"
#include "command/rows.h"
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
TEST(each_row_is_found_in_any_case)
{
    command_table_init(command_rows);
    command_table_init(command_rows); /* once more changes nothing */
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

TEST(a_name_of_no_command_is_not_found)
{
    static const char *const words[] = { "",          "BF.AD",     "BF.ADDD",
                                         "client|id", " ping",     "ping ",
                                         "p\x09ng",   "BF\016ADD", "set" };

    command_table_init(command_rows);
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

    command_table_init(command_rows);
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

    command_table_init(command_rows);
    assert_ptr_equal(&command_rows[CMD_ID_CLIENT_ID],
                     command_resolve(id, 2, &words));
    assert_int_equal(2, words);
    assert_ptr_equal(&command_rows[CMD_ID_CLIENT],
                     command_resolve(id, 1, &words));
    assert_int_equal(1, words);
    assert_null(command_resolve(none, 2, &words));
    assert_int_equal(2, words);
    assert_null(command_resolve(empty, 2, &words));
    assert_ptr_equal(&command_rows[CMD_ID_PING],
                     command_resolve(ping, 2, &words));
    assert_int_equal(1, words);
    assert_null(command_resolve(unknown, 2, &words));
    assert_int_equal(1, words);
}

/* A subcommand of one container is none of the next one. */
TEST(subcommands_belong_to_their_container)
{
    command_table_init(command_rows);
    assert_non_null(
        command_find_sub(&command_rows[CMD_ID_CONFIG], slice_lit("resetstat")));
    assert_null(
        command_find_sub(&command_rows[CMD_ID_CLIENT], slice_lit("resetstat")));
    assert_null(command_find_sub(&command_rows[CMD_ID_PING], slice_lit("id")));
}

TEST(arity_is_exact_or_at_least)
{
    const struct command *add = &command_rows[CMD_ID_BF_ADD];
    const struct command *del = &command_rows[CMD_ID_DEL];

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

    command_each_key(&command_rows[id], argc, note_position, &seen);
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

TEST(a_forbidden_container_includes_its_subcommands)
{
    command_table_init(command_rows);
    assert_false(command_any_forbidden());
    assert_true(command_forbid(slice_lit("Config")));
    assert_true(command_forbid(slice_lit("get")));
    assert_false(command_forbid(slice_lit("nope")));
    assert_true(command_any_forbidden());
    assert_true(command_is_forbidden(CMD_ID_CONFIG));
    assert_true(command_is_forbidden(CMD_ID_CONFIG_SET));
    assert_true(command_is_forbidden(CMD_ID_GET));
    assert_false(command_is_forbidden(CMD_ID_CLIENT));
    assert_false(command_is_forbidden(CMD_ID_COPY));
    command_table_init(command_rows);
    assert_false(command_any_forbidden());
}
