/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files: what they set, and where they say an error is.
 */
#include "conf/conf_load.h"

#include "../test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Writes a file and gives its path; the caller removes it. */
static void
write_file(struct slice content, char ret_path[32])
{
    int fd;

    (void)snprintf(ret_path, 32, "/tmp/bloomery-conf-XXXXXX");
    fd = mkstemp(ret_path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content.data, content.len),
                     (ssize_t)content.len);
    assert_int_equal(close(fd), 0);
}

static bool
load(struct conf *conf, struct slice content, struct conf_error *ret_error,
     char ret_path[32])
{
    bool loaded;

    ret_error->text[0] = '\0';
    write_file(content, ret_path);
    loaded = conf_load_file(conf, ret_path, NULL, ret_error);
    assert_int_equal(unlink(ret_path), 0);
    return loaded;
}

TEST(a_file_sets_what_it_says)
{
    static const char content[] = "\xef\xbb\xbf# a comment\n"
                                  "; another\n"
                                  "[Network]\n"
                                  "  port = 1\n"
                                  "port=2\n"
                                  "bind: ::1   127.0.0.1\r\n"
                                  "unixsocket = \"\"\n"
                                  "\n"
                                  "[bf]\n"
                                  "bloom-capacity = 5000\n"
                                  "BLOOM-FP-RATE = 1e-4\n"
                                  "[security]\n"
                                  "requirepass = \"  semi ; colon # hash \"\n"
                                  "[memory]\n"
                                  "maxmemory = 1gb";
    struct conf conf;
    struct conf_error error;
    char path[32];

    conf_init(&conf);
    assert_true(load(&conf, slice_lit(content), &error, path));
    assert_string_equal(error.text, "");
    assert_int_equal(conf.port, 2);
    assert_string_equal(conf.bind, "::1 127.0.0.1");
    assert_string_equal(conf.unixsocket, "");
    assert_int_equal(conf.bf_capacity, 5000);
    assert_string_equal(conf.bf_fp_rate.text, "1e-4");
    assert_string_equal(conf.requirepass, "  semi ; colon # hash ");
    assert_int_equal(conf.maxmemory, 1 << 30);
    conf_fini(&conf);
}

TEST(a_value_keeps_what_looks_like_a_comment)
{
    struct conf conf;
    struct conf_error error;
    char path[32];

    conf_init(&conf);
    assert_true(load(&conf, slice_lit("[security]\nrequirepass = a ;b = #c\n"),
                     &error, path));
    assert_string_equal(conf.requirepass, "a ;b = #c");
    conf_fini(&conf);
}

TEST(errors_name_file_and_line)
{
    static const struct {
        const char *content, *why;
    } cases[] = {
        { "[network]\nport = 7379\nprot = 1\n",
          "3: unknown option 'prot' in section [network]: did you mean port?" },
        { "\n\n[netwrk]\nport = 1\n",
          "4: port belongs in section [network] as port" },
        { "[netwrk]\nx = 1\n",
          "2: unknown section [netwrk]: did you mean [network]?" },
        { "[network]\nmaxmemroy = 1\n",
          "2: unknown option 'maxmemroy' in section [network]: did you mean "
          "maxmemory in section [memory]?" },
        { "port = 1\n", "1: port belongs in section [network] as port" },
        { "x = 1\n", "1: unknown option 'x' before any section" },
        { "[bf]\nbf.bloom-capacity = 1\n",
          "2: bf.bloom-capacity belongs in section [bf] as bloom-capacity" },
        { "[network]\n# c\nport = 70000\nport = x\n",
          "3: port: argument must be between 0 and 65535 inclusive" },
        { "[bf]\nbloom-fp-rate = 2\n",
          "2: bloom-fp-rate: ERR (0 < error rate range < 1)" },
        { "[network]\nport\n", "2: neither [section] nor name = value" },
        { "[network\nport = 1\n", "1: neither [section] nor name = value" },
        { "[network]\nport = 1\n  and more\n",
          "3: neither [section] nor name = value" },
        { "[security]\nrequirepass = \"half\n",
          "2: requirepass: unbalanced double quotes" },
        { "[security]\nrequirepass = \"\n",
          "2: requirepass: unbalanced double quotes" },
        { "[network]\nport =\n",
          "2: port: argument couldn't be parsed into an integer" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct conf conf;
        struct conf_error error;
        char path[32];
        char expected[256];

        conf_init(&conf);
        assert_false(load(&conf, slice_of(cases[i].content), &error, path));
        (void)snprintf(expected, sizeof(expected), "%s:%s", path, cases[i].why);
        assert_string_equal(error.text, expected);
        conf_fini(&conf);
    }
}

TEST(a_line_that_is_too_long_is_refused_and_one_below_is_not)
{
    char content[CONF_LINE_MAX + 2];
    struct conf conf;
    struct conf_error error;
    char path[32];
    char expected[128];

    memset(content, 'x', sizeof(content));
    content[0] = '#';
    content[CONF_LINE_MAX] = '\n';
    conf_init(&conf);
    assert_true(load(&conf, (struct slice){ content, CONF_LINE_MAX + 1 },
                     &error, path));
    content[CONF_LINE_MAX] = 'x';
    assert_false(load(&conf, (struct slice){ content, CONF_LINE_MAX + 1 },
                      &error, path));
    (void)snprintf(expected, sizeof(expected), "%s:1: the line is too long",
                   path);
    assert_string_equal(error.text, expected);
    conf_fini(&conf);
}

TEST(a_zero_byte_is_refused)
{
    struct conf conf;
    struct conf_error error;
    char path[32];
    char expected[128];

    conf_init(&conf);
    assert_false(
        load(&conf, slice_lit("[network]\nport = 1\0x\n"), &error, path));
    (void)snprintf(expected, sizeof(expected),
                   "%s:2: there is a zero byte in the line", path);
    assert_string_equal(error.text, expected);
    conf_fini(&conf);
}

TEST(a_file_that_cannot_be_read_is_named)
{
    struct conf conf;
    struct conf_error error;

    conf_init(&conf);
    assert_false(
        conf_load_file(&conf, "/nonexistent/bloomery.conf", NULL, &error));
    assert_string_equal(error.text, "/nonexistent/bloomery.conf: No such file "
                                    "or directory");
    assert_false(conf_load_file(&conf, "/tmp", NULL, &error));
    assert_string_equal(error.text, "/tmp:1: Is a directory");
    conf_fini(&conf);
}
