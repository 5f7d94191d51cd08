/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tells the log that slots of our node have no data, and which servers are
 * silent that may have it: at a change, and each minute while it lasts. Loop 0.
 */
#pragma once

#include <stdint.h>

struct cluster_view;

struct sidecar_report {
    unsigned missing, silent; /* as the log says */
    uint64_t said_ms;         /* when the log said so */
};

/* view: NULL before the first one. */
void sidecar_report_look(struct sidecar_report *report,
                         const struct cluster_view *view, uint64_t now_ms);
