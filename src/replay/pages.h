/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes the kernel clear the pages that the adds of a long group will write, in
 * pieces, before the group is executed: this takes several times as long as the
 * adds themselves. Only zeros are written over zeros, under the locks of the
 * keys, so the data is the same before and after a piece. Between two pieces
 * clients are served, a filter may change or go, and the group may be given up:
 * that makes the rest slower or needless, but never wrong. Loop 0.
 */
#pragma once

#include "engine/logged.h"
#include "engine/service.h"

enum { PAGES_LONG = 256 }; /* commands of more words have their pages cleared */

/* How far the clearing is, between two pieces. {0} at first; pages.c owns the
 * fields. */
struct pages {
    uint64_t sequence; /* the group's number */
    size_t at;         /* where the next command begins in the group */
    size_t word;       /* index of its next item; 0: the first */
    size_t reached;    /* where that item begins in the group */
    uint64_t db;       /* the database selected at that command */
    struct logged_reader reader;
};

void pages_fini(struct pages *pages);

/* Clears pages for half a millisecond, or longer if the group would otherwise
 * need very many pieces. db: the database of the first command. Returns false
 * if there is more to do; then the next call for this group continues. The
 * caller is inside a section of the gate. */
bool pages_clear(struct pages *pages, struct worker *worker, uint32_t db,
                 struct slice group, uint64_t sequence);
