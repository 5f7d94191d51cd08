/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stream of a filter: the bytes of all its layers, oldest first, as
 * BF.SCANDUMP sends and BF.LOADCHUNK takes them in chunks. Of a native or
 * deletable layer these are its lines, of a foreign one the bytes of its bits.
 * A filter that comes in chunks is incomplete (core/filter.h) until each byte
 * has come.
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
    STREAM_DIFFERS,  /* bytes that are there already are others */
    STREAM_PARTS,    /* the chunks that have come leave too many gaps */
    STREAM_NOMEM
};

/* Returns the length of the stream. */
uint64_t stream_bytes(const struct bloom *bloom);

/* Returns the bytes of an incomplete filter that have not come; else 0. */
uint64_t stream_missing(const struct bloom *bloom);

/* Returns how many bytes of a layer there are from OFFSET on; 0 at the end of
 * the stream and behind it. */
uint64_t stream_left(const struct bloom *bloom, uint64_t offset);

/* Copies LEN bytes, which must be of one layer. */
void stream_read(const struct bloom *bloom, uint64_t offset, size_t len,
                 void *ret_bytes);

/* Bytes of the stream, from offset on. */
struct stream_chunk {
    uint64_t offset;
    const void *data;
    size_t len;
};

/* Puts a chunk at its offset, in any order. Bytes that have come already may
 * come again: a client that got no reply repeats its chunk. If they differ the
 * chunk is refused, so that nothing is lost that was there. FORCED chunks come
 * from a log, and are united with what is there: only adds may have changed it.
 * The last missing byte makes the filter complete. On failure nothing changes.
 * *ret_changed: something did. */
enum stream_status stream_write(struct bloom *bloom,
                                const struct bloom_env *env,
                                const struct stream_chunk *chunk, bool forced,
                                bool *ret_changed);
