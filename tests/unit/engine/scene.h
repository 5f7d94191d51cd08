/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A rig with its observers, and a loop that only the test runs: what arrives in
 * its inbox, as lines.
 */
#pragma once

#include "engine/observe.h"
#include "net/loop.h"
#include "push/monitor.h"
#include "push/pubsub.h"
#include "push/tracking.h"
#include "rig.h"

/* A service with its observers, and one line for each notice that arrives:
 * "<kind> <hold> <channel> <payload>". */
struct scene {
    struct rig *rig;
    struct loop loop;
    struct receiver receiver;
    struct request req;
    struct buf seen;
};

bool arrive(void *ctx, const struct notice *notice, uint64_t to,
            uint64_t until_ns);

void lose(void *ctx);

struct scene *scene_new(void);

void scene_free(struct scene *scene);

void want_events(struct scene *scene, const char *letters);

void listen_to(struct scene *scene, const char *pattern);

/* Hands over as a command would, runs the loop, and compares what arrived. */
void expect_seen(struct scene *scene, const char *want);
