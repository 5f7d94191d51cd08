/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The longest spans: CPU time and no more than half a millisecond beside it,
 * whatever the wall clock says.
 */
#include "base/longest.h"

#include "../test.h"
#include "base/clock.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { MS = 1000 * 1000 };

/* Keeps the CPU for so long; returns what it was by its clock. */
static uint64_t
work(uint64_t ns)
{
    uint64_t start = clock_thread_cpu_ns();
    uint64_t end;

    do {
        end = clock_thread_cpu_ns();
    } while (end - start < ns);
    return end - start;
}

static void
wait_ms(long ms)
{
    struct timespec time = { 0, ms * MS };

    assert_int_equal(nanosleep(&time, NULL), 0);
}

TEST(nothing_is_longest_at_first_and_after_a_reset)
{
    struct longest_span span = longest_begin();

    (void)work(1 * MS);
    longest_end(LONGEST_LOCK, &span, "it");
    assert_true(longest_get(LONGEST_LOCK).ns >= 1 * MS);
    longest_reset();
    for (int i = 0; i < LONGEST_KINDS; i++) {
        assert_int_equal(longest_get((enum longest)i).ns, 0);
        assert_string_equal(longest_get((enum longest)i).what, "");
    }
}

TEST(a_span_s_own_work_is_counted_and_the_name_with_it)
{
    struct longest_span span;
    uint64_t worked;

    longest_reset();
    span = longest_begin();
    worked = work(3 * MS);
    longest_end(LONGEST_HANDLER, &span, "three");
    assert_true(longest_get(LONGEST_HANDLER).ns >= worked);
    assert_string_equal(longest_get(LONGEST_HANDLER).what, "three");
    assert_int_equal(longest_get(LONGEST_LOCK).ns, 0);
    span = longest_begin();
    (void)work(1 * MS);
    longest_end(LONGEST_HANDLER, &span, "one");
    assert_true(longest_get(LONGEST_HANDLER).ns >= worked);
}

TEST(to_wait_is_no_work)
{
    struct longest_span span;

    longest_reset();
    span = longest_begin();
    wait_ms(20);
    longest_end(LONGEST_LOCK, &span, "idle");
    assert_true(longest_get(LONGEST_LOCK).ns < 20 * MS);
}

/* A handler inside EXEC, or a walk's lock inside a handler: the outer span
 * keeps what it began with, though the thread reads its clocks meanwhile. */
TEST(a_span_around_others_counts_what_they_took_too)
{
    struct longest_span outer, inner;
    uint64_t worked = 0;

    longest_reset();
    longest_turn(clock_mono_ns());
    outer = longest_begin();
    for (int i = 0; i < 4; i++) {
        inner = longest_begin();
        worked += work(1 * MS);
        longest_end(LONGEST_LOCK, &inner, "inner");
        longest_turn(clock_mono_ns());
    }
    longest_end(LONGEST_HANDLER, &outer, "outer");
    assert_true(longest_get(LONGEST_HANDLER).ns >= worked);
    assert_true(longest_get(LONGEST_LOCK).ns < worked);
    assert_string_equal(longest_get(LONGEST_LOCK).what, "inner");
}

/* What a thread did before the span, since its last turn, is counted with it,
 * but never more than LONGEST_APART_NS of it. */
TEST(work_before_the_span_adds_half_a_millisecond_at_most)
{
    struct longest_span span;
    uint64_t began;
    uint64_t worked;

    longest_reset();
    longest_turn(clock_mono_ns());
    (void)work(5 * MS);
    longest_turn(clock_mono_ns());
    began = clock_mono_ns();
    span = longest_span_since(began);
    worked = work(1 * MS);
    wait_ms(10); /* so that the wall clock is no bound */
    longest_end(LONGEST_HANDLER, &span, "it");
    assert_true(longest_get(LONGEST_HANDLER).ns >= worked);
    /* A millisecond for reading clocks on a busy machine. */
    assert_true(longest_get(LONGEST_HANDLER).ns <
                worked + LONGEST_APART_NS + 1 * MS);
}

static void *
compete(void *name)
{
    for (int i = 0; i < 20; i++) {
        struct longest_span span = longest_begin();

        (void)work(MS / 2);
        longest_end(LONGEST_LOCK, &span, name);
    }
    return NULL;
}

/* Walks lock a thousand stripes, also where nobody notes turns: the CPU clock
 * is not read for each. A thread may lose its CPU between two, not always. */
TEST(spans_that_begin_together_read_the_cpu_clock_once)
{
    unsigned same = 0;

    for (unsigned i = 0; i < 1000; i++) {
        struct longest_span one = longest_begin();
        struct longest_span two = longest_begin();

        assert_true(two.since_ns >= one.since_ns);
        same += one.cpu_ns == two.cpu_ns;
    }
    assert_true(same > 0);
}

TEST(threads_share_one_figure)
{
    char names[2][8] = { "first", "second" };
    pthread_t threads[2];
    struct longest_figure figure;

    longest_reset();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, compete, names[i]),
                         0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    figure = longest_get(LONGEST_LOCK);
    assert_true(figure.ns >= MS / 2);
    assert_true(strcmp(figure.what, "first") == 0 ||
                strcmp(figure.what, "second") == 0);
    longest_reset();
}
