/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loops' side, without a file: positions, groups, and what journal_drain
 * returns.
 */
#include "journal/journal.h"

#include "drain_help.h"
#include "journal_help.h"

#include <dirent.h>

enum { KEY = 77 };

/* The threads exist, and have no file. */
static struct rig *
rig_without_file(uint64_t position, uint64_t sequence)
{
    struct rig *rig = rig_new(JOURNAL_EVERYSEC);
    struct journal_file file = { -1, 0, 0 };
    uint64_t at = position;
    uint64_t last = sequence;

    journal_set_target(rig->journal, JOURNAL_RESUME, &file, &at, &last);
    assert_int_equal(position, at);
    assert_int_equal(sequence, last);
    return rig;
}

TEST(positions_are_those_of_the_bytes_that_drain_takes)
{
    struct rig *rig = rig_without_file(5000, 41);
    struct source source = source_of(rig, 1);
    uint64_t position = 5000;
    uint64_t sequence = 41;

    assert_int_equal(5000, journal_position(rig->journal));
    for (int round = 0; round < 20; round++) {
        struct buf bytes = { 0 };
        struct expected expected;

        for (int i = 0; i < 300 * (round % 3); i++) {
            uint64_t before = journal_position(rig->journal);

            assert_true(append(&source) > before);
        }
        journal_drain(rig->journal, KEY, &bytes);
        expected = expect(&source, 1, position);
        assert_int_equal(round % 3 == 0, bytes.len == 0);
        position = check_groups(&expected, buf_slice(&bytes), 0, KEY, position,
                                &sequence);
        assert_int_equal(expected.count, expected.next);
        assert_int_equal(position, journal_position(rig->journal));
        assert_int_equal(position, released(rig));
        assert_int_equal(position, journal_synced(rig->journal));
        mem_free(expected.entries);
        buf_free(&bytes);
    }
    finish(&source);
}

static uint64_t
append_item(struct rig *rig, struct stage *stage, size_t len, unsigned times,
            uint32_t db)
{
    char *item = mem_zalloc(len);
    struct slice argv[] = { slice_lit("DEL"), { item, len } };

    assert_true(stage_open(stage, times * stage_effect_bytes(argv, 2)));
    for (unsigned i = 0; i < times; i++) {
        stage_add(stage, db, argv, 2);
    }
    mem_free(item);
    return journal_append(rig->journal, stage_close(stage, true));
}

TEST(a_group_is_a_mebibyte_at_most_or_one_transaction)
{
    struct rig *rig = rig_without_file(0, 0);
    struct stage stage = { 0 };
    struct buf bytes = { 0 };
    struct group group;
    uint64_t offset = 0;
    unsigned groups = 0;

    for (int i = 0; i < 30; i++) {
        (void)append_item(rig, &stage, 100000, 1, 0);
    }
    (void)append_item(rig, &stage, 1000000, 5, 0);
    (void)append_item(rig, &stage, 10, 1, 0);
    journal_drain(rig->journal, KEY, &bytes);
    while (group_read(buf_slice(&bytes), KEY, offset, &group) == GROUP_OK) {
        bool large = group.commands.len > GROUP_BYTES_MAX;

        assert_memory_equal("*2\r\n$6\r\nSELECT\r\n", group.commands.data, 16);
        assert_int_equal(large, group.commands.len > 5000000);
        assert_int_equal(large, group.seal.sequence == 4);
        offset = group.end;
        groups++;
    }
    assert_int_equal(bytes.len, offset);
    assert_int_equal(5, groups);
    buf_free(&bytes);
    stage_fini(&stage);
    rig_free(rig);
}

TEST(select_is_left_out_where_the_group_is_in_that_database)
{
    struct rig *rig = rig_without_file(0, 0);
    struct stage stage = { 0 };
    struct buf bytes = { 0 };
    static const uint32_t dbs[] = { 4, 4, 4, 15, 15, 4 };
    uint64_t at = 0;

    for (size_t i = 0; i < sizeof(dbs) / sizeof(*dbs); i++) {
        size_t bare = 4 + 9 + 7; /* *2 DEL $1 */
        bool changed = i == 0 || dbs[i] != dbs[i - 1];
        size_t select = changed ? (dbs[i] < 10 ? 23 : 24) : 0;

        at += bare + select;
        assert_int_equal(at, append_item(rig, &stage, 1, 1, dbs[i]));
    }
    journal_drain(rig->journal, KEY, &bytes);
    assert_int_equal(at + GROUP_SEAL_BYTES, bytes.len);
    buf_free(&bytes);
    stage_fini(&stage);
    rig_free(rig);
}

TEST(a_mark_is_the_end_of_a_group)
{
    struct rig *rig = rig_without_file(100, 6);
    struct source source = source_of(rig, 1);
    struct buf bytes = { 0 };
    struct group group;
    uint64_t position, sequence, again;

    journal_mark(rig->journal, &position, &sequence);
    assert_int_equal(100, position);
    assert_int_equal(6, sequence);
    position = append(&source);
    journal_mark(rig->journal, &again, &sequence);
    assert_int_equal(position + GROUP_SEAL_BYTES, again);
    assert_int_equal(7, sequence);
    journal_mark(rig->journal, &position, &sequence);
    assert_int_equal(again, position);
    assert_int_equal(7, sequence);
    (void)append(&source);
    journal_drain(rig->journal, KEY, &bytes);
    assert_int_equal(GROUP_OK, group_read(buf_slice(&bytes), KEY, 0, &group));
    assert_int_equal(again - 100, group.end);
    assert_int_equal(7, group.seal.sequence);
    buf_free(&bytes);
    finish(&source);
}

TEST(there_is_room_below_the_limit)
{
    struct rig *rig = rig_without_file(0, 0);
    struct source source = source_of(rig, 1);
    struct buf bytes = { 0 };
    uint64_t moved;

    assert_true(journal_has_room(rig->journal));
    journal_set_limit(rig->journal, 10000);
    while (journal_has_room(rig->journal)) {
        assert_true(status_of(rig).queue_bytes < 10000);
        (void)append(&source);
        assert_int_equal(status_of(rig).queue_bytes,
                         metric_sum(METRIC_JOURNAL_QUEUED));
    }
    assert_true(journal_position(rig->journal) < 40000);
    moved = rig->moved;
    journal_set_limit(rig->journal, 1000000);
    assert_true(journal_has_room(rig->journal));
    assert_int_equal(moved + 1, rig->moved);
    journal_set_limit(rig->journal, 0);
    assert_false(journal_has_room(rig->journal));
    journal_set_limit(rig->journal, 1);
    journal_drain(rig->journal, KEY, &bytes);
    assert_true(journal_has_room(rig->journal));
    assert_int_equal(moved + 2, rig->moved);
    assert_int_equal(0, status_of(rig).queue_bytes);
    assert_int_equal(0, metric_sum(METRIC_JOURNAL_QUEUED));
    buf_free(&bytes);
    finish(&source);
}

/* Threads of this process with that name. */
static unsigned
count_threads(const char *name)
{
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *entry;
    unsigned count = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        char path[300];
        char comm[32] = "";
        FILE *file;

        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
                       entry->d_name);
        file = fopen(path, "r");
        if (file != NULL && fgets(comm, sizeof(comm), file) != NULL) {
            comm[strcspn(comm, "\n")] = '\0';
            count += strcmp(comm, name) == 0;
        }
        if (file != NULL) {
            (void)fclose(file);
        }
    }
    (void)closedir(dir);
    return count;
}

TEST(its_threads_are_there_from_the_start_and_have_names)
{
    struct rig *rig = rig_new(JOURNAL_ALWAYS);

    until(count_threads("journal-writer") == 1);
    until(count_threads("journal-syncer") == 1);
    (void)set_target(rig, JOURNAL_RESUME, 0, NULL);
    assert_int_equal(1, count_threads("journal-writer"));
    assert_int_equal(1, count_threads("journal-syncer"));
    journal_halt(rig->journal);
    until(count_threads("journal-writer") == 0);
    until(count_threads("journal-syncer") == 0);
    rig_free(rig);
}

/* The open group has its place in the log, though no file gets it. */
TEST(what_is_lost_with_the_files_may_be_an_open_group)
{
    struct rig *rig = rig_without_file(100, 6);
    struct source source = source_of(rig, 1);
    uint64_t position = append(&source);
    uint64_t again, sequence;

    journal_lose(rig->journal, ENOENT);
    assert_true(status_of(rig).faulted && status_of(rig).suspect);
    assert_int_equal(ENOENT, status_of(rig).error);
    assert_int_equal(0, status_of(rig).queue_bytes);
    journal_mark(rig->journal, &again, &sequence);
    assert_int_equal(position + GROUP_SEAL_BYTES, again);
    assert_int_equal(7, sequence);
    assert_true(released(rig) < position);
    journal_lose(rig->journal, ENOENT); /* once is enough */
    assert_int_equal(1, status_of(rig).suspect_files);
    (void)append(&source);
    journal_mark(rig->journal, &again, &sequence);
    assert_int_equal(8, sequence);
    finish(&source);
}

TEST(without_a_file_the_threads_leave_the_queue_alone)
{
    struct rig *rig = rig_without_file(0, 0);
    struct source source = source_of(rig, 1);
    struct buf bytes = { 0 };
    uint64_t position = 0;

    for (int i = 0; i < 2000; i++) {
        position = append_and_kick(&source);
    }
    assert_int_equal(position, journal_position(rig->journal));
    assert_true(status_of(rig).queue_bytes > position);
    assert_int_equal(0, status_of(rig).written);
    assert_false(flush(rig));
    journal_drain(rig->journal, KEY, &bytes);
    assert_int_equal(journal_position(rig->journal), bytes.len);
    assert_true(flush(rig));
    assert_int_equal(0, status_of(rig).syncs);
    buf_free(&bytes);
    finish(&source);
}

TEST(everything_is_released_while_it_is_off)
{
    struct rig *rig = rig_new(JOURNAL_ALWAYS);
    struct journal_file file = { -1, 0, 0 };
    struct source source = source_of(rig, 1);
    uint64_t position = 700;
    uint64_t sequence = 3;

    assert_true(released(rig) == UINT64_MAX);
    assert_int_equal(0, journal_synced(rig->journal));
    assert_true(flush(rig));
    assert_false(status_of(rig).on);
    journal_set_target(rig->journal, JOURNAL_RESUME, &file, &position,
                       &sequence);
    assert_int_equal(700, released(rig));
    assert_int_equal(700, journal_synced(rig->journal));
    assert_true(append(&source) > 700);
    assert_int_equal(700, released(rig));
    assert_false(flush(rig));
    journal_kick(rig->journal);
    journal_turn_off(rig->journal, false);
    assert_true(released(rig) == UINT64_MAX);
    assert_int_equal(0, journal_synced(rig->journal));
    assert_false(status_of(rig).on || status_of(rig).closing);
    assert_true(flush(rig)); /* nothing is left to sync */
    assert_int_equal(0, status_of(rig).queue_bytes);
    position = 50;
    journal_set_target(rig->journal, JOURNAL_RESUME, &file, &position,
                       &sequence);
    assert_int_equal(50, position);
    assert_int_equal(50, released(rig));
    finish(&source);
}

enum { THREADS = 4, PIECES = 5000 };

static void *
append_many(void *arg)
{
    struct source *source = arg;
    uint64_t before = 0;

    for (int i = 0; i < PIECES; i++) {
        uint64_t position = append(source);

        assert_true(position > before);
        assert_true(journal_position(source->rig->journal) >= position);
        before = position;
    }
    metric_thread_exit();
    return NULL;
}

TEST(threads_append_in_one_order)
{
    struct rig *rig = rig_without_file(0, 0);
    struct source sources[THREADS];
    pthread_t threads[THREADS];
    struct buf bytes = { 0 };
    struct expected expected;
    uint64_t sequence = 0;

    for (uint32_t i = 0; i < THREADS; i++) {
        sources[i] = source_of(rig, i);
        assert_int_equal(
            0, pthread_create(&threads[i], NULL, append_many, &sources[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(0, pthread_join(threads[i], NULL));
    }
    journal_drain(rig->journal, KEY, &bytes);
    expected = expect(sources, THREADS, 0);
    assert_int_equal(THREADS * PIECES, expected.count);
    (void)check_groups(&expected, buf_slice(&bytes), 0, KEY, 0, &sequence);
    assert_int_equal(expected.count, expected.next);
    assert_int_equal(sequence, status_of(rig).sequence);
    mem_free(expected.entries);
    buf_free(&bytes);
    for (int i = 0; i < THREADS; i++) {
        source_fini(&sources[i]);
    }
    rig_free(rig);
}

TEST(what_is_queued_at_the_end_is_freed)
{
    uint64_t before = mem_used();
    struct rig *rig = rig_without_file(0, 0);
    struct source source = source_of(rig, 1);

    for (int i = 0; i < 1000; i++) {
        (void)append(&source);
    }
    assert_true(metric_sum(METRIC_JOURNAL_QUEUED) > 0);
    source_fini(&source);
    journal_halt(rig->journal);
    rig_free(rig);
    journal_free(NULL);
    assert_int_equal(0, metric_sum(METRIC_JOURNAL_QUEUED));
    assert_int_equal(before, mem_used());
}
