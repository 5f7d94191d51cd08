/* SPDX-License-Identifier: BSD-3-Clause
 *
 * truncate-to: makes a new journal or increment from an old one. The new one
 * ends with the last group of the old one that is not later than a given time
 * or position.
 */
#pragma once

#include "check/check.h"

/* Where to cut. */
struct check_target {
    bool is_time;
    uint64_t value; /* unix ms, or a position in the log */
};

/* Parses a target. "123" is a position; "123s", "123ms" and
 * "2026-11-20T12:00:00.5Z" are times. */
bool check_cut_parse(const char *text, struct check_target *ret_target);

void check_cut(struct check *check, const struct check_target *target,
               const char *path, const char *out);
