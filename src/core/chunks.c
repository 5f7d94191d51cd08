/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes a filter from the replies of BF.SCANDUMP, for programs, which never see
 * it before it is complete.
 */
#include "core/filter.h"
#include "core/payload.h"
#include "core/stream.h"

enum { HEADER_ITERATOR = 1 };

/* An iterator names the place behind the bytes of its chunk, plus 1. */
static enum bloom_status
put_chunk(struct bloom *bloom, const struct bloom_env *env,
          const struct bloom_chunk *chunk)
{
    uint64_t behind = (uint64_t)chunk->iterator;
    bool changed;

    if (chunk->iterator <= 0 || behind - 1 < chunk->len) {
        return BLOOM_CORRUPT;
    }
    switch (
        stream_write(bloom, env,
                     &(struct stream_chunk){ .offset = behind - 1 - chunk->len,
                                             .data = chunk->data,
                                             .len = chunk->len },
                     false, &changed)) {
    case STREAM_OK:
        return BLOOM_OK;
    case STREAM_NOMEM:
        return BLOOM_NOMEM;
    default:
        return BLOOM_CORRUPT;
    }
}

enum bloom_status
bloom_load_chunks(bool (*next)(void *ctx, struct bloom_chunk *ret_chunk),
                  void *ctx, const struct bloom_env *env,
                  struct bloom **ret_bloom)
{
    struct bloom_chunk chunk = { 0 };
    struct bloom *bloom = NULL;
    enum bloom_status status;

    if (!next(ctx, &chunk) || chunk.iterator != HEADER_ITERATOR) {
        return BLOOM_CORRUPT;
    }
    status = payload_read_header(chunk.data, chunk.len, env, &bloom);
    while (status == BLOOM_OK && bloom_is_incomplete(bloom)) {
        status =
            next(ctx, &chunk) ? put_chunk(bloom, env, &chunk) : BLOOM_CORRUPT;
    }
    if (status != BLOOM_OK) {
        bloom_free(bloom, env);
        return status;
    }
    *ret_bloom = bloom;
    return BLOOM_OK;
}
