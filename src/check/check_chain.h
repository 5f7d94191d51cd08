/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The chain: the groups of a journal, from the base on. journal/verify.h, the
 * walk of a server's start, decides how far it is valid, and whether a start
 * cuts it there or refuses it.
 */
#pragma once

#include "check/check_journal.h"

/* Called for each group of the chain, in order; end_position is the position
 * in the log behind it. False stops the scan. */
typedef bool check_group_fn(void *ctx, const struct check_increment *increment,
                            const struct group *group, uint64_t end_position);

/* Walks the chain and sets the fields of check_journal.h. visit may be NULL. */
void check_chain_scan(struct check *check, struct check_journal *journal,
                      check_group_fn *visit, void *ctx);

/* Marks the chain as damaged at the group at which visit stopped the scan. */
void check_chain_refuse(struct check_journal *journal,
                        const struct check_increment *increment,
                        const struct group *group, const char *why);

/* Finds the next intact group at or behind *at, past damage, and moves *at
 * behind it. False: there is none. */
bool check_chain_next_intact(const struct check_increment *increment,
                             uint64_t *at, struct group *ret_group);

/* Returns whether the log belongs to HISTORY at the end of group number
 * SEQUENCE. The log's history there is the last id that an intact group up to
 * this one names, or FIRST, the base's history, if none names an id. */
bool check_chain_is_of(const struct check_journal *journal, const char *first,
                       uint64_t sequence, const char *history);
