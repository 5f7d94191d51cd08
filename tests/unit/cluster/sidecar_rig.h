/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One sidecar whose owner writes down what it is told, for the tests of this
 * layer. It stands beside RIG_A, with RIG_B, RIG_C and RIG_R (cluster_rig.h).
 */
#pragma once

#include "cluster/sidecar.h"
#include "cluster/view.h"
#include "cluster_rig.h"

/* The hooks, which are functions of these names where it stands. */
#define RIG_HOOKS(owner)                                                       \
    {                                                                          \
        .publish = publish, .follow = follow, .lead = lead, .where = where,    \
        .has = has, .disk = disk, .store = store, .ask = ask,                  \
        .has_keys = has_keys, .pull = begin_pull, .pull_until = pull_until,    \
        .pull_cancel = pull_cancel, .keep = keep, .is_kept = is_kept,          \
        .tell = tell, .is_linked = is_linked, .is_told = is_told,              \
        .drop = drop, .poll = poll_soon, .ctx = (owner)                        \
    }

enum { RIG_ASKS_MAX = 64 };

struct rig_ask {
    uint64_t number;
    enum sidecar_question question;
    char node[TOPOLOGY_ID_LEN + 1];
    struct slot_set set;
    uint64_t epoch, known, seen;
    bool surveyed, chosen;
};

struct rig {
    struct sidecar *sidecar;
    struct topology *topology;
    uint64_t now_ms;
    bool unleased; /* at the next polls */
    uint8_t state[CLUSTER_SLOTS];
    uint16_t source[CLUSTER_SLOTS];
    uint64_t leaving_until_ms;
    int follows;                        /* -1: it leads; -2: neither was said */
    char history[HISTORY_ID_CHARS + 1]; /* of its log, the only one */
    uint64_t position;
    struct rig_ask ask[RIG_ASKS_MAX]; /* not yet answered */
    size_t asks;
    bool pulls;
    char pulled_from[TOPOLOGY_ID_LEN + 1];
    struct slot_set pulled;
    uint64_t until;
    bool disk_fails; /* nothing is kept */
    bool snapshots;  /* it has no journal */
    bool disk_lags;  /* the disk has this much of the log, + 1; else all */
    uint64_t stored;
    unsigned stores; /* it was asked for more */
    char snapshot[HISTORY_ID_CHARS + 1];
    bool continues; /* the log continues all histories */
    struct holdings kept;
    struct holdings told; /* to its replicas */
    bool unlinked;        /* its leader's link is down */
    bool is_told;         /* by its leader's link */
    uint64_t tickets;
    struct slot_set dropped;
    struct slot_set leftover; /* slots that have old keys */
};

/* Returns the file of a daemon that held A's slots at an epoch. */
struct holdings *rig_file(const char *node, uint64_t epoch);

/* start: NULL for a daemon without a file. */
void rig_init(struct rig *rig, const struct holdings *start);
void rig_fini(struct rig *rig);

/* The neighbour says this from now on. */
void rig_poll(struct rig *rig, const char *nodes);
void rig_tick(struct rig *rig, uint64_t ms);

/* An operator has slots served without their data: candidates are borrowed;
 * from: "" for none. */
bool rig_force(struct rig *rig, unsigned first, unsigned last, const char *from,
               struct candidate *candidates, bool leased, char *ret_reason,
               size_t size);

/* Answers the oldest question to this node; it must be of this kind. */
void rig_answer(struct rig *rig, const char *node,
                enum sidecar_question question,
                const struct sidecar_answer *answer);

/* Answers all questions for holdings: NULL holds nothing. silent: the id of a
 * daemon that does not answer, or NULL. */
void rig_answer_survey(struct rig *rig, const char *node,
                       const struct holdings *holdings, const char *silent);
