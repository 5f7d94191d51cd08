/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Quoting as Redis 7.0.15 does it (the expectations were taken from it), ends
 * of lines, and lines without end.
 */
#include "../test.h"

#include "base/mem.h"
#include "proto/inline.h"

#include <stdio.h>

static const struct parse_limits wide = { 1024, 1024, SIZE_MAX, false };

/* Words as "[word][word]" in the arena's order. */
static void
render(const struct arena *arena, char *ret_text, size_t size)
{
    const char *at = arena->bytes.data;
    size_t len = 0;

    ret_text[0] = '\0';
    for (size_t i = 0; i < arena->count; i++) {
        len += (size_t)snprintf(ret_text + len, size - len, "[%.*s]",
                                (int)arena->lens[i], at);
        at += arena->lens[i];
    }
}

struct row {
    const char *line;
    enum err err;
    const char *words;
};

static const struct row rows[] = {
    { "", OK, "" },
    { "  \t ", OK, "" },
    { "PING", OK, "[PING]" },
    { "  BF.ADD \t k  item ", OK, "[BF.ADD][k][item]" },
    { "ECHO \"a\\x41\\n\\\"b\"", OK, "[ECHO][aA\n\"b]" },
    { "\"\\r\\t\\b\\a\\\\\\q\"", OK, "[\r\t\b\a\\q]" },
    { "\"\\x4\" \"\\xzz\\xaF\"", OK, "[x4][xzz\xaf]" },
    { "'a\\'b\\n'", OK, "[a'b\\n]" },
    { "'' \"\" a", OK, "[][][a]" },
    { "a\"b c\"", OK, "[ab c]" },
    { "a'b c'", OK, "[ab c]" },
    { "\x0b\x0c"
      "a\x0b"
      "b \"c\"\x0b",
      OK,
      "[a\x0b"
      "b][c]" },
    { "a\rb", OK, "[a][b]" },
    { "\"a\"b", ERR_PROTO_QUOTES, NULL },
    { "'a'b", ERR_PROTO_QUOTES, NULL },
    { "\"a\"\"b\"", ERR_PROTO_QUOTES, NULL },
    { "a\"b", ERR_PROTO_QUOTES, NULL },
    { "\"a", ERR_PROTO_QUOTES, NULL },
    { "'a", ERR_PROTO_QUOTES, NULL },
    { "\"", ERR_PROTO_QUOTES, NULL },
    { "'", ERR_PROTO_QUOTES, NULL },
    { "\"a\\\"", ERR_PROTO_QUOTES, NULL },
    { "\"a\\", ERR_PROTO_QUOTES, NULL },
    { "'a\\'", ERR_PROTO_QUOTES, NULL },
    { "\"\\x4", ERR_PROTO_QUOTES, NULL },
};

TEST(words_and_quotes_are_split_as_redis_splits_them)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct arena arena = { { 0 }, NULL, 0, 0 };
        char text[128];

        assert_int_equal(rows[i].err,
                         inline_split(slice_of(rows[i].line), &arena));
        if (rows[i].words != NULL) {
            render(&arena, text, sizeof(text));
            assert_string_equal(rows[i].words, text);
        }
        arena_fini(&arena);
    }
}

TEST(a_nul_is_a_byte_like_others)
{
    struct arena arena = { { 0 }, NULL, 0, 0 };
    struct slice word = { NULL, 0 };

    assert_int_equal(OK, inline_split((struct slice){ " a\0b ", 5 }, &arena));
    assert_int_equal(1, arena.count);
    arena_slices(&arena, &word);
    assert_true(slice_equal(word, (struct slice){ "a\0b", 3 }));
    arena_fini(&arena);
}

/* Feeds data in pieces of `step` bytes. Returns the last result, and in
 * *ret_taken the number of consumed bytes. */
static enum parse_result
feed(const struct parse_limits *limits, struct slice data, size_t step,
     struct arena *arena, size_t *ret_taken, enum err *ret_err)
{
    struct buf line = { 0 };
    struct parse_error error = { .err = OK };
    enum parse_result result = PARSE_MORE;
    size_t taken = 0;

    while (result == PARSE_MORE && taken < data.len) {
        size_t left = data.len - taken;
        size_t used = 0;

        result = inline_feed(
            &line, limits,
            (struct slice){ data.data + taken, step < left ? step : left },
            arena, &used, &error);
        taken += used;
    }
    buf_free(&line);
    *ret_taken = taken;
    *ret_err = error.err;
    return result;
}

TEST(a_line_ends_with_lf_or_crlf_in_whatever_pieces)
{
    static const char *const lines[] = { "PING a\nREST", "PING a\r\nREST",
                                         "PING a\r\r\nREST" };

    for (size_t i = 0; i < 3; i++) {
        for (size_t step = 1; step < 16; step++) {
            struct arena arena = { { 0 }, NULL, 0, 0 };
            char text[64];
            size_t taken = 0;
            enum err err = OK;

            assert_int_equal(PARSE_COMMAND, feed(&wide, slice_of(lines[i]),
                                                 step, &arena, &taken, &err));
            assert_string_equal("REST", lines[i] + taken);
            render(&arena, text, sizeof(text));
            assert_string_equal("[PING][a]", text);
            arena_fini(&arena);
        }
    }
}

TEST(an_empty_line_is_empty)
{
    struct arena arena = { { 0 }, NULL, 0, 0 };
    size_t taken = 0;
    enum err err = OK;

    assert_int_equal(PARSE_EMPTY, feed(&wide, slice_lit("\r\nPING"), 1, &arena,
                                       &taken, &err));
    assert_int_equal(2, taken);
    assert_int_equal(PARSE_EMPTY,
                     feed(&wide, slice_lit("\n"), 5, &arena, &taken, &err));
    assert_int_equal(PARSE_MORE,
                     feed(&wide, slice_lit("\r"), 5, &arena, &taken, &err));
    arena_fini(&arena);
}

/* A word of `len` bytes and LF, in pieces of step. */
static enum err
feed_long(const struct parse_limits *limits, size_t len, size_t step)
{
    char *line = mem_alloc(len + 1);
    struct arena arena = { { 0 }, NULL, 0, 0 };
    size_t taken = 0;
    enum err err = OK;
    enum parse_result result;

    memset(line, 'a', len);
    line[len] = '\n';
    result = feed(limits, (struct slice){ line, len + 1 }, step, &arena, &taken,
                  &err);
    assert_int_equal(err == OK ? PARSE_COMMAND : PARSE_ERROR, result);
    mem_free(line);
    arena_fini(&arena);
    return err;
}

TEST(a_line_has_a_longest_length_however_it_arrives)
{
    static const size_t steps[] = { 1, 7, 4096, 1000000 };
    struct parse_limits query = { 1024, 1024, 100, false };

    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(OK, feed_long(&wide, INLINE_BYTES_MAX, steps[i]));
        assert_int_equal(ERR_PROTO_BIG_INLINE,
                         feed_long(&wide, INLINE_BYTES_MAX + 1, steps[i]));
        assert_int_equal(OK, feed_long(&query, 99, steps[i]));
        assert_int_equal(ERR_QUERY_BUFFER, feed_long(&query, 100, steps[i]));
    }
}

TEST(a_line_survives_every_allocation_failure)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct arena arena = { { 0 }, NULL, 0, 0 };
        size_t taken = 0;
        enum err err = OK;
        enum parse_result result;

        mem_fail_at(nth);
        result = feed(&wide, slice_lit("a b c d e f g h i j k l m n o p q r\n"),
                      5, &arena, &taken, &err);
        fired = mem_fail_clear();
        assert_int_equal(fired ? PARSE_ERROR : PARSE_COMMAND, result);
        assert_int_equal(fired ? ERR_NOMEM : OK, err);
        arena_fini(&arena);
        assert_true(nth > 3 || fired);
    }
}

/* The error comes with the byte, whether the line has ended or not, and
 * wherever it is cut. */
TEST(a_control_byte_ends_the_connection)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum err err;
    } lines[] = {
        { "\x16\x03\x01\x02", 4, ERR_PROTO_TLS },
        { "a\x16", 2, ERR_PROTO_CONTROL },
        { "PING\0\r\n", 7, ERR_PROTO_CONTROL },
        { "PING \x7f\n", 7, ERR_PROTO_CONTROL },
        { "PING '\x1b'\n", 9, ERR_PROTO_CONTROL },
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        for (size_t step = 1; step <= lines[i].len; step++) {
            struct arena arena = { 0 };
            struct buf line = { 0 };
            struct parse_error error = { .err = OK };
            enum parse_result result = PARSE_MORE;

            for (size_t at = 0; result == PARSE_MORE; at += step) {
                size_t left = lines[i].len - at;
                size_t used = 0;

                assert_true(at < lines[i].len);
                result =
                    inline_feed(&line, &wide,
                                (struct slice){ lines[i].bytes + at,
                                                left < step ? left : step },
                                &arena, &used, &error);
            }
            assert_int_equal(PARSE_ERROR, result);
            assert_int_equal(lines[i].err, error.err);
            buf_free(&line);
            arena_fini(&arena);
        }
    }
}
