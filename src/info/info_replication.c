/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names, order and meaning are those of Redis 7.0.15, since a Sentinel parses
 * the fields behind "role:slave" in that order; Bloomery's own fields follow. A
 * replica that has no data of its primary yet shows an offset and a priority of
 * 0, so that no Sentinel promotes it. Offsets that Redis counts from 1 are
 * positions plus 1.
 */
#include "info/info_replication.h"

#include "base/clock.h"
#include "base/run_clock.h"
#include "info/info_persist.h"
#include "info/info_put.h"
#include "info/links.h"
#include "persist/persist.h"
#include "persist/place.h"

#include <inttypes.h>

static const char NO_ID[] = "0000000000000000000000000000000000000000";

/* Returns the seconds since then_ms, or -1 for never. */
static int64_t
seconds_since(uint64_t then_ms)
{
    return then_ms > 0 ? (int64_t)(clock_ms_since(then_ms) / 1000) : -1;
}

/* ---- as a replica -------------------------------------------------------- */

static void
put_sync(struct buf *text, const struct status_figures *figures)
{
    uint64_t total = figures->sync_total_bytes;
    uint64_t read = figures->sync_read_bytes;
    uint64_t left = read < total ? total - read : 0;
    double percent = 0;

    if (total > 0) {
        percent = left > 0 ? 100 * (double)read / (double)total : 100;
    }
    info_put_number(text, "master_sync_total_bytes", total);
    info_put_number(text, "master_sync_read_bytes", read);
    info_put_number(text, "master_sync_left_bytes", left);
    info_put_ratio(text, "master_sync_perc", percent);
    info_put_signed(text, "master_sync_last_io_seconds_ago",
                    seconds_since(figures->sync_heard_mono_ms));
}

static void
put_link(const struct service *service, struct buf *text,
         const struct status_figures *figures)
{
    bool up = figures->link == STATUS_CONNECTED;
    uint64_t position =
        figures->synced_once ? info_persist_position(service) : 0;

    info_put_text(text, "master_host", service->role.host);
    info_put_number(text, "master_port", service->role.port);
    info_put_text(text, "master_link_status", up ? "up" : "down");
    info_put_signed(text, "master_last_io_seconds_ago",
                    up ? seconds_since(figures->heard_mono_ms) : -1);
    info_put_number(text, "master_sync_in_progress",
                    figures->link == STATUS_SYNC);
    info_put_number(text, "slave_read_repl_offset", position);
    info_put_number(text, "slave_repl_offset", position);
    if (figures->link == STATUS_SYNC) {
        put_sync(text, figures);
    }
    if (!up) {
        info_put_signed(text, "master_link_down_since_seconds",
                        seconds_since(figures->down_mono_ms));
    }
    info_put_signed(text, "slave_priority",
                    figures->synced_once ? service->conf->replica_priority : 0);
    info_put_number(text, "slave_read_only", 1);
    info_put_number(text, "replica_announced",
                    service->conf->replica_announced);
}

/* ---- as a primary -------------------------------------------------------- */

static const char *
state_word(enum status_replica_state state)
{
    switch (state) {
    case STATUS_WAITS:
        return "wait_bgsave";
    case STATUS_SYNCS:
        return "send_bulk";
    case STATUS_ONLINE:
    case STATUS_PULLS: /* has a line of its own */
        break;
    }
    return "online";
}

static void
put_replica(struct buf *text, size_t number,
            const struct status_replica *replica)
{
    struct links_replica figures;

    links_measure(replica, 0, &figures);
    buf_printf(text, "slave%zu:ip=", number);
    buf_append_slice(text, slice_of(replica->ip));
    buf_printf(text, ",port=%u,state=%s,offset=%" PRIu64 ",lag=%" PRIu64 "\r\n",
               replica->port, state_word(replica->state), replica->acked,
               figures.online ? figures.silent_ms / 1000 : 0);
}

static void
put_replicas(const struct service *service, struct buf *text,
             const struct links *links)
{
    const struct conf *conf = service->conf;

    info_put_number(text, "connected_slaves", links_replicas(links));
    if (conf->min_replicas_to_write > 0 && conf->min_replicas_max_lag > 0) {
        uint64_t lag_s = (uint64_t)conf->min_replicas_max_lag;

        info_put_number(
            text, "min_slaves_good_slaves",
            service->status != NULL
                ? status_count_good(service->status, clock_mono_ms(), lag_s)
                : 0);
    }
    for (size_t i = 0, number = 0; i < links->count; i++) {
        if (links->replicas[i].state != STATUS_PULLS) {
            put_replica(text, number++, &links->replicas[i]);
        }
    }
}

/* Servers that take slots over are no replicas: clients and Sentinel, which
 * read the lines above, must not send them reads, or promote them. */
static void
put_pulls(struct buf *text, const struct links *links)
{
    size_t number = 0;

    for (size_t i = 0; i < links->count; i++) {
        const struct status_replica *replica = &links->replicas[i];

        if (replica->state == STATUS_PULLS) {
            buf_printf(text, "slot_puller%zu:ip=", number++);
            buf_append_slice(text, slice_of(replica->ip));
            buf_printf(text, ",port=%u,slots=%u,offset=%" PRIu64 "\r\n",
                       replica->port, replica->slots, replica->acked);
        }
    }
}

static const char *
failover_word(enum status_failover failover)
{
    switch (failover) {
    case STATUS_NO_FAILOVER:
        break;
    case STATUS_FAILOVER_WAITS:
        return "waiting-for-sync";
    case STATUS_FAILOVER_RUNS:
        return "failover-in-progress";
    }
    return "no-failover";
}

/* ---- the log ------------------------------------------------------------- */

static void
put_history(const struct service *service, struct buf *text)
{
    const struct history *history =
        service->persist != NULL ? persist_history(service->persist) : NULL;
    const struct history_past *past =
        history != NULL && history->past[0].id[0] != '\0' ? &history->past[0]
                                                          : NULL;

    info_put_text(text, "master_replid",
                  history != NULL ? history->id : service->run_id);
    info_put_text(text, "master_replid2", past != NULL ? past->id : NO_ID);
    info_put_number(text, "master_repl_offset", info_persist_position(service));
    info_put_signed(text, "second_repl_offset",
                    past != NULL ? (int64_t)past->until + 1 : -1);
}

static void
put_backlog(const struct service *service, struct buf *text,
            const struct status_figures *figures)
{
    bool active = figures->backlog_active;

    info_put_number(text, "repl_backlog_active", active);
    info_put_number(text, "repl_backlog_size",
                    service->conf->repl_backlog_size);
    info_put_number(text, "repl_backlog_first_byte_offset",
                    active ? figures->backlog_first + 1 : 0);
    info_put_number(text, "repl_backlog_histlen",
                    active ? figures->backlog_end - figures->backlog_first : 0);
}

/* ---- what no Redis has --------------------------------------------------- */

/* Appends a reason in printable form, since it may have words of the primary.
 */
static void
put_printable(struct buf *text, const char *words)
{
    for (; *words != '\0'; words++) {
        buf_append(text, *words >= ' ' && *words <= '~' ? words : "?", 1);
    }
}

static void
put_reason(struct buf *text, const char *name, const char *reason)
{
    buf_append_slice(text, slice_of(name));
    buf_append(text, ":", 1);
    put_printable(text, reason);
    buf_append(text, "\r\n", 2);
}

static void
put_trouble(const struct service *service, struct buf *text, const char *name,
            enum status_trouble trouble)
{
    struct status_note note = { 0 };

    if (service->status != NULL) {
        status_get_note(service->status, trouble, &note);
    }
    buf_append_slice(text, slice_of(name));
    buf_append(text, ":", 1);
    put_printable(text, note.replica);
    buf_append(text, ": ", note.replica[0] != '\0' ? 2 : 0);
    put_printable(text, note.reason);
    buf_append(text, "\r\n", 2);
}

static void
put_more(const struct service *service, struct buf *text,
         const struct status_figures *figures)
{
    uint64_t grace_until_ms = atomic_load(&service->grace_until_ms);
    bool behind = service_is_behind(service);
    uint64_t now = run_clock_ms();

    if (service->role.replica && figures->link != STATUS_CONNECTED) {
        put_reason(text, "master_link_refusal", figures->reason);
    }
    put_trouble(service, text, "sync_full_refusal", STATUS_REFUSED);
    put_trouble(service, text, "replica_lost", STATUS_LOST);
    put_reason(text, "master_failover_error", figures->failover_error);
    info_put_number(text, "start_grace_left_ms",
                    grace_until_ms > now && !behind ? grace_until_ms - now : 0);
    info_put_number(text, "behind_replicas", behind);
    info_put_number(text, "data_absent", atomic_load(&service->absent));
}

void
info_replication_write(const struct service *service, struct buf *text)
{
    struct links links;

    if (links_get(service, &links) != OK) {
        text->failed = true;
        return;
    }
    info_put_text(text, "role", service->role.replica ? "slave" : "master");
    if (service->role.replica) {
        put_link(service, text, &links.figures);
    }
    put_replicas(service, text, &links);
    put_pulls(text, &links);
    if (service->slots.describe != NULL) {
        service->slots.describe(service->slots.ctx, text);
    }
    info_put_text(text, "master_failover_state",
                  failover_word(links.figures.failover));
    put_history(service, text);
    put_backlog(service, text, &links.figures);
    put_more(service, text, &links.figures);
    links_free(&links);
}

/* ---- other sections ------------------------------------------------------ */

void
info_replication_write_syncs(const struct service *service, struct buf *text)
{
    struct status_figures figures;

    links_get_figures(service, &figures);
    info_put_since(text, "sync_full", figures.full_syncs,
                   &service->full_syncs_before);
    info_put_since(text, "sync_partial_ok", figures.partial_syncs,
                   &service->partial_syncs_before);
    info_put_since(text, "sync_partial_err", figures.refused_partial_syncs,
                   &service->refused_partial_syncs_before);
}

void
info_replication_reset(struct service *service)
{
    struct status_figures figures;

    links_get_figures(service, &figures);
    atomic_store(&service->full_syncs_before, figures.full_syncs);
    atomic_store(&service->partial_syncs_before, figures.partial_syncs);
    atomic_store(&service->refused_partial_syncs_before,
                 figures.refused_partial_syncs);
    if (service->status != NULL) {
        for (int i = 0; i < STATUS_TROUBLES; i++) {
            status_note(service->status, (enum status_trouble)i, "", "");
        }
    }
}

void
info_replication_memory(const struct service *service,
                        struct info_replication_memory *ret_memory)
{
    struct links links;

    *ret_memory = (struct info_replication_memory){
        .backlog = info_put_metric_value(METRIC_REPL_BACKLOG)
    };
    if (links_get(service, &links) == OK) {
        ret_memory->replicas = links_unsent(&links);
        links_free(&links);
    }
}
