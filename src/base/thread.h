/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads of the server: with a stack of known size, and without signals, which
 * are for the loops. A new thread makes its first allocations inside of the
 * allocator, and those cannot fail cleanly; so a thread that lasts is started
 * before there are clients, and has made them when thread_start returns. A
 * thread that is started later has no cache of the allocator, and needs none.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

enum thread_life {
    THREAD_LASTS, /* from the start to the end of the server */
    THREAD_PASSES
};

/* Starts FN(ARG) under a name of at most 15 characters. False if there is no
 * memory for a thread, or the system has too many. */
bool thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *),
                  void *arg, enum thread_life life);

/* The same at the start of the server, which ends with a message if that
 * fails. */
void thread_must_start(pthread_t *ret_thread, const char *name,
                       void *(*fn)(void *), void *arg);

/* What thread_start does for others, for the main thread: its cache, and the
 * part of its stack that it will need, which the kernel maps as it grows. */
void thread_settle_main(void);
