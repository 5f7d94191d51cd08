/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a scrape has of commands, keys and memory. tests/scenario/
 * test_metrics.py checks the whole with the parsers of Prometheus.
 */
#include "info/scrape.h"

#include "../engine/rig.h"
#include "measure/slowlog.h"

static const char *
scrape(struct rig *rig, bool open, struct buf *text)
{
    text->len = 0;
    scrape_write(&rig->service, NULL, open, text);
    assert_false(text->failed);
    buf_append(text, "", 1);
    return text->data;
}

static void
has(const char *text, const char *line)
{
    if (strstr(text, line) == NULL) {
        fail_msg("[%s] is not in %s", line, text);
    }
}

static struct rig *
rig_with_slowlog(void)
{
    struct rig *rig = rig_new();

    rig->service.slowlog = slowlog_new();
    return rig;
}

static void
rig_end(struct rig *rig)
{
    slowlog_free(rig->service.slowlog);
    rig->service.slowlog = NULL;
    rig_free(rig);
}

TEST(commands_and_errors_are_counted)
{
    struct rig *rig = rig_with_slowlog();
    struct buf text = { 0 };
    const char *got;

    assert_null(strstr(scrape(rig, false, &text), "bloomery_command_calls_t"
                                                  "otal{"));
    run_text(rig, "BF.ADD k a; BF.ADD k; BF.RESERVE k 0.1 5; NOPE", true);
    got = scrape(rig, false, &text);
    has(got, "\nbloomery_command_calls_total{command=\"BF.ADD\"} 1\n");
    has(got, "\nbloomery_command_rejected_calls_total{command=\"BF.ADD\"} 1\n");
    has(got,
        "\nbloomery_command_failed_calls_total{command=\"BF.RESERVE\"} 1\n");
    has(got, "\nbloomery_command_time_seconds_total{command=\"BF.ADD\"} 0.");
    has(got, "\nbloomery_errors_total{error=\"ERR\"} 3\n");
    has(got, "\nbloomery_keys{db=\"0\"} 1\n");
    has(got, "\nbloomery_keys_expiring{db=\"0\"} 0\n");
    has(got, "\nbloomery_is_replica 0\n");
    assert_null(strstr(got, "# EOF"));
    got = scrape(rig, true, &text);
    assert_string_equal(got + strlen(got) - 6, "# EOF\n");
    buf_free(&text);
    rig_end(rig);
}

TEST(a_histogram_counts_all_calls_in_its_last_bucket)
{
    struct rig *rig = rig_with_slowlog();
    struct buf text = { 0 };
    const char *got;

    stats_set_spreads(rig->service.stats, true);
    stats_took(rig->worker->stats, CMD_ID_PING, 3, 3000000);
    stats_lasted(rig->worker->stats, CMD_ID_PING, 2, 1031);
    stats_lasted(rig->worker->stats, CMD_ID_PING, 1, 5000000000);
    got = scrape(rig, false, &text);
    has(got,
        "_duration_seconds_bucket{command=\"ping\",le=\"0.000001031\"} 2\n");
    has(got,
        "_duration_seconds_bucket{command=\"ping\",le=\"1.082130431\"} 2\n");
    has(got, "_duration_seconds_bucket{command=\"ping\",le=\"+Inf\"} 3\n");
    has(got, "_duration_seconds_sum{command=\"ping\"} 0.003000000\n");
    has(got, "_duration_seconds_count{command=\"ping\"} 3\n");
    buf_free(&text);
    rig_end(rig);
}

TEST(a_scrape_without_memory_fails)
{
    struct rig *rig = rig_with_slowlog();
    struct buf text = { .limit = 4096 };

    scrape_write(&rig->service, NULL, false, &text);
    assert_true(text.failed);
    buf_free(&text);
    rig_end(rig);
}

TEST(chosen_filters_have_metrics_with_labels_that_are_escaped)
{
    struct rig *rig = rig_with_slowlog();
    struct ranking_filter filters[2] = {
        { .items = 5, .capacity = 10, .rate = 0.0125, .scaling = true },
        { .items = 7, .capacity = 8, .rate = -1, .db = 3 },
    };
    const struct ranking_chosen chosen = {
        .pattern = "*", .filter = filters, .count = 2, .matching = 5
    };
    struct buf text = { 0 };

    memcpy(filters[0].name, "a\"b\\\n", filters[0].name_len = 5);
    memcpy(filters[1].name, "k", filters[1].name_len = 1);
    scrape_write(&rig->service, &chosen, false, &text);
    buf_append(&text, "", 1);
    has(text.data,
        "bloomery_filter_items{db=\"0\",filter=\"a\\\"b\\\\\\\\\\\\x0a\","
        "scaling=\"yes\"} 5\n");
    has(text.data,
        "bloomery_filter_capacity{db=\"3\",filter=\"k\",scaling=\"no\"} 8\n");
    has(text.data, "scaling=\"yes\"} 0.0125\n");
    has(text.data, "bloomery_filters_left_out 3\n");
    assert_null(strstr(text.data, "bloomery_filter_error_rate{db=\"3\""));
    buf_free(&text);
    rig_end(rig);
}
