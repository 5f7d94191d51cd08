/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The two text forms of metrics.
 */
#include "info/expose.h"

#include "../test.h"

static void
expect(struct buf *text, const char *expected)
{
    buf_append(text, "", 1);
    assert_string_equal(text->data, expected);
    text->len = 0;
}

TEST(a_counter_has_another_family_name_in_each_form)
{
    struct buf text = { 0 };

    for (int open = 0; open < 2; open++) {
        struct expose to = { .text = &text, .open = open };

        expose_one_total(&to, "a", "bytes", "Text.", 7);
        expose_end(&to);
        expect(&text, open ? "# HELP bloomery_a_bytes Text.\n"
                             "# TYPE bloomery_a_bytes counter\n"
                             "# UNIT bloomery_a_bytes bytes\n"
                             "bloomery_a_bytes_total 7\n"
                             "# EOF\n"
                           : "# HELP bloomery_a_bytes_total Text.\n"
                             "# TYPE bloomery_a_bytes_total counter\n"
                             "bloomery_a_bytes_total 7\n");
    }
    buf_free(&text);
}

TEST(gauges_have_labels_and_seconds)
{
    struct buf text = { 0 };
    struct expose to = { .text = &text };

    expose_family(&to, "a", EXPOSE_GAUGE, "seconds", "T.");
    expose_label(&to, "x", slice_lit("1"));
    expose_ns(&to, 1500);
    expose_label(&to, "x", slice_lit("2"));
    expose_more_label(&to, "y", slice_lit("q\"b\\n\n\xff"));
    expose_ns(&to, 61000000000);
    expose_family(&to, "b", EXPOSE_GAUGE, "", "T.");
    expose_count(&to, 1);
    expose_end(&to);
    expect(&text, "# HELP bloomery_a_seconds T.\n"
                  "# TYPE bloomery_a_seconds gauge\n"
                  "bloomery_a_seconds{x=\"1\"} 0.000001500\n"
                  "bloomery_a_seconds{x=\"2\",y=\"q\\\"b\\\\\\\\n\\\\x0a\\\\xff"
                  "\"} 61.000000000\n"
                  "# HELP bloomery_b T.\n"
                  "# TYPE bloomery_b gauge\n"
                  "bloomery_b 1\n");
    buf_free(&text);
}

TEST(a_histogram_has_buckets_a_sum_and_a_count)
{
    struct buf text = { 0 };
    struct expose to = { .text = &text };

    expose_family(&to, "h", EXPOSE_HISTOGRAM, "seconds", "T.");
    expose_bucket(&to, 1031, 1);
    expose_label(&to, "c", slice_lit("x"));
    expose_bucket(&to, UINT64_MAX, 2);
    expose_sum(&to, 2000000000, 2);
    expose_end(&to);
    expect(&text, "# HELP bloomery_h_seconds T.\n"
                  "# TYPE bloomery_h_seconds histogram\n"
                  "bloomery_h_seconds_bucket{le=\"0.000001031\"} 1\n"
                  "bloomery_h_seconds_bucket{c=\"x\",le=\"+Inf\"} 2\n"
                  "bloomery_h_seconds_sum{c=\"x\"} 2.000000000\n"
                  "bloomery_h_seconds_count{c=\"x\"} 2\n");
    buf_free(&text);
}

TEST(rows_of_the_table_are_named_by_their_unit)
{
    struct buf text = { 0 };
    struct expose to = { .text = &text };
    static const char *const lines[] = {
        "# HELP bloomery_net_input_bytes_total Bytes read from clients.\n"
        "# TYPE bloomery_net_input_bytes_total counter\n"
        "bloomery_net_input_bytes_total 0\n",
        "# TYPE bloomery_used_memory_bytes gauge\n",
        "bloomery_expire_cycle_seconds_total 0.002000000\n",
        "bloomery_active_defrag_seconds_total 0.",
        "bloomery_expired_time_cap_reached_total 0\n",
        "bloomery_bf_bloom_num_objects 0\n",
        "bloomery_mem_clients_input_bytes 0\n",
    };

    metric_add(METRIC_EXPIRE_US, 2000);
    expose_table(&to);
    expose_end(&to);
    buf_append(&text, "", 1);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_non_null(strstr(text.data, lines[i]));
    }
    metric_add(METRIC_EXPIRE_US, -2000);
    buf_free(&text);
}
