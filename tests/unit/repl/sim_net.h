/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The network of the simulator. A connection is two queues of bytes. Each may
 * be slow, stand still, lose its end silently, have a bit flipped, or end at
 * any byte; the two sides may be told of an end at different times, or never.
 */
#pragma once

#include "sim.h"

uint64_t conn_id(const struct sim *sim, const struct conn *conn);
struct conn *conn_find(struct sim *sim, uint64_t id);
void conn_free(struct conn *conn);

/* Closes one side. The other one still gets what was sent to it, if graceful,
 * and is told of the end then. */
void conn_leave(struct sim *sim, struct conn *conn, unsigned which,
                bool graceful);

/* Ends the connection as a broken network does. A side may never be told. */
void conn_cut(struct sim *sim, struct conn *conn);
size_t side_unsent(const struct side *side);

/* Sends bytes. False: no memory. */
bool conn_send(struct sim *sim, struct conn *conn, unsigned to,
               struct slice bytes);
void conn_pause(struct sim *sim, struct conn *conn, unsigned which,
                bool paused);

/* Connects; `boot` of the other side is filled when it accepts. */
struct conn *conn_dial(struct sim *sim, unsigned from, unsigned to);
