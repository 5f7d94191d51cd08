/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A publisher looks at the slots of all loops under their locks.
 */
#include "admin/pubsub_slot.h"

#include "base/glob.h"

/* How many of a loop hear it, and what stamp it gets there. */
static uint64_t
count_hearers(struct slot *slot, bool shard, struct slice channel,
              uint64_t *ret_stamp)
{
    const struct topic *topic;
    uint64_t count = 0;

    uv_mutex_lock(&slot->mutex);
    topic =
        map_find(&slot->topics[shard ? PUBSUB_SHARD : PUBSUB_CHANNEL], channel);
    if (topic != NULL) {
        count = topic->count;
    }
    topic = shard ? NULL : slot->patterns;
    for (; topic != NULL; topic = topic->next) {
        if (glob_match((struct slice){ topic->name, topic->len }, channel,
                       false, &(size_t){ GLOB_WORK }) == GLOB_YES) {
            count += topic->count;
        }
    }
    if (count > 0) {
        slot->stamp++;
        *ret_stamp = slot->stamp;
    }
    uv_mutex_unlock(&slot->mutex);
    return count;
}

uint64_t
pubsub_publish(struct pubsub *pubsub, enum notice_kind kind, uint64_t from,
               struct slice channel, struct slice payload,
               struct notice_list *list)
{
    bool shard = kind == NOTICE_SHARD_MESSAGE;
    struct notice *notice = NULL;
    uint64_t all = 0;

    for (unsigned i = 0; i < pubsub->loops; i++) {
        struct slot *slot = &pubsub->slots[i];
        uint64_t stamp = 0;
        uint64_t count = atomic_load(&slot->size) > 0
                             ? count_hearers(slot, shard, channel, &stamp)
                             : 0;

        if (count == 0) {
            continue;
        }
        all += count;
        if (notice == NULL) {
            notice = notice_new(kind, from, channel, payload);
        }
        notice_list_add(list, notice, i, stamp);
    }
    notice_unref(notice);
    return all;
}
