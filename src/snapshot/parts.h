/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Joins the groups of a snapshot's effects from their parts; snapshot_format.h
 * draws a part. Parts are not trusted: memory for a group grows only as its
 * bytes come.
 */
#pragma once

#include "snapshot/snapshot_stamp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The owner sets position and sequence to those of B, where the snapshot
 * begins, and `gaps` if groups may be missing. All other fields begin with
 * zeros. */
struct parts {
    uint64_t position, sequence; /* behind the last whole group */
    bool gaps;
    /* The open group; if bytes is 0, no group is open. */
    struct snapshot_effects group;
    uint64_t bytes;
    char *text;
    size_t len, room;
};

enum parts_status {
    PARTS_MORE,
    PARTS_WHOLE, /* *ret_group has borrowed text, until the next call */
    PARTS_WRONG, /* the part does not fit what came before it */
    PARTS_NOMEM
};

/* Takes the payload of a section, which is longer than EFFECTS_HEAD_BYTES. */
enum parts_status parts_put(struct parts *parts, const uint8_t *payload,
                            size_t len, struct snapshot_effects *ret_group);

/* Forgets an open group. */
void parts_drop(struct parts *parts);

/* Returns whether the groups that have come end at this place, and all are
 * whole. */
bool parts_end_at(const struct parts *parts, uint64_t position,
                  uint64_t sequence);

void parts_fini(struct parts *parts);
