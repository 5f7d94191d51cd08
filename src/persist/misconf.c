/* SPDX-License-Identifier: BSD-3-Clause */
#include "persist/misconf.h"

#include "base/log.h"
#include "base/run_clock.h"
#include "persist/persist_state.h"

#include <string.h>

/* A disk that takes up to this long for a write or a sync is slow, but not
 * faulty, however short misconf-after is. With everysec a group waits for up to
 * a second even on a good disk. */
static const uint64_t SLOW_NS = 2000000000;

/* Returns since when a write or a sync has been under way; 0: there is none. */
static uint64_t
silent_since(const struct persist_conf *conf,
             const struct journal_status *status)
{
    uint64_t sync_ns = conf->syncs ? status->unsynced_mono_ns : 0;
    uint64_t write_ns = status->write_mono_ns;

    return sync_ns == 0 || (write_ns > 0 && write_ns < sync_ns) ? write_ns
                                                                : sync_ns;
}

bool
misconf_is_stuck(const struct persist_conf *conf,
                 const struct journal_status *status)
{
    uint64_t since_ns =
        status->faulted || status->holding ? status->fault_mono_ns
        : status->barred_mono_ns > 0       ? status->barred_mono_ns
                                           : silent_since(conf, status);
    uint64_t limit_ns = conf->misconf_after_ns;

    if (!status->faulted && limit_ns < SLOW_NS) {
        limit_ns = SLOW_NS;
    }
    return (status->on || status->closing) && !status->building &&
           since_ns > 0 && run_clock_since(since_ns) >= limit_ns &&
           (status->faulted || status->released < status->appended);
}

void
misconf_update(struct persist *persist, const struct persist_conf *conf,
               const struct journal_status *status)
{
    bool misconf = misconf_is_stuck(conf, status);
    enum err refusal = misconf ? ERR_MISCONF_JOURNAL
                       : conf->stop_writes && conf->save.count > 0 &&
                               !persist->info.last_save_ok
                           ? ERR_MISCONF_SAVE
                           : OK;

    if (misconf != atomic_load(&persist->gives_up)) {
        atomic_store(&persist->gives_up, misconf);
        persist->options.hooks.moved(persist->options.hooks.ctx);
        log_write(misconf ? LOG_ERROR : LOG_NOTICE, "persist.journal",
                  misconf ? "refused writes, the journal cannot be written"
                          : "accepts writes again",
                  "error=\"%s\"",
                  status->faulted              ? strerror(status->error)
                  : status->barred_mono_ns > 0 ? "the role is not written"
                                               : "the disk does not answer");
    }
    if (refusal != persist->refused_writes) {
        persist->refused_writes = refusal;
        persist->options.hooks.refusal(persist->options.hooks.ctx, refusal,
                                       refusal);
    }
}
