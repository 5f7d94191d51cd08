/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The man page has a section for each group, and an item with the syntax for
 * each command. Subcommands follow their container; HELP is left out, since
 * each container has the same text. The Markdown page has only names and
 * summaries, and lists subcommands in the row of their container.
 */
#include "cli/print_man.h"

#include "access/table.h"
#include "command/help.h"
#include "command/rows.h"
#include "conf/mdoc.h"

#include <ctype.h>

/* In the order of the page. */
static const struct {
    const char *name, *title;
} groups[] = {
    { "bloom", "Filters" },         { "generic", "Keys" },
    { "string", "Strings" },        { "transactions", "Transactions" },
    { "pubsub", "Messages" },       { "connection", "Connections" },
    { "server", "Administration" }, { "cluster", "Cluster" },
};

static bool
is_help(const struct command *command)
{
    const char *sub = strchr(command->name, '|');

    return sub != NULL && strcmp(sub, "|help") == 0;
}

/* Prints "CLIENT ID" for "client|id". */
static void
print_name(FILE *to, const struct command *command)
{
    for (const char *at = command->name; *at != '\0'; at++) {
        (void)fputc(*at == '|' ? ' ' : toupper((unsigned char)*at), to);
    }
}

/* Tells whether a command is a subcommand of this one. */
static bool
contains(const struct command *container, const struct command *command)
{
    size_t len = strlen(container->name);

    return strncmp(command->name, container->name, len) == 0 &&
           command->name[len] == '|';
}

/* Prints the syntax in quotes, so that mdoc takes no word for a macro. */
static void
print_syntax(FILE *to, const struct command_arg *args)
{
    struct buf text = { 0 };

    help_append_syntax(&text, args);
    buf_append(&text, "", 1);
    CHECK(!text.failed);
    if (text.len > 1) {
        (void)fputs(" No \"", to);
        mdoc_print_words(to, text.data);
        (void)fputc('"', to);
    }
    (void)fputc('\n', to);
    buf_free(&text);
}

static void
print_categories(FILE *to, uint32_t acl)
{
    const char *between = "Categories: ";

    for (unsigned bit = 0; command_category_name(bit) != NULL; bit++) {
        if ((acl >> bit & 1) != 0) {
            (void)fprintf(to, "%s@%s", between, command_category_name(bit));
            between = ", ";
        }
    }
    (void)fputs(".\n", to);
}

static void
print_command(FILE *to, const struct command *command)
{
    const struct command *redis = command->redis;

    (void)fputs(".It Ic \"", to);
    print_name(to, command);
    (void)fputc('"', to);
    print_syntax(to, command->args);
    mdoc_print_text(to, command->summary);
    if (redis != NULL && redis->args != NULL) {
        (void)fputs(".br\nIn dialect redis:\n.Ic \"", to);
        print_name(to, command);
        (void)fputc('"', to);
        print_syntax(to, redis->args);
    }
    if (command->complexity != NULL) {
        (void)fputs(".br\nComplexity: ", to);
        mdoc_print_text(to, command->complexity);
        (void)fputs(".\n", to);
    }
    (void)fputs(".br\n", to);
    print_categories(to, command->acl);
}

void
print_man_commands(FILE *to)
{
    size_t printed = 0;

    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        (void)fprintf(to, ".Ss %s\n.Bl -tag -width Ds\n", groups[i].title);
        for (unsigned id = 0; id < CMD_ID_LISTED; id++) {
            const struct command *command = &command_rows[id];

            if (strcmp(command->group, groups[i].name) != 0) {
                continue;
            }
            printed++;
            if (!is_help(command)) {
                print_command(to, command);
            }
        }
        (void)fputs(".El\n", to);
    }
    CHECK(printed == CMD_ID_LISTED);
}

/* ---- Markdown ------------------------------------------------------------ */

/* Prints ": `ID`, `LIST`" for the container `client`, and nothing for a command
 * without subcommands. */
static void
print_subcommands(FILE *to, const struct command *container)
{
    const char *between = ":";
    size_t skipped = strlen(container->name) + 1;

    for (unsigned id = 0; id < CMD_ID_LISTED; id++) {
        const struct command *command = &command_rows[id];

        if (contains(container, command) && !is_help(command)) {
            (void)fprintf(to, "%s `", between);
            for (const char *at = command->name + skipped; *at != '\0'; at++) {
                (void)fputc(toupper((unsigned char)*at), to);
            }
            (void)fputc('`', to);
            between = ",";
        }
    }
}

static void
print_row(FILE *to, const struct command *command)
{
    size_t len = strlen(command->summary);

    CHECK(len > 0 && command->summary[len - 1] == '.');
    (void)fputs("| `", to);
    print_name(to, command);
    (void)fprintf(to, "` | %.*s", (int)len - 1, command->summary);
    print_subcommands(to, command);
    (void)fputs(". |\n", to);
}

void
print_page_commands(FILE *to)
{
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        (void)fprintf(to, "\n### %s\n\n| command | what it does |\n|---|---|\n",
                      groups[i].title);
        for (unsigned id = 0; id < CMD_ID_LISTED; id++) {
            const struct command *command = &command_rows[id];

            if (strcmp(command->group, groups[i].name) == 0 &&
                strchr(command->name, '|') == NULL) {
                print_row(to, command);
            }
        }
    }
    (void)fputc('\n', to);
}
