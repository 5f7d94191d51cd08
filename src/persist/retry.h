/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When to try again after failures: each wait is twice as long as the one
 * before, up to a limit.
 */
#pragma once

#include "base/clock.h"

#include <stdbool.h>

struct retry {
    uint64_t failures; /* in a row */
    uint64_t not_before_ns;
};

static inline void
retry_failed(struct retry *retry, uint64_t first_ns, uint64_t max_ns)
{
    uint64_t wait_ns = first_ns;

    for (uint64_t i = 0; i < retry->failures && wait_ns < max_ns; i++) {
        wait_ns *= 2;
    }
    retry->failures++;
    retry->not_before_ns =
        clock_mono_ns() + (wait_ns < max_ns ? wait_ns : max_ns);
}

static inline bool
retry_is_due(const struct retry *retry)
{
    return clock_mono_ns() >= retry->not_before_ns;
}
