/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/compose.h"

#include "../test.h"

static void
assert_text(struct buf *buf, const char *text)
{
    assert_int_equal(buf->len, strlen(text));
    assert_memory_equal(buf->data, text, buf->len);
    buf_free(buf);
}

TEST(a_command_is_written_as_resp)
{
    struct slice words[] = { slice_lit("PSYNC"), slice_lit("?"),
                             slice_lit("-1"), slice_lit("") };
    struct buf out = { 0 };

    compose_command(&out, words, 4);
    assert_text(&out, "*4\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n$0\r\n\r\n");
}

TEST(a_login_names_the_user_if_there_is_one)
{
    struct buf out = { 0 };

    assert_true(compose_login(&out, slice_lit(""), slice_lit("x y")));
    assert_text(&out, "*2\r\n$4\r\nAUTH\r\n$3\r\nx y\r\n");
    assert_true(compose_login(&out, slice_lit("me"), slice_lit("x")));
    assert_text(&out, "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$1\r\nx\r\n");
}

TEST(without_a_password_nothing_is_said)
{
    struct buf out = { 0 };

    assert_false(compose_login(&out, slice_lit("me"), slice_lit("")));
    assert_int_equal(out.len, 0);
}

/* Compares the words, joined by blanks. */
static void
assert_words(unsigned protocol, struct slice user, struct slice password,
             const char *text)
{
    struct slice words[LOGIN_WORDS_MAX];
    size_t count = login_words(protocol, user, password, words);
    struct buf out = { 0 };

    for (size_t i = 0; i < count; i++) {
        buf_append_slice(&out, i > 0 ? slice_lit(" ") : slice_lit(""));
        buf_append_slice(&out, words[i]);
    }
    assert_text(&out, text);
}

TEST(hello_logs_in_as_the_default_user_without_a_name)
{
    const struct slice none = { NULL, 0 };

    assert_words(3, slice_lit(""), none, "HELLO 3");
    assert_words(3, slice_lit("me"), none, "HELLO 3");
    assert_words(3, slice_lit(""), slice_lit("x"), "HELLO 3 AUTH default x");
    assert_words(3, slice_lit("me"), slice_lit("x"), "HELLO 3 AUTH me x");
}

TEST(an_empty_password_is_said_if_it_was_given)
{
    assert_words(LOGIN_ANY_PROTOCOL, slice_lit("me"), slice_lit(""),
                 "AUTH me ");
    assert_words(LOGIN_ANY_PROTOCOL, slice_lit(""), (struct slice){ NULL, 0 },
                 "");
}
