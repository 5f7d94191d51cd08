/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One snapshot for all who wait for it. It is asked for, begins (here those who
 * came meanwhile still join), comes in pieces and ends; who comes later waits
 * for the next one. When the last one who gets it has left, it is cancelled.
 */
#include "repl/primary_internal.h"

#include <inttypes.h>

#include "base/log.h"

enum {
    PACE_HIGH = 4 << 20, /* that the fastest has not taken: wait */
    PACE_PART = 4,       /* below this part of it, go on */
    TEXT_KEPT = 4096
};

static uint64_t
pace_high(const struct primary *primary)
{
    uint64_t high = PACE_HIGH;
    uint64_t limits[] = { peer_limit(primary, primary->limits.hard_bytes),
                          peer_limit(primary, primary->limits.soft_bytes) };

    for (size_t i = 0; i < 2; i++) {
        if (limits[i] > 0 && limits[i] / 2 < high) {
            high = limits[i] / 2;
        }
    }
    return high;
}

void
primary_sync_keep_pace(struct primary *primary)
{
    uint64_t high = pace_high(primary);
    uint64_t least = UINT64_MAX;
    bool paused = primary->paused;

    if (primary->sync != SYNC_RUNS) {
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
        paused = true;
    } else if (least <= high / PACE_PART) {
        paused = false;
    }
    if (paused != primary->paused) {
        primary->paused = paused;
        primary->hooks.pause_sync(primary->hooks.ctx, paused);
    }
}

void
primary_sync_review(struct primary *primary)
{
    if (primary->sync != SYNC_NONE &&
        !peer_is_any(primary, primary->sync == SYNC_ASKED ? PHASE_WAITS
                                                          : PHASE_SNAPSHOT)) {
        primary->sync = SYNC_NONE;
        primary->hooks.cancel_sync(primary->hooks.ctx);
    }
    primary_sync_keep_pace(primary);
}

void
primary_sync_ask(struct primary *primary, uint64_t now_ms)
{
    for (size_t i = 0; i < primary->count && primary->sync == SYNC_NONE; i++) {
        const struct peer *peer = primary->peers[i];

        if (peer->phase == PHASE_WAITS &&
            now_ms - peer->since_ms >= primary->limits.sync_delay_ms) {
            primary->sync = SYNC_ASKED;
            primary->paused = false;
            primary->held = backlog_sealed(primary->backlog);
            primary->hooks.ask_sync(primary->hooks.ctx);
        }
    }
}

/* ---- the snapshot -------------------------------------------------------- */

void
primary_sync_began(struct primary *primary, const struct primary_sync *sync,
                   uint64_t now_ms)
{
    struct wire_answer answer = { .kind = WIRE_FULLRESYNC,
                                  .key = primary->key,
                                  .position = sync->position,
                                  .sequence = sync->sequence,
                                  .bytes = sync->bytes };

    if (primary_is_broken(primary) || primary->sync != SYNC_ASKED) {
        return; /* it was cancelled */
    }
    if (sync->position < backlog_first(primary->backlog)) {
        peer_drop_phase(
            primary, PHASE_WAITS,
            "the changes kept here do not reach back to the snapshot");
        return;
    }
    memcpy(answer.history,
           sync->history[0] != '\0' ? sync->history : primary->history.id,
           sizeof(answer.history));
    primary->sync = SYNC_RUNS;
    for (size_t i = 0; i < primary->count; i++) {
        struct peer *peer = primary->peers[i];

        if (peer->phase == PHASE_WAITS) {
            peer->phase = PHASE_SNAPSHOT;
            peer->cursor = peer->acked = sync->position;
            peer->between = true;
        }
    }
    log_notice("repl.primary", "full synchronization began",
               "position=%" PRIu64 " bytes=%" PRIu64, sync->position,
               sync->bytes);
    for (size_t i = primary->count; i-- > 0;) {
        if (primary->peers[i]->phase == PHASE_SNAPSHOT) {
            (void)peer_answer(primary, primary->peers[i], &answer, now_ms);
        }
    }
}

static void
send_chunk(struct primary *primary, struct slice chunk, uint64_t now_ms)
{
    struct slice head;

    buf_reset(&primary->text, TEXT_KEPT);
    wire_write_chunk_head(&primary->text, chunk.len);
    head = buf_slice(&primary->text);
    if (primary->text.failed) {
        peer_drop_phase(primary, PHASE_SNAPSHOT,
                        "there was no memory for what is sent to it");
        return;
    }
    for (size_t i = primary->count; i-- > 0;) {
        struct peer *peer = primary->peers[i];

        if (peer->phase == PHASE_SNAPSHOT &&
            peer_send_line(primary, peer, head, now_ms) &&
            peer_send(primary, peer, chunk)) {
            (void)peer_check_limits(primary, peer, now_ms);
        }
    }
}

void
primary_sync_bytes(struct primary *primary, struct slice bytes, uint64_t now_ms)
{
    while (bytes.len > 0 && primary->sync == SYNC_RUNS) {
        struct slice chunk = bytes;

        chunk.len = chunk.len < WIRE_CHUNK_MAX ? chunk.len : WIRE_CHUNK_MAX;
        send_chunk(primary, chunk, now_ms);
        bytes.data += chunk.len;
        bytes.len -= chunk.len;
    }
    primary_sync_keep_pace(primary);
}

static void
end_chunks(struct primary *primary, struct peer *peer, uint64_t now_ms)
{
    bool more = false;

    peer->phase = PHASE_TAIL;
    peer->heard_ms = now_ms;
    if (peer_send_line(primary, peer, slice_lit("$0\r\n"), now_ms)) {
        (void)peer_push(primary, peer, now_ms, &more);
    }
}

void
primary_sync_ended(struct primary *primary, bool good, uint64_t now_ms)
{
    enum sync sync = primary->sync;

    primary->sync = SYNC_NONE;
    if (primary_is_broken(primary) || sync == SYNC_NONE) {
        return;
    }
    if (!good || sync == SYNC_ASKED) {
        peer_drop_phase(primary,
                        sync == SYNC_ASKED ? PHASE_WAITS : PHASE_SNAPSHOT,
                        "the snapshot for it could not be made");
        return;
    }
    log_notice("repl.primary", "full synchronization was sent", "replicas=%zu",
               primary->count);
    for (size_t i = primary->count; i-- > 0;) {
        if (primary->peers[i]->phase == PHASE_SNAPSHOT) {
            end_chunks(primary, primary->peers[i], now_ms);
        }
    }
}
