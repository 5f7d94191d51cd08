/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Readers of what a writer replaces and frees, with the kernel's fence and with
 * their own.
 */
#include "local/local_readers.h"

#include "../test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READERS = 3, SWAPS = 2000 };

struct thing {
    uint64_t number, same;
};

static _Atomic(struct thing *) thing;
static atomic_bool done;
static _Atomic unsigned torn;

static void *
look(void *arg)
{
    (void)arg;
    while (!atomic_load(&done)) {
        struct local_reader *own = local_readers_begin();
        const struct thing *seen = atomic_load(&thing);

        if (seen->number != seen->same) {
            atomic_fetch_add(&torn, 1);
        }
        local_readers_end(own);
    }
    return NULL;
}

static struct thing *
new_thing(uint64_t number)
{
    struct thing *made = malloc(sizeof(*made));

    assert_non_null(made);
    *made = (struct thing){ number, number };
    return made;
}

static void
swap_while_others_look(bool fenced)
{
    pthread_t threads[READERS];

    assert_true(local_readers_init(fenced));
    assert_true(local_readers_fenced || !fenced);
    atomic_store(&done, false);
    atomic_store(&thing, new_thing(0));
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, look, NULL), 0);
    }
    for (uint64_t i = 1; i <= SWAPS; i++) {
        struct thing *before = atomic_exchange(&thing, new_thing(i));

        local_readers_wait();
        before->same = UINT64_MAX;
        free(before);
    }
    atomic_store(&done, true);
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&torn), 0);
    free(atomic_load(&thing));
}

TEST(what_a_reader_has_is_not_freed)
{
    swap_while_others_look(false);
}

TEST(without_the_kernels_fence_readers_have_their_own)
{
    swap_while_others_look(true);
}

static void *
look_once(void *arg)
{
    struct local_reader **ret_own = arg;

    *ret_own = local_readers_begin();
    local_readers_end(*ret_own);
    return NULL;
}

TEST(a_thread_passes_its_line_on)
{
    struct local_reader *first, *second, *before = NULL;
    pthread_t thread;

    assert_true(local_readers_init(false));
    first = local_readers_begin();
    local_readers_end(first);
    for (int i = 0; i < 100; i++) {
        struct local_reader *others;

        assert_int_equal(pthread_create(&thread, NULL, look_once, &others), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(i == 0 || others == before);
        assert_ptr_not_equal(others, first);
        before = others;
    }
    second = local_readers_begin();
    assert_ptr_equal(first, second);
    /* A signal's handler that interrupts a look cannot look. */
    assert_null(local_readers_begin());
    local_readers_end(second);
    assert_non_null(local_readers_begin());
    local_readers_end(second);
}

/* Has the kernel refuse membarrier() to this process. */
static bool
enter_sandbox(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Exits with 77 where there are no sandboxes. */
static int
wait_in_a_sandbox(void)
{
    if (!local_readers_init(false)) {
        return 1;
    }
    if (atomic_load(&local_readers_fenced) || !enter_sandbox()) {
        return 77;
    }
    local_readers_wait();
    return atomic_load(&local_readers_fenced) ? 0 : 2;
}

TEST(in_a_sandbox_without_membarrier_readers_get_the_fence)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        _exit(wait_in_a_sandbox());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}
