/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pthread_create, and a semaphore to wait until a lasting thread has settled.
 */
#include "base/thread.h"

#include "base/err.h"
#include "base/metrics.h"

#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function of jemalloc; NULL where that is not linked. */
extern int mallctl(const char *name, void *old, size_t *old_len, void *new,
                   size_t new_len) __attribute__((weak));

/* Sanitizers put red zones around everything on a stack. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK_BYTES = 8 * 1024 * 1024 };
#else
enum { STACK_BYTES = 1024 * 1024 };
#endif

enum { MAIN_STACK_BYTES = 768 * 1024, PAGE_BYTES = 4096 };

/* Enables the allocator's cache for the calling thread, which makes it faster.
 * jemalloc does not report missing memory here: the thread's next allocation
 * would crash. That is acceptable while the server starts. */
static void
use_cache(void)
{
    bool on = true;

    if (mallctl != NULL) {
        (void)mallctl("thread.tcache.enabled", NULL, NULL, &on, sizeof(on));
    }
}

struct start {
    void *(*fn)(void *);
    void *arg;
    sem_t settled;
};

static void *
settle_thread(void *arg)
{
    struct start *start = arg; /* invalid after sem_post */
    void *(*fn)(void *) = start->fn;
    void *fn_arg = start->arg;

    use_cache();
    metric_add(METRIC_MEM_USED, 0); /* the thread takes its slot of the
                                       metrics */
    CHECK(sem_post(&start->settled) == 0);
    return fn(fn_arg);
}

/* Creates the thread. Returns 0 or an errno value. */
static int
create(pthread_t *ret_thread, const char *name, void *(*fn)(void *), void *arg)
{
    pthread_attr_t attr;
    sigset_t all;
    sigset_t before;
    int error;

    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setstacksize(&attr, STACK_BYTES) == 0);
    (void)sigfillset(&all);
    CHECK(pthread_sigmask(SIG_BLOCK, &all, &before) == 0);
    error = pthread_create(ret_thread, &attr, fn, arg);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    CHECK(pthread_attr_destroy(&attr) == 0);
    if (error == 0) {
        (void)pthread_setname_np(*ret_thread, name);
    }
    return error;
}

static int
create_settled(pthread_t *ret_thread, const char *name, void *(*fn)(void *),
               void *arg)
{
    struct start start = { .fn = fn, .arg = arg };
    int error;

    CHECK(sem_init(&start.settled, 0, 0) == 0);
    error = create(ret_thread, name, settle_thread, &start);
    while (error == 0 && sem_wait(&start.settled) != 0) { /* EINTR */
    }
    CHECK(sem_destroy(&start.settled) == 0);
    return error;
}

bool
thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *),
             void *arg, enum thread_life life)
{
    return (life == THREAD_LASTS ? create_settled : create)(ret_thread, name,
                                                            fn, arg) == 0;
}

void
thread_must_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *),
                  void *arg)
{
    int error = create_settled(ret_thread, name, fn, arg);

    if (error != 0) {
        (void)fprintf(stderr,
                      "bloomery-server: cannot start its thread %s: %s; raise "
                      "the limits of memory and of processes\n",
                      name, strerror(error));
        exit(EXIT_FAILURE);
    }
}

__attribute__((noinline)) static void
touch_stack(void)
{
    volatile char stack[MAIN_STACK_BYTES];

    for (size_t at = 0; at < sizeof(stack); at += PAGE_BYTES) {
        stack[at] = 0;
    }
}

void
thread_settle_main(void)
{
    touch_stack();
    use_cache();
}
