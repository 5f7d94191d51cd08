/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a row of the command table is in either dialect, and who does not care.
 */
#include "engine/dialect.h"

#include "rig.h"

#include <stdlib.h>

TEST(a_row_is_shown_with_what_differs)
{
    const struct command *command = &command_rows[CMD_ID_BF_INSERT];
    struct rig *rig = rig_new();
    struct command row = dialect_row(&rig->service, command);

    assert_ptr_equal(command->name, row.name);
    assert_int_equal(command->arity, row.arity);
    assert_int_equal(command->flags, row.flags);
    assert_ptr_equal(command->complexity, row.complexity);
    assert_ptr_equal(command->args, row.args);
    assert_string_equal("bloomfltr", dialect_type_name(&rig->service));
    set_option(rig, "dialect", "redis");
    row = dialect_row(&rig->service, command);
    assert_string_equal("bf.insert", row.name);
    assert_int_equal(-4, row.arity);
    assert_int_equal(0, row.flags & CMD_FAST);
    assert_ptr_equal(command->handler, row.handler);
    assert_int_equal(command->keys.first, row.keys.first);
    assert_string_equal("MBbloom--", dialect_type_name(&rig->service));
    rig_free(rig);
}

TEST(names_differ_in_case_alone_and_arities_are_no_smaller)
{
    struct rig *rig = rig_new();

    set_option(rig, "dialect", "redis");
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        const struct command *command = &command_rows[id];
        struct command row = dialect_row(&rig->service, command);
        const char *name = dialect_command_name(&rig->service, command);

        assert_true(slice_is_word(slice_of(row.name), command->name));
        assert_string_equal(row.name, name);
        assert_true(row.arity == command->arity ||
                    (command->arity < 0 && abs(row.arity) >= -command->arity));
        assert_int_equal(row.flags & (CMD_WRITE | CMD_READONLY | CMD_DENYOOM),
                         command->flags &
                             (CMD_WRITE | CMD_READONLY | CMD_DENYOOM));
        assert_true((command->redis != NULL) ==
                    (strncmp(command->name, "BF.", 3) == 0));
    }
    rig_free(rig);
}

TEST(replayed_commands_need_fewer_words)
{
    struct rig *rig = rig_new();

    set_option(rig, "dialect", "redis");
    assert_false(
        dialect_arity_fits(&rig->service, &command_rows[CMD_ID_BF_INSERT], 3));
    run_text(rig, "BF.INSERT k NONSCALING", true);
    assert_true(slice_equal(
        slice_lit("-ERR wrong number of arguments for 'bf.insert' command\r\n"),
        buf_slice(&rig->out)));
    rig->session.obey = true;
    run_text(rig, "BF.INSERT k INCARNATION 1", true);
    assert_int_equal('*', rig->out.data[0]);
    rig_free(rig);
}

/* Queued in one dialect, run in the other: no handler reads past its words. */
TEST(a_handler_copes_with_the_words_of_the_other_dialect)
{
    struct rig *rig = rig_new();

    run_text(rig, "MULTI; BF.INSERT k; BF.INSERT k CAPACITY", true);
    set_option(rig, "dialect", "redis");
    run_text(rig, "EXEC", true);
    assert_true(slice_equal(
        slice_lit(
            "*2\r\n-ERR wrong number of arguments for 'bf.insert' command\r\n"
            "-ERR wrong number of arguments for 'bf.insert' command\r\n"),
        buf_slice(&rig->out)));
    run_text(rig, "MULTI; BF.RESERVE k 0.1 5 EXPANSION 2 a", true);
    set_option(rig, "dialect", "valkey");
    run_text(rig, "EXEC", true);
    assert_true(slice_equal(
        slice_lit("*1\r\n-ERR wrong number of arguments for 'BF.RESERVE' "
                  "command\r\n"),
        buf_slice(&rig->out)));
    rig_free(rig);
}
