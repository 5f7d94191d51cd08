/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A shard is a chained hash table of keys. It is not a base/map, whose copy of
 * the name and second allocation would cost memory and time for each tracked
 * read. A key has the set of its readers: one pointer inside the key, or an
 * open-addressed table of pointers. Readers have a count of references, since
 * keys refer to readers that have left.
 */
#include "push/readership.h"

#include "base/err.h"
#include "base/mem.h"

#include <pthread.h>
#include <string.h>

enum {
    SHARDS = 256,
    SHARD_SHIFT = 56, /* the highest bits of the hash; buckets by the lowest */
    BUCKETS_MIN = 16,
    SET_MIN = 4,
    EVICT_MAX = 16,   /* keys that one read evicts */
    SWEEP_SLICE = 64, /* buckets under one lock */
    NAME_SHARE = 16   /* names longer than limits.bytes / 16 are not kept */
};

struct reader {
    _Atomic uint32_t references;
    atomic_bool joined;
    uint64_t id;
    unsigned loop;
};

struct key {
    struct key *next;
    uint64_t hash;
    uint64_t epoch;           /* the shard's when it was added */
    uint32_t count, capacity; /* of the set; capacity is a power of two */
    struct reader **set;      /* &only while the capacity is 1 */
    struct reader *only;
    size_t len;
    char name[];
};

struct shard {
    _Alignas(64) pthread_mutex_t mutex;
    struct key **buckets;
    size_t capacity, count; /* keys, forgotten ones included */
    uint64_t keys, items;   /* forgotten ones not included */
    uint64_t epoch;         /* keys of an earlier epoch are forgotten */
};

struct readership {
    struct readership_limits limits;
    _Atomic uint64_t keys, bytes; /* of all shards */
    _Atomic uint64_t garbage;     /* rises when there is more to sweep */
    _Atomic uint64_t dice;        /* for random evictions */
    /* Used by the thread that sweeps: */
    uint64_t swept_garbage;
    unsigned sweep_shard;
    size_t sweep_bucket;
    bool sweeping;
    struct shard shards[SHARDS];
};

/* ---- readers ------------------------------------------------------------- */

struct reader *
readership_join(uint64_t id, unsigned loop)
{
    struct reader *reader = mem_try_alloc(sizeof(*reader));

    if (reader != NULL) {
        atomic_init(&reader->references, 1);
        atomic_init(&reader->joined, true);
        reader->id = id;
        reader->loop = loop;
    }
    return reader;
}

static bool
has_joined(const struct reader *reader)
{
    return atomic_load_explicit(&reader->joined, memory_order_relaxed);
}

uint64_t
readership_keys(const struct reader *reader)
{
    uint32_t references =
        atomic_load_explicit(&reader->references, memory_order_relaxed);

    return references - 1; /* the client has one of them */
}

static void
unref(struct reader *reader)
{
    uint32_t before =
        atomic_fetch_sub_explicit(&reader->references, 1, memory_order_acq_rel);

    CHECK(before > 0);
    if (before == 1) {
        mem_free(reader);
    }
}

static void
add_garbage(struct readership *readership)
{
    (void)atomic_fetch_add(&readership->garbage, 1);
}

void
readership_leave(struct readership *readership, struct reader *reader)
{
    if (reader != NULL) {
        atomic_store_explicit(&reader->joined, false, memory_order_relaxed);
        if (atomic_load(&reader->references) > 1) {
            add_garbage(readership);
        }
        unref(reader);
    }
}

/* ---- invalidations ------------------------------------------------------- */

void
invalidation_post(struct invalidation *invalidation, unsigned loop, uint64_t to)
{
    if (invalidation->notice == NULL) {
        invalidation->notice =
            notice_new(NOTICE_INVALIDATE, invalidation->from,
                       invalidation->name, (struct slice){ NULL, 0 });
    }
    notice_list_add(invalidation->list, invalidation->notice, loop, to);
}

void
invalidation_fini(struct invalidation *invalidation)
{
    notice_unref(invalidation->notice);
    invalidation->notice = NULL;
}

/* ---- sets ---------------------------------------------------------------- */

enum added { WAS_THERE, ADDED, NO_MEMORY };

static size_t
set_bytes(uint32_t capacity)
{
    return capacity > 1 ? capacity * sizeof(struct reader *) : 0;
}

/* Finds a reader's place in a set. Ids are consecutive; the multiplication
 * spreads them. */
static struct reader **
set_place(struct reader **set, uint32_t capacity, const struct reader *reader)
{
    uint32_t at = (uint32_t)(reader->id * UINT64_C(0x9e3779b97f4a7c15) >> 32);

    while (set[at & (capacity - 1)] != NULL &&
           set[at & (capacity - 1)] != reader) {
        at++;
    }
    return &set[at & (capacity - 1)];
}

static void
set_free(struct key *key)
{
    if (key->capacity > 1) {
        mem_free((void *)key->set);
    }
}

/* Gives the set a new table, without readers that have left and with space for
 * one more. Updates the shard's counts. False: no memory. */
static bool
set_rebuild(struct readership *readership, struct shard *shard, struct key *key)
{
    uint32_t here = 0;
    uint32_t capacity = SET_MIN;
    struct reader **set;

    for (uint32_t i = 0; i < key->capacity; i++) {
        here += key->set[i] != NULL && has_joined(key->set[i]);
    }
    while (capacity / 4 * 3 <= here) {
        capacity *= 2;
    }
    set = mem_try_zalloc(set_bytes(capacity));
    if (set == NULL) {
        return false;
    }
    here = 0; /* count again: readers may leave meanwhile */
    for (uint32_t i = 0; i < key->capacity; i++) {
        struct reader *reader = key->set[i];

        if (reader != NULL && has_joined(reader)) {
            *set_place(set, capacity, reader) = reader;
            here++;
        } else if (reader != NULL) {
            unref(reader);
        }
    }
    atomic_fetch_add(&readership->bytes,
                     set_bytes(capacity) - set_bytes(key->capacity));
    shard->items -= key->count - here;
    set_free(key);
    key->set = set;
    key->capacity = capacity;
    key->count = here;
    return true;
}

static enum added
set_add(struct readership *readership, struct shard *shard, struct key *key,
        struct reader *reader)
{
    struct reader **place = NULL;

    if (key->capacity > 1 || key->only == NULL || key->only == reader) {
        place = key->capacity > 1 ? set_place(key->set, key->capacity, reader)
                                  : &key->only;
        if (*place == reader) {
            return WAS_THERE;
        }
    }
    if (place == NULL ||
        (key->capacity > 1 && key->count >= key->capacity / 4 * 3)) {
        if (!set_rebuild(readership, shard, key)) {
            return NO_MEMORY;
        }
        place = set_place(key->set, key->capacity, reader);
    }
    *place = reader;
    (void)atomic_fetch_add_explicit(&reader->references, 1,
                                    memory_order_relaxed);
    key->count++;
    shard->items++;
    CHECK(key->count <= key->capacity);
    return ADDED;
}

/* ---- keys ---------------------------------------------------------------- */

/* Returns the bytes of a key with its share of the buckets: there are at most
 * two buckets for each key while no key is removed. */
static size_t
key_bytes(const struct key *key)
{
    return sizeof(*key) + 2 * sizeof(void *) + key->len +
           set_bytes(key->capacity);
}

static void
key_free(struct readership *readership, struct key *key)
{
    for (uint32_t i = 0; i < key->capacity; i++) {
        if (key->set[i] != NULL) {
            unref(key->set[i]);
        }
    }
    (void)atomic_fetch_sub(&readership->bytes, key_bytes(key));
    set_free(key);
    mem_free(key);
}

static bool
is_forgotten(const struct shard *shard, const struct key *key)
{
    return key->epoch != shard->epoch;
}

/* Removes a key from its shard; the caller frees it. */
static struct key *
detach(struct readership *readership, struct shard *shard, struct key **at)
{
    struct key *key = *at;

    CHECK(shard->count > 0);
    *at = key->next;
    shard->count--;
    if (!is_forgotten(shard, key)) {
        shard->keys--;
        shard->items -= key->count;
        (void)atomic_fetch_sub(&readership->keys, 1);
    }
    return key;
}

/* Posts the invalidation to all readers of a detached key, and frees it. Needs
 * no lock. */
static void
post_and_free(struct readership *readership, struct key *key,
              struct invalidation *invalidation)
{
    for (uint32_t i = 0; i < key->capacity; i++) {
        const struct reader *reader = key->set[i];

        if (reader != NULL && has_joined(reader)) {
            invalidation_post(invalidation, reader->loop, reader->id);
        }
    }
    key_free(readership, key);
}

/* ---- shards -------------------------------------------------------------- */

static struct shard *
shard_of(struct readership *readership, uint64_t hash)
{
    return &readership->shards[hash >> SHARD_SHIFT];
}

static struct key **
place_of_key(struct shard *shard, struct slice name, uint64_t hash)
{
    struct key **at = &shard->buckets[hash & (shard->capacity - 1)];

    while (*at != NULL &&
           ((*at)->hash != hash ||
            !slice_equal(name, (struct slice){ (*at)->name, (*at)->len }))) {
        at = &(*at)->next;
    }
    return at;
}

/* Grows a full shard. Without memory its chains become longer; false if it has
 * no bucket at all. */
static bool
grow_shard(struct shard *shard)
{
    size_t capacity = shard->capacity > 0 ? shard->capacity * 2 : BUCKETS_MIN;
    struct key **buckets;

    if (shard->count < shard->capacity) {
        return true;
    }
    buckets = mem_try_zalloc(capacity * sizeof(struct key *));
    if (buckets == NULL) {
        return shard->capacity > 0;
    }
    for (size_t i = 0; i < shard->capacity; i++) {
        while (shard->buckets[i] != NULL) {
            struct key *key = shard->buckets[i];
            struct key **to = &buckets[key->hash & (capacity - 1)];

            shard->buckets[i] = key->next;
            key->next = *to;
            *to = key;
        }
    }
    mem_free((void *)shard->buckets);
    shard->buckets = buckets;
    shard->capacity = capacity;
    return true;
}

/* Finds or adds the key of a name; NULL: no memory. */
static struct key *
get_key(struct readership *readership, struct shard *shard, struct slice name,
        uint64_t hash)
{
    struct key **at;
    struct key *key;

    if (!grow_shard(shard)) {
        return NULL;
    }
    at = place_of_key(shard, name, hash);
    if (*at != NULL && is_forgotten(shard, *at)) {
        key_free(readership, detach(readership, shard, at));
        at = place_of_key(shard, name, hash);
    }
    if (*at != NULL) {
        return *at;
    }
    key = mem_try_alloc(sizeof(*key) + name.len);
    if (key == NULL) {
        return NULL;
    }
    *key = (struct key){ .hash = hash, .capacity = 1, .len = name.len };
    key->set = &key->only;
    key->epoch = shard->epoch;
    if (name.len > 0) {
        memcpy(key->name, name.data, name.len);
    }
    *at = key;
    shard->count++;
    shard->keys++;
    (void)atomic_fetch_add(&readership->keys, 1);
    (void)atomic_fetch_add(&readership->bytes, key_bytes(key));
    return key;
}

/* ---- limits -------------------------------------------------------------- */

static bool
is_over(const struct readership *readership)
{
    uint64_t keys_max =
        atomic_load_explicit(readership->limits.keys, memory_order_relaxed);
    uint64_t bytes_max =
        atomic_load_explicit(readership->limits.bytes, memory_order_relaxed);

    return (keys_max > 0 &&
            atomic_load_explicit(&readership->keys, memory_order_relaxed) >
                keys_max) ||
           (bytes_max > 0 &&
            atomic_load_explicit(&readership->bytes, memory_order_relaxed) >
                bytes_max);
}

/* Detaches a random key of a shard that is not empty. */
static struct key *
detach_any(struct readership *readership, struct shard *shard, uint64_t random)
{
    size_t at = (size_t)random & (shard->capacity - 1);

    while (shard->buckets[at] == NULL) {
        at = (at + 1) & (shard->capacity - 1);
    }
    return detach(readership, shard, &shard->buckets[at]);
}

static void
evict_one(struct readership *readership, struct notice_list *list)
{
    uint64_t random =
        atomic_fetch_add(&readership->dice, 1) * UINT64_C(0x9e3779b97f4a7c15);
    struct key *key = NULL;
    bool forgotten = false;
    struct invalidation invalidation = { .list = list };

    random ^= random >> 29;
    for (unsigned i = 0; key == NULL && i < SHARDS; i++) {
        struct shard *shard = &readership->shards[(random + i) % SHARDS];

        pthread_mutex_lock(&shard->mutex);
        if (shard->count > 0) {
            key = detach_any(readership, shard, random >> 16);
            forgotten = is_forgotten(shard, key);
        }
        pthread_mutex_unlock(&shard->mutex);
    }
    if (key != NULL && forgotten) {
        key_free(readership, key);
    } else if (key != NULL) {
        invalidation.name = (struct slice){ key->name, key->len };
        post_and_free(readership, key, &invalidation);
        invalidation_fini(&invalidation);
    }
}

/* ---- the calls ----------------------------------------------------------- */

struct readership *
readership_new(const struct readership_limits *limits)
{
    struct readership *readership = mem_lines(sizeof(*readership));

    readership->limits = *limits;
    for (unsigned i = 0; i < SHARDS; i++) {
        CHECK(pthread_mutex_init(&readership->shards[i].mutex, NULL) == 0);
    }
    return readership;
}

void
readership_free(struct readership *readership)
{
    for (unsigned i = 0; readership != NULL && i < SHARDS; i++) {
        struct shard *shard = &readership->shards[i];

        for (size_t b = 0; b < shard->capacity; b++) {
            while (shard->buckets[b] != NULL) {
                key_free(readership,
                         detach(readership, shard, &shard->buckets[b]));
            }
        }
        mem_free((void *)shard->buckets);
        pthread_mutex_destroy(&shard->mutex);
    }
    mem_free_lines(readership, sizeof(*readership));
}

static bool
is_too_long(const struct readership *readership, struct slice name)
{
    uint64_t bytes_max =
        atomic_load_explicit(readership->limits.bytes, memory_order_relaxed);

    return bytes_max > 0 && name.len > bytes_max / NAME_SHARE;
}

void
readership_add(struct readership *readership, struct reader *reader,
               struct slice name, uint64_t hash, struct notice_list *list)
{
    struct shard *shard = shard_of(readership, hash);
    struct key *key = NULL;
    enum added added = NO_MEMORY;

    if (!is_too_long(readership, name)) {
        pthread_mutex_lock(&shard->mutex);
        key = get_key(readership, shard, name, hash);
        if (key != NULL) {
            added = set_add(readership, shard, key, reader);
        }
        pthread_mutex_unlock(&shard->mutex);
    }
    if (added == NO_MEMORY) {
        struct invalidation invalidation = { .name = name, .list = list };

        invalidation_post(&invalidation, reader->loop, reader->id);
        invalidation_fini(&invalidation);
    }
    for (int i = 0; added != NO_MEMORY && i < EVICT_MAX && is_over(readership);
         i++) {
        evict_one(readership, list);
    }
}

void
readership_invalidate(struct readership *readership,
                      struct invalidation *invalidation, uint64_t hash)
{
    struct shard *shard = shard_of(readership, hash);
    struct key *key = NULL;

    pthread_mutex_lock(&shard->mutex);
    if (shard->count > 0) {
        struct key **at = place_of_key(shard, invalidation->name, hash);

        if (*at != NULL && !is_forgotten(shard, *at)) {
            key = detach(readership, shard, at);
        }
    }
    pthread_mutex_unlock(&shard->mutex);
    if (key != NULL) {
        post_and_free(readership, key, invalidation);
    }
}

void
readership_clear(struct readership *readership)
{
    for (unsigned i = 0; i < SHARDS; i++) {
        struct shard *shard = &readership->shards[i];

        pthread_mutex_lock(&shard->mutex);
        (void)atomic_fetch_sub(&readership->keys, shard->keys);
        shard->epoch++;
        shard->keys = 0;
        shard->items = 0;
        pthread_mutex_unlock(&shard->mutex);
    }
    add_garbage(readership);
}

/* ---- sweeping ------------------------------------------------------------ */

/* Frees the key at this link, or drops its readers that have left. Returns
 * whether the key was freed, so that the link leads to another one. */
static bool
sweep_key(struct readership *readership, struct shard *shard, struct key **at)
{
    struct key *key = *at;
    uint32_t here = 0;

    for (uint32_t i = 0; i < key->capacity; i++) {
        here += key->set[i] != NULL && has_joined(key->set[i]);
    }
    if (is_forgotten(shard, key) || here == 0) {
        key_free(readership, detach(readership, shard, at));
        return true;
    }
    if (here < key->count) {
        (void)set_rebuild(readership, shard, key);
    }
    return false;
}

/* Frees the buckets of an empty shard. */
static void
sweep_shard_end(struct shard *shard)
{
    if (shard->count == 0 && shard->capacity > 0) {
        mem_free((void *)shard->buckets);
        shard->buckets = NULL;
        shard->capacity = 0;
    }
}

/* Sweeps some buckets of one shard. Returns how many, plus 1 for the call, so
 * that empty shards count, too. */
static size_t
sweep_slice(struct readership *readership)
{
    struct shard *shard = &readership->shards[readership->sweep_shard];
    size_t seen = 0;

    pthread_mutex_lock(&shard->mutex);
    while (readership->sweep_bucket < shard->capacity && seen < SWEEP_SLICE) {
        struct key **at = &shard->buckets[readership->sweep_bucket++];

        while (*at != NULL) {
            if (!sweep_key(readership, shard, at)) {
                at = &(*at)->next;
            }
        }
        seen++;
    }
    if (readership->sweep_bucket >= shard->capacity) {
        sweep_shard_end(shard);
        readership->sweep_bucket = 0;
        readership->sweep_shard++;
    }
    pthread_mutex_unlock(&shard->mutex);
    return seen + 1;
}

bool
readership_sweep(struct readership *readership, size_t buckets)
{
    uint64_t garbage = atomic_load(&readership->garbage);

    if (!readership->sweeping) {
        if (readership->swept_garbage == garbage) {
            return false;
        }
        readership->swept_garbage = garbage;
        readership->sweeping = true;
        readership->sweep_shard = 0;
        readership->sweep_bucket = 0;
    }
    for (size_t seen = 0; seen < buckets;) {
        if (readership->sweep_shard == SHARDS) {
            readership->sweeping = false;
            return false; /* newer garbage is for the next round */
        }
        seen += sweep_slice(readership);
    }
    return true;
}

struct readership_sums
readership_sum(struct readership *readership)
{
    struct readership_sums sums = { .bytes = atomic_load(&readership->bytes) };

    for (unsigned i = 0; i < SHARDS; i++) {
        struct shard *shard = &readership->shards[i];

        pthread_mutex_lock(&shard->mutex);
        sums.keys += shard->keys;
        sums.items += shard->items;
        pthread_mutex_unlock(&shard->mutex);
    }
    return sums;
}
