/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A run: up to 64 pipelined one-item commands (rows with .many) that are equal
 * but for the item. They share one lock, and one lookup of their filter; all
 * items are hashed and their lines fetched, and then they are added or asked
 * for, in order. Belongs to dispatch, whose batches they are parts of.
 */
#pragma once

#include "engine/request.h"
#include "proto/batch.h"

/* Executes the run that begins with the command at `first`, and says of how
 * many commands it is. False if that is none (0), if the journal has no room
 * (the session is parked then), or if the run is not allowed, and its commands
 * are to be refused one by one. */
bool run_execute(struct worker *worker, const struct batch *batch,
                 uint32_t first, uint32_t *ret_count);
