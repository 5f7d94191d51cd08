/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the scanner takes, and that it leaves all the rest untouched. Inputs
 * lie in allocations of their own size, so that a sanitizer sees every byte
 * read too far.
 */
#include "../test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "proto/scan.h"

#include <stdio.h>

static const struct parse_limits wide = { 1024 * 1024, 512 * 1024 * 1024,
                                          SIZE_MAX, false };

/* Scans an exact copy; the batch's slices are gone afterwards, its commands
 * stay. Returns what was taken. */
static size_t
scan(const char *data, size_t len, const struct parse_limits *limits,
     struct batch *batch)
{
    char *copy = mem_alloc(len);
    size_t at = 0;

    memcpy(copy, data, len);
    batch_clear(batch);
    assert_int_equal(
        OK, scan_commands((struct slice){ copy, len }, limits, batch, &at));
    for (size_t i = 0; i < batch->argv_count; i++) { /* all readable */
        assert_true(slice_equal(
            batch->argv[i], (struct slice){ data + (batch->argv[i].data - copy),
                                            batch->argv[i].len }));
    }
    mem_free(copy);
    return at;
}

#define PING "*1\r\n$4\r\nPING\r\n"

TEST(commands_are_taken_where_they_lie)
{
    static const char data[] =
        "*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$0\r\n\r\n" PING;
    struct batch batch = { 0 };
    size_t at = 0;

    assert_int_equal(OK, scan_commands(slice_lit(data), &wide, &batch, &at));
    assert_int_equal(sizeof(data) - 1, at);
    assert_int_equal(2, batch.count);
    assert_int_equal(3, batch.command[0].argc);
    assert_int_equal(0, batch.command[0].begin);
    assert_int_equal(sizeof(data) - sizeof(PING), batch.command[1].begin);
    assert_int_equal(3, batch.command[1].first);
    assert_true(batch.in_place);
    assert_ptr_equal(data + 8, batch.argv[0].data);
    assert_true(slice_equal(batch.argv[0], slice_lit("BF.ADD")));
    assert_true(slice_equal(batch.argv[1], slice_lit("k")));
    assert_int_equal(0, batch.argv[2].len);
    assert_true(slice_equal(batch.argv[3], slice_lit("PING")));
    batch_fini(&batch);
}

TEST(lengths_of_any_number_of_digits_are_read)
{
    static const size_t lens[] = { 0,  1,   9,   10,  11,   19,   20,    90,
                                   99, 100, 101, 999, 1000, 9999, 123456 };
    struct batch batch = { 0 };

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        char *data = mem_zalloc(lens[i] + 64);
        size_t head =
            (size_t)snprintf(data, 64, "*2\r\n$1\r\nk\r\n$%zu\r\n", lens[i]);
        size_t len = head + lens[i] + 2;

        memcpy(data + len - 2, "\r\n", 2);
        assert_int_equal(len, scan(data, len, &wide, &batch));
        assert_int_equal(1, batch.count);
        assert_int_equal(lens[i], batch.argv[1].len);
        assert_int_equal(0, scan(data, len - 1, &wide, &batch));
        mem_free(data);
    }
    batch_fini(&batch);
}

TEST(counts_of_any_number_of_digits_are_read)
{
    static const size_t counts[] = { 1, 9, 10, 99, 100, 101, 1000, 12345 };
    struct batch batch = { 0 };

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        char *data = mem_alloc(counts[i] * 7 + 32);
        size_t len = (size_t)snprintf(data, 32, "*%zu\r\n", counts[i]);

        for (size_t k = 0; k < counts[i]; k++) {
            memcpy(data + len, "$1\r\na\r\n", 7);
            len += 7;
        }
        assert_int_equal(len, scan(data, len, &wide, &batch));
        assert_int_equal(counts[i], batch.command[0].argc);
        assert_int_equal(0, scan(data, len - 1, &wide, &batch));
        mem_free(data);
    }
    batch_fini(&batch);
}

TEST(an_unfinished_command_is_left_at_every_length)
{
    static const char data[] =
        PING "*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$12\r\nitem00000001\r\n";
    size_t first = sizeof(PING) - 1;
    struct batch batch = { 0 };

    for (size_t len = 1; len < sizeof(data) - 1; len++) {
        size_t taken = len < first ? 0 : first;

        assert_int_equal(taken, scan(data, len, &wide, &batch));
        assert_int_equal(taken > 0, batch.count);
        assert_int_equal(taken > 0, batch.argv_count);
    }
    batch_fini(&batch);
}

TEST(whatever_is_not_canonical_is_left)
{
    static const char *const odd[] = {
        "PING\r\nPING\r\n",
        "\r\n" PING,
        "*0\r\n" PING,
        "*-1\r\n" PING,
        "*01\r\n$4\r\nPING\r\n",
        "*+1\r\n$4\r\nPING\r\n",
        "*\r\n$4\r\nPING\r\n",
        "*a\r\n$4\r\nPING\r\n",
        "*1a\r\n$4\r\nPING\r\n",
        "*1 \r\n$4\r\nPING\r\n",
        "*1\n$4\r\nPING\r\n",
        "*1\r$4\r\nPING\r\n",
        "*1\rX$4\r\nPING\r\n",
        "*:\r\n$4\r\nPING\r\n",
        "*00000000001\r\n$4\r\nPING\r\n",
        "*99999999999999999999\r\n$4\r\nPING\r\n",
        "*2147483648\r\n$4\r\nPING\r\n",
        "*1\r\n$04\r\nPING\r\n",
        "*1\r\n$00\r\n\r\n\r\n",
        "*1\r\n$+4\r\nPING\r\n",
        "*1\r\n$-1\r\n\r\n\r\n",
        "*1\r\n$\r\nPING\r\n",
        "*1\r\n$4x\r\nPING\r\n",
        "*1\r\n$4\nPING\r\n\r\n",
        "*1\r\n$4\rXPING\r\n",
        "*1\r\n$4\r\nPINGxx" PING,
        "*1\r\n$4\r\nPING\n\r" PING,
        "*1\r\n:4\r\nPING\r\n",
        "*1\r\n*4\r\nPING\r\n",
        "*1\r\n$9223372036854775807\r\nPING\r\n",
        "*1\r\n$18446744073709551615\r\nPING\r\n",
        "*1\r\n$18446744073709551618\r\nPING\r\n",
        "*1\r\n$9999999999\r\nPING\r\n",
    };
    struct batch batch = { 0 };

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        char text[128];
        int len = snprintf(text, sizeof(text), PING "%s", odd[i]);

        assert_int_equal(0, scan(odd[i], strlen(odd[i]), &wide, &batch));
        assert_int_equal(sizeof(PING) - 1,
                         scan(text, (size_t)len, &wide, &batch));
        assert_int_equal(1, batch.count);
    }
    batch_fini(&batch);
}

TEST(commands_against_a_limit_are_left)
{
    static const char data[] = "*2\r\n$4\r\nECHO\r\n$100\r\n"
                               "0123456789012345678901234567890123456789012345"
                               "6789012345678901234567890123456789012345678901"
                               "23456789\r\n";
    size_t len = sizeof(data) - 1;
    struct batch batch = { 0 };
    struct parse_limits exact = { 2, 100, len, false };
    struct parse_limits args = { 1, 100, len, false };
    struct parse_limits bulk = { 2, 99, len, false };
    struct parse_limits query = { 2, 100, len - 1, false };
    struct parse_limits tiny = { 2, 4, len, false };

    assert_int_equal(len, scan(data, len, &exact, &batch));
    assert_int_equal(0, scan(data, len, &args, &batch));
    assert_int_equal(0, scan(data, len, &bulk, &batch));
    assert_int_equal(0, scan(data, len, &query, &batch));
    assert_int_equal(0, scan(PING, sizeof(PING) - 1, &tiny, &batch));
    batch_fini(&batch);
}

TEST(a_batch_ends_when_it_is_full)
{
    enum { COMMANDS = BATCH_COMMANDS_MAX + 72 };
    size_t each = sizeof(PING) - 1;
    char *data = mem_alloc(COMMANDS * each);
    struct batch batch = { 0 };
    size_t at = 0;

    for (size_t i = 0; i < COMMANDS; i++) {
        memcpy(data + i * each, PING, each);
    }
    assert_int_equal(OK, scan_commands((struct slice){ data, COMMANDS * each },
                                       &wide, &batch, &at));
    assert_int_equal(BATCH_COMMANDS_MAX, batch.count);
    assert_int_equal(BATCH_COMMANDS_MAX * each, at);
    batch_clear(&batch);
    assert_int_equal(OK, scan_commands((struct slice){ data, COMMANDS * each },
                                       &wide, &batch, &at));
    assert_int_equal(72, batch.count);
    assert_int_equal(COMMANDS * each, at);
    assert_int_equal(BATCH_COMMANDS_MAX * each, batch.command[0].begin);
    batch_fini(&batch);
    mem_free(data);
}

TEST(a_declared_count_allocates_nothing)
{
    struct batch batch = { 0 };
    uint64_t before = mem_used();

    assert_int_equal(0, scan("*1048576\r\n$1\r\na\r\n", 17, &wide, &batch));
    assert_int_equal(before, mem_used());
    batch_fini(&batch);
}

TEST(a_failed_growth_gives_what_was_there_or_an_error)
{
    static const char data[] = PING PING;
    struct batch batch = { 0 };
    size_t at = 0;

    mem_fail_at(1);
    assert_int_equal(ERR_NOMEM,
                     scan_commands(slice_lit(data), &wide, &batch, &at));
    assert_true(mem_fail_clear());
    assert_int_equal(0, batch.count);
    assert_int_equal(0, at);
    assert_int_equal(OK, scan_commands(slice_lit(PING), &wide, &batch, &at));
    batch_clear(&batch);
    batch.argv_capacity = 1; /* the second command must grow */
    at = 0;
    mem_fail_at(1);
    assert_int_equal(OK, scan_commands(slice_lit(data), &wide, &batch, &at));
    assert_true(mem_fail_clear());
    assert_int_equal(1, batch.count);
    assert_int_equal(sizeof(PING) - 1, at);
    batch_fini(&batch);
}

/* ---- pipelines that repeat themselves ------------------------------------ */

enum { PIPELINE = 60, WORDS_MAX = 4 };

/* What was sent: the words of each command, and where it ends. */
struct sent {
    struct buf bytes;
    size_t argc[PIPELINE], end[PIPELINE];
    char words[PIPELINE][WORDS_MAX][160];
};

static void
send_command(struct sent *sent, unsigned at, uint64_t *random)
{
    static const char *const first[] = { "BF.ADD", "BF.EXISTS", "bf.add" };
    static const char *const second[] = { "k", "", "key", "kez" };

    sent->argc[at] = test_random_below(random, 8) > 0
                         ? 3
                         : 1 + test_random_below(random, WORDS_MAX);
    buf_printf(&sent->bytes, "*%zu\r\n", sent->argc[at]);
    for (size_t w = 0; w < sent->argc[at]; w++) {
        char *word = sent->words[at][w];

        if (w < 2 && at > 0 && w < sent->argc[at - 1] &&
            test_random_below(random, 8) > 0) {
            memcpy(word, sent->words[at - 1][w], sizeof(sent->words[at][w]));
        } else if (w < 2) {
            (void)snprintf(word, sizeof(sent->words[at][w]), "%s",
                           w == 0 ? first[test_random_below(random, 3)]
                                  : second[test_random_below(random, 4)]);
        } else {
            size_t len = test_random_below(random, 4) > 0
                             ? 12
                             : test_random_below(random, 150);

            memset(word, 'a' + (int)test_random_below(random, 26), len);
            word[len] = '\0';
        }
        buf_printf(&sent->bytes, "$%zu\r\n", strlen(word));
        buf_append(&sent->bytes, word, strlen(word));
        buf_append(&sent->bytes, "\r\n", 2);
    }
    sent->end[at] = sent->bytes.len;
}

static bool
repeats(const struct sent *sent, unsigned at)
{
    return at > 0 && sent->argc[at] == 3 && sent->argc[at - 1] == 3 &&
           strcmp(sent->words[at][0], sent->words[at - 1][0]) == 0 &&
           strcmp(sent->words[at][1], sent->words[at - 1][1]) == 0;
}

static void
expect_commands(const struct sent *sent, const struct batch *batch,
                const char *data, unsigned count)
{
    assert_int_equal(count, batch->count);
    for (unsigned i = 0; i < count; i++) {
        const struct batch_command *command = &batch->command[i];
        const struct slice *argv = &batch->argv[command->first];

        assert_int_equal(sent->argc[i], command->argc);
        assert_int_equal(i > 0 ? sent->end[i - 1] : 0, command->begin);
        assert_int_equal(repeats(sent, i), command->repeats);
        for (size_t w = 0; w < command->argc; w++) {
            assert_true(slice_equal(slice_of(sent->words[i][w]), argv[w]));
            assert_in_range(argv[w].data - data, command->begin,
                            sent->end[i] - argv[w].len);
        }
    }
}

/* Whole, cut anywhere, and with a byte that is wrong. */
TEST(pipelines_that_repeat_themselves_are_read_as_any_other)
{
    uint64_t random = test_seed();

    for (unsigned round = 0; round < 400 * test_rounds(); round++) {
        struct sent *sent = mem_zalloc(sizeof(*sent));
        struct batch batch = { 0 };
        unsigned whole = 0;
        size_t cut;
        size_t at = 0;
        char *data;

        for (unsigned i = 0; i < PIPELINE; i++) {
            send_command(sent, i, &random);
        }
        cut = round % 4 == 0 ? sent->bytes.len
                             : test_random_below(&random, sent->bytes.len) + 1;
        data = mem_alloc(cut);
        memcpy(data, sent->bytes.data, cut);
        if (round % 4 == 3) { /* one that no command can have */
            size_t wrong = test_random_below(&random, cut);

            while (wrong > 0 && strchr("*$\r\n", data[wrong]) == NULL) {
                wrong--;
            }
            data[wrong] = '?';
            while (sent->end[whole] <= wrong) {
                whole++;
            }
        } else {
            while (whole < PIPELINE && sent->end[whole] <= cut) {
                whole++;
            }
        }
        assert_int_equal(
            OK, scan_commands((struct slice){ data, cut }, &wide, &batch, &at));
        assert_int_equal(whole > 0 ? sent->end[whole - 1] : 0, at);
        expect_commands(sent, &batch, data, whole);
        mem_free(data);
        batch_fini(&batch);
        buf_free(&sent->bytes);
        mem_free(sent);
    }
}

TEST(a_repeated_command_keeps_to_the_limits)
{
    static const char data[] =
        "*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$3\r\nabc\r\n"
        "*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$3\r\nabd\r\n"
        "*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$4\r\nabde\r\n";
    struct parse_limits limits = wide;
    struct batch batch = { 0 };

    limits.query_max = 32;
    assert_int_equal(64, scan(data, sizeof(data) - 1, &limits, &batch));
    assert_int_equal(2, batch.count);
    batch_fini(&batch);
}
