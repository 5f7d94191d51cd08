/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks of the reserve never overlap, all of it can be used again, and what
 * has to stay free stays free.
 */
#include "base/reserve.h"

#include "reserve_help.h"

#include <stdlib.h>
#include <string.h>

TEST(a_program_that_opens_none_has_none)
{
    int here;

    assert_null(reserve_take(1, 0));
    assert_false(reserve_owns(&here));
    assert_false(reserve_owns(NULL));
    assert_int_equal(0, reserve_used());
}

TEST(blocks_are_aligned_and_know_their_size)
{
    char *block;

    assert_int_equal(0, reserve_free());
    assert_true(reserve_open());
    assert_int_equal(RESERVE_BYTES, reserve_free());
    block = reserve_take(1000, 0);
    assert_non_null(block);
    assert_true(reserve_owns(block));
    assert_true(reserve_owns(block + 999));
    assert_int_equal(0, (uintptr_t)block % RESERVE_UNIT_BYTES);
    assert_int_equal(1024, reserve_block_bytes(block));
    assert_int_equal(1024, reserve_used());
    assert_int_equal(RESERVE_BYTES - 1024, reserve_free());
    reserve_give(block);
    assert_int_equal(0, reserve_used());
    assert_int_equal(1024, reserve_peak());
    assert_int_equal(1, reserve_asked());
    reserve_close();
}

TEST(the_requested_rest_of_the_reserve_is_left)
{
    void *half;

    assert_true(reserve_open());
    assert_null(reserve_take(RESERVE_BYTES + 1, 0));
    assert_null(reserve_take(SIZE_MAX, 0));
    half = reserve_take(RESERVE_BYTES / 2, RESERVE_BYTES / 2);
    assert_non_null(half);
    assert_null(reserve_take(1, RESERVE_BYTES / 2));
    assert_non_null(reserve_take(RESERVE_BYTES / 2, 0));
    assert_null(reserve_take(1, 0));
    reserve_give(half);
    reserve_give((char *)half + RESERVE_BYTES / 2);
    reserve_close();
}

enum { BLOCKS = 300, STEPS = 20000 };

struct block {
    unsigned char *at;
    size_t bytes;
    unsigned char mark;
};

static void
check_block(const struct block *block)
{
    for (size_t i = 0; i < block->bytes; i++) {
        assert_int_equal(block->mark, block->at[i]);
    }
}

TEST(random_blocks_do_not_overlap_and_all_is_joined_again)
{
    struct block blocks[BLOCKS] = { 0 };
    uint64_t random = test_seed();
    void *all;

    assert_true(reserve_open());
    for (int i = 0; i < STEPS; i++) {
        struct block *block;

        random = random * 6364136223846793005U + 1442695040888963407U;
        block = &blocks[(random >> 33) % BLOCKS];
        if (block->at != NULL) {
            check_block(block);
            reserve_give(block->at);
            block->at = NULL;
            continue;
        }
        block->bytes = 1 + (random >> 40) % 40000;
        block->mark = (unsigned char)(random >> 24);
        block->at = reserve_take(block->bytes, 0);
        if (block->at != NULL) {
            memset(block->at, block->mark, block->bytes);
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i].at != NULL) {
            check_block(&blocks[i]);
            reserve_give(blocks[i].at);
        }
    }
    all = reserve_take(RESERVE_BYTES, 0);
    assert_non_null(all);
    reserve_give(all);
    reserve_close();
}
