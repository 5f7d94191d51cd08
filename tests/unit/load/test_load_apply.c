/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that reach no server: what is skipped, counted and refused.
 * test_load_aof.py has the others.
 */
#include "load/load_apply.h"

#include "../capture.h"
#include "base/mem.h"

struct source {
    struct load load;
    struct load_target *target;
    struct load_apply apply;
};

static void
source_begin(struct source *source)
{
    *source = (struct source){ .load = { .tool = { .name = "test" },
                                         .db = LOAD_DB_ALL },
                               .target = mem_zalloc(sizeof(*source->target)) };
    source->target->load = &source->load;
    source->apply.target = source->target;
}

static void
source_end(struct source *source)
{
    mem_free(source->target);
}

/* Applies a command of words with blanks between them. */
static bool
apply(struct source *source, const char *text)
{
    struct slice rest = slice_of(text);
    struct slice words[16];
    size_t count = 0;

    while (count < 16 && slice_next_word(&rest, &words[count])) {
        count++;
    }
    return load_apply(&source->apply, words, count);
}

TEST(what_does_not_concern_filters_is_counted_by_name)
{
    static const char *const texts[] = { "LPUSH a b", "lpush a b", "SET a b",
                                         "EVAL s 0",  "DEL a",     "EXPIRE a 1",
                                         "PING",      "#TS:1",     "FLUSHALL" };
    struct source source;
    struct capture output;

    source_begin(&source);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_true(apply(&source, texts[i]));
    }
    capture_begin(&output, STDOUT_FILENO);
    EXPECT_PRINTED(STDERR_FILENO, load_apply_report(&source.apply),
                   "1 scripts were skipped, and may have changed filters");
    assert_string_equal("    commands applied   0\n"
                        "    skipped            2 lpush\n"
                        "    skipped            1 set\n"
                        "    skipped            1 eval\n",
                        capture_end(&output));
    assert_int_equal(LOAD_INCOMPLETE, source.load.tool.status);
    source_end(&source);
}

TEST(further_names_are_counted_together_and_long_ones_are_cut)
{
    struct source source;
    char text[64];

    source_begin(&source);
    for (unsigned i = 0; i < LOAD_SKIPPED_MAX + 3; i++) {
        (void)snprintf(text, sizeof(text),
                       "a-name-of-a-command-that-is-long-%u", i);
        assert_true(apply(&source, text));
    }
    assert_int_equal(1, source.apply.skipped_count);
    assert_int_equal(LOAD_SKIPPED_MAX + 3, source.apply.skipped[0].count);
    for (unsigned i = 0; i < LOAD_SKIPPED_MAX + 3; i++) {
        (void)snprintf(text, sizeof(text), "c%u", i);
        assert_true(apply(&source, text));
    }
    assert_int_equal(LOAD_SKIPPED_MAX, source.apply.skipped_count);
    assert_int_equal(4, source.apply.skipped_more);
    source_end(&source);
}

TEST(commands_with_too_few_words_are_refused)
{
    static const char *const texts[] = { "BF.ADD", "RESTORE", "EXPIRE",
                                         "DEL",    "SELECT",  "RENAME a",
                                         "COPY a", "MOVE a",  "SWAPDB 1" };
    struct source source;

    source_begin(&source);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        bool good = true;

        EXPECT_PRINTED(STDERR_FILENO, good = apply(&source, texts[i]),
                       "with too few words");
        assert_false(good);
    }
    assert_int_equal(LOAD_UNREADABLE, source.load.tool.status);
    source_end(&source);
}

TEST(databases_beyond_those_of_the_tool_are_refused)
{
    static const char *const texts[] = { "SELECT 1024",   "SELECT x",
                                         "SELECT -1",     "MOVE k 1024",
                                         "SWAPDB 0 1024", "COPY a b DB 1024" };
    struct source source;

    source_begin(&source);
    assert_true(apply(&source, "SELECT 1023"));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        bool good = true;

        EXPECT_PRINTED(STDERR_FILENO, good = apply(&source, texts[i]),
                       "; the tool knows 0 to 1023");
        assert_false(good);
        assert_int_equal(1023, source.apply.db);
    }
    source_end(&source);
}

TEST(a_transaction_of_others_opens_none_and_its_end_returns_to_database_0)
{
    struct source source;

    source_begin(&source);
    assert_true(apply(&source, "SELECT 3"));
    assert_true(apply(&source, "MULTI"));
    assert_true(apply(&source, "INCR a"));
    assert_true(source.apply.multi && !source.apply.opened);
    assert_true(load_apply_end(&source.apply));
    assert_false(source.apply.multi);
    assert_int_equal(0, source.apply.db);
    assert_true(apply(&source, "MULTI") && apply(&source, "EXEC"));
    assert_false(source.apply.multi);
    assert_true(apply(&source, "REPLCONF LISTENING-PORT 1"));
    assert_false(source.apply.asked);
    assert_true(apply(&source, "REPLCONF GETACK *"));
    assert_true(source.apply.asked);
    source_end(&source);
}

TEST(keys_that_come_from_a_database_that_is_left_out_are_named)
{
    struct source source;

    source_begin(&source);
    source.load.db = 1;
    EXPECT_PRINTED(STDERR_FILENO, assert_true(apply(&source, "MOVE k 1")),
                   "key 'k' of database 1: came from a database that --db "
                   "leaves out");
    EXPECT_PRINTED(STDERR_FILENO, assert_true(apply(&source, "COPY a b DB 1")),
                   "key 'b' of database 1: came from");
    EXPECT_OUTPUT(STDERR_FILENO, assert_true(apply(&source, "MOVE k 2")), "");
    EXPECT_PRINTED(STDERR_FILENO, assert_false(apply(&source, "SWAPDB 0 1")),
                   "has swapped database 1 with one that --db leaves out");
    assert_true(apply(&source, "SWAPDB 2 3"));
    source_end(&source);
}

TEST(an_rdb_is_reported_with_what_was_skipped)
{
    struct rdb_result result = { .status = RDB_OK,
                                 .version = 11,
                                 .filters = 2 };

    result.skipped[0] = 5;
    EXPECT_PRINTED(STDOUT_FILENO, load_rdb_report(&result),
                   "    written by         unknown, RDB version 11\n"
                   "    checksum           none\n"
                   "    filters found      2\n"
                   "    skipped            5 ");
    result.checked = true;
    EXPECT_PRINTED(STDOUT_FILENO, load_rdb_report(&result),
                   "    checksum           holds\n");
    result.checked = false;
    result.status = RDB_STOPPED;
    EXPECT_PRINTED(STDOUT_FILENO, load_rdb_report(&result),
                   "    checksum           not verified\n");
}
