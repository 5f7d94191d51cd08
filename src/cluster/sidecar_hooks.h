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
    /* How long a wanted slot waits for a silent owner before it is served
     * without a fence. By then the lease of that owner has ended. */
    uint64_t silence_ms;
    /* How long a slot that our node has lost is still served, if its new
     * owner's daemon does not come earlier. Less than a lease. */
    uint64_t leaving_ms;
    /* How long after a slot was forgotten its keys are deleted. By then no
     * replica holds the slot either. */
    uint64_t forget_ms;
    /* How long a fenced slot that our node still owns is not wanted again:
     * normally our node loses it within this time. */
    uint64_t fence_ms;
    /* How long at most slots without keys keep a daemon from following. */
    uint64_t empty_ms;
    /* How long after a fence no other daemon gets the slot. */
    uint64_t giving_ms;
    /* How long at most commands on a lost slot wait for its new owner's daemon.
     */
    uint64_t await_ms;
};

/* What commands see: the state of each slot (enum slot_state), and the node to
 * which ASK redirects for a PULLED slot. Borrowed for the call. */
struct sidecar_map {
    const struct topology *topology;
    const uint8_t *state;   /* [CLUSTER_SLOTS] */
    const uint16_t *source; /* [CLUSTER_SLOTS] */
    /* The slots whose data keeps us from following our node's primary: how many
     * they are, since when (by the clock of the events), and the owner of the
     * first one, or TOPOLOGY_NOBODY. */
    unsigned waiting;
    uint64_t waits_ms;
    uint16_t waits_for;
    unsigned fallen;    /* slots that are missing because their owner's epoch is
                           lower than their holder's */
    const bool *silent; /* by node: its daemon has not answered the last
                           survey */
    /* The time from which on no LEAVING slot is served, until the next map. By
     * the clock of the events. */
    uint64_t leaving_until_ms;
};

enum sidecar_question {
    SIDECAR_ASK_HOLDINGS,    /* what the daemon holds */
    SIDECAR_ASK_FENCE,       /* to stop serving slots */
    SIDECAR_ASK_FENCE_EMPTY, /* to stop serving slots, if they have no keys */
    SIDECAR_ASK_HAND_OFF, /* from its replica: to stop serving slots; the answer
                             grants a part of them */
    SIDECAR_ASK_COME,  /* to serve slots to clients that we redirect, until we
                          claim the slots; the answer is HAS_KEYS */
    SIDECAR_ASK_FORCE, /* from an operator: sidecar_force_serve */
    SIDECAR_ASK_LET_GO /* from an operator: sidecar_let_go */
};

/* A question to the daemon beside a node, or an operator's order. */
struct sidecar_ask {
    uint64_t number; /* names the question in the answer */
    enum sidecar_question question;
    const char *node; /* the id of the node */
    /* For HOLDINGS: the version of an earlier answer. If nothing has changed
     * since, the answer is SAME. 0: the answer is never SAME. */
    uint64_t seen;
    /* For a fence: the slots, and the epoch of their new owner's node. */
    const struct slot_set *set;
    uint64_t epoch;
    /* surveyed: a survey found that this daemon has the newest data, and that
     * no daemon has claimed the slots at an epoch + 1 above `known`. If not
     * surveyed, this is the daemon of the last owner, whose epoch + 1 was
     * `known`. It refuses unless it has served the slots at that epoch until
     * now. */
    bool surveyed;
    uint64_t known;
    /* With `surveyed`: an operator has chosen this daemon's data, even if the
     * daemon does not hold the slots. */
    bool chosen;
};

enum sidecar_answer_kind {
    SIDECAR_SILENT, /* the daemon cannot be reached, or has not answered in time
                     */
    SIDECAR_REFUSED, /* the daemon refuses */
    SIDECAR_HOLDS,   /* it holds `holdings` at this position of its log */
    SIDECAR_SAME, /* it holds the same as when it answered with this version */
    SIDECAR_FENCED,   /* it no longer serves the slots; its log ends here */
    SIDECAR_HAS_KEYS, /* it was not fenced, since the slots have keys */
    SIDECAR_FORCED,
    SIDECAR_GONE /* the slots were let go */
};

struct sidecar_answer {
    enum sidecar_answer_kind kind;
    const struct holdings *holdings;
    uint64_t version;               /* of the holdings, not 0 */
    const struct slot_set *granted; /* for FENCED */
    uint64_t ticket; /* of FENCED: the answer is sent when the text of this
                        ticket is on the disk */
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position;
    const char *reason; /* for REFUSED and SILENT, for the log */
};

/* What a start would find on the disk. */
struct sidecar_disk {
    bool journals; /* there is a journal: all acknowledged changes are on the
                      disk, or soon will be */
    /* The disk has our log up to this position - 1; 0: it has nothing. */
    uint64_t stored;
    char history[HISTORY_ID_CHARS + 1];  /* history of our log now */
    char snapshot[HISTORY_ID_CHARS + 1]; /* of the newest snapshot; "": none */
};

/* What the owner does. A hook must not call back into the sidecar. */
struct sidecar_hooks {
    /* Shows the map to commands. When it returns, all commands see it. */
    void (*publish)(void *ctx, const struct sidecar_map *map);
    /* Makes the server a replica of the daemon beside this node, or a primary,
     * before it returns. Does nothing if that is the role already. */
    void (*follow)(void *ctx, int node);
    void (*lead)(void *ctx);
    /* Finds where our log ends. */
    void (*where)(void *ctx, char ret_history[HISTORY_ID_CHARS + 1],
                  uint64_t *ret_position);
    /* Returns whether our log is of this history, or continues it, and reaches
     * this position of it. */
    bool (*has)(void *ctx, const char history[HISTORY_ID_CHARS + 1],
                uint64_t position);
    /* `disk` tells what our disk has. `store` requests that it gets everything
     * that our log has now: the journal is synced, or, without a journal, a
     * snapshot is saved. */
    void (*disk)(void *ctx, struct sidecar_disk *ret_disk);
    void (*store)(void *ctx);
    /* Sends a question. sidecar_answered follows, once, after this has
     * returned. */
    void (*ask)(void *ctx, const struct sidecar_ask *ask);
    /* Returns whether keys of these slots may be here. */
    bool (*has_keys)(void *ctx, const struct slot_set *set);
    /* Begins to fetch slots from the daemon beside a node: sidecar_pull_is_near
     * follows when nearly everything has come, sidecar_pull_broke when the link
     * has ended before that, and sidecar_pull_ended in any case. pull_until
     * says that the source was fenced at this position. After pull_cancel no
     * event follows. */
    void (*pull)(void *ctx, const char *node, const struct slot_set *set);
    void (*pull_until)(void *ctx, const char *history, uint64_t position);
    void (*pull_cancel)(void *ctx);
    /* Writes the holdings to the disk. `keep` returns a ticket, and `is_kept`
     * whether the text of the ticket is on the disk. */
    uint64_t (*keep)(void *ctx, const struct holdings *holdings);
    bool (*is_kept)(void *ctx, uint64_t ticket);
    /* Tells our replicas what we hold, as soon as they have our log up to its
     * present end. Replicas that come later are told, too. */
    void (*tell)(void *ctx, const struct holdings *holdings);
    /* Return whether the link to our leader is up, and whether the leader has
     * said on it what it holds (sidecar_told). */
    bool (*is_linked)(void *ctx);
    bool (*is_told)(void *ctx);
    /* Deletes the keys of these slots in the background. */
    void (*drop)(void *ctx, const struct slot_set *set);
    /* Polls the neighbour now, before the next regular poll. */
    void (*poll)(void *ctx);
    void *ctx;
};
