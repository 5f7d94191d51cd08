/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The life of a simulated server: start, crash, changes of role.
 */
#pragma once

#include "sim_primary.h"
#include "sim_replica.h"

/* ---- events of the network ----------------------------------------------- */

bool node_is_there(const struct sim *sim, const struct side *side);
bool node_accepts(const struct sim *sim, unsigned node);
void node_opened(struct sim *sim, struct conn *conn);
void node_bytes(struct sim *sim, struct conn *conn, unsigned which,
                struct slice bytes, size_t *ret_used);
void node_closed(struct sim *sim, struct conn *conn, unsigned which,
                 const char *reason);
void node_drained(struct sim *sim, struct conn *conn);

/* ---- life ---------------------------------------------------------------- */

/* Ends the doubt about which server leads. */
void node_end_doubt(struct node *node);
void node_follow(struct node *node, int leader, bool failover);
void node_promote(struct node *node);

/* Starts with this state; NULL: with no data. */
void node_boot(struct node *node, const struct disk *disk);

/* Ends the server. Others are told at once, or never. */
void node_crash(struct node *node);
struct node *node_new(struct sim *sim);
void node_free(struct node *node);
