/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An owner of a link, which records the calls of its hooks and acts in them as
 * a test wants, and sockets of each kind.
 */
#pragma once

#include "net/link.h"
#include "net/link_take.h"

#include "rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>

enum owner_hook { IN_NOTHING, IN_OPENED, IN_BYTES, IN_DRAINED, IN_CLOSED };

struct owner {
    struct link *link; /* NULL: closed */
    struct buf got;
    unsigned opened, calls, drained, closed;
    int error;
    char reason[128];
    bool inside; /* a function of the link's is running: no hook may */

    size_t use;               /* at most so many bytes a call; 0: all */
    size_t whole;             /* only pieces of so many bytes; 0: any */
    bool pauses;              /* in `bytes` */
    bool yields;              /* likewise, and ends the pause at once */
    enum owner_hook closes;   /* the link, in this hook */
    enum owner_hook leaves;   /* link_close_after, in this hook */
    struct owner *closes_too; /* another one's, there too */
};

void owner_close(struct owner *owner);

extern const struct link_hooks owner_hooks;

bool owner_send(struct owner *owner, struct slice bytes);

void owner_pause(struct owner *owner, bool paused);

void owner_free(struct owner *owner);

/* ---- sockets ------------------------------------------------------------- */

enum kind { BY_UNIX, BY_TCP, BY_PIPE, KINDS };

/* Opens a listening socket; for port 0, any port, which it returns. */
int listen_on(const char *host, unsigned *port, int backlog);

/* [0] is for the link, [1] for the test; of a pipe [0] is the read end. */
void ends_of(enum kind kind, int ret_ends[2]);

/* Gives the link one end and returns the other; small ones buffer little. */
struct peer owner_take(struct rig *rig, struct owner *owner, enum kind kind,
                       bool small);

/* The same bytes for each place of a stream. */
void pattern_fill(char *to, uint64_t place, size_t len);

void assert_pattern(struct slice bytes, uint64_t place);
