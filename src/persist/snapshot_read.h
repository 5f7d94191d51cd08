/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads snapshots, which are hostile: every section is checked before anything
 * of it is used, fields against what the others imply, sizes before memory is
 * asked for. For the server's start and for bloomery-check: nothing here needs
 * a keyspace. One thread.
 */
#pragma once

#include "base/err.h"
#include "persist/snapshot_source.h"
#include "persist/snapshot_stamp.h"

#include <bloomery/bloom.h>

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
