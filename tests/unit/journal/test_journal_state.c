/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A disk that fails: nothing is released that is not on it, no suspect file is
 * touched again, and a new base ends every fault.
 */
#include "journal/journal.h"

#include "journal/journal_state.h"
#include "journal_help.h"

static bool
disk_has_fired(void)
{
    bool fired;

    pthread_mutex_lock(&disk.mutex);
    fired = disk.fired;
    pthread_mutex_unlock(&disk.mutex);
    return fired;
}

/* Goes on until a base ended the fault; returns the base's position. */
static uint64_t
recover(struct rig *rig, struct source *source)
{
    uint64_t mark, last, frozen, sequence;

    until(status_of(rig).faulted);
    for (;;) {
        frozen = released(rig);
        (void)append_and_kick(source);
        sequence = 0;
        mark = set_target(rig, JOURNAL_REBASE, 0, &sequence);
        last = append_and_kick(source);
        until(status_of(rig).written > last || status_of(rig).suspect);
        assert_int_equal(frozen, released(rig));
        assert_true(status_of(rig).faulted);
        assert_true(status_of(rig).fault_mono_ns > 0);
        base_done(rig, mark, sequence);
        if (status_of(rig).suspect) {
            assert_true(released(rig) < last);
            (void)disk_heal();
            continue; /* the new file failed as well */
        }
        until(released(rig) >= last || status_of(rig).suspect);
        if (released(rig) >= last) {
            break;
        }
        (void)disk_heal();
    }
    assert_false(status_of(rig).faulted);
    assert_int_equal(0, status_of(rig).fault_mono_ns);
    return mark;
}

/* Appends, rotates, flushes: each step is one in which a fault may happen.
 * True if one did. */
static bool
run_until_fault(struct rig *rig, struct source *source)
{
    uint64_t sequence, mark, last;

    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 20; i++) {
            last = append_and_kick(source);
            if (i % 5 == 0) {
                until(released(rig) >= last || status_of(rig).faulted);
            }
        }
        sequence = 0;
        mark = set_target(rig, JOURNAL_ROTATE, 0, &sequence);
        last = append_and_kick(source);
        until(released(rig) >= last || status_of(rig).faulted);
        if (round % 2 && !status_of(rig).faulted) {
            base_done(rig, mark, sequence);
        }
        if (round % 3 == 0) {
            (void)flush(rig);
        }
        if (disk_has_fired()) {
            return true;
        }
    }
    return false;
}

static bool
nth_call_fails(enum journal_sync sync, enum disk_call call, unsigned nth,
               bool for_good)
{
    struct rig *rig = rig_resumed(sync, 100);
    struct source source = source_of(rig, 1);
    struct journal_status status;
    uint64_t base = 100;
    uint64_t sequence = 0;
    bool fired;

    disk_fail(call, nth, for_good);
    fired = run_until_fault(rig, &source);
    if (fired) {
        until(status_of(rig).suspect_files > 0);
        status = status_of(rig);
        assert_int_equal(EIO, status.error);
        until(rig->events > 0);
        assert_true((call == DISK_WRITE ? status.write_errors
                                        : status.sync_errors) > 0);
        if (!for_good) {
            (void)disk_heal();
        }
        base = recover(rig, &source);
        (void)disk_heal();
        if (status_of(rig).faulted) { /* by a sync of everysec, since */
            base = recover(rig, &source);
        }
        if (for_good && (sync == JOURNAL_ALWAYS || call == DISK_WRITE)) {
            assert_true(status_of(rig).suspect_files > 1);
        }
    }
    (void)disk_heal();
    for (int i = 0; i < 50; i++) {
        (void)append_and_kick(&source);
    }
    assert_true(flush(rig));
    assert_int_equal(journal_position(rig->journal), released(rig));
    assert_int_equal(journal_position(rig->journal),
                     journal_synced(rig->journal));
    if (fired) {
        for (size_t i = 0; i < disk.count; i++) {
            struct disk_file *file = &disk.files[i];
            struct group group;
            char head[4096];
            ssize_t size = pread(file->fd, head, sizeof(head), 0);

            if (file->begin != base) {
                continue;
            }
            assert_int_equal(GROUP_OK,
                             group_read((struct slice){ head, (size_t)size },
                                        file->key, GROUP_FIRST_LINE_BYTES,
                                        &group));
            sequence = group.seal.sequence - 1;
            assert_true(group.seal.durable_sequence < sequence);
        }
    }
    finish_checked(&source, base, sequence);
    return fired;
}

TEST(whichever_write_or_sync_fails_a_new_base_brings_everything_back)
{
    for (int i = 0; i < 3 * DISK_CALLS * 2; i++) {
        enum journal_sync sync = policies[i % POLICIES];
        enum disk_call call = (enum disk_call)(i / 3 % DISK_CALLS);
        unsigned nth = 1;

        while (nth_call_fails(sync, call, nth, i >= 3 * DISK_CALLS)) {
            nth += 1 + nth / 8;
        }
        assert_true(nth > 1);
    }
}

TEST(nothing_is_released_between_a_fault_and_its_base)
{
    for (size_t p = 0; p < POLICIES; p++) {
        struct rig *rig = rig_resumed(policies[p], 0);
        struct source source = source_of(rig, 1);
        uint64_t frozen = append_released(&source);
        uint64_t mark, last;
        uint64_t sequence = 0;

        disk_fail(DISK_WRITE, 1, false);
        frozen = released(rig);
        (void)append_and_kick(&source);
        until(status_of(rig).suspect);
        assert_false(flush(rig));
        (void)append_and_kick(&source);
        assert_true(journal_has_room(rig->journal));
        assert_true(status_of(rig).queue_bytes > 0);
        base_done(rig, 0, 0); /* the one before */
        assert_int_equal(frozen, released(rig));
        assert_true(status_of(rig).suspect);

        mark = set_target(rig, JOURNAL_REBASE, 0, &sequence);
        assert_int_equal(3, sequence);
        assert_true(status_of(rig).faulted && !status_of(rig).suspect);
        last = append_and_kick(&source);
        until(status_of(rig).written > last);
        assert_false(flush(rig));
        assert_int_equal(frozen, released(rig));
        assert_true(journal_synced(rig->journal) <= frozen);
        base_done(rig, mark, sequence);
        until(released(rig) >= last);
        assert_true(journal_synced(rig->journal) >= mark);
        finish_checked(&source, mark, 3);
    }
}

TEST(a_fault_with_a_rotation_at_hand_goes_on_in_the_next_file)
{
    for (int call = 0; call < DISK_CALLS; call++) {
        struct rig *rig = rig_resumed(JOURNAL_ALWAYS, 0);
        struct source source = source_of(rig, 1);
        uint64_t mark, last;
        uint64_t sequence = 0;

        (void)append_stuck(&source, (enum disk_call)call);
        (void)append_and_kick(&source);
        mark = set_target(rig, JOURNAL_ROTATE, 0, &sequence);
        last = append_and_kick(&source);
        disk_fail((enum disk_call)call, 1, false);
        disk_hold((enum disk_call)call, false);
        until(status_of(rig).faulted);
        until(!status_of(rig).rotating && status_of(rig).written > last);
        assert_true(status_of(rig).faulted && !status_of(rig).suspect);
        assert_int_equal(0, released(rig));
        assert_int_equal(0, status_of(rig).closed_number);
        base_done(rig, mark, sequence);
        until(released(rig) >= last);
        assert_false(status_of(rig).faulted);
        finish_checked(&source, mark, sequence);
    }
}

TEST(a_rotation_from_a_suspect_file_is_a_rebase)
{
    struct rig *rig = rig_resumed(JOURNAL_EVERYSEC, 0);
    struct source source = source_of(rig, 1);
    uint64_t mark, last;
    uint64_t sequence = 0;

    append_failed(&source);
    disk_hold(DISK_WRITE, true);
    (void)set_target(rig, JOURNAL_ROTATE, 0, NULL);
    (void)append_and_kick(&source);
    until(disk_is_inside(DISK_WRITE));
    /* One after the other, the last one counts. */
    (void)set_target(rig, JOURNAL_REBASE, 0, NULL);
    (void)append_and_kick(&source);
    mark = set_target(rig, JOURNAL_ROTATE, 0, &sequence);
    last = append_and_kick(&source);
    disk_hold(DISK_WRITE, false);
    until(status_of(rig).written > last);
    assert_int_equal(0, released(rig));
    finish_with_base(&source, mark, sequence, last);
}

TEST(a_sync_of_a_file_that_was_given_up_counts_for_nothing)
{
    for (int fails = 0; fails < 2; fails++) {
        struct rig *rig = rig_resumed(JOURNAL_ALWAYS, 0);
        struct source source = source_of(rig, 1);
        uint64_t mark, last;
        uint64_t sequence = 0;

        (void)append_stuck(&source, DISK_SYNC);
        append_failed(&source);
        (void)disk_heal();
        mark = set_target(rig, JOURNAL_REBASE, 0, &sequence);
        last = append_and_kick(&source);
        disk_fail(DISK_SYNC, (unsigned)fails, false);
        disk_hold(DISK_SYNC, false);
        until(status_of(rig).written > last);
        assert_int_equal(0, released(rig));
        assert_int_equal(1, status_of(rig).suspect_files);
        finish_with_base(&source, mark, sequence, last);
    }
}

/* ---- the last second ----------------------------------------------------- */

/* A write right after a sync began is synced by the next one. */
TEST(a_disk_that_syncs_in_half_a_second_keeps_up)
{
    enum { MS = 1000000, BOUND = JOURNAL_BOUND_NS };

    assert_int_equal(1000 * MS, BOUND);
    for (uint64_t took = 0; took < 3000 * (uint64_t)MS; took += MS / 4) {
        uint64_t wait = journal_state_sync_wait_ns(took);
        uint64_t begins = wait > took ? wait : took;

        assert_in_range(wait, 100 * MS, 900 * MS);
        assert_true(took >= 500 * MS || begins + took < BOUND);
        assert_true(took >= 450 * MS || wait == 900 * MS ||
                    wait + 2 * took == BOUND);
    }
    assert_int_equal(900 * MS, journal_state_sync_wait_ns(0));
    assert_int_equal(900 * MS, journal_state_sync_wait_ns(50 * MS));
    assert_int_equal(400 * MS, journal_state_sync_wait_ns(300 * MS));
    assert_int_equal(100 * MS, journal_state_sync_wait_ns(UINT64_MAX));
}

static uint64_t
synced_bytes(size_t file)
{
    uint64_t bytes;

    pthread_mutex_lock(&disk.mutex);
    bytes = disk.files[file].synced;
    pthread_mutex_unlock(&disk.mutex);
    return bytes;
}

/* How a file is left that has something released and not synced. */
enum leave { LEFT_BY_WRITE_ERROR, LEFT_BY_REBASE, LEFT_ROTATING, LEAVES };

static uint64_t
leave_file(struct rig *rig, struct source *source, enum leave how,
           uint64_t *ret_sequence)
{
    uint64_t mark = 0;

    if (how == LEFT_BY_REBASE) {
        return set_target(rig, JOURNAL_REBASE, 0, ret_sequence);
    }
    (void)append_stuck(source, DISK_WRITE);
    if (how == LEFT_ROTATING) {
        mark = set_target(rig, JOURNAL_ROTATE, 0, ret_sequence);
    }
    disk_fail(DISK_WRITE, 1, false);
    disk_hold(DISK_WRITE, false);
    until(status_of(rig).faulted);
    if (how == LEFT_BY_WRITE_ERROR) {
        mark = set_target(rig, JOURNAL_REBASE, 0, ret_sequence);
    }
    return mark;
}

TEST(what_was_released_of_a_file_that_is_left_is_synced_once_more)
{
    for (int i = 0; i < 2 * LEAVES; i++) {
        bool fails = i >= LEAVES;
        struct rig *rig = rig_resumed(JOURNAL_EVERYSEC, 0);
        struct source source = source_of(rig, 1);
        uint64_t sequence = 0;
        uint64_t before, mark, last;

        before = append_released(&source);
        before = released(rig);
        disk_hold(DISK_SYNC, true);
        mark = leave_file(rig, &source, (enum leave)(i % LEAVES), &sequence);
        last = append_and_kick(&source);
        until(disk_is_inside(DISK_SYNC));
        assert_true(status_of(rig).rotating); /* it is not closed before */
        disk_fail(DISK_SYNC, (unsigned)fails, false);
        disk_hold(DISK_SYNC, false);
        until(!status_of(rig).rotating);
        assert_true(fails ==
                    (synced_bytes(0) < GROUP_FIRST_LINE_BYTES + before));
        assert_int_equal(fails, status_of(rig).sync_errors);
        assert_true(status_of(rig).suspect_files <= 1);
        /* Nothing else changes. */
        assert_int_equal(before, released(rig));
        assert_int_equal(0, journal_synced(rig->journal));
        assert_true(status_of(rig).faulted);
        until(status_of(rig).written > last);
        finish_with_base(&source, mark, sequence, last);
    }
}

TEST(a_file_is_synced_once_more_while_nobody_replaces_it)
{
    struct rig *rig = rig_resumed(JOURNAL_EVERYSEC, 0);
    struct source source = source_of(rig, 1);
    uint64_t before = append_released(&source);

    disk_fail(DISK_WRITE, 1, false);
    (void)append_and_kick(&source);
    until(synced_bytes(0) >= GROUP_FIRST_LINE_BYTES + before);
    assert_true(status_of(rig).suspect);
    finish(&source);
}

/* The disk of the tests would notice. */
TEST(a_file_is_not_synced_once_more_after_a_sync_failed)
{
    struct rig *rig = rig_resumed(JOURNAL_EVERYSEC, 0);
    struct source source = source_of(rig, 1);
    uint64_t sequence = 0;
    uint64_t mark;

    (void)append_released(&source);
    disk_hold(DISK_SYNC, true);
    journal_set_sync(rig->journal, JOURNAL_ALWAYS);
    until(disk_is_inside(DISK_SYNC));
    disk_fail(DISK_WRITE, 1, false);
    (void)append_and_kick(&source);
    until(status_of(rig).suspect); /* the last sync is to come, but */
    disk_fail(DISK_SYNC, 1, false);
    disk_hold(DISK_SYNC, false);
    mark = set_target(rig, JOURNAL_REBASE, 0, &sequence);
    until(!status_of(rig).rotating);
    base_done(rig, mark, sequence);
    assert_int_equal(1, status_of(rig).sync_errors);
    assert_int_equal(1, status_of(rig).syncs);
    finish(&source);
}

static bool
writer_sleeps(struct journal *journal)
{
    bool sleeps;

    pthread_mutex_lock(&journal->mutex);
    sleeps = journal->writer.sleeps;
    pthread_mutex_unlock(&journal->mutex);
    return sleeps;
}

/* The writer takes all that is queued at once, if it sleeps until the kick. */
TEST(what_the_writer_has_in_hand_is_given_up_with_its_file)
{
    struct rig *rig = rig_resumed(JOURNAL_ALWAYS, 0);
    struct source source = source_of(rig, 1);
    uint64_t mark, last;
    uint64_t sequence = 0;

    (void)append_stuck(&source, DISK_SYNC);
    until(writer_sleeps(rig->journal));
    disk_hold(DISK_WRITE, true);
    for (int i = 0; i < 20000; i++) { /* several runs */
        (void)append(&source);
    }
    journal_kick(rig->journal);
    until(disk_is_inside(DISK_WRITE));
    disk_fail(DISK_SYNC, 1, false);
    disk_hold(DISK_SYNC, false);
    until(status_of(rig).suspect);
    disk_hold(DISK_WRITE, false);
    until(status_of(rig).queue_bytes == 0);
    assert_int_equal(0, released(rig));
    mark = set_target(rig, JOURNAL_REBASE, 0, &sequence);
    last = append_and_kick(&source);
    finish_with_base(&source, mark, sequence, last);
}

TEST(a_fault_while_it_is_built_holds_nothing_back)
{
    struct rig *rig = rig_new(JOURNAL_ALWAYS);
    struct source source = source_of(rig, 1);
    uint64_t sequence = 0;
    uint64_t mark = set_target(rig, JOURNAL_BUILD, 10, &sequence);
    uint64_t last;

    disk_fail(DISK_SYNC, 1, false);
    (void)append_and_kick(&source);
    until(status_of(rig).suspect);
    assert_true(status_of(rig).building);
    assert_true(released(rig) == UINT64_MAX);
    base_done(rig, mark, sequence);
    assert_true(status_of(rig).building);
    assert_true(released(rig) == UINT64_MAX);
    assert_int_equal(0, journal_synced(rig->journal));
    mark = set_target(rig, JOURNAL_REBASE, 0, &sequence);
    last = append_and_kick(&source);
    until(status_of(rig).written > last);
    assert_true(released(rig) == UINT64_MAX);
    base_done(rig, mark, sequence);
    assert_false(status_of(rig).building || status_of(rig).faulted);
    until(released(rig) >= last && released(rig) < UINT64_MAX);
    finish_checked(&source, mark, sequence);
}

TEST(a_fault_does_not_keep_it_from_being_turned_off)
{
    for (int when = 0; when < 3; when++) { /* before, while closing, now */
        struct rig *rig = rig_resumed(JOURNAL_ALWAYS, 0);
        struct source source = source_of(rig, 1);

        disk_hold(DISK_SYNC, true);
        disk_fail(DISK_SYNC, 1, false);
        (void)append_and_kick(&source);
        until(disk_is_inside(DISK_SYNC));
        (void)append_and_kick(&source);
        if (when == 0) {
            disk_hold(DISK_SYNC, false);
            until(status_of(rig).suspect);
        }
        journal_turn_off(rig->journal, when == 2);
        assert_true(when == 1 || released(rig) == UINT64_MAX);
        disk_hold(DISK_SYNC, false);
        until(!status_of(rig).closing);
        assert_true(released(rig) == UINT64_MAX);
        assert_false(status_of(rig).faulted || status_of(rig).on);
        until(status_of(rig).queue_bytes == 0);
        finish(&source);
    }
}

/* The base ended the fault, but the journal has not turned to the file behind
 * it: what is queued for that file is dropped with it, and never reaches a
 * later one. */
TEST(turned_off_before_a_rebase_is_reached_it_leaves_nothing_queued)
{
    struct rig *rig = rig_resumed(JOURNAL_EVERYSEC, 0);
    struct source source = source_of(rig, 1);
    uint64_t sequence = 0;
    uint64_t mark;

    (void)append_released(&source);
    disk_hold(DISK_SYNC, true);
    disk_fail(DISK_WRITE, 1, false);
    (void)append_and_kick(&source);
    until(disk_is_inside(DISK_SYNC)); /* the last one */
    mark = set_target(rig, JOURNAL_REBASE, 0, &sequence);
    base_done(rig, mark, sequence);
    assert_true(status_of(rig).rotating && !status_of(rig).faulted);
    (void)append_and_kick(&source);
    journal_turn_off(rig->journal, false);
    assert_int_equal(0, status_of(rig).queue_bytes);
    assert_true(released(rig) == UINT64_MAX);
    disk_hold(DISK_SYNC, false);
    until(!status_of(rig).closing);
    sequence = 500;
    mark = set_target(rig, JOURNAL_BUILD, 1000000, &sequence);
    base_done(rig, mark, sequence);
    assert_true(append_and_kick(&source) > 1000000);
    assert_true(flush(rig));
    finish_checked(&source, mark, sequence);
}

TEST(a_rebase_without_a_fault_holds_back_until_its_base)
{
    struct rig *rig = rig_resumed(JOURNAL_NO, 0);
    struct source source = source_of(rig, 1);
    uint64_t sequence = 0;
    uint64_t before, mark, last;

    before = append_released(&source);
    before = released(rig);
    mark = set_target(rig, JOURNAL_REBASE, 0, &sequence);
    last = append_and_kick(&source);
    until(status_of(rig).written > last);
    assert_int_equal(before, released(rig));
    base_done(rig, mark, sequence);
    assert_true(released(rig) >= last);
    assert_int_equal(0, status_of(rig).suspect_files);
    finish_checked(&source, mark, sequence);
}

/* ---- many threads -------------------------------------------------------- */

/* Random calls fail while threads append; loop 0 is played as it is: a rebase
 * when there is a fault, now and then a rotation. */
TEST(threads_append_while_the_disk_fails)
{
    for (unsigned round = 0; round < 3 * test_rounds(); round++) {
        struct rig *rig = rig_resumed(policies[round % POLICIES], 0);
        struct source sources[APPENDERS];
        pthread_t threads[APPENDERS];
        uint64_t seed = test_seed() + round;
        uint64_t mark = 0;
        uint64_t sequence = 0;
        uint64_t faults;

        enough = false;
        for (uint32_t i = 0; i < APPENDERS; i++) {
            sources[i] = source_of(rig, i);
            assert_int_equal(0,
                             pthread_create(&threads[i], NULL,
                                            append_until_enough, &sources[i]));
        }
        for (int i = 0; i < 30; i++) {
            uint64_t goal = journal_position(rig->journal) + 3000;
            uint64_t random = test_random(&seed);

            if (random & 1) {
                disk_fail(random & 2 ? DISK_WRITE : DISK_SYNC,
                          1 + (unsigned)(random >> 8) % 4, false);
            }
            mark = set_target(
                rig, status_of(rig).faulted ? JOURNAL_REBASE : JOURNAL_ROTATE,
                0, &sequence);
            until(journal_position(rig->journal) >= goal ||
                  status_of(rig).faulted);
            if (random & 4) {
                base_done(rig, mark, sequence);
            }
        }
        faults = status_of(rig).suspect_files;
        (void)disk_heal();
        mark = set_target(rig, JOURNAL_REBASE, 0, &sequence);
        base_done(rig, mark, sequence);
        until(released(rig) >= mark);
        enough = true;
        for (int i = 0; i < APPENDERS; i++) {
            assert_int_equal(0, pthread_join(threads[i], NULL));
        }
        assert_true(flush(rig));
        assert_true(policies[round % POLICIES] == JOURNAL_NO || faults > 0);
        check_files(sources, APPENDERS, mark, sequence);
        for (int i = 0; i < APPENDERS; i++) {
            source_fini(&sources[i]);
        }
        rig_free(rig);
    }
}
