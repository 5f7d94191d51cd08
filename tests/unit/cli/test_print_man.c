/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of commands as a manual page and as Markdown: each command once,
 * the help of containers nowhere.
 */
#include "cli/print_man.h"

#include "../test.h"
#include "access/table.h"
#include "base/mem.h"
#include "command/rows.h"

#include <stdlib.h>

static char *
text_of(void (*print)(FILE *to))
{
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    assert_non_null(file);
    print(file);
    assert_int_equal(0, fclose(file));
    return text;
}

static unsigned
count(const char *text, const char *part)
{
    unsigned found = 0;

    for (; (text = strstr(text, part)) != NULL; text += strlen(part)) {
        found++;
    }
    return found;
}

/* Writes "CLIENT ID" for "client|id". */
static void
name_of(const struct command *command, char ret_name[64])
{
    size_t i = 0;

    for (; command->name[i] != '\0' && i < 63; i++) {
        char c = command->name[i];

        ret_name[i] = (char)(c == '|'               ? ' '
                             : c >= 'a' && c <= 'z' ? c - 'a' + 'A'
                                                    : c);
    }
    ret_name[i] = '\0';
}

TEST(a_manual_page_has_each_command_once_and_no_help)
{
    char *text = text_of(print_man_commands);
    char name[64];
    char item[96];

    for (unsigned id = 0; id < CMD_ID_LISTED; id++) {
        bool help = strstr(command_rows[id].name, "|help") != NULL;

        name_of(&command_rows[id], name);
        (void)snprintf(item, sizeof(item), "\n.It Ic \"%s\"", name);
        if (count(text, item) != (help ? 0 : 1)) {
            fail_msg("%s stands there %u times", name, count(text, item));
        }
    }
    assert_int_equal(count(text, "\n.Bl "), count(text, "\n.El\n"));
    assert_int_equal(0, count(text, "Categories: .\n"));
    free(text);
}

TEST(markdown_has_containers_with_their_subcommands)
{
    char *text = text_of(print_page_commands);
    char name[64];
    char row[96];

    for (unsigned id = 0; id < CMD_ID_LISTED; id++) {
        bool sub = strchr(command_rows[id].name, '|') != NULL;

        name_of(&command_rows[id], name);
        (void)snprintf(row, sizeof(row), "\n| `%s` | ", name);
        if (count(text, row) != (sub ? 0 : 1)) {
            fail_msg("%s stands there %u times", name, count(text, row));
        }
        if (sub && strstr(command_rows[id].name, "|help") == NULL) {
            (void)snprintf(row, sizeof(row), " `%s`", strchr(name, ' ') + 1);
            assert_true(count(text, row) > 0);
        }
    }
    assert_int_equal(0, count(text, "`HELP`"));
    assert_int_equal(0, count(text, ".."));
    free(text);
}
