/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What replication.c (roles, timers, options), outgoing.c (the log's way to
 * replicas), figures.c (what others are told), followers.c (those who follow
 * us), following.c (whom we follow) and failover.c share. All of it belongs to
 * loop 0, unless a line says otherwise.
 */
#pragma once

#include "engine/apply.h"
#include "net/link.h"
#include "persist/transfer.h"
#include "repl/backlog.h"
#include "repl/primary.h"
#include "repl/primary_sync.h"
#include "repl/replica.h"
#include "server/replication.h"
#include "server/role_file.h"

#include <pthread.h>

struct follower;

/* One full synchronization on its way out: a child, and the pipe from it. */
struct outgoing_sync {
    bool runs, exited, ended; /* ended: all that the pipe brings was read */
    int error;
    struct link *pipe;
};

/* FAILOVER: to hand our role to a replica. */
struct failover {
    enum status_failover state;
    bool any, force;
    char host[ROLE_HOST_MAX]; /* of the replica that is to take over */
    unsigned port;
    uint64_t until_ms; /* UINT64_MAX: no end */
    char error[STATUS_TEXT_MAX];
};

/* The doubts of a primary that has started (grace.c). */
struct grace {
    bool awaits; /* those who followed before, until then */
    uint64_t awaits_until_ms;
    uint64_t
        awaited[ROLE_FOLLOWERS_MAX];  /* who has not come back; 0: no more */
    bool awaits_more;                 /* and others, who are not known */
    uint64_t met[ROLE_FOLLOWERS_MAX]; /* who has followed since; 0: no more */
    bool met_more;
    char before[ROLE_BEFORE_MAX][HISTORY_ID_CHARS + 1];
};

/* In the order of its uses, and there is one. NOLINTNEXTLINE(*Padding) */
struct replication {
    struct server *server;
    struct backlog *backlog;
    struct primary *primary;
    struct replica *replica;
    struct apply *apply;
    struct role_file *role_file;
    struct role_state kept;                   /* what it was told last */
    _Atomic uint64_t kept_ticket, kept_epoch; /* of that; any thread reads */
    bool begun, stopped;
    uint64_t key;      /* of the stream's seals */
    bool has_replicas; /* as the role file says */

    /* those who follow us */
    struct follower *followers;
    struct outgoing_sync sync;
    uint64_t alone_since_ms; /* without replicas; 0: there are some */
    bool acks_moved;         /* or replicas came or went: figures_show is due */

    /* whom we follow */
    uint64_t epoch; /* of the role that the link follows */
    struct link *link;
    uint64_t link_number; /* as the state machine counts */
    uint64_t link_id;     /* as CLIENT LIST shows it */
    struct transfer *transfer;
    struct wire_answer arriving; /* what the transfer is to be */
    uint64_t heard_bytes;        /* of it */
    bool fed;                    /* the transfer has got all of it */
    bool even;                   /* what we have, our primary has released */
    bool waits;                  /* for room in the journal */
    /* Has had its data from a primary since it is a replica; the next primary
     * that it is told to follow may be gone as well. */
    bool synced_once;
    bool adopts; /* puts a snapshot of our primary in place */
    char history[HISTORY_ID_CHARS + 1]; /* ours, as it was noted last */
    uint64_t backlog_ttl_ms;            /* options in force: */
    unsigned keepalive_s;
    uint64_t grace_ms; /* of this start; 0: none */
    struct grace grace;

    struct failover failover;

    uv_timer_t tick, flush;
    uv_async_t poke;
    atomic_bool stirred;    /* there is something to send: any thread */
    atomic_bool conf_moved; /* likewise: options have changed */
    atomic_bool streams;    /* there is a tap; any thread reads it */

    pthread_mutex_t mutex;  /* guards what other loops read or ask for: */
    struct primary_ask ask; /* on its way to the primary's side */
    struct failover wish;   /* WAITS: to begin; NO_FAILOVER with `any`: to be
                               called off */
    bool wished;
    size_t chain_count;
    char chain[WIRE_CHAIN_MAX][WIRE_ID_CHARS + 1];
};

enum { REPLICATION_TICK_MS = 100 };

uint64_t replication_now_ms(void);

static inline struct gate *
replication_gate(const struct replication *r)
{
    return keyspace_gate(r->server->service.keyspace);
}

/* A copy; outside the gate. */
struct role replication_role(const struct replication *r);

/* The primary's side knows which history the log is of now. Outside the gate.
 */
void replication_note_history(struct replication *r);

/* Does what the calls into the state machines have left to be done. */
void replication_settle(struct replication *r);

/* The links go where the role points. */
void replication_look_at_role(struct replication *r);

/* Has the role file written anew if something is new. Outside the gate. */
void replication_keep_role(struct replication *r);

/* ---- outgoing.c ---------------------------------------------------------- */

/* The effects' way to the replicas is open; opens it. Or ends it, and gives the
 * backlog back: nobody follows. */
void outgoing_open(struct replication *r);
void outgoing_close(struct replication *r);

/* Seals what was written so far; returns up to where replicas may have it. */
uint64_t outgoing_seal(struct replication *r);

/* Gives replicas what is released: now; now if somebody waits for it, else
 * soon; and, from any thread, has loop 0 look. */
void outgoing_send(struct replication *r);
void outgoing_look(struct replication *r);
void outgoing_stir(struct replication *r);

/* Replicas are to acknowledge this position as soon as they have it; any
 * thread. */
void outgoing_ask(struct replication *r, uint64_t position);

/* ---- grace.c ------------------------------------------------------------- */

/* A primary has started, with data of this history and position. */
void grace_begin(struct replication *r, const struct history *loaded,
                 uint64_t position);

/* A replica was taken; grace_look follows. */
void grace_meet(struct replication *r, const struct primary_hello *hello);

/* What the role file keeps of it. */
void grace_fill(const struct replication *r, struct role_state *state);

/* A replica came, time went by, or a command said who leads. */
void grace_look(struct replication *r);

/* It was said who leads. */
void grace_end(struct replication *r);

/* ---- figures.c ----------------------------------------------------------- */

/* For INFO, WAIT, CLIENT LIST and the admission of writes: all of it, now. */
void figures_show(struct replication *r);

/* Too few replicas that keep up: nothing is written. Inside the gate, any
 * loop. */
void figures_judge(struct server *server);

/* Those above us, for who asks; any loop may copy. */
void figures_keep_chain(struct replication *r);
size_t figures_copy_chain(void *ctx, char (*ret_chain)[WIRE_ID_CHARS + 1]);

/* ---- followers.c --------------------------------------------------------- */
extern const struct primary_hooks followers_hooks;
bool followers_take(void *ctx, struct handover *handover); /* any loop */
void followers_kill(struct replication *r, uint64_t id);
void followers_close(struct replication *r);
void followers_sync_began(struct replication *r, int fd, int error,
                          const struct primary_sync *sync);
void followers_sync_ended(struct replication *r, int error);

/* ---- following.c --------------------------------------------------------- */
extern const struct replica_hooks following_hooks;

/* The role says so, or says so anew. */
void following_begin(struct replication *r, const struct role *role,
                     bool failover);
void following_end(struct replication *r);

/* Ends the link: CLIENT KILL, or our data is no longer what it was. Another one
 * follows. */
void following_kill(struct replication *r, const char *reason);

/* Looks at what the transfer's thread, or the journal, has done. */
void following_look(struct replication *r);

/* ---- failover.c ---------------------------------------------------------- */
bool failover_ask(void *ctx, const struct failover_order *order,
                  char *ret_reason, size_t size);
bool failover_abort(void *ctx);
void failover_tick(struct replication *r);

/* Has failover_tick called soon, if there is something that it waits for. */
void failover_stir(struct replication *r);

/* A replica that we are asked to take over from: false with a reason. */
bool failover_take_over(struct replication *r, const struct handover *from,
                        char *ret_reason, size_t size);
