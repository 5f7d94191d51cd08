/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Deletes the keys of slots in the background: in slices with pauses between
 * them, so that clients are not slowed down. Our log has a DEL for each key.
 * Loop 0.
 */
#pragma once

#include "base/slot_set.h"

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct loop0;
struct slot_drop;

/* Begins to delete all keys of these slots, in all databases; they are added to
 * the slots whose keys are being deleted already. A replica deletes no keys: it
 * has its primary's. Slots that our node gains meanwhile keep their keys, too.
 */
void slot_drop_begin(struct slot_drop *drop, const struct slot_set *slots);

/* Ends the deletion for these slots. Keys that were not deleted yet stay. */
void slot_drop_end(struct slot_drop *drop, const struct slot_set *slots);

/* Returns the slots whose keys may not all be deleted yet, and how many keys
 * were deleted. */
void slot_drop_describe(const struct slot_drop *drop,
                        struct slot_set *ret_slots, uint64_t *ret_deleted);

/* Makes a drop without slots. poke: makes loop 0 call slot_drop_look soon. */
struct slot_drop *slot_drop_new(const struct loop0 *loop0,
                                void (*poke)(void *ctx), void *ctx);
void slot_drop_free(struct slot_drop *drop);

/* Deletes a slice, if that is due. */
void slot_drop_look(struct slot_drop *drop);

/* Start the timer, before loop 0 runs; stop it, when the server stops; and
 * close it, at loop 0's end. */
void slot_drop_start(struct slot_drop *drop, uv_loop_t *uv);
void slot_drop_stop(struct slot_drop *drop);
void slot_drop_close(struct slot_drop *drop);
