/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Helpers for tests of pub/sub: receivers on several loops, of which loop 0 has
 * connections.
 */
#pragma once

#include "../net/rig.h"
#include "net/push.h"
#include "push/pubsub_deliver.h"
#include "push/pubsub_publish.h"

enum { LOOPS = 3 };

extern const unsigned resp2, resp3; /* protocols of receivers */

struct receiver receiver_on(unsigned loop);
enum pubsub_result subscribe(struct pubsub *pubsub, struct receiver *receiver,
                             enum pubsub_kind kind, const char *name);

/* Publish a message at once, and return how many subscribers it has. */
uint64_t publish_as(struct pubsub *pubsub, enum notice_kind kind,
                    struct slice channel, struct slice payload,
                    struct notice_list *list);
uint64_t publish(struct pubsub *pubsub, const char *channel,
                 struct notice_list *list);

/* A receiver on loop 0 with a connection. */
struct hearer {
    struct peer peer;
    struct receiver receiver;
};

struct hearer hearer_new(struct rig *rig, const unsigned *resp);

/* Delivers the notices that the list has for loop 0. */
void deliver(struct rig *rig, struct pubsub *pubsub, struct notice_list *list);
