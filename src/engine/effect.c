/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Effects go from the worker's stage into the journal, and the journal's
 * position goes to the stripes and the replies.
 */
#include "engine/effect.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "journal/journal.h"
#include "proto/batch.h"

/* ---- space --------------------------------------------------------------- */

size_t
effect_delete_bytes(struct slice name)
{
    const struct slice argv[] = { slice_lit("DEL"), name };

    return stage_effect_bytes(argv, 2);
}

struct deletions {
    const struct slice *argv;
    size_t bytes;
};

static void
count_deletion(void *ctx, size_t position)
{
    struct deletions *deletions = ctx;

    deletions->bytes += effect_delete_bytes(deletions->argv[position]);
}

/* MOVE finds an expired key in at most one of its two databases before it ends,
 * so one DEL for each name is enough. */
size_t
effect_bytes(const struct command *command, const struct slice *argv,
             size_t argc)
{
    struct deletions deletions = { argv, 0 };

    if (command->keys.first > 0) {
        command_each_key(command, argc, count_deletion, &deletions);
    }
    return effect_words_bytes(argv, argc) + EFFECT_EXTRA_BYTES +
           deletions.bytes;
}

enum err
effect_open(struct worker *worker, size_t bytes)
{
    struct session *session = worker->session;
    enum mem_claim before;
    bool opened;

    if (!effect_is_on(worker)) {
        return OK;
    }
    if (!worker->alone && !worker->insists &&
        !journal_has_room(worker->service->journal)) {
        if (session != NULL) {
            session->wait = CONN_FOR_ROOM;
        }
        return ERR_AGAIN;
    }
    before = mem_set_claim(MEM_SERVE); /* freed when it is written */
    opened = stage_open(&worker->stage, bytes);
    (void)mem_set_claim(before);
    return opened ? OK : ERR_NOMEM;
}

/* A run has one key, which can expire or be created only once. So only its
 * first command needs more space than its own words. */
enum err
effect_open_runs(struct worker *worker, const struct run *runs, size_t count)
{
    size_t bytes = 0;

    if (!effect_is_on(worker)) {
        return OK;
    }
    for (const struct run *run = runs; run < runs + count; run++) {
        if ((run->command->flags & CMD_WRITE) == 0) {
            continue;
        }
        bytes += effect_bytes(run->command, run->argv, run->argc);
        for (uint32_t i = 1; i < run->count; i++) {
            bytes += effect_words_bytes(run_words(run, i), run->argc);
        }
    }
    return bytes > 0 ? effect_open(worker, bytes) : OK;
}

/* ---- effects ------------------------------------------------------------- */

void
effect_add(struct request *req)
{
    struct stage *stage = &req->worker->stage;
    const struct effect *effect = &req->effect;

    if (effect->kind == EFFECT_NONE) {
        return;
    }
    metric_add(METRIC_CHANGES, (int64_t)req->dirty);
    if (!effect_is_on(req->worker)) {
        return;
    }
    if (effect->kind == EFFECT_VERBATIM && req->worker->in_place &&
        !req->worker->in_exec) { /* MULTI has copied the commands of EXEC */
        stage_add_resp(stage, req->session->db,
                       batch_resp(req->argv, req->argc));
    } else if (effect->kind == EFFECT_VERBATIM) {
        stage_add(stage, req->session->db, req->argv, req->argc);
    } else {
        stage_add(stage, req->session->db, effect->argv, effect->argc);
    }
}

void
effect_delete(struct worker *worker, const struct key *key)
{
    const struct slice argv[] = { slice_lit("DEL"), key->name };

    if (effect_is_on(worker)) {
        stage_add(&worker->stage, key->db, argv, 2);
    }
}

/* Passes the open piece to the journal. Returns its position, or 0 if nothing
 * was added to it. */
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
    if (worker->session != NULL) {
        atomic_store_explicit(&worker->session->written, position,
                              memory_order_relaxed);
    }
    return position;
}

/* WAIT covers the changes that a client has read, not only those that it wrote,
 * as in Redis: a client that repeats an add on another connection, and reads
 * that the item is there, has written nothing but relies on it. */
static void
note_seen(struct worker *worker, uint64_t position)
{
    _Atomic uint64_t *written;

    if (worker->session != NULL) {
        written = &worker->session->written;
        if (atomic_load_explicit(written, memory_order_relaxed) < position) {
            atomic_store_explicit(written, position, memory_order_relaxed);
        }
    }
}

static void
hold_until(struct worker *worker, uint64_t position)
{
    note_seen(worker, position);
    if (worker->hold < position) {
        worker->hold = position;
    }
}

/* Returns the position behind the command of the log that ends with this word
 * and a line end. */
static uint64_t
log_position(const struct worker *worker, const struct slice *last)
{
    enum { LINE_END = 2 };

    CHECK(last->data >= worker->log_text);
    return worker->log_begins + (uint64_t)(last->data - worker->log_text) +
           last->len + LINE_END;
}

/* An appended piece is behind every change that the command could have read, so
 * its position covers them too. */
void
effect_close_slow(struct worker *worker, const struct lock_set *set, bool txn,
                  const struct slice *last)
{
    struct journal *journal = worker->service->journal;
    struct keyspace *ks = worker->service->keyspace;
    uint64_t position;

    if (worker->silent) {
        if (set->world || set->exclusive) {
            lock_set_write_position(set, ks, log_position(worker, last));
        }
        return;
    }
    position = hand_over(worker, txn);
    if (position > 0) {
        lock_set_write_position(set, ks, position);
    } else if (set->beyond) {
        position = journal_position(journal);
    } else if (worker->service->role.replica) {
        return;
    } else {
        position = lock_set_position(set, ks);
    }
    hold_until(worker, position);
}

void
effect_close_stripe(struct worker *worker, unsigned stripe)
{
    struct lock_set set;

    lock_set_init(&set);
    lock_set_add_stripe(&set, stripe);
    effect_close(worker, &set, false, NULL);
}

void
effect_kick(struct worker *worker)
{
    if (worker->unkicked != NULL) {
        journal_kick(worker->unkicked);
        worker->unkicked = NULL;
    }
}
