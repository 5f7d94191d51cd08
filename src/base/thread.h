/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads of the server: with a stack of known size and all signals blocked.
 * The first allocations of a new thread, inside the allocator, cannot fail
 * cleanly. So a thread that lasts starts before there are clients, and has made
 * its first allocations when thread_start returns. A thread that starts later
 * has no allocator cache, and needs none.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

enum thread_life {
    THREAD_LASTS, /* from the start to the end of the server */
    THREAD_PASSES
};

/* Starts FN(ARG) in a thread with this name of at most 15 characters. False if
 * memory or a limit of the system does not allow one more. */
bool thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *),
                  void *arg, enum thread_life life);

/* Does the same at the start of the server; if that fails, the process ends
 * with a message. */
void thread_must_start(pthread_t *ret_thread, const char *name,
                       void *(*fn)(void *), void *arg);

/* Prepares the main thread as thread_start prepares others: enables its cache,
 * and touches the part of its stack that it will need. */
void thread_settle_main(void);
