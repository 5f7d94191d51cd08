/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connections of metrics-port: HTTP, one GET or HEAD a connection, on loop
 * 0. No client can hold up the server for long:
 *
 * - A request head has at most HTTP_HEAD_MAX bytes, and its body is dropped.
 * - A connection is cut metrics-timeout seconds after it was accepted, whatever
 *   it has sent or received.
 * - There are at most metrics-max-clients connections. One more closes the
 *   oldest, so that slow clients do not keep others out.
 * - An answer has at most HTTP_BODY_MAX bytes.
 *
 * The page of another site may lead a browser here. Therefore no answer permits
 * another origin to read it, and a client that came in over the loopback
 * interface must name the server by an address or as localhost: a name of that
 * page's choice may point to this machine, too (DNS rebinding).
 */
#pragma once

#include "base/buf.h"
#include "net/loop.h"
#include "proto/http_head.h"

enum { HTTP_BODY_MAX = 8 * 1024 * 1024 };

struct http_reply {
    unsigned status;    /* 200 if the callback leaves it alone */
    const char *type;   /* the media type of the body */
    const char *policy; /* Content-Security-Policy; NULL: allow nothing */
    struct buf body;    /* freed after it is sent */
};

/* Answers a GET or HEAD: fills in the reply. Called on the loop's thread. */
typedef void (*http_answer_fn)(void *ctx, const struct http_head *head,
                               struct http_reply *reply);

struct http_conn;

struct http {
    struct loop *loop; /* NULL: not started */
    http_answer_fn answer;
    void *ctx;
    struct http_conn *first, *last; /* oldest first */
    uint64_t count;
    uv_timer_t timer; /* active while there are connections */
};

void http_start(struct http *http, struct loop *loop, http_answer_fn callback,
                void *ctx);

/* Serves an accepted TCP descriptor, and closes it. denied: protected mode
 * refuses this client, and it is told so. */
void http_open(struct http *http, int fd, bool denied);

/* Sets a reply to an error: a status and a line of text. */
void http_fail(struct http_reply *reply, unsigned status, const char *text);

/* Closes all connections. The loop must still turn, to close the handles. Does
 * nothing if it was not started. */
void http_stop(struct http *http);
