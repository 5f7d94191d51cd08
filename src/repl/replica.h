/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The side that follows: connects, introduces itself, takes a snapshot or
 * resumes, and hands groups on one after the other. A state machine of loop 0
 * without I/O or clock of its own, like primary.h, and linked by the simulator
 * as well. One link at a time; what the owner says of an older one (number) is
 * ignored.
 *
 * It resumes and acknowledges at ends of groups only. A seal that does not hold
 * is taken for a fault of the link, which is made anew and goes on behind the
 * last good group; the same place twice, a sequence that does not follow, or a
 * group that cannot be applied ends in a full synchronization, never in other
 * data than the primary's.
 *
 * After a link that had been good it tries again at once, else after 100 ms,
 * and then twice as long each time, up to 5 s.
 */
#pragma once

#include "persist/history.h"
#include "repl/status.h"
#include "repl/wire.h"

struct replica;

struct replica_place {
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position, sequence;
    uint64_t synced; /* position on our disk; 0: none */
};

enum replica_applied {
    REPLICA_APPLIED,
    REPLICA_LATER,   /* not now: replica_go_on is called when it can be */
    REPLICA_REFUSED, /* it does not fit our data */
};

/* None of them may call back into the replica. number: of the link. */
struct replica_hooks {
    /* number: how the owner names the link afterwards. Answered by
     * replica_opened or replica_closed, later. There is one link at most: the
     * one before was closed. */
    void (*dial)(void *ctx, uint64_t number, const char *host, unsigned port,
                 uint64_t timeout_ms);
    /* False: no memory, or the primary takes too little of what is sent to it
     * (a few KiB wait): the link is given up. */
    bool (*send)(void *ctx, uint64_t number, struct slice bytes);
    /* It is forgotten already: replica_closed need not be called for it. */
    void (*close)(void *ctx, uint64_t number);
    /* Reading pauses, or goes on. May be told what it knows. */
    void (*pause)(void *ctx, uint64_t number, bool paused);
    /* Where our log stands: asked before PSYNC and for each ACK. An empty
     * history: we have nothing to go on from. */
    void (*where)(void *ctx, struct replica_place *ret_place);
    /* One whole group, that follows the last one. `reason` says why it was
     * refused. After LATER the same one is given again. */
    enum replica_applied (*apply)(void *ctx, const struct wire_piece *group,
                                  char *ret_reason, size_t reason_size);
    /* A snapshot arrives: of this state. False: it cannot be taken. */
    bool (*load_begin)(void *ctx, const struct wire_answer *answer,
                       char *ret_reason, size_t reason_size);
    /* They are taken in any case. False: that is enough until replica_go_on. */
    bool (*load_bytes)(void *ctx, struct slice bytes);
    /* All of it is there: answered by replica_loaded, later. A link that breaks
     * then does not matter. */
    void (*load_end)(void *ctx);
    /* The link broke before the end, or another primary is followed, or none:
     * what was loaded is to be forgotten, replica_loaded is not called. */
    void (*load_cancel)(void *ctx);
    /* The seals of what is applied from here on have this key: after +CONTINUE,
     * and after replica_loaded. */
    void (*key)(void *ctx, uint64_t key);
    /* replica_chain has changed since the last hello: who follows us is to
     * connect anew, to hear of it. Else somebody who is no longer above us
     * would be told of a ring. (The same goes for each change of role.) */
    void (*chained)(void *ctx);
    void *ctx;
};

struct replica_options { /* in force */
    uint64_t timeout_ms;
    size_t group_max;            /* bytes */
    const char *user, *password; /* borrowed for the call; "": none. Without a
                                    password there is no AUTH */
    const char *announce_ip;
    unsigned port; /* announced, or our own */
};

struct replica *replica_new(const char *run_id,
                            const struct replica_hooks *hooks);
void replica_free(struct replica *replica);
void replica_set_options(struct replica *replica,
                         const struct replica_options *options);

/* Follows this primary from now on (also the same anew); the last state's
 * epoch is told with its status. failover: asks it to become the primary. */
struct replica_target {
    const char *host;
    unsigned port;
    uint64_t epoch;
    bool failover;
};
void replica_follow(struct replica *replica, const struct replica_target *whom,
                    uint64_t now_ms);
void replica_stop(struct replica *replica); /* follows nobody */

/* ---- what happened; number: of the link ---------------------------------- */
void replica_opened(struct replica *replica, uint64_t number, uint64_t now_ms);
void replica_bytes(struct replica *replica, uint64_t number, struct slice bytes,
                   size_t *ret_used, uint64_t now_ms);
void replica_closed(struct replica *replica, uint64_t number,
                    const char *reason, uint64_t now_ms);
/* `where` may say more of our disk now. If the primary has asked how far we are
 * (GETACK) before our disk was there, it is told each time, so that a client in
 * WAITAOF need not wait for the next acknowledgement. */
void replica_disk_moved(struct replica *replica, uint64_t now_ms);
/* What was LATER, or paused, may go on. */
void replica_go_on(struct replica *replica, uint64_t now_ms);
/* The snapshot is in place and `where` says what was announced with it; or it
 * failed, maybe before its end. A snapshot of something else than announced is
 * to fail. */
void replica_loaded(struct replica *replica, bool good, const char *reason,
                    uint64_t now_ms);
/* Each 100 ms or so: tries again, acknowledges, times out. */
void replica_tick(struct replica *replica, uint64_t now_ms);

/* Our data is no longer what it was (a promotion, a reload): the next attempt
 * asks for everything. */
void replica_distrust(struct replica *replica);

bool replica_is_connected(const struct replica *replica);
/* run ids from our primary upwards, of the last one that we spoke with; for
 * wire_hello.chain. */
size_t replica_chain(const struct replica *replica,
                     char ret_chain[WIRE_CHAIN_MAX][WIRE_ID_CHARS + 1]);
/* The answer of who was asked for a failover: it took over, or it refused.
 * After it took over, the next attempts do not ask again; before, each one
 * does, so who took over may be asked again when its answer got lost. */
bool replica_failover_done(const struct replica *replica);
bool replica_failover_refused(const struct replica *replica);
/* Fills what a replica knows: all but ids and addresses of the link. */
void replica_describe(const struct replica *replica,
                      struct status_figures *ret_figures);
