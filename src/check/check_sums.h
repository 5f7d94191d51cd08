/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The SHA-256 sums of files, in the form of sha256sum.
 */
#pragma once

#include "base/buf.h"

struct check_sums {
    struct buf text;    /* a line for each file that has ended */
    uint64_t state[16]; /* OpenSSL's state for the present file */
};

void check_sums_begin(struct check_sums *sums);
void check_sums_add(struct check_sums *sums, struct slice bytes);
void check_sums_end(struct check_sums *sums, const char *name);
