/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Literals, copies that overlap, long copies, and damage of every kind.
 */
#include "core/lzf.h"

#include "base/mem.h"

#include "../test.h"

TEST(literals_and_copies_are_unpacked)
{
    static const struct {
        struct slice packed;
        const char *text;
    } cases[] = {
        { { "", 0 }, "" },
        { { "\x02xyz", 4 }, "xyz" },
        { { "\x00z\x20\x00", 4 }, "zzzz" },
        { { "\x02xyz\x40\x02", 6 }, "xyzxyzx" },
        { { "\x00z\xe0\x03\x00", 5 }, "zzzzzzzzzzzzz" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char out[32];
        size_t len = strlen(cases[i].text);

        assert_true(lzf_unpack(cases[i].packed, out, len));
        assert_memory_equal(out, cases[i].text, len);
        assert_false(lzf_unpack(cases[i].packed, out, len + 1));
        assert_false(len > 0 && lzf_unpack(cases[i].packed, out, len - 1));
        for (size_t some = 0; some <= len; some++) {
            assert_true(lzf_unpack_start(cases[i].packed, out, some));
            assert_memory_equal(cases[i].text, out, some);
        }
    }
}

TEST(pieces_unpack_to_the_same)
{
    static const struct slice packed = { "\x02xyz\x40\x02\xe0\x10\x00", 9 };
    char whole[32];
    char out[32];

    assert_true(lzf_unpack(packed, whole, sizeof(whole)));
    for (size_t bytes = 1; bytes < sizeof(out); bytes++) {
        struct lzf lzf = { 0 };

        while (lzf.at < packed.len) {
            size_t before = lzf.done;

            assert_true(lzf_unpack_piece(&lzf, packed, out, sizeof(out),
                                         lzf.done + bytes));
            assert_true(lzf.done > before);
        }
        assert_int_equal(sizeof(out), lzf.done);
        assert_memory_equal(whole, out, sizeof(out));
    }
}

/* Zeros as literals, as a copy of one, and as a copy of some before. */
TEST(zeros_are_not_written_where_they_are_already)
{
    static const struct slice packed = {
        "\x00\x61\x01\x00\x00\xe0\x01\x00\x00\x62\x20\x0b", 12
    };
    char text[17] = { 0 };
    char out[sizeof(text)];
    struct lzf lzf = { .zeroed = true };

    text[0] = 'a';
    text[13] = 'b';
    memset(out, 0x55, sizeof(out));
    assert_true(lzf_unpack_piece(&lzf, packed, out, sizeof(out), SIZE_MAX));
    assert_int_equal(sizeof(out), lzf.done);
    assert_int_equal('a', out[0]);
    for (size_t i = 1; i <= 12; i++) {
        assert_int_equal(0x55, out[i]);
    }
    assert_int_equal('b', out[13]);

    for (int zeroed = 0; zeroed <= 1; zeroed++) {
        memset(out, zeroed ? 0 : 0x55, sizeof(out));
        lzf = (struct lzf){ .zeroed = zeroed };
        assert_true(lzf_unpack_piece(&lzf, packed, out, sizeof(out), SIZE_MAX));
        assert_memory_equal(text, out, sizeof(out));
    }
}

TEST(no_bytes_unpack_to_no_bytes)
{
    const struct slice none = { NULL, 0 };
    char out[1];

    assert_true(lzf_unpack(none, out, 0));
    assert_false(lzf_unpack(none, out, 1));
}

TEST(damage_is_refused)
{
    static const struct slice cases[] = {
        { "\x01x", 2 },             /* fewer literals than announced */
        { "\x20\x00", 2 },          /* a copy from before the beginning */
        { "\x00z\x20\x01", 4 },     /* the same, by one byte */
        { "\x00z\x20", 3 },         /* no distance */
        { "\x00z\xe0", 3 },         /* no length */
        { "\x00z\xe0\xff", 4 },     /* no distance after the length */
        { "\x00z\xe0\xff\x00", 5 }, /* longer than the space */
    };
    char out[100];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t len = 0; len <= sizeof(out); len++) {
            assert_false(lzf_unpack(cases[i], out, len));
        }
    }
}

/* With a sanitizer: nothing outside of the blocks is touched. */
TEST(random_bytes_unpack_or_fail)
{
    uint64_t random = test_seed();

    for (int round = 0; round < 20000; round++) {
        size_t in_len = (size_t)test_random_below(&random, 40);
        size_t out_len = (size_t)test_random_below(&random, 200);
        char *in = mem_alloc(in_len + 1);
        char *out = mem_alloc(out_len + 1);

        for (size_t i = 0; i < in_len; i++) {
            in[i] = (char)test_random(&random);
        }
        (void)lzf_unpack((struct slice){ in, in_len }, out, out_len);
        mem_free(in);
        mem_free(out);
    }
}
