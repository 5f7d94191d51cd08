/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHUTDOWN as the server layer hears of it, and what its client is told.
 */
#include "../engine/rig.h"

struct asked {
    unsigned calls, flags;
};

static void
note_shutdown(void *ctx, unsigned flags)
{
    struct asked *asked = ctx;

    asked->calls++;
    asked->flags = flags;
}

static uint32_t
run_once(struct rig *rig)
{
    rig->out.len = 0;
    return dispatch_batch(rig->worker, &rig->session, &rig->batch, 0,
                          UINT64_MAX, &rig->out);
}

TEST(shutdown_asks_once_with_its_flags_and_waits)
{
    static const struct {
        const char *text;
        unsigned flags;
    } cases[] = {
        { "SHUTDOWN", 0 },
        { "SHUTDOWN SAVE", SHUTDOWN_SAVE },
        { "shutdown nosave", SHUTDOWN_NOSAVE },
        { "SHUTDOWN NOW FORCE", SHUTDOWN_NOW | SHUTDOWN_FORCE },
        { "SHUTDOWN SAVE SAVE NOW", SHUTDOWN_SAVE | SHUTDOWN_NOW },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = rig_new();
        struct asked asked = { 0 };

        rig->service.shutdown = note_shutdown;
        rig->service.ctx = &asked;
        batch_begin(rig);
        batch_text(rig, cases[i].text);
        for (int n = 0; n < 3; n++) {
            assert_int_equal(0, run_once(rig));
            assert_true((rig->session.wait != CONN_RUNS));
            assert_int_equal(0, rig->out.len);
            assert_int_equal(1, asked.calls);
            assert_int_equal(cases[i].flags, asked.flags);
        }
        rig_free(rig);
    }
}

TEST(a_shutdown_that_did_not_happen_is_told)
{
    static const char why[] = "-ERR Errors trying to SHUTDOWN. Check logs.\r\n";
    struct rig *rig = rig_new();
    struct asked asked = { 0 };

    rig->service.shutdown = note_shutdown;
    rig->service.ctx = &asked;
    rig->service.shutdown_failures = 7; /* earlier ones */
    batch_begin(rig);
    batch_text(rig, "SHUTDOWN");
    assert_int_equal(0, run_once(rig));
    rig->service.shutdown_failures++;
    assert_int_equal(1, run_once(rig));
    assert_true(slice_equal(slice_lit(why), buf_slice(&rig->out)));
    assert_int_equal(0, run_once(rig));
    assert_int_equal(2, asked.calls);
    rig_free(rig);
}

TEST(a_wrong_shutdown_asks_for_nothing)
{
    static const char *const wrong[] = { "SHUTDOWN SAVE NOSAVE",
                                         "SHUTDOWN ABORT NOW", "SHUTDOWN ABORT",
                                         "SHUTDOWN soon" };
    struct rig *rig = rig_new();
    struct asked asked = { 0 };

    rig->service.shutdown = note_shutdown;
    rig->service.ctx = &asked;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        batch_begin(rig);
        batch_text(rig, wrong[i]);
        assert_int_equal(1, run_once(rig));
        assert_int_equal('-', rig->out.data[0]);
    }
    assert_int_equal(0, asked.calls);
    rig_free(rig);
}
