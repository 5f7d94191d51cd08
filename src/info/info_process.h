/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the process as a whole has taken so far, for INFO, metrics and the page.
 */
#pragma once

#include "engine/service.h"

struct info_process {
    uint64_t up_s;
    /* Processor time: of this process, and of children that have ended. */
    uint64_t user_us, system_us;
    uint64_t children_user_us, children_system_us;
};

/* Collects these figures. Any thread. */
void info_process_get(const struct service *service,
                      struct info_process *ret_process);
