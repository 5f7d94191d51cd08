/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CONFIG REWRITE: puts the options in force into the file that the server was
 * started with; where that cannot be written, or there is none, into a file of
 * its own in `dir` (conf/conf_load.h), which the next start reads as well. A
 * crash leaves the old options or the new ones, never a part of them:
 *
 *   1. dir/rewritten.conf, if there is one: all that differs from the old file
 *   2. the file, replaced in one step
 *   3. dir/rewritten.conf goes: it says nothing that the file does not
 *
 * A disk's work, so a thread does it, one job at a time; the caller asks for
 * its end. Any thread.
 */
#pragma once

#include "conf/conf.h"

struct conf_file;
struct conf_file_job;

/* path: of the file, NULL or "" if there is none; borrowed. done is called by
 * the thread at the end of each job. */
struct conf_file *conf_file_new(const char *path, void (*done)(void *ctx),
                                void *ctx);
void conf_file_free(struct conf_file *file); /* waits for a job that runs */

/* Begins to write the values that conf has now. ERR_AGAIN: another job is not
 * done yet (the caller tries again), unless `wait`, which waits for its end.
 * ERR_NOMEM. */
MUST_CHECK enum err conf_file_begin(struct conf_file *file,
                                    const struct conf *conf, bool wait,
                                    struct conf_file_job **ret_job);
bool conf_file_is_done(const struct conf_file_job *job);
void conf_file_wait(struct conf_file *file, const struct conf_file_job *job);

/* Of a job that is done: why nothing was written, or NULL. */
const char *conf_file_error(const struct conf_file_job *job);

/* The caller wants nothing more of it, done or not. */
void conf_file_forget(struct conf_file_job *job);
