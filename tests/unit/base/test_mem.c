/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory is counted to the byte, lines are zeroed and aligned, what cannot be
 * had is refused without a trace, and faults come where a test asked for them.
 */
#include "base/mem.h"

#include "../test.h"
#include "base/huge.h"
#include "base/machine.h"
#include "base/metrics.h"
#include "reserve_help.h"

#include <pthread.h>
#include <stdio.h>

enum { MIB = 1024 * 1024 };

TEST(every_block_is_counted_and_given_back)
{
    uint64_t before = mem_used();
    void *a = mem_alloc(1000);
    void *b = mem_zalloc(0);
    void *c = mem_try_alloc(5000);
    void *d = mem_try_zalloc(70);

    assert_non_null(c);
    assert_non_null(d);
    assert_in_range(mem_used() - before, 1000 + 5000 + 70, 16384);
    mem_free(a);
    mem_free(b);
    mem_free(c);
    mem_free(d);
    mem_free(NULL);
    assert_int_equal(before, mem_used());
}

TEST(zalloc_gives_zeros)
{
    for (size_t bytes = 1; bytes < 5000; bytes = bytes * 3 + 1) {
        char *dirty = mem_alloc(bytes);
        unsigned char *clean;

        memset(dirty, 0xff, bytes);
        mem_free(dirty);
        clean = mem_zalloc(bytes);
        for (size_t i = 0; i < bytes; i++) {
            assert_int_equal(0, clean[i]);
        }
        mem_free(clean);
    }
}

TEST(realloc_keeps_the_bytes_and_the_account)
{
    uint64_t before = mem_used();
    char *block = mem_try_realloc(NULL, 10);

    assert_non_null(block);
    memcpy(block, "123456789", 10);
    block = mem_try_realloc(block, 100000);
    assert_non_null(block);
    assert_string_equal("123456789", block);
    assert_true(mem_used() - before >= 100000);
    block = mem_try_realloc(block, 10);
    assert_non_null(block);
    assert_string_equal("123456789", block);
    mem_free(block);
    assert_int_equal(before, mem_used());
}

TEST(a_failed_realloc_leaves_the_old_block)
{
    uint64_t before;
    char *block = mem_alloc(10);

    memcpy(block, "123456789", 10);
    before = mem_used();
    mem_fail_at(1);
    assert_null(mem_try_realloc(block, 100000));
    assert_true(mem_fail_clear());
    assert_string_equal("123456789", block);
    assert_int_equal(before, mem_used());
    mem_free(block);
}

/* Below and above the size from which a block is a mapping, and between. */
TEST(a_sized_block_keeps_its_bytes_and_the_account)
{
    static const size_t sizes[] = { 100,     MIB,         2 * MIB - 1, 2 * MIB,
                                    7 * MIB, 5 * MIB + 1, 3 * MIB,     1000,
                                    4 * MIB, 90 };
    uint64_t before = mem_used();
    unsigned char *block = NULL;
    size_t bytes = 0;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t keep = bytes < sizes[i] ? bytes : sizes[i];

        mem_fail_at(1);
        assert_null(mem_try_resize(block, bytes, sizes[i]));
        assert_true(mem_fail_clear());
        block = mem_try_resize(block, bytes, sizes[i]);
        assert_non_null(block);
        for (size_t j = 0; j < keep; j++) {
            assert_int_equal((unsigned char)(i * 7), block[j]);
        }
        bytes = sizes[i];
        memset(block, (int)(unsigned char)((i + 1) * 7), bytes);
        assert_in_range(mem_used() - before, bytes, bytes + 2 * MIB);
    }
    mem_free_sized(block, bytes);
    assert_int_equal(before, mem_used());
}

TEST(copied_text_ends_with_nul_and_may_hold_some)
{
    char *text = mem_copy_text((struct slice){ "a\0b", 3 });
    char *empty = mem_copy_text((struct slice){ NULL, 0 });

    assert_memory_equal("a\0b\0", text, 4);
    assert_string_equal("", empty);
    mem_free(text);
    mem_free(empty);
}

TEST(multiply_knows_its_limits)
{
    size_t bytes = 7;

    assert_true(mem_multiply(1 << 20, 1 << 20, &bytes));
    assert_int_equal((size_t)1 << 40, bytes);
    assert_true(mem_multiply(0, SIZE_MAX, &bytes));
    assert_int_equal(0, bytes);
    assert_false(mem_multiply((size_t)1 << 32, (size_t)1 << 32, &bytes));
    assert_false(mem_multiply(SIZE_MAX, 2, &bytes));
}

static void
check_lines(size_t bytes, size_t align, size_t counted_min)
{
    uint64_t before = mem_used();
    unsigned char *lines = mem_try_lines(bytes);

    assert_non_null(lines);
    assert_int_equal(0, (uintptr_t)lines % align);
    assert_true(mem_used() - before >= counted_min);
    for (size_t i = 0; i < bytes; i += 61) {
        assert_int_equal(0, lines[i]);
    }
    memset(lines, 0xff, bytes);
    mem_free_lines(lines, bytes);
    assert_int_equal(before, mem_used());
}

TEST(lines_are_zeroed_aligned_and_counted)
{
    check_lines(64, 64, 64);
    check_lines(128, 64, 128);
    check_lines(HUGE_PAGE_BYTES - 64, 64, HUGE_PAGE_BYTES - 64);
    check_lines(HUGE_PAGE_BYTES, HUGE_PAGE_BYTES, HUGE_PAGE_BYTES);
    check_lines(HUGE_PAGE_BYTES + 64, HUGE_PAGE_BYTES, 2 * HUGE_PAGE_BYTES);
    check_lines(35 * MIB, HUGE_PAGE_BYTES, 36 * MIB); /* freed in two steps */
}

TEST(lines_of_our_own_size_are_had_whatever_fails)
{
    unsigned char *lines;

    mem_fail_at(1);
    lines = mem_lines(128);
    assert_false(mem_fail_clear());
    assert_int_equal(0, (uintptr_t)lines % 64);
    assert_int_equal(0, lines[127]);
    mem_free_lines(lines, 128);
}

TEST(freed_small_lines_come_back_zeroed)
{
    for (int i = 0; i < 100; i++) {
        check_lines(64 * 7, 64, 64 * 7);
    }
    mem_free_lines(NULL, 64);
    mem_free_lines(NULL, HUGE_PAGE_BYTES);
}

TEST(large_lines_cost_nothing_until_touched)
{
    size_t bytes = (size_t)512 * MIB;
    uint64_t resident = machine_resident_bytes();
    char *lines = mem_try_lines(bytes);

    assert_non_null(lines);
    assert_true(resident > 0);
    assert_true(machine_resident_bytes() < resident + 64 * MIB);
    lines[bytes - 1] = 1;
    assert_true(machine_resident_bytes() < resident + 64 * MIB);
    mem_free_lines(lines, bytes);
}

TEST(impossible_lines_are_refused_and_not_counted)
{
    static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 63,
                                    SIZE_MAX - HUGE_PAGE_BYTES, SIZE_MAX / 2,
                                    (size_t)1 << 56 };
    uint64_t before = mem_used();

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_null(mem_try_lines(sizes[i]));
    }
    assert_int_equal(before, mem_used());
}

TEST(a_fault_comes_once_at_the_nth_try)
{
    void *block[3];

    mem_fail_at(3);
    block[0] = mem_try_alloc(8);
    block[1] = mem_try_zalloc(8);
    assert_non_null(block[0]);
    assert_non_null(block[1]);
    mem_free(mem_alloc(8)); /* the one that aborts is never made to fail */
    assert_null(mem_try_lines(64));
    block[2] = mem_try_alloc(8);
    assert_non_null(block[2]);
    assert_true(mem_fail_clear());
    assert_false(mem_fail_clear());
    for (int i = 0; i < 3; i++) {
        mem_free(block[i]);
    }
}

TEST(a_fault_that_did_not_come_is_switched_off)
{
    void *block;

    mem_fail_at(1);
    assert_false(mem_fail_clear());
    block = mem_try_alloc(8);
    assert_non_null(block);
    mem_free(block);
}

static void *
allocate_elsewhere(void *ret_ok)
{
    void *block = mem_try_alloc(8);

    *(bool *)ret_ok = block != NULL;
    mem_free(block);
    metric_thread_exit();
    return NULL;
}

TEST(a_fault_belongs_to_its_thread)
{
    pthread_t thread;
    bool ok = false;

    mem_fail_at(1);
    assert_int_equal(0, pthread_create(&thread, NULL, allocate_elsewhere, &ok));
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_true(ok);
    assert_false(mem_fail_clear());
}

static void *
free_elsewhere(void *block)
{
    mem_free(block);
    metric_thread_exit();
    return NULL;
}

TEST(a_block_may_be_freed_by_another_thread)
{
    uint64_t before = mem_used();
    pthread_t thread;

    assert_int_equal(
        0, pthread_create(&thread, NULL, free_elsewhere, mem_alloc(100)));
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_int_equal(before, mem_used());
}

TEST(a_fault_may_last)
{
    mem_fail_from(2);
    mem_free(mem_try_alloc(1));
    assert_null(mem_try_alloc(1));
    assert_null(mem_try_zalloc(1));
    assert_null(mem_try_realloc(NULL, 1));
    assert_true(mem_fail_clear());
    mem_fail_from(2);
    mem_free(mem_try_alloc(1));
    assert_false(mem_fail_clear());
    mem_free(mem_try_alloc(1));
}

/* ---- the reserve --------------------------------------------------------- */

static void *
alloc_in_need(enum mem_claim claim, size_t bytes)
{
    enum mem_claim before = mem_set_claim(claim);
    void *block;

    mem_fail_at(1);
    block = mem_try_alloc(bytes);
    assert_true(mem_fail_clear());
    (void)mem_set_claim(before);
    return block;
}

static size_t
take_all(enum mem_claim claim, void **ret_blocks, size_t max)
{
    size_t count = 0;

    while (count < max) {
        ret_blocks[count] = alloc_in_need(claim, 64 * 1024);
        if (ret_blocks[count] == NULL) {
            break;
        }
        count++;
    }
    return count;
}

TEST(a_claim_says_how_much_of_the_reserve_there_is)
{
    enum { MAX = RESERVE_BYTES / (64 * 1024) };
    uint64_t before = mem_used();
    void *blocks[4 * MAX];
    size_t count = 0;

    assert_true(mem_set_aside());
    assert_null(alloc_in_need(MEM_FILL, 1));
    count += take_all(MEM_OPEN, blocks + count, MAX);
    assert_int_equal(MAX / 4, count);
    count += take_all(MEM_SERVE, blocks + count, MAX);
    assert_int_equal(MAX / 2, count);
    assert_null(alloc_in_need(MEM_SERVE, 1));
    count += take_all(MEM_OWN, blocks + count, MAX);
    assert_int_equal(MAX - MAX / 8, count);
    assert_int_equal(before + RESERVE_BYTES - RESERVE_BYTES / 8, mem_used());
    while (count > 0) {
        mem_free(blocks[--count]);
    }
    assert_int_equal(before, mem_used());
    reserve_close();
}

TEST(a_long_block_is_the_servers_alone)
{
    void *block;

    assert_true(mem_set_aside());
    assert_null(alloc_in_need(MEM_SERVE, 300 * 1024));
    block = alloc_in_need(MEM_OWN, 300 * 1024);
    assert_non_null(block);
    mem_free(block);
    reserve_close();
}

TEST(a_block_moves_into_the_reserve_and_out_of_it)
{
    uint64_t before = mem_used();
    char *block;
    char *zeros;
    void *lines;

    assert_true(mem_set_aside());
    block = mem_try_realloc(NULL, 100);
    (void)snprintf(block, 100, "text");
    mem_fail_at(1);
    block = mem_try_realloc(block, 100000);
    assert_true(mem_fail_clear());
    assert_true(reserve_owns(block));
    assert_string_equal("text", block);
    memset(block, 'x', 100000);
    mem_fail_at(1); /* memory is still out: it stays where it is */
    assert_ptr_equal(block, mem_try_realloc(block, 99999));
    assert_true(mem_fail_clear());
    block = mem_try_realloc(block, 200000);
    assert_false(reserve_owns(block));
    assert_int_equal('x', block[99998]);
    mem_free(block);
    mem_fail_at(1);
    zeros = mem_try_zalloc(100000);
    assert_true(reserve_owns(zeros));
    for (size_t i = 0; i < 100000; i++) {
        assert_int_equal(0, zeros[i]);
    }
    mem_free(zeros);
    mem_fail_at(1);
    lines = mem_try_lines(1000);
    assert_true(reserve_owns(lines));
    assert_int_equal(0, (uintptr_t)lines % 64);
    mem_free_lines(lines, 1000);
    assert_int_equal(before, mem_used());
    assert_int_equal(0, reserve_used());
    reserve_close();
}
