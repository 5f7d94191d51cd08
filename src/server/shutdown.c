/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A stop is repeated until it succeeds; until then the server serves.
 */
#include "server/shutdown.h"

#include "admin/systemd.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/run_clock.h"
#include "engine/pause.h"
#include "keyspace/gate.h"
#include "net/loop_run.h"
#include "net/pending.h"
#include "persist/persist_options.h"
#include "server/own_files.h"
#include "server/replication.h"
#include "server/server_state.h"
#include "server/sidecar_mode.h"
#include "server/web.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t STOP_AGAIN_NS = 2000000000;
static const uint64_t SECOND_NS = 1000000000;

void
shutdown_extend_timeout(void)
{
    (void)systemd_notify("EXTEND_TIMEOUT_USEC=30000000\nWATCHDOG=1");
}

/* Asks for more time at most once a second, or as often as the watchdog needs
 * to be fed: loop 0, which feeds it otherwise, waits for the save. */
static void
while_saving(void *ctx)
{
    struct server *server = ctx;
    uint64_t now_ns = clock_mono_ns();
    uint64_t beat_ns = systemd_watchdog_interval_ms() * 1000000;
    uint64_t every_ns =
        beat_ns > 0 && beat_ns < SECOND_NS ? beat_ns : SECOND_NS;

    if (now_ns - server->stop_extended_ns >= every_ns) {
        server->stop_extended_ns = now_ns;
        shutdown_extend_timeout();
    }
}

static void
close_handles(struct server *server)
{
    uv_handle_t *handles[] = {
        (uv_handle_t *)&server->sigterm,
        (uv_handle_t *)&server->sigint,
        (uv_handle_t *)&server->sighup,
        (uv_handle_t *)&server->reclaim,
        (uv_handle_t *)&server->tick,
        (uv_handle_t *)&server->heartbeat.timer,
        (uv_handle_t *)&server->poke,
        (uv_handle_t *)&server->defrag_timer,
    };

    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        uv_close(handles[i], NULL);
    }
    replication_close_handles(server);
    /* A late signal must not kill the process during the teardown. */
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
}

void
shutdown_loops(struct server *server)
{
    server->stopping = true;
    listeners_close(&server->listeners);
    web_stop(server->web);
    replication_stop(server);
    sidecar_mode_stop(server);
    persist_halt(server->persist); /* its threads wake no loop from here on */
    close_handles(server);
    for (unsigned i = 1; i < server->threads; i++) {
        loop_stop(&server->loops[i]);
    }
    loop_stop_here(&server->loops[0]);
}

/* Saves the last state. False: that failed, and the server goes on. After a
 * success all writes are refused, from before the gate is lowered. */
static bool
save_last_state(struct server *server)
{
    struct service *service = &server->service;
    unsigned flags = atomic_exchange(&server->shutdown_flags, 0);
    bool rules = server->conf.save.count > 0 && !(flags & SHUTDOWN_NOSAVE);
    struct persist_end end = {
        .save = rules || (flags & SHUTDOWN_SAVE),
        .force = (flags & SHUTDOWN_FORCE) != 0,
        .idle = while_saving,
        .ctx = server,
    };
    bool ended = persist_settle(server->persist, &end);

    gate_raise(keyspace_gate(service->keyspace), 0);
    ended = ended && persist_stop(server->persist, &end);
    if (ended) {
        atomic_store(&service->write_refusal, ERR_ENDING);
        service->journal = NULL;
    }
    gate_lower(keyspace_gate(service->keyspace), 0);
    if (!ended) {
        atomic_fetch_add(&service->shutdown_failures, 1);
    }
    return ended;
}

static void
pause_writes(struct server *server, bool on)
{
    struct gate *gate = keyspace_gate(server->service.keyspace);

    gate_raise(gate, 0);
    if (on) {
        pause_begin(&server->service, PAUSE_FOR_END, UINT64_MAX, PAUSE_WRITES);
    } else {
        pause_end(&server->service, PAUSE_FOR_END);
    }
    gate_lower(gate, 0);
}

/* Returns whether to wait until the replicas have the whole log, so that one of
 * them can continue from there. Writes are paused meanwhile. */
static bool
waits_for_replicas(struct server *server)
{
    uint64_t now_ns = run_clock_ns(); /* replicas had no time in a pause */
    unsigned flags = atomic_load(&server->shutdown_flags);

    if ((flags & SHUTDOWN_NOW) != 0 || server->conf.shutdown_timeout == 0 ||
        (server->stop_waits_until_ns > 0 &&
         now_ns >= server->stop_waits_until_ns)) {
        return false;
    }
    if (server->stop_waits_until_ns > 0) {
        return !replication_is_even(server);
    }
    pause_writes(server, true); /* before the log's end is compared */
    server->stop_waits_until_ns =
        now_ns + (uint64_t)server->conf.shutdown_timeout * SECOND_NS;
    if (replication_is_even(server)) {
        return false;
    }
    log_notice("server", "waits for replicas", "seconds=%lld",
               (long long)server->conf.shutdown_timeout);
    return true;
}

void
shutdown_begin(struct server *server)
{
    bool by_command =
        (atomic_load(&server->shutdown_flags) & SHUTDOWN_BY_COMMAND) != 0;
    bool ended;

    if (server->stopping) {
        return;
    }
    pending_flush(&server->loops[0]); /* the last snapshot may take long */
    if (atomic_load(&server->service.loading)) {
        /* No data has changed, and the loader cannot be interrupted. */
        listeners_close(&server->listeners);
        own_files_remove_pid(server->conf.pidfile);
        log_notice("server", "stopped while loading", "%s", "");
        _exit(EXIT_SUCCESS);
    }
    (void)systemd_notify("STOPPING=1");
    if (waits_for_replicas(server)) {
        return;
    }
    ended = save_last_state(server);
    if (server->stop_waits_until_ns > 0) {
        server->stop_waits_until_ns = 0;
        pause_writes(server, false); /* paused commands run or are refused */
    }
    if (!ended) {
        if (!by_command) { /* SHUTDOWN has replied an error instead */
            server->stop_again_ns = clock_mono_ns() + STOP_AGAIN_NS;
        }
        log_error("server", "did not stop",
                  "reason=\"the data could not be "
                  "saved\"");
        (void)systemd_notify("READY=1");
        return;
    }
    shutdown_loops(server);
}
