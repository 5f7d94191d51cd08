/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all loops share, put together by the server layer at start, and one
 * worker a loop. Pointers are constant after start; what they point to says
 * itself how it is shared. conf changes under the world gate only.
 */
#pragma once

#include "admin/stats.h"
#include "base/buf.h"
#include "base/err.h"
#include "conf/conf.h"
#include "keyspace/keyspace.h"
#include "persist/stage.h"
#include "proto/reply.h"

#include <stdatomic.h>
#include <stdint.h>

struct command;
struct journal;
struct persist;
struct registry;
struct request;
struct session;
struct worker;

/* What a client may send, for parsing outside the gate's sections: atomic
 * copies of the options, stored by CONFIG SET. */
struct client_limits {
    _Atomic uint64_t args_max, bulk_max, unauth_args_max, unauth_bulk_max;
    _Atomic uint64_t query_max;
    _Atomic uint64_t multi_commands_max, multi_bytes_max;
};

/* What SHUTDOWN was called with. */
enum shutdown_flag {
    SHUTDOWN_SAVE = 1,
    SHUTDOWN_NOSAVE = 2,
    SHUTDOWN_NOW = 4,
    SHUTDOWN_FORCE = 8,
};

struct service {
    struct conf *conf;
    struct keyspace *keyspace;
    struct keyspace_memory memory; /* maxmemory, from conf */
    struct bloom_env bloom_env;    /* limits of filters, from conf */
    struct bloom_env obey_env;     /* for replayed effects: no limits */
    struct stats *stats;
    struct registry *registry;
    unsigned threads;
    struct client_limits limits;

    /* Effects of writes go here, while the stripes are held; NULL: nobody
     * listens. Changes under the raised gate. */
    struct journal *journal;
    struct persist *persist; /* NULL in tests */

    /* What writes, and PING, are refused with (enum err); OK: they are not. */
    _Atomic int write_refusal, ping_refusal;
    atomic_bool loading; /* only rows with CMD_LOADING run */

    /* Facts for INFO. */
    char run_id[41];
    uint64_t started_ms, started_mono_ns;
    const char *executable, *config_file;

    /* Provided by the server layer. */
    void (*shutdown)(void *ctx, unsigned flags); /* of enum shutdown_flag */
    /* After CONFIG SET, with the gate raised. */
    void (*conf_changed)(void *ctx, const struct conf_changes *changes);
    void *ctx;
    _Atomic uint64_t shutdown_failures; /* shutdowns that did not happen */
};

/* Sets the memory limits of filters from conf. At start, and under the world
 * gate. */
void service_limit_filters(struct service *service);

/* One loop's place to execute; owned by it. */
struct worker {
    struct service *service;
    struct stats_slot *stats;
    unsigned index;
    bool in_exec;             /* EXEC runs: nothing may pause */
    bool in_place;            /* the batch is: see proto/batch.h */
    bool alone;               /* replays: the keyspace is its own, so that there
                                 is no gate to enter and no lock to take */
    uint64_t now_ms;          /* wall clock, read once a batch */
    uint64_t now_ns;          /* monotonic, read at the end of each run */
    struct reply *reply;      /* of the batch being executed */
    struct session *session;  /* whose batch it is */
    struct buf arena;         /* rewritten effects of the running command */
    struct stage stage;       /* effects on their way to the journal */
    struct journal *unkicked; /* got some of this worker since it was kicked */
    uint64_t hold;            /* highest position that the batch wrote or read:
                                 its replies wait for that */
    struct run *run;          /* dispatch's own */
    const struct command *failed; /* the last that was answered with an error,
                                     and which; for who replays */
    enum err failure;
    char detail[768]; /* fills the %s of a returned error */
};
