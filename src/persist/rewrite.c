/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First a task makes a new increment and a manifest that names it, too. Then
 * the base is written, while the journal goes on in its old file. At the end of
 * the walk, under the raised gate and only in memory, the journal turns to the
 * new increment: the base is the state of that position. When the base is on
 * the disk, a task stores the next manifest, which begins with it, and removes
 * the files that the journal no longer needs.
 *
 *   manifest g      base-1 incr-1
 *   manifest g+1    base-1 incr-1 incr-2          prepared
 *                   ... the base's walk ...
 *                   ... gate: incr-2 from position E on ...
 *   manifest g+2    base-2 (at E) incr-2          committed
 *
 * At any time, the manifest on the disk names a complete journal. A failure
 * before E changes nothing. After a fault the old increment may lack effects
 * before E. So g+1 is left out, and nothing is released until g+2.
 */
#include "persist/rewrite.h"
#include "keyspace/gate.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "journal/group.h"
#include "persist/full_state.h"
#include "persist/journal_dir.h"
#include "persist/persist_state.h"
#include "persist/place.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum {
    RETRY_FIRST_S = 1,
    RETRY_MAX_S = 60,
    RETRY_FAULT_MAX_S = 2, /* clients wait */
    INCREMENTS_MANY = 64 /* each start adds one; write a new base at so many */
};

static const uint64_t SECOND_NS = 1000000000;

/* ---- manifests ----------------------------------------------------------- */

static void
add_increment(struct manifest *manifest, uint64_t number)
{
    CHECK(manifest->count < MANIFEST_INCREMENTS_MAX);
    manifest->increments[manifest->count++] =
        (struct manifest_increment){ .number = number };
}

/* Drops the increment of an attempt that failed before the journal turned to
 * it. It has no groups, and the next increment takes its place in the manifest.
 * So failed attempts do not fill the manifest. */
static void
drop_unused(const struct persist *persist, struct manifest *manifest)
{
    if (manifest->count > 0 && persist->files.unused != 0 &&
        manifest->increments[manifest->count - 1].number ==
            persist->files.unused) {
        manifest->count--;
    }
}

/* Closes an increment in the manifest, now that its size is known. Leaves it
 * open if an increment before it is open, since closed increments come before
 * open ones. That is harmless. */
static void
close_increment(struct manifest *manifest, uint64_t number, uint64_t bytes)
{
    for (uint32_t i = 0; i < manifest->count; i++) {
        if (i > 0 && !manifest->increments[i - 1].closed) {
            return;
        }
        if (manifest->increments[i].number == number && bytes > 0) {
            manifest->increments[i].closed = true;
            manifest->increments[i].bytes = bytes;
        }
    }
}

/* ---- a rewrite, step by step --------------------------------------------- */

static void
fail_rewrite(struct persist *persist, const char *what, int error)
{
    struct journal_status status;

    journal_get_status(persist->journal, &status);
    retry_failed(&persist->rewrite_retry, RETRY_FIRST_S * SECOND_NS,
                 (status.faulted ? RETRY_FAULT_MAX_S : RETRY_MAX_S) *
                     SECOND_NS);
    log_error("persist.rewrite", "failed to rewrite the journal",
              "step=\"%s\" error=\"%s\" failures=%llu", what, strerror(error),
              (unsigned long long)persist->rewrite_retry.failures);
    persist->step = STEP_NONE;
    persist->info.last_rewrite_error = error;
    requests_settle(&persist->requests[PERSIST_REWRITE], false);
    persist->adopted.failed = true;
    persist->options.hooks.moved(persist->options.hooks.ctx);
}

/* Returns whether a start would still find the last manifest, after the new one
 * could not be stored. If not, a start may find either of them. */
static bool
is_undone(const struct persist *persist)
{
    struct manifest there;
    char reason[256];

    return manifest_load(persist->journal_fd, &there, reason, sizeof(reason)) ==
               MANIFEST_OK &&
           there.generation == persist->files.manifest.generation &&
           there.count == persist->files.manifest.count &&
           there.base_number == persist->files.manifest.base_number;
}

/* Notes that the new manifest may or may not be on the disk. It names a
 * complete journal, as the one before it does. So the files of both stay, and a
 * later manifest must have a higher generation. */
static void
doubt(struct persist *persist)
{
    struct persist_rewrite *rewrite = &persist->rewrite;

    if (!rewrite->doubtful) {
        return;
    }
    persist->files.doubt =
        persist->files.doubt == DOUBT_NONE ? DOUBT_ONE : DOUBT_MANY;
    persist->files.doubtful = rewrite->manifest;
    persist->files.manifest.generation = rewrite->manifest.generation;
}

static void
trust(struct persist *persist)
{
    persist->files.doubt = DOUBT_NONE;
}

void
rewrite_forget(struct persist *persist)
{
    if (persist->step == STEP_PREPARE) {
        rewrite_abandon(persist);
    }
    persist->step = STEP_NONE;
}

void
rewrite_start_over(struct persist *persist)
{
    uint64_t generation = persist->files.manifest.generation;

    trust(persist);
    persist->files.manifest = (struct manifest){ .generation = generation };
    persist->files.has_manifest = false;
    persist->files.old_bytes = persist->info.base_bytes = 0;
}

static void
prepare(void *arg)
{
    struct persist *persist = arg;
    struct persist_rewrite *rewrite = &persist->rewrite;

    rewrite->file.fd = -1;
    rewrite->doubtful = false;
    /* A rotation continues with the present files. */
    rewrite->error =
        rewrite->how == JOURNAL_ROTATE && persist->journal_fd >= 0
            ? file_is_dir_at(persist->journal_fd, persist->journal_dir)
            : journal_dir_open(persist);
    if (rewrite->error == 0) {
        /* Files of earlier attempts are not needed. */
        journal_dir_clean(persist, &persist->files.manifest);
        rewrite->error = journal_dir_make_increment(persist, rewrite->number,
                                                    &rewrite->file);
    }
    if (rewrite->error == 0 && !rewrite->keep_manifest) {
        rewrite->manifest.generation++;
        add_increment(&rewrite->manifest, rewrite->number);
        rewrite->error =
            manifest_store(persist->journal_fd, &rewrite->manifest);
        rewrite->doubtful = rewrite->error != 0 && !is_undone(persist);
    }
}

void
rewrite_begin(struct persist *persist, enum journal_target how)
{
    struct persist_rewrite *rewrite = &persist->rewrite;
    struct journal_status status;

    CHECK(persist->step == STEP_NONE);
    requests_begin(&persist->requests[PERSIST_REWRITE]);
    journal_get_status(persist->journal, &status);
    rewrite->how = how;
    rewrite->arrived = persist->adopted.arrived;
    rewrite->losses = persist->presence.losses;
    rewrite->number = persist->files.next_number++;
    rewrite->manifest = persist->files.manifest;
    drop_unused(persist, &rewrite->manifest);
    close_increment(&rewrite->manifest, status.closed_number,
                    status.closed_bytes);
    rewrite->keep_manifest = how != JOURNAL_ROTATE || status.building;
    CHECK(rewrite->keep_manifest || persist->files.has_manifest);
    if (!rewrite->keep_manifest &&
        rewrite->manifest.count >= MANIFEST_INCREMENTS_MAX) {
        fail_rewrite(persist, "too many failures: the next start makes a base",
                     EMFILE);
        return;
    }
    persist->step = STEP_PREPARE;
    persist->step_started_ns = clock_mono_ns();
    task_start(persist->task, prepare, persist);
}

void
rewrite_turn(struct persist *persist, uint64_t position, uint64_t sequence)
{
    struct persist_rewrite *rewrite = &persist->rewrite;
    struct journal_status before;

    journal_get_status(persist->journal, &before);
    persist->files.old_bytes += before.file_bytes;
    rewrite->position = position;
    rewrite->sequence = sequence;
    journal_set_target(persist->journal, rewrite->how, &rewrite->file,
                       &rewrite->position, &rewrite->sequence);
    rewrite->file.fd = -1; /* the journal owns it now */
    persist->files.unused = 0;
    if (rewrite->how == JOURNAL_BUILD) {
        persist->options.hooks.journaling(persist->options.hooks.ctx,
                                          persist->journal);
    }
}

bool
rewrite_has_turned(const struct persist *persist)
{
    return persist->rewrite.file.fd < 0;
}

void
rewrite_abandon(struct persist *persist)
{
    file_close(persist->rewrite.file.fd);
    persist->rewrite.file.fd = -1;
}

void
rewrite_prepared(struct persist *persist)
{
    struct persist_rewrite *rewrite = &persist->rewrite;
    char name[MANIFEST_FILE_NAME_MAX];
    struct walker_job job;

    if (rewrite->error != 0) {
        rewrite_abandon(persist);
        doubt(persist);
        fail_rewrite(persist, "next increment", rewrite->error);
        return;
    }
    if (!rewrite->keep_manifest) {
        persist->files.manifest = rewrite->manifest;
        persist->files.unused = rewrite->number;
        trust(persist);
    }
    manifest_base_name(rewrite->number, name);
    persist->step = STEP_BASE;
    job = full_state_job(persist, persist->journal_fd, name);
    full_state_start(&persist->own, &job);
    log_notice("persist.rewrite", "began a new base",
               "number=%llu position=%llu", (unsigned long long)rewrite->number,
               (unsigned long long)job.begin.position);
}

/* Stores the manifest that begins with the new base. */
static void
store_manifest(struct persist *persist)
{
    struct persist_rewrite *rewrite = &persist->rewrite;
    char name[MANIFEST_FILE_NAME_MAX];

    rewrite->manifest = (struct manifest){
        .generation = persist->files.manifest.generation + 1,
        .base_number = rewrite->number,
        .position = rewrite->position,
        .sequence = rewrite->sequence,
    };
    add_increment(&rewrite->manifest, rewrite->number);
    journal_dir_keep(persist, &rewrite->manifest, rewrite->needed,
                     rewrite->limit_bytes);
    rewrite->error = manifest_store(persist->journal_fd, &rewrite->manifest);
    if (rewrite->error == 0) {
        rewrite->error =
            file_is_dir_at(persist->journal_fd, persist->journal_dir);
    }
    rewrite->doubtful = rewrite->error != 0 && !is_undone(persist);
    if (rewrite->error == 0) {
        manifest_base_name(rewrite->number, name);
        rewrite->base_bytes = journal_dir_bytes(persist->journal_fd, name);
        trust(persist);
        journal_dir_clean(persist, &rewrite->manifest);
    }
}

static void
commit(void *arg)
{
    store_manifest(arg);
}

void
rewrite_base_written(struct persist *persist, int error)
{
    if (error != 0) {
        rewrite_abandon(persist);
        fail_rewrite(persist, "base", error);
        return;
    }
    /* After a fault, or when the journal was off, the log has gaps. */
    persist->rewrite.needed = persist->needed;
    persist->rewrite.limit_bytes =
        persist->rewrite.keep_manifest ? 0 : persist->needed_max_bytes;
    persist->step = STEP_COMMIT;
    task_start(persist->task, commit, persist);
}

void
rewrite_committed(struct persist *persist)
{
    struct persist_rewrite *rewrite = &persist->rewrite;
    uint64_t took_ns = clock_mono_ns() - persist->step_started_ns;

    if (rewrite->error != 0) {
        doubt(persist);
        fail_rewrite(persist, "manifest", rewrite->error);
        return;
    }
    CHECK(rewrite->manifest.generation > persist->files.manifest.generation);
    persist->files.manifest = rewrite->manifest;
    persist->files.has_manifest = true;
    journal_base_done(persist->journal, rewrite->position, rewrite->sequence);
    persist->files.old_bytes = 0;
    persist->rewrite_retry = (struct retry){ 0 };
    persist->info.base_bytes = rewrite->base_bytes;
    persist->info.last_rewrite_seconds = (int64_t)(took_ns / SECOND_NS);
    persist->info.rewrites++;
    persist->step = STEP_NONE;
    requests_settle(&persist->requests[PERSIST_REWRITE], true);
    persist->options.hooks.moved(persist->options.hooks.ctx);
    log_notice("persist.rewrite", "rewrote the journal",
               "base=%llu generation=%llu bytes=%llu ms=%llu",
               (unsigned long long)rewrite->number,
               (unsigned long long)persist->files.manifest.generation,
               (unsigned long long)rewrite->base_bytes,
               (unsigned long long)(took_ns / 1000000));
}

/* ---- a base that is there ------------------------------------------------ */

/* Links the snapshot as a base, if the file system can do that. */
static int
link_base(const struct persist *persist, uint64_t number)
{
    char name[MANIFEST_FILE_NAME_MAX];

    manifest_base_name(number, name);
    (void)!file_unlink(persist->journal_fd, name);
    return file_link(persist->dir_fd, persist->snapshot_name,
                     persist->journal_fd, name);
}

void
rewrite_base(struct persist *persist)
{
    struct persist_rewrite *rewrite = &persist->rewrite;
    int error = journal_dir_open(persist);

    rewrite->file.fd = -1;
    rewrite->doubtful = false;
    rewrite->limit_bytes = 0; /* the old log is useless now */
    if (error == 0) {
        error = link_base(persist, rewrite->number);
    }
    if (error == 0) { /* this also syncs the directory */
        error = journal_dir_make_increment(persist, rewrite->number,
                                           &rewrite->file);
    }
    if (error == 0) {
        store_manifest(persist);
        error = rewrite->error;
    }
    rewrite->error = error;
}

void
rewrite_outdated(struct persist *persist)
{
    rewrite_start_over(persist);
    persist->files.manifest.generation = persist->rewrite.manifest.generation;
    doubt(persist);
    rewrite_abandon(persist);
}

void
rewrite_based(struct persist *persist)
{
    struct persist_rewrite *rewrite = &persist->rewrite;

    rewrite_start_over(persist);
    if (rewrite->error != 0) {
        log_warn("persist.rewrite", "could not make a snapshot the base",
                 "error=\"%s\" next=\"writes a base\"",
                 strerror(rewrite->error));
        doubt(persist);
        rewrite_abandon(persist);
        return;
    }
    persist->files.manifest = rewrite->manifest;
    persist->files.has_manifest = true;
    persist->info.base_bytes = rewrite->base_bytes;
    if (!journal_end_hold(persist->journal, &rewrite->file)) {
        rewrite_abandon(persist);
    }
    rewrite->file.fd = -1;
}

void
persist_keep_log(struct persist *persist, uint64_t position,
                 uint64_t limit_bytes)
{
    persist->needed = position;
    persist->needed_max_bytes = limit_bytes;
}

uint64_t
rewrite_journal_bytes(const struct persist *persist,
                      const struct journal_status *status)
{
    return persist->info.base_bytes + persist->files.old_bytes +
           status->file_bytes;
}

/* ---- start --------------------------------------------------------------- */

static bool
refuse_start(const char *what, int error)
{
    log_error("persist.rewrite", "cannot keep a journal",
              "step=\"%s\" error=\"%s\"", what, strerror(error));
    return false;
}

static int
sync_file(int dir_fd, const char *name)
{
    int fd = -1;
    int error = file_open(dir_fd, name, &fd);

    if (error == 0) {
        error = file_sync(fd);
        file_close(fd);
    }
    return error;
}

/* Syncs the old files, which from now on count as closed. After a crash, or if
 * they were copied here, they may be only in the page cache. */
static int
sync_files(int journal_fd, const struct manifest *manifest)
{
    char name[MANIFEST_FILE_NAME_MAX];
    int error;

    manifest_base_name(manifest->base_number, name);
    error = sync_file(journal_fd, name);
    for (uint32_t i = 0; i < manifest->count && error == 0; i++) {
        manifest_increment_name(manifest->increments[i].number, name);
        error = sync_file(journal_fd, name);
    }
    return error;
}

uint64_t
rewrite_next_number(const struct manifest *manifest)
{
    uint64_t highest = manifest->base_number;

    for (uint32_t i = 0; i < manifest->count; i++) {
        if (manifest->increments[i].number > highest) {
            highest = manifest->increments[i].number;
        }
    }
    return highest + 1;
}

bool
rewrite_set_aside(struct persist *persist, bool journals)
{
    const struct recover_result *found = &persist->load.found;
    int error = 0;

    if (found->journal_stale) {
        error = journal_dir_set_aside(persist, "the snapshot is newer");
        persist->files.manifest =
            error == 0 ? (struct manifest){ 0 } : persist->files.manifest;
    }
    if (error != 0 && journals) {
        return refuse_start("set the old journal aside", error);
    }
    if (error != 0) {
        log_warn("persist.rewrite", "could not set the old journal aside",
                 "error=\"%s\"", strerror(error));
    }
    return true;
}

/* Makes a base of the state just loaded: a hard link of its snapshot if the
 * file system can do that, else a new file. */
static int
make_first_base(struct persist *persist, uint64_t number)
{
    const struct recover_result *found = &persist->load.found;
    char name[MANIFEST_FILE_NAME_MAX];
    struct walker_job job;
    int error;

    manifest_base_name(number, name);
    if (found->from_snapshot && link_base(persist, number) == 0) {
        error = sync_file(persist->journal_fd, name);
        return error == 0 ? file_sync_dir(persist->journal_fd) : error;
    }
    job = full_state_job(persist, persist->journal_fd, name);
    return full_state_write_here(persist, &job);
}

static int
store_first_manifest(struct persist *persist, struct journal_file *ret_file)
{
    const struct recover_result *found = &persist->load.found;
    struct manifest *manifest = &persist->files.manifest;
    char name[MANIFEST_FILE_NAME_MAX];
    bool goes_on =
        found->has_manifest && manifest->count < MANIFEST_INCREMENTS_MAX;
    int error = goes_on ? sync_files(persist->journal_fd, manifest) : 0;

    /* ENOENT: the files disappeared during the load. */
    if (!goes_on || error == ENOENT) {
        uint64_t generation = manifest->generation;
        uint64_t number = persist->files.next_number++;

        *manifest = (struct manifest){ .generation = generation,
                                       .base_number = number,
                                       .position = found->position,
                                       .sequence = found->sequence };
        error = make_first_base(persist, number);
    }
    if (error == 0) {
        error = journal_dir_make_increment(persist, persist->files.next_number,
                                           ret_file);
    }
    if (error != 0) {
        return error;
    }
    add_increment(manifest, persist->files.next_number++);
    manifest->generation++;
    error = manifest_store(persist->journal_fd, manifest);
    if (error == 0) {
        manifest_base_name(manifest->base_number, name);
        persist->info.base_bytes = journal_dir_bytes(persist->journal_fd, name);
        journal_dir_clean(persist, manifest);
    }
    return error;
}

static uint64_t
closed_bytes(const struct manifest *manifest)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < manifest->count; i++) {
        bytes +=
            manifest->increments[i].closed ? manifest->increments[i].bytes : 0;
    }
    return bytes;
}

bool
rewrite_resume(struct persist *persist)
{
    const struct recover_result *found = &persist->load.found;
    struct journal_file file = { .fd = -1 };
    uint64_t position = found->position;
    uint64_t sequence = found->sequence;
    int error;

    error = journal_dir_open(persist);
    if (error != 0) {
        return refuse_start("open the directory", error);
    }
    error = store_first_manifest(persist, &file);
    if (error != 0) {
        file_close(file.fd);
        return refuse_start("begin an increment", error);
    }
    persist->files.has_manifest = true;
    persist->files.old_bytes = closed_bytes(&persist->files.manifest);
    if (persist->files.manifest.count >= INCREMENTS_MANY || found->without_id) {
        (void)requests_ask(&persist->requests[PERSIST_REWRITE]);
    }
    gate_raise(persist->gate, 0);
    journal_set_target(persist->journal, JOURNAL_RESUME, &file, &position,
                       &sequence);
    persist->options.hooks.journaling(persist->options.hooks.ctx,
                                      persist->journal);
    gate_lower(persist->gate, 0);
    return true;
}
