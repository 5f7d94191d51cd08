/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which state a start loads, when it refuses and with which message, on real
 * directories. test_verify.c shows that the rule about damage holds at every
 * offset; here it is sampled.
 */
#include "persist/recover.h"

#include "../test.h"
#include "journal/group.h"
#include "recover_help.h"
#include "snapshot/snapshot_format.h"

#include <sys/stat.h>

#define GOLDEN_DIR "tests/data/golden-v1/journal"

/* ---- one state ----------------------------------------------------------- */

TEST(nothing_is_loaded_where_nothing_is)
{
    struct place place;

    place_open(&place);
    assert_true(recover(&place)); /* an empty journal directory */
    assert_false(place.result.from_journal || place.result.from_snapshot ||
                 place.result.has_manifest || place.result.journal_stale);
    assert_int_equal(place.result.position, 0);
    assert_int_equal(place.result.keys, 0);
    assert_int_equal(place.total_bytes, 0);
    assert_false(place.result.journal_unfinished);
    assert_int_equal(manifest_mark(place.journal_fd), 0); /* no manifest yet */
    put_image(place.journal_fd, "base-1", NULL, 5, 5);
    assert_true(recover(&place));
    assert_false(place.result.from_journal || place.result.from_snapshot);
    assert_true(place.result.journal_unfinished);

    file_close(place.journal_fd); /* and none at all */
    place.journal_fd = -1;
    assert_true(recover(&place));
    assert_false(place.result.from_journal || place.result.from_snapshot);
    assert_int_equal(file_open_dir(place.journal_dir, false, &place.journal_fd),
                     0);
    place_close(&place);
}

TEST(a_journal_that_lost_its_manifest_is_refused)
{
    static const char *const names[] = { "base-1", "incr-12" };

    for (size_t i = 0; i < 2; i++) {
        struct keyspace *ks = mixed_keyspace();
        struct place place;

        place_open(&place);
        put_image(place.dir_fd, SNAPSHOT_NAME, ks, 12345, 67);
        put_image(place.journal_fd, names[i], NULL, 5, 5);
        assert_false(recover(&place));
        assert_non_null(
            strstr(place.reason, "/manifest: damaged: it is missing, and"));
        assert_non_null(strstr(place.reason, names[i]));
        (void)unlinkat(place.journal_fd, names[i], 0);
        put_image(place.journal_fd, "base-1.old", NULL, 5, 5); /* not ours */
        assert_true(recover(&place));
        assert_true(place.result.from_snapshot);
        keyspace_free(ks);
        place_close(&place);
    }
}

TEST(a_snapshot_alone_is_loaded)
{
    struct place place;
    struct keyspace *ks = mixed_keyspace();

    place_open(&place);
    put_image(place.dir_fd, SNAPSHOT_NAME, ks, 12345, 67);
    assert_true(recover(&place));
    assert_true(place.result.from_snapshot);
    assert_false(place.result.from_journal || place.result.has_manifest);
    assert_int_equal(place.result.position, 12345);
    assert_int_equal(place.result.sequence, 67);
    assert_int_equal(place.result.snapshot.position, 12345);
    assert_int_equal(place.result.snapshot.created_ms, test_stamp().created_ms);
    assert_int_equal(place.result.keys, MIXED);
    assert_int_equal(place.progress.keys, MIXED);
    assert_int_equal(place.progress.bytes, place.total_bytes);
    assert_same_keyspaces(ks, place.ks);
    keyspace_free(ks);
    place_close(&place);
}

TEST(a_journal_alone_is_loaded_and_all_its_increments_are_closed)
{
    struct place place;
    struct keyspace *ks = mixed_keyspace();

    place_open(&place);
    put_journal(&place);
    put_image(place.journal_fd, "base-1", ks, 1000, 100);
    assert_from_journal(&place, 12);
    assert_int_equal(place.result.position, 1000 + log_bytes(&place));
    assert_int_equal(place.result.manifest.generation, 7);
    assert_int_equal(place.result.manifest.count, INCREMENTS);
    for (uint32_t i = 0; i < INCREMENTS; i++) {
        assert_int_equal(place.result.manifest.increments[i].bytes,
                         place.logs[i].len);
    }
    assert_string_equal(place.result.cut, "");
    assert_int_equal(place.result.keys, MIXED);
    assert_same_keyspaces(ks, place.ks);

    /* A journal without increments is its base. */
    place.manifest.count = 0;
    put_manifest(&place);
    assert_from_journal(&place, 0);
    keyspace_free(ks);
    place_close(&place);
}

TEST(what_recovery_leaves_is_recovered_again)
{
    struct place place;
    struct buf log = { 0 };

    place_open(&place);
    put_journal(&place);
    place.logs[2].len -= 10; /* torn */
    put_increments(&place);
    assert_from_journal(&place, 11);
    assert_string_not_equal(place.result.cut, "");

    place.manifest = place.result.manifest;
    place.manifest.generation++;
    place.manifest.increments[INCREMENTS] =
        (struct manifest_increment){ .number = 5 };
    place.manifest.count++;
    log_first_line(&log, 42);
    log_group(&log, 42, 112, 111, 3);
    put_file(place.journal_fd, "incr-5", buf_slice(&log));
    put_manifest(&place);
    assert_from_journal(&place, 12);
    assert_string_equal(place.result.cut, "");
    buf_free(&log);
    place_close(&place);
}

/* ---- whose it is --------------------------------------------------------- */

TEST(the_history_is_that_of_what_is_loaded)
{
    static const char one[] = "1111111111111111111111111111111111111111";
    static const char two[] = "2222222222222222222222222222222222222222";
    struct place place;

    place_open(&place);
    put_image_of(place.dir_fd, SNAPSHOT_NAME, one);
    assert_true(recover(&place));
    assert_string_equal(place.history.id, one);
    assert_string_equal(place.history.past[0].id, "");
    put_journal(&place); /* further on */
    put_image_of(place.journal_fd, "base-1", two);
    assert_true(recover(&place));
    assert_true(place.result.from_journal);
    assert_string_equal(place.history.id, two);
    assert_false(place.result.without_id);
    place_close(&place);
}

/* Of files that older servers, or bloomery-check, have made: two of them must
 * not seem to have one. */
TEST(a_history_without_an_id_is_a_new_one)
{
    static const char *const ids[] = {
        "a-name", "0000000000000000000000000000000000000000",
        "ABCDEFABCDEFABCDEFABCDEFABCDEFABCDEFABCD"
    };
    struct history before = { 0 };
    struct place place;

    place_open(&place);
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        put_image_of(place.dir_fd, SNAPSHOT_NAME, ids[i]);
        assert_true(recover(&place));
        assert_true(place.result.from_snapshot);
        assert_true(history_is_id(slice_of(place.history.id)));
        assert_string_not_equal(place.history.id, ids[i]);
        assert_string_not_equal(place.history.id, before.id);
        assert_true(place.result.without_id);
        before = place.history;
    }
    /* A later record in the journal does not make it a known history. */
    put_journal(&place);
    put_image_of(place.journal_fd, "base-1", ids[1]);
    place.note = before.id;
    assert_true(recover(&place));
    assert_true(place.result.from_journal && place.result.without_id);
    assert_string_not_equal(place.history.id, before.id);
    assert_string_equal(place.history.past[0].id, "");
    put_image_of(place.journal_fd, "base-1", before.id);
    place.note = ids[2];
    assert_true(recover(&place));
    assert_false(place.result.without_id);
    assert_string_equal(place.history.id, ids[2]);
    assert_string_equal(place.history.past[0].id, before.id);
    assert_int_equal(place.history.past[0].until, place.positions[0]);
    place_close(&place);
}

TEST(every_group_is_told_where_it_begins)
{
    struct place place;
    uint64_t position = 1000;

    place_open(&place);
    put_journal(&place);
    assert_from_journal(&place, 12);
    for (uint32_t i = 0; i < INCREMENTS; i++) {
        for (uint32_t n = 0; n < PER_INCREMENT; n++) {
            uint64_t begin = place.begins[i * PER_INCREMENT + n];
            uint64_t end = n + 1 < PER_INCREMENT
                               ? place.begins[i * PER_INCREMENT + n + 1]
                               : place.logs[i].len;

            assert_int_equal(place.positions[i * PER_INCREMENT + n], position);
            position += end - begin;
        }
    }
    assert_int_equal(place.result.position, position);
    place_close(&place);
}

/* ---- two states ---------------------------------------------------------- */

TEST(the_state_that_stands_further_in_the_log_is_loaded)
{
    struct place place;
    struct keyspace *ks = mixed_keyspace();
    uint64_t end;

    place_open(&place);
    put_journal(&place);
    end = 1000 + log_bytes(&place);

    put_image(place.dir_fd, SNAPSHOT_NAME, ks, end - 1, 111);
    assert_from_journal(&place, 12);
    assert_int_equal(place.result.keys, 0);
    assert_int_equal(place.result.snapshot.position, end - 1);
    put_image(place.dir_fd, SNAPSHOT_NAME, ks, end, 112);
    assert_from_journal(&place, 12);

    put_image(place.dir_fd, SNAPSHOT_NAME, ks, end + 1, 112);
    assert_true(recover(&place));
    assert_true(place.result.from_snapshot && place.result.journal_stale);
    assert_false(place.result.from_journal || place.result.has_manifest);
    assert_int_equal(place.result.keys, MIXED);
    assert_int_equal(place.result.position, end + 1);
    assert_int_equal(place.groups, 0);
    assert_int_equal(place.progress.bytes, place.total_bytes);
    keyspace_free(ks);
    place_close(&place);
}

TEST(a_cut_journal_may_stand_behind_the_snapshot)
{
    struct place place;
    struct keyspace *ks = mixed_keyspace();

    place_open(&place);
    put_journal(&place);
    put_image(place.dir_fd, SNAPSHOT_NAME, ks, 1000 + log_bytes(&place) - 1,
              111);
    place.logs[2].len--;
    put_increments(&place);
    assert_true(recover(&place));
    assert_true(place.result.from_snapshot && place.result.journal_stale);
    assert_string_equal(place.result.cut, "");
    keyspace_free(ks);
    place_close(&place);
}

TEST(a_snapshot_behind_the_journal_is_not_read_beyond_its_header)
{
    struct place place;
    struct keyspace *ks = mixed_keyspace();

    place_open(&place);
    put_journal(&place);
    put_image(place.dir_fd, SNAPSHOT_NAME, ks, 1000, 100);
    damage(place.dir_fd, SNAPSHOT_NAME, HEADER_BYTES + 100);
    assert_from_journal(&place, 12);

    put_image(place.dir_fd, SNAPSHOT_NAME, ks, 1000000, 100);
    damage(place.dir_fd, SNAPSHOT_NAME, HEADER_BYTES + 100);
    assert_refused(&place, "/" SNAPSHOT_NAME ": damaged at offset ",
                   "Run bloomery-check verify");

    put_image(place.dir_fd, SNAPSHOT_NAME, ks, 1000, 100);
    damage(place.dir_fd, SNAPSHOT_NAME, HEADER_AT_POSITION);
    assert_refused(&place, "/" SNAPSHOT_NAME ": damaged at offset ",
                   "bloomery-check salvage");
    put_file(place.dir_fd, SNAPSHOT_NAME, slice_lit(""));
    assert_refused(&place, "/" SNAPSHOT_NAME ": damaged", "offset 0");
    keyspace_free(ks);
    place_close(&place);
}

/* ---- refusals ------------------------------------------------------------ */

TEST(a_journal_with_a_missing_file_is_refused_although_there_is_a_snapshot)
{
    struct place place;

    place_open(&place);
    put_journal(&place);
    put_image(place.dir_fd, SNAPSHOT_NAME, NULL, 1000000, 0);
    assert_int_equal(file_unlink(place.journal_fd, "incr-3"), 0);
    assert_refused(&place, "/journal/incr-3: missing", "bloomery-check verify");
    put_increments(&place);
    assert_int_equal(file_unlink(place.journal_fd, "base-1"), 0);
    assert_refused(&place, "/journal/base-1: missing", "away");
    place_close(&place);
}

TEST(a_damaged_manifest_is_refused_although_there_is_a_snapshot)
{
    struct place place;

    place_open(&place);
    put_journal(&place);
    put_image(place.dir_fd, SNAPSHOT_NAME, NULL, 1000000, 0);
    damage(place.journal_fd, MANIFEST_NAME, 30);
    assert_refused(&place, "/journal/manifest: damaged: the line at offset",
                   "or move that directory away");
    place_close(&place);
}

TEST(a_base_that_is_damaged_or_of_another_place_is_refused)
{
    struct place place;
    struct keyspace *ks = mixed_keyspace();

    place_open(&place);
    put_journal(&place);
    put_image(place.journal_fd, "base-1", ks, 1001, 100);
    assert_refused(&place, "/journal/base-1: it stands at position 1001",
                   "the manifest says 1000, 100");
    put_image(place.journal_fd, "base-1", ks, 1000, 99);
    assert_refused(&place, "base-1", "sequence 99");
    put_image(place.journal_fd, "base-1", ks, 1000, 100);
    damage(place.journal_fd, "base-1", 200);
    assert_refused(&place, "/journal/base-1: damaged at offset ", "record 0");
    keyspace_free(ks);
    place_close(&place);
}

/* The header's version, with its hash made right again. */
static void
make_newer(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDWR);
    uint8_t header[HEADER_BYTES];
    uint64_t hash;

    assert_int_equal(pread(fd, header, sizeof(header), 0), sizeof(header));
    header[HEADER_AT_VERSION] = SNAPSHOT_VERSION + 1;
    hash = htole64(XXH3_64bits(header, HEADER_AT_HASH));
    memcpy(header + HEADER_AT_HASH, &hash, sizeof(hash));
    assert_int_equal(pwrite(fd, header, sizeof(header), 0), sizeof(header));
    close(fd);
}

/* The start reports it at once, instead of at the first write. */
TEST(a_fifo_in_the_place_of_a_file_is_refused_by_its_name)
{
    static const char *const names[] = { MANIFEST_NAME, "base-1", "incr-3" };

    for (size_t i = 0; i <= sizeof(names) / sizeof(*names); i++) {
        bool snapshot = i == sizeof(names) / sizeof(*names);
        const char *name = snapshot ? SNAPSHOT_NAME : names[i];
        struct place place;
        int dir_fd;

        place_open(&place);
        put_journal(&place);
        dir_fd = snapshot ? place.dir_fd : place.journal_fd;
        (void)unlinkat(dir_fd, name, 0);
        assert_int_equal(mkfifoat(dir_fd, name, 0600), 0);
        assert_refused(&place, name, "Wrong medium type");
        place_close(&place);
    }
}

/* Intact by their checksums, and yet no server got there. */
TEST(stamps_beyond_those_of_any_log_are_refused)
{
    static const struct {
        uint64_t position, sequence;
    } stamps[] = { { UINT64_C(1) << 63, 100 },    { UINT64_MAX, 100 },
                   { GROUP_POSITION_LIMIT, 100 }, { 1000, GROUP_NUMBER_LIMIT },
                   { 1000, 9999999999999999U },   { 1000, UINT64_MAX } };

    for (size_t i = 0; i < sizeof(stamps) / sizeof(*stamps); i++) {
        struct place place;

        place_open(&place);
        put_image(place.dir_fd, SNAPSHOT_NAME, NULL, stamps[i].position,
                  stamps[i].sequence);
        assert_refused(&place, SNAPSHOT_NAME, "higher than a log can reach");
        put_image(place.dir_fd, SNAPSHOT_NAME, NULL, GROUP_POSITION_LIMIT - 1,
                  GROUP_NUMBER_LIMIT - 1);
        assert_true(recover(&place));
        place_close(&place);
    }
}

TEST(newer_versions_are_refused_by_name)
{
    struct place place;
    char text[512];
    int len;
    char hash[17];

    place_open(&place);
    put_journal(&place);
    put_image(place.dir_fd, SNAPSHOT_NAME, NULL, 0, 0);
    make_newer(place.dir_fd, SNAPSHOT_NAME);
    assert_refused(&place, "/" SNAPSHOT_NAME, "A newer server wrote it");
    assert_int_equal(file_unlink(place.dir_fd, SNAPSHOT_NAME), 0);

    make_newer(place.journal_fd, "base-1");
    assert_refused(&place, "/journal/base-1", "A newer server wrote it");
    put_image(place.journal_fd, "base-1", NULL, 1000, 100);

    place.logs[1].data[18] = '2';
    (void)snprintf(hash, sizeof(hash), "%016" PRIx64,
                   (uint64_t)XXH3_64bits(place.logs[1].data, 110));
    memcpy(place.logs[1].data + 110, hash, 16);
    put_increments(&place);
    assert_refused(&place, "/journal/incr-3", "a newer server wrote it");

    len = snprintf(text, sizeof(text), "bloomery-journal 2\nwhat\n");
    len += snprintf(text + len, sizeof(text) - (size_t)len,
                    "checksum %016" PRIx64 "\n",
                    (uint64_t)XXH3_64bits(text, (size_t)len));
    put_file(place.journal_fd, MANIFEST_NAME,
             (struct slice){ text, (size_t)len });
    assert_refused(&place, "/journal/manifest: it is of version 2",
                   "A newer server wrote it");
    place_close(&place);
}

TEST(damage_that_was_synced_is_refused_with_all_that_one_wants_to_know)
{
    struct place place;
    char what[128];

    place_open(&place);
    put_journal(&place);
    damage(place.journal_fd, "incr-3", place.begins[6] + 3);
    (void)snprintf(what, sizeof(what),
                   "damaged at offset %" PRIu64 ", where group 107 should begin"
                   ", and a later seal says that it was synced. 5 groups (",
                   place.begins[6]);
    assert_refused(&place, "/journal/incr-3: ", what);
    assert_non_null(strstr(place.reason, "bloomery-check salvage"));
    assert_int_equal(place.groups, 0); /* nothing was loaded */
    put_increments(&place);

    damage(place.journal_fd, "incr-2", place.begins[3]); /* a closed one */
    assert_refused(&place, "/journal/incr-2: damaged", "the manifest says");
    put_increments(&place);

    damage(place.journal_fd, "incr-4", 7);
    assert_refused(&place, "/journal/incr-4: its first line, offset 0",
                   "bloomery-check verify");
    place.logs[2].len = 0;
    put_increments(&place);
    assert_refused(&place, "/journal/incr-4: its first line", "damaged");
    place_close(&place);
}

TEST(a_closed_increment_may_be_followed_by_rubbish_but_not_be_short)
{
    struct place place;

    place_open(&place);
    put_journal(&place);
    buf_append_slice(&place.logs[0], slice_lit("*2\r\n$6\r\nSELECT\r\n$1\r\n"));
    put_increments(&place);
    assert_from_journal(&place, 12);
    place.logs[0].len = place.begins[3];
    put_increments(&place);
    assert_refused(&place, "/journal/incr-2: ends at offset", "group 104");
    place_close(&place);
}

TEST(a_group_that_cannot_be_executed_is_named)
{
    struct place place;
    char what[128];

    place_open(&place);
    put_journal(&place);
    place.fail_at = 7;
    (void)snprintf(what, sizeof(what),
                   "group 107 at offset %" PRIu64
                   " cannot be executed: this one is made to fail",
                   place.begins[6]);
    assert_refused(&place, "/journal/incr-3: ", what);
    place_close(&place);
}

TEST(keys_that_cannot_be_there_are_refused)
{
    struct place place;
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;

    place_open(&place);
    (void)test_put(ks, test_key_set(&key, 0, 1));
    (void)test_put(ks, test_key_set(&key, 0, 1));
    put_image(place.dir_fd, SNAPSHOT_NAME, ks, 0, 0);
    assert_refused(&place, SNAPSHOT_NAME,
                   "the number of its keys is 1, but its end says 2");
    keyspace_free(ks);

    ks = keyspace_new(
        &(struct keyspace_options){ .threads = 1, .databases = 32 });
    (void)test_put(ks, test_key_set(&key, 16, 1));
    put_image(place.dir_fd, SNAPSHOT_NAME, ks, 0, 0);
    assert_refused(&place, SNAPSHOT_NAME, "databases");
    keyspace_free(ks);
    place_close(&place);
}

/* ---- cuts ---------------------------------------------------------------- */

TEST(a_torn_end_is_cut_and_named)
{
    struct place place;
    char what[160];

    place_open(&place);
    put_journal(&place);
    place.logs[2].len = place.begins[10] + 50;
    put_increments(&place);
    assert_from_journal(&place, 10);
    (void)snprintf(what, sizeof(what),
                   "%s/incr-4: damaged at offset %" PRIu64
                   ", where group 111 should begin; 50 bytes, 0 groups",
                   place.journal_dir, place.begins[10]);
    assert_int_equal(strncmp(place.result.cut, what, strlen(what)), 0);
    assert_int_equal(place.result.manifest.increments[2].bytes,
                     place.begins[10]);
    place_close(&place);
}

TEST(a_cut_in_the_last_but_one_drops_what_follows)
{
    struct place place;

    place_open(&place);
    put_journal(&place);
    place.logs[1].data[place.begins[7] + 5] ^= 1; /* group 108 */
    place.logs[2].len = 0;
    log_first_line(&place.logs[2], LOG_KEY + 2);
    log_group(&place.logs[2], LOG_KEY + 2, 109, 107, 1);
    put_increments(&place);
    assert_from_journal(&place, 7);
    assert_int_equal(place.result.manifest.count, 3);
    assert_int_equal(place.result.manifest.increments[1].bytes,
                     place.begins[7]);
    assert_int_equal(place.result.manifest.increments[2].bytes, 128);
    assert_non_null(strstr(place.result.cut, "1 groups"));

    /* The empty first group of a file: a gap, and all of it is cut. */
    put_journal(&place);
    place.logs[2].len = 0;
    log_first_line(&place.logs[2], LOG_KEY + 2);
    log_group(&place.logs[2], LOG_KEY + 2, 110, 108, 1);
    put_increments(&place);
    assert_from_journal(&place, 8);
    assert_non_null(strstr(place.result.cut, "incr-4: group 110 at offset 128, "
                                             "where group 109 should begin"));
    place_close(&place);
}

/* The whole way over real files, at a sample of the offsets. */
TEST(tails_torn_at_random_are_cut_or_refused)
{
    uint64_t random = test_seed() + 1;
    struct place place;
    struct buf whole = { 0 };

    place_open(&place);
    put_journal(&place);
    buf_append_slice(&whole, buf_slice(&place.logs[2]));
    for (unsigned i = 0; i < 400 * test_rounds(); i++) {
        struct buf *log = &place.logs[2];
        uint64_t at = 128 + test_random_below(&random, whole.len - 128);
        unsigned how = (unsigned)test_random_below(&random, 4);
        uint64_t n = 8;

        while (n + 1 < 12 && place.begins[n + 1] <= at) {
            n++;
        }
        log->len = 0;
        buf_append_slice(log, buf_slice(&whole));
        if (how == 0) {
            log->len = (size_t)at;
        } else if (how == 1) {
            memset(log->data + at, 0, log->len - at);
        } else if (how == 2) {
            memset(log->data + at, (int)test_random_below(&random, 256),
                   log->len - at);
            log->data[at] = (char)(whole.data[at] ^ 1);
        } else {
            log->data[at] ^= (char)(1 << test_random_below(&random, 8));
        }
        put_increments(&place);
        if (how == 3 && 101 + n <= 110) { /* the last seal names 110 */
            char what[64];

            (void)snprintf(what, sizeof(what), "offset %" PRIu64 ",",
                           place.begins[n]);
            assert_refused(&place, "incr-4", what);
        } else {
            assert_from_journal(&place, n);
        }
    }
    buf_free(&whole);
    place_close(&place);
}

/* ---- faults -------------------------------------------------------------- */

TEST(every_refused_allocation_refuses_the_start)
{
    struct place place;
    struct keyspace *ks = mixed_keyspace();
    bool fired = true;
    unsigned nth;

    place_open(&place);
    put_journal(&place);
    put_image(place.journal_fd, "base-1", ks, 1000, 100);
    for (nth = 1; fired; nth++) {
        bool done;

        place.refuse_nth = nth;
        done = recover(&place);
        fired = mem_fail_clear();
        assert_int_equal(done, !fired);
        assert_int_equal(fired, place.reason[0] != '\0');
    }
    assert_in_range(nth, 20, 100000);
    assert_same_keyspaces(ks, place.ks);
    keyspace_free(ks);
    place_close(&place);
}

TEST(every_failed_open_or_read_refuses_the_start)
{
    static const enum file_call calls[] = { FILE_CALL_OPEN, FILE_CALL_READ };
    struct place place;
    struct keyspace *ks = mixed_keyspace();

    place_open(&place);
    put_journal(&place);
    put_image(place.dir_fd, SNAPSHOT_NAME, NULL, 900, 90);
    put_image(place.journal_fd, "base-1", ks, 1000, 100);
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        bool fired = true;
        unsigned nth;

        for (nth = 1; fired; nth++) {
            bool done;

            file_fail_at(calls[i], nth, EIO, false);
            done = recover(&place);
            fired = file_fail_clear();
            assert_int_equal(done, !fired);
            if (fired && strstr(place.reason, strerror(EIO)) == NULL) {
                fail_msg("call %u: %s", nth, place.reason);
            }
        }
        assert_in_range(nth, 6, 100000);
    }
    keyspace_free(ks);
    place_close(&place);
}

/* ---- golden files -------------------------------------------------------- */

/* Written by version 1; they must load for ever. The base is mixed_keyspace(),
 * at position 1000 and sequence 100; incr-2 was closed with rubbish behind it,
 * incr-3 is torn in its last group. */
TEST(the_golden_journal_of_version_1_loads)
{
    struct place place;
    struct keyspace *ks = mixed_keyspace();
    int own;

    place_open(&place);
    own = place.journal_fd;
    assert_int_equal(file_open_dir(GOLDEN_DIR, false, &place.journal_fd), 0);
    assert_from_journal(&place, 7);
    assert_int_equal(place.last_sequence, 107);
    assert_int_equal(place.result.manifest.generation, 7);
    assert_string_not_equal(place.result.cut, "");
    assert_same_keyspaces(ks, place.ks);
    file_close(place.journal_fd);
    place.journal_fd = own;
    keyspace_free(ks);
    place_close(&place);
}
