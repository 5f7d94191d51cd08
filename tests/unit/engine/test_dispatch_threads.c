/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Several threads, each with a worker, add to the same few keys in pipelines.
 * Walks, transactions and commands under LOCK_WORLD come between. Each item is
 * new in exactly one reply, and the journal has the order of execution.
 *
 * The second part checks that each command that writes or reads a filter waits
 * for the lock of its stripe. It waits for the lock itself, since a race
 * between threads would show a missing lock only by luck.
 */
#include "base/metrics.h"
#include "dispatch_help.h"
#include "dump_help.h"
#include "engine/dispatch.h"
#include "keyspace/keyspace_internal.h"
#include "rig.h"

#include <pthread.h>
#include <sched.h>

enum {
    THREADS = 3,
    THREAD_BATCHES = 600,
    THREAD_COMMANDS = 40,
    STRETCH = 10,
    ITEMS = 2000
};

struct adder {
    struct rig *rig;
    struct worker *worker;
    struct session session;
    struct batch batch;
    struct buf words, out;
    unsigned index;
    uint64_t random;
    uint64_t added[KEYS];
};

/* Adds a command to the thread's own batch. rig.h has only one batch, for the
 * rig's own worker. */
static void
adder_command(struct adder *adder, const char *line)
{
    struct batch *batch = &adder->batch;

    batch->command[batch->count++] =
        (struct batch_command){ .first = (uint32_t)batch->argv_count };
    while (*line != '\0') {
        size_t len = strcspn(line, " ");
        const char *at = adder->words.data + adder->words.len;

        buf_append(&adder->words, line, len);
        batch->argv[batch->argv_count++] = (struct slice){ at, len };
        batch->command[batch->count - 1].argc++;
        line += len;
        line += *line == ' ';
    }
    batch_note_repeat(batch);
}

static void
adder_run(struct adder *adder)
{
    uint32_t done = 0;

    adder->out.len = 0;
    while (done < adder->batch.count) {
        done = dispatch_batch(adder->worker, &adder->session, &adder->batch,
                              done, UINT64_MAX, &adder->out);
        if (adder->out.len >= 64 * 1024) {
            adder->out.len = 0;
        }
    }
    adder->batch.count = 0;
    adder->batch.argv_count = 0;
    adder->words.len = 0;
}

static void
open_adder(struct rig *rig, unsigned index, struct adder *adder)
{
    *adder = (struct adder){ .rig = rig, .index = index };
    adder->worker = dispatch_new_worker(&rig->service, index);
    session_init(&adder->session, true);
    assert_true(batch_reserve(&adder->batch, 1000));
    assert_non_null(buf_reserve(&adder->words, 65536));
}

static void
close_adder(struct adder *adder)
{
    txn_end(&adder->session);
    session_fini(&adder->session);
    dispatch_free_worker(adder->worker);
    batch_fini(&adder->batch);
    buf_free(&adder->words);
    buf_free(&adder->out);
}

/* Adds random items in one pipeline, STRETCH commands to a key. Counts in
 * adder->added the items that the replies call new. */
static void
add_some(struct adder *adder)
{
    unsigned key[THREAD_COMMANDS];
    size_t at = 0;

    for (int i = 0; i < THREAD_COMMANDS; i++) {
        char line[LINE_MAX_BYTES];

        key[i] = i % STRETCH == 0 ? below(&adder->random, KEYS) : key[i - 1];
        (void)snprintf(line, sizeof(line), "BF.ADD %s i%u", names[key[i]],
                       below(&adder->random, ITEMS));
        adder_command(adder, line);
    }
    adder_run(adder);
    assert_int_equal(THREAD_COMMANDS * 4, adder->out.len);
    for (int i = 0; i < THREAD_COMMANDS; i++, at += 4) {
        adder->added[key[i]] += adder->out.data[at + 1] == '1';
    }
}

static void
do_others(struct adder *adder)
{
    static const char *const others[] = {
        "MULTI",
        "BF.EXISTS k i1",
        "KEYS *",
        "DBSIZE",
        "BF.CARD k",
        "EXEC",
        "WATCH k other",
        "MULTI",
        "BF.EXISTS k i2",
        "EXPIRE k 1000",
        "EXEC",
        "SCAN 0 COUNT 100",
        "RANDOMKEY",
        "PERSIST k",
        "INFO",
        "KEYS *",
        "CONFIG SET maxmemory 0",
        "BF.MADD k a b",
        "SELECT 1",
        "BF.ADD tmp a",
        "DEL tmp k",
        "FLUSHDB",
        "SELECT 0",
        "CONFIG GET max*",
        "DEL other",
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        adder_command(adder, others[i]);
        if (below(&adder->random, 4) == 0) {
            adder_run(adder);
        }
    }
    adder_run(adder);
}

static void *
add_and_others(void *arg)
{
    struct adder *adder = arg;

    for (int i = 0; i < THREAD_BATCHES; i++) {
        add_some(adder);
        if (i % 8 == 0) {
            do_others(adder);
        }
    }
    metric_thread_exit();
    return NULL;
}

static void
conf_changed(void *ctx, const struct conf_changes *changes)
{
    struct rig *rig = ctx;

    (void)changes;
    service_follow_conf(&rig->service);
}

static void
expect_same_dumps(struct rig *rig)
{
    struct rig *to = rig_new();

    effects_take(rig);
    to->service.journal = NULL;
    repeat_effects(to, buf_slice(&rig->effects.raw));
    assert_true(compare_dumps(rig, to) >= KEYS);
    rig_free(to);
}

TEST(threads_on_few_keys_agree_on_what_was_new)
{
    struct rig *rig = rig_new_threads(THREADS);
    struct adder *adder = mem_zalloc(THREADS * sizeof(*adder));
    pthread_t thread[THREADS];

    choose_names();
    rig->service.conf_changed = conf_changed;
    rig->service.ctx = rig;
    rig->service.registry = NULL;
    for (unsigned i = 0; i < THREADS; i++) {
        open_adder(rig, i, &adder[i]);
        adder[i].random = test_seed() + i;
        assert_int_equal(
            0, pthread_create(&thread[i], NULL, add_and_others, &adder[i]));
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(0, pthread_join(thread[i], NULL));
    }
    for (int k = 0; k < KEYS; k++) {
        uint64_t added = 0;
        char line[LINE_MAX_BYTES];

        for (unsigned i = 0; i < THREADS; i++) {
            added += adder[i].added[k];
        }
        (void)snprintf(line, sizeof(line), "BF.CARD %s", names[k]);
        run_text(rig, line, true);
        (void)snprintf(line, sizeof(line), ":%" PRIu64 "\r\n", added);
        assert_true(slice_equal(slice_of(line), buf_slice(&rig->out)));
    }
    expect_same_dumps(rig);
    for (unsigned i = 0; i < THREADS; i++) {
        close_adder(&adder[i]);
    }
    mem_free(adder);
    rig_free(rig);
}

/* ---- waiting for the lock of a stripe ------------------------------------ */

struct waiter {
    struct adder adder;
    atomic_bool done;
};

static void *
run_waiter(void *arg)
{
    struct waiter *waiter = arg;

    adder_run(&waiter->adder);
    atomic_store(&waiter->done, true);
    metric_thread_exit();
    return NULL;
}

/* Checks that COMMAND waits for the lock of k's stripe. This thread locks the
 * stripe: exclusively if COMMAND reads, shared if it writes, since a write
 * needs the exclusive lock. Another thread runs COMMAND `times` times in one
 * pipeline. It must change the lock's state, as a waiter does, before it is
 * done. */
static void
expect_wait_of(struct waiter *waiter, const char *command, int times,
               bool writes)
{
    unsigned at = keyspace_stripe_of(hash_name(slice_lit("k")));
    struct keyspace *ks = waiter->adder.rig->service.keyspace;
    struct stripe_lock *lock = &ks->stripes[at].lock;
    uint32_t before;
    pthread_t thread;

    for (int i = 0; i < times; i++) {
        adder_command(&waiter->adder, command);
    }
    keyspace_lock(ks, 0, at, !writes);
    before = atomic_load(&lock->state);
    assert_int_equal(0, pthread_create(&thread, NULL, run_waiter, waiter));
    while (atomic_load(&lock->state) == before && !atomic_load(&waiter->done)) {
        (void)sched_yield();
    }
    if (atomic_load(&waiter->done)) {
        fail_msg("%s, %d in a pipeline, does not take its lock", command,
                 times);
    }
    keyspace_unlock(ks, 0, at);
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_true(atomic_load(&waiter->done));
}

static void
expect_wait(struct rig *rig, const char *command, int times, bool writes)
{
    struct waiter waiter = { .done = false };

    open_adder(rig, 1, &waiter.adder);
    expect_wait_of(&waiter, command, times, writes);
    close_adder(&waiter.adder);
}

TEST(commands_on_a_filter_wait_for_its_stripe)
{
    static const struct {
        const char *command;
        bool writes;
    } rows[] = {
        { "BF.ADD k new", true },        { "BF.MADD k a b c", true },
        { "BF.INSERT k ITEMS d", true }, { "BF.RESET k", true },
        { "BF.EXISTS k new", false },    { "BF.MEXISTS k a b", false },
        { "BF.CARD k", false },          { "BF.INFO k", false },
    };
    struct rig *rig = rig_new_threads(2);

    run_text(rig, "BF.ADD k x", true);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_wait(rig, rows[i].command, 1, rows[i].writes);
        expect_wait(rig, rows[i].command, 40, rows[i].writes);
    }
    rig_free(rig);
}

/* After several runs that changed nothing, a run of adds first looks the items
 * up under the shared lock (run_unchanged). It then waits for a writer like any
 * other reader. */
TEST(adds_of_known_items_wait_for_a_writer)
{
    struct rig *rig = rig_new_threads(2);
    struct waiter waiter = { .done = false };

    run_text(rig, "BF.ADD k x", true);
    open_adder(rig, 1, &waiter.adder);
    for (int i = 0; i < 20; i++) {
        for (int j = 0; j < 10; j++) {
            adder_command(&waiter.adder, "BF.ADD k x");
        }
        adder_run(&waiter.adder);
    }
    expect_wait_of(&waiter, "BF.ADD k x", 40, false);
    close_adder(&waiter.adder);
    rig_free(rig);
}
