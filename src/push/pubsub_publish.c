/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A publisher reads the slots of all loops under their locks. Each time it
 * counts a bounded number of patterns, with at most LOCKED_WORK of matching. A
 * pattern that needs more is deferred: copied, and matched without the lock.
 */
#include "push/pubsub_publish.h"

#include "base/clock.h"
#include "base/glob.h"
#include "push/pubsub_slot.h"

enum { TOPIC_WORK = 8 }; /* what may_want() counts for each pattern */

struct counting {
    struct publishing *publishing;
    size_t work;
};

static bool
count_pattern(void *ctx, struct slice pattern, void *value)
{
    struct counting *counting = ctx;
    struct publishing *publishing = counting->publishing;
    const struct topic *topic = value;

    switch (glob_match(pattern, publishing->channel, false, &counting->work)) {
    case GLOB_YES:
        publishing->count += topic->count;
        publishing->wanted = true;
        break;
    case GLOB_OVER:
        buf_append_item(&publishing->deferred,
                        (struct slice){ (const char *)&topic->count,
                                        sizeof(topic->count) });
        buf_append_item(&publishing->deferred, pattern);
        break;
    case GLOB_NO:
        break;
    }
    return true;
}

/* Counts the channel, or some patterns. The caller holds the slot's lock. */
static void
count_locked(struct slot *slot, struct publishing *publishing)
{
    bool shard = publishing->kind == NOTICE_SHARD_MESSAGE;
    struct counting counting = { publishing, LOCKED_WORK };
    unsigned buckets = 0;

    if (publishing->stage == PUBLISHING_CHANNEL) {
        const struct topic *topic =
            map_find(&slot->topics[shard ? PUBSUB_SHARD : PUBSUB_CHANNEL],
                     publishing->channel);

        publishing->stage = shard || slot->topics[PUBSUB_PATTERN].count == 0
                                ? PUBLISHING_DONE
                                : PUBLISHING_PATTERNS;
        publishing->wanted = topic != NULL;
        publishing->count += topic != NULL ? topic->count : 0;
    }
    while (publishing->stage == PUBLISHING_PATTERNS &&
           counting.work > LOCKED_WORK / 2 && buckets++ < LOCKED_BUCKETS) {
        publishing->cursor =
            map_scan(&slot->topics[PUBSUB_PATTERN], publishing->cursor,
                     count_pattern, &counting);
        if (publishing->cursor == 0) {
            publishing->stage = PUBLISHING_DONE;
        }
    }
}

static bool
has_deferred(const struct publishing *publishing)
{
    return publishing->deferred.len > 0 || publishing->deferred.failed;
}

/* Counts the deferred patterns. If one cannot be matched even so, the loop gets
 * the message and cuts the clients that have the pattern. */
static void
count_deferred(struct publishing *publishing)
{
    struct slice pattern;
    struct slice count;
    size_t at = 0;

    publishing->wanted = publishing->wanted || publishing->deferred.failed;
    while (buf_next_item(&publishing->deferred, &at, &count) &&
           buf_next_item(&publishing->deferred, &at, &pattern)) {
        size_t work = GLOB_WORK;
        uint64_t number;
        enum glob_verdict verdict =
            glob_match(pattern, publishing->channel, false, &work);

        memcpy(&number, count.data, sizeof(number));
        publishing->count += verdict == GLOB_YES ? number : 0;
        publishing->wanted = publishing->wanted || verdict != GLOB_NO;
    }
    buf_free(&publishing->deferred);
    publishing->deferred = (struct buf){ 0 };
}

/* Counts a part of the loop's subscribers. Returns whether all are counted;
 * then the message has its stamp on this loop. */
static bool
count_piece(struct slot *slot, struct publishing *publishing)
{
    bool done;

    uv_mutex_lock(&slot->mutex);
    count_locked(slot, publishing);
    done = publishing->stage == PUBLISHING_DONE && !has_deferred(publishing);
    if (done && publishing->wanted) {
        publishing->stamp[publishing->loop] = ++slot->stamp;
    }
    uv_mutex_unlock(&slot->mutex);
    if (has_deferred(publishing)) {
        count_deferred(publishing);
    }
    return done;
}

bool
publishing_count(struct pubsub *pubsub, struct publishing *publishing,
                 uint64_t until_ns)
{
    CHECK(pubsub->loops <= PUBSUB_LOOPS_MAX);
    while (publishing->loop < pubsub->loops) {
        struct slot *slot = &pubsub->slots[publishing->loop];

        if ((publishing->stage == PUBLISHING_CHANNEL &&
             atomic_load(&slot->size) == 0) ||
            count_piece(slot, publishing)) {
            publishing->loop++;
            publishing->stage = PUBLISHING_CHANNEL;
            publishing->wanted = false;
            publishing->cursor = 0;
        } else if (clock_mono_ns() >= until_ns) {
            return false;
        }
    }
    return true;
}

void
publishing_send(struct pubsub *pubsub, const struct publishing *publishing,
                uint64_t from, struct slice payload, struct notice_list *list)
{
    struct notice *notice = NULL;

    CHECK(pubsub->loops <= PUBSUB_LOOPS_MAX);
    for (unsigned i = 0; i < pubsub->loops; i++) {
        if (publishing->stamp[i] == 0) {
            continue;
        }
        if (notice == NULL) {
            notice = notice_new(publishing->kind, from, publishing->channel,
                                payload);
        }
        notice_list_add(list, notice, i, publishing->stamp[i]);
    }
    notice_unref(notice);
}

void
publishing_fini(struct publishing *publishing)
{
    buf_free(&publishing->deferred);
}

/* Returns whether a loop has subscribers, or may have some. */
static bool
may_want(const struct slot *slot, struct slice channel)
{
    const struct topic *topic = slot->patterns;
    size_t work = LOCKED_WORK;

    if (map_find(&slot->topics[PUBSUB_CHANNEL], channel) != NULL) {
        return true;
    }
    for (; topic != NULL; topic = topic->next) {
        if (work <= TOPIC_WORK ||
            glob_match((struct slice){ topic->name, topic->len }, channel,
                       false, &work) != GLOB_NO) {
            return true;
        }
        work -= work > TOPIC_WORK ? TOPIC_WORK : work;
    }
    return false;
}

void
pubsub_publish_event(struct pubsub *pubsub, uint64_t from, struct slice channel,
                     struct slice payload, struct notice_list *list)
{
    struct publishing event = { .kind = NOTICE_MESSAGE, .channel = channel };

    for (unsigned i = 0; i < pubsub->loops; i++) {
        struct slot *slot = &pubsub->slots[i];

        if (atomic_load(&slot->size) > 0) {
            uv_mutex_lock(&slot->mutex);
            if (may_want(slot, channel)) {
                event.stamp[i] = ++slot->stamp;
            }
            uv_mutex_unlock(&slot->mutex);
        }
    }
    publishing_send(pubsub, &event, from, payload, list);
}
