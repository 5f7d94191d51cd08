/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replaces our data with that of another server, in memory and on the disk.
 * Loop 0.
 */
#pragma once

#include "snapshot/transfer.h"

#include <stdbool.h>
#include <stdint.h>

struct keyspace;
struct persist;
struct persist_conf;

/* Another server's data, which is the state of its log at this place. */
struct persist_arrival {
    struct keyspace *fresh; /* NULL: our data stays, but belongs to no position
                               of the log any more */
    const char *history; /* NULL: a new history, which no other server knows */
    uint64_t position, sequence;
    bool received; /* persist_receive has written this data to a file */
};

/* persist_receive() is called when data begins to arrive. Returns the functions
 * that write the bytes to a file while a transfer loads them. They are zeros if
 * the data need not, or cannot now, be stored. After the last byte,
 * persist_has_received() returns true once the whole file is on the disk, or
 * could not be written; hooks.moved is called then. Then persist_adopt uses the
 * file, or persist_refuse drops it. persist_refuse may be called at any time.
 * Call it before transfer_free, since a transfer may wait for the disk. */
struct transfer_copy persist_receive(struct persist *persist);
bool persist_has_received(const struct persist *persist);
void persist_refuse(struct persist *persist);

/* Swaps all data with the keyspace `fresh`, which was made with the same
 * numbers of databases and threads. The files on the disk then have data of
 * another history. They stay until the new data is on the disk, and a start
 * never prefers them to the new data (adopt.c explains how). If the journal is
 * on, it begins anew. Until it has a base of the new data, it releases no
 * change of that data. A failed write is repeated like a failed save. Calls
 * hooks.reloaded. Under the raised gate, with a tap (its hook `begin` is
 * called), and with no snapshot for replicas under way (persist_cancel_sync).
 */
void persist_adopt(struct persist *persist,
                   const struct persist_arrival *arrival);

/* Returns whether a start would find the data of the last persist_adopt on the
 * disk. Returns true, too, after a failed write, since the next one may take
 * long. hooks.moved is called after a change. Outside the gate. */
bool persist_has_adopted(const struct persist *persist);

/* Says that the data is about to be dropped, to make room for arriving data.
 * Until persist_adopt, no data is saved, not even at the end of the server, or
 * sent to a replica, and the files stay as they are. It calls hooks, so call it
 * outside the gate. */
void persist_suspend(struct persist *persist);

/* While adopt_is_pending() is true, the disk still has the data from before the
 * last adoption. Then a snapshot gets the name adopt_snapshot_name(), and
 * adopt_begin gives it its final name. adopt_needs_disk() returns whether the
 * new data must be written now. */
bool adopt_is_pending(const struct persist *persist);
bool adopt_needs_disk(struct persist *persist, const struct persist_conf *conf);
const char *adopt_snapshot_name(const struct persist *persist);

/* Notes that the snapshot that is being written is the present state. Under the
 * raised gate. */
void adopt_note(struct persist *persist);

/* Give the snapshot, or the file that arrived, its final name. adopt_begin()
 * and adopt_begin_file() begin this step; the second returns false if there is
 * no such file. At the end of the step, adopt_replaced() returns true if a save
 * ends with it, and its result; else it begins the next step. adopt_here() does
 * everything at once, blocks, and returns 0 or an errno value. */
void adopt_begin(struct persist *persist);
bool adopt_begin_file(struct persist *persist);
bool adopt_replaced(struct persist *persist, int *ret_error);
int adopt_here(struct persist *persist);

/* Finishes, at a start, a replacement that a crash has interrupted. False: the
 * reason was logged. */
bool adopt_finish(struct persist *persist);
