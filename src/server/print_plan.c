/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The words before a word that begins with -- are those of BF.PLAN, whose
 * handler runs here without a server; the others are about servers
 * (cluster/capacity.h).
 */
#include "server/print_plan.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/slot_set.h"
#include "cluster/capacity.h"
#include "command/rows.h"
#include "engine/dispatch.h"
#include "engine/execute.h"
#include "engine/request.h"

#include <inttypes.h>
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

/* Returns the number with this name of the map that a reply begins with. */
static uint64_t
number_of(struct slice reply, const char *name)
{
    long words, count;

    (void)take_value(&reply, &words);
    for (long i = 0; i < words; i += 2) {
        bool found = slice_equal(take_value(&reply, &count), slice_of(name));
        struct slice value = take_value(&reply, &count);

        if (found) {
            return strtoull(value.data, NULL, 10);
        }
    }
    CHECK(false);
    return 0;
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
execute(struct conf *conf, const struct slice *words, size_t count,
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

/* ---- servers ------------------------------------------------------------- */

struct word {
    const char *name;
    uint64_t *value;
    uint64_t least, most;
    bool bytes; /* with a unit */
};

/* Sets what a word names. `text` is NULL if nothing follows the word. */
static bool
set(const struct word *word, const char *text)
{
    struct slice value = slice_of(text != NULL ? text : "");
    uint64_t number;

    if (!(word->bytes ? num_parse_bytes(value, &number)
                      : slice_to_u64(value, &number)) ||
        number < word->least || number > word->most) {
        (void)fprintf(stderr,
                      WHO "%s takes %s from %" PRIu64 " to %" PRIu64 ", not "
                          "\"%s\"\n",
                      word->name, word->bytes ? "bytes a second" : "a number",
                      word->least, word->most, text != NULL ? text : "");
        return false;
    }
    *word->value = number;
    return true;
}

/* Reads --name VALUE and --name=VALUE from argv on, to the end. */
static bool
read_words(struct capacity_wish *wish, int argc, char **argv)
{
    const struct word words[] = {
        { "--filters", &wish->filters, 1, UINT64_C(1000000000000), false },
        { "--primaries", &wish->primaries, 1, CAPACITY_PRIMARIES_MAX, false },
        { "--replicas", &wish->replicas, 0, 100, false },
        { "--move", &wish->move_slots, 1, CLUSTER_SLOTS, false },
        { "--sync-rate", &wish->sync_rate, 1, UINT64_C(1) << 50, true },
        { "--move-rate", &wish->move_rate, 1, UINT64_C(1) << 50, true },
    };
    enum { WORDS = sizeof(words) / sizeof(words[0]) };

    for (int i = 0; i < argc; i++) {
        size_t name_len = strcspn(argv[i], "=");
        size_t at = 0;

        while (at < WORDS &&
               (strlen(words[at].name) != name_len ||
                strncmp(words[at].name, argv[i], name_len) != 0)) {
            at++;
        }
        if (at == WORDS) {
            (void)fprintf(stderr,
                          WHO "\"%s\" is none of --filters, --primaries, "
                              "--replicas, --move, --sync-rate, --move-rate; "
                              "they come last\n",
                          argv[i]);
            return false;
        }
        if (!set(&words[at], argv[i][name_len] == '=' ? argv[i] + name_len + 1
                                                      : argv[++i])) {
            return false;
        }
    }
    return true;
}

static void
print_number(const char *name, uint64_t value)
{
    (void)printf("    %s: %" PRIu64 "\n", name, value);
}

static void
print_seconds(const char *name, double seconds)
{
    (void)printf("    %s: %.*f\n", name, seconds < 10 ? 2 : 0, seconds);
}

static void
print_servers(const struct capacity_wish *wish, const struct capacity *got)
{
    (void)puts("servers:");
    print_number("filters", wish->filters);
    print_number("primaries", wish->primaries);
    print_number("replicas-of-each", wish->replicas);
    print_number("servers", got->servers);
    print_number("all-filters-bytes", got->all_bytes);
    print_number("largest-primary-filters", got->most_filters);
    print_number("largest-primary-bytes", got->most_bytes);
    print_number("memory-of-a-server", got->server_bytes);
    print_number("memory-to-sync-beside-it", got->syncing_bytes);
    print_number("sync-bytes", got->most_bytes);
    print_seconds("sync-seconds", got->sync_seconds);
    print_number("sync-megabits-a-second", wish->sync_rate / 125000);
    if (wish->primaries > 1 || wish->move_slots > 0) {
        print_number("move-slots", got->move_slots);
        print_number("move-bytes", got->move_bytes);
        print_seconds("move-seconds", got->move_seconds);
    }
    (void)puts("assumed:");
    print_number("key-bytes", CAPACITY_KEY_BYTES);
    print_number("sync-rate", wish->sync_rate);
    print_number("move-rate", wish->move_rate);
}

/* Computes what the servers need for filters of this size. */
static bool
plan_servers(const struct conf *conf, struct capacity_wish *wish,
             uint64_t filter_bytes, struct capacity *ret_capacity)
{
    wish->filter_bytes = filter_bytes;
    wish->beside_bytes =
        (uint64_t)conf->save_buffer_limit + (uint64_t)conf->repl_backlog_size;
    if (wish->primaries * (1 + wish->replicas) > CAPACITY_SERVERS_MAX) {
        (void)fprintf(stderr, WHO "a cluster has at most %d servers\n",
                      CAPACITY_SERVERS_MAX);
        return false;
    }
    if (!capacity_compute(wish, ret_capacity)) {
        (void)fputs(WHO "so many filters take more than 2^62 bytes\n", stderr);
        return false;
    }
    return true;
}

bool
print_plan(struct conf *conf, int argc, char **argv)
{
    struct slice *words = mem_zalloc((size_t)argc * sizeof(*words));
    struct capacity_wish wish = { .filters = 1,
                                  .primaries = 1,
                                  .sync_rate = CAPACITY_SYNC_RATE,
                                  .move_rate = CAPACITY_MOVE_RATE };
    struct capacity capacity;
    struct buf out = { 0 };
    size_t count = 0;
    bool good;

    while (count < (size_t)argc &&
           (count == 0 || strncmp(argv[count], "--", 2) != 0)) {
        words[count] = slice_of(argv[count]);
        count++;
    }
    good = read_words(&wish, argc - (int)count, argv + count) &&
           execute(conf, words, count, &out) &&
           (count == (size_t)argc ||
            plan_servers(conf, &wish, number_of(buf_slice(&out), "bytes"),
                         &capacity));
    if (good) {
        struct slice got = buf_slice(&out);

        print_map(&got, false);
        if (count < (size_t)argc) {
            print_servers(&wish, &capacity);
        }
    }
    buf_free(&out);
    mem_free(words);
    return good;
}
