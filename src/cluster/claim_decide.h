/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is to be done about a slot that our node owns and that is not served:
 *
 * - We hold it at our node's epoch, were not fenced, and know of no claim at a
 *   higher one: nobody else can have owned it since. It is served at once.
 * - The node that owned it before is known: its daemon is asked, which saves a
 *   survey.
 * - Else a survey that began later tells. Its best holder is asked, if that is
 *   newer than what we hold; if not, ours is the newest, and is served. A copy
 *   is only taken when its original has been silent for long.
 * - Nobody holds it. If nobody ever has, as all daemons say, it is new and
 *   empty.
 * - Else, or if a daemon is silent that may have newer data, the slot is
 *   missing: the operator decides, or that daemon comes back.
 */
#pragma once

#include "cluster/sidecar_state.h"

enum want { WANT_WAITS, WANT_SERVE, WANT_KEEP, WANT_CLAIM, WANT_MISSING };

/* Decides about one slot. For WANT_CLAIM its source is set. */
enum want claim_decide(struct sidecar *sidecar, unsigned slot, uint64_t now_ms);
