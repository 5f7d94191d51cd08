/* SPDX-License-Identifier: BSD-3-Clause */
#include "replica_rig.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Until it dials again. */
static uint64_t
wait_of(struct rig *rig)
{
    uint64_t from_ms = rig->now_ms;

    while (!rig->linked) {
        tick(rig, 1);
    }
    return rig->now_ms - from_ms;
}

TEST(it_tries_again_ever_more_slowly_up_to_five_seconds)
{
    struct rig *rig = rig_new();
    uint64_t expected_ms = 100;

    follow(rig);
    for (int i = 0; i < 12; i++) {
        uint64_t waited_ms;

        end_link(rig);
        waited_ms = wait_of(rig);
        assert_in_range(waited_ms, expected_ms, expected_ms * 5 / 4);
        expected_ms = expected_ms * 2 < 5000 ? expected_ms * 2 : 5000;
    }
    /* A new primary begins anew. */
    follow(rig);
    end_link(rig);
    assert_in_range(wait_of(rig), 100, 125);
    rig_free(rig);
}

TEST(servers_do_not_all_come_back_at_the_same_moment)
{
    struct rig *rig = rig_new();
    uint64_t waits[5];
    bool differs = false;

    for (int i = 0; i < 5; i++) {
        follow(rig);
        end_link(rig);
        waits[i] = wait_of(rig);
        differs = differs || waits[i] != waits[0];
    }
    assert_true(differs);
    rig_free(rig);
}

TEST(a_link_that_brought_something_is_made_again_at_once)
{
    struct rig *rig = rig_new();

    follow(rig);
    for (int i = 0; i < 4; i++) {
        end_link(rig); /* slower and slower */
        (void)wait_of(rig);
    }
    for (uint64_t sequence = 42; sequence < 60; sequence++) {
        connect_partial(rig);
        hear_group(rig, sequence, 10);
        end_link(rig);
        assert_true(rig->linked);
    }
    /* Or lasted. */
    connect_partial(rig);
    tick(rig, 1000);
    (void)said(rig);
    end_link(rig);
    assert_true(rig->linked);
    /* This one did neither. */
    connect_partial(rig);
    end_link(rig);
    assert_false(rig->linked);
    assert_in_range(wait_of(rig), 100, 125);
    rig_free(rig);
}

TEST(full_synchronizations_do_not_follow_each_other_fast)
{
    struct rig *rig = rig_new();
    uint64_t expected_ms = 100;

    connect_partial(rig);
    for (int i = 0; i < 10; i++) {
        uint64_t waited_ms;

        rig->next = REPLICA_REFUSED;
        tick(rig, 1500); /* it looks good for a while */
        hear_group(rig, rig->place.sequence + 1, 10);
        assert_false(rig->linked);
        waited_ms = wait_of(rig);
        assert_in_range(waited_ms, expected_ms, expected_ms * 5 / 4);
        expected_ms = expected_ms * 2 < 5000 ? expected_ms * 2 : 5000;
        rig->next = REPLICA_APPLIED;
        (void)said(rig);
        connect_full(rig);
        hear(rig, "$0\r\n");
        load(rig);
        hear_group(rig, 78, 10);
        assert_true(replica_is_connected(rig->replica));
    }
    /* After a calm minute it is forgotten. */
    for (int i = 0; i < 61; i++) {
        hear(rig, "+PING\r\n");
        tick(rig, 1000);
    }
    rig->next = REPLICA_REFUSED;
    hear_group(rig, 79, 10);
    assert_in_range(wait_of(rig), 100, 125);
    rig_free(rig);
}

static size_t
count_lines(int fd)
{
    static char text[65536];
    ssize_t len = pread(fd, text, sizeof(text), 0);
    size_t lines = 0;

    for (ssize_t i = 0; i < len; i++) {
        lines += text[i] == '\n';
    }
    return lines;
}

TEST(a_reason_is_logged_once_a_minute)
{
    struct rig *rig = rig_new();
    int log = memfd_create("log", 0);
    int kept = dup(STDERR_FILENO);

    assert_true(log >= 0 && kept >= 0);
    log_set_level(LOG_WARN);
    (void)dup2(log, STDERR_FILENO);
    follow(rig);
    while (rig->now_ms < START_MS + 59000) {
        end_link(rig);
        (void)wait_of(rig);
    }
    (void)dup2(kept, STDERR_FILENO);
    assert_int_equal(1, count_lines(log));
    (void)dup2(log, STDERR_FILENO);
    while (rig->now_ms < START_MS + 118000) {
        end_link(rig);
        (void)wait_of(rig);
    }
    replica_closed(rig->replica, rig->number, "another one", rig->now_ms);
    rig->linked = false;
    (void)dup2(kept, STDERR_FILENO);
    assert_int_equal(3, count_lines(log));
    log_set_level(LOG_ERROR);
    (void)close(log);
    (void)close(kept);
    rig_free(rig);
}
