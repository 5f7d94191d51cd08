/* SPDX-License-Identifier: BSD-3-Clause */
#include "sidecar/sidecar_report.h"

#include "base/log.h"
#include "info/info_cluster.h"

enum {
    AGAIN_MS = 60 * 1000,
    CHANGE_MS = 1000 /* least time between lines; logs no shorter gaps */
};

static void
say_missing(const struct cluster_view *view)
{
    struct buf names = { 0 };

    info_cluster_silent(view, &names);
    buf_append(&names, "", 1);
    log_warn("server.sidecar", "slots have no data",
             "slots=%u of=%u silent_servers=%u silent=\"%s\" "
             "consequence=\"CLUSTERDOWN Slot data not available\" help=\"%s\"",
             view->count[SLOT_MISSING], view->owned, view->silent,
             names.failed ? "?" : names.data,
             view->fallen > 0
                 ? "other servers hold slots at a higher epoch than that of "
                   "this server's node: CLUSTER BUMPEPOCH at the node, or "
                   "SIDECAR FORCE-SERVE"
             : view->silent > 0
                 ? "start the silent servers, which may have the data"
                 : "bring the server back that had the data, or declare it "
                   "lost with SIDECAR FORCE-SERVE");
    buf_free(&names);
}

void
sidecar_report_look(struct sidecar_report *report,
                    const struct cluster_view *view, uint64_t now_ms)
{
    unsigned missing = view != NULL ? view->count[SLOT_MISSING] : 0;
    bool other;

    if (missing == 0) {
        if (report->missing > 0) {
            log_notice("server.sidecar", "all slots have their data again",
                       "slots=%u", view != NULL ? view->owned : 0);
        }
        report->missing = report->silent = 0;
        report->said_ms = now_ms;
        return;
    }
    other = missing != report->missing || view->silent != report->silent;
    if (now_ms - report->said_ms >= (uint64_t)(other ? CHANGE_MS : AGAIN_MS)) {
        report->missing = missing;
        report->silent = view->silent;
        report->said_ms = now_ms;
        say_missing(view);
    }
}
