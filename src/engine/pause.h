/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLIENT PAUSE: for a time, commands that may change data wait, or all of them
 * do. They wait before they are run, so that their replies come in order and
 * nothing is lost; keys whose time is over stay where nobody sees them. The end
 * of the server and FAILOVER pause writes as well: what one of the three begins
 * or ends changes nothing of the others' pauses.
 *
 * It begins and ends under the raised gate: once PAUSE is answered, no command
 * that it holds is running any more.
 */
#pragma once

#include "engine/observe.h"

/* Under the raised gate. A pause that is on is not made shorter, and not
 * narrower. */
void pause_begin(struct service *service, enum pause_cause cause,
                 uint64_t for_ms, bool all);
void pause_end(struct service *service, enum pause_cause cause);

/* Any thread; by the clock, so that it ends on time. */
bool pause_is_on_now(const struct service *service);
bool pause_holds_all_now(const struct service *service);
static inline bool
pause_is_on(const struct service *service)
{
    return __builtin_expect((observed_by(service) & OBSERVED_PAUSE) != 0, 0) &&
           pause_is_on_now(service);
}

/* Whether a command with these flags has to wait. Inside a gate section. */
static inline bool
pause_holds(const struct service *service, uint32_t flags)
{
    return pause_is_on(service) &&
           ((flags & (CMD_WRITE | CMD_MAY_REPLICATE)) != 0 ||
            pause_holds_all_now(service));
}

/* The same for the operator's own connections, which CLIENT PAUSE does not
 * hold: only what the server pauses for itself, so that no write is lost. */
bool pause_holds_operator(const struct service *service, uint32_t flags);

/* Now and then, from loop 0 inside its gate section: forgets one that is
 * over. */
void pause_forget(struct service *service);
