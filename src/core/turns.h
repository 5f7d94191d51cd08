/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The time of ageing filters (core/ageing.h), which is counted in turns: turn n
 * begins n x seconds / generations after 1970. So all filters of equal seconds
 * and generations have the same boundaries, and a turn is a function of the
 * time alone. Between two times that are `seconds` apart, exactly `generations`
 * turns begin, so no rounding adds up.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TURNS_GENERATIONS = 8, TURNS_GENERATIONS_MAX = 64 };

/* The latest time: later ones count as this one, so that no product overflows.
 */
#define TURNS_TIME_MAX_MS ((uint64_t)1 << 53)

static inline bool
turns_are_valid(uint32_t seconds, uint32_t generations)
{
    return seconds > 0 && generations > 0 &&
           generations <= TURNS_GENERATIONS_MAX;
}

/* Returns the turn of a time. */
static inline uint64_t
turns_at(uint32_t seconds, uint32_t generations, uint64_t now_ms)
{
    uint64_t ms = now_ms < TURNS_TIME_MAX_MS ? now_ms : TURNS_TIME_MAX_MS;

    return ms * generations / ((uint64_t)seconds * 1000);
}

/* Returns the first millisecond of a turn that turns_at() returned. */
static inline uint64_t
turns_begin_ms(uint32_t seconds, uint32_t generations, uint64_t turn)
{
    return (turn * seconds * 1000 + generations - 1) / generations;
}
