/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The types that the sidecar (sidecar.h) and its owner exchange. The owner is
 * the server, or a simulator in a test.
 */
#pragma once

#include "cluster/holdings.h"
#include "cluster/topology.h"
#include "journal/history.h"

struct sidecar_options {
    bool missing_empty; /* sidecar-missing-slot empty */
    /* How long after a silent owner's last possible lease a slot is served
     * without having fenced that owner. */
    uint64_t silence_ms;
    /* How long at most a slot that our node has lost is served, until the
     * daemon of its owner comes for it: less than a lease. */
    uint64_t leaving_ms;
    /* How long after a slot was forgotten its keys are deleted: then replicas
     * do not hold it any more, either. */
    uint64_t forget_ms;
    /* How long a fenced slot that our node has not lost waits for that, before
     * it is wanted again. */
    uint64_t fence_ms;
    /* How long at most slots without keys keep a daemon from following. */
    uint64_t empty_ms;
    /* How long from a fence on no other daemon gets the slot, */
    uint64_t giving_ms;
    /* and how long at most commands on a lost slot wait for its owner. */
    uint64_t await_ms;
};

/* What commands are to see: a state for each slot (enum slot_state), and the
 * node to ASK for a PULLED one. Borrowed for the call. */
struct sidecar_map {
    const struct topology *topology;
    const uint8_t *state;   /* [CLUSTER_SLOTS] */
    const uint16_t *source; /* [CLUSTER_SLOTS] */
    /* Slots whose data keeps us from following our node's primary: how many,
     * since when by the clock of the events, and the first one's owner, or
     * TOPOLOGY_NOBODY. */
    unsigned waiting;
    uint64_t waits_ms;
    uint16_t waits_for;
    unsigned fallen;    /* slots that are missing since their owner's epoch is
                           lower than their holder's */
    const bool *silent; /* by node: its daemon has not answered the last
                           survey */
    /* By the clock of the events: no slot that LEAVES is served from then on,
     * until the next map. */
    uint64_t leaving_until_ms;
};

enum sidecar_question {
    SIDECAR_ASK_HOLDINGS,    /* what it holds */
    SIDECAR_ASK_FENCE,       /* to stop serving slots */
    SIDECAR_ASK_FENCE_EMPTY, /* likewise, but only if they have no keys */
    SIDECAR_ASK_HAND_OFF,    /* likewise, by its replica, which gets those that
                                it can have */
    SIDECAR_ASK_COME,        /* to serve slots to clients that we send, until we
                                claim them; the answer is HAS_KEYS */
    SIDECAR_ASK_FORCE,       /* of an operator: sidecar_force_serve */
    SIDECAR_ASK_LET_GO       /* likewise: sidecar_let_go */
};

/* A question to the daemon beside a node. */
struct sidecar_ask {
    uint64_t number; /* names it in the answer */
    enum sidecar_question question;
    const char *node; /* its id */
    /* Of HOLDINGS: the version of an earlier answer. If it is the present one,
     * the answer is SAME. 0: it is wanted whole. */
    uint64_t seen;
    /* Of a fence: the slots, and the epoch of their new owner's node. */
    const struct slot_set *set;
    uint64_t epoch;
    /* surveyed: a survey found that this daemon has the newest data, and that
     * no daemon has claimed the slots at an epoch + 1 above `known`. Else it is
     * asked as the daemon of the last owner, whose epoch + 1 was `known`: it
     * must have served the slots at that epoch, until now. */
    bool surveyed;
    uint64_t known;
    /* surveyed, and an operator has chosen this daemon's data, which it need
     * not hold. */
    bool chosen;
};

enum sidecar_answer_kind {
    SIDECAR_SILENT,   /* it cannot be reached, or has not answered in time */
    SIDECAR_REFUSED,  /* it does not hold the slots, or not any more */
    SIDECAR_HOLDS,    /* `holdings`, at this place of its log */
    SIDECAR_SAME,     /* what it held when its answer had this version */
    SIDECAR_FENCED,   /* it serves the slots no more; its log ends here */
    SIDECAR_HAS_KEYS, /* it was not fenced, since there are keys */
    SIDECAR_FORCED,
    SIDECAR_GONE /* it was let go */
};

struct sidecar_answer {
    enum sidecar_answer_kind kind;
    const struct holdings *holdings;
    uint64_t version;               /* of the holdings, not 0 */
    const struct slot_set *granted; /* of FENCED */
    uint64_t ticket; /* likewise: the answer leaves when this is kept */
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position;
    const char *reason; /* of REFUSED and SILENT; for the log */
};

/* What a start would find. */
struct sidecar_disk {
    bool journals;   /* what is acknowledged is there, or will be soon */
    uint64_t stored; /* + 1: all up to this position of our log; 0: nothing */
    char history[HISTORY_ID_CHARS + 1];  /* of our log now */
    char snapshot[HISTORY_ID_CHARS + 1]; /* of the last snapshot; "": none */
};

/* What the owner does. A hook must not call back into the sidecar. */
struct sidecar_hooks {
    /* Shows this to commands from now on, before it returns. */
    void (*publish)(void *ctx, const struct sidecar_map *map);
    /* Makes the server a replica of the daemon beside this node, or a
     * primary, before it returns; nothing if it is so. */
    void (*follow)(void *ctx, int node);
    void (*lead)(void *ctx);
    /* Where our log ends. */
    void (*where)(void *ctx, char ret_history[HISTORY_ID_CHARS + 1],
                  uint64_t *ret_position);
    /* Whether our log is of this history, or continues it, and reaches this
     * position of it. */
    bool (*has)(void *ctx, const char history[HISTORY_ID_CHARS + 1],
                uint64_t position);
    /* What our disk has; and has it get all that our log has now: the journal
     * is synced, or without one a snapshot is saved. */
    void (*disk)(void *ctx, struct sidecar_disk *ret_disk);
    void (*store)(void *ctx);
    /* Asks; sidecar_answered follows, once, and not before this returns. */
    void (*ask)(void *ctx, const struct sidecar_ask *ask);
    /* Whether keys of these slots may be here. */
    bool (*has_keys)(void *ctx, const struct slot_set *set);
    /* Begins to fetch slots from the daemon beside a node:
     * sidecar_pull_is_near follows when it has nearly all,
     * sidecar_pull_broke when the link has ended before that, and
     * sidecar_pull_ended in any case. _until says that the source was fenced at
     * this position. After _cancel there is no event any more. */
    void (*pull)(void *ctx, const char *node, const struct slot_set *set);
    void (*pull_until)(void *ctx, const char *history, uint64_t position);
    void (*pull_cancel)(void *ctx);
    /* Writes the holdings to the disk. Returns a ticket, and whether that text
     * is there. */
    uint64_t (*keep)(void *ctx, const struct holdings *holdings);
    bool (*is_kept)(void *ctx, uint64_t ticket);
    /* Tells our replicas, as soon as they have our log up to its present end,
     * that we hold this; and those that come later. */
    void (*tell)(void *ctx, const struct holdings *holdings);
    /* Whether the link to the server that we follow is up; and whether it has
     * said what that one holds (sidecar_told). */
    bool (*is_linked)(void *ctx);
    bool (*is_told)(void *ctx);
    /* Deletes the keys of these slots in the background. */
    void (*drop)(void *ctx, const struct slot_set *set);
    /* Polls the neighbour before the next regular time. */
    void (*poll)(void *ctx);
    void *ctx;
};
