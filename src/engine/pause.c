/* SPDX-License-Identifier: BSD-3-Clause
 *
 * OBSERVED_PAUSE says that there may be a pause, the clock whether there is
 * one.
 */
#include "engine/pause.h"

#include "base/clock.h"

static uint64_t
now_ms(void)
{
    return clock_mono_ns() / 1000000;
}

static uint64_t
later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void
add_up(struct service *service)
{
    uint64_t until = 0;
    uint64_t all_until = 0;

    for (size_t i = 0; i < PAUSE_CAUSES; i++) {
        const struct pause *pause = &service->pauses[i];

        until = later(until, pause->until_ms);
        all_until = later(all_until, pause->all ? pause->until_ms : 0);
    }
    atomic_store(&service->pause_until_ms, until);
    atomic_store(&service->pause_all_until_ms, all_until);
}

void
pause_begin(struct service *service, enum pause_cause cause, uint64_t for_ms,
            bool all)
{
    struct pause *pause = &service->pauses[cause];
    uint64_t now = now_ms();
    uint64_t until = for_ms < UINT64_MAX - now ? now + for_ms : UINT64_MAX;

    pause->all = all || (pause->all && now < pause->until_ms);
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
    if (service->wake_loops != NULL) {
        service->wake_loops(service->ctx);
    }
}

bool
pause_is_on_now(const struct service *service)
{
    return now_ms() < atomic_load(&service->pause_until_ms);
}

bool
pause_holds_all_now(const struct service *service)
{
    return now_ms() < atomic_load(&service->pause_all_until_ms);
}

bool
pause_holds_operator(const struct service *service, uint32_t flags)
{
    uint64_t now = now_ms();
    bool changes = (flags & (CMD_WRITE | CMD_MAY_REPLICATE)) != 0;

    for (size_t i = 0; i < PAUSE_CAUSES; i++) {
        const struct pause *pause = &service->pauses[i];

        if (i != PAUSE_BY_CLIENT && now < pause->until_ms &&
            (changes || pause->all)) {
            return true;
        }
    }
    return false;
}

void
pause_forget(struct service *service)
{
    if ((observed_by(service) & OBSERVED_PAUSE) != 0 &&
        !pause_is_on_now(service)) {
        observe_flag(service, OBSERVED_PAUSE, false);
    }
}
