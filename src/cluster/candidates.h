/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What servers have of slots whose newest data is missing: an operator chooses
 * among them (SIDECAR FORCE-SERVE). A server that holds a slot says at which
 * epoch. A server that has filters of the slot without holding it has a copy,
 * or a part of one, whose epoch nobody knows. Pure.
 */
#pragma once

#include "cluster/holdings.h"

struct slot_tally {
    uint64_t epoch; /* epoch + 1 at which the slot is held; 0: not held */
    uint64_t filters, items;
};

/* A server that has something of the slots. */
struct candidate {
    struct candidate *next;
    char node[TOPOLOGY_ID_LEN + 1]; /* the node beside the server */
    struct slot_set has; /* slots that the server holds or has filters of */
    struct slot_set chosen;
    struct slot_tally slot[CLUSTER_SLOTS];
};

/* Appends the counts of filters and items, one line for each slot that has
 * filters: <slot> <filters> <items>. */
void slot_counts_write(const struct slot_tally slot[CLUSTER_SLOTS],
                       struct buf *out);

/* Returns what the server beside `node` has of the slots, from its holdings and
 * its text of slot_counts_write(). NULL: no memory, or the text is malformed.
 */
struct candidate *candidate_new(const char *node, const struct slot_set *set,
                                const struct holdings *holdings,
                                struct slice counts);
void candidates_free(struct candidate *first); /* frees all; NULL is fine */

/* Returns the candidate beside a node, or NULL. */
struct candidate *candidates_find(struct candidate *first, const char *node);

/* Returns the candidate that has a copy of the slot without holding it; if
 * there are several, the one with the most items. NULL: there is none. */
struct candidate *candidates_copy(struct candidate *first, unsigned slot);

/* Some slots of a candidate. They have one epoch, and are either all chosen or
 * all not chosen. */
struct candidate_row {
    const char *node;
    struct slot_set set;
    uint64_t epoch; /* epoch + 1; 0: not held */
    uint64_t filters, items;
    bool chosen;
};

/* Takes the next row of a candidate from *left. Begin with the candidate's
 * `has`. False: there are no more rows. */
bool candidate_next_row(const struct candidate *candidate,
                        struct slot_set *left, struct candidate_row *ret_row);
