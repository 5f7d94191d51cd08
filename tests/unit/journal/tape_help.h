/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A tap that keeps the whole stream, on top of journal_help.h, with a seal of
 * its own behind each group, or the one that came. It needs no lock: the
 * journal's mutex guards it.
 */
#pragma once

#include "journal/journal_tap.h"
#include "journal_help.h"

enum { TAPE_KEY = 77 };

struct tape {
    struct buf bytes;
    struct group_hash *hash;
    uint64_t begin, begin_sequence; /* the last place at which it began */
    uint64_t sequence;
    uint64_t open;  /* bytes of the open group */
    uint64_t stamp; /* of its own seals */
    unsigned begins;
    const char *wrong;
};

struct tape *tape_new(void);

void tape_free(struct tape *tape);

/* Makes the tape follow. Returns where it begins. */
uint64_t tape_follow(struct tape *tape, struct rig *rig, uint64_t position,
                     uint64_t sequence);

/* Checks, while nothing is appended and no group is open, that the tape holds
 * exactly what was appended since its begin. */
void check_tape(const struct tape *tape, const struct rig *rig,
                const struct source *sources, size_t count);

/* One thing that loop 0 may do to the files. mark: of the last base begun. */
void turn_something(struct rig *rig, uint64_t random, uint64_t *mark,
                    uint64_t *sequence);
