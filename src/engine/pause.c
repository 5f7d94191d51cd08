/* SPDX-License-Identifier: BSD-3-Clause
 *
 * OBSERVED_PAUSE says that there may be a pause; the clock says whether there
 * is one.
 */
#include "engine/pause.h"

#include "base/clock.h"

static uint64_t
later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void
add_up(struct service *service)
{
    uint64_t until = 0;

    for (size_t i = 0; i < PAUSE_CAUSES; i++) {
        until = later(until, service->pauses[i].until_ms);
    }
    atomic_store(&service->pause_until_ms, until);
}

void
pause_begin(struct service *service, enum pause_cause cause, uint64_t for_ms,
            uint32_t holds)
{
    struct pause *pause = &service->pauses[cause];
    uint64_t now = clock_mono_ms();
    uint64_t until = for_ms < UINT64_MAX - now ? now + for_ms : UINT64_MAX;

    pause->holds = holds | (now < pause->until_ms ? pause->holds : 0);
    pause->until_ms = later(pause->until_ms, until);
    add_up(service);
    observe_flag(service, OBSERVED_PAUSE, true);
}

void
pause_end(struct service *service, enum pause_cause cause)
{
    service->pauses[cause] = (struct pause){ .until_ms = 0 };
    add_up(service);
    observe_flag(service, OBSERVED_PAUSE, pause_is_on_now(service));
    service_wake_loops(service);
}

bool
pause_is_on_now(const struct service *service)
{
    return clock_mono_ms() < atomic_load(&service->pause_until_ms);
}

/* Returns whether a command with these flags must wait for a pause of the cause
 * `from`, or of a later cause in the enum. */
static bool
is_held(const struct service *service, enum pause_cause from, uint32_t flags)
{
    uint64_t now = clock_mono_ms();

    for (size_t i = from; i < PAUSE_CAUSES; i++) {
        const struct pause *pause = &service->pauses[i];

        if (now < pause->until_ms &&
            (pause->holds == PAUSE_ALL || (pause->holds & flags) != 0)) {
            return true;
        }
    }
    return false;
}

bool
pause_waits_now(const struct service *service, uint32_t flags)
{
    return is_held(service, PAUSE_BY_CLIENT, flags);
}

bool
pause_waits_operator(const struct service *service, uint32_t flags)
{
    return is_held(service, PAUSE_BY_CLIENT + 1, flags);
}

void
pause_forget(struct service *service)
{
    if ((observed_by(service) & OBSERVED_PAUSE) != 0 &&
        !pause_is_on_now(service)) {
        observe_flag(service, OBSERVED_PAUSE, false);
    }
}
