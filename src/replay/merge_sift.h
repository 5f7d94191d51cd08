/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tells which commands of a log can be done again on a server whose log went
 * on in another way: the adds to keys that both servers have. The owner shows
 * it the log twice. The first time it collects the names. Then the owner says
 * which incarnation each of them has at the end of the log, and the second time
 * each command goes to one of two hooks:
 *
 *   offer   items of a key that the log neither creates, deletes nor replaces.
 *           So it has had that incarnation all the time.
 *   aside   everything else, as commands that a client can send: without the
 *           words that only a log may have.
 *
 * Adds to deletable and ageing filters are not offered, since an item may have
 * been deleted or forgotten meanwhile. SWAPDB sets everything aside. MULTI,
 * EXEC and REPLCONF are skipped. Belongs to one thread at a time; does no I/O.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct merge_sift;

/* A key to which the log adds items. */
struct merge_name {
    struct slice name;
    uint32_t db;
    uint64_t incarnation; /* the owner sets it; 0: set its adds aside */
    bool touched; /* the log writes the key other than by plain adds and times
                     to live: its adds are set aside */
};

struct merge_sift_hooks {
    /* Takes one item for a key. Words are borrowed from the log. */
    bool (*offer)(void *ctx, const struct merge_name *name, struct slice item);
    /* Takes a command. changes: how many items it adds; 1 for other commands.
     */
    bool (*aside)(void *ctx, uint32_t db, const struct slice *argv, size_t argc,
                  size_t changes);
    void *ctx;
};

struct merge_sift *merge_sift_new(void);
void merge_sift_free(struct merge_sift *sift); /* NULL is fine */

/* Collects the names of a group, which begins with SELECT. Returns 0, ENOMEM,
 * or EINVAL: these bytes are no group. */
int merge_sift_note(struct merge_sift *sift, struct slice commands);

/* Return the number of names, and a name, in the order of their first
 * appearance. */
size_t merge_sift_count(const struct merge_sift *sift);
struct merge_name *merge_sift_name(const struct merge_sift *sift, size_t i);

/* Passes the commands of a group, which was noted, to the hooks. Returns 0,
 * ENOMEM, or ECANCELED: a hook returned false. */
int merge_sift_split(struct merge_sift *sift, struct slice commands,
                     const struct merge_sift_hooks *hooks);
