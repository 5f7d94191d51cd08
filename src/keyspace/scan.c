/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A walk locks a stripe for at most SCAN_SLICE steps at a time. A bit map
 * tells it which stripes are empty, so it skips those without locking them.
 */
#include "keyspace/scan.h"

#include "base/prefetch.h"
#include "base/random.h"
#include "keyspace/gate.h"
#include "keyspace/keyspace_internal.h"

enum {
    RANDOM_TRIES = 256,
    RANDOM_WALKS = 4, /* full walks: keys may expire between two of them */
    EACH_AHEAD = 16   /* slots to prefetch: entries are far apart in memory */
};

struct walk {
    struct keyspace *ks;
    unsigned thread;
    uint32_t db_id;
    uint64_t now_ms;
    size_t keys_left, steps_left;
    keyspace_visit_fn visit;
    void *ctx;
    bool done;
};

struct longest_span
scan_lock(struct keyspace *ks, unsigned thread, unsigned stripe, bool exclusive)
{
    if (ks->shared && !gate_is_mine(ks->gate, thread)) {
        keyspace_lock(ks, thread, stripe, exclusive);
    }
    return longest_begin();
}

void
scan_unlock(struct keyspace *ks, unsigned thread, unsigned stripe,
            const struct longest_span *locked)
{
    longest_end(LONGEST_LOCK, locked, "walk");
    if (ks->shared && !gate_is_mine(ks->gate, thread)) {
        keyspace_unlock(ks, thread, stripe);
    }
}

static void
visit_step(struct walk *walk, const struct stripe *stripe,
           struct table_range range)
{
    const struct entry *entry;

    while ((entry = table_range_next(&range)) != NULL) {
        if (entry->db_id != walk->db_id ||
            entry_is_expired(stripe, entry, walk->now_ms)) {
            continue;
        }
        if (!walk->visit(walk->ctx, entry, entry_expiry(stripe, entry))) {
            walk->done = true;
        }
        if (walk->keys_left > 0) {
            walk->keys_left--;
        }
    }
    if (walk->steps_left > 0) {
        walk->steps_left--;
    }
    if (walk->keys_left == 0 || walk->steps_left == 0) {
        walk->done = true;
    }
}

/* Makes at most SCAN_SLICE steps in a stripe under its lock. Returns the next
 * cursor in the stripe, or 0 at its end. */
static uint64_t
walk_slice(struct walk *walk, unsigned index, uint64_t cursor)
{
    const struct stripe *stripe = &walk->ks->stripes[index];
    int slice = SCAN_SLICE;
    struct longest_span locked;

    locked = scan_lock(walk->ks, walk->thread, index, false);
    if (stripe->table.count == 0) {
        cursor = 0;
    } else {
        do {
            visit_step(walk, stripe,
                       table_step(&stripe->table, cursor, &cursor));
        } while (cursor != 0 && !walk->done && --slice > 0);
    }
    scan_unlock(walk->ks, walk->thread, index, &locked);
    return cursor;
}

uint64_t
/* NOLINTNEXTLINE(readability-function-size): nine parameters */
keyspace_scan(struct keyspace *ks, unsigned thread, uint32_t db,
              uint64_t cursor, size_t want, size_t steps_max, uint64_t now_ms,
              keyspace_visit_fn visit, void *ctx)
{
    struct walk walk = {
        .ks = ks,
        .thread = thread,
        .db_id = db_id_of(ks, db),
        .now_ms = now_ms,
        .keys_left = want,
        .steps_left = steps_max,
        .visit = visit,
        .ctx = ctx,
    };
    uint64_t place = cursor & (((uint64_t)1 << CURSOR_PLACE_BITS) - 1);
    unsigned stripe;

    if (cursor >= (uint64_t)KEYSPACE_STRIPES << CURSOR_PLACE_BITS) {
        return 0;
    }
    stripe = (unsigned)(cursor >> CURSOR_PLACE_BITS);
    for (;;) {
        unsigned next = keyspace_next_occupied(ks, stripe);

        if (next == KEYSPACE_STRIPES) {
            return 0;
        }
        if (next != stripe) {
            stripe = next;
            place = 0;
        }
        if (walk.done) {
            return (uint64_t)stripe << CURSOR_PLACE_BITS | place;
        }
        place = walk_slice(&walk, stripe, place);
        if (place == 0) {
            stripe++;
        }
    }
}

/* Fetches entries and the beginnings of their lines, all of a step at a time,
 * so that the cache misses overlap. */
static void
fetch(struct table_range range)
{
    struct table_range again = range;
    const struct entry *entry;

    while ((entry = table_range_next(&range)) != NULL) {
        prefetch(entry);
        prefetch((const char *)entry + BLOOM_LINE_BYTES);
    }
    while ((entry = table_range_next(&again)) != NULL) {
        size_t bytes;

        prefetch(bloom_layer_lines(&entry->bloom, 0, &bytes));
    }
}

/* Visits a whole step, even after visit has returned false. */
static bool
visit_all(const struct keyspace *ks, const struct stripe *stripe,
          struct table_range range, scan_visit_fn visit, void *ctx)
{
    struct entry *entry;
    bool more = true;

    fetch(range);
    while ((entry = table_range_next(&range)) != NULL) {
        if (db_is_live(ks, entry->db_id) &&
            !visit(ctx, entry, entry_expiry(stripe, entry))) {
            more = false;
        }
    }
    return more;
}

uint64_t
scan_slice_all(struct keyspace *ks, unsigned stripe, uint64_t cursor,
               scan_visit_fn visit, void *ctx)
{
    struct stripe *at = &ks->stripes[stripe];
    int slice = SCAN_SLICE;
    bool more;

    if (at->table.count == 0) {
        return 0;
    }
    do {
        more = visit_all(ks, at, table_step(&at->table, cursor, &cursor), visit,
                         ctx);
    } while (cursor != 0 && more && --slice > 0);
    return cursor;
}

/* ---- a random key -------------------------------------------------------- */

/* Calls visit with a random live entry of the range. False: it has none. */
static bool
pick_from_range(const struct walk *walk, const struct stripe *stripe,
                struct table_range range)
{
    const struct entry *picked = NULL;
    const struct entry *entry;
    uint64_t live = 0;

    while ((entry = table_range_next(&range)) != NULL) {
        if (entry->db_id == walk->db_id &&
            !entry_is_expired(stripe, entry, walk->now_ms) &&
            random_below(++live) == 0) {
            picked = entry;
        }
    }
    if (picked != NULL) {
        (void)walk->visit(walk->ctx, picked, entry_expiry(stripe, picked));
    }
    return picked != NULL;
}

static bool
pick_from_stripe(const struct walk *walk, unsigned index)
{
    const struct stripe *stripe = &walk->ks->stripes[index];
    struct longest_span locked;
    bool found = false;

    locked = scan_lock(walk->ks, walk->thread, index, false);
    if (stripe->table.count > 0) {
        uint64_t place = random_below(TABLE_PLACE);

        found = pick_from_range(walk, stripe,
                                table_step(&stripe->table, place, &place));
    }
    scan_unlock(walk->ks, walk->thread, index, &locked);
    return found;
}

struct nth {
    const struct walk *walk;
    uint64_t skip, seen;
    bool found;
};

static bool
visit_nth(void *ctx, const struct entry *entry, uint64_t expires_at_ms)
{
    struct nth *nth = ctx;

    if (!nth->found && nth->seen++ == nth->skip) {
        nth->found = true;
        (void)nth->walk->visit(nth->walk->ctx, entry, expires_at_ms);
    }
    return !nth->found;
}

/* Draws a number and walks to the key with that number, for keys that are few
 * among many places or other databases. keyspace_count includes expired keys,
 * which the walk skips, so the first number may be too high; the number of keys
 * that the walk saw limits the next one. */
static bool
pick_by_walking(const struct walk *walk, uint32_t db, uint64_t keys)
{
    for (int i = 0; i < RANDOM_WALKS && keys > 0; i++) {
        struct nth nth = {
            .walk = walk,
            .skip = i + 1 < RANDOM_WALKS ? random_below(keys) : 0,
        };

        (void)keyspace_scan(walk->ks, walk->thread, db, 0, SIZE_MAX, SIZE_MAX,
                            walk->now_ms, visit_nth, &nth);
        if (nth.found) {
            return true;
        }
        keys = nth.seen;
    }
    return false;
}

bool
keyspace_random(struct keyspace *ks, unsigned thread, uint32_t db,
                uint64_t now_ms, keyspace_visit_fn visit, void *ctx)
{
    const struct walk walk = {
        .ks = ks,
        .thread = thread,
        .db_id = db_id_of(ks, db),
        .now_ms = now_ms,
        .visit = visit,
        .ctx = ctx,
    };
    uint64_t keys;
    uint64_t expires;

    keyspace_count(ks, db, &keys, &expires);
    for (int i = 0; i < RANDOM_TRIES && keys > 0; i++) {
        unsigned stripe = (unsigned)random_below(KEYSPACE_STRIPES);

        if (keyspace_next_occupied(ks, stripe) == stripe &&
            pick_from_stripe(&walk, stripe)) {
            return true;
        }
    }
    return pick_by_walking(&walk, db, keys);
}

/* ---- every key, while nothing changes ------------------------------------ */

/* Fills the table from a database's slot to the number that clients use. */
static void
number_slots(const struct keyspace *ks, uint16_t *ret_numbers)
{
    for (unsigned db = 0; db < ks->databases; db++) {
        ret_numbers[db_slot_of(db_id_of(ks, db))] = (uint16_t)db;
    }
}

struct each {
    const struct keyspace *ks;
    keyspace_each_fn visit;
    void *ctx;
    uint16_t numbers[1 << DB_SLOT_BITS];
};

static bool
each_entry(const struct each *each, const struct stripe *stripe,
           struct table_range range)
{
    const struct entry *entry;

    while ((entry = table_range_next(&range)) != NULL) {
        table_range_prefetch(&range, EACH_AHEAD);
        if (db_is_live(each->ks, entry->db_id) &&
            !each->visit(each->ctx, each->numbers[db_slot_of(entry->db_id)],
                         entry, entry_expiry(stripe, entry))) {
            return false;
        }
    }
    return true;
}

bool
keyspace_each(const struct keyspace *ks, keyspace_each_fn visit, void *ctx)
{
    struct each each = { .ks = ks, .visit = visit, .ctx = ctx };

    number_slots(ks, each.numbers);
    for (unsigned i = keyspace_next_occupied(ks, 0); i < KEYSPACE_STRIPES;
         i = keyspace_next_occupied(ks, i + 1)) {
        const struct stripe *stripe = &ks->stripes[i];

        for (uint32_t b = 0; b < stripe->table.used; b++) {
            if (!each_entry(&each, stripe,
                            table_whole_bucket(&stripe->table, b))) {
                return false;
            }
        }
    }
    return true;
}
