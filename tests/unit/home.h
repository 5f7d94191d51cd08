/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directories of tests.
 */
#pragma once

#include "test.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Makes a directory from a path that ends in XXXXXX, which it replaces. */
static inline void
home_make(char *path)
{
    assert_non_null(mkdtemp(path));
}

static inline int
home_remove_one(const char *path, const struct stat *stat, int type,
                struct FTW *at)
{
    (void)stat;
    (void)type;
    (void)at;
    return remove(path);
}

/* Removes a directory with all that is in it. */
static inline void
home_remove(const char *path)
{
    assert_int_equal(0, nftw(path, home_remove_one, 8, FTW_DEPTH | FTW_PHYS));
}
