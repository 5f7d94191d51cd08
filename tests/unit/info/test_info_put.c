/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines of INFO, as text.
 */
#include "info/info_put.h"

#include "../test.h"

static void
expect(struct buf *text, const char *line)
{
    assert_true(slice_equal(buf_slice(text), slice_of(line)));
    text->len = 0;
}

TEST(lines_have_a_name_a_value_and_crlf)
{
    struct buf text = { 0 };

    info_put_number(&text, "n", UINT64_MAX);
    expect(&text, "n:18446744073709551615\r\n");
    info_put_signed(&text, "n", -1);
    expect(&text, "n:-1\r\n");
    info_put_ratio(&text, "n", 1.005001);
    expect(&text, "n:1.01\r\n");
    info_put_text(&text, "n", "some text");
    expect(&text, "n:some text\r\n");
    info_put_text(&text, "n", NULL);
    expect(&text, "n:\r\n");
    buf_free(&text);
}

TEST(human_sizes_have_the_unit_that_fits)
{
    struct buf text = { 0 };

    info_put_human(&text, "n", 1023);
    expect(&text, "n_human:1023B\r\n");
    info_put_human(&text, "n", 1024);
    expect(&text, "n_human:1.00K\r\n");
    info_put_human(&text, "n", UINT64_MAX);
    expect(&text, "n_human:16.00E\r\n");
    info_put_bytes(&text, "n", 1536 * 1024);
    expect(&text, "n:1572864\r\nn_human:1.50M\r\n");
    buf_free(&text);
}

TEST(options_are_named_as_fields)
{
    struct buf text = { 0 };
    struct conf conf;

    conf_init(&conf);
    info_put_option(&text, &conf, &conf_table[CONF_OPTION_maxmemory_policy]);
    expect(&text, "maxmemory_policy:noeviction\r\n");
    info_put_option(&text, &conf, &conf_table[CONF_OPTION_bf_capacity]);
    expect(&text, "bloom_capacity:100\r\n");
    buf_free(&text);
    conf_fini(&conf);
}

TEST(a_sum_below_zero_is_shown_as_zero)
{
    metric_add(METRIC_HELD_CLIENTS, -5);
    assert_int_equal(info_put_metric_value(METRIC_HELD_CLIENTS), 0);
    metric_add(METRIC_HELD_CLIENTS, 7);
    assert_int_equal(info_put_metric_value(METRIC_HELD_CLIENTS), 2);
    metric_add(METRIC_HELD_CLIENTS, -2);
}
