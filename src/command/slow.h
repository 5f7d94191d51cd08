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

/* Whether anybody wants to know. */
static inline bool
slow_is(const struct service *service, uint64_t took_ns)
{
    return took_ns >=
           atomic_load_explicit(&service->slow_ns, memory_order_relaxed);
}

void slow_took_told(const struct request *req, uint64_t took_ns);
static inline void
slow_took(const struct request *req, uint64_t took_ns)
{
    if (__builtin_expect(slow_is(req->service, took_ns), 0)) {
        slow_took_told(req, took_ns);
    }
}
