/* SPDX-License-Identifier: BSD-3-Clause */
#include "info/info_process.h"

#include "base/clock.h"

#include <sys/resource.h>

static uint64_t
us_of(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static struct rusage
usage_of(int who)
{
    struct rusage usage = { 0 };

    (void)getrusage(who, &usage); /* fails for a wrong `who` only */
    return usage;
}

void
info_process_get(const struct service *service,
                 struct info_process *ret_process)
{
    struct rusage self = usage_of(RUSAGE_SELF);
    struct rusage children = usage_of(RUSAGE_CHILDREN);

    *ret_process = (struct info_process){
        .up_s = (clock_mono_ns() - service->started_mono_ns) / 1000000000,
        .user_us = us_of(self.ru_utime),
        .system_us = us_of(self.ru_stime),
        .children_user_us = us_of(children.ru_utime),
        .children_system_us = us_of(children.ru_stime),
    };
}
