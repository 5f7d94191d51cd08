/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One copy of a filter, which <bloomery/local.h> calls struct bloomery_local:
 * the rules (local/local_copy.h), the connection (local/local_link.h), what
 * readers see (local/local_view.h), and what status and events tell.
 *
 * A thread of the library (local/local_server.h) drives the copy from
 * local_member_begin to local_member_end. Other threads look up items, read the
 * status and close the copy. The program and that thread have a reference each;
 * giving back the last one frees the copy.
 */
#pragma once

#include "local/local_copy.h"
#include "local/local_link.h"
#include "local/local_view.h"

#include <pthread.h>

struct local_server;

struct bloomery_local {
    struct local_place place;
    char apart[64]; /* keeps what follows, which changes often, out of the line
                       of cache that readers use */

    /* Only the library's thread uses these: */
    struct local_copy *copy;
    struct local_link link;
    struct local_address address;
    struct bloom_env env;
    const struct bloom_env *lower; /* core's default, which env calls */
    struct local_facts told;       /* the last facts; pointers are invalid */
    unsigned told_cuts;            /* link.cuts at the last look */
    unsigned told_lost; /* link.connections when a cut was last reported */
    uint64_t slack_ns;

    /* These do not change: */
    uint64_t max_stale_ms;
    void (*on_event)(void *context, enum bloomery_local_event event,
                     const char *text);
    void *context;

    /* The mutex guards these: */
    pthread_mutex_t mutex;
    pthread_cond_t news;
    struct bloomery_local_status known;
    bool answered; /* the copy was loaded, or the key is missing */
    bool hopeless; /* trying again will not help */

    pthread_mutex_t telling; /* held while on_event runs */
    _Atomic(bool) closed;
    _Atomic(unsigned) references;
    struct local_server *server; /* its server; NULL: no thread has it */
    char key[];
};

/* Makes a copy. The options are complete: no member stands for a default. NULL:
 * no memory. */
struct bloomery_local *
local_member_new(const struct bloomery_local_options *options,
                 const char *server);

/* Gives back one reference. */
void local_member_release(struct bloomery_local *member);

/* Frees a copy that was given to no thread. */
void local_member_abandon(struct bloomery_local *member);

/* Closes the copy: all answers are "unknown" from now on, and on_event is not
 * called any more. */
void local_member_close(struct bloomery_local *member);

/* Waits until the copy is answered, hopeless or closed, or time is over. */
enum bloomery_local_code local_member_wait(struct bloomery_local *member,
                                           uint64_t timeout_ms);
void local_member_status(struct bloomery_local *member,
                         struct bloomery_local_status *ret_status);

/* For the library's thread: begin, look after each step, and end. */
void local_member_begin(struct bloomery_local *member,
                        const struct local_address *address, int wake_fd);
void local_member_look(struct bloomery_local *member); /* after each step */
void local_member_end(struct bloomery_local *member);

/* Closes a copy in a forked child: the thread is only in the parent. */
void local_member_forked(struct bloomery_local *member);
