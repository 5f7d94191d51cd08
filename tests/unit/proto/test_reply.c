/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Exact bytes of every reply shape in RESP2 and RESP3, and buffers that cannot
 * grow.
 */
#include "../test.h"

#include "base/mem.h"
#include "proto/reply.h"

#include <math.h>
#include <stdio.h>

/* Compares what the last replies wrote, and empties the buffer. */
static void
expect_bytes(struct reply *reply, const char *bytes, size_t len)
{
    assert_false(reply->buf->failed);
    assert_int_equal(len, reply->buf->len);
    assert_memory_equal(bytes, reply->buf->data, len);
    buf_reset(reply->buf, SIZE_MAX);
}

#define EXPECT(reply, literal) expect_bytes(reply, literal, sizeof(literal) - 1)

TEST(integers_of_all_sizes_are_written_in_decimal)
{
    static const int64_t values[] = { 0,
                                      1,
                                      9,
                                      10,
                                      99,
                                      100,
                                      -1,
                                      -9,
                                      -10,
                                      1234567890,
                                      INT64_MAX,
                                      INT64_MIN,
                                      INT64_MAX - 9,
                                      INT64_MIN + 1,
                                      1000000000000000000,
                                      -128 };
    struct buf buf = { 0 };
    struct reply reply = { &buf, 2 };

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char text[32];
        int len =
            snprintf(text, sizeof(text), ":%lld\r\n", (long long)values[i]);

        reply_int(&reply, values[i]);
        expect_bytes(&reply, text, (size_t)len);
    }
    buf_free(&buf);
}

TEST(headers_of_all_sizes_are_written_in_decimal)
{
    static const size_t counts[] = { 0, 1, 9, 10, 11, 1048576, SIZE_MAX };
    struct buf buf = { 0 };
    struct reply reply = { &buf, 3 };

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        char text[32];
        int len = snprintf(text, sizeof(text), "*%zu\r\n", counts[i]);

        reply_array(&reply, counts[i]);
        expect_bytes(&reply, text, (size_t)len);
    }
    buf_free(&buf);
}

TEST(resp2_shapes_are_those_of_redis)
{
    struct buf buf = { 0 };
    struct reply reply = { &buf, 2 };

    reply_ok(&reply);
    EXPECT(&reply, "+OK\r\n");
    reply_simple(&reply, "PONG");
    EXPECT(&reply, "+PONG\r\n");
    reply_bulk(&reply, (struct slice){ "a\r\n\0b", 5 });
    EXPECT(&reply, "$5\r\na\r\n\0b\r\n");
    reply_bulk(&reply, (struct slice){ NULL, 0 });
    EXPECT(&reply, "$0\r\n\r\n");
    reply_bulk_text(&reply, "hello world");
    EXPECT(&reply, "$11\r\nhello world\r\n");
    reply_null(&reply);
    EXPECT(&reply, "$-1\r\n");
    reply_null_array(&reply);
    EXPECT(&reply, "*-1\r\n");
    reply_map(&reply, 7);
    EXPECT(&reply, "*14\r\n");
    reply_set(&reply, 2);
    EXPECT(&reply, "*2\r\n");
    reply_bool(&reply, true);
    reply_bool(&reply, false);
    EXPECT(&reply, ":1\r\n:0\r\n");
    reply_double(&reply, 0.01);
    EXPECT(&reply, "$4\r\n0.01\r\n");
    reply_double(&reply, -HUGE_VAL);
    EXPECT(&reply, "$4\r\n-inf\r\n");
    reply_verbatim(&reply, slice_lit("# Server"));
    EXPECT(&reply, "$8\r\n# Server\r\n");
    buf_free(&buf);
}

TEST(resp3_shapes_are_those_of_redis)
{
    struct buf buf = { 0 };
    struct reply reply = { &buf, 3 };

    reply_ok(&reply);
    reply_int(&reply, 1);
    reply_bulk_text(&reply, "x");
    EXPECT(&reply, "+OK\r\n:1\r\n$1\r\nx\r\n");
    reply_null(&reply);
    EXPECT(&reply, "_\r\n");
    reply_null_array(&reply);
    EXPECT(&reply, "_\r\n");
    reply_map(&reply, 7);
    reply_map(&reply, 12);
    EXPECT(&reply, "%7\r\n%12\r\n");
    reply_set(&reply, 2);
    EXPECT(&reply, "~2\r\n");
    reply_bool(&reply, true);
    reply_bool(&reply, false);
    EXPECT(&reply, "#t\r\n#f\r\n");
    reply_double(&reply, 0.5);
    EXPECT(&reply, ",0.5\r\n");
    reply_double(&reply, HUGE_VAL);
    EXPECT(&reply, ",inf\r\n");
    reply_verbatim(&reply, slice_lit("# Server"));
    EXPECT(&reply, "=12\r\ntxt:# Server\r\n");
    reply_verbatim(&reply, (struct slice){ NULL, 0 });
    EXPECT(&reply, "=4\r\ntxt:\r\n");
    buf_free(&buf);
}

TEST(a_text_is_replied_and_freed_or_fails_the_reply)
{
    struct buf buf = { 0 };
    struct buf text = { 0 };
    struct reply reply = { &buf, 2 };

    buf_printf(&text, "used: %d", 7);
    reply_text(&reply, &text);
    EXPECT(&reply, "$7\r\nused: 7\r\n");
    assert_null(text.data);
    text.failed = true;
    reply_text(&reply, &text);
    assert_true(buf.failed);
    buf_free(&buf);
}

TEST(many_answers_are_written_at_once)
{
    static const bool answers[] = { true, false, true };
    struct buf buf = { 0 };
    struct reply reply = { &buf, 3 };

    assert_non_null(buf_reserve(&buf, 12));
    reply_flags(&reply, answers, 3);
    EXPECT(&reply, ":1\r\n:0\r\n:1\r\n");
    assert_non_null(buf_reserve(&buf, 12));
    reply_booleans(&reply, answers, 3);
    EXPECT(&reply, "#t\r\n#f\r\n#t\r\n");
    buf_free(&buf);
}

TEST(no_text_can_end_an_error_line)
{
    struct buf buf = { 0 };
    struct reply reply = { &buf, 2 };

    reply_error(&reply, "ERR", slice_lit("syntax error"));
    EXPECT(&reply, "-ERR syntax error\r\n");
    reply_error(&reply, "ERR", (struct slice){ "a\r\n+OK\r\n\0\x7f\xff", 11 });
    EXPECT(&reply, "-ERR a  +OK    \xff\r\n");
    reply_error(&reply, "ERR", slice_lit("a\nb\r\n\n"));
    EXPECT(&reply, "-ERR a b\r\n");
    reply_error(&reply, "", slice_lit("again"));
    EXPECT(&reply, "-again\r\n");
    reply_error(&reply, "ERROR", slice_lit(""));
    EXPECT(&reply, "-ERROR\r\n");
    buf_free(&buf);
}

TEST(a_late_map_counts_pairs_and_in_resp2_elements)
{
    struct buf buf = { 0 };
    struct reply reply = { &buf, 2 };

    reply_map_end(&reply, reply_begin(&reply), 2);
    reply.resp = 3;
    reply_map_end(&reply, reply_begin(&reply), 2);
    EXPECT(&reply, "*4\r\n%2\r\n");
    buf_free(&buf);
}

TEST(a_late_count_is_filled_in_before_its_elements)
{
    struct buf buf = { 0 };
    struct reply reply = { &buf, 2 };
    size_t outer;
    size_t inner;

    reply_ok(&reply);
    outer = reply_begin(&reply);
    reply_int(&reply, 7);
    inner = reply_begin(&reply);
    reply_bulk_text(&reply, "abc");
    reply_array_end(&reply, inner, 1);
    reply_array_end(&reply, outer, 2);
    reply_array_end(&reply, reply_begin(&reply), 1234567);
    EXPECT(&reply, "+OK\r\n*2\r\n:7\r\n*1\r\n$3\r\nabc\r\n*1234567\r\n");
    buf_free(&buf);
}

static void
write_everything(struct reply *reply)
{
    size_t place = reply_begin(reply);

    reply_ok(reply);
    reply_int(reply, 5);
    reply_int(reply, -50);
    reply_array(reply, 100);
    reply_bool(reply, true);
    reply_bulk_text(reply, "0123456789012345678901234567890123456789");
    reply_error(reply, "ERR", slice_lit("0123456789012345678901234567890"));
    reply_simple(reply, "0123456789012345678901234567890123456789");
    reply_verbatim(reply, slice_lit("0123456789012345678901234567890"));
    reply_null(reply);
    reply_double(reply, 0.123456789);
    reply_array_end(reply, place, 11);
}

TEST(a_reply_survives_every_allocation_failure)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct buf buf = { 0 };
        struct reply reply = { &buf, 3 };

        mem_fail_at(nth);
        write_everything(&reply);
        fired = mem_fail_clear();
        assert_int_equal(fired, buf.failed);
        buf_free(&buf);
        assert_true(nth > 2 || fired);
    }
}

/* ---- reading back -------------------------------------------------------- */

static const char *const values[] = {
    "+OK\r\n",
    ":-12\r\n",
    "-ERR no\r\n",
    "_\r\n",
    "#t\r\n",
    ",1.5\r\n",
    "$0\r\n\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "*0\r\n",
    "$6\r\n:1\r\n:2\r\n",
    "=7\r\ntxt:abc\r\n",
    "*3\r\n:1\r\n*2\r\n+a\r\n$-1\r\n*0\r\n",
    "%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n",
    "~2\r\n:1\r\n:2\r\n",
    "|1\r\n+ttl\r\n:1\r\n*1\r\n:2\r\n",
    "*10\r\n:0\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n",
};

enum { VALUES = sizeof(values) / sizeof(values[0]) };

TEST(whole_values_are_told_apart_and_counted)
{
    static const char push[] = ">2\r\n+invalidate\r\n*1\r\n+k\r\n";
    struct buf all = { 0 };
    struct slice left;

    for (int i = 0; i < VALUES; i++) {

        buf_append_slice(&all, slice_of(values[i]));
        buf_append_slice(&all, slice_lit(push));
    }

    left = buf_slice(&all);
    for (int i = 0; i < 2 * VALUES; i++) {
        const char *expected = i % 2 == 0 ? values[i / 2] : push;
        struct slice first = reply_first(left);

        assert_true(slice_equal(slice_of(expected), first));
        assert_int_equal(i % 2, reply_is_push(first));
        left.data += first.len;
        left.len -= first.len;
    }
    assert_int_equal(0, left.len);
    assert_int_equal(0, reply_first(left).len);
    buf_free(&all);
}

TEST(a_part_of_a_value_is_none)
{
    for (int i = 0; i < VALUES; i++) {
        for (size_t len = 0; len < strlen(values[i]); len++) {
            struct slice part = { values[i], len };

            assert_int_equal(0, reply_first(part).len);
        }
    }
}

TEST(what_is_no_reply_is_none)
{
    static const char *const others[] = {
        "\r\n",
        "\n",
        "x1\r\n",
        "$x\r\n",
        "$-2\r\n",
        "*9223372036854775807\r\n",
        "%4611686018427387904\r\n",
        "$9223372036854775807\r\nabc\r\n",
        "$18446744073709551614\r\n",
        "*1\r\n*4611686018427387904\r\n",
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(0, reply_first(slice_of(others[i])).len);
    }
}

/* Short or long, with a gap that fits, is too large, or too small: the bytes
 * are the same, and a long one is not copied where it can be helped. */
TEST(a_body_is_given_with_what_is_before_it)
{
    enum { LONG = 1 << 20 };
    static const size_t sizes[] = { 1, 1000, LONG };
    static const size_t gaps[] = { 0, 3, 4, 9 };

    for (size_t i = 0; i < 12; i++) {
        size_t size = sizes[i / 4];
        size_t gap = gaps[i % 4];
        struct buf buf = { 0 };
        struct buf body = { 0 };
        struct reply reply = { &buf, 2 };
        char *data;

        buf_append(&buf, "*1\r\n", 4);
        data = buf_reserve(&body, gap + size);
        assert_non_null(data);
        memset(data, '.', gap);
        memset(data + gap, 'x', size);
        body.len = gap + size;
        reply_give(&reply, &body, gap);
        assert_null(body.data);
        assert_int_equal(4 + size, buf.len);
        assert_memory_equal("*1\r\nx", buf.data, 5);
        assert_int_equal('x', buf.data[buf.len - 1]);
        assert_true((buf.data == data) == (size == LONG && gap >= 4));
        buf_free(&buf);
    }
}

TEST(a_named_value_follows_its_name)
{
    struct buf buf = { 0 };
    struct reply reply = { &buf, 2 };

    reply_named_int(&reply, "items", 12);
    EXPECT(&reply, "$5\r\nitems\r\n:12\r\n");
    reply_named_double(&reply, "rate", 0.5);
    EXPECT(&reply, "$4\r\nrate\r\n$3\r\n0.5\r\n");
    reply.resp = 3;
    reply_named_double(&reply, "rate", 0.5);
    EXPECT(&reply, "$4\r\nrate\r\n,0.5\r\n");
    buf_free(&buf);
}

TEST(a_given_text_is_a_verbatim_one)
{
    struct buf buf = { 0 };
    struct buf text = { 0 };
    struct reply reply = { &buf, 2 };

    buf_append(&text, "....abc", 7);
    reply_give_verbatim(&reply, &text, 4);
    EXPECT(&reply, "$3\r\nabc\r\n");
    reply.resp = 3;
    buf_append(&text, "abc", 3);
    reply_give_verbatim(&reply, &text, 0);
    EXPECT(&reply, "=7\r\ntxt:abc\r\n");
    buf_free(&buf);
}

TEST(a_given_body_obeys_the_limit)
{
    struct buf buf = { .limit = 1 << 20 };
    struct buf body = { 0 };
    struct reply reply = { &buf, 2 };

    assert_non_null(buf_reserve(&body, (1 << 20) + 1));
    memset(body.data, 'x', (1 << 20) + 1);
    body.len = (1 << 20) + 1;
    reply_give(&reply, &body, 0);
    assert_true(buf.failed && buf.over);
    assert_null(body.data);
    buf_free(&buf);
}
