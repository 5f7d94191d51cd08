/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a replica hears of a primary, and a primary of a replica. Any split of
 * the bytes gives the same pieces. The input is played whole, byte by byte and
 * in random parts, each time as it is and with every line that looks like a
 * seal made one that holds. The first byte picks the phase and how large groups
 * may be. Whatever comes out as a group is read again by the scanner of the
 * server.
 */
#include "base/buf.h"
#include "base/mem.h"
#include "journal/group.h"
#include "proto/scan.h"
#include "repl/wire_stream.h"
#include "target.h"

#include <inttypes.h>
#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { BYTEWISE_MAX = 4096, ITEM_MAX = 3000, REASON_MAX = 200 };

#define COMMAND "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"

/* ---- what came ----------------------------------------------------------- */

struct heard {
    struct buf log;
    bool in_chunk;
};

static void
check_line(struct slice line)
{
    struct wire_hello hello;
    struct wire_answer answer;
    char reason[REASON_MAX];
    struct buf again = { 0 };

    CHECK(line.len + 2 <= WIRE_LINE_MAX);
    for (size_t i = 0; i < line.len; i++) {
        CHECK((unsigned char)line.data[i] >= ' ' && line.data[i] != 0x7f);
    }
    if (wire_parse_hello(line, &hello, reason, sizeof(reason))) {
        wire_write_hello(&again, &hello);
        CHECK(again.len == line.len + 2);
        CHECK(memcmp(again.data, line.data, line.len) == 0);
        again.len = 0;
    }
    if (wire_parse_answer(line, &answer, reason, sizeof(reason)) &&
        answer.kind != WIRE_ERROR) {
        wire_write_answer(&again, &answer);
        CHECK(again.len == line.len + 2);
        CHECK(memcmp(again.data, line.data, line.len) == 0);
    }
    buf_free(&again);
}

/* Canonical commands from one end to the other. */
static void
check_group(const struct wire_piece *piece, size_t group_max)
{
    static const struct parse_limits limits = { .args_max = 1 << 20,
                                                .bulk_max = 1 << 20,
                                                .query_max = 1 << 20 };
    struct batch batch = { 0 };
    struct group_seal seal;
    size_t at = 0;

    CHECK(piece->value.len <= group_max);
    CHECK(group_check(piece->value, piece->seal, FUZZ_KEY, &seal) == NULL);
    CHECK(seal.sequence == piece->sequence && seal.bytes == piece->value.len);
    while (at < piece->value.len) {
        size_t before = at;

        CHECK(scan_commands(piece->value, &limits, &batch, &at) == OK);
        CHECK(at > before);
        batch_clear(&batch);
    }
    batch_fini(&batch);
}

static void
hear(struct heard *heard, const struct wire_piece *piece)
{
    uint8_t kind = (uint8_t)piece->kind;

    if (piece->kind == WIRE_MORE) {
        return;
    }
    if (piece->kind != WIRE_CHUNK || !heard->in_chunk) {
        buf_append(&heard->log, &kind, 1);
    }
    heard->in_chunk = piece->kind == WIRE_CHUNK;
    if (piece->kind == WIRE_BAD) {
        buf_append_slice(&heard->log, slice_of(piece->reason));
    } else {
        buf_append_slice(&heard->log, piece->value);
    }
    CHECK(!heard->log.failed);
}

/* The other side: what a primary hears is commands, whose words may be an
 * acknowledgement. */
static void
check_acks(struct slice stream)
{
    static const struct parse_limits limits = { .args_max = 64,
                                                .bulk_max = 1 << 20,
                                                .query_max = 1 << 20 };
    struct batch batch = { 0 };
    size_t at = 0;
    size_t before;

    do {
        before = at;
        batch_clear(&batch);
        if (scan_commands(stream, &limits, &batch, &at) != OK) {
            break;
        }
        for (uint32_t i = 0; i < batch.count; i++) {
            const struct batch_command *command = &batch.command[i];
            const struct slice *argv = batch.argv + command->first;
            uint64_t position = 0, synced = 0;
            struct buf again = { 0 };

            if (!wire_parse_ack(argv, command->argc, &position, &synced)) {
                CHECK(position == 0 && synced == 0);
                continue;
            }
            CHECK(command->argc >= 3 && slice_is_word(argv[1], "ack"));
            wire_ack(&again, position, synced);
            CHECK(again.len > 0 && !again.failed);
            buf_free(&again);
        }
    } while (at > before);
    batch_fini(&batch);
}

enum cut { CUT_NOWHERE, CUT_EVERYWHERE, CUT_RANDOMLY };

/* Each time the reader sees an allocation of just what is there. */
static void
receive(struct wire_reader reader, struct slice stream, enum cut cut,
        struct heard *heard)
{
    uint64_t random = stream.len;
    size_t at = 0;
    size_t there = 0;

    for (;;) {
        size_t more = cut == CUT_NOWHERE      ? stream.len
                      : cut == CUT_EVERYWHERE ? 1
                                              : 1 + fuzz_next(&random) % 300;
        struct wire_piece piece;

        there = more < stream.len - there ? there + more : stream.len;
        do {
            size_t len = there - at;
            char *copy = mem_alloc(len);

            if (len > 0) {
                memcpy(copy, stream.data + at, len);
            }
            wire_read(&reader, (struct slice){ copy, len }, &piece);
            CHECK(piece.used <= len);
            CHECK((piece.used == 0) ==
                  (piece.kind == WIRE_MORE || piece.kind == WIRE_BAD));
            if (piece.kind == WIRE_LINE) {
                check_line(piece.value);
            } else if (piece.kind == WIRE_GROUP) {
                check_group(&piece, reader.group_max);
            }
            hear(heard, &piece);
            at += piece.used;
            mem_free(copy);
        } while (piece.kind != WIRE_MORE && piece.kind != WIRE_BAD);
        if (piece.kind == WIRE_BAD || there == stream.len) {
            break;
        }
    }
}

static void
play(struct wire_reader reader, struct slice stream)
{
    struct heard whole = { 0 };

    receive(reader, stream, CUT_NOWHERE, &whole);
    for (int cut = CUT_EVERYWHERE; cut <= CUT_RANDOMLY; cut++) {
        struct heard split = { 0 };

        if (cut == CUT_EVERYWHERE && stream.len > BYTEWISE_MAX) {
            continue;
        }
        receive(reader, stream, (enum cut)cut, &split);
        CHECK(split.log.len == whole.log.len);
        CHECK(whole.log.len == 0 ||
              memcmp(split.log.data, whole.log.data, whole.log.len) == 0);
        buf_free(&split.log);
    }
    buf_free(&whole.log);
}

/* ---- seals that hold ----------------------------------------------------- */

/* A group begins at each SELECT, so that seals hold behind lines, too. */
static void
seal_all(char *data, size_t len)
{
    size_t begin = 0;

    for (size_t at = 0; at < len; at++) {
        if (len - at >= 16 && memcmp(data + at, COMMAND, 16) == 0) {
            begin = at;
        } else if (at > begin && len - at >= GROUP_SEAL_BYTES &&
                   memcmp(data + at, "#XX:", 4) == 0 && data[at - 1] == '\n') {
            fuzz_seal(data, begin, at);
            at += GROUP_SEAL_BYTES - 1;
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_reader reader = { .key = FUZZ_KEY };
    struct slice stream;
    char *copy;

    if (size == 0) {
        return 0;
    }
    reader.phase = (enum wire_phase)(data[0] % 3);
    reader.group_max = data[0] % 16 < 13 ? 1 << 20 : 200;
    copy = mem_alloc(size);
    memcpy(copy, data, size);
    stream = (struct slice){ copy + 1, size - 1 };
    play(reader, stream);
    check_acks(stream);
    seal_all(copy + 1, size - 1);
    play(reader, stream);
    mem_free(copy);
    return 0;
}

/* ---- inputs for replay.c ------------------------------------------------- */

struct writer {
    uint64_t random;
    struct buf out;
};

static size_t
roll(struct writer *writer, size_t bound)
{
    return (size_t)(fuzz_next(&writer->random) % bound);
}

static void
put_line(struct writer *writer)
{
    static const char *const lines[] = {
        "\n",
        "\r\n",
        "+OK\r\n",
        "+PING\r\n",
        "+GETACK\r\n",
        "-ERR no\r\n",
        "+BLOOMERY 1 0123456789abcdef0123456789abcdef01234567 -\r\n",
        "+BLOOMERY 1 0123456789abcdef0123456789abcdef01234567 "
        "0123456789abcdef0123456789abcdef01234567\r\n",
        "+CONTINUE 0123456789abcdef0123456789abcdef01234567 "
        "0123456789abcdef\r\n",
        "+FULLRESYNC 0123456789abcdef0123456789abcdef01234567 12 3 "
        "0123456789abcdef 99\r\n",
    };

    buf_append_slice(
        &writer->out,
        slice_of(lines[roll(writer, sizeof(lines) / sizeof(lines[0]))]));
}

static void
put_run(struct writer *writer, char c, size_t len)
{
    char *to = buf_reserve(&writer->out, len + 1);

    memset(to, c, len);
    writer->out.len += len;
}

static void
put_chunk(struct writer *writer)
{
    size_t len = 1 + roll(writer, roll(writer, 4) == 0 ? ITEM_MAX : 20);

    wire_write_chunk_head(&writer->out, len);
    put_run(writer, "$*+\n"[roll(writer, 4)], len);
}

static void
put_seal(struct writer *writer)
{
    buf_printf(&writer->out, "#XX:%016zu:%014zu:%016d:%016d:%032d\r\n",
               roll(writer, 100), roll(writer, 100), 0, 0, 0);
}

static void
put_group(struct writer *writer)
{
    buf_append_slice(&writer->out, slice_lit(COMMAND));
    for (size_t commands = roll(writer, 4); commands > 0; commands--) {
        size_t words = 1 + roll(writer, 4);

        buf_printf(&writer->out, "*%zu\r\n", words);
        while (words-- > 0) {
            size_t len = roll(writer, roll(writer, 8) == 0 ? ITEM_MAX : 12);

            if (roll(writer, 10) == 0) { /* a seal as a word, behind a line */
                buf_printf(&writer->out, "$%d\r\n", 1 + GROUP_SEAL_BYTES);
                buf_append_slice(&writer->out, slice_lit("\n"));
                put_seal(writer);
            } else {
                buf_printf(&writer->out, "$%zu\r\n", len);
                put_run(writer, "#\r\n*"[roll(writer, 4)], len);
            }
            buf_append_slice(&writer->out, slice_lit("\r\n"));
        }
    }
    put_seal(writer);
}

static void
put_all(struct writer *writer, int phase)
{
    for (size_t left = roll(writer, 4); left > 0; left--) {
        put_line(writer);
    }
    for (size_t left = roll(writer, 4); left > 0 && phase == WIRE_SNAPSHOT;
         left--) {
        put_chunk(writer);
        if (roll(writer, 3) == 0) {
            buf_append_slice(&writer->out, slice_lit("+PING\r\n"));
        }
    }
    if (phase == WIRE_SNAPSHOT) {
        wire_write_chunk_head(&writer->out, 0);
    }
    for (size_t left = roll(writer, 5); left > 0; left--) {
        put_group(writer);
        if (roll(writer, 3) == 0) {
            buf_append_slice(&writer->out, slice_lit("+PING\r\n"));
        }
    }
}

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    struct writer writer = { .random = seed };
    size_t choice = roll(&writer, 16);
    int phase = (int)(choice % 3);
    size_t len;

    buf_append(&writer.out, &choice, 1);
    put_all(&writer, phase);
    for (size_t left = roll(&writer, 3); left > 0; left--) {
        writer.out.data[roll(&writer, writer.out.len)] ^=
            (char)(1U << roll(&writer, 8));
    }
    len = writer.out.len - (roll(&writer, 4) == 0 ? roll(&writer, 50) : 0);
    len = len > 0 && len < max ? len : 1;
    memcpy(to, writer.out.data, len);
    buf_free(&writer.out);
    return len;
}
