/* SPDX-License-Identifier: BSD-3-Clause */
#include "keyspace/key_hash.h"

uint64_t (*key_hash_function)(struct slice name) = hash_name;

static uint64_t
hash_by_slot(struct slice name)
{
    return (uint64_t)hash_slot_of(name) << 50 | hash_name(name) >> 14;
}

void
key_hash_by_slot(bool on)
{
    key_hash_function = on ? hash_by_slot : hash_name;
}

bool
key_hash_has_slots(void)
{
    return key_hash_function == hash_by_slot;
}
