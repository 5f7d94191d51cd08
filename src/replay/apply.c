/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Groups have a worker of their own beside loop 0's, on the same thread. Both
 * share the thread's slot of the gate. What a batch leaves in a worker (its
 * failure, what it waits for, notices, an open stage) cannot be mixed up with a
 * client's batch.
 *
 * CLIENT PAUSE does not stop groups: a replica that stopped them would only
 * fall behind, until its primary dropped it.
 */
#include "replay/apply.h"

#include "base/mem.h"
#include "engine/observe.h"
#include "engine/txn.h"
#include "replay/obey.h"

#include <stdio.h>

struct apply {
    struct obey obey;
    struct pages pages;
};

struct apply *
apply_new(struct worker *worker)
{
    struct apply *apply = mem_zalloc(sizeof(*apply));

    obey_init(&apply->obey, worker->service, worker->index);
    apply->obey.worker->loop = worker->loop;
    apply->obey.worker->stats = worker->stats; /* applied commands count */
    apply->obey.worker->holds_gate = true;
    apply->obey.worker->silent = true;
    return apply;
}

void
apply_free(struct apply *apply)
{
    if (apply != NULL) {
        obey_fini(&apply->obey);
        pages_fini(&apply->pages);
        mem_free(apply);
    }
}

bool
apply_needs_world(struct apply *apply, struct slice commands)
{
    return obey_needs_world(&apply->obey, commands);
}

bool
apply_clears(struct apply *apply, struct slice commands, uint64_t sequence)
{
    const struct obey *obey = &apply->obey;

    return !obey->is_long || pages_clear(&apply->pages, obey->worker,
                                         obey->session.db, commands, sequence);
}

/* Refuses a group that ends inside a transaction: a log never splits one
 * between two groups. */
bool
apply_group(struct apply *apply, struct slice commands, uint64_t position,
            char *ret_reason, size_t reason_size)
{
    struct session *session = &apply->obey.session;
    bool done =
        obey_group(&apply->obey, commands, position, ret_reason, reason_size);

    if (done && session->txn != NULL) {
        (void)snprintf(ret_reason, reason_size,
                       "the group ends between MULTI and EXEC");
        done = false;
    }
    txn_end(session);
    return done;
}

void
apply_wake(struct apply *apply)
{
    struct worker *worker = apply->obey.worker;

    if (worker->notices.to_wake != 0) {
        observe_wake_slow(worker);
    }
}
