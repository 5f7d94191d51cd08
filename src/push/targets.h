/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The targets of one loop: its clients that receive the invalidations of other
 * clients (CLIENT TRACKING REDIRECT), by id; ids are never reused. Any thread
 * may add and remove ids, under a leaf lock. Only the loop itself finds the
 * receiver that belongs to an id.
 */
#pragma once

#include "base/map.h"
#include "push/receiver.h"

#include <pthread.h>

struct targets {
    pthread_mutex_t mutex;
    struct map map;
};

void targets_init(struct targets *targets);

/* Frees it. All uses must have been released. */
void targets_fini(struct targets *targets);

/* Add and remove a use: a tracker that redirects to this client. False: no
 * memory. */
bool targets_use(struct targets *targets, uint64_t id);
void targets_release(struct targets *targets, uint64_t id);

/* ---- on their loop ------------------------------------------------------- */

/* Finds a client of this loop by its id; NULL: there is none. */
typedef struct receiver *(*targets_find_fn)(void *ctx, uint64_t id);

/* Returns the receiver of a target, or NULL if the client is gone.
 * *ret_used: whether a tracker still redirects to this id. */
struct receiver *targets_get(struct targets *targets, uint64_t id,
                             targets_find_fn find, void *ctx, bool *ret_used);

/* Forgets the receiver of a target, because its client ends or was reset. The
 * next call looks its id up again. */
void targets_forget(struct targets *targets, struct receiver *receiver);

/* Closes the connections of all targets, after a notice was lost. */
void targets_cut(struct targets *targets, targets_find_fn find, void *ctx);
