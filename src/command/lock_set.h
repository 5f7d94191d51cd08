/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a set of commands needs before it may run: a section of the gate and
 * the stripes of all keys, in order, or the raised gate. A bitmap, so that
 * stripes are sorted and without repeats by construction and nothing can fail.
 */
#pragma once

#include "command/service.h"
#include "command/table.h"

struct lock_set {
    uint64_t stripes[KEYSPACE_STRIPES / 64];
    bool exclusive, world;
};

/* Adds the keys of one command whose arity fits. */
void lock_set_add(struct lock_set *set, const struct command *command,
                  const struct slice *argv, size_t argc);
void lock_set_add_key(struct lock_set *set, struct slice name);

/* Outside any section of this worker. */
void lock_set_take(const struct lock_set *set, struct worker *worker);
void lock_set_give_back(const struct lock_set *set, struct worker *worker);
