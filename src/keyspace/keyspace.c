/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Only put_in adds entries, and only take_out removes them, so counts, the bit
 * map of occupied stripes, next expiries and versions stay consistent.
 */
#include "keyspace/keyspace.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/prefetch.h"
#include "keyspace/keyspace_internal.h"
#include "keyspace/memory.h"
#include "keyspace/reaper.h"

#include <string.h>

/* In bytes. The reaper frees filters of this size or more. */
enum { LARGE_FILTER = 64 * 1024 };

_Static_assert(offsetof(struct keyspace, access) == 0, "keyspace_access");

struct gate *
keyspace_gate(struct keyspace *ks)
{
    return ks->gate;
}

unsigned
keyspace_databases(const struct keyspace *ks)
{
    return ks->databases;
}

unsigned
keyspace_threads(const struct keyspace *ks)
{
    return ks->threads;
}

void
keyspace_wait_freed(struct keyspace *ks)
{
    reaper_wait(ks->reaper);
}

/* ---- locks --------------------------------------------------------------- */

bool
keyspace_is_shared(const struct keyspace *ks)
{
    return ks->shared;
}

void
keyspace_lock(struct keyspace *ks, unsigned thread, unsigned stripe,
              bool exclusive)
{
    struct stripe_lock *lock = &ks->stripes[stripe].lock;

    if (!ks->shared) {
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
    if (ks->shared) {
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

/* Publishes the stripe's first expiry to the reclaimer, if it changed. */
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

/* Gives the entry a version that no client has seen. */
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

/* Frees an entry that is in no table, or has the reaper free it. */
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
note_removal(struct stripe *stripe, uint64_t hash, const struct entry *entry)
{
    struct removal *oldest = &stripe->removals[stripe->next_removal];

    if (stripe->older_removals < oldest->version) {
        stripe->older_removals = oldest->version;
    }
    *oldest = (struct removal){ hash, version_of(entry) };
    stripe->next_removal = (stripe->next_removal + 1) % REMOVALS;
}

/* Removes an entry from the table, the heap and the counts. */
static void
take_out(struct keyspace *ks, uint64_t hash, struct entry *entry)
{
    unsigned index = keyspace_stripe_of(hash);
    struct stripe *stripe = &ks->stripes[index];

    if (entry->heap_index != EXPIRE_NONE) {
        drop_expiry(ks, index, entry);
    }
    table_remove(&stripe->table, table_place(hash, entry->db_id), entry);
    if (stripe->table.count == 0) {
        set_occupied(ks, index, false);
    }
    note_removal(stripe, hash, entry);
    if (db_is_live(ks, entry->db_id)) {
        count_add(&count_at(ks, index, entry->db_id)->keys, -1);
    } else {
        count_add(&ks->dead, -1);
    }
}

void
keyspace_remove_entry(struct keyspace *ks, uint64_t hash, struct entry *entry)
{
    take_out(ks, hash, entry);
    free_or_give(ks, entry);
}

/* ---- one key ------------------------------------------------------------- */

static struct entry *
find_any(const struct keyspace *ks, const struct key *key)
{
    const struct table *table =
        &ks->stripes[keyspace_stripe_of(key->hash)].table;

    if (key->seen == table->changes + 1) {
        return key->entry;
    }
    return table_find(table, key->hash, key->name, db_id_of(ks, key->db));
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
keyspace_prefetch_stripe(const struct keyspace *ks, uint64_t hash)
{
    const struct stripe *stripe = &ks->stripes[keyspace_stripe_of(hash)];

    prefetch(&stripe->lock);
    prefetch(&stripe->table);
}

void
keyspace_prefetch_line(const struct keyspace *ks, const struct key *key)
{
    table_prefetch_line(&ks->stripes[keyspace_stripe_of(key->hash)].table,
                        table_place(key->hash, db_id_of(ks, key->db)));
}

void
keyspace_remove(struct keyspace *ks, const struct key *key, struct entry *entry)
{
    keyspace_remove_entry(ks, key->hash, entry);
}

/* Finds a key, and removes it if it has expired. */
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

/* Adds an entry to the table and the counts; the name may be there already. On
 * success the entry owns the filter. Returns NULL without memory. */
static struct entry *
put_in(struct keyspace *ks, const struct key *key, const struct bloom *bloom,
       uint64_t incarnation)
{
    unsigned index = keyspace_stripe_of(key->hash);
    struct stripe *stripe = &ks->stripes[index];
    struct entry *entry;

    CHECK(key->name.len < UINT32_MAX);
    entry = mem_try_alloc(entry_bytes(key->name.len));
    if (entry == NULL) {
        return NULL;
    }
    entry->db_id = db_id_of(ks, key->db);
    entry->heap_index = EXPIRE_NONE;
    entry_set_name(entry, key->name);
    entry->again = 0;
    if (!table_insert(&stripe->table, table_place(key->hash, entry->db_id),
                      entry)) {
        mem_free(entry);
        return NULL;
    }
    access_begin(&ks->access, entry);
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
keyspace_put(struct keyspace *ks, const struct key *key,
             const struct bloom *bloom, uint64_t incarnation,
             struct entry **ret_entry)
{
    struct entry *entry = put_in(ks, key, bloom, incarnation);

    if (entry == NULL) {
        return ERR_NOMEM;
    }
    keyspace_account_new(&entry->bloom);
    *ret_entry = entry;
    return OK;
}

enum err
keyspace_insert(struct keyspace *ks, const struct key *key, struct bloom *bloom,
                uint64_t incarnation, struct entry **ret_entry)
{
    enum err err = keyspace_put(ks, key, bloom, incarnation, ret_entry);

    if (err == OK) {
        mem_free(bloom); /* filters of keyspace_env() come from base/mem.h */
    }
    return err;
}

enum bloom_status
keyspace_create(struct keyspace *ks, const struct key *key,
                const struct bloom_params *params, const struct bloom_env *env,
                uint64_t incarnation, struct entry **ret_entry)
{
    struct bloom bloom;
    enum bloom_status status = bloom_init(&bloom, params, env);

    if (status != BLOOM_OK) {
        return status;
    }
    if (keyspace_put(ks, key, &bloom, incarnation, ret_entry) != OK) {
        bloom_fini(&bloom, env);
        return BLOOM_NOMEM;
    }
    return BLOOM_OK;
}

/* Removes an entry whose filter another entry has. */
static void
discard(struct keyspace *ks, const struct key *key, struct entry *entry)
{
    take_out(ks, key->hash, entry);
    mem_free(entry);
}

/* Does first what can fail. For a moment two entries have the filter, and two
 * have the name TO if it existed. */
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

/* Moves the old filter to an entry without a name, since free_or_give takes
 * entries. */
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
    access_begin(&ks->access, entry);
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

/* Returns the present version. ENTRY is NULL if the key is missing or expired.
 */
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

/* An expired entry that is still in the table counts as missing. Its removal
 * between WATCH and EXEC is no change: the stripe notes a removal with the
 * removed entry's version, which is not above the one returned here. */
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

uint64_t
keyspace_count_keys(const struct keyspace *ks)
{
    uint64_t sum = 0;

    for (uint32_t db = 0; db < keyspace_databases(ks); db++) {
        uint64_t keys;
        uint64_t expires;

        keyspace_count(ks, db, &keys, &expires);
        sum += keys;
    }
    return sum;
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
