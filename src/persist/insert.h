/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes a key of a snapshot's record, for a start, a reload and a transfer. The
 * caller owns the keyspace alone.
 */
#pragma once

#include "keyspace/keyspace.h"
#include "persist/snapshot.h"

/* Inserts the filter, which was made in env and is the keyspace's afterwards.
 * False: it is freed (at once, or with the keyspace), and ret_why says why, as
 * part of a sentence. */
MUST_CHECK bool insert_record(struct keyspace *ks, const struct bloom_env *env,
                              const struct snapshot_record *record,
                              struct bloom *bloom, char *ret_why,
                              size_t why_size);
