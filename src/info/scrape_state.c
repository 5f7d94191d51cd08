/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistence, replication and the cluster. A figure that has no value yet (a
 * save that was never made) is left out.
 */
#include "info/scrape.h"

#include "base/clock.h"
#include "info/info_cluster.h"
#include "info/info_persist.h"
#include "info/links.h"
#include "persist/persist_info.h"

#include <stdio.h>

/* ---- persistence --------------------------------------------------------- */

static void
write_states(struct expose *to, const struct journal_status *journal)
{
    static const char *const states[] = { "on",      "off",     "building",
                                          "holding", "closing", "faulted" };
    const char *now = info_persist_journal_state(journal);

    expose_family(to, "journal_state", EXPOSE_GAUGE, "",
                  "1 for the state in which the journal is.");
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        expose_label(to, "state", slice_of(states[i]));
        expose_count(to, strcmp(states[i], now) == 0);
    }
}

static void
write_journal(struct expose *to, const struct persist_info *info)
{
    const struct journal_status *journal = &info->journal;

    write_states(to, journal);
    expose_one(to, "journal_misconf", "",
               "1 while writes are refused because the journal cannot be "
               "written.",
               info->misconf);
    expose_one(to, "journal_size", "bytes",
               "Bytes of all files of the journal.", info->journal_bytes);
    expose_one(to, "journal_base_size", "bytes",
               "The same after the last rewrite.", info->base_bytes);
    expose_one_ns(to, "journal_unsynced_age",
                  "How long the oldest change that is not on the disk waits.",
                  info_persist_unsynced_ns(journal));
    expose_one_ns(to, "journal_fsync_last", "How long the last sync took.",
                  journal->sync_ns_last);
    expose_one_ns(to, "journal_fsync_max", "How long the longest sync took.",
                  journal->sync_ns_max);
    expose_one_total(to, "journal_syncs", "", "Syncs of the journal.",
                     journal->syncs);
    expose_one_total(to, "journal_write_errors", "",
                     "Writes of the journal that failed.",
                     journal->write_errors);
    expose_one_total(to, "journal_fsync_errors", "",
                     "Syncs of the journal that failed.", journal->sync_errors);
    expose_one(to, "journal_rewrite_in_progress", "",
               "1 while the journal is rewritten.", info->rewriting);
    expose_one(to, "journal_last_rewrite_ok", "",
               "1 if the last rewrite succeeded, or there was none.",
               info->last_rewrite_ok);
    if (info->dir_available > 0) {
        expose_one(to, "dir_available", "bytes",
                   "Space on the disk of dir that the server may use.",
                   info->dir_available);
    }
    expose_one(to, "log_position", "bytes",
               "Where the log ends: the replication offset.",
               journal->appended);
}

static void
write_snapshots(const struct service *service, struct expose *to,
                const struct persist_info *info)
{
    uint64_t before =
        atomic_load_explicit(&service->saves_before, memory_order_relaxed);

    expose_one(
        to, "snapshot_last_timestamp", "seconds",
        "When the last save succeeded, or the server started, in seconds "
        "since 1970.",
        info->last_save_s);
    expose_one(to, "snapshot_last_ok", "",
               "1 if the last save succeeded, or there was none.",
               info->last_save_ok);
    expose_one(to, "snapshot_in_progress", "", "1 while a snapshot is written.",
               info->saving);
    expose_one(to, "snapshot_failures_in_a_row", "",
               "Saves that have failed since the last one that succeeded.",
               info->save_failures);
    expose_one(to, "snapshot_changes", "", "Changes since the last save.",
               info->changes);
    expose_one_total(to, "snapshots", "", "Saves that succeeded.",
                     info->saves - before);
    if (info->last_save_seconds >= 0) {
        expose_one(to, "snapshot_last_duration", "seconds",
                   "How long the last save took.",
                   (uint64_t)info->last_save_seconds);
    }
}

void
scrape_persistence(const struct service *service, struct expose *expose)
{
    struct persist_info info;

    info_persist_get(service, &info);
    write_journal(expose, &info);
    write_snapshots(service, expose, &info);
}

/* ---- replication --------------------------------------------------------- */

static void
write_primary_link(struct expose *to, const struct status_figures *figures)
{
    expose_one(to, "primary_link_up", "",
               "On a replica: 1 while it follows its primary.",
               figures->link == STATUS_CONNECTED);
    expose_one(to, "primary_sync_in_progress", "",
               "On a replica: 1 while a snapshot of its primary arrives.",
               figures->link == STATUS_SYNC);
    expose_one_ns(to, "primary_last_heard",
                  "On a replica: how long its primary has been silent.",
                  clock_ms_since(figures->heard_mono_ms) * 1000000);
}

static bool
same_name(const struct status_replica *a, const struct status_replica *b)
{
    return a->port == b->port && strcmp(a->ip, b->ip) == 0;
}

/* Gives the samples the replica's name. False: an earlier replica has the same
 * name, and a series must not come twice. */
static bool
label_replica(struct expose *to, const struct links *links, size_t index,
              const char *name)
{
    for (size_t i = 0; i < index; i++) {
        if (same_name(&links->replicas[i], &links->replicas[index])) {
            return false;
        }
    }
    expose_label(to, "replica", slice_of(name));
    return true;
}

static void
write_replicas(struct expose *to, const struct links *links, uint64_t position)
{
    static const struct {
        const char *name, *unit, *help;
    } families[] = {
        { "replica_online", "", "1 if the replica follows the log." },
        { "replica_lag", "bytes",
          "How much of the log the replica has not acknowledged." },
        { "replica_silent", "seconds",
          "How long ago the replica last acknowledged." },
        { "replica_unsent", "bytes",
          "Bytes for the replica that its socket has not taken." },
    };

    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        expose_family(to, families[f].name, EXPOSE_GAUGE, families[f].unit,
                      families[f].help);
        for (size_t i = 0; i < links->count; i++) {
            const struct status_replica *replica = &links->replicas[i];
            struct links_replica figures;

            links_measure(replica, position, &figures);
            if (!label_replica(to, links, i, figures.name)) {
                continue;
            }
            const uint64_t value[] = { figures.online, figures.lag_bytes,
                                       figures.silent_ms * 1000000,
                                       replica->unsent_bytes };

            if (f == 2) {
                expose_ns(to, value[f]);
            } else {
                expose_count(to, value[f]);
            }
        }
    }
}

void
scrape_replication(const struct service *service, struct expose *expose)
{
    uint64_t position = info_persist_position(service);
    struct links links;

    if (links_get(service, &links) != OK) {
        expose->text->failed = true;
        return;
    }
    expose_one(expose, "is_replica", "", "1 on a replica, 0 on a primary.",
               service->role.replica);
    if (service->role.replica) {
        write_primary_link(expose, &links.figures);
    }
    expose_one(expose, "connected_replicas", "", "Replicas in any state.",
               links.count);
    write_replicas(expose, &links, position);
    expose_one(expose, "behind_replicas", "",
               "1 on a primary that restarted with older data than a replica "
               "has.",
               service_is_behind(service));
    expose_one(expose, "data_absent", "",
               "1 on a replica without data of its primary.",
               atomic_load(&service->absent));
    expose_one_total(expose, "full_syncs", "",
                     "Full synchronizations of replicas.",
                     links.figures.full_syncs);
    expose_one_total(expose, "partial_syncs", "",
                     "Replicas that went on where they were.",
                     links.figures.partial_syncs);
    links_free(&links);
}

/* ---- the cluster --------------------------------------------------------- */

static void
write_slots(struct expose *to, const struct info_cluster *figures)
{
    expose_family(to, "cluster_slots", EXPOSE_GAUGE, "",
                  "Slots by what this server does with them.");
    for (unsigned i = 0; i < SLOT_STATES; i++) {
        expose_label(to, "state",
                     slice_of(info_cluster_state_name((enum slot_state)i)));
        expose_count(to, figures->slots[i]);
    }
    expose_one(to, "cluster_slots_assigned", "",
               "Slots of the cluster that a node owns.", figures->assigned);
    expose_one(to, "cluster_slots_owned", "",
               "Slots of the node beside this server, or of its primary.",
               figures->owned);
    expose_one(to, "cluster_slots_waiting", "",
               "Slots whose data keeps this server from following the primary "
               "of its node, since no other server has it.",
               figures->waiting);
    expose_one(to, "cluster_silent_servers", "",
               "Servers that did not answer this one last.", figures->silent);
}

static void
write_neighbour(struct expose *to, const struct info_cluster *figures)
{
    expose_one(to, "cluster_neighbour_up", "",
               "1 while the node beside this server answers.",
               figures->neighbour_up);
    expose_one_ns(to, "cluster_lease_left",
                  "How long slots may still be served if the node says nothing "
                  "more.",
                  figures->lease_left_ms * 1000000);
    expose_one_ns(to, "cluster_lease", "How long a lease is.",
                  figures->lease_ms * 1000000);
    expose_one_total(to, "cluster_leases_lost", "",
                     "Leases that ended before the node answered again.",
                     figures->leases_lost);
    expose_one_total(to, "cluster_views", "",
                     "Changes of the cluster that clients were shown.",
                     figures->views);
}

void
scrape_cluster(const struct service *service, struct expose *expose)
{
    struct info_cluster figures;

    if (!info_cluster_get(service, &figures)) {
        return;
    }
    write_neighbour(expose, &figures);
    if (figures.known) {
        expose_one(expose, "cluster_state_ok", "",
                   "1 while the node says that the cluster is well.",
                   figures.ok);
        expose_one(expose, "cluster_is_primary", "",
                   "1 beside a primary, 0 beside a replica.", figures.primary);
        expose_one(expose, "cluster_epoch", "", "The epoch of the cluster.",
                   figures.current_epoch);
        expose_one(expose, "cluster_nodes", "", "Nodes of the cluster.",
                   figures.nodes);
        write_slots(expose, &figures);
    }
    expose_one(expose, "cluster_transfers", "",
               "Transfers of slots to this server that run or wait.",
               figures.transfers.count);
    expose_one_ns(expose, "cluster_transfer_age",
                  "How long the transfer that runs has taken; 0: none runs.",
                  figures.transfers.age_ms * 1000000);
}
