/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the state of the server refuses, by row, alone and in pipelines, queued
 * and in EXEC; in Redis's order; and nothing of it for who obeys. What is
 * wrong with requests themselves is in test_dispatch.c.
 */
#include "engine/admit.h"

#include "base/clock.h"
#include "engine/observe.h"
#include "engine/role.h"

#include "rig.h"

#define OOM     "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
#define ENDING  "-ERR the server is shutting down\r\n"
#define LOADING "-LOADING Bloomery is loading the dataset in memory\r\n"
#define ABORT   "-EXECABORT Transaction discarded because of: "

TEST(writes_can_be_refused_and_reads_go_on)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.ADD k a", true);
    atomic_store(&rig->service.write_refusal, ERR_ENDING);
    run_and_expect(rig,
                   "BF.ADD k a; BF.ADD k b; BF.EXISTS k a; BF.MADD k b; DEL k; "
                   "FLUSHALL; BF.CARD k; PING; DBSIZE; CLIENT ID",
                   ENDING ENDING ":1\r\n" ENDING ENDING ENDING
                                 ":1\r\n+PONG\r\n:1\r\n:0\r\n");
    atomic_store(&rig->service.ping_refusal, ERR_ENDING);
    run_and_expect(rig, "PING; ECHO x; BF.EXISTS k a",
                   ENDING "$1\r\nx\r\n:1\r\n");
    atomic_store(&rig->service.write_refusal, OK);
    atomic_store(&rig->service.ping_refusal, OK);
    run_and_expect(rig, "BF.ADD k b; PING", ":1\r\n+PONG\r\n");
    rig_free(rig);
}

TEST(a_refused_write_in_a_transaction_aborts_it)
{
    struct rig *rig = rig_new();

    atomic_store(&rig->service.write_refusal, ERR_ENDING);
    run_and_expect(
        rig, "MULTI; BF.EXISTS k a; BF.ADD k a; EXEC",
        "+OK\r\n+QUEUED\r\n" ENDING
        "-EXECABORT Transaction discarded because of previous errors.\r\n");
    run_and_expect(rig, "MULTI; BF.EXISTS k a; EXEC",
                   "+OK\r\n+QUEUED\r\n*1\r\n:0\r\n");
    atomic_store(&rig->service.write_refusal, OK);
    run_text(rig, "MULTI; BF.ADD k a", true);
    atomic_store(&rig->service.write_refusal, ERR_ENDING);
    run_and_expect(rig, "EXEC; BF.CARD k",
                   ABORT "the server is shutting down\r\n:0\r\n");
    rig_free(rig);
}

TEST(while_loading_only_what_needs_no_key_is_served)
{
    struct rig *rig = rig_new();

    atomic_store(&rig->service.loading, true);
    run_and_expect(
        rig,
        "BF.ADD k a; BF.EXISTS k a; PING; DBSIZE; FLUSHALL; KEYS *; WATCH k",
        LOADING LOADING LOADING LOADING LOADING LOADING LOADING);
    run_and_expect(rig, "SELECT 1; CLIENT ID; MULTI; BF.EXISTS k a; DISCARD",
                   "+OK\r\n:0\r\n+OK\r\n" LOADING "+OK\r\n");
    run_and_expect(rig, "MULTI; CLIENT ID; EXEC",
                   "+OK\r\n+QUEUED\r\n*1\r\n:0\r\n");
    atomic_store(&rig->service.loading, false);
    run_and_expect(rig, "DBSIZE; BF.ADD k a; PING", ":0\r\n:1\r\n+PONG\r\n");
    rig_free(rig);
}

TEST(while_loading_no_row_that_takes_stripes_runs)
{
    struct rig *rig = rig_new();

    atomic_store(&rig->service.loading, true);
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        const struct command *command = &command_rows[id];
        struct slice argv[] = { slice_of(command->name), slice_lit("k") };
        struct request req = { .worker = rig->worker,
                               .service = &rig->service,
                               .session = &rig->session,
                               .command = command,
                               .argv = argv,
                               .argc = 2 };

        if (command->lock == LOCK_KEYS || command->lock == LOCK_WALK ||
            (command->flags & (CMD_WRITE | CMD_READONLY)) != 0) {
            assert_int_equal(ERR_LOADING, admit_now(&req));
        }
    }
    rig_free(rig);
}

TEST(memory_is_named_before_the_disk_and_the_disk_before_loading)
{
    struct rig *rig = rig_new();

    atomic_store(&rig->service.write_refusal, ERR_ENDING);
    set_option(rig, "maxmemory", "1");
    run_and_expect(rig, "BF.ADD k a; DEL k", OOM ENDING);
    /* What a load takes is for nobody else to make up for. */
    atomic_store(&rig->service.loading, true);
    run_and_expect(rig, "BF.ADD k a; DEL k; BF.CARD k", ENDING ENDING LOADING);
    set_option(rig, "maxmemory", "0");
    run_and_expect(rig, "BF.ADD k a; BF.CARD k", ENDING LOADING);
    rig_free(rig);
}

/* Judges a command on the key `k`. */
static enum err
judge(struct rig *rig, enum command_id id)
{
    const struct slice argv[] = { slice_lit("any"), slice_lit("k"),
                                  slice_lit("a") };
    const struct request req = { .worker = rig->worker,
                                 .service = &rig->service,
                                 .session = &rig->session,
                                 .command = &command_rows[id],
                                 .argv = argv,
                                 .argc = 3 };

    return admit_now(&req);
}

TEST(writes_wait_for_subscribers_of_filters_that_lag)
{
    struct rig *rig = rig_new();
    _Atomic uint64_t limit = 4096;
    struct inboxes *inboxes = inboxes_new(1, &limit), *own;
    struct notice_list list = { 0 };
    struct notice *notice =
        notice_new(NOTICE_FILTER, 0, slice_lit("0000k"), slice_lit("a change"));

    own = rig->service.inboxes;
    rig->service.inboxes = inboxes;
    observe_flag(&rig->service, OBSERVED_FILTERS, true);
    assert_int_equal(OK, judge(rig, CMD_ID_BF_ADD));
    while (!inboxes_are_crowded(inboxes)) {
        notice_list_add(&list, notice, 0, 0);
        notice_list_close(&list, inboxes, 0);
    }
    assert_int_equal(ERR_AGAIN, judge(rig, CMD_ID_BF_ADD));
    assert_int_equal(OK, judge(rig, CMD_ID_BF_EXISTS));
    notice_unref(notice);
    notice_list_fini(&list);
    rig->service.inboxes = own;
    inboxes_free(inboxes);
    rig_free(rig);
}

TEST(replayed_commands_are_not_refused)
{
    struct rig *rig = rig_new();

    atomic_store(&rig->service.loading, true);
    atomic_store(&rig->service.write_refusal, ERR_ENDING);
    set_option(rig, "maxmemory", "1");
    rig->session.obey = true;
    run_and_expect(rig, "BF.INSERT k INCARNATION 1 ITEMS a; BF.ADD k b; DEL x",
                   "*1\r\n:1\r\n:1\r\n:0\r\n");
    rig_free(rig);
}

TEST(debug_is_refused_unless_it_is_allowed)
{
    static const char refused[] =
        "-ERR DEBUG command not allowed. If the enable-debug-command option is "
        "set to \"local\", you can run it from a local connection, otherwise "
        "you need to set this option in the configuration file, and then "
        "restart the server.\r\n";
    static const char zeros[] = "+0000000000000000000000000000000000000000\r\n";
    struct rig *rig = rig_new();

    run_and_expect(rig, "DEBUG DIGEST", refused);
    rig->session.authenticated = false;
    run_and_expect(rig, "DEBUG DIGEST", refused);
    rig->session.authenticated = true;
    rig->conf.enable_debug_command = CONF_DEBUG_COMMAND_LOCAL;
    run_and_expect(rig, "DEBUG DIGEST", zeros);
    rig->conf.enable_debug_command = CONF_DEBUG_COMMAND_YES;
    run_and_expect(rig, "DEBUG DIGEST", zeros);
    atomic_store(&rig->service.loading, true);
    run_and_expect(rig, "DEBUG DIGEST; DEBUG SLEEP 0", LOADING "+OK\r\n");
    rig_free(rig);
}

/* ---- replication --------------------------------------------------------- */
