/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A tap receives every byte of the log in order, whatever happens to the files.
 * Groups that another server has sealed: test_journal_relay.c.
 */
#include "journal/journal.h"

#include "drain_help.h"
#include "journal/journal_tap.h"
#include "tape_help.h"

/* ---- without files ------------------------------------------------------- */

TEST(a_tap_hears_the_log_without_files_and_nothing_is_queued)
{
    uint64_t before = mem_used();
    struct rig *rig = rig_new(JOURNAL_ALWAYS);
    struct source source = source_of(rig, 1);
    struct tape *tape = tape_new();
    uint64_t last = 0;

    assert_int_equal(5000, tape_follow(tape, rig, 5000, 41));
    assert_true(status_of(rig).tapped && !status_of(rig).on);
    assert_int_equal(5000, journal_position(rig->journal));
    for (int i = 0; i < 3000; i++) {
        last = append(&source);
        assert_int_equal(last, journal_position(rig->journal));
        if (i % 7 == 0) {
            assert_int_equal(last + GROUP_SEAL_BYTES,
                             journal_close_group(rig->journal));
            assert_int_equal(last + GROUP_SEAL_BYTES,
                             journal_close_group(rig->journal));
        }
    }
    assert_int_equal(0, status_of(rig).queue_bytes);
    assert_int_equal(0, metric_sum(METRIC_JOURNAL_QUEUED));
    assert_true(journal_has_room(rig->journal));
    assert_true(released(rig) == UINT64_MAX);
    assert_int_equal(0, journal_synced(rig->journal));
    assert_true(flush(rig)); /* nothing is owed */
    (void)journal_close_group(rig->journal);
    check_tape(tape, rig, &source, 1);
    assert_int_equal(1, tape->begins);
    tape_free(tape);
    finish(&source);
    assert_int_equal(before, mem_used());
}

/* A piece is free when journal_append returns: one chunk serves all. */
TEST(what_only_the_tap_wants_is_not_kept)
{
    struct rig *rig = rig_new(JOURNAL_ALWAYS);
    struct stage stage = { 0 };
    struct slice argv[] = { slice_lit("DEL"), slice_lit("some-key") };
    struct tape *tape = tape_new();
    struct chunk *chunk = NULL;

    (void)tape_follow(tape, rig, 0, 0);
    for (int i = 0; i < 50000; i++) {
        assert_true(stage_open(&stage, stage_effect_bytes(argv, 2)));
        assert_true(chunk == NULL || chunk == stage.chunk);
        chunk = stage.chunk;
        stage_add(&stage, 0, argv, 2);
        (void)journal_append(rig->journal, stage_close(&stage, false));
    }
    tape_free(tape);
    stage_fini(&stage);
    rig_free(rig);
}

TEST(positions_are_the_same_with_and_without_files)
{
    struct rig *filed = rig_new(JOURNAL_EVERYSEC);
    struct rig *bare = rig_new(JOURNAL_EVERYSEC);
    struct source sources[] = { source_of(filed, 1), source_of(bare, 1) };
    struct journal_file none = { -1, 0, 0 };
    struct tape *tape = tape_new();
    uint64_t position = 900;
    uint64_t sequence = 8;
    struct buf bytes = { 0 };
    struct expected expected;

    journal_set_target(filed->journal, JOURNAL_RESUME, &none, &position,
                       &sequence);
    (void)tape_follow(tape, bare, 900, 8);
    for (unsigned i = 0; i < 4000; i++) {
        assert_int_equal(append(&sources[0]), append(&sources[1]));
        if (mix(i) % 50 == 0) {
            assert_int_equal(journal_close_group(filed->journal),
                             journal_close_group(bare->journal));
        } else if (mix(i) % 50 == 1) {
            uint64_t at[2], last[2];

            journal_mark(filed->journal, &at[0], &last[0]);
            journal_mark(bare->journal, &at[1], &last[1]);
            assert_int_equal(at[0], at[1]);
            assert_int_equal(last[0], last[1]);
        }
    }
    assert_int_equal(journal_close_group(filed->journal),
                     journal_close_group(bare->journal));
    assert_int_equal(status_of(filed).sequence, status_of(bare).sequence);
    check_tape(tape, bare, &sources[1], 1);
    journal_drain(filed->journal, TAPE_KEY, &bytes);
    assert_int_equal(bytes.len, tape->bytes.len);
    expected = expect(&sources[0], 1, position);
    (void)check_groups(&expected, buf_slice(&bytes), 0, TAPE_KEY, position,
                       &sequence);
    mem_free(expected.entries);
    buf_free(&bytes);
    tape_free(tape);
    source_fini(&sources[0]);
    source_fini(&sources[1]);
    rig_free(filed);
    rig_free(bare);
}

TEST(a_group_of_the_tap_is_a_mebibyte_at_most_or_one_transaction)
{
    static char item[1000000];
    struct rig *rig = rig_new(JOURNAL_NO);
    struct tape *tape = tape_new();
    struct stage stage = { 0 };
    struct group group;
    uint64_t offset = 0;
    unsigned groups = 0;

    (void)tape_follow(tape, rig, 0, 0);
    for (int i = 0; i < 32; i++) {
        struct slice argv[] = { slice_lit("DEL"), { item, 100000 } };
        unsigned times = 1;

        if (i == 30) { /* a transaction of 5 MB */
            argv[1].len = sizeof(item);
            times = 5;
        } else if (i == 31) {
            argv[1].len = 10;
        }
        assert_true(stage_open(&stage, times * stage_effect_bytes(argv, 2)));
        for (unsigned j = 0; j < times; j++) {
            stage_add(&stage, 0, argv, 2);
        }
        (void)journal_append(rig->journal, stage_close(&stage, true));
    }
    (void)journal_close_group(rig->journal);
    while (group_read(buf_slice(&tape->bytes), TAPE_KEY, offset, &group) ==
           GROUP_OK) {
        bool large = group.commands.len > GROUP_BYTES_MAX;

        assert_memory_equal("*2\r\n$6\r\nSELECT\r\n", group.commands.data, 16);
        assert_int_equal(large, group.seal.sequence == 4);
        offset = group.end;
        groups++;
    }
    assert_int_equal(tape->bytes.len, offset);
    assert_int_equal(5, groups);
    tape_free(tape);
    stage_fini(&stage);
    rig_free(rig);
}

/* ---- the tap comes and goes ---------------------------------------------- */

TEST(a_tap_begins_where_the_log_is)
{
    struct rig *rig = rig_resumed(JOURNAL_ALWAYS, 1000);
    struct source source = source_of(rig, 1);
    struct tape *first = tape_new();
    struct tape *second = tape_new();
    uint64_t at, last;

    at = append(&source);
    assert_int_equal(at + GROUP_SEAL_BYTES, tape_follow(first, rig, 7, 7));
    assert_int_equal(1, first->begin_sequence);
    last = append_and_kick(&source);
    until(released(rig) > last);
    at = append(&source);
    /* The group is closed for the first one, not for the second. */
    assert_int_equal(at + GROUP_SEAL_BYTES, tape_follow(second, rig, 7, 7));
    check_tape(first, rig, &source, 1);
    (void)append(&source);
    at = last = 3;
    journal_set_tap(rig->journal, JOURNAL_TAP_REPLICAS, NULL, &at, &last);
    assert_int_equal(journal_position(rig->journal), at);
    assert_int_equal(status_of(rig).sequence, last);
    check_tape(second, rig, &source, 1);
    assert_false(status_of(rig).tapped);
    (void)append(&source); /* on, without a tap */
    assert_true(flush(rig));
    check_files(&source, 1, 1000, 0);

    journal_turn_off(rig->journal, false);
    until(!status_of(rig).closing);
    at = last = 3;
    journal_set_tap(rig->journal, JOURNAL_TAP_REPLICAS, NULL, &at, &last);
    assert_true(at == 3 && last == 3); /* there is no log */
    assert_int_equal(123456, tape_follow(first, rig, 123456, 99));
    at = append(&source);
    assert_true(at > 123456);
    at = last = 3;
    journal_set_tap(rig->journal, JOURNAL_TAP_REPLICAS, NULL, &at, &last);
    assert_int_equal(100, last);
    assert_int_equal(journal_position(rig->journal), at);
    assert_int_equal(2, first->begins);
    tape_free(first);
    tape_free(second);
    finish(&source);
}

TEST(files_come_and_go_below_a_tap)
{
    struct rig *rig = rig_new(JOURNAL_ALWAYS);
    struct source source = source_of(rig, 1);
    struct tape *tape = tape_new();
    uint64_t sequence = 0;
    uint64_t mark, last;

    (void)tape_follow(tape, rig, 0, 0);
    for (int round = 0; round < 6; round++) {
        uint64_t before = append(&source);

        /* The place that is passed in is not read. */
        sequence = 1000000;
        mark = set_target(rig, round % 2 ? JOURNAL_RESUME : JOURNAL_BUILD, 7,
                          &sequence);
        assert_int_equal(before + GROUP_SEAL_BYTES, mark);
        assert_int_equal(status_of(rig).sequence, sequence);
        last = append_and_kick(&source);
        if (round % 2 == 0) {
            assert_true(released(rig) == UINT64_MAX);
            base_done(rig, mark, sequence);
        }
        assert_true(released(rig) < UINT64_MAX);
        until(released(rig) >= last);
        disk_hold(DISK_WRITE, round % 3 == 0);
        last = append_and_kick(&source);
        journal_turn_off(rig->journal, round % 3 == 1);
        /* Closing, and the log goes on. */
        assert_true(append_and_kick(&source) > last);
        assert_true(status_of(rig).tapped && !status_of(rig).on);
        disk_hold(DISK_WRITE, false);
        assert_true(flush(rig));
        until(!status_of(rig).closing);
        assert_true(released(rig) == UINT64_MAX);
        assert_int_equal(0, journal_synced(rig->journal));
    }
    (void)append(&source);
    journal_mark(rig->journal, &mark, &sequence);
    assert_int_equal(mark, journal_close_group(rig->journal));
    assert_int_equal(1, tape->begins);
    check_tape(tape, rig, &source, 1);
    tape_free(tape);
    finish(&source);
}

TEST(the_stream_has_what_a_fault_and_a_rebase_made_void)
{
    struct rig *rig = rig_resumed(JOURNAL_ALWAYS, 0);
    struct source source = source_of(rig, 1);
    struct tape *tape = tape_new();
    uint64_t sequence = 0;
    uint64_t mark, last;

    (void)tape_follow(tape, rig, 0, 0);
    for (int round = 0; round < 2; round++) {
        append_failed(&source);
        (void)append_and_kick(&source);
        mark = set_target(rig, JOURNAL_REBASE, 0, &sequence);
        last = append_and_kick(&source);
        base_done(rig, mark, sequence);
        until(released(rig) >= last);
    }
    (void)journal_close_group(rig->journal);
    check_tape(tape, rig, &source, 1);
    assert_true(flush(rig));
    check_files(&source, 1, mark, sequence);
    (void)disk_heal();
    tape_free(tape);
    finish(&source);
}

TEST(a_log_that_moves_leaves_its_old_file_behind)
{
    for (int held = 0; held < 3; held++) {
        struct rig *rig = rig_resumed(JOURNAL_ALWAYS, 70000);
        struct source source = source_of(rig, 1);
        struct source later = source_of(rig, 2);
        struct tape *tape = tape_new();
        uint64_t sequence = 0;
        uint64_t last, mark;

        (void)tape_follow(tape, rig, 0, 0);
        last = append_released(&source);
        if (held > 0) {
            (void)append_stuck(&source, DISK_SYNC);
        }
        (void)append_and_kick(&source);
        journal_turn_off(rig->journal, held < 2); /* or it is given up now */
        assert_true(held == 0 || status_of(rig).closing);
        journal_move(rig->journal, 300, 12);
        disk.files[0].left = true; /* it is of no log that the disk knows */
        rig->always = false;
        assert_int_equal(300, journal_position(rig->journal));
        assert_int_equal(12, status_of(rig).sequence);
        assert_true(tape->begin == 300 && tape->begin_sequence == 12);
        assert_int_equal(0, journal_synced(rig->journal));
        assert_true(released(rig) == UINT64_MAX);
        (void)append_and_kick(&later);
        disk_hold(DISK_SYNC, false);
        until(!status_of(rig).closing);
        assert_int_equal(0, status_of(rig).queue_bytes);
        mark = set_target(rig, JOURNAL_BUILD, 0, &sequence);
        assert_int_equal(13, sequence);
        assert_true(mark > 300 && mark < 70000);
        base_done(rig, mark, sequence);
        assert_int_equal(mark, journal_synced(rig->journal));
        last = append_and_kick(&later);
        until(released(rig) >= last && released(rig) < 70000);
        (void)journal_close_group(rig->journal);
        check_tape(tape, rig, &later, 1);
        assert_true(flush(rig));
        assert_null(disk.wrong);
        tape_free(tape);
        source_fini(&source);
        source_fini(&later);
        rig_free(rig);
    }
}

/* ---- many threads -------------------------------------------------------- */

static void
start(struct rig *rig, struct source *sources, pthread_t *threads,
      void *(*body)(void *))
{
    for (uint32_t i = 0; i < APPENDERS; i++) {
        sources[i] = source_of(rig, i);
        assert_int_equal(0,
                         pthread_create(&threads[i], NULL, body, &sources[i]));
    }
}

static void
join(const pthread_t *threads)
{
    for (int i = 0; i < APPENDERS; i++) {
        assert_int_equal(0, pthread_join(threads[i], NULL));
    }
}

/* Files are switched on and off, rotate and fail, and the stream shows nothing
 * of it. */
TEST(a_tap_hears_every_byte_in_order_whatever_the_files_do)
{
    for (unsigned round = 0; round < 3 * test_rounds(); round++) {
        struct rig *rig = rig_new(policies[round % POLICIES]);
        struct tape *tapes[] = { tape_new(), tape_new() };
        struct source sources[APPENDERS];
        pthread_t threads[APPENDERS];
        uint64_t seed = test_seed() + round;
        uint64_t mark = 0;
        uint64_t sequence = 0;

        enough = false;
        (void)tape_follow(tapes[0], rig, 40, 2);
        start(rig, sources, threads, append_until_enough);
        for (int i = 0; i < 40; i++) {
            uint64_t goal = journal_position(rig->journal) + 3000;
            uint64_t random = test_random(&seed);

            if (random >> 20 & 1) {
                disk_fail(random >> 21 & 1 ? DISK_WRITE : DISK_SYNC,
                          1 + (unsigned)(random >> 8) % 4, false);
            }
            turn_something(rig, random, &mark, &sequence);
            if (i == 20) {
                (void)tape_follow(tapes[1], rig, 0, 0);
            }
            until(journal_position(rig->journal) >= goal ||
                  status_of(rig).faulted);
            if (status_of(rig).on && (random >> 22 & 1)) {
                base_done(rig, mark, sequence);
            }
            if (random >> 23 & 1) {
                (void)journal_close_group(rig->journal);
            }
        }
        (void)disk_heal();
        until(!status_of(rig).closing);
        mark =
            set_target(rig, status_of(rig).on ? JOURNAL_REBASE : JOURNAL_BUILD,
                       0, &sequence);
        base_done(rig, mark, sequence);
        until(released(rig) >= mark && released(rig) < UINT64_MAX);
        enough = true;
        join(threads);
        assert_true(flush(rig));
        (void)journal_close_group(rig->journal);
        check_files(sources, APPENDERS, mark, sequence);
        check_tape(tapes[1], rig, sources, APPENDERS);
        /* The first one ends where the second begins. */
        assert_int_equal(tapes[1]->begin,
                         tapes[0]->begin + tapes[0]->bytes.len);
        buf_append_slice(&tapes[0]->bytes, buf_slice(&tapes[1]->bytes));
        check_tape(tapes[0], rig, sources, APPENDERS);
        for (int i = 0; i < APPENDERS; i++) {
            source_fini(&sources[i]);
        }
        tape_free(tapes[0]);
        tape_free(tapes[1]);
        rig_free(rig);
    }
}

/* ---- wake-ups ------------------------------------------------------------ */

TEST(the_hook_is_called_once_until_the_group_is_closed)
{
    struct rig *rig = rig_new(JOURNAL_NO);
    struct source source = source_of(rig, 1);
    struct tape *tape = tape_new();
    uint64_t at, last;

    (void)tape_follow(tape, rig, 0, 0);
    journal_kick(rig->journal);
    assert_int_equal(0, rig->tapped);
    for (uint64_t round = 1; round < 5; round++) {
        (void)append(&source);
        assert_int_equal(round - 1, rig->tapped);
        for (int i = 0; i < 10; i++) {
            journal_kick(rig->journal);
            (void)append_and_kick(&source);
            assert_int_equal(round, rig->tapped);
        }
        journal_mark(rig->journal, &at, &last); /* closes, but re-arms not */
        (void)append_and_kick(&source);
        assert_int_equal(round, rig->tapped);
        (void)journal_close_group(rig->journal);
        journal_kick(rig->journal);
        assert_int_equal(round, rig->tapped);
    }
    (void)append(&source);
    journal_set_tap(rig->journal, JOURNAL_TAP_REPLICAS, NULL, &at, &last);
    (void)tape_follow(tape, rig, at, last); /* a new tap is kicked anew */
    (void)append_and_kick(&source);
    assert_int_equal(5, rig->tapped);
    tape_free(tape);
    finish(&source);
}

static _Atomic uint64_t closed_to;
static _Atomic unsigned done;

enum { WAKES = 2000 };

/* Each waits until loop 0 has closed its group, and is told by nothing else
 * than its kick. */
static void *
append_and_wait(void *arg)
{
    struct source *source = arg;

    for (int i = 0; i < WAKES; i++) {
        uint64_t position = append_and_kick(source);

        while (atomic_load(&closed_to) < position) {
            (void)sched_yield();
        }
    }
    done++;
    metric_thread_exit();
    return NULL;
}

/* Loop 0, which sleeps until the hook is called. A lost call would have all
 * wait for good. */
TEST(no_wake_up_of_the_tap_is_lost)
{
    for (int files = 0; files < 2; files++) {
        struct rig *rig =
            files ? rig_resumed(JOURNAL_NO, 0) : rig_new(JOURNAL_NO);
        struct tape *tape = tape_new();
        struct source sources[APPENDERS];
        pthread_t threads[APPENDERS];
        uint64_t seen = 0;
        uint64_t closes = 0;

        closed_to = 0;
        done = 0;
        (void)tape_follow(tape, rig, 0, 0);
        start(rig, sources, threads, append_and_wait);
        while (done < APPENDERS) {
            uint64_t deadline_ns =
                clock_mono_ns() + DEADLINE_S * UINT64_C(1000000000);

            while (rig->tapped == seen && done < APPENDERS) {
                assert_true(clock_mono_ns() < deadline_ns);
                (void)sched_yield();
            }
            seen = rig->tapped;
            atomic_store(&closed_to, journal_close_group(rig->journal));
            closes++;
        }
        join(threads);
        /* Not more often than it was re-armed. */
        assert_true(rig->tapped <= closes + 1);
        (void)journal_close_group(rig->journal);
        check_tape(tape, rig, sources, APPENDERS);
        for (int i = 0; i < APPENDERS; i++) {
            source_fini(&sources[i]);
        }
        tape_free(tape);
        rig_free(rig);
    }
}

/* ---- other data ---------------------------------------------------------- */

/* What follows other data is held until there is a base of it, and then written
 * to the file that comes with that. */
TEST(a_hold_ends_with_a_file)
{
    struct rig *rig = rig_resumed(JOURNAL_ALWAYS, 100);
    struct source source = source_of(rig, 1);
    struct tape *tape = tape_new();
    uint64_t last;

    (void)tape_follow(tape, rig, 0, 0);
    (void)append_released(&source);
    hold(rig, 40, 2);
    assert_true(status_of(rig).holding && status_of(rig).on);
    assert_false(status_of(rig).faulted);
    assert_int_equal(released(rig), 40);
    assert_int_equal(journal_synced(rig->journal), 0);
    last = append_and_kick(&source);
    assert_true(last > 40 && released(rig) == 40);
    assert_true(end_hold(rig, 40));
    until(released(rig) >= last);
    assert_false(status_of(rig).holding);
    assert_true(journal_synced(rig->journal) >= last);
    assert_false(end_hold(rig, last)); /* it holds nothing now */
    tape_free(tape);
    finish(&source);
}

/* The base may be of a later place, if what came before is dropped. */
TEST(a_hold_may_wait_for_a_later_base)
{
    struct rig *rig = rig_new(JOURNAL_ALWAYS);
    struct source source = source_of(rig, 1);
    struct tape *tape = tape_new();
    uint64_t position;
    uint64_t sequence;
    uint64_t last;

    (void)tape_follow(tape, rig, 0, 0);
    hold(rig, 40, 2);
    (void)append_and_kick(&source);
    journal_lose(rig->journal, EIO); /* so no base at 40 is enough */
    assert_true(status_of(rig).faulted);
    assert_false(end_hold(rig, 40));
    journal_hold_here(rig->journal, &position, &sequence);
    assert_true(position > 40 && sequence == 3);
    assert_int_equal(released(rig), 40);
    last = append_and_kick(&source);
    assert_true(end_hold(rig, position));
    assert_false(status_of(rig).faulted);
    until(released(rig) >= last);
    tape_free(tape);
    finish(&source);
}

/* ---- bars ---------------------------------------------------------------- */

TEST(a_bar_holds_what_the_disk_has)
{
    struct rig *rig = rig_resumed(JOURNAL_ALWAYS, 100);
    struct source source = source_of(rig, 1);
    uint64_t before = append_released(&source);
    uint64_t last;

    journal_bar(rig->journal);
    assert_true(status_of(rig).barred_mono_ns > 0);
    before = released(rig);
    last = append_and_kick(&source);
    until(journal_synced(rig->journal) >= last);
    assert_int_equal(released(rig), before);
    journal_unbar(rig->journal);
    assert_true(released(rig) >= last);
    assert_true(status_of(rig).barred_mono_ns == 0);
    last = append_and_kick(&source);
    until(released(rig) >= last);
    finish(&source);
}

/* Without files there is nothing to wait for. */
TEST(a_bar_holds_nothing_while_the_journal_is_off)
{
    struct rig *rig = rig_resumed(JOURNAL_EVERYSEC, 100);
    struct source source = source_of(rig, 1);

    (void)append_released(&source);
    journal_bar(rig->journal);
    (void)append_and_kick(&source);
    journal_turn_off(rig->journal, true);
    until(released(rig) == UINT64_MAX);
    journal_unbar(rig->journal);
    assert_true(released(rig) == UINT64_MAX);
    finish(&source);
}

TEST(a_hold_may_be_turned_off)
{
    struct rig *rig = rig_new(JOURNAL_ALWAYS);
    struct source source = source_of(rig, 1);
    struct tape *tape = tape_new();

    (void)tape_follow(tape, rig, 0, 0);
    hold(rig, 40, 2);
    (void)append_and_kick(&source);
    journal_turn_off(rig->journal, false);
    assert_false(status_of(rig).on || status_of(rig).closing);
    assert_true(released(rig) == UINT64_MAX);
    assert_int_equal(status_of(rig).queue_bytes, 0);
    tape_free(tape);
    finish(&source);
}
