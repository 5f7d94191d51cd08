/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The snapshot pauses while even the fastest replica has much unsent output.
 */
#include "repl/primary_pace.h"

#include "repl/primary_state.h"

enum {
    PACE_HIGH = 4 << 20, /* pause above so many unsent bytes */
    PACE_PART = 4        /* resume at 1/4 of the bytes to pause at */
};

/* Returns the amount of unsent output at which the snapshot pauses. It is below
 * the output limits, so that the pause comes before a replica is dropped. */
static uint64_t
pace_high(const struct primary *primary)
{
    uint64_t high = PACE_HIGH;
    uint64_t limits[] = {
        primary_output_limit(primary, primary->limits.hard_bytes),
        primary_output_limit(primary, primary->limits.soft_bytes)
    };

    for (size_t i = 0; i < 2; i++) {
        if (limits[i] > 0 && limits[i] / 2 < high) {
            high = limits[i] / 2;
        }
    }
    return high;
}

void
primary_pace_update(struct primary *primary)
{
    uint64_t high = pace_high(primary);
    uint64_t least = UINT64_MAX;
    enum sync sync = primary->sync;

    if (!primary_sync_runs(primary)) {
        return;
    }
    for (size_t i = 0; i < primary->count; i++) {
        const struct peer *peer = primary->peers[i];

        if (peer->phase == PHASE_SNAPSHOT &&
            peer_unsent(primary, peer) < least) {
            least = peer_unsent(primary, peer);
        }
    }
    if (least > high) {
        sync = SYNC_PAUSED;
    } else if (least <= high / PACE_PART) {
        sync = SYNC_RUNS;
    }
    if (sync != primary->sync) {
        primary_enter_sync(primary, sync);
        primary->hooks.pause_sync(primary->hooks.ctx, sync == SYNC_PAUSED);
    }
}

/* Returns whether a replica gets the present snapshot, or waits for it. */
static bool
is_wanted(const struct primary *primary)
{
    for (size_t i = 0; i < primary->count; i++) {
        const struct peer *peer = primary->peers[i];

        if (primary->sync == SYNC_ASKED ? primary_sync_serves(primary, peer)
                                        : peer->phase == PHASE_SNAPSHOT) {
            return true;
        }
    }
    return false;
}

void
primary_pace_review(struct primary *primary)
{
    if (primary->sync != SYNC_NONE && !is_wanted(primary)) {
        primary_enter_sync(primary, SYNC_NONE);
        primary->hooks.cancel_sync(primary->hooks.ctx);
    }
    primary_pace_update(primary);
}
