/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The owner's side: what it tells, and what it is told.
 */
#include "repl/replica_internal.h"

#include "base/log.h"
#include "base/mem.h"

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
    /* Run ids are random: servers that lose one primary do not all come back
     * at the same moment. */
    replica->jitter = slice_load64(run_id) ^ slice_load64(run_id + 8) << 1;
    return replica;
}

void
replica_free(struct replica *replica)
{
    if (replica == NULL) {
        return;
    }
    replica_stop(replica);
    mem_free(replica->user);
    mem_free(replica->password);
    mem_free(replica->announce_ip);
    buf_free(&replica->gathered);
    buf_free(&replica->out);
    mem_free(replica);
}

static void
set_text(char **text, const char *to)
{
    mem_free(*text);
    *text = mem_copy_text(slice_of(to));
}

void
replica_set_options(struct replica *replica,
                    const struct replica_options *options)
{
    replica->timeout_ms = options->timeout_ms;
    replica->group_max = options->group_max;
    replica->reader.group_max = options->group_max;
    replica->port = options->port;
    set_text(&replica->user, options->user);
    set_text(&replica->password, options->password);
    set_text(&replica->announce_ip, options->announce_ip);
}

/* ---- what happened ------------------------------------------------------- */

static void
leave(struct replica *replica)
{
    bool loads = replica->stage == LOADS || replica->stage == SWITCHES;

    replica_link_drop(replica);
    replica->stage = IDLE;
    if (loads) {
        replica->hooks.load_cancel(replica->hooks.ctx);
    }
    replica->primary = (struct wire_hello){ 0 };
    replica->failover = replica->failover_done = false;
    replica->failover_refused = replica->bad_before = false;
    replica->backoff_ms = replica->doubt_ms = 0;
    replica->reason[0] = replica->logged[0] = '\0';
    replica->down_ms = 0;
    mem_free(replica->host);
    replica->host = NULL;
}

void
replica_follow(struct replica *replica, const struct replica_target *whom,
               uint64_t now_ms)
{
    char *host = mem_copy_text(slice_of(whom->host));

    leave(replica);
    replica->host = host;
    replica->primary_port = whom->port;
    replica->epoch = whom->epoch;
    replica->failover = whom->failover;
    replica_link_dial(replica, now_ms);
}

void
replica_stop(struct replica *replica)
{
    leave(replica);
    replica->synced_once = false;
    replica->synced_ms = 0;
}

void
replica_opened(struct replica *replica, uint64_t number, uint64_t now_ms)
{
    if (number != replica->number || replica->stage != DIALS) {
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
    if (number != replica->number || number == 0) {
        return;
    }
    if (replica->paused) {
        *ret_used = 0;
        return;
    }
    replica->heard_ms = now_ms;
    replica->heard_since = replica->stage >= ASKS;
    replica_stream_read(replica, bytes, now_ms);
}

void
replica_closed(struct replica *replica, uint64_t number, const char *reason,
               uint64_t now_ms)
{
    if (number != replica->number || number == 0) {
        return;
    }
    /* It is closed already: nobody needs to be told. */
    replica->number = 0;
    if (replica->stage == DIALS) {
        replica_link_explain(replica, "%s", reason);
    } else if (replica->stage < ASKS) {
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
    uint64_t number = replica->number;

    if (!replica->paused || replica->stage == SWITCHES) {
        return;
    }
    replica->paused = false;
    replica->heard_ms = now_ms;
    replica_stream_read(replica, (struct slice){ "", 0 }, now_ms);
    if (replica->number == number && !replica->paused) {
        replica->hooks.pause(replica->hooks.ctx, number, false);
    }
}

void
replica_disk_moved(struct replica *replica, uint64_t now_ms)
{
    struct replica_place place = { 0 };

    if (replica->disk_due == 0) {
        return;
    }
    replica->hooks.where(replica->hooks.ctx, &place);
    if (place.synced > replica->told_synced) {
        replica_talk_acknowledge(replica, now_ms);
    }
}

/* The link is gone: what is in place now is asked for what followed. */
static void
loaded_alone(struct replica *replica, uint64_t now_ms)
{
    replica->hooks.key(replica->hooks.ctx, replica->answer.key);
    replica->synced_once = true;
    replica->down_ms = now_ms;
    replica->backoff_ms = 0;
    replica_link_dial(replica, now_ms);
}

void
replica_loaded(struct replica *replica, bool good, const char *reason,
               uint64_t now_ms)
{
    const struct wire_answer *answer = &replica->answer;
    struct replica_place place = { 0 };

    if (replica->stage != SWITCHES && (good || replica->stage != LOADS)) {
        return;
    }
    replica->hooks.where(replica->hooks.ctx, &place);
    if (!good) {
        replica_link_explain(replica, "the snapshot could not be loaded: %s",
                             reason);
    } else if (strcmp(place.history, answer->history) != 0 ||
               place.position != answer->position ||
               place.sequence != answer->sequence) {
        replica->distrusted = true;
        replica_link_explain(replica,
                             "the snapshot is of another state than was said");
        good = false;
    }
    if (!good) {
        replica_link_enter(replica, WAITS, now_ms); /* and no longer SWITCHES */
        replica_link_lose(replica, now_ms);
        return;
    }
    replica->distrusted = false;
    replica->bad_before = false;
    log_notice("repl.replica", "loaded the snapshot",
               "primary=%s:%u history=%s position=%" PRIu64, replica->host,
               replica->primary_port, answer->history, answer->position);
    if (replica->number == 0) {
        loaded_alone(replica, now_ms);
        return;
    }
    replica->reader.phase = WIRE_GROUPS;
    replica_talk_follow(replica, &place, answer->key, now_ms);
    if (replica->stage == FOLLOWS) {
        replica_go_on(replica, now_ms);
    }
}

static void
check_silence(struct replica *replica, uint64_t now_ms)
{
    bool steps = replica->stage <= ANNOUNCES;
    uint64_t since_ms = steps ? replica->stage_ms : replica->heard_ms;

    /* While paused nobody listens. */
    if (!replica->paused && now_ms - since_ms >= replica->timeout_ms) {
        if (replica->stage < LOADS) {
            replica_link_explain(
                replica, "no answer to %s within %" PRIu64 " ms",
                replica_talk_step(replica), replica->timeout_ms);
        } else {
            replica_link_explain(replica,
                                 "nothing was heard for %" PRIu64 " ms",
                                 replica->timeout_ms);
        }
        replica_link_lose(replica, now_ms);
    }
}

void
replica_tick(struct replica *replica, uint64_t now_ms)
{
    if (replica->stage == WAITS && now_ms >= replica->retry_ms) {
        replica_link_dial(replica, now_ms);
        return;
    }
    if (replica->number == 0) {
        return;
    }
    check_silence(replica, now_ms);
    if (replica->number == 0 || replica->stage < ASKS) {
        return;
    }
    if (replica->stage == FOLLOWS && now_ms - replica->stage_ms >= CALM_MS) {
        replica->doubt_ms = 0;
    }
    if (replica->heard_since && now_ms - replica->acked_ms >= ACK_MS) {
        replica_talk_acknowledge(replica, now_ms);
    }
}

void
replica_distrust(struct replica *replica)
{
    replica->distrusted = true;
}

/* ---- what others ask ----------------------------------------------------- */

bool
replica_is_connected(const struct replica *replica)
{
    return replica->stage == FOLLOWS;
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

bool
replica_failover_done(const struct replica *replica)
{
    return replica->failover_done;
}

bool
replica_failover_refused(const struct replica *replica)
{
    return replica->failover_refused;
}

static enum status_link
link_state(const struct replica *replica)
{
    switch (replica->stage) {
    case IDLE:
        return STATUS_NO_LINK;
    case WAITS:
        return STATUS_CONNECT;
    case DIALS:
        return STATUS_CONNECTING;
    case LOADS:
    case SWITCHES:
        return STATUS_SYNC;
    case FOLLOWS:
        return STATUS_CONNECTED;
    case ASKS:
        /* A continuation is answered at once; a snapshot takes its time. */
        return replica->asked_all || replica->heard_since ? STATUS_SYNC
                                                          : STATUS_HANDSHAKE;
    default:
        return STATUS_HANDSHAKE;
    }
}

void
replica_describe(const struct replica *replica,
                 struct status_figures *ret_figures)
{
    bool loads = replica->stage == LOADS || replica->stage == SWITCHES;

    ret_figures->epoch = replica->epoch;
    ret_figures->link = link_state(replica);
    memcpy(ret_figures->reason, replica->reason, sizeof(replica->reason));
    ret_figures->heard_mono_ms = replica->heard_ms;
    ret_figures->down_mono_ms = replica->down_ms;
    ret_figures->synced_mono_ms = replica->synced_ms;
    ret_figures->sync_total_bytes = loads ? replica->answer.bytes : 0;
    ret_figures->sync_read_bytes = loads ? replica->read_bytes : 0;
    ret_figures->sync_heard_mono_ms = loads ? replica->read_ms : 0;
    ret_figures->synced_once = replica->synced_once;
}
