/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A save child as a process: the files or bytes it leaves, its figures, and how
 * its end is noticed.
 */
#include "../test.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "keyspace/make.h"
#include "keyspace/memory.h"
#include "persist/child.h"
#include "persist/snapshot_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

struct place {
    char path[64];
    int dir_fd;
    struct keyspace_memory memory;
    struct bloom_env env;
    struct keyspace *ks;
    struct child *child;
    struct child_job job;
};

static void
add_filters(struct place *place, unsigned count)
{
    struct bloom_params params = {
        .capacity = 1000, .error_rate = 0.01, .tightening = 0.5, .expansion = 2
    };

    for (unsigned i = 0; i < count; i++) {
        char name[16];
        int len = snprintf(name, sizeof(name), "key%u", i);
        struct slice slice = { name, (size_t)len };
        struct key key = { slice, hash_name(slice), i % 3 };
        struct bloom *bloom;
        struct entry *entry;

        assert_int_equal(bloom_new(&params, &place->env, &bloom), BLOOM_OK);
        assert_int_equal(keyspace_insert(place->ks, &key, bloom, i + 1, &entry),
                         OK);
    }
}

static struct place *
place_new(unsigned filters)
{
    struct place *place = mem_zalloc(sizeof(*place));

    strcpy(place->path, "/tmp/bloomery-child-XXXXXX");
    assert_non_null(mkdtemp(place->path));
    assert_int_equal(file_open_dir(place->path, false, &place->dir_fd), 0);
    place->env = keyspace_env(&place->memory, UINT64_MAX);
    place->ks = keyspace_new(
        &(struct keyspace_options){ .threads = 1, .databases = 16 });
    add_filters(place, filters);
    place->child = child_new();
    assert_non_null(place->child);
    place->job = (struct child_job){
        .keyspace = place->ks,
        .stamp = { .position = 77,
                   .sequence = 5,
                   .created_ms = 1,
                   .keys = filters },
        .dir_fd = place->dir_fd,
        .name = "state",
    };
    memset(place->job.stamp.history, 'a', SNAPSHOT_HISTORY_BYTES);
    return place;
}

static void
place_free(struct place *place)
{
    static const char *const names[] = { "state", "state.tmp", "lock" };

    child_free(place->child);
    keyspace_free(place->ks);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)unlinkat(place->dir_fd, names[i], 0);
    }
    file_close(place->dir_fd);
    assert_int_equal(rmdir(place->path), 0);
    mem_free(place);
}

/* With a deadline: poll() with no descriptor is a pause. */
static int
wait_for_end(struct child *child)
{
    int error = -1;

    for (int i = 0; i < 20000; i++) {
        if (child_reap(child, &error)) {
            return error;
        }
        (void)poll(NULL, 0, 1);
    }
    fail_msg("the child did not end");
    return -1;
}

static bool
exists(const struct place *place, const char *name)
{
    return faccessat(place->dir_fd, name, F_OK, 0) == 0;
}

static bool
count_filter(void *ctx, const struct snapshot_record *record,
             struct bloom *bloom)
{
    unsigned *count = ctx;

    (void)record;
    (*count)++;
    bloom_free(bloom, NULL);
    return true;
}

static void
check_state(const struct place *place, unsigned filters)
{
    unsigned count = 0;
    struct snapshot_visitor visitor = { .filter = count_filter, .ctx = &count };
    struct snapshot_stamp stamp;
    struct snapshot_error error;
    int fd = -1;

    assert_int_equal(file_open(place->dir_fd, "state", &fd), 0);
    assert_int_equal(snapshot_read_stamp(fd, &stamp, &error), SNAPSHOT_OK);
    assert_int_equal(stamp.position, 77);
    assert_int_equal(stamp.sequence, 5);
    assert_int_equal(snapshot_read(fd, NULL, &visitor, NULL, &error),
                     SNAPSHOT_OK);
    assert_int_equal(count, filters);
    file_close(fd);
    assert_false(exists(place, "state.tmp"));
}

TEST(child_writes_the_whole_state_and_ends)
{
    struct place *place = place_new(500);
    struct child_figures figures;
    uint64_t us = 0;
    int error;

    assert_int_equal(child_start(place->child, &place->job, &us), 0);
    assert_true(child_is_running(place->child));
    error = wait_for_end(place->child);
    assert_int_equal(error, 0);
    assert_false(child_is_running(place->child));
    child_get_figures(place->child, &figures);
    assert_int_equal(figures.keys, 500);
    assert_int_equal(figures.keys_total, 500);
    assert_true(figures.bytes > 500UL * 1000);
    assert_true(figures.cow_peak_bytes > 0);
    check_state(place, 500);
    assert_false(child_reap(place->child, &error));
    place_free(place);
}

TEST(child_work_can_be_done_in_this_process)
{
    struct place *place = place_new(10);

    assert_int_equal(child_write_here(place->child, &place->job), 0);
    check_state(place, 10);
    place_free(place);
}

TEST(child_that_is_killed_leaves_the_old_file)
{
    struct place *place = place_new(10);
    uint64_t us;

    assert_int_equal(child_write_here(place->child, &place->job), 0);
    add_filters(place, 0);
    assert_int_equal(child_start(place->child, &place->job, &us), 0);
    child_kill(place->child);
    child_wait(place->child);
    assert_false(child_is_running(place->child));
    child_remove_rest(place->child);
    assert_false(exists(place, "state.tmp"));
    check_state(place, 10);
    assert_int_equal(child_start(place->child, &place->job, &us), 0);
    assert_int_equal(wait_for_end(place->child), 0);
    check_state(place, 10);
    place_free(place);
}

TEST(child_reports_what_the_disk_said)
{
    static const enum file_call calls[] = { FILE_CALL_OPEN, FILE_CALL_WRITE,
                                            FILE_CALL_SYNC, FILE_CALL_RENAME };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        struct place *place = place_new(10);
        uint64_t us;
        int error;

        file_fail_at(calls[i], 1, ENOSPC, false); /* the child inherits it */
        assert_int_equal(child_start(place->child, &place->job, &us), 0);
        error = wait_for_end(place->child);
        (void)file_fail_clear();
        assert_int_equal(error, ENOSPC);
        assert_false(exists(place, "state"));
        assert_false(exists(place, "state.tmp"));
        place_free(place);
    }
}

/* The lock goes with the descriptor that the child must have closed. */
TEST(child_does_not_hold_the_lock_of_its_parent)
{
    struct place *place = place_new(20000);
    uint64_t us;
    int second;
    int lock = -1;

    assert_int_equal(file_create(place->dir_fd, "lock", &lock), 0);
    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(child_start(place->child, &place->job, &us), 0);
    file_close(lock);
    for (int i = 0;; i++) { /* until the child got around to closing it */
        second = openat(place->dir_fd, "lock", O_RDWR | O_CLOEXEC);
        assert_true(second >= 0);
        if (flock(second, LOCK_EX | LOCK_NB) == 0) {
            break;
        }
        (void)close(second);
        assert_true(i < 10000);
        (void)poll(NULL, 0, 1);
    }
    (void)close(second);
    (void)wait_for_end(place->child);
    place_free(place);
}

/* ---- into a pipe --------------------------------------------------------- */

/* Starts it; the end to read from. */
static int
start_into_pipe(struct place *place, int flags)
{
    struct child_job job = place->job;
    int ends[2];
    uint64_t us;

    assert_int_equal(pipe2(ends, O_CLOEXEC | flags), 0);
    job.dir_fd = -1;
    job.name = NULL;
    job.to_pipe = true;
    job.pipe_fd = ends[1];
    assert_int_equal(child_start(place->child, &job, &us), 0);
    (void)close(ends[1]);
    assert_int_equal(fcntl(ends[0], F_SETFL, 0), 0);
    return ends[0];
}

/* Reads up to the end, into the file that check_state() looks at. */
static uint64_t
read_to_end(const struct place *place, int fd)
{
    static char bytes[100000];
    uint64_t all = 0;
    ssize_t len;
    int file = -1;

    assert_int_equal(file_create(place->dir_fd, "state", &file), 0);
    while ((len = read(fd, bytes, sizeof(bytes))) > 0) {
        assert_int_equal(file_write(file, bytes, (size_t)len), 0);
        all += (uint64_t)len;
    }
    assert_int_equal(len, 0);
    file_close(file);
    file_close(fd);
    return all;
}

/* Much more than a pipe holds, and an end that would not wait. */
TEST(child_writes_the_whole_state_into_a_pipe)
{
    struct place *place = place_new(3000);

    for (int i = 0; i < 2; i++) {
        int fd = start_into_pipe(place, i == 0 ? 0 : O_NONBLOCK);
        uint64_t bytes = read_to_end(place, fd);
        struct child_figures figures;

        assert_int_equal(wait_for_end(place->child), 0);
        assert_true(bytes > 3000UL * 1000);
        child_get_figures(place->child, &figures);
        assert_int_equal(figures.bytes, bytes);
        assert_int_equal(figures.keys, 3000);
        check_state(place, 3000);
        child_remove_rest(place->child); /* there is none */
        check_state(place, 3000);
    }
    place_free(place);
}

TEST(child_says_that_nobody_reads_its_pipe_any_more)
{
    struct place *place = place_new(3000);
    int fd = start_into_pipe(place, 0);
    char byte;

    assert_int_equal(read(fd, &byte, 1), 1); /* it waits for a reader now */
    file_close(fd);
    assert_int_equal(wait_for_end(place->child), EPIPE);
    place_free(place);
}

TEST(child_that_waits_for_a_reader_can_be_killed)
{
    struct place *place = place_new(3000);
    int fd = start_into_pipe(place, 0);
    char byte;

    assert_int_equal(read(fd, &byte, 1), 1);
    child_kill(place->child);
    assert_int_equal(wait_for_end(place->child), -SIGKILL);
    assert_true(read_to_end(place, fd) > 0); /* an end, and not of its own */
    child_remove_rest(place->child);
    place_free(place);
}

/* The only child of this process. */
static int
pid_of_child(void)
{
    char path[64];
    FILE *file;
    int pid = 0;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children",
                   (int)getpid());
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    (void)fclose(file);
    return pid;
}

/* A signal to the process group is meant for the server, which decides what
 * happens to the child. */
TEST(child_outlives_what_stops_its_parent)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
    struct place *place = place_new(3000);
    int fd = start_into_pipe(place, 0);
    char byte;

    assert_int_equal(read(fd, &byte, 1), 1); /* it waits for a reader now */
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        assert_int_equal(kill(pid_of_child(), signals[i]), 0);
    }
    assert_true(read_to_end(place, fd) > 3000UL * 1000);
    assert_int_equal(wait_for_end(place->child), 0);
    place_free(place);
}

TEST(child_explains_its_end)
{
    char text[CHILD_TEXT_MAX];

    assert_string_equal(child_explain(ENOSPC, text), "No space left on device");
    assert_string_equal(child_explain(-SIGKILL, text),
                        "signal 9 ended the child process (Killed)");
    assert_string_equal(child_explain(-1000, text),
                        "signal 1000 ended the child process (unknown)");
}

/* If the child kept the reading end open, it would not notice that the parent
 * closed its own. */
TEST(child_keeps_only_its_end_of_the_pipe)
{
    struct place *place = place_new(3000);
    int fd = start_into_pipe(place, 0);
    unsigned others = 0;
    char path[64];
    char byte;
    DIR *dir;

    assert_int_equal(read(fd, &byte, 1), 1); /* it has settled in */
    (void)snprintf(path, sizeof(path), "/proc/%d/fd", pid_of_child());
    dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        others += entry->d_name[0] != '.' && atoi(entry->d_name) > 2;
    }
    (void)closedir(dir);
    assert_int_equal(others, 1);
    (void)read_to_end(place, fd);
    assert_int_equal(wait_for_end(place->child), 0);
    place_free(place);
}
