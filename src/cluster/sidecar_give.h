/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gives slots away that another node owns now: stops serving them when the
 * owner's daemon asks, forgets them when it holds them, and deletes their keys
 * after that.
 */
#pragma once

#include "cluster/sidecar_hooks.h"

struct sidecar;

/* As sidecar_fence (sidecar.h), but does not publish that. */
struct sidecar_answer sidecar_give_fence(struct sidecar *sidecar,
                                         const struct sidecar_ask *ask,
                                         bool leased, bool empty,
                                         struct slot_set *ret_granted,
                                         uint64_t now_ms);

/* Our node has lost this slot to the node of this peer. It is served for some
 * time more, if it was under a lease, and then commands wait: they are not sent
 * to the owner's daemon before that can know what it owns. */
void sidecar_give_lose(struct sidecar *sidecar, unsigned slot, uint16_t owner,
                       bool leased, uint64_t now_ms);

/* A slot that was not ours has another owner than before. If it was exported,
 * commands wait until the owner's daemon comes, as for a slot that was lost; if
 * it was given away, for half of a lease at most. Then nothing is exported any
 * more. If it was neither, nothing changes: false. */
bool sidecar_give_pass(struct sidecar *sidecar, unsigned slot, uint64_t now_ms);

/* Ends that where it is time. */
void sidecar_give_await(struct sidecar *sidecar, uint64_t now_ms);

/* Forgets slots that their owner holds. */
void sidecar_give_forget(struct sidecar *sidecar, uint64_t now_ms);

/* Of a server that follows. A leader whose data was gone may have fetched our
 * copy. It goes on with another log at the same epoch, so copies of that log
 * are newer than ours, however long ours is. */
void sidecar_give_outdate(struct sidecar *sidecar, uint64_t now_ms);

/* As sidecar_let_go (sidecar.h), but does not publish that; and forgets slots
 * that were let go, or exports these again. */
bool sidecar_give_let_go(struct sidecar *sidecar, const struct slot_set *set,
                         struct slot_set *ret_exported, char *ret_reason,
                         size_t size);
void sidecar_give_keep_on(struct sidecar *sidecar,
                          const struct slot_set *exported);
void sidecar_give_gone(struct sidecar *sidecar, const struct slot_set *set,
                       uint64_t now_ms);

/* Our node has lost slots before the copies of them that are here were held.
 * Their source has all of it: the copies go like forgotten slots. */
void sidecar_give_leave(struct sidecar *sidecar, const struct slot_set *set,
                        uint64_t now_ms);

/* Deletes the keys of forgotten slots when it is time. */
void sidecar_give_drop(struct sidecar *sidecar, uint64_t now_ms);

/* Their keys stay. */
void sidecar_give_reset(struct sidecar *sidecar);
