/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which words of a command nobody else may see.
 */
#include "access/redact.h"
#include "command/rows.h"

#include "../test.h"

enum { WORDS_MAX = 16 };

/* Each word that is redacted is shown as *. */
static void
expect(const char *line, const char *shown)
{
    struct slice argv[WORDS_MAX];
    const struct command *command;
    size_t argc = 0, at = 0;
    unsigned words;
    char text[256];

    while (*line != '\0') {
        argv[argc] = (struct slice){ line, strcspn(line, " ") };
        line += argv[argc].len;
        line += *line == ' ';
        argc++;
        assert_true(argc < WORDS_MAX);
    }
    command_table_init(command_rows);
    command = command_resolve(argv, argc, &words);
    assert_non_null(command);
    for (size_t i = 0; i < argc; i++) {
        struct slice word = redact_word(command, argv, argc, i);

        if (slice_equal(word, slice_lit("(redacted)"))) {
            assert_true(redact_wants(command));
            word = slice_lit("*");
        } else {
            assert_ptr_equal(word.data, argv[i].data);
        }
        assert_true(at + word.len + 2 < sizeof(text));
        at += i > 0;
        memcpy(text + at, word.data, word.len);
        at += word.len;
        text[at] = ' ';
    }
    text[at] = '\0';
    assert_string_equal(text, shown);
}

TEST(passwords_are_redacted_and_nothing_else)
{
    expect("AUTH secret", "AUTH *");
    expect("auth user secret", "auth * *");
    expect("AUTH a b c d", "AUTH * * * *");
    expect("CONFIG SET masterauth secret masteruser me",
           "CONFIG SET masterauth * masteruser me");
    expect("HELLO", "HELLO");
    expect("HELLO 3", "HELLO 3");
    expect("HELLO 3 SETNAME me", "HELLO 3 SETNAME me");
    expect("HELLO 3 AUTH me secret", "HELLO 3 AUTH * *");
    expect("HELLO 3 AUTH me secret SETNAME x", "HELLO 3 AUTH * * SETNAME x");
    expect("HELLO 3 SETNAME AUTH auth me secret",
           "HELLO 3 SETNAME AUTH auth * *");
    expect("HELLO 3 AUTH setname secret", "HELLO 3 AUTH * *");
    expect("HELLO 3 AUTH auth AUTH", "HELLO 3 AUTH * *");
    expect("HELLO 3 AUTH auth secret SETNAME me",
           "HELLO 3 AUTH * * SETNAME me");
    expect("HELLO 3 AUTH me", "HELLO 3 AUTH *");
    expect("HELLO AUTH me secret", "HELLO AUTH * *");
    expect("HELLO 3 AUHT me secret", "HELLO 3 * * *");
    expect("HELLO 3 SETNAME me AUTHme secret", "HELLO 3 SETNAME me * *");
    expect("HELLO 3 AUTH me secret more", "HELLO 3 AUTH * * *");
    expect("CONFIG SET requirepass secret", "CONFIG SET requirepass *");
    expect("config set maxmemory 1 REQUIREPASS secret port 2",
           "config set maxmemory 1 REQUIREPASS * port 2");
    expect("CONFIG SET maxmemory requirepass",
           "CONFIG SET maxmemory requirepass");
    expect("CONFIG SET nope requirepass secret", "CONFIG SET nope * *");
    expect("CONFIG SET requirepas secret maxmemory 1",
           "CONFIG SET requirepas * maxmemory 1");
    expect("CONFIG SET maxmemory requirepass secret",
           "CONFIG SET maxmemory * *");
    expect("CONFIG GET requirepass secret", "CONFIG GET requirepass secret");
    expect("BF.ADD AUTH secret", "BF.ADD AUTH secret");
}

TEST(passwords_are_redacted_behind_a_command_that_carries_another)
{
    expect("COMMAND GETKEYS AUTH secret", "COMMAND GETKEYS AUTH *");
    expect("command getkeysandflags auth me secret",
           "command getkeysandflags auth * *");
    expect("COMMAND GETKEYS CONFIG SET requirepass secret maxmemory 1",
           "COMMAND GETKEYS CONFIG SET requirepass * maxmemory 1");
    expect("ACL DRYRUN default HELLO 3 AUTH me secret SETNAME x",
           "ACL DRYRUN default HELLO 3 AUTH * * SETNAME x");
    expect("ACL DRYRUN default AUTH secret", "ACL DRYRUN default AUTH *");
    expect("ACL DRYRUN default BF.ADD AUTH x",
           "ACL DRYRUN default BF.ADD AUTH x");
    expect("COMMAND GETKEYS ACL DRYRUN default AUTH secret",
           "COMMAND GETKEYS ACL DRYRUN default AUTH *");
    expect("ACL DRYRUN u ACL DRYRUN u ACL DRYRUN u ACL DRYRUN u AUTH x",
           "ACL DRYRUN u ACL DRYRUN u ACL DRYRUN u ACL DRYRUN u AUTH *");
    expect("COMMAND GETKEYS AUHT secret", "COMMAND GETKEYS AUHT *");
    expect("COMMAND GETKEYS CONFIG STE requirepass secret",
           "COMMAND GETKEYS CONFIG * * *");
    expect("COMMAND GETKEYS CONFIG", "COMMAND GETKEYS CONFIG");
    expect("COMMAND GETKEYS BF.ADD k x", "COMMAND GETKEYS BF.ADD k x");
}
