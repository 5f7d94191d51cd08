/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Listening sockets: raw descriptors that loop 0 watches. It accepts, and posts
 * each new descriptor round robin to a loop's mailbox. That spreads clients
 * evenly and works for unix sockets too, unlike SO_REUSEPORT. Loop 0 only.
 *
 * Some places beyond maxclients are reserved for the operator, so that many
 * clients cannot lock the operator out: for the admin port or, where there is
 * none, for the unix socket. The client's address does not matter, since behind
 * a proxy all clients come from one machine.
 *
 * The clients of metrics-port are not posted: loop 0 serves them (http.h).
 */
#pragma once

#include "net/loop.h"

struct http;

enum { LISTENERS_MAX = 49, LISTENER_REASON_MAX = 256 };

struct listener {
    uv_poll_t poll;
    int fd;
    bool is_unix, is_admin, is_tls, is_metrics;
    struct listeners *all;
};

/* The kinds of sockets. They differ in what their clients speak, or in who the
 * clients are. */
enum listener_kind {
    LISTENER_PLAIN,
    LISTENER_TLS,
    LISTENER_ADMIN,
    LISTENER_METRICS,
    LISTENER_UNIX
};
enum { LISTENER_KINDS = LISTENER_UNIX + 1 };

struct listeners {
    struct loop *loops; /* loops[0] accepts */
    unsigned loop_count, next_loop;
    int reserve_fd; /* a spare, closed for a moment when descriptors run out */
    unsigned count;
    bool has_admin, has_metrics;
    bool given[LISTENER_KINDS]; /* sockets of this kind that the service manager
                                   has opened */
    struct http *http; /* serves metrics-port; set before the start if there are
                          such listeners */
    char unix_path[108];
    struct listener listener[LISTENERS_MAX];
};

struct listen_options {
    /* Addresses separated by blanks. One that begins with '-' is left out if
     * this machine does not have it. */
    const char *bind;
    unsigned port;            /* 0: no plain TCP */
    unsigned tls_port;        /* at the same addresses; 0: no TLS */
    const char *admin_bind;   /* addresses for the operator */
    unsigned admin_port;      /* 0: none */
    const char *metrics_bind; /* addresses for HTTP */
    unsigned metrics_port;    /* 0: none */
    const char *unix_path;    /* "": none */
    unsigned unix_mode;
    const char *unix_group; /* a name; "" or NULL: the system's choice */
    int backlog;
    /* Sockets that listen already, opened by the service manager: descriptors
     * from the first one on. Each has one of the ports above, or the path, and
     * replaces the sockets that would be opened for that. */
    int given_first;
    unsigned given_count;
};

/* Binds and listens, without accepting yet. On failure returns false with a
 * reason for the operator, and leaves nothing open. */
bool listeners_open(struct listeners *all, const struct listen_options *options,
                    char ret_reason[LISTENER_REASON_MAX]);

/* Starts accepting for these loops. */
void listeners_start(struct listeners *all, struct loop *loops,
                     unsigned loop_count);

/* Closes the sockets and removes the unix path. Loop 0 must still turn, to
 * close the handles. */
void listeners_close(struct listeners *all);
