/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each state of a slot, for each kind of session, one by one, in runs, in
 * windows, in MULTI and in pieces. (The whole server is in
 * tests/command/cluster-*.t and tests/scenario/test_cluster_routes.py.)
 */
#include "engine/route.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/cluster.h"
#include "engine/observe.h"
#include "engine/rights.h"
#include "keyspace/key_hash.h"
#include "rig.h"

#define A "1111111111111111111111111111111111111111"
#define B "2222222222222222222222222222222222222222"
#define C "3333333333333333333333333333333333333333"

/* bar: slot 5061; foo: 12182; hello: 866. */
#define MOVED_FOO "-MOVED 12182 10.0.0.2:8001\r\n"
#define MOVED_BAR "-MOVED 5061 10.0.0.2:8001\r\n"
#define DOWN      "-CLUSTERDOWN The cluster is down\r\n"
#define TRYAGAIN  "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"
#define CROSS     "-CROSSSLOT Keys in request don't hash to the same slot\r\n"
#define ABSENT    "-CLUSTERDOWN Slot data not available\r\n"

static const char primary_nodes[] =
    A " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-8191\n" B
      " 10.0.0.2:7001@17001 master - 0 0 2 connected 8192-16383\n" C
      " 10.0.0.3:7002@17002 master - 0 0 3 connected\n";
static const char replica_nodes[] =
    A " 10.0.0.1:7000@17000 myself,slave " B " 0 0 1 connected\n" B
      " 10.0.0.2:7001@17001 master - 0 0 2 connected 0-8191\n" C
      " 10.0.0.3:7002@17002 master - 0 0 3 connected 8192-16383\n";

struct scene {
    struct rig *rig;
    struct cluster cluster;
};

static void
set_view(struct scene *scene, const char *nodes, const char *state,
         unsigned slot, enum slot_state slot_state)
{
    static uint8_t states[CLUSTER_SLOTS];
    static uint16_t sources[CLUSTER_SLOTS];
    struct view_options options = { .port_offset = 1000 };
    char reason[TOPOLOGY_REASON_MAX];
    struct topology *topology = NULL;

    assert_true(topology_parse(slice_of(nodes), slice_of(state), slice_lit(A),
                               &topology, reason));
    for (unsigned i = 0; i < CLUSTER_SLOTS; i++) {
        states[i] = i < 8192 ? SLOT_SERVED : SLOT_AWAY;
        sources[i] = 2;
    }
    if (slot < CLUSTER_SLOTS) {
        states[slot] = (uint8_t)slot_state;
    }
    options.settings.reads_when_down = strstr(state, "reads") != NULL;
    view_free((struct cluster_view *)(uintptr_t)scene->cluster.view);
    scene->cluster.view = view_new(topology, &options, states, sources);
    assert_non_null(scene->cluster.view);
}

static void
begin(struct scene *scene)
{
    *scene = (struct scene){ .rig = rig_new() };
    scene->rig->service.cluster = &scene->cluster;
    observe_flag(&scene->rig->service, OBSERVED_ROUTES, true);
    set_view(scene, primary_nodes, "cluster_state:ok", CLUSTER_SLOTS,
             SLOT_AWAY);
    atomic_store(&scene->cluster.lease_until_ns, UINT64_MAX);
}

static void
end(struct scene *scene)
{
    view_free((struct cluster_view *)(uintptr_t)scene->cluster.view);
    rig_free(scene->rig);
}

static void
expect(struct scene *scene, const char *commands, const char *replies)
{
    scene->rig->out.len = 0;
    run_and_expect(scene->rig, commands, replies);
}

TEST(a_slot_is_served_or_the_client_is_sent_away)
{
    struct scene scene;
    int64_t before;

    begin(&scene);
    before = metric_sum(METRIC_CLUSTER_MOVED);
    expect(&scene,
           "BF.ADD bar x; BF.ADD foo x; PING; EXISTS bar foo; EXISTS foo bar; "
           "EXISTS bar {bar}; BF.WHICH x bar foo",
           ":1\r\n" MOVED_FOO "+PONG\r\n" CROSS CROSS ":1\r\n" CROSS);
    assert_int_equal(metric_sum(METRIC_CLUSTER_MOVED) - before, 1);
    end(&scene);
}

TEST(before_the_first_look_keys_are_refused)
{
    struct scene scene;

    begin(&scene);
    view_free((struct cluster_view *)(uintptr_t)scene.cluster.view);
    scene.cluster.view = NULL;
    expect(&scene, "BF.ADD bar x; PING; CLUSTER SLOTS; CLUSTER KEYSLOT bar",
           "-CLUSTERDOWN The neighbour has not been read yet (sidecar-of)\r\n"
           "+PONG\r\n"
           "-CLUSTERDOWN The neighbour has not been read yet (sidecar-of)\r\n"
           ":5061\r\n");
    end(&scene);
}

TEST(without_a_lease_own_slots_are_refused_and_others_moved)
{
    struct scene scene;

    begin(&scene);
    atomic_store(&scene.cluster.lease_until_ns, clock_boot_ns());
    expect(&scene, "BF.ADD bar x; BF.EXISTS bar x; BF.ADD foo x; PING",
           DOWN DOWN MOVED_FOO "+PONG\r\n");
    expect(&scene, "READONLY; BF.EXISTS bar x", "+OK\r\n" DOWN);
    set_option(scene.rig, "sidecar-stale-reads", "yes");
    expect(&scene, "BF.EXISTS bar x; BF.ADD bar x; READWRITE; BF.EXISTS bar x",
           ":0\r\n" DOWN "+OK\r\n" DOWN);
    end(&scene);
}

TEST(a_cluster_that_is_down_may_allow_reads)
{
    struct scene scene;

    begin(&scene);
    set_view(&scene, primary_nodes, "cluster_state:fail", CLUSTER_SLOTS,
             SLOT_AWAY);
    expect(&scene, "BF.ADD bar x; BF.EXISTS bar x; BF.EXISTS foo x",
           DOWN DOWN DOWN);
    set_view(&scene, primary_nodes, "cluster_state:fail\nreads:1",
             CLUSTER_SLOTS, SLOT_AWAY);
    expect(&scene, "BF.ADD bar x; BF.EXISTS bar x; BF.EXISTS foo x",
           "-CLUSTERDOWN The cluster is down and only accepts read "
           "commands\r\n:0\r\n" MOVED_FOO);
    end(&scene);
}

TEST(data_at_another_daemon_is_asked_for_there)
{
    struct scene scene;

    begin(&scene);
    set_view(&scene, primary_nodes, "cluster_state:ok", 5061, SLOT_PULLED);
    expect(&scene, "BF.ADD bar x; ASKING; BF.EXISTS bar x",
           "-ASK 5061 10.0.0.3:8002\r\n+OK\r\n-ASK 5061 10.0.0.3:8002\r\n");
    set_view(&scene, primary_nodes, "cluster_state:ok", 5061, SLOT_MISSING);
    expect(&scene, "BF.ADD bar x; BF.ADD hello x", ABSENT ":1\r\n");
    end(&scene);
}

TEST(asking_holds_for_one_command_or_one_transaction)
{
    struct scene scene;

    begin(&scene);
    set_view(&scene, primary_nodes, "cluster_state:ok", 12182, SLOT_EXPORTED);
    expect(&scene,
           "BF.ADD foo x; ASKING; BF.ADD foo x; BF.ADD foo y; ASKING; PING; "
           "BF.ADD foo y; ASKING; NONSENSE; BF.ADD foo y",
           MOVED_FOO "+OK\r\n:1\r\n" MOVED_FOO "+OK\r\n+PONG\r\n" MOVED_FOO
                     "+OK\r\n-ERR unknown command 'NONSENSE', with args "
                     "beginning with: \r\n" MOVED_FOO);
    expect(&scene,
           "ASKING; MULTI; BF.EXISTS foo x; BF.ADD foo z; EXEC; BF.ADD foo w",
           "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:1\r\n" MOVED_FOO);
    expect(&scene, "ASKING; RESET; BF.ADD foo w",
           "+OK\r\n+RESET\r\n" MOVED_FOO);
    atomic_store(&scene.cluster.lease_until_ns, 0);
    expect(&scene, "ASKING; BF.ADD foo x", "+OK\r\n" DOWN);
    end(&scene);
}

/* A run of equal commands behind ASKING would else be one. */
TEST(a_pipeline_behind_asking_is_checked_one_by_one)
{
    struct scene scene;

    begin(&scene);
    set_view(&scene, primary_nodes, "cluster_state:ok", 12182, SLOT_EXPORTED);
    expect(&scene,
           "ASKING; BF.ADD foo a; BF.ADD foo b; BF.ADD foo c; ASKING; BF.ADD "
           "foo d; BF.ADD bar a; BF.ADD bar b",
           "+OK\r\n:1\r\n" MOVED_FOO MOVED_FOO "+OK\r\n:1\r\n:1\r\n:1\r\n");
    end(&scene);
}

TEST(a_replica_reads_for_readonly_sessions_what_its_primary_has)
{
    struct scene scene;

    begin(&scene);
    set_view(&scene, replica_nodes, "cluster_state:ok", CLUSTER_SLOTS,
             SLOT_AWAY);
    expect(&scene,
           "BF.EXISTS bar x; READONLY; BF.EXISTS bar x; BF.ADD bar x; "
           "BF.EXISTS foo x",
           MOVED_BAR "+OK\r\n:0\r\n" MOVED_BAR
                     "-MOVED 12182 10.0.0.3:8002\r\n");
    expect(&scene, "MULTI; BF.EXISTS bar x; EXEC",
           "+OK\r\n+QUEUED\r\n*1\r\n:0\r\n");
    /* Not what it does not have yet. */
    set_view(&scene, replica_nodes, "cluster_state:ok", 5061, SLOT_AWAY);
    expect(&scene, "BF.EXISTS bar x", MOVED_BAR);
    end(&scene);
}

/* The state of the slots is asked again at EXEC. */
TEST(a_transaction_over_a_change_gets_the_redirect)
{
    struct scene scene;

    begin(&scene);
    expect(&scene, "MULTI; BF.ADD bar x", "+OK\r\n+QUEUED\r\n");
    set_view(&scene, replica_nodes, "cluster_state:ok", CLUSTER_SLOTS,
             SLOT_AWAY);
    expect(&scene, "EXEC; EXEC; BF.EXISTS bar x",
           MOVED_BAR "-ERR EXEC without MULTI\r\n" MOVED_BAR);
    end(&scene);
    begin(&scene);
    expect(&scene, "MULTI; BF.ADD bar x; BF.ADD hello x; EXEC; EXEC",
           "+OK\r\n+QUEUED\r\n+QUEUED\r\n" CROSS "-ERR EXEC without MULTI\r\n");
    expect(&scene, "BF.EXISTS bar x", ":0\r\n");
    end(&scene);
}

/* Runs the batch once and says whether it has paused. */
static bool
pauses(struct scene *scene, uint32_t *done)
{
    struct rig *rig = scene->rig;

    rig->out.len = 0;
    *done = dispatch_batch(rig->worker, &rig->session, &rig->batch, *done,
                           UINT64_MAX, &rig->out);
    return *done < rig->batch.count;
}

TEST(commands_wait_for_a_hand_off_and_go_on)
{
    struct scene scene;
    uint32_t done = 0;

    begin(&scene);
    set_view(&scene, primary_nodes, "cluster_state:ok", 5061, SLOT_HELD);
    batch_begin(scene.rig);
    batch_text(scene.rig, "BF.ADD hello x");
    batch_text(scene.rig, "BF.ADD bar x");
    batch_text(scene.rig, "BF.ADD hello y");
    assert_true(pauses(&scene, &done));
    assert_int_equal(done, 1);
    expect_replies(scene.rig, ":1\r\n");
    assert_int_equal(scene.rig->session.wait, CONN_FOR_EVENT);
    assert_true(pauses(&scene, &done));
    assert_int_equal(scene.rig->out.len, 0);
    set_view(&scene, primary_nodes, "cluster_state:ok", CLUSTER_SLOTS,
             SLOT_AWAY);
    assert_false(pauses(&scene, &done));
    expect_replies(scene.rig, ":1\r\n:1\r\n");
    assert_int_equal(scene.rig->session.held_until_ms, 0);
    end(&scene);
}

TEST(a_hand_off_that_takes_too_long_is_tried_again)
{
    struct scene scene;
    uint32_t done = 0;
    uint64_t until_ms = clock_mono_ms() + ROUTE_HOLD_MS;

    begin(&scene);
    set_view(&scene, primary_nodes, "cluster_state:ok", 5061, SLOT_HELD);
    batch_begin(scene.rig);
    batch_text(scene.rig, "BF.ADD bar x");
    batch_text(scene.rig, "MULTI");
    batch_text(scene.rig, "BF.ADD bar x");
    batch_text(scene.rig, "EXEC");
    while (done == 0) {
        (void)pauses(&scene, &done);
    }
    assert_true(clock_mono_ms() >= until_ms);
    expect_replies(scene.rig, TRYAGAIN "+OK\r\n+QUEUED\r\n");
    assert_int_equal(done, 3);
    while (done == 3) {
        (void)pauses(&scene, &done);
    }
    expect_replies(scene.rig, TRYAGAIN);
    assert_false(txn_is_open(&scene.rig->session));
    end(&scene);
}

/* Their words lie where those of the commands before them lay. */
TEST(a_queued_key_is_not_taken_for_the_one_before_it)
{
    struct scene scene;

    key_hash_by_slot(true);
    begin(&scene);
    for (int round = 0; round < 2; round++) {
        expect(&scene, "BF.EXISTS bar x", ":0\r\n");
        expect(&scene, "BF.EXISTS foo x", MOVED_FOO);
        expect(&scene, "MULTI", "+OK\r\n");
        expect(&scene, "BF.EXISTS bar x", "+QUEUED\r\n");
        expect(&scene, "BF.EXISTS foo x", MOVED_FOO);
        expect(&scene, "DISCARD", "+OK\r\n");
    }
    end(&scene);
    key_hash_by_slot(false);
}

/* Windows of several keys, and runs of one key. */
TEST(pipelines_of_many_keys_are_checked_key_by_key)
{
    struct scene scene;
    char commands[8192] = "";
    char replies[8192] = "";

    begin(&scene);
    for (unsigned i = 0; i < 100; i++) {
        char line[64];
        char name[16];
        unsigned slot;

        (void)snprintf(name, sizeof(name), "k%u", i / 2);
        slot = hash_slot_of(slice_of(name));
        (void)snprintf(line, sizeof(line), "%sBF.ADD %s i%u", i > 0 ? "; " : "",
                       name, i);
        (void)strcat(commands, line);
        if (slot < 8192) {
            (void)strcat(replies, ":1\r\n");
        } else {
            (void)snprintf(line, sizeof(line), "-MOVED %u 10.0.0.2:8001\r\n",
                           slot);
            (void)strcat(replies, line);
        }
    }
    expect(&scene, commands, replies);
    end(&scene);
}

TEST(a_command_of_very_many_names_is_checked_whole)
{
    struct scene scene;

    begin(&scene);
    expect(&scene, "BF.ADD bar x", ":1\r\n");
    scene.rig->out.len = 0;
    batch_begin(scene.rig);
    batch_command(scene.rig);
    batch_word(scene.rig, slice_lit("DEL"));
    for (unsigned i = 0; i < 2000; i++) {
        batch_word(scene.rig, slice_lit("bar"));
    }
    batch_word(scene.rig, slice_lit("hello"));
    batch_run(scene.rig);
    expect_replies(scene.rig, CROSS);
    expect(&scene, "EXISTS bar", ":1\r\n");
    end(&scene);
}

/* Sends EXISTS of many names. Between two pieces of the check the slot of the
 * names may be lost. Returns the number of pieces of the check. */
static unsigned
exists_of_many(struct scene *scene, const char *last, bool loses)
{
    const struct session *session = &scene->rig->session;
    uint32_t done = 0;
    unsigned pieces = 0;

    scene->rig->out.len = 0;
    batch_begin(scene->rig);
    batch_command(scene->rig);
    batch_word(scene->rig, slice_lit("EXISTS"));
    for (unsigned i = 0; i < 20000; i++) {
        batch_word(scene->rig, slice_lit("bar"));
    }
    batch_word(scene->rig, slice_of(last));
    while (pauses(scene, &done)) {
        pieces += session->rights != NULL && !session->rights->route.done;
        assert_int_equal(CONN_RUNS, session->wait);
        if (loses) {
            set_view(scene, primary_nodes, "cluster_state:ok", 5061, SLOT_AWAY);
        }
    }
    assert_null(session->rights);
    return pieces;
}

TEST(the_slot_of_very_many_names_is_found_in_pieces)
{
    struct scene scene;

    begin(&scene);
    expect(&scene, "BF.ADD bar x", ":1\r\n");
    assert_int_equal(2, exists_of_many(&scene, "bar", false));
    expect_replies(scene.rig, ":20001\r\n");
    assert_int_equal(2, exists_of_many(&scene, "hello", false));
    expect_replies(scene.rig, CROSS);
    (void)exists_of_many(&scene, "bar", true);
    expect_replies(scene.rig, ABSENT);
    end(&scene);
}

TEST(shard_channels_have_a_slot_and_need_no_lease)
{
    struct scene scene;

    begin(&scene);
    atomic_store(&scene.cluster.lease_until_ns, 0);
    expect(&scene, "SPUBLISH foo hi; SSUBSCRIBE bar foo", MOVED_FOO CROSS);
    end(&scene);
}

TEST(a_log_is_obeyed_whatever_its_slots)
{
    struct scene scene;

    begin(&scene);
    atomic_store(&scene.cluster.lease_until_ns, 0);
    scene.rig->session.obey = true;
    expect(&scene, "EXISTS foo bar; SELECT 5; EXISTS foo; SWAPDB 0 1",
           ":0\r\n+OK\r\n:0\r\n+OK\r\n");
    end(&scene);
}

TEST(databases_are_those_of_the_neighbour)
{
    struct scene scene;

    begin(&scene);
    assert_int_equal(service_databases(&scene.rig->service), 1);
    scene.rig->service.cluster = NULL;
    assert_int_equal(service_databases(&scene.rig->service), 16);
    end(&scene);
}
