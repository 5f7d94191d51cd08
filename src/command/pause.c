/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The flag says that there may be a pause, the clock whether there is one.
 */
#include "command/pause.h"

#include "base/clock.h"

static uint64_t
now_ms(void)
{
    return clock_mono_ns() / 1000000;
}

void
pause_begin(struct service *service, uint64_t for_ms, bool all)
{
    uint64_t now = now_ms();
    uint64_t until = for_ms < UINT64_MAX - now ? now + for_ms : UINT64_MAX;

    if (pause_is_on(service)) {
        uint64_t before = atomic_load(&service->pause_until_ms);

        all = all || atomic_load(&service->pause_all);
        until = until > before ? until : before;
    }
    atomic_store(&service->pause_until_ms, until);
    atomic_store(&service->pause_all, all);
    observe_flag(service, OBSERVED_PAUSE, true);
}

void
pause_end(struct service *service)
{
    observe_flag(service, OBSERVED_PAUSE, false);
    if (service->wake_loops != NULL) {
        service->wake_loops(service->ctx);
    }
}

bool
pause_is_on_now(const struct service *service)
{
    return now_ms() < atomic_load(&service->pause_until_ms);
}

void
pause_forget(struct service *service)
{
    if ((observed_by(service) & OBSERVED_PAUSE) != 0 &&
        !pause_is_on_now(service)) {
        observe_flag(service, OBSERVED_PAUSE, false);
    }
}
