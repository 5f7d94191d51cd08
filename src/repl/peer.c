/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sends one replica the log, enforces its limits, and removes it. The log is
 * not copied for each replica: a cursor says how far it was sent, and the
 * backlog keeps the log from the lowest cursor on. A link is given about 1 MiB
 * more than its socket took, so the memory that slow replicas cost is in the
 * backlog, once for all of them.
 */
#include "repl/peer.h"

#include "base/mem.h"
#include "repl/primary_pace.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    UNSENT_MAX = 1 << 20, /* above it, wait for the socket */
    TURN_MAX = 1 << 20,   /* for one replica in one call */
    TEXT_KEPT = 4096,
    REASON_MAX = 160
};

struct peer *
peer_find(const struct primary *primary, uint64_t id)
{
    for (size_t i = 0; i < primary->count; i++) {
        if (primary->peers[i]->hello.id == id) {
            return primary->peers[i];
        }
    }
    return NULL;
}

/* ---- removal ------------------------------------------------------------- */

void
peer_forget(struct primary *primary, struct peer *peer)
{
    size_t at = 0;

    while (at < primary->count && primary->peers[at] != peer) {
        at++;
    }
    CHECK(at < primary->count);
    primary->count--;
    memmove((void *)&primary->peers[at], (void *)&primary->peers[at + 1],
            (primary->count - at) * sizeof(struct peer *));
    mem_free(peer);
}

void
peer_drop(struct primary *primary, struct peer *peer, const char *reason)
{
    uint64_t id = peer->hello.id;

    peer_forget(primary, peer);
    primary->hooks.drop(primary->hooks.ctx, id, reason);
    primary_pace_review(primary);
}

void
peer_drop_phase(struct primary *primary, enum phase phase, const char *reason)
{
    for (size_t i = primary->count; i-- > 0;) {
        if (primary->peers[i]->phase == phase) {
            peer_drop(primary, primary->peers[i], reason);
        }
    }
}

void
peer_drop_all(struct primary *primary, const char *reason)
{
    while (primary->count > 0) {
        peer_drop(primary, primary->peers[primary->count - 1], reason);
    }
}

bool
peer_drop_if_broken(struct primary *primary)
{
    if (!backlog_is_broken(primary->backlog)) {
        return false;
    }
    peer_drop_all(primary, "there was no memory for the backlog");
    return true;
}

/* ---- sending ------------------------------------------------------------- */

bool
peer_send(struct primary *primary, struct peer *peer, struct slice bytes)
{
    if (!primary->hooks.send(primary->hooks.ctx, peer->hello.id, bytes)) {
        peer_drop(primary, peer, "there was no memory for its output");
        return false;
    }
    peer->sent += bytes.len;
    return true;
}

bool
peer_send_line(struct primary *primary, struct peer *peer, struct slice line,
               uint64_t now_ms)
{
    peer->sent_ms = now_ms;
    return peer_send(primary, peer, line);
}

bool
peer_answer(struct primary *primary, struct peer *peer,
            const struct wire_answer *answer, uint64_t now_ms)
{
    buf_reset(&primary->text, TEXT_KEPT);
    wire_write_answer(&primary->text, answer);
    if (primary->text.failed) {
        peer_drop(primary, peer, "there was no memory for its output");
        return false;
    }
    return peer_send_line(primary, peer, buf_slice(&primary->text), now_ms);
}

/* Returns the position up to which the log may be sent: the end of a group. A
 * server that takes over slots also gets the part that is not released. After
 * the fence that server owns the slots, so a crash here takes nothing back. And
 * a full disk here, which releases nothing, does not stop the transfer. */
static uint64_t
target_of(const struct primary *primary, const struct peer *peer)
{
    uint64_t sealed = backlog_sealed(primary->backlog);

    return peer->hello.pulls || sealed < primary->released ? sealed
                                                           : primary->released;
}

bool
peer_get_ack(struct primary *primary, struct peer *peer)
{
    struct primary_ask *ask = &peer->ask;

    if (ask->last == 0 || !peer->between_groups || peer->cursor < ask->first) {
        return true;
    }
    peer->asked = peer->cursor;
    /* Positions after the cursor are still asked for. */
    ask->first = peer->cursor + 1;
    if (ask->first > ask->last) {
        *ask = (struct primary_ask){ 0 };
    }
    return peer_send(primary, peer, slice_lit("+GETACK\r\n"));
}

bool
peer_tell(struct primary *primary, struct peer *peer, uint64_t now_ms)
{
    struct slice text = buf_slice(&primary->holdings);

    if (!peer->hello.wants_holdings || peer->told == primary->tells ||
        !peer->between_groups || peer->cursor < primary->holdings_at ||
        peer_unsent(primary, peer) >= UNSENT_MAX) {
        return true;
    }
    buf_reset(&primary->text, TEXT_KEPT);
    wire_write_holdings_head(&primary->text, text.len);
    if (primary->text.failed) {
        peer_drop(primary, peer, "there was no memory for its output");
        return false;
    }
    peer->told = primary->tells;
    return peer_send_line(primary, peer, buf_slice(&primary->text), now_ms) &&
           peer_send(primary, peer, text);
}

bool
peer_push(struct primary *primary, struct peer *peer, uint64_t now_ms,
          bool *more)
{
    uint64_t target = target_of(primary, peer);
    uint64_t stop = peer->cursor + TURN_MAX;

    if (peer->cursor < backlog_first(primary->backlog)) {
        peer_drop(primary, peer, "the backlog begins behind its position");
        return false;
    }
    while (peer->cursor < target) {
        struct slice bytes;

        if (peer_unsent(primary, peer) >= UNSENT_MAX) {
            break;
        }
        if (peer->cursor >= stop) {
            *more = true;
            break;
        }
        bytes = backlog_read(primary->backlog, peer->cursor, target);
        peer->cursor += bytes.len;
        peer->between_groups = peer->cursor == target;
        if (!peer_send_line(primary, peer, bytes, now_ms)) {
            return false;
        }
    }
    CHECK(peer->acked <= peer->cursor);
    return peer_tell(primary, peer, now_ms) && peer_get_ack(primary, peer);
}

bool
peer_ping(struct primary *primary, struct peer *peer, uint64_t now_ms)
{
    if (now_ms - peer->sent_ms < primary->limits.ping_ms ||
        (peer_follows(peer) && !peer->between_groups) ||
        peer_unsent(primary, peer) > 0) {
        return true;
    }
    return peer_send_line(primary, peer, slice_lit("+PING\r\n"), now_ms);
}

/* ---- limits and time-outs ------------------------------------------------ */

bool
peer_check_limits(struct primary *primary, struct peer *peer, uint64_t now_ms)
{
    uint64_t hard = primary_output_limit(primary, primary->limits.hard_bytes);
    uint64_t soft = primary_output_limit(primary, primary->limits.soft_bytes);
    uint64_t target = target_of(primary, peer);
    uint64_t owed = peer_unsent(primary, peer);
    /* While the cursor is not known, count from where the snapshot began. */
    uint64_t from = peer->cursor == PEER_NOWHERE ? peer->acked : peer->cursor;
    char reason[REASON_MAX];

    if (peer->phase != PHASE_WAITS && target > from) {
        owed += target - from;
    }
    if (hard > 0 && owed > hard) {
        (void)snprintf(reason, sizeof(reason),
                       "it has not taken %" PRIu64 " bytes, more than the hard "
                       "output limit for replicas",
                       owed);
        peer_drop(primary, peer, reason);
        return false;
    }
    if (soft == 0 || owed <= soft) {
        peer->over_since_ms = 0;
        return true;
    }
    if (peer->over_since_ms == 0) {
        peer->over_since_ms = now_ms;
    }
    if (now_ms - peer->over_since_ms < primary->limits.soft_ms) {
        return true;
    }
    (void)snprintf(reason, sizeof(reason),
                   "it has not taken %" PRIu64 " bytes, for too long more than "
                   "the soft output limit for replicas",
                   owed);
    peer_drop(primary, peer, reason);
    return false;
}

static uint64_t
later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns when the replica last showed that it is alive. */
static uint64_t
alive_ms(const struct peer *peer, size_t waiting)
{
    switch (peer->phase) {
    case PHASE_ONLINE:
        return peer->acked_ms;
    case PHASE_TAIL:
        /* If nothing is unsent, the socket shows no sign of life. */
        return waiting == 0 ? peer->heard_ms
                            : later(peer->heard_ms, peer->taken_ms);
    default:
        return later(peer->heard_ms, peer->taken_ms);
    }
}

void
peer_note_taken(struct primary *primary, struct peer *peer, uint64_t now_ms)
{
    size_t waiting = peer_unsent(primary, peer);

    if (waiting == 0 || peer->sent - waiting != peer->taken) {
        peer->taken = peer->sent - waiting;
        peer->taken_ms = now_ms;
    }
}

bool
peer_check_time(struct primary *primary, struct peer *peer, uint64_t now_ms)
{
    size_t waiting = peer_unsent(primary, peer);
    uint64_t alive = alive_ms(peer, waiting);
    char reason[REASON_MAX];

    if (now_ms <= alive || now_ms - alive <= primary->limits.timeout_ms) {
        return true;
    }
    (void)snprintf(reason, sizeof(reason),
                   peer->phase == PHASE_ONLINE
                       ? "it has acknowledged nothing for %" PRIu64 " ms"
                       : "it has taken and said nothing for %" PRIu64 " ms",
                   now_ms - alive);
    peer_drop(primary, peer, reason);
    return false;
}
