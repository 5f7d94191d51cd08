/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The joint between the server and its data: persist.h is told what loops and
 * service have to do about it, and is called from loop 0. The load has a thread
 * of its own, while the loops answer -LOADING. All of it on loop 0, unless a
 * line says otherwise.
 */
#pragma once

#include "server/server.h"

struct persist *data_new(struct server *server);

/* The tick, the poke, the end of children; on loop 0, before it runs. */
void data_start_handles(struct server *server);

/* Begins to load. At the end the server serves, or stops. */
void data_start_load(struct server *server);

/* persist_tick soon. Any thread; the type is that of a hook. */
void data_poke(void *ctx);

/* All loops look at their held and parked connections. Any thread, once there
 * are loops; the type is that of a hook. */
void data_wake_loops(void *ctx);

/* The last state, on the disk. False: it is not, and the server goes on. */
bool data_end(struct server *server);
