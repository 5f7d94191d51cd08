/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What replay and apply have in common: a group of a log is read, sifted, and
 * executed by a session that obeys (no limits, defaults, clock, refusals),
 * with a worker of its own, whose statistics are no client's. Belongs to one
 * thread at a time.
 */
#pragma once

#include "engine/dispatch.h"
#include "engine/service.h"
#include "engine/session.h"

/* Open since it is embedded; the fields are obey.c's, but for what its owner
 * says of the worker (alone, silent, holds_gate) before the first group. */
struct obey {
    struct stats *stats; /* not those that clients see */
    struct worker *worker;
    struct session session;
    struct batch batch;
    struct buf replies;
};

/* index: the thread's, for the gate. */
void obey_init(struct obey *obey, struct service *service, unsigned index);
void obey_fini(struct obey *obey);

/* Whether a command of the group needs the gate raised: what touches more than
 * its keys, and REPLCONF HISTORY. What is no command is not looked at any
 * further. */
bool obey_needs_world(struct obey *obey, struct slice commands);

/* Executes the commands of a group: canonical RESP of writes, SELECT, REPLCONF
 * HISTORY, and MULTI and EXEC, which are passed over where the worker is alone:
 * there is nobody to see half of what is between them. The database stays
 * selected. False and a reason if bytes are something else, or a command
 * failed; what came before it was executed. */
bool obey_group(struct obey *obey, struct slice commands, char *ret_reason,
                size_t reason_size);
