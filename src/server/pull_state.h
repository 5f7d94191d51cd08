/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of pulls, which their files share: pull.c has the queue and the
 * cut-over, pull_link.c the source's snapshot and log. Loop 0.
 */
#pragma once

#include "keyspace/walk_part.h"
#include "server/pull_hooks.h"
#include "server/replication_state.h"

struct adoption;
struct inject;
struct pull_log;

/* The slots of a pull that are being claimed. */
struct pull_claim {
    bool runs;
    struct slot_set slots;
    struct pull_hooks hooks;
    bool fenced; /* pull_until was called: */
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position;
};

struct pull {
    struct pull *next;
    uint64_t id;
    struct slot_set slots;
    char host[ROLE_HOST_MAX];
    unsigned port;
    bool ahead;              /* copies slots that nobody has claimed yet */
    struct pull_hooks hooks; /* of a pull that copies ahead */
    struct pull_claim claim;
};

/* NOLINTNEXTLINE(*Padding): in the order of its uses, and there is one. */
struct pulls {
    struct replication *r;
    struct inject *inject;
    struct replica *replica;
    struct pull *first; /* runs; the others wait */
    uint64_t last_id;

    /* Of the first: */
    bool runs;
    uint64_t began_ms; /* to run */
    struct upstream up;
    struct slot_set slots; /* whose keys it may change here */
    struct walk_part part;
    struct wire_answer arriving;
    struct transfer *transfer; /* NULL: no snapshot arrives */
    bool complete;             /* the transfer has all bytes */
    struct adoption *adoption;
    struct snapshot_stamp stamp; /* of what is adopted */
    bool follows;                /* the snapshot is in place */
    struct pull_log *log;
    bool waits_for_room;
    uint64_t position, sequence;
    uint64_t durable_at; /* our position at the fence; 0: it is not reached */
    uint64_t keys, bytes, lag_ms;
    unsigned attempts;
    struct buf text; /* the slots, for the source */
};

/* Begins and ends the link of the first pull. */
void pull_link_begin(struct pulls *pulls);

/* The first pull, which follows, has fewer slots now. */
void pull_link_narrow(struct pulls *pulls);
void pull_link_end(struct pulls *pulls);

/* Continues with a snapshot that has come, and its adoption. */
void pull_link_look(struct pulls *pulls);

extern const struct replica_hooks pull_link_hooks;
