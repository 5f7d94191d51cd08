/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the fields of Redis 7.0.15 first, in its order, so that monitors find
 * them. Nothing is forked, so the fields about copies of memory are 0. Then
 * come Bloomery's own fields. A server without persistence (in tests) shows the
 * figures of a server that has done nothing yet.
 */
#include "info/info_persist.h"

#include "base/clock.h"
#include "info/info_put.h"
#include "persist/figures.h"
#include "persist/persist.h"

static void
put_status(struct buf *text, const char *name, bool ok)
{
    buf_printf(text, "%s:%s\r\n", name, ok ? "ok" : "err");
}

void
info_persist_get(const struct service *service, struct persist_info *ret_info)
{
    if (service->persist != NULL) {
        persist_get_info(service->persist, ret_info);
        /* Commands are refused a moment longer than the files are read. */
        ret_info->loading = atomic_load(&service->loading);
        return;
    }
    memset(ret_info, 0, sizeof(*ret_info));
    ret_info->loading = atomic_load(&service->loading);
    ret_info->last_save_ok = true;
    ret_info->last_rewrite_ok = true;
    ret_info->last_save_s = service->started_ms / 1000;
    ret_info->last_save_seconds = ret_info->current_save_seconds = -1;
    ret_info->last_rewrite_seconds = ret_info->current_rewrite_seconds = -1;
}

static void
put_writing(struct buf *text, const struct persist_info *info)
{
    info_put_number(text, "loading", info->loading);
    info_put_number(text, "async_loading", 0);
    info_put_number(text, "current_cow_peak", 0);
    info_put_number(text, "current_cow_size", 0);
    info_put_number(text, "current_cow_size_age", 0);
    buf_printf(text, "current_fork_perc:%.2f\r\n", info->writing_percent);
    info_put_number(text, "current_save_keys_processed", info->writing.keys);
    info_put_number(text, "current_save_keys_total", info->writing.keys_total);
}

/* Seconds of -1 mean "never" or "not now". */
static void
put_snapshot(const struct service *service, struct buf *text,
             const struct persist_info *info)
{
    info_put_number(text, "rdb_changes_since_last_save", info->changes);
    info_put_number(text, "rdb_bgsave_in_progress", info->saving);
    info_put_number(text, "rdb_last_save_time", info->last_save_s);
    put_status(text, "rdb_last_bgsave_status", info->last_save_ok);
    info_put_signed(text, "rdb_last_bgsave_time_sec", info->last_save_seconds);
    info_put_signed(text, "rdb_current_bgsave_time_sec",
                    info->current_save_seconds);
    info_put_since(text, "rdb_saves", info->saves, &service->saves_before);
    info_put_number(text, "rdb_last_cow_size", 0);
    info_put_number(text, "rdb_last_load_keys_expired",
                    0); /* expired keys are loaded, too */
    info_put_number(text, "rdb_last_load_keys_loaded", info->load_keys);
}

static void
put_rewrite(const struct service *service, struct buf *text,
            const struct persist_info *info)
{
    info_put_number(text, "aof_enabled", info->appendonly);
    info_put_number(text, "aof_rewrite_in_progress", info->rewriting);
    info_put_number(text, "aof_rewrite_scheduled", info->rewrite_scheduled);
    info_put_signed(text, "aof_last_rewrite_time_sec",
                    info->last_rewrite_seconds);
    info_put_signed(text, "aof_current_rewrite_time_sec",
                    info->current_rewrite_seconds);
    put_status(text, "aof_last_bgrewrite_status", info->last_rewrite_ok);
    info_put_since(text, "aof_rewrites", info->rewrites,
                   &service->rewrites_before);
    info_put_number(text, "aof_rewrites_consecutive_failures",
                    info->rewrite_failures);
    put_status(text, "aof_last_write_status", !info->journal.faulted);
    info_put_number(text, "aof_last_cow_size", 0);
    info_put_number(text, "module_fork_in_progress", 0);
    info_put_number(text, "module_fork_last_cow_size", 0);
}

/* A sync never delays a write here, so aof_delayed_fsync is 0. */
static void
put_files(struct buf *text, const struct persist_info *info)
{
    const struct journal_status *journal = &info->journal;

    info_put_number(text, "aof_current_size", info->journal_bytes);
    info_put_number(text, "aof_base_size", info->base_bytes);
    info_put_number(text, "aof_pending_rewrite", info->rewrite_scheduled);
    info_put_number(text, "aof_buffer_length", journal->queue_bytes);
    info_put_number(text, "aof_pending_bio_fsync",
                    journal->synced < journal->written);
    info_put_number(text, "aof_delayed_fsync", 0);
}

static void
put_loading(struct buf *text, const struct persist_info *info)
{
    info_put_number(text, "loading_start_time", info->loading_started_s);
    info_put_number(text, "loading_total_bytes", info->loading_total_bytes);
    info_put_number(text, "loading_loaded_bytes", info->loading_loaded_bytes);
    buf_printf(text, "loading_loaded_perc:%.2f\r\n", info->loading_percent);
    info_put_number(text, "loading_eta_seconds", info->loading_eta_s);
}

const char *
info_persist_journal_state(const struct journal_status *journal)
{
    if (journal->faulted) {
        return "faulted";
    }
    if (journal->holding) {
        return "holding";
    }
    if (journal->closing) {
        return "closing";
    }
    if (journal->building) {
        return "building";
    }
    return journal->on ? "on" : "off";
}

uint64_t
info_persist_unsynced_ns(const struct journal_status *journal)
{
    return journal->unsynced_mono_ns == 0
               ? 0
               : clock_mono_ns() - journal->unsynced_mono_ns;
}

/* Returns for how long replies to writes have been held: until a base is done,
 * or until the role is on the disk (journal_bar). 0: they are not held. */
static uint64_t
held_ms(const struct journal_status *journal)
{
    uint64_t since_ns = journal->holding || journal->faulted
                            ? journal->fault_mono_ns
                            : journal->barred_mono_ns;

    return since_ns > 0 ? (clock_mono_ns() - since_ns) / 1000000 + 1 : 0;
}

/* info->released is UINT64_MAX while no reply has to wait. */
static void
put_journal(struct buf *text, const struct persist_info *info)
{
    const struct journal_status *journal = &info->journal;
    uint64_t age_ns = info_persist_unsynced_ns(journal);

    buf_printf(text, "journal_state:%s\r\n",
               info_persist_journal_state(journal));
    info_put_number(text, "journal_misconf", info->misconf);
    info_put_number(text, "journal_held_ms", held_ms(journal));
    info_put_number(text, "journal_held_max_ms", info->held_max_ms);
    info_put_number(text, "journal_position", journal->appended);
    info_put_number(text, "journal_written_position", journal->written);
    info_put_number(text, "journal_released_position",
                    journal->released == UINT64_MAX ? journal->appended
                                                    : journal->released);
    info_put_number(text, "journal_synced_position", journal->synced);
    info_put_number(text, "journal_sequence", journal->sequence);
    info_put_number(text, "journal_synced_sequence", journal->synced_sequence);
    info_put_number(text, "journal_unsynced_age_ms", age_ns / 1000000);
    info_put_number(text, "journal_file_number", journal->file_number);
    info_put_number(text, "journal_manifest_generation",
                    info->manifest_generation);
    info_put_number(text, "journal_syncs", journal->syncs);
    info_put_number(text, "journal_fsync_usec_last",
                    journal->sync_ns_last / 1000);
    info_put_number(text, "journal_fsync_usec_max",
                    journal->sync_ns_max / 1000);
    info_put_number(text, "aof_write_errors", journal->write_errors);
    info_put_number(text, "aof_fsync_errors", journal->sync_errors);
    info_put_number(text, "aof_suspect_files", journal->suspect_files);
}

static void
put_error(struct buf *text, const char *name, int error)
{
    info_put_text(text, name, error != 0 ? strerror(error) : "");
}

static void
put_rest(struct buf *text, const struct persist_info *info)
{
    static const char *const parks[] = { [PARKS_NOTHING] = "none",
                                         [PARKS_REMAKES] = "remakes",
                                         [PARKS_WRITES] = "writes" };

    put_error(text, "rdb_last_bgsave_error", info->last_save_error);
    put_error(text, "aof_last_bgrewrite_error", info->last_rewrite_error);
    put_error(text, "aof_last_write_error",
              info->journal.faulted ? info->journal.error : 0);
    info_put_number(text, "snapshot_failures", info->save_failures);
    info_put_number(text, "current_save_bytes", info->writing.bytes);
    info_put_number(text, "current_save_holds", info->writing.holds);
    info_put_number(text, "current_save_rounds", info->writing.rounds);
    info_put_number(text, "current_save_spool_bytes",
                    info->writing.spool_bytes);
    buf_printf(text, "current_save_parks:%s\r\n", parks[info->parks]);
    info_put_number(text, "last_save_holds", info->written.holds);
    info_put_number(text, "last_save_rounds", info->written.rounds);
    info_put_number(text, "last_save_spool_bytes", info->written.spool_bytes);
    info_put_number(text, "last_load_time_ms", info->load_ms);
}

void
info_persist_write(const struct service *service, struct buf *text)
{
    struct persist_info info;

    info_persist_get(service, &info);
    put_writing(text, &info);
    put_snapshot(service, text, &info);
    put_rewrite(service, text, &info);
    if (info.appendonly) {
        put_files(text, &info);
    }
    if (info.loading) {
        put_loading(text, &info);
    }
    put_journal(text, &info);
    put_rest(text, &info);
}

void
info_persist_write_forks(struct buf *text)
{
    info_put_number(text, "latest_fork_usec", 0);
    info_put_number(text, "total_forks", 0);
}

void
info_persist_reset(struct service *service)
{
    struct persist_info info;

    info_persist_get(service, &info);
    atomic_store(&service->saves_before, info.saves);
    atomic_store(&service->rewrites_before, info.rewrites);
}

uint64_t
info_persist_position(const struct service *service)
{
    struct persist_info info;

    info_persist_get(service, &info);
    return info.journal.appended;
}
