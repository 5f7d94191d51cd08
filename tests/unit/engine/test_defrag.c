/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How much of its time a server gives to moving filters. That it helps is
 * tested with jemalloc, in tests/scenario/test_memory.py.
 */
#include "engine/defrag.h"

#include "../test.h"
#include "conf/conf.h"

#include <string.h>

enum { MB = 1 << 20 };

static struct conf
usual(void)
{
    struct conf conf;

    memset(&conf, 0, sizeof(conf));
    conf.activedefrag = conf.bf_defrag_enabled = true;
    conf.active_defrag_ignore_bytes = 100 * MB;
    conf.active_defrag_threshold_lower = 10;
    conf.active_defrag_threshold_upper = 100;
    conf.active_defrag_cycle_min = 1;
    conf.active_defrag_cycle_max = 25;
    return conf;
}

TEST(the_effort_rises_from_threshold_to_threshold)
{
    struct conf conf = usual();
    const uint64_t used = (uint64_t)1000 * MB;

    assert_int_equal(defrag_effort(&conf, used, used / 100 * 9), 0);
    assert_int_equal(defrag_effort(&conf, used, used / 10), 1);
    assert_int_equal(defrag_effort(&conf, used, used / 100 * 55), 13);
    assert_int_equal(defrag_effort(&conf, used, used), 25);
    assert_int_equal(defrag_effort(&conf, used, 9 * used), 25);
    assert_int_equal(defrag_effort(&conf, 0, used), 0);
}

TEST(little_waste_is_ignored)
{
    struct conf conf = usual();

    assert_int_equal(defrag_effort(&conf, 10 * MB, 100 * MB - 1), 0);
    assert_int_equal(defrag_effort(&conf, 10 * MB, 100 * MB), 25);
}

TEST(both_switches_turn_it_off)
{
    struct conf conf = usual();

    conf.activedefrag = false;
    assert_int_equal(defrag_effort(&conf, MB, 200 * MB), 0);
    conf = usual();
    conf.bf_defrag_enabled = false;
    assert_int_equal(defrag_effort(&conf, MB, 200 * MB), 0);
}

/* The options' own limits allow these. */
TEST(thresholds_and_cycles_may_be_equal_or_reversed)
{
    struct conf conf = usual();

    conf.active_defrag_threshold_upper = 10;
    assert_int_equal(defrag_effort(&conf, 200 * MB, 100 * MB), 25);
    conf.active_defrag_threshold_upper = 5;
    assert_int_equal(defrag_effort(&conf, 200 * MB, 100 * MB), 25);
    conf = usual();
    conf.active_defrag_cycle_max = 1;
    conf.active_defrag_cycle_min = 7;
    assert_int_equal(defrag_effort(&conf, 200 * MB, 100 * MB), 7);
}
