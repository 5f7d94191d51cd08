/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which answers renew the lease, and what is served.
 */
#include "cluster/sidecar.h"

#include "../test.h"
#include "base/mem.h"
#include "cluster_rig.h"

#define MS UINT64_C(1000000)

#define AS_PRIMARY                                                             \
    RIG_A " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-99\n" RIG_B  \
          " 10.0.0.2:7000@17000 master - 0 0 2 connected 100-199\n"
#define AS_REPLICA                                                             \
    RIG_A " 10.0.0.1:7000@17000 myself,slave " RIG_B                           \
          " 0 0 1 connected\n" RIG_B                                           \
          " 10.0.0.2:7000@17000 master - 0 0 2 connected 0-199\n"

static const struct sidecar_options options = { .poll_ns = 100 * MS };

/* A look that was asked and answered at these times. */
static struct sidecar_outcome
looks(struct sidecar *sidecar, uint64_t sent_ms, uint64_t heard_ms,
      const char *nodes)
{
    struct sidecar_poll poll = { .sent_ns = sent_ms * MS,
                                 .heard_ns = heard_ms * MS };
    struct sidecar_outcome outcome;

    if (nodes != NULL) {
        poll.topology = rig_topology(nodes, RIG_INFO, RIG_A);
    }
    sidecar_polled(sidecar, &poll, &outcome);
    assert_null(poll.topology);
    return outcome;
}

static uint64_t
lease_ms(struct sidecar *sidecar, uint64_t sent_ms, uint64_t heard_ms)
{
    struct sidecar_outcome outcome = looks(sidecar, sent_ms, heard_ms, NULL);

    assert_null(outcome.view);
    return outcome.lease_until_ns / MS;
}

/* A sidecar with a lease from 1100 to 2100. */
static struct sidecar *
with_lease(void)
{
    struct sidecar *sidecar = sidecar_new(&options);
    struct sidecar_outcome outcome = looks(sidecar, 1000, 1001, AS_PRIMARY);

    assert_non_null(outcome.view);
    assert_int_equal(outcome.lease_until_ns, 0);
    view_free(outcome.view);
    assert_int_equal(lease_ms(sidecar, 1100, 1101), 2100);
    return sidecar;
}

TEST(the_first_answer_gives_a_view_and_the_second_a_lease)
{
    struct sidecar *sidecar = with_lease();

    assert_int_equal(lease_ms(sidecar, 1200, 1300), 2200);
    sidecar_free(sidecar);
    sidecar_free(NULL);
}

TEST(a_primary_serves_its_slots_and_a_replica_none)
{
    struct sidecar *sidecar = sidecar_new(&options);
    struct sidecar_outcome outcome = looks(sidecar, 1000, 1001, AS_PRIMARY);

    assert_int_equal(outcome.view->count[SLOT_SERVED], 100);
    assert_int_equal(outcome.view->state[99], SLOT_SERVED);
    assert_int_equal(outcome.view->state[100], SLOT_AWAY);
    view_free(outcome.view);
    outcome = looks(sidecar, 1100, 1101, AS_REPLICA);
    assert_int_equal(outcome.view->count[SLOT_AWAY], CLUSTER_SLOTS);
    view_free(outcome.view);
    sidecar_free(sidecar);
}

TEST(the_answer_after_a_silence_renews_nothing)
{
    struct sidecar *sidecar = with_lease();

    assert_int_equal(lease_ms(sidecar, 1200, 1301), 2100); /* took 101 ms */
    assert_int_equal(lease_ms(sidecar, 1301, 1302), 2100);
    assert_int_equal(lease_ms(sidecar, 1320, 1322), 2100); /* 19 ms after it */
    assert_int_equal(lease_ms(sidecar, 1321, 1323), 2321);
    sidecar_free(sidecar);
}

TEST(a_lease_ends_with_the_connection_and_begins_like_the_first)
{
    struct sidecar *sidecar = with_lease();
    struct sidecar_poll gone = { .sent_ns = 1200 * MS,
                                 .heard_ns = 1201 * MS,
                                 .failed = true,
                                 .gone = true };
    struct sidecar_outcome outcome;

    sidecar_polled(sidecar, &gone, &outcome);
    assert_int_equal(outcome.lease_until_ns, 0);
    assert_null(outcome.view);
    assert_int_equal(lease_ms(sidecar, 1300, 1301), 0);
    assert_int_equal(lease_ms(sidecar, 1400, 1401), 2400);
    sidecar_free(sidecar);
}

TEST(an_error_ends_no_lease_and_renews_none)
{
    struct sidecar *sidecar = with_lease();
    struct sidecar_poll failed = { .sent_ns = 1200 * MS,
                                   .heard_ns = 1201 * MS,
                                   .failed = true };
    struct sidecar_outcome outcome;

    sidecar_polled(sidecar, &failed, &outcome);
    assert_int_equal(outcome.lease_until_ns, 2100 * MS);
    sidecar_free(sidecar);
}

TEST(a_lease_is_a_quarter_of_the_node_timeout_or_as_long_as_is_set)
{
    static const struct sidecar_options fixed = { .poll_ns = 100 * MS,
                                                  .lease_ns = 300 * MS };
    struct sidecar *sidecar = sidecar_new(&options);
    struct cluster_settings settings = { .node_timeout_ms = 2000 };

    assert_int_equal(sidecar_lease_ns(sidecar), 1000 * MS);
    sidecar_set(sidecar, &settings);
    assert_int_equal(sidecar_lease_ns(sidecar), 500 * MS);
    settings.node_timeout_ms = 60000;
    sidecar_set(sidecar, &settings);
    assert_int_equal(sidecar_lease_ns(sidecar), 1000 * MS);
    sidecar_free(sidecar);
    sidecar = sidecar_new(&fixed);
    sidecar_set(sidecar, &settings);
    assert_int_equal(sidecar_lease_ns(sidecar), 300 * MS);
    sidecar_free(sidecar);
}

TEST(settings_of_the_neighbour_get_into_the_next_view)
{
    struct sidecar *sidecar = sidecar_new(&options);
    struct cluster_settings settings = { .node_timeout_ms = 2000,
                                         .databases = 4 };
    struct sidecar_outcome outcome;

    sidecar_set(sidecar, &settings);
    outcome = looks(sidecar, 1000, 1001, AS_PRIMARY);
    assert_int_equal(outcome.view->settings.databases, 4);
    view_free(outcome.view);
    sidecar_free(sidecar);
}

/* The published view is no longer true then. */
TEST(without_memory_for_a_view_the_lease_ends)
{
    struct sidecar *sidecar = with_lease();
    struct topology *topology = rig_topology(AS_PRIMARY, RIG_INFO, RIG_A);
    struct sidecar_poll poll = { .sent_ns = 1200 * MS,
                                 .heard_ns = 1201 * MS,
                                 .topology = topology };
    struct sidecar_outcome outcome;

    mem_fail_at(1);
    sidecar_polled(sidecar, &poll, &outcome);
    assert_true(mem_fail_clear());
    assert_true(outcome.no_memory);
    assert_int_equal(outcome.lease_until_ns, 0);
    assert_int_equal(lease_ms(sidecar, 1300, 1301), 0);
    outcome = looks(sidecar, 1400, 1401, AS_PRIMARY);
    assert_int_equal(outcome.lease_until_ns, 2400 * MS);
    view_free(outcome.view);
    sidecar_free(sidecar);
}
