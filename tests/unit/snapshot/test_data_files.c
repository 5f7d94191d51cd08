/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The list of files: names find their rows.
 */
#include "snapshot/data_files.h"

#include "../test.h"

#include <stdlib.h>

TEST(data_files_finds_the_row_of_a_name)
{
    static const struct {
        const char *name;
        enum file_id id;
    } names[] = {
        { "lock", FILE_LOCK },
        { "locks", FILE_ID_COUNT },
        { "hash-secret", FILE_SECRET },
        { "hash-secret.tmp", FILE_TEMPORARY },
        { "hash-secret.stale-1", FILE_JOURNAL_ASIDE },
        { "users.acl", FILE_USERS },
        { ".acl", FILE_ID_COUNT },
        { "heal-0f-12.log", FILE_HEAL },
        { "heal-.log", FILE_ID_COUNT },
        { "heal-0f-12.log.damaged", FILE_HEAL_DAMAGED },
        { "heal-0f-12.log.tmp", FILE_TEMPORARY },
        { "quarantine-0f-12-refused.resp", FILE_QUARANTINE },
        { "replication.state.damaged", FILE_ROLE_DAMAGED },
        { "journal", FILE_ID_COUNT },
        { "dbfilename", FILE_ID_COUNT },
        { "aclfile", FILE_ID_COUNT },
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(names[i].id, data_files_find(names[i].name));
    }
}

/* What a restore, salvage or truncate-to takes along is in each backup. */
TEST(data_files_backs_up_what_is_used_later)
{
    for (unsigned id = 0; id < FILE_ID_COUNT; id++) {
        const struct data_file *file = &data_files[id];

        assert_true(file->name[0] != '\0' && file->text[0] != '\0');
        if (file->restore != DEED_LEAVE || file->salvage != DEED_LEAVE ||
            file->cut != DEED_LEAVE) {
            assert_true(file->backup != DEED_LEAVE);
        }
    }
}

TEST(data_files_prints_a_line_for_each)
{
    char *text = NULL;
    size_t len = 0;
    size_t lines = 0;
    FILE *to = open_memstream(&text, &len);

    assert_non_null(to);
    data_files_print(to);
    assert_int_equal(0, fclose(to));
    for (size_t i = 0; i < len; i++) {
        lines += text[i] == '\n';
    }
    assert_int_equal(FILE_ID_COUNT + 2, lines);
    free(text);
}
