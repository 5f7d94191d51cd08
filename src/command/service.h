/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all loops share, put together by the server layer at start, and one
 * worker a loop. Pointers are constant after start; what they point to says
 * itself how it is shared. conf changes under the world gate only.
 */
#pragma once

#include "admin/stats.h"
#include "base/buf.h"
#include "conf/conf.h"
#include "keyspace/keyspace.h"
#include "proto/reply.h"

#include <stdatomic.h>
#include <stdint.h>

struct registry;
struct request;
struct session;
struct worker;

/* Receives the effects of writes while the stripes are still held, in
 * execution order; txn effects come between begin and end. */
struct effect_sink {
    void (*begin)(void *ctx); /* of EXEC; effects until end belong together */
    void (*append)(void *ctx, uint32_t db, const struct slice *argv,
                   size_t argc);
    void (*end)(void *ctx);
    void *ctx;
};

/* What a client may send, for parsing outside the gate's sections: atomic
 * copies of the options, stored by CONFIG SET. */
struct client_limits {
    _Atomic uint64_t args_max, bulk_max, unauth_args_max, unauth_bulk_max;
    _Atomic uint64_t query_max;
    _Atomic uint64_t multi_commands_max, multi_bytes_max;
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
    struct effect_sink *sink; /* NULL: nobody listens */

    /* Facts for INFO. */
    char run_id[41];
    uint64_t started_ms, started_mono_ns;
    const char *executable, *config_file;

    /* Provided by the server layer. */
    void (*shutdown)(void *ctx);
    /* After CONFIG SET, with the gate raised. */
    void (*conf_changed)(void *ctx, const struct conf_changes *changes);
    void *ctx;
};

/* Sets the memory limits of filters from conf. At start, and under the world
 * gate. */
void service_limit_filters(struct service *service);

/* One loop's place to execute; owned by it. */
struct worker {
    struct service *service;
    struct stats_slot *stats;
    unsigned index;
    bool in_exec;            /* EXEC runs: nothing may pause */
    uint64_t now_ms;         /* wall clock, read once a batch */
    uint64_t now_ns;         /* monotonic, read at the end of each run */
    struct reply *reply;     /* of the batch being executed */
    struct session *session; /* whose batch it is */
    struct buf arena;        /* rewritten effects of the running command */
    struct run *run;         /* dispatch's own */
    char detail[768];        /* fills the %s of a returned error */
};
