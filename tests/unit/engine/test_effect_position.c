/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Positions of what was written and read: who is told of it waits for them, and
 * for nothing while the journal is off.
 */
#include "base/metrics.h"
#include "dispatch_help.h"
#include "engine/effect.h"

static uint64_t
position_of(struct rig *rig, const char *name)
{
    return keyspace_position(rig->service.keyspace,
                             keyspace_stripe_of(hash_name(slice_of(name))));
}

/* One batch; what its replies wait for. */
static uint64_t
hold_of(struct rig *rig, const char *text)
{
    run_text(rig, text, true);
    return rig->worker->hold;
}

TEST(a_write_waits_for_itself_and_marks_its_stripes)
{
    struct rig *rig = rig_new();
    uint64_t one = hold_of(rig, "BF.ADD alpha a");
    uint64_t two;

    assert_true(one > 0);
    assert_int_equal(one, position_of(rig, "alpha"));
    assert_int_equal(one, rig->session.written);
    assert_int_equal(0, position_of(rig, "beta"));
    two = hold_of(rig, "BF.ADD beta a; BF.ADD gamma a; DEL alpha beta x");
    assert_true(two > position_of(rig, "gamma"));
    assert_true(position_of(rig, "gamma") > one);
    assert_int_equal(two, position_of(rig, "alpha"));
    assert_int_equal(two, position_of(rig, "beta"));
    assert_int_equal(two, position_of(rig, "x"));
    assert_int_equal(two, rig->session.written);
    assert_int_equal(two, journal_position(rig->journal));
    two = hold_of(rig, "RENAME gamma delta");
    assert_int_equal(two, position_of(rig, "gamma"));
    assert_int_equal(two, position_of(rig, "delta"));
    two = hold_of(rig, "MOVE delta 3");
    assert_int_equal(two, position_of(rig, "delta"));
    two = hold_of(rig, "FLUSHALL");
    assert_int_equal(two, position_of(rig, "never-used"));
    rig_free(rig);
}

TEST(a_read_waits_for_what_it_saw)
{
    struct rig *rig = rig_new();
    uint64_t alpha = hold_of(rig, "BF.ADD alpha a");
    uint64_t beta = hold_of(rig, "BF.ADD beta a; BF.ADD beta b");
    uint64_t written = rig->session.written;

    assert_true(beta > alpha);
    assert_int_equal(alpha, hold_of(rig, "BF.EXISTS alpha a"));
    assert_int_equal(alpha, hold_of(rig, "BF.MEXISTS alpha a b"));
    assert_int_equal(alpha, hold_of(rig, "BF.ADD alpha a")); /* is there */
    assert_int_equal(alpha, hold_of(rig, "BF.RESERVE alpha 0.1 10"));
    assert_int_equal(alpha, hold_of(rig, "EXISTS alpha gamma"));
    assert_int_equal(beta, hold_of(rig, "EXISTS alpha beta"));
    assert_int_equal(beta, hold_of(rig, "BF.EXISTS beta a; BF.CARD alpha"));
    assert_int_equal(0, hold_of(rig, "BF.EXISTS gamma a"));
    assert_int_equal(0, hold_of(rig, "PING; SELECT 0; CLIENT ID; INFO"));
    assert_int_equal(written, rig->session.written);
    rig_free(rig);
}

TEST(a_read_without_a_stripe_waits_for_everything)
{
    static const char *const reads[] = { "DBSIZE", "RANDOMKEY", "KEYS x*",
                                         "SCAN 0" };
    struct rig *rig = rig_new();
    uint64_t end = hold_of(rig, "BF.ADD alpha a; BF.ADD beta a");

    for (int i = 0; i < 4; i++) {
        char line[64];

        assert_int_equal(end, hold_of(rig, reads[i]));
        (void)snprintf(line, sizeof(line), "MULTI; %s; EXEC", reads[i]);
        assert_int_equal(end, hold_of(rig, line));
    }
    rig_free(rig);
}

/* Whether the command did anything else or not. */
TEST(a_removal_by_the_clock_is_waited_for)
{
    static const char *const commands[] = { "BF.RESET alpha", "DEL alpha",
                                            "MULTI; BF.RESET alpha; EXEC" };

    for (int i = 0; i < 3; i++) {
        struct rig *rig = rig_new();
        uint64_t before = hold_of(rig, "BF.ADD alpha a");
        int64_t changes = metric_sum(METRIC_CHANGES);
        uint64_t removed;

        end_time_of(rig, "alpha", 0);
        removed = hold_of(rig, commands[i]);
        assert_true(removed > before);
        assert_int_equal(removed, position_of(rig, "alpha"));
        assert_int_equal(removed, hold_of(rig, "EXISTS alpha"));
        assert_int_equal(changes, metric_sum(METRIC_CHANGES));
        rig_free(rig);
    }
}

TEST(an_exec_waits_for_what_it_saw_and_wrote)
{
    struct rig *rig = rig_new();
    uint64_t alpha = hold_of(rig, "BF.ADD alpha a");
    uint64_t beta = hold_of(rig, "BF.ADD beta a");
    uint64_t both;

    assert_int_equal(alpha, hold_of(rig, "MULTI; BF.EXISTS alpha a; EXEC"));
    assert_int_equal(beta,
                     hold_of(rig, "MULTI; BF.EXISTS alpha a; TTL beta; EXEC"));
    assert_int_equal(beta, hold_of(rig, "WATCH beta; MULTI; PING; EXEC"));
    both = hold_of(rig, "MULTI; BF.EXISTS alpha a; BF.ADD gamma a; EXEC");
    assert_true(both > beta);
    /* All stripes that it held count as changed. */
    assert_int_equal(both, position_of(rig, "alpha"));
    assert_int_equal(both, position_of(rig, "gamma"));
    rig_free(rig);
}

TEST(nothing_waits_while_the_journal_is_off)
{
    struct rig *rig = rig_new();

    rig->service.journal = NULL;
    assert_int_equal(0, hold_of(rig, "BF.ADD k a; BF.EXISTS k a; DBSIZE; "
                                     "MULTI; DEL k; EXEC; FLUSHALL"));
    assert_int_equal(0, position_of(rig, "k"));
    assert_int_equal(0, rig->session.written);
    assert_int_equal(0, journal_position(rig->journal));
    rig_free(rig);
}
