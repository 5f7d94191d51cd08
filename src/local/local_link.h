/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connection of one copy (local/local_copy.h), for a thread that may wait:
 * it dials, logs in, carries what the copy says and hears, and dials again
 * after a fault, in growing pauses. A server that is silent for long is given
 * up.
 *
 * The copy's clock goes on while the machine is suspended (clock_boot_ns()),
 * and counts milliseconds. One thread.
 */
#pragma once

#include "base/slice.h"
#include "client/client.h"
#include "local/local_copy.h"

struct tls_contexts;

/* A server. The texts are borrowed. */
struct local_address {
    const char *host, *port;  /* host: or the path of a socket */
    struct tls_contexts *tls; /* NULL: plain */
    struct slice user;        /* empty: the default user */
    struct slice password;    /* data is NULL: none */
    unsigned database;
};

enum { LOCAL_LINK_ERROR_MAX = 256 };

struct local_link {
    const struct local_address *address;
    struct local_copy *copy;
    struct client client;
    int wake_fd;          /* ends a step when it is readable; -1: none */
    uint64_t dial_at_ms;  /* 0: it is connected */
    uint64_t pause_ms;    /* before the next time */
    unsigned connections; /* so far */
    char error[LOCAL_LINK_ERROR_MAX]; /* the last one; no secrets in it */
};

void local_link_init(struct local_link *link,
                     const struct local_address *address,
                     struct local_copy *copy, int wake_fd);
void local_link_close(struct local_link *link);

/* Returns the copy's time. */
uint64_t local_link_now_ms(void);

/* Says and hears what there is, and waits for more until then, at the
 * longest. A dial may take longer. */
void local_link_step(struct local_link *link, uint64_t until_ms);
