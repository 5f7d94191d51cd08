/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all loops share, and one worker for each loop. src/server fills struct
 * service at the start. Its pointers are constant from then on, and the headers
 * of the modules say how they are shared. conf changes under the raised gate.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/longest.h"
#include "base/slot_set.h"
#include "conf/conf.h"
#include "journal/stage.h"
#include "keyspace/keyspace.h"
#include "keyspace/memory.h"
#include "measure/stats.h"
#include "proto/reply.h"
#include "push/notice.h"
#include "tls/tls_context.h"

#include <stdatomic.h>
#include <stdint.h>

struct acl_log;
struct auth_delay;
struct cluster;
struct command;
struct conf_file;
struct fence_order;
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
struct user;
struct users;
struct window;
struct worker;

/* Limits of what a client may send: atomic copies of the options, which CONFIG
 * SET stores, since requests are parsed outside the gate. */
struct client_limits {
    _Atomic uint64_t args_max, bulk_max, unauth_args_max, unauth_bulk_max;
    _Atomic uint64_t query_max;
    _Atomic uint64_t multi_commands_max, multi_bytes_max;
};

/* A replica's connection on its way to loop 0, after PSYNC. Made with
 * mem_alloc and freed with session_free_handover; the strings come from
 * REPLCONF and the session. */
struct handover {
    int fd;
    struct tls *tls;   /* of the socket, owned; NULL: plain */
    struct user *user; /* of its session, a reference; NULL: none */
    uint64_t id;       /* the client's id */
    uint64_t position;
    char history[41]; /* "": none */
    char run_id[41];
    char ip[256]; /* announced, or "" */
    unsigned port;
    bool failover;          /* the sender asks this server to lead instead */
    uint64_t chain_changes; /* chain_changes of the service when the chain was
                               sent */
    bool pulls;             /* it takes over these slots: */
    struct slot_set slots;
    bool wants_holdings; /* as in struct introduction */
};

/* The arguments of FAILOVER: which replica shall lead (host NULL: any), how
 * long the server may wait until the replica has the whole log (0: forever),
 * and whether the replica leads after that time even so (force). */
struct failover_order {
    const char *host;
    unsigned port;
    bool force;
    uint64_t timeout_ms;
};

/* What commands ask of replication, from any thread; NULL where there are no
 * loops. */
struct replication_calls {
    void (*role_changed)(void *ctx); /* with the gate raised */
    /* Returns whether the role of this epoch is on the disk, or cannot be
     * written at present. */
    bool (*role_is_kept)(void *ctx, uint64_t epoch);
    /* A client waits for replicas to acknowledge this position. */
    void (*want_acks)(void *ctx, uint64_t position);
    /* Takes ownership of the handover. False: try again later. */
    bool (*hand_over)(void *ctx, struct handover *handover);
    /* FAILOVER and FAILOVER ABORT. False: refused, with the reason. */
    bool (*failover)(void *ctx, const struct failover_order *order,
                     char *ret_reason, size_t size);
    bool (*failover_abort)(void *ctx);
    /* CLIENT KILL of the link to a replica or to the primary. False: try again
     * later. */
    bool (*kill)(void *ctx, uint64_t id);
    /* Writes the run ids of the servers that this one follows, its primary
     * first, at most WIRE_CHAIN_MAX (repl/wire.h); returns how many. */
    size_t (*chain)(void *ctx, char (*ret_chain)[41]);
    void *ctx;
};

/* What the transfers of slots to this server are doing. */
struct slot_transfers {
    size_t count; /* transfers that run or wait */
    /* Facts about the first transfer; "" and 0 if there is none. */
    const char *state;     /* a word of SIDECAR STATUS; a constant */
    char source[256 + 16]; /* host:port */
    unsigned slots;
    uint64_t keys, bytes; /* keys and bytes that have come */
    uint64_t lag_bytes;   /* bytes of the source's log not executed yet */
    uint64_t age_ms;      /* since it began to run */
};

/* What commands ask about slots that this server takes over or gives away: from
 * any thread, inside a section of the gate. The pointers are NULL where there
 * are no loops. */
struct slot_calls {
    /* Appends a line of INFO for each transfer. */
    void (*describe)(void *ctx, struct buf *text);
    /* Does the same in figures. */
    void (*transfers)(void *ctx, struct slot_transfers *ret_transfers);
    void *ctx;
};

/* What other daemons ask this one: from any thread, inside a section of the
 * gate. The pointers are NULL without a sidecar. */
struct sidecar_calls {
    /* Appends what this server holds (cluster/holdings.h), unless its version
     * is `seen`, and says where its log ends. False: it does not know yet. */
    bool (*holdings)(void *ctx, uint64_t seen, struct buf *ret_text,
                     char *ret_history, uint64_t *ret_position);
    /* Makes loop 0 answer the order, and then wake all loops. False: there was
     * no memory, and the order has only one user left. */
    bool (*fence)(void *ctx, struct fence_order *order);
    void *ctx;
};

/* The primary that the server follows; role.h changes it. */
enum { ROLE_HOST_MAX = 256 };

/* Read inside a section of the gate. */
struct role {
    bool replica;
    char host[ROLE_HOST_MAX]; /* of the primary */
    uint32_t port;
    uint64_t epoch; /* rises with each change of the role */
};

/* Why clients are paused (pause.h). Each cause has a pause of its own. */
enum pause_cause {
    PAUSE_BY_CLIENT,    /* CLIENT PAUSE */
    PAUSE_FOR_END,      /* SHUTDOWN, until replicas have everything */
    PAUSE_FOR_HANDOVER, /* FAILOVER, until the replica has everything */
    PAUSE_FOR_WALK      /* a save, until it has caught up with clients */
};
enum { PAUSE_CAUSES = PAUSE_FOR_WALK + 1 };

struct pause {
    uint64_t until_ms; /* of the monotonic clock */
    uint32_t holds;    /* flags: commands with one of them wait; or PAUSE_ALL */
};

/* The value of grace_until_ms for a grace without end: a replica has newer data
 * than this server after its restart. */
#define GRACE_BEHIND UINT64_MAX

/* The arguments of SHUTDOWN. */
enum shutdown_flag {
    SHUTDOWN_SAVE = 1,
    SHUTDOWN_NOSAVE = 2,
    SHUTDOWN_NOW = 4,
    SHUTDOWN_FORCE = 8,
};

/* How far the end of the server is; until SERVICE_ENDED, SHUTDOWN ABORT may
 * stop it. */
enum service_ending {
    SERVICE_RUNS,
    SERVICE_ENDS,
    SERVICE_RESUMES,
    SERVICE_ENDED
};

/* The struct has more than thirty fields because it lists what loops share:
 * each field is a module, or a value with its own rule for sharing. */
struct service {
    struct conf *conf;
    struct keyspace *keyspace;
    struct keyspace_memory memory; /* maxmemory, from conf */
    struct bloom_env bloom_env;    /* limits of filters, from conf */
    struct bloom_env obey_env;     /* for replayed effects: no limits */
    bool log_has_gaps; /* the log may lack commands that emptied filters, so a
                          full filter takes more items */
    struct stats *stats;
    struct registry *registry;
    struct usage *usage;     /* the memory that clients use; NULL in tests */
    struct users *users;     /* NULL in tests: no rules */
    struct acl_log *acl_log; /* NULL in tests */
    struct auth_delay *auth_delay; /* NULL in tests */
    struct conf_file *conf_file;   /* NULL in tests */

    /* The modules that deliver notices, and who wants notices (`observed`, see
     * observe.h). All NULL, and 0, where there are no loops. */
    struct pubsub *pubsub;
    struct tracking *tracking;
    struct monitor *monitor;
    struct inboxes *inboxes;
    _Atomic uint64_t observed;
    _Atomic uint64_t inbox_limit_bytes;
    _Atomic uint64_t feed_gather_ns; /* bf.subscribe-gather-ms */
    _Atomic uint64_t tracking_keys_max, tracking_bytes_max;

    struct sampler *sampler;
    struct slowlog *slowlog;
    struct latency *latency;
    /* A command that took at least so long goes to slowlog and latency
     * (slow.h); UINT64_MAX: to neither. */
    _Atomic uint64_t slow_ns;
    _Atomic uint64_t slowlog_ns, latency_ns; /* what slowlog and latency want */

    /* While OBSERVED_PAUSE is set: the pauses of clients, one for each cause
     * (pause.h), and when the last of them ends. They change under the raised
     * gate. */
    _Atomic uint64_t pause_until_ms; /* the end of the last pause */
    struct pause pauses[PAUSE_CAUSES];
    atomic_bool keeps_expired; /* expired keys are not removed in background */
    unsigned threads;
    struct client_limits limits;
    struct cluster *cluster; /* sidecar mode (cluster.h); NULL: it is off */
    _Atomic int dialect; /* enum conf_dialect: a copy of the option, readable
                            anywhere */

    /* While loop 0 moves filters (defrag.h), the share of its time, and the
     * monotonic time at which it began; else 0. Loop 0 stores them. */
    _Atomic unsigned defrag_percent;
    _Atomic uint64_t defrag_since_ns;

    /* Receives the effects of writes while their stripes are locked; NULL:
     * effects go nowhere. Changes under the raised gate. */
    struct journal *journal;
    struct persist *persist;  /* NULL in tests */
    struct tls_contexts *tls; /* NULL in tests */

    /* Replication. role changes under the raised gate. */
    struct role role;
    struct status *status; /* NULL in tests */
    struct replication_calls replication;
    struct slot_calls slots;
    struct sidecar_calls sidecar;
    _Atomic uint64_t chain_changes; /* changes of the chain of servers that this
                                       one follows; loop 0 counts */
    atomic_bool link_up;            /* to the primary; loop 0 stores it */
    atomic_bool absent; /* the server's own data was dropped for the primary's,
                           which is on its way: no key can be answered for */
    /* The time of the run clock before which writes are refused. 0: no grace;
     * GRACE_BEHIND: writes are refused until a command says which server leads.
     */
    _Atomic uint64_t grace_until_ms;
    atomic_bool leads_by_word; /* a command says that this server leads; loop 0
                                  clears it */
    atomic_bool few_replicas;  /* fewer than min-replicas-to-write keep up; loop
                                  0 stores it */

    /* The errors with which writes, and PING, are refused; OK if they are not
     * refused. */
    _Atomic int write_refusal, ping_refusal;
    atomic_bool loading; /* only rows with CMD_LOADING run */

    /* Facts for INFO. */
    char run_id[41];
    uint64_t started_ms, started_mono_ns, started_bytes; /* memory used */
    /* Counts at the last CONFIG RESETSTAT, which INFO subtracts. */
    _Atomic uint64_t saves_before, rewrites_before;
    _Atomic uint64_t full_syncs_before, partial_syncs_before;
    _Atomic uint64_t refused_partial_syncs_before;
    const char *executable, *config_file;
    bool config_is_input; /* config_file is standard input */

    /* Provided by the server layer. */
    /* Begins a stop, or adds flags (enum shutdown_flag) to the one under way.
     * shutdown_abort: says that `ending` was changed. Any thread. */
    void (*shutdown)(void *ctx, unsigned flags);
    void (*shutdown_abort)(void *ctx);
    /* Makes all loops look at the connections that wait. Any thread; NULL where
     * there are no loops. */
    void (*wake_loops)(void *ctx);
    /* Returns whether CONFIG SET may take over `conf`; if not, writes the
     * reason. NULL allows everything. Called with the gate raised. */
    bool (*conf_allows)(void *ctx, const struct conf *conf,
                        const struct conf_changes *changes,
                        char ret_reason[TLS_REASON_MAX]);
    /* Called after CONFIG SET, with the gate still raised. */
    void (*conf_changed)(void *ctx, const struct conf_changes *changes);
    /* Called after a change of users, with the gate still raised: loops must
     * revoke (revoke.h). NULL in tests. */
    void (*users_changed)(void *ctx);
    void *ctx;
    _Atomic int ending;                 /* enum service_ending */
    _Atomic uint64_t shutdown_failures; /* SHUTDOWNs that failed */
};

/* Takes over requirepass, the dialect, the memory limits and the settings of
 * LFU from conf. Called at the start, and under the raised gate. */
void service_follow_conf(struct service *service);

/* Returns whether this server has restarted with older data than a replica has.
 * Any thread. */
static inline bool
service_is_behind(const struct service *service)
{
    return atomic_load_explicit(&service->grace_until_ms,
                                memory_order_relaxed) == GRACE_BEHIND;
}

/* Returns how many databases clients may use. Inside a section of the gate. */
uint32_t service_databases(const struct service *service);

/* Makes all loops look at the connections that wait. Any thread. */
void service_wake_loops(const struct service *service);

/* Returns whether more of another server's log may be executed now. It may not
 * during a stop, while a save cannot catch up, or while a slow disk has much to
 * write. A disk that fails delays no log. Called on loop 0. */
bool service_takes_logs(const struct service *service);

enum { WORKER_PLACES = 64 };

/* What one loop has for executing commands; owned by the loop. */
struct worker {
    struct service *service;
    struct stats_slot *stats;
    struct loop *loop; /* NULL where there is none */
    unsigned index;
    bool in_exec;     /* EXEC runs: no command may pause */
    bool ran_one;     /* a command outside runs of many was executed */
    bool reply_stays; /* CLIENT REPLY does not drop this reply */
    bool in_place;    /* the batch's words are in place: see proto/batch.h */
    bool alone;       /* a replay: the keyspace is its own, so it enters
                         no gate and takes no lock */
    bool silent;      /* executes the primary's log: no effects */
    bool holds_gate;  /* the caller is inside the gate already */
    bool insists;     /* never waits for room in the journal: the caller
                         has asked whether there is some (inject.h) */
    uint64_t now_ms;  /* wall clock, read once a batch */
    uint64_t now_ns;  /* monotonic, read when runs are counted */
    struct longest_span held; /* since a lock_set was locked; {0}: no set is
                                 locked, or its time has been counted */
    struct reply *reply;      /* of the batch being executed */
    struct session *session;  /* whose batch it is */
    const char *log_text;     /* of a silent worker: the group of the log that
                                 it executes */
    uint64_t log_begins;      /* position where the group begins */
    struct buf arena;         /* rewritten effects of the running command */
    struct stage stage;       /* effects on their way to the journal */
    struct journal *unkicked; /* got effects since its writer was woken */
    size_t expiry_room;       /* room in the stage for DELs: see expiry.c */
    size_t expiry_wants;      /* room that the DEL which did not fit needs */
    uint64_t hold;            /* highest position that the batch wrote or read:
                                 its replies wait for it */
    struct notice_list notices; /* not yet handed over */
    uint64_t users_seen;        /* users.changes that revoke.h has applied */
    struct request *request;    /* what dispatch executes */
    struct window *window;      /* the window that the request belongs to */
    uint32_t runs_routed; /* in sidecar mode: the most runs of the next window;
                             0: no such limit */
    const struct command *failed; /* the last command with an error reply */
    enum err failure;             /* that error; both for obey.c */
    /* How many runs in a row changed nothing (run.c). The index comes from a
     * key's hash, so keys may share a place. */
    uint8_t unchanged[WORKER_PLACES];
    char detail[768]; /* fills the %s of a returned error */
};
