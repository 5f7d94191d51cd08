/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the reader of a log says of its commands.
 */
#include "engine/logged.h"

#include "group_help.h"

#include <errno.h>

struct scene {
    struct buf text;
    struct logged_reader reader;
    struct logged logged;
};

static void
begin(struct scene *scene, const char *text)
{
    command_table_init(command_rows);
    buf_reset(&scene->text, SIZE_MAX);
    encode(&scene->text, text);
    logged_begin(&scene->reader, buf_slice(&scene->text));
}

static void
end(struct scene *scene)
{
    logged_fini(&scene->reader);
    buf_free(&scene->text);
}

static enum logged_kind
kind_of(const char *text)
{
    struct scene scene = { 0 };
    enum logged_kind kind;

    begin(&scene, text);
    assert_true(logged_next(&scene.reader, &scene.logged));
    kind = scene.logged.kind;
    assert_false(logged_next(&scene.reader, &scene.logged));
    assert_int_equal(0, scene.reader.error);
    end(&scene);
    return kind;
}

TEST(each_command_has_a_kind)
{
    assert_int_equal(LOGGED_ADD, kind_of("bf.add k a"));
    assert_int_equal(LOGGED_INSERT, kind_of("BF.INSERT k ITEMS a"));
    assert_int_equal(LOGGED_MARK, kind_of("MULTI"));
    assert_int_equal(LOGGED_SELECT, kind_of("SELECT 3"));
    assert_int_equal(LOGGED_DROP, kind_of("UNLINK a b c"));
    assert_int_equal(LOGGED_OTHERWISE, kind_of("RENAMENX a b"));
}

TEST(what_no_log_has_is_told_by_name_and_number_of_words)
{
    assert_int_equal(LOGGED_NEVER, kind_of("nonsense a"));
    assert_int_equal(LOGGED_NEVER, kind_of("PING"));
    assert_int_equal(LOGGED_NEVER, kind_of("BF.ADD k"));
    assert_int_equal(LOGGED_NEVER, kind_of("BF.EXISTS k a"));
}

TEST(the_only_replconf_of_a_log_is_history)
{
    assert_int_equal(LOGGED_HISTORY, kind_of("REPLCONF History x"));
    assert_int_equal(LOGGED_NEVER, kind_of("REPLCONF ACK 1"));
    assert_int_equal(LOGGED_NEVER, kind_of("REPLCONF"));
}

/* More commands than a batch has. Each begins where the one before ended. */
TEST(commands_follow_each_other_without_a_gap)
{
    enum { COMMANDS = 3 * BATCH_COMMANDS_MAX + 1 };
    struct scene scene = { 0 };
    char text[COMMANDS * 16] = "";
    size_t at = 0;
    int count = 0;

    for (int i = 0; i < COMMANDS; i++) {
        (void)snprintf(text + strlen(text), 16, "DEL %d;", i);
    }
    begin(&scene, text);
    while (logged_next(&scene.reader, &scene.logged)) {
        const struct batch *batch = &scene.reader.batch;
        char name[16];

        (void)snprintf(name, sizeof(name), "%d", count++);
        assert_true(slice_equal(scene.logged.argv[1], slice_of(name)));
        assert_int_equal(2, scene.logged.argc);
        assert_int_equal(at, scene.logged.begin);
        assert_memory_equal(scene.text.data + at, "*2\r\n", 4);
        at = scene.logged.end;
        assert_ptr_equal(
            &batch->argv[batch->command[scene.reader.next - 1].first],
            scene.logged.argv);
    }
    assert_int_equal(COMMANDS, count);
    assert_int_equal(scene.text.len, at);
    assert_int_equal(0, scene.reader.error);
    end(&scene);
}

TEST(an_empty_text_has_no_commands)
{
    struct scene scene = { 0 };

    begin(&scene, "");
    assert_false(logged_next(&scene.reader, &scene.logged));
    assert_int_equal(0, scene.reader.error);
    end(&scene);
}

TEST(bytes_that_are_no_command_are_an_error_where_they_begin)
{
    struct scene scene = { 0 };
    size_t good;

    begin(&scene, "DEL a; DEL b");
    good = scene.text.len;
    buf_append(&scene.text, "DEL c\r\n", 7);
    logged_begin(&scene.reader, buf_slice(&scene.text));
    assert_true(logged_next(&scene.reader, &scene.logged));
    assert_true(logged_next(&scene.reader, &scene.logged));
    assert_false(logged_next(&scene.reader, &scene.logged));
    assert_int_equal(EINVAL, scene.reader.error);
    assert_int_equal(good, scene.reader.at);
    assert_false(logged_next(&scene.reader, &scene.logged));
    assert_int_equal(EINVAL, scene.reader.error);
    end(&scene);
}

TEST(without_memory_the_reader_says_so_and_may_begin_anew)
{
    struct scene scene = { 0 };

    begin(&scene, "DEL a");
    mem_fail_at(1);
    assert_false(logged_next(&scene.reader, &scene.logged));
    assert_true(mem_fail_clear());
    assert_int_equal(ENOMEM, scene.reader.error);
    logged_begin(&scene.reader, buf_slice(&scene.text));
    assert_true(logged_next(&scene.reader, &scene.logged));
    assert_int_equal(0, scene.reader.error);
    end(&scene);
}
