/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The text of holdings: what is written is read again, and nothing else is.
 */
#include "cluster/holdings.h"

#include "../test.h"
#include "base/checksum.h"
#include "base/mem.h"
#include "cluster_rig.h"

#include <stdio.h>
#include <string.h>

static struct holdings *
some(uint64_t *seed)
{
    struct holdings *holdings = mem_zalloc(sizeof(*holdings));

    (void)snprintf(holdings->node, sizeof(holdings->node), "%s", RIG_A);
    if (test_random_below(seed, 2) == 0) {
        (void)snprintf(holdings->follows, sizeof(holdings->follows), "%s",
                       RIG_B);
        (void)snprintf(holdings->history, sizeof(holdings->history), "%s",
                       RIG_C);
    }
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        if (test_random_below(seed, 50) == 0) {
            uint64_t epoch = test_random_below(seed, 3);
            unsigned end = slot + (unsigned)test_random_below(seed, 400);

            while (slot < CLUSTER_SLOTS && slot <= end) {
                holdings->held[slot] = epoch;
                holdings->known[slot] = epoch * 2;
                holdings->copied[slot] = epoch == 2 ? end : 0;
                if (epoch == 1) {
                    slot_set_add(&holdings->claimed, slot);
                }
                slot++;
            }
        }
    }
    return holdings;
}

TEST(what_is_written_is_read_again)
{
    uint64_t seed = test_seed();
    char reason[HOLDINGS_REASON_MAX];

    for (int round = 0; round < 50; round++) {
        struct holdings *holdings = some(&seed);
        struct holdings *again = mem_alloc(sizeof(*again));
        struct buf text = { 0 };

        holdings_write(holdings, &text);
        assert_true(holdings_parse(buf_slice(&text), again, reason));
        assert_memory_equal(holdings, again, sizeof(*again));
        mem_free(holdings);
        mem_free(again);
        buf_free(&text);
    }
}

TEST(the_file_also_says_of_what_data_it_is)
{
    uint64_t seed = test_seed();
    struct holdings *holdings = some(&seed);
    struct holdings *again = mem_alloc(sizeof(*again));
    char reason[HOLDINGS_REASON_MAX];
    struct buf text = { 0 };

    memcpy(holdings->data[0], RIG_B, sizeof(holdings->data[0]));
    memcpy(holdings->data[1], RIG_C, sizeof(holdings->data[1]));
    holdings->from = 77;
    holdings_write_file(holdings, &text);
    assert_true(holdings_parse(buf_slice(&text), again, reason));
    assert_memory_equal(holdings, again, sizeof(*again));
    buf_reset(&text, 0);
    holdings_write(holdings, &text); /* servers of 1.0.0 read this */
    assert_memory_equal(text.data, "bloomery-slots 1\nnode ", 22);
    mem_free(holdings);
    mem_free(again);
    buf_free(&text);
}

TEST(no_changed_byte_is_read)
{
    uint64_t seed = test_seed();
    struct holdings *holdings = some(&seed);
    struct holdings *again = mem_zalloc(sizeof(*again));
    char reason[HOLDINGS_REASON_MAX];
    struct buf text = { 0 };

    holdings_write(holdings, &text);
    for (size_t i = 0; i < text.len; i++) {
        text.data[i] ^= 1;
        assert_false(holdings_parse(buf_slice(&text), again, reason));
        text.data[i] ^= 1;
        assert_false(
            holdings_parse((struct slice){ text.data, i }, again, reason));
    }
    assert_int_equal(again->node[0], '\0');
    mem_free(holdings);
    mem_free(again);
    buf_free(&text);
}

/* With a checksum, so that only the lines can be wrong. */
static bool
reads(const char *lines)
{
    struct holdings *again = mem_zalloc(sizeof(*again));
    char reason[HOLDINGS_REASON_MAX];
    char text[1024];
    size_t len = (size_t)snprintf(text, sizeof(text), "%s", lines);
    bool good;

    len = checksum_append(text, len);
    good = holdings_parse((struct slice){ text, len }, again, reason);
    mem_free(again);
    return good;
}

#define LINES "node " RIG_A "\nfollows -\nhistory -\nclaimed -\n"
#define HEAD  "bloomery-slots 1\n" LINES

TEST(lines_that_contradict_each_other_are_refused)
{
    assert_true(reads(HEAD));
    assert_true(reads(HEAD "held 0-5 3\nheld 7 3\nknown 0-16383 9\n"));
    assert_false(reads(""));
    assert_false(reads("bloomery-slots 3\n"));
    assert_true(reads("bloomery-slots 2\ndata 7 " RIG_B "\n" LINES));
    assert_false(reads("bloomery-slots 2\n" LINES));
    assert_false(reads("bloomery-slots 2\ndata 7\n" LINES));
    assert_false(reads("bloomery-slots 2\ndata x " RIG_B "\n" LINES));
    assert_false(reads("bloomery-slots 2\ndata 7 " RIG_B "0\n" LINES));
    assert_false(reads("bloomery-slots 1\ndata 7 " RIG_B "\n" LINES));
    assert_false(reads(HEAD "held 5-0 3\n"));
    assert_false(reads(HEAD "held 0-16384 3\n"));
    assert_false(reads(HEAD "held 0-5 3\nheld 5 3\n"));
    assert_false(reads(HEAD "held 0-5 18446744073709551615\n"));
    assert_false(reads(HEAD "held 0-5 -1\n"));
    assert_false(reads(HEAD "held 0-5\n"));
    assert_false(reads(HEAD "kept 0-5 3\n"));
    assert_false(reads(HEAD "\n"));
    assert_false(
        reads("bloomery-slots 1\nnode x\nfollows -\nhistory -\nclaimed -\n"));
    assert_false(
        reads("bloomery-slots 1\nnode -\nfollows -\nhistory -\nclaimed \n"));
    assert_false(
        reads("bloomery-slots 1\nnode -\nfollows -\nhistory -\nclaimed 5-\n"));
    assert_false(reads("bloomery-slots 1\nnode -\nclaimed -\n"));
    assert_false(reads("bloomery-slots 1\nnode -\nfollows -\nclaimed -\n"));
}

TEST(what_others_held_is_learned_once)
{
    uint64_t seed = test_seed();
    struct holdings *one = mem_zalloc(sizeof(*one));
    struct holdings *other = some(&seed);

    other->held[77] = 12;
    other->known[77] = 3;
    assert_true(holdings_learn(one, other));
    assert_false(holdings_learn(one, other));
    assert_int_equal(one->known[77], 12);
    assert_int_equal(one->held[77], 0);
    mem_free(one);
    mem_free(other);
}

TEST(holdings_are_equal_if_others_see_no_difference)
{
    uint64_t seed = test_seed();
    struct holdings *one = some(&seed);
    struct holdings *other = mem_zalloc(sizeof(*other));

    *other = *one;
    other->from++; /* of the file */
    assert_true(holdings_equal(one, other));
    other->known[5]++;
    assert_false(holdings_equal(one, other));
    other->known[5]--;
    slot_set_add(&other->claimed, 9);
    slot_set_add(&one->claimed, 9);
    assert_true(holdings_equal(one, other));
    slot_set_add(&other->claimed, 10);
    slot_set_remove(&one->claimed, 10);
    assert_false(holdings_equal(one, other));
    mem_free(one);
    mem_free(other);
}

/* On a full disk line feeds may follow the text of a file. */
TEST(the_longest_file_fits_into_its_room_and_may_be_padded)
{
    struct holdings *most = mem_zalloc(sizeof(*most));
    struct holdings *again = mem_alloc(sizeof(*again));
    char reason[HOLDINGS_REASON_MAX];
    struct buf text = { 0 };

    memset(most->node, 'a', TOPOLOGY_ID_LEN);
    memset(most->follows, 'b', TOPOLOGY_ID_LEN);
    memset(most->history, 'c', HISTORY_ID_CHARS);
    most->from = UINT64_MAX;
    for (int i = 0; i < HOLDINGS_DATA_MAX; i++) {
        memset(most->data[i], 'd', HISTORY_ID_CHARS);
    }
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        most->held[slot] = most->known[slot] = UINT64_MAX - slot % 2;
        most->copied[slot] = UINT64_MAX - slot % 2;
        if (slot % 2 == 1) {
            slot_set_add(&most->claimed, slot);
        }
    }
    holdings_write_file(most, &text);
    assert_true(text.len <= HOLDINGS_FILE_MAX);
    buf_append_slice(&text, slice_lit("\n\n\n"));
    assert_true(holdings_parse(buf_slice(&text), again, reason));
    assert_memory_equal(most, again, sizeof(*again));
    buf_append_slice(&text, slice_lit("x\n"));
    assert_false(holdings_parse(buf_slice(&text), again, reason));
    mem_free(most);
    mem_free(again);
    buf_free(&text);
}
