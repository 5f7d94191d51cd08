/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rule about damage: torn tails at every offset of 64 KiB in every way,
 * with and without a later file, then each cause by example.
 */
#include "journal/verify.h"

#include "../test.h"
#include "base/mem.h"
#include "log_help.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STRIDE 7
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRIDE 7
#endif
#ifndef STRIDE
#define STRIDE 1 /* every offset */
#endif

enum { TAIL_BYTES = 64 << 10, GROUPS_MAX = 256 };

static uint64_t random_state;

/* Offsets between two cases. */
static size_t
stride(void)
{
    return (size_t)STRIDE * test_stride();
}

static uint64_t
next(void)
{
    uint64_t z = (random_state += 0x9E3779B97F4A7C15U);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

/* ---- every offset -------------------------------------------------------- */

/* An increment whose last TAIL_BYTES are torn, and the one behind it. */
struct tail {
    struct buf log;
    struct buf later;
    uint64_t begins[GROUPS_MAX + 2]; /* by sequence, from 1; then the end */
    uint64_t last;                   /* sequence */
    uint64_t durable;                /* that the last seals name */
    size_t from;                     /* the first byte that is torn */
    char *copy;                      /* of log, to be damaged */
    char *noise;
};

static void
tail_make(struct tail *tail)
{
    *tail = (struct tail){ 0 };
    log_first_line(&tail->log, LOG_KEY);
    while (tail->log.len < TAIL_BYTES + 4096) {
        uint64_t sequence = ++tail->last;
        unsigned adds = 1 + (unsigned)(next() % (next() % 4 == 0 ? 60 : 20));

        assert_in_range(sequence, 1, GROUPS_MAX);
        tail->begins[sequence] = tail->log.len;
        if (sequence % 30 == 0) {
            tail->durable = sequence - 7;
        }
        log_group(&tail->log, LOG_KEY, sequence, tail->durable, adds);
    }
    tail->begins[tail->last + 1] = tail->log.len;
    tail->from = tail->log.len - TAIL_BYTES;
    log_first_line(&tail->later, LOG_KEY + 1);
    for (uint64_t i = 1; i <= 3; i++) {
        log_group(&tail->later, LOG_KEY + 1, tail->last + i, tail->durable, 2);
    }
    tail->copy = mem_alloc(tail->log.len);
    tail->noise = mem_alloc(tail->log.len);
    memcpy(tail->copy, tail->log.data, tail->log.len);
    for (size_t i = 0; i < tail->log.len; i++) {
        tail->noise[i] = (char)next();
    }
}

static void
tail_free(struct tail *tail)
{
    buf_free(&tail->log);
    buf_free(&tail->later);
    mem_free(tail->copy);
    mem_free(tail->noise);
}

/* The group that has the byte. */
static uint64_t
group_at(const struct tail *tail, size_t at)
{
    uint64_t low = 1;
    uint64_t high = tail->last + 1;

    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;

        if (tail->begins[middle] <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool
as_expected(const struct verify_result *result, uint64_t group, uint64_t begin,
            enum verify_status status)
{
    return result->status == status && result->sequence == group - 1 &&
           result->groups == group - 1 &&
           result->position == 5000 + begin - GROUP_FIRST_LINE_BYTES &&
           (status == VERIFY_OK ||
            (result->expected == group && result->offset == begin));
}

/* log[0, len) torn at `at`. alone: nothing behind it can name a durable
 * sequence, unless seals of this file are left (seals_left). */
static void
check_torn(struct tail *tail, size_t at, size_t len, bool seals_left)
{
    uint64_t group = group_at(tail, at);
    uint64_t begin = tail->begins[group];
    bool clean = len == begin; /* cut between two groups */
    bool durable = group <= tail->durable;
    struct verify_file files[2] = { { .data = { tail->copy, len } },
                                    { .data = buf_slice(&tail->later) } };
    struct verify_result result;

    verify_increments(files, 1, 5000, 0, &result);
    if (!as_expected(&result, group, begin,
                     clean                   ? VERIFY_OK
                     : seals_left && durable ? VERIFY_REFUSED
                                             : VERIFY_CUT) ||
        files[0].end != begin) {
        fail_msg("offset %zu of %zu, alone", at, len);
    }
    verify_increments(files, 2, 5000, 0, &result);
    if (clean) { /* then the next file does not fit */
        if (result.file != 1 || result.cause != VERIFY_GAP ||
            result.offset != GROUP_FIRST_LINE_BYTES ||
            result.expected != group ||
            result.status != (durable ? VERIFY_REFUSED : VERIFY_CUT)) {
            fail_msg("offset %zu of %zu, a gap", at, len);
        }
    } else if (!as_expected(&result, group, begin,
                            durable ? VERIFY_REFUSED : VERIFY_CUT) ||
               result.file != 0 || result.behind.groups < 3) {
        fail_msg("offset %zu of %zu, with a later file", at, len);
    }
}

static size_t
first_offset(const struct tail *tail)
{
    return tail->from + next() % stride();
}

TEST(a_tail_truncated_anywhere_keeps_the_groups_before)
{
    struct tail tail;

    random_state = test_seed();
    tail_make(&tail);
    for (size_t at = first_offset(&tail); at < tail.log.len; at += stride()) {
        check_torn(&tail, at, at, false);
    }
    tail_free(&tail);
}

TEST(a_tail_of_zeros_from_anywhere_keeps_the_groups_before)
{
    struct tail tail;
    size_t at;

    random_state = test_seed();
    tail_make(&tail);
    for (at = tail.log.len - stride(); at >= tail.from + stride();
         at -= stride()) {
        memset(tail.copy + at, 0, stride());
        check_torn(&tail, at, tail.log.len, false);
    }
    tail_free(&tail);
}

TEST(a_tail_of_noise_from_anywhere_keeps_the_groups_before)
{
    struct tail tail;
    size_t at;

    random_state = test_seed();
    tail_make(&tail);
    for (at = tail.log.len - stride(); at >= tail.from + stride();
         at -= stride()) {
        memcpy(tail.copy + at, tail.noise + at, stride());
        if (tail.copy[at] == tail.log.data[at]) {
            tail.copy[at] ^= 1; /* the noise may equal the old bytes */
        }
        check_torn(&tail, at, tail.log.len, false);
    }
    tail_free(&tail);
}

TEST(one_flipped_bit_anywhere_is_refused_up_to_the_durable_mark_and_cut_after)
{
    struct tail tail;
    uint64_t refused = 0;
    uint64_t cut = 0;

    random_state = test_seed();
    tail_make(&tail);
    for (size_t at = first_offset(&tail); at < tail.log.len; at += stride()) {
        char bit = (char)(1 << next() % 8);

        tail.copy[at] ^= bit;
        check_torn(&tail, at, tail.log.len, true);
        tail.copy[at] ^= bit;
        refused += group_at(&tail, at) <= tail.durable;
        cut += group_at(&tail, at) > tail.durable;
    }
    assert_true(refused > 100 && cut > 100);
    tail_free(&tail);
}

TEST(a_hole_of_zeros_anywhere_is_refused_up_to_the_durable_mark_and_cut_after)
{
    struct tail tail;

    random_state = test_seed();
    tail_make(&tail);
    for (size_t at = first_offset(&tail); at + 4096 < tail.log.len;
         at += stride() * 7) {
        size_t len = 1 + next() % 4096;
        bool seals_left = group_at(&tail, at + len) < tail.last;

        memset(tail.copy + at, 0, len);
        if (seals_left) {
            check_torn(&tail, at, tail.log.len, true);
        }
        memcpy(tail.copy + at, tail.log.data + at, len);
    }
    tail_free(&tail);
}

/* ---- causes, by example -------------------------------------------------- */

enum { FILES = 3, PER_FILE = 4 };

/* Three files of four groups each, sequences 101 to 112; every seal names the
 * group before the one before it as durable. */
struct chain {
    struct buf logs[FILES];
    struct verify_file files[FILES];
    uint64_t begins[FILES * PER_FILE];
    struct verify_result result;
};

static void
chain_make(struct chain *chain)
{
    *chain = (struct chain){ 0 };
    for (uint32_t i = 0; i < FILES; i++) {
        struct buf *log = &chain->logs[i];

        log_first_line(log, LOG_KEY + i);
        for (uint64_t n = i * PER_FILE; n < (i + 1) * PER_FILE; n++) {
            chain->begins[n] = log->len;
            log_group(log, LOG_KEY + i, 101 + n, 101 + n - 2, 1);
        }
    }
}

static void
chain_free(struct chain *chain)
{
    for (uint32_t i = 0; i < FILES; i++) {
        buf_free(&chain->logs[i]);
    }
}

static enum verify_status
chain_verify(struct chain *chain)
{
    for (uint32_t i = 0; i < FILES; i++) {
        chain->files[i].data = buf_slice(&chain->logs[i]);
    }
    return verify_increments(chain->files, FILES, 1000, 100, &chain->result);
}

TEST(intact_files_are_followed_to_their_end)
{
    struct chain chain;
    struct verify_result result;
    uint64_t bytes = 0;

    chain_make(&chain);
    assert_int_equal(chain_verify(&chain), VERIFY_OK);
    for (uint32_t i = 0; i < FILES; i++) {
        assert_int_equal(chain.files[i].end, chain.logs[i].len);
        assert_int_equal(chain.files[i].groups, PER_FILE);
        bytes += chain.logs[i].len - GROUP_FIRST_LINE_BYTES;
    }
    assert_int_equal(chain.result.position, 1000 + bytes);
    assert_int_equal(chain.result.sequence, 112);
    assert_int_equal(chain.result.groups, 12);
    assert_int_equal(verify_increments(NULL, 0, 7, 8, &result), VERIFY_OK);
    assert_int_equal(result.position, 7);
    assert_int_equal(result.sequence, 8);
    chain_free(&chain);
}

static bool
visit_five(void *ctx, uint32_t file, const struct group *group,
           uint64_t end_position)
{
    uint64_t *visits = ctx;

    assert_int_equal(group->seal.sequence, 101 + *visits);
    assert_int_equal(file, *visits / PER_FILE);
    assert_true(end_position > 1000);
    return ++*visits < 5;
}

TEST(a_visitor_gets_the_groups_in_order_and_ends_the_walk)
{
    struct chain chain;
    struct group_survey survey;
    uint64_t visits = 0;
    struct verify_walk walk = { 1000, 100, visit_five, &visits };

    chain_make(&chain);
    (void)chain_verify(&chain);
    assert_int_equal(verify_each(chain.files, FILES, &walk, &chain.result),
                     VERIFY_OK);
    assert_int_equal(visits, 5);
    assert_int_equal(chain.result.sequence, 105);
    verify_survey(chain.files, FILES, 1, chain.begins[5], &survey);
    assert_int_equal(survey.groups, 7);
    assert_int_equal(survey.first_sequence, 106);
    assert_int_equal(survey.last_sequence, 112);
    chain.logs[2].data[3] ^= 1; /* its first line */
    verify_survey(chain.files, FILES, 1, 0, &survey);
    assert_int_equal(survey.groups, PER_FILE);
    chain_free(&chain);
}

TEST(an_open_file_in_the_middle_is_cut_if_nothing_behind_says_it_was_synced)
{
    struct chain chain;
    char text[VERIFY_TEXT_MAX];

    chain_make(&chain);
    chain.logs[1].data[chain.begins[7] + 5] ^= 1; /* group 108 */
    buf_reset(&chain.logs[2], SIZE_MAX);
    log_first_line(&chain.logs[2], LOG_KEY + 2);
    log_group(&chain.logs[2], LOG_KEY + 2, 109, 107, 1);
    assert_int_equal(chain_verify(&chain), VERIFY_CUT);
    assert_int_equal(chain.result.file, 1);
    assert_int_equal(chain.result.cause, VERIFY_DAMAGED);
    assert_int_equal(chain.result.offset, chain.begins[7]);
    assert_int_equal(chain.result.expected, 108);
    assert_int_equal(chain.result.sequence, 107);
    assert_int_equal(chain.result.behind.groups, 1);
    assert_int_equal(chain.result.behind.bytes,
                     chain.logs[2].len - GROUP_FIRST_LINE_BYTES);
    assert_int_equal(chain.result.behind_bytes,
                     chain.logs[1].len - chain.begins[7] + chain.logs[2].len -
                         GROUP_FIRST_LINE_BYTES);
    assert_int_equal(chain.files[1].end, chain.begins[7]);
    assert_int_equal(chain.files[2].end, GROUP_FIRST_LINE_BYTES);
    assert_int_equal(chain.files[2].groups, 0);
    verify_describe(&chain.result, text, sizeof(text));
    assert_non_null(strstr(text, "where group 108 should begin"));

    log_group(&chain.logs[2], LOG_KEY + 2, 110, 108, 1);
    assert_int_equal(chain_verify(&chain), VERIFY_REFUSED);
    assert_int_equal(chain.result.behind.durable_sequence, 108);
    assert_int_equal(chain.result.behind.groups, 2);
    chain_free(&chain);
}

TEST(a_gap_is_damage_where_the_wrong_group_begins)
{
    struct chain chain;
    char text[VERIFY_TEXT_MAX];

    /* The second file ends a group early. */
    chain_make(&chain);
    chain.logs[1].len = chain.begins[7];
    assert_int_equal(chain_verify(&chain), VERIFY_REFUSED);
    assert_int_equal(chain.result.file, 2);
    assert_int_equal(chain.result.cause, VERIFY_GAP);
    assert_int_equal(chain.result.offset, GROUP_FIRST_LINE_BYTES);
    assert_int_equal(chain.result.expected, 108);
    assert_int_equal(chain.result.found, 109);
    verify_describe(&chain.result, text, sizeof(text));
    assert_string_equal(
        text, "group 109 at offset 128, where group 108 should begin");
    chain_free(&chain);

    /* The last file has a group twice: nothing says that it was synced, but no
     * crash writes it there. */
    chain_make(&chain);
    chain.logs[2].len = chain.begins[11];
    log_group(&chain.logs[2], LOG_KEY + 2, 111, 109, 1);
    assert_int_equal(chain_verify(&chain), VERIFY_REFUSED);
    assert_int_equal(chain.result.cause, VERIFY_GAP);
    assert_int_equal(chain.result.offset, chain.begins[11]);
    assert_int_equal(chain.result.sequence, 111);
    chain_free(&chain);

    /* The base does not fit the first. */
    chain_make(&chain);
    (void)chain_verify(&chain);
    assert_int_equal(
        verify_increments(chain.files, FILES, 0, 99, &chain.result),
        VERIFY_REFUSED);
    assert_int_equal(chain.result.expected, 100);
    chain_free(&chain);
}

/* An older file in the place of the newest one. */
TEST(a_newest_file_of_wrong_sequences_is_damage)
{
    static const struct {
        uint64_t sequence;
        bool closed; /* the file before */
        enum verify_status status;
    } cases[] = {
        { 1, true, VERIFY_REFUSED },    { 1, false, VERIFY_REFUSED },
        { 108, false, VERIFY_REFUSED }, { 110, true, VERIFY_REFUSED },
        { 110, false, VERIFY_CUT }, /* a rotation that a fault overtook */
    };
    struct chain chain;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t sequence = cases[i].sequence;

        chain_make(&chain);
        for (unsigned f = 0; f < 2; f++) {
            chain.files[f].closed = cases[i].closed;
            chain.files[f].bytes = chain.logs[f].len;
        }
        buf_reset(&chain.logs[2], SIZE_MAX);
        log_first_line(&chain.logs[2], LOG_KEY + 2);
        log_group(&chain.logs[2], LOG_KEY + 2, sequence, 0, 1);
        log_group(&chain.logs[2], LOG_KEY + 2, sequence + 1, 0, 1);
        assert_int_equal(chain_verify(&chain), cases[i].status);
        assert_int_equal(chain.result.file, 2);
        assert_int_equal(chain.result.cause, VERIFY_GAP);
        assert_int_equal(chain.result.offset, GROUP_FIRST_LINE_BYTES);
        assert_int_equal(chain.result.sequence, 108);
        chain_free(&chain);
    }
}

TEST(a_closed_file_has_to_be_intact_whatever_follows)
{
    struct chain chain;
    char text[VERIFY_TEXT_MAX];

    chain_make(&chain);
    chain.files[2].closed = true;
    chain.files[2].bytes = chain.logs[2].len;
    assert_int_equal(chain_verify(&chain), VERIFY_OK);

    chain.logs[2].data[chain.begins[11]] ^= 1; /* the very last group */
    assert_int_equal(chain_verify(&chain), VERIFY_REFUSED);
    assert_int_equal(chain.result.offset, chain.begins[11]);
    chain.logs[2].data[chain.begins[11]] ^= 1;

    chain.logs[2].len = chain.begins[11]; /* missing */
    assert_int_equal(chain_verify(&chain), VERIFY_REFUSED);
    assert_int_equal(chain.result.cause, VERIFY_SHORT);
    assert_int_equal(chain.result.offset, chain.begins[11]);
    verify_describe(&chain.result, text, sizeof(text));
    assert_non_null(strstr(text, "ends at offset"));

    chain.files[2].bytes = chain.begins[11]; /* as the manifest says */
    assert_int_equal(chain_verify(&chain), VERIFY_OK);
    chain_free(&chain);
}

TEST(a_first_line_that_is_damaged_or_newer_is_refused)
{
    struct chain chain;
    char text[VERIFY_TEXT_MAX];

    for (uint32_t i = 0; i < FILES; i++) {
        chain_make(&chain);
        chain.logs[i].data[3] ^= 1;
        assert_int_equal(chain_verify(&chain), VERIFY_REFUSED);
        assert_int_equal(chain.result.cause, VERIFY_FIRST_LINE);
        assert_int_equal(chain.result.file, i);
        verify_describe(&chain.result, text, sizeof(text));
        assert_string_equal(text, "its first line, offset 0, is damaged");
        chain.logs[i].data[3] ^= 1;
        chain.logs[i].len = 0;
        assert_int_equal(chain_verify(&chain), VERIFY_REFUSED);
        assert_int_equal(chain.result.cause, VERIFY_FIRST_LINE);
        chain_free(&chain);
    }
}

/* A group of a closed file behind its bytes, or of a file of another key, is
 * not evidence: keys differ. */
TEST(seals_of_another_file_do_not_hold_here)
{
    struct chain chain;

    chain_make(&chain);
    chain.logs[2].len = chain.begins[10];
    log_group(&chain.logs[2], LOG_KEY + 1, 111, 111, 1); /* key of file 1 */
    assert_int_equal(chain_verify(&chain), VERIFY_CUT);
    assert_int_equal(chain.result.behind.durable_sequence, 0);
    assert_int_equal(chain.result.sequence, 110);
    chain_free(&chain);
}
