/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sends a server only the items that it does not have. It fetches the filter
 * once, checks each line of standard input locally, at some ten nanoseconds an
 * item, and adds the new ones on the server. A false positive of the filter is
 * one of the server too, so the result is the same as with BF.MADD of all
 * lines.
 *
 *   cc -O2 send-new.c $(pkg-config --cflags --libs libbloomery hiredis) \
 *       -o send-new && ./send-new 127.0.0.1 7379 KEY < items
 */
#include <bloomery/bloom.h>

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct item {
    const char *text;
    size_t len;
};

struct items {
    struct item *at;
    size_t count;
};

static void
fail(const char *what, const char *why)
{
    fprintf(stderr, "send-new: %s: %s\n", what, why);
    exit(1);
}

/* Enlarges an array to SIZE bytes. */
static void *
enlarge(void *array, size_t size)
{
    array = realloc(array, size);
    if (array == NULL) {
        fail("the items", "out of memory");
    }
    return array;
}

/* Reads standard input to its end; it stays in memory until the program ends.
 */
static struct item
read_input(void)
{
    size_t len = 0, room = 1 << 20, got;
    char *text = enlarge(NULL, room);

    while ((got = fread(text + len, 1, room - len, stdin)) > 0) {
        len += got;
        if (len == room) {
            room *= 2;
            text = enlarge(text, room);
        }
    }
    return (struct item){ text, len };
}

static struct items
split_lines(struct item text)
{
    const char *end = text.text + text.len;
    struct items items = { NULL, 0 };
    size_t room = 0;

    for (const char *line = text.text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));

        if (items.count == room) {
            room = room > 0 ? 2 * room : 1024;
            items.at = enlarge(items.at, room * sizeof(*items.at));
        }
        stop = stop != NULL ? stop : end;
        items.at[items.count++] = (struct item){ line, (size_t)(stop - line) };
        line = stop + 1;
    }
    return items;
}

static redisReply *
check_reply(redisContext *server, void *got)
{
    redisReply *reply = got;

    if (reply == NULL) {
        fail("the server", server->errstr);
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        fail("the server", reply->str);
    }
    return reply;
}

static struct bloom *
fetch(redisContext *server, const char *key)
{
    redisReply *reply =
        check_reply(server, redisCommand(server, "DUMP %s", key));
    struct bloom *filter;
    enum bloom_status status;

    if (reply->type != REDIS_REPLY_STRING) {
        fail(key, "there is no such filter");
    }
    status = bloom_load(reply->str, reply->len, NULL, &filter);
    if (status != BLOOM_OK) {
        fail(key, bloom_status_text(status));
    }
    freeReplyObject(reply);
    return filter;
}

/* Moves the items that the filter does not have to the front, in order. Returns
 * how many they are. */
static size_t
keep_new(const struct bloom *filter, struct items *items)
{
    struct bloom_hash hashes[BLOOM_BATCH_MAX];
    bool found[BLOOM_BATCH_MAX];
    size_t kept = 0;

    for (size_t from = 0, count; from < items->count; from += count) {
        count = items->count - from < BLOOM_BATCH_MAX ? items->count - from
                                                      : BLOOM_BATCH_MAX;
        for (size_t i = 0; i < count; i++) {
            const struct item *item = &items->at[from + i];

            hashes[i] = bloom_hash(filter, item->text, item->len);
        }
        bloom_prefetch_batch(filter, hashes, count);
        bloom_contains_batch(filter, hashes, count, found);
        for (size_t i = 0; i < count; i++) {
            items->at[kept] = items->at[from + i];
            kept += !found[i];
        }
    }
    return kept;
}

/* Adds the items on the server, 1000 commands at a time in a pipeline. */
static void
send_items(redisContext *server, const char *key, const struct items *items)
{
    for (size_t from = 0, to; from < items->count; from = to) {
        to = from + 1000 < items->count ? from + 1000 : items->count;
        for (size_t i = from; i < to; i++) {
            redisAppendCommand(server, "BF.ADD %s %b", key, items->at[i].text,
                               items->at[i].len);
        }
        for (size_t i = from; i < to; i++) {
            void *reply = NULL;

            redisGetReply(server, &reply);
            freeReplyObject(check_reply(server, reply));
        }
    }
}

static double
cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int
main(int argc, char **argv)
{
    struct bloom *filter;
    struct items items;
    redisContext *server;
    double start, seconds;
    size_t all;

    if (argc != 4) {
        fprintf(stderr, "usage: send-new HOST PORT KEY < items\n");
        return 2;
    }
    server = redisConnect(argv[1], atoi(argv[2]));
    if (server == NULL || server->err != 0) {
        fail(argv[1], server != NULL ? server->errstr : "out of memory");
    }
    bloom_select_cpu(false);
    filter = fetch(server, argv[3]);
    items = split_lines(read_input());
    all = items.count;
    start = cpu_seconds();
    items.count = keep_new(filter, &items);
    seconds = cpu_seconds() - start;
    printf("%zu items checked, %.1f million a second\n", all,
           (double)all / seconds / 1e6);
    send_items(server, argv[3], &items);
    printf("%zu new items sent\n", items.count);
    bloom_free(filter, NULL);
    redisFree(server);
    free(items.at);
    return 0;
}
