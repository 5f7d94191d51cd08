/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A search starts at a random stripe and takes the next one that has a
 * candidate. While most stripes have keys that is fair enough; with fewer keys
 * than stripes, those behind a gap are examined more often.
 */
#include "keyspace/evict.h"

#include "base/random.h"
#include "keyspace/keyspace_internal.h"
#include "keyspace/scan.h"

enum {
    MISSES_MAX = 16, /* stripes without a candidate */
    STEPS_MAX = 256  /* steps in one stripe until one finds an entry */
};

static const uint32_t RANK_DEAD = UINT32_MAX;
static const uint32_t RANK_EXPIRED = UINT32_MAX - 1;

struct search {
    struct keyspace *ks;
    const struct evict_plan *plan;
    unsigned stripe; /* being examined */
    unsigned samples_left;
    bool found;
    struct evict_candidate best;
};

static uint32_t
rank_of(const struct search *search, const struct entry *entry)
{
    const struct keyspace *ks = search->ks;

    if (!db_is_live(ks, entry->db_id)) {
        return RANK_DEAD;
    }
    if (entry_is_expired(&ks->stripes[search->stripe], entry,
                         search->plan->now_ms)) {
        return RANK_EXPIRED;
    }
    switch (search->plan->by) {
    case EVICT_OLDEST:
        return access_idle_s(&ks->access, entry);
    case EVICT_RAREST:
        return ACCESS_FREQUENCY_MAX - access_frequency(&ks->access, entry);
    case EVICT_ANY:
    case EVICT_SOONEST:
        break;
    }
    return 0;
}

static void
consider(struct search *search, const struct entry *entry)
{
    uint32_t rank = rank_of(search, entry);

    search->samples_left -= search->samples_left > 0;
    if (search->found && rank <= search->best.rank) {
        return;
    }
    search->found = true;
    search->best = (struct evict_candidate){ .entry = entry,
                                             .incarnation = entry->incarnation,
                                             .hash = table_hash(entry),
                                             .db_id = entry->db_id,
                                             .stripe = search->stripe,
                                             .name_len = entry_name(entry).len,
                                             .rank = rank };
}

/* ---- one stripe, under its lock ------------------------------------------ */

/* Considers the entries of a range, from a random one on, since the entries
 * that were added first are in front. */
static void
sample_range(struct search *search, struct table_range range)
{
    struct table_range all = range;
    unsigned count = 0;
    uint64_t skip;

    while (table_range_next(&all) != NULL) {
        count++;
    }
    skip = count > 0 ? random_below(count) : 0;
    all = range;
    for (unsigned i = 0; i < skip + count && search->samples_left > 0; i++) {
        if (i == count) {
            range = all;
        }
        if (i < skip) {
            (void)table_range_next(&range);
        } else {
            consider(search, table_range_next(&range));
        }
    }
}

/* Considers entries at a random place. */
static void
sample_table(struct search *search, const struct table *table)
{
    unsigned before = search->samples_left;
    uint64_t cursor = random_below(TABLE_PLACE);

    for (unsigned i = 0; i < STEPS_MAX && search->samples_left == before; i++) {
        sample_range(search, table_step(table, cursor, &cursor));
    }
}

static void
sample_heap(struct search *search, const struct expire *expire)
{
    uint64_t at =
        search->plan->by == EVICT_SOONEST ? 0 : random_below(expire->count);

    consider(search, expire->items[at].entry);
}

/* Returns false if the stripe has no candidate. */
static bool
sample_stripe(struct search *search, unsigned thread)
{
    const struct stripe *stripe = &search->ks->stripes[search->stripe];
    unsigned before = search->samples_left;
    struct longest_span locked;

    locked = scan_lock(search->ks, thread, search->stripe, false);
    if (search->plan->volatile_only) {
        if (stripe->expire.count > 0) {
            sample_heap(search, &stripe->expire);
        }
    } else if (stripe->table.count > 0) {
        sample_table(search, &stripe->table);
    }
    scan_unlock(search->ks, thread, search->stripe, &locked);
    return search->samples_left < before;
}

/* ---- which stripe, without locks ----------------------------------------- */

static uint64_t
next_expiry(const struct keyspace *ks, unsigned stripe)
{
    return atomic_load_explicit(&ks->next_expiry_ms[stripe],
                                memory_order_relaxed);
}

/* Returns the stripe whose first key expires first, or KEYSPACE_STRIPES. */
static unsigned
soonest_stripe(const struct keyspace *ks)
{
    unsigned best = KEYSPACE_STRIPES;
    uint64_t best_ms = UINT64_MAX;

    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        uint64_t at_ms = next_expiry(ks, i);

        if (at_ms < best_ms) {
            best_ms = at_ms;
            best = i;
        }
    }
    return best;
}

static unsigned
next_volatile(const struct keyspace *ks, unsigned from)
{
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        unsigned stripe = (from + i) % KEYSPACE_STRIPES;

        if (next_expiry(ks, stripe) != UINT64_MAX) {
            return stripe;
        }
    }
    return KEYSPACE_STRIPES;
}

static unsigned
choose_stripe(const struct search *search)
{
    unsigned from = (unsigned)random_below(KEYSPACE_STRIPES);
    unsigned stripe;

    if (search->plan->by == EVICT_SOONEST) {
        return soonest_stripe(search->ks);
    }
    if (search->plan->volatile_only) {
        return next_volatile(search->ks, from);
    }
    stripe = keyspace_next_occupied(search->ks, from);
    return stripe < KEYSPACE_STRIPES ? stripe
                                     : keyspace_next_occupied(search->ks, 0);
}

/* ---- both ---------------------------------------------------------------- */

bool
evict_choose(struct keyspace *ks, unsigned thread,
             const struct evict_plan *plan,
             struct evict_candidate *ret_candidate)
{
    bool one = plan->by == EVICT_ANY || plan->by == EVICT_SOONEST;
    struct search search = { .ks = ks,
                             .plan = plan,
                             .samples_left = one ? 1 : plan->samples };

    for (unsigned misses = 0; search.samples_left > 0 && misses < MISSES_MAX;) {
        search.stripe = choose_stripe(&search);
        if (search.stripe == KEYSPACE_STRIPES) {
            break;
        }
        misses += sample_stripe(&search, thread) ? 0 : 1;
    }
    if (search.found) {
        *ret_candidate = search.best;
    }
    return search.found;
}

/* An entry at the same address with the same incarnation is the same entry. */
struct entry *
evict_find(struct keyspace *ks, const struct evict_plan *plan,
           const struct evict_candidate *candidate, struct key *ret_key,
           bool *ret_expired)
{
    const struct stripe *stripe = &ks->stripes[candidate->stripe];
    struct entry *entry = table_get(
        &stripe->table, table_place(candidate->hash, candidate->db_id),
        candidate->entry);

    if (entry == NULL || entry->incarnation != candidate->incarnation ||
        entry_name(entry).len != candidate->name_len ||
        entry->db_id != candidate->db_id) {
        return NULL;
    }
    if (!db_is_live(ks, entry->db_id)) {
        keyspace_remove_entry(ks, candidate->hash, entry);
        return NULL;
    }
    *ret_expired = entry_is_expired(stripe, entry, plan->now_ms);
    *ret_key = keyspace_key_of(ks, entry, candidate->hash);
    return entry;
}
