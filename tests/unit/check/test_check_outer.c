/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files outside of the data directory that options name.
 */
#include "check/check_outer.h"

#include "../capture.h"
#include "../home.h"
#include "base/mem.h"
#include "conf/conf.h"

struct home {
    char dir[64];
    char data[CHECK_PATH_MAX], out[CHECK_PATH_MAX], conf[CHECK_PATH_MAX];
    struct conf options;
    struct check check;
    struct check_made made;
};

static void
home_open(struct home *home)
{
    *home = (struct home){ .dir = "/tmp/check-outer-XXXXXX",
                           .check = { .tool = { .name = "test" } },
                           .made = { .check = &home->check } };
    home_make(home->dir);
    (void)snprintf(home->data, sizeof(home->data), "%s/data", home->dir);
    (void)snprintf(home->out, sizeof(home->out), "%s/out", home->dir);
    (void)snprintf(home->conf, sizeof(home->conf), "%s/conf", home->dir);
    assert_int_equal(0, mkdir(home->data, 0700));
    assert_int_equal(0, mkdir(home->out, 0700));
}

static void
home_close(struct home *home)
{
    for (size_t i = 0; i < home->made.count; i++) {
        mem_free(home->made.paths[i]);
    }
    mem_free(home->made.paths);
    buf_free(&home->check.omitted);
    conf_fini(&home->options);
    home_remove(home->dir);
}

/* Copies what a configuration of this option names, and prints cards. */
static bool
copy(struct home *home, const char *option, struct capture *output)
{
    char text[512];
    bool good;

    (void)snprintf(text, sizeof(text), "[security]\n%s\n", option);
    home_put(home->dir, "conf", text);
    home->check.config = home->conf;
    assert_true(
        check_outer_read(&home->check, home->conf, home->data, &home->options));
    home->check.conf = &home->options;
    capture_begin(output, STDOUT_FILENO);
    good = check_outer_copy(&home->made, home->data, home->out);
    (void)capture_end(output);
    return good;
}

TEST(without_a_configuration_nobody_knows_what_is_outside)
{
    struct home home;

    home_open(&home);
    conf_init(&home.options);
    assert_true(check_outer_copy(&home.made, home.data, home.out));
    buf_append(&home.check.omitted, "", 1);
    assert_contains(home.check.omitted.data,
                    "what options name outside of /tmp/check-outer-");
    home_close(&home);
}

TEST(users_are_copied_under_a_name_of_the_backup)
{
    struct home home;
    struct capture output;
    char option[256];

    home_open(&home);
    home_put(home.dir, "my-users", "user a on\n");
    (void)snprintf(option, sizeof(option), "aclfile = %s/my-users", home.dir);
    assert_true(copy(&home, option, &output));
    home_expect(home.out, "aclfile.acl", "user a on\n");
    assert_contains(output.text, "copied_to          aclfile.acl\n");
    home_close(&home);
}

TEST(users_in_the_data_directory_are_copied_with_it)
{
    struct home home;
    struct capture output;
    char option[256];

    home_open(&home);
    home_put(home.data, "my.acl", "user a on\n");
    (void)snprintf(option, sizeof(option), "aclfile = %s/data/my.acl",
                   home.dir);
    assert_true(copy(&home, option, &output));
    home_expect(home.out, "aclfile.acl", NULL);
    assert_null(strstr(output.text, "my.acl"));
    home_close(&home);
}

TEST(without_secrets_users_are_said_to_be_missing)
{
    struct home home;
    struct capture output;
    char option[256];

    home_open(&home);
    home.check.without_secrets = true;
    home_put(home.dir, "my-users", "user a on\n");
    (void)snprintf(option, sizeof(option), "aclfile = %s/my-users", home.dir);
    assert_true(copy(&home, option, &output));
    home_expect(home.out, "aclfile.acl", NULL);
    assert_contains(output.text, "note               not included\n");
    buf_append(&home.check.omitted, "", 1);
    assert_contains(home.check.omitted.data, "aclfile /tmp/check-outer-");
    home_close(&home);
}

TEST(a_secret_joins_the_folder_and_a_bad_one_is_a_failure)
{
    struct home home;
    struct capture output;
    char option[256];
    bool good = true;

    home_open(&home);
    home_put(home.dir, "my-secret", "too short\n");
    (void)snprintf(option, sizeof(option), "hash-secret-file = %s/my-secret",
                   home.dir);
    EXPECT_PRINTED(STDERR_FILENO, good = copy(&home, option, &output),
                   "/my-secret: ");
    assert_false(good);
    assert_int_equal(CHECK_UNREADABLE, home.check.tool.status);
    conf_fini(&home.options);
    home_put(home.dir, "my-secret", "00112233445566778899aabbccddeeff\n");
    assert_true(copy(&home, option, &output));
    assert_contains(output.text, "copied_to          hash-secrets/");
    home_close(&home);
}

TEST(rewritten_options_win_and_a_bad_file_is_a_failure)
{
    struct home home;
    bool good = true;

    home_open(&home);
    home_put(home.dir, "conf", "[network]\nport = 1\n");
    home_put(home.data, "rewritten.conf", "[network]\nport = 2\n");
    assert_true(
        check_outer_read(&home.check, home.conf, home.data, &home.options));
    assert_int_equal(2, home.options.port);
    conf_fini(&home.options);
    home_put(home.data, "rewritten.conf", "[network]\nport = many\n");
    EXPECT_PRINTED(STDERR_FILENO,
                   good = check_outer_read(&home.check, home.conf, home.data,
                                           &home.options),
                   "/data/rewritten.conf:2: ");
    assert_false(good);
    assert_int_equal(CHECK_UNREADABLE, home.check.tool.status);
    home_close(&home);
}
