/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions that the journal calls: hooks, when something has changed, and
 * taps, which copy the log.
 */
#pragma once

#include "base/slice.h"

#include <stdint.h>

/* Called without the journal's mutex, mostly by its two threads, but also by
 * the caller of any function of the journal. A hook may only leave a message;
 * it must not wait. NULL: not called. */
struct journal_hooks {
    /* The released or synced position has advanced, or the queue is below its
     * limit again: loops with waiting connections should check them. */
    void (*moved)(void *ctx);
    /* The journal has a fault, has reached a target, or is off: loop 0 should
     * call journal_get_status. */
    void (*event)(void *ctx);
    /* The tap has received bytes, for the first time since journal_close_group.
     * journal_kick calls it, on any loop. One call may still come after the tap
     * was removed. */
    void (*tapped)(void *ctx);
    void *ctx;
};

/* What a tap is for: replicas, a walk for this server's own files, or a walk
 * for a full synchronization. */
enum journal_tap_use {
    JOURNAL_TAP_REPLICAS,
    JOURNAL_TAP_WALK,
    JOURNAL_TAP_SYNC,
    JOURNAL_TAPS
};

/* Receives every byte of the log in order. Called under the journal's mutex, by
 * the thread that appends or closes a group (the writer, too): a tap copies,
 * and does nothing else. */
struct journal_tap {
    /* The log continues from this position, which is the end of a group. The
     * tap forgets earlier bytes. Called by journal_set_tap and journal_move. */
    void (*begin)(void *ctx, uint64_t position, uint64_t sequence);
    /* Bytes of the open group; the first ones open it. */
    void (*text)(void *ctx, struct slice bytes);
    /* The group is closed; its seal takes GROUP_SEAL_BYTES. seal: these bytes,
     * if the group came with its seal (journal_relay); NULL: the tap makes the
     * seal. */
    void (*close)(void *ctx, uint64_t sequence, const char *seal);
    void *ctx;
};
