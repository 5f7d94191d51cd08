/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages arrive on a loop, which alone walks its own slot, and so needs no
 * lock.
 */
#include "admin/pubsub_slot.h"

#include "base/buf.h"
#include "base/glob.h"
#include "proto/reply.h"

/* A message as it is sent to all who hear it by one name; written when the
 * first of a protocol is met. */
struct message {
    const struct notice *notice;
    const char *word;
    const struct slice *pattern; /* NULL: not by a pattern */
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

static void
send_to(const struct topic *topic, struct message *message, uint64_t stamp)
{
    for (const struct subscription *sub = topic->first; sub != NULL;
         sub = sub->next) {
        unsigned resp = *sub->receiver->resp;
        struct buf *bytes = &message->bytes[resp - 2];

        if (sub->since >= stamp) {
            continue; /* published before it came */
        }
        if (bytes->len == 0 && !bytes->failed) {
            encode(message, resp, bytes);
        }
        receiver_push(sub->receiver, bytes, message->notice->hold_until);
    }
    buf_free(&message->bytes[0]);
    buf_free(&message->bytes[1]);
}

void
pubsub_deliver(struct pubsub *pubsub, unsigned loop,
               const struct notice *notice, uint64_t stamp)
{
    bool shard = notice->kind == NOTICE_SHARD_MESSAGE;
    const struct slot *slot = &pubsub->slots[loop];
    const struct topic *topic = map_find(
        &slot->topics[shard ? PUBSUB_SHARD : PUBSUB_CHANNEL], notice->channel);
    struct message message = { .notice = notice };

    if (topic != NULL) {
        message.word = shard ? "smessage" : "message";
        send_to(topic, &message, stamp);
    }
    message.word = "pmessage";
    topic = shard ? NULL : slot->patterns;
    for (; topic != NULL; topic = topic->next) {
        struct slice pattern = { topic->name, topic->len };

        if (glob_match(pattern, notice->channel, false,
                       &(size_t){ GLOB_WORK }) == GLOB_YES) {
            message.pattern = &pattern;
            send_to(topic, &message, stamp);
        }
    }
}

static bool
cut_topic(void *ctx, struct slice name, void *value)
{
    const struct topic *topic = value;

    (void)ctx;
    (void)name;
    for (const struct subscription *sub = topic->first; sub != NULL;
         sub = sub->next) {
        receiver_cut(sub->receiver);
    }
    return true;
}

void
pubsub_cut(struct pubsub *pubsub, unsigned loop)
{
    for (unsigned kind = 0; kind < PUBSUB_KINDS; kind++) {
        (void)map_each(&pubsub->slots[loop].topics[kind], cut_topic, NULL);
    }
}
