/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The slow log: order and length, what is kept of the words, the bound on
 * bytes, and threads that write, read and cut at the same time.
 */
#include "measure/slowlog.h"

#include "../test.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { SHOWN_MAX = 64, WORDS = 40 };

struct shown {
    size_t count;
    uint64_t id[SHOWN_MAX];
    uint64_t took_us[SHOWN_MAX];
    size_t argc;
    char word[SLOWLOG_ARGS_MAX][256]; /* of the first entry */
    char addr[64], name[64];
};

static void
copy(char *to, size_t size, struct slice text)
{
    assert_true(text.len < size);
    memcpy(to, text.data, text.len);
    to[text.len] = '\0';
}

static void
note_entry(void *ctx, const struct slowlog_entry *entry)
{
    struct shown *shown = ctx;

    if (shown->count == 0) {
        shown->argc = entry->argc;
        for (size_t i = 0; i < entry->argc; i++) {
            copy(shown->word[i], sizeof(shown->word[i]), entry->argv[i]);
        }
        copy(shown->addr, sizeof(shown->addr), entry->addr);
        copy(shown->name, sizeof(shown->name), entry->name);
    }
    assert_true(shown->count < SHOWN_MAX);
    shown->id[shown->count] = entry->id;
    shown->took_us[shown->count] = entry->took_us;
    shown->count++;
}

static struct shown
show(struct slowlog *log, uint64_t count)
{
    struct shown shown = { .count = 0 };
    const struct slowlog_visitor visitor = { note_entry, &shown, 0 };

    count = slowlog_visit(log, count, &visitor);
    assert_int_equal(count, shown.count);
    return shown;
}

static void
add(struct slowlog *log, uint64_t took_us, const struct slice *argv,
    size_t argc)
{
    const struct slowlog_entry entry = { .time_s = 7,
                                         .took_us = took_us,
                                         .argv = argv,
                                         .argc = argc,
                                         .addr = slice_lit("10.0.0.1:5"),
                                         .name = slice_lit("me") };

    slowlog_add(log, &entry);
}

static void
add_ping(struct slowlog *log, uint64_t took_us)
{
    const struct slice word = slice_lit("PING");

    add(log, took_us, &word, 1);
}

static struct slowlog *
log_of(uint64_t length)
{
    struct slowlog *log = slowlog_new();

    slowlog_set_length(log, length);
    return log;
}

TEST(slowlog_shows_the_newest_first_and_no_more_than_asked)
{
    struct slowlog *log = log_of(10);
    struct shown shown;

    assert_int_equal(show(log, UINT64_MAX).count, 0);
    for (uint64_t i = 0; i < 4; i++) {
        add_ping(log, 100 + i);
    }
    assert_int_equal(slowlog_length(log), 4);
    shown = show(log, UINT64_MAX);
    assert_int_equal(shown.count, 4);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(shown.id[i], 3 - i);
        assert_int_equal(shown.took_us[i], 103 - i);
    }
    assert_int_equal(show(log, 2).count, 2);
    assert_int_equal(show(log, 2).id[1], 2);
    assert_int_equal(show(log, 0).count, 0);
    slowlog_free(log);
}

TEST(slowlog_drops_the_oldest_beyond_its_length)
{
    struct slowlog *log = log_of(3);

    for (uint64_t i = 0; i < 5; i++) {
        add_ping(log, i);
    }
    assert_int_equal(slowlog_length(log), 3);
    assert_int_equal(show(log, UINT64_MAX).id[2], 2);
    slowlog_set_length(log, 1);
    assert_int_equal(slowlog_length(log), 1);
    assert_int_equal(show(log, UINT64_MAX).id[0], 4);
    slowlog_set_length(log, 0);
    assert_int_equal(slowlog_length(log), 0);
    add_ping(log, 1);
    assert_int_equal(slowlog_length(log), 0);
    slowlog_set_length(log, 3);
    add_ping(log, 1);
    assert_int_equal(slowlog_length(log), 1);
    slowlog_free(log);
}

TEST(slowlog_goes_on_counting_ids_after_a_reset)
{
    struct slowlog *log = log_of(3);

    add_ping(log, 1);
    add_ping(log, 1);
    slowlog_reset(log);
    assert_int_equal(slowlog_length(log), 0);
    add_ping(log, 1);
    assert_int_equal(show(log, UINT64_MAX).id[0], 2);
    slowlog_free(log);
}

TEST(slowlog_keeps_short_commands_whole)
{
    struct slowlog *log = log_of(1);
    char just[SLOWLOG_ARG_BYTES_MAX];
    struct slice argv[SLOWLOG_ARGS_MAX];
    struct shown shown;

    memset(just, 'x', sizeof(just));
    for (size_t i = 0; i < SLOWLOG_ARGS_MAX; i++) {
        argv[i] = (struct slice){ just, i };
    }
    argv[1] = (struct slice){ just, sizeof(just) };
    argv[2] = (struct slice){ NULL, 0 };
    add(log, 1, argv, SLOWLOG_ARGS_MAX);
    shown = show(log, 1);
    assert_int_equal(shown.argc, SLOWLOG_ARGS_MAX);
    for (size_t i = 3; i < SLOWLOG_ARGS_MAX; i++) {
        assert_int_equal(strlen(shown.word[i]), i);
    }
    assert_int_equal(strlen(shown.word[1]), SLOWLOG_ARG_BYTES_MAX);
    assert_string_equal(shown.word[2], "");
    assert_string_equal(shown.addr, "10.0.0.1:5");
    assert_string_equal(shown.name, "me");
    slowlog_free(log);
}

TEST(slowlog_says_how_much_it_cut_off)
{
    struct slowlog *log = log_of(1);
    char text[300];
    struct slice argv[WORDS];
    struct shown shown;

    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < WORDS; i++) {
        argv[i] = (struct slice){ text, sizeof(text) };
    }
    add(log, 1, argv, WORDS);
    shown = show(log, 1);
    assert_int_equal(shown.argc, SLOWLOG_ARGS_MAX);
    assert_int_equal(memcmp(shown.word[0], text, SLOWLOG_ARG_BYTES_MAX), 0);
    assert_string_equal(shown.word[0] + SLOWLOG_ARG_BYTES_MAX,
                        "... (172 more bytes)");
    assert_string_equal(shown.word[SLOWLOG_ARGS_MAX - 1],
                        "... (9 more arguments)");
    slowlog_free(log);
}

TEST(slowlog_reads_no_words_beyond_those_it_keeps)
{
    struct slowlog *log = log_of(1);
    struct slice argv[SLOWLOG_ARGS_MAX]; /* the command had a million */
    struct shown shown;

    for (size_t i = 0; i < SLOWLOG_ARGS_MAX; i++) {
        argv[i] = slice_lit("w");
    }
    add(log, 1, argv, 1000000);
    shown = show(log, 1);
    assert_string_equal(shown.word[SLOWLOG_ARGS_MAX - 1],
                        "... (999969 more arguments)");
    slowlog_free(log);
}

static void
ignore_entry(void *ctx, const struct slowlog_entry *entry)
{
    (void)ctx;
    (void)entry;
}

TEST(slowlog_stays_below_its_bytes_whatever_its_length)
{
    struct slowlog *log = log_of(UINT64_MAX);
    char text[SLOWLOG_ARG_BYTES_MAX];
    struct slice argv[SLOWLOG_ARGS_MAX];
    const struct slowlog_visitor visitor = { ignore_entry, NULL, 0 };
    uint64_t shown;
    uint64_t before = mem_used();

    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < SLOWLOG_ARGS_MAX; i++) {
        argv[i] = (struct slice){ text, sizeof(text) };
    }
    for (unsigned i = 0; i < 6000; i++) { /* 4 KB each */
        add(log, i, argv, SLOWLOG_ARGS_MAX);
    }
    assert_true(mem_used() - before < SLOWLOG_BYTES_MAX / 10 * 13);
    shown = slowlog_visit(log, UINT64_MAX, &visitor);
    assert_true(shown > 3000 && shown < 6000);
    assert_int_equal(shown, slowlog_length(log));
    slowlog_free(log);
}

TEST(slowlog_without_memory_puts_nothing_in)
{
    struct slowlog *log = log_of(3);

    mem_fail_at(1);
    add_ping(log, 1);
    assert_true(mem_fail_clear());
    assert_int_equal(slowlog_length(log), 0);
    add_ping(log, 1);
    assert_int_equal(show(log, 1).id[0], 0);
    slowlog_free(log);
}

/* ---- threads ------------------------------------------------------------- */

enum { WRITERS = 3, ROUNDS = 3000 };

struct shared {
    struct slowlog *log;
    atomic_bool done;
};

static void *
write_entries(void *ptr)
{
    struct shared *shared = ptr;

    for (unsigned i = 0; i < ROUNDS; i++) {
        add_ping(shared->log, i);
    }
    return NULL;
}

static void *
change_length(void *ptr)
{
    struct shared *shared = ptr;

    while (!atomic_load(&shared->done)) {
        slowlog_set_length(shared->log, 1);
        slowlog_set_length(shared->log, SHOWN_MAX);
        slowlog_reset(shared->log);
    }
    return NULL;
}

TEST(slowlog_stands_writers_readers_and_cuts_at_the_same_time)
{
    struct shared shared = { .log = log_of(SHOWN_MAX) };
    pthread_t writer[WRITERS], changer;
    struct shown shown;

    assert_int_equal(pthread_create(&changer, NULL, change_length, &shared), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        assert_int_equal(
            pthread_create(&writer[i], NULL, write_entries, &shared), 0);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        shown = show(shared.log, UINT64_MAX);
        for (size_t k = 1; k < shown.count; k++) {
            assert_int_equal(shown.id[k], shown.id[k - 1] - 1);
        }
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(writer[i], NULL), 0);
    }
    atomic_store(&shared.done, true);
    assert_int_equal(pthread_join(changer, NULL), 0);
    slowlog_set_length(shared.log, SHOWN_MAX);
    add_ping(shared.log, 1);
    assert_int_equal(show(shared.log, 1).id[0], WRITERS * ROUNDS);
    slowlog_free(shared.log);
}

static void
note_id(void *ctx, const struct slowlog_entry *entry)
{
    *(uint64_t *)ctx = entry->id;
}

/* Also while entries are added and the oldest are dropped. */
TEST(slowlog_is_shown_in_pieces_by_the_last_id_seen)
{
    struct slowlog *log = log_of(20);
    struct slice word = slice_lit("w");
    uint64_t last = 0;
    struct slowlog_visitor visitor = { .entry = note_id, .ctx = &last };

    for (unsigned i = 0; i < 30; i++) {
        add(log, i, &word, 1);
    }
    assert_int_equal(8, slowlog_visit(log, 8, &visitor));
    assert_int_equal(22, last);
    for (unsigned i = 0; i < 4; i++) {
        add(log, i, &word, 1);
    }
    visitor.before_id = last;
    assert_int_equal(5, slowlog_visit(log, 5, &visitor));
    assert_int_equal(17, last);
    visitor.before_id = last;
    assert_int_equal(3, slowlog_visit(log, 100, &visitor));
    assert_int_equal(14, last);
    /* The last entry shown is dropped, and all older ones with it. */
    visitor.before_id = 0;
    assert_int_equal(10, slowlog_visit(log, 10, &visitor));
    visitor.before_id = last;
    slowlog_set_length(log, 5);
    assert_int_equal(0, slowlog_visit(log, 10, &visitor));
    visitor.before_id = 0;
    assert_int_equal(2, slowlog_visit(log, 2, &visitor));
    visitor.before_id = last;
    slowlog_reset(log);
    assert_int_equal(0, slowlog_visit(log, 10, &visitor));
    slowlog_free(log);
}
