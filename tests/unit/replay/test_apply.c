/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Groups of another server's log while clients are there: who listens hears,
 * who watches notices, who reads never sees half a transaction, and nothing of
 * it is passed on, refused or made to wait. That every command does the same on
 * both sides is in test_apply_table.c.
 */
#include "replay/apply.h"

#include "../engine/group_help.h"
#include "../engine/scene.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "engine/pause.h"
#include "keyspace/gate.h"

#include <pthread.h>

enum { BEGINS = 5000 }; /* position of the log at which groups begin */

static void
hold_gate(struct service *service, bool world)
{
    struct gate *gate = keyspace_gate(service->keyspace);

    if (world) {
        gate_raise(gate, 0);
    } else {
        gate_enter(gate, 0);
    }
}

static void
drop_gate(struct service *service, bool world)
{
    struct gate *gate = keyspace_gate(service->keyspace);

    if (world) {
        gate_lower(gate, 0);
    } else {
        gate_leave(gate, 0);
    }
}

/* As the link to the primary does it. */
static bool
apply_bytes(struct apply *apply, struct service *service, struct slice group,
            char *ret_reason, size_t size)
{
    bool world = apply_needs_world(apply, group);
    bool done;

    hold_gate(service, world);
    done = apply_group(apply, group, BEGINS, ret_reason, size);
    drop_gate(service, world);
    apply_wake(apply);
    return done;
}

static bool
apply_text(struct apply *apply, struct rig *rig, const char *text,
           char *ret_reason, size_t size)
{
    struct buf group = { 0 };
    bool done;

    encode(&group, text);
    done =
        apply_bytes(apply, &rig->service, buf_slice(&group), ret_reason, size);
    buf_free(&group);
    return done;
}

static void
expect_applied(struct apply *apply, struct rig *rig, const char *text)
{
    char reason[256] = "";

    if (!apply_text(apply, rig, text, reason, sizeof(reason))) {
        fail_msg("[%s]: %s", text, reason);
    }
}

TEST(commands_are_repeated_in_their_databases)
{
    struct rig *rig = rig_new_threads(2);
    struct apply *apply = apply_new(rig->worker);

    expect_applied(apply, rig,
                   "SELECT 0; " MAKE("k", "77") " ITEMS a b; BF.ADD k c; "
                                                "MULTI; SELECT 3; " MAKE(
                                                    "l", "78") "; EXEC");
    expect_applied(apply, rig, "PEXPIREAT l 99000000000000");
    assert_int_equal(77, incarnation_of(rig, "k"));
    run_and_expect(rig, "BF.CARD k; EXISTS l; SELECT 3; PEXPIRETIME l",
                   ":3\r\n:0\r\n+OK\r\n:99000000000000\r\n");
    apply_free(apply);
    rig_free(rig);
}

/* ---- positions ----------------------------------------------------------- */

/* Returns the position behind the nth command (0: the first) of a group. */
static uint64_t
end_of(struct slice group, unsigned nth)
{
    static const struct parse_limits limits = { SIZE_MAX, SIZE_MAX, SIZE_MAX,
                                                false };
    struct batch batch = { 0 };
    size_t at = 0;
    uint64_t end;

    assert_int_equal(OK, scan_commands(group, &limits, &batch, &at));
    assert_true(nth < batch.count);
    end = nth + 1 < batch.count ? batch.command[nth + 1].begin : at;
    batch_fini(&batch);
    return BEGINS + end;
}

static uint64_t
position_of(const struct rig *rig, const char *name)
{
    return keyspace_position(rig->service.keyspace,
                             keyspace_stripe_of(hash_name(slice_of(name))));
}

/* A run of adds is one lock, a transaction too. What nobody changed keeps its
 * position. */
TEST(each_stripe_has_the_position_behind_its_last_command)
{
    struct rig *rig = rig_new_threads(2);
    struct apply *apply = apply_new(rig->worker);
    char reason[256] = "";
    struct buf group = { 0 };
    struct slice text;

    encode(&group,
           "SELECT 0; " MAKE("k", "1") "; BF.ADD k a; BF.ADD k b; BF.ADD k "
                                       "c; " MAKE(
                                           "l", "2") "; MULTI; BF.MADD k d e; "
                                                     "BF.ADD m a; EXEC; DEL m");
    text = buf_slice(&group);
    expect_applied(apply, rig, "SELECT 0; " MAKE("m", "3"));
    if (!apply_bytes(apply, &rig->service, text, reason, sizeof(reason))) {
        fail_msg("%s", reason);
    }
    assert_int_equal(end_of(text, 9), position_of(rig, "k"));
    assert_int_equal(end_of(text, 5), position_of(rig, "l"));
    assert_int_equal(end_of(text, 10), position_of(rig, "m"));
    assert_int_equal(0, position_of(rig, "other"));
    group.len = 0;
    encode(&group,
           "BF.ADD l a; BF.ADD l b; FLUSHDB; SWAPDB 0 1; " MAKE("l", "2"));
    text = buf_slice(&group);
    assert_true(
        apply_bytes(apply, &rig->service, text, reason, sizeof(reason)));
    assert_int_equal(end_of(text, 3), position_of(rig, "k"));
    assert_int_equal(end_of(text, 3), position_of(rig, "other"));
    assert_int_equal(end_of(text, 4), position_of(rig, "l"));
    buf_free(&group);
    apply_free(apply);
    rig_free(rig);
}

/* On a replica nothing that was applied holds a reply back: it is not in the
 * replica's own log yet. */
TEST(reads_on_a_replica_wait_for_nothing)
{
    struct rig *rig = rig_new();
    struct apply *apply = apply_new(rig->worker);

    rig->service.role.replica = true;
    expect_applied(apply, rig, MAKE("k", "1"));
    assert_true(position_of(rig, "k") > BEGINS);
    run_text(rig, "EXISTS k", true);
    assert_int_equal(0, rig->worker->hold);
    rig->service.role.replica = false;
    run_text(rig, "EXISTS k", true);
    assert_int_equal(position_of(rig, "k"), rig->worker->hold);
    apply_free(apply);
    rig_free(rig);
}

TEST(the_clock_ends_nothing)
{
    struct rig *rig = rig_new();
    struct apply *apply = apply_new(rig->worker);

    expect_applied(apply, rig,
                   MAKE("k", "1") "; PEXPIREAT k 5; BF.ADD k a; BF.MADD k b c");
    run_and_expect(rig, "EXISTS k", ":0\r\n"); /* clients do not find it */
    expect_applied(apply, rig, "PERSIST k");
    run_and_expect(rig, "BF.CARD k", ":3\r\n");
    apply_free(apply);
    rig_free(rig);
}

TEST(the_whole_world_is_emptied_and_swapped)
{
    struct rig *rig = rig_new_threads(2);
    struct apply *apply = apply_new(rig->worker);

    expect_applied(apply, rig, MAKE("k", "1") "; SWAPDB 0 4");
    run_and_expect(rig, "EXISTS k; SELECT 4; EXISTS k", ":0\r\n+OK\r\n:1\r\n");
    expect_applied(apply, rig,
                   "MULTI; " MAKE("l", "1") "; SELECT 4; FLUSHDB SYNC; EXEC");
    run_and_expect(rig, "EXISTS k; SELECT 0; EXISTS l", ":0\r\n+OK\r\n:1\r\n");
    expect_applied(apply, rig, "flushall");
    run_and_expect(rig, "EXISTS l", ":0\r\n");
    apply_free(apply);
    rig_free(rig);
}

/* ---- what does not matter ------------------------------------------------ */

TEST(nothing_is_refused_and_nothing_waits)
{
    struct rig *rig = rig_new_threads(2);
    struct service *service = &rig->service;
    struct apply *apply = apply_new(rig->worker);

    run_text(rig, "BF.ADD own a", true);
    journal_set_limit(rig->journal, 1);
    set_option(rig, "maxmemory", "1");
    set_option(rig, "maxmemory-policy", "allkeys-random");
    set_option(rig, "bf.bloom-memory-usage-limit", "1");
    set_option(rig, "dialect", "redis");
    service->limits.multi_commands_max = 1;
    service->limits.multi_bytes_max = 1;
    service->role.replica = true;
    atomic_store(&service->write_refusal, ERR_ENDING);
    atomic_store(&service->grace_until_ms, UINT64_MAX);
    pause_begin(service, PAUSE_BY_CLIENT, 1000000, PAUSE_ALL);
    expect_applied(apply, rig,
                   MAKE("k", "1") "; BF.ADD k a; BF.MADD k b c; "
                                  "MULTI; BF.ADD k d; BF.ADD k e; EXEC; DEL x");
    pause_end(service, PAUSE_BY_CLIENT);
    run_and_expect(rig, "BF.CARD k; EXISTS own", ":5\r\n:1\r\n");
    atomic_store(&service->write_refusal, OK);
    apply_free(apply);
    rig_free(rig);
}

TEST(commands_and_changes_count_but_nothing_is_passed_on)
{
    struct rig *rig = rig_new();
    struct apply *apply = apply_new(rig->worker);
    struct stats_slot *stats = rig->worker->stats;
    int64_t commands = metric_sum(METRIC_COMMANDS);
    int64_t changes = metric_sum(METRIC_CHANGES);
    int64_t in_multi = metric_sum(METRIC_MULTI_CLIENTS);

    expect_applied(apply, rig,
                   MAKE("k", "1") "; BF.ADD k a; BF.ADD k a; PERSIST k; "
                                  "MULTI; DEL k; DEL x; EXEC; FLUSHALL");
    assert_int_equal(changes + 4, metric_sum(METRIC_CHANGES));
    assert_int_equal(commands + 9, metric_sum(METRIC_COMMANDS));
    assert_int_equal(in_multi, metric_sum(METRIC_MULTI_CLIENTS));
    assert_int_equal(2, stats->command[CMD_ID_BF_ADD].calls);
    assert_int_equal(2, stats->command[CMD_ID_DEL].calls);
    assert_int_equal(1, stats->command[CMD_ID_EXEC].calls);
    assert_true(stats->command[CMD_ID_BF_ADD].ns > 0);
    assert_int_equal(0, journal_position(rig->journal));
    effects_take(rig);
    assert_int_equal(0, rig->effects.count);
    assert_null(rig->worker->unkicked);
    apply_free(apply);
    rig_free(rig);
}

/* ---- what clients notice ------------------------------------------------- */

TEST(a_watched_key_that_the_log_changes_fails_exec)
{
    static const char *const changes[] = {
        "BF.ADD k b", "DEL k",    "PEXPIREAT k 99000000000000",
        "RENAME k l", "FLUSHDB",  "SWAPDB 0 1",
        "RENAME l k", "FLUSHALL", "MULTI; BF.ADD k b; EXEC",
        "BF.RESET k", "MOVE k 2", MAKE("k", "5"),
    };

    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct rig *rig = rig_new();
        struct apply *apply = apply_new(rig->worker);

        expect_applied(apply, rig, MAKE("k", "1") "; " MAKE("l", "2"));
        run_text(rig, "WATCH k; MULTI; PING", true);
        expect_applied(apply, rig, changes[i]);
        run_and_expect(rig, "EXEC", "*-1\r\n");
        run_text(rig, "WATCH nothing; MULTI; PING", true);
        expect_applied(apply, rig, MAKE("another", "3"));
        run_and_expect(rig, "EXEC", "*1\r\n+PONG\r\n");
        apply_free(apply);
        rig_free(rig);
    }
}

TEST(subscribers_get_the_events_of_the_log_at_once)
{
    struct scene *scene = scene_new();
    struct rig *rig = scene->rig;
    struct apply *apply = apply_new(rig->worker);

    want_events(scene, "KEA");
    listen_to(scene, "__keyspace*");
    expect_applied(apply, rig, "SELECT 3; " MAKE("k", "1") " ITEMS a");
    expect_seen(scene, "0 0 __keyspace@3__:k bloom.add\n"
                       "0 0 __keyspace@3__:k bloom.reserve\n");
    expect_applied(apply, rig,
                   "MULTI; BF.ADD k b; PEXPIREAT k 99000000000000; EXEC; "
                   "DEL k missing");
    expect_seen(scene, "0 0 __keyspace@3__:k bloom.add\n"
                       "0 0 __keyspace@3__:k expire\n"
                       "0 0 __keyspace@3__:k del\n");
    apply_free(apply);
    scene_free(scene);
}

TEST(clients_that_cache_a_key_get_an_invalidation)
{
    struct scene *scene = scene_new();
    struct tracking_options options = { .bcast = true };
    struct rig *rig = scene->rig;
    struct apply *apply = apply_new(rig->worker);

    assert_true(tracking_on(rig->service.tracking, &scene->receiver, &options));
    observe_count(&rig->service, OBSERVED_TRACKING, true);
    expect_applied(apply, rig, MAKE("k", "1") "; BF.ADD k a; FLUSHALL");
    expect_seen(scene, "2 0 k \n2 0 k \n3 0  \n");
    observe_count(&rig->service, OBSERVED_TRACKING, false);
    apply_free(apply);
    scene_free(scene);
}

/* As from the primary. */
TEST(monitor_shows_what_the_log_does)
{
    static const char *const hosts[][2] = {
        { "primary.example", "primary.example:7379" }, { "::1", "[::1]:7379" }
    };

    for (int i = 0; i < 2; i++) {
        struct scene *scene = scene_new();
        struct rig *rig = scene->rig;
        struct apply *apply = apply_new(rig->worker);
        struct receiver *receiver = &scene->receiver;
        char want[64];

        (void)strcpy(rig->service.role.host, hosts[i][0]); /* NOLINT */
        rig->service.role.port = 7379;
        monitor_join(rig->service.monitor, receiver);
        observe_count(&rig->service, OBSERVED_MONITOR, true);
        expect_applied(apply, rig, "SELECT 3; DEL k");
        observe_close(rig->worker);
        (void)uv_run(&scene->loop.uv, UV_RUN_NOWAIT);
        buf_append(&scene->seen, "", 1);
        (void)snprintf(want, sizeof(want), "[3 %s] \"DEL\" \"k\"", hosts[i][1]);
        assert_non_null(strstr(scene->seen.data, want));
        assert_non_null(strstr(scene->seen.data, "\"SELECT\" \"3\""));
        scene->seen.len = 0;
        observe_count(&rig->service, OBSERVED_MONITOR, false);
        monitor_leave(rig->service.monitor, receiver);
        apply_free(apply);
        scene_free(scene);
    }
}

/* ---- readers beside it --------------------------------------------------- */

enum { TURNS = 2000 };

struct reader {
    struct rig *rig;
    _Atomic bool *ends;
    _Atomic unsigned found;
    bool torn;
};

/* EXISTS a b, one command, on a thread of its own: none of them, or both. */
static void *
read_both(void *arg)
{
    struct reader *reader = arg;
    struct worker *worker = dispatch_new_worker(&reader->rig->service, 1);
    struct session session;
    struct batch batch = { 0 };
    struct buf bytes = { 0 };
    struct buf out = { 0 };
    static const struct parse_limits limits = { .args_max = 100,
                                                .bulk_max = 100,
                                                .query_max = 1000 };
    size_t at = 0;

    session_init(&session, true);
    encode(&bytes, "EXISTS a b");
    batch_clear(&batch);
    CHECK(scan_commands(buf_slice(&bytes), &limits, &batch, &at) == OK);
    while (!atomic_load(reader->ends)) {
        out.len = 0;
        (void)dispatch_batch(worker, &session, &batch, 0, UINT64_MAX, &out);
        CHECK(out.len == 4);
        reader->found += out.data[1] == '2';
        reader->torn = reader->torn || out.data[1] == '1';
    }
    session_fini(&session);
    dispatch_free_worker(worker);
    batch_fini(&batch);
    buf_free(&bytes);
    buf_free(&out);
    metric_thread_exit();
    return NULL;
}

/* Until the reader has seen some of them, however few cores there are. */
TEST(nobody_sees_half_a_transaction)
{
    struct rig *rig = rig_new_threads(2);
    struct apply *apply = apply_new(rig->worker);
    _Atomic bool ends = false;
    struct reader reader = { .rig = rig, .ends = &ends };
    uint64_t until_ns = clock_mono_ns() + (uint64_t)20 * 1000 * 1000 * 1000;
    pthread_t thread;

    assert_int_equal(0, pthread_create(&thread, NULL, read_both, &reader));
    for (unsigned i = 0;
         (i < TURNS || reader.found < 100) && clock_mono_ns() < until_ns; i++) {
        expect_applied(apply, rig,
                       "MULTI; " MAKE("a", "1") "; " MAKE("b", "1") "; EXEC");
        expect_applied(apply, rig, "MULTI; DEL a; DEL b; EXEC");
        if (i % 100 == 0) {
            expect_applied(apply, rig,
                           "MULTI; " MAKE("a", "1") "; " MAKE(
                               "b", "1") "; EXEC; SWAPDB 0 1; SWAPDB 1 0; "
                                         "FLUSHALL");
        }
    }
    atomic_store(&ends, true);
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_false(reader.torn);
    assert_true(reader.found >= 100);
    apply_free(apply);
    rig_free(rig);
}

/* ---- what is refused ----------------------------------------------------- */

TEST(commands_that_no_log_contains_are_refused)
{
    static const char *const cases[][2] = {
        { "BF.EXISTS k a", "the command at byte 0 of the group is neither a "
                           "write nor SELECT" },
        { "SELECT 1; GET k", "the command at byte 23 of the group is neither "
                             "a write nor SELECT" },
        { "REPLICAOF NO ONE", "the command at byte 0 of the group is neither a "
                              "write nor SELECT" },
        { "BF.ADD k a", "BF.ADD failed: ERR not found" },
        { "DEL a; EXEC", "exec failed: ERR EXEC without MULTI" },
        { "MULTI; MULTI; EXEC",
          "multi failed: ERR MULTI calls can not be nested" },
        { "MULTI; DEL", "del failed: ERR wrong number of arguments for 'del' "
                        "command" },
        { "MULTI; BF.ADD k a; EXEC", "BF.ADD failed: ERR not found" },
        { "MULTI; DEL k", "the group ends between MULTI and EXEC" },
    };
    struct rig *rig = rig_new_threads(2);
    struct apply *apply = apply_new(rig->worker);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char reason[256] = "";

        assert_false(
            apply_text(apply, rig, cases[i][0], reason, sizeof(reason)));
        assert_string_equal(cases[i][1], reason);
        expect_applied(apply, rig, "FLUSHALL; SELECT 0; " MAKE("x", "1"));
        run_and_expect(rig, "EXISTS k x", ":1\r\n");
        expect_applied(apply, rig, "FLUSHALL");
    }
    apply_free(apply);
    rig_free(rig);
}

TEST(bytes_that_are_no_command_are_refused)
{
    struct rig *rig = rig_new();
    struct apply *apply = apply_new(rig->worker);
    char reason[64] = "";

    assert_false(apply_bytes(apply, &rig->service, slice_lit("FLUSHALL\r\n"),
                             reason, sizeof(reason)));
    assert_string_equal("no command at byte 0 of the group", reason);
    apply_free(apply);
    rig_free(rig);
}
