/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes the groups of the journal at the start of the server, on the
 * loader's thread, which has the keyspace to itself: no gate, no locks. See
 * obey.h.
 */
#pragma once

#include "engine/service.h"

#include <stdbool.h>
#include <stddef.h>

struct replay;

struct replay *replay_new(struct service *service);
void replay_free(struct replay *replay);

/* Executes a group with the rules of obey_group. It is called as a hook of
 * struct recover_replay; ctx is the replay. */
bool replay_group(void *ctx, struct slice commands, char *ret_reason,
                  size_t reason_size);
