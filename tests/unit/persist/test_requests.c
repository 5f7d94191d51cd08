/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tickets: asked, begun, settled and published, in this order.
 */
#include "../test.h"

#include "persist/requests.h"

TEST(outcome_is_told_and_not_only_settled)
{
    struct requests requests = { 0 };
    uint64_t ticket = requests_ask(&requests);

    assert_true(requests_are_due(&requests));
    requests_begin(&requests);
    requests_settle(&requests, false);
    assert_false(requests_are_due(&requests));
    assert_int_equal(requests_outcome(&requests, ticket), PERSIST_PENDING);
    assert_true(requests_publish(&requests));
    assert_int_equal(requests_outcome(&requests, ticket), PERSIST_FAILED);
    assert_false(requests_publish(&requests));
}

TEST(one_run_answers_all_requests_before_it)
{
    struct requests requests = { 0 };
    uint64_t first = requests_ask(&requests);
    uint64_t second = requests_ask(&requests);
    uint64_t third;

    requests_begin(&requests);
    third = requests_ask(&requests);
    requests_settle(&requests, true);
    assert_true(requests_publish(&requests));
    assert_int_equal(requests_outcome(&requests, first), PERSIST_DONE);
    assert_int_equal(requests_outcome(&requests, second), PERSIST_DONE);
    assert_int_equal(requests_outcome(&requests, third), PERSIST_PENDING);
    assert_true(requests_are_due(&requests));

    requests_begin(&requests);
    requests_settle(&requests, false);
    assert_true(requests_publish(&requests));
    assert_int_equal(requests_outcome(&requests, second), PERSIST_DONE);
    assert_int_equal(requests_outcome(&requests, third), PERSIST_FAILED);
}

/* A run without a request succeeds where the last one failed. */
TEST(a_later_success_counts_for_failed_requests)
{
    struct requests requests = { 0 };
    uint64_t ticket = requests_ask(&requests);

    requests_begin(&requests);
    requests_settle(&requests, false);
    assert_true(requests_publish(&requests));
    requests_begin(&requests);
    requests_settle(&requests, true);
    assert_true(requests_publish(&requests));
    assert_int_equal(requests_outcome(&requests, ticket), PERSIST_DONE);
}
