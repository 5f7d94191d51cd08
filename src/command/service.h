/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all loops share, put together by the server layer at start, and one
 * worker a loop. Pointers are constant after start; what they point to says
 * itself how it is shared. conf changes under the world gate only.
 */
#pragma once

#include "admin/notice.h"
#include "admin/stats.h"
#include "base/buf.h"
#include "base/err.h"
#include "conf/conf.h"
#include "keyspace/keyspace.h"
#include "persist/stage.h"
#include "proto/reply.h"

#include <stdatomic.h>
#include <stdint.h>

struct acl_log;
struct command;
struct conf_file;
struct journal;
struct latency;
struct loop;
struct monitor;
struct persist;
struct pubsub;
struct registry;
struct request;
struct session;
struct sampler;
struct slowlog;
struct tracking;
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
    struct acl_log *acl_log;     /* NULL in tests */
    struct conf_file *conf_file; /* likewise */

    /* Who hears of what, and how many there are (observe.h). All NULL, and
     * 0, where there are no loops. */
    struct pubsub *pubsub;
    struct tracking *tracking;
    struct monitor *monitor;
    struct inboxes *inboxes;
    _Atomic uint64_t observed;
    _Atomic uint64_t inbox_limit_bytes;
    _Atomic uint64_t tracking_keys_max, tracking_bytes_max;

    struct sampler *sampler;
    struct slowlog *slowlog;
    struct latency *latency;
    /* A command that took so long is told to the two above (slow.h);
     * UINT64_MAX: neither wants to know. */
    _Atomic uint64_t slow_ns;
    _Atomic uint64_t slowlog_ns, latency_ns; /* what each of them wants */

    /* CLIENT PAUSE: while OBSERVED_PAUSE is set (pause.h). */
    _Atomic uint64_t pause_until_ms; /* of the monotonic clock */
    atomic_bool pause_all;           /* not only what may change data */
    atomic_bool keeps_expired; /* nothing is removed unless it is asked for */
    unsigned threads;
    struct client_limits limits;
    _Atomic int dialect; /* enum conf_dialect: of conf, readable anywhere */

    /* Effects of writes go here, while the stripes are held; NULL: nobody
     * listens. Changes under the raised gate. */
    struct journal *journal;
    struct persist *persist; /* NULL in tests */

    /* What writes, and PING, are refused with (enum err); OK: they are not. */
    _Atomic int write_refusal, ping_refusal;
    atomic_bool loading; /* only rows with CMD_LOADING run */

    /* Facts for INFO. */
    char run_id[41];
    uint64_t started_ms, started_mono_ns, started_bytes; /* memory used */
    /* What CONFIG RESETSTAT left of figures that persist counts. */
    _Atomic uint64_t saves_before, rewrites_before, forks_before;
    const char *executable, *config_file;

    /* Provided by the server layer. */
    void (*shutdown)(void *ctx, unsigned flags); /* of enum shutdown_flag */
    /* All loops look at who is parked. Any thread; NULL where there are none.
     */
    void (*wake_loops)(void *ctx);
    /* After CONFIG SET, with the gate raised. */
    void (*conf_changed)(void *ctx, const struct conf_changes *changes);
    void *ctx;
    _Atomic uint64_t shutdown_failures; /* shutdowns that did not happen */
};

/* Takes the dialect and the memory limits of filters from conf. At start, and
 * under the world gate. */
void service_follow_conf(struct service *service);

/* One loop's place to execute; owned by it. */
struct worker {
    struct service *service;
    struct stats_slot *stats;
    struct loop *loop; /* NULL where there is none */
    unsigned index;
    bool in_exec;             /* EXEC runs: nothing may pause */
    bool reply_stays;         /* the running command's, whatever CLIENT REPLY
                                 says */
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
    struct notice_list notices;   /* on their way to who listens */
    struct run *run;              /* dispatch's own */
    const struct command *failed; /* the last that was answered with an error,
                                     and which; for who replays */
    enum err failure;
    char detail[768]; /* fills the %s of a returned error */
};
