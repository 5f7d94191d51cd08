/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counting new items without adding them.
 */
#include <bloomery/bloom.h>

#include <string.h>

#include "core/env.h"

/* Distinct hashes in open addressing; a slot has an index into HASHES plus one,
 * 0 if it is empty. */
struct hash_set {
    const struct bloom_hash *hashes;
    size_t *slots;
    size_t mask;
};

/* Adds the hash with this index. Returns whether it was not in the set. */
static bool
set_add(struct hash_set *set, size_t index)
{
    struct bloom_hash hash = set->hashes[index];
    size_t at = (size_t)(hash.high ^ hash.low) & set->mask;

    while (set->slots[at] != 0) {
        struct bloom_hash there = set->hashes[set->slots[at] - 1];

        if (there.high == hash.high && there.low == hash.low) {
            return false;
        }
        at = (at + 1) & set->mask;
    }
    set->slots[at] = index + 1;
    return true;
}

enum bloom_status
bloom_count_new(const struct bloom *bloom, const struct bloom_env *env,
                const struct bloom_hash *hashes, size_t count,
                size_t *ret_count)
{
    struct hash_set set = { .hashes = hashes };
    bool found[BLOOM_BATCH_MAX];
    size_t slots = 2;
    size_t fresh = 0;

    env = env_or_default(env);
    while (slots / 2 < count && slots <= SIZE_MAX / 2 / sizeof(*set.slots)) {
        slots *= 2;
    }
    if (slots / 2 < count) {
        return BLOOM_NOMEM;
    }
    set.mask = slots - 1;
    set.slots = env->alloc(env->ctx, slots * sizeof(*set.slots));
    if (set.slots == NULL) {
        return BLOOM_NOMEM;
    }
    memset(set.slots, 0, slots * sizeof(*set.slots));
    for (size_t from = 0; from < count; from += BLOOM_BATCH_MAX) {
        size_t batch =
            count - from < BLOOM_BATCH_MAX ? count - from : BLOOM_BATCH_MAX;

        bloom_prefetch_batch(bloom, hashes + from, batch);
        bloom_contains_batch(bloom, hashes + from, batch, found);
        for (size_t i = 0; i < batch; i++) {
            fresh += !found[i] && set_add(&set, from + i);
        }
    }
    env->free(env->ctx, set.slots, slots * sizeof(*set.slots));
    *ret_count = fresh;
    return BLOOM_OK;
}
