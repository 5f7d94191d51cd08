/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Most lines have a bit in their first word, so that word is tested first.
 */
#include "snapshot/runs.h"

static bool
is_zero_line(const uint8_t *line)
{
    uint64_t words[BLOOM_LINE_BYTES / sizeof(uint64_t)];

    memcpy(words, line, sizeof(words));
    return words[0] == 0 && (words[1] | words[2] | words[3] | words[4] |
                             words[5] | words[6] | words[7]) == 0;
}

/* Skips lines from `at` on: zero lines if `zero` is set, other lines if not.
 * Returns the first line that is not skipped; `count` if there is none. */
static uint32_t
skip(const uint8_t *lines, uint32_t at, uint32_t count, bool zero)
{
    while (at < count &&
           is_zero_line(lines + (size_t)at * BLOOM_LINE_BYTES) == zero) {
        at++;
    }
    return at;
}

void
runs_find(const uint8_t *lines, uint32_t count, struct runs *ret_runs)
{
    uint32_t at = skip(lines, 0, count, true);

    ret_runs->count = ret_runs->lines = 0;
    while (at < count) {
        uint32_t end = skip(lines, at, count, false);

        ret_runs->run[ret_runs->count].from = at;
        ret_runs->run[ret_runs->count].to = end;
        ret_runs->count++;
        ret_runs->lines += end - at;
        at = skip(lines, end, count, true);
    }
}

uint64_t
runs_count_zero(const uint8_t *lines, size_t bytes)
{
    uint64_t zero = 0;

    for (size_t at = 0; at < bytes; at += BLOOM_LINE_BYTES) {
        zero += is_zero_line(lines + at);
    }
    return zero;
}
