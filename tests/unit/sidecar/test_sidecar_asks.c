/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Questions to other daemons as they go out, and what is made of each reply.
 */
#include "sidecar/sidecar_asks.h"

#include "../test.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#define OWN     "0123456789abcdef0123456789abcdef01234567"
#define HISTORY "89abcdef0123456789abcdef0123456789abcdef"

static void
expect_ask(const struct sidecar_ask *ask, const char *text)
{
    struct buf out = { 0 };

    sidecar_asks_write(&out, ask, OWN);
    buf_append(&out, "", 1);
    assert_false(out.failed);
    assert_string_equal(text, out.data);
    buf_free(&out);
}

TEST(questions_are_commands_of_sidecar)
{
    struct slot_set set = { { 0 } };
    struct sidecar_ask ask = { .question = SIDECAR_ASK_HOLDINGS };

    expect_ask(&ask, "*2\r\n$7\r\nSIDECAR\r\n$8\r\nHOLDINGS\r\n");
    ask.seen = UINT64_MAX;
    expect_ask(&ask, "*3\r\n$7\r\nSIDECAR\r\n$8\r\nHOLDINGS\r\n"
                     "$20\r\n18446744073709551615\r\n");
    for (unsigned slot = 5; slot <= 7; slot++) {
        slot_set_add(&set, slot);
    }
    ask = (struct sidecar_ask){ .question = SIDECAR_ASK_FENCE_EMPTY,
                                .set = &set,
                                .epoch = 12,
                                .known = 3 };
    expect_ask(&ask, "*8\r\n$7\r\nSIDECAR\r\n$5\r\nFENCE\r\n$5\r\nempty\r\n"
                     "$40\r\n" OWN "\r\n$2\r\n12\r\n$5\r\nowner\r\n$1\r\n3\r\n"
                     "$3\r\n5-7\r\n");
    ask.question = SIDECAR_ASK_HAND_OFF;
    ask.surveyed = true;
    expect_ask(&ask, "*8\r\n$7\r\nSIDECAR\r\n$5\r\nFENCE\r\n$7\r\nhandoff\r\n"
                     "$40\r\n" OWN "\r\n$2\r\n12\r\n$8\r\nsurveyed\r\n"
                     "$1\r\n3\r\n$3\r\n5-7\r\n");
}

/* A reply that was read; the reader lends its values. */
struct read {
    struct answers *answers;
    struct holdings *holdings;
    struct slot_set granted;
    char reason[64];
    struct sidecar_answer answer;
};

static void
begin_read(struct read *read, struct slice text)
{
    struct answer reply;

    *read = (struct read){ .answers = answers_new(1 << 20),
                           .holdings = mem_zalloc(sizeof(struct holdings)) };
    answers_feed(read->answers, text);
    assert_int_equal(ANSWERS_ONE, answers_next(read->answers, &reply));
    read->answer = sidecar_asks_read(&reply, read->holdings, &read->granted,
                                     read->reason, sizeof(read->reason));
}

static void
end_read(struct read *read)
{
    answers_free(read->answers);
    mem_free(read->holdings);
}

static void
expect_kind(const char *text, enum sidecar_answer_kind kind, const char *reason)
{
    struct read read;

    begin_read(&read, slice_of(text));
    assert_int_equal(kind, read.answer.kind);
    if (reason != NULL) {
        assert_string_equal(reason, read.answer.reason);
    }
    end_read(&read);
}

/* Only a server that has looked at the question refuses it. */
TEST(an_error_refuses_only_if_it_is_about_the_question)
{
    expect_kind("-ERR it holds none of them\r\n", SIDECAR_REFUSED,
                "ERR it holds none of them");
    expect_kind("-LOADING it is loading\r\n", SIDECAR_SILENT,
                "LOADING it is loading");
    expect_kind("-ERRONEOUS\r\n", SIDECAR_SILENT, NULL);
}

TEST(replies_that_make_no_sense_count_as_silence)
{
    static const char *const replies[] = {
        "+OK\r\n",
        ":7\r\n",
        "$-1\r\n",
        "*0\r\n",
        "*1\r\n:4\r\n",
        "*1\r\n$6\r\nfenced\r\n",
        /* A position below zero, a history that is too short, no checksum. */
        "*3\r\n$40\r\n" HISTORY "\r\n:-1\r\n$0\r\n\r\n",
        "*3\r\n$4\r\nabcd\r\n:1\r\n$0\r\n\r\n",
        "*3\r\n$40\r\n" HISTORY "\r\n:1\r\n$4\r\nabcd\r\n",
        "*3\r\n$40\r\n" HISTORY "\r\n$1\r\n1\r\n$0\r\n\r\n",
        /* Slots that do not exist. */
        "*4\r\n$6\r\nfenced\r\n$40\r\n" HISTORY "\r\n:1\r\n$7\r\n16384-x\r\n",
        "*4\r\n$6\r\nfended\r\n$40\r\n" HISTORY "\r\n:1\r\n$1\r\n5\r\n",
    };

    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        expect_kind(replies[i], SIDECAR_SILENT, "its reply makes no sense");
    }
}

TEST(a_fence_grants_slots_at_a_place)
{
    struct read read;

    begin_read(&read, slice_of("*4\r\n$6\r\nfenced\r\n$40\r\n" HISTORY
                               "\r\n:123\r\n$5\r\n5-6 9\r\n"));
    assert_int_equal(SIDECAR_FENCED, read.answer.kind);
    assert_string_equal(HISTORY, read.answer.history);
    assert_int_equal(123, read.answer.position);
    assert_int_equal(3, slot_set_count(read.answer.granted));
    assert_true(slot_set_has(read.answer.granted, 6));
    assert_false(slot_set_has(read.answer.granted, 7));
    end_read(&read);
    expect_kind("*1\r\n$4\r\nkeys\r\n", SIDECAR_HAS_KEYS, NULL);
}

TEST(holdings_come_whole_or_are_the_same)
{
    struct holdings *sent = mem_zalloc(sizeof(*sent));
    struct buf text = { 0 }, reply = { 0 };
    struct read read;

    sent->held[100] = sent->known[100] = 8;
    holdings_write(sent, &text);
    buf_printf(&reply, "*3\r\n$40\r\n" HISTORY "\r\n:5\r\n$%zu\r\n", text.len);
    buf_append_slice(&reply, buf_slice(&text));
    buf_append(&reply, "\r\n", 2);
    begin_read(&read, buf_slice(&reply));
    assert_int_equal(SIDECAR_HOLDS, read.answer.kind);
    assert_int_equal(5, read.answer.position);
    assert_int_equal(8, read.answer.holdings->held[100]);
    assert_int_equal(0, read.answer.holdings->held[101]);
    assert_true(read.answer.version == holdings_version(buf_slice(&text)));
    end_read(&read);
    expect_kind("*3\r\n$40\r\n" HISTORY "\r\n:5\r\n$0\r\n\r\n", SIDECAR_SAME,
                NULL);
    buf_free(&text);
    buf_free(&reply);
    mem_free(sent);
}
