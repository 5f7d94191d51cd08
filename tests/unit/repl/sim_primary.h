/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hooks of a simulated server's primary side, and the commands of its
 * clients.
 */
#pragma once

#include "sim_data.h"

extern const struct primary_hooks sim_primary_hooks; /* without ctx */

/* Called when a connection resumes the log at this position; NULL: no call. */
extern void (*node_continued)(struct node *node, struct conn *conn,
                              uint64_t from);

/* Returns what WAIT counts for this position. Checks that each replica counted
 * has it. */
size_t node_count_acked(struct node *node, uint64_t position);

/* Executes a command that arrived over a connection. */
void node_obey(struct node *node, struct conn *conn, const struct slice *argv,
               size_t argc);
