/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Exchanges the data of two keyspaces, and discards one of them without waiting
 * for its filters to be freed.
 */
#pragma once

#include "keyspace/keyspace.h"

/* Exchanges all data of two keyspaces, with times to live and last uses. Their
 * options are equal except `expiry`, and only the caller uses OTHER. For WATCH,
 * all names of both count as changed, missing ones too. Positions stay: set
 * them afterwards. The cost depends on the number of stripes and databases, not
 * of keys. Under the raised gate of KS. */
void keyspace_exchange(struct keyspace *ks, struct keyspace *other);

/* Frees OTHER, which no thread uses any more, without the wait of
 * keyspace_free: the reaper of KS frees its entries. Any thread, also while KS
 * is in use; NULL is fine. */
void keyspace_discard(struct keyspace *ks, struct keyspace *other);
