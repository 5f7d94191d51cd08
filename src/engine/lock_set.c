/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lock order: gate, then stripes upwards.
 */
#include "engine/lock_set.h"

#include "base/hash.h"
#include "keyspace/gate.h"
#include "net/pending.h"

void
lock_set_add_key(struct lock_set *set, struct slice name)
{
    unsigned stripe = keyspace_stripe_of(hash_name(name));

    set->stripes[stripe / 64] |= (uint64_t)1 << (stripe % 64);
    set->holds = true;
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
        set->holds = true;
    } else if (command->lock == LOCK_KEYS) {
        set->exclusive = set->exclusive || (command->flags & CMD_WRITE) != 0;
        command_each_key(command, argc, add_key, &keys);
    }
}

/* Calls visit for the stripes of the set, upwards. */
typedef void (*stripe_fn)(void *ctx, unsigned stripe);

static void
each_stripe(const struct lock_set *set, stripe_fn visit, void *ctx)
{
    for (unsigned word = 0; word < KEYSPACE_STRIPES / 64; word++) {
        for (uint64_t bits = set->stripes[word]; bits != 0; bits &= bits - 1) {
            visit(ctx, word * 64 + (unsigned)__builtin_ctzll(bits));
        }
    }
}

/* ---- gate and stripes ---------------------------------------------------- */

struct locking {
    struct keyspace *ks;
    unsigned thread;
    bool exclusive;
};

static void
lock_one(void *ctx, unsigned stripe)
{
    const struct locking *locking = ctx;

    keyspace_lock(locking->ks, locking->thread, stripe, locking->exclusive);
}

static void
unlock_one(void *ctx, unsigned stripe)
{
    const struct locking *locking = ctx;

    keyspace_unlock(locking->ks, locking->thread, stripe);
}

static void
flush_replies(const struct worker *worker)
{
    if (worker->loop != NULL) {
        pending_flush(worker->loop);
    }
}

void
lock_set_enter_gate(struct worker *worker)
{
    struct gate *gate = keyspace_gate(worker->service->keyspace);

    if (!gate_try_enter(gate, worker->index)) {
        flush_replies(worker);
        gate_enter(gate, worker->index);
    }
}

void
lock_set_enter(const struct lock_set *set, struct worker *worker)
{
    struct gate *gate = keyspace_gate(worker->service->keyspace);

    CHECK(!worker->holds_gate || !set->world ||
          gate_is_mine(gate, worker->index));
    if (worker->alone || worker->holds_gate) {
        return;
    }
    if (set->world) {
        flush_replies(worker);
        gate_raise(gate, worker->index);
    } else {
        lock_set_enter_gate(worker);
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

static void
visit_locks(const struct lock_set *set, struct worker *worker, stripe_fn visit)
{
    struct locking locking = { worker->service->keyspace, worker->index,
                               set->exclusive };

    if (!set->world && !worker->alone) {
        each_stripe(set, visit, &locking);
    }
}

void
lock_set_lock(const struct lock_set *set, struct worker *worker)
{
    visit_locks(set, worker, lock_one);
    if (set->holds) { /* dispatch counts it when the command has ended */
        worker->held = longest_span_since(worker->now_ns);
    }
}

void
lock_set_unlock(const struct lock_set *set, struct worker *worker)
{
    visit_locks(set, worker, unlock_one);
}

/* ---- positions ----------------------------------------------------------- */

struct highest {
    const struct keyspace *ks;
    uint64_t position;
};

static void
raise_one(void *ctx, unsigned stripe)
{
    struct highest *highest = ctx;
    uint64_t position = keyspace_position(highest->ks, stripe);

    if (highest->position < position) {
        highest->position = position;
    }
}

uint64_t
lock_set_position(const struct lock_set *set, const struct keyspace *ks)
{
    struct highest highest = { ks, 0 };

    each_stripe(set, raise_one, &highest);
    return highest.position;
}

struct setting {
    struct keyspace *ks;
    uint64_t position;
};

static void
set_one(void *ctx, unsigned stripe)
{
    const struct setting *setting = ctx;

    keyspace_set_position(setting->ks, stripe, setting->position);
}

void
lock_set_write_position(const struct lock_set *set, struct keyspace *ks,
                        uint64_t position)
{
    struct setting setting = { ks, position };

    if (set->world) {
        keyspace_set_all_positions(ks, position);
    } else {
        each_stripe(set, set_one, &setting);
    }
}
