/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash of a key's name, by which the keyspace finds it. A process that has
 * hash slots (a member of a cluster) puts the slot above 50 bits of the hash:
 *
 *   | 14 bits: slot | 50 bits: of hash_name() |
 *
 * The stripe is the top 10 bits, so all keys of a slot are in one stripe: they
 * are found without an index, and without a walk through all keys.
 */
#pragma once

#include "base/hash.h"
#include "base/slice.h"
#include "keyspace/hash_slot.h"

#include <stdbool.h>
#include <stdint.h>

/* The hash function of this process. A call through this pointer takes as many
 * instructions as a direct call. */
extern uint64_t (*key_hash_function)(struct slice name);

static inline uint64_t
key_hash(struct slice name)
{
    return key_hash_function(name);
}

/* Set and return whether the hash of a key contains its slot. Set it once,
 * before there are keys or threads. */
void key_hash_by_slot(bool on);
bool key_hash_has_slots(void);

/* Returns the slot of a hash. Only if key_hash_has_slots(). */
static inline uint32_t
key_slot(uint64_t hash)
{
    return (uint32_t)(hash >> 50);
}
