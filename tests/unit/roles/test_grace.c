/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a primary doubts after a start, and what ends that.
 */
#include "roles/grace.h"

#include "../test.h"
#include "base/clock.h"
#include "base/mem.h"
#include "engine/service.h"
#include "roles/replication_state.h"

#include <stdio.h>
#include <string.h>

#define HISTORY "0123456789abcdef0123456789abcdef01234567"
#define BEFORE  "1111111111111111111111111111111111111111"

/* A primary that has just started; what the role file says is `r.kept`. */
struct start {
    struct service *service;
    struct loop0 loop0;
    struct replication *r;
    struct history loaded;
};

static void
open_start(struct start *start)
{
    struct primary_hooks hooks = { .ctx = NULL };

    *start = (struct start){ .service = mem_zalloc(sizeof(*start->service)),
                             .r = mem_zalloc(sizeof(*start->r)) };
    start->loop0.service = start->service;
    start->r->loop0 = &start->loop0;
    start->r->backlog = backlog_new();
    start->r->primary = primary_new(start->r->backlog, &hooks);
    start->r->kept.known = true;
    memcpy(start->loaded.id, HISTORY, sizeof(HISTORY));
}

static void
close_start(struct start *start)
{
    primary_free(start->r->primary);
    backlog_free(start->r->backlog);
    mem_free(start->r);
    mem_free(start->service);
}

static struct primary_hello
hello_of(unsigned port)
{
    return (struct primary_hello){ .ip = "10.0.0.1", .port = port };
}

static void
meet(struct start *start, unsigned port)
{
    struct primary_hello hello = hello_of(port);

    grace_meet(start->r, &hello);
    grace_look(start->r);
}

/* Writes what the role file would have after these replicas have followed. */
static void
keep(struct start *start, unsigned first_port, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        meet(start, first_port + i);
    }
    grace_fill(start->r, &start->r->kept);
}

static bool
doubts(const struct start *start)
{
    return atomic_load(&start->service->grace_until_ms) > 0;
}

TEST(all_former_replicas_end_the_doubt_early)
{
    struct start start;

    open_start(&start);
    start.r->grace_ms = 3600 * 1000;
    keep(&start, 1, 2);
    grace_begin(start.r, &start.loaded, 100);
    assert_true(doubts(&start));
    meet(&start, 2);
    assert_true(doubts(&start));
    meet(&start, 3); /* a new one says nothing of the former ones */
    assert_true(doubts(&start));
    meet(&start, 1);
    assert_false(doubts(&start));
    close_start(&start);
}

TEST(replicas_whose_names_are_lost_are_awaited_until_time_ends)
{
    struct start start;

    open_start(&start);
    start.r->grace_ms = 3600 * 1000;
    keep(&start, 1, ROLE_FOLLOWERS_MAX + 1);
    assert_true(start.r->kept.more_followers);
    grace_begin(start.r, &start.loaded, 100);
    for (unsigned i = 0; i <= ROLE_FOLLOWERS_MAX; i++) {
        meet(&start, 1 + i);
    }
    assert_true(doubts(&start));
    close_start(&start);
}

TEST(time_ends_the_doubt)
{
    uint64_t until_ns = clock_mono_ns() + UINT64_C(60) * 1000000000;
    struct start start;

    open_start(&start);
    start.r->grace_ms = 1;
    keep(&start, 1, 1);
    grace_begin(start.r, &start.loaded, 100);
    assert_true(doubts(&start));
    while (doubts(&start)) {
        assert_true(clock_mono_ns() < until_ns);
        grace_look(start.r);
    }
    /* A former replica is still awaited: it may have newer data. */
    assert_true(start.r->grace.awaits_until_ms > 0);
    close_start(&start);
}

TEST(a_command_ends_all_doubts)
{
    struct start start;

    open_start(&start);
    start.r->grace_ms = 3600 * 1000;
    keep(&start, 1, 2);
    grace_begin(start.r, &start.loaded, 100);
    atomic_store(&start.service->leads_by_word, true);
    grace_look(start.r);
    assert_false(doubts(&start));
    assert_false(atomic_load(&start.service->leads_by_word));
    assert_int_equal(0, start.r->grace.awaits_until_ms);
    assert_int_equal(0, start.r->grace.awaited[0]);
    close_start(&start);
}

TEST(without_start_grace_there_is_no_doubt_about_who_leads)
{
    struct start start;

    open_start(&start);
    keep(&start, 1, 1);
    grace_begin(start.r, &start.loaded, 100);
    assert_false(doubts(&start));
    assert_true(start.r->grace.awaits_until_ms > 0);
    meet(&start, 1);
    assert_int_equal(0, start.r->grace.awaits_until_ms);
    close_start(&start);
}

/* Until all are back, the file keeps those that are not, and the histories that
 * they may be in. */
TEST(the_role_file_keeps_who_is_not_back)
{
    struct start start;
    struct role_state filled = { .known = true };
    uint64_t both[2];

    open_start(&start);
    memcpy(start.r->kept.history, BEFORE, sizeof(BEFORE));
    keep(&start, 1, 2);
    memcpy(both, start.r->kept.followers, sizeof(both));
    grace_begin(start.r, &start.loaded, 100);
    meet(&start, 2);
    grace_fill(start.r, &filled);
    assert_string_equal(BEFORE, filled.before[0]);
    assert_true(filled.followers[0] == both[1]);
    assert_true(filled.followers[1] == both[0]);
    assert_int_equal(0, filled.followers[2]);
    assert_false(filled.more_followers);
    meet(&start, 1);
    memset(&filled, 0, sizeof(filled));
    grace_fill(start.r, &filled);
    assert_string_equal("", filled.before[0]);
    close_start(&start);
}
