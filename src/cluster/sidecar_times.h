/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How long a sidecar waits for what, in milliseconds, and which of these times
 * must be longer than others. sidecar_options has those that follow from the
 * neighbour's settings; the simulator shortens some of them.
 */
#pragma once

#include "cluster/sidecar_hooks.h"

enum {
    /* The lease, and the ticks of the state machine (sidecar_owner.h): */
    LEASE_MAX_MS = 1000,
    LEASE_SETTLE_MS = 20, /* after a silence; see lease.h */
    SIDECAR_TICK_MS = 10,
    SIDECAR_REST_TICK_MS = 50,

    /* Questions: */
    SIDECAR_ANSWER_MS = 400, /* a daemon that has not answered is silent */
    CLAIM_RETRY_MS = 100,    /* after a claim that failed, or a silent source */
    COME_AGAIN_MS = 200,     /* between two announcements of slots */
    COPY_ASK_MS = 300, /* between questions to a leader that sends no changes */
    COPY_ASK_SOON_MS = 20, /* the same until our copy is known to be good */
    PULL_LINK_MS = 10000,  /* after so long, a source that cannot be reached is
                              given up: another daemon may have the data */

    /* Surveys: */
    SURVEY_ROUND_MS = 1000,
    SURVEY_SOON_MS = 100, /* while a slot is wanted */
    SURVEY_VAIN_MAX = 50, /* at most so many hurried rounds without news */
    SURVEY_PEER_MS = 20,  /* added for each daemon, since the questions of all
                             daemons grow with the square of their number */
    SURVEY_LATE_MS =
        2000, /* a survey is too old when the next one is so late */

    /* The disk: */
    DISK_STORE_MS = 200, /* between two requests to store */

    /* A server that should follow another one, but keeps its data: */
    WAIT_HURRY_MS = 10000, /* surveys are hurried for so long */
    WAIT_SAY_MS = 60000,   /* between two lines of the log */

    /* For sidecar_options: */
    SIDECAR_FORGET_MS = 10000,
    SIDECAR_FENCE_MS = 10000,
    SIDECAR_EMPTY_MS = 5000,
    SIDECAR_GIVING_MS = 2000,
    SIDECAR_AWAIT_MS = 2000
};

_Static_assert(SIDECAR_TICK_MS < COPY_ASK_SOON_MS, "ticks must not delay asks");
_Static_assert(SIDECAR_REST_TICK_MS < SURVEY_SOON_MS, "nor hurried surveys");
_Static_assert(COPY_ASK_SOON_MS < COPY_ASK_MS, "soon is sooner");
_Static_assert(SURVEY_SOON_MS < SURVEY_ROUND_MS, "soon is sooner");
_Static_assert(SIDECAR_ANSWER_MS < SURVEY_ROUND_MS,
               "a round ends before the next one is due");
_Static_assert(2 * SIDECAR_ANSWER_MS < SURVEY_LATE_MS,
               "a survey of two parts is not too old at once");
_Static_assert(SIDECAR_EMPTY_MS > SURVEY_ROUND_MS + SIDECAR_ANSWER_MS &&
                   SIDECAR_EMPTY_MS < WAIT_HURRY_MS,
               "the owner's daemon hears of a slot without keys by a survey");
_Static_assert(PULL_LINK_MS > LEASE_MAX_MS + SIDECAR_ANSWER_MS,
               "a source that starts again is found by its next poll");

/* Returns whether the times of the options are as long as what they wait for.
 */
bool sidecar_times_are_good(const struct sidecar_options *options);

/* Returns options with the times that follow from the length of the lease.
 * safe: silence_ms is the neighbour's cluster-node-timeout and two leases. */
struct sidecar_options sidecar_times_of(uint64_t lease_ms, bool safe,
                                        uint64_t node_timeout_ms);
