/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A session from its start over RESET to its end.
 */
#include "engine/session.h"

#include "../test.h"
#include "base/mem.h"

static void
assert_fresh(const struct session *session)
{
    assert_int_equal(session->resp, 2);
    assert_int_equal(session->db, 0);
    assert_int_equal(session->reply_mode, REPLY_ON);
    assert_int_equal(session->auth_failures, 0);
    assert_int_equal(session->multi_count, -1);
    assert_null(session->name);
    assert_false(session->closing || session->no_evict || session->no_touch);
}

TEST(session_starts_with_the_defaults)
{
    struct session session;

    session_init(&session, true);
    assert_fresh(&session);
    assert_true(session.authenticated);
    assert_true(session.created_ms > 0);
    session_fini(&session);
}

TEST(session_reset_keeps_id_and_library_only)
{
    struct session session;
    uint64_t created_ms;

    session_init(&session, true);
    created_ms = session.created_ms;
    session.id = 7;
    session.resp = 3;
    session.db = 5;
    session.reply_mode = REPLY_OFF;
    session.auth_failures = 2;
    session.no_evict = true;
    session.no_touch = true;
    assert_true(session_set_text(&session.name, slice_lit("me")));
    assert_true(session_set_text(&session.lib_name, slice_lit("lib")));
    assert_true(session_set_text(&session.lib_ver, slice_lit("1.0")));
    session.introduction = mem_zalloc(sizeof(*session.introduction));
    session_reset(&session, false);
    assert_null(session.introduction);
    assert_int_equal(session.auth_failures,
                     2); /* or RESET would be a way out */
    session.auth_failures = 0;
    assert_fresh(&session);
    assert_false(session.authenticated);
    assert_int_equal(session.id, 7);
    assert_int_equal(session.created_ms, created_ms);
    assert_string_equal(session.lib_name, "lib");
    assert_string_equal(session.lib_ver, "1.0");
    session_fini(&session);
    assert_null(session.lib_name);
}

TEST(session_texts_are_copied_and_given_back)
{
    struct session session;
    uint64_t before = mem_used();
    char text[] = "first";

    session_init(&session, true);
    assert_true(session_set_text(&session.name, slice_of(text)));
    text[0] = 'x';
    assert_string_equal(session.name, "first");
    assert_true(session_set_text(&session.name, slice_lit("second")));
    assert_string_equal(session.name, "second");
    assert_true(session_set_text(&session.name, slice_lit("")));
    assert_null(session.name);
    assert_true(session_set_text(&session.name, slice_lit("third")));
    session_fini(&session);
    assert_int_equal(mem_used(), before);
}

TEST(session_fini_ends_a_paused_handler)
{
    struct session session;
    uint64_t before = mem_used();

    session_init(&session, true);
    session.again = mem_alloc(100);
    session.again_free = mem_free;
    session_fini(&session);
    assert_null(session.again);
    assert_int_equal(mem_used(), before);
}

TEST(session_texts_are_printable_without_blanks_and_short)
{
    char long_text[SESSION_TEXT_MAX + 1];

    memset(long_text, 'x', sizeof(long_text));
    assert_true(session_text_is_valid(slice_lit("")));
    assert_true(session_text_is_valid(slice_lit("!worker-1~")));
    assert_false(session_text_is_valid(slice_lit("a b")));
    assert_false(session_text_is_valid(slice_lit("a\n")));
    assert_false(session_text_is_valid(slice_lit("a\0b")));
    assert_false(session_text_is_valid(slice_lit("\x7f")));
    assert_false(session_text_is_valid(slice_lit("\xff")));
    assert_true(
        session_text_is_valid((struct slice){ long_text, SESSION_TEXT_MAX }));
    assert_false(session_text_is_valid(
        (struct slice){ long_text, SESSION_TEXT_MAX + 1 }));
}
