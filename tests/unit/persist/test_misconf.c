/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which disk is blamed, and after what time.
 */
#include "persist/misconf.h"

#include "base/clock.h"
#include "persist/persist_state.h"

#include "../test.h"

#define SECOND UINT64_C(1000000000)

static uint64_t
ago(uint64_t ns)
{
    return clock_mono_ns() - ns;
}

static struct journal_status
waiting(void)
{
    return (struct journal_status){ .on = true, .appended = 9, .released = 5 };
}

TEST(a_failure_counts_from_misconf_after_on_and_with_0_at_once)
{
    struct persist_conf conf = { .misconf_after_ns = 0, .syncs = true };
    struct journal_status status = waiting();

    status.faulted = true;
    status.fault_mono_ns = ago(0);
    assert_true(misconf_is_stuck(&conf, &status));
    conf.misconf_after_ns = SECOND;
    assert_false(misconf_is_stuck(&conf, &status));
    status.fault_mono_ns = ago(30 * SECOND);
    assert_true(misconf_is_stuck(&conf, &status));
}

TEST(a_sync_or_write_under_way_counts_after_two_seconds_at_the_earliest)
{
    struct persist_conf conf = { .misconf_after_ns = 0, .syncs = true };
    struct journal_status status = waiting();

    status.unsynced_mono_ns = ago(SECOND);
    assert_false(misconf_is_stuck(&conf, &status));
    status.write_mono_ns = ago(30 * SECOND);
    assert_true(misconf_is_stuck(&conf, &status));
    status.write_mono_ns = 0;
    status.unsynced_mono_ns = ago(30 * SECOND);
    assert_true(misconf_is_stuck(&conf, &status));
    conf.misconf_after_ns = 60 * SECOND;
    assert_false(misconf_is_stuck(&conf, &status));
    status.unsynced_mono_ns = ago(90 * SECOND);
    assert_true(misconf_is_stuck(&conf, &status));
}

TEST(a_disk_that_no_reply_waits_for_is_not_blamed)
{
    struct persist_conf conf = { .misconf_after_ns = 0, .syncs = true };
    struct journal_status status = waiting();

    assert_false(misconf_is_stuck(&conf, &status));
    status.unsynced_mono_ns = ago(30 * SECOND);
    status.released = status.appended;
    assert_false(misconf_is_stuck(&conf, &status));
    status.released = 5;
    conf.syncs = false;
    assert_false(misconf_is_stuck(&conf, &status));
    conf.syncs = true;
    status.building = true;
    assert_false(misconf_is_stuck(&conf, &status));
}
