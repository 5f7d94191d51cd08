/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What selectors permit: commands, keys by their use, channels, databases.
 */
#include "access/permission.h"

#include "words_help.h"

static enum denial
denial_of(const char *rules, uint32_t db, const char *line, size_t *ret_at)
{
    struct selector selector = { 0 };
    struct slice words[USERS_WORDS];
    size_t count = users_words(rules, words);
    struct permission_query query = { .argv = words, .db = db };
    int64_t work = PERMISSION_ANY_WORK;
    size_t next = 0;
    enum denial denial;
    unsigned length;

    command_table_init(command_rows);
    for (size_t i = 0; i < count; i++) {
        assert_null(selector_apply(&selector, words[i]));
    }
    query.argc = users_words(line, words);
    query.command = command_resolve(words, query.argc, &length);
    assert_non_null(query.command);
    denial = permission_check(&selector, &query, &next, &work, ret_at);
    selector_fini(&selector);
    return denial;
}

static void
expect(const char *rules, const char *line, enum denial denial, size_t at)
{
    size_t where;

    if (denial_of(rules, 0, line, &where) != denial || where != at) {
        fail_msg("%s: %s", rules, line);
    }
}

TEST(a_command_must_be_permitted_unless_it_comes_before_the_login)
{
    expect("", "PING", DENIED_COMMAND, 0);
    expect("", "AUTH x", DENIED_NOTHING, 0);
    expect("", "HELLO 3", DENIED_NOTHING, 0);
    expect("+ping", "PING", DENIED_NOTHING, 0);
    expect("+client|id", "CLIENT LIST", DENIED_COMMAND, 0);
    expect("+client -client|id", "CLIENT ID", DENIED_COMMAND, 0);
    expect("+client -client|id", "CLIENT LIST", DENIED_NOTHING, 0);
}

TEST(a_command_can_be_permitted_with_one_first_argument)
{
    expect("+select|0", "SELECT 0", DENIED_NOTHING, 0);
    expect("+select|0", "SELECT 1", DENIED_COMMAND, 0);
    expect("+ping|hey", "PING HEY", DENIED_NOTHING, 0);
    expect("+ping|hey", "PING", DENIED_COMMAND, 0);
    expect("+ping|hey", "PING hey2", DENIED_COMMAND, 0);
    expect("+ping|hey -@connection", "PING hey", DENIED_COMMAND, 0);
}

TEST(a_reader_may_look_up_and_not_add)
{
    expect("+@all %R~f*", "BF.EXISTS f1 x", DENIED_NOTHING, 0);
    expect("+@all %R~f*", "BF.MEXISTS f1 x", DENIED_NOTHING, 0);
    expect("+@all %R~f*", "BF.CARD f1", DENIED_NOTHING, 0);
    expect("+@all %R~f*", "BF.INFO f1", DENIED_NOTHING, 0);
    expect("+@all %R~f*", "DUMP f1", DENIED_NOTHING, 0);
    expect("+@all %R~f*", "BF.EXISTS g1 x", DENIED_KEY, 1);
    expect("+@all %R~f*", "BF.ADD f1 x", DENIED_KEY, 1);
    expect("+@all %R~f*", "BF.RESERVE f1 0.1 10", DENIED_KEY, 1);
    expect("+@all %R~f*", "DEL f1", DENIED_KEY, 1);
    expect("+@all %R~f*", "EXPIRE f1 1", DENIED_KEY, 1);
    expect("+@all %R~f*", "RESTORE f1 0 x", DENIED_KEY, 1);
}

TEST(a_writer_may_add_and_not_look_up)
{
    expect("+@all %W~f*", "BF.ADD f1 x", DENIED_NOTHING, 0);
    expect("+@all %W~f*", "BF.EXISTS f1 x", DENIED_KEY, 1);
    expect("+@all %W~f*", "EXISTS f1", DENIED_NOTHING, 0);
}

/* A command that writes a key needs the right to write, in both dialects. */
TEST(every_command_that_changes_keys_needs_the_right_to_write)
{
    struct selector selector = { 0 };
    struct slice words[] = {
        { "", 0 }, { "k", 1 }, { "k", 1 }, { "k", 1 }, { "k", 1 }
    };

    command_table_init(command_rows);
    assert_null(selector_apply(&selector, slice_lit("+@all")));
    assert_null(selector_apply(&selector, slice_lit("%R~*")));
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        const struct permission_query query = { command_at(id), words, 5, 0 };
        int64_t work = PERMISSION_ANY_WORK;
        size_t at, next = 0;

        if ((query.command->flags & CMD_WRITE) != 0 &&
            query.command->keys.first > 0) {
            assert_int_equal(DENIED_KEY, permission_check(&selector, &query,
                                                          &next, &work, &at));
        }
    }
    selector_fini(&selector);
}

TEST(each_key_of_a_command_is_checked_by_its_use)
{
    expect("+@all %R~src %W~dst", "COPY src dst", DENIED_NOTHING, 0);
    expect("+@all %R~src %W~dst", "COPY dst src", DENIED_KEY, 1);
    expect("+@all %R~src %W~dst", "COPY src src", DENIED_KEY, 2);
    expect("+@all %R~src %W~dst", "BF.MERGE dst src src", DENIED_NOTHING, 0);
    expect("+@all %R~src %W~dst", "BF.MERGE src src", DENIED_KEY, 1);
    expect("+@all %R~src %W~dst", "BF.MERGE dst src dst", DENIED_KEY, 3);
    expect("+@all ~a ~b", "DEL a b c d", DENIED_KEY, 3);
    expect("+@all ~a", "OBJECT ENCODING b", DENIED_KEY, 2);
    expect("+@all", "SPUBLISH c m", DENIED_CHANNEL, 1);
}

TEST(channels_are_matched_and_patterns_are_compared)
{
    expect("+@all &a*", "PUBLISH ab m", DENIED_NOTHING, 0);
    expect("+@all &a*", "PUBLISH b m", DENIED_CHANNEL, 1);
    expect("+@all &a*", "SUBSCRIBE ab a b", DENIED_CHANNEL, 3);
    expect("+@all &a*", "SSUBSCRIBE b", DENIED_CHANNEL, 1);
    expect("+@all &a*", "PSUBSCRIBE a*", DENIED_NOTHING, 0);
    expect("+@all &a*", "PSUBSCRIBE ab*", DENIED_CHANNEL, 1);
    expect("+@all &a*", "PSUBSCRIBE ab", DENIED_CHANNEL, 1);
    expect("+@all &a*", "UNSUBSCRIBE b", DENIED_NOTHING, 0);
    expect("+@all allchannels", "PSUBSCRIBE *", DENIED_NOTHING, 0);
}

TEST(databases_are_those_of_the_session_and_those_that_are_named)
{
    size_t at;

    expect("+@all ~* db=0", "BF.ADD k x", DENIED_NOTHING, 0);
    expect("+@all ~* db=1", "BF.ADD k x", DENIED_DB, 0);
    expect("+@all ~* db=1", "SCAN 0", DENIED_DB, 0);
    expect("+@all ~* db=1", "DBSIZE", DENIED_DB, 0);
    expect("+@all ~* db=1", "FLUSHDB", DENIED_DB, 0);
    expect("+@all ~* db=1", "WATCH k", DENIED_DB, 0);
    expect("+@all ~* db=1", "PING", DENIED_NOTHING, 0);
    expect("+@all ~* db=1", "SELECT 1", DENIED_NOTHING, 0);
    expect("+@all ~* db=0", "SELECT 1", DENIED_DB, 1);
    expect("+@all ~* db=0", "SELECT x", DENIED_NOTHING, 0);
    expect("+@all ~* db=0", "MOVE k 2", DENIED_DB, 2);
    expect("+@all ~* db=2", "MOVE k 2", DENIED_DB, 0);
    expect("+@all ~* db=0", "COPY a b DB 3", DENIED_DB, 4);
    expect("+@all ~* db=0", "COPY a b REPLACE db 3", DENIED_DB, 5);
    expect("+@all ~* db=0,3", "COPY a b DB 3", DENIED_NOTHING, 0);
    expect("+@all ~* db=0", "COPY a b DB 0 DB 5 REPLACE", DENIED_DB, 6);
    expect("+@all ~* db=0", "COPY a b DB 5 DB 0", DENIED_DB, 4);
    expect("+@all ~* db=0", "COPY db db DB 0", DENIED_NOTHING, 0);
    expect("+@all ~* db=0,1", "SWAPDB 0 1", DENIED_NOTHING, 0);
    expect("+@all ~* db=0,1", "SWAPDB 1 2", DENIED_DB, 2);
    expect("+@all ~* db=0,1", "FLUSHALL", DENIED_DB, 0);
    expect("+@all ~*", "FLUSHALL", DENIED_NOTHING, 0);
    assert_int_equal(DENIED_NOTHING,
                     denial_of("+@all ~* db=5", 5, "BF.ADD k x", &at));
    assert_int_equal(DENIED_DB,
                     denial_of("+@all ~* resetdbs", 5, "DBSIZE", &at));
}
