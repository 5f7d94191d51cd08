/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pub/sub messages that have arrived on a loop go to its clients here.
 */
#pragma once

#include "admin/notice.h"
#include "admin/pubsub.h"

/* Pushes a message to the clients of this loop that had subscribed when it was
 * published. stamp: the `to` of the notice's post. False: until_ns has passed;
 * call again with the same notice. A client whose pattern is too much work to
 * match is cut. */
bool pubsub_deliver(struct pubsub *pubsub, unsigned loop,
                    const struct notice *notice, uint64_t stamp,
                    uint64_t until_ns);

/* Cuts every client of this loop that has subscriptions, after a message was
 * lost. */
void pubsub_deliver_lost(struct pubsub *pubsub, unsigned loop);
