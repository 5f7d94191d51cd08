/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Logs that slots of our node have no data, and which silent servers may have
 * it: at each change, and every minute while data is missing. Loop 0.
 */
#pragma once

#include <stdint.h>

struct cluster_view;

struct sidecar_report {
    unsigned missing, silent; /* as last logged */
    uint64_t said_ms;         /* the last log line, or look with none missing */
};

/* Logs the state of this view, if that is due. view: NULL before the first one.
 */
void sidecar_report_look(struct sidecar_report *report,
                         const struct cluster_view *view, uint64_t now_ms);
