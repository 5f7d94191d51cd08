/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as an HTTP request: how they are cut does not matter, the parts of
 * a good head lie in it and have no control characters, and a head that is
 * written again from its parts means the same.
 */
#include "base/buf.h"
#include "base/mem.h"
#include "proto/http_head.h"
#include "target.h"

#include <string.h>

enum { CUTS_MAX = 600 /* bytes up to which every cut is tried */ };

static bool
is_inside(struct slice part, struct slice whole)
{
    return part.len == 0 || (part.data >= whole.data &&
                             part.data + part.len <= whole.data + whole.len);
}

static void
check_text(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        CHECK((unsigned char)text.data[i] >= ' ' || text.data[i] == '\t');
        CHECK(text.data[i] != 0x7f);
    }
}

static void
write_again(const struct http_head *head)
{
    static const char *const methods[] = { "GET", "HEAD", "OTHER" };
    struct http_head again;
    struct buf text = { 0 };

    buf_append_slice(&text, slice_of(methods[head->method]));
    buf_append(&text, " ", 1);
    buf_append_slice(&text, head->path);
    buf_append_slice(&text, slice_lit(" HTTP/1.1\r\nHost:"));
    buf_append_slice(&text, head->host);
    if (head->open_metrics) {
        buf_append_slice(&text,
                         slice_lit("\r\nAccept:application/openmetrics-text"));
    }
    buf_append_slice(&text, slice_lit("\r\n\r\n"));
    if (text.len <= HTTP_HEAD_MAX) {
        CHECK(http_head_parse(buf_slice(&text), &again) == HTTP_DONE);
        CHECK(again.method == head->method);
        CHECK(slice_equal(again.path, head->path));
        CHECK(slice_equal(again.host, head->host));
        CHECK(again.open_metrics == head->open_metrics);
    }
    buf_free(&text);
}

/* Each part is an allocation of its own, so that a read behind it is found. */
static void
cut(struct slice all, size_t len, enum http_result expected, unsigned status)
{
    char *copy = mem_alloc(len);
    struct http_head head;
    enum http_result got;

    memcpy(copy, all.data, len);
    got = http_head_parse((struct slice){ copy, len }, &head);
    CHECK(got == HTTP_MORE || got == expected);
    CHECK(got != HTTP_BAD || head.status == status);
    mem_free(copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice all = { (const char *)data, size };
    uint64_t random = size;
    struct http_head head;
    enum http_result result = http_head_parse(all, &head);
    unsigned status = result == HTTP_BAD ? head.status : 0;

    if (result == HTTP_DONE) {
        CHECK(head.path.len > 0 && head.path.data[0] == '/');
        CHECK(is_inside(head.path, all) && is_inside(head.host, all));
        CHECK(memchr(head.path.data, '?', head.path.len) == NULL);
        check_text(head.path);
        check_text(head.host);
        (void)http_host_is_plain(head.host);
        write_again(&head);
    } else if (result == HTTP_BAD) {
        CHECK(status == 400 || status == 431 || status == 505);
    } else {
        CHECK(size < HTTP_HEAD_MAX);
    }
    (void)http_host_is_plain(all);
    for (size_t len = 0; len < size && len < CUTS_MAX; len++) {
        cut(all, len, result, status);
    }
    for (int i = 0; size > CUTS_MAX && i < 8; i++) {
        cut(all, (size_t)(fuzz_next(&random) % size), result, status);
    }
    return 0;
}

/* ---- inputs for replay.c ------------------------------------------------- */

static void
put_word(struct buf *out, uint64_t *random)
{
    static const char *const words[] = {
        "GET ",      "HEAD ",      "POST ",
        "/",         "/metrics",   "/status.json?a=b",
        " HTTP/1.1", " HTTP/1.0",  " HTTP/2.0",
        "\r\n",      "\r\n\r\n",   "\n",
        "Host: ",    "localhost",  "[::1]:9100",
        "Accept: ",  "text/plain", "application/openmetrics-text",
        ";q=0.5",    ",",          ";q=",
        "\t",        "\x01",       "X-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    };

    buf_append_slice(
        out,
        slice_of(
            words[fuzz_next(random) % (sizeof(words) / sizeof(words[0]))]));
}

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    uint64_t random = seed;
    uint64_t words = fuzz_next(&random) % (seed % 16 == 0 ? 2000 : 30);
    struct buf out = { 0 };
    size_t len;

    if (fuzz_next(&random) % 2 == 0) {
        buf_append_slice(&out,
                         slice_lit("GET / HTTP/1.1\r\nHost: localhost\r\n"));
    }
    for (; words > 0; words--) {
        put_word(&out, &random);
    }
    len = out.len < max ? out.len : max;
    if (len > 0) {
        memcpy(to, out.data, len);
    }
    buf_free(&out);
    return len;
}
