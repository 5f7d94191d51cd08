/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A snapshot is asked for, begins (replicas that came meanwhile still join),
 * arrives in pieces, reaches its position and ends. A replica that comes later
 * waits for the next one.
 */
#include "repl/primary_sync.h"

#include "base/log.h"
#include "repl/peer.h"
#include "repl/primary_pace.h"

#include <inttypes.h>

enum { TEXT_KEPT = 4096 };

/* Returns whether the snapshot that this replica waits for may be requested
 * now. A request for slots may replace a request for all data if that snapshot
 * has not begun: a snapshot of all data begins only when the disk works, which
 * may be never. */
static bool
may_ask(const struct primary *primary, const struct peer *peer, uint64_t now_ms)
{
    if (peer->hello.pulls) {
        return primary->sync == SYNC_NONE ||
               (primary->sync == SYNC_ASKED && !primary->sync_pulls);
    }
    return primary->sync == SYNC_NONE &&
           now_ms - peer->since_ms >= primary->limits.sync_delay_ms;
}

void
primary_sync_ask(struct primary *primary, uint64_t now_ms)
{
    for (size_t i = 0; i < primary->count; i++) {
        const struct peer *peer = primary->peers[i];

        if (peer->phase == PHASE_WAITS && may_ask(primary, peer, now_ms)) {
            if (primary->sync == SYNC_NONE) {
                primary_enter_sync(primary, SYNC_ASKED);
            }
            primary->sync_pulls = peer->hello.pulls;
            primary->sync_slots = peer->hello.slots;
            primary->hooks.ask_sync(primary->hooks.ctx,
                                    peer->hello.pulls ? &primary->sync_slots
                                                      : NULL);
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

    if (peer_drop_if_broken(primary) || primary->sync != SYNC_ASKED) {
        return; /* the snapshot was cancelled */
    }
    memcpy(answer.history,
           sync->history[0] != '\0' ? sync->history : primary->history.id,
           sizeof(answer.history));
    if (strcmp(answer.history, primary->history.id) == 0) {
        memcpy(answer.past, primary->history.past, sizeof(answer.past));
    }
    primary_enter_sync(primary, SYNC_RUNS);
    for (size_t i = 0; i < primary->count; i++) {
        struct peer *peer = primary->peers[i];

        if (primary_sync_serves(primary, peer)) {
            peer_enter(peer, PHASE_SNAPSHOT);
            peer->cursor = PEER_NOWHERE;
            peer->acked = sync->position;
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

void
primary_sync_reached(struct primary *primary, uint64_t position)
{
    for (size_t i = 0; i < primary->count; i++) {
        struct peer *peer = primary->peers[i];

        if (peer->phase == PHASE_SNAPSHOT && peer->cursor == PEER_NOWHERE) {
            peer->cursor = peer->acked = position;
            peer->between_groups = true;
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
                        "there was no memory for its output");
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
    while (bytes.len > 0 && primary_sync_runs(primary)) {
        struct slice chunk = bytes;

        chunk.len = chunk.len < WIRE_CHUNK_MAX ? chunk.len : WIRE_CHUNK_MAX;
        send_chunk(primary, chunk, now_ms);
        bytes.data += chunk.len;
        bytes.len -= chunk.len;
    }
    primary_pace_update(primary);
}

static void
end_chunks(struct primary *primary, struct peer *peer, uint64_t now_ms)
{
    bool more = false;

    CHECK(peer->cursor != PEER_NOWHERE);
    peer_enter(peer, PHASE_TAIL);
    peer->heard_ms = now_ms;
    if (peer_send_line(primary, peer, slice_lit("$0\r\n"), now_ms)) {
        (void)peer_push(primary, peer, now_ms, &more);
    }
}

/* Drops the replicas whose snapshot could not be made. asked: it did not even
 * begin. */
static void
drop_unserved(struct primary *primary, bool asked)
{
    for (size_t i = primary->count; i-- > 0;) {
        struct peer *peer = primary->peers[i];

        if (asked ? primary_sync_serves(primary, peer)
                  : peer->phase == PHASE_SNAPSHOT) {
            peer_drop(primary, peer, "its snapshot could not be made");
        }
    }
}

void
primary_sync_ended(struct primary *primary, bool good, uint64_t now_ms)
{
    enum sync sync = primary->sync;

    primary_enter_sync(primary, SYNC_NONE);
    if (peer_drop_if_broken(primary) || sync == SYNC_NONE) {
        return;
    }
    if (!good || sync == SYNC_ASKED) {
        drop_unserved(primary, sync == SYNC_ASKED);
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
