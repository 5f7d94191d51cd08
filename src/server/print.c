/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One line for each row of a table. "options" is conf/bloomery.conf; "man" is
 * the option list of bloomery.conf(5).
 */
#include "server/print.h"

#include "base/metrics.h"
#include "command/rows.h"
#include "conf/conf_print.h"
#include "engine/table.h"

#include <stdio.h>
#include <string.h>

static void
print_commands(FILE *to)
{
    for (unsigned i = 0; i < CMD_ID_COUNT; i++) {
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

bool
print_reference(const char *what)
{
    static const struct {
        const char *name;
        void (*print)(FILE *to);
    } documents[] = {
        { "commands", print_commands }, { "options", conf_print_file },
        { "metrics", print_metrics },   { "errors", print_errors },
        { "man", conf_print_man },
    };

    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        if (strcmp(what, documents[i].name) == 0) {
            documents[i].print(stdout);
            return true;
        }
    }
    return false;
}
