/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The payload of BF.LOAD (numbers little-endian, nothing between them):
 *
 *   offset  size
 *        0     1  version: 1
 *        1     4  expansion; 0: nonscaling
 *        5     8  rate, IEEE 754 binary64
 *       13     8  tightening, the same
 *       21     1  whether the seed is random: 0 for the fixed one
 *       22     8  n: number of filters, our layers
 *       30        filters, oldest first: 8 bytes length of the array, the
 *                 array, 8 items, 8 capacity
 *
 *   array   0     1  version: 1
 *           1     8  bytes of the bits
 *           9     4  hashes
 *          13    32  seed
 *          45        bits
 *
 * The value is a list of fields: n, expansion, rate, tightening, random; for
 * each filter capacity, items (only the last one; the others are full), array.
 */
#include "core/valkeybloom.h"

#include <string.h>

#include "base/err.h"
#include "base/little.h"
#include "core/codec.h"
#include "core/env.h"
#include "core/foreign.h"
#include "core/parts.h"
#include "core/stream.h"

enum {
    LOAD_VERSION = 1,
    LOAD_AT_EXPANSION = 1,
    LOAD_AT_RATE = 5,
    LOAD_AT_TIGHTENING = 13,
    LOAD_AT_RANDOM = 21,
    LOAD_AT_COUNT = 22,
    LOAD_HEAD = 30,
    LOAD_FILTER_ENDS = 8 + 8 + 8,
    ARRAY_VERSION = 1,
    ARRAY_AT_BYTES = 1,
    ARRAY_AT_HASHES = 9,
    ARRAY_AT_SEED = 13,
    ARRAY_HEAD = 45
};

/* A layer of the value that is being read. */
struct part {
    struct rdb_string array;
    uint64_t capacity, items;
};

/* Reads the next layer of either form. False if there is none. */
typedef bool (*next_part_fn)(struct rdb_in *in, bool last,
                             struct part *ret_part);

/* A form, and how its layers are read. */
struct form {
    next_part_fn next_part;
    filling_next_fn next_array;
};

/* A filter that is being read. */
struct reading {
    const struct form *form;
    struct codec_head head;
    bool random;
    uint8_t *bytes; /* the head in our form */
    size_t len;
};

/* ---- into our own form --------------------------------------------------- */

static enum bloom_status
begin_filter(struct reading *reading, uint64_t layers,
             const struct bloom_env *env)
{
    if (layers < 1) {
        return BLOOM_CORRUPT;
    }
    if (layers > BLOOM_LAYERS_MAX) {
        return BLOOM_MAX_LAYERS;
    }
    reading->head.layers = (uint32_t)layers;
    reading->head.params.kind = BLOOM_VALKEYBLOOM;
    reading->len = codec_table_end(BLOOM_VALKEYBLOOM, (uint32_t)layers);
    reading->bytes = env->alloc(env->ctx, reading->len);
    return reading->bytes != NULL ? BLOOM_OK : BLOOM_NOMEM;
}

/* Adds a layer. All layers have the seed of the first. */
static bool
add_part(struct reading *reading, uint32_t index, const struct part *part)
{
    uint8_t *seed = reading->head.params.seed;
    struct codec_layer layer = { .capacity = part->capacity,
                                 .items = part->items };
    uint8_t start[ARRAY_HEAD];
    uint64_t bytes;

    if (!rdb_expand(&part->array, start, sizeof(start)) ||
        start[0] != ARRAY_VERSION) {
        return false;
    }
    bytes = get_u64(start + ARRAY_AT_BYTES);
    if (bytes != part->array.len - ARRAY_HEAD || bytes > UINT64_MAX / 8) {
        return false;
    }
    if (index == 0) {
        memcpy(seed, start + ARRAY_AT_SEED, BLOOM_SEED_BYTES);
    }
    layer.lines = bytes * 8;
    layer.stripes = get_u32(start + ARRAY_AT_HASHES);
    codec_put_layer(BLOOM_VALKEYBLOOM, index, &layer, reading->bytes);
    return memcmp(seed, start + ARRAY_AT_SEED, BLOOM_SEED_BYTES) == 0;
}

static enum bloom_status
add_parts(struct reading *reading, struct rdb_in *in)
{
    for (uint32_t i = 0; i < reading->head.layers; i++) {
        struct part part;

        if (!reading->form->next_part(in, i + 1 == reading->head.layers,
                                      &part) ||
            !add_part(reading, i, &part)) {
            return BLOOM_CORRUPT;
        }
    }
    return BLOOM_OK;
}

/* valkey-bloom calls every seed random, except the fixed one. */
static enum bloom_status
make_bloom(struct reading *reading, const struct bloom_env *env,
           struct bloom **ret_bloom)
{
    bool fixed = memcmp(reading->head.params.seed, bloom_seed_fixed,
                        BLOOM_SEED_BYTES) == 0;
    struct codec_head head;
    enum bloom_status status;

    if (fixed == reading->random) {
        return BLOOM_CORRUPT;
    }
    codec_put_fixed(&reading->head, reading->bytes);
    status = codec_read_head(reading->bytes, reading->len, &head);
    if (status == BLOOM_OK) {
        status = codec_check_head(&head);
    }
    return status == BLOOM_OK ? codec_new(&head, env, ret_bloom) : status;
}

/* Makes the filter of a head and the layers that follow. */
static enum bloom_status
read_all(struct reading *reading, uint64_t layers, struct rdb_in *in,
         const struct bloom_env *env, struct filling *ret_filling,
         struct bloom **ret_bloom)
{
    const struct rdb_in parts = *in;
    enum bloom_status status = begin_filter(reading, layers, env);

    if (status == BLOOM_OK) {
        status = add_parts(reading, in);
    }
    if (status == BLOOM_OK) {
        status = make_bloom(reading, env, ret_bloom);
    }
    if (reading->bytes != NULL) {
        env->free(env->ctx, reading->bytes, reading->len);
    }
    *ret_filling = (struct filling){ .stored = parts.at,
                                     .in = parts,
                                     .next = reading->form->next_array,
                                     .head = ARRAY_HEAD };
    return status;
}

static bool
is_random(const struct bloom *bloom)
{
    uint8_t seed[BLOOM_SEED_BYTES];

    bloom_get_seed(bloom, seed);
    return memcmp(seed, bloom_seed_fixed, BLOOM_SEED_BYTES) != 0;
}

/* Appends the array of a layer. */
static void
put_array(const struct bloom *bloom, const struct layer *layer,
          uint64_t *offset, struct rdb_out *out)
{
    uint64_t bytes = stream_left(bloom, *offset);
    uint8_t start[ARRAY_HEAD] = { ARRAY_VERSION };

    put_u64(start + ARRAY_AT_BYTES, bytes);
    put_u32(start + ARRAY_AT_HASHES, layer->stripes);
    bloom_get_seed(bloom, start + ARRAY_AT_SEED);
    rdb_put(out, start, sizeof(start));
    if (out->to != NULL) {
        stream_read(bloom, *offset, (size_t)bytes, out->to + out->len);
    }
    out->len += bytes;
    *offset += bytes;
}

static uint64_t
array_bytes(const struct layer *layer)
{
    return ARRAY_HEAD + foreign_bytes(layer->line_count);
}

/* ---- BF.LOAD ------------------------------------------------------------- */

static bool
next_loaded(struct rdb_in *in, bool last, struct part *ret_part)
{
    uint64_t len;

    if (in->left < LOAD_FILTER_ENDS) {
        return false;
    }
    len = get_u64(in->at);
    if (len > in->left - LOAD_FILTER_ENDS) {
        return false;
    }
    *ret_part = (struct part){
        .array = { .len = len, .data = in->at + 8, .data_len = (size_t)len },
        .items = get_u64(in->at + 8 + len),
        .capacity = get_u64(in->at + 16 + len),
    };
    in->at += LOAD_FILTER_ENDS + len;
    in->left -= LOAD_FILTER_ENDS + (size_t)len;
    return !last || in->left == 0;
}

static void
next_loaded_array(struct rdb_in *in, unsigned version, bool last,
                  struct rdb_string *ret_array)
{
    struct part part;

    (void)version;
    in->failed = !next_loaded(in, last, &part);
    *ret_array = part.array;
}

enum bloom_status
valkeybloom_begin_load(const void *data, size_t len,
                       const struct bloom_env *env, struct filling *ret_filling,
                       struct bloom **ret_bloom)
{
    static const struct form form = { next_loaded, next_loaded_array };
    const uint8_t *at = data;
    enum bloom_status status;
    struct reading reading = { .form = &form };
    struct bloom_params *params = &reading.head.params;
    struct rdb_in in;

    if (len < 1) {
        return BLOOM_CORRUPT;
    }
    if (at[0] != LOAD_VERSION) {
        return BLOOM_VERSION;
    }
    if (len < LOAD_HEAD || at[LOAD_AT_RANDOM] > 1) {
        return BLOOM_CORRUPT;
    }
    params->expansion = get_u32(at + LOAD_AT_EXPANSION);
    params->error_rate = get_double(at + LOAD_AT_RATE);
    params->tightening = get_double(at + LOAD_AT_TIGHTENING);
    reading.random = at[LOAD_AT_RANDOM] == 1;
    in = (struct rdb_in){ .at = at + LOAD_HEAD, .left = len - LOAD_HEAD };
    status = read_all(&reading, get_u64(at + LOAD_AT_COUNT), &in,
                      env_or_default(env), ret_filling, ret_bloom);
    ret_filling->stored = data;
    return status;
}

enum bloom_status
valkeybloom_load(const void *data, size_t len, const struct bloom_env *env,
                 struct bloom **ret_bloom)
{
    struct filling filling;
    struct bloom *bloom = NULL;
    enum bloom_status status =
        valkeybloom_begin_load(data, len, env, &filling, &bloom);

    if (status == BLOOM_OK) {
        status = filling_finish(&filling, filling.stored, bloom, env);
    }
    if (status == BLOOM_OK) {
        *ret_bloom = bloom;
    }
    return status;
}

static void
put_number(struct rdb_out *out, uint64_t number)
{
    uint8_t bytes[8];

    put_u64(bytes, number);
    rdb_put(out, bytes, sizeof(bytes));
}

void
valkeybloom_put_load(const struct bloom *bloom, struct rdb_out *out)
{
    uint8_t head[LOAD_HEAD] = { LOAD_VERSION };
    uint64_t offset = 0;

    CHECK(bloom_kind(bloom) == BLOOM_VALKEYBLOOM);
    put_u32(head + LOAD_AT_EXPANSION, bloom->expansion);
    put_double(head + LOAD_AT_RATE, bloom->error_rate);
    put_double(head + LOAD_AT_TIGHTENING, bloom_tightening(bloom));
    head[LOAD_AT_RANDOM] = is_random(bloom);
    put_u64(head + LOAD_AT_COUNT, bloom->count);
    rdb_put(out, head, sizeof(head));
    for (uint32_t i = 0; i < bloom->count; i++) {
        const struct layer *layer = &bloom_layers_const(bloom)[i];

        put_number(out, array_bytes(layer));
        put_array(bloom, layer, &offset, out);
        put_number(out, layer->items);
        put_number(out, layer->capacity);
    }
}

/* ---- the value ----------------------------------------------------------- */

static bool
next_field(struct rdb_in *in, bool last, struct part *ret_part)
{
    ret_part->capacity = rdb_field_uint(in);
    ret_part->items = last ? rdb_field_uint(in) : ret_part->capacity;
    rdb_field_string(in, &ret_part->array);
    return !in->failed && (!last || (rdb_length(in) == RDB_EOF && !in->failed));
}

static void
next_field_array(struct rdb_in *in, unsigned version, bool last,
                 struct rdb_string *ret_array)
{
    struct part part;

    (void)version;
    in->failed = !next_field(in, last, &part);
    *ret_array = part.array;
}

enum bloom_status
valkeybloom_read_value(struct rdb_in *in, unsigned version,
                       const struct bloom_env *env, struct filling *ret_filling,
                       struct bloom **ret_bloom)
{
    static const struct form form = { next_field, next_field_array };
    struct reading reading = { .form = &form };
    struct bloom_params *params = &reading.head.params;
    uint64_t layers;
    uint64_t expansion;

    if (version > VALKEYBLOOM_MODULE_VERSION) {
        return BLOOM_VERSION;
    }
    layers = rdb_field_uint(in);
    expansion = rdb_field_uint(in);
    params->error_rate = rdb_field_double(in);
    params->tightening = rdb_field_double(in);
    reading.random = rdb_field_uint(in) == 1;
    if (in->failed || expansion > UINT32_MAX) {
        return BLOOM_CORRUPT;
    }
    params->expansion = (uint32_t)expansion;
    return read_all(&reading, layers, in, env_or_default(env), ret_filling,
                    ret_bloom);
}

void
valkeybloom_put_value(const struct bloom *bloom, struct rdb_out *out)
{
    uint64_t offset = 0;

    CHECK(bloom_kind(bloom) == BLOOM_VALKEYBLOOM);
    rdb_put_uint(out, bloom->count);
    rdb_put_uint(out, bloom->expansion);
    rdb_put_double(out, bloom->error_rate);
    rdb_put_double(out, bloom_tightening(bloom));
    rdb_put_uint(out, is_random(bloom));
    for (uint32_t i = 0; i < bloom->count; i++) {
        const struct layer *layer = &bloom_layers_const(bloom)[i];

        rdb_put_uint(out, layer->capacity);
        if (i + 1U == bloom->count) {
            rdb_put_uint(out, layer->items);
        }
        rdb_put_string_head(out, array_bytes(layer));
        put_array(bloom, layer, &offset, out);
    }
    rdb_put_length(out, RDB_EOF);
}
