/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mappings for large arrays.
 */
#include "base/huge.h"

#include "../test.h"

#include <stdbool.h>

TEST(a_mapping_is_zero_and_aligned_to_a_huge_page)
{
    size_t bytes = 3 * (size_t)HUGE_PAGE_BYTES + 64;
    char *map = huge_map(bytes);

    assert_non_null(map);
    assert_int_equal((uintptr_t)map % HUGE_PAGE_BYTES, 0);
    for (size_t i = 0; i < bytes; i += 4096) {
        assert_int_equal(map[i], 0);
    }
    map[bytes - 1] = 1;
    huge_unmap(map, bytes);
}

TEST(sizes_round_up_to_whole_huge_pages)
{
    assert_int_equal(huge_round(0), 0);
    assert_int_equal(huge_round(1), HUGE_PAGE_BYTES);
    assert_int_equal(huge_round(HUGE_PAGE_BYTES), HUGE_PAGE_BYTES);
    assert_int_equal(huge_round(HUGE_PAGE_BYTES + 1), 2 * HUGE_PAGE_BYTES);
}

TEST(absurd_sizes_are_refused)
{
    assert_null(huge_map(SIZE_MAX));
    assert_null(huge_map(PTRDIFF_MAX));
}

TEST(a_mapping_larger_than_one_unmapping_step_goes_back_whole)
{
    size_t bytes = (size_t)100 * 1024 * 1024;
    char *map = huge_map(bytes);
    char *again;

    assert_non_null(map);
    huge_unmap(map, bytes);
    /* The address space is free again: the same size fits at once. */
    again = huge_map(bytes);
    assert_non_null(again);
    huge_unmap(again, bytes);
}
