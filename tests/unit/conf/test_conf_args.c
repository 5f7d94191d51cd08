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

TEST(the_command_line_wins_over_the_file)
{
    char path[32];
    const char *words[] = {
        path,          "--port", "2", "--bf.bloom-capacity=7",
        "--BIND=-::1", "--save", "",  "--requirepass",
        "--secret=x",  NULL
    };
    struct conf conf;
    struct conf_args args;
    struct conf_error error;

    write_file(slice_lit("[network]\nport = 1\ntimeout = 9\n"), path);
    conf_init(&conf);
    assert_true(load_args(&conf, words, &args, &error));
    assert_string_equal(error.text, "");
    assert_int_equal(args.action, CONF_ACTION_RUN);
    assert_string_equal(args.file, path);
    assert_int_equal(conf.port, 2);
    assert_int_equal(conf.timeout, 9);
    assert_int_equal(conf.bf_capacity, 7);
    assert_string_equal(conf.bind, "-::1");
    assert_string_equal(conf.requirepass, "--secret=x");
    conf_fini(&conf);
    assert_int_equal(unlink(path), 0);
}

/* A configuration file, and a data directory for rewritten.conf. */
struct home {
    char dir[32], path[32], dir_word[64], rewritten[64];
    struct conf conf;
    struct conf_args args;
    struct conf_error error;
};

static void
home_open(struct home *home, struct slice file)
{
    memset(home, 0, sizeof(*home));
    (void)snprintf(home->dir, sizeof(home->dir), "/tmp/bloomery-conf-XXXXXX");
    assert_non_null(mkdtemp(home->dir));
    (void)snprintf(home->dir_word, sizeof(home->dir_word), "--dir=%s",
                   home->dir);
    (void)snprintf(home->rewritten, sizeof(home->rewritten),
                   "%s/rewritten.conf", home->dir);
    write_file(file, home->path);
}

static void
home_close(struct home *home)
{
    assert_int_equal(unlink(home->rewritten), 0);
    assert_int_equal(unlink(home->path), 0);
    assert_int_equal(rmdir(home->dir), 0);
    conf_fini(&home->conf);
}

/* Starts once more, with this text in rewritten.conf (NULL: no file). */
static bool
home_load(struct home *home, const char *text)
{
    const char *words[] = { home->path, home->dir_word, "--timeout", "3",
                            NULL };
    FILE *file = text != NULL ? fopen(home->rewritten, "w") : NULL;

    if (text != NULL) {
        assert_non_null(file);
        (void)fputs(text, file);
        assert_int_equal(fclose(file), 0);
    }
    conf_fini(&home->conf);
    conf_init(&home->conf);
    return load_args(&home->conf, words, &home->args, &home->error);
}

TEST(rewritten_conf_wins_over_the_file_and_loses_to_the_command_line)
{
    struct home home;

    home_open(&home, slice_lit("[network]\ntimeout = 1\nmaxclients = 11\n"
                               "tcp-keepalive = 111\n[persistence]\n"
                               "save = 1 1\n"));
    assert_true(home_load(&home, NULL));
    assert_int_equal(home.conf.maxclients, 11);
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        assert_false(home.args.overridden[i]);
    }
    assert_true(home_load(&home, "[network]\ntimeout = 2\nmaxclients = 22\n"
                                 "tcp-keepalive = 111\n[persistence]\n"
                                 "save = 2 2\n[memory]\nmaxmemory = 1gb\n"));
    assert_int_equal(home.conf.timeout, 3);
    assert_int_equal(home.conf.maxclients, 22);
    assert_int_equal(home.conf.tcp_keepalive, 111);
    assert_int_equal(home.conf.save.count, 1);
    assert_int_equal(home.conf.save.rules[0].seconds, 2);
    for (int i = 0; i < CONF_OPTION_COUNT; i++) {
        bool overridden = i == CONF_OPTION_maxclients ||
                          i == CONF_OPTION_save || i == CONF_OPTION_maxmemory;

        assert_int_equal(home.args.overridden[i], overridden);
    }
    home_close(&home);
}

TEST(a_bad_rewritten_conf_is_refused_and_says_what_to_do)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        { "[persistence]\ndir = /elsewhere\n", ": dir cannot be set here" },
        { "[network]\nnope = 1\n", ":2: unknown option 'nope'" },
        { "[security]\nrequirepass = x\n",
          ": requirepass cannot be set here beside requirepass-file" },
    };
    struct home home;

    home_open(&home, slice_lit("[security]\nrequirepass-file = /dev/null\n"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_false(home_load(&home, cases[i].text));
        assert_memory_equal(home.error.text, home.rewritten,
                            strlen(home.rewritten));
        assert_non_null(strstr(home.error.text, cases[i].error));
        assert_non_null(strstr(home.error.text, "or remove it to start"));
    }
    home_close(&home);
}

/* What CONFIG GET save shows. */
static void
expect_save(const struct conf *conf, const char *shown)
{
    struct buf text = { 0 };

    conf_get(conf, &conf_table[CONF_OPTION_save], &text);
    buf_append(&text, "", 1);
    assert_string_equal(text.data, shown);
    buf_free(&text);
}

TEST(save_rules_of_one_place_add_up_and_replace_those_before)
{
    static const struct {
        const char *file;
        const char *words[8];
        const char *shown;
    } cases[] = {
        { "", { NULL }, "3600 1 300 100 60 10000" },
        { "save = 900 1\nsave = 300 10\n", { NULL }, "900 1 300 10" },
        { "save = 900 1\nsave = \"\"\n", { NULL }, "" },
        { "save = 900 1\nsave = \"\"\nsave = 5 5\n", { NULL }, "5 5" },
        { "", { "--save", "" }, "" },
        { "", { "--save=" }, "" },
        { "save = 900 1\n", { "--save", "" }, "" },
        { "save = 900 1\n", { "--save", "5 5" }, "5 5" },
        { "", { "--save", "5", "5", "6", "6", "--port", "1" }, "5 5 6 6" },
        { "", { "--save", "5 5", "--save", "6 6" }, "5 5 6 6" },
        { "", { "--save", "5 5", "--save", "", "--save=6 6" }, "6 6" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[32];
        char content[128];
        const char *words[10] = { path };
        struct conf conf;
        struct conf_args args;
        struct conf_error error;

        (void)snprintf(content, sizeof(content), "[persistence]\n%s",
                       cases[i].file);
        memcpy(words + 1, cases[i].words, sizeof(cases[i].words));
        write_file(slice_of(content), path);
        conf_init(&conf);
        assert_true(load_args(&conf, words, &args, &error));
        expect_save(&conf, cases[i].shown);
        conf_fini(&conf);
        assert_int_equal(unlink(path), 0);
    }
}

TEST(an_empty_command_line_is_all_defaults)
{
    const char *const words[] = { NULL };
    struct conf conf;
    struct conf_args args;
    struct conf_error error;

    conf_init(&conf);
    assert_true(load_args(&conf, words, &args, &error));
    assert_int_equal(args.action, CONF_ACTION_RUN);
    assert_null(args.file);
    assert_int_equal(conf.port, 7379);
    conf_fini(&conf);
}

/* Redis's options that have no meaning here, with their values. */
TEST(an_option_that_does_nothing_is_noted)
{
    static const char *const words[] = { "--rdbcompression", "yes", "--port",
                                         "7", NULL };
    struct conf conf;
    struct conf_args args;
    struct conf_error error;

    conf_init(&conf);
    assert_true(load_args(&conf, words, &args, &error));
    assert_int_equal(7, conf.port);
    assert_non_null(strstr(args.notes.text, "rdbcompression"));
    conf_fini(&conf);
}

/* It is read once, and kept for a reload. */
TEST(standard_input_is_a_file_that_is_kept)
{
    static const char *const words[] = { "-", "--timeout", "20", NULL };
    static const char text[] = "[network]\nport = 7001\ntimeout = 30\n";
    int ends[2];

    assert_int_equal(0, pipe(ends));
    assert_int_equal(sizeof(text) - 1, write(ends[1], text, sizeof(text) - 1));
    (void)close(ends[1]);
    assert_int_equal(STDIN_FILENO, dup2(ends[0], STDIN_FILENO));
    for (int i = 0; i < 2; i++) {
        struct conf conf;
        struct conf_args args;
        struct conf_error error;

        conf_init(&conf);
        if (!load_args(&conf, words, &args, &error)) {
            fail_msg("%s", error.text);
        }
        assert_string_equal("-", args.file);
        assert_int_equal(7001, conf.port);
        assert_int_equal(20, conf.timeout);
        conf_fini(&conf);
    }
    (void)close(ends[0]);
}

TEST(bad_command_lines_are_refused)
{
    static const struct {
        const char *words[4];
        const char *why;
    } cases[] = {
        { { "--prot", "1" }, "unknown option --prot: did you mean --port?" },
        { { "--" }, "unknown option --" },
        { { "--convert" },
          "--convert takes one file: bloomery-server --convert FILE" },
        { { "--convert", "a", "b" },
          "--convert takes one file: bloomery-server --convert FILE" },
        { { "--print" }, "--print takes a word: bloomery-server --print=WHAT" },
        { { "--port=1", "--plan" },
          "--plan must come first: bloomery-server --plan WORDS" },
        { { "--port=1", "--ping=ready" },
          "--ping must come first: bloomery-server --ping [FILE]" },
        { { "--=1" }, "unknown option --" },
        { { "--port" }, "--port: a value is missing" },
        { { "--port", "x" },
          "--port: argument couldn't be parsed into an integer" },
        { { "--port=70000" },
          "--port: argument must be between 0 and 65535 inclusive" },
        { { "--port", "1", "2" },
          "unexpected argument '2': options are --name value" },
        { { "--save" }, "--save: a value is missing" },
        { { "--save", "5", "5", "5" }, "--save: Invalid save parameters" },
        { { "-p", "1" }, "unexpected argument '-p': options are --name value" },
        { { "/nonexistent/x.conf" },
          "/nonexistent/x.conf: No such file or directory" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct conf conf;
        struct conf_args args;
        struct conf_error error;

        conf_init(&conf);
        assert_false(load_args(&conf, cases[i].words, &args, &error));
        assert_string_equal(error.text, cases[i].why);
        conf_fini(&conf);
    }
}

TEST(help_version_and_print_are_left_to_the_caller)
{
    static const struct {
        const char *words[3];
        enum conf_action action;
        const char *print;
    } cases[] = {
        { { "--help" }, CONF_ACTION_HELP, NULL },
        { { "-h" }, CONF_ACTION_HELP, NULL },
        { { "server.conf", "--help" }, CONF_ACTION_HELP, NULL },
        { { "server.conf", "--version" }, CONF_ACTION_VERSION, NULL },
        { { "-", "-v" }, CONF_ACTION_VERSION, NULL },
        { { "--version" }, CONF_ACTION_VERSION, NULL },
        { { "-v" }, CONF_ACTION_VERSION, NULL },
        { { "--print=options" }, CONF_ACTION_PRINT, "options" },
        { { "--print=" }, CONF_ACTION_PRINT, "" },
        { { "--plan", "1000" }, CONF_ACTION_PLAN, NULL },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct conf conf;
        struct conf_args args;
        struct conf_error error;

        conf_init(&conf);
        assert_true(load_args(&conf, cases[i].words, &args, &error));
        assert_int_equal(args.action, cases[i].action);
        if (cases[i].print != NULL) {
            assert_string_equal(args.print, cases[i].print);
        }
        conf_fini(&conf);
    }
}

TEST(check_config_and_ping_read_the_rest_as_a_start_does)
{
    static const struct {
        const char *words[6];
        enum conf_action action;
        const char *ping;
        int ping_words;
    } cases[] = {
        { { "--check-config", "--port", "7" }, CONF_ACTION_CHECK, NULL, 0 },
        { { "--ping", "--port", "7" }, CONF_ACTION_PING, "", 0 },
        { { "--ping=alive", "--port=7" }, CONF_ACTION_PING, "alive", 0 },
        { { "--ping", "--ping-user=a", "--ping-x", "--port", "7" },
          CONF_ACTION_PING,
          "",
          2 },
    };
    static const char *const bad[][4] = {
        { "--ping", "--nonsense", "1" },
        { "--ping", "/nowhere.conf" },
        { "--ping", "--port", "7", "--ping-user=a" },
        { "--pinging", "--port", "7" },
    };
    struct conf conf;
    struct conf_args args;
    struct conf_error error;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        conf_init(&conf);
        assert_true(load_args(&conf, cases[i].words, &args, &error));
        assert_int_equal(args.action, cases[i].action);
        assert_int_equal(args.ping_words, cases[i].ping_words);
        assert_int_equal(conf.port, 7);
        if (cases[i].ping != NULL) {
            assert_string_equal(args.ping, cases[i].ping);
        }
        conf_fini(&conf);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        conf_init(&conf);
        assert_false(load_args(&conf, bad[i], &args, &error));
        conf_fini(&conf);
    }
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
