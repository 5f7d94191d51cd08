/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The caller makes the file's text, inside its section of the gate, so that the
 * thread needs no copy of the options.
 */
#include "admin/conf_file.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf_load.h"
#include "conf/conf_rewrite.h"
#include "persist/task.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct conf_file_job {
    atomic_int owners; /* the caller, and the thread */
    atomic_bool done;
    bool failed;
    struct conf_error error;
    struct buf text;
    struct conf_file *file;
};

struct conf_file {
    const struct conf *given;
    char path[CONF_REWRITTEN_PATH_MAX];
    struct task *task;
    pthread_mutex_t mutex; /* locked while a job begins */
};

/* Returns 0 or errno. */
static int
write_text(const struct conf_file *file, struct slice text)
{
    const char *name = file->path + strlen(file->given->dir) + 1;
    int dir_fd = -1;
    int error = file_open_dir(file->given->dir, false, &dir_fd);

    error = error != 0 ? error : file_replace(dir_fd, name, text);
    file_close(dir_fd);
    return error;
}

static void
do_job(struct conf_file_job *job)
{
    const char *path = job->file->path;
    int error = job->failed ? 0 : write_text(job->file, buf_slice(&job->text));

    if (error != 0) {
        job->failed = true;
        conf_error_set(&job->error, "%s: %s", path, strerror(error));
    }
    if (job->failed) {
        log_error("admin.conf", "failed to write the changes of CONFIG SET",
                  "reason=\"%s\"", job->error.text);
    } else {
        log_notice("admin.conf", "wrote the changes of CONFIG SET",
                   "file=\"%s\"", path);
    }
}

/* ---- jobs ---------------------------------------------------------------- */

void
conf_file_forget(struct conf_file_job *job)
{
    if (atomic_fetch_sub(&job->owners, 1) == 1) {
        buf_wipe(&job->text);
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
conf_file_new(const struct conf *given, void (*done)(void *ctx), void *ctx)
{
    struct conf_file *file = mem_zalloc(sizeof(*file));

    file->given = given;
    conf_rewritten_path(given, file->path);
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

/* Begins a job; NULL: no memory. */
static struct conf_file_job *
start(struct conf_file *file, const struct conf *conf)
{
    struct conf_file_job *job = mem_try_zalloc(sizeof(*job));

    if (job == NULL) {
        return NULL;
    }
    job->failed = !conf_rewrite(conf, file->given, &job->text, &job->error);
    if (job->failed && job->error.no_memory) {
        buf_wipe(&job->text);
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

/* Waits until the job has ended. May also wait for a later job. */
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
