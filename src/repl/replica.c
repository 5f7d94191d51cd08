/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The events that the owner reports, and the queries that it may make.
 */
#include "repl/replica.h"

#include "base/log.h"
#include "base/mem.h"
#include "repl/replica_link.h"
#include "repl/replica_stream.h"
#include "repl/replica_talk.h"

#include <inttypes.h>

enum { CALM_MS = 60 * 1000, ACK_MS = 1000 };

/* ---- life ---------------------------------------------------------------- */

struct replica *
replica_new(const char *run_id, const struct replica_hooks *hooks)
{
    struct replica *replica = mem_zalloc(sizeof(*replica));

    CHECK(strlen(run_id) == HISTORY_ID_CHARS);
    memcpy(replica->run_id, run_id, sizeof(replica->run_id));
    replica->hooks = *hooks;
    replica->slots = mem_copy_text(slice_lit(""));
    replica->retry.bad_position = REPLICA_NO_POSITION;
    /* Run ids are random, so the replicas of one primary do not all connect
     * again at the same moment. */
    replica->retry.jitter = slice_load64(run_id) ^ slice_load64(run_id + 8)
                                                       << 1;
    return replica;
}

static void
free_texts(struct replica *replica)
{
    for (int i = 0; i < REPLICA_TEXTS; i++) {
        mem_free(replica->texts[i]);
    }
}

void
replica_free(struct replica *replica)
{
    if (replica == NULL) {
        return;
    }
    replica_stop(replica);
    free_texts(replica);
    mem_free(replica->slots);
    buf_free(&replica->gathered);
    buf_free(&replica->out);
    mem_free(replica);
}

void
replica_set_options(struct replica *replica,
                    const struct replica_options *options)
{
    free_texts(replica);
    replica->texts[0] = mem_copy_text(slice_of(options->user));
    replica->texts[1] = mem_copy_text(slice_of(options->password));
    replica->texts[2] = mem_copy_text(slice_of(options->announce_ip));
    replica->options = *options;
    replica->options.user = replica->texts[0];
    replica->options.password = replica->texts[1];
    replica->options.announce_ip = replica->texts[2];
    replica->link.reader.group_max = options->group_max;
}

void
replica_set_slots(struct replica *replica, const char *slots)
{
    mem_free(replica->slots);
    replica->slots = mem_copy_text(slice_of(slots));
}

/* ---- events -------------------------------------------------------------- */

static void
leave(struct replica *replica)
{
    bool loads = replica_loads(replica);

    replica_link_drop(replica);
    replica->stage = STAGE_IDLE;
    if (loads) {
        replica->hooks.load_cancel(replica->hooks.ctx);
    }
    replica->primary = (struct wire_hello){ 0 };
    replica->failover = REPLICA_FAILOVER_NONE;
    replica->retry.bad_position = REPLICA_NO_POSITION;
    replica->retry.backoff_ms = replica->retry.doubt_ms = 0;
    replica->retry.refused_ms = 0;
    replica->refused[0] = '\0';
    replica->reason[0] = replica->logged[0] = '\0';
    replica->down_ms = 0;
    mem_free(replica->host);
    replica->host = NULL;
}

void
replica_follow(struct replica *replica, const struct replica_target *target,
               uint64_t now_ms)
{
    char *host = mem_copy_text(slice_of(target->host));

    leave(replica);
    replica->host = host;
    replica->port = target->port;
    replica->failover =
        target->failover ? REPLICA_FAILOVER_ASKED : REPLICA_FAILOVER_NONE;
    replica_link_dial(replica, now_ms);
}

void
replica_stop(struct replica *replica)
{
    leave(replica);
    replica->synced_ms = 0;
}

void
replica_opened(struct replica *replica, uint64_t number, uint64_t now_ms)
{
    if (number != replica->link.number || replica->stage != STAGE_DIALS) {
        return;
    }
    replica->heard_ms = now_ms;
    replica_talk_begin(replica, now_ms);
}

void
replica_bytes(struct replica *replica, uint64_t number, struct slice bytes,
              size_t *ret_used, uint64_t now_ms)
{
    *ret_used = bytes.len;
    if (number != replica->link.number || number == 0) {
        return;
    }
    if (replica->link.paused) {
        *ret_used = 0;
        return;
    }
    replica->heard_ms = now_ms;
    replica->link.heard_answer = replica->stage >= STAGE_ASKS;
    replica_stream_read(replica, bytes, now_ms);
}

void
replica_closed(struct replica *replica, uint64_t number, const char *reason,
               uint64_t now_ms)
{
    if (number != replica->link.number || number == 0) {
        return;
    }
    /* The owner has closed the link already, so the hook is not called. */
    replica->link.number = 0;
    if (replica->stage == STAGE_DIALS) {
        replica_link_explain(replica, "%s", reason);
    } else if (replica->stage < STAGE_ASKS) {
        replica_link_explain(replica,
                             "the link ended before %s was answered: %s",
                             replica_talk_step(replica), reason);
    } else {
        replica_link_explain(replica, "the link ended: %s", reason);
    }
    replica_link_lose(replica, now_ms);
}

void
replica_go_on(struct replica *replica, uint64_t now_ms)
{
    uint64_t number = replica->link.number;

    if (!replica->link.paused || replica->stage == STAGE_SWITCHES) {
        return;
    }
    replica->link.paused = false;
    replica->heard_ms = now_ms;
    replica_stream_read(replica, (struct slice){ "", 0 }, now_ms);
    if (replica->link.number == number && !replica->link.paused) {
        replica->hooks.pause(replica->hooks.ctx, number, false);
    }
}

void
replica_disk_moved(struct replica *replica, uint64_t now_ms)
{
    struct replica_place place = { 0 };

    if (replica->link.disk_due == 0) {
        return;
    }
    replica->hooks.where(replica->hooks.ctx, &place);
    if (place.synced > replica->link.synced_acked) {
        replica_talk_acknowledge(replica, now_ms);
    }
}

/* Handles that the link was lost while the snapshot was loaded. Connects again,
 * to resume at the snapshot's position. */
static void
loaded_without_link(struct replica *replica, uint64_t now_ms)
{
    replica->hooks.key(replica->hooks.ctx, replica->answer.key);
    replica->down_ms = now_ms;
    replica->retry.backoff_ms = 0;
    replica_link_dial(replica, now_ms);
}

void
replica_loaded(struct replica *replica, bool good, const char *reason,
               uint64_t now_ms)
{
    const struct wire_answer *answer = &replica->answer;
    struct replica_place place = { 0 };

    if (replica->stage != STAGE_SWITCHES &&
        (good || replica->stage != STAGE_LOADS)) {
        return;
    }
    replica->hooks.where(replica->hooks.ctx, &place);
    if (!good) {
        replica_link_explain(replica, "the snapshot could not be loaded: %s",
                             reason);
    } else if (strcmp(place.history, answer->history) != 0 ||
               place.position < answer->position ||
               place.sequence < answer->sequence) {
        replica->retry.distrusted = true;
        replica_link_explain(
            replica,
            "the snapshot is of another state than the primary announced");
        good = false;
    }
    if (!good) {
        replica_link_enter(replica, STAGE_WAITS, now_ms); /* the load is over */
        replica_link_refuse(replica, now_ms);
        return;
    }
    replica->retry.refused_ms = 0;
    replica->refused[0] = '\0';
    replica->retry.distrusted = false;
    replica->retry.bad_position = REPLICA_NO_POSITION;
    log_notice("repl.replica", "loaded the snapshot",
               "primary=%s:%u history=%s position=%" PRIu64, replica->host,
               replica->port, answer->history, place.position);
    if (replica->link.number == 0) {
        loaded_without_link(replica, now_ms);
        return;
    }
    replica->link.reader.phase = WIRE_GROUPS;
    replica_talk_follow(replica, &place, answer->key, now_ms);
    if (replica->stage == STAGE_FOLLOWS) {
        replica_go_on(replica, now_ms);
    }
}

static void
check_silence(struct replica *replica, uint64_t now_ms)
{
    bool steps = replica->stage <= STAGE_ANNOUNCES;
    uint64_t since_ms = steps ? replica->stage_ms : replica->heard_ms;

    /* While we do not read, the primary cannot be heard. */
    if (!replica->link.paused &&
        now_ms - since_ms >= replica->options.timeout_ms) {
        if (replica->stage < STAGE_LOADS) {
            replica_link_explain(
                replica, "no answer to %s within %" PRIu64 " ms",
                replica_talk_step(replica), replica->options.timeout_ms);
        } else {
            replica_link_explain(replica,
                                 "the primary sent nothing for %" PRIu64 " ms",
                                 replica->options.timeout_ms);
        }
        replica_link_lose(replica, now_ms);
    }
}

void
replica_tick(struct replica *replica, uint64_t now_ms)
{
    if (replica->stage == STAGE_WAITS && now_ms >= replica->retry.at_ms) {
        replica_link_dial(replica, now_ms);
        return;
    }
    if (replica->link.number == 0) {
        return;
    }
    check_silence(replica, now_ms);
    replica_talk_look(replica, now_ms);
    if (replica->link.number == 0 || replica->stage < STAGE_ASKS) {
        return;
    }
    if (replica->stage == STAGE_FOLLOWS &&
        now_ms - replica->stage_ms >= CALM_MS) {
        replica->retry.doubt_ms = 0;
    }
    if (replica->link.heard_answer && now_ms - replica->acked_ms >= ACK_MS) {
        replica_talk_acknowledge(replica, now_ms);
    }
}

void
replica_hasten(struct replica *replica, uint64_t now_ms)
{
    replica->retry.refused_ms = 0;
    if (replica->stage == STAGE_WAITS) {
        replica->retry.at_ms = now_ms;
    }
}

void
replica_distrust(struct replica *replica)
{
    replica->retry.distrusted = true;
}

/* ---- queries ------------------------------------------------------------- */

bool
replica_is_connected(const struct replica *replica)
{
    return replica->stage == STAGE_FOLLOWS;
}

bool
replica_is_cut(const struct replica *replica)
{
    return replica->stage == STAGE_SWITCHES && replica->link.number == 0;
}

size_t
replica_unread(const struct replica *replica)
{
    return replica->gathered.len;
}

size_t
replica_chain(const struct replica *replica,
              char ret_chain[WIRE_CHAIN_MAX][WIRE_ID_CHARS + 1])
{
    const struct wire_hello *primary = &replica->primary;
    size_t count = 0;

    if (primary->run_id[0] == '\0') {
        return 0;
    }
    memcpy(ret_chain[count++], primary->run_id, WIRE_ID_CHARS + 1);
    for (size_t i = 0; i < primary->chain_count && count < WIRE_CHAIN_MAX;
         i++) {
        memcpy(ret_chain[count++], primary->chain[i], WIRE_ID_CHARS + 1);
    }
    return count;
}

enum replica_failover
replica_failover(const struct replica *replica)
{
    return replica->failover;
}

static enum status_link
link_state(const struct replica *replica)
{
    switch (replica->stage) {
    case STAGE_IDLE:
        return STATUS_NO_LINK;
    case STAGE_WAITS:
        return STATUS_CONNECT;
    case STAGE_DIALS:
        return STATUS_CONNECTING;
    case STAGE_LOADS:
    case STAGE_SWITCHES:
        return STATUS_SYNC;
    case STAGE_FOLLOWS:
        return STATUS_CONNECTED;
    case STAGE_ASKS:
        /* +CONTINUE comes at once, +FULLRESYNC may take long. */
        return replica->link.asked.history[0] == '\0' ||
                       replica->link.heard_answer
                   ? STATUS_SYNC
                   : STATUS_HANDSHAKE;
    default:
        return STATUS_HANDSHAKE;
    }
}

void
replica_describe(const struct replica *replica,
                 struct status_figures *ret_figures)
{
    bool loads = replica_loads(replica);

    ret_figures->link = link_state(replica);
    memcpy(ret_figures->reason, replica->reason, sizeof(replica->reason));
    ret_figures->heard_mono_ms = replica->heard_ms;
    ret_figures->down_mono_ms = replica->down_ms;
    ret_figures->synced_mono_ms = replica->synced_ms;
    ret_figures->sync_total_bytes = loads ? replica->answer.bytes : 0;
    ret_figures->sync_read_bytes = loads ? replica->read_bytes : 0;
    ret_figures->sync_heard_mono_ms = loads ? replica->read_ms : 0;
}
