/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All metrics of the server, as Prometheus reads them: the figures of INFO
 * under names of their own (expose.h). Any loop, inside a section of the gate.
 * Like INFO it adds up counters and visits no key: figures of single filters
 * come from the ranking.
 */
#pragma once

#include "bloom/ranking.h"
#include "engine/service.h"
#include "info/expose.h"

/* Appends the metrics. open: in the form of OpenMetrics. chosen: the filters
 * that have metrics of their own; NULL: none. */
void scrape_write(const struct service *service,
                  const struct ranking_chosen *chosen, bool open,
                  struct buf *text);

/* ---- for scrape.c -------------------------------------------------------- */

void scrape_persistence(const struct service *service, struct expose *expose);
void scrape_replication(const struct service *service, struct expose *expose);
void scrape_cluster(const struct service *service, struct expose *expose);
