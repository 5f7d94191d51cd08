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
#include "base/longest.h"
#include "conf/conf.h"
#include "keyspace/keyspace.h"
#include "keyspace/memory.h"
#include "persist/stage.h"
#include "proto/reply.h"

#include <stdatomic.h>
#include <stdint.h>

struct acl_log;
struct auth_delay;
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
struct status;
struct sampler;
struct slowlog;
struct tracking;
struct usage;
struct worker;

/* What a client may send, for parsing outside the gate's sections: atomic
 * copies of the options, stored by CONFIG SET. */
struct client_limits {
    _Atomic uint64_t args_max, bulk_max, unauth_args_max, unauth_bulk_max;
    _Atomic uint64_t query_max;
    _Atomic uint64_t multi_commands_max, multi_bytes_max;
};

/* A replica that introduced itself with PSYNC: its connection goes over to loop
 * 0. Made with mem_alloc; the strings are what REPLCONF and the session said.
 */
struct handover {
    int fd;
    uint64_t id; /* of its client */
    uint64_t position;
    char history[41]; /* "": none */
    char run_id[41];
    char ip[256]; /* announced, or "" */
    unsigned port;
    bool failover;          /* it asks us to take over from it */
    uint64_t chain_changes; /* of the service, when it was told the chain */
};

/* FAILOVER: to whom (host NULL: to any replica), until when it may wait (0: for
 * ever), and whether it goes on then all the same. */
struct failover_order {
    const char *host;
    unsigned port;
    bool force;
    uint64_t timeout_ms;
};

/* What commands ask of loop 0 about replication; any thread. NULL where there
 * are no loops. ctx is the service's. */
struct replication_calls {
    void (*role_changed)(void *ctx); /* with the gate raised */
    /* Whether the role of this epoch would survive a crash, or cannot be
     * written at present. */
    bool (*role_is_kept)(void *ctx, uint64_t epoch);
    /* A client waits for replicas to acknowledge this position. */
    void (*want_acks)(void *ctx, uint64_t position);
    /* Takes the handover over. False: try again later. */
    bool (*hand_over)(void *ctx, struct handover *handover);
    /* FAILOVER: begins, or aborts. False: it does not; why. */
    bool (*failover)(void *ctx, const struct failover_order *order,
                     char *ret_reason, size_t size);
    bool (*failover_abort)(void *ctx);
    /* CLIENT KILL of a replica's link, or of the one to the primary. */
    void (*kill)(void *ctx, uint64_t id);
    /* The run ids of those above us, our primary's first, at most
     * WIRE_CHAIN_MAX (repl/wire.h); returns how many. */
    size_t (*chain)(void *ctx, char (*ret_chain)[41]);
};

/* Whom the server follows; role.h changes it. */
enum { ROLE_HOST_MAX = 256 };

/* Read inside a section of the gate. */
struct role {
    bool replica;
    char host[ROLE_HOST_MAX]; /* of the primary */
    uint32_t port;
    uint64_t epoch; /* rises with each change */
};

/* Who wants clients to wait (pause.h): each has a pause of its own. */
enum pause_cause {
    PAUSE_BY_CLIENT,   /* CLIENT PAUSE */
    PAUSE_FOR_END,     /* SHUTDOWN, until replicas have everything */
    PAUSE_FOR_HANDOVER /* FAILOVER, likewise */
};
enum { PAUSE_CAUSES = PAUSE_FOR_HANDOVER + 1 };

struct pause {
    uint64_t until_ms; /* of the monotonic clock */
    bool all;          /* not only what may change data */
};

/* The end of the grace of a start when there is none: a replica has newer data
 * than this server came back with. */
#define GRACE_BEHIND UINT64_MAX

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
    struct usage *usage;           /* of clients; NULL in tests */
    struct acl_log *acl_log;       /* NULL in tests */
    struct auth_delay *auth_delay; /* likewise */
    struct conf_file *conf_file;   /* likewise */

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

    /* While OBSERVED_PAUSE is set: until when what may change data waits, and
     * everything. Of pauses, which change under the raised gate. */
    _Atomic uint64_t pause_until_ms, pause_all_until_ms;
    struct pause pauses[PAUSE_CAUSES];
    atomic_bool keeps_expired; /* nothing is removed unless it is asked for */
    unsigned threads;
    struct client_limits limits;
    _Atomic int dialect; /* enum conf_dialect: of conf, readable anywhere */

    /* Effects of writes go here, while the stripes are held; NULL: nobody
     * listens. Changes under the raised gate. */
    struct journal *journal;
    struct persist *persist; /* NULL in tests */

    /* Replication. role changes under the raised gate. */
    struct role role;
    struct status *status; /* NULL in tests */
    struct replication_calls replication;
    _Atomic uint64_t chain_changes; /* of who is above us; loop 0 counts */
    atomic_bool link_up;            /* to the primary; loop 0 stores it */
    atomic_bool absent; /* our own data was dropped, the primary's is on its
                           way: nothing can be said about keys */
    /* Monotonic: no writes before. 0: none; GRACE_BEHIND: until it is said who
     * leads. */
    _Atomic uint64_t grace_until_ms;
    atomic_bool leads_by_word; /* REPLICAOF NO ONE was said; loop 0 takes it */
    atomic_bool few_replicas;  /* fewer than min-replicas-to-write keep up; loop
                                  0 stores it */

    /* What writes, and PING, are refused with (enum err); OK: they are not. */
    _Atomic int write_refusal, ping_refusal;
    atomic_bool loading; /* only rows with CMD_LOADING run */

    /* Facts for INFO. */
    char run_id[41];
    uint64_t started_ms, started_mono_ns, started_bytes; /* memory used */
    /* What CONFIG RESETSTAT left of figures that persist counts. */
    _Atomic uint64_t saves_before, rewrites_before, forks_before;
    _Atomic uint64_t full_syncs_before, partial_syncs_before;
    _Atomic uint64_t refused_partial_syncs_before;
    const char *executable, *config_file;
    bool config_is_input; /* it came from standard input */

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

enum { WORKER_PLACES = 64 };

/* One loop's place to execute; owned by it. */
struct worker {
    struct service *service;
    struct stats_slot *stats;
    struct loop *loop; /* NULL where there is none */
    unsigned index;
    bool in_exec;             /* EXEC runs: nothing may pause */
    bool ran_one;             /* something but a run was executed */
    bool reply_stays;         /* the running command's, whatever CLIENT REPLY
                                 says */
    bool in_place;            /* the batch is: see proto/batch.h */
    bool alone;               /* replays: the keyspace is its own, so that there
                                 is no gate to enter and no lock to take */
    bool silent;              /* applies another server's log: no effects */
    bool holds_gate;          /* whoever calls holds the gate already */
    uint64_t now_ms;          /* wall clock, read once a batch */
    uint64_t now_ns;          /* monotonic, read at the end of each run */
    struct longest_span held; /* since a lock_set was locked; {0}: it was not,
                                 or that is counted */
    struct reply *reply;      /* of the batch being executed */
    struct session *session;  /* whose batch it is */
    struct buf arena;         /* rewritten effects of the running command */
    struct stage stage;       /* effects on their way to the journal */
    struct journal *unkicked; /* got some of this worker since it was kicked */
    size_t expiry_room;       /* of the stage, for DELs: see expiry.c */
    size_t expiry_wants;      /* by the name that did not fit */
    uint64_t hold;            /* highest position that the batch wrote or read:
                                 its replies wait for that */
    struct notice_list notices;   /* on their way to who listens */
    struct request *request;      /* dispatch's own: what it executes */
    const struct command *failed; /* the last that was answered with an error,
                                     and which; for who replays */
    enum err failure;
    /* By the hash of a key, which may share its place: how many runs in a row
     * changed nothing (run.c). */
    uint8_t unchanged[WORKER_PLACES];
    char detail[768]; /* fills the %s of a returned error */
};
