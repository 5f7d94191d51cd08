/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim.h"

#include "../test.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct sim_world sim;

void
sim_tell(const char *format, ...)
{
    va_list args;

    if (!sim.told) {
        return;
    }
    (void)printf("%6" PRIu64 " ", sim.now_ms);
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)printf("\n");
}

void
sim_fail(const char *format, ...)
{
    va_list args;

    (void)printf(" t=%" PRIu64 ": ", sim.now_ms);
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)printf("\n");
    (void)fflush(stdout);
    fail();
}

uint64_t
sim_below(uint64_t n)
{
    return test_random_below(&sim.seed, n);
}

uint8_t
sim_pack(const struct slot_set *set)
{
    uint8_t slots = 0;

    for (unsigned i = 0; i < SIM_SLOTS; i++) {
        slots |= (uint8_t)(slot_set_has(set, sim_slot(i)) << i);
    }
    return slots;
}

void
sim_unpack(uint8_t slots, struct slot_set *ret_set)
{
    memset(ret_set, 0, sizeof(*ret_set));
    for (unsigned i = 0; i < SIM_SLOTS; i++) {
        if ((slots >> i & 1) != 0) {
            slot_set_add(ret_set, sim_slot(i));
        }
    }
}

void
sim_disturb(int node)
{
    sim.disturbed_ms[node] = sim.now_ms;
}

bool
sim_is_cut(int from, int to)
{
    return sim.cut[from][to] || sim.now_ms < sim.side_cut_ms[from][to];
}

bool
sim_reaches(int a, int b)
{
    return sim.daemon[a].up && !sim.daemon[a].frozen && sim.daemon[b].up &&
           !sim.daemon[b].frozen && !sim_is_cut(a, b) && !sim_is_cut(b, a);
}

bool
sim_is_calm(int a, int b)
{
    return sim_reaches(a, b) &&
           sim.now_ms - sim.disturbed_ms[a] > SIM_CALM_MS &&
           sim.now_ms - sim.disturbed_ms[b] > SIM_CALM_MS;
}

void
sim_begin(uint64_t seed, bool told)
{
    memset(&sim, 0, sizeof(sim));
    sim.told = told;
    sim.seed = seed;
    sim.now_ms = 1000;
    sim.safe = sim_below(2) == 0;
    sim.plain = sim_below(4) == 0 ? (unsigned)sim_below(256) : 0;
    sim_tell("mode %s", sim.safe ? "safe" : "available");
    sim_nodes_begin();
    for (int i = 0; i < SIM_NODES; i++) {
        sim.daemon[i].log = mem_alloc(SIM_LOG_MAX * sizeof(struct sim_change));
        sim_disk_begin(&sim.daemon[i]);
        sim.daemon[i].leader = SIM_NOBODY;
        sim.daemon[i].up_at_ms = UINT64_MAX;
        if (sim_newest()->member[i].known) {
            sim_start(i);
        }
    }
}

void
sim_end(void)
{
    for (int i = 0; i < SIM_NODES; i++) {
        if (sim.daemon[i].up) {
            sim_stop(i);
        }
        mem_free(sim.daemon[i].log);
        mem_free(sim.daemon[i].disk.log);
    }
}

static void
end_side_cuts(void)
{
    for (int a = 0; a < SIM_NODES; a++) {
        for (int b = 0; b < SIM_NODES; b++) {
            if (sim.side_cut_ms[a][b] == sim.now_ms) {
                sim_disturb(a);
                sim_disturb(b);
            }
        }
    }
}

void
sim_run_ms(void)
{
    sim.now_ms++;
    end_side_cuts();
    sim_nodes_run();
    sim_run_events();
    for (int i = 0; i < SIM_NODES; i++) {
        sim_run_daemon(i);
    }
    sim_run_client();
}
