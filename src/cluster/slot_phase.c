/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/slot_phase.h"

#include "base/err.h"

#include <stdint.h>

#define TO(phase) (1U << PHASE_##phase)

/* The phases that a slot which is not served may enter when our node loses it.
 * PASSED: it was fenced a moment ago for another owner than the new one. AWAY:
 * the new owner's daemon has already come, or another daemon has newer data. */
#define LOST (TO(AWAY) | TO(AWAITED) | TO(PASSED))

/* The phases that a slot may enter when our node gains it. */
#define GAINED (TO(WANTED) | TO(FOUND))

static const struct {
    const char *name;
    uint16_t next;
} phases[] = {
    [PHASE_AWAY] = { "away", GAINED | TO(AWAITED) | TO(PASSED) | TO(EXPORTED) },
    [PHASE_WANTED] = { "wanted", TO(FOUND) | TO(CLAIMED) | TO(MISSING) |
                                     TO(SERVED) | LOST },
    [PHASE_FOUND] = { "found", TO(WANTED) | TO(CLAIMED) | TO(MISSING) |
                                   TO(SERVED) | LOST },
    [PHASE_CLAIMED] = { "claimed", TO(WANTED) | TO(FOUND) | TO(SERVED) | LOST },
    [PHASE_MISSING] = { "missing", TO(WANTED) | TO(FOUND) | LOST },
    [PHASE_SERVED] = { "served",
                       TO(WANTED) | TO(SPOKEN) | TO(LEAVING) | TO(AWAITED) },
    [PHASE_SPOKEN] = { "spoken", TO(WANTED) | TO(PASSED) | TO(EXPORTED) },
    [PHASE_LEAVING] = { "leaving", GAINED | TO(AWAY) | TO(AWAITED) |
                                       TO(PASSED) | TO(EXPORTED) },
    [PHASE_AWAITED] = { "awaited",
                        GAINED | TO(AWAY) | TO(PASSED) | TO(EXPORTED) },
    [PHASE_PASSED] = { "passed", GAINED | TO(AWAY) | TO(EXPORTED) },
    [PHASE_EXPORTED] = { "exported",
                         GAINED | TO(AWAY) | TO(AWAITED) | TO(PASSED) },
};

bool
slot_phase_leads(enum slot_phase from, enum slot_phase to)
{
    CHECK(from < SLOT_PHASES && to < SLOT_PHASES);
    return (phases[from].next >> to & 1) != 0;
}

bool
slot_phase_is_owned(enum slot_phase phase)
{
    return phase >= PHASE_WANTED && phase <= PHASE_SPOKEN;
}

const char *
slot_phase_name(enum slot_phase phase)
{
    CHECK(phase < SLOT_PHASES);
    return phases[phase].name;
}
