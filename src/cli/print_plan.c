/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The words are those of BF.PLAN, whose handler runs here without a server.
 */
#include "cli/print_plan.h"

#include "base/mem.h"
#include "command/rows.h"
#include "engine/dispatch.h"
#include "engine/execute.h"
#include "engine/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHO "bloomery-server: --plan: "

/* ---- the reply of BF.PLAN ------------------------------------------------ */

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

/* Says what is wrong with the words of BF.PLAN, of which words[0] is "--plan".
 * `text` is the server's error; it does not name the argument. */
static void
print_mistake(enum err err, const char *text, const struct slice *words)
{
    switch (err) {
    case ERR_BF_RATE:
    case ERR_BF_RATE_RANGE:
        (void)fprintf(stderr,
                      WHO "the first word is the error rate, above 0 and below "
                          "1, not \"%.*s\"\n",
                      (int)words[1].len, words[1].data);
        break;
    case ERR_BF_CAPACITY:
    case ERR_BF_CAPACITY_RANGE:
        (void)fprintf(stderr,
                      WHO "the second word is the capacity, a whole number "
                          "above 0, not \"%.*s\"\n",
                      (int)words[2].len, words[2].data);
        break;
    default:
        /* valkey-bloom's error for an unknown word has no text. */
        (void)fprintf(stderr, WHO "%s\n",
                      text[0] != '\0'
                          ? text
                          : "the words after the capacity are EXPANSION n or "
                            "NONSCALING, DELETABLE [r] or AGEING s "
                            "[GENERATIONS g], and HASH plain or keyed");
        break;
    }
}

/* Executes BF.PLAN. False: the error is on stderr. */
static bool
execute_plan(struct conf *conf, const struct slice *words, size_t count,
             struct buf *out)
{
    const struct command *command = &command_rows[CMD_ID_BF_PLAN];
    struct service service = { .conf = conf,
                               .threads = 1,
                               .dialect = conf->dialect };
    struct reply reply = { out, 2 };
    struct worker *worker;
    char text[ERROR_TEXT_MAX];
    enum err err;

    if (!command_arity_fits(command, count)) {
        (void)fputs(WHO "takes an error rate and a capacity, as in "
                        "--plan 0.01 1000000\n",
                    stderr);
        return false;
    }
    service.stats = stats_new(1, CMD_ID_COUNT);
    worker = dispatch_new_worker(&service, 0);
    worker->in_exec =
        true; /* in one piece: there is no session to go on with */
    *worker->request = (struct request){ .command = command,
                                         .worker = worker,
                                         .service = &service,
                                         .argv = words,
                                         .argc = count,
                                         .reply = &reply };
    err = command->handler(worker->request);
    if (err != OK) {
        execute_error_text(worker, err, text, sizeof(text));
        print_mistake(err, text, words);
    }
    dispatch_free_worker(worker);
    stats_free(service.stats);
    return err == OK;
}

bool
print_plan(struct conf *conf, int argc, char **argv)
{
    struct slice *words = mem_zalloc((size_t)argc * sizeof(*words));
    struct buf out = { 0 };
    bool good;

    for (int i = 0; i < argc; i++) {
        words[i] = slice_of(argv[i]);
    }
    good = execute_plan(conf, words, (size_t)argc, &out);
    if (good) {
        struct slice got = buf_slice(&out);

        print_map(&got, false);
    }
    buf_free(&out);
    mem_free(words);
    return good;
}
