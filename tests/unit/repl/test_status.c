/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Other threads read what was published, whole, also while it changes.
 */
#include "repl/status.h"

#include "../test.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct status_replica
replica(uint64_t id, enum status_replica_state state, uint64_t position,
        uint64_t acked_ms)
{
    struct status_replica replica = { .id = id,
                                      .state = state,
                                      .acked = position,
                                      .synced = position / 2,
                                      .acked_mono_ms = acked_ms };

    (void)snprintf(replica.address, sizeof(replica.address), "10.0.0.%u:1",
                   (unsigned)id);
    return replica;
}

TEST(before_the_first_word_there_is_nothing)
{
    struct status *status = status_new();
    struct status_figures figures = { .epoch = 7 };

    assert_int_equal(status_get(status, &figures, NULL, 0), 0);
    assert_int_equal(figures.epoch, 0);
    assert_int_equal(figures.link, STATUS_NO_LINK);
    assert_int_equal(status_count(status), 0);
    assert_int_equal(status_count_good(status, 1000, 10), 0);
    assert_int_equal(status_count_acked(status, 0), 0);
    status_free(status);
    status_free(NULL);
}

TEST(copies_hold_as_many_as_there_is_room_for)
{
    struct status *status = status_new();
    struct status_figures figures = { .full_syncs = 3,
                                      .link = STATUS_CONNECTED };
    struct status_figures back;
    struct status_replica replicas[3];
    struct status_replica copies[3] = { { .id = 0 } };

    for (unsigned i = 0; i < 3; i++) {
        replicas[i] = replica(i + 1, STATUS_ONLINE, 10, 0);
    }
    status_publish(status, &figures, replicas, 3);
    assert_int_equal(status_get(status, &back, copies, 2), 3);
    assert_int_equal(back.full_syncs, 3);
    assert_int_equal(status_count(status), 3);
    assert_string_equal(copies[1].address, "10.0.0.2:1");
    assert_int_equal(copies[2].id, 0); /* untouched */
    status_publish(status, &figures, replicas + 2, 1);
    assert_int_equal(status_get(status, &back, copies, 3), 1);
    assert_int_equal(copies[0].id, 3);
    assert_int_equal(status_get(status, &back, NULL, 0), 1);
    status_free(status);
}

TEST(only_those_online_count)
{
    struct status *status = status_new();
    struct status_figures figures = { .epoch = 1 };
    struct status_replica replicas[] = {
        replica(1, STATUS_ONLINE, 100, 50000),
        replica(2, STATUS_SYNCS, 100, 60000),
        replica(3, STATUS_ONLINE, 200, 39000),
        replica(4, STATUS_WAITS, 300, 60000),
        replica(5, STATUS_ONLINE, 300, 60000),
    };

    status_publish(status, &figures, replicas, 5);
    assert_int_equal(status_count_acked(status, 0), 3);
    assert_int_equal(status_count_acked(status, 100), 3);
    assert_int_equal(status_count_acked(status, 101), 2);
    assert_int_equal(status_count_acked(status, 301), 0);
    assert_int_equal(status_count_synced(status, 100), 2);
    assert_int_equal(status_count_synced(status, 150), 1);
    assert_int_equal(status_count_synced(status, 151), 0);

    assert_int_equal(status_count_good(status, 60000, 10), 2);
    assert_int_equal(status_count_good(status, 60999, 10), 2);
    assert_int_equal(status_count_good(status, 61000, 10), 1);
    assert_int_equal(status_count_good(status, 60000, 1), 1);
    assert_int_equal(status_count_good(status, 60000, 100), 3);
    assert_int_equal(status_count_good(status, 99000, 10), 0);
    assert_int_equal(status_count_good(status, 99000, 0), 3);
    assert_int_equal(status_count_good(status, 59000, 1), 1); /* read earlier */

    status_publish(status, &figures, NULL, 0);
    assert_int_equal(status_count_good(status, 60000, 100), 0);
    assert_int_equal(status_count_acked(status, 0), 0);
    status_free(status);
}

TEST(without_memory_those_who_fit_are_shown_and_all_count)
{
    struct status *status = status_new();
    struct status_figures figures = { .epoch = 1 };
    struct status_replica replicas[2] = { replica(1, STATUS_ONLINE, 1, 1),
                                          replica(2, STATUS_ONLINE, 1, 1) };

    status_publish(status, &figures, replicas, 1);
    mem_fail_at(1);
    status_publish(status, &figures, replicas, 2);
    assert_true(mem_fail_clear());
    assert_int_equal(status_get(status, &figures, NULL, 0), 1);
    assert_int_equal(status_count(status), 2);
    assert_int_equal(status_count_good(status, 2, 1), 2);
    status_publish(status, &figures, replicas, 2);
    assert_int_equal(status_get(status, &figures, NULL, 0), 2);
    status_free(status);
}

/* ---- while it changes ---------------------------------------------------- */

enum { ROUNDS = 3000 };

struct shared {
    struct status *status;
    atomic_bool stop;
    _Atomic unsigned reads;
};

/* All figures of one publication are the same number. */
static void *
read_on(void *arg)
{
    struct shared *shared = arg;

    while (!shared->stop) {
        struct status_figures figures;
        struct status_replica copies[4];
        size_t count = status_get(shared->status, &figures, copies, 4);
        size_t good = status_count_good(shared->status, 1000, 10);

        CHECK(good == 1 || good == 2);
        CHECK(count == 1 + figures.epoch % 2);
        for (size_t i = 0; i < count; i++) {
            CHECK(copies[i].acked == figures.epoch);
        }
        shared->reads++;
    }
    metric_thread_exit();
    return NULL;
}

TEST(readers_see_one_publication_or_another)
{
    struct shared shared = { .status = status_new() };
    pthread_t threads[2];

    for (uint64_t i = 0; shared.reads < ROUNDS; i++) {
        struct status_figures figures = { .epoch = i };
        struct status_replica replicas[2] = {
            replica(1, STATUS_ONLINE, i, 1000),
            replica(2, STATUS_ONLINE, i, 999)
        };

        status_publish(shared.status, &figures, replicas, 1 + i % 2);
        for (int k = 0; k < 2 && i == 0; k++) {
            assert_int_equal(
                pthread_create(&threads[k], NULL, read_on, &shared), 0);
        }
    }
    shared.stop = true;
    for (int k = 0; k < 2; k++) {
        (void)pthread_join(threads[k], NULL);
    }
    status_free(shared.status);
}

TEST(the_last_refusal_is_kept_until_it_is_forgotten)
{
    struct status *status = status_new();
    struct status_note note;

    status_get_note(status, STATUS_REFUSED, &note);
    assert_string_equal("", note.reason);
    status_note(status, STATUS_REFUSED, "1.2.3.4:5", "no memory");
    status_note(status, STATUS_REFUSED, "1.2.3.4:6", "no secret");
    status_get_note(status, STATUS_REFUSED, &note);
    assert_string_equal("1.2.3.4:6", note.replica);
    assert_string_equal("no secret", note.reason);
    assert_true(note.mono_ms > 0);
    status_get_note(status, STATUS_LOST, &note);
    assert_string_equal("", note.reason);
    status_note(status, STATUS_REFUSED, "", "");
    status_get_note(status, STATUS_REFUSED, &note);
    assert_string_equal("", note.reason);
    status_free(status);
}

TEST(a_lost_replica_is_named_unless_it_only_took_slots)
{
    struct status *status = status_new();
    struct status_figures figures = { 0 };
    struct status_replica replicas[2] = {
        { .id = 1, .ip = "1.2.3.4", .port = 5, .state = STATUS_ONLINE },
        { .id = 2, .ip = "1.2.3.4", .port = 6, .state = STATUS_PULLS },
    };
    struct status_note note;

    status_publish(status, &figures, replicas, 2);
    status_note_lost(status, 2, "reset");
    status_note_lost(status, 3, "reset");
    status_get_note(status, STATUS_LOST, &note);
    assert_string_equal("", note.reason);
    status_note_lost(status, 1, "too slow");
    status_get_note(status, STATUS_LOST, &note);
    assert_string_equal("1.2.3.4:5", note.replica);
    assert_string_equal("too slow", note.reason);
    status_free(status);
}
