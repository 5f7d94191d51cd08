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

/* The owner sets the first fields; all else begins with zeros. */
struct insert {
    struct keyspace *keyspace;
    const struct bloom_env *env;         /* that the filters are made in */
    const struct completion *completion; /* NULL: effects are refused */
    const struct walk_part *part; /* that the snapshot is limited to, or NULL */
    bool incomplete;  /* keys may be missing, since the file is salvaged */
    unsigned threads; /* that make filters; 0 or 1: only the caller's */
    bool failed;
    char why[256]; /* part of a sentence, after the first failure */
    bool epochs;   /* some keys were not of epoch 0 */
    bool pieces;   /* some deletable filters have positions of pieces */
    bool ended;
    uint64_t left_out; /* deletions, set by insert_end (completion.h) */
    void *completing;  /* NULL: no effect came */
};

/* What snapshot_read calls, with the insert as ctx. */
bool insert_filter(void *ctx, const struct snapshot_record *record,
                   struct bloom *bloom);
bool insert_gone(void *ctx, const struct snapshot_record *record);
bool insert_effects(void *ctx, const struct snapshot_effects *effects);
bool insert_end(void *ctx, const struct snapshot_stamp *end);

/* Frees what it needed. */
void insert_fini(struct insert *insert);

/* Returns a visitor of all of these. */
struct snapshot_visitor insert_visitor(struct insert *insert);
