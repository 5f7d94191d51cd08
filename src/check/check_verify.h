/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verify and info: print cards about what a path is and whether it is intact.
 * info reads only the header of a snapshot.
 */
#pragma once

#include "check/check_journal.h"

void check_verify(struct check *check, const char *path, bool whole);

/* What was found about a complete state: a snapshot or a journal. */
struct check_whole {
    bool known;
    bool unfinished; /* a journal that a start ignores */
    uint64_t position;
    uint64_t keys;
    enum check_state state;
};

/* Verify a snapshot or a journal that is already open, and print its cards.
 * `path` is the journal's directory. */
struct check_whole check_verify_snapshot(struct check *check, int fd,
                                         const char *path, bool whole);
struct check_whole check_verify_journal(struct check *check, const char *path,
                                        struct check_journal *journal,
                                        bool whole);

/* Returns whether a start loads the journal, and not the snapshot. */
bool check_verify_takes_journal(const struct check_whole *snapshot,
                                const struct check_whole *journal);
