/* SPDX-License-Identifier: BSD-3-Clause */
#include "pubsub_help.h"

const unsigned resp2 = 2, resp3 = 3;

struct receiver
receiver_on(unsigned loop)
{
    return (struct receiver){ .loop = loop, .resp = &resp2 };
}

uint64_t
publish_as(struct pubsub *pubsub, enum notice_kind kind, struct slice channel,
           struct slice payload, struct notice_list *list)
{
    struct publishing publishing = { .kind = kind, .channel = channel };

    assert_true(publishing_count(pubsub, &publishing, UINT64_MAX));
    publishing_send(pubsub, &publishing, 0, payload, list);
    publishing_fini(&publishing);
    return publishing.count;
}

uint64_t
publish(struct pubsub *pubsub, const char *channel, struct notice_list *list)
{
    return publish_as(pubsub, NOTICE_MESSAGE, slice_of(channel), slice_lit("m"),
                      list);
}

enum pubsub_result
subscribe(struct pubsub *pubsub, struct receiver *receiver,
          enum pubsub_kind kind, const char *name)
{
    return pubsub_subscribe(pubsub, receiver, kind, slice_of(name));
}

struct hearer
hearer_new(struct rig *rig, const unsigned *resp)
{
    struct hearer hearer = { .peer = peer_new(rig, false) };

    hearer.receiver = (struct receiver){ .conn = rig->last, .resp = resp };
    return hearer;
}

void
deliver(struct rig *rig, struct pubsub *pubsub, struct notice_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->posts[i].loop == 0) {
            assert_true(pubsub_deliver(pubsub, 0, list->posts[i].notice,
                                       list->posts[i].to, UINT64_MAX));
        }
    }
    (void)push_flush(&rig->loop, UINT64_MAX);
    notice_list_fini(list);
}
