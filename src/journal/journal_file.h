/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files of a journal as its threads see them: which file they write to,
 * when it is synced, and how the journal turns to the next file.
 */
#pragma once

#include <stdint.h>

enum journal_sync { JOURNAL_ALWAYS, JOURNAL_EVERYSEC, JOURNAL_NO };

/* An increment that was just created. Its first line is written and synced. */
struct journal_file {
    int fd;       /* the journal closes it */
    uint64_t key; /* of its first line */
    uint64_t number;
};

/* Why the journal gets a file. */
enum journal_target {
    /* The first file after a start. The log that recovery found is on the disk.
     * Positions continue from the given place, and releases begin at once. */
    JOURNAL_RESUME,
    /* The first file of a journal that was switched on at run time: everything
     * stays released until journal_base_done. */
    JOURNAL_BUILD,
    /* What was appended so far goes to the old file, which is synced before
     * the first write to the new one. Later effects go to the new one. */
    JOURNAL_ROTATE,
    /* After a fault: what was appended so far is dropped, since the base that
     * is written now has it. Nothing is released until journal_base_done.
     * Without a fault before it, a rebase begins one. */
    JOURNAL_REBASE,
};
