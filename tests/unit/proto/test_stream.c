/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scanner, reader and inline parser as one: every row is parsed whole, cut in
 * two at every place, and byte by byte, and must give the same commands and
 * the same end. The expectations are what Redis 7.0.15 answered.
 */
#include "../err_names.h"
#include "../test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "proto/stream.h"

#include <stdio.h>

static const struct parse_limits wide = { 1024 * 1024, 512 * 1024 * 1024,
                                          64 * 1024 * 1024, false };
static const struct parse_limits unauthenticated = { 10, 16384, 1024 * 1024,
                                                     true };

struct session {
    const struct parse_limits *limits;
    struct stream_pool *pool;
    struct stream stream;
    struct batch batch;
    enum stream_result last;
    struct parse_error error;
    struct buf seen; /* "[a][b];" for a command a b */
};

static void
session_init(struct session *session, const struct parse_limits *limits)
{
    *session = (struct session){ .limits = limits, .last = STREAM_MORE };
    session->pool = stream_pool_new();
}

static void
session_fini(struct session *session)
{
    stream_fini(&session->stream, session->pool);
    stream_pool_free(session->pool);
    batch_fini(&session->batch);
    buf_free(&session->seen);
}

static void
note_batch(struct session *session)
{
    for (uint32_t i = 0; i < session->batch.count; i++) {
        const struct batch_command *command = &session->batch.command[i];

        for (uint32_t k = 0; k < command->argc; k++) {
            struct slice arg = session->batch.argv[command->first + k];

            buf_append(&session->seen, "[", 1);
            buf_append(&session->seen, arg.data, arg.len);
            buf_append(&session->seen, "]", 1);
        }
        buf_append(&session->seen, ";", 1);
    }
}

/* One read, in memory of its own size that is gone afterwards. */
static void
session_read(struct session *session, const char *data, size_t len)
{
    char *copy = mem_alloc(len);
    size_t at = 0;

    memcpy(copy, data, len);
    while (at < len && session->last != STREAM_ERROR) {
        size_t used = 0;

        session->last = stream_parse(&session->stream, session->pool,
                                     session->limits, copy + at, len - at,
                                     &session->batch, &used, &session->error);
        if (session->last == STREAM_COMMANDS) {
            note_batch(session);
            stream_done(&session->stream, session->pool);
        }
        at += used;
    }
    mem_free(copy);
}

static void
expect_session(struct session *session, const char *seen, enum err err,
               const char *detail)
{
    buf_append(&session->seen, "", 1); /* its NUL */
    assert_string_equal(seen, session->seen.data);
    assert_string_equal(err_name(err), err_name(session->error.err));
    assert_string_equal(detail, session->error.detail);
    assert_int_equal(err != OK, session->last == STREAM_ERROR);
}

struct row {
    const char *data, *seen;
    enum err err;
    const char *detail;
};

#define PING "*1\r\n$4\r\nPING\r\n"

static const struct row rows[] = {
    { PING PING, "[PING];[PING];", OK, "" },
    { "*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$12\r\nitem00000001\r\n" PING,
      "[BF.ADD][k][item00000001];[PING];", OK, "" },
    { "*0\r\n" PING, "[PING];", OK, "" },
    { "*-1\r\n" PING, "[PING];", OK, "" },
    { "*-5\r\n*-7\r\n" PING, "[PING];", OK, "" },
    { "\r\n\n  \r\n" PING, "[PING];", OK, "" },
    { "*1\r\n$0\r\n\r\n" PING, "[];[PING];", OK, "" },
    { "*2\r\n$4\r\nECHOxx$1\r\nayy" PING, "[ECHO][a];[PING];", OK, "" },
    { PING "PING\r\n" PING "ECHO 'a b'\n" PING,
      "[PING];[PING];[PING];[ECHO][a b];[PING];", OK, "" },
    { PING "*01\r\n$4\r\nPING\r\n", "[PING];", ERR_PROTO_MULTIBULK, "" },
    { PING "*+1\r\n$4\r\nPING\r\n", "[PING];", ERR_PROTO_MULTIBULK, "" },
    { "*-0\r\n" PING, "", ERR_PROTO_MULTIBULK, "" },
    { "*abc\r\n" PING, "", ERR_PROTO_MULTIBULK, "" },
    { "*2147483648\r\n" PING, "", ERR_PROTO_MULTIBULK, "" },
    { "*2147483647\r\n" PING, "", ERR_PROTO_MULTIBULK, "" },
    { PING "*1\r\n$-1\r\n" PING, "[PING];", ERR_PROTO_BULK, "" },
    { PING "*1\r\n$04\r\nPING\r\n", "[PING];", ERR_PROTO_BULK, "" },
    { "*1\r\n$5x\r\n" PING, "", ERR_PROTO_BULK, "" },
    { "*1\r\n$536870913\r\n" PING, "", ERR_PROTO_BULK, "" },
    { "*1\r\n$9223372036854775806\r\n", "", ERR_PROTO_BULK, "" },
    { PING "*1\r\n:5\r\n", "[PING];", ERR_PROTO_EXPECTED, ":" },
    { PING "*1\r\n" PING, "[PING];", ERR_PROTO_EXPECTED, "*" },
    { "*1\r\n\r\n", "", ERR_PROTO_EXPECTED, " " },
    { "*2\r\n$4\r\nECHO\r\nx", "", ERR_PROTO_EXPECTED, "x" },
    { PING "ECHO \"a\"b\r\n" PING, "[PING];", ERR_PROTO_QUOTES, "" },
    { "*1048576\r\n$1\r\na\r\n", "", OK, "" },
    { "*1\r\n$536870912\r\nabc", "", OK, "" },
};

TEST(the_same_bytes_are_the_same_commands_however_they_are_cut)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        size_t len = strlen(row->data);

        for (size_t cut = 0; cut <= len; cut++) { /* 0: byte by byte */
            struct session session;

            session_init(&session, &wide);
            if (cut == 0) {
                for (size_t at = 0; at < len; at++) {
                    session_read(&session, row->data + at, 1);
                }
            } else {
                session_read(&session, row->data, cut);
                session_read(&session, row->data + cut, len - cut);
            }
            expect_session(&session, row->seen, row->err, row->detail);
            session_fini(&session);
        }
    }
}

TEST(limits_before_auth_have_their_own_texts)
{
    static const struct row before[] = {
        { "*10\r\n", "", OK, "" },
        { "*11\r\n", "", ERR_PROTO_UNAUTH_MULTIBULK, "" },
        { "*2147483648\r\n", "", ERR_PROTO_MULTIBULK, "" },
        { "*1\r\n$16384\r\n", "", OK, "" },
        { "*1\r\n$16385\r\n", "", ERR_PROTO_UNAUTH_BULK, "" },
        { "*1\r\n$536870913\r\n", "", ERR_PROTO_BULK, "" },
        { "A 1 2 3 4 5 6 7 8 9 a b\n", "[A][1][2][3][4][5][6][7][8][9][a][b];",
          OK, "" },
    };

    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
        struct session session;

        session_init(&session, &unauthenticated);
        session_read(&session, before[i].data, strlen(before[i].data));
        expect_session(&session, before[i].seen, before[i].err, "");
        session_fini(&session);
    }
}

TEST(a_scanned_batch_points_into_the_data)
{
    static const char data[] = "\r\n" PING PING "*1\r\n$4\r\nPI";
    struct session session;
    size_t used = 0;

    session_init(&session, &wide);
    assert_int_equal(STREAM_COMMANDS,
                     stream_parse(&session.stream, session.pool, &wide, data,
                                  sizeof(data) - 1, &session.batch, &used,
                                  &session.error));
    assert_int_equal(2, session.batch.count);
    assert_int_equal(2, session.batch.command[0].begin);
    assert_ptr_equal(data + 2 + 8, session.batch.argv[0].data);
    assert_null(session.stream.partial);
    assert_int_equal(STREAM_MORE,
                     stream_parse(&session.stream, session.pool, &wide,
                                  data + used, sizeof(data) - 1 - used,
                                  &session.batch, &used, &session.error));
    assert_int_equal(10, used);
    assert_int_equal(0, session.batch.count);
    assert_true(stream_kept_bytes(&session.stream) > 0);
    session_fini(&session);
}

TEST(a_paused_command_is_given_again_until_it_is_done)
{
    static const char rest[] = "ING\r\n" PING;
    struct session session;
    size_t used = 99;

    session_init(&session, &wide);
    session_read(&session, "*1\r\n$4\r\nP", 9);
    for (int i = 0; i < 3; i++) {
        const char *data = i == 0 ? rest : rest + 5;
        size_t len = i == 0 ? sizeof(rest) - 1 : sizeof(rest) - 6;

        assert_int_equal(STREAM_COMMANDS,
                         stream_parse(&session.stream, session.pool, &wide,
                                      data, len, &session.batch, &used,
                                      &session.error));
        assert_int_equal(i == 0 ? 5 : 0, used);
        assert_int_equal(1, session.batch.count);
        assert_int_equal(0, session.batch.command[0].begin);
        assert_true(slice_equal(session.batch.argv[0], slice_lit("PING")));
    }
    stream_done(&session.stream, session.pool);
    assert_null(session.stream.partial);
    assert_int_equal(0, stream_kept_bytes(&session.stream));
    session_read(&session, rest + 5, sizeof(rest) - 6);
    expect_session(&session, "[PING];", OK, "");
    session_fini(&session);
}

TEST(stream_done_leaves_an_unfinished_command_alone)
{
    struct session session;

    session_init(&session, &wide);
    session_read(&session, "*1\r\n$4\r\nP", 9);
    stream_done(&session.stream, session.pool);
    assert_non_null(session.stream.partial);
    session_read(&session, "ING\r\n", 5);
    expect_session(&session, "[PING];", OK, "");
    session_fini(&session);
}

/* Many connections take turns with the readers of one pool. */
TEST(streams_share_a_pool)
{
    enum { STREAMS = 100 };
    static const char data[] = "*2\r\n$4\r\nECHO\r\n$1\r\nx\r\nPING\r\n";
    struct stream_pool *pool = stream_pool_new();
    struct stream streams[STREAMS] = { { NULL } };
    struct batch batch = { 0 };
    size_t commands = 0;

    for (size_t at = 0; at < 3 * (sizeof(data) - 1); at++) {
        for (size_t i = 0; i < STREAMS; i++) {
            struct parse_error error;
            size_t used = 0;
            enum stream_result result = stream_parse(
                &streams[i], pool, &wide, data + at % (sizeof(data) - 1), 1,
                &batch, &used, &error);

            assert_int_not_equal(STREAM_ERROR, result);
            assert_int_equal(1, used);
            commands += batch.count;
            stream_done(&streams[i], pool);
        }
    }
    assert_int_equal(6 * STREAMS, commands);
    for (size_t i = 0; i < STREAMS; i++) {
        assert_null(streams[i].partial);
        stream_fini(&streams[i], pool);
    }
    stream_pool_free(pool);
    batch_fini(&batch);
}

/* A command of `argc` arguments of `len` bytes, read in pieces of `step`. */
static void
read_large(size_t argc, size_t len, size_t step)
{
    size_t each = len + 32;
    char *data = mem_alloc(32 + argc * each);
    size_t all = (size_t)snprintf(data, 32, "*%zu\r\n", argc);
    struct session session;
    struct slice arg = { NULL, len };
    size_t used = 0;

    for (size_t i = 0; i < argc; i++) {
        all += (size_t)snprintf(data + all, 32, "$%zu\r\n", len);
        memset(data + all, (int)('a' + i % 26), len);
        memcpy(data + all + len, "\r\n", 2);
        all += len + 2;
    }
    session_init(&session, &wide);
    for (size_t at = 0; at < all; at += used) {
        size_t piece = step < all - at ? step : all - at;

        session.last =
            stream_parse(&session.stream, session.pool, &wide, data + at, piece,
                         &session.batch, &used, &session.error);
        assert_int_not_equal(STREAM_ERROR, session.last);
    }
    assert_int_equal(STREAM_COMMANDS, session.last);
    assert_int_equal(argc, session.batch.command[0].argc);
    arg.data = data + (all - len - 2);
    assert_true(slice_equal(arg, session.batch.argv[argc - 1]));
    stream_done(&session.stream, session.pool);
    session_fini(&session);
    mem_free(data);
}

TEST(large_commands_arrive_in_any_pieces)
{
    static const size_t steps[] = { 1000, 65536, 262144, 16 * 1024 * 1024 };
    uint64_t before = mem_used();

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        read_large(10000, 12, steps[i]);
        read_large(2, 1024 * 1024, steps[i]);
    }
    assert_int_equal(before, mem_used());
}

TEST(a_stream_survives_every_allocation_failure)
{
    static const char data[] =
        PING "ECHO 'a' b\r\n*2\r\n$4\r\nECHO\r\n$1\r\nxyy";
    static const char seen[] = "[PING];[ECHO][a][b];[ECHO][x];";
    uint64_t before = mem_used();

    for (size_t step = 1; step < sizeof(data); step += 6) {
        bool fired = true;

        for (unsigned nth = 1; fired; nth++) {
            struct session session;

            session_init(&session, &wide);
            buf_append(&session.seen, seen, sizeof(seen)); /* room */
            session.seen.len = 0;
            mem_fail_at(nth);
            for (size_t at = 0; at < sizeof(data) - 1; at += step) {
                size_t left = sizeof(data) - 1 - at;

                session_read(&session, data + at, step < left ? step : left);
            }
            fired = mem_fail_clear();
            assert_string_equal(err_name(fired ? ERR_NOMEM : OK),
                                err_name(session.error.err));
            assert_int_equal(fired, session.last == STREAM_ERROR);
            if (!fired) {
                expect_session(&session, seen, OK, "");
            }
            session_fini(&session);
            assert_true(nth > 2 || fired);
        }
    }
    assert_int_equal(before, mem_used());
}
