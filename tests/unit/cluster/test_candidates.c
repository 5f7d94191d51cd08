/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/candidates.h"

#include "../test.h"
#include "base/mem.h"

#include <string.h>

#define NODE_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define NODE_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct holdings holdings;
static struct slot_set set;

/* Slots 3 to 9, of which 4 and 5 are held. */
static void
begin(void)
{
    memset(&holdings, 0, sizeof(holdings));
    memset(&set, 0, sizeof(set));
    slot_set_add_range(&set, 3, 9);
    holdings.held[4] = 8;
    holdings.held[5] = 9;
}

TEST(counts_are_read_as_they_were_written)
{
    struct slot_tally *tally = mem_zalloc(CLUSTER_SLOTS * sizeof(*tally));
    struct candidate *candidate;
    struct buf text = { 0 };

    begin();
    tally[4] = (struct slot_tally){ .filters = 2, .items = 70 };
    tally[9] = (struct slot_tally){ .filters = 1 };
    tally[16383] = (struct slot_tally){ .filters = 5, .items = UINT64_MAX };
    slot_counts_write(tally, &text);
    candidate = candidate_new(NODE_A, &set, &holdings, buf_slice(&text));
    assert_non_null(candidate);
    assert_int_equal(slot_set_count(&candidate->has), 3); /* 4, 5 and 9 */
    assert_int_equal(candidate->slot[4].filters, 2);
    assert_int_equal(candidate->slot[4].items, 70);
    assert_int_equal(candidate->slot[4].epoch, 8);
    assert_int_equal(candidate->slot[9].filters, 1);
    assert_int_equal(candidate->slot[16383].items, UINT64_MAX);
    candidates_free(candidate);
    buf_free(&text);
    mem_free(tally);
}

TEST(malformed_counts_are_no_candidate)
{
    static const char *const texts[] = {
        "4", "4 1\n", "4 1 x\n", "16384 1 1\n", "4 1 1\n\n", "-1 1 1\n"
    };

    begin();
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_null(candidate_new(NODE_A, &set, &holdings, slice_of(texts[i])));
    }
}

TEST(a_row_has_the_slots_of_one_epoch)
{
    struct candidate *candidate;
    struct candidate_row row;
    struct slot_set left;

    begin();
    holdings.held[6] = 8;
    candidate = candidate_new(NODE_A, &set, &holdings,
                              slice_lit("4 1 10\n6 2 20\n9 4 40\n"));
    slot_set_add(&candidate->chosen, 9);
    left = candidate->has;
    assert_true(candidate_next_row(candidate, &left, &row));
    assert_string_equal(row.node, NODE_A);
    assert_int_equal(row.epoch, 8);
    assert_int_equal(row.filters, 3);
    assert_int_equal(row.items, 30);
    assert_int_equal(slot_set_count(&row.set), 2);
    assert_false(row.chosen);
    assert_true(candidate_next_row(candidate, &left, &row));
    assert_int_equal(row.epoch, 9);
    assert_int_equal(row.filters, 0);
    assert_true(candidate_next_row(candidate, &left, &row));
    assert_int_equal(row.epoch, 0);
    assert_true(row.chosen);
    assert_false(candidate_next_row(candidate, &left, &row));
    candidates_free(candidate);
}

TEST(the_copy_with_the_most_items_is_found)
{
    struct candidate *all;

    begin();
    all = candidate_new(NODE_A, &set, &holdings, slice_lit("4 1 90\n9 1 3\n"));
    all->next =
        candidate_new(NODE_B, &set, &holdings, slice_lit("4 1 91\n9 1 4\n"));
    assert_ptr_equal(candidates_copy(all, 9), all->next);
    assert_null(candidates_copy(all, 4)); /* it is held */
    assert_null(candidates_copy(all, 8));
    assert_ptr_equal(candidates_find(all, NODE_B), all->next);
    assert_null(candidates_find(all, "x"));
    candidates_free(all);
}
