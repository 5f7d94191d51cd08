/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/local_frame.h"

#include "../test.h"
#include "base/buf.h"
#include "proto/reply.h"

/* Reads a push of these words; the last one is NULL. */
static bool
read_frame(const char *const *words, struct local_frame *ret_frame)
{
    static struct buf push;
    struct reply reply = { &push, 3 };
    size_t count = 0;

    while (words[count] != NULL) {
        count++;
    }
    buf_free(&push);
    buf_printf(&push, ">%zu\r\n", count);
    for (size_t i = 0; i < count; i++) {
        reply_bulk_text(&reply, words[i]);
    }
    return local_frame_read(buf_slice(&push), slice_lit("k"), ret_frame);
}

#define READ(frame, ...)                                                       \
    read_frame((const char *const[]){ __VA_ARGS__, NULL }, frame)

TEST(an_answer_names_the_filter_and_the_clock)
{
    struct local_frame frame;

    assert_true(READ(&frame, "bf.message", "k", "is", "1",
                     "18446744073709551615", "10", "2", "1700000000000"));
    assert_int_equal(frame.kind, LOCAL_FRAME_IS);
    assert_false(frame.missing);
    assert_true(frame.incarnation == UINT64_MAX);
    assert_true(frame.ms == UINT64_C(1700000000000));
}

TEST(an_answer_says_that_the_key_is_missing)
{
    struct local_frame frame;

    assert_true(READ(&frame, "bf.message", "k", "is", "1", "missing"));
    assert_int_equal(frame.kind, LOCAL_FRAME_IS);
    assert_true(frame.missing);
}

TEST(pairs_are_whole)
{
    struct local_frame frame;

    assert_true(
        READ(&frame, "bf.message", "k", "add", "0123456789abcdef", "17"));
    assert_int_equal(frame.kind, LOCAL_FRAME_ADD);
    assert_true(slice_equal(frame.pairs, slice_lit("0123456789abcdef")));
    assert_int_equal(frame.ms, 17);
    assert_true(READ(&frame, "bf.message", "k", "add", "0123456789abcdef"));
    assert_int_equal(frame.kind, LOCAL_FRAME_ADD);
    assert_int_equal(frame.ms, 0);
}

TEST(deletions_are_counted)
{
    struct local_frame frame;

    assert_true(READ(&frame, "bf.message", "k", "deleted", "3"));
    assert_int_equal(frame.kind, LOCAL_FRAME_DELETED);
    assert_int_equal(frame.count, 3);
}

TEST(what_is_not_understood_is_a_change)
{
    static const char *const frames[][10] = {
        { "bf.message", "k", "gone" },
        { "bf.message", "k", "changed" },
        { "bf.message", "k", "else" },
        { "bf.message", "k" },
        { "bf.message", "k", "is" },
        { "bf.message", "k", "is", "2", "missing" },
        { "bf.message", "k", "is", "1", "lost" },
        { "bf.message", "k", "is", "1", "0", "1", "1", "1" },
        { "bf.message", "k", "is", "1", "7", "x", "1", "1" },
        { "bf.message", "k", "is", "1", "7", "1", "1", "1", "1" },
        { "bf.message", "k", "add" },
        { "bf.message", "k", "add", "" },
        { "bf.message", "k", "add", "0123456789abcde" },
        { "bf.message", "k", "add", "0123456789abcdef", "0" },
        { "bf.message", "k", "add", "0123456789abcdef", "1", "2" },
        { "bf.message", "k", "deleted" },
        { "bf.message", "k", "deleted", "-1" },
    };

    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        struct local_frame frame;

        assert_true(read_frame(frames[i], &frame));
        assert_int_equal(frame.kind, LOCAL_FRAME_CHANGED);
    }
}

TEST(pushes_of_other_kinds_and_keys_are_none)
{
    struct local_frame frame;

    assert_false(READ(&frame, "bf.message", "other", "gone"));
    assert_false(READ(&frame, "bf.message"));
    assert_false(READ(&frame, "bf.unsubscribe", "k", "0"));
    assert_false(local_frame_read(slice_lit(">0\r\n"), slice_lit("k"), &frame));
}
