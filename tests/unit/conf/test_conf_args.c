/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Command lines: what they set, beside a file and rewritten.conf.
 */
#include "conf/conf_args.h"

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

enum { WORDS_MAX = 12 };

/* Calls with an argv of copies, which the texts of *args point into until the
 * next call. */
static bool
load_args(struct conf *conf, const char *const *words, struct conf_args *args,
          struct conf_error *ret_error)
{
    static char room[WORDS_MAX][64];
    char *argv[WORDS_MAX] = { room[0] };
    struct conf given;
    bool loaded;
    int argc = 1;

    (void)snprintf(room[0], sizeof(room[0]), "bloomery-server");
    for (; words[argc - 1] != NULL; argc++) {
        (void)snprintf(room[argc], sizeof(room[argc]), "%s", words[argc - 1]);
        argv[argc] = room[argc];
    }
    ret_error->text[0] = '\0';
    memset(&given, 0, sizeof(given));
    loaded = conf_args_load(conf, &given, argc, argv, args, ret_error);
    conf_fini(&given);
    return loaded;
}

TEST(check_config_finds_all_mistakes_and_sets_the_rest)
{
    char path[32];
    const char *words[] = { "--check-config", path,     "--maxmemroy", "1",
                            "--port",         "many",   "stray",       "--dir",
                            "/nowhere",       "--hz=1", NULL };
    static const char *const found[] = {
        ":2: unknown option 'prot' in section [network]: did you mean port?\n",
        ":3: the line is too long\n",
        ":4: neither [section] nor name = value\n",
        ":6: there is a zero byte in the line\n",
        ":7: port: argument must be between 0 and 65535 inclusive\n",
        ":9: this file is in the syntax of redis.conf",
        ":10: timeout: in the syntax of redis.conf, too\n",
        ":11: include: /nowhere.conf: No such file or directory\n",
        "unknown option --maxmemroy: did you mean --maxmemory?\n",
        "--port: argument couldn't be parsed into an integer\n",
        "unexpected argument 'stray'",
        "requirepass-file: /nowhere: No such file or directory\n",
        "masterauth and masterauth-file are both set",
    };
    struct buf file = { 0 };
    struct conf conf;
    struct conf_args args;
    struct conf_error error;
    const char *at;
    size_t lines = 0;

    buf_append_slice(&file, slice_lit("[network]\nprot = 1\n"));
    for (unsigned i = 0; i < 100000; i++) {
        buf_append(&file, "x", 1);
    }
    buf_append_slice(&file, slice_lit("\nand more\ntimeout = 7\nport = 1\0\n"
                                      "port = 70000\nmaxclients = 77\n"
                                      "bind 127.0.0.1\ntimeout 9\n"
                                      "include = /nowhere.conf\n"
                                      "[security]\n"
                                      "requirepass-file = /nowhere\n"
                                      "[replication]\nmasterauth = x\n"
                                      "masterauth-file = /nowhere\n"));
    write_file(buf_slice(&file), path);
    conf_init(&conf);
    assert_true(load_args(&conf, words, &args, &error));
    buf_append(&args.mistakes, "", 1);
    at = args.mistakes.data;
    for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
        at = strstr(at, found[i]);
        assert_non_null(at);
    }
    for (at = args.mistakes.data; (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    assert_int_equal(lines, sizeof(found) / sizeof(found[0]));
    assert_int_equal(conf.timeout, 7);
    assert_int_equal(conf.maxclients, 77);
    assert_string_equal(conf.dir, "/nowhere");
    buf_free(&args.mistakes);
    buf_free(&file);
    conf_fini(&conf);
    assert_int_equal(unlink(path), 0);
}
