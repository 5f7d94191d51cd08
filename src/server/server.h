/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole server as one object: the only place that wires layers together.
 * Made, run and torn down by main on the main thread, which is also loop 0.
 */
#pragma once

#include "admin/stats.h"
#include "conf/conf_load.h"
#include "engine/service.h"
#include "keyspace/make.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/usage.h"
#include "persist/journal.h"
#include "persist/persist.h"

#include <limits.h>

struct replication;

struct server {
    struct conf conf;
    struct conf given; /* conf without rewritten.conf, as read at the start or
                          at the last reload; changes under the raised gate */
    int argc;          /* for a reload */
    char **argv;
    char executable[PATH_MAX], config_file[PATH_MAX];

    struct service service;
    struct persist *persist;
    struct replication *replication;
    struct net_limits net_limits;
    struct usage usage; /* of clients */
    struct loop_env loop_env;
    struct listeners listeners;
    uint64_t own_descriptors; /* descriptors.h */
    unsigned threads;
    struct loop *loops;      /* [threads] */
    struct worker **workers; /* [threads] */

    uv_signal_t sigterm, sigint, sighup; /* on loop 0 */
    uv_signal_t sigchld;
    uv_timer_t reclaim, watchdog, tick;
    uv_async_t poke; /* asks for a tick now; any thread */
    bool stopping;

    /* The load, on a thread of its own while the loops answer -LOADING. */
    pthread_t loader;
    bool load_failed;
    uint64_t loading_shown_ns; /* when its progress was shown last */

    uint64_t forks_seen; /* by watch.h */
    uint64_t reserve_seen;

    _Atomic unsigned shutdown_flags; /* of the SHUTDOWN that asked */
    uint64_t stop_waits_until_ns;    /* a stop waits for replicas; 0: none */
    uint64_t stop_again_ns;          /* a signal's stop failed: when to try
                                        again; 0: none did */
};

/* Takes conf and given over (also on failure). False after the reason was
 * logged. */
bool server_init(struct server *server, struct conf *conf, struct conf *given,
                 const struct conf_args *args, int argc, char **argv);

/* Serves until SIGTERM, SIGINT or SHUTDOWN. False if the data could not be
 * loaded; the reason was logged. */
bool server_run(struct server *server);
void server_fini(struct server *server);

/* The end, on loop 0: the last state goes to the disk, then the loops end. If
 * that fails the server goes on, and a signal's wish is tried again. */
void server_stop(struct server *server);

/* Without regard for data: there is none yet, or it is safe. */
void server_stop_loops(struct server *server);

/* Beside those of enum shutdown_flag. */
enum { SHUTDOWN_BY_COMMAND = 1 << 8 };
