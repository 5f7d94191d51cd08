/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a tick warns of, and the slow events outside of commands.
 */
#include "server/watch.h"

#include "../capture.h"
#include "../persist/persist_rig.h"
#include "base/log.h"
#include "base/reserve.h"
#include "measure/latency.h"
#include "measure/sampler.h"
#include "server/server_state.h"
#include "server/web.h"

enum { HOUR_MS = 60 * 60 * 1000 };

/* A server without loops and clients: only what a tick looks at. */
struct watched {
    struct prig *rig;
    struct server *server;
};

static void
open_watched(struct watched *watched)
{
    struct server *server = mem_zalloc(sizeof(*server));
    struct prig *rig = prig_start("yes", "always");

    server->service.conf = &rig->conf;
    server->service.keyspace = rig->ks;
    server->service.sampler = sampler_new();
    server->service.latency = latency_new();
    server->persist = rig->persist;
    server->web = web_new(server);
    server->reserve_seen = reserve_asked(); /* an earlier test may have */
    *watched = (struct watched){ rig, server };
    (void)journal_take_longest_sync_ns(persist_journal(rig->persist));
    log_set_level(LOG_WARN);
}

static void
close_watched(struct watched *watched)
{
    web_free(watched->server->web);
    latency_free(watched->server->service.latency);
    sampler_free(watched->server->service.sampler);
    mem_free(watched->server);
    prig_free(watched->rig);
}

static size_t
count_events(const struct watched *watched, enum latency_event event)
{
    struct latency_series series;

    latency_read(watched->server->service.latency, event, &series);
    return series.count;
}

TEST(a_tick_with_nothing_new_says_nothing)
{
    struct watched watched;

    open_watched(&watched);
    EXPECT_OUTPUT(STDERR_FILENO, watch_tick(watched.server), "");
    EXPECT_OUTPUT(STDERR_FILENO, watch_tick(watched.server), "");
    assert_int_equal(0, count_events(&watched, LATENCY_AOF_FSYNC));
    close_watched(&watched);
}

TEST(a_tick_warns_once_of_memory_that_has_ended)
{
    struct watched watched;
    void *block;

    assert_true(reserve_open());
    open_watched(&watched);
    block = reserve_take(1000, 0);
    assert_non_null(block);
    EXPECT_PRINTED(STDERR_FILENO, watch_tick(watched.server),
                   "memory has ended, clients that ask for more get errors");
    EXPECT_OUTPUT(STDERR_FILENO, watch_tick(watched.server), "");
    reserve_give(block);
    close_watched(&watched);
}

TEST(a_tick_warns_once_of_a_clock_that_was_set)
{
    struct watched watched;

    open_watched(&watched);
    EXPECT_OUTPUT(STDERR_FILENO, watch_tick(watched.server), "");
    watched.server->clock_pace -= HOUR_MS;
    EXPECT_PRINTED(STDERR_FILENO, watch_tick(watched.server),
                   "the clock was set");
    EXPECT_OUTPUT(STDERR_FILENO, watch_tick(watched.server), "");
    watched.server->clock_pace += HOUR_MS;
    EXPECT_PRINTED(STDERR_FILENO, watch_tick(watched.server), "by_ms=-");
    close_watched(&watched);
}

/* The threshold of the monitor is 0 here: each event counts. */
TEST(a_tick_passes_on_the_longest_sync_since_the_last_one)
{
    struct watched watched;

    open_watched(&watched);
    (void)prig_write_released(watched.rig);
    watch_tick(watched.server);
    assert_int_equal(1, count_events(&watched, LATENCY_AOF_FSYNC));
    assert_true(
        latency_reset(watched.server->service.latency, LATENCY_AOF_FSYNC));
    watch_tick(watched.server);
    assert_int_equal(0, count_events(&watched, LATENCY_AOF_FSYNC));
    close_watched(&watched);
}

TEST(slices_of_removing_expired_keys_are_counted)
{
    int64_t us = metric_sum(METRIC_EXPIRE_US);
    int64_t cut_short = metric_sum(METRIC_EXPIRE_CAPS);
    struct watched watched;

    open_watched(&watched);
    watch_reclaimed(&watched.server->service, 3000000, true);
    watch_reclaimed(&watched.server->service, 2000, false);
    assert_int_equal(us + 3002, metric_sum(METRIC_EXPIRE_US));
    assert_int_equal(cut_short + 1, metric_sum(METRIC_EXPIRE_CAPS));
    assert_true(count_events(&watched, LATENCY_EXPIRE_CYCLE) > 0);
    atomic_store(&watched.server->service.latency_ns, 5000);
    assert_true(
        latency_reset(watched.server->service.latency, LATENCY_EXPIRE_CYCLE));
    watch_reclaimed(&watched.server->service, 4999, false);
    assert_int_equal(0, count_events(&watched, LATENCY_EXPIRE_CYCLE));
    close_watched(&watched);
}
