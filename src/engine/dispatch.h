/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes batches: resolves rows, checks arity, authentication and limits,
 * has runs of one-item commands done together (run.h), takes the locks that the
 * rows name, calls handlers, turns errors into replies, counts, and passes
 * effects on while the stripe is still held. Needs no socket: a session and a
 * buffer will do (tests, benchmarks, replay).
 */
#pragma once

#include "engine/request.h"
#include "proto/stream.h"

struct worker *dispatch_new_worker(struct service *service, unsigned index);
void dispatch_free_worker(struct worker *worker);

/* Executes the batch's commands from `first` on, in order, and appends the
 * replies. Returns the first that is not done: short of the batch's count when
 * the session closes, when a handler paused (session->again is set), when
 * LOOP_FLUSH_BYTES of replies have gathered, or when clock_mono_ns has passed
 * until_ns (UINT64_MAX: never). At least one command or run is done, however
 * late it is: to parse a large one may take longer than a turn; unless there
 * is something to wait for first (session->parked is set). worker->hold is the
 * position that the replies have to wait for, 0 for none. */
uint32_t dispatch_batch(struct worker *worker, struct session *session,
                        const struct batch *batch, uint32_t first,
                        uint64_t until_ns, struct buf *out);

/* ---- for txn.c and run.c ------------------------------------------------- */

/* Fills a request for a command that was resolved (words of the name). */
void dispatch_prepare(struct request *req, const struct command *command,
                      unsigned words, const struct slice *argv, size_t argc);

/* Runs a checked command whose locks are held, and appends its reply: what
 * the handler wrote, or its error. ERR_AGAIN is passed on; any other error was
 * replied to and is returned for the record. */
enum err dispatch_run_locked(struct request *req);

/* Counts a command (calls: 1, or 0 if it is not done yet), and the time since
 * the last count as its. */
void dispatch_count(struct request *req, uint64_t calls);

/* Appends the reply of a refused command and counts it; a refused EXEC ends
 * its transaction. */
void dispatch_refuse(struct request *req, enum err err);

enum { ERROR_TEXT_MAX = 1024 };

/* The text of an error with its %s filled in: as of the request that failed
 * last on this worker. Its detail may quote what a client sent. */
void dispatch_error_text(const struct worker *worker, enum err err,
                         char *ret_text, size_t size);

/* Counts an error reply and remembers it in the worker. */
void dispatch_note_error(struct request *req, enum err err);
