/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The figures of the status page as JSON. Counts only rise, until CONFIG
 * RESETSTAT: the page computes rates from two documents, so that the server
 * remembers nothing about who watches; only its curves are the server's. Loop
 * 0, inside a section of the gate.
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
    bool names; /* whether those of filters may be shown */
};

/* Appends the document. */
void live_write(const struct service *service, const struct live *live,
                struct buf *text);

/* Returns the page, which is src/info/status.html: complete, but for
 * LIVE_PAGE_MARK wherever the nonce of the answer belongs. */
#define LIVE_PAGE_MARK "@NONCE@"
struct slice live_page(void);
