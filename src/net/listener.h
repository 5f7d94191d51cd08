/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Listening sockets: raw descriptors watched by loop 0, which accepts and
 * hands each new descriptor round robin to a loop's mailbox. Spreads evenly
 * and works for unix sockets too, unlike SO_REUSEPORT. Loop 0 only.
 *
 * Some places beyond maxclients are kept for the operator, so that a crowd
 * cannot lock him out: for the admin port, or where there is none for the unix
 * socket. Where a client comes from does not matter: behind a proxy all come
 * from this machine.
 */
#pragma once

#include "net/loop.h"

enum { LISTENERS_MAX = 25, LISTENER_REASON_MAX = 256 };

struct listener {
    uv_poll_t poll;
    int fd;
    bool is_unix, is_admin;
    struct listeners *all;
};

struct listeners {
    struct loop *loops; /* loops[0] accepts */
    unsigned loop_count, next_loop;
    int reserve_fd; /* given up for a moment when descriptors run out */
    unsigned count;
    bool has_admin;
    char unix_path[108];
    struct listener listener[LISTENERS_MAX];
};

struct listen_options {
    const char *bind; /* addresses between blanks; '-' in front: optional */
    unsigned port;    /* 0: no TCP */
    const char *admin_bind; /* likewise, for the operator */
    unsigned admin_port;    /* 0: none */
    const char *unix_path;  /* "": none */
    unsigned unix_mode;
    int backlog;
};

/* Binds and listens, without accepting yet. False with a reason for the
 * operator; nothing is left open then. */
bool listeners_open(struct listeners *all, const struct listen_options *options,
                    char ret_reason[LISTENER_REASON_MAX]);

/* Starts accepting for these loops. */
void listeners_start(struct listeners *all, struct loop *loops,
                     unsigned loop_count);

/* Closes the sockets and removes the unix path; handles end with loop 0. */
void listeners_close(struct listeners *all);
