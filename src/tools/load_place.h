/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A node of a cluster, or the server beside one, and what it says of the
 * cluster. A connection that broke is made again by the next question. One
 * thread.
 */
#pragma once

#include "cluster/topology.h"
#include "tools/load_link.h"

enum { LOAD_PLACE_MAX = 320 };

struct load_place {
    struct load *load;
    struct load_peer peer;
    char address[LOAD_PLACE_MAX];
    struct load_link link;
    bool open;
};

/* Says where it is, and how to log in there (login's address is not used). */
void load_place_init(struct load_place *place, struct load *load,
                     const struct load_peer *login, const char *host,
                     unsigned port);
void load_place_close(struct load_place *place);

/* Connects, if there is no connection. False: printed, unless the peer is
 * quiet. */
bool load_place_open(struct load_place *place);

/* Sends a command, whose words end with NULL, and waits for its reply, which is
 * valid until the next one. False: there is none; printed. */
bool load_place_ask(struct load_place *place, struct slice *ret_reply, ...)
    __attribute__((sentinel));
bool load_place_ask_words(struct load_place *place, struct slice *ret_reply,
                          const struct slice *words, size_t count);

/* Likewise; an error is printed, and is false. */
bool load_place_tell(struct load_place *place, const struct slice *words,
                     size_t count);

/* Reads its view of the cluster, which topology_free frees. */
bool load_place_view(struct load_place *place, struct topology **ret_view);

/* Returns what stands behind "name:" in a text of lines, as INFO has it, up to
 * the end of the line; or behind "name=", up to the next comma. Empty: there is
 * none. */
struct slice load_place_field(struct slice text, const char *name);
uint64_t load_place_number(struct slice text, const char *name);
