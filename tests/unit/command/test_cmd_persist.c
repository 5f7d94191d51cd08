/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What SAVE and its like answer where there is nothing that could save. The
 * rest needs a disk: tests/scenario/test_dump.py.
 */
#include "../engine/rig.h"

/* Runs commands one by one and compares the reply of the last. */
static void
expect_last(struct rig *rig, const char *commands, const char *reply)
{
    run_text(rig, commands, false);
    expect_replies(rig, reply);
}

TEST(without_persistence_each_says_so)
{
    static const char *const commands[] = { "SAVE", "BGSAVE", "BGSAVE SCHEDULE",
                                            "LASTSAVE", "BGREWRITEAOF" };
    struct rig *rig = rig_new();

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        expect_last(rig, commands[i],
                    "-ERR this server has no persistence\r\n");
    }
    rig_free(rig);
}

TEST(waitaof_without_a_journal_waits_for_nothing)
{
    struct rig *rig = rig_new();

    set_option(rig, "appendonly", "no");
    expect_last(rig, "WAITAOF 0 0 0", "*2\r\n:0\r\n:0\r\n");
    expect_last(
        rig, "WAITAOF 1 0 0",
        "-ERR WAITAOF cannot be used when numlocal is set but appendonly is "
        "disabled.\r\n");
    expect_last(rig, "MULTI; WAITAOF 0 5 0; EXEC", "*1\r\n*2\r\n:0\r\n:0\r\n");
    rig_free(rig);
}

TEST(waitaof_for_replicas_waits_for_its_timeout)
{
    struct rig *rig = rig_new();

    batch_begin(rig);
    batch_text(rig, "WAITAOF 0 1 0");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(0,
                         dispatch_batch(rig->worker, &rig->session, &rig->batch,
                                        0, UINT64_MAX, &rig->out));
        assert_true((rig->session.wait != CONN_RUNS));
        assert_int_equal(0, rig->out.len);
    }
    rig_free(rig);
}
