/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A walk copies every filter while commands go on. One thread beside the loops
 * makes it, in many short holds: a hold is a section of the gate with one
 * stripe locked, and copies about WALK_HOLD_BYTES of lines (walk_internal.h).
 * No hold follows a pointer from an earlier one. A copy is exact together with
 * the log:
 *
 * - An item has the position P up to which the log's effects on its stripe are
 *   in it. Everything that changed the filter later has a higher position.
 * - The head (identity, expiry, counts) is copied at P; lines of a large filter
 *   follow later, and may have bits of items that were added meanwhile. Adds
 *   only set bits. So executing the adds behind P again, which sets their bits
 *   and raises the counts without a lookup, gives exactly the filter.
 * - Deletions clear bits too. So each hold of a deletable filter's lines copies
 *   a piece of whole blocks (core/collision.h), which has a position of its
 *   own, and an effect is executed on a line only if its piece is older.
 * - A filter that vanishes between two pieces is `gone`: the log says why.
 * - What changes or moves a whole filter cannot be executed again on a copy
 *   that may be newer. So RENAME, MOVE, COPY, RESET, MERGE, a turn of an ageing
 *   filter and the chunk that completes a deletable one call
 *   keyspace_walk_again for their target. The walk copies this key again, and
 *   of two items of a name the later one counts.
 * - FLUSHALL, FLUSHDB and SWAPDB act on databases, not on names. So an item
 *   names its slot (the number that clients used for the database when the walk
 *   began) and the slot's epoch: how often it was flushed since. A name that
 *   was created after a flush never meets an item from before it.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "keyspace/keyspace.h"

/* A filter, or the first part of a large one. Borrowed for the call. */
struct walk_item {
    uint32_t db, epoch;     /* see above */
    uint64_t position;      /* P */
    uint64_t expires_at_ms; /* 0: never */
    uint64_t incarnation;
    struct slice name;
    struct slice form;   /* core/codec.h: the head, and all lines if `whole`;
                            without the checksum */
    uint64_t form_bytes; /* head and lines */
    bool whole;
};

/* What the walk's thread calls, outside of any hold. A result other than 0 ends
 * the walk with it. */
struct walk_sink {
    int (*item)(void *ctx, const struct walk_item *item);
    /* The next lines of the last item, as they lie in memory: layers from 0 on,
     * each from its beginning to its end. last: the layer ends with these
     * lines. */
    int (*lines)(void *ctx, uint32_t layer, uint64_t offset, struct slice lines,
                 bool last);
    /* The last item is incomplete: its filter was removed or moved meanwhile.
     */
    int (*gone)(void *ctx, const struct walk_item *item);
    /* The positions of the pieces of the last item, if it is deletable. Called
     * after its lines. A piece has collision_piece_bytes(layer, most) bytes. */
    int (*pieces)(void *ctx, size_t most, const uint64_t *positions,
                  size_t count);
    /* When it is set, the walk ends with ECANCELED, even if the gate stays
     * raised. May be NULL. */
    const atomic_bool *stop;
    void *ctx;
};

/* Made by walk_try_new(). One thread at a time uses it. */
struct walk;
struct walk_part; /* keyspace/walk_part.h */

/* Returns NULL without memory. */
struct walk *walk_try_new(struct keyspace *ks);
void walk_free(struct walk *walk);

/* Begins a walk at this position of the log. part: NULL for all keys; else it
 * must stay valid until the end. Call it under the raised gate. A keyspace can
 * have GATE_WALKERS walks at a time. */
void walk_begin(struct walk *walk, uint64_t position,
                const struct walk_part *part);

/* Ends the walk, complete or not. Call it under the raised gate. */
void walk_end(struct walk *walk);

/* Returns the index of the thread beside the loops for this walk, until its
 * end.
 */
unsigned walk_thread(const struct walk *walk);

/* Copies all keys, expired ones too. thread: walk_thread for a thread beside
 * the loops, or the index of the calling loop, which may have raised the gate:
 * then nothing changes, and no lock is taken. Returns 0, the sink's result,
 * ENOMEM, or ECANCELED (walk_sink.stop). */
int walk_run(struct walk *walk, unsigned thread, const struct walk_sink *sink);

/* Copies the keys that keyspace_walk_again has marked meanwhile, in one round:
 * keys that are marked during it are left to the next round. *ret_bytes says
 * how many bytes it copied. */
int walk_run_again(struct walk *walk, unsigned thread,
                   const struct walk_sink *sink, uint64_t *ret_bytes);

/* Returns whether a key is marked. Under the raised gate, no key can become
 * marked. */
bool walk_has_again(const struct walk *walk);

struct walk_figures {
    uint64_t holds, rounds;
};
struct walk_figures walk_figures(const struct walk *walk); /* any thread */

/* Makes all walks copy this key (once more). Call it under the key's exclusive
 * lock. */
void keyspace_walk_again(struct keyspace *ks, const struct key *key);

/* Says that from now on a thread beside the loops may enter the gate, or no
 * longer does; calls are counted. Call it on loop 0, outside its section of the
 * gate. Meanwhile even a server with one loop takes locks. */
void keyspace_share(struct keyspace *ks, bool on);
