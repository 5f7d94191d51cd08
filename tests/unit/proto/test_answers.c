/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies whole and byte by byte, and those that are refused.
 */
#include "proto/answers.h"

#include "../test.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* Appends a value as text: T'..', E'..', I.., N, L<count>. */
static void
show(struct buf *out, const struct answer *answer)
{
    for (size_t i = 0; i < answer->count; i++) {
        const struct answer_value *value = &answer->values[i];

        switch (value->type) {
        case ANSWER_TEXT:
        case ANSWER_ERROR:
            buf_printf(out, "%c'%.*s'", value->type == ANSWER_TEXT ? 'T' : 'E',
                       (int)value->text.len, value->text.data);
            break;
        case ANSWER_INTEGER:
            buf_printf(out, "I%lld", (long long)value->integer);
            break;
        case ANSWER_NULL:
            buf_printf(out, "N");
            break;
        case ANSWER_LIST:
            buf_printf(out, "L%zu", value->count);
            break;
        }
    }
    buf_printf(out, ";");
}

/* Reads `bytes` in pieces of `step` and shows all replies. */
static void
expect(const char *bytes, size_t step, const char *shown)
{
    struct answers *answers = answers_new(1 << 20);
    struct buf out = { 0 };
    size_t len = strlen(bytes);
    struct answer answer;

    for (size_t at = 0; at < len; at += step) {
        size_t left = len - at;

        answers_feed(answers,
                     (struct slice){ bytes + at, left < step ? left : step });
        while (answers_next(answers, &answer) == ANSWERS_ONE) {
            show(&out, &answer);
        }
    }
    assert_int_equal(out.len, strlen(shown));
    assert_memory_equal(out.data, shown, out.len);
    buf_free(&out);
    answers_free(answers);
}

TEST(replies_are_read_whole_and_in_pieces)
{
    static const char bytes[] =
        "+OK\r\n+QUEUED\r\n-ERR no\r\n:-7\r\n$-1\r\n*-1\r\n*0\r\n"
        "*3\r\n$6\r\nab\r\ncd\r\n$0\r\n\r\n*2\r\n:1\r\n-EXECABORT x\r\n"
        "$5\r\nhello\r\n";

    for (size_t step = 1; step <= sizeof(bytes); step++) {
        expect(bytes, step,
               "T'OK';T'QUEUED';E'ERR no';I-7;N;N;L0;"
               "L3T'ab\r\ncd'T''L2I1E'EXECABORT x';T'hello';");
    }
}

static void
expect_bad(const char *bytes, const char *reason)
{
    struct answers *answers = answers_new(100);
    struct answer answer;

    answers_feed(answers, slice_of(bytes));
    assert_int_equal(answers_next(answers, &answer), ANSWERS_BAD);
    if (strstr(answers_reason(answers), reason) == NULL) {
        fail_msg("%s", answers_reason(answers));
    }
    answers_feed(answers, slice_lit("+OK\r\n"));
    assert_int_equal(answers_next(answers, &answer), ANSWERS_BAD);
    answers_free(answers);
}

TEST(malformed_and_excessive_replies_are_refused)
{
    char text[200];

    expect_bad("hello\r\n", "Protocol error");
    expect_bad("*1025\r\n", "");
    expect_bad("*99999999\r\n", "");
    expect_bad("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"
               "*1\r\n*1\r\n",
               "nested");
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    memcpy(text, "$5000\r\n", 7);
    expect_bad(text, "too long");
    memcpy(text, "+     \n", 7);
    expect_bad(text, "too long");
}

TEST(a_list_of_too_many_values_in_all_is_refused)
{
    struct answers *answers = answers_new(1 << 20);
    struct answer answer;
    struct buf bytes = { 0 };

    buf_printf(&bytes, "*3\r\n");
    for (int i = 0; i < 3; i++) {
        buf_printf(&bytes, "*400\r\n");
        for (int j = 0; j < 400; j++) {
            buf_printf(&bytes, ":1\r\n");
        }
    }
    answers_feed(answers, buf_slice(&bytes));
    assert_int_equal(answers_next(answers, &answer), ANSWERS_BAD);
    assert_string_equal(answers_reason(answers), "a reply has too many values");
    buf_free(&bytes);
    answers_free(answers);
    answers_free(NULL);
}

TEST(a_large_reply_within_the_limit_is_read)
{
    enum { BYTES = 300 * 1024 };
    struct answers *answers = answers_new(BYTES + 32);
    char *text = mem_zalloc(BYTES);
    struct answer answer;

    for (int round = 0; round < 3; round++) {
        answers_feed(answers, slice_lit("*1\r\n$307200\r\n"));
        for (size_t at = 0; at < BYTES; at += 1024) {
            assert_int_equal(answers_next(answers, &answer), ANSWERS_MORE);
            answers_feed(answers, (struct slice){ text + at, 1024 });
        }
        answers_feed(answers, slice_lit("\r\n+OK\r\n"));
        assert_int_equal(answers_next(answers, &answer), ANSWERS_ONE);
        assert_int_equal(answer.values[1].text.len, BYTES);
        assert_int_equal(answers_next(answers, &answer), ANSWERS_ONE);
        assert_int_equal(answer.count, 1);
        assert_int_equal(answers_next(answers, &answer), ANSWERS_MORE);
    }
    mem_free(text);
    answers_free(answers);
}
