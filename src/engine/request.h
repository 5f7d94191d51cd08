/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a handler sees. A handler parses its arguments, acts, and appends one
 * reply, or returns an error and leaves the reply to dispatch (which drops
 * what the handler wrote). It takes no locks: dispatch has taken those that
 * the command's row names. All of it belongs to the executing loop.
 */
#pragma once

#include "engine/service.h"
#include "engine/session.h"
#include "engine/table.h"
#include "keyspace/keyspace.h"
#include "proto/args.h"
#include "proto/reply.h"

/* What a write did, in the words that repeat it anywhere: the command as it
 * came, nothing, or an argv that the handler put together. */
enum effect_kind { EFFECT_NONE, EFFECT_VERBATIM, EFFECT_REWRITTEN };

struct effect {
    enum effect_kind kind;
    struct slice *argv; /* REWRITTEN: in the worker's arena */
    size_t argc, argc_max;
};

struct request {
    const struct command *command;
    struct session *session;
    struct worker *worker;
    struct service *service;
    struct keyspace *keyspace;
    const struct slice *argv; /* name included */
    size_t argc;
    struct args args; /* behind the name and the subcommand */
    struct reply *reply;
    struct key key; /* the first key of a row that has keys */
    uint64_t now_ms;
    uint64_t dirty;  /* changes made; 0 leaves no effect */
    int64_t counted; /* names, by all pieces so far of a row with .splits */
    struct effect effect;
    bool obey; /* repeats a log: limits, defaults and dialect do not apply */
};

/* Sets the text for an error whose row has a %s (worker->detail) and returns
 * the error. */
__attribute__((format(printf, 3, 4))) enum err
request_fail(struct request *req, enum err err, const char *format, ...);

/* Fails with "wrong number of arguments", where only the handler finds it. */
enum err request_arity_error(struct request *req);

/* The key at an argv position, with its hash. */
struct key request_key(const struct request *req, size_t position);

/* The number of a database, as SELECT, MOVE and COPY read it. */
MUST_CHECK enum err request_parse_db(struct request *req, struct slice text,
                                     uint32_t *ret_db);

/* A handler that would run long saves where it is and returns ERR_AGAIN: its
 * connection waits, the loop goes on, and the handler is called again with the
 * same arguments. state is freed with free_fn when the command or the
 * connection ends. Only where request_may_pause says so (not in EXEC). */
bool request_may_pause(const struct request *req);
void request_pause(struct request *req, void *state, void (*free_fn)(void *));

/* The same for a handler that waits for something to happen: it is called
 * again when its loop is woken or has ticked (10 ms), and its client counts as
 * blocked until then. */
void request_wait(struct request *req, void *state, void (*free_fn)(void *));

/* The same again, for what CLIENT UNBLOCK may end: when it is called again, the
 * handler asks request_unblocked first. */
void request_block(struct request *req, void *state, void (*free_fn)(void *));

/* How CLIENT UNBLOCK has ended it: SESSION_UNBLOCK_TIMEOUT (it is as if the
 * time were over), _ERROR (ERR_UNBLOCKED is to be returned), or SESSION_RUNS:
 * it has not. */
enum session_block request_unblocked(struct request *req);

/* The state of the earlier call, or NULL at the first. */
void *request_resumed(const struct request *req);

/* Starts a rewritten effect of at most argc_max words, before anything is
 * changed, since it can fail (ERR_NOMEM). Words are borrowed until dispatch
 * has passed them on; request_arena_copy keeps the few that are put together
 * here (2 KB in all). Nothing happens while nobody listens to effects. */
MUST_CHECK enum err request_effect_begin(struct request *req, size_t argc_max);
void request_effect_add(struct request *req, struct slice word);
struct slice request_arena_copy(struct request *req, struct slice bytes);
