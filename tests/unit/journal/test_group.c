/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First lines and groups: what is written reads back, every changed byte is
 * noticed, and nothing in an item passes for a seal.
 */
#include "journal/group.h"

#include "../test.h"
#include "log_help.h"

#include <time.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { SEAL_HASHED = 70, SEAL_TAG_END = 86 };

static double
seconds(void)
{
    struct timespec at;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void
assert_reads(struct slice log, uint64_t offset, uint64_t sequence,
             struct group *ret_group)
{
    assert_int_equal(group_read(log, LOG_KEY, offset, ret_group), GROUP_OK);
    assert_int_equal(ret_group->begin, offset);
    assert_int_equal(ret_group->seal.sequence, sequence);
    assert_ptr_equal(ret_group->commands.data, log.data + offset);
    assert_int_equal(ret_group->commands.len, ret_group->seal.bytes);
    assert_int_equal(ret_group->end,
                     offset + ret_group->seal.bytes + GROUP_SEAL_BYTES);
}

/* ---- the first line ------------------------------------------------------ */

TEST(a_first_line_is_what_the_drawing_says)
{
    struct buf log = { 0 };
    struct group_file file;

    log_first_line(&log, LOG_KEY);
    assert_int_equal(log.len, 128);
    assert_memory_equal(log.data,
                        "#BLOOMERY JOURNAL 1 " LOG_RUN_ID
                        " 1122334455667788 01790000000000                  ",
                        110);
    assert_memory_equal(log.data + 126, "\r\n", 2);
    assert_int_equal(group_read_first_line(buf_slice(&log), &file), GROUP_OK);
    assert_int_equal(file.key, LOG_KEY);
    assert_int_equal(file.created_ms, LOG_MS);
    assert_string_equal(file.run_id, LOG_RUN_ID);
    buf_free(&log);
}

TEST(a_first_line_with_any_changed_bit_or_missing_byte_is_damaged)
{
    struct buf log = { 0 };
    struct group_file file;

    log_first_line(&log, LOG_KEY);
    for (size_t i = 0; i < log.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            log.data[i] = (char)(log.data[i] ^ (1 << bit));
            assert_int_equal(group_read_first_line(buf_slice(&log), &file),
                             GROUP_DAMAGED);
            log.data[i] = (char)(log.data[i] ^ (1 << bit));
        }
        assert_int_equal(
            group_read_first_line((struct slice){ log.data, i }, &file),
            i == 0 ? GROUP_END : GROUP_DAMAGED);
    }
    buf_free(&log);
}

/* With its hash made right again. */
static enum group_status
read_changed_line(size_t at, const char *text)
{
    struct buf log = { 0 };
    struct group_file file;
    enum group_status status;
    char hash[17];

    log_first_line(&log, LOG_KEY);
    memcpy(log.data + at, text, strlen(text));
    (void)snprintf(hash, sizeof(hash), "%016" PRIx64,
                   (uint64_t)XXH3_64bits(log.data, 110));
    memcpy(log.data + 110, hash, 16);
    status = group_read_first_line(buf_slice(&log), &file);
    buf_free(&log);
    return status;
}

TEST(an_intact_first_line_of_a_later_version_is_newer)
{
    assert_int_equal(read_changed_line(18, "1 "), GROUP_OK);
    assert_int_equal(read_changed_line(18, "2 "), GROUP_NEWER);
    assert_int_equal(read_changed_line(18, "2 anything else"), GROUP_NEWER);
    assert_int_equal(read_changed_line(18, "999999999 "), GROUP_NEWER);
    assert_int_equal(read_changed_line(18, "9999999999 "), GROUP_DAMAGED);
    assert_int_equal(read_changed_line(18, "0 "), GROUP_DAMAGED);
    assert_int_equal(read_changed_line(18, "02 "), GROUP_DAMAGED);
    assert_int_equal(read_changed_line(18, " 2 "), GROUP_DAMAGED);
}

TEST(a_first_line_with_a_wrong_field_is_damaged_whatever_its_hash)
{
    assert_int_equal(read_changed_line(20, "g"), GROUP_DAMAGED);
    assert_int_equal(read_changed_line(20, "A"), GROUP_DAMAGED);
    assert_int_equal(read_changed_line(60, "0"), GROUP_DAMAGED);
    assert_int_equal(read_changed_line(61, "F"), GROUP_DAMAGED);
    assert_int_equal(read_changed_line(77, "0"), GROUP_DAMAGED);
    assert_int_equal(read_changed_line(78, " "), GROUP_DAMAGED);
    assert_int_equal(read_changed_line(92, "0"), GROUP_DAMAGED);
    assert_int_equal(read_changed_line(109, "0"), GROUP_DAMAGED);
}

/* ---- groups -------------------------------------------------------------- */

TEST(a_seal_is_what_the_drawing_says)
{
    struct buf log = { 0 };
    char want[128];
    const char *seal;

    log_group(&log, LOG_KEY, 57, 42, 1);
    (void)snprintf(want, sizeof(want),
                   "#XX:0000000000000057:01790000000057:%016zu:"
                   "0000000000000042:",
                   log.len - GROUP_SEAL_BYTES);
    seal = log.data + log.len - GROUP_SEAL_BYTES;
    assert_int_equal(strlen(want), SEAL_HASHED);
    assert_memory_equal(seal, want, SEAL_HASHED);
    (void)snprintf(want, sizeof(want), "%016" PRIx64 "%016" PRIx64 "\r\n",
                   (uint64_t)XXH3_64bits_withSeed(seal, 70, LOG_KEY),
                   (uint64_t)XXH3_64bits_withSeed(
                       log.data, log.len - GROUP_SEAL_BYTES + 70, LOG_KEY));
    assert_memory_equal(seal + SEAL_HASHED, want, 34);
    buf_free(&log);
}

TEST(groups_read_back_one_after_the_other)
{
    struct buf log = { 0 };
    struct group group = { 0 };
    uint64_t offset = GROUP_FIRST_LINE_BYTES;

    log_first_line(&log, LOG_KEY);
    for (uint64_t i = 1; i <= 50; i++) {
        log_group(&log, LOG_KEY, i, i / 2, (unsigned)(i * i));
    }
    for (uint64_t i = 1; i <= 50; i++) {
        assert_reads(buf_slice(&log), offset, i, &group);
        assert_int_equal(group.seal.unix_ms, LOG_MS + i);
        assert_int_equal(group.seal.durable_sequence, i / 2);
        offset = group.end;
    }
    assert_int_equal(offset, log.len);
    assert_int_equal(group_read(buf_slice(&log), LOG_KEY, offset, &group),
                     GROUP_END);
    assert_int_equal(group_read(buf_slice(&log), LOG_KEY, offset + 1, &group),
                     GROUP_DAMAGED);
    buf_free(&log);
}

TEST(a_hash_may_be_fed_in_pieces)
{
    struct buf log = { 0 };
    struct group_hash *hash = group_hash_new();
    struct group_seal seal = { .sequence = 1, .bytes = 0 };
    char text[GROUP_SEAL_BYTES];
    size_t bytes;

    for (int round = 0; round < 2; round++) { /* it can be used again */
        buf_reset(&log, SIZE_MAX);
        log_group(&log, LOG_KEY, 1, 0, 100);
        bytes = log.len - GROUP_SEAL_BYTES;
        seal.bytes = bytes;
        seal.unix_ms = LOG_MS + 1;
        group_hash_begin(hash, LOG_KEY);
        for (size_t at = 0, step = 1; at < bytes; at += step, step *= 3) {
            size_t len = step < bytes - at ? step : bytes - at;

            group_hash_add(hash, log.data + at, len);
        }
        group_write_seal(hash, LOG_KEY, &seal, text);
        assert_memory_equal(text, log.data + bytes, GROUP_SEAL_BYTES);
    }
    group_hash_free(hash);
    group_hash_free(NULL);
    buf_free(&log);
}

TEST(a_group_with_any_changed_bit_or_missing_byte_is_damaged)
{
    struct buf log = { 0 };
    struct group group;

    log_group(&log, LOG_KEY, 9, 3, 4);
    for (size_t i = 0; i < log.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            log.data[i] = (char)(log.data[i] ^ (1 << bit));
            assert_int_equal(group_read(buf_slice(&log), LOG_KEY, 0, &group),
                             GROUP_DAMAGED);
            log.data[i] = (char)(log.data[i] ^ (1 << bit));
        }
        assert_int_equal(
            group_read((struct slice){ log.data, i }, LOG_KEY, 0, &group),
            i == 0 ? GROUP_END : GROUP_DAMAGED);
    }
    assert_int_equal(group_read(buf_slice(&log), LOG_KEY + 1, 0, &group),
                     GROUP_DAMAGED);
    assert_reads(buf_slice(&log), 0, 9, &group);
    buf_free(&log);
}

TEST(a_group_has_to_begin_with_select_whatever_its_seal_says)
{
    struct buf log = { 0 };
    struct group group;
    struct group_survey survey;

    log_add(&log, slice_lit("item"));
    log_seal(&log, LOG_KEY, 0, 1, 0);
    assert_int_equal(group_read(buf_slice(&log), LOG_KEY, 0, &group),
                     GROUP_DAMAGED);
    group_survey(buf_slice(&log), LOG_KEY, 0, &survey);
    assert_int_equal(survey.groups, 0);
    buf_free(&log);
}

TEST(a_seal_that_does_not_reach_back_to_where_its_group_begins_is_no_seal)
{
    for (int more = -1; more <= 1; more++) {
        struct buf log = { 0 };
        struct group_hash *hash = group_hash_new();
        struct group_seal seal = { .sequence = 1 };
        struct group group;

        log_select(&log);
        log_add(&log, slice_lit("item"));
        seal.bytes = log.len + (uint64_t)more;
        group_hash_begin(hash, LOG_KEY);
        group_hash_add(hash, log.data, log.len);
        group_write_seal(hash, LOG_KEY, &seal,
                         buf_reserve(&log, (size_t)GROUP_SEAL_BYTES));
        log.len += GROUP_SEAL_BYTES;
        assert_int_equal(group_read(buf_slice(&log), LOG_KEY, 0, &group),
                         more == 0 ? GROUP_OK : GROUP_DAMAGED);
        group_hash_free(hash);
        buf_free(&log);
    }
}

TEST(garbage_before_a_group_damages_it)
{
    struct buf log = { 0 };
    struct group group;
    struct group_survey survey;

    buf_append_slice(&log, slice_lit("*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"));
    log_group(&log, LOG_KEY, 1, 0, 3);
    assert_int_equal(group_read(buf_slice(&log), LOG_KEY, 0, &group),
                     GROUP_DAMAGED);
    group_survey(buf_slice(&log), LOG_KEY, 0, &survey);
    assert_int_equal(survey.groups, 1);
    assert_int_equal(survey.first_offset, 23);
    assert_int_equal(survey.bytes, log.len - 23);
    buf_free(&log);
}

/* ---- items that look like seals ------------------------------------------ */

TEST(an_item_may_hold_copies_of_real_seals_and_groups)
{
    struct buf log = { 0 };
    struct buf item = { 0 };
    struct group group;
    uint64_t second;

    log_group(&log, LOG_KEY, 1, 0, 3);
    second = log.len;
    buf_append_slice(&item, slice_lit("\r\n"));
    buf_append(&item, log.data + second - GROUP_SEAL_BYTES, GROUP_SEAL_BYTES);
    buf_append(&item, log.data, second);
    log_select(&log);
    log_add(&log, buf_slice(&item));
    log_seal(&log, LOG_KEY, second, 2, 1);
    log_group(&log, LOG_KEY, 3, 1, 1);
    assert_reads(buf_slice(&log), 0, 1, &group);
    assert_reads(buf_slice(&log), group.end, 2, &group);
    assert_reads(buf_slice(&log), group.end, 3, &group);
    buf_free(&log);
    buf_free(&item);
}

/* The copy stands exactly where its own group's seal would, after bytes that
 * are not those of its group. */
TEST(a_copied_seal_that_reaches_back_exactly_is_refused_by_its_hash)
{
    struct buf log = { 0 };
    struct group group;
    size_t first;

    log_group(&log, LOG_KEY, 1, 0, 40);
    first = log.len;
    log_select(&log);
    while (log.len < 2 * first - GROUP_SEAL_BYTES - 1) {
        buf_append_slice(&log, slice_lit("x"));
    }
    buf_append_slice(&log, slice_lit("\n"));
    (void)buf_reserve(&log, (size_t)GROUP_SEAL_BYTES);
    buf_append(&log, log.data + first - GROUP_SEAL_BYTES, GROUP_SEAL_BYTES);
    buf_append_slice(&log, slice_lit("\r\n"));
    log_seal(&log, LOG_KEY, first, 2, 1);
    assert_reads(buf_slice(&log), first, 2, &group);
    assert_int_equal(group.end, log.len);
    buf_free(&log);
}

/* The item is made a group and read. */
static double
seconds_to_read(struct slice item, enum group_status want)
{
    struct buf log = { 0 };
    struct group group;
    struct group_survey survey;
    double before;
    double after;

    log_select(&log);
    log_add(&log, item);
    log_seal(&log, LOG_KEY, 0, 7, 1);
    if (want == GROUP_DAMAGED) {
        log.data[log.len - 3] ^= 1;
    }
    before = seconds();
    assert_int_equal(group_read(buf_slice(&log), LOG_KEY, 0, &group), want);
    group_survey(buf_slice(&log), LOG_KEY, 0, &survey);
    after = seconds();
    assert_int_equal(survey.groups, want == GROUP_OK);
    buf_free(&log);
    return after - before;
}

TEST(a_mebibyte_of_false_seals_costs_little)
{
    struct buf log = { 0 };
    struct buf item = { 0 };
    double took;

    /* Such with right fields and a wrong tag, */
    log_group(&log, LOG_KEY, 3, 2, 1);
    log.data[log.len - 30] ^= 1;
    while (item.len < GROUP_BYTES_MAX) {
        buf_append_slice(&item, slice_lit("\n"));
        buf_append(&item, log.data + log.len - GROUP_SEAL_BYTES,
                   GROUP_SEAL_BYTES);
    }
    took = seconds_to_read(buf_slice(&item), GROUP_OK);
    took += seconds_to_read(buf_slice(&item), GROUP_DAMAGED);
    /* marks only, and first bytes of marks only. */
    item.len = 0;
    while (item.len < GROUP_BYTES_MAX) {
        buf_append_slice(&item, slice_lit("\n#XX:"));
    }
    took += seconds_to_read(buf_slice(&item), GROUP_OK);
    memset(item.data, '#', item.len);
    took += seconds_to_read(buf_slice(&item), GROUP_OK);
    assert_true(took < 1); /* 15 ms, 50 with sanitizers */
    buf_free(&log);
    buf_free(&item);
}

/* A client that can read the file may store real seals, made for groups of
 * every length, exactly where they reach back to the begin of the group, and
 * copies of one that covers many bytes. */
TEST(a_mebibyte_of_real_seals_costs_little)
{
    struct buf log = { 0 };
    struct buf item = { 0 };
    struct group group;
    struct group_survey survey;
    double took;

    log_select(&log);
    log_add(&log, slice_lit("x"));
    while (log.len < GROUP_BYTES_MAX) {
        size_t begin = log.len;
        struct group_hash *hash = group_hash_new();
        struct group_seal seal = { .sequence = 1, .bytes = begin + 1 };
        char text[GROUP_SEAL_BYTES];

        group_hash_begin(hash, LOG_KEY); /* of other bytes */
        group_write_seal(hash, LOG_KEY, &seal, text);
        group_hash_free(hash);
        buf_append_slice(&log, slice_lit("\n"));
        buf_append(&log, text, sizeof(text));
    }
    log_seal(&log, LOG_KEY, 0, 2, 1);
    took = -seconds();
    assert_int_equal(group_read(buf_slice(&log), LOG_KEY, 0, &group), GROUP_OK);
    assert_int_equal(group.end, log.len);
    group_survey(buf_slice(&log), LOG_KEY, 0, &survey);
    assert_int_equal(survey.durable_sequence, 1);
    took += seconds();
    assert_true(took < 2); /* 10 ms, 200 with sanitizers */
    buf_free(&log);
    buf_free(&item);
}

/* ---- surveys ------------------------------------------------------------- */

TEST(a_survey_finds_what_is_intact_behind_damage)
{
    struct buf log = { 0 };
    uint64_t begins[12];
    struct group_survey survey;

    log_first_line(&log, LOG_KEY);
    for (uint64_t i = 1; i <= 10; i++) {
        begins[i] = log.len;
        log_group(&log, LOG_KEY, i, i - 1, 5);
    }
    begins[11] = log.len;

    log.data[begins[3] + 30] ^= 1; /* in the commands of group 3 */
    group_survey(buf_slice(&log), LOG_KEY, begins[3], &survey);
    assert_int_equal(survey.groups, 7);
    assert_int_equal(survey.bytes, begins[11] - begins[4]);
    assert_int_equal(survey.first_offset, begins[4]);
    assert_int_equal(survey.first_sequence, 4);
    assert_int_equal(survey.last_sequence, 10);
    assert_int_equal(survey.durable_sequence, 9);

    log.data[begins[10] - 50] ^= 1; /* and in the seal of group 9 */
    group_survey(buf_slice(&log), LOG_KEY, begins[3], &survey);
    assert_int_equal(survey.groups, 6);
    assert_int_equal(survey.durable_sequence, 9);

    /* Group 10 is broken, but its seal still names the durable sequence. */
    log.data[begins[10] + 30] ^= 1;
    group_survey(buf_slice(&log), LOG_KEY, begins[3], &survey);
    assert_int_equal(survey.groups, 5);
    assert_int_equal(survey.last_sequence, 8);
    assert_int_equal(survey.durable_sequence, 9);

    group_survey(buf_slice(&log), LOG_KEY, log.len, &survey);
    assert_int_equal(survey.groups + survey.durable_sequence, 0);
    group_survey(buf_slice(&log), LOG_KEY, log.len + 1, &survey);
    assert_int_equal(survey.groups + survey.durable_sequence, 0);
    group_survey(buf_slice(&log), LOG_KEY + 1, 0, &survey);
    assert_int_equal(survey.groups + survey.durable_sequence, 0);
    buf_free(&log);
}

TEST(a_survey_prefers_groups_to_copies_of_older_ones_in_their_items)
{
    struct buf log = { 0 };
    struct buf item = { 0 };
    struct group_survey survey;
    size_t begin;

    log_group(&log, LOG_KEY, 1, 0, 5);
    buf_append_slice(&item, buf_slice(&log));
    log_group(&log, LOG_KEY, 2, 1, 5);
    begin = log.len;
    log_select(&log);
    log_add(&log, buf_slice(&item));
    log_seal(&log, LOG_KEY, begin, 3, 1);
    group_survey(buf_slice(&log), LOG_KEY, 1, &survey); /* 1 is damaged */
    assert_int_equal(survey.groups, 2);
    assert_int_equal(survey.last_sequence, 3);
    buf_free(&log);
    buf_free(&item);
}

TEST(a_survey_does_not_count_what_stands_before_it)
{
    struct buf log = { 0 };
    struct group_survey survey;

    log_group(&log, LOG_KEY, 1, 0, 5);
    log_group(&log, LOG_KEY, 2, 1, 5);
    group_survey(buf_slice(&log), LOG_KEY, 1, &survey);
    assert_int_equal(survey.groups, 1);
    assert_int_equal(survey.first_sequence, 2);
    buf_free(&log);
}

/* ---- a seal whose place is known ------------------------------------------
 */

TEST(a_seal_is_checked_against_its_commands_and_says_what_does_not_fit)
{
    struct buf log = { 0 };
    struct group_seal seal = { .sequence = 99 };
    struct slice commands;
    char text[GROUP_SEAL_BYTES];

    log_group(&log, LOG_KEY, 7, 6, 3);
    commands = (struct slice){ log.data, log.len - GROUP_SEAL_BYTES };
    memcpy(text, log.data + commands.len, sizeof(text));

    assert_string_equal(group_check(commands, text, LOG_KEY + 1, &seal),
                        "a seal is damaged, or was made with another key");
    commands.len--;
    assert_string_equal(group_check(commands, text, LOG_KEY, &seal),
                        "a seal belongs to a group of another length");
    commands.len = 10;
    assert_string_equal(group_check(commands, text, LOG_KEY, &seal),
                        "a group does not begin with SELECT");
    commands.len = log.len - GROUP_SEAL_BYTES;
    log.data[40] ^= 1;
    assert_string_equal(group_check(commands, text, LOG_KEY, &seal),
                        "a group is damaged: it does not match its seal");
    assert_int_equal(seal.sequence, 99); /* untouched */
    log.data[40] ^= 1;
    assert_null(group_check(commands, text, LOG_KEY, &seal));
    assert_int_equal(seal.sequence, 7);
    assert_int_equal(seal.durable_sequence, 6);
    assert_int_equal(seal.bytes, commands.len);
    for (size_t at = 0; at < sizeof(text); at++) {
        text[at] ^= 1;
        assert_non_null(group_check(commands, text, LOG_KEY, &seal));
        text[at] ^= 1;
    }
    buf_free(&log);
}
