/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files that commands write and read: CONFIG REWRITE writes rewritten.conf
 * (conf/conf_rewrite.h) into the data directory, whose path is fixed at the
 * start; ACL SAVE writes the aclfile, and ACL LOAD reads it. A path that is a
 * symbolic link stands for the file that it names. A crash leaves the old file
 * or the new one, never a part of it. A thread does the disk's work, one job at
 * a time; the caller asks whether its job is done. Any thread.
 */
#pragma once

#include "base/buf.h"
#include "conf/conf.h"

struct conf_file;
struct conf_file_job;

/* Reads a whole file, on the calling thread. Returns 0 or errno; EFBIG if the
 * file has more than CONF_FILE_MAX bytes. */
enum { CONF_FILE_MAX = 16 * 1024 * 1024 /* bytes */ };
int conf_file_read(const char *path, struct buf *ret_text);

/* Starts the thread. given: the values without rewritten.conf; borrowed, and
 * read by conf_file_begin(). The thread calls done at the end of each job.
 * conf_file_new() itself reads the files that exist, since
 * conf_file_write_again() needs their texts. */
struct conf_file *conf_file_new(const struct conf *given,
                                void (*done)(void *ctx), void *ctx);
void conf_file_free(struct conf_file *file); /* waits for a running job */

/* Begins to write what conf has now. ERR_AGAIN: another job runs (the caller
 * tries again); with `wait`, waits for its end instead. ERR_NOMEM. */
MUST_CHECK enum err conf_file_begin(struct conf_file *file,
                                    const struct conf *conf, bool wait,
                                    struct conf_file_job **ret_job);

/* Work on the text of a file, which the thread does, since it may be long. */
struct conf_file_work {
    /* Makes the text before it is written, or uses the text that was read.
     * False: nothing is written; ctx has the reason. */
    bool (*run)(void *ctx, const char *path, struct buf *text);
    void (*free)(void *ctx); /* called when the job is freed */
    void *ctx;
};

/* Begins to read or write this file, as conf_file_begin() does. Takes over the
 * work if it returns OK. */
MUST_CHECK enum err conf_file_begin_text(struct conf_file *file,
                                         const char *path, bool reads,
                                         const struct conf_file_work *work,
                                         bool wait,
                                         struct conf_file_job **ret_job);

/* Borrows the ctx of a job that is done. */
void *conf_file_ctx(const struct conf_file_job *job);

bool conf_file_is_done(const struct conf_file_job *job);
void conf_file_wait(struct conf_file *file, const struct conf_file_job *job);

/* Begins to write rewritten.conf again, and also the aclfile if it is gone,
 * with the last texts of both. Call it when dir was lost and another directory
 * has taken its place. False: a job runs, or there is no memory; the caller
 * tries again. */
MUST_CHECK bool conf_file_write_again(struct conf_file *file);

/* Returns why a job that is done has failed, or NULL. */
const char *conf_file_error(const struct conf_file_job *job);

/* Releases the caller's part of the job, done or not. */
void conf_file_forget(struct conf_file_job *job);
