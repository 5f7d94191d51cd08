/* SPDX-License-Identifier: BSD-3-Clause
 *
 * These tests link the C library's allocator, which has nothing to say; what
 * jemalloc says is in tests/scenario/test_info.py.
 */
#include "base/allocator.h"

#include "../test.h"

TEST(an_allocator_without_figures_gives_none)
{
    struct allocator_figures figures = { 1, 2, 3 };
    struct buf text = { 0 };

    assert_false(allocator_get_figures(&figures));
    assert_int_equal(figures.allocated, 1); /* untouched */
    assert_false(allocator_purge());
    allocator_empty_cache();
    assert_false(allocator_report(&text, 100));
    assert_int_equal(text.len, 0);
    allocator_append_name(&text);
    assert_true(slice_equal(buf_slice(&text), slice_lit("libc")));
    buf_free(&text);
}
