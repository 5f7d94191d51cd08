/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs: what is done for many one-item commands at once is what they do one by
 * one (any mixture of them is in test_dispatch.c), and adds of items that are
 * there already, which need no exclusive lock, leave all as the others do. That
 * a run was done so shows in the version of its key, which stays.
 */
#include "engine/run.h"

#include "base/metrics.h"
#include "dispatch_help.h"
#include "keyspace/access.h"
#include "rig.h"
#include "scene.h"

/* What is created in a run is there for the rest of it. */
TEST(a_run_sees_what_it_did_itself)
{
    struct rig *rig = rig_new();
    char text[400];

    choose_names();
    (void)snprintf(text, sizeof(text),
                   "BF.ADD %s a; BF.ADD %s a; BF.ADD %s a; BF.ADD %s a; "
                   "BF.ADD %s b; BF.EXISTS %s a; BF.EXISTS %s b; "
                   "BF.EXISTS %s c",
                   names[0], names[1], names[0], names[1], names[0], names[0],
                   names[0], names[1]);
    run_text(rig, text, true);
    expect_replies(rig, ":1\r\n:1\r\n:0\r\n:0\r\n:1\r\n:1\r\n:1\r\n:0\r\n");
    rig_free(rig);
}

TEST(a_long_pipeline_of_one_kind_is_done_in_order)
{
    struct rig *rig = rig_new();

    batch_begin(rig);
    for (int i = 0; i < BATCH_COMMANDS_MAX; i++) {
        batch_text(rig, i % 2 == 0 ? "BF.ADD k x" : "BF.ADD k y");
    }
    batch_run(rig);
    assert_int_equal(BATCH_COMMANDS_MAX * 4, rig->out.len);
    assert_memory_equal(":1\r\n:1\r\n:0\r\n", rig->out.data, 12);
    for (size_t at = 8; at < rig->out.len; at += 4) {
        assert_memory_equal(":0\r\n", rig->out.data + at, 4);
    }
    rig_free(rig);
}

/* ---- what is hashed before the lock ---------------------------------------
 */

/* Runs "COMMAND k iN" for N below 20 in one batch, and expects one reply. */
static void
expect_run(struct rig *rig, const char *command, const char *reply)
{
    char line[LINE_MAX_BYTES];

    batch_begin(rig);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(line, sizeof(line), "%s k i%d", command, i);
        batch_text(rig, line);
    }
    batch_run(rig);
    assert_int_equal(20 * strlen(reply), rig->out.len);
    for (size_t at = 0; at < rig->out.len; at += strlen(reply)) {
        assert_memory_equal(reply, rig->out.data + at, strlen(reply));
    }
}

/* What the loop remembers of a filter outlives it: the next one of this name
 * has another seed, or other layers. */
TEST(items_are_added_with_the_hashes_of_the_filter_that_is_there)
{
    static const char *const changes[] = {
        "DEL k; BF.RESERVE k 0.001 2000",
        "BF.RESET k",
        "DEL k",
        "BF.RESERVE l 1e-9 5; DEL k; RENAME l k",
        "FLUSHALL; BF.RESERVE k 0.1 1000000",
    };
    struct rig *rig = rig_new_threads(2);

    set_option(rig, "bf.bloom-use-random-seed", "yes");
    for (size_t i = 0; i < 10 * sizeof(changes) / sizeof(changes[0]); i++) {
        expect_run(rig, "BF.ADD", ":1\r\n");
        expect_run(rig, "BF.EXISTS", ":1\r\n");
        expect_run(rig, "BF.ADD", ":0\r\n");
        run_text(rig, changes[i % (sizeof(changes) / sizeof(changes[0]))],
                 true);
    }
    rig_free(rig);
}

/* ---- what is there already ----------------------------------------------- */

enum { KNOWN = 20, WARM_RUNS = 12 };

/* "BF.ADD k iN" for each of so many items from the first on, in one batch. */
static void
add_items(struct rig *rig, struct session *session, unsigned first,
          unsigned count)
{
    char line[LINE_MAX_BYTES];

    batch_begin(rig);
    for (unsigned i = first; i < first + count; i++) {
        (void)snprintf(line, sizeof(line), "BF.ADD k i%u", i);
        batch_text(rig, line);
    }
    rig->out.len = 0;
    for (uint32_t done = 0; done < count;) {
        done = dispatch_batch(rig->worker, session, &rig->batch, done,
                              UINT64_MAX, &rig->out);
    }
}

static struct entry *
entry_k(struct rig *rig)
{
    struct key key = key_named(slice_lit("k"), 0);

    return keyspace_find(rig->service.keyspace, &key, 0);
}

static uint64_t
position_k(struct rig *rig)
{
    unsigned stripe = keyspace_stripe_of(hash_name(slice_lit("k")));

    return keyspace_position(rig->service.keyspace, stripe);
}

static void
expect_all(struct rig *rig, const char *reply, unsigned count)
{
    size_t len = strlen(reply);

    assert_int_equal(count * len, rig->out.len);
    for (unsigned i = 0; i < count; i++) {
        assert_memory_equal(reply, rig->out.data + i * len, len);
    }
}

/* The items are there, and so often were that the worker expects it. */
static struct rig *
warm_rig(void)
{
    struct rig *rig = rig_new_threads(2);

    for (int i = 0; i < WARM_RUNS; i++) {
        add_items(rig, &rig->session, 0, KNOWN);
    }
    effects_clear(rig);
    return rig;
}

/* Adds what is there, and says whether that was done without opening the key
 * for writing. */
static bool
adds_unseen(struct rig *rig)
{
    uint64_t version = entry_k(rig)->version;

    add_items(rig, &rig->session, 0, KNOWN);
    expect_all(rig, ":0\r\n", KNOWN);
    return entry_k(rig)->version == version;
}

struct figures {
    uint64_t calls;
    int64_t commands, hits, misses, changes;
};

static struct figures
figures_of(struct rig *rig)
{
    return (struct figures){
        .calls = stats_sum_command(rig->service.stats, CMD_ID_BF_ADD).calls,
        .commands = metric_sum(METRIC_COMMANDS),
        .hits = metric_sum(METRIC_KEYSPACE_HITS),
        .misses = metric_sum(METRIC_KEYSPACE_MISSES),
        .changes = metric_sum(METRIC_CHANGES),
    };
}

TEST(known_items_are_answered_without_a_trace_but_in_the_figures)
{
    struct rig *rig = warm_rig();
    struct figures before = figures_of(rig);
    struct figures after;

    assert_true(adds_unseen(rig));
    after = figures_of(rig);
    assert_int_equal(KNOWN, after.calls - before.calls);
    assert_int_equal(KNOWN, after.commands - before.commands);
    assert_int_equal(before.hits, after.hits);
    assert_int_equal(before.misses, after.misses);
    assert_int_equal(before.changes, after.changes);
    effects_take(rig);
    assert_int_equal(0, rig->effects.count);
    /* One alone is no run, and nothing is looked for first. */
    add_items(rig, &rig->session, 0, 1);
    expect_all(rig, ":0\r\n", 1);
    rig_free(rig);
}

TEST(known_items_are_answered_in_each_protocol_and_dialect)
{
    struct rig *rig = warm_rig();

    rig->session.resp = 3;
    assert_true(adds_unseen(rig));
    set_option(rig, "dialect", "redis");
    add_items(rig, &rig->session, 0, KNOWN);
    expect_all(rig, "#f\r\n", KNOWN);
    rig->session.resp = 2;
    assert_true(adds_unseen(rig));
    rig_free(rig);
}

TEST(each_known_item_is_a_use_of_its_key)
{
    struct access_policy policy = { .counts = true, .log_factor = 0 };
    struct rig *rig = warm_rig();
    struct keyspace *ks = rig->service.keyspace;

    access_set_idle(keyspace_access(ks), entry_k(rig), 1000);
    assert_true(access_idle_s(keyspace_access(ks), entry_k(rig)) >= 999);
    rig->session.no_touch = true;
    assert_true(adds_unseen(rig));
    assert_true(access_idle_s(keyspace_access(ks), entry_k(rig)) >= 999);
    rig->session.no_touch = false;
    assert_true(adds_unseen(rig));
    assert_int_equal(0, access_idle_s(keyspace_access(ks), entry_k(rig)));
    access_set_policy(keyspace_access(ks), &policy);
    access_set_frequency(entry_k(rig), 7);
    assert_true(adds_unseen(rig));
    assert_int_equal(7 + KNOWN,
                     access_frequency(keyspace_access(ks), entry_k(rig)));
    rig_free(rig);
}

/* The look for the others is for nothing, and they are not looked for again
 * until several runs changed nothing. */
TEST(one_new_item_makes_a_run_a_write)
{
    struct rig *rig = warm_rig();

    for (unsigned at = 0; at < KNOWN; at++) {
        char line[LINE_MAX_BYTES];

        while (!adds_unseen(rig)) {
        }
        batch_begin(rig);
        for (unsigned i = 0; i < KNOWN; i++) {
            (void)snprintf(line, sizeof(line), "BF.ADD k %s%u",
                           i == at ? "new" : "i", i);
            batch_text(rig, line);
        }
        batch_run(rig);
        assert_int_equal(KNOWN * 4, rig->out.len);
        for (unsigned i = 0; i < KNOWN; i++) {
            assert_int_equal(i == at ? '1' : '0', rig->out.data[i * 4 + 1]);
        }
        assert_false(adds_unseen(rig));
    }
    effects_take(rig);
    assert_int_equal(KNOWN, rig->effects.count);
    run_text(rig, "BF.CARD k", true);
    expect_replies(rig, ":40\r\n");
    rig_free(rig);
}

TEST(expired_and_missing_filters_are_made_anew)
{
    struct rig *rig = warm_rig();

    assert_true(adds_unseen(rig));
    end_time_of(rig, "k", 0);
    add_items(rig, &rig->session, 0, KNOWN);
    expect_all(rig, ":1\r\n", KNOWN);
    effects_take(rig);
    assert_int_equal(1 + KNOWN, rig->effects.count); /* DEL, BF.INSERT, ... */
    for (int i = 0; i < WARM_RUNS; i++) {
        (void)adds_unseen(rig);
    }
    assert_true(adds_unseen(rig));
    run_text(rig, "DEL k", true);
    add_items(rig, &rig->session, 0, KNOWN);
    expect_all(rig, ":1\r\n", KNOWN);
    rig_free(rig);
}

/* Whatever refuses writes refuses those that would change nothing. */
TEST(known_items_are_refused_as_all_writes_are)
{
    static const enum err refusals[] = { ERR_ENDING, ERR_MISCONF_SAVE,
                                         ERR_MISCONF_JOURNAL };
    struct rig *rig = warm_rig();
    char expected[1024];

    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        (void)snprintf(expected, sizeof(expected), "-%s %s\r\n",
                       err_prefix(refusals[i]), err_text(refusals[i]));
        atomic_store(&rig->service.write_refusal, (int)refusals[i]);
        add_items(rig, &rig->session, 0, KNOWN);
        expect_all(rig, expected, KNOWN);
        atomic_store(&rig->service.write_refusal, OK);
        assert_true(adds_unseen(rig));
    }
    atomic_store(&rig->service.few_replicas, true);
    add_items(rig, &rig->session, 0, KNOWN);
    expect_all(rig, "-NOREPLICAS Not enough good replicas to write.\r\n",
               KNOWN);
    atomic_store(&rig->service.few_replicas, false);
    rig->service.role.replica = true;
    add_items(rig, &rig->session, 0, 1);
    assert_memory_equal("-READONLY", rig->out.data, 9);
    rig->service.role.replica = false;
    set_option(rig, "maxmemory", "1");
    add_items(rig, &rig->session, 0, KNOWN);
    expect_all(rig,
               "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
               KNOWN);
    set_option(rig, "maxmemory", "0");
    assert_true(adds_unseen(rig));
    rig_free(rig);
}

/* Who hears that an item is there relies on the add that put it there. */
TEST(replies_to_known_items_wait_for_what_put_them_there)
{
    struct rig *rig = warm_rig();
    struct session other;
    uint64_t position = position_k(rig);

    session_init(&other, true);
    assert_true(position > 0);
    run_text(rig, "BF.ADD elsewhere x", true);
    assert_true(other.written == 0 && rig->worker->hold > position);
    add_items(rig, &other, 0, KNOWN);
    expect_all(rig, ":0\r\n", KNOWN);
    assert_int_equal(position, rig->worker->hold);
    assert_int_equal(position, other.written);
    assert_int_equal(position, position_k(rig));
    session_fini(&other);
    rig_free(rig);
}

/* They need no room in it; what is new does. */
TEST(known_items_are_answered_while_the_journal_is_full)
{
    struct rig *rig = warm_rig();

    journal_set_limit(rig->journal, 1);
    run_text(rig, "BF.ADD elsewhere x", true);
    assert_true(adds_unseen(rig));
    assert_int_equal(CONN_RUNS, rig->session.wait);
    batch_begin(rig);
    batch_text(rig, "BF.ADD k i0");
    batch_text(rig, "BF.ADD k new");
    assert_int_equal(0, dispatch_batch(rig->worker, &rig->session, &rig->batch,
                                       0, UINT64_MAX, &rig->out));
    assert_int_equal(CONN_FOR_ROOM, rig->session.wait);
    rig_free(rig);
}

/* In valkey-bloom's eyes an add changes the key, whatever comes of it. */
TEST(adding_known_items_changes_a_watched_key)
{
    struct rig *rig = warm_rig();
    struct session other;

    session_init(&other, true);
    for (int adds = 0; adds < 2; adds++) {
        run_text(rig, "WATCH k", true);
        if (adds == 1) {
            add_items(rig, &other, 0, KNOWN);
            expect_all(rig, ":0\r\n", KNOWN);
        }
        run_text(rig, "MULTI; BF.CARD k; EXEC", true);
        expect_replies(rig, adds == 1 ? "+OK\r\n+QUEUED\r\n*-1\r\n"
                                      : "+OK\r\n+QUEUED\r\n*1\r\n:20\r\n");
    }
    while (!adds_unseen(rig)) {
    }
    session_fini(&other);
    rig_free(rig);
}

TEST(known_items_are_told_to_who_looks)
{
    struct scene *scene = scene_new();
    struct rig *rig = scene->rig;
    uint64_t version = 0;

    for (int i = 0; i < 3 * WARM_RUNS; i++) {
        want_events(scene, i / WARM_RUNS == 1 ? "KEg" : "");
        add_items(rig, &rig->session, 0, KNOWN);
        if (i % WARM_RUNS == WARM_RUNS - 1) {
            assert_int_equal(i / WARM_RUNS == 1,
                             entry_k(rig)->version != version);
        }
        version = entry_k(rig)->version;
    }
    scene_free(scene);
}

/* ---- at random ----------------------------------------------------------- */

enum { FEW_ITEMS = 60, RANDOM_RUNS = 3000 };

/* Mostly adds of what is there; sometimes the key goes, or its time is over. */
static void
random_run(struct rig *rig, uint64_t *random, unsigned *range)
{
    static const char *const others[] = { "DEL k",     "EXPIREAT k 4000000000",
                                          "PERSIST k", "BF.EXISTS k i1",
                                          "WATCH k",   "UNWATCH",
                                          "BF.INFO k" };
    unsigned choice = below(random, 200);
    unsigned count = 1 + below(random, 40);
    char line[LINE_MAX_BYTES];

    *range = choice == 0 ? 5 : *range + (*range < FEW_ITEMS && choice < 40);
    batch_begin(rig);
    if (choice > 190) {
        batch_text(rig, others[choice % (sizeof(others) / sizeof(others[0]))]);
    }
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(line, sizeof(line), "BF.ADD k i%u",
                       below(random, *range));
        batch_text(rig, line);
    }
    batch_run(rig);
    if (choice == 1) {
        end_time_of(rig, "k", 0);
    }
}

TEST(runs_do_the_same_whatever_is_expected_of_them)
{
    uint64_t random = test_seed();
    struct rig *rig[] = { rig_new_threads(2), rig_new_threads(2) };
    unsigned expected = 0;
    unsigned range = 5;

    for (unsigned i = 0; i < RANDOM_RUNS; i++) {
        uint64_t seed = test_random(&random);
        unsigned before = range;

        for (int r = 0; r < 2; r++) {
            uint64_t same = seed;

            range = before;
            if (r == 1) { /* it never expects anything */
                memset(rig[1]->worker->unchanged, 0, WORKER_PLACES);
            }
            random_run(rig[r], &same, &range);
        }
        for (unsigned p = 0; p < WORKER_PLACES; p++) {
            expected += rig[0]->worker->unchanged[p] == 8;
        }
        assert_int_equal(rig[1]->out.len, rig[0]->out.len);
        assert_memory_equal(rig[1]->out.data, rig[0]->out.data,
                            rig[0]->out.len);
    }
    assert_true(expected > RANDOM_RUNS / 10);
    effects_take(rig[0]);
    effects_take(rig[1]);
    assert_true(slice_equal(buf_slice(&rig[0]->effects.text),
                            buf_slice(&rig[1]->effects.text)));
    rig_free(rig[0]);
    rig_free(rig[1]);
}
