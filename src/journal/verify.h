/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rule about damage, applied to the increments of a journal in memory. At
 * or before the highest durable_sequence that any later seal names, damage is
 * refused: those groups were synced and perhaps acknowledged. After it, the
 * journal is cut there, even if intact groups follow, since pages reach a disk
 * in any order. An intact group with a wrong sequence is refused where the next
 * group should begin: no crash puts it there, except behind a file that a fault
 * ended early (verify.c). Pure functions, which do not trust the bytes.
 */
#pragma once

#include "base/slice.h"
#include "journal/group.h"

#include <stdbool.h>
#include <stdint.h>

/* One increment, as the manifest names it. */
struct verify_file {
    struct slice data; /* the whole file; if closed, at most `bytes` */
    bool closed;
    uint64_t bytes; /* if closed: so many bytes must be intact */
    /* Results: */
    struct group_file first;
    uint64_t end;    /* end of the valid part, the first line at least */
    uint64_t groups; /* groups in the valid part */
};

enum verify_status { VERIFY_OK, VERIFY_CUT, VERIFY_REFUSED };

enum verify_cause {
    VERIFY_FIRST_LINE, /* damaged or missing */
    VERIFY_NEWER,      /* an intact first line of a later version */
    VERIFY_DAMAGED,    /* no intact group there: torn or changed */
    VERIFY_GAP,        /* an intact group, but not the expected one */
    VERIFY_SHORT       /* a closed increment ends before its bytes */
};

struct verify_result {
    enum verify_status status;
    uint64_t position, sequence; /* of the log, at the end of what is valid */
    uint64_t groups;
    /* Unless it is OK, where the first error is: */
    enum verify_cause cause;
    uint32_t file; /* index of the file */
    uint64_t offset;
    uint64_t expected; /* sequence of the group that should be there */
    uint64_t found; /* VERIFY_GAP: sequence of the group that was found there */
    /* What follows the first error, in all files: */
    uint64_t behind_bytes;
    struct group_survey behind;
};

/* Verifies all increments; position and sequence are those of the base. After
 * VERIFY_CUT, only the first line of files behind the cut is valid. */
enum verify_status verify_increments(struct verify_file *files, uint32_t count,
                                     uint64_t position, uint64_t sequence,
                                     struct verify_result *ret_result);

/* Verifies all increments, and calls visit for each valid group, in order.
 * end_position is the position of the log after the group. If visit returns
 * false the walk ends, and the result is VERIFY_OK for the groups so far. */
typedef bool verify_visit_fn(void *ctx, uint32_t file,
                             const struct group *group, uint64_t end_position);
struct verify_walk {
    uint64_t position, sequence; /* of the base */
    verify_visit_fn *visit;      /* NULL: none */
    void *ctx;
};
enum verify_status verify_each(struct verify_file *files, uint32_t count,
                               const struct verify_walk *walk,
                               struct verify_result *ret_result);

/* Surveys everything from an offset of files[index] to the end of the last
 * file. Files without an intact first line are left out. */
void verify_survey(const struct verify_file *files, uint32_t count,
                   uint32_t index, uint64_t offset,
                   struct group_survey *ret_survey);

/* Describes what is wrong and where, unless OK, without the file's name:
 * "damaged at offset 4711, where group 12 should begin". */
enum { VERIFY_TEXT_MAX = 160 };
void verify_describe(const struct verify_result *result, char *ret_text,
                     size_t size);
