/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLIENT PAUSE: for a time, all commands wait, or only those that may change
 * data. They wait before they run, so that replies stay in order and nothing is
 * lost. Expired keys are not removed while writes are paused. SHUTDOWN and
 * FAILOVER pause writes as well, and a save that cannot catch up pauses the
 * writes that outrun it; the four pauses do not affect each other.
 *
 * A pause begins and ends under the raised gate: once PAUSE is answered, no
 * paused command is still running.
 */
#pragma once

#include "engine/observe.h"

enum {
    PAUSE_WRITES = CMD_WRITE | CMD_MAY_REPLICATE,
    PAUSE_ALL = INT32_MAX /* commands without any flag, too */
};

/* Begin and end a pause, under the raised gate. holds: commands with one of
 * these flags wait. pause_begin never shortens a running pause, and commands
 * that wait already go on waiting. */
void pause_begin(struct service *service, enum pause_cause cause,
                 uint64_t for_ms, uint32_t holds);
void pause_end(struct service *service, enum pause_cause cause);

/* Do what pause_is_on() and pause_waits() do, but read the clock, so that a
 * pause ends on time. The first may be called on any thread, the second inside
 * a section of the gate. */
bool pause_is_on_now(const struct service *service);
bool pause_waits_now(const struct service *service, uint32_t flags);
static inline bool
pause_is_on(const struct service *service)
{
    return __builtin_expect((observed_by(service) & OBSERVED_PAUSE) != 0, 0) &&
           pause_is_on_now(service);
}

/* Returns whether a command with these flags has to wait. Inside a section of
 * the gate. */
static inline bool
pause_waits(const struct service *service, uint32_t flags)
{
    return __builtin_expect((observed_by(service) & OBSERVED_PAUSE) != 0, 0) &&
           pause_waits_now(service, flags);
}

/* Returns whether a command of a reserved connection (reserved-clients,
 * admin-port) has to wait. CLIENT PAUSE does not stop these connections; the
 * other pauses do. */
bool pause_waits_operator(const struct service *service, uint32_t flags);

/* Clears the flag of a pause that has ended. Loop 0 calls it from time to time,
 * inside a section of the gate. */
void pause_forget(struct service *service);
