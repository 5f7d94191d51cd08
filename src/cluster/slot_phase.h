/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What this server does about a slot. A slot has one phase. It depends on who
 * owns the slot, on what other daemons ask, and on how far a claim is. The
 * phase decides what commands see (sidecar_show.h).
 *
 *   phase     our node owns it  commands
 *   AWAY      no    are sent to its owner
 *   WANTED    yes   wait: it is not known from whom to fetch it
 *   FOUND     yes   wait: the source is known, and a claim follows
 *   CLAIMED   yes   wait, or are sent to the source while it is copied
 *   MISSING   yes   CLUSTERDOWN: its newest data cannot be had
 *   SERVED    yes   run
 *   SPOKEN    yes   run: the next owner's daemon has come, our node lags behind
 *   LEAVING   no    run until half of a lease is over
 *   AWAITED   no    wait: its owner's daemon may not know of its ownership
 *   PASSED    no    wait: it has another owner than the one that has come
 *   EXPORTED  no    run after ASKING: its owner's daemon sends them here
 */
#pragma once

#include <stdbool.h>

enum slot_phase {
    PHASE_AWAY,
    PHASE_WANTED,
    PHASE_FOUND,
    PHASE_CLAIMED,
    PHASE_MISSING,
    PHASE_SERVED,
    PHASE_SPOKEN,
    PHASE_LEAVING,
    PHASE_AWAITED,
    PHASE_PASSED,
    PHASE_EXPORTED,
    SLOT_PHASES
};

/* Returns whether a slot may go from one phase to the other. */
bool slot_phase_leads(enum slot_phase from, enum slot_phase to);

/* Returns whether our node owns slots of this phase. */
bool slot_phase_is_owned(enum slot_phase phase);

const char *slot_phase_name(enum slot_phase phase);
