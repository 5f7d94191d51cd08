/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines as they arrive on stderr, which is a pipe meanwhile.
 */
#include "base/log.h"

#include "../test.h"
#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int saved_stderr;
static int captured;

static void
capture_begin(void)
{
    int ends[2];

    assert_int_equal(0, pipe(ends));
    assert_int_equal(0, fcntl(ends[0], F_SETFL, O_NONBLOCK));
    saved_stderr = dup(STDERR_FILENO);
    assert_true(saved_stderr >= 0);
    assert_int_equal(STDERR_FILENO, dup2(ends[1], STDERR_FILENO));
    (void)close(ends[1]);
    captured = ends[0];
}

static size_t
capture_end(char *ret_text, size_t size)
{
    ssize_t n = read(captured, ret_text, size - 1);

    (void)dup2(saved_stderr, STDERR_FILENO);
    (void)close(saved_stderr);
    (void)close(captured);
    ret_text[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

TEST(a_line_has_time_level_source_event_and_fields)
{
    static const char form[] = "time=dddd-dd-ddTdd:dd:dd.dddZ ";
    char text[2048];

    capture_begin();
    log_notice("net.listener", "listening", "port=%u path=%s", 7379U, "x");
    (void)capture_end(text, sizeof(text));
    for (size_t i = 0; form[i] != '\0'; i++) {
        if (form[i] == 'd') {
            assert_true(isdigit((unsigned char)text[i]));
        } else {
            assert_int_equal(form[i], text[i]);
        }
    }
    assert_string_equal("level=notice source=net.listener event=\"listening\" "
                        "port=7379 path=x\n",
                        text + strlen(form));
}

TEST(a_line_without_fields_ends_behind_the_event)
{
    char text[2048];

    capture_begin();
    log_error("server", "failed", "%s", "");
    (void)capture_end(text, sizeof(text));
    assert_non_null(strstr(text, "level=error source=server "
                                 "event=\"failed\"\n"));
}

TEST(events_below_the_level_are_dropped)
{
    char text[4096];

    capture_begin();
    log_write(LOG_DEBUG, "a", "default drops debug", "%s", "");
    log_info("a", "one", "%s", "");
    log_set_level(LOG_WARN);
    log_info("a", "two", "%s", "");
    log_notice("a", "three", "%s", "");
    log_warn("a", "four", "%s", "");
    log_set_level(LOG_DEBUG);
    log_write(LOG_DEBUG, "a", "five", "%s", "");
    log_set_level(LOG_INFO);
    (void)capture_end(text, sizeof(text));
    assert_null(strstr(text, "default drops debug"));
    assert_non_null(strstr(text, "level=info source=a event=\"one\""));
    assert_null(strstr(text, "two"));
    assert_null(strstr(text, "three"));
    assert_non_null(strstr(text, "level=warn source=a event=\"four\""));
    assert_non_null(strstr(text, "level=debug source=a event=\"five\""));
}

TEST(a_long_line_is_cut_and_still_ends)
{
    char value[3000];
    char text[4096];
    size_t len;

    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    capture_begin();
    log_info("a", "long", "value=%s", value);
    len = capture_end(text, sizeof(text));
    assert_in_range(len, 1000, 1024);
    assert_ptr_equal(text + len - 1, strchr(text, '\n'));
}

TEST(control_characters_do_not_reach_the_log)
{
    char text[2048];

    capture_begin();
    log_info("a", "lines", "reason=\"%s\" n=%d\n", "one\ntwo\x1b[1m\x7f", 3);
    (void)capture_end(text, sizeof(text));
    assert_non_null(strstr(text, " reason=\"one two [1m \" n=3\n"));
}

TEST(json_has_the_same_fields)
{
    char value[3000];
    char text[4096];
    size_t len;

    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    capture_begin();
    log_set_format(LOG_JSON);
    log_warn("a.b", "happened", "n=%d reason=\"%s\"", 3, "a \"b\"");
    log_info("a", "long", "value=%s", value);
    log_set_format(LOG_LOGFMT);
    len = capture_end(text, sizeof(text));
    assert_int_equal(0, strncmp(text, "{\"time\":\"2", 10));
    assert_non_null(strstr(text, "Z\",\"level\":\"warn\",\"source\":\"a.b\","
                                 "\"event\":\"happened\",\"n\":3,"
                                 "\"reason\":\"a \\\"b\\\"\"}\n{"));
    assert_string_equal("vv\"}\n", text + len - 5);
}

TEST(the_journal_gets_priorities)
{
    char text[4096];
    char stream[64];
    struct stat own;

    capture_begin();
    assert_int_equal(0, fstat(STDERR_FILENO, &own));
    (void)snprintf(stream, sizeof(stream), "%llu:%llu",
                   (unsigned long long)own.st_dev,
                   (unsigned long long)own.st_ino);
    assert_int_equal(0, setenv("JOURNAL_STREAM", stream, 1));
    log_find_journal();
    log_set_level(LOG_DEBUG);
    for (enum log_level level = LOG_DEBUG; level <= LOG_ERROR; level++) {
        log_write(level, "a", "x", "level-number=%d", (int)level);
    }
    log_set_format(LOG_JSON);
    log_error("a", "y", "%s", "");
    log_set_format(LOG_LOGFMT);
    log_set_level(LOG_INFO);
    /* Another stream, as of a parent whose stderr was redirected. */
    assert_int_equal(0, setenv("JOURNAL_STREAM", "1:1", 1));
    log_find_journal();
    log_error("a", "z", "%s", "");
    assert_int_equal(0, unsetenv("JOURNAL_STREAM"));
    log_find_journal();
    log_error("a", "w", "%s", "");
    (void)capture_end(text, sizeof(text));
    assert_int_equal(0, strncmp(text, "<7>time=", 8));
    assert_non_null(strstr(text, "\n<6>time="));
    assert_non_null(strstr(text, "\n<5>time="));
    assert_non_null(strstr(text, "\n<4>time="));
    assert_non_null(strstr(text, "\n<3>time="));
    assert_non_null(strstr(text, "\n<3>{\"time\":"));
    assert_non_null(strstr(text, "\"y\"}\ntime="));
    assert_non_null(strstr(text, "event=\"z\"\ntime="));
}

TEST(once_a_second_is_at_most_once_in_each)
{
    static _Atomic unsigned long long mark;
    static _Atomic unsigned long long other;
    uint64_t from = clock_mono_ns() / 1000000000U;
    uint64_t to;
    unsigned count = 0;

    assert_true(log_once_a_second(&mark));
    assert_true(log_once_a_second(&other));
    for (int i = 0; i < 10000; i++) {
        count += log_once_a_second(&mark);
    }
    to = clock_mono_ns() / 1000000000U;
    assert_true(count <= to - from);
}

/* Waits for the next second of the monotonic clock, 2 s at most. */
TEST(once_a_second_is_true_again_in_the_next)
{
    static _Atomic unsigned long long mark;
    uint64_t start_ns = clock_mono_ns();

    assert_true(log_once_a_second(&mark));
    while (!log_once_a_second(&mark)) {
        assert_true(clock_mono_ns() - start_ns < 2000000000U);
        (void)usleep(1000);
    }
}

static bool
has_line(const char *path, const char *event)
{
    char text[512] = "";
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
    (void)fclose(file);
    return strstr(text, event) != NULL;
}

/* Last, since lines never go back to stderr. */
TEST(the_log_goes_to_a_file_and_to_a_new_one_when_it_was_moved)
{
    char dir[] = "/tmp/bloomery-XXXXXX";
    char path[64], moved[64];

    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/log", dir);
    (void)snprintf(moved, sizeof(moved), "%s/log.1", dir);
    assert_int_equal(ENOENT, log_open("/nonexistent/bloomery.log"));
    assert_int_equal(0, log_open(path));
    log_notice("test", "first", "%s", "");
    assert_int_equal(0, rename(path, moved));
    log_notice("test", "second", "%s", "");
    assert_int_equal(ENOENT, log_open("/nonexistent/bloomery.log"));
    assert_int_equal(0, log_open(path));
    log_notice("test", "third", "%s", "");
    assert_true(has_line(moved, "first") && has_line(moved, "second"));
    assert_false(has_line(moved, "third"));
    assert_true(has_line(path, "third") && !has_line(path, "second"));
    (void)unlink(path);
    (void)unlink(moved);
    assert_int_equal(0, rmdir(dir));
}
