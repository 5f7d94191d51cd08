/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The effects of a walk that is limited to a part of the keys
 * (keyspace/walk_part.h): picks those commands from the log that may concern
 * the part. With them, replay/complete.h makes the copies of the walk exactly
 * the state of the part at the end. It keeps a command of which one key belongs
 * to the part: what it does to other keys, which are not there, is nothing.
 *
 * Belongs to one thread at a time.
 */
#pragma once

#include "keyspace/walk_part.h"
#include "snapshot/snapshot_stamp.h"

struct excerpt;

/* Begins where the walk began. The part is used until excerpt_free. */
struct excerpt *excerpt_new(const struct walk_part *part);
void excerpt_free(struct excerpt *excerpt);

/* Gives what it picks from a group of the log to fn, in pieces that begin with
 * SELECT, borrowed for the call. The position of a piece is such that each
 * other command ends where it ended in the log. The groups come in order.
 * Returns 0, fn's result that is not 0, ENOMEM, or EINVAL: these bytes are no
 * group. */
typedef int (*excerpt_fn)(void *ctx, const struct snapshot_effects *piece);
int excerpt_group(struct excerpt *excerpt,
                  const struct snapshot_effects *effects, excerpt_fn fn,
                  void *ctx);
