/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adds of many items, and all adds to deletable and ageing filters. Effects for
 * other filters list the items that were new. Adds to a deletable filter mark
 * collisions even if the reply is 0. So their effects list all items, and say
 * where each one went (keyspace/redo.h):
 *
 *   BF.INSERT key [words that create it] PLACED place item ...
 *   BF.MDEL key PLACED place item ...      only those that were deleted
 *
 * An add to an ageing filter renews an item that is there. So its effects have
 * a time, and list the items that were new to the generation of that time, even
 * if the reply was 0:
 *
 *   BF.INSERT key AT ms ITEMS item ...
 *   BF.INSERT key [words that create it] AT ms [more such words] ITEMS item ...
 */
#pragma once

#include "bloom/bloom_make.h"

/* The items of one command. */
struct bloom_adds {
    const struct slice *items;
    size_t count;
    bool created; /* this command has created the filter: its effect must be
                     completed */
    bool plain; /* the command's own words cannot be the effect: write a BF.MADD
                 */
    uint64_t at_ms; /* in a replay on an ageing filter: the time of the add */
};

/* If the filter of the request's key is fresh (core/bloom.h), makes the kernel
 * clear the pages that many items need, in pieces, since this takes several
 * times as long as the adds. If the key is missing, first makes the filter
 * (insert->made), which bloom_make_create() then uses. ERR_AGAIN: the handler
 * has paused, and nothing has changed. Handlers call it after their checks,
 * before they open the key. */
MUST_CHECK enum err adds_touch(struct request *req,
                               struct bloom_insert *insert);

/* Adds items in order and appends the reply: an array with 0 or 1 for each; if
 * an item fails, its error is the last element. Sets dirty, completes the
 * effect, and reports the change. Fails only before anything is added. */
MUST_CHECK enum err adds_run(struct request *req, struct bloom *bloom,
                             const struct bloom_adds *adds);

/* Does what BF.ADD does with an item of a filter that forgets, or in a log with
 * gaps. */
MUST_CHECK enum err adds_run_one(struct request *req, struct bloom *bloom,
                                 struct slice item);

/* Executes a replayed BF.INSERT or BF.MDEL on a deletable filter, which may be
 * NULL. `words` are the words that follow PLACED. */
MUST_CHECK enum err adds_redo(struct request *req, struct bloom *bloom,
                              const struct slice *words, size_t count,
                              bool deletes);
