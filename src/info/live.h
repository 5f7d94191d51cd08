/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The figures of the status page as JSON. Counts only rise, until CONFIG
 * RESETSTAT: the page computes rates from two documents, so that the server
 * remembers nothing about its viewers; only the curves come from the server.
 * Loop 0, inside a section of the gate.
 */
#pragma once

#include "base/buf.h"
#include "bloom/ranking.h"
#include "engine/service.h"
#include "measure/trend.h"

/* What the document shows beside the figures of the service. */
struct live {
    const struct ranking *ranking;
    const struct trend *trend;
    bool names; /* whether names of filters may be shown */
};

/* Appends the document. */
void live_write(const struct service *service, const struct live *live,
                struct buf *text);

/* Returns the page, which is src/info/status.html: it is complete, but has
 * LIVE_PAGE_MARK wherever the nonce of the answer belongs. */
#define LIVE_PAGE_MARK "@NONCE@"
struct slice live_page(void);
