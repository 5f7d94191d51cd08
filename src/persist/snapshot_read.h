/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads snapshots, which are hostile: every section is checked before anything
 * of it is used, fields against what the others imply, sizes before memory is
 * asked for. For the server's start and for bloomery-check: nothing here needs
 * a keyspace. One thread.
 */
#pragma once

#include "base/err.h"
#include "persist/snapshot.h"

#include <bloomery/bloom.h>

enum snapshot_status {
    SNAPSHOT_OK,
    SNAPSHOT_DAMAGED,
    SNAPSHOT_NEWER, /* an intact header of a version not known here */
    SNAPSHOT_IO,    /* error.error is the errno */
    SNAPSHOT_NOMEM,
    SNAPSHOT_STOPPED, /* by the visitor */
};

/* What and where; text is one English sentence without the file's name. */
struct snapshot_error {
    enum snapshot_status status;
    int error;
    uint64_t offset; /* of the section or field that is wrong */
    uint64_t record; /* records before it */
    char text[256];
};

struct snapshot_visitor {
    /* The header, if it is intact, before any filter; false stops the reading.
     * NULL: nobody wants to know. */
    bool (*header)(void *ctx, const struct snapshot_stamp *stamp,
                   uint32_t databases);
    /* Takes the filter over, made in env; false stops the reading, and the
     * visitor has freed it. */
    bool (*filter)(void *ctx, const struct snapshot_record *record,
                   struct bloom *bloom);
    /* For salvage; NULL: damage ends the reading. Called for each damaged
     * stretch [from, to) that was passed over. */
    void (*passed_over)(void *ctx, const struct snapshot_error *error,
                        uint64_t from, uint64_t to);
    void *ctx;
};

/* A snapshot that comes as a stream. Fills all of `to`, and waits for it if
 * need be; *ret_len is short at the end of the stream only. 0 or an errno
 * value. */
struct snapshot_source {
    int (*read)(void *ctx, void *to, size_t len, size_t *ret_len);
    void *ctx;
};

/* The header alone. */
MUST_CHECK enum snapshot_status
snapshot_read_stamp(int fd, struct snapshot_stamp *ret_stamp,
                    struct snapshot_error *ret_error);

/* Everything. With passed_over, OK also if something was: then every filter
 * whose sections are all intact was visited. progress may be NULL. */
MUST_CHECK enum snapshot_status snapshot_read(
    int fd, const struct bloom_env *env, const struct snapshot_visitor *visitor,
    struct snapshot_progress *progress, struct snapshot_error *ret_error);

/* The same of a stream, up to its end, without passed_over. The sizes of
 * filters are the stream's word until their bytes have come: env is what limits
 * them. What source says of an error is error->error. */
MUST_CHECK enum snapshot_status snapshot_read_source(
    const struct snapshot_source *source, const struct bloom_env *env,
    const struct snapshot_visitor *visitor, struct snapshot_progress *progress,
    struct snapshot_error *ret_error);
