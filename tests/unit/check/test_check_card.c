/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cards as text and as JSON, the verdict over several, and times.
 */
#include "check/check_card.h"

#include "../capture.h"

static struct check
check_of(bool json)
{
    return (struct check){ .tool = { .name = "test" }, .json = json };
}

static void
show(struct check *check)
{
    check_card_begin(check, "a\"b\x1b\\", "snapshot", CHECK_STATE_TORN);
    check_card_number(check, "keys", UINT64_MAX);
    check_card_format(check, "why", "line\n%d", 2);
    check_card_time(check, "never", 0);
    check_card_time(check, "saved", 1790000000123);
    check_card_end(check);
}

TEST(text_has_a_line_for_each_field_and_no_control_bytes)
{
    struct check check = check_of(false);

    EXPECT_OUTPUT(STDOUT_FILENO, show(&check),
                  "a\"b?\\: snapshot, torn\n"
                  "    keys               18446744073709551615\n"
                  "    why                line?2\n"
                  "    saved              2026-09-21T14:13:20.123Z\n");
    assert_int_equal(CHECK_INTACT, check.tool.status);
}

TEST(json_is_one_object_a_line_with_times_as_numbers)
{
    struct check check = check_of(true);

    EXPECT_OUTPUT(STDOUT_FILENO, show(&check),
                  "{\"path\":\"a\\\"b\\u001b\\\\\",\"kind\":\"snapshot\","
                  "\"status\":\"torn\",\"keys\":18446744073709551615,"
                  "\"why\":\"line\\u000a2\",\"saved\":1790000000123}\n");
}

TEST(where_standard_output_has_data_reports_go_to_standard_error)
{
    struct check check = check_of(true);
    struct capture output;

    check.tar = true;
    capture_begin(&output, STDOUT_FILENO);
    EXPECT_PRINTED(STDERR_FILENO, show(&check), "\"kind\":\"snapshot\"");
    assert_string_equal("", capture_end(&output));
}

TEST(a_state_raises_the_exit_status_and_none_lowers_it)
{
    static const struct {
        enum check_state state;
        int status, after;
    } rows[] = {
        { CHECK_STATE_INTACT, CHECK_INTACT, CHECK_INTACT },
        { CHECK_STATE_DAMAGED, CHECK_DAMAGED, CHECK_DAMAGED },
        { CHECK_STATE_TORN, CHECK_INTACT, CHECK_DAMAGED },
        { CHECK_STATE_NEWER, CHECK_NEWER, CHECK_NEWER },
        { CHECK_STATE_UNREADABLE, CHECK_UNREADABLE, CHECK_NEWER },
    };
    struct check check = check_of(true);
    struct capture output;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(rows[i].status, check_card_status(rows[i].state));
        capture_begin(&output, STDOUT_FILENO);
        check_card_begin(&check, "p", "journal", rows[i].state);
        (void)capture_end(&output);
        assert_int_equal(rows[i].after, check.tool.status);
    }
    assert_int_equal(CHECK_STATE_UNREADABLE, check.worst);
    assert_int_equal(0, check.files); /* a journal is a directory */
    assert_int_equal(CHECK_STATE_UNREADABLE,
                     check_card_failure("set hash-secret-file"));
    assert_int_equal(CHECK_STATE_DAMAGED, check_card_failure("BF.ADD failed"));
}

/* Prints the verdict about one card, or none. */
static bool
judge(struct check *check, bool card, enum check_state state)
{
    assert_true(check_card_gather(check));
    if (card) {
        check_card_begin(check, "p", "increment", state);
        check_card_end(check);
    }
    return check_card_verdict(check);
}

TEST(the_verdict_comes_first_and_cards_follow_if_they_matter)
{
    struct check check = check_of(false);
    bool any = false;

    assert_false(check_card_verdict(&check)); /* nothing was gathered */
    check.filters = 1234567;
    EXPECT_OUTPUT(STDOUT_FILENO, any = judge(&check, true, CHECK_STATE_INTACT),
                  "intact: 1 file, 1,234,567 filters\n");
    assert_true(any);
    check.verbose = true;
    check.filters = 1;
    EXPECT_OUTPUT(STDOUT_FILENO, any = judge(&check, true, CHECK_STATE_INTACT),
                  "intact: 2 files, 1 filter\np: increment, intact\n");
    check.verbose = false;
    EXPECT_OUTPUT(STDOUT_FILENO, any = judge(&check, true, CHECK_STATE_DAMAGED),
                  "damaged: 3 files\np: increment, damaged\n");
    EXPECT_OUTPUT(STDOUT_FILENO, any = judge(&check, false, CHECK_STATE_INTACT),
                  "");
    assert_false(any);
}

TEST(the_verdict_names_what_is_not_included)
{
    struct check check = check_of(false);
    bool any = false;

    check.found = "one journal";
    check.filters = 999;
    check_card_omit(&check, "aclfile", "/a");
    check_card_omit(&check, "hash-secret-file", "/b\n");
    EXPECT_OUTPUT(STDOUT_FILENO, any = judge(&check, true, CHECK_STATE_INTACT),
                  "intact: one journal, 999 filters\n"
                  "not included: aclfile /a, hash-secret-file /b?\n");
    assert_true(any);
    buf_free(&check.omitted);
}

TEST(times_are_dates_up_to_the_year_9999)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } rows[] = {
        { 0, "1970-01-01T00:00:00.000Z" },
        { 951782400999, "2000-02-29T00:00:00.999Z" },
        { 253402300799999, "9999-12-31T23:59:59.999Z" },
        { 253402300800000, "253402300800000ms" },
        { UINT64_MAX, "18446744073709551615ms" },
    };
    char text[CHECK_TIME_BYTES];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_format_time(rows[i].ms, text);
        assert_string_equal(rows[i].text, text);
    }
}
