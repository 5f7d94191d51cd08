/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How replicas join, what they acknowledge, and what is due at each tick.
 */
#include "repl/primary.h"

#include "base/log.h"
#include "base/mem.h"
#include "repl/peer.h"
#include "repl/primary_pace.h"
#include "repl/primary_sync.h"

#include <inttypes.h>
#include <stdio.h>

enum { REASON_MAX = 160 };

struct primary *
primary_new(struct backlog *backlog, const struct primary_hooks *hooks)
{
    struct primary *primary = mem_zalloc(sizeof(*primary));

    primary->backlog = backlog;
    primary->hooks = *hooks;
    primary->released = UINT64_MAX;
    return primary;
}

void
primary_free(struct primary *primary)
{
    if (primary == NULL) {
        return;
    }
    for (size_t i = 0; i < primary->count; i++) {
        mem_free(primary->peers[i]);
    }
    mem_free((void *)primary->peers);
    buf_free(&primary->text);
    buf_free(&primary->holdings);
    mem_free(primary);
}

void
primary_set_limits(struct primary *primary, const struct primary_limits *limits)
{
    primary->limits = *limits;
}

/* ---- removal ------------------------------------------------------------- */

void
primary_drop_all(struct primary *primary, const char *reason)
{
    peer_drop_all(primary, reason);
}

bool
primary_drop(struct primary *primary, uint64_t id, const char *reason)
{
    struct peer *peer = peer_find(primary, id);

    if (peer != NULL) {
        peer_drop(primary, peer, reason);
    }
    return peer != NULL;
}

void
primary_detached(struct primary *primary, uint64_t id)
{
    struct peer *peer = peer_find(primary, id);

    if (peer != NULL) {
        peer_forget(primary, peer);
        primary_pace_review(primary);
    }
}

/* Returns how many of the last bytes of the log the backlog keeps: its
 * configured size, and in addition the bytes that no replica has acknowledged,
 * up to merge_bytes. So the configured size reaches back from the furthest
 * acknowledgement, for a promoted replica that has acknowledged less. */
static uint64_t
kept_bytes(const struct primary *primary)
{
    uint64_t end = backlog_sealed(primary->backlog);
    uint64_t own = 0;

    if (primary->furthest > 0 && end > primary->furthest) {
        own = end - primary->furthest;
    }
    return primary->limits.backlog_bytes + (own < primary->limits.merge_bytes
                                                ? own
                                                : primary->limits.merge_bytes);
}

/* Frees the part of the backlog that no replica needs. */
static void
trim(struct primary *primary)
{
    uint64_t needed = UINT64_MAX;

    for (size_t i = 0; i < primary->count; i++) {
        const struct peer *peer = primary->peers[i];

        if (peer->phase != PHASE_WAITS && peer->cursor < needed) {
            needed = peer->cursor;
        }
    }
    backlog_trim(primary->backlog, needed, kept_bytes(primary));
}

/* ---- joining ------------------------------------------------------------- */

static bool
can_continue(const struct primary *primary, const struct primary_hello *hello)
{
    return hello->history[0] != '\0' &&
           hello->position >= backlog_first(primary->backlog) &&
           hello->position <= backlog_sealed(primary->backlog) &&
           history_covers(&primary->history, slice_of(hello->history),
                          hello->position);
}

static bool
is_ahead(const struct primary *primary, const struct primary_hello *hello)
{
    for (size_t i = 0; i < primary->ended_count; i++) {
        if (strcmp(primary->ended[i].id, hello->history) == 0 &&
            hello->position > primary->ended[i].until) {
            return true;
        }
    }
    return false;
}

/* Returns whether this replica, or one that came earlier, has changes that are
 * lost here. */
static bool
judge_hello(struct primary *primary, const struct primary_hello *hello)
{
    if (primary->behind || !is_ahead(primary, hello)) {
        return primary->behind;
    }
    primary->behind = true;
    log_error("repl.primary", "a replica has changes that are lost here",
              "id=%" PRIu64 " address=%s history=%s position=%" PRIu64,
              hello->id, hello->address, hello->history, hello->position);
    peer_drop_phase(primary, PHASE_WAITS, "a replica has newer data");
    peer_drop_phase(primary, PHASE_SNAPSHOT, "a replica has newer data");
    return true;
}

void
primary_set_ended(struct primary *primary, const struct history_past *ended,
                  size_t count)
{
    CHECK(count <= PRIMARY_ENDED_MAX);
    if (count > 0) {
        memcpy(primary->ended, ended, count * sizeof(*ended));
    }
    primary->ended_count = count;
    primary->behind = false;
}

bool
primary_is_behind(const struct primary *primary)
{
    return primary->behind;
}

/* Returns the error reply that refuses a replica; NULL: it is not refused. */
static const char *
refusal(struct primary *primary, const struct primary_hello *hello)
{
    if (peer_drop_if_broken(primary)) {
        return "-ERR there is no memory for replication here at present, try "
               "again later\r\n";
    }
    if (primary->count >= primary->limits.replicas_max) {
        return "-ERR there are as many replicas here as max-replicas "
               "allows\r\n";
    }
    if (!can_continue(primary, hello) && judge_hello(primary, hello)) {
        return "-ERR the primary has come back with older data than a replica "
               "has, and gives no full synchronization: promote that replica, "
               "or say REPLICAOF NO ONE (beside a node of a cluster SIDECAR "
               "FORCE-SERVE) to the primary\r\n";
    }
    return NULL;
}

static struct peer *
add_peer(struct primary *primary, const struct primary_hello *hello,
         uint64_t now_ms)
{
    struct peer *peer = mem_try_zalloc(sizeof(*peer));

    if (peer != NULL && primary->count == primary->capacity) {
        size_t capacity = 2 * primary->capacity + 4;
        struct peer **peers = mem_try_realloc((void *)primary->peers,
                                              capacity * sizeof(struct peer *));

        if (peers == NULL) {
            mem_free(peer);
            return NULL;
        }
        primary->peers = peers;
        primary->capacity = capacity;
    }
    if (peer != NULL) {
        peer->hello = *hello;
        peer->since_ms = peer->heard_ms = peer->sent_ms = now_ms;
        peer->taken_ms = peer->acked_ms = now_ms;
        primary->peers[primary->count++] = peer;
        CHECK(primary->count <= primary->capacity);
    }
    return peer;
}

static void
note_acked(struct primary *primary, const struct peer *peer)
{
    if (peer->acked > primary->furthest && !peer->hello.pulls) {
        primary->furthest = peer->acked;
    }
}

static void
begin_online(struct primary *primary, struct peer *peer, uint64_t now_ms)
{
    struct wire_answer answer = { .kind = WIRE_CONTINUE, .key = primary->key };
    bool more = false;

    memcpy(answer.history, primary->history.id, sizeof(answer.history));
    peer_enter(peer, PHASE_ONLINE);
    peer->cursor = peer->acked = peer->hello.position;
    peer->between_groups = true;
    note_acked(primary, peer);
    primary->partial_syncs++;
    log_notice("repl.primary", "replica resumed",
               "id=%" PRIu64 " address=%s position=%" PRIu64, peer->hello.id,
               peer->hello.address, peer->cursor);
    if (peer_answer(primary, peer, &answer, now_ms) &&
        peer_push(primary, peer, now_ms, &more)) {
        primary->hooks.acked(primary->hooks.ctx);
    }
}

static void
begin_waiting(struct primary *primary, struct peer *peer, uint64_t now_ms)
{
    peer_enter(peer, PHASE_WAITS);
    primary->full_syncs++;
    primary->refused_partial_syncs += peer->hello.history[0] != '\0';
    log_notice("repl.primary", "replica needs a full synchronization",
               "id=%" PRIu64 " address=%s history=%s position=%" PRIu64
               " kept_from=%" PRIu64 " kept_to=%" PRIu64,
               peer->hello.id, peer->hello.address,
               peer->hello.history[0] != '\0' ? peer->hello.history : "none",
               peer->hello.position, backlog_first(primary->backlog),
               backlog_sealed(primary->backlog));
    /* The ping tells the replica that its request has arrived. */
    if (peer_send_line(primary, peer, slice_lit("+PING\r\n"), now_ms)) {
        primary_sync_ask(primary, now_ms);
    }
}

bool
primary_attach(struct primary *primary, const struct primary_hello *hello,
               uint64_t now_ms)
{
    const char *refused;
    struct peer *peer;

    CHECK(hello->id != 0 && peer_find(primary, hello->id) == NULL);
    for (size_t i = primary->count; i-- > 0;) {
        peer = primary->peers[i];
        if (peer->hello.pulls == hello->pulls &&
            strcmp(peer->hello.run_id, hello->run_id) == 0) {
            peer_drop(primary, peer, "the same server has connected again");
        }
    }
    refused = refusal(primary, hello);
    peer = refused == NULL ? add_peer(primary, hello, now_ms) : NULL;
    if (peer == NULL) {
        /* Without memory the replica gets no answer. */
        (void)primary->hooks.send(
            primary->hooks.ctx, hello->id,
            slice_of(refused != NULL
                         ? refused
                         : "-ERR there is no memory for a replica here at "
                           "present, try again later\r\n"));
        return false;
    }
    if (can_continue(primary, hello)) {
        begin_online(primary, peer, now_ms);
    } else {
        begin_waiting(primary, peer, now_ms);
    }
    return true;
}

void
primary_set_history(struct primary *primary, const struct history *history,
                    uint64_t key)
{
    if (key != primary->key) {
        static const char reason[] = "the key of the stream has changed";

        peer_drop_phase(primary, PHASE_SNAPSHOT, reason);
        peer_drop_phase(primary, PHASE_TAIL, reason);
        peer_drop_phase(primary, PHASE_ONLINE, reason);
    }
    if (strcmp(history->id, primary->history.id) != 0) {
        primary->furthest = 0; /* positions of another log */
    }
    primary->history = *history;
    primary->key = key;
}

/* ---- acknowledgements ---------------------------------------------------- */

void
primary_acked(struct primary *primary, uint64_t id, uint64_t position,
              uint64_t synced, uint64_t now_ms)
{
    struct peer *peer = peer_find(primary, id);
    char reason[REASON_MAX];

    if (peer == NULL) {
        return;
    }
    peer->heard_ms = now_ms;
    if (!peer_follows(peer) ||
        (peer->phase == PHASE_TAIL && position < peer->acked)) {
        return; /* the replica still loads its snapshot */
    }
    if (position > peer->cursor || position < peer->acked) {
        (void)snprintf(reason, sizeof(reason),
                       "it acknowledged position %" PRIu64
                       ", having been sent %" PRIu64
                       " and acknowledged %" PRIu64,
                       position, peer->cursor, peer->acked);
        peer_drop(primary, peer, reason);
        return;
    }
    /* The replica's disk cannot have more than it has applied. */
    synced = synced < position ? synced : position;
    peer->acked_ms = now_ms;
    if (peer->phase == PHASE_ONLINE && position == peer->acked &&
        synced == peer->synced) {
        return;
    }
    if (peer->phase == PHASE_TAIL) {
        peer_enter(peer, PHASE_ONLINE);
    }
    peer->acked = position;
    peer->synced = synced;
    note_acked(primary, peer);
    CHECK(peer->synced <= peer->acked && peer->acked <= peer->cursor);
    primary->hooks.acked(primary->hooks.ctx);
}

void
primary_ask_add(struct primary_ask *ask, struct primary_ask more)
{
    if (more.last == 0) {
        return;
    }
    if (ask->last == 0 || more.first < ask->first) {
        ask->first = more.first;
    }
    if (more.last > ask->last) {
        ask->last = more.last;
    }
}

/* A replica answers each GETACK, and again when its disk has reached the
 * position. So one GETACK serves all positions up to its own. */
void
primary_ask_acks(struct primary *primary, struct primary_ask ask)
{
    for (size_t i = primary->count; i-- > 0;) {
        struct peer *peer = primary->peers[i];
        struct primary_ask fresh = ask;

        if (fresh.first <= peer->asked) {
            fresh.first = peer->asked + 1;
        }
        if (peer_follows(peer) && fresh.first <= fresh.last) {
            primary_ask_add(&peer->ask, fresh);
            (void)peer_get_ack(primary, peer);
        }
    }
}

bool
primary_owes_ask(const struct primary *primary)
{
    for (size_t i = 0; i < primary->count; i++) {
        if (primary->peers[i]->ask.last > 0) {
            return true;
        }
    }
    return false;
}

/* ---- holdings ------------------------------------------------------------ */

void
primary_tell(struct primary *primary, struct buf *text, uint64_t position,
             uint64_t now_ms)
{
    CHECK(!text->failed);
    if (primary->tells > 0 &&
        slice_equal(buf_slice(&primary->holdings), buf_slice(text))) {
        buf_free(text);
        return;
    }
    buf_free(&primary->holdings);
    primary->holdings = *text;
    *text = (struct buf){ 0 };
    primary->holdings_at = position;
    primary->tells++;
    for (size_t i = primary->count; i-- > 0;) {
        struct peer *peer = primary->peers[i];

        if (peer_follows(peer)) {
            (void)peer_tell(primary, peer, now_ms);
        }
    }
}

/* ---- sending and ticks --------------------------------------------------- */

void
primary_drained(struct primary *primary, uint64_t id, uint64_t now_ms)
{
    struct peer *peer = peer_find(primary, id);
    bool more = false;

    if (peer == NULL || peer_drop_if_broken(primary)) {
        return;
    }
    if (peer_follows(peer)) {
        (void)peer_push(primary, peer, now_ms, &more);
    } else {
        primary_pace_update(primary);
    }
}

bool
primary_stream(struct primary *primary, uint64_t released, uint64_t now_ms)
{
    bool more = false;

    primary->released = released;
    if (peer_drop_if_broken(primary)) {
        return false;
    }
    for (size_t i = primary->count; i-- > 0;) {
        struct peer *peer = primary->peers[i];

        if (!peer_follows(peer) || peer_push(primary, peer, now_ms, &more)) {
            (void)peer_check_limits(primary, peer, now_ms);
        }
    }
    trim(primary);
    return more;
}

void
primary_tick(struct primary *primary, uint64_t now_ms)
{
    bool more = false;

    if (peer_drop_if_broken(primary)) {
        return;
    }
    for (size_t i = primary->count; i-- > 0;) {
        struct peer *peer = primary->peers[i];

        peer_note_taken(primary, peer, now_ms);
        if (peer_check_time(primary, peer, now_ms) &&
            (!peer_follows(peer) || peer_push(primary, peer, now_ms, &more)) &&
            peer_check_limits(primary, peer, now_ms)) {
            (void)peer_ping(primary, peer, now_ms);
        }
    }
    primary_sync_ask(primary, now_ms);
    primary_pace_update(primary);
    trim(primary);
}

/* ---- figures ------------------------------------------------------------- */

static enum status_replica_state
state_of(const struct peer *peer)
{
    if (peer->hello.pulls) {
        return STATUS_PULLS;
    }
    switch (peer->phase) {
    case PHASE_WAITS:
        return STATUS_WAITS;
    case PHASE_ONLINE:
        return STATUS_ONLINE;
    default:
        return STATUS_SYNCS;
    }
}

size_t
primary_describe(const struct primary *primary,
                 struct status_figures *ret_figures,
                 struct status_replica *ret_replicas, size_t max)
{
    ret_figures->full_syncs = primary->full_syncs;
    ret_figures->partial_syncs = primary->partial_syncs;
    ret_figures->refused_partial_syncs = primary->refused_partial_syncs;
    ret_figures->backlog_first = backlog_first(primary->backlog);
    ret_figures->backlog_end = backlog_sealed(primary->backlog);
    ret_figures->backlog_bytes = backlog_bytes(primary->backlog);
    ret_figures->backlog_size = primary->limits.backlog_bytes;
    for (size_t i = 0; i < primary->count && i < max; i++) {
        const struct peer *peer = primary->peers[i];
        struct status_replica *replica = &ret_replicas[i];

        *replica = (struct status_replica){
            .id = peer->hello.id,
            .port = peer->hello.port,
            .state = state_of(peer),
            .acked = peer->phase == PHASE_ONLINE ? peer->acked : 0,
            .synced = peer->synced,
            .slots = peer->hello.pulls ? slot_set_count(&peer->hello.slots) : 0,
            .acked_mono_ms = peer->acked_ms,
            .since_mono_ms = peer->since_ms,
            .unsent_bytes = peer_unsent(primary, peer),
        };
        memcpy(replica->address, peer->hello.address, STATUS_TEXT_MAX);
        memcpy(replica->local_address, peer->hello.local_address,
               STATUS_TEXT_MAX);
        memcpy(replica->ip, peer->hello.ip, STATUS_TEXT_MAX);
        memcpy(replica->user, peer->hello.user, STATUS_TEXT_MAX);
    }
    return primary->count;
}

uint64_t
primary_furthest(const struct primary *primary)
{
    return primary->furthest;
}

size_t
primary_replicas(const struct primary *primary)
{
    return primary->count;
}
