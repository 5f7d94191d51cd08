/* SPDX-License-Identifier: BSD-3-Clause */
#include "access/peer_names.h"

#include "../test.h"
#include "access/table.h"
#include "command/rows.h"

static const char *const names[] = {
#define PEER_NAME(name) name,
#include "tbl/peer_names.def"
#undef PEER_NAME
};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

TEST(each_name_is_found_in_any_case_and_no_other_is)
{
    for (size_t i = 0; i < NAMES; i++) {
        char text[64];
        size_t len = strlen(names[i]);

        assert_true(len < sizeof(text) - 1);
        assert_true(i == 0 || strcmp(names[i - 1], names[i]) < 0);
        for (size_t at = 0; at <= len; at++) {
            text[at] = at % 2 == 0 && names[i][at] >= 'a' && names[i][at] <= 'z'
                           ? (char)(names[i][at] - 32)
                           : names[i][at];
        }
        assert_true(peer_names_have((struct slice){ text, len }));
        text[len] = '!';
        assert_false(peer_names_have((struct slice){ text, len + 1 }));
    }
    assert_false(peer_names_have(slice_lit("")));
    assert_false(peer_names_have(slice_lit("sett")));
    assert_false(peer_names_have(slice_lit("se")));
}

TEST(only_commands_without_subcommands_take_a_first_argument)
{
    assert_true(peer_names_have(slice_lit("set|k")));
    assert_true(peer_names_have(slice_lit("zscore|k")));
    assert_true(peer_names_have(slice_lit("xgroup|create")));
    assert_false(peer_names_have(slice_lit("xgroup|make")));
    assert_false(peer_names_have(slice_lit("set|")));
    assert_false(peer_names_have(slice_lit("set|a b")));
    assert_false(peer_names_have(slice_lit("set|a\nuser")));
    assert_false(peer_names_have(slice_lit("set|a|b")));
    assert_false(peer_names_have(slice_lit("nobody|x")));
}

/* What the server has is no name of a peer: its rights are real. */
TEST(no_row_of_the_server_is_among_them)
{
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        for (size_t i = 0; i < NAMES; i++) {
            assert_false(
                slice_is_word(slice_of(command_rows[id].name), names[i]));
        }
    }
}
