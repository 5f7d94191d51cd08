/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Growth of a batch and its limits.
 */
#include "../test.h"

#include "base/mem.h"
#include "proto/batch.h"

TEST(commands_are_ranges_of_one_argument_vector)
{
    struct batch batch = { 0 };

    assert_true(batch_reserve(&batch, 5));
    for (size_t i = 0; i < 5; i++) {
        batch.argv[i] = slice_lit("x");
    }
    batch_add(&batch, 2, 0, 10);
    batch_add(&batch, 3, 10, 30);
    assert_int_equal(2, batch.count);
    assert_int_equal(5, batch.argv_count);
    assert_int_equal(2, batch.command[1].first);
    assert_int_equal(3, batch.command[1].argc);
    assert_int_equal(10, batch.command[1].begin);
    assert_int_equal(30, batch.command[1].end);
    batch_clear(&batch);
    assert_int_equal(0, batch.count);
    assert_int_equal(0, batch.argv_count);
    assert_true(batch.argv_capacity >= 5);
    batch_fini(&batch);
}

TEST(growth_keeps_what_is_there)
{
    struct batch batch = { 0 };

    assert_true(batch_reserve(&batch, 1));
    batch.argv[0] = slice_lit("first");
    batch_add(&batch, 1, 0, 1);
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
    batch_add(&batch, 1, 0, 1);
    mem_fail_at(1);
    assert_false(batch_reserve(&batch, 10000));
    assert_true(mem_fail_clear());
    assert_int_equal(1, batch.argv_count);
    assert_false(batch_reserve(&batch, SIZE_MAX));
    assert_false(batch_reserve(&batch, (size_t)UINT32_MAX + 1));
    batch_fini(&batch);
}
