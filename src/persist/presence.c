/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The data directory or the journal may be moved or removed while the server
 * runs. Then the server would go on writing to the open files, and no start
 * would find them. So a task checks the paths a few times a second, since a
 * loop must not wait for a disk. A journal that is gone is a fault like a
 * failed write: replies are held back until there is a new base, in new files
 * at the old path. A data directory that is gone is opened again, or made. The
 * same task reads how much space the disk has.
 */
#include "persist/presence.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "persist/directory.h"
#include "persist/full_state.h"
#include "persist/hash_secret.h"
#include "persist/persist_state.h"
#include "persist/reload.h"
#include "persist/rewrite.h"
#include "persist/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { PATH_BYTES = 2048 };

static const uint64_t LOOK_NS = 300000000;
static const uint64_t SECOND_NS = 1000000000;

/* ---- looking ------------------------------------------------------------- */

/* Returns the error if it says that a file is not there, else 0: other errors
 * say nothing about that. */
static int
only_absence(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ESTALE ? error : 0;
}

static int
look_for_file(const struct persist *persist, const char *name)
{
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof(path), "%s/%s", persist->journal_dir, name);
    return faccessat(AT_FDCWD, path, F_OK, 0) == 0 ? 0 : only_absence(errno);
}

/* Checks whether the lock file is in its place. Without it another server could
 * use the directory. Somebody who removes the directory may remove all files
 * but not the directory itself, if the server creates a file meanwhile. */
static int
look_for_lock(const struct persist *persist, const struct file_identity *lock)
{
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof(path), "%s/" DIRECTORY_LOCK, persist->dir);
    return only_absence(file_find(path, lock));
}

/* Looks for the manifest and all files that it names. */
static int
look_for_files(const struct persist *persist, const struct manifest *manifest)
{
    char name[MANIFEST_FILE_NAME_MAX];
    int error = look_for_file(persist, MANIFEST_NAME);

    manifest_base_name(manifest->base_number, name);
    if (error == 0) {
        error = look_for_file(persist, name);
    }
    for (uint32_t i = 0; i < manifest->count && error == 0; i++) {
        manifest_increment_name(manifest->increments[i].number, name);
        error = look_for_file(persist, name);
    }
    return error;
}

/* Checks the paths, as a task. It uses copies made when it started, and no
 * descriptors, since another task may close these. */
static void
look_at_dir(void *arg)
{
    struct persist *persist = arg;
    struct persist_presence *presence = &persist->presence;
    struct statvfs disk;

    presence->dir_error = only_absence(file_find(persist->dir, &presence->dir));
    if (statvfs(persist->dir, &disk) == 0) {
        presence->available = (uint64_t)disk.f_bavail * disk.f_frsize;
    }
    if (presence->dir_error == 0) {
        presence->dir_error = look_for_lock(persist, &presence->lock);
    }
    presence->journal_error = 0;
    if (presence->asks_journal) {
        presence->journal_error =
            only_absence(file_find(persist->journal_dir, &presence->journal));
    }
    if (presence->journal_error == 0 && presence->asks_files) {
        presence->journal_error = look_for_files(persist, &presence->manifest);
    }
}

/* ---- what was found ------------------------------------------------------ */

static void
lose_journal(struct persist *persist, int error)
{
    log_error("persist.presence", "the journal is gone",
              "dir=\"%s\" error=\"%s\" next=\"writes a new base to new files\"",
              persist->journal_dir, strerror(error));
    persist->presence.losses++;
    /* If the old manifest comes back, its generation is lower. */
    persist->files.manifest.generation++;
    rewrite_start_over(persist);
    /* No remaining file is removed until there is a base. */
    persist->files.doubt = DOUBT_MANY;
    journal_lose(persist->journal, error);
}

static void
lose_dir(struct persist *persist, int error)
{
    log_error("persist.presence", "the data directory is gone",
              "dir=\"%s\" error=\"%s\" next=\"opens it again, or makes it\"",
              persist->dir, strerror(error));
    persist->presence.lost_error = error;
    persist->presence.retry = (struct retry){ 0 };
    if (persist->step == STEP_SAVE) {
        full_state_break_off(&persist->own); /* the request stays due */
    }
}

/* Returns whether the result is about the present files: no step has changed
 * them since the check began. */
static bool
is_answer_to_now(const struct persist *persist)
{
    const struct persist_presence *presence = &persist->presence;

    return !task_is_running(persist->task) &&
           presence->number == persist->files.next_number &&
           presence->manifest.generation == persist->files.manifest.generation;
}

static void
judge_presence(struct persist *persist)
{
    struct persist_presence *presence = &persist->presence;
    struct journal_status status;

    presence->looking = false;
    persist->info.dir_available = presence->available;
    if (!is_answer_to_now(persist)) {
        presence->next_ns = 0;
        return;
    }
    journal_get_status(persist->journal, &status);
    if (presence->dir_error != 0 && presence->lost_error == 0) {
        lose_dir(persist, presence->dir_error);
    }
    if (presence->journal_error != 0 && status.on) {
        lose_journal(persist, presence->journal_error);
    }
    presence->sure = !presence->anew && presence->dir_error == 0 &&
                     presence->journal_error == 0;
}

void
presence_look_anew(struct persist *persist)
{
    struct persist_presence *presence = &persist->presence;

    presence->sure = false;
    presence->anew = presence->looking;
    presence->next_ns = 0;
}

bool
presence_is_sure(const struct persist *persist)
{
    return persist->lock_fd < 0 ||
           (persist->presence.sure && !presence_is_lost(persist));
}

/* Returns whether a check may begin: not while a task makes or removes files.
 */
static bool
may_look(const struct persist *persist)
{
    return persist->lock_fd >= 0 && !task_is_running(persist->task) &&
           clock_mono_ns() >= persist->presence.next_ns &&
           persist->step != STEP_PREPARE && persist->step != STEP_COMMIT &&
           persist->step != STEP_REPLACE && persist->step != STEP_REOPEN;
}

static void
begin_look(struct persist *persist, const struct journal_status *status)
{
    struct persist_presence *presence = &persist->presence;
    bool faulted = status->holding || (status->faulted && !status->building);

    presence->number = persist->files.next_number;
    presence->manifest = persist->files.manifest;
    presence->asks_journal = status->on && persist->journal_fd >= 0 && !faulted;
    presence->asks_files = presence->asks_journal &&
                           persist->files.has_manifest &&
                           persist->files.doubt == DOUBT_NONE;
    if (file_identify(persist->dir_fd, &presence->dir) != 0 ||
        file_identify(persist->lock_fd, &presence->lock) != 0 ||
        (presence->asks_journal &&
         file_identify(persist->journal_fd, &presence->journal) != 0)) {
        return;
    }
    presence->looking = true;
    presence->anew = false;
    presence->next_ns = clock_mono_ns() + LOOK_NS;
    task_start(presence->task, look_at_dir, persist);
}

void
presence_tick(struct persist *persist)
{
    struct journal_status status;

    if (persist->presence.looking) {
        if (task_is_running(persist->presence.task)) {
            return;
        }
        judge_presence(persist);
    }
    if (may_look(persist)) {
        journal_get_status(persist->journal, &status);
        begin_look(persist, &status);
    }
}

/* ---- a data directory that is gone --------------------------------------- */

static void
reopen(void *arg)
{
    struct persist *persist = arg;
    struct persist_presence *presence = &persist->presence;
    struct file_identity lock;

    presence->new_fd = presence->new_lock_fd = -1;
    presence->reopen_error = file_is_dir_at(persist->dir_fd, persist->dir);
    if (presence->reopen_error == 0) {
        presence->reopen_error = file_identify(persist->lock_fd, &lock);
    }
    if (presence->reopen_error == 0) {
        presence->reopen_error = look_for_lock(persist, &lock);
    }
    if (only_absence(presence->reopen_error) == 0) {
        return; /* the directory is back */
    }
    presence->reopen_error =
        file_open_dir(persist->dir, true, &presence->new_fd);
    if (presence->reopen_error == 0) {
        presence->reopen_error =
            directory_lock(persist, presence->new_fd, &presence->new_lock_fd);
    }
    if (presence->reopen_error == 0) {
        presence->reopen_error =
            hash_secret_write_again(persist, presence->new_fd);
    }
}

bool
presence_is_lost(const struct persist *persist)
{
    return persist->presence.lost_error != 0;
}

void
presence_reopen(struct persist *persist)
{
    if (retry_is_due(&persist->presence.retry)) {
        persist->step = STEP_REOPEN;
        task_start(persist->task, reopen, persist);
    } else if (requests_are_due(&persist->requests[PERSIST_SAVE])) {
        persist->step_started_ns = clock_mono_ns();
        requests_begin(&persist->requests[PERSIST_SAVE]);
        save_ended(persist, persist->presence.lost_error);
    } else if (reload_is_due(persist)) {
        reload_fail(persist);
    }
}

void
presence_reopened(struct persist *persist)
{
    struct persist_presence *presence = &persist->presence;
    const struct persist_hooks *hooks = &persist->options.hooks;
    int error = presence->reopen_error;

    persist->step = STEP_NONE;
    if (error != 0) {
        file_close(presence->new_fd);
        file_close(presence->new_lock_fd);
        retry_failed(&presence->retry, SECOND_NS, SECOND_NS);
        log_error("persist.presence", "cannot use the data directory",
                  "dir=\"%s\" error=\"%s\"", persist->dir, strerror(error));
        return;
    }
    presence->lost_error = 0;
    if (presence->new_fd >= 0) {
        file_close(persist->dir_fd);
        file_close(persist->lock_fd);
        persist->dir_fd = presence->new_fd;
        persist->lock_fd = presence->new_lock_fd;
        persist->save.stored = (struct persist_point){ 0 };
    }
    log_notice("persist.presence", "opened the data directory again",
               "dir=\"%s\" new=%d", persist->dir, presence->new_fd >= 0);
    if (presence->saves) {
        presence->refill_ticket =
            requests_ask(&persist->requests[PERSIST_SAVE]);
    }
    if (presence->new_fd >= 0) {
        presence->refills = true;
        if (hooks->moved_in != NULL) {
            hooks->moved_in(hooks->ctx);
        }
    }
}

void
presence_look_at_refill(struct persist *persist,
                        const struct persist_conf *conf,
                        const struct journal_status *status)
{
    struct persist_presence *presence = &persist->presence;
    const struct persist_hooks *hooks = &persist->options.hooks;
    bool journaled = status->on && !status->building && !status->faulted;
    bool saved = presence->refill_ticket == 0 ||
                 requests_outcome(&persist->requests[PERSIST_SAVE],
                                  presence->refill_ticket) == PERSIST_DONE;

    if (presence->refills && !persist->suspended &&
        (conf->appendonly ? journaled : saved)) {
        presence->refills = false;
        if (hooks->refilled != NULL) {
            hooks->refilled(hooks->ctx);
        }
    }
}

/* ---- a start ------------------------------------------------------------- */

bool
presence_check_start(struct persist *persist, bool saves)
{
    struct persist_presence *presence = &persist->presence;
    int error =
        persist->lock_fd >= 0
            ? only_absence(file_is_dir_at(persist->dir_fd, persist->dir))
            : 0;

    if (error == 0) {
        return true;
    }
    presence->saves = saves;
    lose_dir(persist, error);
    reopen(persist);
    /* A snapshot in the new directory is not ours. */
    if (presence->new_fd >= 0) {
        persist->load.found.from_snapshot = false;
    }
    presence_reopened(persist);
    return presence->reopen_error == 0;
}
