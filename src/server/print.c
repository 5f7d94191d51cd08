/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One line for each row of a table. "options" is conf/bloomery.conf; "man" is
 * the option list of bloomery.conf(5), and "commands-man" that of
 * bloomery-commands(7).
 */
#include "server/print.h"

#include "access/table.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "command/rows.h"
#include "conf/conf_print.h"
#include "engine/dispatch.h"
#include "engine/execute.h"
#include "engine/request.h"
#include "server/print_man.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_words(FILE *to);
static void print_commands(FILE *to);
static void print_metrics(FILE *to);
static void print_errors(FILE *to);

static const struct {
    const char *name;
    void (*print)(FILE *to);
} documents[] = {
    { "commands", print_commands }, { "options", conf_print_file },
    { "metrics", print_metrics },   { "errors", print_errors },
    { "man", conf_print_man },      { "commands-man", print_man_commands },
    { "words", print_words },
};

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

/* Takes the next word, number or header of a reply in RESP2 off its front. For
 * a header, *ret_count is the number of its values. */
static struct slice
take_value(struct slice *reply, long *ret_count)
{
    const char *end = memchr(reply->data, '\r', reply->len);
    char type = reply->data[0];
    struct slice value = { reply->data + 1, (size_t)(end - reply->data) - 1 };
    size_t taken = value.len + 3;

    *ret_count = type == ':' ? 0 : strtol(value.data, NULL, 10);
    if (type == '$') {
        value = (struct slice){ end + 2, (size_t)*ret_count };
        taken += value.len + 2;
    }
    reply->data += taken;
    reply->len -= taken;
    return value;
}

/* Prints the map that begins a reply, a line for each value; a value may be a
 * list of maps, which are indented. */
static void
print_map(struct slice *reply, bool indented)
{
    long words;

    (void)take_value(reply, &words);
    for (long i = 0; i < words; i += 2) {
        long count;
        struct slice name = take_value(reply, &count);
        bool is_list = reply->data[0] == '*';
        struct slice value;

        (void)printf("%s%.*s:",
                     !indented ? ""
                     : i == 0  ? "  - "
                               : "    ",
                     (int)name.len, name.data);
        value = take_value(reply, &count);
        if (!is_list) {
            (void)printf(" %.*s\n", (int)value.len, value.data);
            continue;
        }
        (void)putchar('\n');
        for (; count > 0; count--) {
            print_map(reply, true);
        }
    }
}

bool
print_plan(struct conf *conf, int argc, char **argv)
{
    const struct command *command = &command_rows[CMD_ID_BF_PLAN];
    struct slice *words = mem_zalloc((size_t)argc * sizeof(*words));
    struct service service = { .conf = conf,
                               .threads = 1,
                               .dialect = conf->dialect };
    struct worker *worker;
    struct buf out = { 0 };
    struct reply reply = { &out, 2 };
    char text[ERROR_TEXT_MAX];
    enum err err;

    for (int i = 0; i < argc; i++) {
        words[i] = slice_of(argv[i]);
    }
    service.stats = stats_new(1, CMD_ID_COUNT);
    worker = dispatch_new_worker(&service, 0);
    *worker->request = (struct request){ .command = command,
                                         .worker = worker,
                                         .service = &service,
                                         .argv = words,
                                         .argc = (size_t)argc,
                                         .reply = &reply };
    err = command_arity_fits(command, (size_t)argc)
              ? command->handler(worker->request)
              : request_arity_error(worker->request);
    if (err == OK) {
        struct slice got = buf_slice(&out);

        print_map(&got, false);
    } else {
        execute_error_text(worker, err, text, sizeof(text));
        /* valkey-bloom's error for an unknown word has no text. */
        (void)fprintf(stderr, "bloomery-server: --plan: %s\n",
                      text[0] != '\0' ? text
                                      : "unknown word after the capacity");
    }
    dispatch_free_worker(worker);
    stats_free(service.stats);
    buf_free(&out);
    mem_free(words);
    return err == OK;
}

/* Prints what may stand on a command line, for the completion of shells: a line
 * for each option, with its values if they are words. */
static void
print_words(FILE *to)
{
    static const char *const actions[] = {
        "--help",         "--version",    "--check-config",
        "--ping",         "--ping=alive", "--plan",
        "--ping-timeout", "--ping-user",  "--ping-password-file",
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
