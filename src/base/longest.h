/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The longest CPU time of one call of a handler, and the longest time for which
 * a lock was held, in the whole process since the last reset. Any thread.
 *
 * Reading a thread's CPU clock is a system call, too expensive for each
 * command. The monotonic clock is read anyway, and a span has at most as much
 * CPU time as wall time. So the CPU clock is read at the end of a span only if
 * its wall time exceeds the maximum so far. For the beginning of the span, the
 * value is used that the thread noted at its last turn, at most
 * LONGEST_APART_NS before. The result is the smaller of the wall time and the
 * CPU time since that turn: never too low, and at most LONGEST_APART_NS too
 * high.
 *
 * A kernel without CONFIG_IRQ_TIME_ACCOUNTING adds the time of its interrupts
 * to the thread that they interrupt. While a disk is written, a thread that
 * only counts shows gaps of 2.6 ms of CPU time by this clock, with no lock and
 * no page fault. So a figure of that size may be the machine's:
 * bench/persist.py measures such a thread beside the server (gap).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum longest { LONGEST_HANDLER, LONGEST_LOCK, LONGEST_KINDS };

enum {
    LONGEST_APART_NS = 500 * 1000,
    LONGEST_FLOOR_NS = 200 * 1000 /* shorter spans are ignored */
};

struct longest_span {
    uint64_t since_ns; /* monotonic */
    uint64_t cpu_ns;   /* of the thread, at that time or a little before */
};

/* Both clocks, as this thread read them at the last turn that it noted. */
extern _Thread_local struct longest_span longest_turn_read;

/* The wall time that a span must exceed to be measured. */
extern _Atomic uint64_t longest_mark[LONGEST_KINDS];

/* Notes a turn, for the spans that begin after it. The caller has just read the
 * monotonic clock, and has no open span. */
void longest_turn_slow(uint64_t now_ns);
static inline void
longest_turn(uint64_t now_ns)
{
    if (__builtin_expect(now_ns - longest_turn_read.since_ns > LONGEST_APART_NS,
                         0)) {
        longest_turn_slow(now_ns);
    }
}

/* Returns a span that began at since_ns, no earlier than the last turn. */
static inline struct longest_span
longest_span_since(uint64_t since_ns)
{
    return (struct longest_span){ since_ns, longest_turn_read.cpu_ns };
}

/* Begins a span, also in a thread without turns. Spans may be nested. */
struct longest_span longest_begin(void);

/* Ends a span. what: a constant text that names the command or the lock. */
void longest_end_slow(enum longest which, const struct longest_span *span,
                      uint64_t now_ns, const char *what);
static inline void
longest_end_at(enum longest which, const struct longest_span *span,
               uint64_t now_ns, const char *what)
{
    if (__builtin_expect(now_ns - span->since_ns >
                             atomic_load_explicit(&longest_mark[which],
                                                  memory_order_relaxed),
                         0)) {
        longest_end_slow(which, span, now_ns, what);
    }
}
void longest_end(enum longest which, const struct longest_span *span,
                 const char *what);

struct longest_figure {
    uint64_t ns;
    const char *what; /* "" while there is none */
};
struct longest_figure longest_get(enum longest which);

/* Resets both maxima. An open span counts when it ends. */
void longest_reset(void);
