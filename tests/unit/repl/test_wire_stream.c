/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pieces of a stream do not depend on how its bytes arrive, and malformed
 * ones are refused with a reason.
 */
#include "repl/wire_stream.h"

#include "../journal/log_help.h"
#include "../test.h"
#include "base/mem.h"

#include <time.h>

enum { GROUP_MAX = 1 << 20 };

static double
seconds(void)
{
    struct timespec at;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static struct wire_reader
reader_in(enum wire_phase phase)
{
    return (struct wire_reader){ .phase = phase,
                                 .key = LOG_KEY,
                                 .group_max = GROUP_MAX };
}

/* ---- reading a stream ---------------------------------------------------- */

/* Describes the pieces as text: for each its kind and its bytes. Joins
 * successive chunks. */
struct heard {
    struct buf log;
    bool in_chunk, bad;
};

static void
hear(struct heard *heard, const struct wire_piece *piece)
{
    if (piece->kind == WIRE_CHUNK) {
        if (!heard->in_chunk) {
            buf_append_slice(&heard->log, slice_lit("\nchunk "));
        }
        heard->in_chunk = true;
        buf_append_slice(&heard->log, piece->value);
        return;
    }
    if (piece->kind == WIRE_MORE) {
        return;
    }
    heard->in_chunk = false;
    switch (piece->kind) {
    case WIRE_LINE:
        buf_append_slice(&heard->log, slice_lit("\nline "));
        buf_append_slice(&heard->log, piece->value);
        break;
    case WIRE_CHUNKS_END:
        buf_append_slice(&heard->log, slice_lit("\nend"));
        break;
    case WIRE_GROUP:
        buf_printf(&heard->log, "\ngroup %" PRIu64 " ", piece->sequence);
        buf_append_slice(&heard->log, piece->value);
        buf_append(&heard->log, piece->seal, GROUP_SEAL_BYTES);
        break;
    case WIRE_HOLDINGS:
        buf_append_slice(&heard->log, slice_lit("\nholdings "));
        buf_append_slice(&heard->log, piece->value);
        break;
    case WIRE_BAD:
        buf_printf(&heard->log, "\nbad %s", piece->reason);
        heard->bad = true;
        break;
    default:
        break;
    }
}

/* Reads the stream in parts: the first of `first` bytes, the others of `part`.
 * The bytes are copied to an allocation one byte longer, so that a sanitizer
 * finds a read further past their end. */
static void
receive(struct wire_reader reader, struct slice stream, size_t first,
        size_t part, struct heard *heard)
{
    size_t at = 0; /* where the next piece begins */
    size_t there = first;

    for (;; there += part) {
        struct wire_piece piece;

        there = there < stream.len ? there : stream.len;
        do {
            size_t len = there - at;
            char *copy = mem_alloc(len + 1);

            memcpy(copy, stream.data + at, len);
            wire_read(&reader, (struct slice){ copy, len }, &piece);
            assert_true(piece.used <= len);
            hear(heard, &piece);
            at += piece.used;
            mem_free(copy);
        } while (piece.kind != WIRE_MORE && piece.kind != WIRE_BAD);
        assert_int_equal(piece.used, 0);
        if (piece.kind == WIRE_BAD || there == stream.len) {
            break;
        }
    }
}

static void
assert_all_splits_agree(struct wire_reader reader, struct slice stream)
{
    struct heard whole = { 0 };

    receive(reader, stream, stream.len, 1, &whole);
    for (size_t i = 0; i < stream.len; i++) {
        struct heard split = { 0 };

        receive(reader, stream, i, stream.len, &split);
        assert_int_equal(split.log.len, whole.log.len);
        assert_memory_equal(split.log.data, whole.log.data, whole.log.len);
        buf_free(&split.log);
    }
    for (size_t part = 1; part < 8; part++) {
        struct heard split = { 0 };

        receive(reader, stream, part, part, &split);
        assert_int_equal(split.log.len, whole.log.len);
        assert_memory_equal(split.log.data, whole.log.data, whole.log.len);
        buf_free(&split.log);
    }
    buf_free(&whole.log);
}

static void
assert_bad(struct wire_reader reader, struct slice stream, const char *reason)
{
    struct wire_reader copy = reader;
    struct wire_piece piece;

    wire_read(&copy, stream, &piece);
    assert_int_equal(piece.kind, WIRE_BAD);
    assert_string_equal(piece.reason, reason);
    assert_all_splits_agree(reader, stream);
}

static void
assert_text(struct buf *buf, const char *text)
{
    assert_int_equal(buf->len, strlen(text));
    assert_memory_equal(buf->data, text, buf->len);
    buf_free(buf);
}

/* ---- the stream ---------------------------------------------------------- */

static void
write_lines(struct buf *stream)
{
    buf_append_slice(stream, slice_lit("\n+OK\r\n\r\n+PING\r\n"));
}

/* Writes a snapshot of two chunks, with a line between them. */
static void
write_snapshot(struct buf *stream)
{
    wire_write_chunk_head(stream, 11);
    buf_append_slice(stream, slice_lit("$0\r\n+PING\r\n"));
    buf_append_slice(stream, slice_lit("+PING\r\n"));
    wire_write_chunk_head(stream, 1);
    buf_append_slice(stream, slice_lit("x"));
    wire_write_chunk_head(stream, 0);
}

/* Writes three groups with lines between them. */
static void
write_log(struct buf *stream)
{
    size_t begin;
    struct buf item = { 0 };

    log_group(stream, LOG_KEY, 7, 0, 3);
    buf_append_slice(stream, slice_lit("+PING\r\n+GETACK\r\n"));
    log_group(stream, LOG_KEY, 8, 0, 0);
    log_group(&item, LOG_KEY, 9, 0, 1); /* a whole group as an item */
    begin = stream->len;
    log_select(stream);
    log_add(stream, buf_slice(&item));
    log_add(stream, slice_lit(""));
    log_seal(stream, LOG_KEY, begin, 9, 0);
    buf_append_slice(stream, slice_lit("-ERR done\r\n"));
    buf_free(&item);
}

TEST(lines_arrive_whole_however_they_are_split)
{
    struct buf stream = { 0 };
    struct heard heard = { 0 };

    write_lines(&stream);
    receive(reader_in(WIRE_LINES), buf_slice(&stream), stream.len, 1, &heard);
    assert_text(&heard.log, "\nline \nline +OK\nline \nline +PING");
    assert_all_splits_agree(reader_in(WIRE_LINES), buf_slice(&stream));
    buf_free(&stream);
}

TEST(a_snapshot_arrives_whole_and_groups_follow)
{
    struct buf stream = { 0 };
    struct heard heard = { 0 };

    write_snapshot(&stream);
    buf_append_slice(&stream, slice_lit("+GETACK\r\n"));
    receive(reader_in(WIRE_SNAPSHOT), buf_slice(&stream), stream.len, 1,
            &heard);
    assert_text(&heard.log, "\nchunk $0\r\n+PING\r\n\nline +PING\nchunk x\nend"
                            "\nline +GETACK");
    write_log(&stream);
    assert_all_splits_agree(reader_in(WIRE_SNAPSHOT), buf_slice(&stream));
    buf_free(&stream);
}

TEST(groups_arrive_whole_even_if_an_item_contains_a_seal)
{
    struct buf stream = { 0 };
    struct wire_reader reader = reader_in(WIRE_GROUPS);
    struct wire_piece piece;
    struct slice rest;
    uint64_t sequences[3];
    size_t groups = 0;

    write_log(&stream);
    rest = buf_slice(&stream);
    for (;;) {
        wire_read(&reader, rest, &piece);
        assert_int_not_equal(piece.kind, WIRE_BAD);
        if (piece.kind == WIRE_MORE) {
            break;
        }
        if (piece.kind == WIRE_GROUP) {
            sequences[groups++] = piece.sequence;
            assert_ptr_equal(piece.value.data, rest.data);
            assert_ptr_equal(piece.seal, rest.data + piece.value.len);
            assert_int_equal(piece.used, piece.value.len + GROUP_SEAL_BYTES);
        }
        rest.data += piece.used;
        rest.len -= piece.used;
    }
    assert_int_equal(rest.len, 0);
    assert_int_equal(groups, 3);
    assert_int_equal(sequences[0] * 100 + sequences[1] * 10 + sequences[2],
                     789);
    assert_all_splits_agree(reader_in(WIRE_GROUPS), buf_slice(&stream));
    buf_free(&stream);
}

TEST(holdings_arrive_whole_between_groups)
{
    struct buf stream = { 0 };
    struct heard heard = { 0 };

    wire_write_holdings_head(&stream, 9);
    buf_append_slice(&stream, slice_lit("+PING\r\n*1"));
    wire_write_holdings_head(&stream, 0);
    buf_append_slice(&stream, slice_lit("+PING\r\n"));
    receive(reader_in(WIRE_GROUPS), buf_slice(&stream), stream.len, 1, &heard);
    assert_text(&heard.log, "\nholdings +PING\r\n*1\nholdings \nline +PING");
    log_group(&stream, LOG_KEY, 7, 0, 3);
    assert_all_splits_agree(reader_in(WIRE_GROUPS), buf_slice(&stream));
    buf_free(&stream);
}

TEST(a_group_may_be_read_twice)
{
    struct buf stream = { 0 };
    struct wire_reader reader = reader_in(WIRE_GROUPS);
    struct wire_reader before;
    struct wire_piece piece;

    log_group(&stream, LOG_KEY, 1, 0, 4);
    wire_read(&reader, (struct slice){ stream.data, stream.len - 1 }, &piece);
    assert_int_equal(piece.kind, WIRE_MORE);
    before = reader;
    for (int i = 0; i < 2; i++) {
        reader = before;
        wire_read(&reader, buf_slice(&stream), &piece);
        assert_int_equal(piece.kind, WIRE_GROUP);
    }
    assert_int_equal(reader.scanned + reader.words_left, 0);
    buf_free(&stream);
}

/* With any one bit flipped, the bytes of a group and its seal are never read as
 * a group. */
TEST(every_flipped_bit_is_found)
{
    struct buf stream = { 0 };
    size_t len;

    log_group(&stream, LOG_KEY, 1, 0, 2);
    len = stream.len;
    log_group(&stream, LOG_KEY, 2, 0, 1);
    for (size_t at = 0; at < len; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            struct wire_reader reader = reader_in(WIRE_GROUPS);
            struct wire_piece piece;

            stream.data[at] ^= (char)(1U << bit);
            wire_read(&reader, buf_slice(&stream), &piece);
            assert_int_not_equal(piece.kind, WIRE_GROUP);
            stream.data[at] ^= (char)(1U << bit);
        }
    }
    buf_free(&stream);
}

TEST(a_malformed_stream_is_refused_at_once)
{
#define SELECT "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
    static const struct {
        enum wire_phase phase;
        const char *stream, *reason;
    } cases[] = {
        { WIRE_LINES, "+O\tK\r\n", "a line with control characters in it" },
        { WIRE_LINES, "+OK\n", "a line with control characters in it" },
        { WIRE_LINES, "+OK\rx", "a line with a carriage return in it" },
        { WIRE_SNAPSHOT, "*1\r\n",
          "something other than a part of a snapshot "
          "where one should begin" },
        { WIRE_SNAPSHOT, "\n",
          "something other than a part of a snapshot "
          "where one should begin" },
        { WIRE_SNAPSHOT, "$01\r\nx",
          "something other than a part of a "
          "snapshot where one should begin" },
        { WIRE_SNAPSHOT, "$-1\r\n",
          "something other than a part of a snapshot "
          "where one should begin" },
        { WIRE_SNAPSHOT, "$1048577\r\n",
          "a part of a snapshot of more than 1 MiB" },
        { WIRE_SNAPSHOT, "$18446744073709551616\r\n",
          "something other than a part of a snapshot where one should begin" },
        { WIRE_GROUPS, "$1\r\n",
          "neither a group nor a line where one should "
          "begin" },
        { WIRE_GROUPS, "\n",
          "neither a group nor a line where one should "
          "begin" },
        { WIRE_GROUPS, "#XX:",
          "neither a group nor a line where one should "
          "begin" },
        { WIRE_GROUPS, "+HOLDINGS x", "holdings without a length" },
        { WIRE_GROUPS, "+HOLDINGS 01\r\n", "holdings without a length" },
        { WIRE_GROUPS, "+HOLDINGS 2097153\r\n", "holdings of more than 2 MiB" },
        { WIRE_GROUPS, "*2\r\n$6\r\nSELECX",
          "a group does not begin with "
          "SELECT" },
        { WIRE_GROUPS, "*3\r\n$6", "a group does not begin with SELECT" },
        { WIRE_GROUPS, SELECT "+",
          "neither a command nor a seal where a "
          "command of a group ended" },
        { WIRE_GROUPS, SELECT "*x",
          "neither a command nor a seal where a "
          "command of a group ended" },
        { WIRE_GROUPS, SELECT "*-1\r\n",
          "neither a command nor a seal where a "
          "command of a group ended" },
        { WIRE_GROUPS, SELECT "*0\r\n", "a command without words in a group" },
        { WIRE_GROUPS, SELECT "*200000\r\n",
          "a command has more words than fit into a group" },
        { WIRE_GROUPS, SELECT "*9999999999999999999\r\n",
          "a command has more words than fit into a group" },
        { WIRE_GROUPS, SELECT "*1\r\nx",
          "a word of a command in a group does "
          "not begin with its length" },
        { WIRE_GROUPS, SELECT "*1\r\n$\r\n",
          "a word of a command in a group "
          "does not begin with its length" },
        { WIRE_GROUPS, SELECT "*1\r\n$1048576\r\n",
          "a group is larger than the limit" },
        { WIRE_GROUPS, SELECT "*1\r\n$9999999999999999999\r\n",
          "a group is larger than the limit" },
        { WIRE_GROUPS, SELECT "*1\r\n$3\r\nabcd\r\n",
          "a word of a command in a group is longer than its length" },
    };
#undef SELECT

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_bad(reader_in(cases[i].phase), slice_of(cases[i].stream),
                   cases[i].reason);
    }
}

TEST(a_line_may_have_1024_bytes_and_no_more)
{
    struct wire_reader reader = reader_in(WIRE_GROUPS);
    struct wire_piece piece;
    char line[WIRE_LINE_MAX + 1];

    memset(line, '+', sizeof(line));
    memcpy(line + WIRE_LINE_MAX - 2, "\r\n", 2);
    wire_read(&reader, (struct slice){ line, sizeof(line) }, &piece);
    assert_int_equal(piece.kind, WIRE_LINE);
    assert_int_equal(piece.used, WIRE_LINE_MAX);
    memcpy(line + WIRE_LINE_MAX - 2, "+\r\n", 3);
    assert_bad(reader, (struct slice){ line, sizeof(line) },
               "a line of more than 1024 bytes");
    assert_bad(reader, (struct slice){ line, WIRE_LINE_MAX - 1 + 1 },
               "a line of more than 1024 bytes");
}

TEST(the_seal_of_another_group_is_refused_with_a_reason)
{
    struct buf stream = { 0 };
    struct buf other = { 0 };

    log_group(&stream, LOG_KEY + 1, 1, 0, 2);
    assert_bad(reader_in(WIRE_GROUPS), buf_slice(&stream),
               "a seal is damaged, or was made with another key");
    stream.len = 0;
    log_group(&stream, LOG_KEY, 1, 0, 2);
    log_group(&other, LOG_KEY, 1, 0, 3);
    memcpy(stream.data + stream.len - GROUP_SEAL_BYTES,
           other.data + other.len - GROUP_SEAL_BYTES, GROUP_SEAL_BYTES);
    assert_bad(reader_in(WIRE_GROUPS), buf_slice(&stream),
               "a seal belongs to a group of another length");
    other.len = 0;
    log_group(&other, LOG_KEY, 2, 0, 2); /* same length, other bytes */
    memcpy(stream.data + stream.len - GROUP_SEAL_BYTES,
           other.data + other.len - GROUP_SEAL_BYTES, GROUP_SEAL_BYTES);
    assert_bad(reader_in(WIRE_GROUPS), buf_slice(&stream),
               "a group is damaged: it does not match its seal");
    buf_free(&stream);
    buf_free(&other);
}

TEST(a_group_may_be_as_large_as_allowed_and_no_larger)
{
    struct buf stream = { 0 };
    struct wire_reader reader = reader_in(WIRE_GROUPS);
    struct wire_piece piece;

    log_group(&stream, LOG_KEY, 1, 0, 20);
    reader.group_max = stream.len - GROUP_SEAL_BYTES;
    wire_read(&reader, buf_slice(&stream), &piece);
    assert_int_equal(piece.kind, WIRE_GROUP);
    for (size_t less = 0; less < reader.group_max; less++) {
        struct wire_reader small = reader_in(WIRE_GROUPS);

        small.group_max = less;
        wire_read(&small, buf_slice(&stream), &piece);
        assert_int_equal(piece.kind, WIRE_BAD);
    }
    buf_free(&stream);
}

/* CONFIG SET may lower the limit while a group arrives. */
TEST(a_group_is_refused_if_the_limit_sinks_below_its_bytes)
{
    struct buf stream = { 0 };
    struct wire_reader reader = reader_in(WIRE_GROUPS);
    struct wire_piece piece;

    log_group(&stream, LOG_KEY, 1, 0, 20);
    wire_read(&reader,
              (struct slice){ stream.data, stream.len - GROUP_SEAL_BYTES - 1 },
              &piece);
    assert_int_equal(piece.kind, WIRE_MORE);
    assert_true(reader.scanned > 100);
    reader.group_max = 100;
    wire_read(&reader,
              (struct slice){ stream.data, stream.len - GROUP_SEAL_BYTES },
              &piece);
    assert_int_equal(piece.kind, WIRE_BAD);
    buf_free(&stream);
}

/* A group of 8 MiB in small items, then one of 64 MiB in one item, both with
 * one more KiB at each call. If each call scanned from the beginning, this
 * would take minutes. */
TEST(a_large_group_in_many_reads_is_scanned_once)
{
    enum { LARGE = 64 << 20 };
    struct buf stream = { 0 };
    double before;

    for (size_t item = 40; item <= LARGE; item += LARGE - 40) {
        struct wire_reader reader = reader_in(WIRE_GROUPS);
        struct wire_piece piece = { .kind = WIRE_MORE };
        size_t len = item == LARGE ? LARGE : LARGE / 8;
        char *text = mem_zalloc(item);

        reader.group_max = 2 * (size_t)LARGE;
        stream.len = 0;
        log_select(&stream);
        while (stream.len < len) {
            log_add(&stream, (struct slice){ text, item });
        }
        log_seal(&stream, LOG_KEY, 0, 1, 0);
        before = seconds();
        for (size_t there = 0; piece.kind == WIRE_MORE; there += 1024) {
            there = there < stream.len ? there : stream.len;
            wire_read(&reader, (struct slice){ stream.data, there }, &piece);
        }
        assert_int_equal(piece.kind, WIRE_GROUP);
        assert_true(seconds() - before < 2); /* 10 ms, more with sanitizers */
        mem_free(text);
    }
    buf_free(&stream);
}

TEST(no_bytes_give_wire_more_in_every_phase)
{
    for (int phase = WIRE_LINES; phase <= WIRE_GROUPS; phase++) {
        struct wire_reader reader = reader_in((enum wire_phase)phase);
        struct wire_piece piece;

        wire_read(&reader, slice_lit(""), &piece);
        assert_int_equal(piece.kind, WIRE_MORE);
    }
}
