/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The guards around hiredis: one row per refusal, each fed whole and byte by
 * byte, with the texts of Redis 7.0.15; large commands; kept memory.
 */
#include "../err_names.h"
#include "../test.h"

#include "base/mem.h"
#include "proto/reader.h"

#include <stdio.h>

static const struct parse_limits wide = { 1024 * 1024, 512 * 1024 * 1024,
                                          64 * 1024 * 1024, false };
static const struct parse_limits unauthenticated = { 10, 16384, 1024 * 1024,
                                                     true };
static const struct parse_limits tiny = { 4, 16, 100, false };

struct fed {
    enum parse_result result;
    struct parse_error error;
    size_t taken;
};

static struct fed
feed(struct reader *reader, const struct parse_limits *limits,
     struct slice data, size_t step, struct arena *arena)
{
    struct fed fed = { PARSE_MORE, { .err = OK }, 0 };

    while (fed.result == PARSE_MORE && fed.taken < data.len) {
        size_t left = data.len - fed.taken;
        size_t used = 0;
        struct slice piece = { data.data + fed.taken,
                               step < left ? step : left };

        fed.result =
            reader_feed(reader, limits, piece, arena, &used, &fed.error);
        fed.taken += used;
    }
    return fed;
}

struct row {
    const char *data;
    const struct parse_limits *limits;
    enum err err;
    const char *detail;
};

static const struct row refusals[] = {
    { "*\r\n", &wide, ERR_PROTO_MULTIBULK, "" },
    { "*abc\r\n", &wide, ERR_PROTO_MULTIBULK, "" },
    { "*01\r\n", &wide, ERR_PROTO_MULTIBULK, "" },
    { "*+1\r\n", &wide, ERR_PROTO_MULTIBULK, "" },
    { "*1 \r\n", &wide, ERR_PROTO_MULTIBULK, "" },
    { "*-0\r\n", &wide, ERR_PROTO_MULTIBULK, "" },
    { "*1\n$4\r\n", &wide, ERR_PROTO_MULTIBULK, "" },
    { "*-9223372036854775809\r\n", &wide, ERR_PROTO_MULTIBULK, "" },
    { "*2147483648\r\n", &wide, ERR_PROTO_MULTIBULK, "" },
    { "*1048577\r\n", &wide, ERR_PROTO_MULTIBULK, "" },
    { "*5\r\n", &tiny, ERR_PROTO_MULTIBULK, "" },
    { "*11\r\n", &unauthenticated, ERR_PROTO_UNAUTH_MULTIBULK, "" },
    { "*2147483648\r\n", &unauthenticated, ERR_PROTO_MULTIBULK, "" },
    { "*1111111111111111111111111111111111111111\r\n", &wide,
      ERR_PROTO_MULTIBULK, "" },
    { "*1\r\n$-1\r\n", &wide, ERR_PROTO_BULK, "" },
    { "*1\r\n$-5\r\n", &wide, ERR_PROTO_BULK, "" },
    { "*1\r\n$\r\n", &wide, ERR_PROTO_BULK, "" },
    { "*1\r\n$04\r\n", &wide, ERR_PROTO_BULK, "" },
    { "*1\r\n$5x\r\n", &wide, ERR_PROTO_BULK, "" },
    { "*1\r\n$4\nPING\r\n", &wide, ERR_PROTO_BULK, "" },
    { "*2\r\n$1\r\na\r\n$536870913\r\n", &wide, ERR_PROTO_BULK, "" },
    { "*1\r\n$9223372036854775806\r\n", &wide, ERR_PROTO_BULK, "" },
    { "*1\r\n$99999999999999999999\r\n", &wide, ERR_PROTO_BULK, "" },
    { "*1\r\n$1111111111111111111111111111111111111111\r\n", &wide,
      ERR_PROTO_BULK, "" },
    { "*1\r\n$17\r\n", &tiny, ERR_PROTO_BULK, "" },
    { "*1\r\n$17\r\naaaaaaaaaaaaaaaaa\r\n", &tiny, ERR_PROTO_BULK, "" },
    { "*1\r\n$16385\r\n", &unauthenticated, ERR_PROTO_UNAUTH_BULK, "" },
    { "*1\r\n$536870913\r\n", &unauthenticated, ERR_PROTO_BULK, "" },
    { "*1\r\n:5\r\n", &wide, ERR_PROTO_EXPECTED, ":" },
    { "*1\r\n:x\r\n", &wide, ERR_PROTO_EXPECTED, ":" },
    { "*1\r\n+a\r\n", &wide, ERR_PROTO_EXPECTED, "+" },
    { "*1\r\n-a\r\n", &wide, ERR_PROTO_EXPECTED, "-" },
    { "*1\r\n*1\r\n$4\r\n", &wide, ERR_PROTO_EXPECTED, "*" },
    { "*1\r\n*-1\r\n", &wide, ERR_PROTO_EXPECTED, "*" },
    { "*1\r\n*x\r\n", &wide, ERR_PROTO_EXPECTED, "*" },
    { "*1\r\n*2147483648\r\n", &wide, ERR_PROTO_EXPECTED, "*" },
    { "*2\r\n$1\r\na\r\nPING\r\n", &wide, ERR_PROTO_EXPECTED, "P" },
    { "*1\r\n_\r\n", &wide, ERR_PROTO_EXPECTED, "_" },
    { "*1\r\n,1\r\n", &wide, ERR_PROTO_EXPECTED, "," },
    { "*1\r\n#t\r\n", &wide, ERR_PROTO_EXPECTED, "#" },
    { "*1\r\n%1\r\n", &wide, ERR_PROTO_EXPECTED, "%" },
    { "*1\r\n~1\r\n", &wide, ERR_PROTO_EXPECTED, "~" },
    { "*1\r\n>1\r\n", &wide, ERR_PROTO_EXPECTED, ">" },
    { "*1\r\n(1\r\n", &wide, ERR_PROTO_EXPECTED, "(" },
    { "*1\r\n=5\r\ntxt:a\r\n", &wide, ERR_PROTO_EXPECTED, "=" },
    { "*1\r\n\"\r\n", &wide, ERR_PROTO_EXPECTED, "\"" },
    { "*1\r\n\\\r\n", &wide, ERR_PROTO_EXPECTED, "\\" },
    { "*1\r\n\xff\r\n", &wide, ERR_PROTO_EXPECTED, "\xff" },
    { "*1\r\n\r\n", &wide, ERR_PROTO_EXPECTED, " " },
    { "*1\r\n\x01\r\n", &wide, ERR_PROTO_EXPECTED, " " },
    { "*1\r\n\x7f\r\n", &wide, ERR_PROTO_EXPECTED, " " },
};

TEST(refusals_have_the_errors_of_redis)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const struct row *row = &refusals[i];

        for (size_t step = 1; step < 64; step++) {
            struct reader *reader = reader_new();
            struct arena arena = { { 0 }, NULL, 0, 0 };
            struct fed fed =
                feed(reader, row->limits, slice_of(row->data), step, &arena);

            if (fed.error.err != row->err) {
                print_error("%s in steps of %zu\n", row->data, step);
            }
            assert_int_equal(PARSE_ERROR, fed.result);
            assert_string_equal(err_name(row->err), err_name(fed.error.err));
            assert_string_equal(row->detail, fed.error.detail);
            assert_false(reader_is_reusable(reader));
            reader_free(reader);
            arena_fini(&arena);
        }
    }
}

TEST(a_reader_takes_one_command_after_the_other)
{
    static const char data[] =
        "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n*0\r\n*-1\r\n*-5\r\n"
        "*-2147483649\r\n*1\r\n$4\r\nPINGxy";
    static const enum parse_result results[] = { PARSE_COMMAND, PARSE_EMPTY,
                                                 PARSE_EMPTY,   PARSE_EMPTY,
                                                 PARSE_EMPTY,   PARSE_COMMAND };

    for (size_t step = 1; step < sizeof(data); step++) {
        struct reader *reader = reader_new();
        struct slice rest = slice_lit(data);

        for (size_t i = 0; i < 6; i++) {
            struct arena arena = { { 0 }, NULL, 0, 0 };
            struct fed fed = feed(reader, &wide, rest, step, &arena);

            assert_int_equal(results[i], fed.result);
            assert_int_equal(i == 0 ? 2 : i == 5 ? 1 : 0, arena.count);
            assert_int_equal(0, reader_kept_bytes(reader));
            rest.data += fed.taken;
            rest.len -= fed.taken;
            arena_fini(&arena);
        }
        assert_int_equal(0, rest.len);
        assert_true(reader_is_reusable(reader));
        reader_free(reader);
    }
}

/* "*<n>" or "*1 $<n>" with `digits` digits and no end, or with one. */
static enum err
feed_line(const char *head, size_t digits, const char *end, size_t step)
{
    size_t head_len = strlen(head);
    size_t len = head_len + digits + strlen(end);
    char *data = mem_alloc(len + 1);
    struct reader *reader = reader_new();
    struct arena arena = { { 0 }, NULL, 0, 0 };
    struct fed fed;

    memcpy(data, head, head_len);
    memset(data + head_len, '1', digits);
    memcpy(data + head_len + digits, end, strlen(end) + 1);
    fed = feed(reader, &wide, (struct slice){ data, len }, step, &arena);
    assert_true(reader_kept_bytes(reader) < 64);
    reader_free(reader);
    arena_fini(&arena);
    mem_free(data);
    return fed.error.err;
}

TEST(lines_without_end_are_refused_and_not_kept)
{
    static const size_t steps[] = { 1, 3, 33, 2048, 40000, 1000000 };

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        size_t step = steps[i];

        assert_int_equal(OK, feed_line("*", 65000, "", step));
        assert_int_equal(ERR_PROTO_BIG_COUNT, feed_line("*", 65536, "", step));
        assert_int_equal(ERR_PROTO_BIG_COUNT,
                         feed_line("*", 65536, "\r\n", step));
        assert_int_equal(ERR_PROTO_MULTIBULK,
                         feed_line("*", 65000, "\r\n", step));
        assert_int_equal(ERR_PROTO_MULTIBULK, feed_line("*", 29, "\r\n", step));
        assert_int_equal(ERR_PROTO_MULTIBULK, feed_line("*", 31, "\r\n", step));
        assert_int_equal(OK, feed_line("*1\r\n$", 65000, "", step));
        assert_int_equal(ERR_PROTO_BIG_BULK,
                         feed_line("*1\r\n$", 65536, "", step));
        assert_int_equal(ERR_PROTO_BULK,
                         feed_line("*1\r\n$", 65000, "\r\n", step));
        assert_int_equal(ERR_PROTO_BULK,
                         feed_line("*1\r\n$", 32, "\r\n", step));
    }
}

TEST(a_declared_size_allocates_nothing)
{
    struct reader *reader = reader_new();
    struct arena arena = { { 0 }, NULL, 0, 0 };
    uint64_t before = mem_used();
    struct fed fed;

    fed = feed(reader, &wide, slice_lit("*1048576\r\n$536870912\r\nabc"), 1000,
               &arena);
    assert_int_equal(PARSE_MORE, fed.result);
    assert_in_range(mem_used() - before, 0, 128); /* what came */
    assert_int_equal(3, arena_kept_bytes(&arena) + reader_kept_bytes(reader));
    reader_free(reader);
    arena_fini(&arena);
}

/* hiredis allocates by itself: what it holds shows anyway, once, and is gone
 * with the reader, however often hiredis was thrown away meanwhile. */
TEST(what_hiredis_holds_is_counted)
{
    enum { LEN = 20 * 1024 * 1024, PIECE = 100000 };
    static const char *const begins[] = { "", "*-5\r\n*-1\r\n*-700\r\n" };

    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        char *data = mem_alloc(LEN);
        uint64_t before = mem_used();
        struct reader *reader = reader_new();
        struct arena arena = { { 0 }, NULL, 0, 0 };
        struct slice rest = slice_of(begins[i]);
        struct fed fed;

        while (rest.len > 0) {
            fed = feed(reader, &wide, rest, PIECE, &arena);
            assert_int_equal(PARSE_EMPTY, fed.result);
            rest.data += fed.taken;
            rest.len -= fed.taken;
        }
        memset(data, 'a', LEN);
        assert_true(snprintf(data, 64, "*2\r\n$%d\r\n", 2 * LEN) > 0);
        data[strlen(data)] = 'a';
        fed = feed(reader, &wide, (struct slice){ data, LEN }, PIECE, &arena);
        assert_int_equal(PARSE_MORE, fed.result);
        assert_in_range(mem_used() - before, LEN - 64, LEN + LEN / 4);
        reader_free(reader);
        arena_fini(&arena);
        assert_int_equal(before, mem_used());
        mem_free(data);
    }
}

TEST(a_command_may_fill_the_query_limit_and_not_exceed_it)
{
    char data[128];
    struct parse_limits limits = { 4, 1000, 100, false };

    for (size_t len = 88; len <= 91; len++) {
        for (size_t step = 1; step < 120; step++) {
            struct reader *reader = reader_new();
            struct arena arena = { { 0 }, NULL, 0, 0 };
            int head = snprintf(data, sizeof(data), "*1\r\n$%zu\r\n", len);
            size_t all = (size_t)head + len + 2;
            struct fed fed;

            memset(data + head, 'a', sizeof(data) - (size_t)head);
            fed = feed(reader, &limits, (struct slice){ data, all + 5 }, step,
                       &arena);
            assert_int_equal(all <= 100 ? PARSE_COMMAND : PARSE_ERROR,
                             fed.result);
            assert_int_equal(all <= 100 ? OK : ERR_QUERY_BUFFER, fed.error.err);
            reader_free(reader);
            arena_fini(&arena);
        }
    }
}

/* Limits may be lowered while a command is on its way. */
TEST(a_lowered_limit_ends_the_command)
{
    struct reader *reader = reader_new();
    struct arena arena = { { 0 }, NULL, 0, 0 };
    struct parse_limits limits = { 4, 1000, 10, false };
    struct fed fed;

    fed =
        feed(reader, &wide, slice_lit("*1\r\n$100\r\n0123456789"), 100, &arena);
    assert_int_equal(PARSE_MORE, fed.result);
    fed = feed(reader, &limits, slice_lit("0"), 1, &arena);
    assert_int_equal(ERR_QUERY_BUFFER, fed.error.err);
    reader_free(reader);
    arena_fini(&arena);
}

TEST(a_large_argument_leaves_no_large_buffer_in_the_pool)
{
    enum { LEN = 1024 * 1024 };
    char *data = mem_alloc(LEN + 64);
    struct reader *reader = reader_new();
    struct arena arena = { { 0 }, NULL, 0, 0 };
    int head = snprintf(data, 64, "*1\r\n$%d\r\n", LEN);
    struct fed fed;
    struct slice argument;

    memset(data + head, 'a', LEN + 2);
    fed = feed(reader, &wide, (struct slice){ data, (size_t)head + LEN + 2 },
               65536, &arena);
    assert_int_equal(PARSE_COMMAND, fed.result);
    arena_slices(&arena, &argument);
    assert_int_equal(LEN, argument.len);
    assert_memory_equal(data + head, argument.data, LEN);
    assert_true(reader_is_reusable(reader)); /* it never had the argument */
    reader_free(reader);
    arena_fini(&arena);
    mem_free(data);
}

/* Arguments around the length from which hiredis does not get them, with
 * others before and behind, in pieces of any size; then a command follows. */
TEST(long_arguments_are_the_same_in_pieces_of_any_size)
{
    enum { MOST = 3000 };
    static const size_t lens[] = { 1023, 1024, 1025, 2 * 1024 + 1 };
    char data[2 * MOST + 100];

    for (size_t i = 0; i < 4; i++) {
        struct reader *reader = reader_new();
        struct arena arena = { { 0 }, NULL, 0, 0 };
        int head = snprintf(data, 64, "*3\r\n$1\r\na\r\n$%zu\r\n", lens[i]);
        size_t at = (size_t)head;
        size_t all;

        for (size_t j = 0; j < lens[i]; j++) {
            data[at++] = "\r\n$0*"[j * j % 5];
        }
        all = at + (size_t)snprintf(data + at, 64, "\r\n$%d\r\n", MOST);
        memset(data + all, 'z', MOST);
        memcpy(data + all + MOST, "\r\n*1\r\n", 6);
        all += MOST + 2;
        for (size_t step = 1; step <= all + 4; step += step < 40 ? 1 : 31) {
            struct slice argv[3];
            struct fed fed = feed(
                reader, &wide, (struct slice){ data, all + 4 }, step, &arena);

            assert_int_equal(PARSE_COMMAND, fed.result);
            assert_int_equal(all, fed.taken);
            assert_int_equal(3, arena.count);
            arena_slices(&arena, argv);
            assert_true(slice_equal(slice_lit("a"), argv[0]));
            assert_int_equal(lens[i], argv[1].len);
            assert_memory_equal(data + head, argv[1].data, lens[i]);
            assert_int_equal(MOST, argv[2].len);
            assert_int_equal('z', argv[2].data[MOST - 1]);
            arena_reset(&arena, SIZE_MAX);
        }
        reader_free(reader);
        arena_fini(&arena);
    }
}

TEST(a_long_argument_obeys_a_lowered_limit)
{
    struct reader *reader = reader_new();
    struct arena arena = { { 0 }, NULL, 0, 0 };
    struct parse_limits limits = { 4, 1000, 1 << 20, false };
    struct fed fed;

    fed = feed(reader, &wide, slice_lit("*1\r\n$2000\r\n0123"), 100, &arena);
    assert_int_equal(PARSE_MORE, fed.result);
    assert_int_equal(4, arena_kept_bytes(&arena));
    fed = feed(reader, &limits, slice_lit("4"), 1, &arena);
    assert_int_equal(ERR_PROTO_BULK, fed.error.err);
    reader_free(reader);
    arena_fini(&arena);
}

TEST(feeding_survives_every_allocation_failure)
{
    static const char data[] = "*5\r\n$1\r\na\r\n$0\r\n\r\n"
                               "$40\r\n0123456789012345678901234567890123456789"
                               "\r\n$40\r\n"
                               "0123456789012345678901234567890123456789"
                               "\r\n$1\r\nd\r\n";
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct arena arena = { { 0 }, NULL, 0, 0 };
        struct fed fed = { PARSE_ERROR, { .err = ERR_NOMEM }, 0 };
        struct reader *reader;

        mem_fail_at(nth);
        reader = reader_new();
        if (reader != NULL) {
            fed = feed(reader, &wide, slice_lit(data), 7, &arena);
        }
        fired = mem_fail_clear();
        assert_int_equal(fired ? ERR_NOMEM : OK, fed.error.err);
        assert_int_equal(fired ? PARSE_ERROR : PARSE_COMMAND, fed.result);
        reader_free(reader);
        arena_fini(&arena);
        assert_true(nth > 3 || fired);
    }
}
