/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What CLIENT PAUSE holds, how pauses add up, and how they end. With sockets:
 * tests/scenario/test_pause.py.
 */
#include "engine/pause.h"

#include "keyspace/walk.h"
#include "rig.h"

TEST(a_pause_of_writes_lets_reads_through)
{
    struct rig *rig = rig_new();

    pause_begin(&rig->service, PAUSE_BY_CLIENT, 1000000, PAUSE_WRITES);
    assert_true(pause_is_on(&rig->service));
    assert_true(pause_waits(&rig->service, CMD_WRITE));
    assert_true(pause_waits(&rig->service, CMD_MAY_REPLICATE));
    assert_false(pause_waits(&rig->service, CMD_READONLY));
    run_and_expect(rig, "BF.EXISTS k a; BF.EXISTS k b; PING",
                   ":0\r\n:0\r\n+PONG\r\n");
    pause_end(&rig->service, PAUSE_BY_CLIENT);
    assert_false(pause_is_on(&rig->service));
    run_and_expect(rig, "BF.ADD k a; BF.EXISTS k a", ":1\r\n:1\r\n");
    rig_free(rig);
}

TEST(pauses_add_up_to_the_longer_and_the_wider)
{
    struct rig *rig = rig_new();
    uint64_t until;

    pause_begin(&rig->service, PAUSE_BY_CLIENT, 1000000, PAUSE_WRITES);
    until = atomic_load(&rig->service.pause_until_ms);
    pause_begin(&rig->service, PAUSE_BY_CLIENT, 1, PAUSE_ALL);
    assert_int_equal(until, atomic_load(&rig->service.pause_until_ms));
    assert_true(pause_waits(&rig->service, 0));
    pause_begin(&rig->service, PAUSE_BY_CLIENT, 2000000, PAUSE_WRITES);
    assert_true(until < atomic_load(&rig->service.pause_until_ms));
    assert_true(pause_waits(&rig->service, 0));
    pause_begin(&rig->service, PAUSE_BY_CLIENT, UINT64_MAX, PAUSE_WRITES);
    assert_true(atomic_load(&rig->service.pause_until_ms) == UINT64_MAX);
    pause_end(&rig->service, PAUSE_BY_CLIENT);
    pause_begin(&rig->service, PAUSE_BY_CLIENT, 1000000, PAUSE_WRITES);
    assert_false(pause_waits(&rig->service, 0));
    rig_free(rig);
}

/* A handover that ends lets nothing through that an operator holds, and the
 * other way round. */
TEST(pauses_of_different_causes_leave_each_other_alone)
{
    struct rig *rig = rig_new();
    struct service *service = &rig->service;

    pause_begin(service, PAUSE_BY_CLIENT, 1000000, PAUSE_ALL);
    pause_begin(service, PAUSE_FOR_HANDOVER, UINT64_MAX, PAUSE_WRITES);
    assert_true(pause_waits(service, 0));
    pause_end(service, PAUSE_BY_CLIENT);
    assert_true(pause_is_on(service));
    assert_false(pause_waits(service, CMD_READONLY));
    assert_true(pause_waits(service, CMD_WRITE));
    pause_begin(service, PAUSE_FOR_END, UINT64_MAX, PAUSE_WRITES);
    pause_begin(service, PAUSE_BY_CLIENT, 1000000, PAUSE_ALL);
    pause_end(service, PAUSE_FOR_HANDOVER);
    pause_end(service, PAUSE_FOR_END);
    assert_true(pause_waits(service, 0));
    assert_true(atomic_load(&service->pause_until_ms) < UINT64_MAX);
    pause_end(service, PAUSE_BY_CLIENT);
    assert_false(pause_is_on(service));
    assert_true((observed_by(service) & OBSERVED_PAUSE) == 0);
    rig_free(rig);
}

TEST(a_pause_ends_by_the_clock_and_is_forgotten)
{
    struct rig *rig = rig_new();

    pause_begin(&rig->service, PAUSE_BY_CLIENT, 0, PAUSE_ALL);
    assert_false(pause_is_on(&rig->service));
    assert_true((observed_by(&rig->service) & OBSERVED_PAUSE) != 0);
    run_and_expect(rig, "BF.ADD k a", ":1\r\n");
    pause_forget(&rig->service);
    assert_true((observed_by(&rig->service) & OBSERVED_PAUSE) == 0);
    pause_begin(&rig->service, PAUSE_BY_CLIENT, 1000000, PAUSE_ALL);
    pause_forget(&rig->service);
    assert_true(pause_is_on(&rig->service));
    rig_free(rig);
}

/* FAILOVER and the end of a server must not lose a write of the operator's. */
TEST(the_operator_is_held_by_the_server_alone)
{
    struct rig *rig = rig_new();
    struct service *service = &rig->service;

    pause_begin(service, PAUSE_BY_CLIENT, 1000000, PAUSE_ALL);
    assert_false(pause_waits_operator(service, CMD_WRITE));
    pause_begin(service, PAUSE_FOR_HANDOVER, 1000000, PAUSE_WRITES);
    assert_true(pause_waits_operator(service, CMD_WRITE));
    assert_true(pause_waits_operator(service, CMD_MAY_REPLICATE));
    assert_false(pause_waits_operator(service, CMD_READONLY));
    pause_end(service, PAUSE_FOR_HANDOVER);
    assert_false(pause_waits_operator(service, CMD_WRITE));
    rig_free(rig);
}

/* Exactly the rows whose commands a walk has to follow are CMD_REMAKES. */
TEST(what_a_walk_copies_again_is_in_the_rows)
{
    static const struct {
        const char *command;
        bool marks;
    } cases[] = {
        { "BF.ADD a 1", false },
        { "BF.MADD a 2 3", false },
        { "BF.INSERT new ITEMS 1", false },
        { "PEXPIRE a 100000", false },
        { "PERSIST a", false },
        { "DEL b", false },
        { "COPY a b", true },
        { "BF.MERGE a b", true },
        { "BF.RESET a", true },
        { "RENAME a c", true },
        { "RENAMENX c a", true },
        { "MOVE a 3", true },
    };
    struct rig *rig = rig_new();
    struct walk *walk = walk_try_new(rig->service.keyspace);

    run_text(rig, "BF.ADD a 0; COPY a b", true);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *line = cases[i].command;
        const struct command *row =
            command_find((struct slice){ line, strcspn(line, " ") });

        walk_begin(walk, 0, NULL);
        run_text(rig, line, true);
        assert_int_equal(cases[i].marks, walk_has_again(walk));
        assert_int_equal(cases[i].marks, (row->flags & CMD_REMAKES) != 0);
        walk_end(walk);
    }
    assert_true((command_at(CMD_ID_RESTORE)->flags & CMD_REMAKES) != 0);
    walk_free(walk);
    rig_free(rig);
}

TEST(a_walk_that_lags_holds_only_what_it_has_to_follow)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.ADD a 0", true);
    pause_begin(&rig->service, PAUSE_FOR_WALK, UINT64_MAX, CMD_REMAKES);
    run_and_expect(rig, "BF.ADD a 1; BF.ADD a 1; BF.EXISTS a 1; DEL b; PING",
                   ":1\r\n:0\r\n:1\r\n:0\r\n+PONG\r\n");
    run_and_expect(rig, "MULTI; BF.ADD a 2; EXEC",
                   "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
    assert_true(expiry_may_remove(&rig->service));
    assert_true(pause_waits(&rig->service, command_at(CMD_ID_COPY)->flags));
    assert_true(pause_waits_operator(&rig->service, CMD_REMAKES));
    assert_false(pause_waits(&rig->service, CMD_WRITE));
    pause_end(&rig->service, PAUSE_FOR_WALK);
    run_text(rig, "MULTI; COPY a b", true);
    pause_begin(&rig->service, PAUSE_FOR_WALK, UINT64_MAX, CMD_REMAKES);
    batch_begin(rig);
    batch_text(rig, "EXEC");
    assert_int_equal(0, dispatch_batch(rig->worker, &rig->session, &rig->batch,
                                       0, UINT64_MAX, &rig->out));
    assert_int_equal(CONN_FOR_ROOM, rig->session.wait);
    pause_end(&rig->service, PAUSE_FOR_WALK);
    assert_int_equal(1, dispatch_batch(rig->worker, &rig->session, &rig->batch,
                                       0, UINT64_MAX, &rig->out));
    run_and_expect(rig, "BF.EXISTS b 2", ":1\r\n");
    rig_free(rig);
}

TEST(commands_that_end_a_pause_are_not_held_by_it)
{
    struct rig *rig = rig_new();

    pause_begin(&rig->service, PAUSE_BY_CLIENT, UINT64_MAX, PAUSE_ALL);
    run_and_expect(
        rig,
        "HELLO 2 junk; CLIENT SETNAME me; CLIENT SETINFO LIB-NAME x; "
        "CLIENT PAUSE 1 ALL; CLIENT UNPAUSE; PING",
        "-ERR Syntax error in HELLO option 'junk'\r\n+OK\r\n+OK\r\n+OK\r\n"
        "+OK\r\n+PONG\r\n");
    rig_free(rig);
}
