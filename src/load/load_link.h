/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A connection to a server (client/client.h) with what bloomery-load adds: a
 * failure prints the reason, once, and sets `failed`; from then on the link
 * does nothing. load_link_wait writes and reads on several connections, so that
 * neither side can block the other.
 */
#pragma once

#include "client/client.h"
#include "load/load.h"
#include "proto/resp.h"

struct load_link {
    struct load *load;
    const char *address;
    struct client client;
    uint64_t awaited; /* replies that are awaited */
    bool failed;
};

/* Connects and logs in. False: the reason was printed, and nothing is open. */
bool load_link_open(struct load *load, const struct load_peer *peer,
                    struct load_link *ret_link);
void load_link_close(struct load_link *link);

/* Prints what is wrong with the server, and sets `failed`. */
__attribute__((format(printf, 2, 3))) void
load_link_fail(struct load_link *link, const char *format, ...);

/* ---- commands and replies ------------------------------------------------ */

/* Queues a command. The words of the second form end with NULL. */
void load_link_send(struct load_link *link, const struct slice *words,
                    size_t count);
void load_link_say(struct load_link *link, ...) __attribute__((sentinel));

/* Queues commands that are RESP already and have `count` replies. */
void load_link_send_raw(struct load_link *link, struct slice commands,
                        uint64_t count);

/* Returns the next reply if it has arrived, valid until the next call for this
 * link. */
bool load_link_next(struct load_link *link, struct slice *ret_reply);

/* Waits for the next reply. False: the link has failed. */
bool load_link_reply(struct load_link *link, struct slice *ret_reply);

/* Sends a command and waits for its reply; no other may be awaited. */
bool load_link_ask(struct load_link *link, struct slice *ret_reply, ...)
    __attribute__((sentinel));

/* Writes and reads on the links until one of them read something, or the time
 * is over; 0 does not wait. Returns false if a link has failed; a server that
 * owes replies for too long is a failure, too. */
bool load_link_wait(struct load_link *const *links, size_t count,
                    int timeout_ms);

/* ---- bytes --------------------------------------------------------------- */

/* Returns the bytes that have arrived and are not consumed. */
struct slice load_link_bytes(const struct load_link *link);
void load_link_consume(struct load_link *link, size_t len);
