/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the server measures about itself: rates and peaks, ten times a second,
 * and slow events outside of commands. Loop 0.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct server;
struct service;

/* Measures, and warns if memory has ended or the clock was set. Call it at each
 * tick of loop 0's timer. */
void watch_tick(struct server *server);

/* Records how long a slice of removing expired keys took. more: the slice was
 * cut short, and another one follows soon. */
void watch_reclaimed(const struct service *service, uint64_t took_ns,
                     bool more);
