/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Heads of HTTP requests: what is taken, what is refused and why, and that the
 * cuts between reads do not matter.
 */
#include "proto/http_head.h"

#include "../test.h"

#include <stdio.h>

static enum http_result
parse(const char *text, struct http_head *head)
{
    return http_head_parse(slice_of(text), head);
}

static struct http_head
parse_good(const char *text)
{
    struct http_head head;

    assert_int_equal(HTTP_DONE, parse(text, &head));
    return head;
}

static unsigned
status_of(const char *text)
{
    struct http_head head;

    if (parse(text, &head) != HTTP_BAD) {
        return 0;
    }
    return head.status;
}

TEST(http_head_has_method_path_and_host)
{
    struct http_head head =
        parse_good("GET /metrics?x=1&y HTTP/1.1\r\nUser-Agent: a b\r\n"
                   "HOST:\t localhost:9100 \r\n\r\nbehind");

    assert_int_equal(HTTP_GET, head.method);
    assert_true(slice_equal(head.path, slice_lit("/metrics")));
    assert_true(slice_equal(head.host, slice_lit("localhost:9100")));
    assert_false(head.open_metrics);
    assert_int_equal(HTTP_HEAD, parse_good("HEAD / HTTP/1.0\r\n\r\n").method);
    assert_int_equal(
        HTTP_OTHER,
        parse_good("POST / HTTP/1.0\r\nContent-Length: 9\r\n\r\n").method);
    assert_int_equal(HTTP_OTHER, parse_good("get / HTTP/1.0\r\n\r\n").method);
}

TEST(http_head_refuses_what_is_no_request)
{
    static const char *const bad[] = {
        "\r\n\r\n",
        "GET\r\n\r\n",
        "GET /\r\n\r\n",
        " GET / HTTP/1.0\r\n\r\n",
        "GET  / HTTP/1.0\r\n\r\n",
        "GET metrics HTTP/1.0\r\n\r\n",
        "GET http://a/ HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.0 \r\n\r\n",
        "GET / HTTP/11\r\n\r\n",
        "GET / http/1.1\r\n\r\n",
        "G\"T / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.0\n\n",
        "GET / HTTP/1.0\r\nA\r\n\r\n",
        "GET / HTTP/1.0\r\n: b\r\n\r\n",
        "GET / HTTP/1.0\r\nA : b\r\n\r\n",
        "GET / HTTP/1.0\r\nA: b\r\n c\r\n\r\n",
        "GET / HTTP/1.0\r\nA: \x01\r\n\r\n",
        "GET / HTTP/1.0\r\nA: b\rc\r\n\r\n",
        "GET / HTTP/1.0\r\nA: b\x7f\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "*1\r\n$4\r\nPING\r\n",
        "\x16\x03\x01",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (status_of(bad[i]) != 400) {
            fail_msg("%s: status %u", bad[i], status_of(bad[i]));
        }
    }
    assert_int_equal(505, status_of("GET / HTTP/2.0\r\n\r\n"));
    assert_int_equal(505, status_of("GET / HTTP/1.2\r\n\r\n"));
    assert_int_equal(505, status_of("GET / HTTP/1.\x80\r\n\r\n"));
}

TEST(http_head_has_a_longest_length)
{
    enum { FIRST = sizeof("GET / HTTP/1.0\r\nA: ") - 1 };
    char text[HTTP_HEAD_MAX + 8];
    struct http_head head;

    memset(text, 'x', sizeof(text));
    memcpy(text, "GET / HTTP/1.0\r\nA: ", FIRST);
    memcpy(text + HTTP_HEAD_MAX - 4, "\r\n\r\n", 4);
    assert_int_equal(
        HTTP_DONE,
        http_head_parse((struct slice){ text, HTTP_HEAD_MAX }, &head));
    assert_int_equal(
        HTTP_DONE,
        http_head_parse((struct slice){ text, sizeof(text) }, &head));
    memset(text, 'x', sizeof(text));
    memcpy(text, "GET / HTTP/1.0\r\nA: ", FIRST);
    memcpy(text + HTTP_HEAD_MAX - 3, "\r\n\r\n", 4);
    assert_int_equal(
        HTTP_MORE,
        http_head_parse((struct slice){ text, HTTP_HEAD_MAX - 1 }, &head));
    for (size_t len = HTTP_HEAD_MAX; len <= sizeof(text); len++) {
        assert_int_equal(HTTP_BAD,
                         http_head_parse((struct slice){ text, len }, &head));
        assert_int_equal(431, head.status);
    }
}

TEST(http_head_result_does_not_depend_on_the_cuts)
{
    static const char *const texts[] = {
        "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
        "GET / HTTP/1.0\r\nA: b\n\r\n\r\n",
        "GET / HTTP/3.0\r\n\r\n",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct slice all = slice_of(texts[i]);
        struct http_head whole;
        struct http_head part;
        enum http_result expected = http_head_parse(all, &whole);

        for (size_t len = 0; len < all.len; len++) {
            enum http_result got =
                http_head_parse((struct slice){ all.data, len }, &part);

            assert_true(got == HTTP_MORE || got == expected);
            assert_true(got != HTTP_BAD || part.status == whole.status);
        }
    }
}

static bool
takes_open(const char *accept)
{
    char text[512];

    (void)snprintf(text, sizeof(text), "GET / HTTP/1.0\r\n%s%s\r\n\r\n",
                   accept[0] != '\0' ? "Accept: " : "X: y", accept);
    return parse_good(text).open_metrics;
}

TEST(http_head_negotiates_the_form_of_metrics)
{
    /* What Prometheus 2.42 asks. */
    assert_true(takes_open(
        "application/openmetrics-text;version=1.0.0,application/"
        "openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,"
        "*/*;q=0.1"));
    assert_true(takes_open("application/openmetrics-text"));
    assert_true(takes_open("text/plain, Application/OpenMetrics-Text"));
    assert_true(takes_open("text/plain;q=0.9\r\n"
                           "Accept: application/openmetrics-text ; q=0.95"));
    assert_false(takes_open(""));
    assert_false(takes_open("*/*"));
    assert_false(takes_open("text/html,*/*;q=0.8"));
    assert_false(takes_open("application/openmetrics-text;q=0"));
    assert_false(takes_open("application/openmetrics-text;q=0.000"));
    assert_false(takes_open("application/openmetrics-text;q=0.4,text/plain"));
    assert_false(takes_open("application/openmetrics-text;q=1.001"));
    assert_false(takes_open("application/openmetrics-text;q=0.0001"));
    assert_false(takes_open("application/openmetrics-text;q=x"));
    assert_false(takes_open("application/openmetrics-text;q=1x"));
    assert_false(takes_open("application/openmetrics-text;q=0.x"));
    assert_false(takes_open("application/openmetrics-textual"));
}

TEST(http_host_is_plain_if_no_name_has_to_be_looked_up)
{
    static const char *const plain[] = { "localhost", "LocalHost:9100",
                                         "127.0.0.1", "10.0.0.7:80",
                                         "[::1]",     "[fe80::1.2.3.4]:9100" };
    static const char *const other[] = {
        "",           "example.org",    "localhost.",
        "localhost:", "1.2.3.4.nip.io", "[::1",
        "[::1]x",     "[::1]:x",        "[]",
        ":80",        "127.0.0.1:80:80"
    };

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        assert_true(http_host_is_plain(slice_of(plain[i])));
    }
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        assert_false(http_host_is_plain(slice_of(other[i])));
    }
}
