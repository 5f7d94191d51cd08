/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads snapshots, and trusts nothing in them: it checks every section before
 * it uses any of it, fields against what the others imply, and sizes before it
 * asks for memory. For the server's start and for bloomery-check: nothing here
 * needs a keyspace. One thread.
 */
#pragma once

#include "base/err.h"
#include "persist/snapshot_source.h"
#include "persist/snapshot_stamp.h"

#include <bloomery/bloom.h>

struct snapshot_visitor {
    /* Called with the header, if that is intact, before any filter; false stops
     * the reading. May be NULL. */
    bool (*header)(void *ctx, const struct snapshot_stamp *stamp,
                   uint32_t databases);
    /* Called with a filter, made in env, which the visitor then owns; false
     * stops the reading, and the visitor has freed the filter. */
    bool (*filter)(void *ctx, const struct snapshot_record *record,
                   struct bloom *bloom);
    /* For salvage; NULL: damage ends the reading. Called for each damaged
     * stretch [from, to) that was skipped. */
    void (*passed_over)(void *ctx, const struct snapshot_error *error,
                        uint64_t from, uint64_t to);
    void *ctx;
};

/* Reads the header alone. */
MUST_CHECK enum snapshot_status
snapshot_read_stamp(int fd, struct snapshot_stamp *ret_stamp,
                    struct snapshot_error *ret_error);

/* Reads everything. With passed_over, returns OK also if something was skipped:
 * then every filter whose sections are all intact was visited. progress may be
 * NULL. */
MUST_CHECK enum snapshot_status snapshot_read(
    int fd, const struct bloom_env *env, const struct snapshot_visitor *visitor,
    struct snapshot_progress *progress, struct snapshot_error *ret_error);

/* Reads a snapshot from a stream, up to its end, without passed_over. A stream
 * may claim any size for a filter until the bytes have come: env limits them.
 * An error of the source is error->error. */
MUST_CHECK enum snapshot_status snapshot_read_source(
    const struct snapshot_source *source, const struct bloom_env *env,
    const struct snapshot_visitor *visitor, struct snapshot_progress *progress,
    struct snapshot_error *ret_error);
