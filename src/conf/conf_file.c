/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The caller makes the text of options, inside its section of the gate, so that
 * the thread needs no copy of them. There may be many users: the thread makes
 * their text.
 */
#include "conf/conf_file.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/task.h"
#include "conf/conf_args.h"
#include "conf/conf_rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { REWRITTEN, USERS, TEXTS };

struct conf_file_job {
    struct conf_file *file;
    atomic_int owners; /* the caller, and the thread */
    atomic_bool done;
    bool failed, reads;
    bool again;                   /* writes what the thread remembers */
    const char *succeeds, *fails; /* events for the log */
    struct conf_error error;
    struct conf_file_work work; /* {0}: there is none */
    struct buf text;
    char path[CONF_REWRITTEN_PATH_MAX];
};

struct conf_file {
    const struct conf *given;
    char path[CONF_REWRITTEN_PATH_MAX];
    struct task *task;
    pthread_mutex_t mutex; /* locked while a job begins */
    /* The texts of the files, which the thread owns while a job runs. A file
     * that never existed has no text. */
    bool known[TEXTS];
    struct buf texts[TEXTS];
};

/* Cuts the path at its last slash. */
static void
split(const char *path, char ret_dir[PATH_MAX], const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash != NULL ? (size_t)(slash - path) : 0;

    *ret_name = slash != NULL ? slash + 1 : path;
    if (slash == NULL) {
        memcpy(ret_dir, ".", sizeof("."));
    } else if (len == 0) {
        memcpy(ret_dir, "/", sizeof("/"));
    } else {
        memcpy(ret_dir, path, len);
        ret_dir[len] = '\0';
    }
}

int
conf_file_read(const char *path, struct buf *ret_text)
{
    size_t len = 0;
    int error;

    if (buf_reserve(ret_text, CONF_FILE_MAX + 1) == NULL) {
        return ENOMEM;
    }
    error = file_read_name(AT_FDCWD, path, ret_text->data, CONF_FILE_MAX, &len);
    ret_text->len = error == 0 ? len : 0;
    return len > CONF_FILE_MAX ? EFBIG : error;
}

/* Replaces a path that is a symbolic link by the path that the link names. No
 * file need be there. */
static int
follow_links(char path[PATH_MAX])
{
    enum { LINKS_MAX = 40 };
    char target[PATH_MAX];

    for (unsigned i = 0; i < LINKS_MAX; i++) {
        ssize_t len = readlink(path, target, sizeof(target) - 1);
        const char *slash = strrchr(path, '/');
        size_t before = 0;

        if (len < 0) {
            return errno == EINVAL || errno == ENOENT ? 0 : errno;
        }
        if (target[0] != '/' && slash != NULL) {
            before = (size_t)(slash + 1 - path);
        }
        if (before + (size_t)len >= PATH_MAX) {
            return ENAMETOOLONG;
        }
        memcpy(path + before, target, (size_t)len);
        path[before + (size_t)len] = '\0';
    }
    return ELOOP;
}

/* Returns 0 or errno. */
static int
write_text(const char *path, struct slice text)
{
    char file[PATH_MAX];
    char dir[PATH_MAX];
    const char *name;
    int dir_fd = -1;
    int error;

    (void)snprintf(file, sizeof(file), "%s", path);
    error = follow_links(file);
    if (error != 0) {
        return error;
    }
    split(file, dir, &name);
    error = file_open_dir(dir, false, &dir_fd);
    error = error != 0 ? error : file_replace(dir_fd, name, text);
    file_close(dir_fd);
    return error;
}

static const char *
path_of(const struct conf_file *file, unsigned which)
{
    return which == REWRITTEN ? file->path : file->given->aclfile;
}

/* Notes what the file has now. */
static void
remember(struct conf_file *file, const char *path, struct slice text)
{
    for (unsigned i = 0; i < TEXTS; i++) {
        if (strcmp(path, path_of(file, i)) == 0) {
            buf_wipe(&file->texts[i]);
            file->texts[i] = (struct buf){ 0 };
            buf_append_slice(&file->texts[i], text);
            file->known[i] = !file->texts[i].failed;
        }
    }
}

/* Remembers the text of a file that exists. A bad text does not last: the start
 * reads the file, too, and then ends the server. */
static void
remember_what_is_there(struct conf_file *file, const char *path)
{
    struct buf text = { 0 };

    if (path[0] != '\0' && access(path, F_OK) == 0 &&
        conf_file_read(path, &text) == 0) {
        remember(file, path, buf_slice(&text));
    }
    buf_wipe(&text); /* frees the space for the longest file */
}

/* The aclfile may be in another directory, which was not lost. */
static int
write_again(struct conf_file *file, unsigned which)
{
    const char *path = path_of(file, which);

    if (!file->known[which] || (which == USERS && access(path, F_OK) == 0)) {
        return 0;
    }
    return write_text(path, buf_slice(&file->texts[which]));
}

static int
write_all_again(struct conf_file_job *job)
{
    int error = write_again(job->file, REWRITTEN);

    if (error == 0) {
        error = write_again(job->file, USERS);
        (void)snprintf(job->path, sizeof(job->path), "%s",
                       path_of(job->file, error == 0 ? REWRITTEN : USERS));
    }
    return error;
}

/* Runs the work. A command waits for it, so it gets no more memory than a
 * command. */
static bool
run_work(struct conf_file_job *job)
{
    enum mem_claim before = mem_set_claim(MEM_FILL);
    bool done = job->work.run == NULL ||
                job->work.run(job->work.ctx, job->path, &job->text);

    (void)mem_set_claim(before);
    return done;
}

static int
transfer(struct conf_file_job *job)
{
    int error;

    if (job->again) {
        return write_all_again(job);
    }
    if (!job->reads && !run_work(job)) {
        job->failed = true;
        conf_error_set(&job->error, "%s: its new text is refused", job->path);
        return 0;
    }
    error = job->reads ? conf_file_read(job->path, &job->text)
                       : write_text(job->path, buf_slice(&job->text));
    if (error == 0) {
        remember(job->file, job->path, buf_slice(&job->text));
        (void)(job->reads && run_work(job));
    }
    return error;
}

static void
do_job(struct conf_file_job *job)
{
    int error = 0;

    if (!job->failed) {
        error = transfer(job);
    }
    if (error != 0) {
        job->failed = true;
        conf_error_set(&job->error, "%s: %s", job->path, strerror(error));
    }
    if (job->failed) {
        log_error("admin.conf", job->fails, "reason=\"%s\"", job->error.text);
    } else {
        log_notice("admin.conf", job->succeeds, "file=\"%s\"", job->path);
    }
}

/* ---- jobs ---------------------------------------------------------------- */

void
conf_file_forget(struct conf_file_job *job)
{
    if (atomic_fetch_sub(&job->owners, 1) == 1) {
        buf_wipe(&job->text);
        if (job->work.free != NULL) {
            job->work.free(job->work.ctx);
        }
        mem_free(job);
    }
}

static void
run_job(void *arg)
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
    for (unsigned i = 0; i < TEXTS; i++) {
        remember_what_is_there(file, path_of(file, i));
    }
    CHECK(pthread_mutex_init(&file->mutex, NULL) == 0);
    file->task = task_new("config", done, ctx);
    return file;
}

void
conf_file_free(struct conf_file *file)
{
    if (file != NULL) {
        task_free(file->task);
        for (unsigned i = 0; i < TEXTS; i++) {
            buf_wipe(&file->texts[i]);
        }
        pthread_mutex_destroy(&file->mutex);
        mem_free(file);
    }
}

/* Makes a job; NULL without memory. */
static struct conf_file_job *
new_job(struct conf_file *file, const char *path)
{
    struct conf_file_job *job = mem_try_zalloc(sizeof(*job));

    if (job != NULL) {
        CHECK(strlen(path) < sizeof(job->path));
        memcpy(job->path, path, strlen(path) + 1);
        job->file = file;
        atomic_store(&job->owners, 1);
    }
    return job;
}

/* Starts a job, or returns ERR_AGAIN if another one runs. */
static enum err
try_start(struct conf_file *file, struct conf_file_job *job)
{
    bool free;

    pthread_mutex_lock(&file->mutex);
    free = !task_is_running(file->task);
    if (free) {
        atomic_store(&job->owners, 2);
        task_start(file->task, run_job, job);
    }
    pthread_mutex_unlock(&file->mutex);
    return free ? OK : ERR_AGAIN;
}

static enum err
start(struct conf_file *file, struct conf_file_job *job, bool wait,
      struct conf_file_job **ret_job)
{
    enum err err = try_start(file, job);

    while (err == ERR_AGAIN && wait) {
        task_wait(file->task);
        err = try_start(file, job);
    }
    if (err == OK) {
        *ret_job = job;
    } else {
        job->work = (struct conf_file_work){ 0 };
        conf_file_forget(job);
    }
    return err;
}

enum err
conf_file_begin(struct conf_file *file, const struct conf *conf, bool wait,
                struct conf_file_job **ret_job)
{
    struct conf_file_job *job = new_job(file, file->path);

    if (job == NULL) {
        return ERR_NOMEM;
    }
    job->succeeds = "wrote the changes of CONFIG SET";
    job->fails = "failed to write the changes of CONFIG SET";
    job->failed = !conf_rewrite(conf, file->given, &job->text, &job->error);
    if (job->failed && job->error.no_memory) {
        conf_file_forget(job);
        return ERR_NOMEM;
    }
    return start(file, job, wait, ret_job);
}

enum err
conf_file_begin_text(struct conf_file *file, const char *path, bool reads,
                     const struct conf_file_work *work, bool wait,
                     struct conf_file_job **ret_job)
{
    struct conf_file_job *job = new_job(file, path);

    if (job == NULL) {
        return ERR_NOMEM;
    }
    job->reads = reads;
    job->work = *work;
    job->succeeds = job->reads ? "read the users" : "wrote the users";
    job->fails =
        job->reads ? "failed to read the users" : "failed to write the users";
    return start(file, job, wait, ret_job);
}

bool
conf_file_write_again(struct conf_file *file)
{
    struct conf_file_job *job = new_job(file, file->path);

    if (job == NULL) {
        return false;
    }
    job->again = true;
    job->succeeds = "wrote the files of a lost directory again";
    job->fails = "failed to write the files of a lost directory again";
    if (start(file, job, false, &job) != OK) {
        return false;
    }
    conf_file_forget(job);
    return true;
}

void *
conf_file_ctx(const struct conf_file_job *job)
{
    CHECK(conf_file_is_done(job));
    return job->work.ctx;
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
