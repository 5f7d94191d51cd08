/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLIENT PAUSE: for a time, all commands wait, or those that may change data.
 * They wait before they run, so that replies stay in order and nothing is lost.
 * Expired keys are not removed meanwhile. SHUTDOWN and FAILOVER pause writes as
 * well; the three pauses do not affect each other.
 *
 * A pause begins and ends under the raised gate: once PAUSE is answered, no
 * paused command is still running.
 */
#pragma once

#include "engine/observe.h"

/* Under the raised gate. pause_begin never shortens a running pause, nor
 * narrows it from all commands to writes. */
void pause_begin(struct service *service, enum pause_cause cause,
                 uint64_t for_ms, bool all);
void pause_end(struct service *service, enum pause_cause cause);

/* By the clock, so that a pause ends on time. Any thread. */
bool pause_is_on_now(const struct service *service);
bool pause_holds_all_now(const struct service *service);
static inline bool
pause_is_on(const struct service *service)
{
    return __builtin_expect((observed_by(service) & OBSERVED_PAUSE) != 0, 0) &&
           pause_is_on_now(service);
}

/* Returns whether a command with these flags has to wait. Inside a section of
 * the gate. */
static inline bool
pause_holds(const struct service *service, uint32_t flags)
{
    return pause_is_on(service) &&
           ((flags & (CMD_WRITE | CMD_MAY_REPLICATE)) != 0 ||
            pause_holds_all_now(service));
}

/* Whether a command of a reserved connection (reserved-clients, admin-port)
 * must wait. CLIENT PAUSE does not stop these connections; SHUTDOWN and
 * FAILOVER do, so that no write is lost. */
bool pause_holds_operator(const struct service *service, uint32_t flags);

/* Clears the flag of a pause that has ended. From time to time, by loop 0
 * inside a section of the gate. */
void pause_forget(struct service *service);
