/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Answers of the neighbour, in time and late.
 */
#include "cluster/lease.h"

#include "../test.h"

#define MS UINT64_C(1000000)

static struct lease
begin(void)
{
    return (struct lease){ .poll_ns = 100 * MS, .length_ns = 1000 * MS };
}

static uint64_t
answered_ms(struct lease *lease, uint64_t sent_ms, uint64_t heard_ms)
{
    lease_answered(lease, sent_ms * MS, heard_ms * MS);
    return lease->until_ns / MS;
}

TEST(the_second_answer_begins_a_lease_from_when_it_was_asked_for)
{
    struct lease lease = begin();

    assert_int_equal(answered_ms(&lease, 1000, 1001), 0);
    assert_int_equal(answered_ms(&lease, 1100, 1150), 2100);
    assert_int_equal(answered_ms(&lease, 1200, 1300), 2200);
}

TEST(the_answer_after_a_silence_renews_nothing)
{
    struct lease lease = begin();

    (void)answered_ms(&lease, 1000, 1001);
    assert_int_equal(answered_ms(&lease, 1100, 1101), 2100);
    assert_int_equal(answered_ms(&lease, 1200, 1301), 2100); /* took 101 ms */
    assert_int_equal(answered_ms(&lease, 1301, 1302), 2100);
    assert_int_equal(answered_ms(&lease, 1320, 1322),
                     2100); /* 19 ms after it */
    assert_int_equal(answered_ms(&lease, 1321, 1323), 2321);
}

/* Nothing was asked meanwhile, so no question took long. */
TEST(the_answer_after_a_stop_of_this_server_renews_nothing)
{
    struct lease lease = begin();

    (void)answered_ms(&lease, 1000, 1001);
    assert_int_equal(answered_ms(&lease, 1100, 1101), 2100);
    assert_int_equal(answered_ms(&lease, 2102, 2103), 2100);
    assert_int_equal(answered_ms(&lease, 2122, 2123), 2100);
    assert_int_equal(answered_ms(&lease, 2200, 2201), 3200);
    assert_int_equal(answered_ms(&lease, 3201, 3202), 4201); /* no stop */
    assert_int_equal(answered_ms(&lease, 9000, 9001), 4201);
    assert_int_equal(answered_ms(&lease, 19000, 19001), 4201); /* another */
    assert_int_equal(answered_ms(&lease, 19100, 19101), 20100);
}

TEST(a_lease_ends_with_the_connection_and_begins_like_the_first)
{
    struct lease lease = begin();

    (void)answered_ms(&lease, 1000, 1001);
    (void)answered_ms(&lease, 1100, 1101);
    lease_ended(&lease);
    assert_int_equal(lease.until_ns, 0);
    assert_int_equal(answered_ms(&lease, 1300, 1301), 0);
    assert_int_equal(answered_ms(&lease, 1400, 1401), 2400);
}

TEST(an_older_question_does_not_shorten_it)
{
    struct lease lease = begin();

    (void)answered_ms(&lease, 1000, 1001);
    assert_int_equal(answered_ms(&lease, 1200, 1201), 2200);
    assert_int_equal(answered_ms(&lease, 1150, 1202), 2200);
}

TEST(a_lease_is_a_quarter_of_the_node_timeout_and_at_most_a_second)
{
    assert_int_equal(lease_length_of(2000), 500 * MS);
    assert_int_equal(lease_length_of(15000), 1000 * MS);
}
