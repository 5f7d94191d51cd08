/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The figures of persistence for INFO.
 */
#pragma once

#include "persist/child.h"
#include "persist/journal.h"

/* More than 30 fields: figures, in the order of INFO.
 * NOLINTNEXTLINE(*Padding): there are two of them */
struct persist_info {
    /* loading */
    bool loading;
    uint64_t loading_started_s, loading_total_bytes, loading_loaded_bytes;
    uint64_t loading_eta_s;
    double loading_percent;
    uint64_t load_keys, load_ms; /* of the last load */
    /* snapshots */
    uint64_t changes; /* since the last save */
    bool saving;
    bool syncing;  /* a child writes a snapshot for replicas */
    bool adopting; /* data of another server is not on the disk yet */
    uint64_t last_save_s;
    bool last_save_ok;
    int64_t last_save_seconds, current_save_seconds; /* -1: none */
    int64_t current_sync_seconds;
    uint64_t saves, save_failures; /* in a row */
    uint64_t save_cow_bytes;       /* of the last one */
    /* the child that runs; zeros without one */
    struct child_figures child;
    double child_percent;
    uint64_t fork_us; /* of the last fork */
    uint64_t forks;
    /* the journal */
    bool appendonly, rewriting, rewrite_scheduled, last_rewrite_ok;
    int64_t last_rewrite_seconds, current_rewrite_seconds;
    uint64_t rewrites, rewrite_failures; /* in a row */
    uint64_t rewrites_begun;             /* up to this ticket */
    uint64_t rewrite_cow_bytes;
    uint64_t journal_bytes, base_bytes; /* all files; at the last rewrite */
    uint64_t manifest_generation;
    bool misconf;
    struct journal_status journal;
    uint64_t collapsed_pages; /* huge pages restored after forks */
};
