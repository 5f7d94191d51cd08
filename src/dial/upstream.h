/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What comes from the server whose log a struct replica (repl/replica.h) reads:
 * the link, the snapshot on it, and room for both. Its owner is a replica or a
 * pull, and decides what becomes of groups and of a snapshot. Loop 0.
 */
#pragma once

#include "base/slice.h"
#include "repl/replica_hooks.h"
#include "repl/wire.h"
#include "snapshot/transfer.h"

struct link;
struct loop0;
struct replica;

struct upstream {
    const struct loop0 *loop0;
    struct replica *replica;
    unsigned keepalive_s; /* the options in force */
    bool uses_tls;
    struct link *link;        /* NULL: none */
    uint64_t number;          /* the state machine's number of the link */
    uint64_t id;              /* for CLIENT LIST */
    unsigned secrets_lacking; /* how many of that server's secrets are missing
                                 here */
    bool put_off; /* the state machine heard "later": there is no room in the
                     journal or the transfer, or it is the clients' turn */
    struct wire_answer arriving; /* the state that the snapshot must have */
    struct transfer *transfer;   /* NULL: no snapshot is loaded */
    bool complete;               /* the snapshot's last byte has come */
    /* Called when the state machine has handled an event of the link. */
    void (*moved)(void *ctx);
    void (*poke)(void *ctx); /* makes loop 0 look at the transfer; any thread */
    void *ctx;
};

/* Hooks of a struct replica, whose ctx is the upstream. */
void upstream_dial(void *ctx, uint64_t number, const char *host, unsigned port,
                   uint64_t timeout_ms);
bool upstream_send(void *ctx, uint64_t number, struct slice bytes);
void upstream_close(void *ctx, uint64_t number);
void upstream_pause(void *ctx, uint64_t number, bool paused);
bool upstream_load_bytes(void *ctx, struct slice bytes);
void upstream_load_end(void *ctx);
bool upstream_wants(void *ctx, uint64_t fingerprint);
enum replica_learned upstream_learn(void *ctx, uint64_t fingerprint,
                                    const char *digits);

/* Returns the owner, for the other hooks. */
static inline void *
upstream_owner(void *ctx)
{
    return ((const struct upstream *)ctx)->ctx;
}

/* Closes the link, which the state machine then treats as lost. */
void upstream_kill(struct upstream *up, const char *reason);

/* Returns REPLICA_APPLIED if the group may be executed now, or why not. */
enum replica_applied upstream_takes(struct upstream *up,
                                    const struct wire_piece *group,
                                    char *ret_reason, size_t reason_size);

/* Starts a transfer of what arrives, and drops an earlier one. part: what the
 * snapshot is limited to, or NULL; copy gets all bytes. False: no memory or no
 * thread. */
bool upstream_load(struct upstream *up, const struct walk_part *part,
                   const struct transfer_copy *copy, char *ret_reason,
                   size_t reason_size);

/* Returns the options of a keyspace that may replace ours. */
struct keyspace_options upstream_keyspace(const struct upstream *up);

/* Returns the state of the transfer; it is LOADED only if the last byte has
 * come. */
enum transfer_state upstream_poll(struct upstream *up, char *ret_reason,
                                  size_t reason_size);

/* Takes the loaded keyspace, and ends the transfer. */
struct keyspace *upstream_take(struct upstream *up,
                               struct snapshot_stamp *ret_stamp);
void upstream_drop(struct upstream *up);

/* Continues with what was put off, if there is room now. */
void upstream_look(struct upstream *up);
