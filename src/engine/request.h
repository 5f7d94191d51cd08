/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a handler gets. A handler parses its arguments, acts, and appends one
 * reply, or returns an error, for which dispatch drops what the handler wrote
 * and writes the error's text. It takes no locks: dispatch has taken those that
 * the command's row names. Belongs to the executing loop.
 */
#pragma once

#include "access/table.h"
#include "engine/service.h"
#include "engine/session.h"
#include "keyspace/keyspace.h"
#include "proto/args.h"
#include "proto/reply.h"

/* The effect of a write: the words that repeat it on any server. It is nothing,
 * the command as it came, or an argv that the handler has put together. */
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
    const struct slice *argv; /* all words, the name included */
    size_t argc;
    struct args args; /* the words after the name and the subcommand */
    struct reply *reply;
    struct key key; /* the first key of a row that has keys */
    uint64_t now_ms;
    uint64_t dirty;  /* changes made; 0: there is no effect */
    uint64_t rights; /* the rules (rights_now) by which all names of this piece
                        of a command were checked; 0: they must be checked */
    int64_t counted; /* names that all pieces so far have counted, in a row with
                        .splits */
    struct effect effect;
    bool obey; /* it replays a log: limits, defaults and dialect do not apply */
};

/* Sets the text for an error whose row in errors.def has a %s (worker->detail),
 * and returns the error. */
__attribute__((format(printf, 3, 4))) enum err
request_fail(struct request *req, enum err err, const char *format, ...);

/* Fails with "wrong number of arguments", for the case that only the handler
 * notices it. */
enum err request_arity_error(struct request *req);

/* Returns the key at an argv position, with its hash. */
struct key request_key(const struct request *req, size_t position);

/* Parses the number of a database, as SELECT, MOVE and COPY do. */
MUST_CHECK enum err request_parse_db(struct request *req, struct slice text,
                                     uint32_t *ret_db);

/* A handler that would run long saves its state with request_pause and returns
 * ERR_AGAIN. The loop serves other connections, and calls the handler again
 * with the same arguments. The state is freed with free_fn when the command or
 * the connection ends. Allowed only if request_may_pause (not in EXEC). */
bool request_may_pause(const struct request *req);
void request_pause(struct request *req, void *state, void (*free_fn)(void *));

/* Returns whether a handler has worked long enough for one piece (since its
 * loop read the clock) and may pause. */
bool request_is_late(const struct request *req);

/* Returns whether a handler that has done this number of steps must pause for
 * other clients. The first piece is short: many clients may ask at once. */
bool request_piece_is_over(const struct request *req, uint32_t steps);

/* Ends one piece of a handler: saves its state for the next call if err is
 * ERR_AGAIN, else frees it. bytes: the size of a large state. Returns err. */
enum err request_end_piece(struct request *req, enum err err, void *state,
                           void (*free_fn)(void *), size_t bytes);

/* Pauses a handler that waits for an event. The handler is called again when
 * its loop is woken or has ticked (10 ms); until then its client counts as
 * blocked. */
void request_wait(struct request *req, void *state, void (*free_fn)(void *));

/* Does the same as request_wait, for a wait that CLIENT UNBLOCK may end. When
 * it is called again, the handler asks request_unblocked first. */
void request_block(struct request *req, void *state, void (*free_fn)(void *));

/* Returns how CLIENT UNBLOCK has ended the wait: SESSION_UNBLOCK_TIMEOUT (as if
 * its time-out had passed), SESSION_UNBLOCK_ERROR (the handler returns
 * ERR_UNBLOCKED), or SESSION_RUNS: it has not. */
enum session_block request_unblocked(struct request *req);

/* Returns the state of the earlier call, or NULL at the first call. */
void *request_resumed(const struct request *req);

/* Starts a rewritten effect of at most argc_max words. Call it before anything
 * is changed, since it can fail with ERR_NOMEM. The words are borrowed until
 * dispatch has passed the effect on; request_arena_copy copies those that the
 * handler makes (2 KB in all, and 12 bytes for every two words, a place and an
 * item: keyspace/redo.h). Does nothing while effects go nowhere. */
MUST_CHECK enum err request_effect_begin(struct request *req, size_t argc_max);
void request_effect_add(struct request *req, struct slice word);
void request_effect_add_number(struct request *req, uint64_t number);
struct slice request_arena_copy(struct request *req, struct slice bytes);
