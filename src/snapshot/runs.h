/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which lines of a filter are zero: a snapshot leaves them out. Pure functions.
 */
#pragma once

#include "snapshot/snapshot_format.h"

#include <stdbool.h>

/* The lines of a piece that are not all zero, as runs. */
struct runs {
    uint32_t count, lines; /* lines: the sum over all runs */
    struct {
        uint32_t from, to;
    } run[PIECE_LINES / 2];
};

/* Finds the runs among `count` lines, at most PIECE_LINES. */
void runs_find(const uint8_t *lines, uint32_t count, struct runs *ret_runs);

/* Returns how many of the lines in these bytes are zero. */
uint64_t runs_count_zero(const uint8_t *lines, size_t bytes);
