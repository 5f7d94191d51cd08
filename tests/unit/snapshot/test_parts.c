/* SPDX-License-Identifier: BSD-3-Clause */
#include "../test.h"

#include "base/mem.h"
#include "journal/group.h"
#include "snapshot/parts.h"
#include "snapshot/snapshot_format.h"

static uint8_t payload[EFFECTS_HEAD_BYTES + 10];

/* A part of the text "0123456789". */
static enum parts_status
put(struct parts *parts, uint64_t position, uint64_t sequence, size_t from,
    size_t len, struct snapshot_effects *ret_group)
{
    put_u64(payload + EFFECTS_AT_POSITION, position);
    put_u64(payload + EFFECTS_AT_SEQUENCE, sequence);
    put_u64(payload + EFFECTS_AT_BYTES, 10);
    put_u64(payload + EFFECTS_AT_OFFSET, from);
    memcpy(payload + EFFECTS_HEAD_BYTES, &"0123456789"[from], len);
    return parts_put(parts, payload, EFFECTS_HEAD_BYTES + len, ret_group);
}

enum { GROUP = 10 + GROUP_SEAL_BYTES };

TEST(a_group_is_whole_when_all_its_parts_have_come)
{
    struct parts parts = { .position = 50, .sequence = 6 };
    struct snapshot_effects group;

    for (size_t step = 1; step <= 10; step++) {
        uint64_t position = 50 + (step - 1) * GROUP;

        for (size_t at = 0; at < 10; at += step) {
            size_t len = 10 - at < step ? 10 - at : step;

            assert_int_equal(at + len == 10 ? PARTS_WHOLE : PARTS_MORE,
                             put(&parts, position, 6 + step, at, len, &group));
            assert_int_equal(at + len == 10,
                             parts_end_at(&parts, position + GROUP, 6 + step));
        }
        assert_int_equal(position, group.position);
        assert_int_equal(6 + step, group.sequence);
        assert_true(slice_equal(group.commands, slice_lit("0123456789")));
    }
    parts_fini(&parts);
}

TEST(parts_that_do_not_follow_each_other_are_wrong)
{
    struct parts parts = { .position = 50, .sequence = 6 };
    struct snapshot_effects group;

    assert_int_equal(PARTS_WRONG, put(&parts, 51, 7, 0, 10, &group));
    assert_int_equal(PARTS_WRONG, put(&parts, 50, 8, 0, 10, &group));
    assert_int_equal(PARTS_WRONG, put(&parts, 50, 7, 1, 9, &group));
    assert_int_equal(PARTS_MORE, put(&parts, 50, 7, 0, 5, &group));
    assert_int_equal(PARTS_WRONG, put(&parts, 50, 7, 0, 5, &group));
    assert_int_equal(PARTS_WRONG, put(&parts, 50, 8, 5, 5, &group));
    assert_int_equal(PARTS_WRONG, put(&parts, 50 + GROUP, 8, 0, 10, &group));
    assert_false(parts_end_at(&parts, 50, 6));
    assert_int_equal(PARTS_WHOLE, put(&parts, 50, 7, 5, 5, &group));
    parts_fini(&parts);
}

TEST(groups_may_be_missing_if_gaps_are_allowed)
{
    struct parts parts = { .position = 50, .sequence = 6, .gaps = true };
    struct snapshot_effects group;

    assert_int_equal(PARTS_MORE, put(&parts, 90, 9, 0, 5, &group));
    parts_drop(&parts);
    assert_int_equal(PARTS_WHOLE, put(&parts, 990, 12, 0, 10, &group));
    assert_int_equal(PARTS_WRONG, put(&parts, 991, 13, 0, 10, &group));
    assert_int_equal(PARTS_WRONG, put(&parts, 9990, 12, 0, 10, &group));
    parts_fini(&parts);
}

TEST(without_memory_a_part_is_refused)
{
    struct parts parts = { .position = 50, .sequence = 6 };
    struct snapshot_effects group;

    mem_fail_at(1);
    assert_int_equal(PARTS_NOMEM, put(&parts, 50, 7, 0, 5, &group));
    assert_true(mem_fail_clear());
    parts_fini(&parts);
}
