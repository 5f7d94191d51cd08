/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots for replicas. Loop 0.
 */
#pragma once

struct persist;

/* Asks for a snapshot that is written into a pipe; there has to be a tap. It
 * begins when nothing else is being written. Cancelling breaks it off, or
 * withdraws the request; the hooks are called for one that had begun. */
void persist_ask_sync(struct persist *persist);
void persist_cancel_sync(struct persist *persist);

/* Begins it, and moves the step on. */
void sync_begin(struct persist *persist);

/* Calls the hook for the end of one that had begun. */
void sync_ended(struct persist *persist, int error);
