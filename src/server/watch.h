/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the server notes about itself: rates and peaks, ten times a second, and
 * what took long although no command did. Loop 0.
 */
#pragma once

#include "server/server.h"

/* With each tick of loop 0's timer. */
void watch_tick(struct server *server);

/* A slice of removing keys whose time was over took so long; more: it was cut
 * off, and another one follows at once. */
void watch_reclaimed(const struct service *service, uint64_t took_ns,
                     bool more);
