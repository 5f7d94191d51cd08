/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Filters of a running server: databases, cursors, types, times and pieces, and
 * replies that make no sense.
 */
#include "load/load_scan.h"

#include "../capture.h"
#include "../script.h"

struct source {
    struct load load;
    struct script script;
    struct load_scan scan;
    struct buf seen; /* "db:name " of each visit */
};

#define BEGIN      "+PONG\r\n", ":-2\r\n"
#define BEGIN_TEXT "PING\nPEXPIRETIME bloomery-load\n"
#define EMPTY      "*2\r\n$1\r\n0\r\n*0\r\n"

static void
source_begin(struct source *source, const char *const *replies, uint64_t db)
{
    *source = (struct source){ .load = { .tool = { .name = "test" },
                                         .timeout_s = 20,
                                         .db = db,
                                         .value_bytes = 10000 } };
    script_begin(&source->script, replies);
    source->load.from.address = source->script.path;
    assert_true(load_scan_open(&source->load, &source->scan));
}

static void
source_end(struct source *source, const char *heard)
{
    load_scan_close(&source->scan);
    script_end(&source->script, heard);
    buf_free(&source->seen);
}

static bool
visit(void *ctx)
{
    struct source *source = ctx;
    struct slice name;
    size_t at = 0;

    while (buf_next_item(&source->scan.names, &at, &name)) {
        buf_printf(&source->seen, "%llu:%.*s ",
                   (unsigned long long)source->scan.db, (int)name.len,
                   name.data);
    }
    return true;
}

static void
expect_seen(struct source *source, const char *wanted)
{
    assert_true(load_scan_all(&source->scan, visit, source));
    buf_append(&source->seen, "", 1);
    assert_string_equal(wanted, source->seen.data);
}

TEST(a_database_is_scanned_for_both_types_to_the_last_cursor)
{
    static const char *const replies[] = {
        BEGIN,
        "+OK\r\n",
        "*2\r\n$2\r\n17\r\n*1\r\n$1\r\na\r\n",
        "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nb\r\n$1\r\nc\r\n",
        EMPTY,
        NULL,
    };
    struct source source;

    source_begin(&source, replies, 3);
    assert_true(source.scan.has_expiretime);
    expect_seen(&source, "3:a 3:b 3:c ");
    source_end(&source, BEGIN_TEXT "SELECT 3\n"
                                   "SCAN 0 COUNT 1000 TYPE MBbloom--\n"
                                   "SCAN 17 COUNT 1000 TYPE MBbloom--\n"
                                   "SCAN 0 COUNT 1000 TYPE bloomfltr\n");
}

TEST(all_databases_are_those_that_info_names)
{
    static const char *const replies[] = {
        BEGIN,
        "$63\r\n# Keyspace\r\ndb0:keys=1\r\ndb9:keys=2\r\ndb1024:keys=1\r\n"
        "dbx:keys=1\r\n\r\n",
        "+OK\r\n",
        EMPTY,
        EMPTY,
        "+OK\r\n",
        "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nz\r\n",
        EMPTY,
        NULL,
    };
    struct source source;

    source_begin(&source, replies, LOAD_DB_ALL);
    expect_seen(&source, "9:z ");
    source_end(&source, NULL);
}

TEST(a_source_without_types_in_scan_is_asked_for_each)
{
    static const char *const replies[] = {
        BEGIN,
        "+OK\r\n",
        "-ERR syntax error\r\n",
        "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n",
        "+string\r\n",
        "+MBbloom--\r\n",
        NULL,
    };
    struct source source;

    source_begin(&source, replies, 0);
    expect_seen(&source, "0:b ");
    source_end(&source, NULL);
}

TEST(replies_of_a_wrong_form_stop_the_tool)
{
    static const struct {
        const char *reply, *text;
    } rows[] = {
        { "*0\r\n", "bad reply to SCAN" },
        { "*2\r\n$0\r\n\r\n*0\r\n", "bad cursor of SCAN" },
        { "*2\r\n$40\r\n0123456789012345678901234567890123456789\r\n*0\r\n",
          "bad cursor of SCAN" },
        { ":1\r\n", "bad reply to SCAN" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const replies[] = { BEGIN, "+OK\r\n", rows[i].reply, NULL };
        struct source source;
        bool good = true;

        source_begin(&source, replies, 0);
        EXPECT_PRINTED(STDERR_FILENO,
                       good = load_scan_all(&source.scan, visit, &source),
                       rows[i].text);
        assert_false(good);
        assert_int_equal(LOAD_UNREADABLE, source.load.tool.status);
        source_end(&source, NULL);
    }
}

TEST(a_database_that_cannot_be_selected_stops_the_tool)
{
    static const char *const replies[] = { BEGIN, "-ERR out of range\r\n",
                                           NULL };
    struct source source;
    bool good = true;

    source_begin(&source, replies, 900);
    EXPECT_PRINTED(STDERR_FILENO,
                   good = load_scan_all(&source.scan, visit, &source),
                   "ERR out of range");
    assert_false(good);
    source_end(&source, BEGIN_TEXT "SELECT 900\n");
}

TEST(times_are_moments_or_what_is_left)
{
    static const char *const newer[] = { BEGIN, ":1790000000123\r\n", ":-1\r\n",
                                         "-ERR no\r\n", NULL };
    static const char *const older[] = { "+PONG\r\n", "-ERR unknown\r\n",
                                         ":5000\r\n", ":-2\r\n", NULL };
    struct source source;
    int64_t at_ms = 0;
    bool good = true;

    source_begin(&source, newer, 0);
    assert_true(load_scan_expiry(&source.scan, slice_lit("k"), &at_ms));
    assert_int_equal(1790000000123, at_ms);
    assert_true(load_scan_expiry(&source.scan, slice_lit("k"), &at_ms));
    assert_int_equal(-1, at_ms);
    EXPECT_PRINTED(STDERR_FILENO,
                   good =
                       load_scan_expiry(&source.scan, slice_lit("k"), &at_ms),
                   "ERR no");
    assert_false(good);
    source_end(&source,
               BEGIN_TEXT "PEXPIRETIME k\nPEXPIRETIME k\nPEXPIRETIME k\n");
    source_begin(&source, older, 0);
    assert_true(load_scan_expiry(&source.scan, slice_lit("k"), &at_ms));
    assert_true(at_ms > 1700000000000); /* from now on */
    assert_true(load_scan_expiry(&source.scan, slice_lit("k"), &at_ms));
    assert_int_equal(-2, at_ms);
    source_end(&source, BEGIN_TEXT "PTTL k\nPTTL k\n");
}

TEST(pieces_have_an_iterator_and_bytes)
{
    static const char *const replies[] = {
        BEGIN,
        "*2\r\n:7\r\n$3\r\nabc\r\n",
        "-ERR gone\r\n",
        "*2\r\n:-7\r\n$3\r\nabc\r\n",
        NULL,
    };
    struct source source;
    struct slice key = slice_lit("k");
    struct slice data;
    uint64_t next = 0;
    bool good = true;

    source_begin(&source, replies, 0);
    assert_true(load_scan_piece(&source.scan, key, 0, &next, &data));
    assert_int_equal(7, next);
    assert_true(slice_equal(slice_lit("abc"), data));
    assert_true(load_scan_piece(&source.scan, key, 7, &next, &data));
    assert_int_equal(UINT64_MAX, next);
    assert_true(slice_equal(slice_lit("ERR gone"), data));
    EXPECT_PRINTED(STDERR_FILENO,
                   good = load_scan_piece(&source.scan, key, 8, &next, &data),
                   "bad reply to BF.SCANDUMP");
    assert_false(good);
    source_end(&source, BEGIN_TEXT
               "BF.SCANDUMP k 0\nBF.SCANDUMP k 7\nBF.SCANDUMP k 8\n");
}
