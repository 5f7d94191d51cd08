/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines for commands and for errors.
 */
#include "info/info_commands.h"

#include "../engine/rig.h"

static const char *
text_of(struct rig *rig, struct buf *text,
        void (*write)(const struct service *service, struct buf *text))
{
    text->len = 0;
    write(&rig->service, text);
    buf_append(text, "", 1);
    return text->data;
}

TEST(only_what_was_used_has_a_line)
{
    struct rig *rig = rig_new();
    struct buf text = { 0 };

    assert_string_equal(text_of(rig, &text, info_commands_write), "");
    assert_string_equal(text_of(rig, &text, info_commands_write_errors), "");
    assert_string_equal(text_of(rig, &text, info_commands_write_latency), "");
    run_text(rig, "BF.ADD k a; BF.ADD k; BF.RESERVE k 0.1 5; NOPE", true);
    (void)text_of(rig, &text, info_commands_write);
    assert_non_null(strstr(text.data, "cmdstat_BF.ADD:calls=1,usec="));
    assert_non_null(strstr(text.data, ",rejected_calls=1,failed_calls=0\r\n"));
    assert_non_null(strstr(text.data, "cmdstat_BF.RESERVE:calls=1,"));
    assert_non_null(strstr(text.data, ",rejected_calls=0,failed_calls=1\r\n"));
    assert_null(strstr(text.data, "cmdstat_BF.CARD"));
    assert_string_equal(text_of(rig, &text, info_commands_write_errors),
                        "errorstat_ERR:count=3\r\n");
    buf_free(&text);
    rig_free(rig);
}

TEST(percentiles_are_those_that_are_asked_for)
{
    struct rig *rig = rig_new();
    struct buf text = { 0 };

    stats_set_spreads(rig->service.stats, true);
    for (unsigned i = 1; i <= 100; i++) {
        stats_lasted(rig->worker->stats, CMD_ID_PING, 1, i * 32000);
    }
    /* 32 us to 3.2 ms: each is at most 1/32 above the true one. */
    assert_string_equal(text_of(rig, &text, info_commands_write_latency),
                        "latency_percentiles_usec_ping:p50=1618.175,"
                        "p99=3170.303,p99.9=3236.351\r\n");
    set_option(rig, "latency-tracking-info-percentiles", "0 99.99");
    assert_string_equal(
        text_of(rig, &text, info_commands_write_latency),
        "latency_percentiles_usec_ping:p0=32.507,p99.99=3236.351\r\n");
    set_option(rig, "latency-tracking-info-percentiles", "");
    assert_string_equal(text_of(rig, &text, info_commands_write_latency),
                        "latency_percentiles_usec_ping:\r\n");
    buf_free(&text);
    rig_free(rig);
}
