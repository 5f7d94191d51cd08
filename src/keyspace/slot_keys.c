/* SPDX-License-Identifier: BSD-3-Clause */
#include "keyspace/slot_keys.h"

#include "keyspace/keyspace_internal.h"
#include "keyspace/scan.h"

enum { SLOTS_PER_STRIPE = CLUSTER_SLOTS / KEYSPACE_STRIPES };

bool
slot_keys_has_stripe(const struct slot_set *set, unsigned stripe)
{
    unsigned first = stripe * SLOTS_PER_STRIPE;
    uint64_t all = (UINT64_C(1) << SLOTS_PER_STRIPE) - 1;

    return (set->bits[first / 64] >> (first % 64) & all) != 0;
}

struct picking {
    const struct keyspace *ks;
    const struct slot_set *set;
    slot_keys_fn visit;
    void *ctx;
};

static bool
pick(void *ctx, struct entry *entry, uint64_t expires_at_ms)
{
    const struct picking *picking = ctx;
    uint64_t hash = table_hash(entry);

    if (slot_set_has(picking->set, key_slot(hash))) {
        struct key key = keyspace_key_of(picking->ks, entry, hash);

        picking->visit(picking->ctx, &key, expires_at_ms);
    }
    return true;
}

/* Returns the first stripe >= from that may have keys of the set. */
static unsigned
stripe_with_slots(const struct keyspace *ks, const struct slot_set *set,
                  unsigned from)
{
    for (;;) {
        from = keyspace_next_occupied(ks, from);
        if (from == KEYSPACE_STRIPES || slot_keys_has_stripe(set, from)) {
            return from;
        }
        from++;
    }
}

uint64_t
slot_keys_scan(struct keyspace *ks, unsigned thread, const struct slot_set *set,
               uint64_t cursor, slot_keys_fn visit, void *ctx)
{
    struct picking picking = { ks, set, visit, ctx };
    unsigned from = (unsigned)(cursor >> CURSOR_PLACE_BITS);
    uint64_t place = cursor & (((uint64_t)1 << CURSOR_PLACE_BITS) - 1);
    struct longest_span locked;
    unsigned stripe;

    CHECK(key_hash_has_slots());
    stripe = from < KEYSPACE_STRIPES ? stripe_with_slots(ks, set, from)
                                     : KEYSPACE_STRIPES;
    if (stripe == KEYSPACE_STRIPES) {
        return 0;
    }
    locked = scan_lock(ks, thread, stripe, false);
    place =
        scan_slice_all(ks, stripe, stripe == from ? place : 0, pick, &picking);
    scan_unlock(ks, thread, stripe, &locked);
    if (place == 0) {
        stripe = stripe_with_slots(ks, set, stripe + 1);
    }
    return stripe == KEYSPACE_STRIPES
               ? 0
               : (uint64_t)stripe << CURSOR_PLACE_BITS | place;
}

/* ---- one slot of one database -------------------------------------------- */

struct one {
    const struct slot_keys *keys;
    uint64_t count;
    struct slot_names *names; /* or NULL */
};

static void
take_key(void *ctx, const struct key *key, uint64_t expires_at_ms)
{
    struct one *one = ctx;
    struct slot_names *names = one->names;

    if (key->db != one->keys->db ||
        (expires_at_ms > 0 && expires_at_ms <= one->keys->now_ms)) {
        return;
    }
    if (names == NULL) {
        one->count++;
    } else if (names->count < names->most) {
        buf_append_item(&names->list, key->name);
        names->count++;
    }
}

static uint64_t
scan_one(struct keyspace *ks, unsigned thread, uint64_t cursor, struct one *one)
{
    struct slot_set set = { { 0 } };

    slot_set_add(&set, one->keys->slot);
    return slot_keys_scan(ks, thread, &set, cursor, take_key, one);
}

uint64_t
slot_keys_count(struct keyspace *ks, unsigned thread,
                const struct slot_keys *keys, uint64_t cursor,
                uint64_t *ret_count)
{
    struct one one = { .keys = keys };
    uint64_t next = scan_one(ks, thread, cursor, &one);

    *ret_count += one.count;
    return next;
}

uint64_t
slot_keys_names(struct keyspace *ks, unsigned thread,
                const struct slot_keys *keys, uint64_t cursor,
                struct slot_names *names)
{
    struct one one = { .keys = keys, .names = names };
    uint64_t next = scan_one(ks, thread, cursor, &one);

    return names->count >= names->most || names->list.failed ? 0 : next;
}
