/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/filling.h"

#include <string.h>

#include "base/err.h"
#include "core/codec.h"
#include "core/env.h"
#include "core/filter.h"

/* Points the filling to the stored bytes, which may have moved since the last
 * piece. */
static void
move(struct filling *filling, const uint8_t *stored)
{
    size_t at = (size_t)(filling->in.at - filling->stored);

    if (filling->array.data != NULL) {
        filling->array.data = stored + (filling->array.data - filling->stored);
    }
    filling->in.at = stored + at;
    filling->stored = stored;
}

/* Reads the array of the next layer. A packed array with a head is unpacked
 * into a buffer of its own (filling->unpacked); any other is unpacked or copied
 * straight into the layer. */
static enum bloom_status
begin_array(struct filling *filling, const struct bloom *bloom,
            const struct bloom_env *env)
{
    filling->next(&filling->in, filling->version,
                  filling->layer + 1 == bloom->count, &filling->array);
    CHECK(!filling->in.failed && filling->array.len >= filling->head);
    filling->at = filling->head;
    /* A packed array without a head is unpacked into the new layer, whose bits
     * are 0. */
    filling->lzf = (struct lzf){ .zeroed = filling->head == 0 };
    if (filling->array.is_lzf && filling->head > 0) {
        filling->unpacked = env->alloc(env->ctx, (size_t)filling->array.len);
        if (filling->unpacked == NULL) {
            return BLOOM_NOMEM;
        }
    }
    filling->begun = true;
    return BLOOM_OK;
}

static void
end_array(struct filling *filling, const struct bloom_env *env)
{
    if (filling->unpacked != NULL) {
        env->free(env->ctx, filling->unpacked, (size_t)filling->array.len);
        filling->unpacked = NULL;
    }
    filling->begun = false;
}

/* Unpacks some bytes. False if they are damaged. */
static bool
unpack(struct filling *filling, uint8_t *to, size_t bytes)
{
    const struct rdb_string *array = &filling->array;
    const struct slice packed = { (const char *)array->data, array->data_len };
    size_t len = (size_t)array->len;

    return lzf_unpack_piece(&filling->lzf, packed, to, len,
                            filling->lzf.done + bytes) &&
           (filling->lzf.at < packed.len || filling->lzf.done == len);
}

/* Fills in a part of one layer. Sets *ret_end if the layer is then complete.
 * False if the bytes are damaged. */
static bool
fill(struct filling *filling, uint8_t *lines, size_t bytes, bool *ret_end)
{
    const struct rdb_string *array = &filling->array;
    size_t len = (size_t)array->len;
    const uint8_t *from = array->data;
    size_t step = len - filling->at < bytes ? len - filling->at : bytes;

    *ret_end = false;
    if (array->is_lzf &&
        (filling->lzf.done < len || filling->lzf.at < array->data_len)) {
        uint8_t *to = filling->unpacked != NULL ? filling->unpacked : lines;

        if (!unpack(filling, to, bytes)) {
            return false;
        }
        *ret_end = filling->unpacked == NULL && filling->lzf.done == len &&
                   filling->lzf.at == array->data_len;
        return true;
    }
    if (array->is_number) {
        from = (const uint8_t *)array->number;
    } else if (array->is_lzf) {
        from = filling->unpacked;
    }
    if (from != NULL && step > 0) {
        codec_fill_lines(lines + (filling->at - filling->head),
                         from + filling->at, step);
    }
    filling->at += step;
    *ret_end = filling->at == len;
    return true;
}

enum bloom_status
filling_step(struct filling *filling, const void *stored, struct bloom *bloom,
             const struct bloom_env *env, size_t bytes, bool *ret_more)
{
    enum bloom_status status = BLOOM_OK;
    size_t line_bytes = 0;
    void *lines;
    bool end;

    env = env_or_default(env);
    move(filling, stored);
    *ret_more = filling->layer < bloom->count;
    if (!*ret_more) {
        return BLOOM_OK;
    }
    if (!filling->begun) {
        status = begin_array(filling, bloom, env);
    }
    lines = codec_layer_lines(bloom, filling->layer, &line_bytes);
    if (status == BLOOM_OK && !fill(filling, lines, bytes, &end)) {
        status = BLOOM_CORRUPT;
    }
    if (status == BLOOM_OK && end) {
        codec_to_host(lines, line_bytes);
        end_array(filling, env);
        filling->layer++;
        *ret_more = filling->layer < bloom->count;
    }
    return status;
}

void
filling_fini(struct filling *filling, const struct bloom_env *env)
{
    end_array(filling, env_or_default(env));
}

enum bloom_status
filling_finish(struct filling *filling, const void *stored, struct bloom *bloom,
               const struct bloom_env *env)
{
    enum bloom_status status = BLOOM_OK;
    bool more = true;

    while (status == BLOOM_OK && more) {
        status = filling_step(filling, stored, bloom, env, SIZE_MAX / 2, &more);
    }
    filling_fini(filling, env);
    if (status != BLOOM_OK) {
        bloom_free(bloom, env);
    }
    return status;
}
