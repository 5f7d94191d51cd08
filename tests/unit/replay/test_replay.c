/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Groups that are repeated, and groups that must not be. That a whole history
 * gives the same bytes is in test_replay_model.c.
 */
#include "replay/replay.h"

#include "../engine/group_help.h"
#include "base/metrics.h"
#include "keyspace/gate.h"

static bool
replay_text(struct rig *rig, const char *text, char *ret_reason, size_t size)
{
    struct replay *replay = replay_new(&rig->service);
    struct buf group = { 0 };
    bool done;

    encode(&group, text);
    done = replay_group(replay, buf_slice(&group), ret_reason, size);
    buf_free(&group);
    replay_free(replay);
    return done;
}

static void
expect_replayed(struct rig *rig, const char *text)
{
    char reason[256] = "";

    if (!replay_text(rig, text, reason, sizeof(reason))) {
        fail_msg("[%s]: %s", text, reason);
    }
}

static void
expect_refused(struct rig *rig, const char *text, const char *expected)
{
    char reason[256] = "";

    assert_false(replay_text(rig, text, reason, sizeof(reason)));
    assert_string_equal(expected, reason);
}

static struct rig *
loading_rig(void)
{
    struct rig *rig = rig_new();

    rig->service.journal = NULL;
    return rig;
}

TEST(commands_are_repeated_in_their_databases)
{
    struct rig *rig = loading_rig();

    expect_replayed(rig,
                    "SELECT 0; " MAKE(
                        "k", "77") " ITEMS a b; BF.ADD k c; "
                                   "MULTI; SELECT 3; " MAKE(
                                       "l", "78") "; EXEC; "
                                                  "PEXPIREAT l 99000000000000");
    assert_int_equal(77, incarnation_of(rig, "k"));
    run_and_expect(
        rig, "BF.CARD k; EXISTS l; SELECT 3; PEXPIRETIME l; BF.INFO l SIZE",
        ":3\r\n:0\r\n+OK\r\n:99000000000000\r\n:200\r\n");
    rig_free(rig);
}

TEST(a_creation_replaces_what_the_original_did_not_see)
{
    struct rig *rig = loading_rig();

    expect_replayed(rig, MAKE("k", "1") " ITEMS a; PEXPIREAT k 5; " MAKE(
                             "k", "2") " ITEMS b");
    assert_int_equal(2, incarnation_of(rig, "k"));
    run_and_expect(rig, "BF.CARD k; TTL k; BF.EXISTS k b",
                   ":1\r\n:-1\r\n:1\r\n");
    rig_free(rig);
}

TEST(the_clock_ends_nothing)
{
    struct rig *rig = loading_rig();

    expect_replayed(rig, MAKE("k", "1") "; PEXPIREAT k 5; BF.ADD k a; "
                                        "PERSIST k; BF.ADD k b");
    run_and_expect(rig, "BF.CARD k; TTL k", ":2\r\n:-1\r\n");
    rig_free(rig);
}

TEST(no_limit_holds_and_nothing_is_counted)
{
    struct rig *rig = loading_rig();
    int64_t commands = metric_sum(METRIC_COMMANDS);

    set_option(rig, "maxmemory", "1");
    set_option(rig, "bf.bloom-memory-usage-limit", "1");
    atomic_store(&rig->service.loading, true);
    expect_replayed(rig, MAKE("k", "1") "; BF.ADD k a; BF.MADD k b c; DEL x");
    assert_int_equal(commands, metric_sum(METRIC_COMMANDS));
    atomic_store(&rig->service.loading, false);
    run_and_expect(rig, "BF.CARD k", ":3\r\n");
    rig_free(rig);
}

/* Whoever held the gate and all locks would wait for ever. */
TEST(neither_gate_nor_locks_are_taken)
{
    struct rig *rig = rig_new_threads(2);
    struct keyspace *ks = rig->service.keyspace;

    rig->service.journal = NULL;
    gate_enter(keyspace_gate(ks), 1);
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        keyspace_lock(ks, 1, i, true);
    }
    expect_replayed(rig, MAKE("k", "1") "; BF.ADD k a; DEL k x; FLUSHALL; "
                                        "SWAPDB 0 1; FLUSHDB");
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        keyspace_unlock(ks, 1, i);
    }
    gate_leave(keyspace_gate(ks), 1);
    rig_free(rig);
}

TEST(the_database_stays_from_group_to_group)
{
    struct rig *rig = loading_rig();
    struct replay *replay = replay_new(&rig->service);
    struct buf group = { 0 };
    char reason[64];

    encode(&group, "SELECT 2");
    assert_true(
        replay_group(replay, buf_slice(&group), reason, sizeof(reason)));
    group.len = 0;
    encode(&group, MAKE("k", "1"));
    assert_true(
        replay_group(replay, buf_slice(&group), reason, sizeof(reason)));
    run_and_expect(rig, "EXISTS k; SELECT 2; EXISTS k", ":0\r\n+OK\r\n:1\r\n");
    buf_free(&group);
    replay_free(replay);
    rig_free(rig);
}

TEST(a_group_may_be_larger_than_any_batch)
{
    enum { COMMANDS = 1000, ITEMS = 100000 };
    struct rig *rig = loading_rig();
    struct replay *replay = replay_new(&rig->service);
    struct buf group = { 0 };
    char reason[64] = "";

    encode(&group, MAKE("k", "1"));
    for (int i = 0; i < COMMANDS; i++) {
        char line[64];

        (void)snprintf(line, sizeof(line), "BF.ADD k item%d", i);
        encode(&group, line);
    }
    buf_printf(&group, "*%d\r\n$7\r\nBF.MADD\r\n$1\r\nk\r\n", ITEMS + 2);
    for (int i = 0; i < ITEMS; i++) {
        buf_printf(&group, "$6\r\n%06d\r\n", i);
    }
    assert_true(
        replay_group(replay, buf_slice(&group), reason, sizeof(reason)));
    run_and_expect(rig, "BF.EXISTS k item999; BF.EXISTS k 099999",
                   ":1\r\n:1\r\n");
    buf_free(&group);
    replay_free(replay);
    rig_free(rig);
}

TEST(replay_refuses_commands_that_are_no_effects)
{
    static const char *const cases[][2] = {
        { "BF.EXISTS k a", "the command at byte 0 of the group is neither a "
                           "write nor SELECT" },
        { "SELECT 1; GET k", "the command at byte 23 of the group is neither "
                             "a write nor SELECT" },
        { "SHUTDOWN", "the command at byte 0 of the group is neither a write "
                      "nor SELECT" },
        { "DISCARD", "the command at byte 0 of the group is neither a write "
                     "nor SELECT" },
        { "SELECT 77", "select failed: ERR DB index is out of range" },
        { "BF.ADD k a", "BF.ADD failed: ERR not found" },
        { "BF.MADD k a b", "BF.MADD failed: ERR not found" },
        { "BF.INSERT k", "BF.INSERT failed: ERR not found" },
        { "BF.RESERVE k 0.1 10", "BF.RESERVE failed: ERR not found" },
        { "DEL", "del failed: ERR wrong number of arguments for 'del' "
                 "command" },
        { MAKE("k", "0"), "BF.INSERT failed: ERR unknown argument received" },
        { "BF.INSERT k CAPACITY 1 NONSCALING INCARNATION 1 ITEMS a b",
          "BF.INSERT failed: ERR non scaling filter is full" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = loading_rig();

        expect_refused(rig, cases[i][0], cases[i][1]);
        rig_free(rig);
    }
}

TEST(bytes_that_are_no_command_are_refused)
{
    static const char *const cases[] = {
        "x",
        "*1\r\n$4\r\nPIN",
        "*0\r\n",
        "\r\n",
        "FLUSHALL\r\n",
        "*01\r\n$8\r\nFLUSHALL\r\n",
        "*1\r\n$8\r\nFLUSHALL",
        "*4294967295\r\n$8\r\nFLUSHALL\r\n",
        "*99999999999999999999\r\n$8\r\nFLUSHALL\r\n",
        "*1\r\n$99999999999999999999\r\nFLUSHALL\r\n",
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = loading_rig();
        struct replay *replay = replay_new(&rig->service);
        char reason[64] = "";

        assert_false(
            replay_group(replay, slice_of(cases[i]), reason, sizeof(reason)));
        assert_string_equal("no command at byte 0 of the group", reason);
        replay_free(replay);
        rig_free(rig);
    }
}

/* What came before is there, and the next group finds a clean slate. */
TEST(after_a_refusal_another_group_may_follow)
{
    struct rig *rig = loading_rig();
    struct replay *replay = replay_new(&rig->service);
    struct buf bad = { 0 };
    struct buf good = { 0 };
    char reason[64];

    encode(&bad, MAKE("k", "1") "; BF.ADD x a; BF.ADD k b");
    encode(&good, "BF.ADD k c");
    assert_false(replay_group(replay, buf_slice(&bad), reason, sizeof(reason)));
    assert_true(replay_group(replay, buf_slice(&good), reason, sizeof(reason)));
    buf_free(&bad);
    buf_free(&good);
    replay_free(replay);
    rig_free(rig);
}
