/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Data of another server takes the place of ours, in memory and on the disk.
 * Loop 0.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct keyspace;
struct persist;
struct persist_conf;

/* The state of another server's log at this place. */
struct persist_arrival {
    struct keyspace *fresh; /* NULL: the data stays, but is no state of the log
                               any more */
    const char *history;    /* NULL: a new one, that no other server knows */
    uint64_t position, sequence;
};

/* Swaps all data with the keyspace `fresh`, which was made with the same
 * numbers of databases and threads. The disk then has data of another history.
 * These files stay until a snapshot of the new data is written, which begins
 * with the next tick, and a start never prefers them to that snapshot (adopt.c
 * explains how). Then the journal begins anew, if it is on. A failed write is
 * repeated as a failed save is. Calls hooks.reloaded. Under the raised gate,
 * with a tap, which learns where the log goes on, and with no snapshot for
 * replicas under way (persist_cancel_sync). */
void persist_adopt(struct persist *persist,
                   const struct persist_arrival *arrival);

/* The data is about to be dropped, to make room for data on its way: until
 * persist_adopt nothing of it is saved, not at the end either, nor sent to a
 * replica, and the disk keeps what it has. Calls hooks, so outside the gate. */
void persist_suspend(struct persist *persist);

/* While this is true, the disk has the data from before the last adoption: a
 * snapshot then gets another name, and adopt_begin puts it in its place. */
bool adopt_is_pending(const struct persist *persist);
bool adopt_needs_disk(struct persist *persist, const struct persist_conf *conf);
const char *adopt_snapshot_name(const struct persist *persist);

/* Puts the snapshot in its place: begin moves the step on, replaced returns
 * the result of that step; here blocks, and returns the result. */
void adopt_begin(struct persist *persist);
int adopt_replaced(struct persist *persist);
int adopt_here(struct persist *persist);

/* Finishes, at a start, what a crash cut off. False: the reason was logged. */
bool adopt_finish(struct persist *persist);
