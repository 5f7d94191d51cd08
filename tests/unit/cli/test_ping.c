/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --ping: its words, and what each answer of a server means for the exit
 * status. test_ping.py has addresses and TLS.
 */
#include "cli/ping.h"

#include "../capture.h"
#include "../script.h"
#include "base/mem.h"
#include "cli/exit_status.h"
#include "conf/conf_args.h"

#define PONG  "+PONG\r\n"
#define READY "$14\r\nrole:primary\r\n\r\n"

struct asked {
    int status;
    char out[2048], err[2048];
};

/* Asks a server with these replies. words: those of --ping-, NULL ends them. */
static struct asked
ask(const char *how, const char *const *words, const char *const *replies,
    const char *password, const char *heard)
{
    struct asked asked = { .status = -1 };
    struct conf_args args = { .ping = how };
    char *given[4] = { NULL };
    struct script script;
    struct capture out, err;
    struct conf conf;

    for (; words[args.ping_words] != NULL; args.ping_words++) {
        /* NOLINTNEXTLINE: argv is not const */
        given[args.ping_words] = (char *)(uintptr_t)words[args.ping_words];
    }
    conf_init(&conf);
    script_begin(&script, replies);
    mem_free(conf.unixsocket);
    conf.unixsocket = mem_copy_text(slice_of(script.path));
    if (password != NULL) {
        mem_free(conf.requirepass);
        conf.requirepass = mem_copy_text(slice_of(password));
    }
    capture_begin(&out, STDOUT_FILENO);
    capture_begin(&err, STDERR_FILENO);
    asked.status = ping(&conf, &args, given);
    (void)snprintf(asked.err, sizeof(asked.err), "%.2000s", capture_end(&err));
    (void)snprintf(asked.out, sizeof(asked.out), "%.2000s", capture_end(&out));
    script_end(&script, heard);
    conf_fini(&conf);
    return asked;
}

static const char *const no_words[] = { NULL };

static void
expect_well(const char *how, const char *const *replies, const char *out)
{
    struct asked asked = ask(how, no_words, replies, NULL, NULL);

    assert_string_equal("", asked.err);
    assert_string_equal(out, asked.out);
    assert_int_equal(SERVER_EXIT_STOPPED, asked.status);
}

static void
expect_unwell(const char *how, const char *const *replies, const char *err)
{
    struct asked asked = ask(how, no_words, replies, NULL, NULL);

    assert_string_equal("", asked.out);
    assert_contains(asked.err, "bloomery-server: --ping: /tmp/script-");
    assert_contains(asked.err, err);
    assert_int_equal(SERVER_EXIT_FAILED, asked.status);
}

TEST(mistakes_are_said_before_anything_is_dialled)
{
    static const struct {
        const char *how, *word, *text;
    } rows[] = {
        { "well", NULL, "--ping is alone, or --ping=ready, --ping=complete" },
        { "", "--ping-users=a", "--ping-users=a: is not --ping-user=NAME" },
        { "", "--ping-user", "--ping-user: is not --ping-user=NAME" },
        { "", "--ping-timeout=0", "0: is not a number from 1 to 3600" },
        { "", "--ping-timeout=3601", "3601: is not a number" },
        { "", "--ping-timeout=", "--ping-timeout: : is not a number" },
        { "", "--ping-timeout=1s", "1s: is not a number" },
        { "", "--ping-password-file=/nothing/here",
          "--ping-password-file: /nothing/here: No such file" },
    };
    static const char *const replies[] = { PONG, NULL };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const words[] = { rows[i].word, NULL };
        struct asked asked = ask(rows[i].how, words, replies, NULL, "");

        assert_contains(asked.err, rows[i].text);
        assert_string_equal("", asked.out);
        assert_int_equal(SERVER_EXIT_MISTAKE, asked.status);
    }
}

TEST(pong_is_well_and_an_error_only_for_alive)
{
    static const char *const pong[] = { PONG, NULL };
    static const char *const loading[] = { "-LOADING data\r\n", NULL };
    static const char *const other[] = { "+HELLO\r\n", NULL };

    expect_well("", pong, "PONG\n");
    expect_well("alive", pong, "PONG\n");
    expect_unwell("", loading, "it answers: LOADING data\n");
    expect_unwell("ready", loading, "it answers: LOADING data\n");
    expect_well("alive", loading, "LOADING data\n");
    expect_unwell("", other, "it answers: HELLO\n");
}

TEST(answers_that_are_none_are_failures_even_for_alive)
{
    static const char *const closes[] = { SCRIPT_CLOSES, NULL };
    static const char *const number[] = { ":1\r\n", NULL };
    static const char *const foreign[] = { "HTTP/1.1 400 Bad Request\r\n",
                                           NULL };

    expect_unwell("alive", closes, "the server has closed the connection");
    expect_unwell("alive", number, "it answers something else than RESP");
    expect_unwell("alive", foreign, "it answers something else than RESP");
}

TEST(ready_needs_an_info_that_does_not_refuse)
{
    static const char *const ready[] = { PONG, READY, NULL };
    static const char *const denied[] = { PONG, "-NOPERM no\r\n", NULL };
    static const char *const empty[] = { PONG, "$0\r\n\r\n", NULL };
    static const char *const no_text[] = { PONG, "+OK\r\n", NULL };
    static const char *const stale[] = {
        PONG,
        "$58\r\nrole:slave\r\nmaster_link_status:down\r\n"
        "slave_repl_offset:0\r\n\r\n",
        NULL,
    };

    expect_well("ready", ready, "PONG\n");
    expect_well("complete", ready, "PONG\n");
    expect_unwell("ready", denied, "it answers INFO with: NOPERM no");
    expect_unwell("ready", empty, "it answers something else than RESP");
    expect_unwell("ready", no_text, "it answers something else than RESP");
    expect_unwell("ready", stale, "it is not ready: ");
}

TEST(it_logs_in_with_its_own_words_or_else_with_requirepass)
{
    static const char *const good[] = { "+OK\r\n", PONG, NULL };
    static const char *const bad[] = { "-WRONGPASS no\r\n", "-NOAUTH\r\n",
                                       NULL };
    static const char *const words[] = { "--ping-user=u", NULL };
    struct asked asked;

    assert_int_equal(0, unsetenv("BLOOMERY_USER"));
    assert_int_equal(0, unsetenv("BLOOMERY_PASSWORD"));
    asked = ask("", no_words, good, "secret", "AUTH secret\nPING\n");
    assert_int_equal(SERVER_EXIT_STOPPED, asked.status);
    asked = ask("", no_words, bad, "secret", NULL);
    assert_int_equal(SERVER_EXIT_FAILED, asked.status);
    assert_contains(asked.err, "it answers: WRONGPASS no");
    assert_int_equal(0, setenv("BLOOMERY_PASSWORD", "p", 1));
    asked = ask("", words, good, "secret", "AUTH u p\nPING\n");
    assert_int_equal(SERVER_EXIT_STOPPED, asked.status);
    assert_int_equal(0, unsetenv("BLOOMERY_PASSWORD"));
}

TEST(a_password_file_loses_its_last_line_end_only)
{
    static const char *const good[] = { "+OK\r\n", PONG, NULL };
    char path[] = "/tmp/ping-XXXXXX";
    char word[64];
    const char *const words[] = { word, NULL };
    int fd = mkstemp(path);
    struct asked asked;

    assert_true(fd >= 0);
    assert_int_equal(4, write(fd, " p \n", 4));
    assert_int_equal(0, close(fd));
    (void)snprintf(word, sizeof(word), "--ping-password-file=%s", path);
    asked = ask("", words, good, "other", "AUTH  p \nPING\n");
    assert_int_equal(SERVER_EXIT_STOPPED, asked.status);
    assert_int_equal(0, unlink(path));
}
