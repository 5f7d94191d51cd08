/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Deletes the keys of slots in the background: in slices with pauses between
 * them, so that clients do not notice. Our log has a DEL for each key. Loop 0.
 */
#pragma once

#include "base/slot_set.h"

#include <stddef.h>
#include <stdint.h>

struct replication;
struct server;
struct slot_drop;

/* Begins to delete all keys of these slots, in all databases; slots whose keys
 * are being deleted already are united with them. Only a primary deletes: a
 * server that follows another one has that one's keys, and drops none. Slots
 * that our node gains meanwhile keep their keys, too. */
void slot_drop_begin(struct server *server, const struct slot_set *slots);

/* Ends that for these slots: their keys stay from now on. */
void slot_drop_end(struct server *server, const struct slot_set *slots);

/* The slots whose keys may not all be deleted yet, and how many keys were. */
void slot_drop_describe(const struct server *server, struct slot_set *ret_slots,
                        uint64_t *ret_deleted);

/* ---- for the other files of replication ---------------------------------- */

struct slot_drop *slot_drop_new(struct replication *r);
void slot_drop_free(struct slot_drop *drop);
void slot_drop_look(struct slot_drop *drop);
