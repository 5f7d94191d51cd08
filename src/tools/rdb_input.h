/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the bytes of an RDB, and its basic parts: lengths and strings. Counts
 * offsets, sums the checksum, and keeps the bytes of one value. All functions
 * return false after a failure, which is described in the input.
 */
#pragma once

#include "base/buf.h"

/* Gives the next bytes, at least one; they stay valid until the next call.
 * False: there are no more. */
struct rdb_source {
    bool (*next)(void *ctx, struct slice *ret_bytes);
    void *ctx;
};

enum rdb_status {
    RDB_OK,
    RDB_DAMAGED,
    RDB_UNKNOWN, /* a type or an operation of a later version */
    RDB_CUT,     /* the bytes end too early */
    RDB_NOMEM,
    RDB_STOPPED, /* the visitor stopped the reading */
};

enum { RDB_WHY_MAX = 192 };
struct rdb_input {
    const struct rdb_source *source;
    struct slice bytes; /* bytes of the source that are not read yet */
    const char *summed; /* the checksum covers everything before this */
    uint64_t offset;    /* offset of `bytes` */
    uint64_t crc;
    struct buf value; /* what was read while `keeps` */
    bool keeps;
    enum rdb_status status;
    uint64_t failed_at;
    char why[RDB_WHY_MAX]; /* one English clause, without the file's name */
};

/* Describes a failure and returns false. */
__attribute__((format(printf, 4, 5))) bool rdb_fail(struct rdb_input *input,
                                                    enum rdb_status status,
                                                    uint64_t offset,
                                                    const char *format, ...);

/* Returns the checksum of everything that was read. */
uint64_t rdb_sum(struct rdb_input *input);

bool rdb_take(struct rdb_input *input, void *to, size_t len);
bool rdb_skip(struct rdb_input *input, uint64_t len);
bool rdb_take_length(struct rdb_input *input, uint64_t *ret_length);

/* Reads a string. With a buffer, appends its text. If the text exceeds the
 * limit of the buffer, it is skipped, and the buffer has failed. */
bool rdb_take_string(struct rdb_input *input, struct buf *to);
