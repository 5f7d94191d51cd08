/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A journal: one increment, or a directory with its manifest, base and
 * increments, looked at as a start of the server would: groups follow each
 * other without a gap, closed increments are whole, and where something is
 * wrong, the seals behind it decide whether a start cuts there or refuses
 * (persist/recover.h).
 *
 * A live server may be writing meanwhile. All files are opened before any is
 * read, and how long they are is asked from the newest to the oldest: the
 * server writes to an increment only when all before it are complete, so what
 * was seen is one state that the journal had.
 */
#pragma once

#include "persist/group.h"
#include "persist/manifest.h"
#include "persist/snapshot_read.h"
#include "tools/check_card.h"
#include "tools/check_file.h"

struct check_increment {
    char path[CHECK_PATH_MAX];
    uint64_t number;
    bool closed;
    uint64_t closed_bytes; /* what the manifest says */
    int fd;
    uint64_t file_bytes;
    struct check_map map; /* of what counts */
    enum group_status line_status;
    struct group_file line;

    /* Found by check_journal_scan. */
    enum check_state state;
    uint64_t position; /* of the log, before its first group */
    uint64_t groups, first_sequence, last_sequence, first_ms, last_ms;
    uint64_t end; /* behind the last group of the chain */
};

struct check_journal {
    char path[CHECK_PATH_MAX]; /* of the directory, or of the one increment */
    bool single;               /* no manifest, no base: sequences are unknown */
    struct manifest manifest;
    char base_path[CHECK_PATH_MAX];
    int base_fd;
    struct check_increment *increments;
    size_t count;

    /* Found by check_journal_scan: the chain from the base on. */
    enum check_state state;
    uint64_t position, sequence; /* at its end */
    uint64_t last_ms;
    uint64_t groups;
    /* Where it breaks, unless it is intact. */
    size_t broken; /* index of the increment */
    uint64_t broken_offset;
    char why[256];
    struct group_survey after; /* what is intact behind the break */
};

enum check_found_journal {
    JOURNAL_FOUND,
    JOURNAL_UNFINISHED,
    JOURNAL_BROKEN,
    JOURNAL_UNREADABLE
};

/* Opens what the manifest names. UNFINISHED: the server was building or
 * removing it, and a start takes nothing of it. BROKEN: the manifest is missing
 * or damaged, or names what is not there. For both ret_why says it, nothing is
 * open, and the exit status stays. UNREADABLE (or of a newer version): it was
 * said. */
enum check_found_journal check_journal_open(struct check *check,
                                            const char *path,
                                            struct check_journal *ret_journal,
                                            char *ret_why, size_t why_size);

/* Opens the files that journal->manifest names, for whoever made that up. */
bool check_journal_open_named(struct check *check,
                              struct check_journal *journal);

/* One increment by itself, as if it were the newest. */
bool check_journal_open_single(struct check *check, const char *path,
                               struct check_journal *ret_journal);
void check_journal_close(struct check_journal *journal);

/* Bytes of all files. */
uint64_t check_journal_bytes(const struct check_journal *journal);

/* Called for each group of the chain, in order; end_position is the log's
 * behind it. False stops the scan. */
typedef bool check_group_fn(void *ctx, const struct check_increment *increment,
                            const struct group *group, uint64_t end_position);

/* Finds out all of the above. visit may be NULL. */
void check_journal_scan(struct check *check, struct check_journal *journal,
                        check_group_fn *visit, void *ctx);

/* After a visit that stopped the scan at this group: no start gets beyond it.
 */
void check_journal_refuse(struct check_journal *journal,
                          const struct check_increment *increment,
                          const struct group *group, const char *why);

/* One intact group at or behind *at, wherever it begins, for rescuing what is
 * left; *at moves behind it. False: there is none. */
bool check_journal_next_intact(const struct check_increment *increment,
                               uint64_t *at, struct group *ret_group);

/* The cards of the increments. */
void check_journal_show(struct check *check,
                        const struct check_journal *journal);

/* Says on standard error where the chain breaks and what that means. */
void check_journal_complain(struct check *check,
                            const struct check_journal *journal);
