/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A shard is a chained hash table; a node of it is a key with the set of its
 * readers, an open-addressed table of pointers that begins as a single one
 * inside the node. Readers are counted, since their nodes outlive them.
 */
#include "admin/readership.h"

#include "base/err.h"
#include "base/mem.h"

#include <pthread.h>
#include <string.h>

enum {
    SHARDS = 256,
    SHARD_SHIFT = 56, /* by the hash's first bits; buckets by the last */
    BUCKETS_MIN = 16,
    SET_MIN = 4,
    EVICT_MAX = 16,   /* keys that one read pays for */
    SWEEP_SLICE = 64, /* buckets in one hold of a lock */
    NAME_SHARE = 16   /* no name takes more than this part of the bytes */
};

struct reader {
    _Atomic uint32_t references;
    atomic_bool here;
    uint64_t id;
    unsigned loop;
};

struct node {
    struct node *next;
    uint64_t hash;
    uint64_t age;             /* the shard's when it was remembered */
    uint32_t count, capacity; /* of the set; capacity is a power of two */
    struct reader **set;      /* &only while the capacity is 1 */
    struct reader *only;
    size_t len;
    char name[];
};

struct shard {
    _Alignas(64) pthread_mutex_t mutex;
    struct node **buckets;
    size_t capacity, count; /* nodes, forgotten ones included */
    uint64_t keys, items;   /* without those */
    uint64_t age;           /* what is older is forgotten */
};

struct readership {
    struct readership_limits limits;
    _Atomic uint64_t keys, bytes; /* of all shards */
    _Atomic uint64_t garbage;     /* counts what made some */
    _Atomic uint64_t dice;
    /* Of the thread that sweeps. */
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
        atomic_init(&reader->here, true);
        reader->id = id;
        reader->loop = loop;
    }
    return reader;
}

static bool
is_here(const struct reader *reader)
{
    return atomic_load_explicit(&reader->here, memory_order_relaxed);
}

uint64_t
readership_keys(const struct reader *reader)
{
    uint32_t references =
        atomic_load_explicit(&reader->references, memory_order_relaxed);

    return references - 1; /* one is the client's own */
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
make_garbage(struct readership *readership)
{
    (void)atomic_fetch_add(&readership->garbage, 1);
}

void
readership_leave(struct readership *readership, struct reader *reader)
{
    if (reader != NULL) {
        atomic_store_explicit(&reader->here, false, memory_order_relaxed);
        if (atomic_load(&reader->references) > 1) {
            make_garbage(readership);
        }
        unref(reader);
    }
}

/* ---- tidings ------------------------------------------------------------- */

void
readership_post(struct tidings *tidings, unsigned loop, uint64_t to)
{
    if (tidings->notice == NULL) {
        tidings->notice = notice_new(NOTICE_INVALIDATE, tidings->from,
                                     tidings->name, (struct slice){ NULL, 0 });
    }
    notice_list_add(tidings->list, tidings->notice, loop, to);
}

void
readership_end_tidings(struct tidings *tidings)
{
    notice_unref(tidings->notice);
    tidings->notice = NULL;
}

/* ---- sets ---------------------------------------------------------------- */

enum added { WAS_THERE, ADDED, NO_MEMORY };

static size_t
set_bytes(uint32_t capacity)
{
    return capacity > 1 ? capacity * sizeof(struct reader *) : 0;
}

/* Ids are drawn one after the other: the multiplication spreads them. */
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
set_free(struct node *node)
{
    if (node->capacity > 1) {
        mem_free((void *)node->set);
    }
}

/* Gives the set another table, without those who have left; room for one more
 * is there afterwards. Counts in the shard. */
static bool
set_rebuild(struct readership *readership, struct shard *shard,
            struct node *node)
{
    uint32_t here = 0;
    uint32_t capacity = SET_MIN;
    struct reader **set;

    for (uint32_t i = 0; i < node->capacity; i++) {
        here += node->set[i] != NULL && is_here(node->set[i]);
    }
    while (capacity / 4 * 3 <= here) {
        capacity *= 2;
    }
    set = mem_try_zalloc(set_bytes(capacity));
    if (set == NULL) {
        return false;
    }
    here = 0; /* somebody may have left meanwhile */
    for (uint32_t i = 0; i < node->capacity; i++) {
        struct reader *reader = node->set[i];

        if (reader != NULL && is_here(reader)) {
            *set_place(set, capacity, reader) = reader;
            here++;
        } else if (reader != NULL) {
            unref(reader);
        }
    }
    atomic_fetch_add(&readership->bytes,
                     set_bytes(capacity) - set_bytes(node->capacity));
    shard->items -= node->count - here;
    set_free(node);
    node->set = set;
    node->capacity = capacity;
    node->count = here;
    return true;
}

static enum added
set_add(struct readership *readership, struct shard *shard, struct node *node,
        struct reader *reader)
{
    struct reader **place = NULL;

    if (node->capacity > 1 || node->only == NULL || node->only == reader) {
        place = node->capacity > 1
                    ? set_place(node->set, node->capacity, reader)
                    : &node->only;
        if (*place == reader) {
            return WAS_THERE;
        }
    }
    if (place == NULL ||
        (node->capacity > 1 && node->count >= node->capacity / 4 * 3)) {
        if (!set_rebuild(readership, shard, node)) {
            return NO_MEMORY;
        }
        place = set_place(node->set, node->capacity, reader);
    }
    *place = reader;
    (void)atomic_fetch_add_explicit(&reader->references, 1,
                                    memory_order_relaxed);
    node->count++;
    shard->items++;
    return ADDED;
}

/* ---- nodes --------------------------------------------------------------- */

/* With its share of the buckets, of which there are two for each at most as
 * long as nothing is removed. */
static size_t
node_bytes(const struct node *node)
{
    return sizeof(*node) + 2 * sizeof(void *) + node->len +
           set_bytes(node->capacity);
}

static void
node_free(struct readership *readership, struct node *node)
{
    for (uint32_t i = 0; i < node->capacity; i++) {
        if (node->set[i] != NULL) {
            unref(node->set[i]);
        }
    }
    (void)atomic_fetch_sub(&readership->bytes, node_bytes(node));
    set_free(node);
    mem_free(node);
}

static bool
is_forgotten(const struct shard *shard, const struct node *node)
{
    return node->age != shard->age;
}

/* Takes a node out of its shard; the caller frees it. */
static struct node *
take_out(struct readership *readership, struct shard *shard, struct node **at)
{
    struct node *node = *at;

    *at = node->next;
    shard->count--;
    if (!is_forgotten(shard, node)) {
        shard->keys--;
        shard->items -= node->count;
        (void)atomic_fetch_sub(&readership->keys, 1);
    }
    return node;
}

/* Tells who is here and frees it; no lock is needed any more. */
static void
tell_and_free(struct readership *readership, struct node *node,
              struct tidings *tidings)
{
    for (uint32_t i = 0; i < node->capacity; i++) {
        const struct reader *reader = node->set[i];

        if (reader != NULL && is_here(reader)) {
            readership_post(tidings, reader->loop, reader->id);
        }
    }
    node_free(readership, node);
}

/* ---- shards -------------------------------------------------------------- */

static struct shard *
shard_of(struct readership *readership, uint64_t hash)
{
    return &readership->shards[hash >> SHARD_SHIFT];
}

static struct node **
place_of(struct shard *shard, struct slice name, uint64_t hash)
{
    struct node **at = &shard->buckets[hash & (shard->capacity - 1)];

    while (*at != NULL &&
           ((*at)->hash != hash ||
            !slice_equal(name, (struct slice){ (*at)->name, (*at)->len }))) {
        at = &(*at)->next;
    }
    return at;
}

/* A shard that cannot grow has longer chains, unless it has none at all. */
static bool
make_room(struct shard *shard)
{
    size_t capacity = shard->capacity > 0 ? shard->capacity * 2 : BUCKETS_MIN;
    struct node **buckets;

    if (shard->count < shard->capacity) {
        return true;
    }
    buckets = mem_try_zalloc(capacity * sizeof(struct node *));
    if (buckets == NULL) {
        return shard->capacity > 0;
    }
    for (size_t i = 0; i < shard->capacity; i++) {
        while (shard->buckets[i] != NULL) {
            struct node *node = shard->buckets[i];
            struct node **to = &buckets[node->hash & (capacity - 1)];

            shard->buckets[i] = node->next;
            node->next = *to;
            *to = node;
        }
    }
    mem_free((void *)shard->buckets);
    shard->buckets = buckets;
    shard->capacity = capacity;
    return true;
}

/* The node of a name, new or as it was; NULL without memory. */
static struct node *
get_node(struct readership *readership, struct shard *shard, struct slice name,
         uint64_t hash)
{
    struct node **at;
    struct node *node;

    if (!make_room(shard)) {
        return NULL;
    }
    at = place_of(shard, name, hash);
    if (*at != NULL && is_forgotten(shard, *at)) {
        node_free(readership, take_out(readership, shard, at));
        at = place_of(shard, name, hash);
    }
    if (*at != NULL) {
        return *at;
    }
    node = mem_try_alloc(sizeof(*node) + name.len);
    if (node == NULL) {
        return NULL;
    }
    *node = (struct node){ .hash = hash, .capacity = 1, .len = name.len };
    node->set = &node->only;
    node->age = shard->age;
    if (name.len > 0) {
        memcpy(node->name, name.data, name.len);
    }
    *at = node;
    shard->count++;
    shard->keys++;
    (void)atomic_fetch_add(&readership->keys, 1);
    (void)atomic_fetch_add(&readership->bytes, node_bytes(node));
    return node;
}

/* ---- too much ------------------------------------------------------------ */

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

/* Takes some node out of a shard that has one. */
static struct node *
take_any(struct readership *readership, struct shard *shard, uint64_t random)
{
    size_t at = (size_t)random & (shard->capacity - 1);

    while (shard->buckets[at] == NULL) {
        at = (at + 1) & (shard->capacity - 1);
    }
    return take_out(readership, shard, &shard->buckets[at]);
}

static void
evict_one(struct readership *readership, struct notice_list *list)
{
    uint64_t random =
        atomic_fetch_add(&readership->dice, 1) * UINT64_C(0x9e3779b97f4a7c15);
    struct node *node = NULL;
    bool forgotten = false;
    struct tidings tidings = { .list = list };

    random ^= random >> 29;
    for (unsigned i = 0; node == NULL && i < SHARDS; i++) {
        struct shard *shard = &readership->shards[(random + i) % SHARDS];

        pthread_mutex_lock(&shard->mutex);
        if (shard->count > 0) {
            node = take_any(readership, shard, random >> 16);
            forgotten = is_forgotten(shard, node);
        }
        pthread_mutex_unlock(&shard->mutex);
    }
    if (node != NULL && forgotten) {
        node_free(readership, node);
    } else if (node != NULL) {
        tidings.name = (struct slice){ node->name, node->len };
        tell_and_free(readership, node, &tidings);
        readership_end_tidings(&tidings);
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
                node_free(readership,
                          take_out(readership, shard, &shard->buckets[b]));
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
    struct node *node = NULL;
    enum added added = NO_MEMORY;

    if (!is_too_long(readership, name)) {
        pthread_mutex_lock(&shard->mutex);
        node = get_node(readership, shard, name, hash);
        if (node != NULL) {
            added = set_add(readership, shard, node, reader);
        }
        pthread_mutex_unlock(&shard->mutex);
    }
    if (added == NO_MEMORY) {
        struct tidings tidings = { .name = name, .list = list };

        readership_post(&tidings, reader->loop, reader->id);
        readership_end_tidings(&tidings);
    }
    for (int i = 0; added != NO_MEMORY && i < EVICT_MAX && is_over(readership);
         i++) {
        evict_one(readership, list);
    }
}

void
readership_tell(struct readership *readership, struct tidings *tidings,
                uint64_t hash)
{
    struct shard *shard = shard_of(readership, hash);
    struct node *node = NULL;

    pthread_mutex_lock(&shard->mutex);
    if (shard->count > 0) {
        struct node **at = place_of(shard, tidings->name, hash);

        if (*at != NULL && !is_forgotten(shard, *at)) {
            node = take_out(readership, shard, at);
        }
    }
    pthread_mutex_unlock(&shard->mutex);
    if (node != NULL) {
        tell_and_free(readership, node, tidings);
    }
}

void
readership_forget(struct readership *readership)
{
    for (unsigned i = 0; i < SHARDS; i++) {
        struct shard *shard = &readership->shards[i];

        pthread_mutex_lock(&shard->mutex);
        (void)atomic_fetch_sub(&readership->keys, shard->keys);
        shard->age++;
        shard->keys = 0;
        shard->items = 0;
        pthread_mutex_unlock(&shard->mutex);
    }
    make_garbage(readership);
}

/* ---- sweeping ------------------------------------------------------------ */

/* Drops the node at this link, or the readers of it who have left. True if the
 * link has another node now. */
static bool
sweep_node(struct readership *readership, struct shard *shard, struct node **at)
{
    struct node *node = *at;
    uint32_t here = 0;

    for (uint32_t i = 0; i < node->capacity; i++) {
        here += node->set[i] != NULL && is_here(node->set[i]);
    }
    if (is_forgotten(shard, node) || here == 0) {
        node_free(readership, take_out(readership, shard, at));
        return true;
    }
    if (here < node->count) {
        (void)set_rebuild(readership, shard, node);
    }
    return false;
}

/* An empty shard gives its buckets back, too. */
static void
sweep_shard_end(struct shard *shard)
{
    if (shard->count == 0 && shard->capacity > 0) {
        mem_free((void *)shard->buckets);
        shard->buckets = NULL;
        shard->capacity = 0;
    }
}

/* Returns how many buckets were looked at. */
static size_t
sweep_slice(struct readership *readership)
{
    struct shard *shard = &readership->shards[readership->sweep_shard];
    size_t seen = 0;

    pthread_mutex_lock(&shard->mutex);
    while (readership->sweep_bucket < shard->capacity && seen < SWEEP_SLICE) {
        struct node **at = &shard->buckets[readership->sweep_bucket++];

        while (*at != NULL) {
            if (!sweep_node(readership, shard, at)) {
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
            return false; /* what came meanwhile is for the next round */
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
