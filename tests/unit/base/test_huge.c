/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mappings of whole huge pages: aligned, zeroed, given back entirely. What is
 * mapped is read from /proc/self/maps.
 */
#include "base/huge.h"

#include "../test.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

enum { MIB = 1024 * 1024 };

/* True if any mapping of this process overlaps [from, from + bytes). */
static bool
is_mapped(const void *from, size_t bytes)
{
    uint64_t begin = (uintptr_t)from;
    uint64_t low = 0;
    uint64_t high = 0;
    bool found = false;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &low, &high) == 2) {
            found = found || (low < begin + bytes && high > begin);
        }
    }
    (void)fclose(maps);
    return found;
}

TEST(sizes_round_up_to_whole_pages)
{
    assert_int_equal(0, huge_round(0));
    assert_int_equal(2 * MIB, huge_round(1));
    assert_int_equal(2 * MIB, huge_round(2 * MIB));
    assert_int_equal(4 * MIB, huge_round(2 * MIB + 1));
}

TEST(a_mapping_is_aligned_zeroed_and_writable_to_its_end)
{
    static const size_t sizes[] = { 2 * MIB, 2 * MIB + 1, 5 * MIB, 33 * MIB };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        unsigned char *map = huge_map(sizes[i]);

        assert_non_null(map);
        assert_int_equal(0, (uintptr_t)map % HUGE_PAGE_BYTES);
        for (size_t at = 0; at < sizes[i]; at += 1021) {
            assert_int_equal(0, map[at]);
        }
        map[0] = 1;
        map[huge_round(sizes[i]) - 1] = 1;
        huge_unmap(map, sizes[i]);
        assert_false(is_mapped(map, huge_round(sizes[i])));
    }
}

/* One page more is mapped to find an aligned place; it must not stay. */
TEST(mapping_again_and_again_leaves_nothing_behind)
{
    char line[256];
    unsigned long before = 0;
    unsigned long after = 0;

    for (int round = 0; round < 2; round++) {
        FILE *file = fopen("/proc/self/statm", "re");

        assert_non_null(file);
        assert_non_null(fgets(line, sizeof(line), file));
        (void)fclose(file);
        assert_int_equal(1, sscanf(line, "%lu", round == 0 ? &before : &after));
        for (int i = 0; i < 200 && round == 0; i++) {
            huge_unmap(huge_map(3 * MIB), 3 * MIB);
        }
    }
    /* In pages of 4 KiB; one leaked huge page a time would be 102400. */
    assert_true(after < before + 5000);
}

TEST(absurd_sizes_are_refused)
{
    assert_null(huge_map(SIZE_MAX));
    assert_null(huge_map(SIZE_MAX - HUGE_PAGE_BYTES));
    assert_null(huge_map(PTRDIFF_MAX));
    assert_null(huge_map((size_t)1 << 56));
}
