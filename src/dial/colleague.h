/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asks the daemon beside another node of the cluster one question: dials, logs
 * in as replicas do (masteruser, masterauth, tls-replication), sends one
 * command and gives its reply to the caller. Links are kept for the next
 * question. Loop 0.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"
#include "proto/answers.h"

#include <stdint.h>

struct colleagues;
struct link;
struct link_hooks;
struct loop0;

/* colleague_dial() dials another server as replicas do (tls-replication).
 * colleague_login() logs in there if masterauth is set: then *ret_logs_in is
 * set, and the first reply is to AUTH. False: there is no memory; close the
 * link. */
struct link *colleague_dial(const struct loop0 *loop0, const char *host,
                            unsigned port, unsigned timeout_ms,
                            const struct link_hooks *link_hooks, void *ctx);
MUST_CHECK bool colleague_login(const struct loop0 *loop0, struct link *link,
                                bool *ret_logs_in);

/* Called with the answer, borrowed for the call; NULL: there was none, and
 * reason says why. */
typedef void (*colleague_fn)(void *ctx, uint64_t number,
                             const struct answer *answer, const char *reason);

/* Makes the object without any links, and starts its timer on loop 0. */
struct colleagues *colleagues_new(const struct loop0 *loop0, colleague_fn done,
                                  void *ctx);

/* Ends all questions without calling done; call it before the loop ends. */
void colleagues_stop(struct colleagues *colleagues);
void colleagues_free(struct colleagues *colleagues); /* NULL is fine */

/* Asks a server. `done` is called within timeout_ms, and not before this
 * returns. command: a command in RESP, which is copied. */
void colleagues_ask(struct colleagues *colleagues, uint64_t number,
                    const char *host, unsigned port, struct slice command,
                    unsigned timeout_ms);
