/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stage, journal, positions.
 */
#include "command/effect.h"

#include "base/metrics.h"
#include "persist/journal.h"
#include "proto/batch.h"

size_t
effect_bytes(const struct slice *argv, size_t argc)
{
    return stage_effect_bytes(argv, argc) + EFFECT_EXTRA_BYTES;
}

enum err
effect_open(struct worker *worker, size_t bytes)
{
    struct journal *journal = worker->service->journal;

    if (journal == NULL) {
        return OK;
    }
    if (!worker->alone && !journal_has_room(journal)) {
        worker->session->parked = true;
        worker->session->parked_for_room = true;
        return ERR_AGAIN;
    }
    return stage_open(&worker->stage, bytes) ? OK : ERR_NOMEM;
}

void
effect_add(struct request *req)
{
    struct stage *stage = &req->worker->stage;
    const struct effect *effect = &req->effect;

    if (effect->kind == EFFECT_NONE) {
        return;
    }
    metric_add(METRIC_CHANGES, (int64_t)req->dirty);
    if (req->service->journal == NULL) {
        return;
    }
    if (effect->kind == EFFECT_VERBATIM && req->worker->in_place &&
        !req->worker->in_exec) { /* what EXEC runs was copied by MULTI */
        stage_add_resp(stage, req->session->db,
                       batch_resp(req->argv, req->argc));
    } else if (effect->kind == EFFECT_VERBATIM) {
        stage_add(stage, req->session->db, req->argv, req->argc);
    } else {
        stage_add(stage, req->session->db, effect->argv, effect->argc);
    }
}

/* Gives the open piece away; 0 if nothing was added to it. */
static uint64_t
hand_over(struct worker *worker, bool txn)
{
    struct piece *piece = stage_close(&worker->stage, txn);
    uint64_t position;

    if (piece == NULL) {
        return 0;
    }
    position = journal_append(worker->service->journal, piece);
    worker->unkicked = worker->service->journal;
    atomic_store_explicit(&worker->session->written, position,
                          memory_order_relaxed);
    return position;
}

static void
hold_until(struct worker *worker, uint64_t position)
{
    if (worker->hold < position) {
        worker->hold = position;
    }
}

/* What was appended stands behind all that anybody could have read. */
void
effect_close(struct worker *worker, const struct lock_set *set, bool txn)
{
    struct journal *journal = worker->service->journal;
    struct keyspace *ks = worker->service->keyspace;
    uint64_t position;

    if (journal == NULL) {
        return;
    }
    position = hand_over(worker, txn);
    if (position > 0) {
        lock_set_write_position(set, ks, position);
    } else if (set->beyond) {
        position = journal_position(journal);
    } else {
        position = lock_set_position(set, ks);
    }
    hold_until(worker, position);
}

void
effect_close_stripe(struct worker *worker, unsigned stripe)
{
    struct keyspace *ks = worker->service->keyspace;
    uint64_t position = hand_over(worker, false);

    if (position > 0) {
        keyspace_set_position(ks, stripe, position);
    } else {
        position = keyspace_position(ks, stripe);
    }
    hold_until(worker, position);
}

void
effect_kick(struct worker *worker)
{
    if (worker->unkicked != NULL) {
        journal_kick(worker->unkicked);
        worker->unkicked = NULL;
    }
}
