/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The addresses of a host. The system's resolver may take half a minute, and
 * nothing stops it: so threads of its own call it, at most four, and whoever
 * loses patience leaves it to itself. Neither a loop's end nor the process's
 * waits for it, as both would for libuv's pool of threads.
 */
#pragma once

#include <netdb.h>
#include <stdbool.h>

struct lookup;

/* done is called once, by the thread, and must not block or call back. An
 * address in digits needs no thread: it is there when this returns, and done
 * is not called. NULL: no memory, or no thread. */
struct lookup *lookup_new(const char *host, unsigned port,
                          void (*done)(void *ctx), void *ctx);

/* Any time: done is not called after it. What was found ends with it. */
void lookup_free(struct lookup *lookup);

/* Of one that is done: 0 or a code of getaddrinfo, and what it found. */
bool lookup_is_done(struct lookup *lookup);
int lookup_error(const struct lookup *lookup);
const struct addrinfo *lookup_found(const struct lookup *lookup);
