/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stripes, locks, single keys and whole databases. Every change of an entry's
 * existence goes through keyspace_insert and keyspace_remove_entry, so counts,
 * the bit map of occupied stripes, next expiries and versions stay in step.
 */
#include "keyspace/keyspace.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "keyspace/keyspace_internal.h"

#include <string.h>

enum {
    LARGE_FILTER = 64 * 1024, /* bytes; from here the reaper frees it */
    GENERATIONS = 1 << DB_SLOT_BITS
};

struct gate *
keyspace_gate(struct keyspace *ks)
{
    return ks->gate;
}

void
keyspace_wait_freed(struct keyspace *ks)
{
    reaper_wait(ks->reaper);
}

/* ---- locks --------------------------------------------------------------- */

void
keyspace_lock(struct keyspace *ks, unsigned thread, unsigned stripe,
              bool exclusive)
{
    struct stripe_lock *lock = &ks->stripes[stripe].lock;

    if (ks->threads == 1) {
        return;
    }
    if (exclusive) {
        stripe_lock_exclusive(lock, &ks->lock_slots, stripe);
    } else {
        stripe_lock_shared(lock, &ks->lock_slots, thread, stripe);
    }
}

void
keyspace_unlock(struct keyspace *ks, unsigned thread, unsigned stripe)
{
    if (ks->threads > 1) {
        stripe_lock_release(&ks->stripes[stripe].lock, &ks->lock_slots, thread,
                            stripe);
    }
}

/* ---- bookkeeping --------------------------------------------------------- */

static void
count_add(_Atomic int64_t *count, int64_t n)
{
    (void)atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

static struct db_count *
count_at(const struct keyspace *ks, unsigned stripe, uint32_t db_id)
{
    return db_count_of(ks, stripe % ks->shards, db_slot_of(db_id));
}

static void
set_occupied(struct keyspace *ks, unsigned stripe, bool occupied)
{
    _Atomic uint64_t *word = &ks->occupied[stripe / 64];
    uint64_t bit = (uint64_t)1 << (stripe % 64);

    if (occupied) {
        (void)atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    } else {
        (void)atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed);
    }
}

/* Tells the reclaimer about the stripe's first expiry, if that changed. */
static void
publish_expiry(struct keyspace *ks, unsigned stripe)
{
    _Atomic uint64_t *next = &ks->next_expiry_ms[stripe];
    uint64_t at_ms = expire_next(&ks->stripes[stripe].expire);

    if (atomic_load_explicit(next, memory_order_relaxed) != at_ms) {
        atomic_store_explicit(next, at_ms, memory_order_relaxed);
    }
}

static void
drop_expiry(struct keyspace *ks, unsigned stripe, struct entry *entry)
{
    expire_remove(&ks->stripes[stripe].expire, entry);
    publish_expiry(ks, stripe);
    if (db_is_live(ks, entry->db_id)) {
        count_add(&count_at(ks, stripe, entry->db_id)->expires, -1);
    }
}

/* A version that nobody has seen yet. */
static void
renew(struct stripe *stripe, struct entry *entry)
{
    atomic_store_explicit(&entry->version, ++stripe->version,
                          memory_order_relaxed);
}

static uint64_t
version_of(const struct entry *entry)
{
    return atomic_load_explicit(&entry->version, memory_order_relaxed) &
           ~KEYSPACE_WATCHED;
}

/* The end of an entry that is in no table. */
static void
free_or_give(struct keyspace *ks, struct entry *entry)
{
    if (bloom_size(&entry->bloom) >= LARGE_FILTER) {
        reaper_give_entry(ks->reaper, entry);
    } else {
        keyspace_free_entry(entry);
    }
}

static void
note_removal(struct stripe *stripe, const struct entry *entry)
{
    struct removal *oldest = &stripe->removals[stripe->next_removal];

    if (stripe->older_removals < oldest->version) {
        stripe->older_removals = oldest->version;
    }
    *oldest = (struct removal){
        .hash = hash_name((struct slice){ entry->name, entry->name_len }),
        .version = version_of(entry),
    };
    stripe->next_removal = (stripe->next_removal + 1) % REMOVALS;
}

/* Takes the entry at this link out of everything and returns it. */
static struct entry *
take_out(struct keyspace *ks, unsigned stripe_index, struct entry **link)
{
    struct stripe *stripe = &ks->stripes[stripe_index];
    struct entry *entry = *link;

    if (entry->heap_index != EXPIRE_NONE) {
        drop_expiry(ks, stripe_index, entry);
    }
    table_remove(&stripe->table, link);
    if (stripe->table.count == 0) {
        set_occupied(ks, stripe_index, false);
    }
    note_removal(stripe, entry);
    if (db_is_live(ks, entry->db_id)) {
        count_add(&count_at(ks, stripe_index, entry->db_id)->keys, -1);
    } else {
        count_add(&ks->dead, -1);
    }
    return entry;
}

void
keyspace_remove_entry(struct keyspace *ks, unsigned stripe, struct entry **link)
{
    free_or_give(ks, take_out(ks, stripe, link));
}

/* ---- one key ------------------------------------------------------------- */

static struct entry *
find_any(const struct keyspace *ks, const struct key *key)
{
    return table_find(&ks->stripes[keyspace_stripe_of(key->hash)].table,
                      key->hash, key->name, db_id_of(ks, key->db));
}

struct entry *
keyspace_find(const struct keyspace *ks, const struct key *key, uint64_t now_ms)
{
    const struct stripe *stripe = &ks->stripes[keyspace_stripe_of(key->hash)];
    struct entry *entry = find_any(ks, key);

    if (entry != NULL && entry_is_expired(stripe, entry, now_ms)) {
        return NULL;
    }
    return entry;
}

void
keyspace_remove(struct keyspace *ks, const struct key *key, struct entry *entry)
{
    unsigned index = keyspace_stripe_of(key->hash);
    struct table *table = &ks->stripes[index].table;

    keyspace_remove_entry(ks, index, table_link(table, key->hash, entry));
    (void)table_fit(table);
}

/* As find, but what has expired is removed. */
static struct entry *
find_or_expire(struct keyspace *ks, const struct key *key, uint64_t now_ms,
               bool *ret_expired)
{
    unsigned index = keyspace_stripe_of(key->hash);
    struct stripe *stripe = &ks->stripes[index];
    struct entry *entry = find_any(ks, key);
    bool expired = entry != NULL && entry_is_expired(stripe, entry, now_ms);

    if (expired) {
        keyspace_remove(ks, key, entry);
        metric_add(METRIC_EXPIRED_KEYS, 1);
    }
    if (ret_expired != NULL) {
        *ret_expired = expired;
    }
    return expired ? NULL : entry;
}

struct entry *
keyspace_open(struct keyspace *ks, const struct key *key, uint64_t now_ms,
              bool *ret_expired)
{
    struct entry *entry = find_or_expire(ks, key, now_ms, ret_expired);

    if (entry != NULL) {
        renew(&ks->stripes[keyspace_stripe_of(key->hash)], entry);
    }
    return entry;
}

/* A new entry of a name that may be there already, in the table and counted,
 * with a filter that the caller has no longer; NULL without memory. */
static struct entry *
put_in(struct keyspace *ks, const struct key *key, const struct bloom *bloom,
       uint64_t incarnation)
{
    unsigned index = keyspace_stripe_of(key->hash);
    struct stripe *stripe = &ks->stripes[index];
    struct entry *entry;

    CHECK(key->name.len < UINT32_MAX);
    entry = mem_try_alloc(offsetof(struct entry, name) + key->name.len);
    if (entry == NULL) {
        return NULL;
    }
    entry->db_id = db_id_of(ks, key->db);
    entry->heap_index = EXPIRE_NONE;
    entry->name_len = (uint32_t)key->name.len;
    if (key->name.len > 0) {
        memcpy(entry->name, key->name.data, key->name.len);
    }
    if (!table_insert(&stripe->table, key->hash, entry)) {
        mem_free(entry);
        return NULL;
    }
    access_begin(ks, entry);
    entry->bloom = *bloom;
    entry->incarnation = incarnation;
    renew(stripe, entry);
    if (stripe->table.count == 1) {
        set_occupied(ks, index, true);
    }
    count_add(&count_at(ks, index, entry->db_id)->keys, 1);
    return entry;
}

enum err
keyspace_insert(struct keyspace *ks, const struct key *key, struct bloom *bloom,
                uint64_t incarnation, struct entry **ret_entry)
{
    struct entry *entry = put_in(ks, key, bloom, incarnation);

    if (entry == NULL) {
        return ERR_NOMEM;
    }
    keyspace_account_new(&entry->bloom);
    mem_free(bloom); /* which keyspace_env took from there */
    *ret_entry = entry;
    return OK;
}

/* Takes an entry out whose filter another one has. */
static void
discard(struct keyspace *ks, const struct key *key, const struct entry *entry)
{
    unsigned index = keyspace_stripe_of(key->hash);
    struct table *table = &ks->stripes[index].table;

    mem_free(take_out(ks, index, table_link(table, key->hash, entry)));
    (void)table_fit(table);
}

/* All that can fail comes first: for a moment two entries have the filter, and
 * the name too, if it was there. */
enum err
keyspace_rename(struct keyspace *ks, const struct key *from,
                struct entry *entry, const struct key *to)
{
    struct entry *target = find_any(ks, to);
    uint64_t at_ms = keyspace_expiry(ks, from, entry);
    struct entry *renamed = put_in(ks, to, &entry->bloom, entry->incarnation);

    CHECK(target != entry);
    if (renamed == NULL) {
        return ERR_NOMEM;
    }
    if (at_ms > 0 && keyspace_set_expiry(ks, to, renamed, at_ms) != OK) {
        discard(ks, to, renamed);
        return ERR_NOMEM;
    }
    access_inherit(renamed, entry);
    if (target != NULL) {
        keyspace_remove(ks, to, target);
    }
    discard(ks, from, entry);
    return OK;
}

/* The old filter goes in an entry without a name, since entries are what is
 * freed. */
enum err
keyspace_replace(struct keyspace *ks, const struct key *key,
                 struct entry *entry, struct bloom *bloom, uint64_t incarnation,
                 uint64_t at_ms)
{
    struct entry *old = mem_try_alloc(sizeof(*old));

    if (old == NULL) {
        return ERR_NOMEM;
    }
    if (at_ms == 0) {
        (void)keyspace_clear_expiry(ks, key, entry);
    } else if (keyspace_set_expiry(ks, key, entry, at_ms) != OK) {
        mem_free(old);
        return ERR_NOMEM;
    }
    *old = (struct entry){ .bloom = entry->bloom, .heap_index = EXPIRE_NONE };
    access_begin(ks, entry);
    entry->bloom = *bloom;
    entry->incarnation = incarnation;
    renew(&ks->stripes[keyspace_stripe_of(key->hash)], entry);
    keyspace_account_new(&entry->bloom);
    mem_free(bloom);
    free_or_give(ks, old);
    return OK;
}

bool
keyspace_delete(struct keyspace *ks, const struct key *key, uint64_t now_ms)
{
    struct entry *entry = find_or_expire(ks, key, now_ms, NULL);

    if (entry != NULL) {
        keyspace_remove(ks, key, entry);
    }
    return entry != NULL;
}

enum err
keyspace_set_expiry(struct keyspace *ks, const struct key *key,
                    struct entry *entry, uint64_t at_ms)
{
    unsigned index = keyspace_stripe_of(key->hash);
    struct stripe *stripe = &ks->stripes[index];
    bool had_one = entry->heap_index != EXPIRE_NONE;

    if (!expire_set(&stripe->expire, entry, at_ms > 0 ? at_ms : 1)) {
        return ERR_NOMEM;
    }
    if (!had_one) {
        count_add(&count_at(ks, index, entry->db_id)->expires, 1);
    }
    publish_expiry(ks, index);
    renew(stripe, entry);
    return OK;
}

bool
keyspace_clear_expiry(struct keyspace *ks, const struct key *key,
                      struct entry *entry)
{
    unsigned index = keyspace_stripe_of(key->hash);

    if (entry->heap_index == EXPIRE_NONE) {
        return false;
    }
    drop_expiry(ks, index, entry);
    renew(&ks->stripes[index], entry);
    return true;
}

uint64_t
keyspace_expiry(const struct keyspace *ks, const struct key *key,
                const struct entry *entry)
{
    return entry_expiry(&ks->stripes[keyspace_stripe_of(key->hash)], entry);
}

/* ENTRY: NULL if the key is missing or expired. */
static struct key_version
version_now(const struct keyspace *ks, const struct key *key,
            const struct entry *entry)
{
    const struct stripe *stripe = &ks->stripes[keyspace_stripe_of(key->hash)];

    return (struct key_version){
        .version = entry != NULL ? version_of(entry) : stripe->version,
        .swaps = ks->swaps[key->db],
        .exists = entry != NULL,
    };
}

/* An expired entry that is still there counts as removed already, so that its
 * removal between WATCH and EXEC changes nothing: its version is an old one. */
struct key_version
keyspace_version(const struct keyspace *ks, const struct key *key,
                 uint64_t now_ms)
{
    struct entry *entry = keyspace_find(ks, key, now_ms);

    if (entry != NULL) {
        (void)atomic_fetch_or_explicit(&entry->version, KEYSPACE_WATCHED,
                                       memory_order_relaxed);
    }
    return version_now(ks, key, entry);
}

bool
keyspace_changed(const struct keyspace *ks, const struct key *key,
                 struct key_version seen, uint64_t now_ms)
{
    const struct stripe *stripe = &ks->stripes[keyspace_stripe_of(key->hash)];
    struct key_version now =
        version_now(ks, key, keyspace_find(ks, key, now_ms));
    const struct entry *expired = find_any(ks, key);
    bool changed = stripe->older_removals > seen.version ||
                   (expired != NULL && version_of(expired) > seen.version);

    if (seen.exists || now.exists) {
        return seen.exists != now.exists || seen.version != now.version ||
               seen.swaps != now.swaps;
    }
    for (unsigned i = 0; i < REMOVALS && !changed; i++) {
        const struct removal *removal = &stripe->removals[i];

        changed = removal->hash == key->hash && removal->version > seen.version;
    }
    return changed;
}

void
keyspace_count(const struct keyspace *ks, uint32_t db, uint64_t *ret_keys,
               uint64_t *ret_expires)
{
    uint32_t slot = db_slot_of(db_id_of(ks, db));
    int64_t keys = 0;
    int64_t expires = 0;

    for (unsigned i = 0; i < ks->shards; i++) {
        const struct db_count *count = db_count_of(ks, i, slot);

        keys += atomic_load_explicit(&count->keys, memory_order_relaxed);
        expires += atomic_load_explicit(&count->expires, memory_order_relaxed);
    }
    *ret_keys = keys > 0 ? (uint64_t)keys : 0;
    *ret_expires = expires > 0 ? (uint64_t)expires : 0;
}

/* ---- positions ----------------------------------------------------------- */

uint64_t
keyspace_position(const struct keyspace *ks, unsigned stripe)
{
    return ks->stripes[stripe].position;
}

void
keyspace_set_position(struct keyspace *ks, unsigned stripe, uint64_t position)
{
    ks->stripes[stripe].position = position;
}

void
keyspace_set_all_positions(struct keyspace *ks, uint64_t position)
{
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        ks->stripes[i].position = position;
    }
}

/* ---- the world, under the raised gate ------------------------------------ */

/* Names went without being removed one by one: a watched missing name may be
 * among them. When they went to another database and may come back, the
 * version must be one that nobody has seen. */
static void
touch_removals(struct keyspace *ks, bool again)
{
    for (unsigned i = keyspace_next_occupied(ks, 0); i < KEYSPACE_STRIPES;
         i = keyspace_next_occupied(ks, i + 1)) {
        ks->stripes[i].version += again;
        ks->stripes[i].older_removals = ks->stripes[i].version;
    }
}

static void
clear_count(struct keyspace *ks, uint32_t slot)
{
    for (unsigned i = 0; i < ks->shards; i++) {
        atomic_store(&db_count_of(ks, i, slot)->keys, 0);
        atomic_store(&db_count_of(ks, i, slot)->expires, 0);
    }
}

uint64_t
keyspace_entries(const struct keyspace *ks)
{
    uint64_t entries = 0;

    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        entries += ks->stripes[i].table.count;
    }
    return entries;
}

void
keyspace_move_out(struct keyspace *ks, struct reaper_set *set)
{
    set->entries = keyspace_entries(ks);
    touch_removals(ks, false);
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        struct stripe *stripe = &ks->stripes[i];

        set->tables[i] = stripe->table;
        set->expires[i] = stripe->expire;
        stripe->table = (struct table){ NULL, 0, 0 };
        stripe->expire = (struct expire){ NULL, 0, 0 };
        atomic_store_explicit(&ks->next_expiry_ms[i], UINT64_MAX,
                              memory_order_relaxed);
    }
    for (unsigned i = 0; i < OCCUPIED_WORDS; i++) {
        atomic_store_explicit(&ks->occupied[i], 0, memory_order_relaxed);
    }
    for (uint32_t slot = 0; slot < ks->databases; slot++) {
        clear_count(ks, slot);
    }
    atomic_store(&ks->dead, 0);
}

void
keyspace_flush_all(struct keyspace *ks)
{
    struct reaper_set *set;

    if (keyspace_entries(ks) == 0) {
        return;
    }
    set = reaper_take_set(ks->reaper);
    keyspace_move_out(ks, set);
    /* All filters there are, but for those that are pending already. */
    set->bytes = metric_sum(METRIC_BF_MEMORY) -
                 metric_sum(METRIC_LAZYFREE_PENDING_BYTES);
    reaper_give_set(ks->reaper, set);
}

void
keyspace_flush_db(struct keyspace *ks, uint32_t db)
{
    uint32_t db_id = db_id_of(ks, db);
    uint32_t slot = db_slot_of(db_id);
    uint32_t generation = ((db_id >> DB_SLOT_BITS) + 1) % GENERATIONS;
    uint32_t next = generation << DB_SLOT_BITS | slot;
    uint64_t keys;
    uint64_t expires;

    keyspace_count(ks, db, &keys, &expires);
    if (keys == 0) {
        return;
    }
    if (keys == keyspace_entries(ks)) {
        keyspace_flush_all(ks); /* nothing to keep: leave it to the reaper */
        return;
    }
    touch_removals(ks, false);
    if (generation == 0) {
        keyspace_purge_dead(ks); /* some bear the id that comes next */
    }
    clear_count(ks, slot);
    count_add(&ks->dead, (int64_t)keys);
    atomic_store(&ks->db_ids[db], next);
    atomic_store(&ks->slot_ids[slot], next);
    if (generation == 0) {
        keyspace_purge_dead(ks); /* and these the one that will come last */
    }
}

void
keyspace_swap_db(struct keyspace *ks, uint32_t a, uint32_t b)
{
    uint32_t db_id = db_id_of(ks, a);

    if (a == b) {
        return;
    }
    touch_removals(ks, true);
    ks->swaps[a]++;
    ks->swaps[b]++;
    atomic_store(&ks->db_ids[a], db_id_of(ks, b));
    atomic_store(&ks->db_ids[b], db_id);
    ks->slot_dbs[db_slot_of(db_id)] = b;
    ks->slot_dbs[db_slot_of(db_id_of(ks, a))] = a;
}
