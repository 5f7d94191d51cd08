/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tests/scenario/test_foreign.py starts a server with what came out.
 */
#include "conf/conf_convert.h"

#include "../test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void
write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_int_equal(strlen(text), fwrite(text, 1, strlen(text), file));
    assert_int_equal(0, fclose(file));
}

static bool
convert(const char *text, struct buf *ret_text, struct buf *ret_users,
        struct conf_error *ret_error)
{
    char folder[] = "/tmp/bloomery-convert-XXXXXX", path[64];
    bool done;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/r.conf", folder);
    write_file(path, text);
    ret_text->len = ret_users->len = 0;
    done = conf_convert(path, "/x/users.acl", ret_text, ret_users, ret_error);
    buf_append(ret_text, "", 1);
    buf_append(ret_users, "", 1);
    (void)unlink(path);
    (void)rmdir(folder);
    return done;
}

TEST(lines_of_redis_become_sections_notes_and_users)
{
    struct buf text = { 0 }, users = { 0 };
    struct conf_error error;

    assert_true(convert("# a server's comment\n\n  #\"\nhz 10\ntimeout 5\n"
                        "requirepass \"a b\"\nuser  bob on >p\n",
                        &text, &users, &error));
    assert_non_null(strstr(text.data, "[network]\nport = 6379\n"));
    assert_non_null(strstr(text.data, "timeout = 5\n"));
    assert_non_null(strstr(text.data, "requirepass = a b\n"));
    assert_non_null(strstr(text.data, "aclfile = /x/users.acl\n"));
    assert_non_null(strstr(text.data, "r.conf:4: hz does nothing here"));
    assert_string_equal("user bob on >p\n", users.data);
    assert_true(convert("port 1\n", &text, &users, &error));
    assert_null(strstr(text.data, "aclfile"));
    buf_free(&text);
    buf_free(&users);
}

TEST(users_stand_in_lines_or_in_a_file)
{
    struct buf text = { 0 }, users = { 0 };
    struct conf_error error;

    assert_false(convert("aclfile /y/users.acl\nuser bob on >p\n", &text,
                         &users, &error));
    assert_non_null(strstr(error.text, "move the lines to /y/users.acl"));
    assert_true(convert("aclfile /y/users.acl\n", &text, &users, &error));
    assert_non_null(strstr(text.data, "aclfile = /y/users.acl\n"));
    buf_free(&text);
    buf_free(&users);
}

TEST(a_mistake_has_its_line)
{
    struct buf text = { 0 }, users = { 0 };
    struct conf_error error;

    assert_false(convert("port 1\nport \"2\n", &text, &users, &error));
    assert_non_null(strstr(error.text, "r.conf:2: "));
    assert_false(convert("\nnope 1\n", &text, &users, &error));
    assert_non_null(strstr(error.text, "r.conf:2: nope: unknown option"));
    assert_false(convert("include /nowhere/x.conf\n", &text, &users, &error));
    assert_non_null(strstr(error.text, "/nowhere/x.conf: No such file"));
    buf_free(&text);
    buf_free(&users);
}
