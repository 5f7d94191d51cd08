/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random lives that are saved and loaded must be what was live; with a rule of
 * the walk left out, lives must differ. Then single groups, right and wrong.
 */
#include "replay/complete.h"

#include "../engine/group_help.h"
#include "../engine/life.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "keyspace/arrival.h"
#include "keyspace/hash_slot.h"
#include "keyspace/scan.h"
#include "snapshot/insert.h"
#include "snapshot/snapshot_whole.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES_MAX = 2000 }; /* of a thread, however long the walk lasts */

/* In place of libc's, for this binary: a wall clock that is fast, so that
 * generations come and go in a life. */
int
clock_gettime(clockid_t id, struct timespec *ret_now)
{
    enum { TIMES = 50 };
    static const uint64_t begin_ms = 1700000000000;
    struct timespec mono;
    uint64_t ms;

    if (id != CLOCK_REALTIME) {
        return (int)syscall(SYS_clock_gettime, id, ret_now);
    }
    if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &mono) != 0) {
        return -1;
    }
    ms = begin_ms + TIMES * ((uint64_t)mono.tv_sec * 1000 +
                             (uint64_t)mono.tv_nsec / 1000000);
    ret_now->tv_sec = (time_t)(ms / 1000);
    ret_now->tv_nsec = (long)(ms % 1000) * 1000000;
    return 0;
}

/* All zeros: an ordinary life. */
struct kind_of_life {
    const struct walk_part *part; /* that is saved */
    const char *forgets;
};

/* Returns how many of so many lives were not loaded as they were. */
static unsigned
run_lives_of(unsigned count, uint64_t seed, enum rule without, unsigned enough,
             struct kind_of_life kind)
{
    struct life *life = mem_zalloc(sizeof(*life));
    unsigned differ = 0;

    life_name_keys();
    life->writer = snapshot_writer_new();
    life->without = without;
    life->part = kind.part;
    life->forgets = kind.forgets;
    for (unsigned i = 0; i < count && differ < enough; i++) {
        int fd;

        if (i % 50 == 0) { /* its journal keeps everything */
            if (life->rig != NULL) {
                rig_free(life->rig);
            }
            life->rig = rig_new();
            set_option(life->rig, "bf.bloom-capacity", "4");
            set_option(life->rig, "bf.bloom-fp-rate", "0.2");
        }
        life->random = seed + i;
        for (unsigned n = (unsigned)test_random_below(&life->random, 12); n > 0;
             n--) {
            life_run(life);
        }
        fd = life_walk(life);
        if (!life_loads_exactly(life, fd)) {
            differ++;
            if (without == ALL) {
                print_error("life %u of seed %#llx differs\n", i,
                            (unsigned long long)seed);
            }
        }
        file_close(fd);
    }
    rig_free(life->rig);
    print_message("%u items, %u pieces (%u placed), %u gone, %llu moved\n",
                  life->items, life->pieces, life->placed, life->gone,
                  (unsigned long long)life->moved);
    snapshot_writer_free(life->writer);
    buf_free(&life->text);
    mem_free(life);
    return differ;
}

static unsigned
run_lives(unsigned count, uint64_t seed, enum rule without, unsigned enough)
{
    return run_lives_of(count, seed, without, enough,
                        (struct kind_of_life){ .part = NULL });
}

/* ---- lives with threads -------------------------------------------------- */

struct mortal {
    struct life life; /* of which it has rig and random only */
    struct rig rig;   /* for its batches */
    pthread_t thread;
};

static void *
run_until_end(void *ptr)
{
    struct mortal *mortal = ptr;

    for (unsigned i = 0; !atomic_load(mortal->life.ends); i++) {
        if (i < BATCHES_MAX) {
            life_run(&mortal->life);
        } else {
            (void)sched_yield();
        }
    }
    metric_thread_exit();
    return NULL;
}

static struct mortal *
mortal_new(struct life *life, unsigned index, uint64_t seed)
{
    struct mortal *mortal = mem_zalloc(sizeof(*mortal));

    mortal->rig.journal = life->rig->journal;
    mortal->rig.worker = dispatch_new_worker(&life->rig->service, index);
    session_init(&mortal->rig.session, true);
    mortal->life.rig = &mortal->rig;
    mortal->life.random = seed;
    mortal->life.threaded = true;
    mortal->life.ends = life->ends;
    assert_int_equal(
        0, pthread_create(&mortal->thread, NULL, run_until_end, mortal));
    return mortal;
}

static void
mortal_free(struct mortal *mortal)
{
    struct rig *rig = &mortal->rig;

    assert_int_equal(0, pthread_join(mortal->thread, NULL));
    txn_end(&rig->session);
    session_fini(&rig->session);
    dispatch_free_worker(rig->worker);
    batch_fini(&rig->batch);
    buf_free(&rig->words);
    buf_free(&rig->out);
    mem_free(mortal);
}

/* Four loops, and the walk's own thread. */
static bool
live_with_threads(struct life *life, uint64_t seed)
{
    atomic_bool ends = false;
    struct mortal *mortals[LOOPS - 1];
    bool same;
    int fd;

    life->rig = rig_new_threads(LOOPS);
    life->ends = &ends;
    life->random = seed;
    set_option(life->rig, "bf.bloom-capacity", "4");
    set_option(life->rig, "bf.bloom-fp-rate", "0.2");
    for (unsigned i = 1; i < LOOPS; i++) {
        mortals[i - 1] = mortal_new(life, i, seed * LOOPS + i);
    }
    fd = life_walk(life);
    same = life_loads_exactly(life, fd);
    atomic_store(&ends, true);
    life_raise_gate(life, false);
    for (unsigned i = 1; i < LOOPS; i++) {
        mortal_free(mortals[i - 1]);
    }
    file_close(fd);
    rig_free(life->rig);
    return same;
}

TEST(what_is_loaded_is_what_was_live_with_threads)
{
    struct life *life = mem_zalloc(sizeof(*life));

    life_name_keys();
    life->threaded = true;
    life->writer = snapshot_writer_new();
    for (unsigned i = 0; i < 20 * test_rounds(); i++) {
        if (!live_with_threads(life, test_seed() + i)) {
            fail_msg("life %u of seed %#llx differs", i,
                     (unsigned long long)test_seed());
        }
    }
    snapshot_writer_free(life->writer);
    buf_free(&life->text);
    mem_free(life);
}

TEST(what_is_loaded_is_what_was_live_at_the_end)
{
    assert_int_equal(0, run_lives(300 * test_rounds(), test_seed(), ALL, 5));
}

/* The part follows its database, which SWAPDB gives other numbers. */
TEST(a_part_that_is_loaded_is_what_was_live_of_it)
{
    struct slot_set slots = { { 0 } };
    const struct walk_part parts[] = {
        { .of = WALK_PART_DB, .db = 1 },
        { .of = WALK_PART_SLOTS, .slots = &slots },
        { .of = WALK_PART_KEY, .db = 0, .name = slice_of(life_names[2]) },
    };

    slot_set_add(&slots, hash_slot_of(slice_of(life_names[0])));
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        assert_int_equal(
            0, run_lives_of(100 * test_rounds(), test_seed(), ALL, 5,
                            (struct kind_of_life){ .part = &parts[i] }));
        if (run_lives_of(3000, test_seed(), NO_AGAIN, 1,
                         (struct kind_of_life){ .part = &parts[i] }) == 0) {
            fail_msg("no life of part %zu differs without walking again", i);
        }
    }
}

TEST(without_one_of_the_rules_lives_differ)
{
    static const enum rule rules[] = { NO_AGAIN, NO_EPOCHS, NO_POSITION };

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (run_lives(3000, test_seed(), rules[i], 1) == 0) {
            fail_msg("no life differs without rule %zu", i);
        }
    }
}

/* Items come and go while the pieces of their filters are copied. */
TEST(deletions_during_a_walk_are_exact)
{
    const struct kind_of_life forgets = { .forgets = "DELETABLE" };

    assert_int_equal(
        0, run_lives_of(60 * test_rounds(), test_seed(), ALL, 5, forgets));
    assert_true(run_lives_of(9000, test_seed(), NO_PIECES, 1, forgets) > 0);
}

/* Generations come and go. A walk that does not copy a filter again has the
 * layers of different turns in one copy. */
TEST(turns_during_a_walk_are_exact)
{
    const struct kind_of_life ages = { .forgets = "AGEING 1 GENERATIONS 8" };

    assert_int_equal(
        0, run_lives_of(60 * test_rounds(), test_seed(), ALL, 5, ages));
    assert_true(run_lives_of(9000, test_seed(), NO_AGAIN, 1, ages) > 0);
}

/* ---- golden files -------------------------------------------------------- */

#define GOLDEN_WALKED "tests/data/golden-v3/walked.bin"
#define GOLDEN_WHOLE  "tests/data/golden-v3/walked-end.bin"

/* Whether the life shows much of what a file can have. */
static bool
is_rich(const struct life *life)
{
    static const char *const words[] = { "FLUSHDB",  "SWAPDB", "RENAME",
                                         "MOVE",     "EXEC",   "BF.ADD",
                                         "PEXPIREAT" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (memmem(life->text.data, life->text.len, words[i],
                   strlen(words[i])) == NULL) {
            return false;
        }
    }
    return keyspace_count_keys(life->rig->service.keyspace) == 7;
}

/* Writes a life's file, and what was live at its end. */
static void
write_golden(void)
{
    struct life *life = mem_zalloc(sizeof(*life));
    const struct snapshot_stamp stamp = { .history = "h" };
    int fd = -1;
    int walked = -1;
    char bytes[65536];
    ssize_t len;

    life_name_keys();
    life->writer = snapshot_writer_new();
    life->rig = rig_new();
    set_option(life->rig, "bf.bloom-capacity", "4");
    set_option(life->rig, "bf.bloom-fp-rate", "0.2");
    life->random = 4711;
    do {
        for (unsigned n = 0; n < 30; n++) {
            life_run(life);
        }
        file_close(walked);
        walked = life_walk(life);
    } while (!is_rich(life));
    len = pread(walked, bytes, sizeof(bytes), 0);
    assert_true(len > 0 && (size_t)len < sizeof(bytes));
    assert_int_equal(0, file_create(AT_FDCWD, GOLDEN_WALKED, &fd));
    assert_int_equal(0, file_write(fd, bytes, (size_t)len));
    file_close(fd);
    assert_int_equal(0, file_create(AT_FDCWD, GOLDEN_WHOLE, &fd));
    assert_int_equal(0,
                     snapshot_write(life->writer, life->rig->service.keyspace,
                                    &stamp, fd, NULL));
    file_close(fd);
    file_close(walked);
    rig_free(life->rig);
    snapshot_writer_free(life->writer);
    buf_free(&life->text);
    mem_free(life);
}

static struct keyspace *
load_golden(const char *name)
{
    struct keyspace *ks = keyspace_new(
        &(struct keyspace_options){ .threads = 1, .databases = 16 });
    static const struct keyspace_memory unlimited = { 0 };
    const struct bloom_env env = keyspace_env(&unlimited, UINT64_MAX);
    struct insert insert = { .keyspace = ks,
                             .env = &env,
                             .completion = &complete_calls };
    const struct snapshot_visitor visitor = insert_visitor(&insert);
    struct snapshot_error error = { .text = "" };
    int fd = -1;

    command_table_init(command_rows);
    if (file_open(AT_FDCWD, name, &fd) != 0) {
        fail_msg("%s: not found; run from the top folder", name);
    }
    if (snapshot_read(fd, &env, &visitor, NULL, &error) != SNAPSHOT_OK) {
        fail_msg("%s: %s %s", name, error.text, insert.why);
    }
    assert_true((insert.completing != NULL) ==
                (strcmp(name, GOLDEN_WALKED) == 0));
    insert_fini(&insert);
    file_close(fd);
    return ks;
}

TEST(the_golden_walk_loads)
{
    struct keyspace *walked;
    struct keyspace *whole;

    if (getenv("BLOOMERY_WRITE_GOLDEN") != NULL) {
        write_golden();
    }
    walked = load_golden(GOLDEN_WALKED);
    whole = load_golden(GOLDEN_WHOLE);
    assert_int_equal(7, keyspace_count_keys(whole));
    assert_true(keyspace_each(walked, life_is_same, whole));
    assert_true(keyspace_each(whole, life_is_same, walked));
    keyspace_free(walked);
    keyspace_free(whole);
}

/* ---- single groups ------------------------------------------------------- */

/* Executes commands, between semicolons, as a group that begins at 1000; with
 * ret_left_out behind a gap. */
static bool
complete_behind(struct rig *rig, const char *text, uint64_t *ret_left_out,
                char *ret_reason, size_t size)
{
    struct buf group = { 0 };
    struct snapshot_effects effects = { .position = 1000,
                                        .sequence = 1,
                                        .behind_gap = ret_left_out != NULL };
    void *state = complete_calls.open(NULL);
    bool done;

    encode(&group, text);
    effects.commands = buf_slice(&group);
    done = complete_calls.group(state, rig->service.keyspace, &effects,
                                ret_reason, size);
    if (ret_left_out != NULL) {
        *ret_left_out = complete_calls.left_out(state);
    }
    complete_calls.close(state);
    buf_free(&group);
    return done;
}

static bool
complete(struct rig *rig, const char *text, char *ret_reason, size_t size)
{
    return complete_behind(rig, text, NULL, ret_reason, size);
}

TEST(what_no_log_has_is_refused_with_its_place)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        { "BF.EXISTS a b", "before position 1033 cannot be executed: no "
                           "command of a log" },
        { "SELECT 0; NOPE", "before position 1037 " },
        { "SELECT 0; RENAME a", "no command of a log" },
        { "SELECT 16", "a number of a database is too high" },
        { "MOVE a 77", "a number of a database is too high" },
        { "SWAPDB 0 16", "a number of a database is too high" },
        { "BF.INSERT a", "a BF.INSERT without items" },
        { "RESTORE a 0 rubbish", "a command failed" },
    };
    struct rig *rig = rig_new();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char reason[256] = "";

        assert_false(complete(rig, cases[i].text, reason, sizeof(reason)));
        if (strstr(reason, cases[i].reason) == NULL) {
            fail_msg("[%s] and not [%s]", reason, cases[i].reason);
        }
    }
    assert_int_equal(0, count_keys(rig, 0));
    rig_free(rig);
}

/* The adds of a and b are lost, and the bits of b are those of others. */
TEST(behind_a_gap_nothing_is_deleted_and_items_are_added_anew)
{
    static const char *const groups[] = {
        "SELECT 0; BF.INSERT k INCARNATION 5 CAPACITY 10 ERROR 0.5 DELETABLE "
        "ITEMS x",
        /* Places that the filter cannot have: layer 7, and bits of b. */
        "SELECT 0; BF.INSERT k PLACED 7 y + z; BF.MDEL k PLACED 0:1 x 7:1 b; "
        "PEXPIREAT k 1x; BF.ADD k w"
    };
    struct rig *rig = rig_new();
    char reason[256] = "";
    uint64_t left_out = 0;
    struct key key = key_named(slice_lit("k"), 0);
    struct entry *entry;

    if (!complete(rig, groups[0], reason, sizeof(reason))) {
        fail_msg("%s", reason);
    }
    entry = keyspace_find(rig->service.keyspace, &key, 0);
    assert_non_null(entry);
    arrival_set_copied(entry, 0);
    assert_false(complete(rig, groups[1], reason, sizeof(reason)));
    assert_true(
        complete_behind(rig, groups[1], &left_out, reason, sizeof(reason)));
    assert_int_equal(2, left_out);
    for (const char *item = "xyz"; *item != '\0'; item++) {
        struct bloom_hash hash = bloom_hash(&entry->bloom, item, 1);

        assert_true(bloom_contains(&entry->bloom, hash));
    }
    rig_free(rig);
}

/* The filter is full here, since x and y are not deleted. */
TEST(behind_a_gap_a_full_filter_takes_items_all_the_same)
{
    static const char *const groups[] = {
        "SELECT 0; BF.INSERT k INCARNATION 5 CAPACITY 2 ERROR 0.001 NONSCALING "
        "DELETABLE ITEMS x y",
        "SELECT 0; BF.MDEL k PLACED 0:8 x 0:8 y; BF.INSERT k PLACED + v + w"
    };
    struct rig *rig = rig_new();
    char reason[256] = "";
    uint64_t left_out = 0;
    struct key key = key_named(slice_of("k"), 0);
    struct entry *entry;

    assert_true(complete(rig, groups[0], reason, sizeof(reason)));
    entry = keyspace_find(rig->service.keyspace, &key, 0);
    assert_non_null(entry);
    arrival_set_copied(entry, 0);
    assert_true(
        complete_behind(rig, groups[1], &left_out, reason, sizeof(reason)));
    assert_int_equal(2, left_out);
    for (const char *item = "vwxy"; *item != '\0'; item++) {
        struct bloom_hash hash = bloom_hash(&entry->bloom, item, 1);

        assert_true(bloom_contains(&entry->bloom, hash));
    }
    rig_free(rig);
}

TEST(a_lack_of_memory_is_no_end_of_the_program)
{
    mem_fail_at(1);
    assert_null(complete_calls.open(NULL));
    assert_true(mem_fail_clear());
}

/* Nothing of it is an error: the keys had gone by the end. */
TEST(missing_keys_are_skipped)
{
    struct rig *rig = rig_new();
    char reason[256] = "";

    if (!complete(rig,
                  "SELECT 3; BF.ADD a b; BF.MADD a b c; BF.INSERT a ITEMS b; "
                  "BF.INSERT a PLACED + b 0 c; BF.MDEL a PLACED 0:8 b; "
                  "DEL a b; PEXPIREAT a 7; PERSIST a; RENAME a b; MOVE a 2; "
                  "COPY a b DB 2 INCARNATION 5; BF.RESET a; BF.MERGE a b c "
                  "INCARNATION 0; MULTI; UNLINK a; EXEC; REPLCONF HISTORY x",
                  reason, sizeof(reason))) {
        fail_msg("%s", reason);
    }
    assert_int_equal(0, count_keys(rig, 3));
    rig_free(rig);
}

/* A row that is new in the table needs a rule here. */
TEST(each_write_row_has_a_rule)
{
    static const char *const never_logged[] = { "BF.RESERVE", "renamenx",
                                                "BF.DEL" };
    struct rig *rig = rig_new();

    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        const struct command *row = &command_rows[id];
        unsigned arity = (unsigned)(row->arity < 0 ? -row->arity : row->arity);
        bool logged = (row->flags & CMD_WRITE) != 0;
        struct buf line = { 0 };
        char reason[256] = "";

        for (size_t i = 0; i < 3; i++) {
            logged = logged && strcmp(row->name, never_logged[i]) != 0;
        }
        buf_printf(&line, "%s", row->name);
        for (unsigned i = 1; i < arity; i++) {
            buf_printf(&line, " 1");
        }
        buf_append(&line, "", 1);
        if (logged && !complete(rig, line.data, reason, sizeof(reason)) &&
            strstr(reason, "no command of a log") != NULL) {
            fail_msg("[%s]: %s", line.data, reason);
        }
        buf_free(&line);
    }
    rig_free(rig);
}
