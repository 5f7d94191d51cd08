/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The types that the replica's side (replica.h) and its owner exchange. The
 * owner is the server, or a simulator in a test.
 */
#pragma once

#include "journal/history.h"
#include "repl/wire_stream.h"

/* Where our log ends. */
struct replica_place {
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position, sequence;
    uint64_t synced; /* position on our disk; 0: none */
};

enum replica_applied {
    REPLICA_APPLIED,
    REPLICA_LATER,   /* not now: call replica_go_on when it is possible */
    REPLICA_REFUSED, /* the group does not fit our data */
    REPLICA_RENEW,   /* the group needs a secret that a new handshake brings */
};

enum replica_learned {
    REPLICA_LEARNED,
    REPLICA_LEARNING,   /* call again a little later */
    REPLICA_NOT_LEARNED /* the owner has logged why */
};

/* What the owner does for the replica's side. A hook must not call back into
 * that side. number: the link's. */
struct replica_hooks {
    /* Connects. There is at most one link: the previous one was closed. The
     * owner answers with replica_opened or replica_closed, later. */
    void (*dial)(void *ctx, uint64_t number, const char *host, unsigned port,
                 uint64_t timeout_ms);
    /* Sends bytes. False: there is no memory, or a few KiB are unsent already.
     * Then the link is given up. */
    bool (*send)(void *ctx, uint64_t number, struct slice bytes);
    /* Closes the link; the owner must not report that with replica_closed. */
    void (*close)(void *ctx, uint64_t number);
    /* Pauses or resumes reading. May repeat the present state. */
    void (*pause)(void *ctx, uint64_t number, bool paused);
    /* Fills in the end of our log, for PSYNC and each ACK. An empty history
     * means that there is no data to resume from. */
    void (*where)(void *ctx, struct replica_place *ret_place);
    /* Executes the group that follows the last one. Fills ret_reason if it
     * refuses the group. After REPLICA_LATER it gets the same group again. */
    enum replica_applied (*apply)(void *ctx, const struct wire_piece *group,
                                  char *ret_reason, size_t reason_size);
    /* Says which slots of a cluster the primary held at our present position in
     * the log, as a text. False: the text is malformed. May be NULL. */
    bool (*holdings)(void *ctx, struct slice text);
    /* Prepares for a snapshot of this state. False: the snapshot cannot be
     * loaded. */
    bool (*load_begin)(void *ctx, const struct wire_answer *answer,
                       char *ret_reason, size_t reason_size);
    /* Always takes the next bytes of the snapshot. False: it can take no more
     * bytes until the owner calls replica_go_on. */
    bool (*load_bytes)(void *ctx, struct slice bytes);
    /* The snapshot is complete. The owner answers with replica_loaded, later,
     * even if the link breaks meanwhile. */
    void (*load_end)(void *ctx);
    /* Discards what was loaded: the link broke before the end, or the owner
     * follows another primary or none. replica_loaded must not follow. */
    void (*load_cancel)(void *ctx);
    /* Sets the key of the seals of all groups applied from here on: after
     * +CONTINUE, and after replica_loaded. */
    void (*key)(void *ctx, uint64_t key);
    /* replica_chain has changed since the last hello. The owner must drop our
     * own replicas, so that they connect again and learn the new chain;
     * otherwise one of them might be refused because of a ring that is gone.
     * (The same is necessary at each change of role.) */
    void (*chained)(void *ctx);
    /* `wants` returns whether the hash secret of this fingerprint is missing
     * here; if it is NULL, no secrets are requested. `learn` takes a secret as
     * hexadecimal digits, and checks that it has this fingerprint. */
    bool (*wants)(void *ctx, uint64_t fingerprint);
    enum replica_learned (*learn)(void *ctx, uint64_t fingerprint,
                                  const char *digits);
    void *ctx;
};

struct replica_options { /* the options in force; the texts are copied */
    uint64_t timeout_ms;
    size_t group_max;            /* bytes */
    const char *user, *password; /* "": none. Without a password, no AUTH */
    const char *announce_ip;
    unsigned port;       /* the announced port, or our own */
    bool wants_holdings; /* ask the primary for what it holds (hook `holdings`)
                          */
};

struct replica_target {
    const char *host;
    unsigned port;
    bool failover; /* ask the target to become the primary */
};

/* The state of a failover to the server that we follow:
 *
 *   NONE       ASKED -> REFUSED -> DONE; ASKED -> DONE
 *
 * Each attempt to connect asks again until DONE, since an answer may get
 * lost. */
enum replica_failover {
    REPLICA_FAILOVER_NONE,
    REPLICA_FAILOVER_ASKED,
    REPLICA_FAILOVER_REFUSED,
    REPLICA_FAILOVER_DONE, /* the target leads now */
};
