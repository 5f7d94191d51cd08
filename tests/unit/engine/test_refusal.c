/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the role of the server refuses: writes on a replica, stale data, too few
 * replicas, the time after a start.
 */
#include "engine/refusal.h"

#include "base/run_clock.h"
#include "engine/role.h"
#include "rig.h"

#define ENDING  "-ERR the server is shutting down\r\n"
#define LOADING "-LOADING Bloomery is loading the dataset in memory\r\n"
#define BEHIND                                                                 \
    "-READONLY This server has restarted with older data than one of its "     \
    "replicas has. It takes no writes until it follows a server with newer "   \
    "data, or REPLICAOF NO ONE (beside a node of a cluster SIDECAR "           \
    "FORCE-SERVE) confirms its own data.\r\n"
#define READONLY "-READONLY You can't write against a read only replica.\r\n"
#define FEW      "-NOREPLICAS Not enough good replicas to write.\r\n"
#define DOWN                                                                   \
    "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is "    \
    "set to 'no'.\r\n"
#define ABORT "-EXECABORT Transaction discarded because of: "

static void
follow(struct rig *rig)
{
    role_follow(&rig->service, slice_lit("h"), 1);
}

TEST(a_replica_takes_no_writes_of_clients_and_serves_the_rest)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.ADD k a", true);
    follow(rig);
    run_and_expect(
        rig,
        "BF.ADD k b; BF.MADD k b; DEL k; FLUSHALL; BF.EXISTS k a; PING; "
        "DBSIZE; MULTI; BF.EXISTS k a; EXEC",
        READONLY READONLY READONLY READONLY
        ":1\r\n+PONG\r\n:1\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
    /* The primary's word is obeyed. */
    rig->session.obey = true;
    run_and_expect(rig, "BF.ADD k b; DEL k", ":1\r\n:1\r\n");
    rig->session.obey = false;
    role_lead(&rig->service);
    run_and_expect(rig, "BF.ADD k b", ":1\r\n");
    rig_free(rig);
}

TEST(a_transaction_that_was_queued_before_the_role_changed_is_refused)
{
    struct rig *rig = rig_new();

    run_text(rig, "MULTI; BF.ADD k a", true);
    follow(rig);
    run_and_expect(rig, "EXEC",
                   ABORT
                   "READONLY You can't write against a read only replica.\r\n");
    rig_free(rig);
}

TEST(a_replica_neither_evicts_nor_runs_out_of_memory)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.ADD k a", true);
    set_option(rig, "maxmemory", "1");
    set_option(rig, "maxmemory-policy", "allkeys-random");
    follow(rig);
    run_and_expect(rig, "BF.ADD k b; BF.MADD k c d; MULTI; DBSIZE; EXEC",
                   READONLY READONLY "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
    role_lead(&rig->service);
    run_and_expect(rig, "BF.EXISTS k a", ":1\r\n");
    run_text(rig, "BF.ADD k b", true);
    run_and_expect(rig, "BF.EXISTS k a", ":0\r\n");
    rig_free(rig);
}

TEST(stale_data_is_served_or_not_as_the_option_says)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.ADD k a", true);
    follow(rig);
    run_and_expect(rig, "BF.EXISTS k a", ":1\r\n");
    set_option(rig, "replica-serve-stale-data", "no");
    run_and_expect(rig,
                   "BF.EXISTS k a; BF.EXISTS k b; BF.ADD k a; PING; DBSIZE",
                   DOWN DOWN READONLY DOWN DOWN);
    run_and_expect(rig, "SELECT 0; WATCH k; CLIENT ID; MULTI; DISCARD",
                   "+OK\r\n+OK\r\n:0\r\n+OK\r\n+OK\r\n");
    atomic_store(&rig->service.link_up, true);
    run_and_expect(rig, "BF.EXISTS k a; PING", ":1\r\n+PONG\r\n");
    run_text(rig, "MULTI; BF.EXISTS k a", true);
    atomic_store(&rig->service.link_up, false);
    run_and_expect(rig, "EXEC",
                   ABORT "MASTERDOWN Link with MASTER is down and "
                         "replica-serve-stale-data is set to 'no'.\r\n");
    run_text(rig, "MULTI; CLIENT ID", true);
    run_and_expect(rig, "EXEC", "*1\r\n:0\r\n");
    role_lead(&rig->service);
    run_and_expect(rig, "BF.EXISTS k a", ":1\r\n");
    rig_free(rig);
}

/* Not even that a key is missing: that would be a lie. */
TEST(while_the_data_is_on_its_way_nothing_is_said_about_keys)
{
    struct rig *rig = rig_new();

    run_text(rig, "MULTI; BF.EXISTS k a", true);
    follow(rig);
    atomic_store(&rig->service.absent, true);
    run_and_expect(rig, "EXEC",
                   ABORT
                   "LOADING Bloomery is loading the dataset in memory\r\n");
    run_and_expect(
        rig, "BF.EXISTS k a; BF.ADD k a; DBSIZE; WATCH k; PING; CLIENT ID",
        LOADING READONLY LOADING LOADING LOADING ":0\r\n");
    /* Whoever leads now has not thrown the rest away yet. */
    role_lead(&rig->service);
    run_and_expect(rig, "BF.ADD k a; BF.EXISTS k a; BF.MADD k a",
                   LOADING LOADING LOADING);
    atomic_store(&rig->service.absent, false);
    run_and_expect(rig, "BF.ADD k a; BF.EXISTS k a", ":1\r\n:1\r\n");
    rig_free(rig);
}

TEST(too_few_replicas_refuse_the_writes_of_a_primary_alone)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.ADD k a", true);
    atomic_store(&rig->service.few_replicas, true);
    run_and_expect(rig, "BF.ADD k b; BF.EXISTS k a; DEL k; PING",
                   FEW ":1\r\n" FEW "+PONG\r\n");
    atomic_store(&rig->service.write_refusal, ERR_ENDING);
    run_and_expect(rig, "BF.ADD k b", ENDING);
    atomic_store(&rig->service.write_refusal, OK);
    follow(rig);
    run_and_expect(rig, "BF.ADD k b", READONLY);
    rig_free(rig);
}

TEST(a_primary_that_came_back_with_older_data_is_as_good_as_dead)
{
    struct rig *rig = rig_new();

    atomic_store(&rig->service.grace_until_ms, GRACE_BEHIND);
    run_and_expect(rig, "BF.EXISTS k a", ":0\r\n");
    run_and_expect(rig, "PING", BEHIND);
    run_and_expect(rig, "BF.ADD k a", BEHIND);
    follow(rig);
    run_and_expect(rig, "PING", "+PONG\r\n");
    run_and_expect(rig, "BF.ADD k a", READONLY);
    atomic_store(&rig->service.grace_until_ms, GRACE_BEHIND);
    run_and_expect(rig, "REPLICAOF NO ONE; PING; BF.ADD k a",
                   "+OK\r\n+PONG\r\n:1\r\n");
    rig_free(rig);
}

/* Which loop 0 has to hear of, though the role is the same. */
TEST(a_primary_that_is_told_to_lead_takes_it_as_a_word)
{
    struct rig *rig = rig_new();

    assert_false(rig->service.leads_by_word);
    run_and_expect(rig, "REPLICAOF NO ONE", "+OK\r\n");
    assert_true(rig->service.leads_by_word);
    rig_free(rig);
}

TEST(a_primary_that_came_back_takes_no_writes_for_a_while)
{
    struct rig *rig = rig_new();
    uint64_t now_ms = run_clock_ms();

    atomic_store(&rig->service.grace_until_ms, now_ms + 1000000);
    run_and_expect(rig, "BF.EXISTS k a; PING", ":0\r\n+PONG\r\n");
    run_text(rig, "BF.ADD k a", true);
    assert_memory_equal("-READONLY This server has just started", rig->out.data,
                        38);
    run_and_expect(rig, "REPLICAOF NO ONE; BF.ADD k a", "+OK\r\n:1\r\n");
    atomic_store(&rig->service.grace_until_ms, now_ms);
    run_and_expect(rig, "BF.ADD k b", ":1\r\n");
    rig_free(rig);
}
