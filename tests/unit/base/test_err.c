/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The error table as clients see it, and how a failed CHECK ends. The latter
 * happens in a child process, which is expected to abort.
 */
#include "base/err.h"

#include "../test.h"

#include <ctype.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(ok_is_zero_and_has_no_text)
{
    assert_int_equal(0, OK);
    assert_string_equal("", err_prefix(OK));
    assert_string_equal("", err_text(OK));
}

/* RedisBloom's are not all upper case. */
TEST(prefixes_are_one_word_that_begins_upper_case)
{
    for (int i = 1; i < ERR_COUNT; i++) {
        const char *prefix = err_prefix((enum err)i);

        assert_true(prefix[0] == '\0' || isupper((unsigned char)prefix[0]));
        for (const char *at = prefix; *at != '\0'; at++) {
            assert_true(isalpha((unsigned char)*at));
        }
    }
}

/* The only conversion that dispatch fills in is %s, and a control byte would
 * end the line on the wire. */
TEST(texts_hold_no_control_byte_and_no_conversion_but_s)
{
    for (int i = 0; i < ERR_COUNT; i++) {
        for (const char *at = err_text((enum err)i); *at != '\0'; at++) {
            assert_false(iscntrl((unsigned char)*at));
            if (*at == '%') {
                assert_int_equal('s', at[1]);
            }
        }
    }
}

TEST(a_row_gives_its_prefix_and_text)
{
    assert_string_equal("NOAUTH", err_prefix(ERR_NOAUTH));
    assert_string_equal("Authentication required.", err_text(ERR_NOAUTH));
}

TEST(a_failed_check_prints_its_place_and_aborts)
{
    int ends[2];
    char text[512] = "";
    size_t len = 0;
    ssize_t n;
    int status = 0;
    pid_t child;

    assert_int_equal(0, pipe(ends));
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit no_core = { 0, 0 };

        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(ends[1], STDERR_FILENO);
        CHECK(1 + 1 == 2); /* holds: goes on */
        CHECK(1 + 1 == 3);
        _exit(0);
    }
    (void)close(ends[1]);
    while (len < sizeof(text) - 1 &&
           (n = read(ends[0], text + len, sizeof(text) - 1 - len)) > 0) {
        len += (size_t)n;
    }
    (void)close(ends[0]);
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(SIGABRT, WTERMSIG(status));
    assert_non_null(strstr(text, "test_err.c:"));
    assert_non_null(strstr(text, "CHECK failed: 1 + 1 == 3"));
}
