/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directories of tests.
 */
#pragma once

#include "test.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static inline FILE *
home_open_file(const char *dir, const char *name, const char *mode)
{
    char path[4096];

    assert_in_range(snprintf(path, sizeof(path), "%s/%s", dir, name), 1,
                    sizeof(path) - 1);
    return fopen(path, mode);
}

/* Writes a file that only its owner may read. */
static inline void
home_put(const char *dir, const char *name, const char *text)
{
    FILE *file = home_open_file(dir, name, "w");

    assert_non_null(file);
    assert_int_equal(0, fchmod(fileno(file), 0600));
    assert_int_equal(strlen(text), fwrite(text, 1, strlen(text), file));
    assert_int_equal(0, fclose(file));
}

/* Compares a short file with a text; NULL: there is none. */
static inline void
home_expect(const char *dir, const char *name, const char *wanted)
{
    char text[1024];
    FILE *file = home_open_file(dir, name, "r");

    if (wanted == NULL) {
        assert_null(file);
        return;
    }
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    assert_int_equal(0, fclose(file));
    assert_string_equal(wanted, text);
}
