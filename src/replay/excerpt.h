/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The effects of a walk that is limited to a part of the keys
 * (keyspace/walk_part.h): picks those commands from the log that may concern
 * the part. With them, replay/complete.h makes the copies of the walk exactly
 * the state of the part at the end. It keeps a command if one of its keys
 * belongs to the part. The command has no effect on its other keys, since the
 * walk copied none of them.
 *
 * Belongs to one thread at a time.
 */
#pragma once

#include "keyspace/walk_part.h"
#include "snapshot/snapshot_stamp.h"

struct excerpt;

/* Makes an excerpt that begins where the walk began. `part` must stay valid
 * until excerpt_free. */
struct excerpt *excerpt_new(const struct walk_part *part);
void excerpt_free(struct excerpt *excerpt);

/* Passes the picked commands of a group to fn, in pieces that begin with
 * SELECT, borrowed for the call. The position of a piece is chosen so that each
 * picked command ends where it ended in the log. Pass the groups in order.
 * Returns 0; the result of fn if that is not 0; ENOMEM; or EINVAL: the bytes
 * are no group. */
typedef int (*excerpt_fn)(void *ctx, const struct snapshot_effects *piece);
int excerpt_group(struct excerpt *excerpt,
                  const struct snapshot_effects *effects, excerpt_fn fn,
                  void *ctx);
