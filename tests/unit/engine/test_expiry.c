/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys that go by themselves: each as a DEL in the journal, which those who
 * hear of it wait for; not at all where the journal has no room, or where this
 * server is not the one to decide.
 */
#include "engine/expiry.h"

#include "base/hash.h"
#include "base/metrics.h"
#include "engine/pause.h"
#include "scene.h"

#include <stdlib.h>

enum { KEYS = 300, LATER_MS = 1 << 20, BUDGET_US = 1000000 };

static void
put(struct rig *rig, struct slice name, uint32_t db)
{
    struct key key = key_named(name, db);
    struct entry *entry;

    batch_begin(rig);
    batch_text(rig, "BF.RESERVE");
    batch_word(rig, name);
    batch_word(rig, slice_lit("0.01"));
    batch_word(rig, slice_lit("100"));
    batch_run(rig);
    entry = keyspace_find(rig->service.keyspace, &key, 0);
    assert_non_null(entry);
    assert_int_equal(
        OK, keyspace_set_expiry(rig->service.keyspace, &key, entry, LATER_MS));
}

/* Keys in database 3 that all end at LATER_MS; none of it is an effect yet. */
static struct rig *
filled(unsigned threads)
{
    struct rig *rig = rig_new_threads(threads);

    run_text(rig, "SELECT 3", true);
    for (unsigned i = 0; i < KEYS; i++) {
        char name[16];
        int len = snprintf(name, sizeof(name), "key%u", i);

        put(rig, (struct slice){ name, (size_t)len }, 3);
    }
    effects_clear(rig);
    return rig;
}

static bool
reclaim(struct rig *rig)
{
    return expiry_reclaim(rig->worker, LATER_MS, BUDGET_US);
}

/* Each of the lines is a DEL of another key. */
static void
check_deletions(struct rig *rig, unsigned want)
{
    bool seen[KEYS] = { false };
    const char *at;

    effects_take(rig);
    assert_int_equal(want, rig->effects.count);
    buf_append(&rig->effects.text, "", 1);
    at = rig->effects.text.data;
    for (unsigned i = 0; i < want; i++) {
        char *end;
        unsigned long n;

        assert_memory_equal("3: DEL key", at, 10);
        n = strtoul(at + 10, &end, 10);
        assert_true(n < KEYS && !seen[n]);
        seen[n] = true;
        at = end + 1;
    }
}

TEST(each_key_that_goes_is_a_deletion_in_the_journal)
{
    for (unsigned threads = 1; threads < 3; threads++) {
        struct rig *rig = filled(threads);
        int64_t expired = metric_sum(METRIC_EXPIRED_KEYS);
        int64_t changes = metric_sum(METRIC_CHANGES);

        assert_false(expiry_reclaim(rig->worker, LATER_MS - 1, BUDGET_US));
        assert_int_equal(KEYS, count_keys(rig, 3));
        assert_false(reclaim(rig));
        assert_int_equal(0, count_keys(rig, 3));
        assert_int_equal(expired + KEYS, metric_sum(METRIC_EXPIRED_KEYS));
        assert_int_equal(changes, metric_sum(METRIC_CHANGES));
        assert_null(rig->worker->unkicked);
        assert_int_equal(CONN_RUNS, rig->session.wait);
        check_deletions(rig, KEYS);
        rig_free(rig);
    }
}

TEST(their_stripes_remember_it)
{
    struct rig *rig = filled(1);
    struct slice name = slice_lit("key7");
    unsigned stripe = keyspace_stripe_of(hash_name(name));
    uint64_t before = journal_position(rig->journal);

    assert_false(reclaim(rig));
    assert_true(keyspace_position(rig->service.keyspace, stripe) > before);
    run_text(rig, "EXISTS key7", true);
    assert_int_equal(keyspace_position(rig->service.keyspace, stripe),
                     rig->worker->hold);
    rig_free(rig);
}

TEST(without_a_journal_they_just_go)
{
    struct rig *rig = filled(1);

    rig->service.journal = NULL;
    assert_false(reclaim(rig));
    assert_int_equal(0, count_keys(rig, 3));
    rig->service.journal = rig->journal;
    check_deletions(rig, 0);
    rig_free(rig);
}

TEST(without_room_in_the_journal_they_stay)
{
    struct rig *rig = filled(1);

    run_text(rig, "BF.RESERVE other 0.1 10", true);
    journal_set_limit(rig->journal, 1);
    assert_false(reclaim(rig)); /* nothing to do at once */
    assert_int_equal(KEYS + 1, count_keys(rig, 3));
    effects_clear(rig);
    journal_set_limit(rig->journal, (size_t)1 << 30);
    assert_false(reclaim(rig));
    check_deletions(rig, KEYS);
    rig_free(rig);
}

TEST(without_memory_they_stay)
{
    struct rig *rig = filled(1);

    rig->service.journal = NULL;
    stage_fini(&rig->worker->stage);
    rig->service.journal = rig->journal;
    mem_fail_from(1);
    assert_false(reclaim(rig));
    assert_true(mem_fail_clear());
    assert_int_equal(KEYS, count_keys(rig, 3));
    assert_false(reclaim(rig));
    check_deletions(rig, KEYS);
    rig_free(rig);
}

TEST(the_longest_names_go_as_well)
{
    static const size_t lens[] = { 16200, 16300, 16384, 70000, 400000, 3 };
    struct rig *rig = rig_new();
    char *name = mem_alloc(400000);

    run_text(rig, "SELECT 3", true);
    memset(name, 'x', 400000);
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        put(rig, (struct slice){ name, lens[i] }, 3);
    }
    effects_clear(rig);
    while (reclaim(rig)) {
    }
    assert_int_equal(0, count_keys(rig, 3));
    effects_take(rig);
    assert_int_equal(6, rig->effects.count);
    mem_free(name);
    rig_free(rig);
}

TEST(a_server_that_may_not_expire_keys_removes_none)
{
    struct rig *rig = filled(1);
    struct service *service = &rig->service;

    service->role.replica = true;
    assert_false(reclaim(rig));
    service->role.replica = false;
    atomic_store(&service->grace_until_ms, UINT64_MAX);
    assert_false(reclaim(rig));
    atomic_store(&service->grace_until_ms, 1); /* over */
    pause_begin(service, PAUSE_BY_CLIENT, 1000000, PAUSE_WRITES);
    assert_false(reclaim(rig));
    pause_end(service, PAUSE_BY_CLIENT);
    atomic_store(&service->keeps_expired, true);
    assert_false(reclaim(rig));
    assert_int_equal(KEYS, count_keys(rig, 3));
    run_text(rig, "EXISTS key1", true); /* but nobody finds it */
    assert_true(slice_equal(slice_lit(":0\r\n"), buf_slice(&rig->out)));
    atomic_store(&service->keeps_expired, false);
    assert_false(reclaim(rig));
    check_deletions(rig, KEYS);
    rig_free(rig);
}

TEST(expiry_events_wait_for_the_deletion)
{
    struct scene *scene = scene_new();
    struct rig *rig = scene->rig;
    char want[80];

    run_text(rig, "SELECT 3", true);
    put(rig, slice_lit("key"), 3);
    want_events(scene, "Kx");
    listen_to(scene, "*");
    assert_false(reclaim(rig));
    assert_true(journal_position(rig->journal) > 0);
    (void)snprintf(want, sizeof(want),
                   "0 %" PRIu64 " __keyspace@3__:key expired\n",
                   journal_position(rig->journal));
    (void)uv_run(&scene->loop.uv, UV_RUN_NOWAIT); /* it was woken */
    buf_append(&scene->seen, "", 1);
    assert_string_equal(want, scene->seen.data);
    scene_free(scene);
}

/* The stage is the one that client's commands use. */
TEST(commands_go_on_between)
{
    struct rig *rig = filled(1);

    while (expiry_reclaim(rig->worker, LATER_MS, 0)) {
        run_text(rig,
                 "BF.EXISTS key1 a; PING; BF.ADD other a; BF.ADD other b; "
                 "MULTI; DEL other; EXEC",
                 true);
    }
    assert_int_equal(0, count_keys(rig, 3));
    effects_take(rig);
    assert_true(rig->effects.count > 2 * KEYS);
    rig_free(rig);
}

TEST(remains_of_a_flush_are_no_deletions)
{
    struct rig *rig = filled(1);

    run_text(rig, "SELECT 0; BF.ADD k a; SELECT 3; FLUSHDB", true);
    effects_clear(rig);
    while (reclaim(rig)) {
    }
    check_deletions(rig, 0);
    rig_free(rig);
}
