/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What metrics-port serves: /metrics for Prometheus, the status page at / and
 * its figures at /status.json. /livez answers if loop 0 turns, and /readyz
 * answers 503 and the reason where --ping=ready would fail. Loop 0.
 *
 * Answers with figures, and the one to /readyz, are kept for a moment and given
 * to all clients that ask. So many or hostile clients cost no more than a few.
 */
#pragma once

struct server;
struct web;

struct web *web_new(struct server *server);
void web_free(struct web *web); /* NULL is fine */

/* Adds a point to the curves of the page, and looks at the filters that have
 * metrics of their own, each when it is due. Call it every 100 ms. */
void web_tick(struct web *web);

/* web_start() begins to serve, before the listeners start. web_stop() ends
 * that, while the loop still turns. */
void web_start(struct web *web);
void web_stop(struct web *web);
