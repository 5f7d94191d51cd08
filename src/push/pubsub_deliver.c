/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loop reads its own slot without a lock. A message with many receivers is
 * delivered in pieces. If a client unsubscribes between two pieces, pubsub.c
 * moves `delivery` on; a new subscription has a later stamp than the message.
 */
#include "push/pubsub_deliver.h"

#include "base/clock.h"
#include "base/glob.h"
#include "proto/reply.h"
#include "push/pubsub_slot.h"

/* A message as it goes to all subscriptions of one topic. Its bytes are written
 * for the first receiver of a protocol. */
struct message {
    const struct notice *notice;
    const char *word;
    const struct slice *pattern; /* NULL: the topic is a channel */
    struct buf bytes[2];         /* RESP2 and RESP3 */
};

static void
encode(const struct message *message, unsigned resp, struct buf *ret_bytes)
{
    struct reply reply = { ret_bytes, resp };

    reply_header(&reply, resp == 2 ? '*' : '>',
                 message->pattern != NULL ? 4 : 3);
    reply_bulk_text(&reply, message->word);
    if (message->pattern != NULL) {
        reply_bulk(&reply, *message->pattern);
    }
    reply_bulk(&reply, message->notice->channel);
    reply_bulk(&reply, message->notice->payload);
}

/* Steps between two looks at the clock; a step takes about a microsecond. */
enum { STEPS_AT_ONCE = 32, WORK_A_STEP = 1024 };

/* Counts steps. Returns whether until_ns has passed. */
static bool
is_late(size_t *steps, size_t more, uint64_t until_ns)
{
    *steps += more;
    if (*steps < STEPS_AT_ONCE) {
        return false;
    }
    *steps = 0;
    return clock_mono_ns() >= until_ns;
}

/* Sends to the remaining subscriptions of the topic. False: no time left. */
static bool
send_on(struct delivery *delivery, struct message *message, uint64_t stamp,
        size_t *steps, uint64_t until_ns)
{
    bool late = false;

    while (delivery->next != NULL && !late) {
        const struct subscription *sub = delivery->next;
        unsigned resp = *sub->receiver->resp;
        struct buf *bytes = &message->bytes[resp - 2];

        delivery->next = sub->next;
        if (sub->since < stamp) { /* older than the message */
            if (bytes->len == 0 && !bytes->failed) {
                encode(message, resp, bytes);
            }
            receiver_push(sub->receiver, bytes, message->notice->hold_until);
        }
        late = is_late(steps, 1, until_ns);
    }
    buf_free(&message->bytes[0]);
    buf_free(&message->bytes[1]);
    return !late || delivery->next == NULL;
}

static void
cut_subscriptions(const struct topic *topic)
{
    for (const struct subscription *sub = topic->first; sub != NULL;
         sub = sub->next) {
        receiver_cut(sub->receiver);
    }
}

/* Decides whether the subscriptions of the pattern `topic` get the message. */
static void
match_topic(struct delivery *delivery, struct slice channel, size_t *steps)
{
    const struct topic *topic = delivery->topic;
    size_t work = GLOB_WORK;

    delivery->stage = DELIVERY_PATTERN;
    delivery->next = NULL;
    switch (glob_match((struct slice){ topic->name, topic->len }, channel,
                       false, &work)) {
    case GLOB_YES:
        delivery->next = topic->first;
        break;
    case GLOB_OVER:
        cut_subscriptions(topic);
        break;
    case GLOB_NO:
        break;
    }
    *steps += (GLOB_WORK - work) / WORK_A_STEP;
}

static bool
deliver_to_patterns(struct delivery *delivery, struct message *message,
                    uint64_t stamp, size_t *steps, uint64_t until_ns)
{
    message->word = "pmessage";
    while (delivery->topic != NULL) {
        struct slice pattern = { delivery->topic->name, delivery->topic->len };

        if (delivery->stage == DELIVERY_MATCH) {
            match_topic(delivery, message->notice->channel, steps);
        }
        message->pattern = &pattern;
        if (!send_on(delivery, message, stamp, steps, until_ns)) {
            return false;
        }
        delivery->topic = delivery->topic->next;
        delivery->stage = DELIVERY_MATCH;
        if (is_late(steps, 1, until_ns) && delivery->topic != NULL) {
            return false;
        }
    }
    return true;
}

static void
begin_delivery(const struct slot *slot, enum pubsub_kind kind,
               struct slice channel, struct delivery *ret_delivery)
{
    struct topic *topic = map_find(&slot->topics[kind], channel);

    *ret_delivery =
        (struct delivery){ .stage = DELIVERY_CHANNEL,
                           .topic = topic,
                           .next = topic != NULL ? topic->first : NULL };
}

bool
pubsub_deliver(struct pubsub *pubsub, unsigned loop,
               const struct notice *notice, uint64_t stamp, uint64_t until_ns)
{
    bool shard = notice->kind == NOTICE_SHARD_MESSAGE;
    struct slot *slot = &pubsub->slots[loop];
    struct delivery *delivery = &slot->delivery;
    struct message message = { .notice = notice };
    size_t steps = 0;

    CHECK(loop < pubsub->loops && stamp > 0);
    if (delivery->stage == DELIVERY_NONE) {
        begin_delivery(slot, shard ? PUBSUB_SHARD : PUBSUB_CHANNEL,
                       notice->channel, delivery);
    }
    if (delivery->stage == DELIVERY_CHANNEL) {
        message.word = shard ? "smessage" : "message";
        if (!send_on(delivery, &message, stamp, &steps, until_ns)) {
            return false;
        }
        delivery->stage = DELIVERY_MATCH;
        delivery->topic = shard ? NULL : slot->patterns;
    }
    if (!deliver_to_patterns(delivery, &message, stamp, &steps, until_ns)) {
        return false;
    }
    *delivery = (struct delivery){ 0 };
    return true;
}

static bool
cut_topic(void *ctx, struct slice name, void *value)
{
    (void)ctx;
    (void)name;
    cut_subscriptions(value);
    return true;
}

void
pubsub_deliver_lost(struct pubsub *pubsub, unsigned loop)
{
    pubsub->slots[loop].delivery = (struct delivery){ 0 };
    for (unsigned kind = 0; kind < PUBSUB_KINDS; kind++) {
        (void)map_each(&pubsub->slots[loop].topics[kind], cut_topic, NULL);
    }
}
