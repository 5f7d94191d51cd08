/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pushes go to the connection (net/push.h).
 */
#include "push/receiver.h"

#include "base/log.h"
#include "net/pending.h"
#include "net/push.h"

bool
receiver_subscribes(const struct receiver *receiver)
{
    uint32_t all = 0;

    for (unsigned i = 0; i < PUBSUB_KINDS; i++) {
        all |= atomic_load_explicit(&receiver->subscribed[i],
                                    memory_order_relaxed);
    }
    return all != 0;
}

void
receiver_push(struct receiver *receiver, struct buf *bytes, uint64_t hold_until)
{
    if (bytes->failed && receiver->conn != NULL) {
        receiver_cut(receiver); /* no memory for the push */
    } else if (receiver->conn != NULL) {
        push_add(receiver->conn, buf_slice(bytes), hold_until);
    }
}

void
receiver_cut(struct receiver *receiver)
{
    if (receiver->conn != NULL && !conn_is_closing(receiver->conn)) {
        log_repeated(LOG_WARN, "admin.receiver",
                     "cut, a message for it was lost", "id=%llu",
                     (unsigned long long)receiver->id);
        pending_close(receiver->conn);
    }
}
