/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looking ahead: a command on one of many filters waits for memory four times,
 * for the table, the entry, the filter's layers and its lines. Keys that are
 * looked up together wait for each of these together.
 */
#pragma once

#include "keyspace/keyspace.h"

#include <stddef.h>

enum { KEYSPACE_AHEAD_MAX = 64 };

/* Fetches the table, the entry and the structs of the filter's layers of each
 * key, at most KEYSPACE_AHEAD_MAX, and sets key.entry: NULL for a missing key;
 * an expired one counts as present. Call it under the locks of all stripes of
 * the keys, and keep these while you use the keys. Commands may change a table:
 * keyspace_find() and the like then ignore key.entry and search again. The
 * caller may use key.entry itself until the first of these commands. */
void keyspace_look_ahead(const struct keyspace *ks, struct key *keys,
                         size_t count);
