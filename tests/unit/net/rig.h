/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One loop driven by hand, clients that are made up, and peers at the other
 * end of their sockets. The loop runs on the test's thread, one turn at a
 * time, so that a test decides who moves; what has to be waited for has a
 * deadline. Made-up clients answer a few words:
 *
 *   PAUSE n   asks to be called again n times, then replies +PAUSE|n
 *   FILL n    n bytes of the client's pattern
 *   BUSY n    works for n microseconds, then replies
 *   BYE       replies and closes when all is sent
 *   DIE       closes at once
 *   LINGER    closes at once, and then asks to be called again
 *   NOMEM     a reply that found no memory
 *   HOLD n    output waits for n from here on
 *   PARK      parks until the rig opens, then replies
 *   ROOM      parks for room until the rig opens, then replies
 *   other     +its arguments joined by |
 */
#pragma once

#include "../test.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/conn.h"
#include "net/loop_run.h"
#include "net/pending.h"
#include "net/registry.h"
#include "net/serve.h"
#include "net/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    DEADLINE_MS = 20000,
    SMALL_SOCKET = 4608,
    FAKE_REPLIES_MAX = 64 * 1024,
    RIG_GAUGES = 5
};

struct fake;

struct rig {
    struct net_limits limits;
    struct loop_env env;
    struct loop loop;
    struct registry *registry;
    struct usage usage;
    _Atomic uint64_t released;
    atomic_bool gives_up;
    _Atomic uint64_t log_end;
    _Atomic unsigned turn_ends;
    _Atomic unsigned accepted, closed;
    _Atomic unsigned accepted_on[8]; /* by the index of the loop */
    bool refuse;                     /* accept answers NULL */
    bool one_by_one;                 /* execute returns after each command */
    _Atomic bool opens;              /* PARK and ROOM go on */
    _Atomic bool has_room;           /* ROOM is to be called again */
    struct conn *last;               /* accepted last, on the rig's own loop */
    struct conn *victim;             /* closed by KILL */
    /* A test's own words: true if it has dealt with the command. */
    bool (*takes)(struct fake *fake, const struct slice *argv, size_t argc);
    void *takes_ctx;
    int64_t gauges[RIG_GAUGES]; /* before the rig */
    uint64_t used;
};

struct fake {
    struct conn conn; /* first: a conn is its fake */
    struct rig *rig;
    unsigned pauses; /* left of the command that paused */
    bool is_paused;
    uint64_t executed, calls;
    uint64_t filled; /* bytes of the pattern sent so far */
};

struct fake *fake_of(struct conn *conn);

/* ---- made-up clients ----------------------------------------------------- */

/* The byte at a place of a client's pattern: no short period, so that lost,
 * repeated and swapped pieces show. */
char pattern_at(uint64_t place);

void fake_fill(struct fake *fake, struct buf *out, size_t bytes);

void fake_echo(struct buf *out, const struct slice *argv, size_t argc);

/* ---- the rig ------------------------------------------------------------- */

struct rig *rig_new(void);

/* Ends the loop, and finds what was left behind: clients, gauges, memory. */
void rig_free(struct rig *rig);

void rig_turn(struct rig *rig);

/* Turns the loop until cond holds; evaluates cond in each turn. */
#define rig_until(rig, cond)                                                   \
    do {                                                                       \
        uint64_t give_up_ = clock_mono_ns() + DEADLINE_MS * 1000000ULL;        \
                                                                               \
        while (!(cond)) {                                                      \
            if (clock_mono_ns() > give_up_) {                                  \
                fail_msg("waited in vain for %s", #cond);                      \
            }                                                                  \
            rig_turn(rig);                                                     \
        }                                                                      \
    } while (0)

/* Turns the loop so often that anything that is ready has been dealt with. */
void rig_settle(struct rig *rig);

/* ---- peers --------------------------------------------------------------- */

struct peer {
    int fd;
    bool ended; /* end of file, or a reset */
    struct buf got;
};

struct peer peer_of(int fd);

/* A new client on the rig's loop and its other end. small: sockets that take
 * little, so that writers have to wait. */
struct peer peer_new(struct rig *rig, bool small);

void peer_free(struct peer *peer);

/* Takes what is there; true if that was anything. */
bool peer_take(struct peer *peer);

/* Takes all there is; true if `bytes` or more have come altogether. */
bool peer_has(struct peer *peer, size_t bytes);

bool peer_is_cut(struct peer *peer);

/* Sends it all; the loop turns while the socket is full. */
void peer_send(struct rig *rig, struct peer *peer, struct slice bytes);

void peer_send_text(struct rig *rig, struct peer *peer, const char *text);

/* Waits for exactly this and nothing behind it. */
void peer_expect(struct rig *rig, struct peer *peer, const char *text);

/* Appends a command as clients send it: words between blanks. */
void write_command(struct buf *to, const char *text);
