/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A service without sockets: a worker, a session and a keyspace made by hand,
 * commands as text, and a sink that records the effects of writes both as
 * lines to compare and as words to repeat. For tests of the command layer;
 * one thread.
 */
#pragma once

#include "../test.h"
#include "base/mem.h"
#include "command/dispatch.h"
#include "command/txn.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- a service without sockets --------------------------------------------
 */

struct effects {
    struct buf text; /* one effect a line; see record() */
    struct buf raw;  /* the same as words: u32 db, u32 argc, (u32 len, bytes) */
    size_t count;
};

struct rig {
    struct conf conf;
    struct service service;
    struct effect_sink sink;
    struct effects effects;
    struct worker *worker;
    struct session session;
    struct batch batch;
    struct buf words; /* of the batch */
    struct buf out;
};

static const unsigned char fixed_seed[BLOOM_SEED_BYTES] = {
    0x59, 0x0f, 0xf5, 0x22, 0xea, 0x78, 0x11, 0xda, 0xa7, 0x14, 0xd8,
    0x09, 0x3b, 0x3e, 0x7b, 0xd9, 0x1d, 0x89, 0x8a, 0x73, 0x3e, 0x98,
    0x88, 0x87, 0x30, 0x7f, 0x97, 0xcd, 0x28, 0x07, 0x33, 0x83,
};

static inline void
append_u32(struct buf *buf, uint32_t value)
{
    buf_append(buf, &value, sizeof(value));
}

static inline void
record(void *ctx, uint32_t db, const struct slice *argv, size_t argc)
{
    struct effects *effects = ctx;
    struct slice seed = { (const char *)fixed_seed, sizeof(fixed_seed) };

    buf_printf(&effects->text, "%s%" PRIu32 ":", effects->count++ ? "\n" : "",
               db);
    append_u32(&effects->raw, db);
    append_u32(&effects->raw, (uint32_t)argc);
    for (size_t i = 0; i < argc; i++) {
        buf_append(&effects->text, " ", 1);
        buf_append_slice(&effects->text, slice_equal(argv[i], seed)
                                             ? slice_lit("<seed>")
                                             : argv[i]);
        append_u32(&effects->raw, (uint32_t)argv[i].len);
        buf_append_slice(&effects->raw, argv[i]);
    }
}

static inline void
record_mark(struct effects *effects, const char *mark)
{
    buf_printf(&effects->text, "%s%s", effects->count++ ? "\n" : "", mark);
}

static inline void
record_begin(void *ctx)
{
    record_mark(ctx, "begin");
}

static inline void
record_end(void *ctx)
{
    record_mark(ctx, "end");
}

static inline void
effects_clear(struct effects *effects)
{
    effects->text.len = 0;
    effects->raw.len = 0;
    effects->count = 0;
}

static inline void
set_option(struct rig *rig, const char *name, const char *value)
{
    struct conf_error error;
    const struct conf_row *row = conf_find(slice_of(name));

    assert_non_null(row);
    if (!conf_set(&rig->conf, row, slice_of(value), &error)) {
        fail_msg("%s: %s", name, error.text);
    }
    service_limit_filters(&rig->service);
}

/* threads: more than one, and locks are taken. */
static inline struct rig *
rig_new_threads(unsigned threads)
{
    struct rig *rig = mem_zalloc(sizeof(*rig));
    struct keyspace_options options = { .threads = threads, .databases = 16 };

    command_table_init();
    conf_init(&rig->conf);
    rig->service.conf = &rig->conf;
    set_option(rig, "bf.bloom-use-random-seed", "no");
    rig->sink =
        (struct effect_sink){ record_begin, record, record_end, &rig->effects };
    rig->service.keyspace = keyspace_new(&options);
    rig->service.stats = stats_new(threads, CMD_ID_COUNT);
    rig->service.threads = threads;
    rig->service.limits.multi_commands_max = 1000;
    rig->service.limits.multi_bytes_max = 1 << 20;
    rig->service.sink = &rig->sink;
    rig->worker = dispatch_new_worker(&rig->service, 0);
    session_init(&rig->session, true);
    return rig;
}

static inline struct rig *
rig_new(void)
{
    return rig_new_threads(1);
}

static inline void
rig_free(struct rig *rig)
{
    txn_end(&rig->session);
    session_fini(&rig->session);
    dispatch_free_worker(rig->worker);
    keyspace_free(rig->service.keyspace);
    stats_free(rig->service.stats);
    conf_fini(&rig->conf);
    batch_fini(&rig->batch);
    buf_free(&rig->words);
    buf_free(&rig->out);
    buf_free(&rig->effects.text);
    buf_free(&rig->effects.raw);
    mem_free(rig);
}

/* ---- batches ---------------------------------------------------------------
 */

enum { BATCH_WORDS_MAX = 8192 };

/* Slices point into rig->words, which is large enough not to move. */
static inline void
batch_begin(struct rig *rig)
{
    struct batch *batch = &rig->batch;

    if (batch->argv == NULL) {
        batch->argv = mem_alloc(BATCH_WORDS_MAX * sizeof(*batch->argv));
        batch->argv_capacity = BATCH_WORDS_MAX;
        assert_non_null(buf_reserve(&rig->words, 1 << 20));
    }
    batch->argv_count = 0;
    batch->count = 0;
    rig->words.len = 0;
}

static inline void
batch_word(struct rig *rig, struct slice word)
{
    struct batch *batch = &rig->batch;
    const char *at = rig->words.data + rig->words.len;

    assert_true(batch->argv_count < BATCH_WORDS_MAX);
    assert_true(rig->words.capacity - rig->words.len >= word.len);
    buf_append_slice(&rig->words, word);
    batch->argv[batch->argv_count++] = (struct slice){ at, word.len };
    batch->command[batch->count - 1].argc++;
}

static inline void
batch_command(struct rig *rig)
{
    struct batch *batch = &rig->batch;

    assert_true(batch->count < BATCH_COMMANDS_MAX);
    batch->command[batch->count++] =
        (struct batch_command){ .first = (uint32_t)batch->argv_count };
}

/* One command, its words between blanks; <seed> is the fixed seed. */
static inline void
batch_text(struct rig *rig, const char *text)
{
    batch_command(rig);
    while (*text != '\0') {
        struct slice word = { text, strcspn(text, " ") };

        text += word.len;
        text += *text == ' ';
        if (slice_equal(word, slice_lit("<seed>"))) {
            word =
                (struct slice){ (const char *)fixed_seed, sizeof(fixed_seed) };
        }
        batch_word(rig, word);
    }
}

static inline void
batch_run(struct rig *rig)
{
    uint32_t done = 0;

    rig->out.len = 0;
    while (done < rig->batch.count) {
        uint32_t next = dispatch_batch(rig->worker, &rig->session, &rig->batch,
                                       done, UINT64_MAX, &rig->out);

        assert_true(next > done);
        done = next;
    }
    assert_false(rig->out.failed);
}

/* Commands between semicolons, in one batch or each in a batch of its own. */
static inline void
run_text(struct rig *rig, const char *text, bool together)
{
    char line[512];

    batch_begin(rig);
    while (*text != '\0') {
        size_t len = strcspn(text, ";");

        assert_true(len < sizeof(line));
        memcpy(line, text, len);
        line[len] = '\0';
        text += len;
        text += strspn(text, "; ");
        batch_text(rig, line);
        if (!together || *text == '\0') {
            batch_run(rig);
            batch_begin(rig);
        }
    }
}
