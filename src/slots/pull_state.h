/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of the pull, which its files share: pull.c has the beginning, the
 * end and the cut-over, pull_link.c the source's snapshot and log. Loop 0.
 */
#pragma once

#include "dial/upstream.h"
#include "engine/loop0.h"
#include "engine/service.h"
#include "journal/history.h"
#include "keyspace/walk_part.h"
#include "repl/replica.h"
#include "repl/wire.h"
#include "slots/pull_hooks.h"
#include "snapshot/transfer.h"

struct adoption;
struct inject;
struct pull_log;

/* NOLINTNEXTLINE(*Padding): fields in the order of use; one object only */
struct pull {
    struct pull_roles roles;
    struct inject *inject;
    struct replica *replica;
    struct pull_counts counts;
    uint64_t id;        /* number of the last pull, for the log */
    uint64_t fenced_ns; /* when pull_until was last called */

    bool wanted; /* there is a pull: */
    struct slot_set claimed;
    char host[ROLE_HOST_MAX];
    unsigned port;
    struct pull_hooks hooks;
    bool fenced; /* pull_until was called: */
    char history[HISTORY_ID_CHARS + 1];
    uint64_t until;

    bool runs; /* the pull has begun: */
    uint64_t began_ms;
    struct upstream up;
    struct slot_set slots; /* the slots whose keys it may change here */
    struct walk_part part;
    struct adoption *adoption;
    struct snapshot_stamp stamp; /* of the snapshot that is adopted */
    bool follows; /* the snapshot is adopted, and the log is executed */
    struct pull_log *log;
    uint64_t position, sequence;
    uint64_t durable_at; /* the position of our log when the pull reached the
                            fence; 0: it has not reached it */
    uint64_t keys, bytes, lag_ms;
    unsigned attempts;
    struct buf text; /* the slots as text, for the source */
};

/* Begin and end the link. */
void pull_link_begin(struct pull *pull);
void pull_link_end(struct pull *pull);

/* Begins to adopt a loaded snapshot, and adopts its keys slice by slice. */
void pull_link_look(struct pull *pull);

extern const struct replica_hooks pull_link_hooks;
