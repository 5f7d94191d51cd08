/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finds the primary that Sentinels name. It asks one Sentinel every second, and
 * turns to the next one when that Sentinel does not answer, knows no primary,
 * or has named a useless server. A struct local_sentinel belongs to a thread
 * that polls; its functions block only while a name is looked up.
 */
#pragma once

#include "client/client.h"
#include "local/local_url.h"

struct pollfd;
struct tls_contexts;

enum { LOCAL_SENTINEL_HOST = 256, LOCAL_SENTINEL_ERROR = 200 };

struct local_sentinel {
    const struct local_url *url; /* borrowed */
    struct tls_contexts *tls;    /* NULL: plain */
    struct client client;
    unsigned tries;       /* Sentinels that were dialled or given up so far */
    unsigned failures;    /* failures since a Sentinel has answered */
    uint64_t due_ms;      /* the next question, or the end of the wait */
    bool asked, admitted; /* an answer is due; AUTH was sent */
    bool doubted;         /* the next Sentinel must be asked */
    char host[LOCAL_SENTINEL_HOST], port[16]; /* empty: no primary is known */
    unsigned named;                   /* how often the answer has changed */
    char error[LOCAL_SENTINEL_ERROR]; /* the last failure, if all have failed */
};

void local_sentinel_init(struct local_sentinel *sentinel,
                         const struct local_url *url, struct tls_contexts *tls);
void local_sentinel_close(struct local_sentinel *sentinel);

/* Send and receive, as local_link_prepare and local_link_react do. */
uint64_t local_sentinel_prepare(struct local_sentinel *sentinel,
                                uint64_t now_ms, struct pollfd *ret_poll);
void local_sentinel_react(struct local_sentinel *sentinel, uint64_t now_ms,
                          const struct pollfd *polled);

/* Says that the named server does not answer, or is no primary. */
void local_sentinel_doubt(struct local_sentinel *sentinel);
