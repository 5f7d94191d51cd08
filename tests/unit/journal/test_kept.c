/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What rewrites keep: which increments, within which limit, and when they
 * count.
 */
#include "journal/kept.h"

#include "../test.h"
#include "base/file.h"
#include "journal/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE = GROUP_FIRST_LINE_BYTES, PART = 1000 };

/* A journal of increments first..last from this position, each with PART bytes
 * of log. */
static struct manifest
journal_of(uint64_t first, uint64_t last, uint64_t position)
{
    struct manifest manifest = { .generation = first,
                                 .base_number = first,
                                 .position = position,
                                 .sequence = first };

    for (uint64_t n = first; n <= last; n++) {
        manifest.increments[manifest.count++] = (struct manifest_increment){
            .number = n, .closed = n < last, .bytes = n < last ? LINE + PART : 0
        };
    }
    return manifest;
}

TEST(kept_has_all_before_the_new_base)
{
    struct manifest kept = { 0 };
    struct manifest before = journal_of(3, 4, 5000);
    struct manifest fresh = journal_of(5, 5, 5000 + 2 * PART);
    uint64_t bytes =
        kept_extend(-1, &kept, &before, &fresh, 0, 100 * (LINE + PART));

    assert_int_equal(2 * (LINE + PART), bytes);
    assert_int_equal(2, kept.count);
    assert_true(kept.position == 5000 && kept.increments[1].closed);
    assert_true(kept_has(&kept, "incr-3") && !kept_has(&kept, "incr-5"));

    /* Another rewrite, and what both have left out stands before the rest. */
    before = fresh;
    fresh = journal_of(6, 6, 5000 + 3 * PART);
    assert_int_equal(3 * (LINE + PART), kept_extend(-1, &kept, &before, &fresh,
                                                    0, 100 * (LINE + PART)));
    kept_prepend(&kept, &fresh);
    assert_int_equal(4, fresh.count);
    assert_true(fresh.position == 5000 && fresh.increments[0].number == 3);
}

TEST(kept_drops_what_nobody_needs_and_what_does_not_fit)
{
    struct manifest before = journal_of(1, 4, 0);
    struct manifest fresh = journal_of(5, 5, 4 * PART);
    struct manifest kept = { 0 };

    (void)kept_extend(-1, &kept, &before, &fresh, 2 * PART, UINT64_MAX);
    assert_true(kept.count == 2 && kept.position == 2 * PART);
    kept.count = 0;
    (void)kept_extend(-1, &kept, &before, &fresh, 2 * PART - 1, UINT64_MAX);
    assert_true(kept.count == 3 && kept.position == PART);
    kept.count = 0;
    assert_int_equal(LINE + PART, kept_extend(-1, &kept, &before, &fresh, 0,
                                              2 * (LINE + PART) - 1));
    assert_true(kept.count == 1 && kept.position == 3 * PART);
    kept.count = 0;
    (void)kept_extend(-1, &kept, &before, &fresh, UINT64_MAX, UINT64_MAX);
    assert_int_equal(0, kept.count);
}

/* The journal was off in between, or the base is of another log. */
TEST(kept_does_not_bridge_a_gap)
{
    struct manifest before = journal_of(1, 2, 0);
    struct manifest fresh = journal_of(3, 3, 2 * PART);
    struct manifest kept = { 0 };
    struct manifest other;

    (void)kept_extend(-1, &kept, &before, &fresh, 0, UINT64_MAX);
    assert_int_equal(2, kept.count);
    other = journal_of(4, 5, 2 * PART + 1);
    kept_prepend(&kept, &other);
    assert_int_equal(2, other.count);
    fresh = journal_of(6, 6, 1); /* before the end of what comes before it */
    before = journal_of(4, 5, 0);
    kept.count = 0;
    (void)kept_extend(-1, &kept, &before, &fresh, 0, UINT64_MAX);
    assert_int_equal(0, kept.count);
}

TEST(kept_is_stored_and_removed)
{
    char dir[] = "/tmp/kept-XXXXXX";
    struct manifest kept = journal_of(1, 3, 7);
    struct manifest read;
    int fd = -1;

    assert_non_null(mkdtemp(dir));
    assert_int_equal(0, file_open_dir(dir, false, &fd));
    assert_false(kept_load(fd, &read));
    assert_int_equal(0, kept_store(fd, &kept));
    assert_false(kept_load(fd, &read)); /* one of them is open */
    kept.increments[2].closed = true;
    kept.increments[2].bytes = LINE;
    assert_int_equal(0, kept_store(fd, &kept));
    assert_true(kept_load(fd, &read));
    assert_true(read.count == 3 && read.position == 7);
    kept.count = 0;
    assert_int_equal(0, kept_store(fd, &kept));
    assert_int_equal(0, kept_store(fd, &kept));
    assert_false(kept_load(fd, &read));
    assert_int_equal(0, read.count);
    file_close(fd);
    assert_int_equal(0, rmdir(dir));
}
