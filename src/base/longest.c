/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutex lets a figure and its name change together. It is locked only for a
 * new maximum and for a query.
 */
#include "base/longest.h"

#include "base/clock.h"

#include <pthread.h>
#include <stddef.h>

_Thread_local struct longest_span longest_turn_read;

_Atomic uint64_t longest_mark[LONGEST_KINDS] = { LONGEST_FLOOR_NS,
                                                 LONGEST_FLOOR_NS };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct longest_figure figures[LONGEST_KINDS]; /* guarded by mutex */

void
longest_turn_slow(uint64_t now_ns)
{
    longest_turn_read = (struct longest_span){ now_ns, clock_thread_cpu_ns() };
}

/* Leaves longest_turn_read as it is, since other spans may be open. A walk
 * begins a span at each lock; without `begun`, a long walk or a thread without
 * turns would read the CPU clock each time. */
struct longest_span
longest_begin(void)
{
    static _Thread_local struct longest_span begun; /* the last read here */
    struct longest_span span = { clock_mono_ns(), longest_turn_read.cpu_ns };

    if (span.since_ns - longest_turn_read.since_ns > LONGEST_APART_NS) {
        if (span.since_ns - begun.since_ns > LONGEST_APART_NS) {
            begun =
                (struct longest_span){ span.since_ns, clock_thread_cpu_ns() };
        }
        span.cpu_ns = begun.cpu_ns;
    }
    return span;
}

static void
keep_figure(enum longest which, uint64_t ns, const char *what)
{
    pthread_mutex_lock(&mutex);
    if (ns > figures[which].ns) {
        figures[which] = (struct longest_figure){ ns, what };
        atomic_store_explicit(&longest_mark[which],
                              ns > LONGEST_FLOOR_NS ? ns : LONGEST_FLOOR_NS,
                              memory_order_relaxed);
    }
    pthread_mutex_unlock(&mutex);
}

void
longest_end_slow(enum longest which, const struct longest_span *span,
                 uint64_t now_ns, const char *what)
{
    uint64_t wall_ns = now_ns - span->since_ns;
    uint64_t cpu_ns = clock_thread_cpu_ns() - span->cpu_ns;

    keep_figure(which, cpu_ns < wall_ns ? cpu_ns : wall_ns, what);
}

void
longest_end(enum longest which, const struct longest_span *span,
            const char *what)
{
    longest_end_at(which, span, clock_mono_ns(), what);
}

struct longest_figure
longest_get(enum longest which)
{
    struct longest_figure figure;

    pthread_mutex_lock(&mutex);
    figure = figures[which];
    pthread_mutex_unlock(&mutex);
    if (figure.what == NULL) {
        figure.what = "";
    }
    return figure;
}

void
longest_reset(void)
{
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < LONGEST_KINDS; i++) {
        figures[i] = (struct longest_figure){ 0, "" };
        atomic_store_explicit(&longest_mark[i], LONGEST_FLOOR_NS,
                              memory_order_relaxed);
    }
    pthread_mutex_unlock(&mutex);
}
