/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users at the start: none rather than too many.
 */
#include "server/own_users.h"

#include "../capture.h"
#include "access/table.h"
#include "access/users.h"
#include "base/buf.h"
#include "command/rows.h"
#include "conf/conf.h"

#include <stdlib.h>

static void
set(struct conf *conf, const char *name, const char *value)
{
    struct conf_error error;

    if (!conf_set(conf, conf_find(slice_of(name)), slice_of(value), &error)) {
        fail_msg("%s: %s", name, error.text);
    }
}

/* Makes a file of users at the path, a template of mkstemp. */
static void
name_file(struct conf *conf, char *path, const char *text)
{
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(strlen(text), write(fd, text, strlen(text)));
    assert_int_equal(0, close(fd));
    set(conf, "aclfile", path);
}

/* Reads a file of this text, NULL for no file; expects this reason, "": none.
 */
static void
expect_read(const char *text, const char *disabled, const char *wanted)
{
    char path[] = "/tmp/own-users-XXXXXX";
    struct buf reason = { 0 };
    struct users *users;
    struct conf conf;
    bool good;

    command_table_init(command_rows);
    conf_init(&conf);
    set(&conf, "disabled-commands", disabled);
    if (text != NULL) {
        name_file(&conf, path, text);
    }
    users = users_new();
    good = own_users_read(users, &conf, &reason);
    buf_append(&reason, "", 1);
    assert_int_equal(wanted[0] == '\0', good);
    if (good) {
        assert_string_equal("", reason.data);
    } else {
        assert_contains(reason.data, wanted);
    }
    users_free(users);
    buf_free(&reason);
    conf_fini(&conf);
    if (text != NULL) {
        assert_int_equal(0, unlink(path));
    }
}

TEST(a_file_has_users_or_a_reason)
{
    expect_read(NULL, "", "");
    expect_read("", "", "");
    expect_read("user a on >p ~* +@all\n", "", "");
    expect_read("user a on +nosuch\n", "", "aclfile: ");
    expect_read("group a\n", "", "aclfile: ");
    expect_read("user a on\nuser a off\n", "", "aclfile: ");
}

static bool
ignores_requirepass(const char *text)
{
    char path[] = "/tmp/own-users-XXXXXX";
    struct buf reason = { 0 };
    struct users *users = users_new();
    struct conf conf;
    bool ignored;

    command_table_init(command_rows);
    conf_init(&conf);
    set(&conf, "requirepass", "p");
    name_file(&conf, path, text);
    assert_true(own_users_read(users, &conf, &reason));
    ignored = users_ignore_password(users);
    users_free(users);
    buf_free(&reason);
    conf_fini(&conf);
    assert_int_equal(0, unlink(path));
    return ignored;
}

TEST(a_default_user_in_the_file_makes_requirepass_void)
{
    assert_false(ignores_requirepass("user a on >q ~* +@all\n"));
    assert_false(ignores_requirepass("user default on >p ~* +@all\n"));
    assert_true(ignores_requirepass("user default on >q ~* +@all\n"));
    assert_true(ignores_requirepass("user default on nopass ~* +@all\n"));
}

TEST(commands_that_are_disabled_must_exist)
{
    expect_read(NULL, "debug FLUSHALL", "");
    expect_read(NULL, "lpush", ""); /* another product's */
    expect_read(NULL, "flushall nosuch", "there is no command 'nosuch'");
    expect_read("user a on\n", "nosuch", "there is no command 'nosuch'");
}

TEST(a_missing_file_is_a_reason)
{
    struct buf reason = { 0 };
    struct users *users;
    struct conf conf;

    command_table_init(command_rows);
    conf_init(&conf);
    set(&conf, "aclfile", "/nothing/here");
    users = users_new();
    assert_false(own_users_read(users, &conf, &reason));
    buf_append(&reason, "", 1);
    assert_string_equal("aclfile: /nothing/here: No such file or directory",
                        reason.data);
    buf_free(&reason);
    users_free(users);
    conf_fini(&conf);
}
