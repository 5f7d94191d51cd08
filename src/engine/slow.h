/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Passes commands that took long on to the slow log and the latency monitor. A
 * command faster than service->slow_ns costs one comparison.
 */
#pragma once

#include "engine/request.h"
#include "measure/latency.h"

/* Takes over the options: sets service->slow_ns, the length of the slow log,
 * and whether histograms of command times are kept. Called at the start, and
 * under the raised gate. */
void slow_apply_conf(struct service *service);

/* Passes on an event other than a command. Any thread. */
void slow_event(const struct service *service, enum latency_event event,
                uint64_t took_ns);

/* Returns whether the slow log or the latency monitor wants a command that took
 * so long. */
static inline bool
slow_is(const struct service *service, uint64_t took_ns)
{
    return took_ns >=
           atomic_load_explicit(&service->slow_ns, memory_order_relaxed);
}

/* Passes on a command for which slow_is() is true. */
void slow_note(const struct request *req, uint64_t took_ns);

/* Compares a command that has ended, or a part of it, with the longest handler
 * and the longest lock so far (base/longest.h). An EXEC and its commands count
 * as one. */
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
