/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The text of a journal increment: a first line, then groups. A group is what
 * some commands did (their effects as RESP, the first one a SELECT), closed by
 * a seal; it is the unit of recovery and at most about 1 MiB, or one
 * transaction. group.c draws both lines. Both have fixed widths, so positions
 * in the log are known before a seal is written. Pure functions; they treat
 * what they read as hostile.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    GROUP_VERSION = 1,
    GROUP_FIRST_LINE_BYTES = 128, /* not part of the log's positions */
    GROUP_SEAL_BYTES = 104,       /* part of them */
    GROUP_BYTES_MAX = 1 << 20     /* but for one transaction or command */
};

/* What the first line says. key is random: whoever does not know it cannot
 * make a seal that holds, so no item can. */
struct group_file {
    uint64_t key;
    uint64_t created_ms;
    char run_id[41];
};

/* Where a journal or a snapshot stands (the sequence, and in manifests also the
 * generation and the numbers of files) is read as damage from the first on, and
 * a position from the second: no history gets there. Seals have room for ten
 * times as many groups, so whoever starts below has a place for all that it
 * will ever write. Positions are bytes of a log that may go on for years at the
 * speed of its disk; they stand in no seal. */
#define GROUP_NUMBER_LIMIT   UINT64_C(1000000000000000) /* 10^15 */
#define GROUP_POSITION_LIMIT (UINT64_C(1) << 62)

/* A server that takes over the place of another goes on from there. So it
 * accepts no place above these two: whatever it writes later then stays far
 * below the limits above, and its files load again. */
#define GROUP_NUMBER_TAKEN_MAX   UINT64_C(100000000000000) /* 10^14 */
#define GROUP_POSITION_TAKEN_MAX (UINT64_C(1) << 61)

void group_write_first_line(const struct group_file *file, char *ret_line);

enum group_status { GROUP_OK, GROUP_END, GROUP_DAMAGED, GROUP_NEWER };

/* GROUP_END: data is empty. GROUP_NEWER: intact, of a version not known here.
 */
enum group_status group_read_first_line(struct slice data,
                                        struct group_file *ret_file);

/* A seal. sequence: 1, 2, 3 ... over all files. durable_sequence: all groups up
 * to it were synced when this one was sealed. bytes: of the group without the
 * seal. All below 10^16. */
struct group_seal {
    uint64_t sequence, unix_ms, bytes, durable_sequence;
};

/* The running hash of a group's bytes, for writers that have them in pieces. */
struct group_hash;
struct group_hash *group_hash_new(void);
void group_hash_free(struct group_hash *hash);
void group_hash_begin(struct group_hash *hash, uint64_t key);
void group_hash_add(struct group_hash *hash, const void *data, size_t len);

/* Writes GROUP_SEAL_BYTES. The hash is used up. */
void group_write_seal(struct group_hash *hash, uint64_t key,
                      const struct group_seal *seal, char *ret_seal);

/* One intact group at offset: GROUP_OK and the next one begins behind
 * ret_group->end. GROUP_END exactly at the end of data. Else GROUP_DAMAGED: a
 * torn tail and damage look alike, group_survey tells more. A seal is looked
 * for, not computed: garbage before it makes the group damaged. */
struct group {
    uint64_t begin, end; /* in data; end is behind the seal */
    struct slice commands;
    struct group_seal seal;
};
enum group_status group_read(struct slice data, uint64_t key, uint64_t offset,
                             struct group *ret_group);

/* The same where the seal's place is known: NULL if these GROUP_SEAL_BYTES
 * close these commands, else what does not fit. */
const char *group_check(struct slice commands, const char *seal, uint64_t key,
                        struct group_seal *ret_seal);

/* What is intact at and behind `offset`: for deciding about damage there.
 * Groups count whose sequences rise; whoever reads on from one of them has to
 * compare it with what came before, since an item may hold a copy of a whole
 * group. durable_sequence is the highest that any seal names, those of damaged
 * groups and copies included: it was true when the seal was made, and only who
 * knew the key could make it. Zeros if nothing is there. */
struct group_survey {
    uint64_t groups, bytes; /* intact ones, seals included */
    uint64_t first_offset;  /* of the first of them */
    uint64_t first_sequence, last_sequence;
    uint64_t durable_sequence;
};
void group_survey(struct slice data, uint64_t key, uint64_t offset,
                  struct group_survey *ret_survey);
