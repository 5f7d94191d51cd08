/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Structs of the public header that may get more members: the first member,
 * size_t struct_size, is the sizeof that the caller compiled, which may be an
 * older one (smaller) or a newer one (larger) than ours. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

/* Copies a struct of the caller into ours, of SIZE bytes; members that the
 * caller does not have become 0. False if the caller's struct has less than
 * LEAST bytes, or has members unknown here that are not 0. */
static inline bool
versioned_read(const void *theirs, void *ret_ours, size_t size, size_t least)
{
    const uint8_t *bytes = theirs;
    size_t given;

    memcpy(&given, theirs, sizeof(given));
    if (given < least) {
        return false;
    }
    for (size_t i = size; i < given; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    memset(ret_ours, 0, size);
    memcpy(ret_ours, theirs, given < size ? given : size);
    memcpy(ret_ours, &size, sizeof(size));
    return true;
}

/* Returns whether the caller's struct has at least LEAST bytes. */
static inline bool
versioned_fits(const void *theirs, size_t least)
{
    size_t given;

    memcpy(&given, theirs, sizeof(given));
    return given >= least;
}

/* Copies our struct, of SIZE bytes, into the caller's, all but the first
 * member; the caller's members that are unknown here become 0. */
static inline void
versioned_write(void *ret_theirs, const void *ours, size_t size, size_t least)
{
    uint8_t *to = ret_theirs;
    const uint8_t *from = ours;
    size_t given;

    memcpy(&given, to, sizeof(given));
    CHECK(given >= least); /* the caller sets struct_size */
    if (given == size) {   /* a constant length: memcpy is inlined */
        memcpy(to + sizeof(given), from + sizeof(given), size - sizeof(given));
        return;
    }
    if (given > size) {
        memset(to + size, 0, given - size);
        given = size;
    }
    memcpy(to + sizeof(given), from + sizeof(given), given - sizeof(given));
}
