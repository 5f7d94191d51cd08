/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What arrives, cut into pieces and handed on. What is not a whole piece yet is
 * gathered here: it grows with what arrives, never with what a primary says
 * will come.
 */
#include "repl/replica_internal.h"

#include "persist/group.h"

#include <inttypes.h>

/* ---- pieces -------------------------------------------------------------- */

/* False: it is to be given again. */
static bool
take_group(struct replica *replica, const struct wire_piece *piece,
           uint64_t now_ms)
{
    char reason[STATUS_TEXT_MAX] = "no reason given";

    if (piece->sequence != replica->sequence + 1) {
        replica_link_explain(replica,
                             "group %" PRIu64
                             " of the primary follows our group %" PRIu64,
                             piece->sequence, replica->sequence);
        replica_link_doubt(replica, now_ms);
        return true;
    }
    switch (replica->hooks.apply(replica->hooks.ctx, piece, reason,
                                 sizeof(reason))) {
    case REPLICA_LATER:
        replica_link_pause(replica);
        return false;
    case REPLICA_REFUSED:
        replica_link_explain(replica,
                             "group %" PRIu64 " does not fit our data: %s",
                             piece->sequence, reason);
        replica_link_doubt(replica, now_ms);
        return true;
    default:
        replica->sequence = piece->sequence;
        replica->position += piece->value.len + GROUP_SEAL_BYTES;
        replica->progressed = true;
        return true;
    }
}

static void
take_chunk(struct replica *replica, struct slice bytes, uint64_t now_ms)
{
    replica->read_bytes += bytes.len;
    replica->read_ms = now_ms;
    if (!replica->hooks.load_bytes(replica->hooks.ctx, bytes)) {
        replica_link_pause(replica);
    }
}

static bool
take_piece(struct replica *replica, const struct wire_piece *piece,
           uint64_t now_ms)
{
    switch (piece->kind) {
    case WIRE_LINE:
        replica_talk_line(replica, piece->value, now_ms);
        return true;
    case WIRE_CHUNK:
        take_chunk(replica, piece->value, now_ms);
        return true;
    case WIRE_CHUNKS_END:
        /* What follows the snapshot waits, unread, until that is in place. */
        replica_link_enter(replica, SWITCHES, now_ms);
        replica_link_pause(replica);
        replica->hooks.load_end(replica->hooks.ctx);
        return true;
    case WIRE_GROUP:
        return take_group(replica, piece, now_ms);
    default:
        replica_link_bad(replica, piece->reason, now_ms);
        return true;
    }
}

/* Returns how many of the bytes are done with. */
static size_t
take_pieces(struct replica *replica, struct slice data, uint64_t now_ms)
{
    uint64_t number = replica->number;
    size_t used = 0;

    while (replica->number == number && !replica->paused) {
        struct wire_reader before = replica->reader;
        struct wire_piece piece = { 0 };

        wire_read(&replica->reader,
                  (struct slice){ data.data + used, data.len - used }, &piece);
        if (piece.kind == WIRE_MORE) {
            break;
        }
        if (!take_piece(replica, &piece, now_ms)) {
            replica->reader = before;
            break;
        }
        used += piece.used;
    }
    return used;
}

/* Keeps what is left of the bytes: less than a group, since wire_read refuses
 * one that would be too large as soon as it says so, and, while paused, what
 * one read brought. False: no memory. */
static bool
keep(struct replica *replica, struct slice fresh, size_t used)
{
    struct buf *gathered = &replica->gathered;

    if (gathered->len == 0) {
        buf_append(gathered, fresh.data + used, fresh.len - used);
    } else if (used < gathered->len) {
        buf_consume(gathered, used);
    } else {
        buf_reset(gathered, REPLICA_KEPT_BYTES);
    }
    return !gathered->failed;
}

/* Reads what was gathered with what is fresh. */
void
replica_stream_read(struct replica *replica, struct slice fresh,
                    uint64_t now_ms)
{
    uint64_t number = replica->number;
    struct slice data = fresh;
    size_t used = 0;

    if (replica->gathered.len > 0) {
        buf_append_slice(&replica->gathered, fresh);
        data = buf_slice(&replica->gathered);
    }
    if (!replica->gathered.failed) {
        used = take_pieces(replica, data, now_ms);
    }
    if (replica->number != number) {
        return;
    }
    if (!keep(replica, fresh, used)) {
        replica_link_explain(replica, "there is no memory for a group");
        replica_link_lose(replica, now_ms);
    } else if (replica->ack_due) {
        replica_talk_acknowledge(replica, now_ms);
    }
}
