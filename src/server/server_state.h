/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole server as one object. server.c makes it; loop 0 owns it, except for
 * what a line gives to another thread.
 */
#pragma once

#include "cli/exit_status.h"
#include "conf/conf_args.h"
#include "engine/defrag.h"
#include "engine/loop0.h"
#include "engine/service.h"
#include "journal/journal.h"
#include "keyspace/make.h"
#include "measure/stats.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/usage.h"
#include "persist/persist.h"
#include "tls/tls_context.h"

#include <limits.h>

struct replication;
struct sidecar_mode;
struct web;

/* The state of heartbeat.c. */
struct heartbeat {
    uv_timer_t timer;
    uint64_t asked;   /* number of the last beat, mailed to all loops */
    uint64_t beat_ns; /* when the last beat was */
    _Atomic uint64_t *answered; /* [threads] */
};

enum stop_stage {
    STOP_NONE,
    STOP_AWAITS, /* the replicas do not have the whole log yet */
    STOP_SAVES   /* the disk does not have everything yet */
};

/* A stop that is under way, or will be repeated. */
struct stop {
    _Atomic unsigned asked; /* the flags of a SHUTDOWN, and STOP_ASKED; any
                               thread */
    enum stop_stage stage;
    unsigned flags;
    bool by_command;
    uint64_t awaits_until_ns; /* the end of the wait for replicas */
    uint64_t extended_ns;     /* when systemd was last asked for more time */
    uint64_t again_ns; /* when to repeat the stop of a signal; 0: never */
    uint64_t progress, moved_ns; /* progress of the disk, and when it last
                                    changed */
};

/* The struct has more than 30 fields: the objects of all rooms, and the uv
 * handles that belong to none of them. */
struct server {
    struct conf conf;
    struct conf given; /* conf without rewritten.conf, as read at the start or
                          the last reload; changes under the raised gate */
    int argc;          /* for a reload */
    char **argv;
    char executable[PATH_MAX], config_file[PATH_MAX];

    struct service service;
    struct loop0 loop0;
    struct persist *persist;
    struct replication *replication;
    struct sidecar_mode *sidecar; /* NULL: sidecar-of is not set */
    struct web *web;              /* serves metrics-port */
    struct net_limits net_limits;
    struct usage usage; /* memory of clients */
    struct loop_env loop_env;
    struct listeners listeners;
    struct tls_contexts tls;
    uint64_t own_descriptors; /* descriptors.h */
    unsigned threads;
    struct loop *loops;      /* [threads] */
    struct worker **workers; /* [threads] */

    uv_signal_t sigterm, sigint, sighup; /* on loop 0 */
    uv_timer_t reclaim, defrag_timer, tick;
    struct heartbeat heartbeat;
    struct defrag defrag;
    uv_async_t poke; /* calls persist_tick; any thread sends it */
    bool stopping;
    enum server_exit exit;

    pthread_t loader; /* loads the data while the loops answer -LOADING */
    uint64_t loading_shown_ns; /* when the progress was last logged */

    uint64_t reserve_seen;  /* used by watch.c */
    int64_t clock_pace;     /* used by watch.c: clock_jump_ms() */
    bool writes_conf_again; /* dir was lost: write the files of conf_file.h */

    struct stop stop; /* used by shutdown.c */
};
