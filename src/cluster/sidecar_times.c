/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/sidecar_times.h"

/* The time from an event to the end of the next survey that began after it: the
 * survey under way ends, and the next one follows soon. */
enum { NEXT_SURVEY_MS = SURVEY_SOON_MS + 2 * SIDECAR_ANSWER_MS };

bool
sidecar_times_are_good(const struct sidecar_options *options)
{
    /* leaving_ms is half of a lease. A silent owner's lease has to end before a
     * slot is served without having fenced that owner. */
    return 2 * options->leaving_ms <= options->silence_ms &&
           /* A lost slot is still served at first; then its commands wait. */
           options->leaving_ms < options->await_ms &&
           /* A survey sees the claim before another daemon gets the slot, and
            * before the one that was fenced wants it back. */
           NEXT_SURVEY_MS < options->giving_ms &&
           options->giving_ms < options->fence_ms &&
           /* When a forgotten slot's keys are deleted, no copy holds it any
            * more. */
           COPY_ASK_MS + SIDECAR_ANSWER_MS < options->forget_ms &&
           NEXT_SURVEY_MS < options->empty_ms;
}

struct sidecar_options
sidecar_times_of(uint64_t lease_ms, bool safe, uint64_t node_timeout_ms)
{
    uint64_t leaving_ms = lease_ms / 2;
    uint64_t await_ms = SIDECAR_AWAIT_MS;

    if (await_ms < leaving_ms + SIDECAR_ANSWER_MS) {
        await_ms = leaving_ms + SIDECAR_ANSWER_MS;
    }
    return (struct sidecar_options){
        .silence_ms = safe ? node_timeout_ms + 2 * lease_ms : lease_ms,
        .leaving_ms = leaving_ms,
        .forget_ms = SIDECAR_FORGET_MS,
        .fence_ms = SIDECAR_FENCE_MS,
        .empty_ms = SIDECAR_EMPTY_MS,
        .giving_ms = SIDECAR_GIVING_MS,
        .await_ms = await_ms,
    };
}
