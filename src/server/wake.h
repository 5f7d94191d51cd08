/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Wakes loops from other threads. Any thread, while there are loops. Both
 * functions are called as hooks, and ctx is the struct server.
 */
#pragma once

/* Makes all loops look at their waiting replies and parked connections. */
void wake_loops(void *ctx);

/* Makes loop 0 call persist_tick soon. */
void wake_persist(void *ctx);
