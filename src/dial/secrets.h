/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash secrets that this server lacks, of primaries and of servers that it
 * claims slots from. Loop 0.
 */
#pragma once

#include "repl/replica_hooks.h"

struct persist;

/* The hooks of both kinds of link. */
bool secrets_wants(uint64_t fingerprint);
enum replica_learned secrets_learn(struct persist *persist,
                                   uint64_t fingerprint, const char *digits);

/* Returns whether a group of a log needs a secret that is not here: nothing of
 * it may be executed then. Says which one. */
bool secrets_are_missing(struct slice commands, char *ret_reason,
                         size_t reason_size);

/* Reads the secrets that an operator has put into dir (SIGHUP). Returns whether
 * there are new ones. */
bool secrets_reload(struct persist *persist);
