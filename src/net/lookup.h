/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looks up the addresses of a host. The system's resolver may take half a
 * minute and cannot be stopped, so at most four threads of this module call it,
 * and a caller may abandon a look-up. A loop and the process can end without
 * waiting for it; with libuv's thread pool they could not.
 */
#pragma once

#include <netdb.h>
#include <stdbool.h>

struct lookup;

/* Starts a look-up. A thread of this module calls `done` once; it must not
 * block, or call a function of this module. An address in digits needs no
 * thread: it is found when this returns, and `done` is not called. Returns NULL
 * without memory or thread. */
struct lookup *lookup_new(const char *host, unsigned port,
                          void (*done)(void *ctx), void *ctx);

/* Frees the look-up and its result, at any time; `done` is not called after it.
 */
void lookup_free(struct lookup *lookup);

/* lookup_error() and lookup_found() are for a look-up that is done: they return
 * 0 or a code of getaddrinfo, and the addresses. */
bool lookup_is_done(struct lookup *lookup);
int lookup_error(const struct lookup *lookup);
const struct addrinfo *lookup_found(const struct lookup *lookup);
