/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Simulated schedules against the promise; each rule that is left out breaks it
 * in some of them. ROUNDS in the environment sets their number.
 */
#include "local/local_copy.h"

#include "../test.h"
#include "base/buf.h"
#include "core/ageing.h"
#include "core/payload.h"
#include "core/stream.h"
#include "proto/reply.h"
#include "sim_local.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORLDS = 150, SOME_BREAKS = 1000 };

static uint64_t
worlds(void)
{
    const char *rounds = getenv("ROUNDS");

    return rounds != NULL ? strtoull(rounds, NULL, 10) : WORLDS;
}

TEST(no_schedule_breaks_the_promise)
{
    struct sim_result sum = { 0 };

    for (uint64_t seed = 1; seed <= worlds(); seed++) {
        struct sim_result one = sim_local_run(seed, 0, 0);

        if (one.broken > 0) {
            fail_msg("world %llu: %llu answers break the promise",
                     (unsigned long long)seed, (unsigned long long)one.broken);
        }
        sum.answers += one.answers;
        sum.unknown += one.unknown;
        sum.loads += one.loads;
    }
    (void)printf("%llu answers, %.1f %% unknown, %llu loads\n",
                 (unsigned long long)sum.answers,
                 100.0 * (double)sum.unknown / (double)sum.answers,
                 (unsigned long long)sum.loads);
    assert_true(sum.unknown < sum.answers / 2);
    assert_true(sum.loads > worlds());
}

/* Returns whether some world breaks the promise. */
static bool
breaks(unsigned left_out, int pings)
{
    for (uint64_t seed = 1; seed <= SOME_BREAKS; seed++) {
        if (sim_local_run(seed, left_out, pings).broken > 0) {
            return true;
        }
    }
    return false;
}

TEST(the_deadline_counts_from_when_a_question_was_sent)
{
    assert_true(breaks(LOCAL_WITHOUT_SENT, 0));
}

TEST(answers_do_not_revive_a_copy_that_was_replaced)
{
    assert_true(breaks(LOCAL_WITHOUT_CHANGED, 0));
}

TEST(a_load_ends_with_a_second_answer)
{
    assert_true(breaks(LOCAL_WITHOUT_CHECK, 0));
}

TEST(items_that_are_told_during_a_load_belong_to_it)
{
    assert_true(breaks(LOCAL_WITHOUT_GATHERED, 0));
}

TEST(an_answer_must_not_overtake_what_was_gathered)
{
    assert_true(breaks(0, 1));
}

/* ---- an ageing filter, and a cut ------------------------------------------
 */

#define WALL_MS UINT64_C(1700000000000)

/* Drops what the copy says now. */
static void
hear_copy(struct local_copy *copy, uint64_t now_ms)
{
    struct buf out = { 0 };

    (void)local_copy_say(copy, now_ms, &out);
    assert_true(out.len > 0);
    buf_free(&out);
}

static void
give_copy(struct local_copy *copy, struct buf *reply, uint64_t now_ms)
{
    assert_true(local_copy_take(copy, buf_slice(reply), now_ms));
    buf_free(reply);
}

/* Has the copy ask, and answers at this time of the server. */
static void
answer_copy(struct local_copy *copy, uint64_t server_ms, uint64_t now_ms)
{
    struct buf frame = { 0 };
    struct reply reply = { &frame, 3 };

    hear_copy(copy, now_ms);
    buf_printf(&frame, ">8\r\n");
    reply_bulk_text(&reply, "bf.message");
    reply_bulk_text(&reply, "k");
    reply_bulk_text(&reply, "is");
    reply_bulk_text(&reply, "1");
    reply_bulk_text(&reply, "7"); /* the incarnation */
    reply_bulk_text(&reply, "1");
    reply_bulk_text(&reply, "1");
    buf_printf(&frame, "$13\r\n%llu\r\n", (unsigned long long)server_ms);
    give_copy(copy, &frame, now_ms);
}

/* Answers one BF.SCANDUMP. */
static void
dump_to_copy(struct local_copy *copy, uint64_t iterator, const uint8_t *bytes,
             size_t len, uint64_t now_ms)
{
    struct buf out = { 0 };
    struct reply reply = { &out, 3 };

    hear_copy(copy, now_ms);
    reply_array(&reply, 2);
    reply_int(&reply, (int64_t)iterator);
    reply_bulk(&reply, (struct slice){ (const char *)bytes, len });
    give_copy(copy, &out, now_ms);
}

static void
load_copy(struct local_copy *copy, const struct bloom *bloom)
{
    static uint8_t bytes[1 << 18];
    size_t len = payload_put_header(bloom, bytes);

    local_copy_link(copy, 1);
    answer_copy(copy, WALL_MS, 1);
    dump_to_copy(copy, 1, bytes, len, 1);
    len = (size_t)stream_left(bloom, 0);
    assert_true(len <= sizeof(bytes));
    stream_read(bloom, 0, len, bytes);
    dump_to_copy(copy, len + 1, bytes, len, 1);
    answer_copy(copy, WALL_MS, 1);
    assert_int_equal(local_copy_stage(copy), LOCAL_LOADED);
}

/* The server may have added the item again while the connection was cut, so its
 * clock alone does not make the item absent. */
TEST(behind_a_cut_the_servers_clock_does_not_age_the_old_copy)
{
    const struct local_options options = { .key = slice_lit("k"),
                                           .max_stale_ms = 10000,
                                           .refresh_ms = 1000 };
    const struct bloom_params params = { .struct_size = sizeof(params),
                                         .capacity = 100,
                                         .error_rate = 0.001,
                                         .tightening = 0.5,
                                         .expansion = 2,
                                         .kind = BLOOM_AGEING,
                                         .seconds = 1,
                                         .generations = 4,
                                         .now_ms = WALL_MS };
    struct local_copy *copy = local_copy_new(&options);
    struct bloom *bloom;
    bool added;

    assert_int_equal(bloom_new(&params, NULL, &bloom), BLOOM_OK);
    assert_int_equal(
        bloom_add_at(bloom, NULL, bloom_hash(bloom, "x", 1), WALL_MS, &added),
        BLOOM_OK);
    load_copy(copy, bloom);
    assert_int_equal(local_copy_contains(copy, slice_lit("x"), 2),
                     LOCAL_PRESENT);
    local_copy_cut(copy);
    local_copy_link(copy, 2000);
    answer_copy(copy, WALL_MS + 2000, 2000);
    assert_int_equal(local_copy_contains(copy, slice_lit("x"), 2001),
                     LOCAL_PRESENT);
    local_copy_free(copy);
    bloom_free(bloom, NULL);
}
