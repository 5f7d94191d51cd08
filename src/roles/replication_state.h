/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of replication, which the files of roles share. Loop 0 owns it,
 * except struct replication_shared. server/replication.c makes it, and calls
 * this room, heals and slots in rounds. Each file calls only those named after
 * it:
 *
 *   followers.c     our replicas: links, snapshots for them
 *   failover.c      handing our role to a replica
 *   role_change.c   changes the links when the role changes
 *   following.c     our primary: the link, groups, snapshots from it
 *   outgoing.c      sends the log to our replicas
 *   kept_role.c     stores the role for the next start
 *   grace.c         what a primary cannot know after a start
 *   figures.c       copies for other threads
 */
#pragma once

#include "base/run_clock.h"
#include "dial/upstream.h"
#include "engine/loop0.h"
#include "engine/role.h"
#include "heal/merge_state.h"
#include "journal/journal.h"
#include "keyspace/gate.h"
#include "net/link.h"
#include "net/loop.h"
#include "persist/persist.h"
#include "repl/backlog.h"
#include "repl/primary.h"
#include "repl/replica.h"
#include "replay/apply.h"
#include "roles/role_file.h"
#include "snapshot/transfer.h"

#include <pthread.h>

struct follower;
struct merge;
struct pull;
struct slot_drop;
struct slot_figures;

/* A snapshot for our replicas, which the saving thread writes to a pipe. It
 * ends when the pipe was read to its end and the snapshot was written
 * completely, in either order:
 *
 *   NONE -> RUNS -> READ   -> NONE      cancelled: any -> NONE
 *           RUNS -> WRITTEN -> NONE
 */
enum outgoing_state {
    OUTGOING_NONE,
    OUTGOING_RUNS,
    OUTGOING_READ,
    OUTGOING_WRITTEN
};

struct outgoing_sync {
    enum outgoing_state state;
    int error;
    bool limited; /* the snapshot has only some slots */
    struct link *pipe;
};

/* What a client asked loop 0 to do about a failover; an abort replaces an
 * earlier wish. */
enum failover_wish { FAILOVER_NO_WISH, FAILOVER_BEGIN, FAILOVER_ABORT };

/* FAILOVER: hands our role to a replica.
 *
 *   NO_FAILOVER -> WAITS      until a replica has the whole log
 *   WAITS -> RUNS             we follow it, and ask it to lead
 *   any -> NO_FAILOVER        the replica leads or refused, or a client aborted
 */
struct failover {
    enum status_failover state;
    bool any, force;
    char host[ROLE_HOST_MAX]; /* of the replica that will lead */
    unsigned port;
    uint64_t until_ms; /* UINT64_MAX: no end */
    char error[STATUS_TEXT_MAX];
};

/* The replicas that a primary expects to come back after its start (grace.c).
 */
struct grace {
    uint64_t awaits_until_ms; /* until when it waits for replicas; 0: it does
                                 not wait */
    uint64_t awaited[ROLE_FOLLOWERS_MAX]; /* the replicas that are not back yet;
                                             0 ends the list */
    bool awaits_more; /* it also waits for replicas with unknown addresses */
    uint64_t met[ROLE_FOLLOWERS_MAX]; /* the replicas that have followed since
                                         the start; 0 ends the list */
    bool met_more;
    char before[ROLE_BEFORE_MAX][HISTORY_ID_CHARS + 1];
};

/* What following.c keeps about our primary. Others set only `synced_once`
 * (server/replication.c, at the start) and the functions for sidecar mode. */
struct following {
    struct upstream up;
    /* Our whole log came from our primary, which has released it. So our
     * replicas may get it before it is on our own disk. */
    bool released_above;
    /* The server has had data from a primary since it became a replica. Even if
     * the next primary is unreachable, its data counts as a replica's. */
    bool synced_once;
    bool holds;      /* the snapshot waits until merge.c has saved our data */
    struct buf held; /* the bytes of the snapshot that have arrived */
    bool adopting;   /* persist puts the transferred data in place */
    bool stores;     /* the data is in place, but not on the disk yet */
    /* In sidecar mode, handles a text that says which slots the primary holds;
     * else NULL. */
    bool (*take_holdings)(void *ctx, struct slice text);
    /* In sidecar mode, returns whether the data of the primary, which is of
     * this history, may replace the data here; else NULL. */
    bool (*may_load)(void *ctx, const char *history);
    void *holdings_ctx;
    bool told; /* take_holdings was called for the present link */
};

/* What other threads read or ask for. */
struct replication_shared {
    /* The ticket and the epoch of the role that was last given to the role
     * file. */
    _Atomic uint64_t kept_ticket, kept_epoch;
    atomic_bool poked;        /* there may be something to send */
    atomic_bool conf_changed; /* options have changed */
    atomic_bool streams;      /* the journal has a tap */
    atomic_bool settles;      /* a pull waits for the journal */

    pthread_mutex_t mutex; /* guards what follows; a leaf */
    struct primary_ask ask;
    bool failover_asked; /* from a client's OK until the failover has ended */
    enum failover_wish wish;
    struct failover wanted; /* FAILOVER_BEGIN */
    size_t chain_count;
    char chain[WIRE_CHAIN_MAX][WIRE_ID_CHARS + 1];
};

/* NOLINTNEXTLINE(*Padding): the fields are in the order of use; one is made */
struct replication {
    const struct loop0 *loop0;
    struct backlog *backlog;
    struct primary *primary;
    struct replica *replica;
    struct apply *apply;
    struct kept_file *role_file;
    struct merge_state merge_state;
    enum { REPLICATION_LOADS, REPLICATION_RUNS, REPLICATION_STOPPED } life;

    struct role_state kept; /* the state that role_file was last given */
    bool has_replicas; /* there are replicas, or were some until lately; the
                          role file stores it */
    uint64_t key;      /* key of the seals */
    uint64_t epoch;    /* epoch of the role that the links follow */
    uint64_t released_epoch; /* the disk has the role of this epoch */
    char history[HISTORY_ID_CHARS + 1]; /* history of our log, as last noted */

    struct follower *followers;
    uint64_t users_seen; /* users.changes that followers_revoke has applied */
    struct outgoing_sync sync;
    uint64_t alone_since_ms; /* since when there are no replicas; 0: there are
                                some */
    bool figures_due;        /* acknowledgements or replicas have changed */

    struct following following;
    struct failover failover;
    uint64_t grace_ms; /* grace of this start; 0: none */
    struct grace grace;

    uint64_t backlog_ttl_ms;      /* the options in force */
    uint64_t merge_journal_bytes; /* 0: there are no merges */

    struct merge *merge;
    struct pull *pull;
    struct slot_drop *drop;
    struct slot_figures *slot_figures;

    bool uses_tls; /* tls-replication */

    uv_timer_t tick;
    struct outgoing_flush {
        uv_poll_t poll;    /* watches the descriptor of a timer */
        uint64_t sent_ns;  /* when the last group was sent */
        uint64_t streamed; /* the position up to which the log was sent */
        int fd;
        bool armed;
        bool more; /* some replicas were not sent all of it yet */
    } flush;
    uv_async_t poke; /* any thread sends it */
    struct replication_shared shared;
};

enum { REPLICATION_TICK_MS = 100 };

/* Returns the clock of all events and deadlines in this room. */
static inline uint64_t
replication_now_ms(void)
{
    return run_clock_ms();
}

static inline struct gate *
replication_gate(const struct replication *r)
{
    return keyspace_gate(r->loop0->service->keyspace);
}

/* Returns a copy of the role. Call it outside the gate. */
static inline struct role
replication_role(const struct replication *r)
{
    return role_copy(r->loop0->service);
}

/* Makes loop 0 call failover_tick soon, if a failover is under way. */
static inline void
replication_poke_failover(struct replication *r)
{
    if (r->failover.state != STATUS_NO_FAILOVER) {
        (void)uv_async_send(&r->poke);
    }
}
