/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The owner and the thread, whichever of them is first.
 */
#include "net/lookup.h"

#include "resolver.h"
#include "rig.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

static atomic_uint done;
static atomic_uint threads_started;
static bool no_threads;

typedef int (*create_fn)(pthread_t *thread, const pthread_attr_t *attr,
                         void *(*run)(void *), void *arg);

/* In the place of the system's. */
int
pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr,
               void *(*run)(void *), void *restrict arg)
{
    void *found = dlsym(RTLD_NEXT, "pthread_create");
    create_fn create;

    memcpy(&create, &found, sizeof(create));
    atomic_fetch_add(&threads_started, !no_threads);
    return no_threads ? EAGAIN : create(thread, attr, run, arg);
}

static void
on_done(void *ctx)
{
    assert_ptr_equal(&done, ctx);
    atomic_fetch_add(&done, 1);
}

static struct lookup *
look_up(const char *host)
{
    done = 0;
    return lookup_new(host, 7, on_done, &done);
}

#define wait_until(cond)                                                       \
    do {                                                                       \
        uint64_t give_up_ = clock_mono_ns() + DEADLINE_MS * 1000000ULL;        \
                                                                               \
        while (!(cond)) {                                                      \
            assert_true(clock_mono_ns() < give_up_);                           \
            (void)usleep(100);                                                 \
        }                                                                      \
    } while (0)

static void
assert_found(const struct lookup *lookup, const char *host)
{
    struct sockaddr_in in;
    char text[INET_ADDRSTRLEN];

    assert_int_equal(0, lookup_error(lookup));
    memcpy(&in, lookup_found(lookup)->ai_addr, sizeof(in));
    assert_non_null(inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text)));
    assert_string_equal(host, text);
    assert_int_equal(7, ntohs(in.sin_port));
}

TEST(an_address_in_digits_is_there_at_once)
{
    uint64_t used = mem_used();
    struct lookup *lookup = look_up("127.0.0.3");

    assert_true(lookup_is_done(lookup));
    assert_found(lookup, "127.0.0.3");
    lookup_free(lookup);
    assert_int_equal(0, done);
    assert_int_equal(used, mem_used());
}

TEST(a_name_is_found_by_a_thread)
{
    uint64_t used = mem_used();
    struct lookup *lookup;

    resolver_say(0, "127.0.0.4 127.0.0.5");
    lookup = look_up("some.name");
    wait_until(done == 1);
    assert_true(lookup_is_done(lookup));
    assert_found(lookup, "127.0.0.4");
    assert_non_null(lookup_found(lookup)->ai_next);
    lookup_free(lookup);
    assert_int_equal(used, mem_used());
}

TEST(a_name_that_is_not_found_is_an_error)
{
    struct lookup *lookup;

    resolver_say(EAI_AGAIN, "");
    lookup = look_up("some.name");
    wait_until(done == 1);
    assert_int_equal(EAI_AGAIN, lookup_error(lookup));
    assert_null(lookup_found(lookup));
    lookup_free(lookup);
}

TEST(a_lookup_can_be_freed_while_it_runs)
{
    uint64_t used = mem_used();
    struct lookup *lookup;

    resolver_say(0, "127.0.0.4");
    resolver_stick(true);
    lookup = look_up("some.name");
    wait_until(resolver_waiting() == 1);
    assert_false(lookup_is_done(lookup));
    lookup_free(lookup);
    resolver_stick(false);
    wait_until(mem_used() == used);
    assert_int_equal(0, done);
}

/* At once, so that the thread is anywhere. */
TEST(a_lookup_freed_at_any_moment_leaves_nothing_behind)
{
    uint64_t used = mem_used();

    resolver_say(0, "127.0.0.4");
    for (unsigned i = 0; i < 200; i++) {
        struct lookup *lookup = look_up("some.name");

        for (unsigned k = 0; k < i; k++) {
            (void)lookup_is_done(lookup);
        }
        lookup_free(lookup);
    }
    wait_until(mem_used() == used);
}

/* Each is given up when the next one comes, as REPLICAOF does it. */
TEST(many_names_at_a_silent_resolver_take_four_threads)
{
    uint64_t used = mem_used();
    struct lookup *lookup = NULL;

    resolver_say(0, "127.0.0.4");
    resolver_stick(true);
    threads_started = 0; /* one of a test before may not have ended yet */
    for (unsigned i = 0; i < 2000; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "name%u", i);
        lookup_free(lookup);
        lookup = look_up(name);
        assert_non_null(lookup);
        wait_until(i >= 4 || resolver_waiting() == i + 1);
    }
    assert_true(threads_started <= 4);
    assert_int_equal(4, resolver_waiting());
    lookup_free(look_up("127.0.0.3"));
    assert_true(threads_started <= 4);
    assert_false(lookup_is_done(lookup));
    resolver_stick(false);
    wait_until(lookup_is_done(lookup));
    assert_found(lookup, "127.0.0.4");
    lookup_free(lookup);
    wait_until(mem_used() == used);
}

TEST(the_newest_name_goes_first_and_an_abandoned_one_does_not_go_at_all)
{
    struct lookup *stuck[4];
    struct lookup *first;
    struct lookup *last;

    resolver_say(0, "127.0.0.4");
    resolver_stick(true);
    for (unsigned i = 0; i < 4; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "name%u", i);
        stuck[i] = look_up(name);
    }
    wait_until(resolver_waiting() == 4);
    first = look_up("first");
    lookup_free(look_up("given.up"));
    last = look_up("last");
    resolver_let_one_go();
    wait_until(strcmp(resolver_asked(), "last") == 0);
    assert_false(lookup_is_done(first));
    resolver_let_one_go();
    wait_until(strcmp(resolver_asked(), "first") == 0);
    resolver_stick(false);
    wait_until(lookup_is_done(first) && lookup_is_done(last));
    for (unsigned i = 0; i < 4; i++) {
        wait_until(lookup_is_done(stuck[i]));
        lookup_free(stuck[i]);
    }
    lookup_free(first);
    lookup_free(last);
}

TEST(a_repeated_lookup_gets_the_answer_of_the_first)
{
    struct lookup *lookup;

    resolver_say(0, "127.0.0.4");
    resolver_stick(true);
    lookup_free(look_up("some.name"));
    lookup_free(look_up("some.name"));
    lookup = look_up("some.name");
    wait_until(resolver_waiting() == 1);
    resolver_stick(false);
    wait_until(done == 1);
    assert_found(lookup, "127.0.0.4");
    lookup_free(lookup);
}

TEST(a_lookup_without_a_thread_is_none)
{
    uint64_t used = mem_used();
    struct lookup *lookup;

    resolver_say(0, "127.0.0.4");
    no_threads = true;
    assert_null(look_up("some.name"));
    no_threads = false;
    assert_int_equal(used, mem_used());
    lookup = look_up("some.name");
    wait_until(done == 1);
    lookup_free(lookup);
}

TEST(a_lookup_without_memory_is_none)
{
    for (unsigned nth = 1; nth < 3; nth++) {
        mem_fail_at(nth);
        assert_null(look_up("some.name"));
        assert_true(mem_fail_clear());
    }
    lookup_free(NULL);
}
