/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that took long: told to the slow log and to the latency monitor.
 * While none is as slow as service->slow_ns, it is one comparison.
 */
#pragma once

#include "admin/latency.h"
#include "engine/request.h"

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

/* Passes on a command for which slow_is. */
void slow_note(const struct request *req, uint64_t took_ns);

/* A command, or a part of one, ends: it may be the longest handler, or have
 * held its locks longest. What EXEC runs counts with EXEC, as one. */
static inline void
slow_note_longest(struct request *req, uint64_t now_ns)
{
    struct worker *worker = req->worker;
    struct longest_span span = longest_span_since(worker->now_ns);

    if (!worker->in_exec) {
        if (worker->held.since_ns != 0) {
            span = worker->held;
            worker->held.since_ns = 0;
            longest_end_at(LONGEST_LOCK, &span, now_ns, req->command->name);
        }
        longest_end_at(LONGEST_HANDLER, &span, now_ns, req->command->name);
    }
    longest_turn(now_ns);
}
