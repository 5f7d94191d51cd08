/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An unfinished piece is gathered in a buffer that grows with the bytes that
 * arrive, never with a size that the primary announces.
 */
#include "repl/replica_stream.h"

#include "journal/group.h"
#include "repl/replica_link.h"
#include "repl/replica_talk.h"

#include <inttypes.h>

/* ---- pieces -------------------------------------------------------------- */

/* Applies a group. False: the same piece must be read again later. */
static bool
apply_group(struct replica *replica, const struct wire_piece *piece,
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
    case REPLICA_RENEW:
        replica_link_explain(replica, "%s", reason);
        replica->retry.renews = true;
        replica_link_lose(replica, now_ms);
        return true;
    case REPLICA_REFUSED:
        replica_link_explain(replica,
                             "group %" PRIu64 " does not fit our data: %s",
                             piece->sequence, reason);
        replica_link_doubt(replica, now_ms);
        return true;
    default:
        replica->sequence = piece->sequence;
        replica->position += piece->value.len + GROUP_SEAL_BYTES;
        replica->link.progressed = true;
        return true;
    }
}

static void
load_chunk(struct replica *replica, struct slice bytes, uint64_t now_ms)
{
    CHECK(replica->stage == STAGE_LOADS);
    replica->read_bytes += bytes.len;
    replica->read_ms = now_ms;
    if (!replica->hooks.load_bytes(replica->hooks.ctx, bytes)) {
        replica_link_pause(replica);
    }
}

static void
take_holdings(struct replica *replica, struct slice text, uint64_t now_ms)
{
    if (replica->stage != STAGE_FOLLOWS || replica->hooks.holdings == NULL ||
        !replica->hooks.holdings(replica->hooks.ctx, text)) {
        replica_link_bad(replica, "unexpected or damaged holdings", now_ms);
    }
}

static bool
handle_piece(struct replica *replica, const struct wire_piece *piece,
             uint64_t now_ms)
{
    switch (piece->kind) {
    case WIRE_LINE:
        replica_talk_line(replica, piece->value, now_ms);
        return true;
    case WIRE_CHUNK:
        load_chunk(replica, piece->value, now_ms);
        return true;
    case WIRE_CHUNKS_END:
        /* The log that follows stays unread until the snapshot is in place. */
        replica_link_enter(replica, STAGE_SWITCHES, now_ms);
        replica_link_pause(replica);
        replica->hooks.load_end(replica->hooks.ctx);
        return true;
    case WIRE_GROUP:
        return apply_group(replica, piece, now_ms);
    case WIRE_HOLDINGS:
        take_holdings(replica, piece->value, now_ms);
        return true;
    default:
        replica_link_bad(replica, piece->reason, now_ms);
        return true;
    }
}

/* Reads whole pieces. Returns how many bytes it has read. */
static size_t
read_pieces(struct replica *replica, struct slice data, uint64_t now_ms)
{
    uint64_t number = replica->link.number;
    size_t used = 0;

    while (replica->link.number == number && !replica->link.paused) {
        struct wire_reader before = replica->link.reader;
        struct wire_piece piece = { 0 };

        wire_read(&replica->link.reader,
                  (struct slice){ data.data + used, data.len - used }, &piece);
        if (piece.kind == WIRE_MORE) {
            break;
        }
        if (!handle_piece(replica, &piece, now_ms)) {
            replica->link.reader = before;
            break;
        }
        used += piece.used;
    }
    CHECK(used <= data.len);
    return used;
}

/* Keeps the bytes that are left. They are less than the largest group, since
 * wire_read refuses larger ones, or, while reading is paused, the bytes of one
 * read. False: no memory. */
static bool
keep_rest(struct replica *replica, struct slice fresh, size_t used)
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

void
replica_stream_read(struct replica *replica, struct slice fresh,
                    uint64_t now_ms)
{
    uint64_t number = replica->link.number;
    struct slice data = fresh;
    size_t used = 0;

    if (replica->gathered.len > 0) {
        buf_append_slice(&replica->gathered, fresh);
        data = buf_slice(&replica->gathered);
    }
    if (!replica->gathered.failed) {
        used = read_pieces(replica, data, now_ms);
    }
    if (replica->link.number != number) {
        return;
    }
    if (!keep_rest(replica, fresh, used)) {
        replica_link_explain(replica, "there is no memory for a group");
        replica_link_lose(replica, now_ms);
    } else if (replica->link.ack_due) {
        replica_talk_acknowledge(replica, now_ms);
    }
}
