/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clock.h"
#include "keyspace/gate.h"
#include "keyspace/scan.h"
#include "keyspace/walk.h"
#include "keyspace/walk_internal.h"

#include <time.h>

static bool
is_stopped(const struct walk *walk)
{
    const atomic_bool *stop = walk->sink->stop;

    return stop != NULL && atomic_load_explicit(stop, memory_order_relaxed);
}

/* Enters the gate. It does not use gate_enter, which would wait: the thread
 * that has raised the gate may be the one that stops the walk. */
static bool
enter(const struct walk *walk)
{
    static const struct timespec pause = { .tv_nsec = 20000 };

    while (!gate_try_enter(walk->ks->gate, walk->thread)) {
        if (is_stopped(walk)) {
            return false;
        }
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

bool
walk_begin_hold(struct walk *walk, unsigned stripe, bool exclusive,
                struct walk_hold *ret_hold)
{
    struct keyspace *ks = walk->ks;

    ret_hold->entered = !gate_is_mine(ks->gate, walk->thread);
    if (ret_hold->entered) {
        pace_keep(&walk->pace);
    }
    if (is_stopped(walk) || (ret_hold->entered && !enter(walk))) {
        return false;
    }
    walk->stripe = stripe;
    if (ret_hold->entered) { /* a thread beside the loops: it has no turns */
        longest_turn_slow(clock_mono_ns());
    }
    ret_hold->locked = scan_lock(ks, walk->thread, stripe, exclusive);
    atomic_fetch_add_explicit(&walk->holds, 1, memory_order_relaxed);
    return true;
}

void
walk_end_hold(struct walk *walk, const struct walk_hold *hold)
{
    scan_unlock(walk->ks, walk->thread, walk->stripe, &hold->locked);
    if (hold->entered) {
        gate_leave(walk->ks->gate, walk->thread);
    }
}

uint64_t
walk_hold_position(const struct walk *walk)
{
    uint64_t position = walk->ks->stripes[walk->stripe].position;

    return position > walk->begin ? position : walk->begin;
}

struct noted
walk_describe(const struct walk *walk, const struct entry *entry,
              uint64_t expires_at_ms)
{
    uint32_t slot = db_slot_of(entry->db_id);

    return (struct noted){
        .db_id = entry->db_id,
        .epoch = walk->ks->epochs[slot] - walk->epochs[slot],
        .position = walk_hold_position(walk),
        .expires_at_ms = expires_at_ms,
        .incarnation = entry->incarnation,
        .form_bytes = codec_dump_bytes(&entry->bloom) - CODEC_CHECKSUM_BYTES,
        .name_len = (uint32_t)entry_name(entry).len,
    };
}

int
walk_put_item(const struct walk *walk, const struct noted *noted,
              struct walk_item *item)
{
    item->db = walk->numbers[db_slot_of(noted->db_id)];
    item->epoch = noted->epoch;
    item->position = noted->position;
    item->expires_at_ms = noted->expires_at_ms;
    item->incarnation = noted->incarnation;
    item->form_bytes = noted->form_bytes;
    return walk->sink->item(walk->sink->ctx, item);
}
