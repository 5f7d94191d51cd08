/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adopts the keys of a snapshot of slots, which was loaded into a keyspace of
 * its own. Deletes our keys of these slots that the snapshot does not have, and
 * creates the snapshot's keys by commands (replay/inject.h). A filter of up to
 * 1 MiB comes as one RESTORE with its incarnation and expiry. A larger one
 * comes in pieces by BF.LOADCHUNK, unless it is ageing or incomplete: such
 * filters cannot be sent in pieces. Keys of other slots are left out. Loop 0.
 */
#pragma once

#include "base/slot_set.h"
#include "keyspace/keyspace.h"

struct adoption;
struct inject;

/* Begins an adoption, which owns FRESH from now on. At its end the reaper of
 * `ks` frees FRESH. */
struct adoption *adoption_new(struct keyspace *fresh, struct keyspace *ks,
                              struct inject *inject,
                              const struct slot_set *slots);
void adoption_free(struct adoption *adoption);

/* Works for about budget_ns. Inside a section of the gate, with room in the
 * journal. FAILED: what was adopted stays, and the next attempt replaces it. */
enum adoption_state { ADOPTION_RUNS, ADOPTION_DONE, ADOPTION_FAILED };
enum adoption_state adoption_step(struct adoption *adoption, uint64_t budget_ns,
                                  char *ret_reason, size_t reason_size);

uint64_t adoption_keys(const struct adoption *adoption);
uint64_t adoption_bytes(const struct adoption *adoption);
