/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads snapshots, and trusts nothing in them: it checks each section before it
 * uses any part of it, each field against what the others imply, and sizes
 * before it asks for memory. For the server's start and for bloomery-check:
 * nothing here needs a keyspace. One thread calls; others may help it.
 */
#pragma once

#include "base/err.h"
#include "snapshot/snapshot_source.h"
#include "snapshot/snapshot_stamp.h"
#include "snapshot/snapshot_visitor.h"

#include <bloomery/bloom.h>

/* Reads only the header and the end, and returns the stamp of the state in the
 * file. */
MUST_CHECK enum snapshot_status
snapshot_read_stamp(int fd, struct snapshot_stamp *ret_stamp,
                    struct snapshot_error *ret_error);

/* Reads everything. With passed_over it returns OK even if something was
 * skipped: then every filter whose sections are all intact was visited.
 * progress may be NULL. */
MUST_CHECK enum snapshot_status snapshot_read(
    int fd, const struct bloom_env *env, const struct snapshot_visitor *visitor,
    struct snapshot_progress *progress, struct snapshot_error *ret_error);

/* Reads a snapshot from a stream, up to its end, without passed_over. A stream
 * may claim any size for a filter until the bytes have come: env limits them.
 * The errno of a failed source is in ret_error->error. */
MUST_CHECK enum snapshot_status snapshot_read_source(
    const struct snapshot_source *source, const struct bloom_env *env,
    const struct snapshot_visitor *visitor, struct snapshot_progress *progress,
    struct snapshot_error *ret_error);
