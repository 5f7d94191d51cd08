/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Workers on threads of their own, adding to the same few keys in pipelines
 * while walks, transactions and commands that take the world come between:
 * every item was new to exactly one of them, and the journal has the order in
 * which it happened.
 */
#include "base/metrics.h"
#include "command/dispatch.h"
#include "dispatch_help.h"
#include "dump_help.h"
#include "rig.h"

#include <pthread.h>

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

/* rig.h's batches belong to the rig's own worker; these to one thread. */
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

/* Adds in pipelines, several items to one key at a time, and counts what was
 * new by the replies: less and less. */
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
        adder[i].rig = rig;
        adder[i].index = i;
        adder[i].worker = dispatch_new_worker(&rig->service, i);
        adder[i].random = test_seed() + i;
        session_init(&adder[i].session, true);
        assert_true(batch_reserve(&adder[i].batch, 1000));
        assert_non_null(buf_reserve(&adder[i].words, 65536));
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
        txn_end(&adder[i].session);
        session_fini(&adder[i].session);
        dispatch_free_worker(adder[i].worker);
        batch_fini(&adder[i].batch);
        buf_free(&adder[i].words);
        buf_free(&adder[i].out);
    }
    mem_free(adder);
    rig_free(rig);
}
