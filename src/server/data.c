/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The load has a thread of its own. Everything else runs on loop 0, or on the
 * thread on which persist calls a hook.
 */
#include "server/data.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/run_clock.h"
#include "base/systemd.h"
#include "base/thread.h"
#include "conf/conf_file.h"
#include "engine/pause.h"
#include "heal/merge.h"
#include "heal/merge_state.h"
#include "keyspace/gate.h"
#include "net/pending.h"
#include "persist/figures.h"
#include "persist/persist_options.h"
#include "replay/complete.h"
#include "replay/replay.h"
#include "roles/followers.h"
#include "roles/kept_role.h"
#include "roles/replication_state.h"
#include "server/own_files.h"
#include "server/replication.h"
#include "server/server_state.h"
#include "server/shutdown.h"
#include "server/wake.h"
#include "server/watch.h"
#include "sidecar/sidecar_mode.h"

enum { TICK_EVERY_MS = 100 };

static const uint64_t LOADING_SHOWN_NS = 2000000000;

/* ---- hooks --------------------------------------------------------------- */

static void
on_journaling(void *ctx, struct journal *journal)
{
    struct server *server = ctx;

    server->service.journal = journal;
}

static void
on_refusal(void *ctx, enum err writes, enum err ping)
{
    struct server *server = ctx;

    atomic_store(&server->service.write_refusal, (int)writes);
    atomic_store(&server->service.ping_refusal, (int)ping);
}

static void
on_moved(void *ctx)
{
    struct server *server = ctx;

    wake_loops(server);
    replication_moved(server);
    sidecar_mode_moved(server->sidecar);
}

static void
on_parks(void *ctx, enum persist_parks parks)
{
    struct server *server = ctx;

    pause_end(&server->service, PAUSE_FOR_WALK); /* wakes waiting commands */
    if (parks != PARKS_NOTHING) {
        pause_begin(&server->service, PAUSE_FOR_WALK, UINT64_MAX,
                    parks == PARKS_WRITES ? PAUSE_WRITES : CMD_REMAKES);
    }
    replication_moved(server);
}

/* Returns whether the path is one in dir. Compares only text, since dir may be
 * a new directory by now. */
static bool
is_in_dir(const struct server *server, const char *path)
{
    const char *dir = server->conf.dir;
    size_t len = strlen(dir);

    return strncmp(path, dir, len) == 0 && path[len] == '/';
}

/* Writes the files again that were lost with dir (AGAIN_AT_ONCE in
 * tbl/files.def), but not those that persist writes. */
static void
on_moved_in(void *ctx)
{
    struct server *server = ctx;

    kept_role_write_again(server->replication);
    merge_state_write_again(&server->replication->merge_state);
    merge_write_again(server->replication->merge);
    if (is_in_dir(server, server->conf.pidfile)) {
        own_files_write_pid(server->conf.pidfile);
    }
    if (is_in_dir(server, server->conf.logfile)) {
        own_files_reopen_log(server->conf.logfile);
    }
    server->writes_conf_again = true;
}

/* Writes the files that say which slots this server holds. They are not written
 * earlier: as long as dir lacks the data, a server that starts from it must not
 * believe that it holds slots. */
static void
on_refilled(void *ctx)
{
    const struct server *server = ctx;

    sidecar_mode_write_again(server->sidecar);
}

/* The caller of persist_tick wakes the inboxes when the gate is down again. */
static void
on_reloaded(void *ctx)
{
    struct server *server = ctx;

    observe_flush_alone(server->workers[0]);
    replication_reloaded(server);
}

static void
tick_persist(struct server *server)
{
    pending_flush(&server->loops[0]); /* a step may take long */
    persist_tick(server->persist);
    observe_wake(server->workers[0]);
}

struct persist *
data_new(struct server *server)
{
    return persist_new(
        &(struct persist_options){ .conf = &server->conf,
                                   .keyspace = server->service.keyspace,
                                   .run_id = server->service.run_id,
                                   .completion = &complete_calls,
                                   .hooks = { .poke = wake_persist,
                                              .moved = on_moved,
                                              .journaling = on_journaling,
                                              .refusal = on_refusal,
                                              .parks = on_parks,
                                              .reloaded = on_reloaded,
                                              .moved_in = on_moved_in,
                                              .refilled = on_refilled,
                                              .tapped = replication_moved,
                                              .ctx = server },
                                   .sync = { .began = followers_sync_began,
                                             .reached = followers_sync_reached,
                                             .ended = followers_sync_ended,
                                             .ctx = server->replication } });
}

/* ---- the load ------------------------------------------------------------ */

static void
show_loading(struct server *server)
{
    uint64_t now_ns = clock_mono_ns();
    struct persist_info info;

    if (now_ns - server->loading_shown_ns < LOADING_SHOWN_NS) {
        return;
    }
    server->loading_shown_ns = now_ns;
    persist_get_info(server->persist, &info);
    shutdown_extend_timeout();
    (void)systemd_status("Loading, %.0f %%, %llu s left", info.loading_percent,
                         (unsigned long long)info.loading_eta_s);
    if (info.loading_loaded_bytes > 0) {
        log_notice("server", "loading", "percent=%.1f eta_s=%llu",
                   info.loading_percent,
                   (unsigned long long)info.loading_eta_s);
    }
}

static const char *
what_is_saved(const struct conf *conf)
{
    if (conf->appendonly) {
        return "every change is journaled";
    }
    return conf->save.count > 0 ? "snapshots only" : "nothing is saved";
}

/* Begins to serve, on loop 0, when the loader has ended. */
static void
on_loaded(struct loop *loop, void *ptr, uint64_t good)
{
    struct server *server = ptr;

    (void)loop;
    CHECK(pthread_join(server->loader, NULL) == 0);
    shutdown_extend_timeout();
    if (good == 0 || !persist_begin(server->persist)) {
        server->exit = persist_refuses_data(server->persist)
                           ? SERVER_EXIT_DATA
                           : SERVER_EXIT_FAILED;
        shutdown_loops(server);
        return;
    }
    replication_begin(server);
    atomic_store(&server->service.loading, false);
    (void)systemd_notify("READY=1");
    (void)systemd_status("Serving, %s", what_is_saved(&server->conf));
    /* Operators and container tools search the log for these words. */
    log_notice("server", "Ready to accept connections", "persistence=\"%s\"",
               what_is_saved(&server->conf));
}

static void *
load(void *arg)
{
    struct server *server = arg;
    struct replay *replay = replay_new(&server->service);
    struct recover_replay calls = { .group = replay_group, .ctx = replay };
    bool good = persist_load(server->persist, &calls);

    replay_free(replay);
    metric_thread_exit();
    while (!mailbox_post(&server->loops[0].mailbox, on_loaded, server, good)) {
        uv_sleep(1); /* full: the loop is draining it */
    }
    return NULL;
}

void
data_start_load(struct server *server)
{
    thread_must_start(&server->loader, "loader", load, server);
}

/* ---- ticks --------------------------------------------------------------- */

static void
on_tick(uv_timer_t *timer)
{
    struct server *server = timer->data;

    (void)run_clock_ns(); /* this clock stands still unless read */
    watch_tick(server);
    if (atomic_load(&server->service.loading)) {
        show_loading(server);
        shutdown_look(server);
        return;
    }
    tick_persist(server);
    if (server->writes_conf_again) {
        server->writes_conf_again =
            !conf_file_write_again(server->service.conf_file);
    }
    shutdown_look(server);
}

static void
on_poke(uv_async_t *async)
{
    struct server *server = async->data;

    tick_persist(server);
    shutdown_look(server);
}

void
data_start_handles(struct server *server)
{
    uv_loop_t *uv = &server->loops[0].uv;

    CHECK(uv_async_init(uv, &server->poke, on_poke) == 0);
    server->poke.data = server;
    CHECK(uv_timer_init(uv, &server->tick) == 0);
    server->tick.data = server;
    CHECK(uv_timer_start(&server->tick, on_tick, TICK_EVERY_MS,
                         TICK_EVERY_MS) == 0);
}
