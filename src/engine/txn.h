/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of MULTI and WATCH; EXEC is in command/cmd_txn.c. A session has a
 * txn while it is in MULTI or watches keys. Queued commands own copies of their
 * arguments. Nothing is registered across threads: EXEC compares the versions
 * of the watched keys. Belongs to the session's loop.
 */
#pragma once

#include "engine/request.h"

struct queued {
    const struct command *command;
    unsigned words; /* words of its name */
    size_t argc;
    struct slice *argv; /* the slices, then the bytes */
};

struct watch {
    struct watch *next;
    struct key_version seen;
    uint32_t db;
    uint32_t len;
    char name[];
};

struct txn {
    bool open;    /* MULTI was called */
    bool refused; /* a command could not be queued */
    struct queued *queue;
    size_t count, capacity;
    size_t bytes;     /* of the queue, all arguments and watches */
    uint32_t flags;   /* flags that some command in the queue has */
    uint32_t lacking; /* flags that some command in the queue lacks */
    struct watch *watches;
    uint32_t watch_count;
};

/* Returns whether the session is between MULTI and EXEC. */
bool txn_is_open(const struct session *session);

/* Returns whether the session queues this command instead of running it. */
bool txn_takes(const struct session *session, const struct command *command);

/* Opens the transaction of a session that has none open. Fails with ERR_NOMEM.
 */
MUST_CHECK enum err txn_begin(struct session *session);

/* Queues the command, and replies +QUEUED. Fails with ERR_MULTI_QUEUE,
 * ERR_NOMEM. */
MUST_CHECK enum err txn_queue(struct request *req);

/* Notes that a command was refused, so that EXEC will be refused. */
void txn_refused(struct session *session);

/* Return the flags that any of the queued commands has, and those that all of
 * them have. */
uint32_t txn_flags(const struct session *session);
uint32_t txn_common_flags(const struct session *session);

/* Ends the transaction of a refused EXEC with the reply "EXECABORT Transaction
 * discarded because of: <text>", with the prefix of err before the text, unless
 * the prefix is ERR. */
void txn_abort(struct request *req, enum err err, const char *text);

/* Remembers the version that a key has now. Call it under the key's lock. Fails
 * with ERR_MULTI_QUEUE, ERR_NOMEM. */
MUST_CHECK enum err txn_watch(struct request *req, const struct key *key);
void txn_unwatch(struct session *session);

/* Drops the queue and the watches: for EXEC, DISCARD, RESET and the end of a
 * session. */
void txn_end(struct session *session);
