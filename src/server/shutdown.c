/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A stop by a signal is repeated until it succeeds; until then the server
 * serves. The stages of a stop, which loop 0 looks at in its ticks:
 *
 *   NONE -> AWAITS -> SAVES -> the loops end
 *           AWAITS, SAVES -> NONE   it failed, or a client has aborted it
 *
 * Writes wait in both stages, and reads go on. The gate is raised only for
 * moments: to pause the writes, and when all is done.
 */
#include "server/shutdown.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/run_clock.h"
#include "base/systemd.h"
#include "engine/pause.h"
#include "keyspace/gate.h"
#include "net/loop_run.h"
#include "net/pending.h"
#include "persist/ending.h"
#include "server/own_files.h"
#include "server/replication.h"
#include "server/server_state.h"
#include "server/wake.h"
#include "server/web.h"
#include "sidecar/sidecar_mode.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t STOP_AGAIN_NS = 2000000000;
static const uint64_t SECOND_NS = 1000000000;

/* A forced stop ends when the disk has made no progress for this long. */
static const uint64_t FORCE_NS = 700000000;

/* A bit of stop->asked beside those of enum shutdown_flag. */
enum { STOP_ASKED = 1 << 8 };

void
shutdown_extend_timeout(void)
{
    (void)systemd_notify("EXTEND_TIMEOUT_USEC=30000000\nWATCHDOG=1");
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
    sidecar_mode_stop(server->sidecar);
    persist_halt(server->persist); /* its threads wake no loop from here on */
    close_handles(server);
    for (unsigned i = 1; i < server->threads; i++) {
        loop_stop(&server->loops[i]);
    }
    loop_stop_here(&server->loops[0]);
}

/* ---- writes -------------------------------------------------------------- */

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

/* ---- the end of a stop --------------------------------------------------- */

/* Goes on serving. */
static void
resume(struct server *server)
{
    server->stop.stage = STOP_NONE;
    persist_end_abort(server->persist);
    pause_writes(server, false);
    atomic_store(&server->service.ending, SERVICE_RUNS);
    atomic_fetch_add(&server->service.shutdown_failures, 1);
    replication_moved(server);
    (void)systemd_notify("READY=1");
}

static void
fail_shutdown(struct server *server)
{
    struct stop *stop = &server->stop;

    resume(server);
    if (!stop->by_command) { /* SHUTDOWN has replied an error instead */
        stop->again_ns = clock_mono_ns() + STOP_AGAIN_NS;
    }
    log_error("server", "did not stop",
              "reason=\"the data could not be saved\"");
}

/* Ends the process at once. Its threads may be inside calls that do not return.
 */
static void
end_here(struct server *server)
{
    listeners_close(&server->listeners);
    own_files_remove_pid(server->conf.pidfile);
    _exit(EXIT_SUCCESS);
}

/* Ends a forced stop, without waiting for the disk. */
static void
end_by_force(struct server *server)
{
    struct persist_missing missing;

    if (persist_end_misses(server->persist, &missing)) {
        log_error(
            "server", "stopped by force, not everything is on the disk",
            "journal_unwritten_bytes=%llu journal_unsynced_bytes=%llu "
            "journal_has_base=%d snapshot=%s meaning=\"what is unwritten is "
            "lost, and was not acknowledged if the journal has a base; what is "
            "unsynced is lost if the system crashes or loses power\"",
            (unsigned long long)missing.unwritten_bytes,
            (unsigned long long)missing.unsynced_bytes, !missing.no_base,
            missing.no_save ? "missing" : "as asked for");
    }
    end_here(server);
}

/* Ends a stop once everything is on the disk. All writes are refused from then
 * on, since the refusal is set before the gate is lowered. */
static void
end_shutdown(struct server *server)
{
    struct service *service = &server->service;
    struct gate *gate = keyspace_gate(service->keyspace);
    struct persist_missing missing;
    int ends = SERVICE_ENDS;
    bool ended;

    if (persist_end_misses(server->persist, &missing)) {
        end_by_force(server);
        return;
    }
    gate_raise(gate, 0);
    ended =
        persist_end_settle(server->persist) &&
        atomic_compare_exchange_strong(&service->ending, &ends, SERVICE_ENDED);
    if (ended) {
        atomic_store(&service->write_refusal, ERR_ENDING);
        service->journal = NULL;
    }
    gate_lower(gate, 0);
    if (ended) {
        pause_writes(server, false); /* paused commands are refused */
        shutdown_loops(server);
    }
}

/* ---- the stages ---------------------------------------------------------- */

/* Returns whether the stop must still wait for replicas to get the whole log,
 * so that one of them can continue from there. */
static bool
awaits_replicas(struct server *server)
{
    const struct stop *stop = &server->stop;

    return (stop->flags & SHUTDOWN_NOW) == 0 &&
           run_clock_ns() < stop->awaits_until_ns &&
           !replication_is_even(server);
}

static void
save(struct server *server)
{
    struct stop *stop = &server->stop;
    bool rules =
        server->conf.save.count > 0 && (stop->flags & SHUTDOWN_NOSAVE) == 0;
    struct persist_end how = {
        .save = rules || (stop->flags & SHUTDOWN_SAVE) != 0,
        .force = (stop->flags & SHUTDOWN_FORCE) != 0,
    };

    stop->stage = STOP_SAVES;
    stop->moved_ns = run_clock_ns();
    persist_end(server->persist, &how);
}

/* Returns whether a forced stop has waited for the disk for long enough. */
static bool
is_hopeless(struct server *server)
{
    struct stop *stop = &server->stop;
    uint64_t progress = persist_end_progress(server->persist);
    uint64_t now_ns = run_clock_ns();

    if (progress != stop->progress) {
        stop->progress = progress;
        stop->moved_ns = now_ns;
    }
    return (stop->flags & SHUTDOWN_FORCE) != 0 &&
           now_ns - stop->moved_ns >= FORCE_NS;
}

/* Asks for more time at most once a second, or as often as the watchdog needs
 * to be fed. */
static void
extend(struct server *server)
{
    uint64_t now_ns = clock_mono_ns();
    uint64_t beat_ns = systemd_watchdog_interval_ms() * 1000000;
    uint64_t every_ns =
        beat_ns > 0 && beat_ns < SECOND_NS ? beat_ns : SECOND_NS;

    if (now_ns - server->stop.extended_ns >= every_ns) {
        server->stop.extended_ns = now_ns;
        shutdown_extend_timeout();
    }
}

static void
go_on(struct server *server)
{
    enum persist_ending_state state = persist_ending(server->persist);

    extend(server);
    if (server->stop.stage == STOP_AWAITS) {
        if (!awaits_replicas(server)) {
            save(server);
        }
    } else if (state == PERSIST_END_FAILED) {
        fail_shutdown(server);
    } else if (state == PERSIST_ENDED) {
        end_shutdown(server);
    } else if (is_hopeless(server)) {
        end_by_force(server);
    }
}

static void
begin_shutdown(struct server *server, unsigned flags)
{
    struct stop *stop = &server->stop;

    pending_flush(&server->loops[0]);
    if (atomic_load(&server->service.loading)) {
        /* No data has changed, and the loader cannot be interrupted. */
        log_notice("server", "stopped while loading", "%s", "");
        end_here(server);
    }
    (void)systemd_notify("STOPPING=1");
    stop->flags = flags;
    stop->again_ns = 0;
    stop->stage = STOP_AWAITS;
    stop->awaits_until_ns =
        run_clock_ns() + (uint64_t)server->conf.shutdown_timeout * SECOND_NS;
    atomic_store(&server->service.ending, SERVICE_ENDS);
    pause_writes(server, true); /* before the log's end is compared */
    if (awaits_replicas(server)) {
        log_notice("server", "waits for replicas", "seconds=%lld",
                   (long long)server->conf.shutdown_timeout);
    } else {
        save(server);
    }
}

/* Adds the flags of another SHUTDOWN. If it says whether to save, that replaces
 * what an earlier one said. */
static void
add_order(struct server *server, unsigned flags)
{
    struct stop *stop = &server->stop;
    const unsigned saves = SHUTDOWN_SAVE | SHUTDOWN_NOSAVE;
    unsigned all = stop->flags | flags;

    if ((flags & saves) != 0) {
        all = (all & ~saves) | (flags & saves);
    }
    if (all != stop->flags) {
        stop->flags = all;
        if (stop->stage == STOP_SAVES) {
            save(server);
        }
    }
}

static void
log_command(unsigned flags)
{
    log_notice("server", "stopping", "command=\"SHUTDOWN%s%s%s%s\"",
               (flags & SHUTDOWN_SAVE) != 0 ? " SAVE" : "",
               (flags & SHUTDOWN_NOSAVE) != 0 ? " NOSAVE" : "",
               (flags & SHUTDOWN_NOW) != 0 ? " NOW" : "",
               (flags & SHUTDOWN_FORCE) != 0 ? " FORCE" : "");
}

/* ---- who asks ------------------------------------------------------------ */

void
shutdown_ask(void *ctx, unsigned flags)
{
    struct server *server = ctx;

    (void)atomic_fetch_or(&server->stop.asked, flags | STOP_ASKED);
    wake_persist(server);
}

void
shutdown_by_signal(struct server *server, int number)
{
    log_notice("server", "stopping", "signal=%d", number);
    if (server->stop.stage == STOP_NONE && !server->stopping) {
        server->stop.by_command = false;
        begin_shutdown(server, 0);
        persist_tick(server->persist);
        shutdown_look(server);
    }
}

void
shutdown_look(struct server *server)
{
    struct stop *stop = &server->stop;
    unsigned asked = atomic_exchange(&stop->asked, 0);

    if (server->stopping) {
        return;
    }
    if (atomic_load(&server->service.ending) == SERVICE_RESUMES) {
        resume(server);
        log_notice("server", "goes on", "reason=\"SHUTDOWN ABORT\"");
    }
    if (asked != 0) {
        log_command(asked);
        stop->by_command = stop->stage == STOP_NONE || stop->by_command;
        if (stop->stage == STOP_NONE) {
            begin_shutdown(server, asked & ~(unsigned)STOP_ASKED);
        } else {
            add_order(server, asked & ~(unsigned)STOP_ASKED);
        }
    } else if (stop->stage == STOP_NONE && stop->again_ns > 0 &&
               clock_mono_ns() > stop->again_ns) {
        stop->by_command = false;
        begin_shutdown(server, 0);
    }
    if (stop->stage != STOP_NONE) {
        go_on(server);
    }
}
