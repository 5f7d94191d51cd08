/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What readers see of a copy: where the bits of its filter are, and until when
 * "absent" is proved. A view is published by one pointer. Its writer adds items
 * to the filter and moves the deadlines of the view while readers use it; a
 * filter with other layers gets another view. So readers take no lock:
 *
 *   writer   sets bits, then moves the deadline
 *   reader   reads the deadline, then bits, then the clock
 *
 * so that a reader that sees a deadline sees all items that it stands for.
 *
 * A deadline is a time of each of two clocks. The monotonic clock stands still
 * while the machine is suspended, and the wall clock may be set back: so
 * "absent" is answered only if neither time has passed. Both clocks are coarse,
 * and late by some ticks.
 */
#pragma once

#include "core/filter.h"

#include <bloomery/local.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct local_view {
    _Atomic uint64_t mono_ns, wall_ns; /* absent is proved until then */
    _Atomic uint32_t first;            /* the oldest layer that is live */
    uint32_t count;                    /* 0: all items are absent */
    bool near;             /* it fits into a cache: no prefetching */
    bool forgotten;        /* used by the writer: lines were freed */
    struct bloom hasher;   /* for bloom_hash() only */
    struct layer layers[]; /* oldest first; the counts of items are old */
};

/* Where the view of a copy is published. One thread writes it. */
struct local_place {
    _Atomic(struct local_view *) view; /* never NULL */
    struct local_view *own;            /* used by the writer; NULL: none */
};

/* Makes a view of a filter, or of no filter (NULL). At first nothing is proved,
 * so it never answers absent. Returns NULL without memory. */
struct local_view *local_view_new(const struct bloom *bloom);

/* Returns whether a view has the layers of a filter. */
bool local_view_fits(const struct local_view *view, const struct bloom *bloom);

/* The times until which absent is proved; 0: it is not proved. */
struct local_proof {
    uint64_t mono_ns, wall_ns;
};
void local_view_prove(struct local_view *view, struct local_proof until);

/* Returns by how much, at most, the coarse clocks may be late. */
uint64_t local_view_slack_ns(void);

/* Returns whether absent is proved now. */
bool local_view_is_fresh(const struct local_view *view);

/* Notes that layers before this one are not live any more. */
void local_view_raise(struct local_view *view, uint32_t first);

/* Prepares a place, in which all answers are "unknown". */
void local_place_init(struct local_place *place);

/* Publishes a view; with NULL, all answers are "unknown". Frees the view before
 * it when no reader uses it. A closed place takes no view, and frees it. */
void local_place_give(struct local_place *place, struct local_view *view);

/* Closes the place: from now on all answers, in any thread, are "unknown". */
void local_place_close(struct local_place *place);

/* Makes readers forget these lines: when it returns, no reader uses them any
 * more. */
void local_place_forget(struct local_place *place, const void *lines);

/* Do what bloomery_local_contains() and bloomery_local_contains_many() do. */
enum bloomery_local_answer local_place_contains(struct local_place *place,
                                                const void *item, size_t bytes);
size_t local_place_contains_many(struct local_place *place,
                                 const struct bloomery_local_item *items,
                                 size_t count, int8_t *ret_answers);
