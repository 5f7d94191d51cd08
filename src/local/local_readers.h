/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lets a writer free what it has replaced when no reader uses it any more. A
 * reader marks, in a line of memory of its own thread, that it uses what a
 * pointer led to. A writer swaps the pointer, and waits until each reader that
 * was marked then has ended.
 *
 *   reader   begin; load the pointer; read ...; end
 *   writer   exchange the pointer; wait; free what was there before
 *
 * The mark must be seen before the load. A fence in each reader would cost more
 * than the rest of a look (from begin to end), so the writer has the kernel run
 * one in all threads of the process (membarrier). If the kernel cannot, or
 * refuses since the program has put itself into a sandbox, readers use a fence.
 *
 * A thread takes its line at its first look, and gives it back at its end.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct local_reader {
    _Alignas(64) _Atomic uint64_t turns; /* odd: the thread reads */
    atomic_bool taken;                   /* a thread has taken the line */
    struct local_reader *next;           /* does not change */
};

_Static_assert(sizeof(struct local_reader) == 64, "one line of the cache");

extern _Thread_local struct local_reader *local_readers_own
    __attribute__((tls_model("initial-exec")));
extern atomic_bool local_readers_fenced; /* once true, it stays so */

/* Prepares everything. Call it once, before the first reader. fenced: readers
 * have the fence in any case, for a test. False: the system has no further key
 * for data of threads. */
bool local_readers_init(bool fenced);

/* Gives the thread a line, at its first look. NULL: no memory. */
struct local_reader *local_readers_join(void);

/* Returns the thread's line; NULL: the thread cannot read now, since there is
 * no memory for a line, or since a signal handler has interrupted a look. */
static inline struct local_reader *
local_readers_begin(void)
{
    struct local_reader *own = local_readers_own;
    uint64_t turns;

    if (__builtin_expect(own == NULL, 0)) {
        own = local_readers_join();
        if (own == NULL) {
            return NULL;
        }
    }
    turns = atomic_load_explicit(&own->turns, memory_order_relaxed);
    if (turns % 2 != 0) {
        return NULL;
    }
    if (__builtin_expect(
            atomic_load_explicit(&local_readers_fenced, memory_order_relaxed),
            0)) {
        (void)atomic_exchange(&own->turns, turns + 1);
    } else {
        atomic_store_explicit(&own->turns, turns + 1, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
    }
    return own;
}

static inline void
local_readers_end(struct local_reader *own)
{
    uint64_t turns = atomic_load_explicit(&own->turns, memory_order_relaxed);

    atomic_store_explicit(&own->turns, turns + 1, memory_order_release);
}

/* Waits until no reader uses what a pointer led to before the caller exchanged
 * it. A caller that is itself in a look would wait for ever. */
void local_readers_wait(void);

/* Frees the lines of other threads in a forked child, which has only this
 * thread. */
void local_readers_forked(void);
