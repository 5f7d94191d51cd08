/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread does one job at a time: first lost files, then a save, then reads.
 */
#include "heal/merge.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/run_clock.h"
#include "base/task.h"
#include "dial/colleague.h"
#include "engine/loop0.h"
#include "engine/role.h"
#include "heal/merge_held.h"
#include "heal/merge_read.h"
#include "heal/merge_save.h"
#include "heal/merge_state.h"
#include "net/link.h"
#include "proto/answers.h"
#include "repl/offer.h"
#include "repl/replica.h"
#include "repl/wire.h"

#include <errno.h>

enum { REPLY_BYTES_MAX = 64 << 10, MOVED_MS = 10 * 1000, RETRY_MS = 5000 };

enum job {
    JOB_NONE,
    JOB_AGAIN,
    JOB_SAVE,
    JOB_FIND,
    JOB_NEXT,
    JOB_STORE,
    JOB_FINISH
};

struct merge {
    struct merge_roles roles;
    struct merge_options options;
    struct task *task;
    enum job runs, read_job; /* the job that the thread does; the reading job
                                for when the thread is free */
    struct merge_held held;  /* belongs to the thread */
    uint64_t again_at_ms; /* when to write the held files again; UINT64_MAX: no
                             need */

    struct merge_save save;

    struct offer *offer;
    uint64_t find_at_ms; /* when to look for heal files; UINT64_MAX: no need */
    struct merge_read read;
    struct merge_refusal *refusals;
    size_t refused, refusals_room;
    bool damaged;     /* the heal file that JOB_FINISH ends is damaged */
    uint64_t waiting; /* our part of METRIC_MERGE_WAITING */

    struct link *link;
    struct answers *answers;
    bool logs_in;  /* the next reply is to AUTH */
    uint32_t item; /* index of the first refused item in the answer that is
                      handled */
};

static void
set_waiting(struct merge *merge, uint64_t bytes)
{
    metric_add(METRIC_MERGE_WAITING, (int64_t)bytes - (int64_t)merge->waiting);
    merge->waiting = bytes;
}

/* ---- the link ------------------------------------------------------------ */

static void
close_link(void *ctx)
{
    struct merge *merge = ctx;

    if (merge->link != NULL) {
        link_close(merge->link);
        merge->link = NULL;
    }
    answers_free(merge->answers);
    merge->answers = NULL;
}

/* Ends the link because the primary answered wrongly, refused our login, or
 * closed the link. */
static void
fail_link(struct merge *merge, const char *reason)
{
    log_repeated(LOG_WARN, "server.merge", "cannot offer adds", "reason=\"%s\"",
                 reason);
    close_link(merge);
    offer_closed(merge->offer, run_clock_ms());
}

static enum offer_verdict
verdict_of(struct slice error)
{
    static const char *const later[] = { "LOADING",    "READONLY", "TRYAGAIN",
                                         "MASTERDOWN", "OOM",      "NOREPLICAS",
                                         "MISCONF",    "NOAUTH",   "NOPERM",
                                         "BUSY",       "DENIED",   "ASK",
                                         "CLUSTERDOWN" };
    const char *blank = memchr(error.data, ' ', error.len);
    struct slice prefix = { error.data, blank == NULL
                                            ? error.len
                                            : (size_t)(blank - error.data) };

    if (slice_equal(prefix, slice_lit("MOVED"))) {
        return OFFER_MOVED;
    }
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        if (slice_equal(prefix, slice_of(later[i]))) {
            return OFFER_LATER;
        }
    }
    return OFFER_REFUSED;
}

/* Counts the items that were new, and finds the first item that was refused. */
static enum offer_verdict
judge_answer(struct merge *merge, const struct answer *answer)
{
    const struct answer_value *values = answer->values;
    int64_t added = 0;
    enum offer_verdict verdict = OFFER_TAKEN;

    merge->item = 0;
    if (values[0].type == ANSWER_ERROR) {
        return verdict_of(values[0].text);
    }
    for (size_t i = 1; i < answer->count && verdict == OFFER_TAKEN; i++) {
        if (values[i].type == ANSWER_ERROR) {
            merge->item = (uint32_t)(i - 1);
            verdict = verdict_of(values[i].text);
        } else {
            added += values[i].integer == 1;
        }
    }
    metric_add(METRIC_MERGE_ADDED, added);
    return verdict;
}

static void
handle_answer(struct merge *merge, const struct answer *answer)
{
    enum offer_verdict verdict = judge_answer(merge, answer);

    if (verdict == OFFER_LATER) {
        log_repeated(LOG_WARN, "server.merge", "the primary adds nothing now",
                     "reason=\"%.*s\"", wire_shown(answer->values[0].text),
                     answer->values[0].text.data);
    }
    offer_answer(merge->offer, verdict, run_clock_ms());
}

static void
on_bytes(void *ctx, struct link *link, struct slice bytes, size_t *ret_used)
{
    struct merge *merge = ctx;
    struct answer answer;

    *ret_used = bytes.len;
    answers_feed(merge->answers, bytes);
    while (merge->link == link) {
        enum answers_result result = answers_next(merge->answers, &answer);

        if (result == ANSWERS_MORE) {
            return;
        }
        if (result == ANSWERS_BAD) {
            fail_link(merge, answers_reason(merge->answers));
        } else if (merge->logs_in) {
            merge->logs_in = false;
            if (answer.values[0].type == ANSWER_ERROR) {
                fail_link(merge, "the primary refuses our login (masteruser, "
                                 "masterauth)");
            }
        } else if (offer_asks(merge->offer)) {
            handle_answer(merge, &answer);
        } else {
            fail_link(merge, "the primary sent more than was asked for");
        }
    }
}

static void
on_merge_closed(void *ctx, struct link *link, int error, const char *reason)
{
    struct merge *merge = ctx;

    (void)link;
    (void)error;
    merge->link = NULL;
    fail_link(merge, reason);
}

static const struct link_hooks link_hooks = { .bytes = on_bytes,
                                              .closed = on_merge_closed };

/* ---- hooks of the state machine ------------------------------------------ */

static void
read_batch(void *ctx)
{
    struct merge *merge = ctx;

    merge->read_job = merge->read.name[0] == '\0' ? JOB_FIND : JOB_NEXT;
}

static bool
send_batch(void *ctx, bool dials, const char *host, unsigned port)
{
    struct merge *merge = ctx;

    if (dials) {
        close_link(merge);
        merge->answers = answers_new(REPLY_BYTES_MAX);
        if (merge->answers == NULL) {
            return false;
        }
        merge->link = colleague_dial(merge->roles.loop0, host, port,
                                     (unsigned)merge->options.timeout_ms,
                                     &link_hooks, merge);
        if (!colleague_login(merge->roles.loop0, merge->link,
                             &merge->logs_in)) {
            return false;
        }
    }
    return merge->link != NULL && link_send(merge->link, merge->read.batch);
}

static void
restart(void *ctx)
{
    struct merge *merge = ctx;

    merge->refused = 0;
}

static void
refuse_item(void *ctx, size_t index)
{
    struct merge *merge = ctx;

    CHECK(merge->refused < merge->refusals_room);
    merge->refusals[merge->refused++] =
        (struct merge_refusal){ (uint32_t)index, merge->item };
}

static void
store(void *ctx)
{
    struct merge *merge = ctx;

    merge->read_job = JOB_STORE;
}

/* ---- what the thread has done -------------------------------------------- */

/* Ends the offers, since no heal file is left, or none can be read now. */
static void
end_offers(struct merge *merge, uint64_t retry_ms)
{
    merge_read_end(&merge->read);
    merge->find_at_ms =
        retry_ms == UINT64_MAX ? retry_ms : run_clock_ms() + retry_ms;
    offer_abandon(merge->offer);
}

static void
found(struct merge *merge)
{
    struct merge_read *read = &merge->read;

    if (read->error == EBADMSG) {
        merge->read_job = JOB_FINISH;
        return;
    }
    if (read->error != 0) {
        log_repeated(LOG_ERROR, "server.merge", "cannot read what was saved",
                     "file=\"%s/%s\" reason=\"%s\"", read->dir, read->name,
                     strerror(read->error));
        end_offers(merge, RETRY_MS);
        return;
    }
    set_waiting(merge, read->bytes_waiting);
    if (read->name[0] == '\0') {
        end_offers(merge, UINT64_MAX);
        return;
    }
    metric_add(METRIC_MERGE_OFFERS, 1);
    log_notice("server.merge", "offers adds to the primary", "file=\"%s\"",
               read->name);
    merge->read_job = JOB_NEXT;
}

static void
has_next(struct merge *merge)
{
    struct merge_read *read = &merge->read;

    if (read->error == ENOMEM) {
        end_offers(merge, RETRY_MS);
    } else if (read->error != 0 || read->commands == 0) {
        merge->read_job = JOB_FINISH;
    } else {
        if (read->commands > merge->refusals_room) {
            mem_free(merge->refusals);
            merge->refusals_room = read->commands;
            merge->refusals =
                mem_alloc(read->commands * sizeof(*merge->refusals));
        }
        offer_batch(merge->offer, read->commands, run_clock_ms());
    }
}

static void
stored(struct merge *merge)
{
    struct merge_read *read = &merge->read;

    if (read->error != 0) {
        log_repeated(LOG_ERROR, "server.merge",
                     "cannot keep what the primary refuses",
                     "file=\"%s/%s\" reason=\"%s\"", read->dir, read->name,
                     strerror(read->error));
        /* The file is offered again from its beginning. */
        end_offers(merge, RETRY_MS);
        return;
    }
    metric_add(METRIC_MERGE_QUARANTINED, (int64_t)read->quarantined);
    metric_add(METRIC_MERGE_DROPPED, (int64_t)read->lost);
    set_waiting(merge, read->bytes_waiting - read->at);
    offer_stored(merge->offer, run_clock_ms());
}

static void
finished(struct merge *merge, bool damaged)
{
    struct merge_read *read = &merge->read;

    if (read->set_aside) {
        log_error("server.merge", "a file of saved adds is damaged",
                  "file=\"%s/%s.damaged\"", read->dir, read->name);
        merge_state_lose(merge->roles.state, read->map.len - read->at);
    }
    if (read->error != 0) {
        log_repeated(LOG_ERROR, "server.merge",
                     damaged ? "cannot set a damaged file aside"
                             : "cannot remove a file",
                     "file=\"%s/%s\" reason=\"%s\"", read->dir, read->name,
                     strerror(read->error));
        end_offers(merge, RETRY_MS);
        return;
    }
    if (!damaged) {
        log_notice("server.merge", "offered all adds of a file", "file=\"%s\"",
                   read->name);
    }
    merge_read_end(read);
    merge->read_job = JOB_FIND;
}

static void
written_again(struct merge *merge)
{
    if (merge->held.error != 0) {
        log_repeated(LOG_ERROR, "server.merge", "cannot write saved adds again",
                     "dir=\"%s\" reason=\"%s\"", merge->held.dir,
                     strerror(merge->held.error));
        merge->again_at_ms = run_clock_ms() + RETRY_MS;
        return;
    }
    if (merge->held.count > 0) {
        log_notice("server.merge", "wrote saved adds again",
                   "dir=\"%s\" files=%zu", merge->held.dir, merge->held.count);
    }
    merge->find_at_ms = 0;
}

/* Begins to write lost files again, if that is due. This goes before all other
 * jobs. */
static bool
start_again(struct merge *merge)
{
    if (run_clock_ms() < merge->again_at_ms) {
        return false;
    }
    merge->again_at_ms = UINT64_MAX;
    merge->held.dir = merge->options.dir;
    merge->runs = JOB_AGAIN;
    task_start(merge->task, merge_held_write_again, &merge->held);
    return true;
}

static void
start_job(struct merge *merge)
{
    static void (*const fns[])(void *) = { [JOB_FIND] = merge_read_find,
                                           [JOB_NEXT] = merge_read_next,
                                           [JOB_STORE] = merge_read_store,
                                           [JOB_FINISH] = merge_read_finish };
    merge_save_fn saves;

    if (start_again(merge)) {
        return;
    }
    saves = merge_save_job(&merge->save);
    if (saves != NULL) {
        merge->runs = JOB_SAVE;
        task_start(merge->task, saves, &merge->save.log);
        return;
    }
    merge->runs = merge->read_job;
    merge->read_job = JOB_NONE;
    if (merge->runs == JOB_NONE) {
        return;
    }
    if (merge->runs == JOB_FIND) {
        merge->read.dir = merge->options.dir;
        merge->read.quarantine_max = merge->options.quarantine_max;
    } else if (merge->runs == JOB_STORE) {
        merge->read.refusals = merge->refusals;
        merge->read.refused = merge->refused;
    }
    merge->damaged = merge->read.error == EBADMSG;
    task_start(merge->task, fns[merge->runs], &merge->read);
}

static void
saved(struct merge *merge)
{
    uint64_t bytes = merge_save_done(&merge->save);

    if (bytes > 0) {
        set_waiting(merge, merge->waiting + bytes);
        merge->find_at_ms = 0;
    }
}

static void
job_done(struct merge *merge, enum job job)
{
    switch (job) {
    case JOB_AGAIN:
        written_again(merge);
        break;
    case JOB_SAVE:
        saved(merge);
        break;
    case JOB_FIND:
        found(merge);
        break;
    case JOB_NEXT:
        has_next(merge);
        break;
    case JOB_STORE:
        stored(merge);
        break;
    default:
        finished(merge, merge->damaged);
        break;
    }
}

/* ---- all of it ----------------------------------------------------------- */

/* Sets the primary to which adds are offered: the one that we follow, once we
 * have its data. */
static void
aim(struct merge *merge)
{
    struct role role = role_copy(merge->roles.loop0->service);
    bool can = merge->options.on && role.replica &&
               role.epoch == *merge->roles.epoch &&
               replica_is_connected(merge->roles.replica);

    offer_set_target(merge->offer, can ? role.host : NULL, can ? role.port : 0,
                     run_clock_ms());
    if (can && offer_is_idle(merge->offer) &&
        run_clock_ms() >= merge->find_at_ms) {
        offer_begin(merge->offer);
    }
}

bool
merge_begin(struct merge *merge, const struct wire_answer *answer)
{
    if (merge->options.on && !merge_needs_data(merge) &&
        merge_save_begin(&merge->save, &merge->options, answer)) {
        merge_look(merge);
    }
    return merge_needs_data(merge);
}

bool
merge_needs_data(const struct merge *merge)
{
    return merge->save.stage != MERGE_SAVE_NONE;
}

void
merge_look(struct merge *merge)
{
    if (merge->runs != JOB_NONE && !task_is_running(merge->task)) {
        enum job done = merge->runs;

        merge->runs = JOB_NONE;
        job_done(merge, done);
    }
    merge_save_look(&merge->save);
    aim(merge);
    offer_tick(merge->offer, run_clock_ms());
    if (merge->runs == JOB_NONE) {
        start_job(merge);
    }
}

void
merge_set_options(struct merge *merge, const struct merge_options *options)
{
    merge->options = *options;
    offer_set_limits(merge->offer, options->timeout_ms, MOVED_MS);
}

struct merge *
merge_new(const struct merge_roles *roles)
{
    struct merge *merge = mem_zalloc(sizeof(*merge));
    const struct offer_hooks hooks = { .read = read_batch,
                                       .send = send_batch,
                                       .close = close_link,
                                       .restart = restart,
                                       .refuse = refuse_item,
                                       .store = store,
                                       .ctx = merge };

    merge->roles = *roles;
    merge->again_at_ms = UINT64_MAX;
    merge->save.held = merge->read.held = &merge->held;
    merge->offer = offer_new(&hooks);
    merge->save.roles = &merge->roles;
    merge->save.log.raw_fd = merge->read.fd = merge->read.refused_fd = -1;
    merge->task = task_new("merge", roles->poke, roles->ctx);
    return merge;
}

void
merge_stop(struct merge *merge)
{
    close_link(merge);
    task_wait(merge->task);
    merge_save_end(&merge->save);
    merge->runs = merge->read_job = JOB_NONE;
}

void
merge_free(struct merge *merge)
{
    if (merge == NULL) {
        return;
    }
    task_free(merge->task);
    merge_save_end(&merge->save);
    merge_read_end(&merge->read);
    merge_held_fini(&merge->held);
    offer_free(merge->offer);
    mem_free(merge->refusals);
    mem_free(merge);
}

void
merge_write_again(struct merge *merge)
{
    merge->again_at_ms = 0;
}
