/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between _Fork and _exit the child makes system calls only: another thread may
 * have held any lock when the process was copied. The kernel sends the child
 * SIGKILL when the thread that forked it ends; that is loop 0 on the main
 * thread, so the signal means the end of the process.
 */
#include "persist/child.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "persist/snapshot_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 512, PIPE_BYTES = 1 << 20 };

/* The child's figures, in memory that both share. */
struct shared {
    struct snapshot_progress progress;
    _Atomic uint64_t cow_bytes, cow_peak_bytes, cow_at_ms;
    _Atomic int error;
};

struct child {
    char temporary[NAME_MAX_BYTES]; /* the temporary name, or "" */
    int dir_fd;                     /* borrowed from the job */
    struct shared *shared;
    struct snapshot_writer *writer;
    uint64_t keys_total;
    pid_t pid; /* 0: none runs */
};

/* For the child's signal handler, which has no other way to find it. */
static struct shared *own_shared;

struct child *
child_new(void)
{
    struct child *child = mem_try_zalloc(sizeof(*child));

    if (child == NULL) {
        return NULL;
    }
    child->writer = snapshot_writer_new();
    child->shared = mmap(NULL, sizeof(*child->shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (child->shared == MAP_FAILED || child->writer == NULL) {
        if (child->shared != MAP_FAILED) {
            (void)munmap(child->shared, sizeof(*child->shared));
        }
        snapshot_writer_free(child->writer);
        mem_free(child);
        return NULL;
    }
    return child;
}

void
child_free(struct child *child)
{
    if (child == NULL) {
        return;
    }
    child_kill(child);
    child_wait(child);
    (void)munmap(child->shared, sizeof(*child->shared));
    snapshot_writer_free(child->writer);
    mem_free(child);
}

bool
child_is_running(const struct child *child)
{
    return child->pid != 0;
}

/* ---- in the child -------------------------------------------------------- */

/* Counts pages that only the child has: the parent has changed its copies since
 * the fork. */
static void
measure_cow(int number)
{
    static const char field[] = "Private_Dirty:";
    int saved = errno;
    int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    char text[2048];
    ssize_t len = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    const char *at;

    (void)number;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (len > 0) {
        text[len] = '\0';
        at = strstr(text, field);
        if (at != NULL) {
            uint64_t kib = 0;

            at += sizeof(field) - 1;
            at += strspn(at, " ");
            for (; *at >= '0' && *at <= '9'; at++) {
                kib = kib * 10 + (uint64_t)(*at - '0');
            }
            atomic_store(&own_shared->cow_bytes, kib * 1024);
            if (kib * 1024 > atomic_load(&own_shared->cow_peak_bytes)) {
                atomic_store(&own_shared->cow_peak_bytes, kib * 1024);
            }
            atomic_store(&own_shared->cow_at_ms, clock_wall_ms());
        }
    }
    errno = saved;
}

/* Closes all descriptors but this one and the first three. */
static void
close_all_but(int kept)
{
    int from = STDERR_FILENO + 1;

    if (kept >= from) {
        if (kept > from) {
            (void)close_range((unsigned)from, (unsigned)kept - 1, 0);
        }
        from = kept + 1;
    }
    (void)close_range((unsigned)from, ~0U, 0);
}

/* Settles the child: it dies with its parent, keeps only this descriptor open,
 * and is the first process to be killed when the machine runs out of memory. */
static void
settle_in(pid_t parent, int kept)
{
    static const char score[] = "1000";
    struct itimerval every_second = { { 1, 0 }, { 1, 0 } };
    struct sigaction action;
    int fd;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(EXIT_FAILURE);
    }
    memset(&action, 0, sizeof(action));
    action.sa_handler = SIG_DFL;
    for (int number = 1; number < SIGRTMIN; number++) {
        (void)sigaction(number, &action, NULL);
    }
    action.sa_handler = SIG_IGN; /* EPIPE reports a pipe without a reader */
    (void)sigaction(SIGPIPE, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL); /* the parent decides */
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
    close_all_but(kept);
    (void)prctl(PR_SET_NAME, "bloomery-save");
    fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, score, sizeof(score) - 1);
        (void)close(fd);
    }
    action.sa_handler = measure_cow;
    action.sa_flags = SA_RESTART;
    (void)sigaction(SIGALRM, &action, NULL);
    (void)setitimer(ITIMER_REAL, &every_second, NULL);
}

/* Makes the pipe large, so that both sides seldom wait for each other, and
 * blocking, whatever flags the inherited end has. */
static int
write_pipe(struct child *child, const struct child_job *job)
{
    int flags = fcntl(job->pipe_fd, F_GETFL);

    if (flags < 0 || fcntl(job->pipe_fd, F_SETFL, flags & ~O_NONBLOCK) != 0) {
        return errno;
    }
    (void)fcntl(job->pipe_fd, F_SETPIPE_SZ, PIPE_BYTES);
    return snapshot_write(child->writer, job->keyspace, &job->stamp,
                          job->pipe_fd, &child->shared->progress);
}

/* Writes to a temporary name, syncs, renames, and syncs the directory. */
static int
write_file(struct child *child, const struct child_job *job)
{
    int fd = -1;
    int error = file_create(job->dir_fd, child->temporary, &fd);

    if (error != 0) {
        return error;
    }
    error = snapshot_write(child->writer, job->keyspace, &job->stamp, fd,
                           &child->shared->progress);
    if (error == 0) {
        error = file_sync(fd);
    }
    file_close(fd);
    if (error == 0) {
        error = file_rename(job->dir_fd, child->temporary, job->name);
    }
    if (error == 0) {
        error = file_sync_dir(job->dir_fd);
        return error == 0 && job->dir != NULL
                   ? file_is_dir_at(job->dir_fd, job->dir)
                   : error;
    }
    (void)!file_unlink(job->dir_fd, child->temporary);
    return error;
}

__attribute__((noreturn)) static void
run_child(struct child *child, const struct child_job *job, pid_t parent,
          const sigset_t *signals)
{
    int error;

    own_shared = child->shared;
    settle_in(parent, job->to_pipe ? job->pipe_fd : job->dir_fd);
    (void)pthread_sigmask(SIG_SETMASK, signals, NULL);
    error = job->to_pipe ? write_pipe(child, job) : write_file(child, job);
    atomic_store(&child->shared->error, error);
    measure_cow(0);
    _exit(error == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* ---- in the parent ------------------------------------------------------- */

static void
begin(struct child *child, const struct child_job *job)
{
    CHECK(child->pid == 0);
    child->temporary[0] = '\0';
    if (!job->to_pipe) {
        CHECK(strlen(job->name) + sizeof(".tmp") <= NAME_MAX_BYTES);
        (void)snprintf(child->temporary, sizeof(child->temporary), "%s.tmp",
                       job->name);
        child->dir_fd = job->dir_fd;
    }
    memset(child->shared, 0, sizeof(*child->shared));
    child->keys_total = job->stamp.keys;
}

int
child_start(struct child *child, const struct child_job *job, uint64_t *ret_us)
{
    uint64_t start_ns = clock_mono_ns();
    pid_t parent = getpid();
    sigset_t all;
    sigset_t before;
    pid_t pid;
    int error;

    begin(child, job);
    (void)sigfillset(&all); /* no handler of ours runs in the child */
    (void)sigemptyset(&before);
    CHECK(pthread_sigmask(SIG_BLOCK, &all, &before) == 0);
    pid = _Fork();
    if (pid == 0) {
        run_child(child, job, parent, &before);
    }
    error = pid < 0 ? errno : 0;
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    *ret_us = (clock_mono_ns() - start_ns) / 1000;
    if (pid > 0) {
        child->pid = pid;
    }
    return error;
}

int
child_write_here(struct child *child, const struct child_job *job)
{
    CHECK(!job->to_pipe); /* nothing would read the pipe meanwhile */
    begin(child, job);
    return write_file(child, job);
}

bool
child_reap(struct child *child, int *ret_error)
{
    int status = 0;
    pid_t pid;

    if (child->pid == 0) {
        return false;
    }
    do {
        pid = waitpid(child->pid, &status, WNOHANG);
    } while (pid < 0 && errno == EINTR);
    if (pid == 0) {
        return false;
    }
    child->pid = 0;
    *ret_error = 0;
    if (pid < 0) { /* another wait took it: the result is unknown */
        *ret_error = ECHILD;
    } else if (WIFSIGNALED(status)) {
        *ret_error = -WTERMSIG(status);
    } else if (WEXITSTATUS(status) != EXIT_SUCCESS) {
        *ret_error = atomic_load(&child->shared->error);
        if (*ret_error == 0) {
            *ret_error = ECHILD;
        }
    }
    return true;
}

const char *
child_explain(int error, char *ret_text)
{
    const char *name = error < 0 ? sigdescr_np(-error) : strerror(error);

    if (error < 0) {
        (void)snprintf(ret_text, CHILD_TEXT_MAX,
                       "signal %d ended the child process (%s)", -error,
                       name != NULL ? name : "unknown");
    } else {
        (void)snprintf(ret_text, CHILD_TEXT_MAX, "%s", name);
    }
    return ret_text;
}

void
child_kill(struct child *child)
{
    if (child->pid != 0) {
        (void)kill(child->pid, SIGKILL);
    }
}

void
child_wait(struct child *child)
{
    int status;

    if (child->pid != 0) {
        while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
        }
        child->pid = 0;
    }
}

void
child_remove_rest(const struct child *child)
{
    if (child->temporary[0] != '\0') {
        (void)!file_unlink(child->dir_fd, child->temporary);
    }
}

void
child_get_figures(const struct child *child, struct child_figures *ret_figures)
{
    const struct shared *shared = child->shared;
    uint64_t at_ms = atomic_load(&shared->cow_at_ms);
    uint64_t now_ms = clock_wall_ms();

    *ret_figures = (struct child_figures){
        .bytes = atomic_load(&shared->progress.bytes),
        .keys = atomic_load(&shared->progress.keys),
        .keys_total = child->keys_total,
        .cow_bytes = atomic_load(&shared->cow_bytes),
        .cow_peak_bytes = atomic_load(&shared->cow_peak_bytes),
        .cow_age_ms = at_ms > 0 && now_ms > at_ms ? now_ms - at_ms : 0,
    };
}
