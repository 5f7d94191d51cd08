/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Options that contradict each other, and files that they name.
 */
#include "server/check_config.h"

#include "../capture.h"
#include "../home.h"
#include "cli/exit_status.h"
#include "conf/conf_args.h"

#include <fcntl.h>

static void
set(struct conf *conf, const char *name, const char *value)
{
    struct conf_error error;

    if (!conf_set(conf, conf_find(slice_of(name)), slice_of(value), &error)) {
        fail_msg("%s: %s", name, error.text);
    }
}

/* Expects these reasons for options "name value name value ..."; "": none. */
static void
expect_reasons(const char *options, const char *wanted)
{
    struct slice rest = slice_of(options);
    struct slice name, value;
    struct buf reasons = { 0 };
    struct conf conf;
    bool good;

    conf_init(&conf);
    while (slice_next_word(&rest, &name) && slice_next_word(&rest, &value)) {
        char texts[2][128];

        (void)snprintf(texts[0], 128, "%.*s", (int)name.len, name.data);
        (void)snprintf(texts[1], 128, "%.*s", (int)value.len, value.data);
        set(&conf, texts[0],
            strcmp(texts[1], "follow") == 0 ? "10.0.0.9 7379" : texts[1]);
    }
    good = check_options(&conf, &reasons);
    buf_append(&reasons, "", 1);
    assert_int_equal(wanted[0] == '\0', good);
    assert_contains(reasons.data, wanted);
    if (wanted[0] == '\0') {
        assert_string_equal("", reasons.data);
    }
    buf_free(&reasons);
    conf_fini(&conf);
}

TEST(options_that_contradict_each_other_are_named)
{
    expect_reasons("", "");
    expect_reasons("port 7379 tls-port 7379",
                   "port and tls-port are both 7379");
    expect_reasons("port 7379 tls-port 7380", "");
    expect_reasons("port 0", "there is nothing to listen on");
    expect_reasons("port 0 tls-port 7380", "");
    expect_reasons("port 0 admin-port 7380", "");
    expect_reasons("port 0 unixsocket /tmp/s", "");
    expect_reasons("replicaof follow replicaof-allowed 10.0.0.8",
                   "replicaof: replicaof-allowed does not name it: 10.0.0.9");
    expect_reasons("replicaof follow replicaof-allowed 10.0.0.9", "");
    expect_reasons("dbfilename same appenddirname same", "same");
}

TEST(all_reasons_are_given_at_once)
{
    expect_reasons("port 0 replicaof follow replicaof-allowed 10.0.0.8",
                   "there is nothing to listen on");
    expect_reasons("port 0 replicaof follow replicaof-allowed 10.0.0.8",
                   "replicaof-allowed does not name it");
}

/* ---- files --------------------------------------------------------------- */

struct checked {
    int status;
    char out[1024], err[4096];
};

static struct checked
check(struct conf *conf, const char *mistakes)
{
    static struct conf_args args;
    struct checked checked;
    struct capture out, err;

    args = (struct conf_args){ .file = "my.conf" };
    buf_append_slice(&args.mistakes, slice_of(mistakes));
    capture_begin(&out, STDOUT_FILENO);
    capture_begin(&err, STDERR_FILENO);
    checked.status = check_config(conf, &args);
    (void)snprintf(checked.err, sizeof(checked.err), "%.4000s",
                   capture_end(&err));
    (void)snprintf(checked.out, sizeof(checked.out), "%.1000s",
                   capture_end(&out));
    return checked;
}

static void
expect_bad(struct conf *conf, const char *text)
{
    struct checked checked = check(conf, "");

    assert_int_equal(SERVER_EXIT_MISTAKE, checked.status);
    assert_string_equal("", checked.out);
    assert_contains(checked.err, "bloomery-server: my.conf: ");
    assert_contains(checked.err, text);
}

TEST(a_good_configuration_is_said_to_be_good)
{
    char dir[] = "/tmp/check-config-XXXXXX";
    struct checked checked;
    struct conf conf;

    home_make(dir);
    conf_init(&conf);
    set(&conf, "dir", dir);
    checked = check(&conf, "");
    assert_string_equal("", checked.err);
    assert_string_equal("my.conf: the configuration is good\n", checked.out);
    assert_int_equal(SERVER_EXIT_STOPPED, checked.status);
    checked = check(&conf, "my.conf:3: what\nmy.conf:7: is wrong\n");
    assert_string_equal("bloomery-server: my.conf:3: what\n"
                        "bloomery-server: my.conf:7: is wrong\n",
                        checked.err);
    assert_int_equal(SERVER_EXIT_MISTAKE, checked.status);
    conf_fini(&conf);
    home_remove(dir);
}

TEST(directories_users_and_certificates_are_looked_at)
{
    char dir[] = "/tmp/check-config-XXXXXX";
    char path[64];
    struct conf conf;

    home_make(dir);
    conf_init(&conf);
    (void)snprintf(path, sizeof(path), "%s/none", dir);
    set(&conf, "dir", path);
    expect_bad(&conf, "/none: No such file or directory: create it");
    assert_int_equal(0, close(open(path, O_CREAT | O_WRONLY, 0600)));
    expect_bad(&conf, "/none: Not a directory");
    set(&conf, "dir", dir);
    set(&conf, "aclfile", path);
    assert_int_equal(SERVER_EXIT_STOPPED, check(&conf, "").status);
    set(&conf, "aclfile", "/nothing/here");
    expect_bad(&conf, "aclfile: /nothing/here: No such file");
    set(&conf, "aclfile", "");
    set(&conf, "tls-port", "7380");
    expect_bad(&conf, "tls-cert-file");
    conf_fini(&conf);
    home_remove(dir);
}
