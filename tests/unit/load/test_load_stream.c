/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bytes become commands wherever a read ends, and the offset is the one behind
 * the last whole command.
 */
#include "load/load_stream.h"

#include "../capture.h"
#include "base/mem.h"

#define FIRST  "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\nb\r\nc\r\n"
#define SECOND "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"
#define THIRD  "*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\n"

struct source {
    struct load load;
    struct load_target *target;
    struct load_apply apply;
    struct load_stream stream;
};

static void
source_begin(struct source *source, uint64_t offset)
{
    *source = (struct source){ .load = { .tool = { .name = "test" },
                                         .db = LOAD_DB_ALL,
                                         .value_bytes = 64 },
                               .target = mem_zalloc(sizeof(*source->target)) };
    source->target->load = &source->load;
    source->apply.target = source->target;
    load_stream_begin(&source->stream, &source->apply, "/aof", offset);
}

static void
source_end(struct source *source)
{
    load_stream_end(&source->stream);
    mem_free(source->target);
}

static bool
feed(struct source *source, const char *text, size_t len)
{
    return load_stream_feed(&source->stream, (struct slice){ text, len });
}

TEST(commands_are_the_same_wherever_a_read_ends)
{
    static const char text[] = FIRST SECOND THIRD;
    const size_t len = sizeof(text) - 1;
    struct source source;

    for (size_t cut = 0; cut <= len; cut++) {
        size_t whole = cut < sizeof(FIRST) - 1          ? 0
                       : cut < sizeof(FIRST SECOND) - 1 ? sizeof(FIRST) - 1
                       : cut < len ? sizeof(FIRST SECOND) - 1
                                   : len;

        source_begin(&source, 1000);
        assert_true(feed(&source, text, cut));
        assert_int_equal(1000 + cut, source.stream.read);
        assert_int_equal(1000 + whole, source.stream.offset);
        assert_true(feed(&source, text + cut, len - cut));
        assert_int_equal(1000 + len, source.stream.offset);
        assert_int_equal(2, source.apply.skipped_count);
        assert_string_equal("set", source.apply.skipped[0].name);
        assert_string_equal("incr", source.apply.skipped[1].name);
        assert_int_equal(7, source.apply.db);
        source_end(&source);
    }
}

TEST(damage_is_named_by_the_offset_of_its_command)
{
    static const char *const texts[] = {
        "*2\r\nINCR\r\n", "*1\r\n$-2\r\n", "*99999999999\r\n",
        "*1\r\n$65\r\n", /* longer than --max-value */
    };
    struct source source;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        bool good = true;

        source_begin(&source, 0);
        assert_true(feed(&source, FIRST, sizeof(FIRST) - 1));
        EXPECT_PRINTED(STDERR_FILENO,
                       good = feed(&source, texts[i], strlen(texts[i])),
                       "/aof: the command at offset 30 is damaged, or longer");
        assert_false(good);
        assert_int_equal(LOAD_UNREADABLE, source.load.tool.status);
        source_end(&source);
    }
}

TEST(lines_that_are_no_resp_are_damage_wherever_a_read_ends)
{
    static const char text[] = "#TS:1\r\n\r\n" FIRST "+2\r\n" SECOND;
    const size_t len = sizeof(text) - 1;
    struct source source;

    for (size_t cut = 0; cut <= len; cut++) {
        bool good = true;

        source_begin(&source, 0);
        EXPECT_PRINTED(STDERR_FILENO,
                       good = feed(&source, text, cut) &&
                              feed(&source, text + cut, len - cut),
                       "is damaged, or longer");
        assert_false(good);
        assert_int_equal(1, source.apply.skipped_count);
        assert_int_equal(1, source.apply.skipped[0].count);
        source_end(&source);
    }
}

TEST(a_command_that_stops_the_tool_ends_the_reading)
{
    static const char text[] = "*2\r\n$6\r\nSELECT\r\n$4\r\n1024\r\n" SECOND;
    struct source source;
    bool good = true;

    source_begin(&source, 0);
    EXPECT_PRINTED(STDERR_FILENO, good = feed(&source, text, sizeof(text) - 1),
                   "the source uses database 1024; the tool knows 0 to 1023");
    assert_false(good);
    assert_int_equal(0, source.apply.skipped_count);
    assert_int_equal(0, source.stream.offset);
    source_end(&source);
}
