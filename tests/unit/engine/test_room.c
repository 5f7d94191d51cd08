/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Eviction as commands meet it: room is made before they run, each eviction is
 * journaled as a DEL in its database, and where nothing may go, they are
 * refused and nothing goes.
 */
#include "engine/room.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "rig.h"

#include <stdlib.h>

/* A filter of 1000 items has some 1300 bytes. Room for 20000 bytes takes at
 * most so many, and fewer where the time of one write is over before. */
enum { KEYS = 200, DELETIONS_MAX = 20 };

#define OOM "-OOM command not allowed when used memory > 'maxmemory'.\r\n"

#define LOADING "-LOADING Bloomery is loading the dataset in memory\r\n"
#define ENDING  "-ERR the server is shutting down\r\n"

/* Keys in database 3, and none of it counts as an effect yet. */
static struct rig *
filled(const char *policy)
{
    struct rig *rig = rig_new();
    char line[64];

    set_option(rig, "maxmemory-policy", policy);
    run_text(rig, "SELECT 3", true);
    for (unsigned i = 0; i < KEYS; i++) {
        (void)snprintf(line, sizeof(line), "BF.RESERVE key%u 0.01 1000", i);
        run_text(rig, line, true);
    }
    effects_clear(rig);
    return rig;
}

static void
lower_limit(struct rig *rig, uint64_t by_bytes)
{
    rig->service.memory.maxmemory_bytes = mem_used() - by_bytes;
}

/* Each line that DELs a key names one that is not there any more. */
static unsigned
check_deletions(struct rig *rig)
{
    const char *text = rig->effects.text.data;
    unsigned deletions = 0;

    while (strncmp(text, "3: DEL key", 10) == 0) {
        size_t len = strcspn(text, "\n");
        struct slice name = { text + 7, len - 7 };
        struct key key = key_named(name, 3);

        assert_null(keyspace_find(rig->service.keyspace, &key, 0));
        deletions++;
        text += len + 1;
    }
    return deletions;
}

TEST(room_is_made_before_a_write_and_journaled_before_it)
{
    static const char *const writes[] = {
        "BF.ADD new a",        /* by the way of runs */
        "BF.MADD new a",       /* one by one */
        "MULTI; BF.ADD new a", /* when it is queued */
    };

    for (unsigned i = 0; i < 3; i++) {
        struct rig *rig = filled("allkeys-random");
        int64_t evicted = metric_sum(METRIC_EVICTED_KEYS);
        unsigned deletions;

        lower_limit(rig, 20000);
        run_text(rig, writes[i], true);
        assert_int_not_equal('-', rig->out.data[0]);
        effects_take(rig);
        buf_append(&rig->effects.text, "", 1);
        deletions = check_deletions(rig);
        assert_in_range(deletions, 1, DELETIONS_MAX);
        assert_int_equal(metric_sum(METRIC_EVICTED_KEYS), evicted + deletions);
        assert_int_equal(count_keys(rig, 3), KEYS - deletions + (i < 2));
        assert_int_equal(rig->effects.count, deletions + (i < 2));
        rig_free(rig);
    }
}

/* They are the first to go, and go as what they are. */
TEST(keys_whose_time_is_over_are_journaled_as_well)
{
    struct rig *rig = filled("allkeys-random");
    int64_t evicted = metric_sum(METRIC_EVICTED_KEYS);
    int64_t expired = metric_sum(METRIC_EXPIRED_KEYS);
    unsigned deletions;

    for (unsigned i = 0; i < KEYS; i++) {
        char name[16];
        struct key key = { .db = 3 };

        key.name = (struct slice){ name, (size_t)snprintf(name, sizeof(name),
                                                          "key%u", i) };
        key.hash = hash_name(key.name);
        assert_int_equal(OK,
                         keyspace_set_expiry(
                             rig->service.keyspace, &key,
                             keyspace_find(rig->service.keyspace, &key, 0), 1));
    }
    lower_limit(rig, 20000);
    run_text(rig, "BF.ADD new a", true);
    effects_take(rig);
    buf_append(&rig->effects.text, "", 1);
    deletions = check_deletions(rig);
    assert_in_range(deletions, 1, DELETIONS_MAX);
    assert_int_equal(metric_sum(METRIC_EXPIRED_KEYS), expired + deletions);
    assert_int_equal(metric_sum(METRIC_EVICTED_KEYS), evicted);
    assert_int_equal(count_keys(rig, 3), KEYS - deletions + 1);
    rig_free(rig);
}

/* Memory is what its primary's data takes; but who writes is told why not. */
TEST(a_replica_evicts_nothing)
{
    static const char *const policies[] = { "allkeys-lru", "noeviction" };

    for (int i = 0; i < 2; i++) {
        struct rig *rig = filled(policies[i]);

        lower_limit(rig, 20000);
        rig->service.role.replica = true;
        run_text(rig, "BF.ADD new a; BF.MADD new a", true);
        assert_memory_equal("-READONLY ", rig->out.data, 10);
        buf_append(&rig->out, "", 1);
        assert_null(strstr(rig->out.data, "OOM"));
        rig->service.role.replica = false;
        atomic_store(&rig->service.grace_until_ms, UINT64_MAX);
        run_text(rig, "BF.ADD new a; BF.MADD new a", true);
        assert_int_equal('-', rig->out.data[0]);
        assert_int_equal(count_keys(rig, 3), KEYS);
        rig_free(rig);
    }
}

TEST(commands_that_need_no_memory_make_no_room)
{
    struct rig *rig = filled("allkeys-lru");

    lower_limit(rig, 20000);
    run_text(rig, "BF.EXISTS key1 a; DEL key2; EXPIRE key1 100; DBSIZE", true);
    assert_int_equal(count_keys(rig, 3), KEYS - 1);
    rig_free(rig);
}

TEST(where_nothing_may_go_growth_is_refused)
{
    struct rig *rig = filled("noeviction");

    lower_limit(rig, 20000);
    run_and_expect(rig, "BF.ADD key1 a; BF.MADD key1 a", OOM OOM);
    set_option(rig, "maxmemory-policy", "volatile-lfu");
    lower_limit(rig, 20000);
    run_and_expect(rig, "BF.ADD key1 a; BF.MADD key1 a", OOM OOM);
    run_text(rig, "EXPIRE key7 100", true);
    run_and_expect(rig, "BF.ADD key1 a", OOM);
    assert_int_equal(count_keys(rig, 3), KEYS - 1);
    rig_free(rig);
}

TEST(nothing_goes_while_the_server_may_not_write)
{
    struct rig *rig = filled("allkeys-random");

    lower_limit(rig, 20000);
    atomic_store(&rig->service.write_refusal, ERR_ENDING);
    run_and_expect(rig, "BF.ADD key1 a; BF.MADD key1 a", ENDING ENDING);
    atomic_store(&rig->service.write_refusal, OK);
    atomic_store(&rig->service.loading, true);
    run_and_expect(rig, "BF.ADD key1 a; BF.MADD key1 a", LOADING LOADING);
    set_option(rig, "maxmemory-policy", "noeviction");
    lower_limit(rig, 20000);
    run_and_expect(rig, "BF.ADD key1 a; BF.MADD key1 a", LOADING LOADING);
    atomic_store(&rig->service.loading, false);
    assert_int_equal(count_keys(rig, 3), KEYS);
    rig_free(rig);
}

TEST(replayed_commands_are_not_refused_and_evict_nothing)
{
    struct rig *rig = filled("allkeys-random");

    lower_limit(rig, 20000);
    rig->session.obey = true;
    run_text(rig, "BF.INSERT new INCARNATION 5 ITEMS a", true);
    assert_int_equal('*', rig->out.data[0]);
    assert_int_equal(count_keys(rig, 3), KEYS + 1);
    rig_free(rig);
}

/* Each key's DEL needs room in the journal's queue. */
TEST(without_room_in_the_journal_the_write_waits_and_no_key_goes)
{
    static const char *const writes[] = { "BF.ADD new a", "BF.MADD new a" };

    for (unsigned i = 0; i < 2; i++) {
        struct rig *rig = filled("allkeys-random");

        run_text(rig, "BF.ADD key1 a", true);
        journal_set_limit(rig->journal, 1);
        lower_limit(rig, 20000);
        batch_begin(rig);
        batch_text(rig, writes[i]);
        rig->out.len = 0;
        assert_int_equal(0,
                         dispatch_batch(rig->worker, &rig->session, &rig->batch,
                                        0, UINT64_MAX, &rig->out));
        assert_true(rig->session.wait == CONN_FOR_ROOM);
        assert_int_equal(0, rig->out.len);
        assert_int_equal(count_keys(rig, 3), KEYS);
        journal_set_limit(rig->journal, (size_t)1 << 30);
        batch_run(rig);
        assert_int_not_equal('-', rig->out.data[0]);
        assert_true(count_keys(rig, 3) < KEYS);
        rig_free(rig);
    }
}

/* So that one write does not stand still for all that a lower limit means. */
TEST(the_work_of_one_write_is_bounded)
{
    struct rig *rig = filled("allkeys-random");
    char line[64];
    uint64_t before;

    for (unsigned i = 0; i < 20000; i++) {
        (void)snprintf(line, sizeof(line), "BF.RESERVE more%u 0.5 1", i);
        run_text(rig, line, true);
    }
    before = count_keys(rig, 3);
    rig->service.memory.maxmemory_bytes = 1;
    run_text(rig, "BF.MADD new a", true);
    /* 1024 keys, and the time may be over earlier. */
    assert_in_range(before - count_keys(rig, 3), 1, 1024);
    rig_free(rig);
}
