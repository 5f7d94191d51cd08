/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether a command may run: is the request as it must be, and is the server
 * in a state for it. Both also hold for commands that MULTI queues. Pure but
 * for worker->detail.
 */
#pragma once

#include "engine/request.h"

/* What is wrong with the request: an unknown name, the arity, no AUTH, not
 * allowed in MULTI. words: of the name. */
MUST_CHECK enum err admit_request(struct request *req, unsigned words);

/* What the server cannot do now, in Redis's order: memory, disk, replicas, the
 * role, stale data, loading. ERR_AGAIN: it has to wait for the end of CLIENT
 * PAUSE, and is parked. Everything is possible for who obeys. Inside a gate
 * section. */
MUST_CHECK enum err admit_now(const struct request *req);
