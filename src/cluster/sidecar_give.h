/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gives slots away that another node owns now. Stops serving them when the
 * owner's daemon asks, forgets them when that daemon holds them, and deletes
 * their keys later.
 */
#pragma once

#include "cluster/sidecar_hooks.h"

struct sidecar;

/* Does what sidecar_fence (sidecar.h) does, but does not publish the change. */
struct sidecar_answer sidecar_give_fence(struct sidecar *sidecar,
                                         const struct sidecar_ask *ask,
                                         bool leased, bool empty,
                                         struct slot_set *ret_granted,
                                         uint64_t now_ms);

/* Handles that our node has lost this slot to the node of this peer. If the
 * slot was served under a lease, we serve it for some more time. After that,
 * commands on it wait, so that no client is redirected to the new owner's
 * daemon before that daemon can know that its node owns the slot. */
void sidecar_give_lose(struct sidecar *sidecar, unsigned slot, uint16_t owner,
                       bool leased, uint64_t now_ms);

/* Handles that a slot that was not ours has another owner now. If we exported
 * the slot, commands wait until the new owner's daemon comes, as for a slot
 * that our node has lost. If we gave it away, they wait for at most half of a
 * lease. In both cases the slot is no longer exported. In all other cases
 * nothing changes, and this returns false. */
bool sidecar_give_pass(struct sidecar *sidecar, unsigned slot, uint64_t now_ms);

/* Ends the waiting of commands on lost slots when it is due. */
void sidecar_give_await(struct sidecar *sidecar, uint64_t now_ms);

/* Forgets slots that the daemon of their owner holds (rule 4 of sidecar.h). */
void sidecar_give_forget(struct sidecar *sidecar, uint64_t now_ms);

/* Notes, on a server that follows, that its copy is outdated. A leader whose
 * data was gone may have fetched our copy. It continues with another log at the
 * same epoch, so copies of that log are newer than ours, however long ours is.
 */
void sidecar_give_outdate(struct sidecar *sidecar, uint64_t now_ms);

/* sidecar_give_let_go() does what sidecar_let_go (sidecar.h) does, but does not
 * publish the change. Then sidecar_give_gone() forgets the slots, or
 * sidecar_give_keep_on() exports them again. */
bool sidecar_give_let_go(struct sidecar *sidecar, const struct slot_set *set,
                         struct slot_set *ret_exported, char *ret_reason,
                         size_t size);
void sidecar_give_keep_on(struct sidecar *sidecar,
                          const struct slot_set *exported);
void sidecar_give_gone(struct sidecar *sidecar, const struct slot_set *set,
                       uint64_t now_ms);

/* Takes the slots that our node owns again out of the forgotten ones. */
void sidecar_give_regain(struct sidecar *sidecar);

/* Deletes the keys of forgotten slots when that is due. */
void sidecar_give_drop(struct sidecar *sidecar, uint64_t now_ms);

/* Cancels the deletion of the keys of forgotten slots. */
void sidecar_give_reset(struct sidecar *sidecar);
