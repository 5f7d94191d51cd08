/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests of any thread that loop 0 answers later, by their tickets.
 */
#include "persist/persist_internal.h"

uint64_t
requests_ask(struct persist_requests *requests)
{
    return atomic_fetch_add(&requests->asked, 1) + 1;
}

enum persist_outcome
requests_outcome(const struct persist_requests *requests, uint64_t ticket)
{
    if (atomic_load(&requests->done) >= ticket) {
        return PERSIST_DONE;
    }
    return atomic_load(&requests->failed) >= ticket ? PERSIST_FAILED
                                                    : PERSIST_PENDING;
}

bool
requests_are_due(const struct persist_requests *requests)
{
    uint64_t asked = atomic_load(&requests->asked);

    return asked > requests->settled_done && asked > requests->settled_failed;
}

void
requests_take(struct persist_requests *requests)
{
    requests->taken = atomic_load(&requests->asked);
}

void
requests_settle(struct persist_requests *requests, bool done)
{
    *(done ? &requests->settled_done : &requests->settled_failed) =
        requests->taken;
}

bool
requests_tell(struct persist_requests *requests)
{
    uint64_t done = atomic_exchange(&requests->done, requests->settled_done);
    uint64_t failed =
        atomic_exchange(&requests->failed, requests->settled_failed);

    return done != requests->settled_done || failed != requests->settled_failed;
}

/* ---- what persist offers ------------------------------------------------- */

uint64_t
persist_ask_save(struct persist *persist)
{
    uint64_t ticket = requests_ask(&persist->saves);

    persist->options.hooks.poke(persist->options.hooks.ctx);
    return ticket;
}

uint64_t
persist_ask_rewrite(struct persist *persist)
{
    uint64_t ticket = atomic_fetch_add(&persist->asked_rewrite, 1) + 1;

    persist->options.hooks.poke(persist->options.hooks.ctx);
    return ticket;
}

enum persist_outcome
persist_save_outcome(const struct persist *persist, uint64_t ticket)
{
    return requests_outcome(&persist->saves, ticket);
}
