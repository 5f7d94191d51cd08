/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The clients of one loop that hear for others (CLIENT TRACKING REDIRECT), by
 * their ids, which are never drawn again. Which ones there are may be changed
 * by any thread, under a leaf lock; who they are is for their own loop alone.
 */
#pragma once

#include "admin/receiver.h"
#include "base/map.h"

#include <pthread.h>

struct targets {
    pthread_mutex_t mutex;
    struct map map;
};

void targets_init(struct targets *targets);

/* When nobody uses any. */
void targets_fini(struct targets *targets);

/* One more, or one less, has this client hear for it. False without memory. */
bool targets_use(struct targets *targets, uint64_t id);
void targets_release(struct targets *targets, uint64_t id);

/* ---- on their loop ------------------------------------------------------- */

/* How a client of this loop is found; NULL if there is none with this id. */
typedef struct receiver *(*targets_find_fn)(void *ctx, uint64_t id);

/* NULL if it is gone; or if it is not used any more, then *ret_used says so. */
struct receiver *targets_get(struct targets *targets, uint64_t id,
                             targets_find_fn find, void *ctx, bool *ret_used);

/* Before a receiver with is_target ends. */
void targets_forget(struct targets *targets, struct receiver *receiver);

/* Cuts all of them. */
void targets_cut(struct targets *targets, targets_find_fn find, void *ctx);
