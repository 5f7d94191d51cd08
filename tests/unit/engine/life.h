/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A short random life: all kinds of writes while the keys are copied piece by
 * piece, then the file is loaded and compared with what was live at its end.
 * The copying here has the rules of a walk and none of its machinery.
 */
#pragma once

#include "keyspace/walk.h"
#include "keyspace/walk_part.h"
#include "rig.h"
#include "snapshot/snapshot.h"

#include <stdatomic.h>

enum {
    NAMES = 4,
    LOOPS = 4, /* of lives with threads; the first only owns the gate */
    GROUPS_MAX = 1 << 13
};

/* A rule that a life does without. */
enum rule { ALL, NO_AGAIN, NO_EPOCHS, NO_POSITION, NO_PIECES };

/* The names of all keys. The first two are of one stripe: life_name_keys finds
 * the second. */
extern const char *const life_names[NAMES];
void life_name_keys(void);

struct life {
    struct rig *rig;
    enum rule without;
    uint64_t random;
    /* By these words filters are made that forget: then they are large, and all
     * that happens is adds and deletions. NULL: an ordinary life. */
    const char *forgets;
    bool still;    /* nothing happens between two holds of the walk */
    bool threaded; /* other threads do what happens */
    atomic_bool *ends;
    unsigned items, pieces, gone; /* of all lives */
    unsigned placed;              /* pieces of deletable filters */
    uint64_t moved;               /* keys, by defragmentation */
    const struct walk_part *part; /* that is saved; NULL: everything */
    struct walk *walk;
    struct snapshot_writer *writer;
    struct snapshot_stamp begin;
    /* The log since the begin. */
    struct buf text;
    struct {
        uint64_t position, sequence;
        size_t from, len;
    } groups[GROUPS_MAX];
    size_t group_count;
    uint64_t position; /* of the next group */
};

/* Runs a random command or transaction. */
void life_run(struct life *life);

/* Raises or lowers the gate of a life with threads. */
void life_raise_gate(struct life *life, bool on);

/* Writes the file while life goes on, and returns it. Ends with the gate
 * raised. */
int life_walk(struct life *life);

/* Loads the file, and compares it with what is live. */
bool life_loads_exactly(struct life *life, int fd);

/* Visits a key: whether it is the same in another keyspace, the context. */
bool life_is_same(void *ctx, uint32_t db, const struct entry *entry,
                  uint64_t expires_at_ms);
