/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The new text is written beside the old one, synced, given its mode and
 * owner, and renamed over it.
 */
#include "admin/conf_file.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf_load.h"
#include "conf/conf_rewrite.h"
#include "persist/task.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20 };

struct conf_file_job {
    atomic_int owners; /* the caller, and the thread */
    atomic_bool done;
    bool failed;
    struct conf_error error;
    struct conf conf;
    struct conf_file *file;
};

struct conf_file {
    const char *path;
    struct task *task;
    pthread_mutex_t mutex; /* of who begins a job */
};

/* ---- one file ------------------------------------------------------------ */

/* A name in an open directory. */
struct place {
    int dir_fd;
    char dir[PATH_MAX];
    char name[NAME_MAX + 1];
};

static int
open_place(const char *path, struct place *place)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    int dir_len = slash == path ? 1 : slash != NULL ? (int)(slash - path) : 0;

    if ((size_t)dir_len >= sizeof(place->dir) ||
        strlen(name) >= sizeof(place->name)) {
        return ENAMETOOLONG;
    }
    (void)snprintf(place->dir, sizeof(place->dir), "%.*s",
                   dir_len > 0 ? dir_len : 1, dir_len > 0 ? path : ".");
    (void)snprintf(place->name, sizeof(place->name), "%s", name);
    return file_open_dir(place->dir, false, &place->dir_fd);
}

/* What the file holds; of one that is missing, nothing. */
static int
read_text(const struct place *place, struct buf *ret_text,
          struct stat *ret_stat)
{
    uint64_t bytes = 0;
    size_t got = 0;
    int fd = -1;
    int error = file_open(place->dir_fd, place->name, &fd);
    char *to;

    if (error != 0) {
        return error;
    }
    error = file_size(fd, &bytes);
    if (error == 0 && bytes > FILE_BYTES_MAX) {
        error = EFBIG;
    }
    if (error == 0 && fstat(fd, ret_stat) != 0) {
        error = errno;
    }
    to = error == 0 ? buf_reserve(ret_text, (size_t)bytes + 1) : NULL;
    if (error == 0 && to == NULL) {
        error = ENOMEM;
    }
    if (error == 0) {
        error = file_read_at(fd, to, (size_t)bytes, 0, &got);
        ret_text->len += got;
    }
    file_close(fd);
    return error;
}

/* ---- the two of them ----------------------------------------------------- */

struct work {
    struct conf_file_job *job;
    const char *path; /* of the file, "" if there is none */
    char beside_path[CONF_VALUE_MAX + 32]; /* of the other one */
    struct place place, beside;
    struct buf text;
    struct stat stat;
    int error;    /* why the file cannot be written */
    bool unknown; /* it is there, but what it says could not be read */
};

static bool
fail(struct work *work, const char *path, int error)
{
    conf_error_set(&work->job->error, "%s: %s", path, strerror(error));
    return false;
}

/* False if the text is there and is no configuration. */
static bool
open_file(struct work *work)
{
    struct conf trial;
    bool good;

    work->error =
        work->path[0] == '\0' ? ENOENT : open_place(work->path, &work->place);
    if (work->error == 0) {
        work->error = read_text(&work->place, &work->text, &work->stat);
    }
    work->unknown = work->error != 0 && work->error != ENOENT;
    if (work->error == 0 && faccessat(work->place.dir_fd, work->place.name,
                                      W_OK, AT_EACCESS) != 0) {
        work->error = errno;
    }
    good = conf_try_init(&trial, &work->job->error) &&
           conf_load_text(&trial, work->path, buf_slice(&work->text),
                          &work->job->error);
    conf_fini(&trial);
    return good;
}

/* All that the file does not say goes beside it; whatever it says, if that is
 * not known. */
static bool
write_beside(struct work *work)
{
    struct conf base;
    struct buf text = { 0 };
    bool done;
    int error = 0;

    done = conf_try_init(&base, &work->job->error) &&
           conf_load_text(&base, work->path, buf_slice(&work->text),
                          &work->job->error) &&
           conf_rewrite_beside(&work->job->conf, work->unknown ? NULL : &base,
                               &text, &work->job->error);
    conf_fini(&base);
    if (done) {
        error = file_replace(work->beside.dir_fd, work->beside.name,
                             buf_slice(&text), NULL);
    }
    if (text.data != NULL) {
        explicit_bzero(text.data, text.len);
    }
    buf_free(&text);
    return done && (error == 0 || fail(work, work->beside_path, error));
}

static bool
write_file(struct work *work)
{
    struct buf text = { 0 };
    bool done = conf_rewrite(&work->job->conf, work->path,
                             buf_slice(&work->text), &text, &work->job->error);

    if (done) {
        work->error = file_replace(work->place.dir_fd, work->place.name,
                                   buf_slice(&text), &work->stat);
    }
    if (text.data != NULL) {
        explicit_bzero(text.data, text.len);
    }
    buf_free(&text);
    return done;
}

static bool
has_beside(const struct work *work)
{
    return faccessat(work->beside.dir_fd, work->beside.name, F_OK, 0) == 0;
}

static bool
remove_beside(struct work *work)
{
    int error = 0;

    if (has_beside(work)) {
        error = file_unlink(work->beside.dir_fd, work->beside.name);
        error = error != 0 ? error : file_sync_dir(work->beside.dir_fd);
    }
    return error == 0 || fail(work, work->beside_path, error);
}

static bool
write_all(struct work *work)
{
    int error = open_place(work->beside_path, &work->beside);

    if (error != 0) {
        return fail(work, work->beside_path, error);
    }
    if (!open_file(work) ||
        ((work->error != 0 || has_beside(work)) && !write_beside(work))) {
        return false;
    }
    if (work->error != 0) {
        return true;
    }
    if (!write_file(work)) {
        return false;
    }
    if (work->error != 0) { /* perhaps it was replaced, all the same */
        return write_beside(work);
    }
    return remove_beside(work);
}

static void
do_job(struct conf_file_job *job)
{
    struct work *work = mem_try_zalloc(sizeof(*work));

    if (work == NULL) {
        conf_error_no_memory(&job->error);
        job->failed = true;
        return;
    }
    work->job = job;
    work->path = job->file->path;
    work->place.dir_fd = work->beside.dir_fd = -1;
    CHECK(conf_rewritten_path(&job->conf, work->beside_path,
                              sizeof(work->beside_path)));
    job->failed = !write_all(work);
    if (job->failed) {
        log_error("admin.conf", "did not rewrite the configuration",
                  "reason=\"%s\"", job->error.text);
    } else if (work->error == 0) {
        log_notice("admin.conf", "rewrote the configuration", "file=\"%s\"",
                   work->path);
    } else {
        log_notice("admin.conf", "rewrote the configuration",
                   "file=\"%s\" instead_of=\"%s\" error=\"%s\"",
                   work->beside_path, work->path,
                   work->path[0] != '\0' ? strerror(work->error)
                                         : "started without a file");
    }
    file_close(work->place.dir_fd);
    file_close(work->beside.dir_fd);
    if (work->text.data != NULL) {
        explicit_bzero(work->text.data, work->text.len);
    }
    buf_free(&work->text);
    mem_free(work);
}

/* ---- jobs ---------------------------------------------------------------- */

void
conf_file_forget(struct conf_file_job *job)
{
    if (atomic_fetch_sub(&job->owners, 1) == 1) {
        conf_fini(&job->conf);
        mem_free(job);
    }
}

static void
run(void *arg)
{
    struct conf_file_job *job = arg;

    do_job(job);
    atomic_store(&job->done, true);
    conf_file_forget(job);
}

struct conf_file *
conf_file_new(const char *path, void (*done)(void *ctx), void *ctx)
{
    struct conf_file *file = mem_zalloc(sizeof(*file));

    file->path = path != NULL ? path : "";
    CHECK(pthread_mutex_init(&file->mutex, NULL) == 0);
    file->task = task_new("config", done, ctx);
    return file;
}

void
conf_file_free(struct conf_file *file)
{
    if (file != NULL) {
        task_free(file->task);
        pthread_mutex_destroy(&file->mutex);
        mem_free(file);
    }
}

/* NULL without memory. */
static struct conf_file_job *
start(struct conf_file *file, const struct conf *conf)
{
    struct conf_file_job *job = mem_try_zalloc(sizeof(*job));

    if (job == NULL || !conf_copy(conf, &job->conf, &job->error)) {
        mem_free(job);
        return NULL;
    }
    job->file = file;
    atomic_store(&job->owners, 2);
    task_start(file->task, run, job);
    return job;
}

static enum err
try_begin(struct conf_file *file, const struct conf *conf,
          struct conf_file_job **ret_job)
{
    struct conf_file_job *job = NULL;
    enum err err = ERR_AGAIN;

    pthread_mutex_lock(&file->mutex);
    if (!task_is_running(file->task)) {
        job = start(file, conf);
        err = job != NULL ? OK : ERR_NOMEM;
    }
    pthread_mutex_unlock(&file->mutex);
    if (err == OK) {
        *ret_job = job;
    }
    return err;
}

enum err
conf_file_begin(struct conf_file *file, const struct conf *conf, bool wait,
                struct conf_file_job **ret_job)
{
    enum err err = try_begin(file, conf, ret_job);

    while (err == ERR_AGAIN && wait) {
        task_wait(file->task);
        err = try_begin(file, conf, ret_job);
    }
    return err;
}

bool
conf_file_is_done(const struct conf_file_job *job)
{
    return atomic_load(&job->done);
}

/* The job may be over, and another one be running by now. */
void
conf_file_wait(struct conf_file *file, const struct conf_file_job *job)
{
    if (!conf_file_is_done(job)) {
        task_wait(file->task);
    }
}

const char *
conf_file_error(const struct conf_file_job *job)
{
    return job->failed ? job->error.text : NULL;
}
