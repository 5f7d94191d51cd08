/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starts, runs and stops a loop. The file also has the callbacks of the loop's
 * handles, which call the rest of net.
 */
#pragma once

#include "net/loop.h"

/* Makes libuv allocate through base/mem.h, where it may use all of the reserve.
 * Call it before any other function of libuv. */
void loop_use_mem(void);

/* Prepares a loop; loop_start starts its thread (never for loop 0, whose owner
 * calls loop_run). Aborts if the kernel refuses descriptors at the start. */
void loop_init(struct loop *loop, unsigned index, const struct loop_env *env,
               void *owner);
void loop_start(struct loop *loop);
void loop_run(struct loop *loop);

/* Makes the loop send what is released, as far as sockets take it, close its
 * connections and end. loop_stop is for other threads, loop_stop_here for its
 * own. */
void loop_stop(struct loop *loop);
void loop_stop_here(struct loop *loop);
void loop_join(struct loop *loop);
void loop_fini(struct loop *loop);
