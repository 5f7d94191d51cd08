/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The parts of executing a command that dispatch, runs and EXEC share: filling
 * a request, calling the handler, error replies, counting.
 */
#pragma once

#include "engine/request.h"

/* Fills a request for a command that was resolved (words of the name). */
void execute_prepare(struct request *req, const struct command *command,
                     unsigned words, const struct slice *argv, size_t argc);

/* Runs a checked command whose locks are held, and appends its reply: what
 * the handler wrote, or its error. ERR_AGAIN is passed on; any other error was
 * replied to and is returned for the record. */
enum err execute_locked(struct request *req);

/* Counts a command (calls: 1, or 0 if it is not done yet), and the time since
 * the last count as its. */
void execute_count(struct request *req, uint64_t calls);

/* Appends the reply of a refused command and counts it; a refused EXEC ends
 * its transaction. */
void execute_refuse(struct request *req, enum err err);

enum { ERROR_TEXT_MAX = 1024 };

/* The text of an error with its %s filled in: as of the request that failed
 * last on this worker. Its detail may quote what a client sent. */
void execute_error_text(const struct worker *worker, enum err err,
                        char *ret_text, size_t size);

/* Counts an error reply and remembers it in the worker. */
void execute_note_error(struct request *req, enum err err);
