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
    const char *host, *port;         /* host may be the path of a socket */
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
    bool replica; /* the server may be a replica; else its role is checked */
    bool role_asked;
    uint64_t role_at_ms; /* when the role is checked again */
    struct client client;
    int wake_fd; /* ends a wait or a dial when it is readable; -1: none */
    /* The server that has the key, if another one said so (MOVED). */
    char moved_host[LOCAL_LINK_HOST_MAX], moved_port[8];
    unsigned named;                       /* sentinel->named at the last look */
    char server[LOCAL_LINK_HOST_MAX + 8]; /* the server that was last dialled */
    unsigned moves;       /* MOVED replies since a copy was loaded */
    uint64_t dial_at_ms;  /* 0: it is connected */
    uint64_t pause_ms;    /* pause before the next dial */
    unsigned connections; /* connections so far */
    unsigned cuts;        /* connections that ended or failed, so far */
    enum bloomery_local_code fault;   /* the last fault */
    char error[LOCAL_LINK_ERROR_MAX]; /* text of the fault, without secrets */
};

void local_link_init(struct local_link *link,
                     const struct local_address *address,
                     struct local_copy *copy, int wake_fd);
void local_link_close(struct local_link *link);

/* Returns the copy's time. */
uint64_t local_link_now_ms(void);

/* For a thread with several links: dials if that is due, and sends what is to
 * be sent. Sets what poll must wait for, and returns until when, at the
 * longest. A dial may take longer. */
uint64_t local_link_prepare(struct local_link *link, struct pollfd *ret_poll);

/* Takes what the server has sent. A fault ends the connection; the next dial
 * follows after a pause. */
void local_link_react(struct local_link *link, const struct pollfd *polled);

/* Does all this for one link, and waits until `until_ms` at the longest. */
void local_link_step(struct local_link *link, uint64_t until_ms);
