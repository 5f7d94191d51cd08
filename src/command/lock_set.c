/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lock order: gate, then stripes upwards.
 */
#include "command/lock_set.h"

#include "base/hash.h"

void
lock_set_add_key(struct lock_set *set, struct slice name)
{
    unsigned stripe = keyspace_stripe_of(hash_name(name));

    set->stripes[stripe / 64] |= (uint64_t)1 << (stripe % 64);
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

    if (command->lock == LOCK_WORLD) {
        set->world = true;
    } else if (command->lock == LOCK_KEYS) {
        set->exclusive = set->exclusive || (command->flags & CMD_WRITE) != 0;
        command_each_key(command, argc, add_key, &keys);
    }
}

static void
each_stripe(const struct lock_set *set, struct keyspace *ks, bool lock)
{
    for (unsigned word = 0; word < KEYSPACE_STRIPES / 64; word++) {
        for (uint64_t bits = set->stripes[word]; bits != 0; bits &= bits - 1) {
            unsigned stripe = word * 64 + (unsigned)__builtin_ctzll(bits);

            if (lock) {
                keyspace_lock(ks, stripe, set->exclusive);
            } else {
                keyspace_unlock(ks, stripe);
            }
        }
    }
}

void
lock_set_take(const struct lock_set *set, struct worker *worker)
{
    struct keyspace *ks = worker->service->keyspace;

    if (set->world) {
        gate_raise(keyspace_gate(ks), worker->index);
    } else {
        gate_enter(keyspace_gate(ks), worker->index);
        each_stripe(set, ks, true);
    }
}

void
lock_set_give_back(const struct lock_set *set, struct worker *worker)
{
    struct keyspace *ks = worker->service->keyspace;

    if (set->world) {
        gate_lower(keyspace_gate(ks), worker->index);
    } else {
        each_stripe(set, ks, false);
        gate_leave(keyspace_gate(ks), worker->index);
    }
}
