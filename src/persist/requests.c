/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An outcome applies to all tickets up to its own. A later success counts for
 * earlier failures, too.
 */
#include "persist/requests.h"

#include "base/err.h"

uint64_t
requests_ask(struct requests *requests)
{
    return atomic_fetch_add(&requests->asked, 1) + 1;
}

enum persist_outcome
requests_outcome(const struct requests *requests, uint64_t ticket)
{
    if (atomic_load(&requests->done) >= ticket) {
        return PERSIST_DONE;
    }
    return atomic_load(&requests->failed) >= ticket ? PERSIST_FAILED
                                                    : PERSIST_PENDING;
}

bool
requests_are_due(const struct requests *requests)
{
    uint64_t asked = atomic_load(&requests->asked);

    return asked > requests->settled_done && asked > requests->settled_failed;
}

void
requests_begin(struct requests *requests)
{
    atomic_store(&requests->begun, atomic_load(&requests->asked));
}

void
requests_settle(struct requests *requests, bool done)
{
    uint64_t begun = atomic_load(&requests->begun);
    uint64_t *settled =
        done ? &requests->settled_done : &requests->settled_failed;

    CHECK(begun >= *settled && begun <= atomic_load(&requests->asked));
    *settled = begun;
}

bool
requests_publish(struct requests *requests)
{
    uint64_t done = atomic_exchange(&requests->done, requests->settled_done);
    uint64_t failed =
        atomic_exchange(&requests->failed, requests->settled_failed);

    return done != requests->settled_done || failed != requests->settled_failed;
}
