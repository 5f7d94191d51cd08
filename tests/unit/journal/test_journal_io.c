/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The threads on a sound disk: when they release, what the files hold
 * afterwards, and the order of writes and syncs.
 */
#include "journal/journal.h"

#include "journal_help.h"

TEST(always_releases_what_is_synced)
{
    struct rig *rig = rig_resumed(JOURNAL_ALWAYS, 1000);
    struct source source = source_of(rig, 1);

    assert_int_equal(1000, released(rig));
    for (int i = 0; i < 20; i++) {
        uint64_t first, second;

        first = append_stuck(&source, DISK_SYNC);
        second = append_and_kick(&source); /* while a sync is under way */
        until(status_of(rig).written > second);
        assert_true(released(rig) < first);
        assert_true(journal_synced(rig->journal) < first);
        disk_hold(DISK_SYNC, false);
        until(released(rig) >= second);
        assert_true(journal_synced(rig->journal) >= second);
        assert_int_equal(status_of(rig).sequence,
                         status_of(rig).synced_sequence);
    }
    assert_true(status_of(rig).syncs <= 40);
    assert_int_equal(status_of(rig).sync_ns_max,
                     journal_take_longest_sync_ns(rig->journal));
    assert_int_equal(0, journal_take_longest_sync_ns(rig->journal));
    assert_int_equal(0, status_of(rig).unsynced_mono_ns);
    finish_checked(&source, 1000, 0);
}

TEST(everysec_releases_what_is_written_and_syncs_within_a_second)
{
    struct rig *rig = rig_resumed(JOURNAL_EVERYSEC, 0);
    struct source source = source_of(rig, 1);
    uint64_t began_ns = clock_mono_ns();
    uint64_t position;

    position = append_stuck(&source, DISK_WRITE);
    assert_int_equal(0, released(rig));
    disk_hold(DISK_WRITE, false);
    until(released(rig) >= position);
    assert_int_equal(0, journal_synced(rig->journal));
    assert_int_equal(0, status_of(rig).syncs);
    assert_true(status_of(rig).unsynced_mono_ns >= began_ns);
    until(journal_synced(rig->journal) >= position);
    assert_true(clock_mono_ns() - began_ns >= 900000000);
    assert_int_equal(1, status_of(rig).syncs);
    assert_int_equal(0, status_of(rig).unsynced_mono_ns);
    finish_checked(&source, 0, 0);
}

TEST(everysec_holds_back_what_would_be_lost_beyond_a_second)
{
    struct rig *rig = rig_resumed(JOURNAL_EVERYSEC, 0);
    struct source source = source_of(rig, 1);
    uint64_t third, since_ns;

    disk_hold(DISK_SYNC, true);
    (void)append_released(&source);
    since_ns = status_of(rig).unsynced_mono_ns;
    (void)append_released(&source);
    until(disk_is_inside(DISK_SYNC));
    until(clock_mono_ns() - since_ns > 1000000000);
    third = append_and_kick(&source);
    until(status_of(rig).written > third);
    assert_true(released(rig) < third);
    disk_hold(DISK_SYNC, false);
    until(released(rig) >= third);
    finish(&source);
}

TEST(no_syncs_only_when_it_has_to)
{
    struct rig *rig = rig_resumed(JOURNAL_NO, 0);
    struct source source = source_of(rig, 1);
    uint64_t position = append_released(&source);
    uint64_t syncs;

    assert_int_equal(0, status_of(rig).syncs);
    assert_int_equal(0, journal_synced(rig->journal));
    (void)append(&source); /* without a kick */
    assert_true(flush(rig));
    assert_int_equal(journal_position(rig->journal),
                     journal_synced(rig->journal));
    syncs = status_of(rig).syncs;
    assert_in_range(syncs, 1, 2);
    assert_true(flush(rig));
    assert_int_equal(syncs, status_of(rig).syncs);
    position = append_released(&source);
    journal_set_sync(rig->journal, JOURNAL_ALWAYS);
    until(journal_synced(rig->journal) >= position);
    finish_checked(&source, 0, 0);
}

TEST(a_stricter_policy_takes_nothing_back)
{
    struct rig *rig = rig_resumed(JOURNAL_NO, 0);
    struct source source = source_of(rig, 1);
    uint64_t first = append_released(&source);
    uint64_t second;

    disk_hold(DISK_SYNC, true);
    journal_set_sync(rig->journal, JOURNAL_ALWAYS);
    second = append_and_kick(&source);
    until(status_of(rig).written > second);
    assert_true(released(rig) >= first);
    assert_true(released(rig) < second);
    journal_set_sync(rig->journal, JOURNAL_EVERYSEC);
    assert_true(released(rig) >= second);
    disk_hold(DISK_SYNC, false);
    finish(&source);
}

TEST(threads_answer_unless_they_hang_outside_of_the_disk)
{
    struct rig *rig = rig_resumed(JOURNAL_EVERYSEC, 0);
    struct source source = source_of(rig, 1);

    (void)journal_answers(rig->journal);
    until(journal_answers(rig->journal)); /* idle */
    for (enum disk_call call = DISK_WRITE; call < DISK_CALLS; call++) {
        (void)append_stuck(&source, call);
        until(journal_answers(rig->journal));
        disk_hold(call, false);
    }
    rig->hangs = true;
    (void)append_and_kick(&source);
    until(rig->hanging);
    (void)journal_answers(rig->journal);
    for (int i = 0; i < 20; i++) {
        (void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        assert_false(journal_answers(rig->journal));
    }
    rig->hangs = false;
    until(journal_answers(rig->journal));
    finish(&source);
}

TEST(room_comes_free_when_it_is_written)
{
    struct rig *rig = rig_resumed(JOURNAL_ALWAYS, 0);
    struct source source = source_of(rig, 1);
    uint64_t moved;

    journal_set_limit(rig->journal, 50000);
    disk_hold(DISK_SYNC, true);
    disk_hold(DISK_WRITE, true);
    while (journal_has_room(rig->journal)) {
        (void)append_and_kick(&source);
    }
    until(disk_is_inside(DISK_WRITE));
    assert_false(journal_has_room(rig->journal));
    moved = rig->moved;
    disk_hold(DISK_WRITE, false);
    until(journal_has_room(rig->journal));
    until(rig->moved > moved);
    disk_hold(DISK_SYNC, false);
    finish(&source);
}

/* ---- files --------------------------------------------------------------- */

TEST(a_rotation_splits_the_log_at_its_position)
{
    for (size_t p = 0; p < POLICIES; p++) {
        struct rig *rig = rig_resumed(policies[p], 300);
        struct source source = source_of(rig, 1);
        uint64_t sequence = 0;
        uint64_t mark, last;

        disk_hold(DISK_WRITE, true);
        for (int i = 0; i < 100; i++) {
            (void)append_and_kick(&source);
        }
        mark = set_target(rig, JOURNAL_ROTATE, 0, &sequence);
        assert_int_equal(mark, journal_position(rig->journal));
        last = append_and_kick(&source);
        assert_true(status_of(rig).rotating);
        disk_hold(DISK_WRITE, false);
        until(released(rig) >= last);
        assert_int_equal(1, status_of(rig).closed_number);
        assert_int_equal(2, status_of(rig).file_number);
        assert_int_equal(mark - 300 + GROUP_FIRST_LINE_BYTES,
                         status_of(rig).closed_bytes);
        assert_int_equal(size_of(disk.files[0].fd),
                         status_of(rig).closed_bytes);
        assert_int_equal(size_of(disk.files[0].fd), disk.files[0].synced);
        until(rig->events >= 1);
        assert_false(status_of(rig).rotating);
        finish_checked(&source, 300, 0);
    }
}

TEST(a_rotation_with_nothing_queued_is_reached_at_once)
{
    struct rig *rig = rig_resumed(JOURNAL_EVERYSEC, 0);

    (void)set_target(rig, JOURNAL_ROTATE, 0, NULL);
    until(!status_of(rig).rotating);
    (void)set_target(rig, JOURNAL_ROTATE, 0, NULL);
    until(!status_of(rig).rotating);
    assert_int_equal(2, status_of(rig).closed_number);
    assert_int_equal(GROUP_FIRST_LINE_BYTES, status_of(rig).closed_bytes);
    assert_int_equal(0, status_of(rig).syncs);
    rig_free(rig);
}

TEST(a_second_rotation_replaces_one_that_was_not_reached)
{
    struct rig *rig = rig_resumed(JOURNAL_ALWAYS, 0);
    struct source source = source_of(rig, 1);
    uint64_t last;

    (void)append_stuck(&source, DISK_WRITE);
    (void)append_and_kick(&source);
    (void)set_target(rig, JOURNAL_ROTATE, 0, NULL);
    (void)append_and_kick(&source);
    (void)set_target(rig, JOURNAL_ROTATE, 0, NULL);
    last = append_and_kick(&source);
    disk_hold(DISK_WRITE, false);
    until(released(rig) >= last);
    assert_int_equal(GROUP_FIRST_LINE_BYTES, size_of(disk.files[1].fd));
    assert_int_equal(1, status_of(rig).closed_number);
    assert_int_equal(3, status_of(rig).file_number);
    finish_checked(&source, 0, 0);
}

TEST(a_base_counts_as_written_and_synced_even_before_it_is)
{
    struct rig *rig = rig_resumed(JOURNAL_ALWAYS, 0);
    struct source source = source_of(rig, 1);
    uint64_t sequence = 0;
    uint64_t mark, last;

    (void)append_stuck(&source, DISK_WRITE);
    (void)append_and_kick(&source); /* is sealed when the base is there */
    mark = set_target(rig, JOURNAL_ROTATE, 0, &sequence);
    last = append_and_kick(&source);
    base_done(rig, mark, sequence);
    assert_int_equal(mark, released(rig));
    assert_int_equal(mark, journal_synced(rig->journal));
    assert_int_equal(mark, status_of(rig).written);
    base_done(rig, mark - 1, sequence - 1); /* an older one changes nothing */
    assert_int_equal(mark, released(rig));
    disk.base = mark;
    disk_hold(DISK_WRITE, false);
    until(released(rig) >= last);
    finish_checked(&source, 0, 0);
}

/* ---- on and off ---------------------------------------------------------- */

TEST(while_it_is_only_being_built_everything_is_released)
{
    struct rig *rig = rig_new(JOURNAL_ALWAYS);
    struct source source = source_of(rig, 1);
    uint64_t sequence = 9;
    uint64_t begin = set_target(rig, JOURNAL_BUILD, 4000, &sequence);
    uint64_t position = append_and_kick(&source);

    assert_int_equal(4000, begin);
    assert_int_equal(9, sequence);
    until(status_of(rig).written > position);
    assert_true(status_of(rig).building && status_of(rig).on);
    assert_true(released(rig) == UINT64_MAX);
    assert_int_equal(0, journal_synced(rig->journal));
    assert_true(flush(rig));
    assert_int_equal(0, journal_synced(rig->journal));
    base_done(rig, 3999, 8); /* some older one */
    assert_true(status_of(rig).building);
    position = append_stuck(&source, DISK_SYNC);
    base_done(rig, begin, sequence);
    assert_false(status_of(rig).building);
    assert_true(released(rig) < position); /* the sync is still under way */
    assert_true(released(rig) > begin);
    disk_hold(DISK_SYNC, false);
    until(released(rig) >= position);
    finish_checked(&source, begin, 9);
}

/* Although groups were synced: the bytes before them are lost. */
TEST(turned_off_while_it_is_built_the_disk_has_nothing)
{
    struct rig *rig = rig_new(JOURNAL_ALWAYS);
    struct source source = source_of(rig, 1);
    uint64_t sequence = 9;

    (void)set_target(rig, JOURNAL_BUILD, 4000, &sequence);
    (void)append_and_kick(&source);
    assert_true(flush(rig));
    (void)append_stuck(&source, DISK_SYNC);
    journal_turn_off(rig->journal, false);
    assert_true(status_of(rig).closing);
    assert_int_equal(0, journal_synced(rig->journal));
    disk_hold(DISK_SYNC, false);
    until(!status_of(rig).closing);
    assert_int_equal(0, journal_synced(rig->journal));
    finish(&source);
}

TEST(turned_off_it_writes_and_syncs_what_it_has)
{
    for (int rotating = 0; rotating < 2; rotating++) {
        struct rig *rig = rig_resumed(JOURNAL_NO, 0);
        struct source source = source_of(rig, 1);
        uint64_t events;

        (void)append_stuck(&source, DISK_WRITE);
        (void)append(&source);
        if (rotating) {
            (void)set_target(rig, JOURNAL_ROTATE, 0, NULL);
            (void)append(&source);
        }
        journal_turn_off(rig->journal, false);
        assert_true(status_of(rig).closing);
        assert_int_equal(0, released(rig));
        events = rig->events;
        disk_hold(DISK_WRITE, false);
        until(released(rig) == UINT64_MAX);
        until(rig->events > events);
        assert_false(status_of(rig).closing || status_of(rig).on);
        assert_int_equal(0, journal_synced(rig->journal));
        for (int i = 0; i < 1 + rotating; i++) {
            assert_int_equal(disk.files[i].synced, size_of(disk.files[i].fd));
        }
        finish_checked(&source, 0, 0);
    }
}

TEST(turned_off_now_it_drops_what_it_has_and_can_be_built_again)
{
    struct rig *rig = rig_resumed(JOURNAL_ALWAYS, 0);
    struct source source = source_of(rig, 1);
    uint64_t sequence = 50;
    uint64_t position;

    (void)append_stuck(&source, DISK_WRITE);
    (void)append(&source);
    (void)set_target(rig, JOURNAL_ROTATE, 0, NULL);
    position = append(&source);
    journal_turn_off(rig->journal, true);
    assert_true(released(rig) == UINT64_MAX);
    disk_hold(DISK_WRITE, false);
    until(!status_of(rig).closing);
    until(rig->events >= 1);
    until(status_of(rig).queue_bytes == 0);
    assert_false(status_of(rig).rotating);

    position = set_target(rig, JOURNAL_BUILD, position + 1000, &sequence);
    base_done(rig, position, sequence);
    assert_int_equal(position, released(rig));
    (void)append_released(&source);
    finish_checked(&source, position, 50);
}

/* A sync hangs all the while. */
TEST(a_flush_waits_for_nothing_that_was_dropped_when_it_was_turned_off)
{
    enum { BUILDING, NOW, FAULTED, CLOSING, CASES }; /* CLOSING: a fault then */

    for (int i = 0; i < CASES; i++) {
        struct rig *rig = rig_new(JOURNAL_EVERYSEC);
        struct source source = source_of(rig, 1);
        uint64_t position;

        (void)set_target(rig, i == BUILDING ? JOURNAL_BUILD : JOURNAL_RESUME, 0,
                         NULL);
        disk_hold(DISK_SYNC, true);
        position = append_and_kick(&source);
        until(status_of(rig).written > position);
        journal_set_sync(rig->journal, JOURNAL_ALWAYS);
        until(disk_is_inside(DISK_SYNC));
        if (i == FAULTED) {
            append_failed(&source);
            assert_false(flush(rig));
        }
        (void)append(&source);
        if (i == CLOSING) {
            disk_hold(DISK_WRITE, true);
            journal_kick(rig->journal);
            until(disk_is_inside(DISK_WRITE));
            disk_fail(DISK_WRITE, 1, false);
        }
        journal_turn_off(rig->journal, i == NOW);
        disk_hold(DISK_WRITE, false);
        until(released(rig) == UINT64_MAX);
        assert_true(flush(rig));
        assert_true(status_of(rig).closing);
        disk_hold(DISK_SYNC, false);
        until(!status_of(rig).closing);
        assert_true(flush(rig));
        finish(&source);
    }
}

TEST(a_flush_waits_for_what_is_still_to_be_synced_when_it_was_turned_off)
{
    for (int fails = 0; fails < 2; fails++) {
        struct rig *rig = rig_resumed(JOURNAL_NO, 0);
        struct source source = source_of(rig, 1);

        disk_hold(DISK_SYNC, true);
        (void)append(&source);
        journal_turn_off(rig->journal, false);
        until(disk_is_inside(DISK_SYNC));
        assert_true(status_of(rig).closing);
        assert_int_equal(JOURNAL_FLUSHES, journal_flush(rig->journal));
        disk_fail(DISK_SYNC, (unsigned)fails, false);
        disk_hold(DISK_SYNC, false);
        assert_true(flush(rig)); /* off, or dropped by the fault */
        until(!status_of(rig).closing);
        assert_int_equal(!fails,
                         disk.files[0].synced == size_of(disk.files[0].fd));
        finish(&source);
    }
}

/* In whatever the threads are at that moment. */
TEST(it_may_be_freed_at_any_time)
{
    uint64_t before = mem_used();

    for (int i = 0; i < 200; i++) {
        struct rig *rig = rig_resumed((enum journal_sync)(i % 3), 0);
        struct source source = source_of(rig, 1);

        for (int j = 0; j < i; j++) {
            (void)append(&source);
            if (j % 16 == i % 16) {
                journal_kick(rig->journal);
            }
            if (j % 50 == i % 50) {
                (void)set_target(rig, JOURNAL_ROTATE, 0, NULL);
            }
        }
        if (i % 5 == 0) {
            journal_turn_off(rig->journal, i % 2);
        }
        finish(&source);
    }
    assert_int_equal(before, mem_used());
}

TEST(halted_it_keeps_its_positions_and_releases_nothing_more)
{
    struct rig *rig = rig_resumed(JOURNAL_NO, 0);
    struct source source = source_of(rig, 1);
    uint64_t position = append_released(&source);

    journal_halt(rig->journal);
    position = released(rig);
    assert_true(append_and_kick(&source) > position);
    assert_false(flush(rig));
    assert_int_equal(position, released(rig));
    finish(&source);
}

/* ---- many threads -------------------------------------------------------- */

enum { THREADS = 4, PIECES = 3000 };

static void *
append_many(void *arg)
{
    struct source *source = arg;

    for (int i = 0; i < PIECES; i++) {
        uint64_t position = append(source);

        if (mix((uint64_t)i) % 8 == 0) {
            journal_kick(source->rig->journal);
        }
        if (mix((uint64_t)i) % 64 == 0) {
            until(released(source->rig) >= position);
        }
    }
    journal_kick(source->rig->journal);
    metric_thread_exit();
    return NULL;
}

TEST(threads_append_while_files_change)
{
    for (size_t p = 0; p < POLICIES; p++) {
        struct rig *rig = rig_resumed(policies[p], 12345);
        struct source sources[THREADS];
        pthread_t threads[THREADS];
        uint64_t position = 0;

        for (uint32_t i = 0; i < THREADS; i++) {
            sources[i] = source_of(rig, i);
            assert_int_equal(
                0, pthread_create(&threads[i], NULL, append_many, &sources[i]));
        }
        for (int i = 0; i < 20; i++) {
            uint64_t goal = journal_position(rig->journal) + 50000;

            position = set_target(rig, JOURNAL_ROTATE, 0, NULL);
            until(released(rig) >= position);
            if (i < 10) {
                until(journal_position(rig->journal) >= goal);
            }
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(0, pthread_join(threads[i], NULL));
        }
        assert_true(flush(rig));
        assert_int_equal(journal_position(rig->journal), released(rig));
        assert_int_equal(status_of(rig).groups, status_of(rig).sequence);
        assert_int_equal(0, status_of(rig).queue_bytes);
        check_files(sources, THREADS, 12345, 0);
        for (int i = 0; i < THREADS; i++) {
            source_fini(&sources[i]);
        }
        rig_free(rig);
    }
}
