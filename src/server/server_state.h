/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole server as one object. server.c makes it; loop 0 owns it, except for
 * what a line gives to another thread.
 */
#pragma once

#include "admin/stats.h"
#include "conf/conf_load.h"
#include "engine/defrag.h"
#include "engine/service.h"
#include "journal/journal.h"
#include "keyspace/make.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/tls_context.h"
#include "net/usage.h"
#include "persist/persist.h"
#include "server/exit_status.h"

#include <limits.h>

struct replication;
struct sidecar_inquiry;
struct sidecar_mode;
struct web;

/* What heartbeat.c has. */
struct heartbeat {
    uv_timer_t timer;
    uint64_t asked;             /* the number of the last mails */
    uint64_t beat_ns;           /* when the last beat was */
    _Atomic uint64_t *answered; /* [threads] */
};

/* More than 30 fields: the objects of all layers, and the uv handles that
 * belong to none of them. */
struct server {
    struct conf conf;
    struct conf given; /* conf without rewritten.conf, as read at the start or
                          the last reload; changes under the raised gate */
    int argc;          /* for a reload */
    char **argv;
    char executable[PATH_MAX], config_file[PATH_MAX];

    struct service service;
    struct persist *persist;
    struct replication *replication;
    struct sidecar_mode *sidecar;    /* NULL: sidecar-of is not set */
    struct sidecar_inquiry *inquiry; /* likewise; any thread */
    struct web *web;                 /* serves metrics-port */
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
    uint64_t loading_shown_ns; /* when its progress was logged last */

    uint64_t reserve_seen;  /* by watch.c */
    int64_t clock_pace;     /* likewise: clock_jump_ms() */
    bool writes_conf_again; /* dir was lost: the files of conf_file.h are due */

    _Atomic unsigned shutdown_flags; /* of the SHUTDOWN command; any thread */
    uint64_t stop_waits_until_ns;    /* a stop waits for replicas; 0: none */
    uint64_t stop_extended_ns;       /* when a stop asked for more time last */
    uint64_t stop_again_ns; /* when to repeat a signal's stop that failed;
                               0: none did */
};

/* A bit of shutdown_flags beside those of enum shutdown_flag. */
enum { SHUTDOWN_BY_COMMAND = 1 << 8 };
