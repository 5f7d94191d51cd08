/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The names of a merge's files: which of them are taken for what.
 */
#include "heal/merge_names.h"

#include "../home.h"
#include "base/file.h"

#include <fcntl.h>

#define HISTORY "0123456789abcdef0123456789abcdef01234567"

TEST(names_say_the_history_and_the_position)
{
    char name[MERGE_NAME_MAX];

    merge_names_heal(HISTORY, UINT64_MAX, name);
    assert_string_equal("heal-" HISTORY "-18446744073709551615.log", name);
    assert_true(merge_names_is_heal(name));
    assert_false(merge_names_is_unfinished(name));
    merge_names_quarantine(HISTORY, 7, name);
    assert_string_equal("quarantine-" HISTORY "-7.resp", name);
    assert_false(merge_names_is_heal(name));
}

TEST(refusals_are_named_after_their_heal_file)
{
    char heal[MERGE_NAME_MAX], refused[MERGE_NAME_MAX];

    merge_names_heal(HISTORY, 12, heal);
    merge_names_refused(heal, refused);
    assert_string_equal("quarantine-" HISTORY "-12-refused.resp", refused);
}

TEST(other_files_are_neither_complete_nor_unfinished)
{
    static const char *const others[] = {
        "heal-", "heal-x",     "x-heal.log",           "heal-x.log.damaged",
        ".log",  "heal-x.tmp", "appendonly-heal-x.log"
    };
    char longest[MERGE_NAME_MAX + 16] = "heal-";

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(merge_names_is_heal(others[i]));
        assert_false(merge_names_is_unfinished(others[i]));
    }
    assert_true(merge_names_is_unfinished("heal-x.log.tmp"));
    assert_false(merge_names_is_heal("heal-x.log.tmp"));
    /* A name that does not fit a buffer is none of ours. */
    memset(longest + 5, 'x', MERGE_NAME_MAX - 5);
    memcpy(longest + MERGE_NAME_MAX - 4, ".log", 5);
    assert_false(merge_names_is_heal(longest));
    memcpy(longest + MERGE_NAME_MAX - 5, ".log", 5);
    assert_true(merge_names_is_heal(longest));
}

static void
put(int dir_fd, const char *name, size_t bytes)
{
    static const char zeros[100];
    int fd = -1;

    assert_true(bytes <= sizeof(zeros));
    assert_int_equal(0, file_create(dir_fd, name, &fd));
    assert_int_equal(0, file_write(fd, zeros, bytes));
    file_close(fd);
}

TEST(the_quarantine_counts_all_its_files_but_one)
{
    char home[] = "/tmp/merge-names-XXXXXX";
    int dir_fd = -1;

    home_make(home);
    assert_int_equal(0, file_open_dir(home, false, &dir_fd));
    assert_int_equal(0, merge_names_quarantined(dir_fd, ""));
    put(dir_fd, "quarantine-a-1.resp", 10);
    put(dir_fd, "quarantine-a-1-refused.resp", 20);
    put(dir_fd, "heal-a-1.log", 40);
    put(dir_fd, "x-quarantine-a-1.resp", 80);
    assert_int_equal(30, merge_names_quarantined(dir_fd, ""));
    assert_int_equal(20,
                     merge_names_quarantined(dir_fd, "quarantine-a-1.resp"));
    assert_int_equal(40, merge_names_bytes(dir_fd, "heal-a-1.log"));
    assert_int_equal(0, merge_names_bytes(dir_fd, "heal-b-1.log"));
    file_close(dir_fd);
    home_remove(home);
}
