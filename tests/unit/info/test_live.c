/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The document and the page, as far as they need no server; tests/scenario/
 * test_status_page.py reads both.
 */
#include "info/live.h"

#include "sidecar.h"

static struct trend trend;

static void
write_live(const struct rig *rig, const struct ranking *ranking, bool names,
           struct buf *text)
{
    live_write(
        &rig->service,
        &(struct live){ .ranking = ranking, .trend = &trend, .names = names },
        text);
}

static struct ranking_filter
filter_of(const char *name)
{
    struct ranking_filter filter = { .db = 2,
                                     .layers = 3,
                                     .items = 5,
                                     .capacity = 10,
                                     .bytes = 999,
                                     .asked_rate = 0.01,
                                     .rate = -1 };

    filter.name_len = strlen(name);
    memcpy(filter.name, name, filter.name_len);
    return filter;
}

TEST(names_are_written_only_if_they_may_be_shown)
{
    struct rig *rig = rig_new();
    struct ranking ranking = { .seen = 7 };
    struct buf text = { 0 };

    ranking.biggest.filter[0] = filter_of("k<1>");
    ranking.biggest.count = 1;
    write_live(rig, &ranking, true, &text);
    buf_append(&text, "", 1);
    assert_non_null(strstr(
        text.data, "\"biggest\":[{\"number\":0,\"name\":\"k<1>\",\"db\":2,"
                   "\"kind\":\"native\","
                   "\"layers\":3,\"items\":5,\"capacity\":10,\"bytes\":999,"
                   "\"asked_rate\":0.01,\"rate\":null}],\"fullest\":[]"));
    text.len = 0;
    write_live(rig, &ranking, false, &text);
    buf_append(&text, "", 1);
    assert_null(strstr(text.data, "k<1>"));
    assert_non_null(strstr(text.data, "\"names\":false"));
    buf_free(&text);
    rig_free(rig);
}

TEST(latency_counts_all_calls)
{
    struct rig *rig = rig_new();
    struct ranking ranking = { 0 };
    struct buf text = { 0 };

    stats_set_spreads(rig->service.stats, true);
    stats_lasted(rig->worker->stats, CMD_ID_PING, 2, 1031);
    stats_lasted(rig->worker->stats, CMD_ID_ECHO, 3, 1031);
    write_live(rig, &ranking, false, &text);
    buf_append(&text, "", 1);
    assert_non_null(strstr(text.data, "\"latency_ns\":[[1031,5]]"));
    buf_free(&text);
    rig_free(rig);
}

TEST(the_page_is_complete_and_has_marks_for_the_nonce)
{
    struct slice page = live_page();

    assert_true(page.len > 1000);
    assert_memory_equal(page.data, "<!doctype html>", 15);
    assert_non_null(
        memmem(page.data, page.len, "<script nonce=\"" LIVE_PAGE_MARK "\">",
               sizeof("<script nonce=\"" LIVE_PAGE_MARK "\">") - 1));
    assert_memory_equal(page.data + page.len - 8, "</html>\n", 8);
}

TEST(the_cluster_is_there_in_sidecar_mode_only)
{
    struct rig *rig = rig_new();
    struct ranking ranking = { 0 };
    struct buf text = { 0 };
    struct sidecar_rig sidecar;

    write_live(rig, &ranking, false, &text);
    buf_append(&text, "", 1);
    assert_null(strstr(text.data, "\"cluster\""));
    sidecar_rig_init(&sidecar, rig);
    text.len = 0;
    write_live(rig, &ranking, false, &text);
    buf_append(&text, "", 1);
    assert_non_null(strstr(text.data,
                           "\"up\":false,\"lease_ms\":1000,\"lease_left_ms\":0,"
                           "\"leases_lost\":5,\"ok\":true,\"primary\":true,"
                           "\"epoch\":9,\"nodes\":3,\"assigned\":16000,"
                           "\"map\":\"Sm-"));
    assert_non_null(strstr(
        text.data, "\"silent\":\"10.0.0.2:8002\","
                   "\"slots\":{\"away\":16284,\"served\":93,\"pulled\":0,"
                   "\"exported\":0,\"held\":6,\"missing\":1,\"leaving\":0},"
                   "\"transfers\":{\"count\":2,\"state\":\"loads\","
                   "\"source\":\"10.0.0.1:8001\",\"slots\":30,"));
    /* Before the neighbour was read there are no slots. */
    sidecar.cluster.view = NULL;
    text.len = 0;
    write_live(rig, &ranking, false, &text);
    buf_append(&text, "", 1);
    assert_non_null(strstr(text.data, "\"leases_lost\":5,\"transfers\":{"));
    buf_free(&text);
    rig_free(rig);
}
