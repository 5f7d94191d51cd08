/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Data of another server takes the place of ours, in memory and on the disk.
 * Loop 0.
 */
#pragma once

#include "snapshot/transfer.h"

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
    bool received; /* it is what persist_receive has had written */
};

/* Data begins to arrive. Returns what writes it while a transfer loads it;
 * zeros: the disk does not need it, or cannot take it now. When it has all
 * come, persist_has_received says whether the file's end is on the disk (or its
 * writing has failed); hooks.moved follows that. Then persist_adopt takes the
 * file, or persist_refuse drops it, which may be called at any time. A transfer
 * may wait for a disk: call persist_refuse before transfer_free. */
struct transfer_copy persist_receive(struct persist *persist);
bool persist_has_received(const struct persist *persist);
void persist_refuse(struct persist *persist);

/* Swaps all data with the keyspace `fresh`, which was made with the same
 * numbers of databases and threads. The disk then has data of another history.
 * These files stay until the new data is on the disk, and a start never prefers
 * them to that (adopt.c explains how). Until then nothing that changes the new
 * data is released, if the journal is on; it begins anew. A failed write is
 * repeated as a failed save is. Calls hooks.reloaded. Under the raised gate,
 * with a tap, which learns where the log goes on, and with no snapshot for
 * replicas under way (persist_cancel_sync). */
void persist_adopt(struct persist *persist,
                   const struct persist_arrival *arrival);

/* Whether the disk has the data of the last persist_adopt, so that a start
 * finds it, or has failed to take it, so that it lasts. Calls of hooks.moved
 * follow. Outside the gate. */
bool persist_has_adopted(const struct persist *persist);

/* The data is about to be dropped, to make room for data on its way: until
 * persist_adopt nothing of it is saved, not at the end either, nor sent to a
 * replica, and the disk keeps what it has. Calls hooks, so outside the gate. */
void persist_suspend(struct persist *persist);

/* While this is true, the disk has the data from before the last adoption: a
 * snapshot then gets another name, and adopt_begin puts it in its place. */
bool adopt_is_pending(const struct persist *persist);
bool adopt_needs_disk(struct persist *persist, const struct persist_conf *conf);
const char *adopt_snapshot_name(const struct persist *persist);

/* The snapshot that is being written is the present state. Under the raised
 * gate. */
void adopt_note(struct persist *persist);

/* Puts the snapshot, or the file that came, in its place: begin and begin_file
 * move the step on (false: there is no such file). At the end of that step,
 * replaced returns true if a save ends with it, with this result; else it moves
 * the step on. here blocks, and returns 0 or an errno value. */
void adopt_begin(struct persist *persist);
bool adopt_begin_file(struct persist *persist);
bool adopt_replaced(struct persist *persist, int *ret_error);
int adopt_here(struct persist *persist);

/* Finishes, at a start, what a crash cut off. False: the reason was logged. */
bool adopt_finish(struct persist *persist);
