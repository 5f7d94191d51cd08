/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes groups of a log, for replay (at a start), apply (on a replica) and
 * inject (keys of other servers). A group is parsed, checked, and executed by a
 * session with `obey` set, to which limits, defaults, the clock and refusals do
 * not apply. No client sees its worker's statistics, unless the embedding
 * module gives the worker others. Belongs to one thread at a time.
 *
 * The server that wrote the log may have had other options. These still count:
 *
 *   databases          of the keyspace that the log is executed on. A server
 *                      with fewer than the log needs refuses it, and names the
 *                      option: its clients could not reach those keys. A tool's
 *                      keyspace has the most that there can be.
 *   hash-secret-file   and the other secrets: without the right one, the bits
 *                      of a keyed filter would be wrong.
 *   dialect            the text of an error, which no client sees.
 *   notify-keyspace-events, latency and slow log options, activedefrag,
 *   lazyfree options   what is told of a change, and when memory moves; the
 *                      data is the same.
 *
 * No other option counts: maxmemory, the limits and defaults of bf.*, layouts,
 * proto-max-bulk-len and the limits of clients do not apply to a log.
 */
#pragma once

#include "engine/dispatch.h"
#include "engine/service.h"
#include "engine/session.h"
#include "replay/pages.h"

/* Open since it is embedded; obey.c owns the fields. Before the first group the
 * embedding module sets alone, silent, holds_gate and insists of the worker. */
struct obey {
    struct stats *stats; /* statistics that no client sees */
    struct worker *worker;
    struct session session;
    struct batch batch;
    struct buf replies;
    bool is_long; /* the group of the last obey_needs_world() needs no world,
                     and has a command of more than PAGES_LONG words */
};

/* Prepares it. index: the thread's index at the gate. */
void obey_init(struct obey *obey, struct service *service, unsigned index);
void obey_fini(struct obey *obey);

/* Returns whether a command of the group needs the raised gate: a command that
 * touches more than its keys, or REPLCONF HISTORY. Bytes that are no command
 * end the search. */
bool obey_needs_world(struct obey *obey, struct slice commands);

/* Executes the commands of a group: writes, SELECT, REPLCONF HISTORY, MULTI and
 * EXEC in canonical RESP. A worker that is alone skips MULTI and EXEC, since no
 * other thread can see half of a transaction. The selected database stays for
 * the next group. position: where the group begins in the log; only a silent
 * worker needs it. Returns false and a reason if there are other bytes or a
 * command failed; the commands before it were executed. */
bool obey_group(struct obey *obey, struct slice commands, uint64_t position,
                char *ret_reason, size_t reason_size);
