/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Growth of a batch and its limits.
 */
#include "../test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "proto/batch.h"

TEST(commands_are_ranges_of_one_argument_vector)
{
    struct batch batch = { 0 };

    assert_true(batch_reserve(&batch, 5));
    for (size_t i = 0; i < 5; i++) {
        batch.argv[i] = slice_lit("x");
    }
    batch_add(&batch, 2, 0);
    batch_add(&batch, 3, 10);
    assert_int_equal(2, batch.count);
    assert_int_equal(5, batch.argv_count);
    assert_int_equal(2, batch.command[1].first);
    assert_int_equal(3, batch.command[1].argc);
    assert_int_equal(10, batch.command[1].begin);
    batch_clear(&batch);
    assert_int_equal(0, batch.count);
    assert_int_equal(0, batch.argv_count);
    assert_true(batch.argv_capacity >= 5);
    batch_fini(&batch);
}

/* Numbers of one digit and of more, as they stand around what they count. */
TEST(the_resp_of_a_command_is_found_around_its_arguments)
{
    static const size_t lengths[] = { 0, 1, 9, 10, 99, 100, 12345 };
    static const size_t counts[] = { 1, 2, 9, 10, 99, 100, 1000 };

    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
            struct buf text = { 0 };
            struct slice argv[1000];
            size_t offset[1000];
            struct slice resp;

            buf_printf(&text, "before\r\n*%zu\r\n", counts[c]);
            for (size_t i = 0; i < counts[c]; i++) {
                size_t len = i == 0 ? lengths[l] : i % 20;

                buf_printf(&text, "$%zu\r\n", len);
                offset[i] = text.len;
                argv[i].len = len;
                for (size_t k = 0; k < len; k++) {
                    buf_append(&text, "x", 1);
                }
                buf_printf(&text, "\r\n");
            }
            for (size_t i = 0; i < counts[c]; i++) {
                argv[i].data = text.data + offset[i];
            }
            resp = batch_resp(argv, counts[c]);
            assert_ptr_equal(text.data + 8, resp.data);
            assert_int_equal(text.len - 8, resp.len);
            buf_free(&text);
        }
    }
}

TEST(growth_keeps_what_is_there)
{
    struct batch batch = { 0 };

    assert_true(batch_reserve(&batch, 1));
    batch.argv[0] = slice_lit("first");
    batch_add(&batch, 1, 0);
    assert_true(batch_reserve(&batch, 10000));
    assert_true(batch.argv_capacity - batch.argv_count >= 10000);
    assert_true(slice_equal(batch.argv[0], slice_lit("first")));
    batch_fini(&batch);
    assert_int_equal(0, batch.argv_capacity);
}

TEST(a_huge_vector_is_given_back)
{
    struct batch batch = { 0 };
    uint64_t before = mem_used();

    assert_true(batch_reserve(&batch, 1000000));
    batch_clear(&batch);
    assert_int_equal(before, mem_used());
    batch_fini(&batch);
}

TEST(growth_fails_cleanly)
{
    struct batch batch = { 0 };

    assert_true(batch_reserve(&batch, 1));
    batch_add(&batch, 1, 0);
    mem_fail_at(1);
    assert_false(batch_reserve(&batch, 10000));
    assert_true(mem_fail_clear());
    assert_int_equal(1, batch.argv_count);
    assert_false(batch_reserve(&batch, SIZE_MAX));
    assert_false(batch_reserve(&batch, (size_t)UINT32_MAX + 1));
    batch_fini(&batch);
}

TEST(a_borrowed_vector_is_the_lender_s_again_when_the_batch_is_emptied)
{
    struct slice words[] = { slice_lit("a"), slice_lit("b") };
    struct batch batch = { 0 };

    assert_true(batch_reserve(&batch, 1));
    for (int i = 0; i < 2; i++) {
        struct slice *own = batch.argv;

        batch_borrow(&batch, words, 2);
        batch_add(&batch, 2, 0);
        assert_ptr_equal(words, batch.argv);
        assert_int_equal(2, batch.command[0].argc);
        batch_clear(&batch);
        assert_ptr_equal(own, batch.argv);
        batch_fini(&batch); /* and once more without one of its own */
    }
    batch_borrow(&batch, words, 2);
    batch_fini(&batch);
    assert_null(batch.argv);
}
