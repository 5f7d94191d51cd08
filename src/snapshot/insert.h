/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes the keys of a snapshot, for a start, a reload, a transfer and
 * bloomery-check. The caller owns the keyspace alone; it is empty at first, and
 * after a failure it must be thrown away. A snapshot is not trusted.
 */
#pragma once

#include "keyspace/keyspace.h"
#include "snapshot/completion.h"
#include "snapshot/snapshot_read.h"

#include <stdbool.h>

/* The owner sets the fields up to `threads`; all others begin with zeros. */
struct insert {
    struct keyspace *keyspace;
    const struct bloom_env *env; /* the environment in which filters are made */
    const struct completion *completion; /* NULL: effects are refused */
    const struct walk_part *part;        /* the snapshot's keys; NULL: all */
    bool incomplete;  /* keys may be missing, since the file is salvaged */
    unsigned threads; /* threads that make filters; 0 or 1: only the caller's */
    bool failed;
    char why[256]; /* part of a sentence, after the first failure */
    bool epochs;   /* some keys had an epoch other than 0 */
    bool pieces;   /* some deletable filters have positions of pieces */
    bool ended;
    uint64_t left_out; /* completion.left_out(), set by insert_end */
    void *completing;  /* NULL: no effect came */
};

/* The functions that snapshot_read calls, with the insert as ctx. */
bool insert_filter(void *ctx, const struct snapshot_record *record,
                   struct bloom *bloom);
bool insert_gone(void *ctx, const struct snapshot_record *record);
bool insert_effects(void *ctx, const struct snapshot_effects *effects);
bool insert_end(void *ctx, const struct snapshot_stamp *end);

/* Frees the memory that the loading needed, not the keyspace. */
void insert_fini(struct insert *insert);

/* Returns a visitor that calls these functions. */
struct snapshot_visitor insert_visitor(struct insert *insert);
