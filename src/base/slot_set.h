/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A set of hash slots: a bitmap of 2 KiB. As text it is a list of ranges, as in
 * CLUSTER NODES: "0-5460 9000". Pure; {0} is empty.
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { CLUSTER_SLOTS = 16384, SLOT_SET_WORDS = CLUSTER_SLOTS / 64 };

struct slot_set {
    uint64_t bits[SLOT_SET_WORDS];
};

static inline bool
slot_set_has(const struct slot_set *set, unsigned slot)
{
    return (set->bits[slot / 64] >> slot % 64 & 1) != 0;
}

static inline void
slot_set_add(struct slot_set *set, unsigned slot)
{
    set->bits[slot / 64] |= (uint64_t)1 << slot % 64;
}

static inline void
slot_set_remove(struct slot_set *set, unsigned slot)
{
    set->bits[slot / 64] &= ~((uint64_t)1 << slot % 64);
}

/* Returns the first slot of the set from `at` on; CLUSTER_SLOTS: there is none.
 */
static inline unsigned
slot_set_from(const struct slot_set *set, unsigned at)
{
    uint64_t word;

    if (at >= CLUSTER_SLOTS) {
        return CLUSTER_SLOTS;
    }
    word = set->bits[at / 64] >> at % 64;
    while (word == 0) {
        at += 64 - at % 64;
        if (at == CLUSTER_SLOTS) {
            return CLUSTER_SLOTS;
        }
        word = set->bits[at / 64];
    }
    return at + (unsigned)__builtin_ctzll(word);
}

/* Runs a block for each slot of the set, ascending. The block may remove slots
 * from it. NOLINTBEGIN(bugprone-macro-parentheses): a declared name cannot have
 * parentheses. */
#define slot_set_foreach(set, slot)                                            \
    for (unsigned slot = slot_set_from(set, 0); slot < CLUSTER_SLOTS;          \
         slot = slot_set_from(set, slot + 1))
/* NOLINTEND(bugprone-macro-parentheses) */

/* Adds the slots from `first` to `last`, both included. */
void slot_set_add_range(struct slot_set *set, unsigned first, unsigned last);

/* Add the slots of `other`; remove all slots but those of `other`; remove the
 * slots of `other`. */
void slot_set_unite(struct slot_set *set, const struct slot_set *other);
void slot_set_intersect(struct slot_set *set, const struct slot_set *other);
void slot_set_subtract(struct slot_set *set, const struct slot_set *other);

unsigned slot_set_count(const struct slot_set *set);
bool slot_set_is_empty(const struct slot_set *set);
bool slot_set_equal(const struct slot_set *a, const struct slot_set *b);
bool slot_set_intersects(const struct slot_set *a, const struct slot_set *b);

/* Finds the first whole range that begins at *at or behind it, and moves *at
 * behind that range. False: there is none. Begin with 0. */
bool slot_set_next(const struct slot_set *set, unsigned *at,
                   unsigned *ret_first, unsigned *ret_last);

/* Reads "a" or "a-b" in decimal, a <= b. False: malformed. */
bool slot_set_parse_range(struct slice text, unsigned *ret_first,
                          unsigned *ret_last);

/* Reads ranges that blanks or single commas separate; they may overlap. False:
 * malformed, and *ret_set is untouched. An empty text is an empty set. */
bool slot_set_parse(struct slice text, struct slot_set *ret_set);

/* Appends the ranges with one blank between two: "0-5460 9000". */
void slot_set_write(struct buf *out, const struct slot_set *set);
