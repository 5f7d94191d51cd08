/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The longest CPU time of one call of a handler, and the longest for which a
 * lock was held, in the whole process since the last reset. Any thread.
 *
 * A read of a thread's CPU clock is a system call, too dear for each command;
 * the monotonic clock is read anyway, and no span has more CPU time than wall
 * time. So the CPU clock is read at the end of a span only if that was longer
 * by the wall than the longest yet; and for the beginning of it there is the
 * last turn that this thread has noted, at most LONGEST_APART_NS before. What
 * is kept is the smaller of the wall time and the CPU time since that turn:
 * never too low, and too high by LONGEST_APART_NS at most.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum longest { LONGEST_HANDLER, LONGEST_LOCK, LONGEST_KINDS };

enum {
    LONGEST_APART_NS = 500 * 1000,
    LONGEST_FLOOR_NS = 200 * 1000 /* shorter ones are not looked at */
};

struct longest_span {
    uint64_t since_ns; /* monotonic */
    uint64_t cpu_ns;   /* of the thread, then or a little before */
};

/* When this thread read both clocks last. */
extern _Thread_local struct longest_span longest_turn_read;

/* What the wall time of a span has to exceed before more is done about it. */
extern _Atomic uint64_t longest_mark[LONGEST_KINDS];

/* The monotonic clock was read, and no span is open that began as the last
 * turn: one that begins now can rely on it. */
void longest_turn_told(uint64_t now_ns);
static inline void
longest_turn(uint64_t now_ns)
{
    if (__builtin_expect(now_ns - longest_turn_read.since_ns > LONGEST_APART_NS,
                         0)) {
        longest_turn_told(now_ns);
    }
}

/* A span that began at since_ns, no earlier than the last turn. */
static inline struct longest_span
longest_span_since(uint64_t since_ns)
{
    return (struct longest_span){ since_ns, longest_turn_read.cpu_ns };
}

/* One that begins now, whether this thread notes turns or not. It may lie
 * inside another. */
struct longest_span longest_begin(void);

/* The span ends. what: who or which it was; constant. */
void longest_end_told(enum longest which, const struct longest_span *span,
                      uint64_t now_ns, const char *what);
static inline void
longest_end_at(enum longest which, const struct longest_span *span,
               uint64_t now_ns, const char *what)
{
    if (__builtin_expect(now_ns - span->since_ns >
                             atomic_load_explicit(&longest_mark[which],
                                                  memory_order_relaxed),
                         0)) {
        longest_end_told(which, span, now_ns, what);
    }
}
void longest_end(enum longest which, const struct longest_span *span,
                 const char *what);

struct longest_figure {
    uint64_t ns;
    const char *what; /* "" while there is none */
};
struct longest_figure longest_get(enum longest which);

/* Both begin anew. A span that is open counts when it ends. */
void longest_reset(void);
