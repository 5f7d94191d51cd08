/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dispatch mostly counts the time of commands outside the sections of the gate,
 * where it may not read conf. So the options are read from atomic copies.
 */
#include "engine/slow.h"

#include "access/redact.h"
#include "base/clock.h"
#include "measure/latency.h"
#include "measure/slowlog.h"
#include "net/conn.h"

enum { US = 1000, MS = 1000000 }; /* in ns */

/* Returns the time in ns; UINT64_MAX stands for never. */
static uint64_t
in_ns(int64_t value, uint64_t unit_ns)
{
    return value < 0 || (uint64_t)value > UINT64_MAX / unit_ns - 1
               ? UINT64_MAX
               : (uint64_t)value * unit_ns;
}

void
slow_apply_conf(struct service *service)
{
    const struct conf *conf = service->conf;
    int64_t threshold_ms = conf->latency_monitor_threshold;
    uint64_t slowlog_ns = in_ns(conf->slowlog_log_slower_than, US);
    uint64_t latency_ns = in_ns(threshold_ms > 0 ? threshold_ms : -1, MS);

    if (service->slowlog == NULL) {
        slowlog_ns = UINT64_MAX;
    } else {
        slowlog_set_length(service->slowlog, (uint64_t)conf->slowlog_max_len);
    }
    if (service->latency == NULL) {
        latency_ns = UINT64_MAX;
    }
    if (service->stats != NULL) {
        stats_set_spreads(service->stats, conf->latency_tracking);
    }
    atomic_store(&service->slowlog_ns, slowlog_ns);
    atomic_store(&service->latency_ns, latency_ns);
    atomic_store(&service->slow_ns,
                 slowlog_ns < latency_ns ? slowlog_ns : latency_ns);
}

static void
log_command(const struct request *req, uint64_t took_ns)
{
    const struct session *session = req->session;
    char address[CONN_ADDRESS_MAX] = "";
    struct slice words[SLOWLOG_ARGS_MAX];
    struct slowlog_entry entry = {
        .time_s = clock_wall_ms() / 1000,
        .took_us = took_ns / US,
        .argv = words,
        .argc = req->argc,
        .name = slice_of(session->name != NULL ? session->name : ""),
    };

    for (size_t i = 0; i < req->argc && i < SLOWLOG_ARGS_MAX; i++) {
        words[i] = redact_word(req->command, req->argv, req->argc, i);
    }
    if (session->conn != NULL) {
        conn_peer_address(session->conn, address);
    }
    entry.addr = slice_of(address);
    slowlog_add(req->service->slowlog, &entry);
}

void
slow_note(const struct request *req, uint64_t took_ns)
{
    const struct service *service = req->service;

    if (service->slowlog != NULL &&
        took_ns >= atomic_load(&service->slowlog_ns) &&
        (req->command->flags & CMD_SKIP_SLOWLOG) == 0) {
        log_command(req, took_ns);
    }
    slow_event(service,
               (req->command->flags & CMD_FAST) != 0 ? LATENCY_FAST_COMMAND
                                                     : LATENCY_COMMAND,
               took_ns);
}

void
slow_event(const struct service *service, enum latency_event event,
           uint64_t took_ns)
{
    if (service->latency != NULL &&
        took_ns >= atomic_load(&service->latency_ns)) {
        latency_add(service->latency, event, clock_wall_ms() / 1000,
                    took_ns / MS);
    }
}
