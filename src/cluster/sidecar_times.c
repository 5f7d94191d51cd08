/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/sidecar_times.h"

/* A survey that was not under way when something happened has heard all after
 * this time: the one under way ends, and the next one follows soon. */
enum { NEXT_SURVEY_MS = SURVEY_SOON_MS + 2 * SIDECAR_ANSWER_MS };

bool
sidecar_times_are_good(const struct sidecar_options *options)
{
    /* leaving_ms is half of a lease. A silent owner's lease has to end before
     * a slot is served without having fenced it. */
    return 2 * options->leaving_ms <= options->silence_ms &&
           /* Commands on a lost slot wait after it was served, not before. */
           options->leaving_ms < options->await_ms &&
           /* A survey sees the claim before another daemon gets the slot, and
            * before the one that was fenced wants it back. */
           NEXT_SURVEY_MS < options->giving_ms &&
           options->giving_ms < options->fence_ms &&
           /* Copies hold a forgotten slot no more when its keys go. */
           COPY_ASK_MS + SIDECAR_ANSWER_MS < options->forget_ms &&
           NEXT_SURVEY_MS < options->empty_ms;
}
