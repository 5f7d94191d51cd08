/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/capacity.h"

#include "../test.h"

static const struct capacity_wish THREE = { .filters = 1000,
                                            .filter_bytes = 999900,
                                            .primaries = 3,
                                            .replicas = 1,
                                            .sync_rate = 100000000,
                                            .move_rate = 50000000,
                                            .beside_bytes = 5000000 };

TEST(filters_spread_over_primaries_by_chance)
{
    struct capacity got;

    assert_true(capacity_compute(&THREE, &got));
    assert_int_equal(got.servers, 6);
    assert_int_equal(got.all_bytes, 1000000000);
    /* 333.3 on average, with a standard deviation of 14.9. */
    assert_int_equal(got.most_filters, 379);
    assert_int_equal(got.most_bytes, 379000000);
    assert_int_equal(got.server_bytes,
                     379000000 + 37900000 + 5000000 + CAPACITY_PROCESS_BYTES);
    assert_int_equal(got.syncing_bytes, got.server_bytes + 379000000);
    assert_true(got.sync_seconds > 3.78 && got.sync_seconds < 3.80);
}

TEST(a_primary_more_gets_its_share_of_slots)
{
    struct capacity_wish wish = THREE;
    struct capacity got;

    assert_true(capacity_compute(&wish, &got));
    assert_int_equal(got.move_slots, 4096);
    assert_int_equal(got.move_bytes, 250000000);
    assert_true(got.move_seconds == 5);
    wish.move_slots = 16384;
    assert_true(capacity_compute(&wish, &got));
    assert_int_equal(got.move_bytes, got.all_bytes);
}

TEST(one_filter_is_on_one_server)
{
    struct capacity_wish wish = THREE;
    struct capacity got;

    wish.filters = 1;
    assert_true(capacity_compute(&wish, &got));
    assert_int_equal(got.most_filters, 1);
    wish.primaries = 1;
    wish.filters = 1000;
    wish.replicas = 0;
    assert_true(capacity_compute(&wish, &got));
    assert_int_equal(got.most_filters, 1000);
    assert_int_equal(got.servers, 1);
}

TEST(too_many_bytes_are_refused)
{
    struct capacity_wish wish = THREE;
    struct capacity got = { .servers = 77 };

    wish.filters = UINT64_MAX / 1000000;
    assert_false(capacity_compute(&wish, &got));
    wish.filters = UINT64_MAX;
    assert_false(capacity_compute(&wish, &got));
    wish.filters = 1;
    wish.filter_bytes = UINT64_MAX;
    assert_false(capacity_compute(&wish, &got));
    assert_int_equal(got.servers, 77);
}
