/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs: what is done for many one-item commands at once is what they do one by
 * one. Any mixture of them is in test_dispatch.c.
 */
#include "command/run.h"

#include "dispatch_help.h"
#include "rig.h"

static void
expect(struct rig *rig, const char *text)
{
    if (!slice_equal(slice_of(text), buf_slice(&rig->out))) {
        fail_msg("got [%.*s] and not [%s]", (int)rig->out.len,
                 rig->out.len > 0 ? rig->out.data : "", text);
    }
}

/* What is created in a run is there for the rest of it. */
TEST(a_run_sees_what_it_did_itself)
{
    struct rig *rig = rig_new();
    char text[400];

    choose_names();
    (void)snprintf(text, sizeof(text),
                   "BF.ADD %s a; BF.ADD %s a; BF.ADD %s a; BF.ADD %s a; "
                   "BF.ADD %s b; BF.EXISTS %s a; BF.EXISTS %s b; "
                   "BF.EXISTS %s c",
                   names[0], names[1], names[0], names[1], names[0], names[0],
                   names[0], names[1]);
    run_text(rig, text, true);
    expect(rig, ":1\r\n:1\r\n:0\r\n:0\r\n:1\r\n:1\r\n:1\r\n:0\r\n");
    rig_free(rig);
}

TEST(a_long_pipeline_of_one_kind_is_done_in_order)
{
    struct rig *rig = rig_new();

    batch_begin(rig);
    for (int i = 0; i < BATCH_COMMANDS_MAX; i++) {
        batch_text(rig, i % 2 == 0 ? "BF.ADD k x" : "BF.ADD k y");
    }
    batch_run(rig);
    assert_int_equal(BATCH_COMMANDS_MAX * 4, rig->out.len);
    assert_memory_equal(":1\r\n:1\r\n:0\r\n", rig->out.data, 12);
    for (size_t at = 8; at < rig->out.len; at += 4) {
        assert_memory_equal(":0\r\n", rig->out.data + at, 4);
    }
    rig_free(rig);
}
