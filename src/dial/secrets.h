/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gets the hash secrets that this server lacks from primaries and from servers
 * whose slots it claims. Loop 0.
 */
#pragma once

#include "repl/replica_hooks.h"

struct persist;

/* Serve `wants` and `learn` of struct replica_hooks, for replicas and pulls. */
bool secrets_wants(uint64_t fingerprint);
enum replica_learned secrets_learn(struct persist *persist,
                                   uint64_t fingerprint, const char *digits);

/* Returns whether a group of a log needs a secret that is not here; if so, no
 * command of it may be executed. Writes which secret it is. */
bool secrets_are_missing(struct slice commands, char *ret_reason,
                         size_t reason_size);

/* Reads the secrets that an operator has put into dir (SIGHUP). Returns whether
 * there are new ones. */
bool secrets_reload(struct persist *persist);
