/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The limits of filters follow the options, and do not hold for replays.
 */
#include "engine/service.h"

#include "rig.h"

TEST(limits_of_filters_follow_the_options)
{
    struct rig *rig = rig_new();

    set_option(rig, "maxmemory", "123mb");
    set_option(rig, "bf.bloom-memory-usage-limit", "4096");
    assert_int_equal(123 << 20, rig->service.memory.maxmemory_bytes);
    set_option(rig, "maxmemory", "0");
    assert_int_equal(0, rig->service.memory.maxmemory_bytes);
    run_text(rig, "BF.RESERVE k 0.01 1000; BF.RESERVE k 0.01 10000", true);
    assert_true(slice_equal(slice_lit("+OK\r\n-ERR item exists\r\n"),
                            buf_slice(&rig->out)));
    run_text(rig, "BF.RESERVE large 0.01 10000", true);
    assert_true(slice_equal(
        slice_lit("-ERR operation exceeds bloom object memory limit\r\n"),
        buf_slice(&rig->out)));
    set_option(rig, "bf.bloom-memory-usage-limit", "1mb");
    run_text(rig, "BF.RESERVE large 0.01 10000", true);
    assert_true(slice_equal(slice_lit("+OK\r\n"), buf_slice(&rig->out)));
    rig_free(rig);
}

TEST(replays_know_no_limit_of_filters)
{
    struct rig *rig = rig_new();

    set_option(rig, "bf.bloom-memory-usage-limit", "1024");
    run_text(rig, "BF.RESERVE large 0.01 10000", true);
    assert_int_equal('-', rig->out.data[0]);
    rig->session.obey = true;
    run_text(rig, "BF.INSERT large CAPACITY 10000 INCARNATION 1", true);
    assert_int_equal('*', rig->out.data[0]);
    rig_free(rig);
}
