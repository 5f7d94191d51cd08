/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A world of one server with one filter, one copy of it, and the link between
 * them, for schedules from a seed. The server adds, deletes, replaces and stops
 * (SIGSTOP); it gathers frames. The link delays, never reorders, and is cut.
 * The server's answers of the past are kept, so that each "absent" of the copy
 * can be held against the promise.
 */
#pragma once

#include <stdint.h>

struct sim_result {
    uint64_t answers, unknown, broken, loads;
};

/* left_out: of local_copy_leave_out. pings: the answer overtakes what was
 * gathered, as that of a PING would. */
struct sim_result sim_local_run(uint64_t seed, unsigned left_out, int pings);
