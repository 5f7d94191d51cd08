/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where a reader of snapshots gets its bytes from, and how it reports failure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A snapshot that comes as a stream. read fills all of `to`, and waits for it
 * if need be; *ret_len is less than len only at the end of the stream. Returns
 * 0 or an errno value. */
struct snapshot_source {
    int (*read)(void *ctx, void *to, size_t len, size_t *ret_len);
    void *ctx;
};

enum snapshot_status {
    SNAPSHOT_OK,
    SNAPSHOT_DAMAGED,
    SNAPSHOT_NEWER,  /* the file or a filter is of a later version */
    SNAPSHOT_SECRET, /* a filter is keyed with a secret that is not known */
    SNAPSHOT_IO,     /* error.error is the errno */
    SNAPSHOT_NOMEM,
    SNAPSHOT_STOPPED, /* the visitor stopped the reading */
};

/* Where reading failed, and why. text is one English sentence without the
 * file's name. */
struct snapshot_error {
    enum snapshot_status status;
    int error;
    uint64_t offset; /* where the wrong section or field begins */
    uint64_t record; /* number of records before it */
    char text[256];
};
