/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the memory is used for, over a service with some filters.
 */
#include "info/info_memory.h"

#include "../engine/rig.h"

TEST(ratios_of_nothing_are_nothing)
{
    assert_true(info_memory_ratio(1, 0) == 0);
    assert_true(info_memory_ratio(3, 2) == 1.5);
    assert_true(info_memory_percent(1, 4) == 25);
    assert_true(info_memory_percent(1, 0) == 0);
}

TEST(the_parts_of_the_memory_are_told_apart)
{
    struct rig *rig = rig_new();
    struct info_memory before, after;

    rig->service.started_bytes = mem_used();
    info_memory_get(&rig->service, &before);
    run_text(rig, "BF.RESERVE a 0.01 100000; BF.RESERVE b 0.01 100000", true);
    info_memory_get(&rig->service, &after);
    assert_int_equal(before.keys, 0);
    assert_int_equal(after.keys, 2);
    assert_true(after.dataset >= before.dataset + 200000);
    assert_true(after.used >= before.used + 200000);
    assert_true(after.peak >= after.used);
    assert_true(after.dataset < after.used); /* the rig is no filter */
    assert_true(after.started <= after.used);
    assert_true(after.resident > 0);
    run_text(rig, "FLUSHALL", true);
    info_memory_get(&rig->service, &before);
    assert_int_equal(before.keys, 0);
    assert_true(before.peak >= after.used);
    rig_free(rig);
}

TEST(the_section_says_what_is_used_and_what_is_not_known_is_left_out)
{
    struct rig *rig = rig_new();
    struct buf text = { 0 };
    char line[64];

    rig->service.started_bytes = 12345;
    info_memory_write(&rig->service, &text);
    buf_append(&text, "", 1);
    (void)snprintf(line, sizeof(line), "used_memory_startup:12345\r\n");
    assert_non_null(strstr(text.data, line));
    assert_non_null(strstr(text.data, "mem_allocator:libc\r\n"));
    assert_null(strstr(text.data, "allocator_active"));
    buf_free(&text);
    rig_free(rig);
}
