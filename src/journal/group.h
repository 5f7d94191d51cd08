/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The text of a journal increment: a first line, then groups. A group holds the
 * effects of some commands as RESP, the first of them a SELECT, and ends with a
 * seal. It is the unit of recovery, and at most about 1 MiB, or one
 * transaction. group.c draws both lines. Both have fixed widths, so positions
 * in the log are known before a seal is written. Pure functions; they do not
 * trust what they read.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    GROUP_VERSION = 1,
    GROUP_FIRST_LINE_BYTES = 128, /* not part of the log's positions */
    GROUP_SEAL_BYTES = 104,       /* part of the log's positions */
    GROUP_BYTES_MAX = 1 << 20 /* larger only for one transaction or command */
};

/* The contents of the first line. key is random. Without it nobody can make a
 * valid seal, so no item can contain one. */
struct group_file {
    uint64_t key;
    uint64_t created_ms;
    char run_id[41];
};

/* Limits of the place of a journal or a snapshot. A sequence, or in manifests a
 * generation or the number of a file, that reaches the first limit is damage.
 * So is a position that reaches the second. No log gets that far. Seals have
 * room for ten times as many groups, so a log that starts below the limit never
 * runs out of numbers. Positions count bytes of a log that may grow for years
 * at the speed of its disk; seals do not contain them. */
#define GROUP_NUMBER_LIMIT   UINT64_C(1000000000000000) /* 10^15 */
#define GROUP_POSITION_LIMIT (UINT64_C(1) << 62)

/* A server that takes over the place of another server's log accepts no larger
 * figures than these two. Whatever it writes later stays far below the limits
 * above, so its files load again. */
#define GROUP_NUMBER_TAKEN_MAX   UINT64_C(100000000000000) /* 10^14 */
#define GROUP_POSITION_TAKEN_MAX (UINT64_C(1) << 61)

void group_write_first_line(const struct group_file *file, char *ret_line);

enum group_status { GROUP_OK, GROUP_END, GROUP_DAMAGED, GROUP_NEWER };

/* Reads the first line. GROUP_END: data is empty. GROUP_NEWER: the line is
 * intact, of a later version. */
enum group_status group_read_first_line(struct slice data,
                                        struct group_file *ret_file);

/* The figures of a seal, all below 10^16. sequence: 1, 2, 3 ... through all
 * files. durable_sequence: all groups up to this one were synced when the group
 * was sealed. bytes: the length of the group without the seal. */
struct group_seal {
    uint64_t sequence, unix_ms, bytes, durable_sequence;
};

/* The running hash of a group's bytes, for a writer that gets them in pieces.
 */
struct group_hash;
struct group_hash *group_hash_new(void);
void group_hash_free(struct group_hash *hash);
void group_hash_begin(struct group_hash *hash, uint64_t key);
void group_hash_add(struct group_hash *hash, const void *data, size_t len);

/* Writes GROUP_SEAL_BYTES. Afterwards the hash must begin anew. */
void group_write_seal(struct group_hash *hash, uint64_t key,
                      const struct group_seal *seal, char *ret_seal);

/* Reads the group at offset. GROUP_OK: it is intact, and the next one begins at
 * ret_group->end. GROUP_END: offset is the end of data. Else GROUP_DAMAGED: a
 * torn end and damage look alike here, and group_survey tells more. The seal is
 * searched for, not computed: garbage before it makes the group damaged. */
struct group {
    uint64_t begin, end; /* offsets in data; end is behind the seal */
    struct slice commands;
    struct group_seal seal;
};
enum group_status group_read(struct slice data, uint64_t key, uint64_t offset,
                             struct group *ret_group);

/* Checks a group whose seal is at a known place. Returns NULL if these
 * GROUP_SEAL_BYTES seal these commands, else what is wrong. */
const char *group_check(struct slice commands, const char *seal, uint64_t key,
                        struct group_seal *ret_seal);

/* Returns when a seal that group_check has accepted was made: Unix time in
 * milliseconds. */
uint64_t group_seal_time(const char *seal);

/* Finds what is intact at and behind `offset`, to decide about damage there.
 * Groups with rising sequences count; a reader that continues from one of them
 * must compare it with what came before, since an item may hold a copy of a
 * whole group. durable_sequence is the highest one in any seal, even of damaged
 * groups and of copies: it was true when the seal was made, and only a server
 * that knew the key could make the seal. All fields are zero if nothing intact
 * is there. */
struct group_survey {
    uint64_t groups, bytes; /* bytes of intact groups, with their seals */
    uint64_t first_offset;  /* of the first group */
    uint64_t first_sequence, last_sequence;
    uint64_t durable_sequence;
};
void group_survey(struct slice data, uint64_t key, uint64_t offset,
                  struct group_survey *ret_survey);
