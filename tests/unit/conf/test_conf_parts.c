/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values of several parts: what is read is shown in its shortest form, which
 * reads back; what is refused leaves the value as it was. The texts of refusals
 * are in test_conf_value.c.
 */
#include "conf/conf_parts.h"

#include "../test.h"
#include "conf/conf.h"

static void
expect(struct buf *text, const char *shown)
{
    assert_true(slice_equal(buf_slice(text), slice_of(shown)));
    text->len = 0;
}

TEST(output_limits_are_kept_by_class)
{
    struct conf_output_limits limits = { .given = 77 };
    struct conf_error error;
    struct buf text = { 0 };

    assert_false(
        conf_parts_parse_limits(slice_lit("normal 1 2"), &limits, &error));
    assert_int_equal(limits.given, 77);
    assert_true(conf_parts_parse_limits(
        slice_lit("pubsub 1kb 2 3  normal 4 5 6"), &limits, &error));
    conf_parts_format_limits(&limits, &text);
    expect(&text, "normal 4 5 6 pubsub 1024 2 3");
    assert_true(
        conf_parts_parse_limits(slice_lit("pubsub 1 2 3"), &limits, &error));
    conf_parts_format_limits(&limits, &text);
    expect(&text, "pubsub 1 2 3");
    buf_free(&text);
}

TEST(save_rules_are_pairs)
{
    struct conf_save save = { .count = 5 };
    struct conf_error error;
    struct buf text = { 0 };

    assert_false(conf_parts_parse_save(slice_lit("1 2 3"), &save, &error));
    assert_int_equal(save.count, 5);
    assert_true(conf_parts_parse_save(slice_lit(" 60  1 5 0"), &save, &error));
    assert_int_equal(save.count, 2);
    conf_parts_format_save(&save, &text);
    expect(&text, "60 1 5 0");
    assert_true(conf_parts_parse_save(slice_lit(""), &save, &error));
    conf_parts_format_save(&save, &text);
    expect(&text, "");
    buf_free(&text);
}

TEST(events_are_letters_in_one_order)
{
    uint32_t events = 77;
    struct conf_error error;
    struct buf text = { 0 };

    assert_false(conf_parts_parse_events(slice_lit("KE?"), &events, &error));
    assert_int_equal(events, 77);
    assert_true(conf_parts_parse_events(slice_lit("dEgK"), &events, &error));
    conf_parts_format_events(events, &text);
    expect(&text, "gdKE");
    assert_true(conf_parts_parse_events(slice_lit("EAm"), &events, &error));
    assert_true((events & CONF_EVENT_EVICTED) != 0);
    assert_true((events & CONF_EVENT_NEW) == 0);
    conf_parts_format_events(events, &text);
    expect(&text, "AEm");
    buf_free(&text);
}

TEST(percentiles_keep_their_order)
{
    const struct conf_row *row =
        &conf_table[CONF_OPTION_latency_tracking_info_percentiles];
    struct conf_percentiles value = { .count = 7 };
    struct conf_error error;
    struct buf text = { 0 };

    assert_false(
        conf_parts_parse_percentiles(row, slice_lit("5 x"), &value, &error));
    assert_int_equal(value.count, 7);
    assert_true(conf_parts_parse_percentiles(
        row, slice_lit(" 99.90  5e1 0 100"), &value, &error));
    assert_int_equal(value.count, 4);
    assert_true(value.value[1] == 50);
    conf_parts_format_percentiles(&value, &text);
    expect(&text, "99.9 50 0 100");
    assert_true(
        conf_parts_parse_percentiles(row, slice_lit(""), &value, &error));
    assert_int_equal(value.count, 0);
    buf_free(&text);
}
