/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Follows a node of a cluster: decides which slots this daemon serves, from
 * which daemon it fetches their data, and which one it follows. A state machine
 * of loop 0 without I/O or a clock of its own, like repl/primary.h; the
 * simulator of tests/unit/cluster links this same object. By four rules, no
 * daemon reports an item as absent without having the slot's complete data:
 *
 * 1. A slot is served only while the node beside the daemon owns it, and the
 *    daemon holds it (holdings.h) at the epoch of that ownership.
 * 2. A daemon that gains a slot first finds who holds it. It fetches the data
 *    (claim.h): copies while the holder goes on, then fences the holder, takes
 *    the rest, notes on the disk that it holds the slot, and serves.
 * 3. A holder that was fenced does not serve the slot again, unless it learns
 *    from all others that nobody holds it at a higher epoch (survey.h).
 * 4. A holder forgets a slot, and deletes its keys, only when the owner's
 *    daemon holds it at a higher epoch.
 *
 * A replica holds what the daemon that it follows holds (sidecar_copy.h). When
 * its node is promoted, it fences that daemon and takes the rest over its
 * ordinary link.
 */
#pragma once

#include "cluster/sidecar_hooks.h"

struct sidecar;

/* Makes a sidecar. start: the holdings that were read from the file in dir
 * (holdings.h), or all zeros; copied. */
struct sidecar *sidecar_new(const struct sidecar_hooks *hooks,
                            const struct holdings *start);
void sidecar_free(struct sidecar *sidecar); /* NULL is fine */
void sidecar_set_options(struct sidecar *sidecar,
                         const struct sidecar_options *options);

/* ---- events -------------------------------------------------------------- */

/* Handles an answer of the neighbour. The topology is borrowed until the next
 * call. leased: whether a lease from earlier answers holds. Without a lease, a
 * slot that turns out to be lost may have been served elsewhere for long. */
void sidecar_polled(struct sidecar *sidecar, const struct topology *topology,
                    bool leased, uint64_t now_ms);

/* Notes whether our data is older than a replica's (roles/grace.h). While it
 * is, our slots count as missing. */
void sidecar_set_behind(struct sidecar *sidecar, bool behind);

/* Handles the end of the lease: other daemons may have served our slots
 * meanwhile. */
void sidecar_lapsed(struct sidecar *sidecar, uint64_t now_ms);

/* Does what is due. Call it about every 50 ms; more often while sidecar_rests()
 * is false; and when a text of holdings may have reached the disk. */
void sidecar_tick(struct sidecar *sidecar, uint64_t now_ms);

/* Returns whether nothing is under way that more ticks would speed up. */
bool sidecar_rests(const struct sidecar *sidecar);

void sidecar_answered(struct sidecar *sidecar, uint64_t number,
                      const struct sidecar_answer *answer, uint64_t now_ms);
/* Handles a message on the link to our leader. It says what the leader held at
 * the present end of our log. */
void sidecar_told(struct sidecar *sidecar, const struct holdings *holdings,
                  uint64_t now_ms);
void sidecar_pull_is_near(struct sidecar *sidecar, uint64_t now_ms);
/* Handles the loss of the link to the source; the caller dials it again. Asks
 * the source anew: if it has restarted, it does not execute our commands with
 * ASKING before that. Until it answers, no client is sent there. */
void sidecar_pull_broke(struct sidecar *sidecar, uint64_t now_ms);
void sidecar_pull_ended(struct sidecar *sidecar, bool good, const char *reason,
                        uint64_t now_ms);

/* Publishes the slots' states again, because publishing failed, or because an
 * option or a file that it uses has changed. */
void sidecar_refresh(struct sidecar *sidecar);

/* ---- requests of other daemons and of operators -------------------------- */

/* Returns what we hold, and what we are claiming now. Borrowed until the next
 * event. */
const struct holdings *sidecar_holdings(struct sidecar *sidecar);

/* Answers the question of another daemon whose node owns these slots now, at
 * this epoch (struct sidecar_ask). Stops serving the slots, so that no command
 * changes them after this returns. leased: whether our lease is valid. empty:
 * whether the slots have no keys here. Returns FENCED with *ret_granted (the
 * caller fills in where the log ends), HAS_KEYS, or REFUSED with a reason. The
 * caller sends FENCED only when the holdings of answer.ticket are on the disk
 * (hooks.is_kept), so that a restart knows about the fence. */
struct sidecar_answer sidecar_fence(struct sidecar *sidecar,
                                    const struct sidecar_ask *ask, bool leased,
                                    bool empty, struct slot_set *ret_granted,
                                    uint64_t now_ms);

/* Returns whether an operator may declare that the data of slots is lost: only
 * if all of them are missing. leased: whether our lease is valid. False:
 * ret_reason says why. */
bool sidecar_may_force(const struct sidecar *sidecar,
                       const struct slot_set *set, bool leased,
                       char *ret_reason, size_t size);

/* Executes such a declaration: the slots are served with the data that there
 * is, as soon as a survey has ended and the file says that we hold them.
 * sidecar_may_force must be true. candidates: one for this server, and one for
 * each server that has answered; sets `chosen` in each. Of each slot, takes the
 * data that a server holds at the highest epoch. If even later data was lost, a
 * copy on a server that does not hold the slot is taken instead, if it has more
 * items. from: if not "", the data of the server beside the node `from` is
 * taken in any case. False: that server has no data of the slots; nothing has
 * changed, and ret_reason says why. */
struct candidate;
bool sidecar_force_serve(struct sidecar *sidecar, const struct slot_set *set,
                         const char *from, struct candidate *candidates,
                         char *ret_reason, size_t size);

/* Forget slots that no other server takes over, by order of an operator. There
 * are two steps, so that no command changes the slots while the caller saves
 * their filters. sidecar_let_go() returns false, with a reason, if it is
 * impossible; the caller passes its *ret_exported to sidecar_let_go_end(),
 * which forgets the slots, or, if they were not saved, serves them as before.
 */
bool sidecar_let_go(struct sidecar *sidecar, const struct slot_set *set,
                    struct slot_set *ret_exported, char *ret_reason,
                    size_t size);
void sidecar_let_go_end(struct sidecar *sidecar, const struct slot_set *set,
                        const struct slot_set *exported, bool saved,
                        uint64_t now_ms);

/* Returns whether a full synchronization from our leader may replace the data
 * here. history: the present history of the leader's log. A leader that has
 * come back without its data first takes it from us. If this returns false, try
 * again later. */
bool sidecar_may_copy(struct sidecar *sidecar, const char *history,
                      uint64_t now_ms);

/* Returns how long, in milliseconds, clients waited for the slots that were
 * last taken over: from the question to their holder until they were served. */
uint64_t sidecar_cutover_ms(const struct sidecar *sidecar);

/* Returns whether this server follows the daemon beside that node. */
bool sidecar_follows(const struct sidecar *sidecar, const char *node);
