/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Takes over the slots of a claim from another server, the source. Until the
 * source is fenced, no other server changes the slots. The pull follows the
 * source's log, beginning with a snapshot of the slots. It makes the same
 * changes here by commands of our own, so they reach our journal and replicas
 * in the ordinary way. There is at most one pull.
 *
 *   QUEUED -> CONNECTS -> LOADS -> ADOPTS -> FOLLOWS -> SETTLES -> ended
 *
 * A lost link, a log that cannot be executed, or a lack of memory lead back to
 * CONNECTS, and to a fresh snapshot. Until the new one is adopted, the old data
 * stays, and must not be served to clients. Only the pull may write to these
 * slots here. Loop 0, unless a line says otherwise.
 */
#pragma once

#include "slots/pull_hooks.h"

struct pull;

/* What a pull takes over: these slots, from the server at host:port. */
struct pull_source {
    const struct slot_set *slots;
    const char *host;
    unsigned port;
};

/* Begins a pull, and gives up an earlier one. It logs in to the source as
 * replicas do (masteruser, masterauth, tls-replication). Ends a drop of these
 * slots (slot_drop_begin). False: this server is a replica, or its hashes have
 * no slots; ret_reason says which. */
bool pull_begin(struct pull *pull, const struct pull_source *source,
                const struct pull_hooks *hooks, char *ret_reason,
                size_t reason_size);

/* Says that the source has fenced the slots at this position of its log. The
 * pull is complete when everything up to that position is executed. Does
 * nothing if there is no pull. */
void pull_until(struct pull *pull, const char *history, uint64_t position);

/* Gives up the pull, if there is one, without calling the hook `ended`. Keys
 * that were adopted stay. */
void pull_cancel(struct pull *pull);

/* Returns the slots of the pull; the empty set if there is no pull. */
void pull_slots(const struct pull *pull, struct slot_set *ret_slots);

/* Shows how far the pull is. False: there is no pull. */
bool pull_show(const struct pull *pull, struct pull_progress *ret_progress);
const struct pull_counts *pull_counted(const struct pull *pull);
const char *pull_state_name(enum pull_state state);

struct pull *pull_new(const struct pull_roles *roles);
void pull_free(struct pull *pull);

/* Makes the pull try again soon, because there is a new hash secret. */
void pull_hurry(struct pull *pull);

/* Does what is due: adopts loaded data, executes the log, cuts over. */
void pull_look(struct pull *pull);

/* Notes the passing of time. Call it before pull_look. */
void pull_tick(struct pull *pull);

/* Ends the pull without its hook, when the server stops. */
void pull_stop(struct pull *pull);

/* Begins the pull anew, since all data here was replaced. */
void pull_begin_anew(struct pull *pull, const char *reason);

/* Sets the options in force. Inside a section of the gate. */
struct replica_options;
struct upstream;
void pull_set_options(struct pull *pull, const struct replica_options *options,
                      const struct upstream *like);
