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
#include "local/local_sentinel.h"

struct pollfd;
struct tls_contexts;

/* A server. The texts are borrowed. */
struct local_address {
    const char *host, *port;         /* host: or the path of a socket */
    struct local_sentinel *sentinel; /* names host and port; NULL: none */
    struct tls_contexts *tls;        /* NULL: plain */
    struct slice user;               /* empty: the default user */
    struct slice password;           /* data is NULL: none */
    unsigned database;
};

enum { LOCAL_LINK_ERROR_MAX = 256, LOCAL_LINK_HOST_MAX = 256 };

struct local_link {
    const struct local_address *address;
    struct local_copy *copy;
    bool replica; /* the server may be one; else its role is asked for */
    bool role_asked;
    uint64_t role_at_ms; /* it is asked for again */
    struct client client;
    int wake_fd; /* ends a wait when it is readable, also a dial; -1: none */
    /* The server that has the key, if another one said so (MOVED). */
    char moved_host[LOCAL_LINK_HOST_MAX], moved_port[8];
    unsigned named; /* what the Sentinel had said when it was looked at */
    char server[LOCAL_LINK_HOST_MAX + 8]; /* that was dialled last */
    unsigned moves;                       /* since a copy was loaded */
    uint64_t dial_at_ms;                  /* 0: it is connected */
    uint64_t pause_ms;                    /* before the next time */
    unsigned connections;                 /* so far */
    unsigned cuts; /* connections that ended or failed, so far */
    enum bloomery_local_code fault;   /* the last one */
    char error[LOCAL_LINK_ERROR_MAX]; /* its text; no secrets in it */
};

void local_link_init(struct local_link *link,
                     const struct local_address *address,
                     struct local_copy *copy, int wake_fd);
void local_link_close(struct local_link *link);

/* Returns the copy's time. */
uint64_t local_link_now_ms(void);

/* For a thread with several links: dials if it is time to, and says what there
 * is. Sets what poll is to wait for, and returns until when, at the longest. A
 * dial may take longer. */
uint64_t local_link_prepare(struct local_link *link, struct pollfd *ret_poll);

/* Takes what the server has sent. A fault ends the connection; the next one
 * follows after a pause. */
void local_link_react(struct local_link *link, const struct pollfd *polled);

/* Does all this for one link, and waits until then, at the longest. */
void local_link_step(struct local_link *link, uint64_t until_ms);
