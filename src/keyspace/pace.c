/* SPDX-License-Identifier: BSD-3-Clause */
#include "keyspace/pace.h"

#include "base/clock.h"

#include <sys/resource.h>
#include <time.h>

static struct pace
read_figures(uint64_t wall_ns)
{
    struct rusage usage = { 0 };

    (void)getrusage(RUSAGE_THREAD, &usage);
    return (struct pace){ wall_ns, clock_thread_cpu_ns(),
                          (uint64_t)usage.ru_nivcsw };
}

void
pace_begin(struct pace *pace)
{
    *pace = read_figures(clock_mono_ns());
}

uint64_t
pace_look(struct pace *pace, const struct pace *now)
{
    uint64_t sleep_ns = 0;

    if (now->preempted != pace->preempted) {
        sleep_ns = 2 * (now->cpu_ns - pace->cpu_ns);
    }
    *pace = *now;
    return sleep_ns < PACE_SLEEP_MAX_NS ? sleep_ns : PACE_SLEEP_MAX_NS;
}

void
pace_keep(struct pace *pace)
{
    uint64_t now_ns = clock_mono_ns();
    struct timespec pause = { 0 };
    struct pace now;

    if (now_ns - pace->wall_ns < PACE_LOOK_NS) {
        return;
    }
    now = read_figures(now_ns);
    pause.tv_nsec = (long)pace_look(pace, &now);
    if (pause.tv_nsec > 0) {
        (void)nanosleep(&pause, NULL);
        pace->wall_ns = clock_mono_ns();
    }
}
