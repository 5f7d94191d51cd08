/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of a walk share: walk.c goes through the stripes, walk_large.c
 * copies the filters that do not fit into a batch, and both do so in the holds
 * of walk_hold.c.
 */
#pragma once

#include "base/buf.h"
#include "base/longest.h"
#include "core/codec.h"
#include "keyspace/keyspace_internal.h"
#include "keyspace/pace.h"

enum {
    WALK_HOLD_BYTES = 16 << 10,   /* of lines in one hold */
    WALK_PIECE_BYTES = 256 << 10, /* of lines in one call of the sink */
    WALK_SMALL_BYTES = 16 << 10,  /* filters up to this size come in one item */
    WALK_BATCH_BYTES = 16 << 10 /* about so much of small filters in one hold */
};

struct walk_item; /* keyspace/walk.h */
struct walk_part;
struct walk_sink;

/* An entry as a hold notes it in the batch. The name follows, then the form. */
struct noted {
    uint32_t db_id, epoch;
    uint64_t position, expires_at_ms, incarnation;
    uint64_t form_bytes;
    uint32_t name_len, form_len; /* form_len 0: too large for the batch */
};

struct walk {
    struct keyspace *ks;
    unsigned number; /* index of this walk, below GATE_WALKERS */
    uint64_t begin;  /* the position at which it began */
    const struct walk_part *part;
    uint16_t *numbers; /* databases by slot, at walk_begin */
    uint32_t *epochs;  /* epochs by slot, at walk_begin */
    _Atomic uint64_t holds, rounds;
    /* The walk's thread: */
    unsigned thread;
    const struct walk_sink *sink;
    struct pace pace;
    struct buf batch;
    bool only_marked; /* a round of walk_run_again */
    uint64_t bytes;   /* copied in this round */
    unsigned stripe;  /* that the hold has locked */
    uint32_t layers;  /* of the large filter that is being copied */
    uint64_t layer_bytes[BLOOM_LAYERS_MAX];
    size_t hold_bytes[BLOOM_LAYERS_MAX]; /* most of a layer in one hold */
    bool deletable;         /* it is deletable, so its pieces are noted */
    struct buf pieces;      /* their positions */
    const char *next_lines; /* to prefetch, NULL: unknown */
    uint8_t head[CODEC_HEAD_BYTES_MAX];
    uint8_t piece[WALK_PIECE_BYTES];
};

struct walk_hold {
    bool entered;
    struct longest_span locked;
};

/* Begins a hold. False: the walk was stopped. */
bool walk_begin_hold(struct walk *walk, unsigned stripe, bool exclusive,
                     struct walk_hold *ret_hold);
void walk_end_hold(struct walk *walk, const struct walk_hold *hold);

/* Returns the position up to which the copies of this hold include the log. */
uint64_t walk_hold_position(const struct walk *walk);

/* Describes an entry, all but its form. Call it in a hold. */
struct noted walk_describe(const struct walk *walk, const struct entry *entry,
                           uint64_t expires_at_ms);

/* Gives the sink an item whose name and form are set. */
int walk_put_item(const struct walk *walk, const struct noted *noted,
                  struct walk_item *item);

/* Copies a large filter, if it is still there. */
int walk_copy_large(struct walk *walk, uint32_t db_id, struct slice name);
