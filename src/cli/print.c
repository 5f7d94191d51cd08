/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints tables row by row. Some of the output is stored in files:
 *
 *   options       conf/bloomery.conf
 *   man           the options in bloomery.conf(5)
 *   commands-man  the commands in bloomery-commands(7)
 *   commands-md   the commands in packaging/doc/commands.md
 *   files-md      the files in packaging/doc/operating.md
 */
#include "cli/print.h"

#include "access/table.h"
#include "base/err.h"
#include "base/metrics.h"
#include "cli/print_man.h"
#include "command/rows.h"
#include "conf/conf.h"
#include "conf/conf_print.h"
#include "snapshot/data_files.h"

#include <stdio.h>
#include <string.h>

static void print_words(FILE *to);
static void print_commands(FILE *to);
static void print_metrics(FILE *to);
static void print_errors(FILE *to);

static const struct {
    const char *name;
    void (*print)(FILE *to);
} documents[] = {
    { "commands", print_commands },
    { "options", conf_print_file },
    { "metrics", print_metrics },
    { "errors", print_errors },
    { "man", conf_print_man },
    { "commands-man", print_man_commands },
    { "commands-md", print_page_commands },
    { "files-md", data_files_print },
    { "words", print_words },
};

static void
print_commands(FILE *to)
{
    for (unsigned i = 0; i < CMD_ID_LISTED; i++) {
        const struct command *command = &command_rows[i];

        (void)fprintf(to, "%-20s arity %-3d since %-7s %s\n", command->name,
                      command->arity, command->since, command->summary);
    }
}

static void
print_metrics(FILE *to)
{
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        (void)fprintf(to, "%-42s %-8s %s\n", metric_table[i].name,
                      metric_table[i].kind == METRIC_COUNTER ? "counter"
                                                             : "gauge",
                      metric_table[i].text);
    }
}

static void
print_errors(FILE *to)
{
    for (int i = OK + 1; i < ERR_COUNT; i++) {
        if (i != ERR_AGAIN) {
            (void)fprintf(to, "%s%s%s\n", err_prefix((enum err)i),
                          err_prefix((enum err)i)[0] != '\0' ? " " : "",
                          err_text((enum err)i));
        }
    }
}

/* Prints what may stand on a command line, for the completion of shells: a line
 * for each option, with its values if they are words. */
static void
print_words(FILE *to)
{
    static const char *const actions[] = {
        "--help",         "--version",    "--check-config",       "--ping",
        "--ping=alive",   "--ping=ready", "--ping=complete",      "--plan",
        "--ping-timeout", "--ping-user",  "--ping-password-file", "--convert",
    };

    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        (void)fprintf(to, "%s\n", actions[i]);
    }
    (void)fputs("--print", to);
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        (void)fprintf(to, " %s", documents[i].name);
    }
    (void)fputc('\n', to);
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];

        (void)fprintf(to, "--%s%s", row->name,
                      row->type == CONF_BOOL ? " yes no" : "");
        for (const struct conf_choice *choice = row->choices;
             row->type == CONF_ENUM && choice->name != NULL; choice++) {
            (void)fprintf(to, " %s", choice->name);
        }
        (void)fputc('\n', to);
    }
}

bool
print_reference(const char *what)
{
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        if (strcmp(what, documents[i].name) == 0) {
            documents[i].print(stdout);
            return true;
        }
    }
    return false;
}
