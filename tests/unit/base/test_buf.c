/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A buffer against a plain array, and what is left of it when memory is not
 * to be had.
 */
#include "base/buf.h"

#include "../test.h"
#include "base/mem.h"

TEST(an_empty_buffer_is_zero_and_takes_nothing)
{
    uint64_t used = mem_used();
    struct buf buf = { 0 };

    buf_append(&buf, "", 0);
    buf_append_slice(&buf, (struct slice){ NULL, 0 });
    buf_consume(&buf, 0);
    buf_reset(&buf, 0);
    assert_int_equal(0, buf_slice(&buf).len);
    assert_false(buf.failed);
    assert_int_equal(used, mem_used());
    buf_free(&buf);
}

TEST(random_appends_and_consumes_match_an_array)
{
    enum { MODEL_BYTES = 100000 };
    uint64_t random = test_seed();
    char *model = mem_alloc(MODEL_BYTES);
    size_t len = 0;
    struct buf buf = { 0 };

    for (int i = 0; i < 20000; i++) {
        char piece[300];
        size_t n = test_random(&random) % sizeof(piece);

        memset(piece, (char)('a' + i % 26), n);
        if (test_random(&random) % 3 == 0 || len + n > MODEL_BYTES) {
            n = test_random(&random) % (len + 1);
            buf_consume(&buf, n);
            memmove(model, model + n, len - n);
            len -= n;
        } else {
            buf_append(&buf, piece, n);
            memcpy(model + len, piece, n);
            len += n;
        }
        assert_int_equal(len, buf.len);
        assert_true(buf.capacity >= buf.len);
        if (i % 64 == 0 && len > 0) {
            assert_memory_equal(model, buf.data, len);
        }
    }
    buf_free(&buf);
    mem_free(model);
}

TEST(reserved_room_is_behind_the_bytes_and_counts_when_used)
{
    struct buf buf = { 0 };
    char *room;

    buf_append(&buf, "head", 4);
    room = buf_reserve(&buf, 1000);
    assert_non_null(room);
    assert_ptr_equal(buf.data + 4, room);
    memcpy(room, "tail", 4);
    assert_int_equal(4, buf.len);
    buf.len += 4;
    assert_true(slice_equal(slice_lit("headtail"), buf_slice(&buf)));
    buf_free(&buf);
}

TEST(printf_fits_at_every_fill)
{
    for (size_t fill = 0; fill < 130; fill++) {
        struct buf buf = { 0 };

        for (size_t i = 0; i < fill; i++) {
            buf_append(&buf, "x", 1);
        }
        buf_printf(&buf, "%s=%d", "number", 42);
        assert_int_equal(fill + 9, buf.len);
        assert_memory_equal("number=42", buf.data + fill, 9);
        buf_free(&buf);
    }
}

TEST(an_append_that_cannot_grow_fails_and_appends_nothing)
{
    struct buf buf = { 0 };
    char large[500];

    memset(large, 'y', sizeof(large));
    buf_append(&buf, "kept", 4);
    mem_fail_at(1);
    buf_append(&buf, large, sizeof(large));
    assert_true(mem_fail_clear());
    assert_true(buf.failed);
    assert_true(slice_equal(slice_lit("kept"), buf_slice(&buf)));
    buf_append(&buf, large, sizeof(large)); /* there is memory, but a gap */
    assert_true(buf.failed);
    assert_int_equal(4, buf.len);
    buf_reset(&buf, SIZE_MAX);
    assert_false(buf.failed);
    buf_append(&buf, large, sizeof(large));
    assert_int_equal(sizeof(large), buf.len);
    buf_free(&buf);
}

TEST(a_printf_that_cannot_grow_fails)
{
    struct buf buf = { 0 };

    mem_fail_at(1);
    buf_printf(&buf, "%d", 1);
    assert_true(mem_fail_clear());
    assert_true(buf.failed);
    assert_int_equal(0, buf.len);
    buf_free(&buf);
}

TEST(a_size_beyond_the_address_space_fails)
{
    static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 4, SIZE_MAX / 2 + 1 };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct buf buf = { 0 };

        buf_append(&buf, "12345", 5);
        assert_null(buf_reserve(&buf, sizes[i]));
        assert_true(buf.failed);
        assert_int_equal(5, buf.len);
        buf_free(&buf);
    }
}

TEST(growing_above_the_limit_fails_and_says_so)
{
    struct buf buf = { .limit = 100 };
    char bytes[200] = "";

    buf_append(&buf, bytes, 100); /* the limit itself is fine */
    assert_false(buf.failed || buf.over);
    buf_append(&buf, bytes, 100);
    assert_true(buf.failed && buf.over);
    assert_int_equal(100, buf.len);
    buf_reset(&buf, 0);
    assert_false(buf.failed || buf.over);
    buf_append(&buf, bytes, 101);
    assert_true(buf.over); /* the limit stays with the buffer */
    buf_free(&buf);
    mem_fail_at(1);
    buf_append(&buf, bytes, 10);
    assert_true(mem_fail_clear());
    assert_true(buf.failed);
    assert_false(buf.over); /* that was memory */
    buf_free(&buf);
}

/* A long buffer has little more than it needs, however it came to its size. */
TEST(a_long_buffer_grows_by_an_eighth)
{
    enum { PIECE = 300000, LONG = 2 << 20 };
    static char piece[PIECE];
    struct buf buf = { 0 };

    for (int i = 0; i < 60; i++) {
        memset(piece, i, PIECE);
        buf_append(&buf, piece, PIECE);
        assert_false(buf.failed);
        assert_true(buf.capacity <= LONG ||
                    buf.capacity <= buf.len + buf.len / 8);
    }
    for (int i = 0; i < 60; i++) {
        assert_int_equal(i, buf.data[(size_t)i * PIECE]);
        assert_int_equal(i, buf.data[(size_t)(i + 1) * PIECE - 1]);
    }
    buf_free(&buf);
}

TEST(a_reset_gives_back_only_what_is_above_the_mark)
{
    struct buf buf = { 0 };
    size_t capacity;

    assert_non_null(buf_reserve(&buf, 1000));
    capacity = buf.capacity;
    buf_reset(&buf, capacity);
    assert_int_equal(capacity, buf.capacity);
    buf_reset(&buf, capacity - 1);
    assert_int_equal(0, buf.capacity);
    assert_null(buf.data);
    buf_free(&buf);
}

TEST(exchanged_buffers_keep_their_limits)
{
    struct buf a = { .limit = 10 };
    struct buf b = { 0 };

    buf_append(&a, "a", 1);
    buf_append(&b, "bb", 2);
    buf_exchange(&a, &b);
    assert_true(slice_equal(buf_slice(&a), slice_lit("bb")));
    assert_true(slice_equal(buf_slice(&b), slice_lit("a")));
    assert_int_equal(10, a.limit);
    assert_int_equal(0, b.limit);
    buf_free(&a);
    buf_free(&b);
}

TEST(items_come_back_as_they_went_in)
{
    struct buf buf = { 0 };
    struct slice item;
    size_t at = 0;

    assert_false(buf_next_item(&buf, &at, &item));
    buf_append_item(&buf, slice_lit("abc"));
    buf_append_item(&buf, slice_lit(""));
    buf_append_item(&buf, slice_lit("\0x"));
    assert_true(buf_next_item(&buf, &at, &item));
    assert_true(slice_equal(item, slice_lit("abc")));
    assert_true(buf_next_item(&buf, &at, &item));
    assert_int_equal(0, item.len);
    assert_true(buf_next_item(&buf, &at, &item));
    assert_true(slice_equal(item, slice_lit("\0x")));
    assert_false(buf_next_item(&buf, &at, &item));
    buf_free(&buf);
    buf = (struct buf){ .limit = 10 };
    buf_append_item(&buf, slice_lit("0123456789"));
    assert_true(buf.failed);
    assert_int_equal(0, buf.len);
    buf_free(&buf);
}

TEST(bytes_are_escaped_as_redis_cli_shows_them)
{
    struct buf buf = { 0 };

    buf_append_escaped(&buf, slice_lit("a~ \n\r\t\a\b\"\\\0\x7f\xff"));
    assert_true(
        slice_equal(buf_slice(&buf),
                    slice_lit("a~ \\n\\r\\t\\a\\b\\\"\\\\\\x00\\x7f\\xff")));
    buf_free(&buf);
}
