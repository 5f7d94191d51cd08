/* SPDX-License-Identifier: BSD-3-Clause */
#include "../test.h"

#include "base/mem.h"
#include "snapshot/runs.h"

/* Every pattern of ten lines: the runs are those of the pattern. */
TEST(runs_are_the_lines_that_are_not_zero)
{
    enum { LINES = 10 };
    struct runs *runs = mem_alloc(sizeof(*runs));

    for (unsigned pattern = 0; pattern < 1U << LINES; pattern++) {
        uint8_t lines[LINES * BLOOM_LINE_BYTES] = { 0 };
        unsigned seen = 0;

        for (unsigned i = 0; i < LINES; i++) {
            lines[i * BLOOM_LINE_BYTES + i * 6] = pattern >> i & 1;
        }
        runs_find(lines, LINES, runs);
        for (uint32_t i = 0; i < runs->count; i++) {
            for (uint32_t at = runs->run[i].from; at < runs->run[i].to; at++) {
                seen |= 1U << at;
            }
            assert_true(i == 0 || runs->run[i].from > runs->run[i - 1].to);
        }
        assert_int_equal(pattern, seen);
        assert_int_equal(__builtin_popcount(pattern), runs->lines);
        assert_int_equal(LINES - runs->lines,
                         runs_count_zero(lines, sizeof(lines)));
    }
    mem_free(runs);
}
