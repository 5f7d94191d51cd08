/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/run_clock.h"

#include "base/clock.h"

#include <pthread.h>

enum { MS = 1000000 };

static struct run_clock the_clock;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* a leaf */

/* ---- the clock ----------------------------------------------------------- */

uint64_t
run_clock_read(struct run_clock *clock, uint64_t mono_ns)
{
    uint64_t before_ns = clock->skipped_ns;

    if (mono_ns < clock->seen_ns) { /* another thread has read it meanwhile */
        mono_ns = clock->seen_ns;
    }
    if (clock->seen_ns > 0 && mono_ns - clock->seen_ns > RUN_CLOCK_STEP_NS) {
        clock->skipped_ns += mono_ns - clock->seen_ns - RUN_CLOCK_STEP_NS;
        clock->pauses[clock->count++ % RUN_CLOCK_PAUSES] =
            (struct run_clock_pause){ mono_ns - clock->skipped_ns, before_ns,
                                      clock->skipped_ns };
    }
    clock->seen_ns = mono_ns;
    return mono_ns - clock->skipped_ns;
}

/* Returns the n-th last pause; NULL: there was none, or it is forgotten. */
static const struct run_clock_pause *
last_pause(const struct run_clock *clock, size_t n)
{
    if (n >= clock->count || n >= RUN_CLOCK_PAUSES) {
        return NULL;
    }
    return &clock->pauses[(clock->count - 1 - n) % RUN_CLOCK_PAUSES];
}

uint64_t
run_clock_from_mono(const struct run_clock *clock, uint64_t mono_ns)
{
    const struct run_clock_pause *pause;
    uint64_t skipped_ns = clock->skipped_ns;
    uint64_t limit_ns = UINT64_MAX; /* a time in a pause counts as the end of
                                       the pause */

    for (size_t n = 0; (pause = last_pause(clock, n)) != NULL &&
                       mono_ns < pause->run_ns + pause->after_ns;
         n++) {
        skipped_ns = pause->before_ns;
        limit_ns = pause->run_ns;
    }
    return mono_ns - skipped_ns < limit_ns ? mono_ns - skipped_ns : limit_ns;
}

uint64_t
run_clock_to_mono(const struct run_clock *clock, uint64_t run_ns)
{
    const struct run_clock_pause *pause;
    uint64_t skipped_ns = clock->skipped_ns;

    for (size_t n = 0;
         (pause = last_pause(clock, n)) != NULL && run_ns < pause->run_ns;
         n++) {
        skipped_ns = pause->before_ns;
    }
    return run_ns + skipped_ns;
}

/* ---- the clock of the process -------------------------------------------- */

uint64_t
run_clock_ns(void)
{
    uint64_t run_ns;

    pthread_mutex_lock(&mutex);
    run_ns = run_clock_read(&the_clock, clock_mono_ns());
    pthread_mutex_unlock(&mutex);
    return run_ns;
}

uint64_t
run_clock_ms(void)
{
    return run_clock_ns() / MS;
}

uint64_t
run_clock_since(uint64_t mono_ns)
{
    uint64_t now_ns;
    uint64_t then_ns;

    pthread_mutex_lock(&mutex);
    now_ns = run_clock_read(&the_clock, clock_mono_ns());
    then_ns = run_clock_from_mono(&the_clock, mono_ns);
    pthread_mutex_unlock(&mutex);
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

uint64_t
run_clock_to_mono_ms(uint64_t run_ms)
{
    uint64_t mono_ns;

    if (run_ms == 0) {
        return 0;
    }
    pthread_mutex_lock(&mutex);
    mono_ns = run_clock_to_mono(&the_clock, run_ms * MS);
    pthread_mutex_unlock(&mutex);
    return mono_ns / MS;
}
