/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starts, runs and stops a loop: the callbacks of its handles, which call the
 * rest of net.
 */
#pragma once

#include "net/loop.h"

/* Has libuv allocate through base/mem.h, all of the reserve included. Call it
 * before anything else of libuv. */
void loop_use_mem(void);

/* Prepares a loop; loop_start starts its thread (never for loop 0, whose owner
 * calls loop_run). Aborts if the kernel refuses descriptors at start. */
void loop_init(struct loop *loop, unsigned index, const struct loop_env *env,
               void *owner);
void loop_start(struct loop *loop);
void loop_run(struct loop *loop);

/* Has the loop send what is released, as far as sockets take it, close its
 * connections and end. loop_stop is for other threads, loop_stop_here for its
 * own. */
void loop_stop(struct loop *loop);
void loop_stop_here(struct loop *loop);
void loop_join(struct loop *loop);
void loop_fini(struct loop *loop);
