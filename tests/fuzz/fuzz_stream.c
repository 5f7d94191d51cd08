/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Differential: the same input must give the same commands and the same error
 * whole (the scanner takes what it can), byte by byte (hiredis and the inline
 * parser alone: no command is ever complete in one byte), and in random
 * pieces (all of them in turn). The first byte of the input picks the limits,
 * '0' to '3'. Each piece lies in an allocation of its own size, so that a
 * sanitizer sees every byte read too far.
 */
#include "base/buf.h"
#include "base/mem.h"
#include "proto/stream.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>

static const struct parse_limits limits_by_choice[4] = {
    { 1024 * 1024, 512 * 1024 * 1024, 64 * 1024 * 1024, false },
    { 10, 16384, 1024 * 1024, true },
    { 4, 16, 1024 * 1024, false },
    { 1024, 4096, 100, false },
};

enum cut { CUT_NOWHERE, CUT_EVERYWHERE, CUT_RANDOMLY };

struct outcome {
    struct buf log; /* of all commands: count, then length and bytes of each */
    enum stream_result last;
    struct parse_error error;
};

struct player {
    const struct parse_limits *limits;
    struct stream_pool *pool;
    struct stream stream;
    struct batch batch;
    enum cut cut;
    uint64_t random;
    struct outcome outcome;
};

/* splitmix64 */
static uint64_t
next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static size_t
pick_below(uint64_t *state, size_t bound)
{
    return (size_t)(next_random(state) % bound);
}

/* ---- playing --------------------------------------------------------------
 */

static void
log_commands(struct player *player, size_t used)
{
    struct buf *log = &player->outcome.log;
    size_t behind = 0;

    CHECK(player->batch.count > 0);
    for (uint32_t i = 0; i < player->batch.count; i++) {
        const struct batch_command *command = &player->batch.command[i];

        CHECK(command->argc > 0);
        CHECK(command->begin >= behind);
        behind = command->begin;
        buf_append(log, &command->argc, sizeof(command->argc));
        for (uint32_t k = 0; k < command->argc; k++) {
            struct slice arg = player->batch.argv[command->first + k];

            buf_append(log, &arg.len, sizeof(arg.len));
            buf_append_slice(log, arg);
        }
    }
    CHECK(behind <= used);
    CHECK(!log->failed);
}

/* A command that was not executed yet is given again, and takes nothing. */
static void
ask_again(struct player *player, const char *data, size_t len)
{
    struct batch again = { 0 };
    struct parse_error error = { .err = OK };
    size_t used = 1;

    if (player->stream.partial == NULL) {
        return;
    }
    CHECK(stream_parse(&player->stream, player->pool, player->limits, data, len,
                       &again, &used, &error) == STREAM_COMMANDS);
    CHECK(used == 0 && again.count == 1 && player->batch.count == 1);
    CHECK(again.command[0].argc == player->batch.command[0].argc);
    for (size_t i = 0; i < again.argv_count; i++) {
        CHECK(slice_equal(again.argv[i], player->batch.argv[i]));
    }
    batch_fini(&again);
}

/* One read: all of the piece is parsed. */
static void
play_piece(struct player *player, const char *piece, size_t len)
{
    size_t at = 0;

    do {
        size_t used = 0;

        player->outcome.last = stream_parse(
            &player->stream, player->pool, player->limits, piece + at, len - at,
            &player->batch, &used, &player->outcome.error);
        if (player->outcome.last == STREAM_ERROR) {
            CHECK(player->outcome.error.err != OK);
            return;
        }
        CHECK(used <= len - at);
        if (player->outcome.last == STREAM_COMMANDS) {
            log_commands(player, used);
            ask_again(player, piece + at + used, len - at - used);
            stream_done(&player->stream, player->pool);
        } else {
            CHECK(used == len - at && player->batch.count == 0);
            CHECK(stream_kept_bytes(&player->stream) <=
                  128 + 3 * player->limits->query_max);
            CHECK(stream_memory_bytes(&player->stream) >=
                  stream_kept_bytes(&player->stream));
        }
        at += used;
    } while (at < len);
}

static size_t
piece_len(struct player *player, size_t left)
{
    size_t len = left;

    if (player->cut == CUT_EVERYWHERE) {
        len = 1;
    } else if (player->cut == CUT_RANDOMLY) {
        len = 1 + pick_below(&player->random,
                             pick_below(&player->random, 8) == 0 ? 40000 : 40);
    }
    return len < left ? len : left;
}

static void
play(struct player *player, const char *data, size_t len)
{
    size_t at = 0;

    player->pool = stream_pool_new();
    player->outcome.last = STREAM_MORE;
    while (at < len && player->outcome.last != STREAM_ERROR) {
        size_t piece = piece_len(player, len - at);
        char *copy = mem_alloc(piece);

        memcpy(copy, data + at, piece);
        play_piece(player, copy, piece);
        mem_free(copy);
        at += piece;
    }
    /* Whether the last piece ended in a command is how it was cut. */
    if (player->outcome.last == STREAM_COMMANDS) {
        player->outcome.last = STREAM_MORE;
    }
    stream_fini(&player->stream, player->pool);
    stream_pool_free(player->pool);
    batch_fini(&player->batch);
}

static void
check_same(const struct outcome *a, const struct outcome *b)
{
    CHECK(a->log.len == b->log.len);
    CHECK(a->log.len == 0 || memcmp(a->log.data, b->log.data, a->log.len) == 0);
    CHECK(a->last == b->last);
    CHECK(a->error.err == b->error.err);
    CHECK(strcmp(a->error.detail, b->error.detail) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct player players[3];

    if (size == 0) {
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        players[i] = (struct player){
            .limits = &limits_by_choice[data[0] & 3],
            .cut = (enum cut)i,
            .random = size,
        };
        play(&players[i], (const char *)data + 1, size - 1);
        check_same(&players[0].outcome, &players[i].outcome);
    }
    for (int i = 0; i < 3; i++) {
        buf_free(&players[i].outcome.log);
    }
    return 0;
}

/* ---- a grammar, for runs without libFuzzer --------------------------------
 */

struct writer {
    uint8_t *data;
    size_t len, max;
    uint64_t random;
};

static size_t
roll(struct writer *writer, size_t bound)
{
    return pick_below(&writer->random, bound);
}

static void
put(struct writer *writer, const char *text, size_t len)
{
    if (len <= writer->max - writer->len) {
        memcpy(writer->data + writer->len, text, len);
        writer->len += len;
    }
}

static void
put_text(struct writer *writer, const char *text)
{
    put(writer, text, strlen(text));
}

static void
put_run(struct writer *writer, const char *alphabet, size_t alphabet_len,
        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(writer, alphabet + roll(writer, alphabet_len), 1);
    }
}

static size_t
roll_len(struct writer *writer)
{
    switch (roll(writer, 40)) {
    case 0:
        return roll(writer, 5000);
    case 1:
        return 16370 + roll(writer, 30);
    case 2:
    case 3:
        return 90 + roll(writer, 30);
    default:
        return roll(writer, 20);
    }
}

static void
put_command(struct writer *writer)
{
    static const char bytes[] = "ab\r\n*$1 \xff\0";
    size_t argc = 1 + roll(writer, roll(writer, 20) == 0 ? 300 : 5);
    char text[32];

    (void)snprintf(text, sizeof(text), "*%zu\r\n", argc);
    put_text(writer, text);
    for (size_t i = 0; i < argc; i++) {
        size_t len = roll_len(writer);

        (void)snprintf(text, sizeof(text), "$%zu\r\n", len);
        put_text(writer, text);
        put_run(writer, bytes, sizeof(bytes) - 1, len);
        put_text(writer, roll(writer, 30) == 0 ? "xy" : "\r\n");
    }
}

static void
put_inline(struct writer *writer)
{
    static const char bytes[] = "ab \"'\\x41nrtq\t\v\r\0";

    put_run(writer, bytes, sizeof(bytes) - 1,
            roll(writer, 50) == 0 ? 60000 + roll(writer, 10000)
                                  : roll(writer, 30));
    put_text(writer, roll(writer, 2) == 0 ? "\n" : "\r\n");
}

static void
put_odd(struct writer *writer)
{
    static const char *const odd[] = {
        "*0\r\n",
        "*-1\r\n",
        "*-5\r\n",
        "*-0\r\n",
        "*01\r\n",
        "*+1\r\n",
        "*\r\n",
        "*1 \r\n",
        "*1\n",
        "*1\r",
        "*2147483647\r\n",
        "*2147483648\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$01\r\na\r\n",
        "*1\r\n:5\r\n",
        "*1\r\n+a\r\n",
        "*1\r\n*1\r\n",
        "*1\r\n\r\n",
        "*1\r\n\x01\r\n",
        "*1\r\n_\r\n",
        "*1\r\n$\r\n",
        "*1\r\n$5x\r\n",
        "*1\r\n$16385\r\n",
        "*1\r\n$9223372036854775807\r\n",
        "*1\r\n$99999999999999999999\r\n",
        "*11\r\n",
        "\r\n",
        "\n",
        " \n",
    };

    put_text(writer, odd[roll(writer, sizeof(odd) / sizeof(odd[0]))]);
}

/* A length line of many digits, around the sizes where its treatment turns. */
static void
put_long_line(struct writer *writer)
{
    static const size_t lens[] = { 20,   29,    30,    31,    32,    33,   34,
                                   2050, 65534, 65535, 65536, 65537, 70000 };

    put_text(writer, roll(writer, 2) == 0 ? "*" : "*1\r\n$");
    put_run(writer, "1", 1, lens[roll(writer, sizeof(lens) / sizeof(lens[0]))]);
    put_text(writer, roll(writer, 4) == 0 ? "\r" : "\r\n");
}

static void
mutate(struct writer *writer)
{
    size_t at = 1 + roll(writer, writer->len);

    if (at >= writer->len) {
        return;
    }
    switch (roll(writer, 3)) {
    case 0:
        writer->data[at] = (uint8_t)roll(writer, 256);
        break;
    case 1:
        writer->len = at;
        break;
    default:
        memmove(writer->data + at, writer->data + at + 1, writer->len - at - 1);
        writer->len--;
        break;
    }
}

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    struct writer writer = { to, 0, max, seed };
    size_t items = 1 + roll(&writer, 12);

    put_run(&writer, "0001123", 7, 1); /* the limits */
    for (size_t i = 0; i < items; i++) {
        switch (roll(&writer, 24)) {
        case 0:
        case 1:
            put_odd(&writer);
            break;
        case 2:
        case 3:
            put_inline(&writer);
            break;
        case 4:
            put_long_line(&writer);
            break;
        default:
            put_command(&writer);
            break;
        }
    }
    if (roll(&writer, 3) == 0) {
        mutate(&writer);
    }
    return writer.len;
}
