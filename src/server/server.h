/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole server as one object: the only place that wires layers together.
 * Made, run and torn down by main on the main thread, which is also loop 0.
 */
#pragma once

#include "admin/stats.h"
#include "command/service.h"
#include "conf/conf_load.h"
#include "net/listener.h"
#include "net/loop.h"

#include <limits.h>

struct server {
    struct conf conf;
    int argc; /* for a reload */
    char **argv;
    char executable[PATH_MAX], config_file[PATH_MAX];

    struct service service;
    struct net_limits net_limits;
    struct loop_env loop_env;
    struct listeners listeners;
    unsigned threads;
    struct loop *loops;      /* [threads] */
    struct worker **workers; /* [threads] */

    uv_signal_t sigterm, sigint, sighup; /* on loop 0 */
    uv_timer_t reclaim, watchdog;
    bool stopping;
};

/* Takes conf over (also on failure). False after the reason was logged. */
bool server_init(struct server *server, struct conf *conf,
                 const struct conf_args *args, int argc, char **argv);

/* Serves until SIGTERM, SIGINT or SHUTDOWN. */
void server_run(struct server *server);
void server_fini(struct server *server);
