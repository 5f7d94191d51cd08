/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include "../journal/drain_help.h"

/* ---- a service without sockets --------------------------------------------
 */

const unsigned char fixed_seed[BLOOM_SEED_BYTES] = {
    0x59, 0x0f, 0xf5, 0x22, 0xea, 0x78, 0x11, 0xda, 0xa7, 0x14, 0xd8,
    0x09, 0x3b, 0x3e, 0x7b, 0xd9, 0x1d, 0x89, 0x8a, 0x73, 0x3e, 0x98,
    0x88, 0x87, 0x30, 0x7f, 0x97, 0xcd, 0x28, 0x07, 0x33, 0x83,
};

/* A line "db: words", the fixed seed as <seed> and an incarnation as <n>, a
 * time of adds as <t>; MULTI and EXEC are "begin" and "end", and SELECT is not
 * shown. */
static void
show_effect(struct effects *effects, uint64_t *db, const struct slice *argv,
            size_t argc)
{
    struct slice seed = { (const char *)fixed_seed, sizeof(fixed_seed) };
    struct buf *text = &effects->text;

    if (slice_is_word(argv[0], "select")) {
        assert_int_equal(2, argc);
        assert_true(slice_to_u64(argv[1], db));
        return;
    }
    buf_printf(text, "%s", effects->count++ > 0 ? "\n" : "");
    if (argc == 1 && slice_is_word(argv[0], "multi")) {
        buf_printf(text, "begin");
        return;
    }
    if (argc == 1 && slice_is_word(argv[0], "exec")) {
        buf_printf(text, "end");
        return;
    }
    buf_printf(text, "%" PRIu64 ":", *db);
    for (size_t i = 0; i < argc; i++) {
        struct slice word = argv[i];

        if (slice_equal(word, seed)) {
            word = slice_lit("<seed>");
        } else if (i > 0 && slice_is_word(argv[i - 1], "incarnation")) {
            word = slice_lit("<n>");
        } else if (i > 0 && slice_is_word(argv[i - 1], "at")) {
            word = slice_lit("<t>");
        }
        buf_append(text, " ", 1);
        buf_append_slice(text, word);
    }
}

/* All commands of a group, which begins with a SELECT. */
static void
show_group(struct effects *effects, struct slice commands)
{
    static const struct parse_limits limits = { .args_max = SIZE_MAX,
                                                .bulk_max = SIZE_MAX,
                                                .query_max = SIZE_MAX };
    struct batch batch = { 0 };
    uint64_t db = UINT64_MAX;
    size_t at = 0;

    while (at < commands.len) {
        size_t before = at;

        batch_clear(&batch);
        assert_int_equal(OK, scan_commands(commands, &limits, &batch, &at));
        assert_true(at > before);
        for (uint32_t i = 0; i < batch.count; i++) {
            show_effect(effects, &db, batch.argv + batch.command[i].first,
                        batch.command[i].argc);
            assert_true(db < 16);
        }
    }
    batch_fini(&batch);
}

void
effects_take(struct rig *rig)
{
    enum { KEY = 42 };
    struct buf bytes = { 0 };
    struct group group = { 0 };

    journal_drain(rig->journal, KEY, &bytes);
    while (group.end < bytes.len) {
        assert_int_equal(GROUP_OK,
                         group_read(buf_slice(&bytes), KEY, group.end, &group));
        show_group(&rig->effects, group.commands);
        buf_append_slice(&rig->effects.raw, group.commands);
    }
    buf_free(&bytes);
}

void
effects_clear(struct rig *rig)
{
    effects_take(rig);
    rig->effects.text.len = 0;
    rig->effects.raw.len = 0;
    rig->effects.count = 0;
}

void
set_option(struct rig *rig, const char *name, const char *value)
{
    struct conf_error error;
    const struct conf_row *row = conf_find(slice_of(name));

    assert_non_null(row);
    if (!conf_set(&rig->conf, row, slice_of(value), &error)) {
        fail_msg("%s: %s", name, error.text);
    }
    service_follow_conf(&rig->service);
}

/* On, and nobody writes what is queued. */
static struct journal *
journal_without_file(void)
{
    struct journal_hooks hooks = { 0 };
    struct journal *journal = journal_new(&hooks);
    struct journal_file file = { .fd = -1 };
    uint64_t position = 0;
    uint64_t sequence = 0;

    journal_set_limit(journal, (size_t)1 << 30);
    journal_set_target(journal, JOURNAL_RESUME, &file, &position, &sequence);
    return journal;
}

static bool
rig_expiry_begin(void *ctx, unsigned thread __attribute__((unused)))
{
    const struct rig *rig = ctx;

    return expiry_begin(rig->worker);
}

static bool
rig_expiry_remove(void *ctx, unsigned thread __attribute__((unused)),
                  const struct key *key)
{
    const struct rig *rig = ctx;

    return expiry_remove(rig->worker, key);
}

static void
rig_expiry_end(void *ctx, unsigned thread __attribute__((unused)),
               unsigned stripe)
{
    const struct rig *rig = ctx;

    expiry_end(rig->worker, stripe);
}

struct rig *
rig_new_threads(unsigned threads)
{
    struct rig *rig = mem_zalloc(sizeof(*rig));
    struct keyspace_options options = {
        .threads = threads,
        .databases = 16,
        .expiry = { rig_expiry_begin, rig_expiry_remove, rig_expiry_end, rig },
    };

    command_table_init(command_rows);
    conf_init(&rig->conf);
    rig->service.conf = &rig->conf;
    rig->service.keyspace = keyspace_new(&options);
    set_option(rig, "bf.bloom-use-random-seed", "no");
    rig->service.stats = stats_new(threads, CMD_ID_COUNT);
    /* They take memory when a command runs first, where tests let it fail. */
    stats_set_spreads(rig->service.stats, false);
    rig->service.sampler = sampler_new();
    rig->service.users = users_new();
    rig->service.threads = threads;
    rig->service.limits.multi_commands_max = 1000;
    rig->service.limits.multi_bytes_max = 1 << 20;
    rig->journal = journal_without_file();
    rig->service.journal = rig->journal;
    rig->worker = dispatch_new_worker(&rig->service, 0);
    session_init(&rig->session, true);
    return rig;
}

struct rig *
rig_new(void)
{
    return rig_new_threads(1);
}

void
rig_free(struct rig *rig)
{
    txn_end(&rig->session);
    session_fini(&rig->session);
    users_free(rig->service.users);
    dispatch_free_worker(rig->worker);
    journal_free(rig->journal);
    keyspace_free(rig->service.keyspace);
    sampler_free(rig->service.sampler);
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

void
batch_begin(struct rig *rig)
{
    struct batch *batch = &rig->batch;

    if (batch->argv == NULL) {
        batch->argv = mem_alloc(BATCH_WORDS_MAX * sizeof(*batch->argv));
        batch->argv_capacity = BATCH_WORDS_MAX;
        assert_non_null(buf_reserve(&rig->words, 1 << 24));
    }
    batch->argv_count = 0;
    batch->count = 0;
    rig->words.len = 0;
}

void
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

void
batch_command(struct rig *rig)
{
    struct batch *batch = &rig->batch;

    assert_true(batch->count < BATCH_COMMANDS_MAX);
    batch->command[batch->count++] =
        (struct batch_command){ .first = (uint32_t)batch->argv_count };
}

void
batch_note_repeat(struct batch *batch)
{
    struct batch_command *last = &batch->command[batch->count - 1];
    const struct slice *argv = batch->argv + last->first;

    last->repeats = batch->count > 1 && last->argc == 3 && last[-1].argc == 3 &&
                    slice_equal(argv[0], argv[-3]) &&
                    slice_equal(argv[1], argv[-2]);
}

void
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
    batch_note_repeat(&rig->batch);
}

void
batch_run(struct rig *rig)
{
    uint32_t done = 0;

    rig->out.len = 0;
    while (done < rig->batch.count) {
        uint32_t next = dispatch_batch(rig->worker, &rig->session, &rig->batch,
                                       done, UINT64_MAX, &rig->out);

        /* What paused goes on at once. */
        assert_true(next > done || rig->session.again != NULL ||
                    rig->session.rights != NULL);
        done = next;
    }
    assert_false(rig->out.failed);
}

void
repeat_effects(struct rig *to, struct slice raw)
{
    struct replay *replay = replay_new(&to->service);
    char reason[256] = "";

    if (!replay_group(replay, raw, reason, sizeof(reason))) {
        fail_msg("%s", reason);
    }
    replay_free(replay);
}

void
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

void
expect_replies(struct rig *rig, const char *expected)
{
    if (!slice_equal(slice_of(expected), buf_slice(&rig->out))) {
        fail_msg("got [%.*s] and not [%s]", (int)rig->out.len,
                 rig->out.len > 0 ? rig->out.data : "", expected);
    }
}

void
run_and_expect(struct rig *rig, const char *commands, const char *expected)
{
    run_text(rig, commands, true);
    expect_replies(rig, expected);
}

struct request
madd_request(struct rig *rig, const struct slice *argv, size_t argc)
{
    struct run run = run_of(&command_rows[CMD_ID_BF_MADD], 1, argv, argc);
    struct request req = { .worker = rig->worker,
                           .service = &rig->service,
                           .keyspace = rig->service.keyspace };

    rig->worker->session = &rig->session;
    execute_prepare(&req, &run, 0);
    return req;
}

uint64_t
count_keys(struct rig *rig, uint32_t db)
{
    uint64_t keys;
    uint64_t expires;

    keyspace_count(rig->service.keyspace, db, &keys, &expires);
    return keys;
}
