/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CONFIG REWRITE: writes rewritten.conf (conf/conf_rewrite.h) into the data
 * directory, whose path is fixed at the start. A crash leaves the old file or
 * the new one, never a part of it. A thread does the disk's work, one job at a
 * time; the caller asks for its end. Any thread.
 */
#pragma once

#include "conf/conf.h"

struct conf_file;
struct conf_file_job;

/* given: the values without rewritten.conf; borrowed, and read by
 * conf_file_begin(). The thread calls done at the end of each job. */
struct conf_file *conf_file_new(const struct conf *given,
                                void (*done)(void *ctx), void *ctx);
void conf_file_free(struct conf_file *file); /* waits for a job that runs */

/* Begins to write what conf has now. ERR_AGAIN: another job runs (the caller
 * tries again); with `wait`, waits for its end instead. ERR_NOMEM. */
MUST_CHECK enum err conf_file_begin(struct conf_file *file,
                                    const struct conf *conf, bool wait,
                                    struct conf_file_job **ret_job);
bool conf_file_is_done(const struct conf_file_job *job);
void conf_file_wait(struct conf_file *file, const struct conf_file_job *job);

/* Returns why a job that is done wrote nothing, or NULL. */
const char *conf_file_error(const struct conf_file_job *job);

/* Releases the caller's part of the job, done or not. */
void conf_file_forget(struct conf_file_job *job);
