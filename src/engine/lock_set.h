/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a run or a transaction needs before it may execute: a section of the
 * gate and the stripes of all its keys, in ascending order, or the raised gate.
 * Most sets have one stripe. Up to LOCK_SET_FEW stripes are in a sorted array;
 * a larger set is a bitmap of all stripes. Nothing can fail.
 */
#pragma once

#include "access/table.h"
#include "engine/service.h"
#include "keyspace/gate.h"

enum { LOCK_SET_FEW = 16 }; /* a window never locks more (window.h) */

struct lock_set {
    uint16_t count; /* stripes in `few`; above LOCK_SET_FEW, `many` has them */
    uint16_t few[LOCK_SET_FEW]; /* ascending */
    bool exclusive, world;
    bool beyond; /* reads more than what the stripes of the set have */
    bool locks;  /* has stripes or the world; LOCK_WALK locks by itself */
    uint64_t many[KEYSPACE_STRIPES / 64]; /* if count is above LOCK_SET_FEW */
};

/* Makes the set empty. */
static inline void
lock_set_init(struct lock_set *set)
{
    set->count = 0;
    set->exclusive = false;
    set->world = false;
    set->beyond = false;
    set->locks = false;
}

/* Add what a command needs, or one key. The command's arity must fit. */
void lock_set_add(struct lock_set *set, const struct command *command,
                  const struct slice *argv, size_t argc);
void lock_set_add_key(struct lock_set *set, struct slice name);

/* Adds a stripe that is not the first one of the set. */
void lock_set_add_slow(struct lock_set *set, unsigned stripe);
static inline void
lock_set_add_stripe(struct lock_set *set, unsigned stripe)
{
    if (set->count > 0) {
        lock_set_add_slow(set, stripe);
    } else {
        set->count = 1;
        set->few[0] = (uint16_t)stripe;
        set->locks = true;
    }
}

/* Goes through the stripes upwards: *cursor is 0 at first. False: there are no
 * more. */
bool lock_set_next_slow(const struct lock_set *set, unsigned *cursor,
                        unsigned *ret_stripe);
static inline bool
lock_set_next(const struct lock_set *set, unsigned *cursor,
              unsigned *ret_stripe)
{
    if (__builtin_expect(set->count > LOCK_SET_FEW, 0)) {
        return lock_set_next_slow(set, cursor, ret_stripe);
    }
    if (*cursor == set->count) {
        return false;
    }
    *ret_stripe = set->few[(*cursor)++];
    return true;
}

/* Locking has two steps, since what can fail comes between them: first the gate
 * (outside any section of this worker), then the stripes. A worker that is
 * `alone` takes neither, and a worker with `holds_gate` takes no gate. Before a
 * wait for the gate, the loop's pending replies are sent. */
void lock_set_enter_slow(const struct lock_set *set, struct worker *worker);
static inline void
lock_set_enter(const struct lock_set *set, struct worker *worker)
{
    if (set->world || worker->alone || worker->holds_gate ||
        !gate_try_enter(keyspace_gate(worker->service->keyspace),
                        worker->index)) {
        lock_set_enter_slow(set, worker);
    }
}
void lock_set_leave(const struct lock_set *set, struct worker *worker);
void lock_set_lock_slow(const struct lock_set *set, struct worker *worker);
void lock_set_unlock_slow(const struct lock_set *set, struct worker *worker);

/* Returns whether this is the usual case: one stripe, which must be locked. */
static inline bool
lock_set_is_one(const struct lock_set *set, const struct worker *worker)
{
    return __builtin_expect(set->count == 1 && !set->world && !worker->alone,
                            1);
}

static inline void
lock_set_lock(const struct lock_set *set, struct worker *worker)
{
    if (lock_set_is_one(set, worker)) {
        keyspace_lock(worker->service->keyspace, worker->index, set->few[0],
                      set->exclusive);
        worker->held = longest_span_since(worker->now_ns);
    } else {
        lock_set_lock_slow(set, worker);
    }
}

static inline void
lock_set_unlock(const struct lock_set *set, struct worker *worker)
{
    if (lock_set_is_one(set, worker)) {
        keyspace_unlock(worker->service->keyspace, worker->index, set->few[0]);
    } else {
        lock_set_unlock_slow(set, worker);
    }
}

/* Return the highest position of the set's stripes, and give all of them a new
 * one. Call them under the locks. */
uint64_t lock_set_position(const struct lock_set *set,
                           const struct keyspace *ks);
void lock_set_write_position(const struct lock_set *set, struct keyspace *ks,
                             uint64_t position);
