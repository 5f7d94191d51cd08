/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completes a full state: its keys were copied between the positions B and E of
 * the log while clients went on (snapshot/snapshot_format.h), and each copy
 * includes the log up to a position P of its own. Executing the effects (B, E]
 * on the copies gives exactly the state at E, by these rules. p is the position
 * behind a command. A copy with P >= p includes the command, and is `later`.
 *
 * - Adds. A copy's lines may have bits of items that were added behind P, but
 *   its counts lack them. An effect lists exactly the items that were new, in
 *   order. So all items of effects with p > P are forced: bits are set, counts
 *   rise and layers come as they did. Bits are never removed, so the lines are
 *   those at E.
 * - Adds to ageing filters (BF.INSERT with AT) have a time, and list the items
 *   that were new to the generation of that time. A turn moves layers, so the
 *   filter was copied again after it.
 * - Adds to deletable filters, and deletions (BF.INSERT and BF.MDEL with
 *   PLACED) say where each item went. Bits are removed too, so lines were
 *   copied in pieces with a P each. The counts follow as above; a line changes
 *   if p is behind the P of its piece.
 * - Creations (BF.INSERT and BF.LOADCHUNK with INCARNATION, BF.LOAD, RESTORE)
 *   say all of the filter. They replace any copy but a later one, and P becomes
 *   p.
 * - Other chunks (BF.LOADCHUNK) are united with the bits, like adds. The one
 *   that completed a deletable filter had the filter copied again.
 * - Deletions and times to live: executed unless the copy is later, key by key.
 * - RENAME, MOVE, COPY, BF.MERGE and BF.RESET change or move a filter as a
 *   whole. The key that they made was copied again, behind p. So if this key
 *   was still there at E, the file has a later copy; if not, a command behind p
 *   removed or replaced the key. Either way nothing has to be moved here: keys
 *   that are not later are dropped.
 * - FLUSHALL, FLUSHDB and SWAPDB act on databases. Each flush begins an epoch,
 *   and keys of each epoch were copied as keys of their own.
 * - A key that an effect needs and that is missing was gone by E: the effect is
 *   skipped. Nowhere else is that allowed: a log by itself is complete.
 *
 * In a file that is salvaged, effects may be lost. Behind such a gap a command
 * that cannot be executed is skipped. Deletable filters are then not as the
 * log's places say: items are added anew, and none is deleted.
 *
 * A transaction needs no rule: P is never inside one, since a stripe's position
 * is set when all of it is done. Nor does a run of adds, since each command is
 * judged by itself.
 *
 * One thread at a time, which owns the keyspace alone.
 */
#pragma once

#include "snapshot/completion.h"

extern const struct completion complete_calls;
