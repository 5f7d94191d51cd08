/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Takes slots over from another server, which stays their only writer until the
 * cut-over: follows that server's log with a snapshot limited to the slots, and
 * makes the same changes here by commands of our own, so that our journal and
 * our replicas have them in the ordinary way.
 *
 *   QUEUED -> CONNECTS -> LOADS -> ADOPTS -> FOLLOWS -> SETTLES -> ended
 *
 * A pull that copies ahead follows until a claim takes it, or slots of it: the
 * rest goes on. Pulls run one at a time: those of claims first, then in the
 * order of their begin. A lost link, a log that does not fit, or a lack of
 * memory lead back to CONNECTS, and to a fresh snapshot: what was adopted
 * before stays until the next snapshot replaces it, and no client may be served
 * it. Only writes of pulls may touch these slots here meanwhile. Loop 0, unless
 * a line says otherwise.
 */
#pragma once

#include "server/pull_hooks.h"

struct pulls;
struct replication;
struct server;

/* A claim has a pull of its own, which does not copy ahead: one at a time. */
enum { PULLS_AHEAD_MAX = 16, PULLS_MAX = PULLS_AHEAD_MAX + 1 };
#define PULLS_AHEAD_TOO_MANY                                                   \
    "16 copies run or wait already: finish or abandon one first"

/* What to take over: slots, from the server at host:port. */
struct pull_source {
    const struct slot_set *slots;
    const char *host;
    unsigned port;
};

/* Begins to copy slots ahead of their claim, from a server to which it logs in
 * as replicas do (masteruser, masterauth, tls-replication). Returns the pull's
 * id, or 0: this server is a replica, its hashes have no slots, another pull
 * has some of the slots, or PULLS_AHEAD_MAX copy ahead; ret_reason says which.
 * A drop of these slots (slot_drop_begin) ends. */
uint64_t pull_ahead(struct server *server, const struct pull_source *source,
                    const struct pull_hooks *hooks, char *ret_reason,
                    size_t reason_size);

/* Keeps of the slots of a source those of which a pull has a copy from there
 * that follows. Returns whether any are left. */
bool pull_copies(const struct server *server, const char *host, unsigned port,
                 struct slot_set *slots);

/* Claims slots: takes over what pull_copies has found, or a copy of just these
 * slots that does not follow yet, or else begins a pull at the head of the
 * queue. Other pulls give up what they have of the slots. Returns an id, or 0
 * with a reason as above. */
uint64_t pull_begin(struct server *server, const struct pull_source *source,
                    const struct pull_hooks *hooks, char *ret_reason,
                    size_t reason_size);

/* The source has fenced the claimed slots (without a claim: all of the pull) at
 * this position of its log: they are here when everything up to there is
 * executed. May be called at any time. False: there is no such pull. */
bool pull_until(struct server *server, uint64_t id, const char *history,
                uint64_t position);

/* Gives a claim up: a pull that copied ahead goes on doing so, another one
 * ends. `ended` is not called. What was adopted stays. False: there is no such
 * pull. */
bool pull_unclaim(struct server *server, uint64_t id);

/* Gives up to copy ahead; what a claim has of the pull goes on. Returns the
 * slots whose copy is of no use any more. False: there is no such pull. */
bool pull_abandon(struct server *server, uint64_t id,
                  struct slot_set *ret_slots);

/* Takes slots out of all pulls: they are held, or come in another way. */
void pull_release(struct server *server, const struct slot_set *slots);

/* Collects the slots of all pulls. */
void pull_slots(const struct server *server, struct slot_set *ret_slots);

/* Fills at most `max`, in the order in which they run. Returns how many there
 * are. */
size_t pull_list(const struct server *server, struct pull_progress *ret_list,
                 size_t max);
const char *pull_state_name(enum pull_state state);

/* ---- for the other files of replication ---------------------------------- */

struct pulls *pulls_new(struct replication *r);
void pulls_free(struct pulls *pulls);

/* Tries again soon, since there is a new hash secret. */
void pulls_hasten(struct pulls *pulls);

/* Goes on with what is due: loaded data, adoption, the cut-over. */
void pulls_look(struct pulls *pulls);
void pulls_tick(struct pulls *pulls);

/* Ends all pulls, without or with their hooks. */
void pulls_stop(struct pulls *pulls);
void pulls_fail(struct pulls *pulls, const char *reason);

/* All data here was replaced: the pull that runs begins anew. */
void pulls_begin_anew(struct pulls *pulls, const char *reason);

/* Reads the options in force. Inside the gate. */
struct replica_options;
struct upstream;
void pulls_set_options(struct pulls *pulls,
                       const struct replica_options *options,
                       const struct upstream *like);
