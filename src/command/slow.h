/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that took long: told to the slow log and to the latency monitor.
 * While none is as slow as service->slow_ns, it is one comparison.
 */
#pragma once

#include "admin/latency.h"
#include "command/request.h"

/* The options changed: sets service->slow_ns, the length of the slow log, and
 * whether the times of commands are spread over histograms. At start, and under
 * the raised gate. */
void slow_apply_conf(struct service *service);

/* Something else than a command took so long. Any thread. */
void slow_event(const struct service *service, enum latency_event event,
                uint64_t took_ns);

void slow_took_told(const struct request *req, uint64_t took_ns);
static inline void
slow_took(const struct request *req, uint64_t took_ns)
{
    if (__builtin_expect(took_ns >= atomic_load_explicit(&req->service->slow_ns,
                                                         memory_order_relaxed),
                         0)) {
        slow_took_told(req, took_ns);
    }
}

/* The same for a run, whose time was split evenly. */
static inline void
slow_run_took(const struct request *run, uint32_t count, uint64_t each_ns)
{
    if (__builtin_expect(each_ns >= atomic_load_explicit(&run->service->slow_ns,
                                                         memory_order_relaxed),
                         0)) {
        for (uint32_t i = 0; i < count; i++) {
            slow_took_told(&run[i], each_ns);
        }
    }
}
