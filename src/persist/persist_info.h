/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The figures of persistence for INFO.
 */
#pragma once

#include "journal/journal.h"
#include "persist/persist_options.h"
#include "snapshot/walker.h"

/* The struct has more than 30 fields, since it lists figures, in the order of
 * INFO. NOLINTNEXTLINE(*Padding): there are two of them */
struct persist_info {
    /* loading */
    bool loading;
    uint64_t loading_started_s, loading_total_bytes, loading_loaded_bytes;
    uint64_t loading_eta_s;
    double loading_percent;
    uint64_t load_keys, load_ms; /* keys and time of the last load */
    /* snapshots: */
    uint64_t changes; /* changes since the last save */
    bool saving;
    bool syncing;  /* a snapshot for replicas is being written */
    bool adopting; /* data of another server is not on the disk yet */
    uint64_t last_save_s;
    bool last_save_ok;
    int last_save_error, last_rewrite_error; /* errno; 0: the last one did not
                                                fail */
    int64_t last_save_seconds, current_save_seconds; /* -1: none */
    int64_t current_sync_seconds;
    uint64_t saves, save_failures; /* save_failures: in a row */
    /* figures of the full state that is being written, and of the last one */
    struct walker_figures writing, written;
    double writing_percent;
    uint64_t walks;
    enum persist_parks parks;
    /* the journal: */
    bool appendonly, rewriting, rewrite_scheduled, last_rewrite_ok;
    int64_t last_rewrite_seconds, current_rewrite_seconds;
    uint64_t rewrites, rewrite_failures; /* rewrite_failures: in a row */
    uint64_t rewrites_begun; /* the last ticket whose rewrite has begun */
    /* Bytes of all files, and of the base at the last rewrite. */
    uint64_t journal_bytes, base_bytes;
    uint64_t manifest_generation;
    uint64_t dir_available; /* bytes; 0 until it is known */
    bool misconf;
    uint64_t held_max_ms; /* how long replies may wait before -MISCONF */
    struct journal_status journal;
};
