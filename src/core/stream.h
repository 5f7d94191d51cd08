/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stream of a filter: the bytes of all its layers, oldest first, as
 * BF.SCANDUMP sends and BF.LOADCHUNK takes them in chunks. The bytes of a
 * foreign layer are its array of bits; those of any other layer are its lines.
 * A filter that comes in chunks is incomplete (core/filter.h)
 * until all bytes have come.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/filter.h"

enum stream_status {
    STREAM_OK,
    STREAM_NO_LAYER, /* the chunk begins behind the last byte */
    STREAM_TOO_LONG, /* the chunk goes beyond its layer */
    STREAM_DIFFERS,  /* differs from bytes that have come already */
    STREAM_PARTS,    /* the chunks so far leave too many gaps */
    STREAM_NOMEM
};

/* Returns the length of the stream. */
uint64_t stream_bytes(const struct bloom *bloom);

/* Returns how many bytes an incomplete filter still lacks; 0 for a complete
 * one. */
uint64_t stream_missing(const struct bloom *bloom);

/* Returns how many bytes of a layer there are from OFFSET on; 0 at the end of
 * the stream and behind it. */
uint64_t stream_left(const struct bloom *bloom, uint64_t offset);

/* Copies LEN bytes, which must belong to one layer. */
void stream_read(const struct bloom *bloom, uint64_t offset, size_t len,
                 void *ret_bytes);

/* A chunk: bytes of the stream, from offset on. */
struct stream_chunk {
    uint64_t offset;
    const void *data;
    size_t len;
};

/* Puts a chunk at its offset, in any order. Bytes that have come already may
 * come again: a client that got no reply repeats its chunk. If they differ, the
 * chunk is refused, so that no bit that was set is lost. FORCED chunks come
 * from a log: their bits are added to those that are there, since only adds may
 * have changed them. The last missing byte makes the filter complete. On
 * failure nothing changes. *ret_changed: bytes that were missing have come. */
enum stream_status stream_write(struct bloom *bloom,
                                const struct bloom_env *env,
                                const struct stream_chunk *chunk, bool forced,
                                bool *ret_changed);
