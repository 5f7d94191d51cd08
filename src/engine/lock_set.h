/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a set of commands needs before it may run: a section of the gate and
 * the stripes of all keys, in order, or the raised gate. A bitmap, so that
 * stripes are sorted and without repeats by construction and nothing can fail.
 */
#pragma once

#include "engine/service.h"
#include "engine/table.h"

struct lock_set {
    uint64_t stripes[KEYSPACE_STRIPES / 64];
    bool exclusive, world;
    bool beyond; /* reads what no stripe of the set stands for */
    bool holds;  /* a stripe or the world; a walk's locks are its own */
};

/* Adds the keys of one command whose arity fits. */
void lock_set_add(struct lock_set *set, const struct command *command,
                  const struct slice *argv, size_t argc);
void lock_set_add_key(struct lock_set *set, struct slice name);

/* In two steps, since what can fail comes between them: the gate (outside any
 * section of this worker), then the stripes. A worker that is alone takes
 * nothing, and one whose caller holds the gate takes no gate. */
void lock_set_enter(const struct lock_set *set, struct worker *worker);
void lock_set_lock(const struct lock_set *set, struct worker *worker);
void lock_set_unlock(const struct lock_set *set, struct worker *worker);
void lock_set_leave(const struct lock_set *set, struct worker *worker);

/* Enters a section of the gate, as lock_set_enter does. If it has to wait for
 * that, the loop's clients get first what is pending for them. */
void lock_set_enter_gate(struct worker *worker);

/* Under the locks: the highest position of the set's stripes, and all of them
 * set to a new one. */
uint64_t lock_set_position(const struct lock_set *set,
                           const struct keyspace *ks);
void lock_set_write_position(const struct lock_set *set, struct keyspace *ks,
                             uint64_t position);
