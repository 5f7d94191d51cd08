/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread that walks: the files or bytes that it leaves, its figures, and
 * how its end is noticed.
 */
#include "snapshot/walker.h"

#include "../test.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "journal/spool.h"
#include "keyspace/gate.h"
#include "keyspace/make.h"
#include "keyspace/memory.h"
#include "keyspace/walk.h"
#include "snapshot/snapshot_read.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILTERS = 500 };

struct place {
    char path[64];
    int dir_fd;
    struct keyspace_memory memory;
    struct bloom_env env;
    struct keyspace *ks;
    struct spool *spool;
    struct walker *walker;
    struct walker_job job;
    atomic_int pokes;
};

static void
on_poke(void *ctx)
{
    atomic_fetch_add(&((struct place *)ctx)->pokes, 1);
}

static void
add_filters(struct place *place)
{
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .capacity = 1000,
                                   .error_rate = 0.01,
                                   .tightening = 0.5,
                                   .expansion = 2 };

    for (unsigned i = 0; i < FILTERS; i++) {
        char name[16];
        int len = snprintf(name, sizeof(name), "key%u", i);
        struct slice slice = { name, (size_t)len };
        struct key key = key_named(slice, i % 3);
        struct bloom *bloom;
        struct entry *entry;

        assert_int_equal(bloom_new(&params, &place->env, &bloom), BLOOM_OK);
        assert_int_equal(keyspace_insert(place->ks, &key, bloom, i + 1, &entry),
                         OK);
    }
}

static struct place *
place_new(void)
{
    struct place *place = mem_zalloc(sizeof(*place));

    strcpy(place->path, "/tmp/bloomery-walker-XXXXXX");
    assert_non_null(mkdtemp(place->path));
    assert_int_equal(file_open_dir(place->path, false, &place->dir_fd), 0);
    place->env = keyspace_env(&place->memory, UINT64_MAX);
    place->ks = keyspace_new(
        &(struct keyspace_options){ .threads = 1, .databases = 16 });
    add_filters(place);
    place->spool = spool_new(on_poke, place);
    spool_open(place->spool, place->dir_fd, 64 << 20);
    place->walker = walker_new(place->ks, place->spool, on_poke, place);
    place->job = (struct walker_job){
        .begin = { .position = 77, .sequence = 5, .keys = FILTERS },
        .dir_fd = place->dir_fd,
        .dir = place->path,
        .name = "state",
    };
    memset(place->job.begin.history, 'a', SNAPSHOT_HISTORY_BYTES);
    return place;
}

static void
place_free(struct place *place)
{
    walker_free(place->walker);
    spool_free(place->spool);
    keyspace_free(place->ks);
    (void)unlinkat(place->dir_fd, "state", 0);
    file_close(place->dir_fd);
    assert_int_equal(rmdir(place->path), 0); /* and nothing else is there */
    mem_free(place);
}

static void
start(struct place *place)
{
    keyspace_share(place->ks, true);
    gate_raise(keyspace_gate(place->ks), 0);
    walker_start(place->walker, &place->job);
    gate_lower(keyspace_gate(place->ks), 0);
}

/* With a deadline: poll() with no descriptor is a pause. */
#define WAIT(condition)                                                        \
    for (int left = 20000; !(condition);) {                                    \
        assert_true(--left > 0);                                               \
        (void)poll(NULL, 0, 1);                                                \
    }

static void
end(struct place *place)
{
    struct snapshot_stamp stamp = place->job.begin;

    WAIT(walker_is_through(place->walker));
    gate_raise(keyspace_gate(place->ks), 0);
    assert_true(walker_is_even(place->walker));
    walker_end(place->walker, &stamp);
    gate_lower(keyspace_gate(place->ks), 0);
}

/* Returns the result. */
static int
reap(struct place *place)
{
    int error = -1;

    WAIT(walker_reap(place->walker, &error));
    if (walker_has_walk(place->walker)) {
        gate_raise(keyspace_gate(place->ks), 0);
        walker_drop(place->walker);
        gate_lower(keyspace_gate(place->ks), 0);
    }
    keyspace_share(place->ks, false);
    assert_false(walker_reap(place->walker, &error));
    return error;
}

static bool
exists(const struct place *place, const char *name)
{
    return faccessat(place->dir_fd, name, F_OK, 0) == 0;
}

static void
check_stamp(int fd)
{
    struct snapshot_error error = { 0 };
    struct snapshot_stamp stamp;

    assert_int_equal(snapshot_read_stamp(fd, &stamp, &error), SNAPSHOT_OK);
    assert_int_equal(stamp.position, 77);
    assert_int_equal(stamp.keys, FILTERS);
}

TEST(walker_writes_a_file_beside_the_loop)
{
    struct place *place = place_new();
    struct walker_figures figures;
    int fd = -1;

    start(place);
    end(place);
    assert_int_equal(reap(place), 0);
    assert_true(atomic_load(&place->pokes) > 0);
    assert_int_equal(file_open(place->dir_fd, "state", &fd), 0);
    check_stamp(fd);
    file_close(fd);
    walker_get_figures(place->walker, &figures);
    assert_int_equal(figures.keys, FILTERS);
    assert_int_equal(figures.keys_total, FILTERS);
    assert_true(figures.bytes > 0 && figures.holds > 0);
    place_free(place);
}

TEST(walker_writes_on_this_thread_what_nobody_changes)
{
    struct place *place = place_new();
    int fd = -1;

    place->job.still = true;
    assert_int_equal(walker_write_here(place->walker, &place->job), 0);
    assert_false(walker_is_running(place->walker));
    assert_int_equal(file_open(place->dir_fd, "state", &fd), 0);
    check_stamp(fd);
    file_close(fd);
    place_free(place);
}

/* Copies what is there. Returns whether the end was reached. */
static bool
drain(int from, int to)
{
    char bytes[4096];
    ssize_t got;

    while ((got = read(from, bytes, sizeof(bytes))) > 0) {
        assert_int_equal(write(to, bytes, (size_t)got), got);
    }
    return got == 0;
}

TEST(walker_writes_into_a_pipe)
{
    struct place *place = place_new();
    char path[128];
    int ends[2];
    int fd;

    assert_int_equal(pipe(ends), 0);
    place->job.to_pipe = true;
    place->job.pipe_fd = ends[1];
    (void)snprintf(path, sizeof(path), "%s/state", place->path);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    start(place);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    WAIT(!drain(ends[0], fd) && walker_is_through(place->walker));
    end(place);
    WAIT(drain(ends[0], fd));
    assert_int_equal(reap(place), 0);
    check_stamp(fd);
    close(fd);
    close(ends[0]);
    place_free(place);
}

TEST(walker_goes_on_for_what_was_marked_at_its_end)
{
    struct place *place = place_new();
    struct slice name = slice_lit("key3");
    struct key key = key_named(name, 0);
    struct walker_figures figures;

    start(place);
    WAIT(walker_is_through(place->walker));
    gate_raise(keyspace_gate(place->ks), 0);
    keyspace_walk_again(place->ks, &key);
    assert_false(walker_is_even(place->walker));
    walker_go_on(place->walker);
    gate_lower(keyspace_gate(place->ks), 0);
    end(place);
    assert_int_equal(reap(place), 0);
    walker_get_figures(place->walker, &figures);
    assert_int_equal(figures.rounds, 1);
    assert_int_equal(figures.keys, FILTERS + 1);
    place_free(place);
}

/* A round that copies no less than the one before would never be the last. */
TEST(walker_lags_behind_marks_that_do_not_become_fewer)
{
    struct place *place = place_new();

    assert_false(walker_lags(place->walker));
    start(place);
    WAIT(walker_is_through(place->walker));
    assert_false(walker_lags(place->walker));
    for (int i = 0; i < 2; i++) { /* marks come until the end is near */
        struct slice name = slice_lit("key3");
        struct key key = key_named(name, 0);

        gate_raise(keyspace_gate(place->ks), 0);
        keyspace_walk_again(place->ks, &key);
        walker_go_on(place->walker);
        gate_lower(keyspace_gate(place->ks), 0);
        assert_true(walker_lags(place->walker));
        WAIT(walker_is_through(place->walker));
    }
    end(place);
    assert_false(walker_lags(place->walker));
    assert_int_equal(reap(place), 0);
    place_free(place);
}

/* Marks the large filters whenever the walk has begun a round. */
static void
mark_large(struct place *place, unsigned count)
{
    gate_raise(keyspace_gate(place->ks), 0);
    for (unsigned i = 0; i < count; i++) {
        char name[16];
        int len = snprintf(name, sizeof(name), "large%u", i);
        struct slice slice = { name, (size_t)len };
        struct key key = key_named(slice, 0);

        keyspace_walk_again(place->ks, &key);
    }
    gate_lower(keyspace_gate(place->ks), 0);
}

TEST(walker_lags_when_rounds_do_not_shrink)
{
    enum { LARGE = 4 };

    struct place *place = place_new();
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .capacity = 2000000,
                                   .error_rate = 0.01,
                                   .tightening = 0.5,
                                   .expansion = 2 };

    for (unsigned i = 0; i < LARGE; i++) {
        char name[16];
        int len = snprintf(name, sizeof(name), "large%u", i);
        struct slice slice = { name, (size_t)len };
        struct key key = key_named(slice, 0);
        struct bloom *bloom;
        struct entry *entry;

        assert_int_equal(bloom_new(&params, &place->env, &bloom), BLOOM_OK);
        assert_int_equal(keyspace_insert(place->ks, &key, bloom, i + 1, &entry),
                         OK);
    }
    place->job.begin.keys += LARGE;
    start(place);
    WAIT((mark_large(place, LARGE), walker_lags(place->walker)));
    assert_true(atomic_load(&place->pokes) > 0);
    walker_cancel(place->walker);
    assert_int_equal(reap(place), ECANCELED);
    place_free(place);
}

TEST(walker_that_is_cancelled_leaves_nothing)
{
    struct place *place = place_new();

    start(place);
    WAIT(walker_is_through(place->walker));
    assert_true(exists(place, "state.tmp"));
    walker_cancel(place->walker);
    assert_int_equal(reap(place), ECANCELED);
    assert_false(exists(place, "state.tmp"));
    assert_false(exists(place, "state"));
    place_free(place);
}

/* The owner of the gate may be the one that cancels it, and waits. */
TEST(walker_can_be_cancelled_under_the_gate)
{
    struct place *place = place_new();
    int error = 0;

    start(place);
    gate_raise(keyspace_gate(place->ks), 0);
    walker_cancel(place->walker);
    while (!walker_reap(place->walker, &error)) {
        sched_yield();
    }
    assert_int_equal(error, ECANCELED);
    walker_drop(place->walker);
    gate_lower(keyspace_gate(place->ks), 0);
    place_free(place);
}

TEST(walker_tells_of_every_call_that_fails)
{
    static const enum file_call calls[] = { FILE_CALL_OPEN, FILE_CALL_WRITE,
                                            FILE_CALL_SYNC, FILE_CALL_RENAME };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        struct place *place = place_new();

        place->job.still = true;
        file_fail_at(calls[i], 1, ENOSPC, true);
        assert_int_equal(walker_write_here(place->walker, &place->job), ENOSPC);
        assert_true(file_fail_clear());
        assert_false(exists(place, "state.tmp"));
        assert_int_equal(walker_write_here(place->walker, &place->job), 0);
        place_free(place);
    }
}

TEST(walker_fails_with_its_spool)
{
    struct place *place = place_new();
    struct journal_tap tap = spool_tap(place->spool);

    tap.begin(tap.ctx, 77, 5);
    start(place);
    WAIT(walker_is_through(place->walker));
    tap.begin(tap.ctx, 99, 6); /* the log moved */
    end(place);
    assert_int_equal(reap(place), ESTALE);
    assert_false(exists(place, "state"));
    place_free(place);
}
