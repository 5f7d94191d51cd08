/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Follows a node of a cluster: decides which slots this daemon serves, from
 * whom it fetches their data, whom it follows. A state machine of loop 0
 * without I/O or a clock of its own, like repl/primary.h; the simulator of
 * tests/unit/cluster links this same object. Four rules keep the promise that
 * no daemon tells of an absent item without the slot's complete data:
 *
 * 1. A slot is served only while the node beside the daemon owns it, and the
 *    daemon holds it (holdings.h) at that ownership.
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

/* start: what the file in dir says, or zeros. Copied. */
struct sidecar *sidecar_new(const struct sidecar_hooks *hooks,
                            const struct holdings *start);
void sidecar_free(struct sidecar *sidecar); /* NULL is fine */
void sidecar_set_options(struct sidecar *sidecar,
                         const struct sidecar_options *options);

/* ---- events -------------------------------------------------------------- */

/* The neighbour has answered. The topology is borrowed until the next call.
 * leased: whether a lease from earlier answers holds. Without it, a slot that
 * turns out to be lost may have been served elsewhere for long. */
void sidecar_polled(struct sidecar *sidecar, const struct topology *topology,
                    bool leased, uint64_t now_ms);

/* Our data is older than a replica's (roles/grace.h): our slots count as
 * missing until that has ended. */
void sidecar_set_behind(struct sidecar *sidecar, bool behind);

/* The lease has run out: other daemons may have served our slots meanwhile. */
void sidecar_lapsed(struct sidecar *sidecar, uint64_t now_ms);

/* Call it about every 50 ms, more often unless it rests, and when a text of
 * holdings may be on the disk. */
void sidecar_tick(struct sidecar *sidecar, uint64_t now_ms);

/* Whether nothing is under way that ticks would hasten. */
bool sidecar_rests(const struct sidecar *sidecar);

void sidecar_answered(struct sidecar *sidecar, uint64_t number,
                      const struct sidecar_answer *answer, uint64_t now_ms);
/* The server that we follow holds this at the present place of our log, as the
 * link to it says. */
void sidecar_told(struct sidecar *sidecar, const struct holdings *holdings,
                  uint64_t now_ms);
void sidecar_pull_is_near(struct sidecar *sidecar, uint64_t now_ms);
/* The link to the source has ended, and is made anew. A source that has started
 * again does not execute what clients ASK it until it is asked again. */
void sidecar_pull_broke(struct sidecar *sidecar, uint64_t now_ms);
void sidecar_pull_ended(struct sidecar *sidecar, bool good, const char *reason,
                        uint64_t now_ms);

/* Publishes once more, since that has failed, or its options have changed. */
void sidecar_refresh(struct sidecar *sidecar);

/* ---- what other daemons and operators ask -------------------------------- */

/* What we hold, and claim at present. Borrowed until the next event. */
const struct holdings *sidecar_holdings(struct sidecar *sidecar);

/* The daemon beside `node` owns these slots now, at this epoch. Stops serving
 * them, so that no command changes them any more when this returns. leased:
 * whether our lease holds. empty: whether the slots have no keys here. FENCED
 * with *ret_granted (where the log ends is the caller's to fill in), HAS_KEYS,
 * or REFUSED with a reason. An answer FENCED leaves
 * when its ticket is kept, so that a start knows of the fence. */
struct sidecar_answer sidecar_fence(struct sidecar *sidecar,
                                    const struct sidecar_ask *ask, bool leased,
                                    bool empty, struct slot_set *ret_granted,
                                    uint64_t now_ms);

/* Whether an operator may declare that the data of slots is lost: all of them
 * are missing. leased: whether our lease holds. False: ret_reason says why. */
bool sidecar_may_force(const struct sidecar *sidecar,
                       const struct slot_set *set, bool leased,
                       char *ret_reason, size_t size);

/* An operator has declared that: the slots are served with what there is, as
 * soon as a survey has ended and the disk says that we hold them.
 * sidecar_may_force must hold. candidates: what all servers that answer have,
 * this one too; of each, `chosen` is set. The data of the highest epoch is
 * taken, or, if later data was lost, a copy with more items that nobody holds.
 * from: the node whose server's data is taken instead; "": none. False: it has
 * none; nothing has changed, and ret_reason says why. */
struct candidate;
bool sidecar_force_serve(struct sidecar *sidecar, const struct slot_set *set,
                         const char *from, struct candidate *candidates,
                         char *ret_reason, size_t size);

/* An operator lets slots go that no other server takes over, in two steps, so
 * that no command changes them while the owner saves their filters. The first
 * one returns false if that cannot be, with the reason; *ret_exported is for
 * the second one, which forgets them, or, if they are not saved, goes on. */
bool sidecar_let_go(struct sidecar *sidecar, const struct slot_set *set,
                    struct slot_set *ret_exported, char *ret_reason,
                    size_t size);
void sidecar_let_go_end(struct sidecar *sidecar, const struct slot_set *set,
                        const struct slot_set *exported, bool saved,
                        uint64_t now_ms);

/* Whether a full synchronization from the server that we follow may replace
 * what is here. history: of its log now. That server may have come back without
 * what it had, and then takes that from us first. If not, try again. */
bool sidecar_may_copy(struct sidecar *sidecar, const char *history,
                      uint64_t now_ms);

/* How long clients waited for the slots that were taken over last, in
 * milliseconds: from the question to their holder until they were served. */
uint64_t sidecar_cutover_ms(const struct sidecar *sidecar);

/* Whether this server follows the daemon beside that node. */
bool sidecar_follows(const struct sidecar *sidecar, const char *node);
