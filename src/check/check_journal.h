/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A journal: one increment, or a directory with its manifest, base and
 * increments. This module opens and shows it; check_chain.h walks its groups.
 *
 * A live server may write to the journal meanwhile. So all files are opened
 * before any is read, and their sizes are asked from the newest to the oldest.
 * The server writes to an increment only when all before it are complete, so
 * the sizes belong to one state that the journal had.
 */
#pragma once

#include "check/check_card.h"
#include "check/check_file.h"
#include "journal/manifest.h"
#include "journal/verify.h"

struct check_increment {
    char path[CHECK_PATH_MAX];
    uint64_t number;
    int fd;
    struct check_map map;
    enum group_status line_status;
    struct verify_file *file; /* its bytes, and how many of them are valid */

    /* Set by check_chain_scan. */
    enum check_state state;
    uint64_t position; /* position of the log before its first group */
    uint64_t first_sequence, last_sequence, first_ms, last_ms;
};

struct check_journal {
    char path[CHECK_PATH_MAX]; /* path of the directory, or of the single
                                  increment */
    bool single;               /* one increment: no manifest, no base */
    struct manifest manifest;
    char base_path[CHECK_PATH_MAX];
    int base_fd;
    struct check_increment *increments;
    struct verify_file *files; /* of the increments */
    uint32_t count;

    /* Set by check_chain_scan: the chain of groups from the base on. */
    enum check_state state;
    uint64_t position, sequence; /* the place at its end */
    uint64_t last_ms;
    uint64_t groups;
    /* Where the chain breaks, unless it is intact. */
    uint32_t broken; /* index of the increment */
    uint64_t broken_offset;
    char why[512];
    struct group_survey after; /* what is intact behind the break */
};

enum check_found_journal {
    JOURNAL_FOUND,
    JOURNAL_UNFINISHED,
    JOURNAL_BROKEN,
    JOURNAL_UNREADABLE
};

/* Opens the files that the manifest names. UNFINISHED: the server was building
 * or removing the journal, and a start ignores it. BROKEN: the manifest is
 * missing or damaged, or names a file that is missing. In both cases ret_why
 * says so, nothing is open, and the exit status is not changed. UNREADABLE,
 * also for a newer version: the reason was printed. */
enum check_found_journal check_journal_open(struct check *check,
                                            const char *path,
                                            struct check_journal *ret_journal,
                                            char *ret_why, size_t why_size);

/* Opens a journal, or prints why it cannot. */
bool check_journal_open_found(struct check *check, const char *path,
                              struct check_journal *ret_journal);

/* Opens the files that journal->manifest names. The caller filled it. */
bool check_journal_open_named(struct check *check,
                              struct check_journal *journal);

/* Opens one increment, and treats it as the newest. */
bool check_journal_open_single(struct check *check, const char *path,
                               struct check_journal *ret_journal);
void check_journal_close(struct check_journal *journal);

/* Returns the bytes of all files. */
uint64_t check_journal_bytes(const struct check_journal *journal);

/* Prints the cards of the increments. */
void check_journal_show(struct check *check,
                        const struct check_journal *journal);

/* Prints on standard error where the chain breaks and what that means. */
void check_journal_complain(struct check *check,
                            const struct check_journal *journal);
