/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What metrics-port serves: /metrics for Prometheus, the status page at / and
 * its figures at /status.json. /livez says that loop 0 turns, and /readyz says
 * 503 and the reason where --ping=ready would fail. Loop 0.
 *
 * An answer is kept for a moment and given to all who ask, so that many or
 * hostile clients cost no more than a few.
 */
#pragma once

struct server;
struct web;

struct web *web_new(struct server *server);
void web_free(struct web *web); /* NULL is fine */

/* Adds to the curves that the page shows, when it is time. Each 100 ms. */
void web_tick(struct web *web);

/* Begins to serve, before the listeners start; ends, while the loop turns. */
void web_start(struct web *web);
void web_stop(struct web *web);
