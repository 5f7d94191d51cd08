/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is to be done about a slot that our node owns and that is not served:
 *
 * - We hold it at our node's epoch, were not fenced, and know of no claim at a
 *   higher epoch. Then no other node can have owned it since: we serve it at
 *   once.
 * - The node that owned it before is known. Its daemon is asked, which saves a
 *   survey.
 * - Otherwise a survey that begins after the slot was wanted decides. If a
 *   daemon holds newer data than we, that daemon is asked; if not, we serve our
 *   data. A copy is taken only when its original has been silent for long.
 * - The survey finds no holder. If all daemons say that there has never been
 *   one, the slot is new and empty.
 * - There was a holder, or a silent daemon may have newer data. The slot is
 *   missing until the operator decides, or that daemon comes back.
 */
#pragma once

#include "cluster/sidecar_state.h"

enum want { WANT_WAITS, WANT_SERVE, WANT_KEEP, WANT_CLAIM, WANT_MISSING };

/* Decides about one slot. For WANT_CLAIM, the source of the slot is
 * set. */
enum want claim_decide(struct sidecar *sidecar, unsigned slot, uint64_t now_ms);
