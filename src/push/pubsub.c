/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Subscribes, unsubscribes, and answers PUBSUB; pubsub_slot.h has a drawing of
 * the data.
 */
#include "push/pubsub.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "push/pubsub_slot.h"

struct pubsub *
pubsub_new(unsigned loops)
{
    struct pubsub *pubsub = mem_zalloc(sizeof(*pubsub));

    CHECK(uv_mutex_init(&pubsub->mutex) == 0);
    pubsub->loops = loops;
    pubsub->slots = mem_lines(loops * sizeof(struct slot));
    for (unsigned i = 0; i < loops; i++) {
        CHECK(uv_mutex_init(&pubsub->slots[i].mutex) == 0);
        pubsub->slots[i].patterns_end = &pubsub->slots[i].patterns;
        pubsub->slots[i].feeding.end = &pubsub->slots[i].feeding.first;
    }
    return pubsub;
}

void
pubsub_announce(struct pubsub *pubsub, _Atomic uint64_t *word, uint64_t flag)
{
    pubsub->announced = word;
    pubsub->flag = flag;
}

void
pubsub_free(struct pubsub *pubsub)
{
    if (pubsub == NULL) {
        return;
    }
    for (unsigned i = 0; i < pubsub->loops; i++) {
        for (unsigned kind = 0; kind < PUBSUB_KINDS; kind++) {
            CHECK(pubsub->slots[i].topics[kind].count == 0);
        }
        uv_mutex_destroy(&pubsub->slots[i].mutex);
    }
    uv_mutex_destroy(&pubsub->mutex);
    mem_free_lines(pubsub->slots, pubsub->loops * sizeof(struct slot));
    mem_free(pubsub);
}

/* ---- the names of all loops ---------------------------------------------- */

/* The name of a topic. */
struct topic_name {
    enum pubsub_kind kind;
    struct slice name;
    uint64_t hash; /* of a filter's key; else 0 */
};

/* Counts a filter that has its first subscriber, or has lost its last one. The
 * caller holds the lock. */
static void
count_feed(struct pubsub *pubsub, uint64_t hash, bool comes)
{
    _Atomic uint32_t *place = &pubsub->feeds[hash % FEED_PLACES];

    if (comes) {
        (void)atomic_fetch_add(place, 1);
    } else {
        CHECK(atomic_fetch_sub(place, 1) > 0);
    }
    metric_add(METRIC_PUBSUB_FILTERS, comes ? 1 : -1);
    if (pubsub->announced == NULL) {
        return;
    }
    if (pubsub->known[PUBSUB_FILTER].count > 0) {
        (void)atomic_fetch_or(pubsub->announced, pubsub->flag);
    } else {
        (void)atomic_fetch_and(pubsub->announced, ~pubsub->flag);
    }
}

static bool
known_add(struct pubsub *pubsub, const struct topic_name *topic)
{
    struct map *map = &pubsub->known[topic->kind];
    struct slice name = topic->name;
    struct known *known;

    uv_mutex_lock(&pubsub->mutex);
    known = map_find(map, name);
    if (known == NULL) {
        known = mem_try_zalloc(sizeof(*known));
        if (known != NULL && !map_put(map, name, known)) {
            mem_free(known);
            known = NULL;
        }
    }
    if (known != NULL) {
        known->loops++;
    }
    if (known != NULL && known->loops == 1 && topic->kind == PUBSUB_FILTER) {
        count_feed(pubsub, topic->hash, true);
    }
    uv_mutex_unlock(&pubsub->mutex);
    return known != NULL;
}

static void
known_remove(struct pubsub *pubsub, const struct topic_name *topic)
{
    struct map *map = &pubsub->known[topic->kind];
    struct known *known;

    uv_mutex_lock(&pubsub->mutex);
    known = map_find(map, topic->name);
    CHECK(known != NULL);
    known->loops--;
    if (known->loops == 0) {
        (void)map_remove(map, topic->name);
        mem_free(known);
        if (topic->kind == PUBSUB_FILTER) {
            count_feed(pubsub, topic->hash, false);
        }
    }
    uv_mutex_unlock(&pubsub->mutex);
}

/* ---- topics -------------------------------------------------------------- */

static void
topic_free(struct topic *topic)
{
    if (topic != NULL && topic->gathered != NULL) {
        CHECK(topic->gathered->at == NULL);
        buf_free(&topic->gathered->records);
        mem_free(topic->gathered);
    }
    mem_free(topic);
}

static struct topic *
topic_new(const struct topic_name *name)
{
    bool named = name->kind == PUBSUB_PATTERN || name->kind == PUBSUB_FILTER;
    size_t len = named ? name->name.len : 0;
    struct topic *topic = mem_try_zalloc(sizeof(*topic) + len);

    if (topic == NULL) {
        return NULL;
    }
    topic->end = &topic->first;
    topic->hash = name->hash;
    topic->len = len;
    if (len > 0) {
        memcpy(topic->name, name->name.data, len);
    }
    if (name->kind == PUBSUB_FILTER) {
        topic->gathered = mem_try_zalloc(sizeof(*topic->gathered));
        if (topic->gathered == NULL) {
            mem_free(topic);
            return NULL;
        }
        topic->gathered->topic = topic;
        topic->gathered->last = SIZE_MAX;
    }
    return topic;
}

/* Adds a topic to its slot. The caller has locked the slot, here and in
 * topic_leave. */
static bool
topic_enter(struct slot *slot, enum pubsub_kind kind, struct slice name,
            struct topic *topic)
{
    if (!map_put(&slot->topics[kind], name, topic)) {
        return false;
    }
    (void)atomic_fetch_add(&slot->size, 1);
    if (kind == PUBSUB_PATTERN) {
        topic->at = slot->patterns_end;
        *topic->at = topic;
        slot->patterns_end = &topic->next;
    }
    return true;
}

static void
topic_leave(struct slot *slot, enum pubsub_kind kind, struct slice name,
            struct topic *topic)
{
    struct delivery *delivery = &slot->delivery;

    if (delivery->topic == topic) {
        delivery->topic = topic->next;
        delivery->next = NULL;
        if (delivery->stage == DELIVERY_PATTERN) {
            delivery->stage = DELIVERY_MATCH;
        }
    }
    (void)map_remove(&slot->topics[kind], name);
    (void)atomic_fetch_sub(&slot->size, 1);
    if (kind == PUBSUB_PATTERN) {
        *topic->at = topic->next;
        if (topic->next != NULL) {
            topic->next->at = topic->at;
        } else {
            slot->patterns_end = topic->at;
        }
    }
}

/* Finds the topic of a name, or makes one. NULL: no memory. */
static struct topic *
topic_of(struct pubsub *pubsub, struct slot *slot,
         const struct topic_name *name)
{
    struct topic *topic = map_find(&slot->topics[name->kind], name->name);
    bool entered;

    if (topic != NULL) {
        return topic;
    }
    if (!known_add(pubsub, name)) {
        return NULL;
    }
    topic = topic_new(name);
    if (topic != NULL) {
        uv_mutex_lock(&slot->mutex);
        entered = topic_enter(slot, name->kind, name->name, topic);
        uv_mutex_unlock(&slot->mutex);
        if (!entered) {
            topic_free(topic);
            topic = NULL;
        }
    }
    if (topic == NULL) {
        known_remove(pubsub, name);
    }
    return topic;
}

/* Drops what was gathered for a topic that ends; NULL is fine. */
static void
drop_gathered(struct feeding *feeding, struct gathered *gathered)
{
    if (gathered == NULL || gathered->at == NULL) {
        return;
    }
    if (feeding->first == gathered) {
        feeding->begun = false;
    }
    *gathered->at = gathered->next;
    if (gathered->next != NULL) {
        gathered->next->at = gathered->at;
    } else {
        feeding->end = gathered->at;
    }
    gathered->at = NULL;
}

/* Removes a topic without subscriptions. The name may be borrowed from the
 * receiver's map. */
static void
topic_end(struct pubsub *pubsub, struct slot *slot, enum pubsub_kind kind,
          struct slice name, struct topic *topic)
{
    CHECK(topic->count == 0);
    drop_gathered(&slot->feeding, topic->gathered);
    uv_mutex_lock(&slot->mutex);
    topic_leave(slot, kind, name, topic);
    uv_mutex_unlock(&slot->mutex);
    known_remove(pubsub, &(struct topic_name){ kind, name, topic->hash });
    topic_free(topic);
}

/* ---- the subscriptions of one receiver ----------------------------------- */

static void
count_own(struct receiver *receiver, enum pubsub_kind kind)
{
    const struct subscriptions *all = receiver->subscriptions;

    atomic_store_explicit(&receiver->subscribed[kind],
                          (uint32_t)all->own[kind].count, memory_order_relaxed);
}

static void
free_own_if_empty(struct receiver *receiver)
{
    struct subscriptions *all = receiver->subscriptions;

    for (unsigned kind = 0; kind < PUBSUB_KINDS; kind++) {
        if (all->own[kind].count > 0) {
            return;
        }
    }
    mem_free(all);
    receiver->subscriptions = NULL;
    metric_add(METRIC_PUBSUB_CLIENTS, -1);
}

static struct map *
own_map(struct receiver *receiver, enum pubsub_kind kind)
{
    if (receiver->subscriptions == NULL) {
        receiver->subscriptions =
            mem_try_zalloc(sizeof(*receiver->subscriptions));
        metric_add(METRIC_PUBSUB_CLIENTS, receiver->subscriptions != NULL);
    }
    return receiver->subscriptions != NULL ? &receiver->subscriptions->own[kind]
                                           : NULL;
}

static void
link_subscription(struct slot *slot, struct topic *topic,
                  struct subscription *sub)
{
    if (topic->gathered != NULL) { /* SUB gets records from now on */
        sub->sent = topic->gathered->records.len;
        topic->gathered->last = SIZE_MAX;
    }
    uv_mutex_lock(&slot->mutex);
    sub->topic = topic;
    sub->since = slot->stamp;
    sub->at = topic->end;
    *sub->at = sub;
    topic->end = &sub->next;
    topic->count++;
    uv_mutex_unlock(&slot->mutex);
}

static void
unlink_subscription(struct slot *slot, struct subscription *sub)
{
    struct topic *topic = sub->topic;

    if (slot->delivery.next == sub) {
        slot->delivery.next = sub->next;
    }
    if (slot->feeding.next == sub) {
        slot->feeding.next = sub->next;
    }
    CHECK(topic->count > 0);
    uv_mutex_lock(&slot->mutex);
    *sub->at = sub->next;
    if (sub->next != NULL) {
        sub->next->at = sub->at;
    } else {
        topic->end = sub->at;
    }
    topic->count--;
    uv_mutex_unlock(&slot->mutex);
}

/* Adds the subscription to the receiver's map first, where no other thread sees
 * it, so that it can be removed again if a later step fails. */
static enum pubsub_result
subscribe_own(struct pubsub *pubsub, struct receiver *receiver,
              const struct topic_name *to)
{
    struct slot *slot = &pubsub->slots[receiver->loop];
    struct map *own = own_map(receiver, to->kind);
    struct slice name = to->name;
    struct subscription *sub;
    struct topic *topic;

    CHECK(receiver->loop < pubsub->loops);
    if (own == NULL) {
        return PUBSUB_NOMEM;
    }
    if (map_find(own, name) != NULL) {
        return PUBSUB_ALREADY;
    }
    sub = mem_try_zalloc(sizeof(*sub));
    if (sub == NULL || !map_put(own, name, sub)) {
        mem_free(sub);
        return PUBSUB_NOMEM;
    }
    topic = topic_of(pubsub, slot, to);
    if (topic == NULL) {
        (void)map_remove(own, name);
        mem_free(sub);
        return PUBSUB_NOMEM;
    }
    sub->receiver = receiver;
    link_subscription(slot, topic, sub);
    receiver->subscriptions->bytes += name.len;
    count_own(receiver, to->kind);
    return PUBSUB_OK;
}

static enum pubsub_result
subscribe(struct pubsub *pubsub, struct receiver *receiver,
          const struct topic_name *name)
{
    enum pubsub_result result = subscribe_own(pubsub, receiver, name);

    if (receiver->subscriptions != NULL) {
        free_own_if_empty(receiver);
    }
    return result;
}

enum pubsub_result
pubsub_subscribe(struct pubsub *pubsub, struct receiver *receiver,
                 enum pubsub_kind kind, struct slice name)
{
    CHECK(kind != PUBSUB_FILTER);
    return subscribe(pubsub, receiver, &(struct topic_name){ kind, name, 0 });
}

enum pubsub_result
pubsub_subscribe_filter(struct pubsub *pubsub, struct receiver *receiver,
                        struct slice name, uint64_t hash)
{
    return subscribe(pubsub, receiver,
                     &(struct topic_name){ PUBSUB_FILTER, name, hash });
}

enum pubsub_result
pubsub_unsubscribe(struct pubsub *pubsub, struct receiver *receiver,
                   enum pubsub_kind kind, struct slice name)
{
    struct slot *slot = &pubsub->slots[receiver->loop];
    struct subscription *sub;

    if (!pubsub_has(receiver, kind, name)) {
        return PUBSUB_NONE;
    }
    sub = map_find(&receiver->subscriptions->own[kind], name);
    CHECK(sub->receiver == receiver);
    unlink_subscription(slot, sub);
    if (sub->topic->count == 0) {
        topic_end(pubsub, slot, kind, name, sub->topic);
    }
    receiver->subscriptions->bytes -= name.len;
    /* `name` may be borrowed from this map (pubsub_any), so do not use it below
     * this call. */
    (void)map_remove(&receiver->subscriptions->own[kind], name);
    mem_free(sub);
    count_own(receiver, kind);
    free_own_if_empty(receiver);
    return PUBSUB_OK;
}

bool
pubsub_has(const struct receiver *receiver, enum pubsub_kind kind,
           struct slice name)
{
    return receiver->subscriptions != NULL &&
           map_find(&receiver->subscriptions->own[kind], name) != NULL;
}

size_t
pubsub_count(const struct receiver *receiver, enum pubsub_kind kind)
{
    return atomic_load_explicit(&receiver->subscribed[kind],
                                memory_order_relaxed);
}

size_t
pubsub_bytes(const struct receiver *receiver)
{
    return receiver->subscriptions != NULL ? receiver->subscriptions->bytes : 0;
}

size_t
pubsub_memory(const struct receiver *receiver)
{
    /* Each subscription has a topic, and its name is in three maps. */
    static const size_t maps = 3, map_entry_bytes = 64;
    const size_t one = sizeof(struct subscription) + sizeof(struct topic) +
                       maps * map_entry_bytes;
    size_t count = 0;

    if (receiver->subscriptions == NULL) {
        return 0;
    }
    for (int kind = 0; kind < PUBSUB_KINDS; kind++) {
        count += pubsub_count(receiver, (enum pubsub_kind)kind);
    }
    /* What is gathered for a filter leaves within milliseconds; its buffer
     * stays. */
    return sizeof(struct subscriptions) + count * one +
           pubsub_count(receiver, PUBSUB_FILTER) *
               (sizeof(struct gathered) + FEED_KEPT_BYTES) +
           maps * receiver->subscriptions->bytes;
}

bool
pubsub_any(const struct receiver *receiver, enum pubsub_kind kind,
           struct slice *ret_name)
{
    return receiver->subscriptions != NULL &&
           map_random(&receiver->subscriptions->own[kind],
                      random_below(UINT64_MAX), ret_name) != NULL;
}

struct visiting {
    pubsub_visit_fn visit;
    void *ctx;
    enum pubsub_kind kind;
};

static bool
visit_name(void *ctx, struct slice name, void *value)
{
    const struct visiting *visiting = ctx;

    (void)value;
    return visiting->visit(visiting->ctx, visiting->kind, name);
}

bool
pubsub_each(const struct receiver *receiver, pubsub_visit_fn visit, void *ctx)
{
    struct visiting visiting = { .visit = visit, .ctx = ctx };

    for (unsigned kind = 0;
         receiver->subscriptions != NULL && kind < PUBSUB_KINDS; kind++) {
        visiting.kind = (enum pubsub_kind)kind;
        if (!map_each(&receiver->subscriptions->own[kind], visit_name,
                      &visiting)) {
            return false;
        }
    }
    return true;
}

void
pubsub_leave(struct pubsub *pubsub, struct receiver *receiver)
{
    struct slice name;

    for (unsigned kind = 0; kind < PUBSUB_KINDS; kind++) {
        while (pubsub_any(receiver, kind, &name)) {
            (void)pubsub_unsubscribe(pubsub, receiver, kind, name);
        }
    }
}

/* ---- PUBSUB -------------------------------------------------------------- */

uint64_t
pubsub_subscribers(struct pubsub *pubsub, enum pubsub_kind kind,
                   struct slice name)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < pubsub->loops; i++) {
        struct slot *slot = &pubsub->slots[i];
        const struct topic *topic;

        uv_mutex_lock(&slot->mutex);
        topic = map_find(&slot->topics[kind], name);
        count += topic != NULL ? topic->count : 0;
        uv_mutex_unlock(&slot->mutex);
    }
    return count;
}

uint64_t
pubsub_names(struct pubsub *pubsub, enum pubsub_kind kind)
{
    uint64_t count;

    uv_mutex_lock(&pubsub->mutex);
    count = pubsub->known[kind].count;
    uv_mutex_unlock(&pubsub->mutex);
    return count;
}

enum { LISTED_BYTES = 64 * 1024 };

static bool
list_name(void *ctx, struct slice name, void *value)
{
    (void)value;
    buf_append_item(ctx, name);
    return true;
}

uint64_t
pubsub_names_from(struct pubsub *pubsub, enum pubsub_kind kind, uint64_t cursor,
                  struct buf *ret_names)
{
    unsigned buckets = 0;

    uv_mutex_lock(&pubsub->mutex);
    do {
        cursor = map_scan(&pubsub->known[kind], cursor, list_name, ret_names);
        buckets++;
    } while (cursor != 0 && buckets < LOCKED_BUCKETS &&
             ret_names->len < LISTED_BYTES);
    uv_mutex_unlock(&pubsub->mutex);
    return cursor;
}
