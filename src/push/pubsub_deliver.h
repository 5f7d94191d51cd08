/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Delivers the pub/sub messages in a loop's inbox to the loop's clients.
 */
#pragma once

#include "push/notice.h"
#include "push/pubsub.h"

/* Pushes a message to the clients of this loop that had subscribed when it was
 * published. stamp: the message's stamp on this loop (pubsub.h). Returns false
 * when until_ns has passed; then the caller calls again with the same notice.
 * Disconnects a client whose pattern is too much work to match. */
bool pubsub_deliver(struct pubsub *pubsub, unsigned loop,
                    const struct notice *notice, uint64_t stamp,
                    uint64_t until_ns);

/* Disconnects every client of this loop that has subscriptions, because the
 * loop has lost a message. */
void pubsub_deliver_lost(struct pubsub *pubsub, unsigned loop);
