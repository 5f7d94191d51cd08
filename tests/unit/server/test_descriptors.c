/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How descriptors are shared, from few to plenty.
 */
#include "server/descriptors.h"

#include "../test.h"

enum { OWN = 40 };

static struct conf
conf_of(int64_t clients, int64_t reserved, int64_t replicas)
{
    struct conf conf;

    memset(&conf, 0, sizeof(conf));
    conf.maxclients = clients;
    conf.reserved_clients = reserved;
    conf.max_replicas = replicas;
    return conf;
}

static uint64_t
sum(const struct conf *conf)
{
    return (uint64_t)(conf->maxclients + conf->reserved_clients +
                      conf->max_replicas);
}

TEST(where_there_are_enough_nothing_is_lowered)
{
    struct conf conf = conf_of(100, 8, 32);

    assert_true(descriptors_share(&conf, OWN, OWN + 140));
    assert_int_equal(conf.maxclients, 100);
    assert_int_equal(conf.reserved_clients, 8);
    assert_int_equal(conf.max_replicas, 32);
}

TEST(clients_are_the_first_to_be_fewer)
{
    struct conf conf = conf_of(100, 8, 32);

    assert_true(descriptors_share(&conf, OWN, OWN + 139));
    assert_int_equal(conf.maxclients, 99);
    assert_true(descriptors_share(&conf, OWN, OWN + 80));
    assert_int_equal(conf.maxclients, 40);
    assert_int_equal(conf.max_replicas, 32);
}

TEST(together_they_never_have_more_than_the_rest_and_clients_at_least_half)
{
    for (uint64_t limit = 0; limit < 300; limit++) {
        struct conf conf = conf_of(10000, 8, 32);
        bool enough = descriptors_share(&conf, OWN, limit);
        uint64_t left = enough ? limit - OWN : DESCRIPTORS_CLIENTS_MIN;

        assert_int_equal(enough, limit >= OWN + DESCRIPTORS_CLIENTS_MIN);
        assert_true(sum(&conf) <= left);
        assert_true((uint64_t)conf.maxclients >= left / 2);
        assert_true(conf.maxclients >= 1);
    }
}

TEST(limits_that_are_off_stay_off)
{
    struct conf conf = conf_of(10000, 0, 0);

    assert_true(descriptors_share(&conf, OWN, OWN + 4));
    assert_int_equal(conf.reserved_clients, 0);
    assert_int_equal(conf.max_replicas, 0);
    assert_int_equal(conf.maxclients, 4);
}

TEST(the_server_itself_needs_more_with_more_loops_and_addresses)
{
    char none[] = "";
    char two[] = " 127.0.0.1   -::1 ";
    struct conf conf = conf_of(100, 8, 32);
    uint64_t least;

    conf.bind = conf.admin_bind = none;
    least = descriptors_own(&conf, 1);
    assert_in_range(least, 30, 60); /* some are inherited */
    assert_int_equal(descriptors_own(&conf, 3), least + 8);
    conf.bind = two;
    assert_int_equal(descriptors_own(&conf, 1), least + 2);
    conf.admin_bind = two;
    assert_int_equal(descriptors_own(&conf, 1), least + 2);
    conf.admin_port = 1;
    assert_int_equal(descriptors_own(&conf, 1), least + 4);
    conf.metrics_bind = two;
    conf.metrics_max_clients = 16;
    assert_int_equal(descriptors_own(&conf, 1), least + 4);
    conf.metrics_port = 1;
    assert_int_equal(descriptors_own(&conf, 1), least + 22);
}
