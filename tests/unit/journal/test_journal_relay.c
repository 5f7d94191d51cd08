/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Groups that another server has sealed: they have the same positions here as
 * there, and a disk that fails costs the file, but never memory without bound.
 */
#include "journal/journal.h"

#include "journal/journal_tap.h"
#include "tape_help.h"

/* The other server: it has a tap and no files. */
struct origin {
    struct rig *rig;
    struct source source;
    struct tape *tape;
    uint64_t read; /* of the tape */
};

static struct origin *
origin_new(uint64_t position, uint64_t sequence)
{
    struct origin *origin = mem_zalloc(sizeof(*origin));

    origin->rig = rig_new(JOURNAL_NO);
    origin->source = source_of(origin->rig, 9);
    origin->tape = tape_new();
    origin->tape->stamp = 1234567; /* its seals are no other's */
    (void)tape_follow(origin->tape, origin->rig, position, sequence);
    return origin;
}

/* All that it has sent arrived, in both forms. */
static void
check_arrived(const struct origin *origin, const struct tape *tape)
{
    uint64_t from = tape->begin - origin->tape->begin;

    assert_null(tape->wrong);
    assert_int_equal(origin->tape->bytes.len - from, tape->bytes.len);
    assert_memory_equal(origin->tape->bytes.data + from, tape->bytes.data,
                        tape->bytes.len);
}

static void
origin_free(struct origin *origin)
{
    tape_free(origin->tape);
    source_fini(&origin->source);
    journal_free(origin->rig->journal);
    mem_free(origin->rig);
    mem_free(origin);
}

/* Its next group, of so many pieces, which stands there then. */
static uint64_t
relay(struct origin *origin, struct rig *rig, unsigned pieces)
{
    struct group group;
    struct slice bytes;
    const char *seal;
    uint64_t position;

    for (unsigned i = 0; i < pieces; i++) {
        (void)append(&origin->source);
    }
    position = journal_close_group(origin->rig->journal);
    bytes = buf_slice(&origin->tape->bytes);
    assert_int_equal(GROUP_OK,
                     group_read(bytes, TAPE_KEY, origin->read, &group));
    seal = bytes.data + group.end - GROUP_SEAL_BYTES;
    pthread_mutex_lock(&disk.mutex); /* no write in between */
    assert_int_equal(position, journal_relay(rig->journal, group.commands,
                                             group.seal.sequence, seal));
    for (size_t i = 0; i + 1 < disk.count && status_of(rig).faulted; i++) {
        disk.files[i].left = true; /* perhaps without an error */
    }
    pthread_mutex_unlock(&disk.mutex);
    assert_int_equal(position, journal_position(rig->journal));
    assert_int_equal(group.seal.sequence, status_of(rig).sequence);
    origin->read = group.end;
    return position;
}

TEST(what_is_relayed_stands_where_it_stood)
{
    for (size_t p = 0; p < POLICIES; p++) {
        struct origin *origin = origin_new(600, 30);
        struct rig *rig = rig_new(policies[p]);
        struct tape *tape = tape_new();
        uint64_t sequence = 30;
        uint64_t last = 0;

        (void)set_target(rig, JOURNAL_RESUME, 600, &sequence);
        (void)tape_follow(tape, rig, 0, 0);
        for (unsigned i = 0; i < 300; i++) {
            uint64_t mark;

            last = relay(origin, rig, 1 + i % 3);
            if (i % 100 == 50) {
                mark = set_target(rig, JOURNAL_ROTATE, 0, &sequence);
                assert_int_equal(last, mark);
                base_done(rig, mark, sequence);
            }
            if (i % 40 == 0) { /* without a kick */
                until(released(rig) >= last);
            }
        }
        assert_int_equal(0, rig->tapped);
        assert_true(flush(rig));
        assert_int_equal(last, journal_synced(rig->journal));
        assert_false(status_of(rig).faulted);
        check_arrived(origin, tape);
        check_files(&origin->source, 1, 600, 30);
        tape_free(tape);
        origin_free(origin);
        rig_free(rig);
    }
}

/* Memory in use, without that of the test. */
static uint64_t
held(const struct origin *origin, const struct tape *tape)
{
    return mem_used() - origin->tape->bytes.capacity - tape->bytes.capacity -
           origin->source.max * sizeof(*origin->source.entries);
}

TEST(what_is_relayed_without_files_goes_to_the_tap_alone)
{
    struct origin *origin = origin_new(600, 30);
    struct rig *rig = rig_new(JOURNAL_ALWAYS);
    struct tape *tape = tape_new();
    uint64_t before;

    (void)tape_follow(tape, rig, 600, 30);
    (void)relay(origin, rig, 5);
    tape->bytes.len = 0;
    tape->begin = journal_position(rig->journal);
    before = held(origin, tape);
    for (int i = 0; i < 200; i++) {
        (void)relay(origin, rig, 2);
        assert_int_equal(0, status_of(rig).queue_bytes);
    }
    assert_true(held(origin, tape) < before + 12288);
    assert_true(released(rig) == UINT64_MAX);
    check_arrived(origin, tape);
    tape_free(tape);
    origin_free(origin);
    rig_free(rig);
}

enum { LIMIT = 50000, GROUP_COST_MAX = 3 * 4 * 21000 };

/* A replica with a file, and a queue of this limit. */
static struct rig *
small_replica(enum journal_sync sync, struct tape *tape,
              enum journal_target how)
{
    struct rig *rig = rig_new(sync);

    journal_set_limit(rig->journal, LIMIT);
    (void)set_target(rig, how, 0, NULL);
    (void)tape_follow(tape, rig, 0, 0);
    return rig;
}

static void
relay_much(struct origin *origin, struct rig *rig, uint64_t bytes)
{
    uint64_t to = journal_position(rig->journal) + bytes;

    while (journal_position(rig->journal) < to) {
        (void)relay(origin, rig, 2);
        assert_true(status_of(rig).queue_bytes < LIMIT + GROUP_COST_MAX);
    }
}

/* Rebases until a base ends the fault; the files are right from there. */
static void
end_fault(struct origin *origin, struct rig *rig)
{
    uint64_t sequence = 0;
    uint64_t mark = set_target(rig, JOURNAL_REBASE, 0, &sequence);
    uint64_t last = relay(origin, rig, 1);

    assert_false(status_of(rig).suspect);
    base_done(rig, mark, sequence);
    until(released(rig) >= last && released(rig) < UINT64_MAX);
    assert_false(status_of(rig).faulted);
    assert_true(flush(rig));
    check_files(&origin->source, 1, mark, sequence);
}

TEST(a_disk_that_hangs_costs_the_file_and_no_more_memory_than_the_limit)
{
    for (int building = 0; building < 2; building++) {
        struct origin *origin = origin_new(0, 0);
        struct tape *tape = tape_new();
        struct rig *rig = small_replica(
            JOURNAL_EVERYSEC, tape, building ? JOURNAL_BUILD : JOURNAL_RESUME);
        uint64_t frozen, before;

        disk_hold(DISK_WRITE, true);
        (void)relay(origin, rig, 1);
        until(disk_is_inside(DISK_WRITE));
        frozen = released(rig);
        relay_much(origin, rig, LIMIT / 2);
        assert_false(status_of(rig).faulted);
        before = held(origin, tape);
        relay_much(origin, rig, 10 * LIMIT);
        assert_true(held(origin, tape) < before); /* the writer hangs, too */
        assert_true(status_of(rig).faulted && status_of(rig).suspect);
        assert_int_equal(ENOBUFS, status_of(rig).error);
        assert_int_equal(1, status_of(rig).suspect_files);
        assert_int_equal(1, rig->events);
        assert_int_equal(frozen, released(rig));
        assert_false(flush(rig));
        disk_hold(DISK_WRITE, false);
        until(status_of(rig).queue_bytes == 0);
        relay_much(origin, rig, LIMIT / 2); /* not queued in vain */
        assert_int_equal(0, status_of(rig).queue_bytes);
        assert_int_equal(building, status_of(rig).building);
        end_fault(origin, rig);
        check_arrived(origin, tape);
        tape_free(tape);
        origin_free(origin);
        rig_free(rig);
    }
}

/* The old file's part is given up first; what is behind the mark may continue.
 */
TEST(a_hang_with_a_rotation_at_hand_first_gives_up_the_old_file_alone)
{
    for (int more = 0; more < 2; more++) {
        struct origin *origin = origin_new(0, 0);
        struct tape *tape = tape_new();
        struct rig *rig = small_replica(JOURNAL_ALWAYS, tape, JOURNAL_RESUME);
        uint64_t sequence = 0;
        uint64_t last = 0;
        uint64_t mark;

        disk_hold(DISK_WRITE, true);
        (void)relay(origin, rig, 1);
        until(disk_is_inside(DISK_WRITE));
        while (status_of(rig).queue_bytes < LIMIT / 2) {
            (void)relay(origin, rig, 1);
        }
        mark = set_target(rig, JOURNAL_ROTATE, 0, &sequence);
        while (!status_of(rig).faulted) {
            last = relay(origin, rig, 1);
        }
        assert_true(status_of(rig).queue_bytes > 0);
        assert_true(status_of(rig).rotating && !status_of(rig).suspect);
        if (more) { /* and now the next one, before it is reached */
            relay_much(origin, rig, 2 * LIMIT);
            assert_true(status_of(rig).rotating && status_of(rig).suspect);
            assert_int_equal(2, status_of(rig).suspect_files);
        }
        assert_int_equal(0, released(rig));
        disk_hold(DISK_WRITE, false);
        until(!status_of(rig).rotating);
        base_done(rig, mark, sequence);
        if (more) {
            assert_true(status_of(rig).faulted && status_of(rig).suspect);
            until(status_of(rig).queue_bytes == 0);
            assert_int_equal(GROUP_FIRST_LINE_BYTES, size_of(disk.files[1].fd));
            end_fault(origin, rig);
        } else {
            until(released(rig) >= last);
            assert_false(status_of(rig).faulted);
            assert_true(flush(rig));
            check_files(&origin->source, 1, mark, sequence);
        }
        check_arrived(origin, tape);
        tape_free(tape);
        origin_free(origin);
        rig_free(rig);
    }
}

/* The base at the mark of a rebase is done before the next file is reached, and
 * ends the fault; then that file is given up. */
TEST(a_file_that_is_given_up_before_it_is_reached_is_a_fault_of_its_own)
{
    struct origin *origin = origin_new(0, 0);
    struct tape *tape = tape_new();
    struct rig *rig = small_replica(JOURNAL_ALWAYS, tape, JOURNAL_RESUME);
    uint64_t sequence = 0;
    uint64_t mark;

    disk_hold(DISK_SYNC, true);
    (void)relay(origin, rig, 1);
    until(disk_is_inside(DISK_SYNC));
    mark = set_target(rig, JOURNAL_REBASE, 0, &sequence);
    base_done(rig, mark, sequence);
    assert_false(status_of(rig).faulted);
    assert_int_equal(mark, released(rig));
    relay_much(origin, rig, 3 * LIMIT);
    assert_true(status_of(rig).faulted && status_of(rig).suspect);
    assert_true(status_of(rig).rotating);
    assert_int_equal(mark, released(rig));
    journal_base_done(rig->journal, mark, sequence); /* not that one */
    assert_true(status_of(rig).faulted);
    disk_hold(DISK_SYNC, false);
    until(!status_of(rig).rotating);
    assert_true(status_of(rig).faulted && status_of(rig).suspect);
    end_fault(origin, rig);
    check_arrived(origin, tape);
    tape_free(tape);
    origin_free(origin);
    rig_free(rig);
}

TEST(it_can_be_turned_off_whatever_was_given_up)
{
    for (int when = 0; when < 4; when++) {
        struct origin *origin = origin_new(0, 0);
        struct tape *tape = tape_new();
        struct rig *rig = small_replica(JOURNAL_ALWAYS, tape, JOURNAL_RESUME);
        uint64_t sequence = 0;
        uint64_t mark;

        disk_hold(DISK_SYNC, true);
        (void)relay(origin, rig, 1);
        until(disk_is_inside(DISK_SYNC));
        if (when >= 2) {
            (void)set_target(rig, JOURNAL_REBASE, 0, NULL);
        }
        relay_much(origin, rig, when == 0 ? 100 : 3 * LIMIT);
        journal_turn_off(rig->journal, when % 2);
        relay_much(origin, rig, LIMIT);
        disk_hold(DISK_SYNC, false);
        until(!status_of(rig).closing);
        assert_false(status_of(rig).faulted || status_of(rig).suspect);
        until(status_of(rig).queue_bytes == 0);
        assert_true(released(rig) == UINT64_MAX);
        mark = set_target(rig, JOURNAL_BUILD, 0, &sequence);
        assert_false(status_of(rig).suspect);
        base_done(rig, mark, sequence);
        mark = relay(origin, rig, 1);
        until(released(rig) >= mark && released(rig) < UINT64_MAX);
        check_arrived(origin, tape);
        tape_free(tape);
        origin_free(origin);
        rig_free(rig);
    }
}

TEST(a_group_that_finds_no_memory_costs_the_file)
{
    struct origin *origin = origin_new(0, 0);
    struct tape *tape = tape_new();
    struct rig *rig = small_replica(JOURNAL_ALWAYS, tape, JOURNAL_RESUME);
    struct group group;
    struct slice bytes;

    (void)relay(origin, rig, 3);
    (void)append(&origin->source);
    (void)journal_close_group(origin->rig->journal);
    bytes = buf_slice(&origin->tape->bytes);
    assert_int_equal(GROUP_OK,
                     group_read(bytes, TAPE_KEY, origin->read, &group));
    assert_non_null(buf_reserve(&tape->bytes, group.end));
    mem_fail_at(1);
    (void)journal_relay(rig->journal, group.commands, 2,
                        bytes.data + group.end - GROUP_SEAL_BYTES);
    assert_true(mem_fail_clear());
    origin->read = group.end;
    assert_true(status_of(rig).faulted && status_of(rig).suspect);
    assert_int_equal(ENOMEM, status_of(rig).error);
    end_fault(origin, rig);
    check_arrived(origin, tape);
    tape_free(tape);
    origin_free(origin);
    rig_free(rig);
}

/* Calls hang and fail at random, while loop 0 works as usual. */
TEST(a_replica_goes_on_whatever_its_disk_does)
{
    for (unsigned round = 0; round < 6 * test_rounds(); round++) {
        struct origin *origin = origin_new(0, 0);
        struct tape *tape = tape_new();
        struct rig *rig =
            small_replica(policies[round % POLICIES], tape, JOURNAL_RESUME);
        uint64_t seed = test_seed() + round;
        uint64_t mark = 0;
        uint64_t sequence = 0;

        for (int i = 0; i < 50; i++) {
            uint64_t random = test_random(&seed);

            disk_hold(DISK_WRITE, random >> 20 & 1);
            disk_hold(DISK_SYNC, random >> 21 & 1);
            if (random >> 22 & 1) {
                disk_fail(random >> 23 & 1 ? DISK_WRITE : DISK_SYNC,
                          1 + (unsigned)(random >> 8) % 4, false);
            }
            turn_something(rig, random, &mark, &sequence);
            relay_much(origin, rig, random >> 32 & 1 ? LIMIT / 4 : LIMIT * 2);
            if (status_of(rig).on && (random >> 24 & 1)) {
                base_done(rig, mark, sequence);
            }
        }
        (void)disk_heal();
        disk_hold(DISK_WRITE, false);
        disk_hold(DISK_SYNC, false);
        until(!status_of(rig).closing);
        if (!status_of(rig).on) {
            (void)set_target(rig, JOURNAL_BUILD, 0, NULL);
        }
        until(journal_has_room(rig->journal));
        end_fault(origin, rig);
        check_arrived(origin, tape);
        tape_free(tape);
        origin_free(origin);
        rig_free(rig);
    }
}
