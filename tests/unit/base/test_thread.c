/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads get no signals, a known stack, and their name; a system that gives
 * no more of them is told apart.
 */
#include "base/thread.h"

#include "../test.h"
#include "base/metrics.h"

#include <signal.h>
#include <sys/resource.h>

struct seen {
    sigset_t blocked;
    size_t stack_bytes;
};

static void *
look(void *arg)
{
    struct seen *seen = arg;
    pthread_attr_t attr;

    assert_int_equal(0, pthread_sigmask(SIG_BLOCK, NULL, &seen->blocked));
    assert_int_equal(0, pthread_getattr_np(pthread_self(), &attr));
    assert_int_equal(0, pthread_attr_getstacksize(&attr, &seen->stack_bytes));
    pthread_attr_destroy(&attr);
    metric_thread_exit();
    return arg;
}

static void
check_thread(enum thread_life life)
{
    struct seen seen = { 0 };
    sigset_t before;
    sigset_t after;
    pthread_t thread;
    void *result;

    assert_int_equal(0, pthread_sigmask(SIG_BLOCK, NULL, &before));
    assert_true(thread_start(&thread, "test", look, &seen, life));
    assert_int_equal(0, pthread_join(thread, &result));
    assert_ptr_equal(&seen, result);
    assert_int_equal(0, pthread_sigmask(SIG_BLOCK, NULL, &after));
    assert_int_equal(1, sigismember(&seen.blocked, SIGTERM));
    assert_int_equal(1, sigismember(&seen.blocked, SIGCHLD));
    assert_int_equal(sigismember(&before, SIGTERM),
                     sigismember(&after, SIGTERM));
    assert_in_range(seen.stack_bytes, 512 * 1024, 9 * 1024 * 1024);
}

TEST(threads_that_last_and_threads_that_pass_run)
{
    check_thread(THREAD_LASTS);
    check_thread(THREAD_PASSES);
    thread_settle_main();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* A sanitizer needs address space itself. */

enum { MANY = 64 };

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *
wait_for_mutex(void *arg)
{
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    return arg;
}

TEST(without_address_space_there_is_no_thread_and_no_harm)
{
    struct rlimit before;
    struct rlimit none;
    pthread_t threads[MANY];
    size_t count = 0;

    assert_int_equal(0, getrlimit(RLIMIT_AS, &before));
    none = before;
    none.rlim_cur = 1024 * 1024; /* less than there is already */
    pthread_mutex_lock(&held);
    assert_int_equal(0, setrlimit(RLIMIT_AS, &none));
    /* Some may get the stack of a thread that has ended. */
    while (count < MANY && thread_start(&threads[count], "test", wait_for_mutex,
                                        NULL, THREAD_PASSES)) {
        count++;
    }
    assert_false(thread_start(&threads[MANY - 1], "test", wait_for_mutex, NULL,
                              THREAD_LASTS));
    assert_int_equal(0, setrlimit(RLIMIT_AS, &before));
    pthread_mutex_unlock(&held);
    assert_in_range(count, 0, MANY - 1);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(0, pthread_join(threads[i], NULL));
    }
    check_thread(THREAD_PASSES);
}
#endif
