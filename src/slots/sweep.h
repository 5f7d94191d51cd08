/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Deletes the keys of slots, slice by slice. Each deletion is a DEL in our log,
 * so journal and replicas follow. Loop 0.
 */
#pragma once

#include "base/buf.h"
#include "base/slot_set.h"
#include "keyspace/keyspace.h"

struct inject;

/* The caller sets the fields up to `keep`; all others begin with zeros. */
struct sweep {
    struct inject *inject;
    struct keyspace *ks;
    const struct slot_set *slots;
    bool one_db; /* only in database `db` */
    uint32_t db;
    const struct keyspace *keep; /* keys that are in this keyspace, too, stay */
    uint64_t cursor;
    bool done;
    uint64_t deleted;
    struct buf found, commands; /* scratch */
};

/* Deletes the keys that it finds in one slice (keyspace/slot_keys.h). Inside a
 * section of the gate, with room in the journal. False: ret_reason says why. */
bool sweep_step(struct sweep *sweep, char *ret_reason, size_t reason_size);
void sweep_fini(struct sweep *sweep);

/* Append a key to a list, and read the next one from it. */
void sweep_note(struct buf *list, const struct key *key);
bool sweep_next(const struct buf *list, size_t *at, struct key *ret_key);
