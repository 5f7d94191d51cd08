/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A save that fails must not keep this server from following its primary: the
 * log says what is lost.
 */
#include "heal/merge_save.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/run_clock.h"
#include "engine/loop0.h"
#include "engine/service.h"
#include "heal/merge_state.h"
#include "keyspace/gate.h"
#include "persist/persist.h"
#include "persist/place.h"
#include "repl/backlog.h"
#include "repl/primary.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

enum {
    SLICE_NS = 500 * 1000, /* of looking up names, under the raised gate */
    SLICE_NAMES = 64,
    /* Time for the journal's writer to reach the part's end. */
    JOURNAL_MS = 5000,
    JOURNAL_PAUSE_MS = 20
};

static void
note_saved(struct merge_save *save, const char *history, uint64_t end)
{
    memcpy(save->history, history, sizeof(save->history));
    save->end = end;
}

static void
lose(struct merge_save *save, uint64_t position, uint64_t end,
     const char *reason)
{
    merge_state_lose(save->roles->state, end - position);
    log_error("server.merge", "lost changes that the primary does not have",
              "position=%llu bytes=%llu reason=\"%s\"",
              (unsigned long long)position,
              (unsigned long long)(end - position), reason);
}

/* ---- begin --------------------------------------------------------------- */

/* Lends the bytes to the save, if the backlog has all of them. */
static bool
lend(struct merge_save *save)
{
    struct backlog *backlog = save->roles->backlog;
    struct merge_log *log = &save->log;
    size_t max = backlog_slices(log->end - log->position);

    save->roles->seal(save->roles->ctx);
    if (backlog_is_broken(backlog) || log->position < backlog_first(backlog) ||
        log->end > backlog_sealed(backlog)) {
        return false;
    }
    log->slices = mem_try_alloc(max * sizeof(struct slice));
    if (log->slices == NULL) {
        return false;
    }
    log->count =
        backlog_lend(backlog, log->position, log->end, log->slices, max);
    CHECK(log->count > 0);
    save->lent = true;
    return true;
}

/* Makes the thread read the bytes from the journal. False: there is no journal.
 */
static bool
use_journal(struct merge_save *save, const char *name)
{
    char path[PATH_MAX];

    if (name == NULL) {
        return false;
    }
    (void)snprintf(path, sizeof(path), "%s/%s", save->log.dir, name);
    save->log.journal_dir = mem_copy_text(slice_of(path));
    return true;
}

static bool
begin_save(struct merge_save *save, const struct merge_options *options,
           uint64_t position)
{
    save->log = (struct merge_log){ .dir = options->dir,
                                    .position = position,
                                    .end = save->end,
                                    .key = *save->roles->key,
                                    .quarantine_max = options->quarantine_max,
                                    .held = save->held,
                                    .raw_fd = -1 };
    memcpy(save->log.history, save->history, sizeof(save->log.history));
    if (!lend(save) && !use_journal(save, options->journal)) {
        lose(save, position, save->end,
             "the backlog does not reach so far back (merge-log-max-bytes), "
             "and there is no journal");
        return false;
    }
    log_notice("server.merge", "saves what the primary does not have",
               "history=%s position=%llu bytes=%llu from=%s", save->history,
               (unsigned long long)position,
               (unsigned long long)(save->end - position),
               save->lent ? "backlog" : "journal");
    save->stage = MERGE_SAVE_COLLECT;
    save->again_ms = 0;
    save->give_up_ms = run_clock_ms() + JOURNAL_MS;
    return true;
}

bool
merge_save_begin(struct merge_save *save, const struct merge_options *options,
                 const struct wire_answer *answer)
{
    struct persist *persist = save->roles->loop0->service->persist;
    uint64_t furthest = primary_furthest(save->roles->primary);
    struct history theirs = { .id = "" };
    struct history ours;
    uint64_t position;
    uint64_t sequence;
    uint64_t end;

    CHECK(save->stage == MERGE_SAVE_NONE);
    merge_state_history(save->roles->state, &ours);
    persist_place(persist, &end, &sequence);
    memcpy(theirs.id, answer->history, sizeof(theirs.id));
    memcpy(theirs.past, answer->past, sizeof(theirs.past));
    if (end == save->end && strcmp(ours.id, save->history) == 0) {
        return false;
    }
    if (!history_common(&ours, end, &theirs, answer->position, &position)) {
        if (furthest > 0 && furthest < end) {
            note_saved(save, ours.id, end);
            lose(save, furthest, end, "the primary has no part of this log");
        } else if (furthest == 0 && *save->roles->has_replicas) {
            log_error("server.merge",
                      "may lose changes that the primary does not have",
                      "reason=\"the primary has no part of this log, and no "
                      "replica has acknowledged any since the start\"");
        }
        return false;
    }
    if (position >= end) {
        return false;
    }
    note_saved(save, ours.id, end);
    return begin_save(save, options, position);
}

/* ---- the thread ---------------------------------------------------------- */

merge_save_fn
merge_save_job(struct merge_save *save)
{
    if (save->stage == MERGE_SAVE_COLLECT && run_clock_ms() >= save->again_ms) {
        save->stage = MERGE_SAVE_COLLECTS;
        return merge_log_collect;
    }
    if (save->stage == MERGE_SAVE_WRITE) {
        save->stage = MERGE_SAVE_WRITES;
        return merge_log_write;
    }
    return NULL;
}

static uint64_t
end_save(struct merge_save *save)
{
    const struct merge_log *log = &save->log;
    uint64_t bytes = log->error == 0 ? log->heal_bytes : 0;

    if (log->error != 0) {
        lose(save, log->position, log->end, strerror(log->error));
    } else if (log->missing > 0) {
        lose(save, log->position, log->position + log->missing,
             "rewrites of the journal have not kept it "
             "(merge-journal-max-bytes)");
    }
    if (log->error == 0) {
        log_notice("server.merge", "saved what the primary does not have",
                   "history=%s position=%llu adds=%llu quarantined=%llu "
                   "dropped=%llu",
                   log->history, (unsigned long long)log->position,
                   (unsigned long long)log->offered,
                   (unsigned long long)log->quarantined,
                   (unsigned long long)log->lost);
        metric_add(METRIC_MERGE_QUARANTINED, (int64_t)log->quarantined);
        metric_add(METRIC_MERGE_DROPPED, (int64_t)log->lost);
    }
    merge_log_end(&save->log);
    save->stage = MERGE_SAVE_NONE;
    return bytes;
}

static uint64_t
collected(struct merge_save *save)
{
    if (save->lent) {
        save->lent = false;
        backlog_return(save->roles->backlog);
    }
    if (save->log.error == ENODATA && run_clock_ms() < save->give_up_ms) {
        save->again_ms = run_clock_ms() + JOURNAL_PAUSE_MS;
        save->stage = MERGE_SAVE_COLLECT;
        return 0;
    }
    if (save->log.error == ENODATA && save->log.journal_dir != NULL &&
        !save->log.skips_kept) {
        save->log.skips_kept = true;
        save->stage = MERGE_SAVE_COLLECT;
        return 0;
    }
    if (save->log.error != 0) {
        return end_save(save);
    }
    save->stage = MERGE_SAVE_RESOLVES;
    save->resolved = 0;
    return 0;
}

uint64_t
merge_save_done(struct merge_save *save)
{
    return save->stage == MERGE_SAVE_COLLECTS ? collected(save)
                                              : end_save(save);
}

/* ---- names --------------------------------------------------------------- */

/* Returns the incarnation of a key to which adds may be offered, or 0. */
static uint64_t
incarnation_of(struct keyspace *ks, const struct merge_name *name)
{
    struct key key = key_named(name->name, name->db);
    const struct entry *entry;

    if (name->touched || name->db >= keyspace_databases(ks)) {
        return 0;
    }
    entry = keyspace_find(ks, &key, 0);
    if (entry == NULL || bloom_is_incomplete(&entry->bloom) ||
        bloom_kind(&entry->bloom) >= BLOOM_DELETABLE) {
        return 0;
    }
    return entry->incarnation;
}

/* Looks up some of the names, while no command runs. */
static void
resolve(struct merge_save *save)
{
    struct keyspace *ks = save->roles->loop0->service->keyspace;
    struct merge_sift *sift = save->log.sift;
    size_t count = merge_sift_count(sift);
    uint64_t until_ns = clock_mono_ns() + SLICE_NS;

    gate_raise(keyspace_gate(ks), 0);
    while (save->resolved < count) {
        struct merge_name *name = merge_sift_name(sift, save->resolved);

        name->incarnation = incarnation_of(ks, name);
        save->resolved++;
        if (save->resolved % SLICE_NAMES == 0 && clock_mono_ns() >= until_ns) {
            break;
        }
    }
    gate_lower(keyspace_gate(ks), 0);
    if (save->resolved == count) {
        save->stage = MERGE_SAVE_WRITE;
    } else {
        save->roles->poke(save->roles->ctx);
    }
}

void
merge_save_look(struct merge_save *save)
{
    if (save->stage == MERGE_SAVE_RESOLVES) {
        resolve(save);
    }
}

void
merge_save_end(struct merge_save *save)
{
    if (save->lent) {
        save->lent = false;
        backlog_return(save->roles->backlog);
    }
    merge_log_end(&save->log);
    save->stage = MERGE_SAVE_NONE;
}
