/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistence, replication and the cluster in a scrape.
 */
#include "info/scrape.h"

#include "repl/status.h"
#include "sidecar.h"

static void
has(struct buf *text, const char *line, bool expected)
{
    if ((strstr(text->data, line) != NULL) != expected) {
        fail_msg("[%s] is %sin %s", line, expected ? "not " : "", text->data);
    }
}

static void
write_state(struct rig *rig, struct buf *text)
{
    struct expose to = { .text = text };

    text->len = 0;
    scrape_persistence(&rig->service, &to);
    scrape_replication(&rig->service, &to);
    scrape_cluster(&rig->service, &to);
    expose_end(&to);
    buf_append(text, "", 1);
}

static struct status_replica
replica_of(const char *ip, unsigned port, enum status_replica_state state)
{
    struct status_replica replica = { .port = port, .state = state };

    (void)snprintf(replica.ip, sizeof(replica.ip), "%s", ip);
    replica.acked_mono_ms = clock_mono_ms();
    replica.unsent_bytes = 12;
    return replica;
}

TEST(a_server_without_persistence_has_done_nothing_yet)
{
    struct rig *rig = rig_new();
    struct buf text = { 0 };

    write_state(rig, &text);
    has(&text, "bloomery_journal_state{state=\"off\"} 1\n", true);
    has(&text, "bloomery_journal_state{state=\"on\"} 0\n", true);
    has(&text, "bloomery_snapshot_last_ok 1\n", true);
    has(&text, "bloomery_snapshot_last_duration_seconds", false);
    has(&text, "bloomery_connected_replicas 0\n", true);
    has(&text, "bloomery_primary_link_up", false);
    buf_free(&text);
    rig_free(rig);
}

TEST(each_replica_has_one_series)
{
    struct rig *rig = rig_new();
    struct status_figures figures = { .full_syncs = 3 };
    const struct status_replica replicas[] = {
        replica_of("10.0.0.1", 7379, STATUS_ONLINE),
        replica_of("10.0.0.2", 7379, STATUS_SYNCS),
        replica_of("10.0.0.1", 7379, STATUS_WAITS), /* comes again */
    };
    struct buf text = { 0 };
    const char *first;

    rig->service.status = status_new();
    status_publish(rig->service.status, &figures, replicas, 3);
    write_state(rig, &text);
    has(&text, "bloomery_connected_replicas 3\n", true);
    has(&text, "bloomery_replica_online{replica=\"10.0.0.1:7379\"} 1\n", true);
    has(&text, "bloomery_replica_online{replica=\"10.0.0.2:7379\"} 0\n", true);
    has(&text, "bloomery_replica_unsent_bytes{replica=\"10.0.0.2:7379\"} 12\n",
        true);
    has(&text, "bloomery_full_syncs_total 3\n", true);
    first = strstr(text.data, "bloomery_replica_lag_bytes{replica=\"10.0.0.1");
    assert_non_null(first);
    assert_null(
        strstr(first + 1, "bloomery_replica_lag_bytes{replica=\"10.0.0.1"));
    status_free(rig->service.status);
    rig->service.status = NULL;
    buf_free(&text);
    rig_free(rig);
}

TEST(a_replica_shows_its_link)
{
    struct rig *rig = rig_new();
    struct status_figures figures = { .link = STATUS_CONNECTED, .epoch = 7 };
    struct buf text = { 0 };

    rig->service.status = status_new();
    rig->service.role.replica = true;
    rig->service.role.epoch = 7;
    status_publish(rig->service.status, &figures, NULL, 0);
    write_state(rig, &text);
    has(&text, "bloomery_is_replica 1\n", true);
    has(&text, "bloomery_primary_link_up 1\n", true);
    rig->service.role.epoch = 8; /* the figures are of an earlier role */
    write_state(rig, &text);
    has(&text, "bloomery_primary_link_up 0\n", true);
    status_free(rig->service.status);
    rig->service.status = NULL;
    buf_free(&text);
    rig_free(rig);
}

TEST(a_sidecar_shows_its_lease_slots_and_transfers)
{
    struct rig *rig = rig_new();
    struct buf text = { 0 };
    struct sidecar_rig sidecar;

    write_state(rig, &text);
    has(&text, "bloomery_cluster_", false);
    sidecar_rig_init(&sidecar, rig);
    atomic_store(&sidecar.cluster.lease_until_ns,
                 clock_boot_ns() + 3600ULL * 1000000000);
    write_state(rig, &text);
    has(&text, "bloomery_cluster_lease_left_seconds 3599.", true);
    has(&text, "bloomery_cluster_lease_seconds 1.0", true);
    has(&text, "bloomery_cluster_leases_lost_total 5\n", true);
    has(&text, "bloomery_cluster_state_ok 1\n", true);
    has(&text, "bloomery_cluster_slots{state=\"held\"} 6\n", true);
    has(&text, "bloomery_cluster_slots{state=\"missing\"} 1\n", true);
    has(&text, "bloomery_cluster_transfers 2\n", true);
    has(&text, "bloomery_cluster_transfer_age_seconds 6.0", true);
    /* A lease that has run out has nothing left. */
    atomic_store(&sidecar.cluster.lease_until_ns, 1);
    sidecar.cluster.view = NULL;
    write_state(rig, &text);
    has(&text, "bloomery_cluster_lease_left_seconds 0.0", true);
    has(&text, "bloomery_cluster_slots", false);
    buf_free(&text);
    rig_free(rig);
}
