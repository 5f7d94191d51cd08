/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests of any thread for work that loop 0 does later. A request gets a
 * ticket: 1, 2, ... One run of the work answers all requests made before it
 * began.
 *
 *   asked      requests_ask      any thread
 *   begun      requests_begin    loop 0: the work begins
 *   settled    requests_settle   loop 0: it ended; a run that was broken off is
 *                                not settled, and stays due
 *   published  requests_publish  loop 0, at the end of a tick: requests_outcome
 *                                shows it
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum persist_request {
    PERSIST_SAVE, /* a snapshot */
    PERSIST_REWRITE,
    /* DEBUG RELOAD: writes the snapshot, drops all data and loads the snapshot.
     */
    PERSIST_RELOAD,
    /* DEBUG RELOAD NOSAVE: drops all data and loads the last snapshot. Changes
     * since that snapshot are lost, so the log moves and a history without a
     * past begins, before hooks.reloaded. */
    PERSIST_RELOAD_NOSAVE,
    PERSIST_REQUESTS
};

enum persist_outcome { PERSIST_PENDING, PERSIST_DONE, PERSIST_FAILED };

struct requests {
    _Atomic uint64_t asked, done, failed;  /* any thread */
    _Atomic uint64_t begun;                /* loop 0 writes, any thread reads */
    uint64_t settled_done, settled_failed; /* loop 0 */
};

/* ---- any thread ---------------------------------------------------------- */
uint64_t requests_ask(struct requests *requests);
enum persist_outcome requests_outcome(const struct requests *requests,
                                      uint64_t ticket);

/* ---- loop 0 -------------------------------------------------------------- */

/* Returns whether there is a request that no run has settled. */
bool requests_are_due(const struct requests *requests);
void requests_begin(struct requests *requests);
void requests_settle(struct requests *requests, bool done);

/* Publishes the outcomes. Returns whether one is new. */
bool requests_publish(struct requests *requests);
