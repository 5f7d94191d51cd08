/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The parts of executing a command that dispatch and EXEC share: filling a
 * request, calling the handler, error replies, counting.
 */
#pragma once

#include "engine/run.h"

/* Fills a request for one command of a run. */
void execute_prepare(struct request *req, const struct run *run,
                     uint32_t index);

/* Runs the handler of a checked command whose locks are held, and appends its
 * reply or the error that it returned. Returns OK, ERR_AGAIN if the handler has
 * paused, or the error that was the reply. */
enum err execute_locked(struct request *req);

/* Counts the commands of these runs, which have the same row, as done. The time
 * since the last count is shared among them equally. The request is that of the
 * last run. */
void execute_count(struct request *req, const struct run *runs, size_t count);

/* Counts the time since the last count for a command that has paused. A command
 * that ran in several parts is timed by the sum of its parts. */
void execute_count_part(struct request *req);

/* Appends the reply of a refused command and counts it. A refused EXEC ends its
 * transaction, with EXECABORT unless it is a redirect. */
void execute_refuse(struct request *req, enum err err);

enum { ERROR_TEXT_MAX = 1024 };

/* Writes the text of an error with its %s filled in from worker->detail, which
 * may quote what a client sent. */
void execute_error_text(const struct worker *worker, enum err err,
                        char *ret_text, size_t size);

/* Counts an error reply and remembers it in the worker. */
void execute_note_error(struct request *req, enum err err);
