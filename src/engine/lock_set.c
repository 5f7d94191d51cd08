/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lock order: gate, then stripes upwards.
 */
#include "engine/lock_set.h"

#include "keyspace/key_hash.h"
#include "net/pending.h"

/* ---- the set ------------------------------------------------------------- */

static void
add_to_many(struct lock_set *set, unsigned stripe)
{
    set->many[stripe / 64] |= (uint64_t)1 << (stripe % 64);
}

/* From now on the stripes are in the bitmap. */
static void
become_many(struct lock_set *set)
{
    memset(set->many, 0, sizeof(set->many));
    for (unsigned i = 0; i < LOCK_SET_FEW; i++) {
        add_to_many(set, set->few[i]);
    }
    set->count = LOCK_SET_FEW + 1;
}

static void
insert(struct lock_set *set, unsigned stripe)
{
    unsigned at = set->count;

    while (at > 0 && set->few[at - 1] >= stripe) {
        at--;
    }
    if (at < set->count && set->few[at] == stripe) {
        return;
    }
    if (set->count == LOCK_SET_FEW) {
        become_many(set);
        add_to_many(set, stripe);
        return;
    }
    memmove(set->few + at + 1, set->few + at,
            (set->count - at) * sizeof(*set->few));
    set->few[at] = (uint16_t)stripe;
    set->count++;
}

void
lock_set_add_slow(struct lock_set *set, unsigned stripe)
{
    CHECK(stripe < KEYSPACE_STRIPES && set->locks);
    if (set->count > LOCK_SET_FEW) {
        add_to_many(set, stripe);
    } else {
        insert(set, stripe);
    }
}

void
lock_set_add_key(struct lock_set *set, struct slice name)
{
    lock_set_add_stripe(set, keyspace_stripe_of(key_hash(name)));
}

struct keys_of {
    struct lock_set *set;
    const struct slice *argv;
};

static void
add_key(void *ctx, size_t position)
{
    struct keys_of *keys = ctx;

    lock_set_add_key(keys->set, keys->argv[position]);
}

void
lock_set_add(struct lock_set *set, const struct command *command,
             const struct slice *argv, size_t argc)
{
    struct keys_of keys = { set, argv };

    set->beyond = set->beyond || ((command->flags & CMD_READONLY) != 0 &&
                                  command->lock != LOCK_KEYS);
    if (command->lock == LOCK_WORLD) {
        set->world = true;
        set->locks = true;
    } else if (command->lock == LOCK_KEYS) {
        set->exclusive = set->exclusive || (command->flags & CMD_WRITE) != 0;
        command_each_key(command, argc, add_key, &keys);
    }
}

bool
lock_set_next_slow(const struct lock_set *set, unsigned *cursor,
                   unsigned *ret_stripe)
{
    unsigned at = *cursor;

    for (; at < KEYSPACE_STRIPES; at = (at / 64 + 1) * 64) {
        uint64_t bits = set->many[at / 64] >> (at % 64);

        if (bits != 0) {
            *ret_stripe = at + (unsigned)__builtin_ctzll(bits);
            *cursor = *ret_stripe + 1;
            return true;
        }
    }
    return false;
}

/* ---- gate and stripes ---------------------------------------------------- */

static void
flush_replies(const struct worker *worker)
{
    if (worker->loop != NULL) {
        pending_flush(worker->loop);
    }
}

void
lock_set_enter_slow(const struct lock_set *set, struct worker *worker)
{
    struct gate *gate = keyspace_gate(worker->service->keyspace);

    CHECK(!worker->holds_gate || !set->world ||
          gate_is_mine(gate, worker->index));
    if (worker->alone || worker->holds_gate) {
        return;
    }
    flush_replies(worker);
    if (set->world) {
        gate_raise(gate, worker->index);
    } else {
        gate_enter(gate, worker->index);
    }
}

void
lock_set_leave(const struct lock_set *set, struct worker *worker)
{
    struct gate *gate = keyspace_gate(worker->service->keyspace);

    if (worker->alone || worker->holds_gate) {
        return;
    }
    if (set->world) {
        gate_lower(gate, worker->index);
    } else {
        gate_leave(gate, worker->index);
    }
}

void
lock_set_lock_slow(const struct lock_set *set, struct worker *worker)
{
    struct keyspace *ks = worker->service->keyspace;
    unsigned cursor = 0;
    unsigned stripe;

    if (!set->world && !worker->alone && keyspace_is_shared(ks)) {
        while (lock_set_next(set, &cursor, &stripe)) {
            keyspace_lock(ks, worker->index, stripe, set->exclusive);
        }
    }
    if (set->locks) { /* execute_count counts how long locks were held */
        worker->held = longest_span_since(worker->now_ns);
    }
}

void
lock_set_unlock_slow(const struct lock_set *set, struct worker *worker)
{
    struct keyspace *ks = worker->service->keyspace;
    unsigned cursor = 0;
    unsigned stripe;

    if (!set->world && !worker->alone && keyspace_is_shared(ks)) {
        while (lock_set_next(set, &cursor, &stripe)) {
            keyspace_unlock(ks, worker->index, stripe);
        }
    }
}

/* ---- positions ----------------------------------------------------------- */

uint64_t
lock_set_position(const struct lock_set *set, const struct keyspace *ks)
{
    uint64_t highest = 0;
    unsigned cursor = 0;
    unsigned stripe;

    while (lock_set_next(set, &cursor, &stripe)) {
        uint64_t position = keyspace_position(ks, stripe);

        if (highest < position) {
            highest = position;
        }
    }
    return highest;
}

void
lock_set_write_position(const struct lock_set *set, struct keyspace *ks,
                        uint64_t position)
{
    unsigned cursor = 0;
    unsigned stripe;

    if (set->world) {
        keyspace_set_all_positions(ks, position);
        return;
    }
    while (lock_set_next(set, &cursor, &stripe)) {
        keyspace_set_position(ks, stripe, position);
    }
}
