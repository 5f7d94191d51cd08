/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a record of a snapshot becomes a key: what a start, a reload and a
 * transfer have in common. The caller has the keyspace to itself.
 */
#pragma once

#include "keyspace/keyspace.h"
#include "persist/snapshot.h"

/* Takes the filter over, which came from env. False: it is freed (at once, or
 * with the keyspace), and ret_why says why, as a piece of a sentence. */
MUST_CHECK bool insert_record(struct keyspace *ks, const struct bloom_env *env,
                              const struct snapshot_record *record,
                              struct bloom *bloom, char *ret_why,
                              size_t why_size);
