/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots for replicas: the bytes of the pipe, what goes on beside one, and
 * how it ends before it is done.
 */
#include "persist_rig.h"

#include "persist/sync.h"
#include "snapshot/snapshot_read.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

enum { MANY = 20000 };

static struct prig *
start_tapped(const char *appendonly)
{
    struct prig *rig = prig_start(appendonly, "always");

    prig_tap(rig, true);
    return rig;
}

/* More than a pipe holds: the walk waits for the reader. */
static void
write_many(struct prig *rig)
{
    for (unsigned i = 0; i < MANY; i++) {
        (void)prig_write(rig);
    }
}

/* Copies the bytes of the pipe into a file; true at the end. */
static bool
drain(const struct prig *rig, int to)
{
    char bytes[4096];
    ssize_t got;

    while ((got = read(rig->sync_fd, bytes, sizeof(bytes))) > 0) {
        assert_int_equal(write(to, bytes, (size_t)got), got);
    }
    assert_true(got == 0 || errno == EAGAIN);
    return got == 0;
}

/* Reads until the snapshot has ended; returns the file, at its begin. */
static int
take_all(struct prig *rig)
{
    char path[128];
    bool ended = false;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/taken", rig->dir);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    PRIG_WAIT(rig, (ended = ended || drain(rig, fd)) && rig->syncs_ended > 0);
    close(rig->sync_fd);
    return fd;
}

static void
begin(struct prig *rig)
{
    persist_ask_sync(rig->persist, NULL);
    PRIG_WAIT(rig, rig->syncs_begun == rig->syncs_ended + 1);
    assert_true(rig->sync_fd >= 0);
}

TEST(sync_is_the_state_at_its_place)
{
    struct prig *rig = start_tapped("no");
    struct snapshot_error error = { 0 };
    struct snapshot_stamp stamp;
    uint64_t position;
    int fd;

    write_many(rig);
    position = prig_position(rig);
    begin(rig);
    assert_true(fcntl(rig->sync_fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(rig->sync_fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(rig->sync_position, position);
    assert_int_equal(rig->sync_sequence, rig->tape_sequence);
    (void)prig_write(rig); /* is in it, as an effect */
    fd = take_all(rig);
    assert_true(rig->sync_position > position);
    position = rig->sync_position;
    assert_int_equal(rig->sync_error, 0);
    assert_int_equal(snapshot_read_stamp(fd, &stamp, &error), SNAPSHOT_OK);
    assert_int_equal(stamp.position, position);
    assert_int_equal(stamp.sequence, rig->sync_sequence);
    assert_int_equal(stamp.keys, MANY + 1);
    assert_string_equal(stamp.history, prig_history(rig).id);
    close(fd);
    assert_int_equal(prig_info(rig).walks, 1);
    assert_false(prig_info(rig).syncing);
    assert_false(prig_exists(rig, "bloomery.snapshot"));
    prig_free(rig);
}

TEST(sync_is_told_of_while_it_runs)
{
    struct prig *rig = start_tapped("no");

    write_many(rig);
    assert_int_equal(prig_info(rig).current_sync_seconds, -1);
    begin(rig);
    assert_true(prig_info(rig).syncing);
    assert_false(prig_info(rig).saving);
    assert_int_equal(prig_info(rig).current_sync_seconds, 0);
    assert_int_equal(prig_info(rig).writing.keys_total, MANY);
    close(take_all(rig));
    prig_free(rig);
}

TEST(sync_that_was_only_asked_for_can_be_taken_back)
{
    struct prig *rig = start_tapped("no");

    persist_ask_sync(rig->persist, NULL);
    persist_cancel_sync(rig->persist);
    for (int i = 0; i < 10; i++) {
        persist_tick(rig->persist);
    }
    assert_int_equal(rig->syncs_begun, 0);
    assert_int_equal(rig->syncs_ended, 0);
    prig_free(rig);
}

TEST(sync_that_is_cancelled_ends_and_another_may_begin)
{
    struct prig *rig = start_tapped("no");

    write_many(rig);
    begin(rig);
    persist_cancel_sync(rig->persist);
    persist_ask_sync(rig->persist, NULL);
    close(rig->sync_fd);
    PRIG_WAIT(rig, rig->syncs_begun == 2);
    assert_int_equal(rig->syncs_ended, 1);
    rig->syncs_ended = rig->syncs_begun = 0;
    rig->syncs_begun = 1;
    close(take_all(rig));
    assert_int_equal(rig->sync_error, 0);
    prig_free(rig);
}

TEST(sync_nobody_reads_any_more_is_an_error)
{
    struct prig *rig = start_tapped("no");

    write_many(rig);
    begin(rig);
    close(rig->sync_fd);
    PRIG_WAIT(rig, rig->syncs_ended == 1);
    assert_int_equal(rig->sync_error, EPIPE);
    prig_free(rig);
}

TEST(sync_that_cannot_begin_is_told)
{
    struct prig *rig = start_tapped("no");
    struct rlimit before;
    struct rlimit none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    persist_ask_sync(rig->persist, NULL);
    persist_tick(rig->persist);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rig->sync_fd, -1);
    assert_int_equal(rig->sync_error, EMFILE);
    assert_int_equal(rig->syncs_begun, 0);
    begin(rig); /* and it may be asked for again */
    close(take_all(rig));
    prig_free(rig);
}

/* ---- with others --------------------------------------------------------- */

/* Nobody reads the pipe meanwhile. */
TEST(sync_keeps_no_save_and_no_rewrite_waiting)
{
    struct prig *rig = start_tapped("yes");
    struct snapshot_error error = { 0 };
    struct snapshot_stamp stamp;
    uint64_t rewrites;
    int fd;

    write_many(rig);
    begin(rig);
    for (int i = 0; i < 2; i++) {
        rewrites = rig->persist->info.rewrites;
        (void)prig_write(rig);
        prig_save(rig);
        (void)persist_ask(rig->persist, PERSIST_REWRITE);
        (void)prig_write(rig);
        PRIG_WAIT(rig, rig->persist->info.rewrites > rewrites);
        assert_true(prig_info(rig).syncing);
    }
    prig_set(rig, "appendonly",
             "no"); /* and it goes on whatever the journal is */
    PRIG_WAIT(rig, !prig_status(rig).on && !prig_status(rig).closing);
    (void)prig_write(rig);
    prig_set(rig, "appendonly", "yes");
    PRIG_WAIT(rig, prig_status(rig).on && !prig_status(rig).building);
    assert_true(prig_info(rig).syncing);
    fd = take_all(rig);
    assert_int_equal(rig->sync_error, 0);
    assert_int_equal(snapshot_read_stamp(fd, &stamp, &error), SNAPSHOT_OK);
    assert_int_equal(stamp.keys, MANY + 5);
    assert_int_equal(stamp.position, rig->sync_position);
    close(fd);
    prig_restart_all(rig);
    prig_free(rig);
}

/* Each is asked for again as soon as it began. */
TEST(sync_begins_beside_a_save_and_a_rewrite)
{
    struct prig *rig = start_tapped("yes");

    write_many(rig);
    for (unsigned i = 1; i <= 3; i++) {
        uint64_t ticket =
            persist_ask(rig->persist, i == 2 ? PERSIST_REWRITE : PERSIST_SAVE);

        persist_tick(rig->persist);
        assert_true(rig->persist->step != STEP_NONE);
        begin(rig);
        close(take_all(rig));
        assert_int_equal(rig->sync_error, 0);
        rig->syncs_begun = rig->syncs_ended = 0;
        PRIG_WAIT(rig, i == 2 ? rig->persist->info.rewrites > 0
                              : persist_outcome(rig->persist, PERSIST_SAVE,
                                                ticket) == PERSIST_DONE);
    }
    prig_free(rig);
}

/* Clients wait for the base that ends a fault; replicas can come again. */
TEST(sync_ends_when_the_journal_fails)
{
    struct prig *rig = start_tapped("yes");
    uint64_t position;

    int ready = 0;

    write_many(rig);
    PRIG_WAIT(rig, prig_released(rig) >= journal_position(rig->journal));
    begin(rig);
    /* The walk waits for the reader of a full pipe, so the next write is the
     * journal's. */
    PRIG_WAIT(rig, ioctl(rig->sync_fd, FIONREAD, &ready) == 0 &&
                       ready == fcntl(rig->sync_fd, F_GETPIPE_SZ));
    file_fail_at(FILE_CALL_WRITE, 1, EIO, false);
    position = prig_write(rig);
    PRIG_WAIT(rig, rig->syncs_ended == 1);
    assert_int_equal(rig->sync_error, ECANCELED);
    close(rig->sync_fd);
    persist_ask_sync(rig->persist, NULL);
    PRIG_WAIT(rig, prig_released(rig) >= position);
    assert_true(file_fail_clear());
    PRIG_WAIT(rig, rig->syncs_begun == 2);
    assert_int_equal(rig->persist->info.rewrites, 1);
    close(rig->sync_fd);
    persist_cancel_sync(rig->persist);
    prig_restart_all(rig);
    prig_free(rig);
}

TEST(sync_ends_when_the_server_does)
{
    struct prig *rig = start_tapped("no");
    struct persist_end end = { .save = true };

    write_many(rig);
    begin(rig);
    assert_true(prig_stop(rig, &end));
    persist_tick(rig->persist);
    assert_int_equal(rig->syncs_ended, 1);
    assert_int_equal(rig->sync_error, ECANCELED);
    close(rig->sync_fd);
    persist_halt(rig->persist);
    prig_free(rig);
}

/* Without a base the journal cannot be loaded, so the server may not stop; and
 * a replica that does not read must not keep the base from being written. */
TEST(sync_does_not_delay_the_base_that_a_stop_waits_for)
{
    struct prig *rig = start_tapped("no");
    struct persist_end end = { .save = false };

    write_many(rig);
    begin(rig);
    prig_set(rig, "appendonly", "yes");
    persist_tick(rig->persist);
    assert_true(prig_stop(rig, &end));
    assert_int_equal(rig->syncs_ended, 1);
    assert_int_equal(rig->sync_error, ECANCELED);
    assert_true(prig_status(rig).on && !prig_status(rig).building);
    close(rig->sync_fd);
    persist_halt(rig->persist);
    prig_free(rig);
}
